#!/usr/bin/env python3
"""Random small profiles in protobuf, each with everything odd that the format
allows; the same seed gives the same bytes.

    generate.py SEED FILE [BASE]    one profile, and one to compare it with

profile(seed) and pair(seed) give the bytes to other scripts.
"""
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
from protobuf import chunk, varint

FUNCTIONS = [b"main", b"run", b"malloc", b"alloc_page", b"hash", b"parse",
             b"operator new(unsigned long)", b"runtime.mallocgc",
             b"std::vector<int>::push_back(int const&)",
             b"(anonymous namespace)::grow(char const*)", b"_ZN3foo3barEv",
             b"example.com/x/y.(*T).Do", b"with space", b"bad\xff\xfename",
             b"\xc3\xbcnicode", b"", b".dotted", b"leaf", b"loop", b"work"]
FILES = [b"", b"src/a.c", b"/build/src/b.cc", b"../c/./d.go", b"bad\xfe.c",
         b"work.h"]
OBJECTS = [b"/srv/none/server", b"/srv/none/libdb.so.1", b"", b"[vdso]",
           b"//anon", b"/memfd:jit (deleted)", b"/srv/none/libc.so.6",
           b"/srv/none/my server"]
KEYS = [b"thread", b"bytes", b"request", b"alignment", b"latency", b"k\xff",
        b"with:colon", b"pprof::base"]
TEXTS = [b"io", b"main", b"", b"a b", b"\"quoted\"", b"16kb", b"\xfe", b"true",
         b"io2"]
UNITS = [b"", b"bytes", b"kilobytes", b"ns", b"ms", b"parsecs", b"kb"]
TYPES = [(b"samples", b"count"), (b"cpu", b"nanoseconds"),
         (b"alloc_objects", b"count"), (b"alloc_space", b"bytes"),
         (b"inuse_objects", b"count"), (b"inuse_space", b"bytes"),
         (b"contentions", b"count"), (b"delay", b"nanoseconds"),
         (b"wall", b"microseconds"), (b"space", b"kilobytes"), (b"odd", b"")]
EXPRESSIONS = [b"", b"malloc|alloc.*", b"operator new|runtime\\..*", b"nosuch",
               b"leaf", b"run"]


class Message:
    """The fields of one message, written in any order."""

    def __init__(self, rng):
        self.rng = rng
        self.fields = []

    def number(self, field, n):
        # A zero is usually left out, but may be there.
        if n or self.rng.random() < 0.1:
            self.fields.append(varint(field << 3) + varint(n))

    def numbers(self, field, all_numbers):
        """Packed, one by one, or a piece of each."""
        cut = self.rng.choice([0, len(all_numbers),
                               self.rng.randint(0, len(all_numbers))])
        if all_numbers[:cut]:
            self.fields.append(chunk(field, b"".join(
                map(varint, all_numbers[:cut]))))
        # One field of several: the numbers keep their order.
        self.fields.append(b"".join(varint(field << 3) + varint(n)
                                    for n in all_numbers[cut:]))
        if 0 < cut < len(all_numbers):
            self.fields[-2:] = [self.fields[-2] + self.fields[-1]]

    def message(self, field, other):
        self.fields.append(chunk(field, other.bytes()))

    def unknown(self):
        """What no reader knows and all of them skip."""
        field = self.rng.choice([99, 1000, 536870911])
        data = self.rng.choice([
            varint(field << 3) + varint(self.rng.getrandbits(64)),
            varint(field << 3 | 1) + bytes(8),
            varint(field << 3 | 5) + bytes(4),
            chunk(field, b"unknown")])
        self.fields.append(data)

    def bytes(self, shuffle=True):
        if shuffle and self.rng.random() < 0.5:
            self.rng.shuffle(self.fields)
        return b"".join(self.fields)


