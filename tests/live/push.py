#!/usr/bin/env python3
"""Profiles that are pushed, and the servers that take them or do not.

    push.py PROGRAM [B_SANITIZE [CHECK...]]

Most of it is waiting, so checks run side by side, each in a process of its own.
PROGRAM is push_worker.c. Prints TAP. What arrives is read by decoders of
others: protoc with the published definitions, Python's parsers of multipart
and of URLs, `go tool pprof`. TSan comes without the names that are taken over,
so without the hooks of fork and of the process's beginning and end.
"""
import base64
import concurrent.futures
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
from push_messages import (check_budget, check_custom, check_every, check_ingest,
    check_otlp, check_otlp_answers, check_parca, check_pprof, check_push,
    check_split, check_sums)  # noqa: E402
from push_program import (FOLDER, HAS_HOOKS, KINDS, PROGRAM, SANITIZER, TAP,
    Ran, go_reads, run_by)  # noqa: E402
from push_server import (Profile, Pushed, Server, closed_port,
    pushed)  # noqa: E402
from push_servers import (check_away, check_bound, check_long_refusals,
    check_never_small_enough, check_odd_answers, check_refused, check_silent,
    check_too_large, check_try_again)  # noqa: E402

# ------------------------------------------------------------- credentials --

def authorization(words, env=None, user_info=""):
    with Server() as server:
        ran = run_by("cpu,push=%s,push-interval=1,%s" % (
            server.url.replace("//", "//" + user_info), words),
            "quiet=300", env=env or {})
        found = {r.headers.get("Authorization") for r in server.requests}
        tenants = {r.headers.get("X-Scope-OrgID") for r in server.requests}
    return found, tenants, ran


def basic(text):
    return {"Basic " + base64.b64encode(text.encode()).decode()}


def check_credentials():
    token = os.path.join(FOLDER, "token")
    with open(token, "w", encoding="ascii") as file:
        file.write("s3cret\nmore\n")
    found = authorization("push-token-file=" + token)
    TAP.same("credentials: the first line of a file", found[0],
             {"Bearer s3cret"})
    found = authorization("push-user=123,push-token-file=" + token)
    TAP.same("credentials: with a user it is the password", found[0],
             basic("123:s3cret"))
    found = authorization("", {"PYROSCOPE_AUTH_TOKEN": "t1",
                               "PYROSCOPE_TENANT_ID": "red"})
    TAP.same("credentials: the token that Pyroscope's clients take",
             found[:2], ({"Bearer t1"}, {"red"}))
    found = authorization("", {"PYROSCOPE_BASIC_AUTH_USER": "me",
                               "PYROSCOPE_BASIC_AUTH_PASSWORD": "pw"})
    TAP.same("credentials: user and password of theirs", found[0],
             basic("me:pw"))
    found = authorization("", user_info="me:p%40w@")
    TAP.same("credentials: in the URL", found[0], basic("me:p@w"))
    found = authorization("push-token-file=%s/none" % FOLDER)
    TAP.ok("credentials: without the file nothing is sent, and it is said",
           not found[0] and "there is no token" in found[2].err,
           found[2].err)
    ran = run_by("cpu,push=http://me:hidden@127.0.0.1:%d,push-interval=1"
                 % closed_port(), "quiet=200")
    TAP.ok("credentials: are not in what is said",
           "hidden" not in ran.err and "127.0.0.1" in ran.err
           and ran.err.startswith("cpprof: push: "), ran.err)


def check_rotation_of_tokens():
    token = os.path.join(FOLDER, "changing")
    with open(token, "w", encoding="ascii") as file:
        file.write("one\n")

    def change(server):
        while not server.requests:
            time.sleep(0.05)
        with open(token, "w", encoding="ascii") as file:
            file.write("two\n")

    with Server() as server:
        threading.Thread(target=change, args=(server,), daemon=True).start()
        run_by("cpu,push=%s,push-interval=1,push-token-file=%s"
               % (server.url, token), "quiet=2400")
        found = [r.headers["Authorization"] for r in server.requests]
    TAP.ok("credentials: a file that changes is read anew",
           found[0] == "Bearer one" and found[-1] == "Bearer two", found)


