#!/usr/bin/env python3
"""What works where, as the table of docs/platforms.md:

    matrix.py [-live] CACHE [ROW]...
    matrix.py -check CPPROF     TAP: the rows of programs that this machine
                                builds, which take a second each

A row is a Debian release, in a folder below CACHE that debootstrap makes (as
root); a whole aarch64 system (aarch64.py); another way to build cpprof on this
machine; or another way to build a program that is recorded. -live runs the live
suite of the first two, too.
"""
import datetime
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import aarch64
from tap import Tap

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = """gcc g++ libc6-dev ninja-build pkg-config libdeflate-dev libdw-dev
    libelf-dev libiberty-dev libre2-dev libjansson-dev libcmocka-dev
    libcurl4-openssl-dev libedit-dev libmicrohttpd-dev zlib1g-dev python3
    python3-dev lua5.4 liblua5.4-dev lua5.1 luajit libluajit-5.1-dev binutils
    sqlite3""".split()
RELEASES = {"bullseye": "Debian 11", "bookworm": "Debian 12",
            "trixie": "Debian 13", "forky": "Debian 14, in the making"}
MIRROR = "http://deb.debian.org/debian"
# Releases that are younger than debootstrap are made as this one.
SCRIPT = "/usr/share/debootstrap/scripts/sid"
# Time that belongs to no stack: docs/cpu.md.
NO_STACK = re.compile(r"(^|;)\[(short-lived thread|signal blocked)\] \d+$")
# Where a stack ends that is complete.
# musl's have no names of their own.
ROOTS = re.compile(r"^(_start|(?:__)?clone3?|_dl_start.*|start_thread|"
                   r"\[libc\.so after (?:_init|pthread_exit)\])(;|$)")

