#!/usr/bin/env python3
"""What cpprof pgo gains: real programs, built by clang -O2, by an instrumented
profile, and by samples of the same training; measured with other inputs.

    pgo.py BUILD [PROGRAM...]

Sources are those of Debian's packages, without its patches; one that cannot be
had is left out. All builds of a program take turns, and each run is divided by
the one of -O2 in its round. Environment:

    PGO_SOURCES   folder that keeps sources (default: BUILD/bench/pgo)
    PGO_RUNS      what is recorded, "SECONDS@HZ ..." (default: "10@100 10@1000")
    ROUNDS        (default: 15)
    COUNT         1: instead of user time what cachegrind counts in one run, as
                  cycles: instructions, 10 for each mispredicted branch and each
                  miss of the first cache, 100 for each of the last. It is the
                  same on a busy machine, but takes 50 times as long, does not
                  see what fetching and decoding take, and wants valgrind.
"""
import glob
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys

FLAGS = ["-gline-tables-only", "-fdebug-info-for-profiling",
         "-funique-internal-linkage-names", "-w"]
# How cpprof record takes samples: set once it is known what works here.
ENGINE = []
build = os.path.realpath(sys.argv[1])
cpprof = os.path.join(build, "cpprof")
folder = os.path.realpath(os.environ.get("PGO_SOURCES",
                                         os.path.join(build, "bench", "pgo")))
counts = os.environ.get("COUNT", "0") != "0"
# What instrumentation gains at least, for a part of it to mean anything.
LEAST_GAIN = 0.01 if counts else 0.03
rounds = 1 if counts else int(os.environ.get("ROUNDS", "15"))
runs = [tuple(map(int, word.split("@"))) for word in
        os.environ.get("PGO_RUNS", "10@100 10@1000").split()]


def sh(*words, **more):
    done = subprocess.run(words, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          **more)
    if done.returncode:
        raise OSError("%s: %s" % (" ".join(words[:4]),
                                  done.stderr.decode()[-800:]))
    return done.stdout.decode(errors="replace")


# --- sources -----------------------------------------------------------------

def apt():
    """The options of an apt-get that knows where sources are: where packages
    are."""
    state = os.path.join(folder, "apt")
    for name in ("lists/partial", "cache/archives/partial", "sources"):
        os.makedirs(os.path.join(state, name), exist_ok=True)
    for path in glob.glob("/etc/apt/sources.list.d/debian*.sources"):
        with open(path) as file, open(os.path.join(
                state, "sources", os.path.basename(path)), "w") as out:
            out.write(file.read().replace("Types: deb\n", "Types: deb-src\n"))
    with open(os.path.join(state, "list"), "w") as out:
        if os.path.exists("/etc/apt/sources.list"):
            with open("/etc/apt/sources.list") as file:
                out.writelines("deb-src" + line[3:] for line in file
                               if line.startswith("deb "))
    options = []
    for name, path in (("Dir::Etc::sourcelist", "list"),
                       ("Dir::Etc::sourceparts", "sources"),
                       ("Dir::State::lists", "lists"),
                       ("Dir::Cache", "cache")):
        options += ["-o", name + "=" + os.path.join(state, path)]
    if not os.listdir(os.path.join(state, "lists/partial")) and \
            len(os.listdir(os.path.join(state, "lists"))) < 3:
        sh("apt-get", *options, "-q", "update")
    return options


def source(package):
    """The folder of a package's source."""
    place = os.path.join(folder, package)
    if not os.path.isdir(place):
        fresh = place + ".part"
        shutil.rmtree(fresh, ignore_errors=True)
        os.makedirs(fresh)
        sh("apt-get", *apt(), "-q", "source", "--download-only", package,
           cwd=fresh)
        for name in glob.glob(fresh + "/*.orig.tar.*"):
            if not name.endswith(".asc"):
                sh("tar", "xf", name, "-C", fresh)
        os.rename(fresh, place)
    return [path for path in glob.glob(place + "/*/")][0]


# --- programs: their files and flags, what trains them, what tests them ----------

