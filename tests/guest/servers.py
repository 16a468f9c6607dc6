"""Servers of others, for programs.py: each is asked by its own clients and then
told to end."""
import functools
import glob
import hashlib
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

from cell import (
    NOBODY, blank, connects, free_port, lines_of, program, until)

SECONDS = float(os.environ.get("SECONDS", "10"))


def pid_in(cell, name):
    """Of a server that writes it into a file."""
    path = cell.path(name)
    if not until(lambda: os.path.exists(path) and cell.read(name).strip()):
        folder = os.path.dirname(path)
        raise RuntimeError("no %s: %s" % (path, os.path.isdir(folder) and
                                          sorted(os.listdir(folder))))
    return int(cell.read(name))


def workers_of(pid):
    """Its children."""
    found = set()
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        try:
            with open(path, encoding="ascii") as file:
                found |= set(file.read().split())
        except OSError:
            pass  # that thread has just ended
    return found


def owners(pid):
    """Whose the children of that process are."""
    found = set()
    for child in workers_of(pid):
        try:
            with open("/proc/%s/status" % child, encoding="ascii") as status:
                found |= set(re.findall(r"^[UG]id:.*", status.read(), re.M))
        except OSError:
            pass  # it has just ended
    return sorted(found)


# ---- nginx -------------------------------------------------------------------

NGINX = """
user nobody nogroup;
pid nginx.pid;
error_log errors warn;
worker_processes 2;
events { worker_connections 256; }
http {
    access_log off;
    client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f;
    uwsgi_temp_path u; scgi_temp_path s;
    server { listen 127.0.0.1:%d; root files; }
}
"""


class Scraper(threading.Thread):
    """Asks the process for its profiles each second, if it serves them."""

    def __init__(self, path):
        super().__init__()
        self.path, self.n, self.failed = path, 0, []
        self.end = threading.Event()

    def ask(self, name):
        client = http.client.HTTPConnection("x", timeout=60)
        client.sock = socket.socket(socket.AF_UNIX)
        client.sock.settimeout(60)
        client.sock.connect(self.path)
        client.request("GET", "/debug/pprof/" + name)
        answer = client.getresponse()
        body = answer.read()
        client.close()
        if answer.status != 200 or not body:
            raise OSError("%s: %s" % (name, answer.status))

    def run(self):
        names = ["heap", "profile?seconds=1", "goroutine?debug=2", "mutex",
                 "wall?seconds=1", "block"]
        while os.path.exists(self.path) and not self.end.wait(1):
            try:
                self.ask(names[self.n % len(names)])
                self.n += 1
            except (OSError, http.client.HTTPException) as error:
                self.failed.append(repr(error))


def serve(cell, seconds, reloads):
    """(what is to be the same)"""
    port = free_port()
    os.mkdir(cell.path("files"))
    cell.write("files/index.html", "hello\n" * 200)
    cell.write("conf", NGINX % port)
    words = ["nginx", "-e", "errors", "-p", cell.folder, "-c",
             cell.path("conf"), "-g", "daemon off;"]
    server = cell.start(words)
    text = "serves: %s\n" % until(lambda: connects(port))
    until(lambda: os.path.exists(cell.path("nginx.pid")) and
          cell.read("nginx.pid").strip())
    master = int(cell.read("nginx.pid"))
    scraper = Scraper("%s/%d.sock" % (cell.profiles, master))
    scraper.start()
    load = subprocess.Popen(
        ["wrk", "-t1", "-c16", "-d%ds" % seconds, "-H", "Connection: close",
         "http://127.0.0.1:%d/" % port], stdout=subprocess.PIPE, text=True)
    if reloads:
        until(lambda: set(re.findall(r"\d+", str(owners(master)))) ==
              {"65534"}, 5)
        text += "workers: %s\n" % owners(master)
        end = time.monotonic() + seconds - 1
        asked = set()
        while time.monotonic() < end:
            asked.add(cell.alone(["nginx", "-e", "errors", "-p", cell.folder,
                                  "-c", cell.path("conf"), "-s", "reload"]))
            time.sleep(1)
        text += "reloads: %s\n" % asked
    said = load.communicate()[0]
    cell.work = int(re.search(r"(\d+) requests in", said).group(1))
    text += lines_of("^.*(?:errors|Non-2xx).*$", said)
    scraper.end.set()
    scraper.join()
    os.kill(master, signal.SIGQUIT)
    text += "%s %s %s\n" % server.end()
    text += "failed scrapes: %s\n" % scraper.failed
    cell.said.append("%d scrapes" % scraper.n)
    return text + "errors: " + lines_of(r"\[(?!notice).*", blank(
        r"\d+#\d+", cell.read("errors")))


