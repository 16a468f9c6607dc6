#!/usr/bin/env python3
"""Has every frame of stripped programs a function?

    stripped.py BUILD [PROGRAM...]

Records programs as the distribution ships them at work, those of the list below
that are installed, and reads what `cpprof -raw` says of each frame that is in a
file. A line for each program: samples; frames, each as often as it was sampled;
those without a function ("[FILE]", "[FILE after SYMBOL]" or nothing); samples
whose leaf is such a frame; and how many functions there are. Then the files with
frames that have none.

The exit status is 1 if a frame has no function. RATE (500) is in Hz.
"""
import collections
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

RATE = os.environ.get("RATE", "500")

# Each some seconds of CPU time, on "data", 16 MB of text.
PROGRAMS = {
    "xz": "xz -T2 -3 -k -f data",
    "zstd": "zstd -q -f -15 data",
    "openssl": "openssl speed -seconds 1 rsa2048",
    "git": "git init -q repo && cp data repo && cd repo && git add data && "
           "git -c user.name=a -c user.email=a@b commit -q -m a && git repack "
           "-q -a -d -f --depth=50 && git fsck",
    "bash": "bash -c 'for ((i = 0; i < 60000; i++)); do x=${i//3/7}; done'",
    "sqlite3": "sqlite3 :memory: 'with recursive c(x) as (select 1 union all "
               "select x + 1 from c where x < 1500000) select sum(x * x % 7), "
               "count(distinct x % 1000) from c'",
    "gzip": "gzip -9 -c data",
    "bzip2": "bzip2 -c data",
    "sort": "sort --parallel=2 data",
    "perl": "perl -ne '$n{$_}++ for split; END { print scalar keys %n }' data",
    "mawk": "mawk '{ for (i = 1; i <= NF; i++) n[$i]++ } END { print NR }' data",
    "python3": "python3 -S -c 'import json, re\nfor i in range(40): "
               "json.loads(json.dumps([{str(k): [k] * 9} for k in range(5000)]"
               ")); re.findall(\"(a+|b)c?\", \"abcaab\" * 5000)'",
    "objdump": "objdump -d /bin/bash",
    "jq": "jq -n '[range(300000) | {a: ., b: (. * 2 | tostring)}] | "
          "map(select(.a % 3 == 0)) | length'",
}


def write_data():
    numbers = random.Random(1)
    words = ["".join(numbers.choice("abcdefghij") for _ in range(n % 9 + 2))
             for n in range(3000)]
    with open("data", "w") as file:
        for _ in range(250000):
            file.write(" ".join(numbers.choices(words, k=10)) + "\n")


def is_function(name):
    return name in ("[vdso]", "[vsyscall]") or \
        bool(name) and not re.fullmatch(r"\[[^+]*\]", name)


def parse(text):
    """Of what -raw prints: [(count, [location])], {location: (file, name)} of
    those in a file."""
    samples, _, rest = text.partition("\nLocations\n")
    locations, _, mappings = rest.partition("\nMappings\n")
    files = {m[1]: os.path.basename(m[2]) for m in re.finditer(
        r"^(\d+): 0x\w+/0x\w+/0x\w+ (\S+)", mappings, re.M)}
    places = {m[1]: (files.get(m[2], ""),
                     re.sub(r" \S*:\d+:\d+ s=\d+(\(.*\))?$", "", m[3]).strip())
              for m in re.finditer(r"^ +(\d+): 0x\w+ M=(\d+) ?(.*)$", locations,
                                   re.M)}
    stacks = [(int(m[1]), m[2].split()) for m in re.finditer(
        r"^ +(\d+) +\d+: ([\d ]+)$", samples, re.M)]
    return stacks, places


def check(name, cpprof, without):
    """The frames without a function."""
    subprocess.run([cpprof, "record", "-one", "-F", RATE, "-o=p.pb.gz", "--",
                    "sh", "-c", PROGRAMS[name]], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True)
    stacks, places = parse(subprocess.run(
        [cpprof, "-raw", "p.pb.gz"], capture_output=True, text=True,
        check=True).stdout)
    n_frames = n_without = n_leaves = 0
    functions = set()
    for count, stack in stacks:
        for i, each in enumerate(stack):
            if each not in places:
                continue
            n_frames += count
            functions.add(places[each])
            if not is_function(places[each][1]):
                n_without += count
                n_leaves += count * (i == 0)
                without[places[each]] += count
    print("%-10s %8d %9d %9d %9d %10d" % (
        name, sum(count for count, _ in stacks), n_frames, n_without, n_leaves,
        len(functions)), flush=True)
    return n_frames, n_without


def main():
    cpprof = os.path.join(os.path.abspath(sys.argv[1]), "cpprof")
    asked = sys.argv[2:] or PROGRAMS
    without = collections.Counter()
    sums = [0, 0]
    folder = tempfile.mkdtemp(prefix="cpprof-stripped-")
    print("%-10s %8s %9s %9s %9s %10s" % (
        "program", "samples", "frames", "without", "leaves", "functions"))
    try:
        os.chdir(folder)
        write_data()
        for name in asked:
            if not shutil.which(name):
                print("%-10s is not installed" % name)
                continue
            sums = [a + b for a, b in zip(sums, check(name, cpprof, without))]
    finally:
        os.chdir("/")
        shutil.rmtree(folder)
    print("%d of %d frames are without a function" % (sums[1], sums[0]))
    for (file, name), count in without.most_common(10):
        print("    %6d  %s %s" % (count, file, name))
    return 1 if sums[1] or not sums[0] else 0


sys.exit(main())