def queries(rows, seed):
    more = random.Random(seed)
    k = more.choice((7919, 6007, 5003))
    return """create table t(a integer primary key, b text, c real, d integer);
with recursive n(i) as (select 1 union all select i+1 from n where i<%(n)d)
 insert into t select i, 'name'||(i*%(k)d%%%(n)d), i*1.5, i%%%(d)d from n;
create index tb on t(b); create index td on t(d,c);
select count(*), sum(c), d from t group by d order by 2 desc limit 5;
select count(*) from t x join t y on x.a = y.a+1 where x.b like '%%%(w)d%%';
select avg(length(b)), max(c) from t where b between 'name2' and 'name5';
update t set c=c+1 where d%%3=0;
select d, group_concat(substr(b,1,3)) from
 (select * from t order by b limit 3000) group by d;
with recursive n(i) as (select 1 union all select i+1 from n where i<%(n)d*3)
 select sum(i*i%%7), max(printf('%%d-%%s',i,'x')) from n;
delete from t where d in (3,5,%(w)d);
""" % {"n": rows, "k": k, "d": more.randrange(40, 100), "w": seed}


def sqlite(work):
    at = source("sqlite3")
    if not os.path.exists(at + "shell.c"):
        sh("sh", "-c", "./configure && make sqlite3.c shell.c", cwd=at)
    for name, text in (("train", queries(60000, 9)),
                       ("test", queries(45000, 4) +
                        "select hex(randomblob(20)), b from t order by c desc,"
                        " b limit 20000;")):
        with open(os.path.join(work, name), "w") as file:
            file.write(text)
    return {"files": [at + "sqlite3.c", at + "shell.c"],
            "flags": ["-DSQLITE_THREADSAFE=0",
                      "-DSQLITE_OMIT_LOAD_EXTENSION"],
            "libs": ["-lm"], "train": [":memory:", ".read train"],
            "test": [":memory:", ".read test"]}


LUA_TRAIN = """local t = {}
for i = 1, 200000 do t[i] = (i * 7919) % 200003 end
table.sort(t)
local words = {}
for i = 1, 200000 do
  local w = string.format('w%d', i % 5000)
  words[w] = (words[w] or 0) + 1
end
local function fib(n) if n < 2 then return n end
  return fib(n - 1) + fib(n - 2) end
print(fib(27), t[77], words.w77, #string.rep('ab', 1000):gsub('a', 'xyz'))
"""
LUA_TEST = """local N = 8
local function queens(n, row, cols, d1, d2)
  if row > n then return 1 end
  local sum = 0
  for c = 1, n do
    if not cols[c] and not d1[row + c] and not d2[row - c + n] then
      cols[c], d1[row + c], d2[row - c + n] = true, true, true
      sum = sum + queens(n, row + 1, cols, d1, d2)
      cols[c], d1[row + c], d2[row - c + n] = nil, nil, nil
    end
  end
  return sum
end
local P = {} P.__index = P
function P.new(x, y) return setmetatable({x = x, y = y}, P) end
function P:add(o) return P.new(self.x + o.x, self.y + o.y) end
local p = P.new(0, 0)
for i = 1, 600000 do p = p:add(P.new(i, -i)) end
local parts = {}
for i = 1, 60000 do parts[#parts + 1] = tostring(i):reverse() end
print(queens(N, 1, {}, {}, {}), p.x, #table.concat(parts, ','))
"""


def lua(work):
    at = source("lua5.4") + "src/"
    scripts(work, "lua", LUA_TRAIN, LUA_TEST)
    return {"files": [path for path in glob.glob(at + "*.c")
                      if not path.endswith("luac.c")],
            "flags": ["-DLUA_USE_POSIX"], "libs": ["-lm"],
            "train": ["train.lua"], "test": ["test.lua"]}


def scripts(work, ending, train, test):
    for name, text in (("train", train), ("test", test)):
        with open(os.path.join(work, name + "." + ending), "w") as file:
            file.write(text)