BUILDS = {
    "clang": {"CC": "clang-14", "CXX": "clang++-14"},
    "LTO": {"options": ["-Db_lto=true"]},
    "_FORTIFY_SOURCE=3": {"CFLAGS": "-O2 -D_FORTIFY_SOURCE=3"},
    "-fcf-protection": {"CFLAGS": "-O2 -fcf-protection=full"},
}
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}
__attribute__((noinline)) void hog_of_time(void)
{
    static int numbers[10000];
    size_t i;
    for (i = 0; i < 10000; i++)
        numbers[i] = rand();
    qsort(numbers, 10000, sizeof *numbers, compare);
}
int main(void)
{
    while (clock() < CLOCKS_PER_SEC / 2)
        hog_of_time();
    return puts("done") < 0;
}
"""
PROGRAMS = {
    "gcc -O2": "gcc -O2",
    "gcc -O2 -flto": "gcc -O2 -flto",
    "gcc -O2 -no-pie": "gcc -O2 -no-pie -fno-pie",
    "gcc -O2 -D_FORTIFY_SOURCE=3": "gcc -O2 -D_FORTIFY_SOURCE=3",
    "gcc -O2 -fcf-protection=full": "gcc -O2 -fcf-protection=full",
    "gcc -O2 -fomit-frame-pointer -Wl,-z,now":
        "gcc -O2 -fomit-frame-pointer -Wl,-z,now",
    "clang -O2": "clang-14 -O2",
    "gcc -O2 -static": "gcc -O2 -static",
    "gcc -O2 -static, libcpprof-static.a":
        "gcc -O2 -static {0}/libcpprof-static.a -ldeflate -Wl,@{0}/static.link",
    "musl-gcc -O2": "musl-gcc -O2 -Wl,--eh-frame-hdr",
    "musl-gcc -O2 -static": "musl-gcc -O2 -static",
    "g++ -O2": "g++ -O2 -x c++",
}


def run(command, log, cwd=None, **environment):
    """Its status and what it said, which also goes to the log."""
    done = subprocess.run(["nice", "-n", "10"] + command, cwd=cwd, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, check=False,
                          env=dict(os.environ, LC_ALL="C.UTF-8", **environment))
    log.write("$ %s\n%s" % (" ".join(command), done.stdout))
    log.flush()
    return done.returncode, done.stdout


def counts(said):
    """What meson test counted: "150 of 153", those that were skipped apart."""
    n = {word: int(found) for word, found in
         re.findall(r"^(Ok|Fail|Timeout|Skipped): +(\d+)", said, re.M)}
    if "Ok" not in n:
        return "no"
    bad = n.get("Fail", 0) + n.get("Timeout", 0)
    return "%d of %d" % (n["Ok"], n["Ok"] + bad)


def tested(run_it, source, folder, suite):
    """What passed of a suite. meson would build what all suites need."""
    needed = run_it(["python3", os.path.join(source, "tests/needed.py"), folder,
                     suite])[1].split()
    if run_it(["ninja", "-C", folder] + needed)[0]:
        return "no"
    return counts(run_it(["meson", "test", "-C", folder, "--no-rebuild", "-t",
                          "3", "--suite", suite])[1])


def share_complete(collapsed):
    """Of the samples, whose stacks reach the root: "99.9 %"."""
    total = whole = 0
    for line in collapsed.splitlines():
        stack, _, n = line.rpartition(" ")
        if n.isdigit() and not stack.startswith("cpprof:") and \
                not NO_STACK.search(line):
            total += int(n)
            whole += int(n) * bool(ROOTS.match(stack))
    return "%.1f %%" % (100 * whole / total) if total else "no samples"


def recorded(run_it, cpprof, file, command):
    """(what record said is wrong or "yes", the share of complete stacks)."""
    status, said = run_it([cpprof, "record", "-F", "250", "-o", file, "--"] +
                          command)
    if status or "samples" not in said:
        line = [text for text in said.splitlines() if "cpprof" in text] or ["?"]
        return re.sub(r"^.*?cpprof: (\S+: )?", "", line[-1]), ""
    return "yes", share_complete(run_it([cpprof, "-collapsed", file])[1])


# ---- releases ------------------------------------------------------------


def mounted(folder):
    with open("/proc/mounts", encoding="utf-8") as mounts:
        return any(line.split()[1] == folder for line in mounts)


def make_release(name, folder, log):
    """A folder with what is needed to build; kept for the next time."""
    mark = os.path.join(folder, ".cpprof-matrix")
    if os.path.exists(mark):
        return True
    script = os.path.join(os.path.dirname(SCRIPT), name)
    if run(["debootstrap", "--variant=minbase", name, folder, MIRROR,
            script if os.path.exists(script) else SCRIPT], log)[0]:
        return False
    # Of a release in the making a mirror may be late.
    update = ["apt-get", "-o", "Acquire::Check-Valid-Until=false", "update"]
    for words in (update, ["apt-get", "install", "-y",
                  "--no-install-recommends"] + PACKAGES):
        if run(["chroot", folder, "env", "DEBIAN_FRONTEND=noninteractive"] +
               words, log)[0]:
            return False
    # Debian 11's meson is too old, and a later one is of Python alone.
    run(["chroot", folder, "apt-get", "install", "-y", "meson"], log)
    version = run(["chroot", folder, "meson", "--version"], log)[1]
    if version.startswith("0."):
        run(["apt-get", "download", "meson"], log, cwd=folder)
        run(["chroot", folder, "sh", "-c", "dpkg -i /meson_*.deb"], log)
    with open(mark, "w", encoding="utf-8"):
        return True


def copy_sources(folder):
    os.makedirs(folder, exist_ok=True)
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"],
                            cwd=TOP, capture_output=True, text=True, check=True)
    for path in listed.stdout.split("\n"):
        source = os.path.join(TOP, path)
        if path and os.path.isfile(source):
            target = os.path.join(folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if not os.path.exists(target) or os.stat(target).st_mtime < \
                    os.stat(source).st_mtime:
                shutil.copy2(source, target)


def release(name, cache, log, live):
    folder = os.path.join(cache, name)
    mounts = [("proc", ["mount", "-t", "proc", "proc"]),
              ("dev", ["mount", "--bind", "/dev"]),
              ("dev/pts", ["mount", "--bind", "/dev/pts"])]
    if os.geteuid() or not shutil.which("debootstrap"):
        return ["not tried: needs root and debootstrap"]
    if not make_release(name, folder, log):
        return ["not tried: no such folder could be made"]
    copy_sources(os.path.join(folder, "src"))

    def inside(words):
        return run(["chroot", folder, "sh", "-c", 'cd /src && "$@"', "sh"] +
                   words, log, PATH="/usr/sbin:/usr/bin:/sbin:/bin")

    ours = [where for where, _ in mounts
            if not mounted(os.path.join(folder, where))]
    for where, words in mounts:
        if where in ours:
            run(words + [os.path.join(folder, where)], log)
    try:
        if not os.path.exists(os.path.join(folder, "src/b/build.ninja")) and \
                inside(["meson", "setup", "b"])[0]:
            return ["no"]
        if inside(["ninja", "-C", "b", "programs"])[0]:
            return ["no"]
        unit = tested(inside, ".", "b", "unit")
        lives = tested(inside, ".", "b", "live") if live else "-"
        demo, stacks = recorded(inside, "b/cpprof", "/tmp/demo.pb.gz",
                                ["lua5.4", "examples/demo.lua"])
        return ["yes", unit, lives, demo, stacks]
    finally:
        for where in reversed(ours):
            run(["umount", os.path.join(folder, where)], log)


# ---- this machine ---------------------------------------------------------


def build(name, cache, log):
    how = BUILDS[name]
    if not shutil.which(how.get("CC", "gcc")):
        return ["not tried: no " + how["CC"]]
    folder = os.path.join(cache, "build" + re.sub(r"\W+", "_", name))
    words = {key: value for key, value in how.items() if key != "options"}
    if not os.path.exists(os.path.join(folder, "build.ninja")) and \
            run(["meson", "setup", folder, TOP] + how.get("options", []), log,
                **words)[0]:
        return ["no"]
    if run(["ninja", "-C", folder, "programs"], log)[0]:
        return ["no"]
    unit = tested(lambda words: run(words, log), TOP, folder, "unit")
    demo, stacks = recorded(lambda words: run(words, log),
                            os.path.join(folder, "cpprof"),
                            os.path.join(folder, "demo.pb.gz"),
                            ["lua5.4", os.path.join(TOP, "examples/demo.lua")])
    return ["yes", unit, "-", demo, stacks]


def musl_library(log):
    """Where `cpprof record` looks for it (docs/platforms.md)."""
    folder = os.path.join(TOP, "build/musl")
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        run(["meson", "setup", folder, TOP, "--cross-file",
             os.path.join(TOP, "packaging/musl-gcc.ini")], log)
    return not run(["ninja", "-C", folder], log)[0]


def program(name, build_folder, folder, log):
    words = PROGRAMS[name].format(build_folder).split()
    if not shutil.which(words[0]):
        return ["not tried: no " + words[0]]
    if name == "musl-gcc -O2" and not musl_library(log):
        return ["no"]
    source = os.path.join(folder, "program.c")
    binary = os.path.join(folder, "program")
    with open(source, "w", encoding="utf-8") as out:
        out.write(PROGRAM)
    if run(words + [source, "-o", binary], log)[0]:
        return ["no"]
    said, stacks = recorded(lambda words: run(words, log),
                            os.path.join(build_folder, "cpprof"),
                            binary + ".pb.gz", [binary])
    return ["yes", "-", "-", said, stacks]


def check(cpprof):
    """Those for musl, which wants a library of its own, are in musl.py."""
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder, \
            open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
        for name in PROGRAMS:
            if name.startswith("musl"):
                continue
            case = "program by %s, %%s" % name
            cells = program(name, os.path.dirname(cpprof), folder, log)
            if len(cells) == 1:
                tap.skip(case % "recorded", cells[0])
            elif name == "gcc -O2 -static":
                tap.has(case % "told", cells[3], "a static program")
            elif tap.ok(case % "recorded", cells[3:4] == ["yes"], cells):
                tap.ok(case % "stacks complete",
                       float(cells[4].split()[0]) >= 99.5, cells)
        if tap.failed:
            log.seek(0)
            print("# " + log.read().replace("\n", "\n# "))
    return tap.end()


def main():
    words = sys.argv[1:]
    if words[0] == "-check":
        return check(os.path.realpath(words[1]))
    live = "-live" in words
    cache, *asked = [word for word in words if word != "-live"]
    here = platform.freedesktop_os_release().get("PRETTY_NAME", "this machine")
    rows = [(name, "%s, gcc" % text, lambda log, name=name:
             release(name, cache, log, live))
            for name, text in RELEASES.items()]
    rows += [("aarch64", "Debian 12 and its kernel for aarch64, under QEMU",
              lambda log: aarch64.row(
                  lambda words, **environment: run(words, log, **environment),
                  cache, TOP, live, share_complete))]
    rows += [(name, "%s, cpprof by %s" % (here, name), lambda log, name=name:
              build(name, cache, log)) for name in BUILDS]
    rows += [(name, "%s, a program by %s" % (here, name), lambda log, name=name:
              program(name, os.path.join(TOP, "build"), cache, log))
             for name in PROGRAMS]
    unknown = set(asked) - {row[0] for row in rows}
    if unknown:
        sys.exit("matrix: no row %s; there are: %s" %
                 (", ".join(unknown), ", ".join(row[0] for row in rows)))
    os.makedirs(cache, exist_ok=True)
    print("%s, Linux %s, %s\n" % (datetime.date.today(), platform.release(),
                                  platform.machine()))
    print("| what | build | unit | live | record | complete stacks |")
    print("|---|---|---|---|---|---|", flush=True)
    with open(os.path.join(cache, "log"), "w", encoding="utf-8") as log:
        for name, text, does in rows:
            if not asked or name in asked:
                cells = does(log)
                print("| %s |" % " | ".join([text] + cells + [""] *
                                            (5 - len(cells))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