@program("nginx", "root", "nginx", "wrk")
def nginx(cell):
    """CPU time is that of a request."""
    return serve(cell, SECONDS / 2, False)


@program("nginx, a reload each second, scraped", "root", "nginx", "wrk")
def nginx_reloads(cell):
    return serve(cell, SECONDS, True)


# ---- databases ---------------------------------------------------------------

def postgres_tool(name):
    return sorted(glob.glob("/usr/lib/postgresql/*/bin/" + name))[-1]


@functools.lru_cache
def postgres_data(scratch):
    """An empty cluster and its tables, made once."""
    data = os.path.join(scratch, "postgres")
    subprocess.run(["install", "-d", "-o", "65534", "-g", "65534", data],
                   check=True)
    subprocess.run(NOBODY + [postgres_tool("initdb"), "-D", data + "/data",
                             "--no-sync", "-A", "trust", "-U", "nobody"],
                   check=True, stdout=subprocess.DEVNULL)
    return data


def transactions(cell, words):
    data = cell.path("postgres")
    subprocess.run(["cp", "-a", postgres_data(cell.scratch), data], check=True)
    server = cell.start(NOBODY + [
        postgres_tool("postgres"), "-D", data + "/data", "-k", data, "-c",
        "listen_addresses=", "-c", "fsync=off", "-c",
        "log_line_prefix="])
    there = ["-h", data, "-U", "nobody"]
    until(lambda: "status 0" in cell.alone(
        [postgres_tool("pg_isready")] + there))
    text = cell.alone([postgres_tool("pgbench"), "-i", "-q"] + there + ["postgres"])[:8]
    said = cell.alone([postgres_tool("pgbench"), "-n"] + words + there + ["postgres"])
    text += lines_of("^.*(?:processed|failed|aborted|rror).*$", said)
    text += cell.alone([postgres_tool("psql"), "-At"] + there + ["postgres", "-c", """
        select count(*) from pgbench_history;
        select (select sum(abalance) from pgbench_accounts) =
               (select sum(delta) from pgbench_history),
               (select sum(tbalance) from pgbench_tellers) =
               (select sum(bbalance) from pgbench_branches);"""])
    text += cell.alone([postgres_tool("pg_amcheck"), "--install-missing", "-d", "postgres"]
                       + there)[:200]
    text += cell.alone(NOBODY + [postgres_tool("pg_ctl"), "stop", "-m", "fast",
                                 "-D", data + "/data"])[:8]
    status, out, err = server.end()
    return text + "%s %s %s" % (status, out, lines_of(
        "^(?!.*(?:checkpoint|database system is|starting Post|shut|LOG:.*exit"
        "|does not exist)).*$", err))


@program("postgres, pgbench -C", "root", "psql")
def postgres_connections(cell):
    return transactions(cell, ["-C", "-c", "4", "-t", "250"])


@program("postgres, pgbench", "root", "psql")
def postgres(cell):
    return transactions(cell, ["-c", "4", "-t", "1500"])


@program("redis", "redis-benchmark", "redis-check-rdb")
def redis(cell):
    """redis-server and the checker are one program, which looks at its name."""
    os.symlink(shutil.which("redis-check-rdb"), cell.path("redis-server"))
    server = cell.start([
        cell.path("redis-server"), "--port", "0", "--unixsocket",
        cell.path("s"), "--save", "", "--appendonly", "yes", "--appendfsync",
        "no", "--logfile", cell.path("log")])
    ask = ["redis-cli", "-s", cell.path("s")]
    until(lambda: "PONG" in cell.alone(ask + ["ping"]))
    text = lines_of(r"^[A-Z_]+.*: (?=[\d.]+ requests per)|.*rror.*", cell.alone(
        ["redis-benchmark", "-s", cell.path("s"), "-q", "-n", "60000", "-c",
         "20", "-P", "4", "-t", "set,get,incr,lpush,lrange_100,hset,zadd"]))
    text += cell.alone(ask + ["eval", "local s = 0 for i = 1, 3000000 do "
                              "s = (s + i * i) % 65537 end return s", "0"])
    text += cell.alone(ask + ["bgsave"])
    until(lambda: "rdb_bgsave_in_progress:0" in cell.alone(
        ask + ["info", "persistence"]))
    text += cell.alone(ask + ["bgrewriteaof"])
    until(lambda: "aof_rewrite_in_progress:0" in cell.alone(
        ask + ["info", "persistence"]))
    text += lines_of(r"^.*status:.*$", cell.alone(ask + ["info",
                                                         "persistence"]))
    # In an order of its own each time.
    text += "\n".join(sorted(re.findall(
        r"cmdstat_(?!info|ping)\w+:calls=\d+", cell.alone(
            ask + ["info", "commandstats"])))) + "\n"
    text += lines_of(r"^total_error_replies.*", cell.alone(
        ask + ["info", "stats"]))
    text += cell.alone(ask + ["shutdown"])
    text += cell.alone(["redis-check-rdb", "dump.rdb"])[:8]
    text += "%s %s %s" % server.end()
    text += lines_of("^.*(?:# .*(?:rror|rash|ail)).*$", cell.read("log"))
    return blank(r"\d+:[A-Z] \d+ \w+ \d+ [\d:.]+", text)


