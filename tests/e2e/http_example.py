#!/usr/bin/env python3
"""The handler in a server of somebody else.

    http_example.py PROGRAM      one of examples/http_*.c

Prints TAP: the index, a heap profile, a CPU profile of two seconds that
`go tool pprof` reads, names by POST, HEAD and an error.
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
from tap import Tap  # noqa: E402

TAP = Tap()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)


def ask(url, data=None, method=None):
    request = urllib.request.Request(url, data=data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def go_reads(base, folder):
    if not shutil.which("go"):
        TAP.skip("go tool pprof", "no go")
        return
    run = subprocess.run(
        ["go", "tool", "pprof", "-top", "-seconds=2", base + "profile"],
        capture_output=True,
        env=dict(os.environ, HOME=folder, PPROF_TMPDIR=folder))
    TAP.ok("go tool pprof reads a profile of two seconds",
           run.returncode == 0 and b"Type: cpu" in run.stdout and
           b"Duration: 2" in run.stdout, run.stdout, run.stderr)


def main():
    port = free_port()
    base = "http://127.0.0.1:%d/debug/pprof/" % port
    program = os.path.abspath(sys.argv[1])
    folder = tempfile.mkdtemp()
    process = subprocess.Popen([program, str(port)], stdin=subprocess.PIPE)
    try:
        wait_for(port)
        status, headers, body = ask(base)
        TAP.ok("the index is a page", status == 200 and b"<title>" in body and
               headers["Content-Type"] == "text/html; charset=utf-8", status, body)
        status, headers, body = ask(base + "heap")
        TAP.ok("a heap profile is a file", status == 200 and
               body[:2] == b"\x1f\x8b" and headers["Content-Disposition"] ==
               'attachment; filename="heap"', status, dict(headers), body[:20])
        TAP.ok("curl gets it, too", subprocess.run(
                ["curl", "-sf", "-o", os.path.join(folder, "heap"),
                 base + "heap"]).returncode == 0 if shutil.which("curl")
                else True)
        go_reads(base, folder)
        status, headers, body = ask(base + "nothing")
        TAP.ok("an error is Go's", (status, headers["X-Go-Pprof"], body) ==
               (404, "1", b"Unknown profile\n"), status, dict(headers), body)
        status, headers, body = ask(base + "cmdline")
        TAP.ok("the query and the path arrive", body.startswith(program.encode()),
               body)
        if "bare_socket" not in program:
            status, headers, body = ask(base + "symbol", b"0x1+0x2")
            TAP.ok("a body arrives", (status, body[:15]) ==
                   (200, b"num_symbols: 1\n"), status, body)
            status, headers, body = ask(base, method="HEAD")
            TAP.ok("HEAD has no body", (status, body) == (200, b""), status, body)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)
    return TAP.end()


sys.exit(main())
