#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs of others that lose memory because a library in front of them drops
every hundredth free(): leak_seeded.py CPPROF LIBCPPROF SEED. With glibc all of
that is found but for a stale word, with jemalloc (redis) most of it, and no more
ever. In the same programs without the library nothing is lost.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from tap import Tap  # pylint: disable=wrong-import-position

cpprof, library, seed = (os.path.realpath(path) for path in sys.argv[1:4])
tap = Tap()

SQL = """
create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 500)
  insert into t select i, 'text ' || i from n;
""" + "select count(*), max(b), group_concat(b) from t where a > 7;\n" * 700


def run(folder, words, preloads, text=None):
    """The process, ready to end; its leaks are written at the end."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CPPROF", "LD_PRELOAD", "MALLOC_"))}
    env.update(LD_PRELOAD=" ".join(preloads), SEEDED=folder + "/seeded",
               CPPROF="heapleak=1,out=%s/leak.pb.gz" % folder)
    process = subprocess.Popen(words, env=env, stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    if text:
        process.stdin.write(text)
        process.stdin.close()
    return process


def sqlite(folder, preloads):
    process = run(folder, ["sqlite3", folder + "/db"], preloads, SQL)
    words = process.stderr.read()
    process.stderr.close()
    return process.wait(60), words


def redis(folder, preloads):
    """The server and the checker are one program, which looks at its name."""
    path = folder + "/socket"
    server = folder + "/redis-server"
    shutil.copy(shutil.which("redis-check-rdb"), server)
    process = run(folder, [server, "--port", "0", "--unixsocket", path,
                           "--save", "", "--dir", folder], preloads)
    end = time.monotonic() + 30
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.02)
    subprocess.run(["redis-benchmark", "-s", path, "-q", "-n", "3000", "-c",
                    "5", "-t", "set,lpush,lpop,sadd,hset"], check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(["redis-cli", "-s", path, "shutdown", "nosave"],
                   check=False, capture_output=True)
    words = process.communicate(timeout=60)[1]
    return process.returncode, words


def lost(folder):
    """Objects in the profile; -1 where there is no profile."""
    done = subprocess.run([cpprof, "-raw", folder + "/leak.pb.gz"],
                          capture_output=True, text=True, check=False)
    if done.returncode or "leak_objects/count" not in done.stdout:
        return -1
    samples = done.stdout.split("Samples:")[-1].split("Locations")[0]
    return sum(map(int, re.findall(r"^ *(\d+) +\d+:", samples, re.M)))


def play(name, program, least):
    with tempfile.TemporaryDirectory() as folder:
        status, words = program(folder, [library])
        tap.ok("%s ends as ever" % name, status == 0, status, words)
        tap.same("%s loses nothing" % name, lost(folder), 0)
    with tempfile.TemporaryDirectory() as folder:
        status, words = program(folder, [seed, library])
        with open(folder + "/seeded", encoding="ascii") as file:
            dropped = int(file.read())
        tap.ok("%s drops some" % name, status == 0 and dropped > 200, status,
               dropped, words)
        found = lost(folder)
        print("# %s: %d of %d" % (name, found, dropped))
        tap.ok("%s: what is dropped is found, most of it" % name,
               least * dropped <= found <= dropped, found, dropped)


for NAME, PROGRAM, NEEDS, LEAST in (
        ("sqlite3", sqlite, "sqlite3", 0.97),
        ("redis", redis, "redis-check-rdb", 0.6)):
    if shutil.which(NEEDS):
        play(NAME, PROGRAM, LEAST)
    else:
        tap.skip(NAME, "not installed")
sys.exit(tap.end())