# ----------------------------------------------------------------- the end --

def end_by(how):
    if not HAS_HOOKS:
        return
    with Server() as server:
        ran = run_by("cpu,push=%s,push-interval=60" % server.url,
                     "burn=300", "end=" + how)
        got = [Profile(p.raw).total(0) for p in pushed(server)]
    TAP.ok("end: %s sends what there is" % how, ran.status == 7
           and len(got) == 1 and got[0] > 10, ran.status, got, ran.err)
    with Server(["silence"] * 99) as server:
        ran = run_by("push=%s,push-interval=1" % server.url, "work=1500",
                     "end=" + how)
    # It is silent for 30 s.
    TAP.ok("end: %s does not wait for a server that is silent" % how,
           ran.status == 7 and ran.seconds < 1.5 + 2 + 0.5 + 6,
           ran.status, ran.seconds)
    TAP.has("end: %s says that it was" % how, ran.err,
            ": no answer before the end; dropped (dropped: ")


def slowly(file):
    time.sleep(0.6)
    file.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def check_end_at_once():
    """One after the other the five would take longer than there is time."""
    for _ in range(5):
        with Server([slowly] * 9) as server:
            ran = run_by("push=%s,push-interval=60" % server.url, "work=300",
                         "end=exit")
            kinds = {Pushed(r).kind for r in server.requests}
        if ran.status != 7 or ran.err == "":
            break
    TAP.same("end: a server that takes its time has all kinds",
             (ran.status, kinds, ran.err), (7, KINDS, ""))


def check_slow_names():
    """No name server answers; the resolver's thread is not to be ended."""
    library = os.path.join(os.path.dirname(PROGRAM), "slow_names.so")
    for how, status in (("exit", 7), ("_exit", 7), ("thread", 0)):
        ran = run_by("push=http://pyroscope.example:4040,push-interval=1",
                     "work=1500", "end=" + how, env={"LD_PRELOAD": library})
        TAP.ok("names: %s does not wait for the resolver" % how,
               ran.status == status, ran.status, ran.err)
        TAP.ok("names: %s says what is lost" % how,
               re.search(r"dropped: \d", ran.err) and
               "Could not resolve" not in ran.err, ran.err)
    ran = Ran("http://pyroscope.example:4040", "kinds=1", "interval=1",
              "quiet=1500", "stop", "again", "stop",
              env={"LD_PRELOAD": library})
    TAP.ok("names: stop does not wait, either", ran.status == 0
           and len(re.findall(r"^stop ", ran.out, re.M)) == 2, ran.out)


def check_exit():
    end_by("exit")


def check_exit_at_once():
    end_by("_exit")


def check_quick_exit():
    end_by("quick")


def check_end_of_openssl():
    """What is sent first at the end, when the program's OpenSSL has ended."""
    if SANITIZER != "none":
        return
    library = os.path.join(os.path.dirname(os.path.abspath(PROGRAM)), "..",
                           "..", "libcpprof.so")
    words = "push=http://127.0.0.1:%d,push-interval=60" % closed_port()
    done = subprocess.run(
        [sys.executable, "-c", "import ssl; ssl.create_default_context()"],
        env=dict(os.environ, LD_PRELOAD=library, CPPROF=words),
        stderr=subprocess.PIPE, check=False)
    TAP.ok("end: a program whose OpenSSL ended before ends as it does alone",
           done.returncode == 0 and b"cpprof: push: " in done.stderr,
           done.returncode, done.stderr)


