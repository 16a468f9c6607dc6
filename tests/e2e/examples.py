#!/usr/bin/env python3
"""The examples of README.md, docs/ and the public headers: each is compiled as
it stands and run twice, in a folder where files can be written and in one that
is gone, where none can. Nothing may crash, and what it writes is a profile.

    examples.py CPPROF BUILD-FOLDER

Prints TAP. An example is a block of ```c or ```cpp, or what is indented by five
in a comment of a header. A line "..." stands for code of the reader. What an
example uses and does not declare is in CONTEXT.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(here, ".."))
from tap import Tap  # noqa: E402

cpprof, build = sys.argv[1:]
top = os.path.join(here, "../..")
tap = Tap()

CONTEXT = r"""
#include <cpprof/cpprof.h>
#include <cpprof/pprof.h>
#include <cpprof/recording.h>
#include <cpprof/vm.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct cpprof_error error;
static struct cpprof_writer out, writer;
static struct cpprof_profile *connections, *buffers;
static struct cpprof_snapshot *snapshot;
static struct cpprof_heap *heap;
static struct cpprof_labels *parent, *set;
static struct pprof_profile *p;
static struct cpprof_vm *vm;
static struct cpprof_vm_thread *t, *before;
static char object[64], request[] = "r", path[] = "/cart";
static char text[] = "55d0c0-55d0d0 r-xp 0 08:01 7 /bin/true\n";
static char *const ptr = object, *const lock = object, *const b = object,
                   *const c = object, *const file = object;
static void *state = object;
static size_t n = 1, size = 8;

static void work(void)
{
    clock_t end = clock() + CLOCKS_PER_SEC / 10;

    while (clock() < end)
        continue;
}
static void serve(void *ctx) { (void)ctx; work(); }
static void wait_for(void *ctx) { (void)ctx; }
static void interpret(struct cpprof_vm_thread *thread)
{
    cpprof_vm_thread_poll(thread);
}
static size_t walk(void *ctx, struct cpprof_vm_frame *frames, size_t max)
{
    (void)ctx, (void)frames, (void)max;
    return 0;
}
static bool tell(void *ctx, const void *function,
                 struct cpprof_vm_function *what)
{
    (void)ctx, (void)function, (void)what;
    return false;
}
"""

BEFORE = r"""
static void use(void)
{
    (void)&error, (void)&connections, (void)&buffers, (void)&snapshot,
        (void)&heap, (void)&parent, (void)&set, (void)&p, (void)&vm, (void)&t,
        (void)&before, (void)request, (void)path, (void)text, (void)ptr, (void)lock,
        (void)b, (void)c, (void)file, (void)state, (void)n, (void)size,
        (void)serve, (void)wait_for, (void)interpret;
    cpprof_writer_to_path("out.pb.gz", &out, NULL);
    cpprof_writer_to_path("writer.pb.gz", &writer, NULL);
    if (pprof_read_path("cpu.pb.gz", NULL, &p, NULL) != CPPROF_OK)
        pprof_new(&p, NULL);
}
"""


def examples():
    """(where, "c" or "cpp", text) of all."""
    pages = [os.path.join(top, "README.md")]
    for page in pages + sorted(glob.glob(os.path.join(top, "docs/*.md"))):
        with open(page, encoding="utf-8") as lines:
            text = lines.read()
        for m in re.finditer(r"^```(c|cpp)\n(.*?)^```", text, re.S | re.M):
            yield os.path.relpath(page, top), m[1], m[2]
    for page in sorted(glob.glob(os.path.join(top, "include/cpprof/**/*.h*"),
                                 recursive=True)):
        with open(page, encoding="utf-8") as lines:
            text = lines.read()
        for comment in re.findall(r"/\*.*?\*/", text, re.S):
            for m in re.finditer(r"^ \*\n((?: \*(?:     .*)?\n)+)", comment,
                                 re.M):
                code = re.sub(r"^ \*(?:     )?", "", m[1], flags=re.M)
                if ";" in code:
                    header = os.path.relpath(page, os.path.join(top, "include"))
                    yield header, "cpp" if page.endswith("pp") else "c", \
                        "%s#include <%s>\n" % (code, header)


def program(code):
    """A whole program of it."""
    code = re.sub(r"^ *\.\.\. *$", "", code, flags=re.M)
    includes = re.findall(r"^#include .*$", code, re.M)
    code = re.sub(r"^#include .*$", "", code, flags=re.M)
    head = "\n".join(includes) + CONTEXT
    if "main(" in code:
        return head + BEFORE + code.replace("{", "{ use();", 1)
    return head + BEFORE + "int main(void)\n{\n    use();\n    {\n" + code + \
        "\n    }\n    return 0;\n}\n"


def compiled(number, language, code):
    source = os.path.join(work, "example%d.%s" %
                          (number, "cc" if language == "cpp" else "c"))
    with open(source, "w", encoding="utf-8") as out:
        out.write(program(code))
    done = subprocess.run(
        ["g++" if language == "cpp" else "gcc", "-Wall", "-Werror",
         "-Wno-unused", "-g", "-I", os.path.join(top, "include"), "-o",
         source[:-2].rstrip("."), source, "-L" + build, "-lcpprof",
         "-lcpprof-profile", "-Wl,-rpath," + build],
        capture_output=True, text=True)
    return source[:-2].rstrip("."), done.stderr


def run(binary, folder, gone):
    """(status, what it said), and its folder as it left it."""
    os.mkdir(folder)
    if not gone:
        subprocess.run(["cp", os.path.join(here, "../fixtures/cpprof.pb.gz"),
                        os.path.join(folder, "cpu.pb.gz")], check=True)
    text = 'cd "$1" && { [ -z "$2" ] || rmdir "$1"; } && exec "$3"'
    done = subprocess.run(["sh", "-c", text, "sh", folder, "gone" * gone,
                           binary], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def unreadable(folder, code):
    """The files that the example names and that are no profile."""
    problems = []
    for name in set(re.findall(r'"([\w.]+\.pb\.gz)"', code)):
        done = subprocess.run([cpprof, "-raw", os.path.join(folder, name)],
                              capture_output=True, text=True)
        if done.returncode or "Samples:" not in done.stdout:
            problems.append("%s: %s" % (name, done.stderr.strip()))
    return problems


def main():
    n = 0
    for n, (where, language, code) in enumerate(examples(), 1):
        name = "%s: %s" % (where, code.strip().split("\n")[0])
        binary, why = compiled(n, language, code)
        if not tap.ok(name + " (compiles)", os.path.exists(binary), why):
            continue
        folder = os.path.join(work, "run%d" % n)
        status, said = run(binary, folder, False)
        tap.none(name + " (runs)",
                 (["status %d: %s" % (status, said)] if status else []) +
                 unreadable(folder, code))
        status, said = run(binary, folder + ".gone", True)
        # The one that reads a profile says that there is none, and exits.
        tap.ok(name + " (where nothing can be written)",
               status == (1 if "errx(1" in code else 0),
               "status %d: %s" % (status, said))
    tap.less("there are examples", 30, n)
    return tap.end()


with tempfile.TemporaryDirectory(prefix="cpprof-examples.") as work:
    status = main()
sys.exit(status)
