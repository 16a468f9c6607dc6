#!/usr/bin/env python3
"""What the page of `cpprof http` costs, beside Debian's `go tool pprof -http` of
the same profile in the same run.

    web.py BUILD MAKER [ROUNDS]

MAKER is genprof.py; its profiles stay in BUILD/bench-data. CPU is that of the
server and its children from its start to the answer, by /proc; memory the peak
of the server, and of ours also the largest of its children's. Figures are
medians. pprof needs minutes and 16 GB for 200 000 samples, so it is asked for
them only with WEB_PEER=1, and never for the 2 000 000 of the largest profile.
The time to the first picture is Chromium's, where it is there: the median of at
least 7, of pprof's smallest profile one, and none of a page of hundreds of megabytes.
Beside it stand empty pages in new tabs of the same browser: of a server, which is
what Chromium needs for any page of ours, and of a file. Their spread tells how quiet
the machine was. $SPEEDSCOPE may name the folder of an unpacked release of speedscope,
with its index.html; then that opens the same files, but for the largest, which it
cannot.
"""
import base64
import gzip
import http.server
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, HERE)
sys.path.insert(1, os.path.join(HERE, "..", "tests", "e2e"))
from browser import Browser, find_browser  # noqa: E402
from data import go_pprof, make_profiles  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
LARGEST_IN_BROWSER = 30 << 20
PICTURES = 7  # a page needs as long as the machine has other work


class Server:
    def __init__(self, words):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.begin = time.monotonic()
        self.process = subprocess.Popen(
            [word.replace("PORT", str(self.port)) for word in words],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=dict(
                os.environ, PPROF_BINARY_PATH="/nonexistent"))
        self.url = "http://127.0.0.1:%d/ui/" % self.port

    def get(self, path):
        """An answer, as soon as there is one; a page as a browser gets it."""
        request = urllib.request.Request(self.url + path, headers={
            "Accept-Encoding": "gzip"})
        while True:
            try:
                with urllib.request.urlopen(request) as answer:
                    return answer.read()
            except urllib.error.HTTPError as error:
                if error.code != 503:
                    raise
            except OSError:
                if self.process.poll() is not None:
                    raise
            time.sleep(0.01)

    def listens(self):
        """Seconds from its start until it does."""
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return time.monotonic() - self.begin
            except OSError:
                if self.process.poll() is not None:
                    raise
            time.sleep(0.001)

    def cpu(self):
        with open("/proc/%d/stat" % self.process.pid) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / TICK

    def peak(self):
        with open("/proc/%d/status" % self.process.pid) as file:
            return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) / 1024

    def close(self):
        self.process.terminate()
        self.process.wait()


def unpacked(data):
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def visit(words, page, rest):
    """[MB sent, CPU s, peak MB] of a page and what it asks for; then the CPU
    seconds of another view, and of the same again."""
    server = Server(words)
    try:
        answers = [server.get(page)]
        # The first boxes are in it, if the profile was read soon.
        if b'{"width":2000,"first":null' in unpacked(answers[0]):
            answers.append(server.get("api/first?gz=t&w=1000"))
        figures = [sum(map(len, answers)) / 1e6, server.cpu(), server.peak()]
        for path in rest:
            before = server.cpu()
            server.get(path)
            figures.append(server.cpu() - before)
    finally:
        server.close()
    return figures


def cpu_below(pid):
    """CPU seconds of a process that runs and of all below it."""
    parents, ticks = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name) as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(name)] = int(fields[1])
        ticks[int(name)] = int(fields[11]) + int(fields[12])
    found, n = {pid}, 0
    while n < len(found):
        n = len(found)
        found |= {p for p, parent in parents.items() if parent in found}
    return sum(ticks.get(p, 0) for p in found) / TICK


# In each page before its own script: when the first frame with a picture was
# drawn, in milliseconds since 1970.
DRAWN = """(() => {
    const look = () => requestAnimationFrame(IS_THERE ? () => {
        window.drawn = performance.timeOrigin + performance.now();
    } : look);
    look();
})()"""


def time_picture(browser, is_there, url_of):
    """Seconds until there is a picture in a new tab, from when url_of() begins to
    run, which tells its address; None if none comes."""
    browser.before = DRAWN.replace("IS_THERE", is_there)
    browser.open_tab()
    begin = time.time()  # a page knows no other clock
    browser.ask("Page.navigate", url=url_of())
    return browser.wait("window.drawn", 60) and \
        browser.tell("window.drawn") / 1000 - begin


