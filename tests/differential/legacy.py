#!/usr/bin/env python3
"""Random small profiles in the formats that came before profile.proto; the same
seed gives the same bytes: legacy.py SEED FILE

Each maker below returns what its writer would have written: gperftools, Go up
to 1.8, Java, tcmalloc's pages.
"""
import random
import struct
import sys

OBJECTS = ["/srv/none/server", "/srv/none/libc-2.31.so", "/srv/none/a b.so.1",
           "/anon_hugepage (deleted)", "[vdso]", "/srv/none/libx.so"]
BASE = 0x400000
STEP = 0x100000


def address(rng):
    """Mostly inside a mapping of maps()."""
    return rng.choice([rng.randrange(4) * STEP + BASE + rng.randrange(64) * 16,
                       rng.randrange(4) * STEP + BASE + rng.randrange(64) * 16,
                       rng.randrange(1, 1 << 40)])


class Stacks:
    """Few different addresses, so that stacks meet."""

    def __init__(self, rng):
        self.rng = rng
        self.places = [address(rng) for _ in range(rng.randint(2, 24))]

    def one(self):
        return [self.rng.choice(self.places)
                for _ in range(self.rng.choice([1, 2, 4, 9]))]

    def text(self):
        return " ".join("0x%x" % place for place in self.one())


def proc_line(rng, start, end, offset, path):
    access = rng.choice(["r-xp", "r-xp", "r-xp", "rw-p", "r--p", "rwxp"])
    return "%x-%x %s %08x fc:01 %d %s%s" % (
        start, end, access, offset, rng.randrange(10 ** 6),
        " " * rng.randrange(12), path)


def brief_line(rng, start, end, offset, path):
    return "%s%x-%s%x: %s%s" % (
        *(rng.choice([("", start, "", end), ("0x", start, "0x", end)])), path,
        rng.choice(["", " (@%x)" % offset, " (@%x) abc123" % offset]))


