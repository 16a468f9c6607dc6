#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs of others that are searched for lost memory while they work, each
process several times: leak_living.py LIBCPPROF. Nothing that is in use is ever
listed. LOAD_SECONDS=N makes each load longer than 6 seconds.

postgres 15 has lost two blocks before it serves, and its children inherit them;
Valgrind calls the same two definitely lost in each of its processes.
"""
import collections
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from tap import (  # pylint: disable=wrong-import-position
    Tap, scratch_folder)

LIBRARY = os.path.realpath(sys.argv[1])
TAP = Tap()
FOLDER = scratch_folder("leak_living.")
PATIENCE = 60   # seconds, on a busy machine
LOAD_S = int(os.environ.get("LOAD_SECONDS", "6"))

# Transactions a second of each load; without a limit they would take all
# processors, and sessions that work and wait in turn are searched as well.
RATES = ("150", "25")

# An environment that setenv() replaces, and the text behind -D.
LOST_BY_POSTGRES = {"save_ps_display_args", "PostmasterMain"}

WORK = """
\\set n random(1, 100000)
CREATE TEMP TABLE IF NOT EXISTS mine (a int, b text);
INSERT INTO mine SELECT g, md5(g::text) FROM generate_series(1, 500) g;
PREPARE p AS SELECT count(*) FROM mine x JOIN mine y USING (a) WHERE x.b > $1;
EXECUTE p('7');
DEALLOCATE p;
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END $$;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM pgbench_accounts WHERE aid > :n ORDER BY bid;
FETCH 50 FROM c;
END;
TRUNCATE mine;
"""


def environment(folder):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CPPROF", "LD_PRELOAD", "MALLOC_"))}
    return env, ["env", "LD_PRELOAD=" + LIBRARY,
                 "CPPROF=heap=1,http=unix:%s/%%p.sock" % folder]


def ask(path):
    """The text of a profile; "": the process has ended."""
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(path)
            s.sendall(b"GET /debug/pprof/heapleak?debug=1 HTTP/1.0\r\n\r\n")
            text = b"".join(iter(lambda: s.recv(1 << 16), b"")).decode()
    except (ConnectionError, FileNotFoundError):
        return ""
    if text and " 200 " not in text.split("\r\n")[0]:
        return "none: " + text
    return text.partition("\r\n\r\n")[2]


def losers(text):
    """Of each row, the first function that is the program's."""
    return [next((name for name in re.findall(r"^#\t\S+\t(\w+)", row, re.M)
                  if name not in ("strdup", "realloc")), row)
            for row in re.split(r"^\d+ @", text, flags=re.M)[1:]]


class Searches:
    """Of all that have a socket in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.n = collections.Counter()   # by process
        self.lost = collections.defaultdict(set)
        self.none = []

    def round(self):
        """All at once: a search waits for a second, mostly."""
        paths = glob.glob(self.folder + "/*.sock")
        with ThreadPoolExecutor(len(paths) + 1) as pool:
            for path, text in zip(paths, pool.map(ask, paths)):
                if text.startswith("none"):
                    self.none.append(text)
                elif text:
                    self.n[path] += 1
                    self.lost[path] |= set(losers(text))

    def during(self, load):
        while load.poll() is None:
            self.round()
            time.sleep(0.1)

    def judge(self, name, n_processes, lost):
        print("# %s: %d searches of %d processes" %
              (name, sum(self.n.values()), len(self.n)))
        TAP.ok("%s: processes are searched while they work" % name,
               len(self.n) >= n_processes, self.n)
        TAP.none("%s: what is in use is not listed" % name, [
            found - lost for found in self.lost.values() if found - lost])
        # A thread may be too busy to be stopped now and then.
        TAP.ok("%s: most searches have a result" % name,
               4 * len(self.none) <= sum(self.n.values()), self.none)


def until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so() and time.monotonic() < end:
        time.sleep(0.1)


def postgres(tools):
    user = ["setpriv", "--reuid=postgres", "--regid=postgres",
            "--clear-groups"] if os.getuid() == 0 else []
    folder = FOLDER + "/postgres"
    os.chmod(FOLDER, 0o755)
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    with open(folder + "/work", "w", encoding="ascii") as file:
        file.write(WORK)
    subprocess.run(user + [tools + "/initdb", "-D", folder + "/data", "-U",
                           "tester", "-A", "trust", "--no-sync"], check=True,
                   stdout=subprocess.DEVNULL, cwd=folder)
    env, ours = environment(folder)
    where = ["-h", folder, "-U", "tester", "postgres"]
    with open(folder + "/log", "wb") as log:
        server = subprocess.Popen(user + ours + [
            tools + "/postgres", "-D", folder + "/data", "-k", folder, "-c",
            "listen_addresses=", "-c", "fsync=off", "-c",
            "autovacuum_naptime=1s"], stdout=log, stderr=log, cwd=folder,
            env=env)
    until(lambda: not subprocess.run(
        [tools + "/pg_isready", "-q"] + where[:4], check=False).returncode)
    subprocess.run([tools + "/pgbench", "-i", "-q"] + where, check=False,
                   stderr=subprocess.DEVNULL)
    searches = Searches(folder)
    for words in (["-R", RATES[0]],
                  ["-R", RATES[1], "-n", "-f", folder + "/work"]):
        with subprocess.Popen(
                [tools + "/pgbench", "-c", "8", "-j", "2", "-T", str(LOAD_S)] +
                words + where, text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT) as load:
            searches.during(load)
            TAP.has("postgres: no transaction fails", load.stdout.read(),
                    "failed transactions: 0 ")
    searches.round()  # of those that are idle
    os.kill(server.pid, signal.SIGINT)
    TAP.same("postgres: it ends as ever", server.wait(PATIENCE), 0)
    searches.judge("postgres", 12, LOST_BY_POSTGRES)
    TAP.ok("postgres: what it has lost is found in each process", all(
        found == LOST_BY_POSTGRES for found in searches.lost.values()),
        searches.lost)


PYTHON = """
import json, re, threading, time
def work():
    while True:
        texts = [json.dumps({str(i): [i] * 9}) for i in range(300)]
        sum(len(json.loads(t)) for t in texts if re.search("2.*5", t))
        time.sleep(0.05)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
