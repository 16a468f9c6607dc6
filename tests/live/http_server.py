#!/usr/bin/env python3
"""The server of cpprof_http_listen(), and clients that do not behave.

    http_server.py PROGRAM [B_SANITIZE]

PROGRAM is http_server.c. Prints TAP. A sanitizer makes times longer, and TSan
comes without the names that are taken over, so without the hooks of fork and
of the process's beginning and end.
"""
import concurrent.futures
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

from http_clients import (PROGRAM, HAS_HOOKS, SLOW, FOLDER, CRLF, TAP,
    ALL_ERRORS, IS_OLD, Program, connect, read_all, read_head, read_body, read_answer,
    request, ask, raw, status_of, CMDLINE, HAS_HEAP, HEAP, ALONE)
from http_limits import (TRIES, endless, idle_flood, quickest, slow_heads,
    slow_readers, stalled_is_cut)

# ---------------------------------------------------------------- groups ----

def addresses():
    has_six = os.path.exists("/proc/net/if_inet6") and \
        os.path.getsize("/proc/net/if_inet6")
    for text in ["127.0.0.1:0", "localhost:0"] + ["[::1]:0"] * bool(has_six):
        p = Program(text)
        TAP.same("no thread is there before " + text, p.threads, "threads 1")
        TAP.ok(text + " gets a port", re.match(r"OK .*:[1-9]\d*$", p.said),
               p.said)
        TAP.same("it answers at " + text, ask(p.address, CMDLINE)[0], 200)
        TAP.same("and ends", p.end(), 0)
    path = "unix:" + os.path.join(FOLDER, "s")
    p = Program(path)
    TAP.same("a path is a socket", p.said, "OK " + path)
    mode = os.stat(path[5:]).st_mode
    TAP.same("only for its owner", (stat.S_ISSOCK(mode), mode & 0o777),
             (True, 0o600))
    TAP.same("it answers there, whatever the host", ask(
        path, CMDLINE, host="anything")[0], 200)
    TAP.has("twice is refused", Program(path).said, "Address already in use")
    if HAS_HOOKS:
        p.tell("vfork")
        TAP.ok("a child of vfork that ends leaves it",
               os.path.exists(path[5:]))
        p.end()
        TAP.ok("the end removes it", not os.path.exists(path[5:]))
    p.process.kill()
    p.process.wait()
    p = Program(path)
    p.process.kill()
    p.process.wait()
    TAP.ok("a kill does not", os.path.exists(path[5:]))
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        three = list(pool.map(lambda _: Program(path), range(3)))
    TAP.same("of three at once one replaces it", sorted(
        p.said.split()[0] for p in three), ["OK", "SYSTEM", "SYSTEM"])
    first = [p for p in three if p.said == "OK " + path]
    TAP.same("and serves", [ask(path, CMDLINE)[0] for _ in first], [200])
    for p in three:
        p.process.kill()
        p.process.wait()
    p = Program(path)
    TAP.same("which the next one replaces", p.said, "OK " + path)
    p.end()
    if HAS_HOOKS:
        p = Program(path)
        os.unlink(path[5:])
        other = Program(path)
        p.end()
        TAP.same("the end leaves a socket that another has there since",
                 ask(path, CMDLINE)[0], 200)
        other.end()
    if HAS_HOOKS:
        p = Program("unix:s", before=["sh", "-c", 'cd "$0"; exec "$@"',
                                      FOLDER])
        TAP.same("a path may be relative", p.said, "OK unix:s")
        p.tell("chdir", answers=False)
        p.end()
        TAP.ok("and is removed from wherever the program went",
               not os.path.exists(path[5:]))
    for text, part in [
            ("0.0.0.0:0", "INVALID http: other machines reach 0.0.0.0:0: a "
             "token is needed, or to say insecure"),
            (":0", "INVALID"), ("example.com:80", "INVALID"),
            ("unix:/" + "p" * 200, "at most 107 bytes"),
            ("unix:/does/not/exist", "SYSTEM"),
            ("192.0.2.1:0", "INVALID"), ("127.0.0.1:65536", "INVALID")]:
        p = Program(text)
        TAP.has("refused: " + text[:30], p.said, part)
        p.end()
    p = Program(":0", "flags=2")
    TAP.same("any address with insecure", ask(p.address, CMDLINE)[0], 200)
    p.end()