def check_end():
    if SANITIZER == "none":  # the variable is not read elsewhere
        ran = run_by("cpu,push=http://127.0.0.1:%d,push-interval=1"
                     % closed_port(), "quiet=2600", "end=exit")
        TAP.ok("end: what was tried for the last time is not tried again",
               ran.err.count("trying again") == 1 and
               re.search(r"; dropped \(dropped: \d+\)\n$", ran.err), ran.err)
    with Server(["silence"] * 99) as server:
        ran = Ran(server.url, "interval=1", "work=1200", "stop", "again",
                  "stop")
    times = [float(t) for t in re.findall(r"^stop (.*)$", ran.out, re.M)]
    TAP.ok("end: stop is bounded, and one may start again",
           ran.out.count("start OK") == 2 and times and max(times) < 6,
           ran.out)


# --------------------------------------------------------------------- TLS --

def check_tls():
    if not shutil.which("openssl"):
        TAP.skip("TLS", "no openssl here")
        return
    key, certificate = FOLDER + "/key.pem", FOLDER + "/certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
         "1", "-subj", "/CN=localhost", "-addext", "subjectAltName="
         "DNS:localhost", "-keyout", key, "-out", certificate], check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Server() as server:
        server.http.socket = context.wrap_socket(server.http.socket,
                                                 server_side=True)
        words = "cpu,push=%s,push-interval=1" % server.url.replace(
            "http://127.0.0.1", "https://localhost")
        ran = run_by(words, "quiet=1300", "end=exit")
        TAP.ok("TLS: a certificate that nobody vouches for is refused",
               not server.requests and re.search(
                   "certificate (problem|verification)", ran.err)
               and ran.status == 7, ran.err, ran.status)
        ran = run_by(words, "quiet=1300", "end=exit",
                     env={"SSL_CERT_FILE": certificate})
        TAP.ok("TLS: and one that is believed is not", ran.status == 7
               and server.requests and not ran.err, ran.err, ran.status)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ran = run_by("cpu,push=https://localhost:%d,push-interval=1"
                     % silent.getsockname()[1], "quiet=1300", "end=exit")
    TAP.ok("TLS: a process ends in the middle of a handshake",
           ran.status == 7 and ran.seconds < 12, ran.status, ran.seconds)


# -------------------------------------------------------------- processes ---

def check_fork():
    if not HAS_HOOKS:
        return
    with Server() as server:
        ran = run_by("cpu,push=%s,push-interval=2,push-label=pid=%%p"
                     % server.url, "fork=300", "fork=4000")
        pids = [p.labels["pid"] for p in pushed(server)]
    children = re.findall(r"^child (\d+)$", ran.out, re.M)
    TAP.ok("fork: a child of less than an interval sends nothing",
           children[0] not in pids, pids, children)
    TAP.ok("fork: a longer one sends its own", children[1] in pids, pids,
           children)
    TAP.ok("fork: its parent goes on", len(set(pids) - set(children)) == 1,
           pids, children)
    with Server() as server:
        ran = Ran(server.url, "interval=1", "labels=pid=%p", "fork=2500")
        pids = {p.labels["pid"] for p in pushed(server)}
    TAP.same("fork: a program that asked itself has not asked for children",
             len(pids), 1)


def check_manners():
    with Server() as server:
        ran = run_by("push=%s,push-interval=1" % server.url, "work=1500",
                     "fds", "threads", "quiet=900", "maps=libcurl")
        threads = [Profile(p.raw) for p in pushed(server)
                   if p.kind == "goroutine"]
    TAP.same("manners: no descriptor of the program's table", ran.word("fds"),
             "3")
    n, n_open = map(int, ran.word("threads").split())
    TAP.ok("manners: threads block all signals", n >= 2 and n_open == 0,
           ran.word("threads"))
    TAP.same("manners: they are in no profile", threads[-1].total(0), 1)
    TAP.same("manners: libcurl is there", ran.word("maps"), "libcurl yes")
    ran = run_by("cpu,push=%s/quiet,push-interval=1" % FOLDER, "work=1200",
                 "maps=libcurl")
    TAP.same("manners: and not for files", ran.word("maps"), "libcurl no")