EMPTY = b"<!doctype html><canvas></canvas>"
HAS_CANVAS = "document.querySelector('canvas')"


class EmptyPage(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(EMPTY)))
        self.end_headers()
        self.wfile.write(EMPTY)

    def log_message(self, *_):
        pass


def first_picture(words, page, is_there):
    """Seconds from the start of the command until it listens, until there is a
    picture, for an empty page of a server and for one of a file; then Chromium's
    CPU time for the last three."""
    home = tempfile.mkdtemp()
    browser = Browser(find_browser(), home)
    empty = os.path.join(home, "empty.html")
    with open(empty, "wb") as file:
        file.write(EMPTY)
    plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), EmptyPage)
    threading.Thread(target=plain.serve_forever, daemon=True).start()
    servers, listening = [], []

    def serve():
        servers.append(Server(words))
        listening.append(servers[0].listens())
        return servers[0].url + page

    def measure(is_there, url_of):
        before = cpu_below(browser.process.pid)
        seconds = time_picture(browser, is_there, url_of)
        time.sleep(0.5)
        return seconds, cpu_below(browser.process.pid) - before

    try:
        # Or Chromium's own start is measured, too.
        measure(HAS_CANVAS, lambda: "file://" + empty)
        time.sleep(0.5)
        of_file = measure(HAS_CANVAS, lambda: "file://" + empty)
        of_server = measure(HAS_CANVAS, lambda: "http://127.0.0.1:%d/" %
                            plain.server_port)
        ours = measure(is_there, serve)
        return listening + [what[k] for k in (0, 1)
                            for what in (ours, of_server, of_file)]
    finally:
        plain.shutdown()
        plain.server_close()
        for server in servers:
            server.close()
        browser.close()
        shutil.rmtree(home, ignore_errors=True)


def speedscope(folder, path):
    """Seconds until speedscope has drawn a file, which it gets as its command
    gives it: as a script."""
    chromium = find_browser()
    if not chromium:
        return None
    home = tempfile.mkdtemp()
    script = os.path.join(home, "profile.js")
    browser = Browser(chromium, home)
    warm = os.path.join(home, "warm.html")
    with open(warm, "w", encoding="ascii") as file:
        file.write("<!doctype html><canvas></canvas>")
    browser.open(warm)
    begin = time.monotonic()
    with open(path, "rb") as file, open(script, "w", encoding="ascii") as to:
        to.write("speedscope.loadFileFromBase64('profile.pb.gz', '%s')" %
                 base64.b64encode(file.read()).decode())
    try:
        browser.open(os.path.join(folder, "index.html") +
                     "#localProfilePath=" + script)
        return time.monotonic() - begin if browser.wait(
            "document.querySelectorAll('canvas').length > 1", 120) else None
    finally:
        browser.close()
        shutil.rmtree(home, ignore_errors=True)


# Of the box with about 5 000 below it: boxes, ms to draw them with what the
# browser does then, and ms to enlarge it; the best of some.
DRAW = """(() => {
    const f = view.flame, b = f.boxes, c = f.canvas.getContext('2d');
    let at = 0;
    for (let i = 0; i < b.n; i++)
        if (Math.abs(b.end[i] - i - 5000) < Math.abs(b.end[at] - at - 5000))
            at = i;
    const best = work => {
        let least = 1e9;
        for (let k = 0; k < 40; k++) {
            const begin = performance.now();
            work();
            c.getImageData(0, 0, 1, 1);
            least = Math.min(least, performance.now() - begin);
        }
        return least;
    };
    f.show(b, at);
    return [f.rects.length, best(() => f.draw()),
        best(() => f.show(new Boxes(b.data, '', ''), at))];
})()"""


def drawing(words):
    chromium = find_browser()
    if not chromium:
        return
    home = tempfile.mkdtemp()
    browser = Browser(chromium, home)
    server = Server(words)
    try:
        server.get("api/boxes?w=1900")
        browser.open(server.url + "flamegraph")
        browser.ask("Emulation.setDeviceMetricsOverride", width=1900,
                    height=1000, deviceScaleFactor=1, mobile=False)
        browser.wait("window.cpprof && cpprof.shown().length > 1")
        time.sleep(1)  # the boxes of the new width
        print("  %d boxes are drawn in %.1f ms; enlarged in %.1f ms" %
              tuple(browser.tell(DRAW)))
    finally:
        server.close()
        browser.close()
        shutil.rmtree(home, ignore_errors=True)


