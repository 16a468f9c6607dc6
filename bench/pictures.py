#!/usr/bin/env python3
"""The pictures of docs/web.md, docs/http.md and the README, taken by Chromium.

    pictures.py BUILD FOLDER [NAME...]

Records redis-server under load, scripts of Python and Lua, a program of C++, and
writes each picture, light and dark, as FOLDER/NAME.png and NAME-dark.png, of 256
colours. With names only these are taken. Look at each before it is committed.
"""
import base64
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(sys.argv[1])
sys.argv[1] = CPPROF = os.path.join(BUILD, "cpprof")  # as web_server wants it
sys.path[1:1] = [os.path.join(HERE, "..", "tests"),
                 os.path.join(HERE, "..", "tests", "e2e")]
from browser import Browser, find_browser  # noqa: E402
from protobuf import chunk, varint  # noqa: E402
from web_server import Server  # noqa: E402

WIDTH, HEIGHT = 1280, 720
PORT = 16411
SECONDS = 3

JSON_SCRIPT = """\
import json, random, sys, threading, time

def make_rows(n):
    return [{"id": i, "name": "row %d" % i, "tags": random.sample(range(99), 5)}
            for i in range(n)]

def pack(rows):
    return json.dumps(rows, indent=1)

def unpack(text):
    return json.loads(text)

def summarize(rows):
    found = {}
    for row in rows:
        for tag in row["tags"]:
            found.setdefault(tag, []).append(row["name"].upper())
    return {tag: sorted(names) for tag, names in found.items()}

end = time.time() + float(sys.argv[1])
while time.time() < end:
    text = pack(make_rows(3000))
    kept = summarize(unpack(text))
"""

LUA_SCRIPT = """\
local seconds, first, name = tonumber(arg[1]), arg[2], arg[3]
local function read_words(n)
  local words = {}
  for i = 1, n do
    for word in ("the quick brown fox " .. i):gmatch("%w+") do
      words[#words + 1] = word
    end
  end
  return words
end
local function sort_words(words)
  table.sort(words, function(a, b) return a < b end)
  return words
end
local function count_words(words)
  local found = {}
  for _, word in ipairs(words) do found[word] = (found[word] or 0) + 1 end
  return found
end
local begin = os.time()
while os.time() - begin < seconds do
  local is_late = os.time() - begin >= seconds / 2
  local words = read_words(is_late and 400 or 2000)
  if is_late then for _ = 1, 3 do sort_words(read_words(1000)) end end
  count_words(words)
end
"""


def run(*words, **more):
    return subprocess.run(words, check=True, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, **more)


# ---- profiles ----------------------------------------------------------------

