#!/usr/bin/env python3
"""What the libraries give to the program they are loaded into: the names of
exports.txt, in a section for each, and from libcpprof.so the names that are
taken over, which stand in the table of src/collect/runtime/real.h.

    exports.py LIBRARY...            compare
    exports.py --update LIBRARY...   write exports.txt anew
    exports.py --self-test
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "exports.txt")

TABLE = os.path.join(HERE, "../../src/collect/runtime/real.h")

# X(GROUP, name), or X(name) of those that gather their arguments.
ROW = re.compile(r"\bX\((?:([A-Z]+), )?([A-Za-z_]\w+)\)")


def taken_over(text):
    """The names of the table, without those that are called beneath."""
    return {name for group, name in ROW.findall(text) if group != "BENEATH"}


def readelf(what, library):
    text = subprocess.run(["readelf", what, "-W", library],
                          capture_output=True, text=True, check=True).stdout
    return text.split("\n")


def symbols(library):
    """Dynamic symbols that are defined, as readelf's columns. The linker
    lists its own names for the ends of a section too, as hidden ones, which
    nobody can bind to."""
    rows = [line.split() for line in readelf("--dyn-syms", library)]
    return [row for row in rows
            if len(row) > 7 and row[0][:-1].isdigit() and row[6] != "UND"
            and row[5] in ("DEFAULT", "PROTECTED")]


def exported(library):
    """Their names, without their version."""
    return {row[7].split("@")[0] for row in symbols(library)}


def writable(library):
    """Names of data that a program can write to: in .data or .bss."""
    sections = [re.match(r" *\[ *(\d+)\] (\.t?data|\.t?bss) ", line)
                for line in readelf("-S", library)]
    numbers = {found.group(1) for found in sections if found}
    return {row[7] for row in symbols(library) if row[6] in numbers}


def read_list(path):
    """Library -> names."""
    sections = {}
    with open(path, encoding="ascii") as lines:
        for line in filter(None, (line.split("#")[0].strip()
                                  for line in lines)):
            if line.endswith(":"):
                names = sections[line[:-1]] = set()
            else:
                names.add(line)
    return sections


def compare(found, listed, table):
    wanted = listed | table
    wrong = ["%s is exported, and neither in exports.txt nor taken over" % name
             for name in sorted(found - wanted)]
    wrong += ["%s is in exports.txt or taken over, and not exported" % name
              for name in sorted(wanted - found)]
    wrong += ["%s: exports.txt has cpprof_* and pprof_* alone" % name
              for name in sorted(listed)
              if not re.match(r"c?pprof_[^_]", name)]
    if not found:
        wrong.append("the library exports nothing at all")
    return wrong


def self_test():
    table = taken_over("    X(PROCESS, fork) \\\n X(BENEATH, sem_trywait)\n"
                       "#define Y(X) X(execl)\n    CPPROF__LIMIT_NAMES(X)")
    cases = [
        ({"cpprof_a", "fork", "execl"}, {"cpprof_a"}, False),
        ({"cpprof_a", "fork"}, {"cpprof_a"}, True),
        ({"cpprof_a", "cpprof_b", "fork", "execl"}, {"cpprof_a"}, True),
        ({"cpprof_a", "fork", "execl"}, {"cpprof_a", "cpprof_b"}, True),
        ({"cpprof__a", "fork", "execl"}, {"cpprof__a"}, True),
        ({"helper", "fork", "execl"}, {"helper"}, True),
        ({"sem_trywait", "fork", "execl"}, set(), True),
        (set(), set(), True),
    ]
    bad = [case for case in cases
           if bool(compare(*case[:2], table)) != case[2]]
    for case in bad:
        print("wrong verdict on %s" % (case,))
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "x.so")
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o",
                        library], input="int f(void){return 1;}"
                       "static int g; int *h(void){return &g;}"
                       "int w, x = 1; int *const r = &w;",
                       text=True, check=True)
        if (exported(library) != {"f", "h", "w", "x", "r"} or
                writable(library) != {"w", "x"}):
            print("read wrongly: %s, %s" % (exported(library),
                                            writable(library)))
            bad.append(library)
    return 1 if bad else 0


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    with open(TABLE, encoding="ascii") as text:
        table = taken_over(text.read())
    libraries = sys.argv[2:] if sys.argv[1] == "--update" else sys.argv[1:]
    tables = {path: table if os.path.basename(path) == "libcpprof.so" else set()
              for path in libraries}
    if sys.argv[1] == "--update":
        with open(LIST, "w", encoding="ascii") as out:
            out.write("# What the libraries export of their own; made by\n"
                      "#     tests/lint/exports.py --update LIBRARY...\n")
            for path, taken in tables.items():
                out.write("%s:\n" % os.path.basename(path))
                out.writelines(name + "\n"
                               for name in sorted(exported(path) - taken))
    lists = read_list(LIST)
    found = ["%s: %s" % (os.path.basename(path), line)
             for path, taken in tables.items()
             for line in compare(exported(path),
                                 lists.get(os.path.basename(path), set()),
                                 taken) +
             ["%s can be written to" % name
              for name in sorted(writable(path))]]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
