"""`cpprof http` for tests: started, asked, and ended. The first argument of the
test is cpprof."""
import gzip
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time

cpprof = os.path.realpath(sys.argv[1])


class Server:
    """One that serves, until it is closed."""

    def __init__(self, *words, address=":0", command=True, cwd=None, env=None):
        first = ["http", address] if command else ["-http=" + address]
        self.process = subprocess.Popen(
            [cpprof, *first, "-no_browser", *words], stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, cwd=cwd, env=env)
        self.line = " "
        while self.line and "web UI on" not in self.line and \
                "shown on" not in self.line:  # warnings come first
            self.line = self.process.stderr.readline()
        found = re.search(r"http://(.*?):(\d+)(/\S*)?$", self.line.strip())
        self.port = int(found.group(2)) if found else 0
        self.prefix = (found.group(3) or "") if found else ""
        self.url = "http://127.0.0.1:%d%s/ui/" % (self.port, self.prefix)

    def ask(self, path, method="GET", headers=None, host=None):
        """Status, headers and body."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        link.putrequest(method, path, skip_host=True)
        link.putheader("Host", host or "localhost:%d" % self.port)
        for name, value in (headers or {}).items():
            link.putheader(name, value)
        link.endheaders()
        answer = link.getresponse()
        body = answer.read()
        link.close()
        return answer.status, answer.headers, body

    def get(self, path):
        status, headers, body = self.ask(self.prefix + path)
        if headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        return body if status == 200 else (status, body)

    def data(self, path):
        return json.loads(self.get("/ui/api/" + path))

    def ready(self):
        end = time.monotonic() + 30
        while not self.data("status")["ready"] and time.monotonic() < end:
            time.sleep(0.02)
        return self

    def close(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(30)
        self.rest = self.process.stderr.read()
        self.process.stderr.close()
        return status


def way(path):
    """A box and what leads to it, as boxes.h tells."""
    def add(s, a, b):
        x = (s[0] ^ a) * 16777619 & 0xffffffff
        y = (s[1] ^ b) * 0x5bd1e995 & 0xffffffff
        return x, y ^ y >> 15
    whole, steps = (2166136261, 0x9747b28c), "-"
    for name in path:
        own = (2166136261, 0x9747b28c)
        for c in name:
            own = add(own, ord(c), ord(c))
        whole = add(whole, *own)
        steps += "%02x" % (whole[0] & 255)
    return "%08x%08x" % whole + steps


def address(path):
    return way(path)[:16]
