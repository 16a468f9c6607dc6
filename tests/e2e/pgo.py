#!/usr/bin/env python3
"""cpprof pgo: a program of known behaviour is built by clang, recorded, and
built again with what pgo makes of the profile.

    pgo.py CPPROF       TAP
"""
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
from protobuf import chunk, varint  # noqa: E402
from tap import Tap  # noqa: E402

cpprof = os.path.realpath(sys.argv[1])
tap = Tap()
CLANG = "clang-14 -O2 -gline-tables-only -fdebug-info-for-profiling"

HEADER = """static inline unsigned mix(unsigned x)
{
    x = x * 1664525u + 1013904223u;
    return x ^ x >> 13;
}
"""

# step() here and in the other file are different functions. Each works for a
# tenth of the time or more: of what has five samples, none may come.
MAIN = """#include "mix.h"
#include <stdio.h>
#include <stdlib.h>
unsigned other(unsigned);
#define STEP(k) s = s * (k + 3) ^ (s >> (k & 7)); \\
    if (s % 5 == k % 5) s += n * k; else s ^= x << (k & 3)
static unsigned big(unsigned x, unsigned n) /* too large to be inlined */
{
    unsigned s = x;
    STEP(1); STEP(2); STEP(3); STEP(4); STEP(5); STEP(6); STEP(7);
    STEP(8); STEP(9); STEP(10); STEP(11); STEP(12); STEP(13); STEP(14);
    return s;
}
static unsigned step(unsigned x)
{
    for (int i = 0; i < 40; i++)
        x = mix(x);
    return x;
}
static unsigned left(unsigned x) { return step(x) + 1; }
static unsigned right(unsigned x) { return step(x) + 2; }
unsigned (*volatile turn[2])(unsigned) = {left, right};
unsigned (*volatile lonely)(unsigned) = step;
__attribute__((noinline)) unsigned choose(unsigned x)
{
    unsigned s = 0;
    for (unsigned i = 0; i < 64; i++) {
        s = mix(s + x);
        if (s % 16 != 0) {
            s = s * 7 + 1;
            s ^= s >> 3;
        } else {
            s = s * 5 + 3;
            s ^= s >> 5;
        }
    }
    return s;
}
__attribute__((noinline)) unsigned call(unsigned x, unsigned n)
{
    unsigned s = 0;
    for (unsigned i = 0; i < n; i++)
        s += turn[i % 4 == 0](s + x);
    return s;
}
__attribute__((noinline)) unsigned hot(unsigned x)
{
    for (unsigned i = 0; i < 60; i++)
        x = mix(mix(mix(mix(x)))) + big(x, i);
    return x;
}
__attribute__((noinline)) unsigned never(unsigned x)
{
    return big(x, 3) + big(x, 4);
}
int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 1, s = 0;
    for (unsigned i = 0; i < n * 10000; i++) {
        s += hot(s + i);
        s += choose(s);
        s += call(s, 4);
        if (s == 1)
            s += never(s) + lonely(s);
        s += other(s);
    }
    printf("%u\\n", s);
    return 0;
}
"""

OTHER = """#include "mix.h"



static unsigned step(unsigned x)
{
    for (int i = 0; i < 200; i++)
        x = mix(x) / 3;
    return x;
}
unsigned (*volatile chosen)(unsigned) = step;
unsigned other(unsigned x) { return chosen(x); }
"""


def sh(command):
    done = subprocess.run(command, shell=True, check=False,
                          capture_output=True, text=True)
    if done.returncode:
        print("# %s: %s" % (command, done.stderr), flush=True)
    return done.stdout + done.stderr