def check_names():
    """What a program is called, and what labels have, may be anything."""
    program = os.path.join(FOLDER, "my app,1")
    shutil.copy(PROGRAM, program)
    library = os.path.join(os.path.dirname(PROGRAM), "..", "..")
    for name in ("", "parca+"):
        with Server() as server:
            done = subprocess.run(
                [program, "-", "quiet=300"], capture_output=True, check=False,
                env=dict(os.environ, LD_LIBRARY_PATH=library,
                         CPPROF=b"cpu,push=%s,push-name=%%e,push-label=exe=%%e,"
                         b"push-label=a=\xff\xc3\xa9" % (
                             name + server.url).encode()))
            body = server.requests[0].body if server.requests else b""
        TAP.ok("names: %%e of any program, %s" % (name or "push"), done.returncode
               == 0 and not done.stderr and body.count(b"my_app_1") == 2,
               done.stderr, body[:300])
        TAP.ok("names: labels are UTF-8, %s" % (name or "push"),
               "\ufffd\u00e9".encode() in body and b"\xff\xc3\xa9" not in body,
               body[:300])


def check_words():
    wrong = {
        "push=ftp://x": "neither", "push=rel/ative": "neither",
        "push=http://me:pass/word@host": "is written %2F",
        "push=http://": "neither", "push=http://a/?x=1": "neither",
        "push=/x/%t/%k": "place", "push=http://a,push-name=a b": "push-name has other",
        "push=http://a,push-label=9=x": "push-label=9=x is no label",
        "push=http://a,push-label=a=1,push-label=a=2": "taken",
        "push=http://a,push-interval=0": "1 to 3600",
        "push=http://a,push-every=5": "no less than",
        "push=http://a,push-protocol=grpc": "push, ingest, otlp, pprof or parca",
        "push=http://a,budget=101%": "such as 1%",
        "push=http://a,budget=1": "such as 1%",
        "push=http://a,budget=0.0%": "such as 1%",
        "budget=1%": "without push=",
        "push-name=x": "without push=", "push=http://a,record=/x": "beside",
        "push=http://a,debug=1": "protobuf",
    }
    for words, part in wrong.items():
        ran = run_by(words, "quiet=1")
        part = part.replace("neither", "no http:// or https:// URL")
        TAP.ok("words: %s" % words, ran.status == 0 and part in ran.err
               and "pass/word" not in ran.err
               and ran.err.count("\n") == 1, ran.err)
    check_names()
    ran = Ran("http://127.0.0.1:1", "kinds=128", "quiet=1")
    TAP.ok("words: a kind that there is not", "INVALID" in ran.out, ran.out)
    with Server() as server:
        ran = Ran(server.url, "interval=1", "again")
    TAP.ok("words: once at a time", "BUSY" in ran.out, ran.out)


# ------------------------------------------------------------------- files --