JS_TRAIN = """var t = [], words = {}, i;
for (i = 0; i < 60000; i++) t.push((i * 7919) % 60013);
t.sort(function (a, b) { return a - b; });
for (i = 0; i < 60000; i++) { var w = 'w' + i % 997; words[w] = (words[w] || 0) + 1; }
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
var s = JSON.stringify(words), back = JSON.parse(s);
print(fib(23), t[7], back.w77, s.replace(/w(\\d)/g, 'v$1').length);
"""
JS_TEST = """function P(x, y) { this.x = x; this.y = y; }
P.prototype.add = function (o) { return new P(this.x + o.x, this.y + o.y); };
var p = new P(0, 0), i, grid = [], n = 60, k, j;
for (i = 0; i < 120000; i++) p = p.add(new P(i, -i));
for (i = 0; i < n; i++) { grid[i] = []; for (j = 0; j < n; j++) grid[i][j] = (i * j) % 3; }
for (k = 0; k < 20; k++)
  for (i = 1; i < n - 1; i++) for (j = 1; j < n - 1; j++)
    grid[i][j] = (grid[i - 1][j] + grid[i + 1][j] + grid[i][j - 1] + 1) % 5;
var text = ''; for (i = 0; i < 30000; i++) text += String.fromCharCode(97 + i % 26);
print(p.x, grid[5][7], text.split('z').map(function (s) { return s.length; }).join('').length);
"""


def duktape(work):
    at = source("duktape")
    scripts(work, "js", JS_TRAIN, JS_TEST)
    extra = at + "extras/"
    return {"files": [at + "src/duktape.c", at + "examples/cmdline/duk_cmdline.c",
                      extra + "print-alert/duk_print_alert.c"],
            "flags": ["-I" + at + "src", "-I" + extra + "print-alert",
                      "-DDUK_CMDLINE_PRINTALERT_SUPPORT"],
            "libs": ["-lm"], "train": ["train.js"], "test": ["test.js"]}


def data(work):
    """Text to train with, and text and binaries to test with."""
    more = random.Random(3)
    words = ["".join(more.choice("etaoinshrdlu") for _ in
                     range(more.randrange(2, 9))) for _ in range(3000)]
    with open(os.path.join(work, "train.txt"), "w") as file:
        for _ in range(250000):
            file.write(more.choice(words) + more.choice("  \n,"))
    with open(os.path.join(work, "test.bin"), "wb") as file:
        for path in sorted(glob.glob("/usr/include/*.h"))[:120]:
            with open(path, "rb") as part:
                file.write(part.read())
        with open("/usr/lib/x86_64-linux-gnu/libc.so.6", "rb") as part:
            file.write(part.read())


def bzip2(work):
    at = source("bzip2")
    data(work)
    return {"files": [at + name + ".c" for name in
                      ("blocksort", "bzip2", "bzlib", "compress", "crctable",
                       "decompress", "huffman", "randtable")],
            "flags": [], "libs": [], "train": ["-kc", "train.txt"],
            "test": ["-kc", "test.bin"]}


def zstd(work):
    at = source("libzstd")
    data(work)
    files = []
    for part in ("lib/common", "lib/compress", "lib/decompress",
                 "lib/dictBuilder", "programs"):
        files += glob.glob(at + part + "/*.c")
    return {"files": files, "libs": [],
            "flags": ["-DZSTD_DISABLE_ASM", "-DXXH_NAMESPACE=ZSTD_",
                      "-I" + at + "lib", "-I" + at + "lib/common"],
            "train": ["-12", "-kc", "--single-thread", "train.txt"],
            "test": ["-11", "-kc", "--single-thread", "test.bin"]}


def cppcheck(_):
    at = source("cppcheck")
    files = []
    for part in ("lib", "cli", "externals/simplecpp", "externals/tinyxml2"):
        files += glob.glob(at + part + "/*.cpp")
    include = ["lib", "externals/simplecpp", "externals/tinyxml2",
               "externals/picojson", "externals"]
    return {"files": files, "cxx": True, "libs": [],
            "flags": ["-I" + at + part for part in include] +
                     ["-DFILESDIR=\"%s\"" % at.rstrip("/")],
            "train": ["-q", "--enable=all", at + "lib/checkstl.cpp",
                      at + "lib/mathlib.cpp"],
            "test": ["-q", "--enable=all", at + "lib/checkclass.cpp",
                     at + "externals/tinyxml2/tinyxml2.cpp"]}