class Redis:
    """A server, as a copy that is called so: Debian's is a link to a tool."""

    def __init__(self, *before, env=None):
        if not os.path.exists("redis-server"):
            shutil.copy2(shutil.which("redis-server") or
                         shutil.which("redis-check-rdb"), "redis-server")
        self.process = subprocess.Popen(
            [*before, "./redis-server", "--port", str(PORT), "--save", "",
             "--appendonly", "no", "--io-threads", "1"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        while self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", PORT)).close()
                break
            except OSError:
                time.sleep(0.05)

    def load(self, tests, n=60000):
        run("redis-benchmark", "-p", str(PORT), "-q", "-n", str(n), "-r", "5000",
            "-c", "20", "-t", tests)

    def close(self):
        run("redis-cli", "-p", str(PORT), "shutdown", "nosave")
        self.process.wait()


def record_redis():
    for name, tests in (("old", "set,get,lpush,zadd,mset"),
                        ("new", "set,get,lpush,lrange_100,zadd")):
        r = Redis(CPPROF, "record", "-F", "500", "-o", name + "-cpu.pb.gz", "--")
        r.load(tests, 40000)
        r.close()


def record_python():
    with open("rows.py", "w", encoding="ascii") as file:
        file.write(JSON_SCRIPT)
    for kind, more in (("cpu", ["-F", "500"]), ("heap", ["-peak", "-heap", "16k"])):
        run(CPPROF, "record", "-scripts", "-t", kind, *more, "-o",
            kind + "-python.pb.gz", "--", "/usr/bin/python3", "rows.py",
            str(SECONDS))


def record_lines():
    """A program with lines, whose source is found where it runs."""
    shutil.copy2(os.path.join(HERE, "cxx_load.cc"), "cxx_load.cc")
    run("c++", "-O2", "-g", "-fdebug-prefix-map=%s=." % os.getcwd(), "-o",
        "cxx_load", "cxx_load.cc")
    run(CPPROF, "record", "-F", "1000", "-o", "lines.pb.gz", "--", "./cxx_load",
        str(SECONDS))


def record_many():
    """Processes of one recording."""
    with open("many", "w", encoding="ascii") as file:
        file.writelines("%d %d\n" % (k * 7919 % 1000003, k)
                        for k in range(600000))
    run(CPPROF, "record", "-one", "-F", "500", "-o", "many-processes.pb.gz", "--",
        "bash", "-c", "sort many > sorted & gzip -k many & wait; "
        "/usr/bin/python3 rows.py 1 & lua5.4 words.lua 1 & wait; "
        "xz -k -0 sorted; sha256sum sorted.xz; awk '{ n += $2 } END { print n }' "
        "many")


def number(field, value):
    return varint(field << 3) + varint(value)


def record_times():
    """What `perf record` saw, with the time of each sample: profiles of cpprof
    have none."""
    run("perf", "record", "-q", "-F", "400", "--call-graph", "dwarf,8192", "-o",
        "perf.data", "--", "bash", "-c", "for k in 1 2 3; do lua5.4 words.lua 6 & "
        "sleep 0.6; done; /usr/bin/python3 rows.py 4 & wait")
    text = subprocess.run(
        ["perf", "script", "-i", "perf.data", "-F", "comm,tid,time,ip,sym"],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    strings, functions, samples = {"": 0}, {}, []

    def of(table, key):
        return table.setdefault(key, len(table))

    for block in text.decode(errors="replace").split("\n\n"):
        head, *frames = block.strip().split("\n")
        found = re.match(r"(.*?)\s+(\d+)\s+(\d+)\.(\d+):", head)
        names = [frame.split(None, 1)[-1].split("+0x")[0] for frame in frames]
        if not found or not names:
            continue
        names = [n for n in names if n != "[unknown]"] or ["[unknown]"]
        ns = int(found.group(3)) * 10**9 + int(found.group(4).ljust(9, "0"))
        samples.append((names, ns, "%s %s" % found.group(1, 2)))
    first = min(ns for _, ns, _ in samples)
    begin = int(time.time()) * 10**9
    for text in ("cpu", "nanoseconds", "end_timestamp_ns", "thread name"):
        of(strings, text)
    out = chunk(1, number(1, 1) + number(2, 2))
    for names, ns, thread in samples:
        ids = [of(functions, of(strings, name)) + 1 for name in names]
        out += chunk(2, b"".join(number(1, i) for i in ids) + number(
            2, 2500000) + chunk(3, number(1, 3) + number(3, begin + ns - first)) +
            chunk(3, number(1, 4) + number(2, of(strings, thread))))
    for name, k in functions.items():
        out += chunk(4, number(1, k + 1) + chunk(4, number(1, k + 1)))
        out += chunk(5, number(1, k + 1) + number(2, name))
    with open("times.pb", "wb") as file:
        file.write(out + b"".join(chunk(6, s.encode()) for s in strings))


# ---- pictures ----------------------------------------------------------------

def unpack_png(data):
    """Rows of three bytes a pixel, of what Chromium writes."""
    at, packed = 8, b""
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + n]
        if kind == b"IHDR":
            width, _, _, color = struct.unpack(">IIBB", body[:10])
        packed += body if kind == b"IDAT" else b""
        at += 12 + n
    step = 4 if color == 6 else 3
    raw, size = zlib.decompress(packed), width * step
    rows, before = [], bytearray(size)
    for y in range(0, len(raw), size + 1):
        how, row = raw[y], bytearray(raw[y + 1:y + 1 + size])
        for i in range(size):
            a = row[i - step] if i >= step else 0
            b, c = before[i], before[i - step] if i >= step else 0
            if how == 1:
                row[i] = row[i] + a & 255
            elif how == 2:
                row[i] = row[i] + b & 255
            elif how == 3:
                row[i] = row[i] + (a + b) // 2 & 255
            elif how == 4:
                pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
                row[i] = row[i] + (a if pa <= pb and pa <= pc else
                                   b if pb <= pc else c) & 255
        before = row
        rows.append([bytes(row[i:i + 3]) for i in range(0, size, step)])
    return rows


def pack_png(rows):
    """With a palette of the 256 colours that are there most."""
    counts = {}
    for row in rows:
        for pixel in row:
            counts[pixel] = counts.get(pixel, 0) + 1
    palette = sorted(counts, key=counts.get, reverse=True)[:256]
    place = {pixel: i for i, pixel in enumerate(palette)}
    for pixel in counts:
        if pixel not in place:
            place[pixel] = min(range(len(palette)), key=lambda i: sum(
                (a - b) ** 2 for a, b in zip(pixel, palette[i])))

    def part(kind, body):
        return (struct.pack(">I", len(body)) + kind + body +
                struct.pack(">I", zlib.crc32(kind + body)))
    raw = b"".join(b"\0" + bytes(place[pixel] for pixel in row) for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(
        ">IIBBBBB", len(rows[0]), len(rows), 8, 3, 0, 0, 0)) +
        part(b"PLTE", b"".join(palette)) +
        part(b"IDAT", zlib.compress(raw, 9)) + part(b"IEND", b""))


class Album:
    def __init__(self, folder, wanted, home):
        self.folder, self.wanted = folder, wanted
        self.b = Browser(find_browser(), home)

    def wants(self, name):
        return not self.wanted or name in self.wanted

    def snap(self, name, height=HEIGHT):
        data = self.b.ask("Page.captureScreenshot")["data"]
        with open(os.path.join(self.folder, name + ".png"), "wb") as file:
            file.write(pack_png(unpack_png(base64.b64decode(data))[:height]))
        print(name, flush=True)

    def open(self, url):
        self.b.open(url)
        self.b.ask("Emulation.setDeviceMetricsOverride", width=WIDTH,
                   height=HEIGHT, deviceScaleFactor=1, mobile=False)
        self.b.wait("innerWidth === %d" % WIDTH)

    def take(self, server, name, path, *steps, height=HEIGHT):
        """Light and dark; steps are scripts, after each of which it is ready."""
        if not self.wants(name):
            return
        self.open(server.url + path)
        self.b.wait("window.cpprof && cpprof.state.start && "
                    "document.getElementById('main').dataset.state === 'ready'")
        for step in steps:
            self.b.tell(step)
            time.sleep(0.5)
            self.b.wait("document.getElementById('main').dataset.state === "
                        "'ready'")
        for suffix, theme in (("", "light"), ("-dark", "dark")):
            self.b.tell("theme(%r)" % theme)
            time.sleep(0.3)
            self.snap("web-" + name + suffix, height)


def select(name):
    """The box of a function, as a pointer that rests there shows it."""
    return ("(c => c.hover(c.rects.find(i => c.boxes.name(i) === %r)))(view.flame)"
            % name)


def take_redis(album):
    s = Server("new-cpu.pb.gz").ready()
    album.take(s, "flame", "flamegraph", select("processCommand"))
    album.take(s, "inverted", "inverted")
    album.take(s, "sandwich", "sandwich?p=%5Ecall%24")
    album.take(s, "tree", "tree")
    album.take(s, "graph", "graph?f=%5Ecall%24&sf=%5Ecall%24")
    album.take(s, "peek", "peek?sym=%5E(call%7CprocessCommand)%24")
    album.take(s, "traces", "traces")
    s.close()
    s = Server("-diff_base=old-cpu.pb.gz", "new-cpu.pb.gz").ready()
    album.take(s, "diff", "flamegraph?norm=t", select("lrangeCommand"))
    album.take(s, "difftop", "top?norm=t")
    s.close()


def take_others(album):
    s = Server("cpu-python.pb.gz").ready()
    album.take(s, "mixed", "flamegraph", select("pack"))
    s.close()
    s = Server("heap-python.pb.gz").ready()
    album.take(s, "heap", "flamegraph")
    album.take(s, "top", "top")
    s.close()
    s = Server("lines.pb.gz").ready()
    album.take(s, "source", "source?sym=count_words",
               "view.next(1); document.activeElement.click()")
    s.close()
    s = Server("many-processes.pb.gz").ready()
    album.take(s, "tags", "tags", height=360)
    s.close()


def take_times(album):
    if not album.wants("timeline") and not album.wants("times"):
        return
    s = Server("times.pb").ready()
    mark = ("[view.from, view.to] = [%s, %s].map(x => Math.floor(x * view.n)); "
            "view.keep(%s)")
    steps = (mark % (0.08, 0.42, "true"), mark % (0.55, 0.9, "false"),
             "go('flamegraph', {norm: 't'})")
    album.take(s, "timeline", "timeline", *steps, "go('timeline', {})",
               height=300)
    album.take(s, "times", "timeline", *steps)
    s.close()


def take_program(album):
    """The page of a program that serves its profiles."""
    if not any(album.wants("http-" + n) for n in ("list", "ui", "dark", "diff")):
        return
    address = "127.0.0.1:%d" % (PORT + 1)
    r = Redis(env=dict(os.environ, CPPROF="http=" + address + ",cpu=500,heap",
                       LD_PRELOAD=os.path.join(BUILD, "libcpprof.so")))
    b = album.b
    form = "[...document.forms].find(f => f.dataset.name === 'profile')"

    def capture(press, tests):
        load = subprocess.Popen(
            ["redis-benchmark", "-p", str(PORT), "-q", "-l", "-c", "20", "-t",
             tests], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        b.tell("document.getElementById('state').textContent = ''")
        b.tell(press)
        b.wait("/stacks/.test(document.getElementById('state').textContent)")
        load.terminate()
        load.wait()

    album.open("http://%s/debug/pprof/ui" % address)
    album.snap("http-list", 380)
    b.tell(form + ".elements.seconds.value = '4'")
    capture(form + ".querySelector('button').click()", "set,get,lrange_100")
    b.tell("document.getElementById('type').scrollIntoView({block: 'start'})")
    album.snap("http-ui")
    b.tell("document.getElementById('theme').click()")
    album.snap("http-dark")
    b.tell("document.getElementById('theme').click()")
    capture("[...document.querySelectorAll('button')].find(e => /difference/"
            ".test(e.textContent)).click()", "set,get,zadd")
    album.snap("http-diff")
    r.close()


def main():
    folder = os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        os.environ["XDG_CONFIG_HOME"] = scratch
        with open("words.lua", "w", encoding="ascii") as file:
            file.write(LUA_SCRIPT)
        album = Album(folder, sys.argv[3:], os.path.join(scratch, "home"))
        try:
            for make in (record_redis, record_python, record_lines, record_many,
                         record_times):
                make()
                print(make.__name__, flush=True)
            take_redis(album)
            take_others(album)
            take_times(album)
            take_program(album)
        finally:
            album.b.close()
            os.chdir("/")


main()