class Strings:
    def __init__(self, rng):
        self.rng = rng
        self.table = [b""]
        self.index = {b"": 0}

    def add(self, text):
        """The index of a text; sometimes it gets another one."""
        if text and (text not in self.index or self.rng.random() < 0.02):
            self.index[text] = len(self.table)
            self.table.append(text)
        return self.index[text]


class Shape:
    """What a profile and the one it is compared with have in common."""

    def __init__(self, rng):
        self.types = rng.sample(TYPES, rng.randint(1, 4))
        self.default = rng.choice([b"", b"", rng.choice(self.types)[0],
                                   b"nosuch"])
        self.period_type = rng.choice([None, (b"cpu", b"nanoseconds"),
                                       (b"space", b"bytes")])
        self.drop = rng.choice(EXPRESSIONS)
        self.keep = rng.choice(EXPRESSIONS)
        self.seed = rng.getrandbits(32)
        self.n_samples = rng.choice([0, 1, 5, 20, 40])
        self.negative = rng.random() < 0.3
        self.empty_stacks = rng.random() < 0.2
        self.sparse = rng.random() < 0.3
        self.labels = rng.choice([0, 0, 1, 3])
        self.n_mappings = rng.choice([0, 1, 2, 4])
        self.columns = rng.random() < 0.3
        self.stranger = rng.random() < 0.1  # types of the other differ


