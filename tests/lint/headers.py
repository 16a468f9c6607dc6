#!/usr/bin/env python3
"""Public headers compile without a warning, whoever includes them: each by
itself, and all of them with what their macros make, in every standard of C from
C99 and of C++ from C++11 on, by each compiler that is there.

    headers.py
    headers.py --self-test
"""
import glob
import os
import shutil
import subprocess
import sys

INCLUDE = os.path.normpath(os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../include"))

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion",
            "-Wundef", "-Werror"]
C = WARNINGS + ["-Wstrict-prototypes"]
CXX = WARNINGS + ["-Wold-style-cast", "-fno-exceptions", "-fno-rtti"]

C_STANDARDS = ["c99", "c11", "c17", "c2x"]
CXX_STANDARDS = ["c++11", "c++14", "c++17", "c++20", "c++2b"]

# Words that a program may have for itself: no header takes them away.
OWN_WORDS = "#define X 1\n#define MAP 2\n"
STILL_THERE = "#if X != 1 || MAP != 2\n#error a macro is gone\n#endif\n"

USE_C = """
struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
void f(const char *path);
void f(const char *path)
{
    CPPROF_LABELS_SCOPE("stage", path);
    CPPROF_LABELS_SCOPE("stage", "index", "route", path);
}
"""

USE_CXX = USE_C + """
#include <cpprof/labels.hpp>
void g(const std::string &path, unsigned long n)
{
    cpprof::labels_scope scope{{"route", path}, {"items", n, "count"}};
    static const cpprof::labels idle{{"state", "idle"}, {"on", true}};
    cpprof::labels_scope idle_scope{idle};
}
"""


def refused(compiler, language, options, text):
    """What the compiler says of a text, or nothing."""
    done = subprocess.run(
        [compiler, "-x", language, "-fsyntax-only", "-I", INCLUDE] + options +
        ["-"], input=text, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def headers(pattern):
    return sorted(os.path.relpath(path, INCLUDE) for path in
                  glob.glob(os.path.join(INCLUDE, "cpprof/**/" + pattern),
                            recursive=True))


def include(names):
    return "".join("#include <%s>\n" % name for name in names)


def cases():
    """(compiler, language, options, text)"""
    for header in headers("*.h"):
        text = OWN_WORDS + include([header, header]) + STILL_THERE
        yield "gcc", "c", ["-std=c11"] + C, text
        yield "g++", "c++", ["-std=c++11"] + CXX, text
    yield "g++", "c++", ["-std=c++11"] + CXX, include(headers("*.hpp") * 2)
    everything = include(headers("*.h"))
    for c, cxx in (("gcc", "g++"), ("clang-14", "clang++-14")):
        if not shutil.which(c) or not shutil.which(cxx):
            continue
        for standard in C_STANDARDS:
            yield c, "c", ["-std=" + standard] + C, everything + USE_C
        for standard in CXX_STANDARDS:
            yield cxx, "c++", ["-std=" + standard] + CXX, everything + USE_CXX


def main():
    if sys.argv[1:] == ["--self-test"]:
        bad = ["size_t n;\n", "#undef X\n" + STILL_THERE,
               "struct s { int a, b; };\nstruct s s = {.b = 1};\n"]
        good = "struct s { int a, b; };\nstruct s s = {0, 1};\n"
        return not (all(refused("g++", "c++", ["-std=c++11"] + CXX, text)
                        for text in bad) and
                    not refused("g++", "c++", ["-std=c++11"] + CXX, good))
    failed = False
    for compiler, language, options, text in cases():
        said = refused(compiler, language, options, text)
        if said:
            failed = True
            print("%s %s\n%s%s" % (compiler, options[0], text[:200], said))
    return failed


sys.exit(main())
