#!/usr/bin/env python3
"""The statements of docs/sql.md, run by the engines that they are written for.

    sql.py CPPROF PROFILE...

Prints TAP. It needs the modules duckdb and chdb: `./dev peers sql`. The first
half of the profiles is version 1.2, the others 1.3.
"""
import glob
import gzip
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "http")]
import proto  # noqa: E402
from tap import scratch_folder, Tap  # noqa: E402

CPPROF = os.path.abspath(sys.argv[1])
PROFILES = [os.path.abspath(path) for path in sys.argv[2:]]
FOLDER = scratch_folder("cpprof-sql-")
TAP = Tap()


def statements(engine):
    with open(os.path.join(HERE, "..", "..", "docs", "sql.md")) as file:
        return dict(re.findall(r"```sql\n-- %s (\w+)\n(.*?)```" % engine,
                               file.read(), re.S))


def total(path):
    """The CPU time of a profile, as a decoder of its own has it."""
    with gzip.open(path) as file:
        data = file.read()
    profile = proto.Profile(data)
    names = [kind[0] for kind in profile.types]
    if "cpu" not in names:
        return 0
    rows = [[n for f, value in proto.fields(sample) if f == 2
             for n in proto.numbers(value)]
            for f, sample in proto.fields(data) if f == 2]
    return sum(row[names.index("cpu")] for row in rows)


def convert():
    half = len(PROFILES) // 2
    for version, paths in (("1.2", PROFILES[:half]), ("1.3", PROFILES[half:])):
        subprocess.run([CPPROF, "convert", "-labels=version=" + version, "-o",
                        version + ".ndjson"] + paths, cwd=FOLDER, check=True)


def folded_total(name, text):
    path = os.path.join(FOLDER, name)
    with open(path, "w") as file:
        file.write(text)
    done = subprocess.run([CPPROF, "-flamegraph", path], capture_output=True,
                          cwd=FOLDER, check=False)
    TAP.ok("%s: cpprof -flamegraph opens the slice" % name,
           done.returncode == 0 and b"<html" in done.stdout.lower(),
           done.stderr)
    return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())


def check(engine, wanted, found):
    half = len(PROFILES) // 2
    by_version = {"1.2": sum(map(total, PROFILES[:half])),
                  "1.3": sum(map(total, PROFILES[half:]))}
    TAP.same("%s: sums of all versions" % engine, found["sums"], by_version)
    TAP.same("%s: the flame graph has all of it" % engine,
             folded_total(engine + ".folded", found["flame"]), wanted)
    TAP.ok("%s: the top functions fall" % engine, found["top"] and
           found["top"] == sorted(found["top"], key=lambda r: -r[2]))
    TAP.near("%s: with what it called, one function has it all" % engine,
             max(r[2] for r in found["cum"]),
             max(by_version.values()) / 1e9, 1e-6)
    TAP.ok("%s: what changed" % engine, len(found["change"]) > 1,
           found["change"])


def by_duckdb():
    import duckdb
    said, found = statements("duckdb"), {}
    os.chdir(FOLDER)
    base = duckdb.connect()
    base.execute(said["load"])
    base.execute(said["parquet"])
    for name in ("top", "cum", "change"):
        found[name] = base.execute(said[name]).fetchall()
    base.execute(said["flame"])
    with open("slice.folded") as file:
        found["flame"] = file.read()
    found["sums"] = dict(base.execute(
        "SELECT labels['version'], sum(\"values\"['cpu'])::BIGINT FROM "
        "'samples.parquet' GROUP BY ALL").fetchall())
    found["stacks"] = base.execute(
        "SELECT count(*), bit_xor(hash) FROM stacks").fetchall()
    return found


def rows(text):
    def number(word):
        try:
            return float(word)
        except ValueError:
            return word
    return [tuple(row[:1]) + tuple(map(number, row[1:])) for row in
            (line.split("\t") for line in text.splitlines())]


def by_clickhouse():
    from chdb import session
    said, found = statements("clickhouse"), {}
    os.chdir(FOLDER)
    for path in glob.glob("*.parquet"):
        os.remove(path)
    base = session.Session(os.path.join(FOLDER, "chdb"))
    base.query("CREATE DATABASE p; USE p")
    for statement in said["load"].split(";\n") + [said["insert"]]:
        if statement.strip():
            base.query(statement)
    base.query(said["parquet"])
    for name in ("top", "cum", "change"):
        found[name] = rows(str(base.query(
            said[name].strip().rstrip(";") + " FORMAT TSVRaw")))
    found["flame"] = str(base.query(said["flame"]))
    found["sums"] = {k: int(v) for k, v in rows(str(base.query(
        "SELECT labels['version'], sum(values['cpu']) FROM "
        "file('samples.parquet') GROUP BY 1 FORMAT TSVRaw")))}
    counted = str(base.query("SELECT count(), groupBitXor(hash) FROM stacks "
                             "FINAL FORMAT TSVRaw")).split()
    found["stacks"] = [tuple(map(int, counted))]
    base.close()
    return found


convert()
WANTED = sum(map(total, PROFILES))
DUCK, CLICK = by_duckdb(), by_clickhouse()
check("duckdb", WANTED, DUCK)
check("clickhouse", WANTED, CLICK)
TAP.same("both: stacks, by number and hash", DUCK["stacks"], CLICK["stacks"])
TAP.same("both: the same stacks of the same weight",
         sorted(DUCK["flame"].splitlines()), sorted(CLICK["flame"].splitlines()))
sys.exit(TAP.end())
