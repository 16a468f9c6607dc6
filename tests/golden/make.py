#!/usr/bin/env python3
"""Make the profiles that the golden tests print: make.py FOLDER

Each is FOLDER/NAME/profile.pb. They are kept in the tree; run this again only
to change them, and then `run.py --update CPPROF`.
"""
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
from protobuf import chunk, varint


def number(field, n):
    return varint(field << 3) + varint(n) if n else b""


class Profile:
    def __init__(self, types, default=None):
        self.strings = [""]
        self.functions = {}
        self.locations = {}
        self.bytes = b"".join(
            chunk(1, number(1, self.string(kind)) + number(2, self.string(unit)))
            for kind, unit in types)
        if default:
            self.bytes += number(14, self.string(default))

    def string(self, text):
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def mapping(self, ident, start, path, build_id="", has=1):
        self.bytes += chunk(3, b"".join([
            number(1, ident), number(2, start), number(3, start + 0x10000),
            number(5, self.string(path)), number(6, self.string(build_id)),
            number(7, has), number(8, has), number(9, has), number(10, has)]))

    def function(self, name, system_name, path, start):
        key = (name, system_name, path, start)
        if key not in self.functions:
            self.functions[key] = len(self.functions) + 1
            self.bytes += chunk(5, b"".join([
                number(1, self.functions[key]), number(2, self.string(name)),
                number(3, self.string(system_name)),
                number(4, self.string(path)), number(5, start)]))
        return self.functions[key]

    def location(self, mapping, address, lines):
        """lines: (function, line, column), innermost first."""
        key = (mapping, address)
        if key not in self.locations:
            self.locations[key] = len(self.locations) + 1
            self.bytes += chunk(4, b"".join(
                [number(1, self.locations[key]), number(2, mapping),
                 number(3, address)] +
                [chunk(4, number(1, f) + number(2, line) + number(3, column))
                 for f, line, column in lines]))
        return self.locations[key]

    def sample(self, stack, values, labels=()):
        self.bytes += chunk(2, b"".join(
            [chunk(1, b"".join(map(varint, stack))),
             chunk(2, b"".join(map(varint, values)))] +
            [chunk(3, number(1, self.string(key)) + (
                number(2, self.string(value)) if isinstance(value, str) else
                number(3, value[0]) + number(4, self.string(value[1]))))
             for key, value in labels]))

    def write(self, folder, name):
        for text in self.strings:
            self.bytes += chunk(6, text.encode())
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        with open(os.path.join(folder, name, "profile.pb"), "wb") as out:
            out.write(self.bytes)


NAMES = [("main", "main"), ("run(int, char**)", "_Z3runiPPc"),
         ("db::Table<int>::find(int) const", "_ZNK2db5TableIiE4findEi"),
         ("db::Table<long>::find(long) const", "_ZNK2db5TableIlE4findEl"),
         ("(anonymous namespace)::hash(char const*)",
          "_ZN12_GLOBAL__N_14hashEPKc"),
         ("_ZN2db6Cursor4nextEv", "_ZN2db6Cursor4nextEv"),
         ("memcpy", "memcpy"), ("parse", "parse"), ("sort", "sort"),
         ("core::fmt::write", "_ZN4core3fmt5write17h0123456789abcdefE")]


def program(p, rng):
    """Locations of a program: some with inlined functions, some bare."""
    functions = [p.function(name, system, "/src/db/../%s.cc" % "abc"[i % 3], i)
                 for i, (name, system) in enumerate(NAMES)]
    places = []
    for i in range(40):
        mapping = 1 + i % 3
        address = mapping * 0x100000 + i * 16
        depth = [1, 1, 1, 2, 3, 0][rng.randrange(6)]
        places.append(p.location(mapping, address, [
            (rng.choice(functions), rng.randrange(1, 60), rng.randrange(3) * 5)
            for _ in range(depth)]))
    return places


def add_samples(p, rng, places, n, n_values, labels):
    for _ in range(n):
        stack = [rng.choice(places) for _ in range(rng.randrange(1, 9))]
        count = rng.randrange(1, 20)
        values = [count] + [count * rng.randrange(1, 1 << 20)
                            for _ in range(n_values - 1)]
        p.sample(stack, values, labels(rng))


def add_mappings(p):
    p.mapping(1, 0x100000, "/opt/my app/bin/server", "c0ffee")
    p.mapping(2, 0x200000, "/lib/libdb.so.1")
    p.mapping(3, 0x300000, "/lib/libc.so.6", "beef", 0)


def cpu(folder):
    rng = random.Random(1)
    p = Profile([("samples", "count"), ("cpu", "nanoseconds")])
    add_mappings(p)
    p.bytes += number(9, 1700000000 * 10**9) + number(10, 12345678901)
    p.bytes += chunk(11, number(1, p.string("cpu")) +
                     number(2, p.string("nanoseconds"))) + number(12, 10**7)
    p.bytes += number(13, p.string("written by make.py"))
    p.bytes += number(13, p.string("# not for the heading"))
    p.bytes += number(7, p.string("mem.*|no such"))
    add_samples(p, rng, program(p, rng), 300, 2, lambda r: r.choice([
        [], [("thread", "main")], [("thread", "io"), ("request", (7, ""))]]))
    p.write(folder, "cpu")


def heap(folder):
    rng = random.Random(2)
    p = Profile([("alloc_objects", "count"), ("alloc_space", "bytes"),
                 ("inuse_objects", "count"), ("inuse_space", "bytes")],
                "inuse_space")
    add_mappings(p)
    add_samples(p, rng, program(p, rng), 200, 4, lambda r: [
        ("bytes", (1 << r.randrange(20), "bytes"))])
    p.write(folder, "heap")


def addresses(folder):
    rng = random.Random(3)
    p = Profile([("samples", "count"), ("cpu", "microseconds")])
    p.mapping(1, 0x400000, "/bin/bare", "", 0)
    places = [p.location(1, 0x400000 + i * 7, []) for i in range(30)]
    add_samples(p, rng, places, 100, 2, lambda r: [])
    p.write(folder, "addresses")


if __name__ == "__main__":
    cpu(sys.argv[1])
    heap(sys.argv[1])
    addresses(sys.argv[1])
