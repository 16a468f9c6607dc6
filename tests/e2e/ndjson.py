#!/usr/bin/env python3
"""Lines of JSON, and folders of profiles.

    ndjson.py CPPROF

Prints TAP. Values, labels and stacks are held against a decoder of its own, and
hashes against docs/sql.md.
"""
import collections
import gzip
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "http"),
                 os.path.join(HERE, "..", "differential")]
import generate  # noqa: E402
import proto  # noqa: E402
from protobuf import chunk, varint  # noqa: E402
from tap import scratch_folder, Tap  # noqa: E402

CPPROF = os.path.abspath(sys.argv[1])
FIXTURE = os.path.join(HERE, "..", "fixtures", "go.allocs.pb.gz")
FOLDER = scratch_folder("cpprof-ndjson-")
TAP = Tap()


def run(*words, data=None):
    return subprocess.run([CPPROF, "convert"] + list(words), input=data,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          cwd=FOLDER, check=False)


def lines(text):
    both = [json.loads(line) for line in text.decode().split("\n") if line]
    return ([one for one in both if one["kind"] == "stack"],
            [one for one in both if one["kind"] == "sample"])


def fnv(stack):
    value = 0xcbf29ce484222325
    for frame in zip(stack["functions"], stack["files"],
                     map(str, stack["lines"]), stack["build_ids"]):
        for byte in b"".join(part.encode() + b"\0" for part in frame):
            value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return value or 1


def check_fixture():
    stacks, samples = lines(run("-to=ndjson", FIXTURE).stdout)
    with gzip.open(FIXTURE) as file:
        data = file.read()
    names = [kind[0] for kind in proto.Profile(data).types]
    wanted = collections.Counter()
    for field, sample in proto.fields(data):
        if field == 2:
            wanted[tuple(n for f, v in proto.fields(sample) if f == 2
                         for n in proto.numbers(v))] += 1
    TAP.same("lines: a sample has its values", collections.Counter(
        tuple(s["values"][name] for name in names) for s in samples), wanted)
    TAP.same("lines: hashes are as the page says",
             [s["hash"] for s in stacks], [fnv(s) for s in stacks])
    TAP.ok("lines: each stack once, and for each sample", len(stacks) == len(
        {s["hash"] for s in stacks}) and {s["hash"] for s in stacks} ==
        {s["hash"] for s in samples})
    folded = collections.Counter()
    stack_of = {s["hash"]: s for s in stacks}
    for s in samples:
        folded[";".join(reversed(stack_of[s["hash"]]["functions"]))] += \
            s["values"]["alloc_space"]
    other = run("-to=collapsed", "-sample_index=alloc_space", FIXTURE).stdout
    TAP.same("lines: stacks are those of collapsed ones", dict(
        line.rsplit(" ", 1) for line in other.decode().splitlines()),
        {k: str(v) for k, v in folded.items() if v})
    TAP.same("lines: where they come from", {s["source"] for s in samples},
             {FIXTURE})
    TAP.same("lines: units", samples[0]["units"], dict(
        proto.Profile(data).types))


def check_random():
    wrong = []
    for seed in range(40):
        done = run("-to=ndjson", data=generate.profile(seed))
        if done.returncode:
            continue
        stacks, samples = lines(done.stdout)
        known = {s["hash"] for s in stacks}
        wrong += [seed for s in samples if s["hash"] not in known]
        wrong += [(seed, s) for s in stacks if len({len(s[name]) for name in (
            "functions", "files", "lines", "build_ids")}) != 1]
    TAP.none("random profiles: lines are JSON, and of one shape", wrong)


def check_labels():
    data = b"main;a 3\n"
    _, samples = lines(run("-to=ndjson", "-labels=version=1.2,k=a\"b",
                           data=data).stdout)
    TAP.same("labels: those of all samples", samples[0]["labels"],
             {"version": "1.2", "k": "a\"b"})
    done = run("-to=ndjson", "-labels=k=1,a=b,k=2", data=data).stdout
    TAP.ok("labels: of a key that is given twice the last counts",
           b'"labels":{"a":"b","k":"2"}' in done, done)
    with open(os.path.join(HERE, "..", "fixtures", "linux.perf"), "rb") as file:
        perf = file.read()
    _, samples = lines(run("-to=ndjson", "-labels=comm=x,host=h",
                           data=perf).stdout)
    TAP.ok("labels: a sample's own count, numbers are texts",
           samples and all(s["labels"]["comm"] != "x" and
                           s["labels"]["host"] == "h" and
                           s["labels"]["tid"].isdigit() for s in samples))


