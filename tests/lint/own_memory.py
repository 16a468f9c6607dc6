#!/usr/bin/env python3
"""What is loaded into programs asks for no memory of theirs.

    own_memory.py BUILD      check the objects of both libraries
    own_memory.py --self-test

Objects of libcpprof refer neither to malloc and its family nor to functions of
libc that ask it for memory each time, but where ALLOWED says why. Those of
libcpprof-profile refer to them in src/own/libc.c alone: linked into one program
with libcpprof, what both share gets memory from one place.
"""
import os
import re
import subprocess
import sys
import tempfile

FAMILY = """malloc calloc realloc reallocarray free strdup strndup
    posix_memalign aligned_alloc memalign asprintf vasprintf""".split()
ASK = """qsort qsort_r bsearch_r opendir fdopendir scandir readdir getline
    getdelim fopen fopen64 fdopen open_memstream setenv unsetenv putenv glob
    tsearch regcomp popen getaddrinfo localtime localtime_r mktime setlocale
    backtrace dprintf vdprintf perror dlopen dlerror pthread_getattr_np
    pthread_attr_setaffinity_np pthread_attr_setsigmask_np getpwuid
    getpwuid_r getpwnam tmpfile wordexp nftw syslog""".split()
# The object's source, what it refers to, and why.
ALLOWED = {
    "interpose/operators.c": ("malloc free posix_memalign",
                              "the program's operator new"),
    "object/plug_in.c": ("dlopen dlerror", "the loader asks malloc"),
    "collect/labels/labels_current.c": ("dlopen", "is libgcc there: once"),
    "vm/load/modules.c": ("setenv", "the program's environment"),
    "collect/process/environment.c": ("setenv", "the program's environment"),
    "own/libc.c": (" ".join(FAMILY), "where it is not the program's"),
}
# What scandir() made is given back to malloc.
READER = {"symbolize/find.c": ("free", "of scandir")}
WHOLE = re.compile(r"^(?:__)?(\w+?)(?:_chk|64)?(?:@.*)?$")


def named(symbol):
    """Without what fortified headers and glibc put around a name."""
    return WHOLE.match(symbol).group(1)


def is_of(member, source):
    """Meson names an object after its path below the target's folder."""
    name = re.sub(r"\.o$", "", member).replace(".._", "")
    path = source.split("/")
    return name in ["_".join(path[i:]) for i in range(len(path))] + [
        "src_" + "_".join(path)]


def undefined(archive):
    text = subprocess.run(["nm", "-A", "-u", archive], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          universal_newlines=True).stdout
    for line in text.splitlines():
        where, kind, symbol = line.rsplit(None, 2)
        if kind in "Uw":
            yield re.split(r"[:/]", where.rstrip(":"))[-1], symbol


def check(archive, forbidden, allowed):
    wrong, members = [], set()
    for member, symbol in undefined(archive):
        members.add(member)
        name = named(symbol)
        if name in forbidden and not any(
                is_of(member, source) and name in words.split()
                for source, (words, _) in allowed.items()):
            wrong.append("%s: %s refers to %s" % (
                os.path.basename(archive), member, symbol))
    if not members:
        wrong.append("%s: nothing was checked" % archive)
    return wrong


def self_test():
    source = ("#include <stdlib.h>\n#include <dirent.h>\n"
              "void *f(void){return %s;}\n")
    cases = {"a_malloc.c": ("malloc(9)", True), "a_none.c": ("0", False),
             "a_list.c": ("opendir(\".\")", True),
             "interpose_operators.c": ("malloc(9)", False),
             "other_operators.c": ("malloc(9)", True)}
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (call, caught) in cases.items():
            path = os.path.join(folder, name)
            with open(path, "w", encoding="ascii") as out:
                out.write(source % call + "int g(char*s){return atoi(s);}\n")
            subprocess.run(["gcc", "-O1", "-fno-builtin", "-c", path, "-o",
                            path + ".o"], check=True)
            archive = path + ".a"
            subprocess.run(["ar", "crT" if len(name) % 2 else "cr", archive,
                            path + ".o"], check=True)
            found = check(archive, FAMILY + ASK, ALLOWED)
            if bool(found) != caught:
                print(name, found or "not caught")
                bad = 1
        subprocess.run(["ar", "cr", folder + "/none.a"], check=True)
        if not check(folder + "/none.a", FAMILY, ALLOWED):
            print("no objects at all is not caught")
            bad = 1
    return bad


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    found = check(os.path.join(sys.argv[1], "libcpprof.a"), FAMILY + ASK,
                  ALLOWED)
    found += check(os.path.join(sys.argv[1], "libcpprof-profile.a"), FAMILY,
                   {**ALLOWED, **READER})
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