class Profile:
    def __init__(self, rng, shape, variant):
        self.rng = rng
        self.shape = shape
        self.strings = Strings(rng)
        self.parts = Message(rng)
        # Functions, locations and mappings of both are mostly the same.
        places = random.Random(shape.seed)
        self.types = list(shape.types)
        if variant and shape.stranger:
            self.types = self.types[1:] or [(b"other", b"count")]
        self.shift = variant and places.choice([0, 0, 0x10000])
        self.mappings = self.add_mappings(places)
        self.functions = self.add_functions(places)
        self.locations = self.add_locations(places)
        self.add_samples()
        self.add_rest()

    def ids(self, rng, n):
        if not self.shape.sparse:
            return list(range(1, n + 1))
        return rng.sample(range(1, 1 << 62), n)

    def part(self, field, pairs):
        message = Message(self.rng)
        for number, value in pairs:
            message.number(number, value)
        if self.rng.random() < 0.1:
            message.unknown()
        self.parts.message(field, message)

    def add_mappings(self, rng):
        ids = self.ids(rng, self.shape.n_mappings)
        self.starts = {0: 0}
        for i, ident in enumerate(ids):
            start = 0x400000 + i * 0x100000 + self.shift
            self.starts[ident] = start
            flags = rng.choice([0, 15, 1, 7, rng.getrandbits(4)])
            size = rng.choice([0x1000, 0x7ff1, 0x100000])
            self.part(3, [
                (1, ident), (2, start), (3, start + size),
                (4, rng.choice([0, 0x1000])),
                (5, self.strings.add(rng.choice(OBJECTS))),
                (6, self.strings.add(rng.choice([b"", b"c0ffee", b"abc123"]))),
            ] + [(7 + bit, flags >> bit & 1) for bit in range(4)])
        return ids

    def add_functions(self, rng):
        ids = self.ids(rng, rng.randint(1, 24))
        for ident in ids:
            name = rng.choice(FUNCTIONS)
            self.part(5, [
                (1, ident), (2, self.strings.add(name)),
                (3, self.strings.add(rng.choice([name, name, b"_Z1x", b""]))),
                (4, self.strings.add(rng.choice(FILES))),
                (5, rng.choice([0, 1, 17, 100000]))])
        return ids

    def line(self, rng):
        line, number = Message(self.rng), rng.choice([0, 3, 40, 12345, -1])
        line.number(1, rng.choice(self.functions))
        line.number(2, number)
        if self.shape.columns:
            # Goes with the line: the peer reads no columns, and would merge
            # locations that differ in nothing else.
            line.number(3, number % 7)
        return line

    def add_locations(self, rng):
        ids = self.ids(rng, rng.randint(1, 30))
        for ident in ids:
            location = Message(self.rng)
            mapping = rng.choice([0] + self.mappings * 3)
            location.number(1, ident)
            location.number(2, mapping)
            location.number(3, self.starts[mapping] + rng.randrange(40) * 16)
            # Lines keep their order, so they are one field of several.
            lines = [self.line(rng) for _ in range(rng.choice([0, 1, 1, 2, 4]))]
            location.fields.append(b"".join(chunk(4, line.bytes())
                                            for line in lines))
            location.number(5, rng.random() < 0.1)
            self.parts.message(4, location)
        return ids

    def label(self):
        rng, label = self.rng, Message(self.rng)
        label.number(1, self.strings.add(rng.choice(KEYS[:7])))
        kind = rng.randrange(5)
        if kind < 2:
            label.number(2, self.strings.add(rng.choice(TEXTS)))
        elif kind < 4:
            label.number(3, rng.choice([0, 1, 100, 4096, 1 << 20, -5,
                                        rng.randrange(1 << 40)]))
            label.number(4, self.strings.add(
                rng.choice(UNITS) if kind == 3 else b""))
        return label

    def values(self):
        low = -1000 if self.shape.negative else 0
        return [self.rng.choice([0, 1, 10, self.rng.randint(low, 10 ** 6)])
                for _ in self.types]

    def add_samples(self):
        rng = self.rng
        made = []
        for _ in range(self.shape.n_samples):
            sample = Message(rng)
            low = 0 if self.shape.empty_stacks else 1
            depth = rng.choice([low, 1, 2, 6, 12])
            stack = [rng.choice(self.locations) for _ in range(depth)]
            sample.numbers(1, stack)
            sample.numbers(2, self.values())
            labels = [self.label() for _ in range(rng.randint(
                0, self.shape.labels))]
            sample.fields.append(b"".join(chunk(3, label.bytes())
                                          for label in labels))
            if rng.random() < 0.1:
                sample.unknown()
            made.append(sample.bytes())
            if rng.random() < 0.2:
                made.append(rng.choice(made))  # the same again
        self.parts.fields.extend(chunk(2, data) for data in made)

    def value_type(self, field, pair):
        self.part(field, [(1, self.strings.add(pair[0])),
                          (2, self.strings.add(pair[1]))])

    def add_rest(self):
        rng, shape, parts = self.rng, self.shape, self.parts
        for pair in self.types:
            self.value_type(1, pair)
        # The order of types is that of the values: no shuffling of these.
        n = len(self.types)
        parts.fields[-n:] = [b"".join(parts.fields[-n:])]
        parts.number(7, self.strings.add(shape.drop))
        parts.number(8, self.strings.add(shape.keep))
        parts.number(9, rng.choice([0, 1700000000123456789, 10 ** 18]))
        parts.number(10, rng.choice([0, 999, 1234567, 31415926535, 10 ** 13]))
        if shape.period_type:
            self.value_type(11, shape.period_type)
        parts.number(12, rng.choice([0, 1, 10 ** 7, 524288]))
        parts.numbers(13, [self.strings.add(text) for text in rng.choice(
            [[], [b"one"], [b"one", b"# two", b"one"]])])
        parts.number(14, self.strings.add(shape.default))
        parts.number(15, self.strings.add(rng.choice(
            [b"", b"https://example.com/doc"])))
        if rng.random() < 0.3:
            parts.unknown()

    def bytes(self):
        head = self.parts.bytes()
        return head + b"".join(chunk(6, text) for text in self.strings.table)


def pair(seed):
    """A profile, and another for -base."""
    rng = random.Random(seed)
    shape = Shape(rng)
    return (Profile(rng, shape, 0).bytes(), Profile(rng, shape, 1).bytes())


def profile(seed):
    return pair(seed)[0]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for data, path in zip(pair(int(sys.argv[1])), sys.argv[2:]):
        with open(path, "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
