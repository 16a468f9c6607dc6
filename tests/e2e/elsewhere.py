#!/usr/bin/env python3
"""Symbols that are elsewhere: a stripped program is recorded, and named later by
a binary that is given (cpprof symbolize -binary=), or by a debuginfod server.

    elsewhere.py CPPROF       TAP
"""
import gzip
import collections
import http.server
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
from protobuf import chunk, varint  # noqa: E402
from tap import Tap  # noqa: E402

cpprof = os.path.realpath(sys.argv[1])
TAP = Tap()

SOURCE = """
#include <stdio.h>
#include <time.h>
static inline unsigned mix(unsigned x)
{
    for (int i = 0; i < 4; i++)
        x = x * 1664525u + 1013904223u;
    return x ^ x >> 13;
}
__attribute__((noinline, noclone)) static unsigned churn(unsigned n)
{
    unsigned s = 1;
    while (n--)
        s = mix(s);
    return s;
}
int main(int argc, char **argv)
{
    unsigned s = 0;
    (void)argv;
    for (int i = 0; i < (argc > 1 ? 5 : 60); i++)
        s += churn(1000000 + s % 2);
    printf("%u\\n", s);
    return 0;
}
"""


def sh(command):
    subprocess.run(command, shell=True, check=True)


def run(*words, **variables):
    """Run cpprof: status, stdout, stderr."""
    environment = dict(os.environ, **variables)
    done = subprocess.run([cpprof] + list(words), capture_output=True,
                          check=False, env=environment,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr.decode()


def on_terminal(*words, **variables):
    """What cpprof writes to a terminal."""
    master, slave = pty.openpty()
    child = subprocess.Popen([cpprof, *words], stdin=slave, stdout=slave,
                             stderr=slave, env=dict(os.environ, TERM="xterm",
                                                    **variables))
    os.close(slave)
    seen = b""
    while True:
        try:
            more = os.read(master, 4096)
        except OSError:
            more = b""
        if not more:
            break
        seen += more
    os.close(master)
    child.wait()
    return seen.decode(errors="replace")


def top(*words, **variables):
    _, out, err = run("top", "-nodefraction=0", *words, **variables)
    return out.decode(), err


def raw(path):
    return run("-raw", "-symbolize=none", path)[1].decode()


def build_id(path):
    text = subprocess.run(["readelf", "-n", path], capture_output=True,
                          check=True, text=True).stdout
    return re.search(r"Build ID: (\w+)", text).group(1)


# --- a program without symbols, and where they are ---------------------------

def make_programs():
    with open("work.c", "w") as file:
        file.write(SOURCE)
    sh("gcc -O2 -g -Wl,--build-id=sha1 -o full work.c && "
       "gcc -O1 -g -Wl,--build-id=sha1 -o other work.c && mkdir run keep && "
       "strip -o run/work full && mv full keep/work && "
       "objcopy --only-keep-debug keep/work work.debug && rm work.c")


def symbolize():
    status, _, err = run("symbolize", "p.pb.gz", "-binary=keep/work",
                         "-o=named.pb.gz")
    text = raw("named.pb.gz")
    TAP.ok("symbolize: succeeds", status == 0, err)
    TAP.ok("symbolize: functions", " churn " in text and " main " in text, text)
    TAP.ok("symbolize: inlined functions", " mix " in text, text)
    TAP.ok("symbolize: lines", re.search(r"churn .*work\.c:\d+", text), text)
    TAP.ok("symbolize: nothing stands in, used or not",
           b"work+0x" not in gzip.open("named.pb.gz").read())
    TAP.ok("symbolize: the mapping has functions, files, lines, inlines",
           re.search(r"/run/work \w+ \[FN\]\[FL\]\[LN\]\[IN\]", text), text)
    TAP.ok("symbolize: the mapping names what ran",
           "%s/run/work" % os.getcwd() in text, text)
    _, out, _ = run("symbolize", "-binary=keep/work", "p.pb.gz")
    TAP.ok("symbolize: without -o, on standard output",
           out[:2] == b"\x1f\x8b", out[:20])
    run("symbolize", "-binary=work.debug", "-output=debug.pb.gz", "p.pb.gz")
    text = raw("debug.pb.gz")
    TAP.ok("symbolize: by a debug file", re.search(r"mix .*work\.c:\d+", text),
           text)
    run("symbolize", "-binary=run/work", "-binary=work.debug",
        "-o=both.pb.gz", "p.pb.gz")
    text = raw("both.pb.gz")
    TAP.ok("symbolize: of a stripped binary and its debug file, by the latter",
           re.search(r"mix .*work\.c:\d+", text), text)
    status, out, err = run("symbolize", "-binary=other", "-o=no.pb.gz",
                           "p.pb.gz")
    TAP.ok("another build: refused in one line",
           status == 2 and err.count("\n") == 1 and "build ID" in err and
           build_id("other")[:16] in err, err)
    TAP.ok("another build: nothing is written", not os.path.exists("no.pb.gz"))
    os.makedirs("same")
    shutil.copy("other", "same/work")
    status, out, err = run("symbolize", "-binary=same/work", "p.pb.gz")
    TAP.ok("another build of that name: both build ids are told",
           status == 2 and build_id("other")[:16] in err and
           build_id("keep/work")[:16] in err, err)
    status, out, err = run("symbolize", "-binary=nowhere", "p.pb.gz")
    TAP.ok("no such binary: says so",
           status == 2 and "nowhere" in err and err.count("\n") == 1, err)
    status, out, err = run("symbolize", "-binary=run/work", "-o=no.pb.gz",
                           "p.pb.gz")
    TAP.ok("a stripped binary, which names nothing: refused in one line",
           status == 2 and err.count("\n") == 1 and
           "run/work names nothing" in err and not os.path.exists("no.pb.gz"), err)
    status, out, err = run("symbolize", "-binary=keep/work", "-o=again.pb.gz",
                           "named.pb.gz")
    TAP.ok("a profile that has all names: written", status == 0 and
           os.path.exists("again.pb.gz"), err)
    status, out, err = run("symbolize", "-binary=", "p.pb.gz")
    TAP.ok("-binary= without a file: refused in one line",
           status == 2 and err == "cpprof: -binary= names no file\n", err)
    out, err = top("-binary=keep/work", "p.pb.gz")
    TAP.ok("-binary: for a report, too", " churn" in out, out, err)


def symbolize_functions_to_lines():
    """What has functions alone gets lines, too."""
    run("symbolize", "-symbolize=fastlocal", "-binary=keep/work",
        "-o=fast.pb.gz", "p.pb.gz")
    text = raw("fast.pb.gz")
    TAP.ok("fastlocal: functions", " churn" in text and "work.c:" not in text,
           text)
    run("symbolize", "-binary=keep/work", "-o=lines.pb.gz", "fast.pb.gz")
    text = raw("lines.pb.gz")
    TAP.ok("symbolize: adds lines and inlined functions to functions",
           re.search(r"mix .*work\.c:\d+", text), text)


def search_path():
    os.makedirs("path/" + build_id("keep/work"))
    shutil.copy("keep/work", "path/%s/work" % build_id("keep/work"))
    run("symbolize", "-o=found.pb.gz", "p.pb.gz",
        PPROF_BINARY_PATH=os.path.abspath("path"))
    text = raw("found.pb.gz")
    TAP.ok("symbolize: by build id from PPROF_BINARY_PATH",
           re.search(r"mix .*work\.c:\d+", text), text)


def pprof():
    if not shutil.which("go"):
        TAP.skip("go tool pprof", "no go")
        return
    words = ["go", "tool", "pprof", "-top"]

    def names(*more):
        return subprocess.run(words + list(more), capture_output=True,
                              check=False, text=True).stdout

    TAP.ok("go tool pprof has stand-ins from the stripped program",
           "work+0x" in names("p.pb.gz"), names("p.pb.gz"))
    TAP.ok("go tool pprof has names from the unstripped twin",
           " churn" in names("keep/work", "p.pb.gz"),
           names("keep/work", "p.pb.gz"))
    TAP.ok("go tool pprof reads what symbolize wrote",
           " churn" in names("-symbolize=none", "named.pb.gz"))


def two_builds():
    """Of two programs of one name, each stand-in says of which it is."""
    os.makedirs("run2")
    sh("strip -o run2/work other")
    run("record", "-one", "-F", "1000", "-o", "two.pb.gz", "--", "sh", "-c",
        "run/work; run2/work")
    text = raw("two.pb.gz")
    for path in ("run/work", "run2/work"):
        TAP.ok("record -one: stand-ins of %s are told from the other's" % path,
               re.search(r"\[work\+0x[0-9a-f]+ of %s\]" % build_id(path)[:8],
                         text), text)
    out, err = top("-binary=keep/work", "two.pb.gz")
    TAP.ok("and a binary names its own alone", " churn" in out and
           re.search(r"work\+0x[0-9a-f]+", out), out, err)


# --- programs without a build id ----------------------------------------------

def without_build_id():
    """Another file at the path of what ran gives no names."""
    with open("work.c", "w") as file:
        file.write(SOURCE)
    sh("gcc -O2 -g -Wl,--build-id=none -o ran work.c && "
       "sed -i s/churn/stranger/ work.c && "
       "gcc -O1 -g -Wl,--build-id=none -o stranger work.c && "
       "gcc -O2 -g -Wl,--build-id=0xdeadbeef01 -o short work.c")
    swap = "cp ran no-id; (sleep 0.1; cp stranger new; mv new no-id) & "
    run("record", "-F", "1000", "-o", "no-id.pb.gz", "--", "sh", "-c",
        swap + "exec ./no-id")
    out, err = top("no-id.pb.gz")
    TAP.ok("no build id: a file that came later gives no names",
           "stranger" not in out and "no-id" in out, out)
    TAP.matches("no build id: and a line says why",
                r"^cpprof: Local symbolization failed for no-id: it is newer "
                r"than the profile, which has no build ID of it "
                r"\(-binary=\S*/no-id if it is what ran\)$", err)
    sh("mkdir copy && cp ran copy/no-id")
    out, err = top("-binary=copy/no-id", "no-id.pb.gz")
    TAP.ok("no build id: one that is given does", " churn" in out, out, err)
    sh("cp ran no-id")
    run("record", "-one", "-F", "1000", "-o", "no-id.pb.gz", "--", "sh", "-c",
        "./no-id; cp stranger new; mv new no-id; ./no-id")
    out, err = top("-symbolize=none", "no-id.pb.gz")
    TAP.ok("no build id: of two in turn the second has its names",
           "stranger" in out, out, err)
    TAP.ok("no build id: and the first has none of the second",
           re.search(r"\[no-id", out), out)
    sh("cp ran no-id")
    sh(swap + "CPPROF=cpu=250,out=own.pb.gz LD_PRELOAD=%s ./no-id >out; wait" %
       os.path.join(os.path.dirname(cpprof), "libcpprof.so"))
    out, err = top("-symbolize=none", "own.pb.gz")
    if os.geteuid() == 0:
        TAP.ok("no build id: a process finds its own file", "churn" in out, out)
    TAP.ok("no build id: and takes no other", "stranger" not in out, out)
    run("record", "-F", "1000", "-o", "short.pb.gz", "--", "./short")
    out, err = top("short.pb.gz")
    TAP.ok("a build id of five bytes is one", "stranger" in out, out, err)


# --- the hint ----------------------------------------------------------------

def hint():
    out, err = top("p.pb.gz")
    TAP.ok("hint: tells the file, once, below the table",
           re.fullmatch(r"cpprof: \d+% of the samples are in work, which is "
                        r"stripped: -binary=FILE with its symbols, or "
                        r"-debuginfod\n", err), err)
    TAP.ok("hint: not in the table", "stripped" not in out, out)
    err = run("-top", "p.pb.gz")[2]
    TAP.ok("hint: not below -top, which is pprof's", err == "", err)
    err = top("named.pb.gz")[1]
    TAP.ok("hint: not where all have names", err == "", err)


def no_hint_of_what_is_no_file():
    def message(**fields):
        return b"".join(varint(int(n[1:]) << 3) + varint(v)
                        for n, v in fields.items())
    with gzip.open("vdso.pb.gz", "wb") as file:
        file.write(
            chunk(1, message(_1=1, _2=2)) + chunk(2, message(_1=1, _2=5)) +
            chunk(3, message(_1=1, _2=4096, _3=8192, _5=3)) +
            chunk(4, message(_1=1, _2=1, _3=4100) + chunk(4, message(_1=1))) +
            chunk(5, message(_1=1, _2=4)) + b"".join(chunk(6, t) for t in (
                b"", b"cpu", b"nanoseconds", b"[vdso]", b"[vdso after x]")))
    out, err = top("vdso.pb.gz")
    TAP.ok("hint: none for what is no file",
           "[vdso after x]" in out and err == "", out, err)


def hint_of_a_package():
    """A library that dpkg knows, without symbols."""
    if not shutil.which("xz") or not shutil.which("dpkg"):
        TAP.skip("hint: names the package", "no xz, or no dpkg")
        return
    with open("random", "wb") as file:
        file.write(os.urandom(4000000))
    run("record", "-F", "500", "-o", "xz.pb.gz", "--", "xz", "-k", "-1",
        "random")
    out, err = top("xz.pb.gz")
    if "liblzma" in out and "+0x" not in out:
        TAP.skip("hint: names the package", "liblzma has symbols here")
        return
    TAP.ok("hint: names the package", "liblzma5-dbgsym, or -debuginfod" in err,
           err, out)


# --- debuginfod --------------------------------------------------------------

Broken = collections.namedtuple("Broken", "body")
Endless = collections.namedtuple("Endless", "n_bytes pause")


class Server(http.server.BaseHTTPRequestHandler):
    """/buildid/ID/debuginfo of `files`, whose values are bytes, a status,
    how many seconds to be silent, bytes with a pause in the middle, or a
    pause between bytes that have no end, or bytes that are broken off."""
    files = {}
    asked = []

    def do_GET(self):
        self.asked.append(self.path)
        found = self.files.get(self.path, 404)
        if isinstance(found, float):
            time.sleep(found)
            return
        if isinstance(found, Endless):
            self.endless(found)
            return
        if isinstance(found, Broken):
            self.send_response(200)
            self.send_header("Content-Length", str(2 * len(found.body)))
            self.end_headers()
            self.wfile.write(found.body)
            self.close_connection = True
            return
        body, pause = found if isinstance(found, tuple) else (found, 0)
        is_file = isinstance(body, bytes)
        self.send_response(200 if is_file else body)
        body = body if is_file else b"no"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body[:len(body) // 2])
            time.sleep(pause)
            self.wfile.write(body[len(body) // 2:])
        except OSError:
            pass  # who asked has left

    def endless(self, found):
        self.send_response(200)
        self.end_headers()
        begin = time.monotonic()
        try:
            while time.monotonic() - begin < 60:
                self.wfile.write(bytes(found.n_bytes))
                time.sleep(found.pause)
        except OSError:
            pass

    def log_message(self, *_):
        pass


def debuginfod():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d" % server.server_port
    n_caches = [0]
    path = "/buildid/%s/" % build_id("keep/work")

    def cache():
        n_caches[0] += 1
        return dict(DEBUGINFOD_CACHE_PATH=os.path.abspath(
            "cache%d" % n_caches[0]))

    def serve(**files):
        Server.files = {path + name: value for name, value in files.items()}
        Server.asked.clear()

    debug = open("work.debug", "rb").read()
    serve(debuginfo=debug)
    _, err = top("-debuginfod=" + url, "p.pb.gz", **cache())
    if "libdebuginfod" in err:
        TAP.skip("debuginfod", "no libdebuginfod1")
        return
    serve(debuginfo=debug)
    top("p.pb.gz", **cache())
    TAP.ok("debuginfod: nobody is asked unless the user asks",
           not Server.asked, Server.asked)

    kept = cache()
    out, err = top("-debuginfod=" + url, "p.pb.gz", **kept)
    TAP.ok("debuginfod: names", " churn" in out and err == "", out, err)
    TAP.ok("debuginfod: asked for the debug file alone",
           Server.asked.count(path + "debuginfo") == 1 and
           path + "executable" not in Server.asked, Server.asked)
    serve()
    out, _ = top("p.pb.gz", DEBUGINFOD_URLS=url, **kept)
    TAP.ok("debuginfod: from its cache the next time, by DEBUGINFOD_URLS",
           " churn" in out and path + "debuginfo" not in Server.asked, out,
           Server.asked)
    out, _ = top("-debuginfod=false", "p.pb.gz", DEBUGINFOD_URLS=url, **cache())
    TAP.ok("debuginfod: not with -debuginfod=false",
           "work+0x" in out and not Server.asked, Server.asked)
    status, _, err = run("top", "-debuginfod", "p.pb.gz")
    TAP.ok("debuginfod: no server is known: says what to do",
           status == 2 and "-debuginfod=URL" in err, err)

    os.rename("run/work", "gone")
    serve(debuginfo=debug)
    out, err = top("-debuginfod=" + url, "p.pb.gz", **cache())
    TAP.ok("debuginfod: the program is not here",
           " churn" in out, out, err)
    serve(executable=open("gone", "rb").read())
    run("record", "-symbolize=none", "-o", "bare.pb.gz", "--", "./gone")
    out, err = top("-debuginfod=" + url, "p.pb.gz", **cache())
    TAP.ok("debuginfod: the debug file is asked for, then the binary",
           [p for p in Server.asked if p.startswith(path)] ==
           [path + "debuginfo", path + "executable"], Server.asked)
    os.rename("gone", "run/work")

    for name, answer, told, is_kept in [
            ("404", 404, "", False),
            ("an error of the server", 500,
             url + ": .*returned error: 500; names are missing", False),
            ("nothing", b"", url + ": an empty file; names are missing", False),
            ("a broken connection", Broken(debug),
             url + ": transfer closed .*; names are missing", False),
            ("no ELF file", b"<html>",
             "/.*/debuginfo: no ELF file with a build id; it is removed", True),
            ("another build", open("other", "rb").read(),
             "/.*/debuginfo: a file of build %s; it is removed" %
             build_id("other"), True),
            ("cut off", debug[:len(debug) // 2],
             "/.*/debuginfo: a part of a file; it is removed", True)]:
        kept = cache()
        serve(debuginfo=answer)
        out, err = top("-debuginfod=" + url, "p.pb.gz", **kept)
        TAP.ok("debuginfod: %s: a report all the same" % name,
               "work+0x" in out and "churn" not in out, out, err)
        said = [line for line in err.splitlines() if "debuginfod: " in line]
        TAP.ok("debuginfod: %s: told once, where it is none of 404" % name,
               re.fullmatch(told and "cpprof: debuginfod: " + told,
                            "\n".join(said)), err)
        if not is_kept:
            continue
        serve(debuginfo=debug)
        out, err = top("-debuginfod=" + url, "p.pb.gz", **kept)
        TAP.ok("debuginfod: %s: names from the next server" % name,
               " churn" in out, out, err)
    for name, where in [("a server that is silent", url),
                        ("nobody there", "http://127.0.0.1:1")]:
        serve(debuginfo=30.0)
        begin = time.monotonic()
        out, err = top("-debuginfod=" + where, "p.pb.gz",
                       DEBUGINFOD_TIMEOUT="1", **cache())
        TAP.ok("debuginfod: %s: given up, and told" % name,
               "work+0x" in out and "nothing more is asked for" in err and
               time.monotonic() - begin < 10, err, time.monotonic() - begin)

    serve(debuginfo=Endless(100000, 0.01))
    out, err = top("-debuginfod=" + url, "p.pb.gz",
                   DEBUGINFOD_MAXSIZE="1000000", **cache())
    TAP.ok("debuginfod: a file without an end: no more than is allowed",
           "work+0x" in out and "is more than 1.0 MB and is not fetched" in err
           and "nothing more is asked for" not in err, err)
    serve(debuginfo=debug + bytes(2000000))
    out, err = top("-debuginfod=" + url, "p.pb.gz",
                   DEBUGINFOD_MAXSIZE="1000000", **cache())
    TAP.ok("debuginfod: a file that says that it is too large",
           "work+0x" in out and "is more than 1.0 MB and is not fetched" in err,
           err)
    serve(debuginfo=Endless(100, 0.2))
    out, err = top("-debuginfod=" + url, "p.pb.gz",
                   DEBUGINFOD_MAXTIME="1", **cache())
    TAP.ok("debuginfod: a file that drips: given up, and told",
           "work+0x" in out and "takes too long" in err, err)

    # An id as Go writes it, of a program that is not here.
    with gzip.open("p.pb.gz") as file, gzip.open("odd.pb.gz", "wb") as odd:
        odd.write(file.read().replace(build_id("keep/work").encode(),
                                      b"Ab3_/x-y" * 5))
    serve(debuginfo=debug)
    out, err = top("-debuginfod=" + url, "odd.pb.gz", "p.pb.gz", **cache())
    TAP.ok("debuginfod: an id that is none: the others are asked for",
           " churn" in out and "nothing more" not in err, out, err)

    serve(debuginfo=30.0)
    child = subprocess.Popen(
        [cpprof, "record", "-debuginfod=" + url, "-o", "i.pb.gz", "--",
         "run/work"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env=dict(os.environ, **cache()))
    while not Server.asked and child.poll() is None:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    err = child.communicate()[1].decode()
    TAP.ok("record: Ctrl-C ends the asking, and the profile is there",
           child.returncode == 0 and "interrupted" in err and
           "work+0x" in raw("i.pb.gz"), child.returncode, err)

    open("file", "w").close()
    for folder in ("file/cache", "none/cache"):
        serve(debuginfo=debug)
        out, err = top("-debuginfod=" + url, "p.pb.gz",
                       DEBUGINFOD_CACHE_PATH=os.path.abspath(folder))
        TAP.ok("debuginfod: %s cannot be its cache: told, once" % folder,
               "work+0x" in out and re.match(
                   r"cpprof: debuginfod: /.*/%s: .*; nothing more is asked for\n"
                   r"cpprof: \d+%% of" % folder, err), err)
    serve(debuginfo=(debug, 3.0))
    seen = on_terminal("symbolize", "-debuginfod=" + url, "-o=t.pb.gz",
                       "p.pb.gz", **cache())
    TAP.ok("debuginfod: a terminal shows how much has come", re.search(
         r"fetching debug information of %s, 0\.\d of 0\.\d MB" %
         build_id("keep/work")[:8], seen), seen)

    serve(debuginfo=debug)
    environment = "/proc/self/environ"
    status, out, err = run("record", "-debuginfod=" + url, "-o", "r.pb.gz",
                           "--", "run/work", **cache())
    text = raw("r.pb.gz")
    TAP.ok("record: fetches at its end", re.search(r"mix .*work\.c:\d+", text),
           text, err)
    serve(debuginfo=debug)
    # Beyond a hundred processes those that have ended are added up while
    # others run.
    status, out, err = run("record", "-one", "-F", "1000",
                           "-debuginfod=" + url, "-o", "r.pb.gz", "--", "sh",
                           "-c", "for i in $(seq 130); do run/work 1; done",
                           **cache())
    text = raw("r.pb.gz")
    left = [line for line in text.splitlines() if "work+0x" in line]
    TAP.ok("record -one: fetches for the sum of 130 processes",
           re.search(r"mix .*work\.c:\d+", text) and not left,
           "without a name: %s" % left[:20], err, text[-1200:], text[:1200])
    TAP.ok("record -one: asks once",
           Server.asked.count(path + "debuginfo") == 1, Server.asked)
    _, out, _ = run("record", "-debuginfod=" + url, "-o", "e.pb.gz", "--",
                    "cat", environment, **cache())
    TAP.ok("record: the command does not learn of it",
           b"DEBUGINFOD_URLS" not in out, out)
    server.shutdown()


def main():
    if not shutil.which("gcc") or not shutil.which("readelf"):
        TAP.skip("everything", "no gcc or binutils")
        print("1..1")
        return 0
    folder = tempfile.mkdtemp(prefix="cpprof-elsewhere-")
    os.chdir(folder)
    os.environ["HOME"] = folder
    os.environ["XDG_RUNTIME_DIR"] = folder
    for name in ("DEBUGINFOD_URLS", "PPROF_BINARY_PATH", "LD_PRELOAD",
                 "CPPROF"):
        os.environ.pop(name, None)
    try:
        make_programs()
        run("record", "-F", "1000", "-o", "p.pb.gz", "--", "run/work")
        symbolize()
        symbolize_functions_to_lines()
        two_builds()
        without_build_id()
        search_path()
        pprof()
        hint()
        no_hint_of_what_is_no_file()
        hint_of_a_package()
        debuginfod()
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
    return TAP.end()


sys.exit(main())