def pgo(*words):
    """Status, output, messages."""
    done = subprocess.run([cpprof, "pgo", *words], capture_output=True,
                          check=False, text=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def record(program, out, runs=30):
    sh("%s record -F 1000 -o %s -- ./%s %d" % (cpprof, out, program, runs))


def body(text, name):
    """{position: first number} of a function that is not inlined."""
    found = {}
    inside = False
    for line in text.splitlines():
        if not line.startswith(" "):
            inside = line.startswith(name + ":")
        match = re.match(r" (\d+(?:\.\d+)?): (\d+)", line)
        if inside and match:
            found[match.group(1)] = int(match.group(2))
    return found


def calls(program, function):
    """The functions that it calls."""
    text = sh("objdump -d --no-show-raw-insn %s" % program)
    match = re.search(r"<%s>:\n(.*?)\n\n" % function, text + "\n\n", re.S)
    return re.findall(r"(?:call|jmp) .*<(\w+)>$", match.group(1), re.M) \
        if match else []


def one_line(name, words, part):
    status, out, err = pgo(*words)
    lines = [line for line in err.splitlines() if line]
    tap.ok(name, status == 2 and not out and part in lines[-1] and
           all(line.startswith("cpprof: pgo: ") for line in lines),
           status, out, err)


# --- what is written ---------------------------------------------------------

def branch_is_told(loop):
    """One of two ways is taken 15 times of 16."""
    return loop.get("5", 0) > 4 * loop.get("8", 1) > 0


def entry_is_rare(loop):
    return loop.get("1", 1 << 60) < loop.get("5", 0) / 8


def counts(text):
    loop = body(text, "choose")
    tap.ok("branch_taken_15_of_16_is_told_so", branch_is_told(loop), loop)
    tap.ok("entry_of_loop_is_rare", entry_is_rare(loop), loop)
    match = re.search(r"^ 4: (\d+)(.*)$",
                      ("\n" + text).split("\ncall:")[1], re.M)
    targets = dict(re.findall(r"(\w+):(\d+)", match.group(2)))
    tap.ok("indirect_call_has_its_targets",
           int(targets.get("left", 0)) > int(targets.get("right", 0)) > 0,
           match.group(0))
    tap.has("inlined_functions_nest", text, "\n 0: step:")
    tap.matches("inlined_function_of_header_nests_deeper", r"^  \d+: mix:\d+$",
                ("\n" + text).split("\nleft:")[1])
    tap.matches("discriminators_are_told", r"^ \d+\.\d+: \d+", text)


def read_by_clang():
    said = sh(CLANG + " -Wall -Werror -fprofile-sample-use=p.prof -o used "
                      "main.c other.c")
    tap.same("clang_reads_it_without_a_warning", said, "")
    tap.ok("hot_call_is_inlined_with_it",
           "big" in calls("plain", "hot") and "big" not in
           calls("used", "hot") and "big" in calls("used", "never"),
           calls("plain", "hot"), calls("used", "hot"), calls("used", "never"))
    if shutil.which("llvm-profdata-14"):
        tap.has("llvm_profdata_reads_it",
                sh("llvm-profdata-14 show --sample p.prof"), "Function: hot")
    else:
        tap.skip("llvm_profdata_reads_it", "no llvm-profdata-14")


def twins(text):
    sh(CLANG + " -funique-internal-linkage-names -o unique main.c other.c")
    record("unique", "unique.pb.gz")
    unique = pgo("unique.pb.gz")[1]
    tap.matches("unique_names_are_kept", r"^\w*step\w*\.__uniq\.\d+:\d+", unique)
    said = sh(CLANG + " -funique-internal-linkage-names -Wall -Werror "
              "-fprofile-sample-use=unique.prof -o used main.c other.c"
              if not pgo("-o", "unique.prof", "unique.pb.gz")[0] else "false")
    tap.same("clang_reads_unique_names", said, "")
    names = set(re.findall(r"(\w*step\w*\.__uniq\.\d+):\d", unique))
    tap.same("twins_are_two_functions_by_them", len(names), 2)


def clones():
    """gcc makes copies, and moves cold parts away."""
    sh("gcc -O3 -g -o gcc main.c other.c")
    record("gcc", "gcc.pb.gz")
    status, text, err = pgo("gcc.pb.gz")
    names = re.findall(r"^([^\s:]+):", text, re.M)
    tap.ok("copies_and_parts_go_to_their_function",
           status == 0 and "hot" in names and not [n for n in names
                                                   if "." in n], names, err)


def builds():
    """A second build, of moved lines, of which both files are there."""
    with open("main.c") as file:
        text = file.read()
    os.mkdir("newer")
    for name in ("mix.h", "other.c"):
        shutil.copy(name, "newer")
    with open("newer/main.c", "w") as file:
        file.write("/* moved */\n\n\n" + text)
    sh("cd newer && %s -o plain main.c other.c" % CLANG)
    record("newer/plain", "newer.pb.gz")
    old, new = pgo("p.pb.gz")[1], pgo("newer.pb.gz")[1]
    status, both, err = pgo("p.pb.gz", "newer.pb.gz")
    sums = [sum(body(t, "choose").values()) for t in (old, new, both)]
    tap.ok("two_builds_add_up", status == 0 and
           body(both, "choose").keys() == body(old, "choose").keys() and
           abs(sums[0] + sums[1] - sums[2]) < sums[2] / 50, sums, err)
    sh("cp newer/plain newer/kept && cp plain newer/plain")
    tap.matches("another_build_in_place_of_one_is_said",
                r"newer/plain, build ID \w+ is not here: build ID mismatch, "
                r"the file has \w+; say where",
                pgo("-o", "both.prof", "p.pb.gz", "newer.pb.gz")[2])
    os.rename("newer/kept", "newer/gone")
    os.remove("newer/plain")
    status, _, err = pgo("-o", "both.prof", "p.pb.gz", "newer.pb.gz")
    tap.ok("build_that_is_not_here_is_said", status == 0 and
           re.search(r"\d+\.\d% of the samples are left out: .*newer/plain, "
                     "build ID [0-9a-f]+ is not here", err), err)


def documented():
    """The commands of docs/pgo.md, typed where cc is gcc."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                           "../../docs/pgo.md")) as file:
        page = file.read()
    lines = dict(re.findall(r"^(export|CMake|meson|make) +(.*)$", page, re.M))
    flags = re.search(r'`FLAGS=("[^"]*")`', page).group(1).replace("\n", " ")
    os.mkdir("typed")
    for name, text in (("CMakeLists.txt", "cmake_minimum_required(VERSION 3.10)"
                        "\nproject(t C CXX)\nadd_executable(t main.c)\n"),
                       ("meson.build", "project('t', 'c', 'cpp')\n"
                        "executable('t', 'main.c')\n"),
                       ("Makefile", "t: main.c\n\t$(CC) $(CFLAGS) -o t main.c\n")):
        with open("typed/" + name, "w") as file:
            file.write(text)
    with open("typed/main.c", "w") as file:
        file.write("int main(void) { return 0; }\n")
    shutil.copy("p.prof", "typed/server.prof")
    for name, built in (("CMake", "cmake --build build -- VERBOSE=1"),
                        ("meson", "ninja -v -C build"), ("make", "true")):
        if not shutil.which(lines[name].split()[0]):
            tap.skip("typed_line_builds_with_clang: " + name, "not here")
            continue
        said = sh("cd typed && rm -rf build && export %s FLAGS=%s && %s && %s" % (
            re.sub(r"clang(\+*)", r"clang\1-14", lines["export"]), flags,
            lines[name], built))
        compiled = [line for line in said.splitlines() if "clang-14" in line
                    and "-fprofile-sample-use" in line and " -o " in line]
        tap.ok("typed_line_builds_with_clang: " + name,
               compiled and re.search(r" -O[23] ", compiled[0]), said[-2000:])


# --- stripped, wrong, nothing ------------------------------------------------

def elsewhere(text):
    sh("objcopy --only-keep-debug plain plain.debug && mkdir away && "
       "cp plain away/kept && strip -o stripped plain && mv plain away/gone")
    one_line("binary_that_is_not_here_is_one_line", ["p.pb.gz"],
             "no binary of the profile was found")
    status, out, err = pgo("-binary=stripped", "-binary=plain.debug",
                           "p.pb.gz")
    tap.ok("stripped_program_with_its_debug_file_is_the_same",
           status == 0 and out == text, err)
    one_line("stripped_program_is_one_line", ["-binary=stripped", "p.pb.gz"],
             "is stripped, and its debug file is not here")
    one_line("debug_file_alone_is_said", ["-binary=plain.debug", "p.pb.gz"],
             "no code of the sampled functions")
    one_line("wrong_binary_is_one_line", ["-binary=used", "p.pb.gz"],
             "build ID")
    one_line("no_binary_at_all_is_one_line", ["-binary=main.c", "p.pb.gz"],
             "main.c")
    sh("mv away/gone plain")


# --- profiles that are made ---------------------------------------------------

BASE = 0x5500000000


def made(out, files, samples, kind=("samples", "count")):
    """A profile. files: (file, path, build id); samples: (stack of (file,
    symbol, offset), leaf first, count)."""
    def message(**values):
        return b"".join(varint(int(n[1:]) << 3) + varint(v)
                        for n, v in values.items())

    texts, places, body = ["", *kind], {}, b""
    for stack, n in samples:
        ids = b"".join(varint(places.setdefault(place, len(places) + 1))
                       for place in stack)
        body += chunk(2, chunk(1, ids) + chunk(2, varint(n)))
    for i, (file, path, build_id) in enumerate(files):
        text = sh("readelf -lW " + file)
        offset, start, size = (int(x, 16) for x in re.search(
            r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x\w+ 0x(\w+) R E",
            text).groups())
        texts += [path, build_id]
        body += chunk(3, message(
            _1=i + 1, _2=(i + 1) * BASE + (start & ~0xfff),
            _3=(i + 1) * BASE + start + size, _4=offset & ~0xfff,
            _5=len(texts) - 2, _6=len(texts) - 1))
    for (i, symbol, offset), number in places.items():
        start = int(re.search(r": (\w+)\s+\d+ FUNC .* %s$" % symbol, sh(
            "readelf -sW " + files[i][0]), re.M).group(1), 16)
        body += chunk(4, message(_1=number, _2=i + 1,
                                 _3=(i + 1) * BASE + start + offset))
    body += b"".join(chunk(6, text.encode()) for text in texts)
    with gzip.open(out, "wb") as file:
        file.write(chunk(1, message(_1=1, _2=2)) + body)


def even(file, symbol):
    """As many samples at each fourth byte of a function's first 64."""
    return [([(file, symbol, k)], 5) for k in range(0, 64, 4)]


WORK = """volatile unsigned s%s;
static __attribute__((noinline)) void work(unsigned n)
{%s
    for (unsigned i = 0; i < n; i++)
        s%s += i * n ^ (s%s >> 3);
}
void %s(unsigned n) { work(n); }
"""


def build_id(file):
    return re.search(r"Build ID: (\w+)", sh("readelf -n " + file)).group(1)


def twins_of_builds():
    """Each build has both functions, and another one of them is sampled."""
    with open("a.c", "w") as file:
        file.write(WORK % ("a", "", "a", "a", "a"))
    with open("b.c", "w") as file:
        file.write(WORK % ("b", "\n" * 7, "b", "b", "b"))
    with open("ab.c", "w") as file:
        file.write("void a(unsigned), b(unsigned);\n"
                   "int main(void) { a(9); b(9); return 0; }\n")
    files = []
    for build, order in (("v1", "a.c b.c ab.c"), ("v2", "b.c a.c ab.c")):
        os.mkdir(build)
        sh("%s -o %s/srv %s" % (CLANG, build, order))
        path = build + "/srv"
        files.append((path, os.path.realpath(path), build_id(path)))
    made("ab.pb.gz", files, even(0, "work") + even(1, "work") * 2)
    status, text, err = pgo("ab.pb.gz")
    lines = [int(float(line)) for line in body(text, "work")]
    tap.ok("twins_of_two_builds_are_not_mixed", status == 0 and
           min(lines) > 7 and "are called work, of " in err and
           re.search(r"of \S*b.c:2 and \S*a.c:2; only the first", err),
           text, err)


def strange():
    here = os.getcwd()
    sh(CLANG + " -Wl,--build-id=none -o noid main.c other.c")
    made("noid.pb.gz", [("noid", here + "/noid", "")], even(0, "choose"))
    status, text, err = pgo("noid.pb.gz")
    tap.ok("profile_without_build_id_says_which_file_it_takes",
           status == 0 and "choose:" in text and
           "no build ID of %s/noid" % here in err, status, err)
    made("none.pb.gz", [("noid", here + "/noid", "")], [])
    one_line("profile_without_samples_is_refused", ["none.pb.gz"],
             "has no samples")
    made("two.pb.gz", [("noid", here + "/noid", ""),
                       ("used", here + "/used", "")],
         even(0, "choose") + even(1, "hot") * 3)
    status, text, err = pgo("two.pb.gz")
    tap.ok("second_binary_of_a_profile_is_left_out_and_said",
           status == 0 and "choose:" in text and "hot:" not in text and
           "75.0%% of the samples are in %s/used" % here in err, text, err)
    status, text, err = pgo("two.pb.gz", "-binary=used")
    tap.ok("second_binary_is_taken_if_it_is_named", status == 0 and
           "hot:" in text and "choose:" not in text, text, err)
    made("ns.pb.gz", [("noid", here + "/noid", "")], even(0, "choose"),
         ("cpu", "nanoseconds"))
    for words in (["ns.pb.gz"], ["-check", "ns.pb.gz"]):
        one_line("times_without_a_period_are_no_samples " + words[0], words,
                 "has cpu in nanoseconds and no period")
    with open("plain", "rb") as file, open("cut", "wb") as out:
        out.write(file.read()[:-4096])
    one_line("program_that_is_cut_off_is_not_called_stripped",
             ["p.pb.gz", "-binary=cut"], "is cut off")
    status, _, err = pgo("-o", "/nowhere/x", "noid.pb.gz")
    tap.ok("output_that_cannot_be_made_is_said",
           status == 2 and "/nowhere/x" in err, err)
    if not shutil.which("aarch64-linux-gnu-gcc"):
        tap.skip("binary_of_another_machine", "no aarch64-linux-gnu-gcc")
        return
    sh("aarch64-linux-gnu-gcc -O2 -g -o arm main.c other.c")
    made("arm.pb.gz", [("arm", here + "/arm", "")], even(0, "choose"))
    status, text, err = pgo("arm.pb.gz")
    tap.ok("binary_of_another_machine_is_read",
           status == 0 and len(body(text, "choose")) > 5, text, err)


def split():
    """The file that has the lines is not there."""
    for command in ("%s -gsplit-dwarf -c main.c", "%s -gsplit-dwarf -c other.c",
                    "%s -o split main.o other.o"):
        sh(command % CLANG)
    made("split.pb.gz", [("split", os.path.realpath("split"),
                          build_id("split"))], even(0, "choose"))
    tap.has("program_with_its_dwo_files_is_read", pgo("split.pb.gz")[1],
            "choose:")
    os.remove("main.dwo")
    os.remove("other.dwo")
    one_line("dwo_that_is_not_there_is_said", ["split.pb.gz"],
             "in .dwo files that are not here")
    tap.has("and_which", pgo("split.pb.gz")[2],
            "inlined functions are missing: main.dwo is not there; put the")


def no_line():
    """Code that the compiler made for no line is on line 0, whatever the
    flags: here a function of which a third is."""
    with open("zero.s", "w") as file:
        file.write(sh(CLANG + " -S -o - main.c"))
    with open("zero.s") as file:
        text = file.read()
    begin = text.index("\nchoose:")
    end = text.index(".Lfunc_end", begin)
    code = text[begin:end].split("\n")
    half = [line for line in code if line.startswith("\t.loc\t")]
    for line in half[len(half) // 2:]:
        code[code.index(line)] = re.sub(r"(\.loc\t\d+) \d+", r"\1 0", line)
    with open("zero.s", "w") as file:
        file.write(text[:begin] + "\n".join(code) + text[end:])
    sh(CLANG + " -o zero zero.s other.c")
    made("zero.pb.gz", [("zero", os.path.realpath("zero"), build_id("zero"))],
         even(0, "choose"))
    tap.matches("line_0_is_not_what_flags_would_mend",
                r"^ok +lines: 100\.0%.* have them; [1-9][0-9.]*% are on line 0",
                pgo("-check", "zero.pb.gz")[1])


def hopeless():
    sh("%s record -t heap -o heap.pb.gz -- ./plain" % cpprof)
    one_line("heap_profile_is_refused", ["heap.pb.gz"],
             "does not say how often code runs")
    with open("stacks.folded", "w") as file:
        file.write("main;hot;big 100\nmain;choose 50\n")
    one_line("profile_without_addresses_is_refused", ["stacks.folded"],
             "no addresses")
    open("empty", "w").close()
    status, _, err = pgo("empty")
    tap.ok("empty_file_is_refused", status == 2 and len(err.splitlines()) == 1,
           err)
    for target, instead in (("gcc", "-fprofile-generate"),
                            ("bolt", "-for=clang"), ("order", "-for=clang")):
        one_line("%s_is_answered_with_what_to_use_instead" % target,
                 ["-for=" + target, "p.pb.gz"], instead)
    one_line("unknown_compiler_is_refused", ["-for=msvc", "p.pb.gz"],
             "no such compiler")
    one_line("no_profile_is_refused", [], "no profile given")


def check():
    status, out, _ = pgo("-check", "p.pb.gz", "-binary=plain")
    tap.ok("check_has_a_line_for_each_thing", re.fullmatch(
        r"((ok|weak|bad) +(samples|program|lines|discriminators|hot functions"
        r"|builds|sources): .*\n){7}", out), out)
    tap.matches("check_finds_lines", r"^ok +lines: ", out)
    tap.matches("check_finds_discriminators", r"^ok +discriminators: ", out)
    sh("gcc -O2 -o bare main.c other.c")
    record("bare", "bare.pb.gz", 5)
    one_line("check_of_program_without_lines_says_how_to_build",
             ["-check", "bare.pb.gz"], "-fdebug-info-for-profiling")
    record("plain", "short.pb.gz", 1)
    status, out, _ = pgo("-check", "short.pb.gz")
    tap.ok("check_of_few_samples_fails_and_says_how_many",
           status == 2 and re.search(r"^bad +samples: \d+.* record \d+ times",
                                     out, re.M), status, out)
    os.utime("main.c", (2e9, 2e9))
    tap.matches("check_tells_sources_that_changed", r"^weak +sources: ",
                pgo("-check", "p.pb.gz")[1])


def main():
    if not shutil.which("clang-14"):
        print("1..0 # SKIP no clang-14")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in (("mix.h", HEADER), ("main.c", MAIN),
                           ("other.c", OTHER)):
            with open(name, "w") as file:
                file.write(text)
        sh(CLANG + " -o plain main.c other.c")
        # One sample of a rare line is many times what it is in truth.
        for runs in 30, 60, 120:
            record("plain", "p.pb.gz", runs)
            status, text, err = pgo("p.pb.gz")
            loop = body(text, "choose")
            if branch_is_told(loop) and entry_is_rare(loop):
                break
        tap.ok("profile_is_written", status == 0 and text, err)
        pgo("-o", "p.prof", "p.pb.gz")
        counts(text)
        read_by_clang()
        documented()
        twins(text)
        clones()
        builds()
        elsewhere(text)
        strange()
        twins_of_builds()
        split()
        no_line()
        hopeless()
        check()
        os.chdir("/")
    return tap.end()


sys.exit(main())