def check_odd_text():
    """Bytes that are no text, for which an engine refuses the whole file."""
    strings = [b"", b"n", b"count", b"f\x01\x1b\xff\xed\xa0\x80\xe2\x80\xa8\"\\",
               b"k\0a", b"k\0b", b"k\xfea", b"v\0\xc3\x28", b"w"]

    def label(key, value):
        return chunk(3, b"\x08" + varint(key) + b"\x10" + varint(value))

    done = run("-to=ndjson", data=b"".join([
        chunk(1, b"\x08\x01\x10\x02"),
        chunk(2, chunk(1, b"\x01") + chunk(2, varint(-5)) + label(4, 7)
              + label(5, 8) + label(6, 7)),
        chunk(4, b"\x08\x01" + chunk(4, b"\x08\x01")),
        chunk(5, b"\x08\x01\x10\x03")] + [chunk(6, s) for s in strings])).stdout
    stacks, samples = lines(done)
    TAP.same("odd text: what is none is U+FFFD", stacks[0]["functions"],
             ["f\x01\x1b" + 4 * "\ufffd" + "\u2028\"\\"])
    value = "v\ufffd\ufffd("
    TAP.same("odd text: a key is there once, with all its values",
             samples[0]["labels"], {"k\ufffda": value + "," + value,
                                    "k\ufffdb": "w"})
    TAP.ok("odd text: no key twice, no zero byte", done.count(b'"k\xef') == 2
           and b"u0000" not in done, done)


def check_folders():
    for name in ("f/a/1.pb.gz", "f/b/2.pb.gz", "f/.hidden.pb.gz"):
        path = os.path.join(FOLDER, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(FIXTURE, path)
    with open(os.path.join(FOLDER, "f/a/bad"), "w") as file:
        file.write("no profile\n")
    done = run("-to=ndjson", "f")
    TAP.ok("folders: a damaged file ends it", done.returncode == 2
           and done.stderr.decode().startswith("cpprof: f/a/bad: ")
           and done.stderr.count(b"\n") == 1, done.stderr)
    done = run("-to=ndjson", "-keep_going", "f")
    stacks, samples = lines(done.stdout)
    TAP.ok("folders: or is named and left out", done.returncode == 0
           and b"f/a/bad: " in done.stderr, done.stderr)
    TAP.same("folders: all below, none that is hidden", sorted({
        s["source"] for s in samples}), ["f/a/1.pb.gz", "f/b/2.pb.gz"])
    TAP.ok("folders: a stack of both once",
           len(stacks) == len({s["hash"] for s in stacks}))
    twice = run("-to=collapsed", "-sample_index=1", "-keep_going", "f").stdout
    once = run("-to=collapsed", "-sample_index=1", FIXTURE).stdout
    TAP.same("folders: other formats add them up", sorted(twice.splitlines()),
             sorted(b"%s %d" % (line.rsplit(b" ", 1)[0],
                                2 * int(line.rsplit(b" ", 1)[1]))
                    for line in once.splitlines()))


def check_memory():
    """The peak of ten times the files is that of a tenth."""
    peaks = []
    for n in (20, 400):
        pid = os.fork()
        if not pid:
            os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
            os.execv(CPPROF, [CPPROF, "convert", "-to=ndjson"] + [FIXTURE] * n)
        peaks.append(os.wait4(pid, 0)[2].ru_maxrss)
    TAP.ok("memory: that of one file", peaks[1] < peaks[0] + 1024, peaks)


def check_refused():
    for words, why in ((("-to=otlp", "-labels=a=b", FIXTURE),
                        "-labels is for ndjson"),
                       (("-to=ndjson", "-labels=version", FIXTURE),
                        '"version" is not KEY=VALUE'),
                       (("-to=ndjson", "-labels=a=x,y", FIXTURE),
                        '"y" is not KEY=VALUE'),
                       (("-to=ndjson", "-labels==v", FIXTURE),
                        '"=v" is not KEY=VALUE'),
                       (("-to=ndjson", "nowhere"), "nowhere: No such file"),
                       (("-to=ndjson", "-sample_index=cpu", FIXTURE),
                        "-sample_index is for"),
                       (("-o", "/nowhere/x.ndjson", FIXTURE), "/nowhere")):
        done = run(*words)
        TAP.ok("refused: %s" % why, done.returncode == 2 and why in
               done.stderr.decode() and done.stderr.count(b"\n") == 1,
               done.returncode, done.stderr)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([CPPROF, "convert", "-to=ndjson", FIXTURE],
                              stdout=full, stderr=subprocess.PIPE, check=False)
    TAP.ok("refused: a full disk", done.returncode == 2
           and b"No space left" in done.stderr, done.stderr)


check_fixture()
check_random()
check_labels()
check_odd_text()
check_folders()
check_memory()
check_refused()
sys.exit(TAP.end())