class Trace:
    """What Chromium's threads do between begin() and end()."""

    def __init__(self, browser):
        self.browser, self.events, self.is_over = browser, [], False
        receive = browser.receive

        def receive_all():
            message = receive()
            if message.get("method") == "Tracing.dataCollected":
                self.events.extend(message["params"]["value"])
            self.is_over |= message.get("method") == "Tracing.tracingComplete"
            return message
        browser.receive = receive_all

    def ask(self, method, **params):
        """Of the whole browser, not of a page."""
        session, self.browser.session = self.browser.session, None
        self.browser.ask(method, **params)
        self.browser.session = session

    def begin(self):
        self.events, self.is_over = [], False
        self.ask("Tracing.start", transferMode="ReportEvents", traceConfig={
            "includedCategories": ["toplevel"]})

    def end(self):
        """The CPU time of the longest task of a page, in ms."""
        self.ask("Tracing.end")
        while not self.is_over:
            self.browser.receive()
        pages = {(e["pid"], e["tid"]) for e in self.events
                 if e["name"] == "thread_name" and
                 e["args"]["name"] == "CrRendererMain"}
        return max((e.get("tdur", 0) for e in self.events
                    if e["ph"] == "X" and (e["pid"], e["tid"]) in pages),
                   default=0) / 1000


# Steps of somebody who looks at a profile; each ends when the page is still.
STEPS = [
    ("enlarge", "view.flame.canvas.focus(); press('ArrowDown', 'ArrowDown', "
                "'ArrowDown', 'Enter')"),
    ("all of it", "press('Escape')"),
    ("search", "search.value = 'util'; search.dispatchEvent(new Event('input'))"),
    ("clear it", "search.value = ''; search.dispatchEvent(new Event('input'))"),
    ("filter", "go('flamegraph', {f: 'util'})"),
    ("top", "go('top', {f: ''})"),
    ("scroll", "document.querySelectorAll('#main, #main *').forEach(e => "
               "{ e.scrollTop = 1e6; })"),
    ("search in top", "search.value = 'a'; "
                      "search.dispatchEvent(new Event('input'))"),
    ("tree", "search.value = ''; go('tree', {})"),
    ("inverted", "go('inverted', {})"),
    ("flame", "go('flamegraph', {})"),
]
# The longest task of the page, in ms. Shorter ones than 50 are not told.
PAUSES = """window.longest = 0;
new PerformanceObserver(list => { for (const e of list.getEntries())
    window.longest = Math.max(window.longest, e.duration);
}).observe({type: 'longtask', buffered: true});
const press = (...keys) => keys.forEach(key => document.activeElement
    .dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true})));"""


def pauses(words):
    """How long each step keeps the page from its next one: by the clock, which
    other work on the machine makes longer, and by its CPU time."""
    chromium = find_browser()
    if not chromium:
        return
    home = tempfile.mkdtemp()
    browser = Browser(chromium, home)
    server = Server(words)
    still = "window.cpprof && document.getElementById('main')" \
            ".dataset.state === 'ready'"
    found = []
    try:
        server.get("api/boxes?w=1900")
        browser.before = PAUSES
        browser.open(server.url + "flamegraph")
        browser.wait(still)
        time.sleep(1)
        trace = Trace(browser)
        for name, step in STEPS:
            trace.begin()
            browser.tell("window.longest = 0; " + step + "; 0")
            time.sleep(0.1)
            browser.wait(still)
            time.sleep(0.5)
            ms = browser.tell("window.longest")
            found.append("%s %s (%.0f)" % (name, "%.0f" % ms if ms else "< 50",
                                           trace.end()))
    finally:
        server.close()
        browser.close()
        shutil.rmtree(home, ignore_errors=True)
    print("  longest tasks of the page, ms (of CPU time): " + ", ".join(found),
          flush=True)