SIMPLECPP = """#include "simplecpp.h"
#include <fstream>
#include <iostream>
int main(int argc, char **argv)
{
    size_t n = 0;
    for (int k = atoi(argv[1]); k > 0; k--)
        for (int i = 2; i < argc; i++) {
            std::ifstream in(argv[i]);
            std::vector<std::string> files;
            std::map<std::string, simplecpp::TokenList *> included;
            simplecpp::TokenList raw(in, files, argv[i]), out(files);
            raw.removeComments();
            simplecpp::preprocess(out, raw, files, included, simplecpp::DUI());
            n += out.stringify().size();
        }
    std::cout << n << std::endl;
}
"""


def simplecpp(work):
    """The preprocessor of cppcheck: C++ that is built in seconds."""
    at = source("cppcheck")
    with open(os.path.join(work, "main.cpp"), "w") as file:
        file.write(SIMPLECPP)
    return {"files": [at + "externals/simplecpp/simplecpp.cpp",
                      os.path.join(work, "main.cpp")],
            "cxx": True, "libs": [],
            "flags": ["-I" + at + "externals/simplecpp"],
            "train": ["6", at + "lib/checkstl.cpp", at + "lib/mathlib.cpp",
                      at + "lib/symboldatabase.cpp"],
            "test": ["5", at + "lib/checkclass.cpp", at + "lib/tokenize.cpp",
                     at + "externals/tinyxml2/tinyxml2.cpp"]}


PROGRAMS = {"sqlite": sqlite, "lua": lua, "duktape": duktape, "bzip2": bzip2,
            "zstd": zstd, "cppcheck": cppcheck, "simplecpp": simplecpp}


# --- builds --------------------------------------------------------------------

def compiler(program):
    name = "clang++-14" if program.get("cxx") else "clang-14"
    return shutil.which(name) or name


def make(program, work, name, *more):
    """Build all files, two at a time, and link them."""
    place = os.path.join(work, name + ".o")
    os.makedirs(place, exist_ok=True)
    flags = ["-O2", *FLAGS, *program["flags"], *more]
    waiting, running, objects = list(program["files"]), [], []
    while waiting or running:
        while waiting and len(running) < 2:
            path = waiting.pop()
            objects.append("%s/%d.o" % (place, len(objects)))
            running.append(subprocess.Popen(
                ["nice", compiler(program), *flags, "-c", path, "-o",
                 objects[-1]], stdin=subprocess.DEVNULL))
        if running.pop(0).wait():
            raise OSError("%s does not build" % name)
    out = os.path.join(work, name)
    sh(compiler(program), *flags, *objects, "-o", out, *program["libs"])
    return out


