#!/usr/bin/env python3
"""The page of `cpprof http`, driven in a browser as somebody does who looks at
it: every view, by keys and by clicks, with names that are hostile.

    web_page.py CPPROF [PICTURE-FOLDER]      TAP

With a folder, pictures of what was seen are left there.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, ".."))
from browser import (Browser, boxes, click_box, find_browser,  # noqa: E402
                     ready, search, text)
import web_server  # noqa: E402
from protobuf import chunk, varint  # noqa: E402
from tap import Tap  # noqa: E402
from web_server import cpprof  # noqa: E402

album = os.path.realpath(sys.argv[2]) if len(sys.argv) > 2 else None
CPU = os.path.join(HERE, "..", "fixtures", "go.cpu.pb.gz")
tap = Tap()

EVIL = '<img src=x onerror=alert(1)>'
STACKS = """\
main;parse;read 300
main;parse;lex::next 200
main;eval;call;read 400
main;eval;%s;tail 90
main;eval;call;rare 10
""" % EVIL
BEFORE = STACKS.replace("read 400", "read 100").replace("rare 10", "gone 7")


class Server(web_server.Server):
    def __init__(self, *words, cwd=None):
        super().__init__("-symbolize=none", *words, cwd=cwd)


def click(b, name):
    click_box(b, name)
    ready(b)


def at(b, name):
    return b.tell("new URLSearchParams(location.search).get(%s) || ''" %
                  json.dumps(name))


def calm(b, what):
    """Nothing went wrong in the page, and nothing of the profile ran."""
    seen = b.tell("JSON.stringify([window.violations || [], document"
                  ".querySelectorAll('img, iframe, object').length])")
    tap.ok(what + ": no error, no script of others",
           not b.errors and seen == "[[],0]", b.errors, seen)
    b.errors.clear()


def test_flame(b, s):
    b.open(s.url + "flamegraph")
    tap.ok("the page is ready", ready(b))
    seen = boxes(b)
    width = {name: box["width"] for name, box in seen.items()}
    tap.ok("a box is as wide as its value", abs(width["parse"] * 2 -
                                                width["main"]) < 2, width)
    tap.ok("below its caller", seen["parse"]["y"] == seen["eval"]["y"] >
           seen["main"]["y"] and EVIL in seen, seen)
    colour = b.tell(
        "(() => { const c = document.querySelector('canvas'); const k ="
        "devicePixelRatio; return [...c.getContext('2d').getImageData(300 * k,"
        "24 * k, 1, 1).data]; })()")
    tap.ok("and is drawn", colour[3] == 255 and len(set(colour[:3])) > 1, colour)
    b.mouse("mouseMoved", seen["parse"]["x"] + 9, seen["parse"]["y"] + 8)
    tap.ok("the pointer tells a value", text(b, "#detail").startswith("parse") and
           "50.00%" in text(b, "#detail"), text(b, "#detail"))
    tap.same("the command line is told", text(b, "#words"),
             "cpprof -flamegraph new")
    b.picture("web-flame")
    calm(b, "flame graph")


def test_zoom(b):
    whole = boxes(b)["main"]["width"]
    click(b, "eval")
    seen = boxes(b)
    tap.ok("a click makes a box as wide as the page", abs(
        seen["eval"]["width"] - whole) < 2 and "parse" not in seen, seen)
    link = b.tell("location.href")
    tap.ok("the address has it", re.search("z=[0-9a-f]{16}", link), link)
    b.key("Backspace")
    b.wait("cpprof.shown().some(r => r.name === 'parse')", 5)
    tap.ok("Backspace is one box out", "parse" in boxes(b), boxes(b))
    click(b, "call")
    b.key("Escape")
    b.wait("cpprof.shown().some(r => r.name === 'parse')", 5)
    tap.ok("Escape shows all", len(boxes(b)) == 11, boxes(b))
    b.open(link)
    ready(b)
    tap.ok("a link shows the same", abs(boxes(b)["eval"]["width"] - whole) < 2 and
           "parse" not in boxes(b), boxes(b))
    b.key("Escape")
    ready(b)
    calm(b, "zoom")


def test_keys(b):
    b.key("ArrowDown")
    b.key("ArrowDown")
    first = text(b, "#detail").split()[0]
    b.key("ArrowRight")
    second = text(b, "#detail").split()[0]
    tap.same("arrows go to the callee, and beside it", sorted([first, second]),
             ["eval", "parse"])
    tap.same("search adds up what matches", search(b, "rea"), "2 drawn, 700 (70.00%)")
    b.key("Enter")
    b.write("n")
    tap.ok("n goes to the next match", text(b, "#detail").startswith("read"),
           text(b, "#detail"))
    b.write("F")
    b.wait("!!document.querySelector('.chip')", 5)
    ready(b)
    tap.same("F keeps only what is selected", (at(b, "f"), text(b, ".chip span")),
             ("^read$", "focus=^read$"))
    tap.ok("in the flame graph", "rare" not in boxes(b), boxes(b))
    tap.same("and on the command line", text(b, "#words"),
             "cpprof -flamegraph '-focus=^read$' new".replace(
                 "'-focus=^read$'", "-focus='^read$'"))
    b.write("u")
    b.wait("!document.querySelector('.chip')", 5)
    ready(b)
    b.write("/")
    b.write("ignore=parse tagfocus=")
    b.key("Enter")
    b.wait("!!document.querySelector('.chip')", 5)
    ready(b)
    tap.ok("words of the command line are filters", "parse" not in boxes(b) and
           at(b, "i") == "parse", boxes(b))
    b.tell("document.querySelector('.chip button').click()")
    ready(b)
    tap.ok("a click takes one away", b.wait(
        "cpprof.shown().some(r => r.name === 'parse')", 5))
    before = boxes(b)["main"]["y"]
    b.write("o")
    ready(b)
    tap.ok("o turns it upside down", boxes(b)["main"]["y"] > before, boxes(b))
    b.write("o")
    b.write("b")
    ready(b)
    seen = boxes(b)
    tap.ok("b orders by name", seen["eval"]["x"] < seen["parse"]["x"], seen)
    b.write("b")
    dark = b.tell("isDark()")
    b.write("t")
    tap.ok("t changes light and dark", b.tell("isDark()") != dark)
    b.write("?")
    tap.ok("? lists the keys", "next match" in text(b, "dialog"))
    b.key("Escape")
    b.tell("document.getElementById('about').close()")
    calm(b, "keys")


def test_sandwich(b, s):
    # An address with a filter that is no regexp.
    b.open(s.url + "flamegraph?f=%5B")
    b.wait("document.querySelector('main').textContent.includes('regexp')", 10)
    tap.same("a filter that is wrong stands in front of the field",
             text(b, ".chip span"), "focus=[")
    b.tell("document.querySelector('.chip button').click()")
    tap.ok("and a click takes it away", b.wait(
        "cpprof.shown().some(r => r.name === 'parse')", 5))
    b.open(s.url + "flamegraph?p=%5Eeval%24")
    b.wait("location.pathname.endsWith('sandwich')", 5)
    ready(b)
    seen = boxes(b)
    tap.ok("pprof's pivot is callers above, callees below",
           seen["main"]["y"] < seen["call"]["y"] and "parse" not in seen and
           abs(seen["main"]["width"] * 4 - seen["call"]["width"] * 5) < 100, seen)
    tap.ok("and between them the function", text(b, ".pivot").startswith(
        "eval500"), text(b, ".pivot"))
    b.picture("web-sandwich")
    tap.same("search tells callers and callees apart", search(b, "^(main|call)$"),
             "callees 1 drawn, 410 (41.00%); callers 1 drawn, 500 "
             "(50.00%)")
    b.key("Escape")
    before = b.tell("history.length")
    b.key("Escape")
    b.key("Escape")
    tap.same("Escape where nothing is enlarged is no step of the history",
             b.tell("history.length"), before)
    b.open(s.url + "inverted")
    ready(b)
    seen = boxes(b)
    tap.ok("inverted: who calls what costs most", abs(
        seen["read"]["width"] * 10 - seen["root"]["width"] * 7) < 20, seen)
    calm(b, "sandwich")


def test_top(b, s):
    b.open(s.url + "top")
    ready(b)
    rows = "[...document.querySelectorAll('tr.row')].map(r => [...r.children]" \
        ".map(c => c.textContent).join('|'))"
    seen = b.tell(rows)
    tap.same("top has every function, the largest first",
             (len(seen), seen[0]), (9, "700|70.00%|700|70.00%|read"))
    b.tell("document.querySelectorAll('th button')[2].click()")
    ready(b)
    tap.ok("a click sorts", b.tell(rows)[0].endswith("|main"), b.tell(rows))
    tap.same("as the command line says", text(b, "#words"),
             "cpprof -top -trim=false -cum new")
    b.write("/")
    b.write("^(call|eval)")
    b.wait("document.querySelectorAll('tr.row').length === 2", 5)
    tap.same("typing filters", sorted(r.split("|")[-1] for r in b.tell(rows)),
             ["call", "eval"])
    b.picture("web-top")
    b.key("Enter")
    b.key("ArrowDown")
    b.key("Enter")
    b.wait("location.pathname.endsWith('sandwich')", 5)
    ready(b)
    tap.ok("Enter opens the sandwich", at(b, "p") in ("^call$", "^eval$"))
    b.open(s.url + "tree")
    ready(b)
    names = "[...document.querySelectorAll('tr.row')].map(r => " \
        "r.getAttribute('aria-level') + r.firstChild.textContent.slice(1))"
    tap.same("the tree opens its heaviest way", b.tell(names)[:2],
             ["1root", "2main"])
    b.key("ArrowDown")
    b.key("ArrowLeft")
    b.key("ArrowRight")
    tap.ok("and opens and closes by keys", b.tell(names)[2:] == ["3parse", "3eval"]
           or b.tell(names)[2:] == ["3eval", "3parse"], b.tell(names))
    search(b, "^(eval|rare)$")
    tap.same("search in the tree marks rows and adds up", (text(b, "#found"),
             text(b, "mark")), ("1 drawn, 500 (50.00%)", "eval"))
    b.key("Enter")
    b.write("n")
    tap.same("and n goes to one", text(b, "#detail"), "main \u203a eval")
    calm(b, "top and tree")


def test_others(b, s):
    for view in ("peek?sym=eval", "traces", "tags", "source?sym=read",
                 "disasm?sym=read"):
        b.open(s.url + view)
        tap.ok(view + " is shown", ready(b))
        calm(b, view)
    for view in ("top", "tree") + (("graph",) if shutil.which("dot") else ()):
        b.open(s.url + view + "?i=main")
        ready(b)
        tap.same("nothing left is said in " + view, text(b, ".note"),
                 "The filters leave nothing.")
    b.open(s.url + "peek?sym=eval")
    ready(b)
    tap.ok("names of a peek are text", EVIL in text(b, "pre"), text(b, "pre"))
    tap.ok("and lead to their sandwich", b.tell(
        "[...document.querySelectorAll('pre a')].some(a => a.textContent ==="
        "'call' && a.search === '?p=%5Ecall%24')"))
    if shutil.which("dot"):
        b.open(s.url + "graph")
        ready(b)
        tap.ok("the graph has a node for each function", b.tell(
            "document.querySelectorAll('.graph g.node [data-title]').length") ==
            9)
        tap.ok("with no link or script of its own", b.tell(
            "!document.querySelector('.graph a, .graph script')"))
        b.picture("web-graph")
        calm(b, "graph")
    b.open(s.url + "flamegraph?f=%28")
    ready(b)
    tap.ok("an error is told", "missing closing" in text(b, ".note"))


def test_narrow(b, s):
    b.open(s.url + "flamegraph")
    b.ask("Emulation.setDeviceMetricsOverride", width=360, height=600,
          deviceScaleFactor=2, mobile=False)
    ready(b)
    b.wait("innerWidth === 360", 5)
    tap.ok("360 pixels are enough", b.tell(
        "document.documentElement.scrollWidth <= 360 && "
        "document.getElementById('main').clientHeight > 300"))
    b.picture("web-narrow")
    b.ask("Emulation.clearDeviceMetricsOverride")


def test_touch(b, s):
    b.open(s.url + "flamegraph")
    b.ask("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    b.ask("Emulation.setDeviceMetricsOverride", width=360, height=640,
          deviceScaleFactor=2, mobile=True)
    ready(b)
    b.wait("cpprof.shown().length === 11 && innerWidth === 360 && "
           "cpprof.shown()[0].width === 360", 20)
    box = boxes(b)["eval"]
    x, y = box["x"] + box["width"] / 2, box["y"] + 8
    b.touch("touchStart", (x, y))
    b.touch("touchEnd")
    tap.ok("a tap enlarges", b.wait(
        "!cpprof.shown().some(r => r.name === 'parse')", 5), boxes(b))
    b.touch("touchStart", (x - 80, y))
    b.touch("touchStart", (x - 80, y), (x + 80, y))
    for wide in (60, 40, 20):
        b.touch("touchMove", (x - wide, y), (x + wide, y))
    b.touch("touchEnd")
    tap.ok("two fingers that come together go out", b.wait(
        "cpprof.shown().some(r => r.name === 'parse')", 5), boxes(b))
    ready(b)
    box = boxes(b)["eval"]
    x, y = box["x"] + box["width"] / 2, box["y"] + 8
    b.touch("touchStart", (x - 20, y), (x + 20, y))
    for wide in (25, 30, 40):
        b.touch("touchMove", (x - wide, y), (x + wide, y))
    b.touch("touchEnd")
    tap.ok("that part, in", b.wait(
        "!cpprof.shown().some(r => r.name === 'parse')", 5), boxes(b))
    ready(b)
    link = b.tell("location.search")
    box = boxes(b)["eval"]
    b.touch("touchStart", (box["x"] + 50, box["y"] + 8))
    tap.ok("a long press opens the menu", b.wait(
        "!document.getElementById('menu').hidden", 5) and
        text(b, "#detail").startswith("eval"), text(b, "#detail"))
    b.picture("web-touch")
    b.touch("touchEnd")
    time.sleep(0.1)
    tap.same("and enlarges nothing", b.tell("location.search"), link)
    tap.ok("the page is as wide as the screen", b.tell(
        "document.documentElement.scrollWidth <= 360 && [...document."
        "querySelectorAll('header button, header select, #q')].every(e =>"
        "e.getBoundingClientRect().right <= 360)"))
    hidden = "getComputedStyle(document.getElementById('save')).display"
    before = b.tell(hidden)
    b.tell("document.getElementById('fold').click()")
    tap.same("what has no room is behind a button", (before, b.tell(hidden) !=
             "none"), ("none", True))
    b.ask("Emulation.clearDeviceMetricsOverride")
    b.ask("Emulation.setTouchEmulationEnabled", enabled=False)
    calm(b, "touch")


def test_reader(b, s):
    """What a screen reader is told."""
    b.open(s.url + "tree")
    ready(b)
    b.key("ArrowDown")
    seen = b.ask("Accessibility.getFullAXTree")["nodes"]
    said = [(node.get("role", {}).get("value"), node.get("name", {}).get(
        "value", "")) for node in seen]
    rows = [name for role, name in said if role == "row"]
    tap.ok("the tree has rows with names and values", ("treegrid", "calls") in
           said and any("main" in r and "100.00%" in r for r in rows), rows)
    tap.ok("the row that keys have reached is told", b.tell(
        "document.getElementById(document.activeElement.getAttribute("
        "'aria-activedescendant')).textContent").find("main") >= 0)
    b.open(s.url + "flamegraph")
    ready(b)
    nameless = b.tell(
        "[...document.querySelectorAll('button, select, input')].filter(e =>"
        "!e.textContent.trim() && !e.title && !e.ariaLabel).length")
    tap.same("every control has a name", nameless, 0)


def test_types(b, folder):
    s = Server(CPU)
    b.open(s.url + "flamegraph")
    ready(b)
    b.write("v")
    b.wait("location.search.includes('si=')", 5)
    ready(b)
    tap.same("v shows the next sample type", (at(b, "si"), boxes(b)["root"][
        "value"]), ("samples", 20))
    b.open(s.url + "source?sym=main.spin")
    ready(b)
    tap.ok("a source that is not there is said to be missing", b.tell(
        "[...document.querySelectorAll('.source .dim')].some(e => e.textContent"
        ".includes('-source_path'))"), text(b, "main"))
    b.open(s.url + "tags")
    ready(b)
    b.tell("search.focus()")
    # What was asked for before the last letter is answered after it.
    b.tell("window.fetch = (real => async (url, more) => { const answer = await "
           "real(url, more); if (/table/.test(url)) { await new Promise(done =>"
           " setTimeout(done, 500)); setTimeout(() => { window.late = true; }, "
           "200); } return answer; })(fetch)")
    b.write("ignore=x tagfocus=ph")
    offered = "[...document.querySelectorAll('#names option')].map(o => o.value)"
    b.wait("window.late")
    tap.ok("labels and their values are completed", b.wait(
        offered + ".includes('ignore=x tagfocus=phase=^%s$')" % b.tell(
            "document.querySelector('.tags td').textContent")),
        b.tell(offered))
    b.tell("search.value = ''")
    b.tell("document.querySelector('.tags td button').click()")
    b.wait("location.search.includes('tf=')", 5)
    ready(b)
    tap.ok("a click on a label filters", at(b, "tf").startswith("phase=^"))
    calm(b, "types and tags")
    s.close()
    s = Server("-diff_base=old", "new", cwd=folder)
    b.open(s.url + "flamegraph")
    ready(b)
    seen = boxes(b)
    b.mouse("mouseMoved", seen["rare"]["x"] + 2, seen["rare"]["y"] + 8)
    tap.ok("a difference tells both values, and what is new", re.match(
        r"rare +\+10 +0 \u2192 10 +new", text(b, "#detail")), text(b, "#detail"))
    b.picture("web-diff")
    b.tell("[...document.querySelectorAll('#options button')].find(e => "
           "e.textContent === 'normalize').click()")
    b.wait("location.search.includes('norm=t')", 5)
    ready(b)
    tap.ok("normalized, what remains of all by rounding is nothing", re.match(
        r"root +0 ", b.tell("view.flame.text(0)")), b.tell("view.flame.text(0)"))
    b.open(s.url + "top?only=gone")
    ready(b)
    tap.same("its table shows what is gone", b.tell(
        "[...document.querySelectorAll('tr.row')].map(r => "
        "r.lastChild.textContent)"), ["gone"])
    calm(b, "difference")
    s.close()


def test_deeper(b, folder):
    """Boxes that the server sends when their caller is enlarged."""
    with open(os.path.join(folder, "deep"), "w", encoding="ascii") as file:
        file.write("main;big 100000\nmain;mid;other 100\n"
                   "main;mid;tiny;deep 3\nmain;%s 5000\n" %
                   ";".join("x%d" % k for k in range(60)))
    s = Server("deep", cwd=folder)
    b.open(s.url + "flamegraph")
    ready(b)
    first = b.tell("view.flame.boxes.n")
    search(b, "^mid")
    b.key("Enter")
    b.write("n")
    b.key("Enter")
    b.wait("cpprof.shown().some(r => r.name === 'deep')", 5)
    seen = boxes(b)
    tap.ok("a box that was too small comes when its caller is enlarged",
           first < 70 and "big" not in seen and abs(
               seen["other"]["width"] * 103 - seen["mid"]["width"] * 100) < 300
           and seen["deep"]["value"] == 3, first, seen)
    link = b.tell("location.href")
    b.key("Backspace")
    b.wait("cpprof.shown().some(r => r.name === 'big')", 5)
    b.open(link)
    b.wait("cpprof.shown().some(r => r.name === 'deep')", 5)
    tap.ok("also when the page begins there", "deep" in boxes(b), boxes(b))
    b.open(s.url + "tree")
    ready(b)
    b.tell("[...document.querySelectorAll('tr.row')].find(r => r.textContent"
           ".includes('mid')).querySelector('.twist').click()")
    tap.ok("the tree asks for it, too", b.wait(
        "[...document.querySelectorAll('tr.row')].some(r => r.textContent"
        ".includes('tiny'))", 5))
    b.open(s.url + "sandwich?p=%5Emid%24")
    ready(b)
    click(b, "other")
    tap.ok("a sandwich has what is enlarged in its address, too",
           re.fullmatch("[0-9a-f]{16}", at(b, "z")) and at(b, "p") == "^mid$" and
           "tiny" not in boxes(b) and "main" in boxes(b), boxes(b))
    b.key("Escape")
    b.wait("cpprof.shown().some(r => r.name === 'tiny')", 5)
    tap.same("Escape shows all of it", (at(b, "z"), "tiny" in boxes(b)),
             ("", True))
    b.tell("document.getElementById('save').click()")
    link = b.tell("[...document.querySelectorAll('dialog a')].find(a => "
                  "a.download === 'stacks.txt').getAttribute('href')")
    b.open(s.url + "sandwich?p=%5Ex50%24")
    ready(b)
    line = b.tell("document.querySelector('.pivot').getBoundingClientRect().top")
    near = line - boxes(b)["x49"]["y"]
    tap.ok("of many callers those are seen that are near", 10 < near < 30, near)
    tap.ok("stacks can be saved", b"main;mid;tiny;deep 3" in
           urllib.request.urlopen(s.url + link).read(), link)
    calm(b, "deeper boxes")
    s.close()
    with open(os.path.join(folder, "deepest"), "w", encoding="ascii") as file:
        file.write(";".join("f%d" % k for k in range(4000)) + " 1\n")
    s = Server("deepest", cwd=folder)
    b.open(s.url + "tree")
    ready(b)
    rows = "document.querySelectorAll('tr.row').length"
    before = b.tell(rows)
    b.tell("[...document.querySelectorAll('.twist')].pop().click()")
    tap.same("of a stack without an end the first rows are open", (
        before < 100, b.tell(rows)), (True, before + 1))
    calm(b, "deepest")
    s.close()
    with open(os.path.join(folder, "zero"), "w", encoding="ascii") as file:
        file.write("main;nothing 0\n")
    s = Server("zero", cwd=folder)
    b.open(s.url + "flamegraph")
    ready(b)
    zero = text(b, "#main")
    b.open(s.url + "source?sym=nosuch")
    ready(b)
    tap.same("values of 0, and a function that is not there, are told", (
        zero, text(b, ".note")), ("All values are 0.",
        "no matches found for regexp: nosuch"))
    calm(b, "zero")
    s.close()


def number(field, value):
    return varint(field << 3) + varint(value)


def write_times(path):
    """100 samples of "main", 10 ms apart, in "load" and then in "work"; and 25
    of "io", in "wait"."""
    strings = [b"", b"cpu", b"nanoseconds", b"end_timestamp_ns", b"thread name",
               b"main", b"io", b"load", b"work", b"wait"]

    def sample(location, k, thread):
        return chunk(2, number(1, location) + number(2, 10000000) + chunk(
            3, number(1, 3) + number(3, 1700000000000000000 + k * 10000000)) +
            chunk(3, number(1, 4) + number(2, thread)))
    with open(path, "wb") as file:
        file.write(chunk(1, number(1, 1) + number(2, 2)) + b"".join(
            sample(1 + (k >= 50), k, 5) for k in range(100)) + b"".join(
            sample(3, k, 6) for k in range(0, 100, 4)) + b"".join(
            chunk(4, number(1, i) + chunk(4, number(1, i))) +
            chunk(5, number(1, i) + number(2, 6 + i)) for i in (1, 2, 3)) +
            b"".join(chunk(6, text) for text in strings))


def write_lines(folder):
    """A source of long lines, and a profile of three of them."""
    source = os.path.join(folder, "lines.c")
    with open(source, "w", encoding="ascii") as file:
        file.writelines("    line_%d(%s);\n" % (k, ", ".join(["argument"] * 20))
                        for k in range(1, 9))
    strings = [b"", b"cpu", b"nanoseconds", b"read", source.encode()]
    with open(os.path.join(folder, "lines"), "wb") as file:
        file.write(chunk(1, number(1, 1) + number(2, 2)) + b"".join(
            chunk(2, number(1, k) + number(2, value)) + chunk(
                4, number(1, k) + chunk(4, number(1, 1) + number(2, 2 + k)))
            for k, value in ((1, 64000000), (2, 16000000), (3, 1000000))) +
            chunk(5, number(1, 1) + number(2, 3) + number(4, 4)) +
            b"".join(chunk(6, text) for text in strings))


def test_source(b, folder):
    write_lines(folder)
    s = Server("lines", cwd=folder)
    b.open(s.url + "source?sym=read")
    ready(b)
    heat = b.tell("[...document.querySelectorAll('.code .l')].filter(e => "
                  "+e.dataset.heat).map(e => +e.style.background.match("
                  "/[\\d.]+(?=\\))/)[0])")
    tap.ok("a line is the warmer the more it has", len(heat) == 3 and
           heat[0] > 1.5 * heat[1] > 2 * heat[2] > 0, heat)
    b.write("nn")
    tap.same("n goes to the next hot line", b.tell(
        "document.activeElement.dataset.heat"), "16000000")
    kept = b.tell("!document.activeElement.dispatchEvent(new KeyboardEvent("
                  "'keydown', {key: 'Tab', bubbles: true, cancelable: true}))")
    tap.ok("Tab is left to the browser, which goes on to the next element",
           not kept)
    b.open(s.url + "source?sym=%5Eread%24")
    ready(b)
    b.write("p")
    tap.ok("p leads from a function's source to its peek", b.wait(
        "location.pathname.endsWith('peek')", 5))
    b.open(s.url + "source?sym=read")
    ready(b)
    b.ask("Emulation.setDeviceMetricsOverride", width=360, height=640,
          deviceScaleFactor=2, mobile=True)
    b.wait("innerWidth === 360", 5)
    seen = b.tell("(() => { const c = document.querySelector('.code'), "
                  "t = c.querySelector('.l').lastChild; return [c.scrollWidth - "
                  "c.clientWidth, t.clientWidth / c.clientWidth]; })()")
    tap.ok("360 pixels have room for its text, and none is cut off", seen[0] == 0
           and seen[1] > 0.5, seen)
    b.picture("web-source")
    b.ask("Emulation.clearDeviceMetricsOverride")
    calm(b, "source")
    s.close()


def test_timeline(b, s, folder):
    b.open(s.url + "timeline")
    ready(b)
    tap.ok("without times there is no timeline, and why is told", b.tell(
        "!document.querySelector('nav a[href^=timeline]')") and
        "end_timestamp_ns" in text(b, ".note"), text(b, ".note"))
    write_times(os.path.join(folder, "times"))
    t = Server("times", cwd=folder)
    b.open(t.url + "flamegraph")
    ready(b)
    b.write("T")
    b.wait("!!document.querySelector('.timeline')", 5)
    ready(b)
    tap.same("T shows a strip for each thread", b.tell(
        "[...document.querySelectorAll('.names div')].map(e => e.textContent)"),
        ["all threads", "io", "main"])
    tap.same("whose columns add up", b.tell(
        "view.data.rows.map(r => r.slice(1).reduce((a, b) => a + b))"),
        [250000000, 1000000000])
    b.picture("web-timeline")
    box = b.tell("(r => [r.left, r.top, r.width])(document.querySelector('.lane')"
                 ".getBoundingClientRect())")
    b.mouse("mousePressed", box[0] + 2, box[1] + 30, button="left", clickCount=1)
    b.mouse("mouseMoved", box[0] + box[2] * 0.4, box[1] + 30, button="left")
    tap.ok("dragging tells what is marked", re.match(
        r"0ns to [\d.]+ms after the first sample", text(b, "#detail")) and b.tell(
            "!document.querySelector('.span').hidden"), text(b, "#detail"))
    b.mouse("mouseReleased", box[0] + box[2] * 0.4, box[1] + 30, button="left")
    b.wait("location.pathname.endsWith('flamegraph')", 5)
    ready(b)
    tap.ok("and makes it a filter", {"load", "wait"} <= set(boxes(b)) and
           "work" not in boxes(b) and at(b, "tf").startswith(
               "end_timestamp_ns=1700000000000000000ns:"), at(b, "tf"), boxes(b))
    b.write("u")
    b.wait("!!document.querySelector('.timeline')", 5)
    ready(b)
    columns = b.tell("view.n")
    for _ in range(columns + 1):
        b.key("ArrowRight")
    b.key("Enter")
    b.wait("location.pathname.endsWith('flamegraph')", 5)
    ready(b)
    tap.ok("by keys as well", "work" in boxes(b) and "load" not in boxes(b),
           at(b, "tf"), boxes(b))
    b.write("u")
    b.wait("!!document.querySelector('.timeline')", 5)
    ready(b)
    test_two_times(b, t, box, folder)
    calm(b, "timeline")
    t.close()


def test_two_times(b, t, box, folder):
    """The second half is compared with the first."""
    def drag(begin, end, **more):
        b.mouse("mousePressed", box[0] + box[2] * begin, box[1] + 30,
                button="left", clickCount=1, **more)
        b.mouse("mouseMoved", box[0] + box[2] * end, box[1] + 30,
                button="left", **more)
        b.mouse("mouseReleased", box[0] + box[2] * end, box[1] + 30,
                button="left", **more)

    drag(0.001, 0.45, modifiers=8)
    tap.ok("with Shift a time is marked to be compared with", text(
        b, "#detail").startswith("Mark what") and b.tell(
            "!document.querySelector('.span.base').hidden"), text(b, "#detail"))
    drag(0.55, 0.999)
    b.wait("location.pathname.endsWith('flamegraph')", 5)
    ready(b)
    seen = boxes(b)
    tap.ok("what is marked then is shown less that", seen["work"]["value"] > 0 >
           seen["load"]["value"] and abs(seen["wait"]["value"]) < 3e7 and
           "new" in seen["work"]["text"] and "gone" in seen["load"]["text"], seen)
    tap.same("both are told as the time of day", b.tell(
        "[...document.querySelectorAll('.chip > span')].map(e => e.textContent"
        ".replace(/\\.\\d\\d/g, ''))"), [
            "tagfocus: 2023-11-14 22:13:20 to 22:13:20 UTC",
            "tagbase: 2023-11-14 22:13:20 to 22:13:20 UTC"])
    tap.same("and what is below says on one line that it is near to this", b.tell(
        "(e => [e.hidden, e.offsetHeight < 24])("
        "document.getElementById('near'))"), [False, True])
    b.picture("web-times")
    state = "tf=" + at(b, "tf") + "&tb=" + at(b, "tb")
    tap.same("in each view, and in the address", re.findall(
        " (load|work) *$", t.get("/ui/api/report/top?" + state).decode(), re.M),
        ["load", "work"])
    b.tell("[...document.querySelectorAll('#options button')].find(e => "
           "e.textContent === 'normalize').click()")
    b.wait("location.search.includes('norm=t')", 5)
    ready(b)
    tap.same("and the command line prints the same", subprocess.run(
        shlex.split(text(b, "#words").replace("-flamegraph", "-top")),
        executable=cpprof, cwd=folder, capture_output=True,
        check=False).stdout, t.get("/ui/api/report/top?norm=t&" + state))
    tap.less("scaled to each other", abs(boxes(b)["root"]["value"]), 1000)
    b.write("T")
    b.wait("!!document.querySelector('.timeline')", 5)
    ready(b)
    tap.same("the timeline shows all, and both times", b.tell(
        "[view.data.rows.length, view.mark.hidden, view.baseMark.hidden]"),
        [2, False, False])
    d = Server("-diff_base=old", "new", cwd=folder).ready()
    tap.same("a difference is not compared again", d.get(
        "/ui/api/boxes?" + state), (400, b"this is a difference already, so "
                                b"-tagbase can subtract nothing\n"))
    d.close()


def test_folded(b, folder):
    """Recursion as one box, and enlarged as such."""
    with open(os.path.join(folder, "calls"), "w", encoding="ascii") as file:
        file.write("main;fib;fib;fib;add 30\nmain;fib;fib;sub 10\n"
                   "main;fib;fib 5\nmain;fib;log;fib;add 15\n")
    s = Server("calls", cwd=folder)
    b.open(s.url + "flamegraph")
    ready(b)
    before = len(boxes(b))
    b.write("r")
    b.wait("location.search.includes('rec=t')", 5)
    ready(b)
    seen = {name: (box["value"], box["self"]) for name, box in boxes(b).items()}
    tap.same("r makes calls of a function by itself one box", (before, seen), (
        10, {"root": (60, 0), "main": (60, 0), "fib": (60, 5), "add": (30, 30),
             "log": (15, 0), "fib'": (15, 0), "sub": (10, 10),
             "add'": (15, 15)}))
    tap.same("its command line does", text(b, "#words"),
             "cpprof -flamegraph -fold_recursion calls")
    alone = os.path.join(folder, "calls.html")
    subprocess.run([cpprof, "-symbolize=none", "-flamegraph",
                    "-fold_recursion", "-output=" + alone, "calls"], cwd=folder,
                   check=True, stderr=subprocess.DEVNULL)
    b.open(alone)
    tap.same("and so is its file", {
        name: (box["value"], box["self"]) for name, box in boxes(b).items()},
        seen)
    t = Server("-fold_recursion", "calls", cwd=folder)
    b.open(t.url + "flamegraph")
    ready(b)
    tap.ok("one that begins so", len(boxes(b)) == 8 and b.tell(
        "document.querySelector('#options [aria-pressed=true]').textContent") ==
        "fold", boxes(b))
    b.write("r")
    b.wait("location.search.includes('rec=')", 5)
    ready(b)
    tap.same("can be unfolded", len(boxes(b)), 10)
    t.close()
    b.open(s.url + "flamegraph?rec=t")
    ready(b)
    click(b, "log")
    seen = boxes(b)
    tap.ok("which are enlarged", "sub" not in seen and abs(
        seen["log"]["width"] - seen["main"]["width"]) < 2, seen)
    b.write("r")
    b.wait("!location.search.includes('rec=')", 5)
    ready(b)
    calm(b, "folded")
    s.close()


def test_commands(b, s, folder):
    """The command line below a view prints what the view shows."""
    for state in ("top?f=read", "top?i=eval&by=cum", "top?h=^call&si=0",
                  "top?s=main|read&g=files", "top?sf=eval&n=3", "peek?sym=^call",
                  "peek?sym=read&f=parse&unit=auto", "traces?f=eval&i=tail",
                  "traces?prunefrom=call"):
        b.open(s.url + urllib.parse.quote(state, safe="?=&/"))
        ready(b)
        words = text(b, "#words")
        done = subprocess.run(["bash", "-c", words.replace(
            "cpprof ", '"$0" -symbolize=none ', 1), cpprof], cwd=folder, check=True,
            capture_output=True, text=True).stdout
        if state.startswith("top"):
            seen = b.tell("[...document.querySelectorAll('tr.row')].map(r => "
                          "r.lastChild.textContent)")
            wanted = [re.split(r"\s+", line.strip(), maxsplit=5)[5] for line in
                      done.split("cum%\n")[1].splitlines()]
        else:
            seen, wanted = text(b, "pre").strip(), done.strip()
        tap.same(state + " is " + words, seen, wanted)


def test_completion(b):
    b.open(b.tell("location.origin") + "/ui/tags")
    ready(b)
    offered = "[...document.querySelectorAll('#names option')].map(o => o.value)"
    for typed, wanted in (("tagf", ["tagfocus="]), ("lex", ["lex::next"]),
                          ("ignore=main foc", ["ignore=main focus="]),
                          ("hide=rar", ["hide=rare"])):
        b.tell("search.value = ''; search.focus()")
        b.write(typed)
        tap.ok("%s is completed" % typed, b.wait("JSON.stringify(%s) === %s" % (
            offered, json.dumps(json.dumps(wanted, separators=(",", ":")))), 5),
            b.tell(offered))


def test_configs(b, s):
    b.open(s.url + "flamegraph?f=read")
    ready(b)
    b.write("k")
    rows = "[...document.querySelectorAll('dialog tr')].map(r => r.textContent)"
    b.wait("!!document.querySelector('dialog input')", 5)
    tap.same("k lists saved configs", b.tell(rows), ["Default"])
    b.tell("document.querySelector('dialog input').focus()")
    b.write("<b>mine")
    b.key("Enter")
    b.wait(rows + ".length === 2", 5)
    tap.same("Enter saves what is shown", b.tell(rows)[1],
             "<b>minefocus=read\u00d7")
    b.tell("document.querySelector('dialog button.link').click()")
    ready(b)
    tap.same("Default has no filter", at(b, "f"), "")
    b.write("k")
    b.wait("document.querySelector('dialog').open", 5)
    b.tell("document.querySelectorAll('dialog button.link')[1].click()")
    ready(b)
    tap.same("a saved one brings its own", at(b, "f"), "read")
    b.write("k")
    b.wait("document.querySelector('dialog').open", 5)
    for _ in range(2):
        b.tell("document.querySelector('dialog button[title=delete]').click()")
    tap.ok("a second click deletes it", b.wait(rows + ".length === 1", 5))
    b.tell("document.getElementById('about').close()")
    calm(b, "configs")


def test_thin(b, folder):
    """Boxes that a wider page would draw."""
    with open(os.path.join(folder, "thin"), "w", encoding="ascii") as file:
        file.write("main;big 10000\n" + "".join(
            "main;thin%d 8\n" % k for k in range(200)))
    s = Server("thin", cwd=folder)
    b.open(s.url + "flamegraph")
    ready(b)
    sent = b.tell("view.flame.boxes.data.names.filter(n => n.startsWith('thin'))"
                  ".length")
    seen = boxes(b)
    beside = "(() => { const r = cpprof.shown().find(r => r.name === 'big'), " \
             "c = view.flame.canvas, at = c.getBoundingClientRect(), " \
             "d = c.getContext('2d').getImageData(r.x + r.width - at.left + 9, " \
             "r.y - at.top + 2, 90, 14).data; " \
             "return new Set(d.filter((v, k) => k % 4 === 0)).size; })()"
    tap.ok("boxes below a pixel are hatched together, though they were sent",
           sent == 200 and sorted(seen) == ["big", "main", "root"] and
           b.tell(beside) > 1, sent, seen, b.tell(beside))
    b.open(s.url + "flamegraph?so=n")
    ready(b)
    tap.ok("and so they are in the order of names", b.tell(beside) > 1)
    b.ask("Emulation.setDeviceMetricsOverride", width=1900, height=600,
          deviceScaleFactor=1, mobile=False)
    b.wait("cpprof.shown().length > 200", 5)
    tap.same("on a wider page they are drawn", len(boxes(b)), 203)
    b.ask("Emulation.clearDeviceMetricsOverride")
    calm(b, "thin")
    s.close()


def test_dark(b, s):
    """What is seen before the script has run, and after it."""
    body = "getComputedStyle(document.body).backgroundColor"
    seen = []
    for is_off in (True, False):
        b.open_tab()
        b.ask("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark"}])
        b.ask("Emulation.setScriptExecutionDisabled", value=is_off)
        b.ask("Page.navigate", url=s.url + "flamegraph")
        b.wait("!!document.getElementById('first') || !!window.cpprof", 5)
        seen.append(max(map(int, re.findall(r"\d+", b.tell(body)))))
    tap.ok("in the dark there is nothing bright before the script",
           max(seen) < 40, seen)
    ready(b)
    calm(b, "dark")


def test_life(b, folder):
    """A page that is there before the profile, and after the server."""
    path = os.path.join(folder, "pipe")
    os.mkfifo(path)
    s = Server(path)
    b.open(s.url + "top")
    b.wait("!!document.querySelector('.note')", 5)
    tap.ok("the page tells what is being read", "reading " + path in text(
        b, ".note"), text(b, ".note"))
    bars = "['header', 'footer'].map(e => getComputedStyle(" \
           "document.querySelector(e)).visibility).join()"
    waiting = b.tell(bars)
    with open(path, "w", encoding="ascii") as file:
        file.write(STACKS)
    tap.ok("and goes on by itself", ready(b) and b.tell(
        "document.querySelectorAll('tr.row').length") == 9)
    tap.same("nothing can be chosen before there is a profile",
             (waiting, b.tell(bars)), ("hidden,hidden", "visible,visible"))
    s.close()
    tap.ok("a server that has ended is told", b.wait(
        "!!document.getElementById('gone')", 20) and "read" in text(b, "main"))
    s = Server(path)
    b.open(s.url + "top")
    b.wait("!!document.querySelector('.note')", 5)
    with open(path, "w", encoding="ascii") as file:
        file.write("junk")
    tap.ok("and why one has no profile", b.wait(
        "document.getElementById('main').textContent.includes('parsing')", 5),
        text(b, "main"))
    s.close()
    b.errors.clear()


def main():
    chromium = find_browser()
    if not chromium:
        tap.skip("the page in a browser", "no chromium")
        return tap.end()
    with tempfile.TemporaryDirectory() as folder:
        for name, stacks in (("new", STACKS), ("old", BEFORE)):
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(stacks)
        os.environ["XDG_CONFIG_HOME"] = os.path.join(folder, "config")
        s = Server("new", cwd=folder)
        b = Browser(chromium, os.path.join(folder, "home"), album)
        b.before = ("addEventListener('securitypolicyviolation', e => (window."
                    "violations = window.violations || []).push(e.blockedURI +"
                    " ' ' + e.violatedDirective)); window.alert = () => (window"
                    ".violations = window.violations || []).push('alert');")
        try:
            test_flame(b, s)
            test_zoom(b)
            test_keys(b)
            test_sandwich(b, s)
            test_top(b, s)
            test_others(b, s)
            test_source(b, folder)
            test_narrow(b, s)
            test_touch(b, s)
            test_reader(b, s)
            test_types(b, folder)
            test_deeper(b, folder)
            test_thin(b, folder)
            test_timeline(b, s, folder)
            test_folded(b, folder)
            test_commands(b, s, folder)
            test_completion(b)
            test_configs(b, s)
            test_dark(b, s)
            test_life(b, folder)
        finally:
            b.close()
            s.close()
            time.sleep(0.1)
    return tap.end()


sys.exit(main())