def enlarged(words):
    """The parameter of the box that is twelve calls deep on the heaviest way, or
    where that ends before."""
    def add(s, a, b):
        x = (s[0] ^ a) * 16777619 & 0xffffffff
        y = (s[1] ^ b) * 0x5bd1e995 & 0xffffffff
        return x, y ^ y >> 15
    server = Server(words)
    data = json.loads(server.get("api/boxes?w=1900"))
    server.close()
    start = whole = (2166136261, 0x9747b28c)
    steps = ""
    for k in range(1, 13):
        if not data["boxes"][7 * (k - 1) + 2]:
            break
        name = start
        for c in data["names"][data["boxes"][7 * k]]:
            name = add(name, ord(c), ord(c))
        whole = add(whole, *name)
        steps += "%02x" % (whole[0] & 255)
    return "&z=%08x%08x-%s" % (*whole, steps)


def row(label, words, page, rest, rounds, n_pictures, is_there):
    runs = [visit(words, page, rest) for _ in range(rounds)]
    middle = [statistics.median(run[i] for run in runs)
              for i in range(len(runs[0]))]
    pictures = []
    if middle[0] < LARGEST_IN_BROWSER / 1e6 and find_browser():
        pictures = [first_picture(words, page, is_there)
                    for _ in range(n_pictures)]
    seen = [[p[i] for p in pictures if p[i] is not None] for i in range(7)]
    print("%-20s %8.2f %8.2f %8.0f %s %s" % (
        label, *middle[:3],
        " ".join("%8.3f" % statistics.median(s) if s and len(s) == len(pictures)
                 else "%8s" % "-" for s in seen),
        " ".join("%8.3f" % v for v in middle[3:])), flush=True)
    if all(seen):
        print("  picture %.3f to %.3f, an empty page of a server %.3f to %.3f; "
              "%d runs, load average %.1f" % (
                  min(seen[1]), max(seen[1]), min(seen[2]), max(seen[2]),
                  len(pictures), os.getloadavg()[0]), flush=True)


def main():
    build, maker = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    folder = os.path.join(build, "bench-data")
    paths = make_profiles(maker, folder, {
        name: ["--preset", name] for name in ("small", "medium", "large")})
    # Of the same program, and as large, for comparisons.
    bases = make_profiles(maker, folder, {
        name + "-base": ["--preset", name, "--sample-seed", "2"]
        for name in paths})
    print("%-20s" % "" + " ".join("%8s" % word for word in (
        "MB sent", "CPU s", "peak MB", "listens", "picture", "empty", "file",
        "its CPU", "empty", "file", "top", "filter", "enlarge", "again")))
    for name, path in paths.items():
        ours = [os.path.join(build, "cpprof"), "-http=localhost:PORT",
                "-no_browser", "-symbolize=none", path]
        deep = "api/boxes?w=1900&gz=t" + enlarged(ours)
        row("cpprof " + name, ours, "flamegraph",
            ["api/table?max=50000&gz=t", "api/boxes?w=1900&gz=t&i=util",
             deep, deep], rounds, max(rounds, PICTURES),
            "typeof view === 'object' && view && view.flame && "
            "view.flame.rects.length > 1")
        if name != "large":
            drawing(ours)
        pauses(ours)
        pauses(ours[:-1] + ["-diff_base=" + bases[name + "-base"], path])
        if os.environ.get("SPEEDSCOPE") and name != "large":
            seconds = speedscope(os.environ["SPEEDSCOPE"], path)
            print("%-20s %8s %8s %8s %8s" % ("speedscope " + name, "", "", "",
                  "%.2f" % seconds if seconds else "-"), flush=True)
        if go_pprof() and (name == "small" or
                           (name == "medium" and os.environ.get("WEB_PEER"))):
            row("go pprof " + name, [
                go_pprof(), "-http=localhost:PORT", "-no_browser",
                "-symbolize=none", path], "flamegraph",
                ["top", "flamegraph?i=util"], max(rounds // 3, 1), max(rounds // 3, 1),
                "document.querySelectorAll('#flame-chart *, #stack-chart *, "
                "svg *').length > 1")
    print("listens, picture: seconds from the start of the command until it "
          "listens, and\nto boxes in a new tab of Chromium, which runs already; its "
          "CPU: Chromium's;\nempty, file: of a tab with an empty page of a "
          "server, of a file; the last\ncolumns: CPU seconds of the server for "
          "one more view")


if __name__ == "__main__":
    main()