def seconds(words, work):
    """The user time of a run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(words, cwd=work, check=False, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


COUNTED = {"I *refs": 1, "I1 *misses": 10, "D1 *misses": 10, "LL misses": 90,
           "Mispredicts": 10}


def cycles(words, work):
    """Of a run, as cachegrind counts them. It does not read DWARF 5, and is told
    of one last cache, since it takes that of the machine by chance."""
    stripped = os.path.join(work, "stripped")
    said = os.path.join(work, "counted")
    sh("strip", "-o", stripped, words[0])
    sh("valgrind", "--tool=cachegrind", "--branch-sim=yes", "--cache-sim=yes",
       "--LL=33554432,16,64", "--cachegrind-out-file=/dev/null",
       "--log-file=" + said, stripped, *words[1:], cwd=work)
    with open(said, encoding="utf-8") as file:
        text = file.read()
    return sum(weight * int(re.search(r"== %s: +([\d,]+)" % name, text)[1]
                            .replace(",", ""))
               for name, weight in COUNTED.items())


def engine():
    """perf, which keeps a rate of 1 000 Hz where the kernel's clock does not;
    else what `cpprof record` takes by itself."""
    return ["-e", "perf"] if subprocess.run(
        [cpprof, "record", "-e", "perf", "-o", os.path.join(folder, "try"),
         "--", "true"], check=False, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0 \
        else []


def sample(program, work, plain, length, rate):
    """Record the training as often as makes so many seconds; build by it."""
    once = seconds([plain, *program["train"]], work)
    files = []
    for i in range(max(1, round(length / max(once, 0.01)))):
        path = os.path.join(work, "%d.%d.pb.gz" % (rate, i))
        done = subprocess.run(
            [cpprof, "record", "-F", str(rate), *ENGINE, "-o", path, "--",
             plain, *program["train"]], cwd=work, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)
        if os.path.exists(path):
            files.append(path)
        else:
            print("%s: not recorded: status %d, %s" % (
                path, done.returncode, done.stderr.decode(errors="replace")),
                file=sys.stderr, flush=True)
    name = "%ds@%d" % (length, rate)
    sh(cpprof, "pgo", "-o", os.path.join(work, name + ".prof"), *files)
    for path in files:
        os.remove(path)
    return make(program, work, name, "-fprofile-sample-use=" +
                os.path.join(work, name + ".prof"))


def instrument(program, work):
    raw = os.path.join(work, "raw")
    made = make(program, work, "counting", "-fprofile-instr-generate")
    subprocess.run([made, *program["train"]], cwd=work, check=False,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL,
                   env=dict(os.environ, LLVM_PROFILE_FILE=raw))
    sh("llvm-profdata-14", "merge", "-o", raw + ".merged", raw)
    return make(program, work, "instrumented",
                "-fprofile-instr-use=" + raw + ".merged")


def measure(program, work, builds):
    """Of each build the times, of all rounds."""
    times = {name: [] for name in builds}
    if counts:
        return {name: [cycles([path, *program["test"]], work)]
                for name, path in builds.items() if "again" not in name}
    for i in range(rounds + 1):
        names = list(builds)
        names = names[i % len(names):] + names[:i % len(names)]
        for name in names:
            took = seconds([builds[name], *program["test"]], work)
            if i:  # the first round warms up
                times[name].append(took)
    return times


def print_table(program, times):
    """The fastest runs beside the medians: on a busy machine what is slower
    than the fastest run is mostly the neighbours' doing. Behind both: which part
    of what instrumentation gains the samples gain; "-" where it gains nothing.
    Gives the parts of the medians, {build: part}."""
    plain = next(iter(times.values()))
    found, parts = {}, {}
    for row, took in times.items():
        ratios = sorted(a / b for a, b in zip(took, plain))
        found[row] = (statistics.median(ratios), min(took) / min(plain))
        share = ["-", "-"]
        for i, ratio in enumerate(found[row]):
            gain = 1 - found.get("instrumented", (1, 1))[i]
            if gain >= LEAST_GAIN and " Hz" in row:
                share[i] = "%.0f%%" % (100 * (1 - ratio) / gain)
                if i == 0:
                    parts[row] = (1 - ratio) / gain
        print("%-10s %-14s %6.3f   %.3f to %.3f   %6.3f %8s %8s" % (
            program, row, found[row][0], ratios[len(ratios) // 4],
            ratios[-1 - len(ratios) // 4], found[row][1], *share), flush=True)
    return parts


def bench(name):
    work = os.path.join(folder, "work", name)
    os.makedirs(work, exist_ok=True)
    program = PROGRAMS[name](work)
    plain = make(program, work, "plain")
    builds = {"-O2": plain, "-O2 again": plain,
              "instrumented": instrument(program, work)}
    for length, rate in runs:
        builds["%d s, %d Hz" % (length, rate)] = sample(program, work, plain,
                                                        length, rate)
    return print_table(name, measure(program, work, builds))


def main():
    os.makedirs(folder, exist_ok=True)
    ENGINE.extend(engine())
    print("%-10s %-14s %6s   %-14s   %s %8s %8s" % (
        "", "", "median", "quartiles", "fastest", "part", "fastest"),
        flush=True)
    parts = {}
    for name in sys.argv[2:] or PROGRAMS:
        try:
            for row, part in bench(name).items():
                parts.setdefault(row, []).append(part)
        except (OSError, IndexError) as error:
            print("%-10s left out: %s" % (name, error), flush=True)
    for row, of_all in parts.items():
        print("mean of %d   %-14s %3.0f%% of the instrumented gain" % (
            len(of_all), row, 100 * statistics.mean(of_all)))


if __name__ == "__main__":
    main()
