#!/usr/bin/env python3
"""What the loader has to do with libcpprof.so at each start of a program: two
segments, of less than 2 MB together, few names to look up, few addresses to
relocate, on few pages, small variables side by side, those that each start and
each child write to on one page, and nothing writable that need not be.

    mapped.py LIBRARY
    mapped.py --self-test
"""
import os
import re
import subprocess
import sys
import tempfile

PAGE = 4096
SEGMENTS_MAX = 2
BYTES_MAX = 2 << 20
SMALL = 1023   # bytes
PAGES_MAX = 5  # that those which begin as 0 lie on
LOOK_UPS_MAX = 45
ADDRESSES_MAX = 600
WRITTEN_MAX = 3  # pages with addresses on them
DATA_MAX = 1     # that .got.plt and .data lie on


def output(*command):
    return subprocess.run(command, capture_output=True, text=True,
                          check=True).stdout


def segments(library):
    """(type, address, bytes in memory) of each."""
    rows = (line.split() for line in output("readelf", "-lW", library)
            .split("\n"))
    return [(row[0], int(row[2], 16), int(row[5], 16)) for row in rows
            if len(row) > 6 and row[2].startswith("0x")]


def small_pages(library):
    """The pages that small variables lie on, in .bss."""
    bss = re.search(r" \.bss +NOBITS +(\w+) \w+ (\w+)",
                    output("readelf", "-SW", library))
    first = int(bss[1], 16)
    limit = first + int(bss[2], 16)
    found = re.findall(r"^(\w+) (\w+) [bB] ", output("nm", "-S", library), re.M)
    return {int(at, 16) // PAGE for at, size in found
            if int(size, 16) <= SMALL and first <= int(at, 16) < limit}


def data_pages(library):
    """Those of what is written to at each start and in each child. The three
    words in front of .got.plt cannot be written to."""
    found = re.findall(r" \.(?:got\.plt|data) +PROGBITS +(\w+) \w+ (\w+)",
                       output("readelf", "-SW", library))
    return {page for at, size in found
            for page in range((int(at, 16) + 3 * 8) // PAGE,
                              (int(at, 16) + int(size, 16) - 1) // PAGE + 1)}


def relocations(library):
    """(address, type) of what the loader does at the start."""
    text = output("readelf", "-rW", library)
    return [(int(at, 16), kind) for at, kind in
            re.findall(r"^(\w{16})  \w+ (R_X86_64_\w+)", text, re.M)]


def faults(library):
    rows = segments(library)
    loads = [(at, n) for kind, at, n in rows if kind == "LOAD"]
    n_bytes = sum((at + n + PAGE - 1) // PAGE * PAGE - at // PAGE * PAGE
                  for at, n in loads)
    n_pages = len(small_pages(library))

    if len(loads) > SEGMENTS_MAX:
        yield "%d segments, %d at most" % (len(loads), SEGMENTS_MAX)
    if n_bytes >= BYTES_MAX:
        yield "%d bytes of address space, less than %d" % (n_bytes, BYTES_MAX)
    if not any(kind == "GNU_RELRO" for kind, _, _ in rows):
        yield "addresses stay writable: no GNU_RELRO"
    if "BIND_NOW" in output("readelf", "-dW", library):
        yield "names are bound that are not called: BIND_NOW"
    fixed = relocations(library)
    n_look_ups = sum(kind in ("R_X86_64_GLOB_DAT", "R_X86_64_64")
                     for _, kind in fixed)
    n_addresses = sum(kind == "R_X86_64_RELATIVE" for _, kind in fixed)
    n_written = len({at // PAGE for at, _ in fixed})
    if n_look_ups > LOOK_UPS_MAX:
        yield "%d names are looked up, %d at most" % (n_look_ups, LOOK_UPS_MAX)
    if n_addresses > ADDRESSES_MAX:
        yield "%d addresses, %d at most" % (n_addresses, ADDRESSES_MAX)
    if n_written > WRITTEN_MAX:
        yield ("addresses are on %d pages, %d at most"
               % (n_written, WRITTEN_MAX))
    if len(data_pages(library)) > DATA_MAX:
        yield ("what is written to at each start lies on %d pages, %d at most"
               % (len(data_pages(library)), DATA_MAX))
    if n_pages > PAGES_MAX:
        yield ("variables of %d bytes and less lie on %d pages, %d at most"
               % (SMALL, n_pages, PAGES_MAX))


# Large and small ones in turn.
SOURCE = "char large[%d];\n" + "".join(
    "int a%d;\nchar b%d[10000];\n" % (i, i) for i in range(PAGES_MAX + 3))
TABLE = "".join("void f%d(void);\n" % i for i in range(LOOK_UPS_MAX + 1))
TABLE += "void (*const t[])(void) = {%s};\n" % ", ".join(
    "f%d" % i for i in range(LOOK_UPS_MAX + 1))
ADDRESSES = ("static char c;\n#define P &c,\n#define P8 P P P P P P P P\n"
             "#define P64 P8 P8 P8 P8 P8 P8 P8 P8\n"
             "char *p[] = {%s};\n" % ("P64 " * 33))


def self_test():
    good = ["-Wl,-z,noseparate-code", "-Wl,-z,lazy", "-fdata-sections",
            "-Wl,--sort-section=alignment"]
    with tempfile.TemporaryDirectory() as folder:
        for wrong, n, change in (
                ([], 1, lambda words: words),
                (["segments"], 1,
                 lambda words: ["-Wl,-z,separate-code"] + words[1:]),
                (["bytes of"], 2 << 20, lambda words: words),
                (["GNU_RELRO"], 1, lambda words: words + ["-Wl,-z,norelro"]),
                (["BIND_NOW"], 1, lambda words: words + ["-Wl,-z,now"]),
                (["looked up"], 1, lambda words: words + ["-DTABLE"]),
                (["addresses, 600", "addresses are", "written to at each"], 1,
                 lambda words: words + ["-DADDRESSES"]),
                (["pages"], 1, lambda words: words[:2])):
            source = os.path.join(folder, "x.c")
            library = os.path.join(folder, "x.so")
            with open(source, "w", encoding="utf-8") as file:
                file.write(SOURCE % n)
                file.write("#ifdef TABLE\n%s#endif\n" % TABLE)
                file.write("#ifdef ADDRESSES\n%s#endif\n" % ADDRESSES)
            subprocess.run(["cc", "-shared", "-fPIC", "-fno-common", source,
                            "-o", library] + change(good), check=True)
            found = list(faults(library))
            if len(found) != len(wrong) or any(
                    word not in text for word, text in zip(wrong, found)):
                return "%r was found, not %r" % (found, wrong)
    return None


def main():
    if sys.argv[1] == "--self-test":
        failed = self_test()
        if failed:
            sys.exit(failed)
        return
    found = list(faults(sys.argv[1]))
    if found:
        sys.exit("\n".join("%s: %s" % (sys.argv[1], text) for text in found))


main()