work()
"""

BASH = """exec 9<> <(:)
while read -rt 0.02 -u 9; [ $? -gt 128 ]; do a=(); for i in {1..300}; do a+=("$i $RANDOM"); done
    b=$(echo "${a[@]}"); declare -A m; m[$RANDOM]=${b//1/22}; unset m; done"""

SQL = "create table t(a integer primary key, b text);" + """
with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
  insert into t select null, hex(randomblob(i % 90)) from n;
create index i on t(b);
select count(*), max(b), length(group_concat(b)) from t where a % 7 > 2;
delete from t; drop index i;
""" * 3000


def single(name, words, text=None, load=None):
    """A program that works until it is killed; it may be given a text, and a
    load."""
    folder = FOLDER + "/" + name
    os.mkdir(folder)
    env, ours = environment(folder)
    with open(folder + "/input", "w", encoding="ascii") as file:
        file.write(text or "")
    with open(folder + "/input", encoding="ascii") as file:
        process = subprocess.Popen(ours + words, env=env, cwd=folder,
                                   stdin=file, stdout=subprocess.DEVNULL)
    until(lambda: glob.glob(folder + "/*.sock"))
    searches = Searches(folder)
    with subprocess.Popen(load or ["sleep", str(LOAD_S // 2)], cwd=folder,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as load:
        searches.during(load)
    TAP.same("%s: it goes on" % name, process.poll(), None)
    process.kill()
    process.wait()
    searches.judge(name, 1, set())


def redis():
    """The server and the checker are one program, which looks at its name."""
    shutil.copy(shutil.which("redis-check-rdb"), FOLDER + "/redis-server")
    single("redis", [FOLDER + "/redis-server", "--port", "0", "--unixsocket",
                     "socket", "--save", "", "--appendonly", "yes"], None,
           ["sh", "-c", "until redis-cli -s socket ping; do sleep 0.1; "
            "done; for i in 1 2 3 4 5 6; do redis-benchmark -s socket -q "
            "-n 1500 -c 20 -t set,get,lpush,lrange_100,hset,zadd; "
            "sleep 0.3; done"])


def at_end(name, words):
    path = FOLDER + "/at_end"
    env = dict(environment("")[0], LD_PRELOAD=LIBRARY,
               CPPROF="heapleak=1,debug=1,out=" + path)
    done = subprocess.run(words, env=env, check=False, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    TAP.same("%s ends well" % name, (done.returncode, done.stderr), (0, ""))
    with open(path, encoding="utf-8") as file:
        TAP.matches("%s has lost nothing" % name,
                    "^heapleak profile: total 0$", file.read())
    os.remove(path)


def compiler():
    """cc1 itself, not its driver."""
    path = subprocess.run(["gcc", "-print-prog-name=cc1"], text=True,
                          capture_output=True, check=False).stdout.strip()
    with open(FOLDER + "/t.c", "w", encoding="ascii") as file:
        file.write("int g(int);\n" + "".join(
            "int f%d(int n) { int s = 0; while (n) s += g(n--) * s; return s; }\n"
            % i for i in range(200)))
    at_end("cc1", [path, "-quiet", "-O2", "-g", FOLDER + "/t.c", "-o",
                   FOLDER + "/t.s"])


def git():
    subprocess.run(["sh", "-ec", """git init -q "$1"; cd "$1"
        for i in 1 2 3; do seq $i 999 >f; git add f
        git -c user.name=a -c user.email=a@b commit -qm $i; done""", "sh",
                    FOLDER + "/git"], check=True)
    at_end("git", ["git", "-C", FOLDER + "/git", "log", "-p", "--stat"])


def main():
    tools = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if tools and shutil.which("setpriv"):
        postgres(tools[-1])
    else:
        TAP.skip("postgres", "not installed")
    for name, needs, play in (
            ("python3", "/usr/bin/python3", lambda: single(
                "python3", ["/usr/bin/python3", "-c", PYTHON])),
            ("bash", "bash", lambda: single("bash", ["bash", "-c", BASH])),
            ("sqlite3", "sqlite3", lambda: single("sqlite3", ["sqlite3", "db"],
                                                  SQL)),
            ("redis", "redis-check-rdb", redis),
            ("git", "git", git),
            ("cc1", "gcc", compiler)):
        if shutil.which(needs):
            play()
        else:
            TAP.skip(name, "not installed")
    return TAP.end()


sys.exit(main())