def check_files():
    folder = os.path.join(FOLDER, "kept")
    ran = run_by("cpu,heap,push=%s,push-interval=1,push-keep=2" % folder,
                 "work=4500")
    names = sorted(os.listdir(folder))
    TAP.same("files: the newest two of each kind, and nothing else",
             [re.sub(r"\.\d+\.\d+\.", ".P.T.", name) for name in names],
             ["cpu.P.T.pb.gz"] * 2 + ["heap.P.T.pb.gz"] * 2)
    TAP.same("files: nothing is said", (ran.status, ran.err), (0, ""))
    raws = []
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            raws.append(file.read())
    if shutil.which("go"):
        TAP.ok("files: go tool pprof reads each", all(map(go_reads, raws)))
    TAP.same("files: a folder that is made is its user's alone",
             oct(os.stat(folder).st_mode & 0o777), "0o700")
    pattern = os.path.join(FOLDER, "%e-%k", "%p-%t.gz")
    run_by("goroutine,push=file://%s,push-interval=1" % pattern, "work=1300")
    made = os.listdir(os.path.join(FOLDER, "push_worker-goroutine"))
    TAP.ok("files: a pattern", len(made) == 2 and all(
        re.fullmatch(r"\d+-\d+\.gz", name) for name in made), made)
    pattern = os.path.join(FOLDER, "shared", "%k-%t.gz")
    # Each makes one, at its end.
    threads = [threading.Thread(target=run_by, args=(
        "goroutine,symbolize=none,push=%s,push-interval=600" % pattern,
        "work=300"))
               for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = os.listdir(os.path.join(FOLDER, "shared"))
    TAP.ok("files: of processes with the same name and second none is lost",
           len(made) == 12 and all(re.fullmatch(r"goroutine-\d+\.gz", name)
                                   for name in made), made)
    blocked = os.path.join(FOLDER, "blocked")
    with open(blocked, "w", encoding="ascii"):
        pass
    ran = run_by("cpu,push=%s,push-interval=1" % blocked, "work=2300")
    TAP.ok("files: where there can be none it is said once, and at the end",
           ran.status == 0 and ran.err.count("\n") == 2
           and ran.err.count("Not a directory") == 2, ran.err)
    TAP.ok("files: with the number of those that are lost", sum(
        int(n) for n in re.findall(r"\(dropped: (\d+)\)", ran.err)) >= 3,
        ran.err)


# ASan's malloc is its own, so there is no heap profile; and it does not know
# that threads of a forked child have the stacks of its parent's threads.
NOT_ASAN = [check_push, check_otlp, check_ingest, check_sums, check_files,
            check_fork, check_split, check_every, check_parca, check_pprof,
            check_custom, check_end_at_once, check_slow_names, check_too_large,
            check_never_small_enough]


def check_without_heap():
    """What cannot be had is said once, and the others come."""
    with Server() as server:
        ran = run_by("push=%s,push-interval=1" % server.url, "work=2300")
        kinds = {p.kind for p in pushed(server)}
    TAP.same("no heap: the others come", kinds, KINDS - {"memory"})
    TAP.ok("no heap: it is said once", ran.err.count("\n") == 1
           and "allocations do not come" in ran.err, ran.err)


def runs(check):
    """Does the sanitizer have what it takes?"""
    if SANITIZER == "none":
        return check != check_without_heap
    return check not in NOT_ASAN if HAS_HOOKS else check in (check_bound,
                                                            check_end)


# The longest first.
CHECKS = [check_too_large, check_custom, check_silent, check_odd_answers, check_bound, check_away, check_try_again,
          check_split, check_every, check_budget, check_parca, check_pprof, check_files, check_sums,
          check_fork, check_tls, check_without_heap, check_exit,
          check_exit_at_once, check_quick_exit, check_end, check_end_at_once,
          check_slow_names,
          check_end_of_openssl, check_push,
          check_ingest, check_otlp, check_otlp_answers, check_credentials, check_rotation_of_tokens,
          check_never_small_enough, check_refused, check_long_refusals, check_manners, check_words]
AT_ONCE = 5


def run_alone(check):
    return subprocess.run(
        [sys.executable, os.path.abspath(__file__), PROGRAM, SANITIZER,
         check.__name__], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        check=False)


def tell_again(check, done):
    """Under numbers of ours; that it broke off counts, too."""
    for line in done.stdout.decode(errors="replace").splitlines():
        found = re.match(r"(not )?ok \d+ - (.*?)(?: # SKIP (.*))?$", line)
        if found and found[3]:
            TAP.skip(found[2], found[3])
        elif found:
            TAP.ok(found[2], not found[1])
        elif line.startswith("#"):
            print(line)
    if not re.search(rb"^1\.\.\d+$", done.stdout, re.M):
        TAP.ok("%s comes to its end" % check.__name__, False,
               done.stderr.decode(errors="replace"))


def main():
    if not shutil.which("protoc"):
        print("1..0 # SKIP no protoc")
        return 0
    named = sys.argv[3:]
    if named:
        for check in CHECKS:
            if check.__name__ in named:
                check()
    else:
        checks = [check for check in CHECKS if runs(check)]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for check, done in zip(checks, pool.map(run_alone, checks)):
                tell_again(check, done)
    shutil.rmtree(FOLDER, ignore_errors=True)
    return TAP.end()


if __name__ == "__main__":
    sys.exit(main())
