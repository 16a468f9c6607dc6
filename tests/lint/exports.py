#!/usr/bin/env python3
"""What libcpprof.so gives to the program it is loaded into: exactly the names
of exports.txt, each of them cpprof_* or one of libc's that is interposed.

    exports.py LIBRARY            compare
    exports.py --update LIBRARY   write exports.txt anew
    exports.py --self-test
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "exports.txt")

# libc's names that may be taken over at all; what is taken over stands in
# exports.txt. A name outside both patterns never gets in by --update alone.
LIBC = re.compile(
    r"^(pthread_create|pthread_exit|pthread_sigmask|sigprocmask|thrd_create|"
    r"thrd_exit|sigaction|signal|__sysv_signal|sysv_signal|bsd_signal|ssignal|sigignore|"
    r"sigset|sigvec|execve|execv|execvp|execvpe|execl|execle|execlp|execveat|"
    r"fexecve|_exit|_Exit|quick_exit|dlclose|fork|vfork|setsid|daemon|"
    r"setitimer|close|close_range|closefrom|posix_spawn|posix_spawnp|malloc|calloc|realloc|"
    r"reallocarray|free|cfree|free_sized|free_aligned_sized|posix_memalign|"
    r"aligned_alloc|memalign|valloc|pvalloc|mmap|mmap64|mremap|munmap|"
    r"_Zn[aw]m(St11align_val_t)?(RKSt9nothrow_t)?|"
    r"_Zd[al]Pvm?(St11align_val_t)?(RKSt9nothrow_t)?|"
    r"pthread_(mutex_((timed|clock)?lock|unlock)|barrier_wait|"
    r"rwlock_((timed|clock)?(rd|wr)lock|unlock)|"
    r"cond_((timed|clock)?wait|signal|broadcast)|"
    r"join|(timed|clock)join_np)|sem_(timed|clock)?wait|"
    r"mtx_((timed)?lock|unlock)|cnd_((timed)?wait|signal|broadcast)|thrd_join)$")


def exported(library):
    """Dynamic symbols that are defined, without their version. The linker
    lists its own names for the ends of a section too, as hidden ones, which
    nobody can bind to."""
    text = subprocess.run(["readelf", "--dyn-syms", "-W", library],
                          capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in text.split("\n")]
    return {row[7].split("@")[0] for row in rows
            if len(row) > 7 and row[0][:-1].isdigit() and row[6] != "UND"
            and row[5] in ("DEFAULT", "PROTECTED")}


def read_list(path):
    with open(path, encoding="ascii") as lines:
        stripped = [line.split("#")[0].strip() for line in lines]
    return {line for line in stripped if line}


def compare(found, listed):
    wrong = ["%s is exported and not in exports.txt" % name
             for name in sorted(found - listed)]
    wrong += ["%s is in exports.txt and not exported" % name
              for name in sorted(listed - found)]
    wrong += ["%s: neither cpprof_* nor a libc name to interpose" % name
              for name in sorted(found)
              if not (name.startswith("cpprof_")
                      and not name.startswith("cpprof__"))
              and not LIBC.match(name)]
    if not found:
        wrong.append("the library exports nothing at all")
    return wrong


def self_test():
    cases = [
        ({"cpprof_a", "sigaction"}, {"cpprof_a", "sigaction"}, False),
        ({"cpprof_a", "cpprof_b"}, {"cpprof_a"}, True),
        ({"cpprof_a"}, {"cpprof_a", "cpprof_b"}, True),
        ({"cpprof__a"}, {"cpprof__a"}, True),
        ({"helper"}, {"helper"}, True),
        (set(), set(), True),
    ]
    bad = [case for case in cases if bool(compare(*case[:2])) != case[2]]
    for case in bad:
        print("wrong verdict on %s" % (case,))
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "x.so")
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o",
                        library], input="int f(void){return 1;}"
                       "static int g; int *h(void){return &g;}",
                       text=True, check=True)
        if exported(library) != {"f", "h"}:
            print("read wrongly: %s" % exported(library))
            bad.append(library)
    return 1 if bad else 0


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    if sys.argv[1] == "--update":
        names = exported(sys.argv[2])
        with open(LIST, "w", encoding="ascii") as out:
            out.write("# Symbols that libcpprof.so exports; made by\n"
                      "#     tests/lint/exports.py --update LIBRARY\n")
            out.writelines(name + "\n" for name in sorted(names))
    found = compare(exported(sys.argv[-1]), read_list(LIST))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