def token():
    p = Program("127.0.0.1:0", "token=s3cret")
    status, head, body = ask(p.address, CMDLINE)
    TAP.same("without the token it is 401", status, 401)
    TAP.has("which says how", head, b"WWW-Authenticate: Bearer\r\n")
    TAP.has("and go tool pprof shows why", head, b"X-Go-Pprof: 1\r\n")
    TAP.has("in words", body, b"Bearer")
    for given, wanted in [("Bearer s3cret", 200), ("bearer s3cret", 200),
                          ("Bearer s3cre", 401), ("Bearer s3crets", 401),
                          ("Bearer ", 401), ("Basic s3cret", 401)]:
        TAP.same("%s is %d" % (given, wanted), ask(
            p.address, CMDLINE, "Authorization: " + given)[0], wanted)
    TAP.same("with a token any host will do", ask(
        p.address, CMDLINE, "Authorization: Bearer s3cret",
        host="x.example")[0], 200)
    body = b"x" * 100000
    answer = raw(p.address, request(
        "/debug/pprof/symbol", "Content-Length: 100000", "Expect: 100-continue",
        method="POST") + body)
    TAP.same("a body without the token is not waited for", status_of(answer),
             401)
    p.end()
    p = Program("127.0.0.1:0")
    for host, wanted in [("localhost:1", 200), ("127.0.0.1", 200),
                         ("[::1]:9", 200), ("evil.example", 403)]:
        TAP.same("a host of %s is %d" % (host, wanted), ask(
            p.address, CMDLINE, host=host)[0], wanted)
    TAP.same("also in the target", status_of(raw(
        p.address, b"GET http://evil.example" + CMDLINE.encode() +
        b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")), 403)
    for path, site, wanted in [
            ("/debug/pprof/heap", "cross-site", 403),
            ("/debug/pprof/profile?seconds=1", "cross-site", 403),
            ("/debug/pprof/delta_heap", "Cross-Site", 403),
            ("/debug/pprof/uix", "cross-site", 403),
            ("/debug/pprof/ui", "cross-site", 200),
            ("/debug/pprof/", "cross-site", 200),
            (CMDLINE, "same-origin", 200), (CMDLINE, "none", 200)]:
        TAP.same("%s for a page that is %s is %d" % (path, site, wanted), ask(
            p.address, path, "Sec-Fetch-Site: " + site)[0], wanted)
    p.end()
    p = Program("127.0.0.1:0", "flags=2")
    TAP.same("which is not asked for with insecure", ask(
        p.address, CMDLINE, "Sec-Fetch-Site: cross-site")[0], 200)
    TAP.same("not with insecure", ask(p.address, CMDLINE,
                                      host="evil.example")[0], 200)
    p.end()


def protocol():
    p = Program("127.0.0.1:0")
    a = p.address
    want = ask(a, CMDLINE)[2]
    TAP.ok("the command line is the program's", want.startswith(
        PROGRAM.encode()), want)
    s = connect(a)
    for _ in range(3):
        s.sendall(request(CMDLINE))
        TAP.same("a connection is kept", read_answer(s)[::2], (200, want))
    s.sendall(request(CMDLINE) * 5)
    TAP.same("five requests at once are answered in order",
             [read_answer(s)[0] for _ in range(5)], [200] * 5)
    s.sendall(request(CMDLINE, "Connection: close"))
    answer = read_all(s)
    TAP.has("Connection: close is", answer, b"\r\nConnection: close\r\n")
    s.close()
    answer = raw(a, request(CMDLINE, version="1.0", host=None))
    TAP.ok("HTTP/1.0 needs no host and is closed",
           answer.startswith(b"HTTP/1.0 200 OK") and answer.endswith(want), answer)
    s = connect(a)
    s.sendall(request(HEAP, "Connection: keep-alive",
                      version="1.0"))
    answer = read_all(s)
    TAP.ok("HTTP/1.0 gets no chunks", status_of(answer) == 200 and
           b"chunked" not in answer and
           answer.partition(b"\r\n\r\n")[2][:2] == b"\x1f\x8b", answer[:300])
    s.close()
    s = connect(a)
    s.sendall(request("/debug/pprof/", method="HEAD") + request(CMDLINE))
    head = read_head(s)
    status, _, body = read_answer(s)
    TAP.ok("HEAD has headers alone", status_of(head) == 200 and
           (status, body) == (200, want), head, status, body)
    s.close()
    for method in ["PUT", "DELETE", "OPTIONS", "BREW"]:
        TAP.same("%s is as good as GET" % method, ask(
            a, CMDLINE, method=method)[0], 200)
    s = connect(a)
    s.sendall(request("/debug/pprof/symbol", "Content-Length: 3",
                      "Expect: 100-continue", method="POST"))
    TAP.same("100-continue is said", read_head(s),
             b"HTTP/1.1 100 Continue\r\n\r\n")
    s.sendall(b"0x1")
    TAP.same("and the body read", read_answer(s)[0::2],
             (200, b"num_symbols: 1\n"))
    s.sendall(request("/debug/pprof/symbol", "Transfer-Encoding: chunked",
                      method="POST"))
    for piece in [b"2\r", b"\n0x", b"\r\n1;a=b\r\n1\r\n", b"0\r\nA: b\r\n\r\n"]:
        s.sendall(piece)
        time.sleep(0.02)
    TAP.same("a body of chunks, too", read_answer(s)[0::2],
             (200, b"num_symbols: 1\n"))
    s.close()
    s = connect(a)
    for byte in request(CMDLINE):
        s.sendall(bytes([byte]))
    TAP.same("byte by byte", read_answer(s)[0], 200)
    s.close()
    # What has no method and target is closed without a word; a value ends at a
    # NUL for all who read it here, so this host is "a". libmicrohttpd of Debian
    # 11 has other words for three of them, or none.
    for name, data, wanted in [
            ("garbage", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 0),
            ("no host", b"GET / HTTP/1.1\r\n\r\n", 400),
            ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
             400 if IS_OLD else 505),
            ("a NUL", b"GET / HTTP/1.1\r\nHost: a\0\r\n\r\n", 403),
            ("a folded header", b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
             400),
            ("two lengths", request("/", "Content-Length: 1",
                                    "Content-Length: 2"), 400),
            ("a length beside chunks", request(
                "/", "Content-Length: 1", "Transfer-Encoding: chunked"), 400),
            ("an unknown coding", request("/", "Transfer-Encoding: gzip"),
             501),
            ("a bad chunk", request("/", "Transfer-Encoding: chunked") +
             b"zz\r\n", 0 if IS_OLD else 400),
            ("a long target", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
             414),
            ("long headers", request("/", "A: " + "a" * 9000),
             404 if IS_OLD else 431),
            ("many headers", request("/", *["A: a"] * 2000), 431),
            ("a large body", request("/", "Content-Length: 2000000",
                                     method="POST"), 413),
            ("a large body of chunks", request(
                "/", "Transfer-Encoding: chunked", method="POST") +
             b"20000\r\n" + b"a" * 0x20000 + CRLF +
             b"100000\r\n" + b"a" * 0x100000, 413)]:
        TAP.same("%s: %d" % (name, wanted), status_of(raw(a, data)), wanted)
    answer = raw(a, b"GET / HTTP/1.1\r\n\r\n")
    TAP.ok("as Go says it", answer.endswith(
        b"\r\n\r\n400 Bad Request: missing required Host header"), answer)
    status, head, body = ask(a, "/debug/pprof/profile?seconds=1", method="HEAD")
    TAP.ok("nothing follows the head of a HEAD, the length is not known",
           status == 200 and b"chunked" not in head and body == b"", head, body)
    TAP.same("it still answers", ask(a, CMDLINE)[0], 200)
    TAP.same("no signal, no disposition is changed", p.tell("signals"),
             "pipe default signals 0")
    p.end()


def begin_captures(address, n, seconds):
    """Connections whose head has come."""
    crowd = [connect(address) for _ in range(n)]
    for s in crowd:
        s.sendall(request("/debug/pprof/profile?seconds=%d" % seconds))
    return crowd


def crowded(seconds):
    """71 captures of so long, where 60 may be. Was that long enough for all to
    be asked for while the first ran? Else it is no test, but for the last."""
    p = Program("127.0.0.1:0", "captures=60", "seconds=20")
    a = p.address
    begun = time.monotonic()
    others = begin_captures(a, 51, seconds)
    heads = [read_head(s) for s in others]
    index = ask(a, "/debug/pprof/")[0]
    text = ask(a, "/debug/pprof/goroutine?debug=1")[2]
    more = begin_captures(a, 20, seconds)
    heads_of_more = [read_head(s) for s in more]
    refused = [read_body(s, head) for s, head in zip(more, heads_of_more)
               if status_of(head) == 503]
    in_time = time.monotonic() - begun < seconds or seconds == 20
    if in_time:
        check_crowded(heads, index, text, heads_of_more)
        TAP.ok("one too many is told so", all(
            b"captures run already" in body for body in refused), refused[:1])
        bodies = [read_body(s, head) for s, head in zip(others, heads)]
        TAP.ok("51 captures at once are answered, whole", all(
            body[:2] == b"\x1f\x8b" and not body.endswith(b"<cut>")
            for body in bodies), [body[-20:] for body in bodies])
    for s in others + more:
        s.close()
    p.end()
    return in_time


def check_crowded(heads, index, text, heads_of_more):
    TAP.same("51 captures run", [status_of(h) for h in heads], [200] * 51)
    TAP.same("and the index is answered", index, 200)
    if HAS_HOOKS:
        TAP.ok("none of their threads is in a profile", re.match(
            rb"goroutine profile: total 1\n", text), text[:200])
    statuses = [status_of(head) for head in heads_of_more]
    TAP.same("of 71 captures 60 run", sorted(statuses), [200] * 9 + [503] * 11)
    refused = [h for h in heads_of_more if status_of(h) == 503]
    TAP.ok("the others are refused as Go does it", all(
        b"X-Go-Pprof: 1" in head for head in refused), refused[:1])


def captures():
    p = Program("127.0.0.1:0", "captures=60", "seconds=20")
    a = p.address
    soon = []
    for _ in range(TRIES):
        begun = time.monotonic()
        s = connect(a)
        s.sendall(request("/debug/pprof/profile?seconds=3"))
        head = read_head(s)
        soon.append(time.monotonic() - begun)
        s.close()
        if soon[-1] < 0.5 * SLOW:
            break
    TAP.less("the head of a capture comes at once", min(soon), 0.5 * SLOW)
    TAP.same("with its status", status_of(head), 200)
    p.end()
    for seconds in [3, 8, 20]:
        if crowded(seconds):
            break
    p = Program("127.0.0.1:0", "captures=60", "seconds=20")
    a = p.address
    TAP.same("longer than allowed is 400",
             ask(a, "/debug/pprof/profile?seconds=21")[0], 400)
    p.end()


def leave(a, how):
    """Status of the next capture, of a second; seconds until it was taken;
    status of another while the first one is there."""
    s = connect(a)
    s.sendall(request("/debug/pprof/profile?seconds=1000"))
    read_head(s)
    another = ask(a, "/debug/pprof/profile?seconds=1")[0]
    if how == "closes":
        s.close()
    elif how == "resets":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                     b"\1\0\0\0\0\0\0\0")
        s.close()
    else:
        s.shutdown(socket.SHUT_WR)
    time.sleep(0.2 * SLOW)
    begun = time.monotonic()
    status = 503
    while status == 503 and time.monotonic() - begun < 5 * SLOW:
        status = ask(a, HEAP + "?seconds=1")[0]
    seconds = time.monotonic() - begun
    s.close()
    return status, seconds, another


def leaving():
    """Who leaves ends the capture: the limit of captures tells."""
    p = Program("127.0.0.1:0", "captures=1")
    for how in ["closes", "resets", "says no more"]:
        status, seconds, another = quickest(lambda: leave(p.address, how),
                                            1 + 0.6 * SLOW)
        TAP.same("another is one too many", another, 503)
        TAP.same("a client that %s ends its capture" % how, status, 200)
        TAP.less("at once", seconds, 1 + 0.6 * SLOW)
    p.end()


def ends():
    for how, wanted in [("exit", 3), ("_exit", 4)]:
        p = Program("127.0.0.1:0")
        s = connect(p.address)
        s.sendall(request("/debug/pprof/profile?seconds=100"))
        read_head(s)
        begun = time.monotonic()
        p.tell(how, answers=False)
        TAP.same("%s while a capture runs ends the process" % how, p.end(),
                 wanted)
        TAP.less("at once", time.monotonic() - begun, 1.5 * SLOW)
        body = read_all(s)
        TAP.ok("and the capture is not taken for whole",
               not body.endswith(b"0\r\n\r\n"), body)
        s.close()
        TAP.same("silently", p.said_wrong(), "")
    p = Program("127.0.0.1:0")
    s = connect(p.address)
    s.sendall(request("/debug/pprof/profile?seconds=100"))
    read_head(s)
    begun = time.monotonic()
    TAP.same("close ends all threads", p.tell("close"),
             "closed %d" % ALONE)
    TAP.less("soon", time.monotonic() - begun, 3 * SLOW)
    body = read_all(s)
    TAP.ok("and has the capture answered", body.endswith(b"0\r\n\r\n"), body)
    s.close()
    try:
        connect(p.address).close()
        TAP.ok("nobody listens then", False)
    except ConnectionRefusedError:
        TAP.ok("nobody listens then", True)
    TAP.has("it may listen again", p.tell("listen " + p.address), "OK ")
    TAP.has("but not twice", p.tell("listen 127.0.0.1:0"),
            "BUSY http: listens already")
    TAP.same("and answers", ask(p.address, CMDLINE)[0], 200)
    p.tell("close")
    for _ in range(20):
        p.tell("listen 127.0.0.1:0")
        p.tell("close")
    TAP.same("as often as one likes", p.tell("threads"),
             "threads %d" % ALONE)
    p.end()


def life():
    p = Program("127.0.0.1:0")
    s = connect(p.address)
    s.sendall(request("/debug/pprof/profile?seconds=2"))
    read_head(s)
    said = p.tell("fork")
    TAP.same("a child has none of our sockets and does not serve", said,
             "child 0 0 0")
    TAP.same("its parent does", ask(p.address, CMDLINE)[0], 200)
    TAP.ok("and its capture goes on", read_all_chunks(s))
    s.close()
    p.tell("close")
    TAP.has("the port is free though the child lives", p.tell(
        "listen " + p.address), "OK ")
    TAP.same("children may come and go", p.tell("reap"), "reaped")
    done = threading.Event()
    statuses = []

    def busy():
        while not done.is_set():
            statuses.append(ask(p.address, HEAP)[0])

    threads = [threading.Thread(target=busy) for _ in range(4)]
    for thread in threads:
        thread.start()
    TAP.same("200 forks while it serves: none has a socket, none hangs",
             p.tell("forks"), "forks 0")
    done.set()
    for thread in threads:
        thread.join()
    TAP.same("and all are served", set(statuses), {200})
    address = p.address
    p.process.stdin.write(b"exec\n")
    p.process.stdin.flush()
    p.line()
    said = p.line()
    TAP.ok("after exec the same program listens anew",
           re.match(r"OK 127.0.0.1:\d+$", said) and said != "OK " + address,
           said)
    try:
        connect(address).close()
        TAP.ok("and the old socket is gone", False)
    except ConnectionRefusedError:
        TAP.ok("and the old socket is gone", True)
    p.end()
    for path in ["/debug/pprof/profile?seconds=100", CMDLINE]:
        p = Program("127.0.0.1:0")
        s = connect(p.address)
        s.sendall(request(path))
        read_head(s)
        TAP.same("a program may close what it does not know",
                 p.tell("closefrom"), "closed")
        time.sleep(1.5 * SLOW)
        TAP.same("what it opens then is left alone", p.tell("files"),
                 "wrong 0")
        TAP.same("it is not served any more", p.tell("threads"),
                 "threads %d" % ALONE)
        TAP.has("and may listen again", p.tell("listen 127.0.0.1:0"), "OK ")
        s.close()
        TAP.same("and ends", p.end(), 0)
    p = Program("127.0.0.1:0")
    TAP.same("one that closes low numbers does not meet the server's",
             p.tell("closeloop"), "closed")
    TAP.same("and is served", ask(p.address, CMDLINE)[0], 200)
    TAP.same("and ends", p.end(), 0)
    p = Program("127.0.0.1:0", before=["sh", "-c", 'exec "$@" 2>&-', "sh"])
    s = connect(p.address)
    s.sendall(request(CMDLINE))
    read_head(s)
    said = p.tell("lowest")
    TAP.ok("without standard error, nothing of the server's is in its place",
           int(said.split()[1]) >= 200, said)
    s.close()
    TAP.same("and the program ends", p.end(), 0)
    p = Program("127.0.0.1:0")
    ask(p.address, CMDLINE)
    p.tell("pthread_exit", answers=False)
    TAP.same("the server does not keep a process whose threads have ended",
             p.end(), 0)


def read_all_chunks(s):
    data = b""
    while not data.endswith(b"\r\n0\r\n\r\n"):
        piece = s.recv(65536)
        if not piece:
            return False
        data += piece
    return True


def environment():
    p = Program("-", env={"CPPROF": "http=127.0.0.1:0"})
    TAP.has("CPPROF=http= listens", p.said, "OK 127.0.0.1:")
    status, _, text = ask(p.address, "/debug/pprof/heap?debug=1")
    TAP.ok("and the heap is recorded at its default rate", not HAS_HEAP or (
        status == 200 and b"@ heap/1048576" in text.splitlines()[0]),
           text[:200])
    folder = os.path.join(FOLDER, "none")
    os.mkdir(folder)
    TAP.same("nothing is written at the end", (p.end(), p.said_wrong(),
                                               os.listdir(folder)), (0, "", []))
    path = "unix:" + os.path.join(FOLDER, "%p")
    p = Program("-", env={"CPPROF": "block,http=" + path})
    TAP.same("%p is the pid", p.address, path.replace("%p", str(
        p.process.pid)))
    TAP.same("where it answers", ask(p.address, CMDLINE)[0], 200)
    before = set(os.listdir(FOLDER))
    p.tell("fork")
    other = Program("-", env={"CPPROF": "http=" + path,
                              "CPPROF_OWNER": str(p.process.pid)})
    new = []
    until = time.monotonic() + 10 * SLOW
    while len(new) < 2 and time.monotonic() < until:
        time.sleep(0.05)
        new = [name for name in set(os.listdir(FOLDER)) - before
               if name.isdigit()]
    TAP.ok("a forked child that stays has its own, and so has a program that "
           "was started", len(new) == 2 and other.said == "nowhere" and
           str(other.process.pid) in new, new, other.said)
    time.sleep(0.2)
    TAP.same("and they answer there", [ask("unix:" + os.path.join(
        FOLDER, name), CMDLINE)[0] for name in new], [200, 200])
    other.end()
    TAP.same("beside its parent", ask(p.address, CMDLINE)[0], 200)
    p.tell("reap")
    p.end()
    secret = os.path.join(FOLDER, "token")
    with open(secret, "w") as file:
        file.write("s3cret\n")
    p = Program("-", env={"CPPROF": "http=127.0.0.1:0,http-token-file=" +
                          secret})
    TAP.same("a token from a file", [ask(p.address, CMDLINE)[0], ask(
        p.address, CMDLINE, "Authorization: Bearer s3cret")[0]], [401, 200])
    second = Program("-", env={"CPPROF": "http=" + p.address})
    TAP.same("an address in use is one line, and the program goes on",
             (second.said, second.end(), second.said_wrong()),
             ("nowhere", 0, "cpprof: http: cannot listen at %s: Address "
              "already in use\n" % p.address))
    third = Program("-", env={"CPPROF": "http=" + p.address,
                              "CPPROF_OWNER": str(p.process.pid)})
    TAP.same("a descendant says nothing of that", (third.said, third.end(),
                                                   third.said_wrong()),
             ("nowhere", 0, ""))
    third = Program("-", env={"CPPROF": "http=unix:/does/not/exist",
                              "CPPROF_OWNER": str(p.process.pid)})
    TAP.ok("but of all else", (third.said, third.end()) == ("nowhere", 0) and
           third.said_wrong().startswith("cpprof: http: cannot listen at"),
           third.said_wrong())
    p.end()
    for text, part in [
            ("http=:0", "a token is needed"),
            ("http=127.0.0.1:0,http-token-file=/does/not/exist",
             "/does/not/exist: No such file"),
            ("http=nowhere", "is not an address"),
            ("http-token=x", "without http=")]:
        p = Program("-", env={"CPPROF": text})
        said = (p.said, p.end())
        wrong = p.said_wrong()
        TAP.ok("one line: " + text, said == ("nowhere", 0) and
               wrong.startswith("cpprof: ") and wrong.count("\n") == 1 and
               part in wrong, said, wrong)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def asked_within(address, seconds):
    """The status, as soon as somebody answers there; 0: nobody."""
    until = time.monotonic() + seconds * SLOW
    while time.monotonic() < until:
        try:
            return ask(address, CMDLINE)[0]
        except OSError:
            time.sleep(0.02)
    return 0


def daemons():
    for how in ["setsid", "twice", "libc"]:
        for address in ["127.0.0.1:%d" % free_port(),
                        "unix:" + os.path.join(FOLDER, "daemon-" + how)]:
            p = Program("-", env={"CPPROF": "http=" + address})
            s = connect(address)
            s.sendall(request(CMDLINE))
            read_answer(s)
            said = p.tell("daemon " + how)
            TAP.ok("%s makes a daemon" % how, re.match(r"daemon \d+$", said),
                   said)
            TAP.same("its first process ends", p.process.wait(10 * SLOW), 0)
            TAP.same("and it serves at %s" % address.partition(":")[0],
                     asked_within(address, 3), 200)
            TAP.same("that connection of the first is closed", s.recv(1), b"")
            s.close()
            pid = int(said.partition(" ")[2])
            p.end()
            until = time.monotonic() + 10 * SLOW
            while os.path.exists("/proc/%d" % pid) and time.monotonic() < until:
                time.sleep(0.02)
            if address.startswith("unix:"):
                TAP.ok("its end removes the path",
                       not os.path.exists(address[5:]))
            TAP.same("silently", p.said_wrong(), "")
    address = "127.0.0.1:%d" % free_port()
    p = Program("-", env={"CPPROF": "http=" + address})
    TAP.same("a child has a session of its own", p.tell("session"), "session")
    p.tell("close")
    TAP.same("it does not serve while its parent lives",
             asked_within(address, 1), 0)
    p.tell("reap")
    p.end()
    if HAS_HEAP and shutil.which("redis-server"):
        redis_becomes_a_daemon()


def redis_becomes_a_daemon():
    library = os.path.join(os.environ["LD_LIBRARY_PATH"].split(":")[0],
                           "libcpprof.so")
    address = "127.0.0.1:%d" % free_port()
    pid_file = os.path.join(FOLDER, "redis.pid")
    subprocess.run(
        ["redis-server", "--daemonize", "yes", "--port", "0", "--unixsocket",
         "redis", "--dir", FOLDER, "--pidfile", pid_file, "--save", ""],
        stdout=subprocess.DEVNULL,
        env=dict(os.environ, LD_PRELOAD=library, CPPROF="http=" + address))
    TAP.same("redis-server is served as a daemon", asked_within(address, 5),
             200)
    until = time.monotonic() + 10 * SLOW  # it serves before it writes that
    while time.monotonic() < until and not (
            os.path.exists(pid_file) and os.path.getsize(pid_file)):
        time.sleep(0.02)
    with open(pid_file) as file:
        os.kill(int(file.read()), signal.SIGTERM)


def tools():
    if not shutil.which("go"):
        TAP.skip("go tool pprof", "no go here")
        return
    p = Program("127.0.0.1:0")
    run = subprocess.run(
        ["go", "tool", "pprof", "-top", "-seconds=1",
         "http://%s/debug/pprof/profile" % p.address],
        capture_output=True, env=dict(os.environ, PPROF_TMPDIR=FOLDER,
                                      HOME=FOLDER))
    TAP.ok("go tool pprof reads a profile from it", run.returncode == 0 and
           b"Type: cpu" in run.stdout, run.stdout, run.stderr)
    p.end()
    p = Program("127.0.0.1:0", "token=x")
    run = subprocess.run(["go", "tool", "pprof", "-top",
                          "http://%s/debug/pprof/heap" % p.address],
                         capture_output=True, env=dict(
                             os.environ, PPROF_TMPDIR=FOLDER, HOME=FOLDER))
    TAP.has("and shows why it may not", run.stderr,
            b"401 Unauthorized - Unauthorized: \"Authorization: Bearer")
    p.end()


def sanitizers_are_silent():
    said = b""
    for errors in ALL_ERRORS:
        errors.seek(0)
        said += errors.read()
    TAP.ok("no sanitizer has a word to say", not re.search(
        rb"Sanitizer|runtime error", said), said.decode(errors="replace"))


def main():
    signal.alarm(230)
    try:
        addresses()
        late = slow_readers()
        token()
        protocol()
        endless()
        slow_heads()
        idle_flood()
        captures()
        leaving()
        ends()
        if HAS_HOOKS:
            life()
            environment()
            daemons()
        tools()
        stalled_is_cut(*late)
        sanitizers_are_silent()
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
    return TAP.end()


sys.exit(main())
