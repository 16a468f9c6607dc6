#!/usr/bin/env python3
"""The promise of 1.0: the size of each public struct, where its members are, and
the value of each constant, as layout.txt has them. What stands there may not
change; what is new comes at the end of a struct that has a size.

    layout.py INCLUDE-FOLDER            compare
    layout.py --update INCLUDE-FOLDER   write layout.txt anew
    layout.py --self-test

The compiler says it: a program of offsetof() and sizeof for all members that
the headers name, of a 64-bit machine.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "layout.txt")


def members(body):
    """The names that a struct's body declares."""
    for declaration in body.split(";"):
        declaration = declaration.strip()
        function = re.search(r"\(\s*\*\s*(\w+)\)", declaration)
        if function:
            yield function[1]
        elif declaration:
            for part in declaration.split(","):
                yield re.search(r"(\w+)\s*(?:\[[^]]*\])?$", part.strip())[1]


def constants(text):
    """The names of numbers that a header defines by the preprocessor."""
    return re.findall(r"^#define (C?PPROF_\w+)[ \\\n]+\(?\d", text, re.M)


def questions(text):
    """(what is printed, C expression) of headers after the preprocessor."""
    for name, body in re.findall(r"struct\s+(c?pprof_\w+)\s*\{([^{}]*)\}", text):
        yield name, "sizeof(struct %s)" % name
        for member in members(body):
            yield "%s.%s" % (name, member), \
                "offsetof(struct %s, %s)" % (name, member)
    for body in re.findall(r"enum\s+c?pprof_\w+\s*\{([^{}]*)\}", text):
        for name in re.findall(r"\bC?PPROF_\w+(?=\s*(?:,|=|$))", body):
            yield name, name


def gcc(*words, text):
    return subprocess.run(("gcc", "-w", "-x", "c", "-") + words, input=text,
                          capture_output=True, text=True, check=True).stdout


def layout(folder):
    """The lines of layout.txt, of the headers below a folder."""
    names = sorted(os.path.relpath(path, folder) for path in
                   glob.glob(os.path.join(folder, "cpprof/**/*.h"),
                             recursive=True))
    head = "#include <stddef.h>\n#include <stdio.h>\n" + \
        "".join("#include <%s>\n" % name for name in names)
    asked = dict(questions(gcc("-E", "-P", "-I", folder, text=head)))
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as text:
            asked.update((found, found) for found in constants(text.read()))
    source = head + "int main(void)\n{\n" + "".join(
        'printf("%s %%lld\\n", (long long)(%s));\n' % pair
        for pair in sorted(asked.items())) + "}\n"
    with tempfile.TemporaryDirectory() as work:
        program = os.path.join(work, "layout")
        gcc("-I", folder, "-o", program, text=source)
        return subprocess.run([program], capture_output=True, text=True,
                              check=True).stdout.splitlines()


def listed():
    with open(LIST, encoding="ascii") as lines:
        return [line for line in lines.read().splitlines()
                if not line.startswith("#")]


def self_test():
    header = """
        /* struct none { int x; }; */
struct cpprof_a {
    size_t size; /* of it, in bytes; all */
    int x, y[4];
    void (*fn)(void *ctx, int n);
};
enum cpprof_e {
    CPPROF_ONE = 1, /* A_COMMENT */
    CPPROF_TWO,
};
#define CPPROF_BIT (1u << 2)
"""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "cpprof"))
        with open(os.path.join(folder, "cpprof/x.h"), "w",
                  encoding="ascii") as out:
            out.write(header)
        found = layout(folder)
    wanted = ["CPPROF_BIT 4", "CPPROF_ONE 1", "CPPROF_TWO 2", "cpprof_a 40",
              "cpprof_a.fn 32", "cpprof_a.size 0", "cpprof_a.x 8",
              "cpprof_a.y 12"]
    if sorted(found) != sorted(wanted):
        print("read wrongly: %s" % found)
        return 1
    return 0


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    found = layout(sys.argv[-1])
    if sys.argv[1] == "--update":
        with open(LIST, "w", encoding="ascii") as out:
            out.write("# The layout of public structs and the values of "
                      "constants; made by\n#     tests/lint/layout.py --update "
                      "include\n")
            out.writelines(line + "\n" for line in found)
    wanted = listed()
    problems = ["now: %s, in layout.txt not" % line
                for line in found if line not in wanted]
    problems += ["in layout.txt: %s, now not" % line
                 for line in wanted if line not in found]
    print("\n".join(problems))
    return 1 if problems or not found else 0


if __name__ == "__main__":
    sys.exit(main())