def maps(rng):
    """The mappings of a process, in one of the forms."""
    line = rng.choice([proc_line, proc_line, brief_line])
    prefix = rng.choice(["", "", "", "I0101 00:00:00.000000 7 file.cc:9] "])
    paths = rng.sample(OBJECTS, rng.randint(0, 4))
    lines = []
    for i, path in enumerate(paths):
        start, offset = BASE + i * STEP, rng.choice([0, 0, 0x1000])
        size = rng.choice([STEP, STEP // 2])
        name = path
        if rng.random() < 0.1:
            lines.append(prefix + "build=%s" % path)
            name = "$build"
        lines.append(prefix + line(rng, start, start + size, offset, name))
        if size < STEP:  # the other half of the same file
            lines.append(prefix + line(rng, start + size, start + STEP,
                                       offset + size, name))
    return "\n".join(lines) + rng.choice(["\n", "\n", "", "\n\njunk\n"])


def cpu(rng):
    word = rng.choice(["<I", ">I", "<Q", ">Q"])
    limit = 1 << (8 * struct.calcsize(word))
    stacks = Stacks(rng)
    hot, handler = address(rng), address(rng)
    artefact = rng.random() < 0.3

    def words(*numbers):
        return b"".join(struct.pack(word, n % limit) for n in numbers)

    data = words(0, 3, 0, rng.choice([10000, 4000, 1]), 0)
    for _ in range(rng.choice([0, 1, 10, 60])):
        stack = stacks.one()
        if artefact:
            # The frame of the signal handler, that readers take out.
            stack[1:1] = [handler]
        elif rng.random() < 0.1:
            stack[1:1] = [stack[0] + 1]
        if rng.random() < 0.1:
            stack.append(hot)
        data += words(rng.choice([1, 3, 250]), len(stack), *stack)
    if rng.random() < 0.97:
        data += words(0, 1, 0)
    return data + rng.choice(["\nMAPPED_LIBRARIES:\n", "", "\n"]).encode() + \
        maps(rng).encode()


def heap(rng):
    kind = rng.choice(["heap/%d", "heap_v2/%d", "heapz_v2/%d", "heapprofile",
                       "growthz", "growth", "fragmentationz", "heap"])
    kind = kind % rng.choice([1, 2, 8192, 1048576]) if "%" in kind else kind
    stacks, rows, sums = Stacks(rng), [], [0] * 4
    equal = rng.random() < 0.3
    for _ in range(rng.choice([0, 1, 12, 40])):
        count = rng.choice([0, 1, 5, 300])
        each = rng.choice([8, 24, 4096, 10 ** 6])
        more = 0 if equal else rng.choice([0, 1, 40])
        row = [count, count * each, count + more, (count + more) * each]
        sums = [a + b for a, b in zip(sums, row)]
        rows.append("%6d: %8d [%6d: %8d] @ %s" % (*row, stacks.text()))
    head = "heap profile: %6d: %8d [%6d: %8d] @ %s" % (*sums, kind)
    stats = "\n# runtime.MemStats\n# Alloc = 1\n"
    tail = rng.choice(["\nMAPPED_LIBRARIES:\n", "\n--- Memory map: ---\n",
                       stats + "\nMAPPED_LIBRARIES:\n"])
    return "\n".join([head] + rows + [tail + maps(rng)]).encode()


def count(rng):
    name = rng.choice(["goroutine", "threadcreate", "my_own", "a"])
    stacks, rows = Stacks(rng), []
    for _ in range(rng.choice([1, 5, 20])):
        rows.append("%d @ %s" % (rng.choice([1, 2, 30]), stacks.text()))
        if rng.random() < 0.5:
            rows += ["#\t0x1\tmain.f+0x1\t/a.go:1", ""]
    tail = rng.choice(["", "\n--- Memory map: ---\n" + maps(rng)])
    return "\n".join(["%s profile: total %d" % (name, len(rows))] + rows +
                     [tail]).encode()


def contention(rng):
    head = rng.choice([["--- contentionz 1 ---"], ["--- contention:"],
                       ["--- mutex:"]])
    for line in ("cycles/second = 2300000000", "sampling period = 5",
                 "ms since reset = 100", "discarded samples = 1"):
        if rng.random() < 0.5:
            head.append(line)
    stacks, rows = Stacks(rng), []
    for _ in range(rng.choice([0, 1, 10])):
        rows.append("%s%d %d @ %s" % (rng.choice(["", " ", "   "]),
                                      rng.choice([1, 4000, 10 ** 10]),
                                      rng.choice([1, 2, 99]), stacks.text()))
        if rng.random() < 0.3:
            rows.append("#\t0x1\tf")
    tail = rng.choice(["", "--- Memory map: ---\n" + maps(rng)] * 3 +
                      ["MAPPED_LIBRARIES:\n" + maps(rng)])  # is refused
    return "\n".join(head + rows + [tail]).encode()


def threads(rng):
    stacks, out = Stacks(rng), ["--- threadz 1 ---", ""]
    for i in range(rng.choice([1, 3, 8])):
        out.append("--- Thread %x (name: worker/%d) stack: ---" % (
            0x7f0000000000 + i * 4096, i))
        if i and rng.random() < 0.4:
            out.append("  [same as previous thread]")
        else:
            out += ["  PC: 0x%016x 0x%x: f()" % (place, place)
                    if rng.random() < 0.3 else "    0x%016x: f" % place
                    for place in stacks.one()]
        if rng.random() < 0.1:
            out.append("---- no stack trace for thread ----")
    out.append("--- Memory map: ---")
    return ("\n".join(out) + "\n" + maps(rng)).encode()


def java_locations(rng, stacks):
    return "".join("  0x%016x %s\n" % (place, rng.choice(
        ["com.example.App.run (App.java:17)", "java.lang.Thread.run (Native)",
         "GC", "libjvm.so", "f (libjvm.so)", "a.b$c.<init> (x.java:-1)"]))
        for place in stacks.places)


def java(rng):
    stacks = Stacks(rng)
    kind = rng.choice(["heapz", "contentionz"])
    head = ["--- %s 1 ---" % kind]
    head += rng.choice([["resolution = bytes", "format = java"],
                        ["format = java", "resolution=kilobytes"]]
                       if kind == "heapz" else
                       [["format = java", "resolution = microseconds",
                         "sampling period = 100"], ["format = java"],
                        ["format = java", "resolution = nanoseconds",
                         "ms since reset = 6000"]])
    rows = []
    for _ in range(rng.choice([1, 8])):
        if kind == "heapz":
            rows.append("%7d %5d @ %s" % (rng.choice([24, 10 ** 6]),
                                          rng.choice([1, 4]), stacks.text()))
        else:
            rows.append("%7d %5d @ %s" % (rng.choice([1, 999]),
                                          rng.choice([1, 4]), stacks.text()))
    return ("\n".join(head + rows) + "\n" +
            java_locations(rng, stacks)).encode()


def java_cpu(rng):
    stacks = Stacks(rng)
    data = struct.pack("<5Q", 0, 3, 1, 10000, 0)
    for _ in range(rng.choice([1, 10])):
        stack = stacks.one()
        data += struct.pack("<%dQ" % (len(stack) + 2), rng.randint(1, 9),
                            len(stack), *stack)
    return data + struct.pack("<3Q", 0, 1, 0) + \
        java_locations(rng, stacks).encode()


KINDS = [cpu, cpu, heap, heap, count, contention, threads, java, java_cpu]


def profile(seed):
    """The name of a kind, and the bytes."""
    rng = random.Random(seed)
    maker = KINDS[seed % len(KINDS)]
    return maker.__name__, maker(rng)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], "wb") as file:
        file.write(profile(int(sys.argv[1]))[1])


if __name__ == "__main__":
    main()
