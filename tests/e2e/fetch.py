#!/usr/bin/env python3
"""URLs as sources, from servers that behave and servers that do not.

    fetch.py CPPROF

Prints TAP. The servers are threads of this script, on ports of the loopback
interface that the system chooses.
"""
import gzip
import http.server
import os
import pty
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, ".."))
from tap import Tap  # noqa: E402

FIXTURES = os.path.join(HERE, "..", "fixtures")
PROFILE = os.path.join(FIXTURES, "go.cpu.pb.gz")
OTHER = os.path.join(FIXTURES, "go.heap.pb.gz")


def read(path):
    with open(path, "rb") as file:
        return file.read()


# ------------------------------------------------------------------ servers --

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    seen = []  # (method, path with query, body)
    now = most = 0  # requests at the same time

    def log_message(self, format, *args):
        pass

    def reply(self, status, body=b"", headers=(), message=None):
        self.send_response(status, message)
        if not any(name == "Content-Length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.serve(b"")

    def do_POST(self):
        self.serve(self.rfile.read(int(self.headers["Content-Length"])))

    def serve(self, body):
        cls = type(self)
        with cls.lock:
            cls.seen.append((self.command, self.path, body))
            cls.now += 1
            cls.most = max(cls.most, cls.now)
        try:
            name = self.path.split("?")[0].strip("/").replace("/", "_")
            getattr(self, "serve_" + re.sub(r"\W|_\d+$", "", name),
                    self.serve_missing)()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with cls.lock:
                cls.now -= 1

    def serve_missing(self):
        self.reply(404, b"nothing here\n", [("Content-Type", "text/plain")])

    def serve_profile(self):
        self.reply(200, read(PROFILE))

    serve_debug_pprof_profile = serve_debug_pprof_heap = serve_profile
    serve_apath = serve_profile

    def serve_nth(self):
        """The n-th of these: the first come last."""
        n = int(re.search(r"\d+", self.path).group())
        time.sleep(0.6 - 0.02 * n)
        self.reply(200, read(PROFILE if n % 3 else OTHER_CPU))

    def serve_chunked(self):
        body = read(PROFILE)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(0, len(body), 100):
            part = body[i:i + 100]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")

    def serve_packed(self):
        self.reply(200, gzip.compress(read(PROFILE)),
                   [("Content-Encoding", "gzip")])

    def serve_go_error(self):
        self.reply(400, b"no such\nprofile\n",
                   [("Content-Type", "text/plain; charset=utf-8"),
                    ("X-Go-Pprof", "1")])

    def serve_long_error(self):
        self.reply(500, b"x" * (10 << 20),
                   [("Content-Type", "text/plain"), ("X-Go-Pprof", "1")])

    def serve_other_error(self):
        self.reply(503, b"go away", message="Not Now")

    def serve_nothing(self):
        self.reply(204)

    def serve_empty(self):
        self.reply(200)

    def serve_prose(self):
        self.reply(200, b"<html>hello</html>")

    def serve_moved(self):
        self.reply(302, headers=[("Location", "/profile")])

    def serve_loop(self):
        self.reply(302, headers=[("Location", "/loop")])

    def serve_to_file(self):
        self.reply(302, headers=[("Location", "file://" + PROFILE)])

    def serve_cut(self):
        body = read(PROFILE)
        self.reply(200, body[:len(body) // 2],
                   [("Content-Length", str(len(body)))])
        self.close_connection = True

    def serve_huge(self):
        self.reply(200, b"x", [("Content-Length", str(5 << 30))])
        self.close_connection = True

    def serve_silent(self):
        time.sleep(30)

    def serve_halting(self):
        body = read(PROFILE)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for byte in body:
            self.wfile.write(bytes([byte]))
            time.sleep(0.5)

    def serve_slow(self):
        time.sleep(2)
        self.serve_profile()

    # A server of gperftools: addresses only, and names beside them.
    def serve_pprof_heap(self):
        self.reply(200, b"heap profile: 3: 300 [3: 300] @ heapprofile\n"
                        b"1: 100 [1: 100] @ 0x1001 0x2001\n"
                        b"2: 200 [2: 200] @ 0x1101 0x2001\n")

    NAMES = (b"num_symbols: 1\n0x1000\tnamed_one\n0x1100 named_two\n"
             b"rubbish 0x\n0x2000 old\n0x2000 named_main\n0x1000 cut off")

    def serve_pprof_symbol(self):
        self.reply(200, self.NAMES)

    def serve_odd_pprof_symbol(self):
        self.reply(200, b"0x10000000000000000000 too_far\n\0\n0x\n" +
                   b"0x1000 " * 9999 + b"\n" + self.NAMES)

    serve_nameless_pprof_heap = serve_odd_pprof_heap = serve_pprof_heap


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass  # of clients that are gone, which is what is tested


def serve(context=None):
    server = Server(("127.0.0.1", 0), Handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "127.0.0.1:%d" % server.server_address[1]


def serve_rubbish():
    """Not HTTP at all."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run():
        while True:
            client, _ = listener.accept()
            client.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            client.close()

    threading.Thread(target=run, daemon=True).start()
    return "127.0.0.1:%d" % listener.getsockname()[1]


# -------------------------------------------------------------------- runs --

class Run:
    def __init__(self, words, env=None, tool=None):
        self.done = subprocess.run(
            (tool or [CPPROF]) + list(words), stdin=subprocess.DEVNULL,
            capture_output=True, check=False, timeout=120,
            env=dict(ENV, **(env or {})))
        self.out = self.done.stdout.decode()
        self.err = self.done.stderr.decode(errors="replace")
        self.status = self.done.returncode

    def errors(self):
        """The complaints: what is neither progress nor the copy."""
        return [line for line in self.err.splitlines()
                if not line.startswith(("Fetching profile over", "Saved pro",
                                        "Please wait"))]


def raw(*words):
    return Run(["-raw", "-symbolize=none"] + list(words))


def copies(folder):
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


# ------------------------------------------------------------------- cases --

def answers(tap, host):
    wanted = raw(PROFILE).out
    for name in ("profile", "chunked", "packed", "moved"):
        got = raw("http://%s/%s" % (host, name))
        tap.same("%s: the profile of the file" % name, got.out, wanted)
        tap.same("%s: no complaints" % name, got.errors(), [])
    for name, text in (
            ("missing", "server response: 404 Not Found"),
            ("go_error", "server response: 400 Bad Request - no such?profile"),
            ("other_error", "server response: 503 Not Now"),
            ("nothing", "server response: 204 No Content"),
            ("loop", r"http fetch: .*redirects.*"),
            ("to_file", r"http fetch: .*[Pp]rotocol .*file.*"),
            ("cut", r"http fetch: .*bytes remaining to read"),
            ("huge", r"http fetch: Maximum file size exceeded"),
            ("prose", r"parsing profile: .*"),
            ("empty", r".*")):
        url = "http://%s/%s" % (host, name)
        got = raw(url)
        tap.same("%s: status 2" % name, got.status, 2)
        tap.same("%s: nothing on stdout" % name, got.out, "")
        tap.ok("%s: tells why" % name, len(got.errors()) == 1 and re.fullmatch(
            "cpprof: %s: %s" % (re.escape(url), text.replace("?p", r"\?p")),
            got.errors()[0]), got.err)
    got = raw("http://%s/long_error" % host)
    tap.matches("a long error is cut",
                r": server response: 500 .* - x+$", got.err)
    got = raw("http://%s/profile" % serve_rubbish())
    tap.matches("not HTTP", r": http fetch: (?!unsupported protocol)", got.err)
    got = raw("http://127.0.0.1:1/profile")
    tap.matches("nobody there", r": http fetch: .*[Cc]onnect", got.err)
    got = raw("ftp://%s/profile" % host)
    tap.matches("no such scheme", r'unsupported protocol scheme "ftp"',
                got.err)


def passwords(tap, host):
    """What fails has no password in its message, either."""
    dead = "http://u:secret@127.0.0.1:1/x"
    missing = "http://u:secret@%s/missing" % host
    for name, words in (
            ("nobody there", [dead]), ("404", [missing]),
            ("without a scheme", [missing[7:]]),
            ("no such scheme", ["ftp" + missing[4:]]),
            ("a slash in it", [dead.replace("cr", "/cr#")]),
            ("one of several", [dead, missing, PROFILE]),
            ("a base", ["-base=" + dead, PROFILE])):
        got = Run(["-top", "-symbolize=none"] + words)
        tap.ok("%s: no password is shown" % name,
               "cret" not in got.err and "u:xxxxx@" in got.err, got.err)


def urls(tap, host):
    """What is asked for, as go tool pprof has it."""
    cases = [([], host), ([], "%s/" % host), ([], "http://%s" % host),
             (["-seconds=1"], "%s/profile" % host),
             (["-seconds=1"], "%s/profile?seconds=7&b=2&a=1" % host),
             ([], "%s/profile?b=x+y&a=%%41%%2f&b=1&c;d=1&e" % host),
             ([], "HTTP://%s/a path?q=%%zz" % host),
             ([], "localhost:%s/profile" % host.split(":")[1])]
    for words, url in cases:
        del Handler.seen[:]
        got = Run(["-raw", "-symbolize=none"] + words + [url])
        line = got.err.splitlines()[0]
        tap.same("%s: asked for what it says" % url,
                 [path for _, path, _ in Handler.seen],
                 ["/" + line.split("/", 3)[3]])
        if not shutil.which("go"):
            tap.skip("%s: asked for as by go" % url, "no go")
            continue
        go = Run(words + ["-raw", "-symbolize=none", url],
                 tool=["go", "tool", "pprof"])
        tap.same("%s: asked for as by go" % url, line, go.err.splitlines()[0])
    got = Run(["-raw", "-seconds=90", "http://%s/missing" % host])
    tap.matches("-seconds is told", r"^Please wait\.\.\. \(1m30s\)$", got.err)
    got = raw("http://user:secret@%s/profile" % host)
    tap.matches("a password is not shown", "http://user:xxxxx@", got.err)
    tap.ok("nor elsewhere", "secret" not in got.err, got.err)
    passwords(tap, host)
    os.mkdir("here:80")
    shutil.copy(PROFILE, "here:80/x")
    tap.same("a file of that name comes first", raw("here:80/x").errors(), [])
    tap.same("file:///", raw("file://" + PROFILE).out, raw(PROFILE).out)
    tap.matches("neither file nor URL", "^cpprof: no:where: No such file",
                raw("no:where").err)
    dead = {"HTTP_PROXY": "http://127.0.0.1:1", "http_proxy": "127.0.0.1:1"}
    got = Run(["-raw", "http://%s/profile" % host], env=dead)
    tap.same("no proxy for this machine", got.status, 0)


def many(tap, host):
    files = [OTHER_CPU if n % 3 == 0 else PROFILE for n in range(20)]
    Handler.most = 0
    begin = time.monotonic()
    got = raw(*["http://%s/nth/%d" % (host, n) for n in range(20)])
    took = time.monotonic() - begin
    tap.same("20 URLs are merged in their order", got.out, raw(*files).out)
    tap.ok("all at once", Handler.most >= 20, Handler.most)
    tap.ok("which takes as long as one", took < 5, took)
    got = raw(*["http://%s/profile" % host] * 200)
    tap.same("200 URLs", got.out, raw(*[PROFILE] * 200).out)
    got = raw("http://%s/missing" % host, PROFILE, "http://%s/profile" % host)
    tap.same("files and URLs", got.out, raw(PROFILE, PROFILE).out)
    tap.same("what fails is told", got.errors(), [
        "cpprof: http://%s/missing: server response: 404 Not Found" % host,
        "cpprof: Fetched 2 source profiles out of 3"])
    tap.same("and no failure", got.status, 0)
    got = Run(["-top", "-base=http://%s/profile" % host, OTHER_CPU])
    tap.same("-base=URL", got.out, Run(["-top", "-base=" + PROFILE,
                                       OTHER_CPU]).out)
    got = Run(["-top", "-base=http://%s/missing" % host, PROFILE])
    tap.same("-base=URL that fails", got.status, 2)


def slow(tap, host):
    """Servers that bind their clients, all in one command."""
    names = ["silent", "halting", "slow"]
    begin = time.monotonic()
    got = Run(["-raw", "-timeout=1"] +
              ["http://%s/%s" % (host, name) for name in names])
    took = time.monotonic() - begin
    tap.same("slow, but in time", got.status, 0)
    tap.ok("given up after -timeout and 5 s", 5 < took < 15, took)
    tap.matches("no answer", "/silent: http fetch: no answer in time", got.err)
    tap.matches("an answer byte by byte",
                "/halting: http fetch: the answer came to a halt", got.err)


def saved(tap, host):
    url = "http://%s/profile" % host
    folder = os.path.abspath("not/there/yet")
    name = None
    for n in (1, 2):
        got = Run(["-top", url], env={"PPROF_TMPDIR": folder})
        name = re.search("^Saved profile in (.*)$", got.err, re.M).group(1)
        tap.ok("copy %d is where it says" % n,
               name == os.path.join(folder, copies(folder)[n - 1]) and
               name.endswith(".%03d.pb.gz" % n), name, copies(folder))
        tap.matches("named after the types",
                    r"/pprof\.[^/]*samples\.cpu\.", name)
    tap.same("the copy opens", Run(["-top", name]).out,
             Run(["-top", url]).out)
    if shutil.which("go"):
        go = Run(["-top", "-symbolize=none", name],
                 tool=["go", "tool", "pprof"])
        tap.same("go tool pprof opens the copy", go.status, 0)
    runs = [subprocess.Popen([CPPROF, "-top", url], env=dict(
        ENV, PPROF_TMPDIR=folder), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL) for _ in range(8)]
    for run in runs:
        run.wait(60)
    tap.same("commands side by side write files of their own",
             len(copies(folder)), 10)
    got = Run(["-top", url], env={"PPROF_TMPDIR": "", "HOME": os.getcwd()})
    tap.same("~/pprof", len(copies("pprof")), 1)
    got = Run(["-top", url], env={"PPROF_TMPDIR": "/dev/null/x",
                                  "HOME": "/dev/null", "TMPDIR": "/dev/null"})
    tap.same("nowhere to keep it is no failure", got.status, 0)
    tap.matches("but told", "Could not use temp dir /dev/null/x: ", got.err)
    got = Run(["-top", PROFILE], env={"PPROF_TMPDIR": "none"})
    tap.same("files are not copied", os.path.exists("none"), False)


def interrupted(tap, host):
    folder = os.path.abspath("interrupted")
    run = subprocess.Popen([CPPROF, "-top", "http://%s/silent" % host],
                           env=dict(ENV, PPROF_TMPDIR=folder),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run.stderr.readline()
    time.sleep(0.2)
    begin = time.monotonic()
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=20)
    tap.ok("an interrupt ends it at once", time.monotonic() - begin < 2)
    tap.same("by that signal", run.returncode, -signal.SIGINT)
    tap.same("and leaves nothing", copies(folder), [])


def on_terminal(tap, host):
    ours, theirs = pty.openpty()
    run = subprocess.Popen([CPPROF, "-top", "http://%s/slow" % host], env=ENV,
                           stdin=subprocess.DEVNULL, stderr=theirs,
                           stdout=subprocess.DEVNULL)
    os.close(theirs)
    text = b""
    try:
        while True:
            text += os.read(ours, 4096)
    except OSError:
        pass
    run.wait(60)
    tap.matches("a terminal shows progress", r"fetching the profile.* \(1 s\)",
                text.decode())


def symbols(tap, host):
    url = "http://%s/pprof/heap" % host
    del Handler.seen[:]
    got = Run(["-top", "-sample_index=inuse_space", url])
    tap.matches("a server names addresses", r"200B .* named_two$", got.out)
    tap.matches("the last name of an address", r"300B .* named_main$", got.out)
    tap.matches("a line that is cut off does not count", r" named_one$",
                got.out)
    tap.same("in one question", Handler.seen[1:], [
        ("POST", "/pprof/symbol", b"0x1000+0x2000+0x1100")])
    if shutil.which("go"):
        words = ["-raw", "-symbolize=remote", url]
        go = Run(words, tool=["go", "tool", "pprof"])
        ours = Run(words)
        pick = re.compile(r"^ +\d+: 0x\w+ .*(named_\w+) ", re.M)
        tap.same("as go tool pprof does", pick.findall(ours.out),
                 pick.findall(go.out))
    got = Run(["-top", "http://%s/odd/pprof/heap" % host])
    tap.same("an odd answer is no failure", got.status, 0)
    for word in ("none", "local"):
        del Handler.seen[:]
        Run(["-top", "-symbolize=" + word, url])
        tap.same("not with -symbolize=%s" % word, len(Handler.seen), 1)
    del Handler.seen[:]
    got = Run(["-top", "http://%s/nameless/pprof/heap" % host])
    tap.same("without an answer the report is printed", got.status, 0)
    tap.matches("with a warning", "http post http://%s/nameless/pprof/symbol: "
                "server response: 404 Not Found" % re.escape(host), got.err)
    got = Run(["-top", "http://%s/profile" % host])
    tap.ok("named profiles are not asked for",
           all(method == "GET" for method, _, _ in Handler.seen[2:]),
           Handler.seen)


def tls(tap):
    if not shutil.which("openssl"):
        tap.skip("https", "no openssl")
        return
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout",
         "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=test",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert.pem", "key.pem")
    host = serve(context)
    wanted = raw(PROFILE).out
    tap.matches("https looks at certificates", "http fetch: .*certificate",
                raw("https://%s/profile" % host).err)
    got = raw("https+insecure://%s/profile" % host)
    tap.same("https+insecure does not", got.out, wanted)
    tap.matches("and is told as that", r"from https\+insecure://", got.err)
    got = raw("-tls_ca=cert.pem", "https://%s/profile" % host)
    tap.same("-tls_ca", got.out, wanted)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations("cert.pem")
    got = raw("https+insecure://%s/profile" % host)
    tap.same("a server that wants a certificate", got.status, 2)
    got = raw("-tls_ca=cert.pem", "-tls_cert=cert.pem", "-tls_key=key.pem",
              "https://%s/profile" % host)
    tap.same("-tls_cert and -tls_key", got.out, wanted)
    for words, text in (
            (["-tls_key=key.pem"], "-tls_key is specified, so -tls_cert must "
                                   "also be specified"),
            (["-tls_cert=key.pem"], "-tls_cert is specified, so -tls_key must "
                                    "also be specified"),
            (["-tls_ca=nix"], "could not load CA specified by -tls_ca: open "
                              "nix: No such file or directory")):
        got = raw(*words, "https://%s/profile" % host)
        tap.same("%s alone" % words[0], got.errors(), ["cpprof: " + text])


GO_SERVER = """package main
import ("fmt"; "net"; "net/http"; _ "net/http/pprof")
var keep [][]byte
func allocate() {
	for i := 0; i < 200; i++ { keep = append(keep, make([]byte, 1<<20)) }
}
func spin() { for x := 0; ; x++ { keep[0][x % 1024]++ } }
func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil { panic(err) }
	allocate()
	go spin()
	fmt.Println(l.Addr())
	http.Serve(l, nil)
}
"""


def go_server(tap):
    if not shutil.which("go"):
        tap.skip("a server of Go", "no go")
        return
    with open("server.go", "w", encoding="ascii") as file:
        file.write(GO_SERVER)
    subprocess.run(["go", "build", "-o", "server", "server.go"], check=True,
                   env=dict(ENV, GOCACHE=os.path.abspath("go-cache"),
                            GO111MODULE="off"))
    server = subprocess.Popen(["./server"], stdout=subprocess.PIPE, text=True)
    try:
        ask_go_server(tap, server.stdout.readline().strip())
    finally:
        server.kill()
        server.wait()


def ask_go_server(tap, host):
    go_pprof = ["go", "tool", "pprof"]
    base = "http://%s/debug/pprof/" % host
    row = re.compile(r"^.*main\.allocate.*$", re.M)
    words = ["-top", "-sample_index=alloc_space", base + "heap"]
    tap.same("heap: the row that go tool pprof prints",
             row.findall(Run(words).out),
             row.findall(Run(words, tool=go_pprof).out))
    for name in ("profile?seconds=1", "heap", "allocs", "goroutine"):
        got = Run(["-top", base + name])
        copy = re.search("^Saved profile in (.*)$", got.err, re.M)
        tap.ok("%s: a copy" % name, copy, got.err)
        if not copy:
            continue
        go = Run(["-top", copy.group(1)], tool=go_pprof)
        strip = re.compile("^Time: .*\n", re.M)
        tap.same("%s: go tool pprof prints the same of it" % name,
                 strip.sub("", got.out), strip.sub("", go.out))
        tap.ok("%s: shows something" % name,
               re.search("main|runtime", got.out), got.out)
    for name in ("nix", "heap?seconds=0", "threadcreate?seconds=1&debug=1"):
        last = re.compile("server response: .*$")
        go = Run(["-top", base + name], tool=go_pprof)
        got = Run(["-top", base + name])
        tap.same("%s: the words of go tool pprof" % name,
                 last.findall(got.errors()[0]),
                 last.findall(go.errors()[0].strip()))


def main():
    tap = Tap()
    host = serve()
    answers(tap, host)
    urls(tap, host)
    many(tap, host)
    slow(tap, host)
    saved(tap, host)
    interrupted(tap, host)
    on_terminal(tap, host)
    symbols(tap, host)
    tls(tap)
    go_server(tap)
    needed = Run([CPPROF], tool=["ldd"]).out
    tap.ok("libcurl is not loaded for files", "libcurl" not in needed, needed)
    return tap.end()


if __name__ == "__main__":
    CPPROF = os.path.abspath(sys.argv[1])
    scratch = tempfile.mkdtemp()
    ENV = {name: value for name, value in os.environ.items()
           if not name.lower().endswith("_proxy")}
    ENV.update(PPROF_TMPDIR=os.path.join(scratch, "copies"), HOME=scratch,
               TZ="UTC")
    OTHER_CPU = os.path.join(FIXTURES, "cpprof.pb.gz")
    os.chdir(scratch)
    try:
        sys.exit(main())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
