#!/usr/bin/env python3
"""Every kind of profile, read by an independent decoder.

    protoc.py KINDS_WRITER

Prints TAP. What KINDS_WRITER wrote is decoded by `protoc --decode` with the
published definition: nothing that it does not know, strings where indices
point to, ids as Parca wants them (1, 2, 3, ...).
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
from tap import Tap  # noqa: E402

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")

NAMED = ["allocs", "block", "goroutine", "heap", "mutex", "things",
         "threadcreate"]
KINDS = NAMED + [name + ".delta" for name in NAMED] + ["cpu", "wall"]

STRINGS = {"type", "unit", "key", "str", "num_unit", "filename", "build_id",
           "name", "system_name", "drop_frames", "keep_frames", "comment",
           "default_sample_type", "doc_url"}

TAP = Tap()


def decode(data, message, proto):
    return subprocess.run(
        ["protoc", "-I", DATA, "--decode=" + message, proto], input=data,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def unknown(text):
    """Fields that the definition does not have are printed by number."""
    return [line for line in text.splitlines()
            if re.match(r"\s*\d+(:| \{)", line)]


def bad_strings(text):
    n = len(re.findall(r"^string_table:", text, re.M))
    return ["%s: %s of %d strings" % (m[1], m[2], n)
            for m in re.finditer(r"^\s*(\w+): (-?\d+)$", text, re.M)
            if m[1] in STRINGS and not 0 < int(m[2]) < n]


def bad_ids(text):
    problems = []
    for table in ("mapping", "location", "function"):
        ids = re.findall(r"^%s \{\n  id: (\d+)$" % table, text, re.M)
        if [int(i) for i in ids] != list(range(1, len(ids) + 1)):
            problems.append("ids of %s: %s" % (table, ids[:20]))
    return problems


def check_kind(directory, kind):
    path = os.path.join(directory, kind + ".pb.gz")
    with gzip.open(path) as file:
        run = decode(file.read(), "perftools.profiles.Profile",
                     "profile.proto")
    text = run.stdout.decode("utf-8", "replace")
    problems = [run.stderr.decode()] if run.returncode else []
    problems += unknown(text) + bad_strings(text) + bad_ids(text)
    for part in ("sample_type {", "time_nanos: ", "period_type {"):
        if "\n" + part not in "\n" + text:
            problems.append("no " + part)
    if "\nsample {" not in text and kind not in ("mutex", "mutex.delta"):
        problems.append("no samples")
    TAP.none("protoc_knows_all_of_" + kind, problems)


def check_push():
    """The definition for push bodies compiles, and knows what it should."""
    body = (b"\x0a\x20" b"\x0a\x12\x0a\x08__name__\x12\x06memory"
            b"\x12\x0a\x0a\x02\x1f\x8b\x12\x04uuid")
    run = decode(body, "push.v1.PushRequest", "push.proto")
    text = run.stdout.decode("utf-8", "replace")
    problems = [run.stderr.decode()] if run.returncode else []
    for part in ('name: "__name__"', 'value: "memory"', "raw_profile:",
                 'ID: "uuid"'):
        if part not in text:
            problems.append("no %s in %s" % (part, text))
    TAP.none("protoc_reads_a_push_request", problems + unknown(text))


def main():
    if not shutil.which("protoc"):
        print("1..0 # SKIP no protoc (Debian: protobuf-compiler)")
        return 0
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.argv[1], directory], check=True)
        for kind in KINDS:
            check_kind(directory, kind)
    check_push()
    return TAP.end()


sys.exit(main())