# ---- others ------------------------------------------------------------------

def hash_of(text):
    return hashlib.sha256(text.encode()).hexdigest() + "\n"


def say(port, lines):
    """A client of memcached: all that comes back until a line `quit` ends it."""
    with socket.create_connection(("127.0.0.1", port), 60) as s:
        s.sendall("".join(line + "\r\n" for line in lines + ["quit"]).encode())
        with s.makefile("rb") as answer:
            return answer.read().decode()


@program("memcached", "root", "memcached")
def memcached(cell):
    """Its own allocator, threads that a lock holds, a user that it becomes."""
    port = free_port()
    server = cell.start(["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p",
                         str(port), "-t", "4", "-m", "8", "-P",
                         cell.path("pid")])
    until(lambda: connects(port))
    sums = {}

    def client(k):
        lines = ["set n%d 0 0 1" % k, "0"]
        for i in range(3000):
            value = "v" * (i * 37 % 900 + 1)
            lines += ["set k%d.%d 0 0 %d" % (k, i % 100, len(value)), value,
                      "incr all 1", "incr n%d 2" % k, "get k%d.%d" % (k, i % 100)]
        sums[k] = hash_of(re.sub(r"^\d+\r$", "", say(
            port, lines + ["get n%d" % k]), flags=re.M))

    say(port, ["set all 0 0 1", "0"])
    clients = [threading.Thread(target=client, args=[k]) for k in range(4)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    text = "%s\n%s" % (sorted(sums.items()), say(port, ["get all"]))
    # More than there is room for: what is old is evicted.
    say(port, [word for i in range(3000) for word in (
        "set big%d 0 0 9000" % i, "x" * 9000)])
    text += lines_of(r"^STAT (?:cmd_set|incr_hits|threads|total_connections) .*"
                     r"(?=\r)", say(port, ["stats"]))
    os.kill(pid_in(cell, "pid"), signal.SIGTERM)
    return text + "%s %s %s" % server.end()


UNBOUND = """
server:
    interface: 127.0.0.1@%d
    username: nobody
    chroot: %s
    directory: %s
    pidfile: %s
    num-threads: 3
    incoming-num-tcp: 100
    do-ip6: no
    use-syslog: no
    verbosity: 0
    access-control: 127.0.0.0/8 allow
    local-zone: "test." static
%s
"""


@program("unbound", "root", "unbound", "dig")
def unbound(cell):
    """A user, a root folder, threads with event loops of their own.

    It takes away the file with its process id only where SIGTERM, SIGINT or
    SIGQUIT ends it. What ends it otherwise leaves that file."""
    port = free_port()
    data = "".join('    local-data: "n%d.test. A 10.0.0.%d"\n' % (i, i)
                   for i in range(200))
    folder = cell.path("root")
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    conf = cell.write("root/conf", UNBOUND % (
        port, folder, folder, folder + "/pid", data))
    server = cell.start(["unbound", "-d", "-c", conf])
    text = "serves: %s\n" % until(lambda: connects(port))
    pid = pid_in(cell, "root/pid")
    cell.write("names", "".join("n%d.test. A\n" % (i % 210)
                                for i in range(2000)))
    for how in "+notcp", "+tcp":
        text += cell.alone(["dig", "@127.0.0.1", "-p", str(port), how, "+noall",
                            "+answer", "+tries=1", "+time=60", "-f",
                            cell.path("names")])
        text += "runs: %s, its file is there: %s\n" % (
            server.runs(), os.path.exists(cell.path("root/pid")))
    if server.runs():
        os.kill(pid, signal.SIGTERM)
    return hash_of(text) + text[-200:] + blank(
        r"\[\d+\]|\[\d+:\d\]", "%s %s %s" % server.end())


HAPROXY = """
global
    user nobody
    chroot %s
    nbthread 3
defaults
    mode http
    timeout client 60s
    timeout server 60s
    timeout connect 60s
frontend front
    bind 127.0.0.1:%d
    default_backend back
backend back
    http-response set-header X-Seen yes
    server s 127.0.0.1:%d
frontend inner
    bind 127.0.0.1:%d
    http-request return status 200 content-type text/plain string hello
"""


@program("haproxy, three reloads", "root", "haproxy", "wrk", "curl")
def haproxy(cell):
    """A master that executes itself again, workers in another root folder.

    The inner server has no socket of unix: alone, too, workers of 2.6 with
    several threads and such a server often crash when they end."""
    port, inner = free_port(), free_port()
    os.mkdir(cell.path("root"))
    conf = cell.write("conf", HAPROXY % (cell.path("root"), port, inner, inner))
    server = cell.start(["haproxy", "-W", "-db", "-f", conf, "-p",
                         cell.path("pid")])
    text = "serves: %s\n" % until(lambda: connects(port))
    master = pid_in(cell, "pid")
    for _ in range(3):
        said = cell.alone(["wrk", "-t1", "-c8", "-d1s", "-H",
                           "Connection: close", "http://127.0.0.1:%d/" % port])
        text += lines_of("^.*(?:errors|Non-2xx).*$", said)
        text += cell.alone(["curl", "-s", "-i", "http://127.0.0.1:%d/" % port])
        before = workers_of(master)
        os.kill(master, signal.SIGUSR2)
        text += "reload: %s\n" % until(
            lambda before=before: workers_of(master) - before and
            not workers_of(master) & before)
    text += "workers: %s\n" % owners(master)
    os.kill(master, signal.SIGTERM)
    status, out, err = server.end()
    return text + "%s %s %s" % (status, out, lines_of(
        r"^.*(?:exited with code|\[ALERT\]).*", blank(r"\(\d+\)|\[\d+\]", err)))


def greets(port):
    """sshd says another thing of a client that leaves before its greeting was
    sent, so that is waited for."""
    try:
        with socket.create_connection(("127.0.0.1", port), 60) as s:
            return s.recv(100)
    except OSError:
        return b""


@program("sshd", "root", "sshd", "ssh", "ssh-keygen")
def sshd(cell):
    """Keys, a session each, and the child that seccomp holds."""
    port = free_port()
    os.makedirs("/run/sshd", exist_ok=True)
    os.chmod(cell.folder, 0o755)
    for name in "host", "user":
        cell.alone(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                    cell.path(name)])
    shutil.copy(cell.path("user.pub"), cell.path("keys"))
    cell.write("conf", """
        Port %d
        ListenAddress 127.0.0.1
        HostKey %s
        AuthorizedKeysFile %s
        PidFile %s
        StrictModes no
        UsePAM no
        MaxStartups 100
        LogLevel INFO
        PermitRootLogin yes
        Subsystem sftp internal-sftp
        """ % (port, cell.path("host"), cell.path("keys"), cell.path("pid")))
    text = cell.run(["sshd", "-T", "-f", cell.path("conf")])
    server = cell.start(["/usr/sbin/sshd", "-D", "-e", "-f",
                         cell.path("conf")])
    until(lambda: greets(port))
    ask = ["ssh", "-q", "-p", str(port), "-i", cell.path("user"), "-F", "none",
           "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
           "root@127.0.0.1"]
    text = blank(r"^port.*|listenaddress.*", text)
    for k in range(12):
        text += cell.alone(ask + ["echo %d; id; seq 20000 | sha256sum; env |"
                                  " cut -d= -f1 | sort; exit %d" % (k, k)])
    os.kill(pid_in(cell, "pid"), signal.SIGTERM)
    status, out, err = server.end()
    # Each session has a process of its own, so the order is the kernel's.
    return text + blank(r"port \d+|SHA256:\S+", "%s %s %s" % (
        status, out, "\n".join(sorted(err.splitlines()))))
