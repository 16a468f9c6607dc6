"""The other end of what is pushed: a server that takes it or does not, and what
arrived, as protoc reads it with the published definitions."""
import base64
import email.parser
import email.policy
import functools
import gzip
import http.server
import json
import os
import re
import socket
import subprocess
import threading
import time

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")


# -------------------------------------------------------------- the server --

TOO_LARGE = b"this is too much\n"


class Request:
    def __init__(self, path, headers, body, answer):
        self.path, self.headers, self.body = path, headers, body
        self.answer, self.at = answer, time.time()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        keeper = self.server.keeper
        n = int(self.headers["Content-Length"])
        if keeper.limit and n > keeper.limit:
            self.refuse(keeper, n)
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with keeper.lock:
            answer = keeper.answers.pop(0) if keeper.answers else 200
            keeper.requests.append(Request(self.path, self.headers, body,
                                           answer))
        if answer == "silence":
            keeper.over.wait(30)
            return
        if callable(answer):  # what it writes is the answer
            self.close_connection = True
            answer(self.wfile)
            return
        text, kind = b"", None
        if isinstance(answer, tuple):  # of a message, or of another type
            answer, text, kind = (answer + ("application/x-protobuf",))[:3]
        elif answer >= 300:
            text = b"no, and this is why\n"
        self.send_response(answer)
        if kind:
            self.send_header("Content-Type", kind)
        if answer == 429:
            self.send_header("Retry-After", "1")
        if answer == 302:
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def refuse(self, keeper, n):
        """Too large: at once, by who closes; others read it first."""
        with keeper.lock:
            keeper.too_large.append(n)
        if keeper.closes:
            self.close_connection = True
        else:
            self.rfile.read(n)
        status, words = keeper.refusal
        self.send_response(status)
        self.send_header("Content-Length", str(len(words)))
        self.end_headers()
        self.wfile.write(words)

    def log_message(self, *args):
        pass


class Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request, client_address):
        pass


class Server:
    """Keeps what it gets; answers: what the first requests are told. Of more
    than limit bytes it keeps the number, and answers with the refusal, which
    is 413; closes: and reads none of it."""

    def __init__(self, answers=(), port=0, limit=0, closes=False,
                 refusal=(413, TOO_LARGE)):
        self.answers, self.requests = list(answers), []
        self.limit, self.closes, self.too_large = limit, closes, []
        self.refusal = refusal
        self.lock, self.over = threading.Lock(), threading.Event()
        self.http = Quiet(("127.0.0.1", port), Handler)
        self.http.keeper = self
        self.url = "http://127.0.0.1:%d" % self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, args=(0.05,),
                         daemon=True).start()

    def close(self):
        self.over.set()
        self.http.shutdown()
        self.http.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()


def closed_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# -------------------------------------------------------------- decoding ----

def decode(data, message, proto):
    done = subprocess.run(["protoc", "-I", DATA, "--decode=" + message, proto],
                          input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return done.stdout.decode() if done.returncode == 0 else ""


def unescape(text):
    return text.encode("latin1").decode("unicode_escape").encode("latin1")


class Pushed:
    """One request to /push.v1, as protoc reads it."""

    def __init__(self, request):
        text = decode(request.body, "push.v1.PushRequest", "push.proto")
        pairs = re.findall(r'labels \{\n\s+name: "(.*)"\n\s+value: "(.*)"\n',
                           text)
        self.request = request
        self.n_labels, self.labels = len(pairs), dict(pairs)
        self.ids = re.findall(r'^\s+ID: "(.*)"$', text, re.M)
        raw = re.findall(r'^\s+raw_profile: "(.*)"$', text, re.M)
        self.raw = unescape(raw[0]) if raw else b""
        self.unknown = re.findall(r"^\s*\d+(?:: .*| \{)$", text, re.M)
        self.kind = self.labels.get("__name__")


def pushed(server):
    return [Pushed(r) for r in server.requests if r.answer == 200]


def parts_of(request):
    """Of a form."""
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(
        b"Content-Type: " + request.headers["Content-Type"].encode()
        + b"\r\n\r\n" + request.body)
    return {part.get_param("name", header="Content-Disposition"):
            part.get_payload(decode=True) for part in message.iter_parts()}


def raw_of(request):
    """The profile, by any protocol but OTLP."""
    if request.path.endswith("/Push"):
        return Pushed(request).raw
    if "/ingest?" in request.path:
        return parts_of(request)["profile"]
    if request.path.endswith("/writeraw"):
        return base64.b64decode(json.loads(request.body)["series"][0]
                                ["samples"][0]["rawProfile"], validate=True)
    return request.body


class Profile:
    """What protoc reads of a profile: rows of (functions, values)."""

    def __init__(self, raw):
        text = decode(gzip.decompress(raw), "perftools.profiles.Profile",
                      "profile.proto")
        strings = [unescape(s).decode() for s in
                   re.findall(r'^string_table: "(.*)"$', text, re.M)]
        # Line by line: there are millions of bytes of some.
        blocks = re.findall(r"^(\w+) \{\n((?: .*\n)*)\}$", text, re.M)
        functions, places = {}, {}
        self.stacks, self.types, self.pairs = [], [], []
        for kind, body in blocks:
            if kind == "sample":
                self.stacks.append(
                    ([int(v) for v in re.findall(r"location_id: (\d+)", body)],
                     [int(v) for v in re.findall(r"^  value: (-?\d+)$", body,
                                                 re.M)]))
                continue
            numbers = [(k, int(v)) for k, v in
                       re.findall(r"^\s+(\w+): (-?\d+)$", body, re.M)]
            first = dict(reversed(numbers))
            if kind == "sample_type":
                self.types.append(strings[first["type"]])
                self.pairs.append((self.types[-1], strings[first["unit"]]))
            elif kind == "function":
                functions[first["id"]] = strings[first.get("name", 0)]
            elif kind == "location":
                places[first["id"]] = [v for k, v in numbers
                                       if k == "function_id"]
        self.names = {place: {functions.get(f) for f in ids}
                      for place, ids in places.items()}
        found = re.search(r"^duration_nanos: (\d+)$", text, re.M)
        self.seconds = int(found[1]) / 1e9 if found else 0
        found = re.search(r"^time_nanos: (\d+)$", text, re.M)
        self.until = self.seconds + int(found[1]) / 1e9

    @functools.cached_property
    def rows(self):
        return [(set().union(*(self.names.get(p, ()) for p in stack)), values)
                for stack, values in self.stacks]

    def total(self, i, function=None):
        places = {p for p, names in self.names.items() if function in names}
        return sum(values[i] for stack, values in self.stacks
                   if function is None or not places.isdisjoint(stack))


def seconds_of(all_):
    """Of all intervals together; sent twice is counted once."""
    return sum(Profile(raw).seconds for raw in
               {p.ids[0]: p.raw for p in all_}.values())
