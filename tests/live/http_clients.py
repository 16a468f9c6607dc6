"""The program http_server.c, and how it is asked: for http_server.py."""
import ctypes
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
from tap import scratch_folder, Tap  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
SANITIZER = sys.argv[2] if len(sys.argv) > 2 else "none"
HAS_HOOKS = SANITIZER != "thread"
SLOW = 1 if SANITIZER == "none" else 4
FOLDER = scratch_folder("cpprof-http-")
CRLF = b"\r\n"
TAP = Tap()


def is_old():
    """libmicrohttpd before 0.9.75."""
    version = ctypes.CDLL("libmicrohttpd.so.12").MHD_get_version
    version.restype = ctypes.c_char_p
    return tuple(int(n) for n in version().split(b".")[:3]) < (0, 9, 75)


IS_OLD = is_old()


# ----------------------------------------------------------- the program ----

ALL_ERRORS = []


class Program:
    """The server's process; address is where it listens, or what it said."""

    def __init__(self, *args, env=None, before=()):
        environment = dict(os.environ, **(env or {}))
        if "CPPROF" not in (env or {}):
            environment.pop("CPPROF", None)
        environment.pop("CPPROF_OWNER", None)
        environment.update((env or {}))
        self.errors = tempfile.TemporaryFile()
        ALL_ERRORS.append(self.errors)
        self.process = subprocess.Popen(
            list(before) + [PROGRAM] + list(args), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.errors, env=environment)
        self.threads = self.line()
        self.said = self.line()
        self.address = self.said.partition(" ")[2]

    def line(self, seconds=30):
        data = b""
        until = time.monotonic() + seconds * SLOW
        while not data.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [],
                                              left)[0]:
                return "nothing"
            byte = os.read(self.process.stdout.fileno(), 1)
            if not byte:
                return "end"
            data += byte
        return data.decode().rstrip("\n")

    def tell(self, command, answers=True):
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        return self.line() if answers else ""

    def said_wrong(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def end(self, seconds=20):
        """Its status; -1000 when it does not end by itself."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            return self.process.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return -1000


# --------------------------------------------------------------- clients ----

def connect(address, timeout=20, small=False):
    if address.startswith("unix:"):
        s = socket.socket(socket.AF_UNIX)
        where = address[5:]
    else:
        host, _, port = address.rpartition(":")
        host = host.strip("[]") or "127.0.0.1"
        s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        where = (host, int(port))
    if small:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(timeout * SLOW)
    s.connect(where)
    return s


def read_all(s):
    data = b""
    try:
        while True:
            piece = s.recv(65536)
            if not piece:
                return data
            data += piece
    except ConnectionResetError:
        return data + b"<reset>"
    except socket.timeout:
        return data + b"<timeout>"


def read_head(s):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = s.recv(1)
        if not piece:
            break
        data += piece
    return data


def read_answer(s):
    """One answer with a known length or in chunks: status, head, body."""
    head = read_head(s)
    if not head:
        return 0, b"", b""
    return int(head.split(b" ")[1]), head, read_body(s, head)


def read_body(s, head):
    """What is behind that head; of one that is cut the end says so."""
    length = re.search(rb"Content-Length: (\d+)", head)
    body = b""
    if length:
        while len(body) < int(length.group(1)):
            piece = s.recv(int(length.group(1)) - len(body))
            if not piece:
                return body + b"<cut>"
            body += piece
    elif b"Transfer-Encoding: chunked" in head:
        while True:
            size = b""
            while not size.endswith(CRLF):
                piece = s.recv(1)
                if not piece:
                    return body + b"<cut>"
                size += piece
            left = int(size, 16) + 2
            chunk = b""
            while len(chunk) < left:
                piece = s.recv(left - len(chunk))
                if not piece:
                    return body + b"<cut>"
                chunk += piece
            body += chunk[:-2]
            if left == 2:
                break
    return body


def request(path, *headers, method="GET", version="1.1", host="localhost"):
    lines = ["%s %s HTTP/%s" % (method, path, version)]
    if host:
        lines.append("Host: " + host)
    return "\r\n".join(lines + list(headers) + ["", ""]).encode()


def ask(address, path, *headers, **how):
    """status, head, body of a connection of its own."""
    s = connect(address)
    try:
        s.sendall(request(path, *headers, **how))
        return read_answer(s)
    finally:
        s.close()


def raw(address, data):
    s = connect(address)
    try:
        s.sendall(data)
    except OSError:
        pass
    answer = read_all(s)
    s.close()
    return answer


def status_of(answer):
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/") else 0


def memory_kib(pid):
    with open("/proc/%d/status" % pid) as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


def ticks(p):
    """Of 10 ms, of CPU time."""
    with open("/proc/%d/stat" % p.process.pid) as file:
        return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))


CMDLINE = "/debug/pprof/cmdline"

# A profile that is made at once. Sanitizers have an allocator of their own.
HAS_HEAP = SANITIZER == "none"
HEAP = "/debug/pprof/heap" if HAS_HEAP else "/debug/pprof/threadcreate"

# TSan has a thread, once there are others.
ALONE = 2 if SANITIZER == "thread" else 1
