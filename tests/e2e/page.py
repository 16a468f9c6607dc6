#!/usr/bin/env python3
"""Pages and pictures, driven in a browser as somebody does who looks at them.

    page.py CPPROF [PICTURE-FOLDER]      TAP

With a folder, pictures of what was seen are left there.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

from browser import Browser, boxes, click_box, find_browser

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
from tap import Tap  # noqa: E402

cpprof = os.path.realpath(sys.argv[1])
album = os.path.realpath(sys.argv[2]) if len(sys.argv) > 2 else None
TAP = Tap()

STACKS = """\
main;parse;read 300
main;parse;lex::next 200
main;eval;call;read 400
main;eval;<b>&"x" 90
main;eval;call;rare 10
"""
BEFORE = STACKS.replace("read 400", "read 100").replace("next 200", "next 280")


# ---------------------------------------------------------- flame graph ----

def info(b):
    return b.tell("document.getElementById('info').textContent")


def selected(b):
    return [name for name, box in boxes(b).items() if box["isSelected"]]


def test_boxes(b):
    all_boxes = boxes(b)
    TAP.ok("a page has a box for each call",
           len(all_boxes) == 10 and '<b>&"x"' in all_boxes, all_boxes)
    width = {name: box["width"] for name, box in all_boxes.items()}
    TAP.ok("as wide as its value", abs(width["parse"] * 2 - width["main"]) < 2
           and abs(width["rare"] * 100 - width["main"]) < 100, width)
    TAP.ok("below its caller", all_boxes["parse"]["y"] ==
           all_boxes["eval"]["y"] > all_boxes["main"]["y"], all_boxes)
    TAP.ok("names are no HTML", b.tell(
         "document.querySelectorAll('main b').length") == 0)
    painted = b.tell(
        "(() => { const c = document.querySelector('canvas'); const k ="
        "devicePixelRatio; return [...c.getContext('2d').getImageData(300 * k,"
        "24 * k, 1, 1).data]; })()")
    TAP.ok("it is painted", painted[3] == 255 and len(set(painted[:3])) > 1,
           painted)
    b.mouse("mouseMoved", all_boxes["parse"]["x"] + 9,
            all_boxes["parse"]["y"] + 8)
    TAP.ok("the pointer tells a value",
           info(b).startswith("parse") and "50.00%" in info(b), info(b))
    b.picture("flamegraph")


def test_zoom(b):
    whole = boxes(b)["main"]["width"]
    click_box(b, "eval")
    seen = boxes(b)
    TAP.ok("a click makes a box as wide as the page",
           abs(seen["eval"]["width"] - whole) < 2 and "parse" not in seen, seen)
    TAP.ok("with its callers above it", seen["main"]["isAbove"], seen)
    b.picture("zoomed")
    b.key("Backspace")
    TAP.ok("Backspace is one step out", "parse" in boxes(b), boxes(b))
    click_box(b, "call")
    b.key("Escape")
    TAP.ok("Escape is all of them", len(boxes(b)) == 10, boxes(b))


def test_keys(b):
    b.key("ArrowDown")
    b.key("ArrowDown")
    first = selected(b)
    b.key("ArrowRight")
    second = selected(b)
    TAP.ok("arrows go to the callee, and beside it",
           sorted(first + second) == ["eval", "parse"], first, second)
    b.key("ArrowLeft")
    TAP.ok("and back", selected(b) == first, selected(b))
    b.key("Enter")
    TAP.ok("Enter zooms", len(boxes(b)) < 10, boxes(b))
    b.key("ArrowUp")
    TAP.ok("Up goes to the caller", first[0] not in selected(b), selected(b))
    b.key("Escape")
    before = boxes(b)["main"]["y"]
    b.write("f")
    TAP.ok("f turns it upside down", boxes(b)["main"]["y"] > before, boxes(b))
    b.key("Escape")
    b.key("ArrowUp")
    b.key("ArrowUp")
    TAP.ok("and the arrows with it", selected(b) in (["eval"], ["parse"]),
           selected(b))
    b.write("f")
    dark = b.tell("document.documentElement.className")
    b.write("t")
    TAP.ok("t changes the colours",
           b.tell("document.documentElement.className") != dark)
    b.picture("dark")
    b.write("t")
    b.key("Escape")


def test_search(b):
    b.write("/")
    b.write("^re")
    found = b.tell("document.getElementById('found').textContent")
    marked = [n for n, box in boxes(b).items() if box["isHit"]]
    TAP.ok("/ searches by expression", marked == ["read", "read'"], marked)
    TAP.ok("and adds up what it finds", "700" in found and "70.00%" in found,
           found)
    b.picture("search")
    b.write("(")
    TAP.ok("an expression that is none is marked",
           b.tell("document.getElementById('q').className") == "bad")
    b.key("Escape")
    TAP.ok("Escape ends the search", not [
         n for n, box in boxes(b).items() if box["isHit"]], boxes(b))
    b.tell("document.getElementById('q').value = ''")
    b.write("/")
    b.write("main")
    found = b.tell("document.getElementById('found').textContent")
    TAP.ok("what is inside a match is not counted twice", "100.00%" in found,
           found)
    TAP.ok("where all boxes are drawn the sum is one", "at least" not in found,
           found)
    b.key("Escape")
    b.write("/")
    b.write("(([a-z_]+)+)+@")
    TAP.same("a repeated group is refused, which could take for ever", b.tell(
        "document.getElementById('found').textContent"),
        "a group cannot be repeated here")
    b.key("Escape")


def test_hidden(b):
    b.write("/")
    b.write("read")
    found = b.tell("document.getElementById('found').textContent")
    TAP.ok("where boxes are not drawn the sum is the least", "at least 700 " in
           found, found)
    b.key("Escape")
    b.write("/")
    b.write("main")
    found = b.tell("document.getElementById('found').textContent")
    TAP.ok("but not where all of them are inside of matches", "at least" not in
           found, found)


def test_difference(b):
    more = [box for box in boxes(b).values()
            if box["name"] == "read" and "100 \u2192 400" in box["text"]]
    TAP.ok("a difference tells both values", len(more) == 1 and "+300" in
           more[0]["text"], boxes(b))
    TAP.ok("and shows it as a colour", more and more[0]["color"].startswith(
         "hsl(8 "), more)
    b.picture("difference")


# -------------------------------------------------------------- picture ----

def place(b):
    return b.tell("(() => {const r = document.querySelector('.node')"
                  ".getBoundingClientRect();"
                  "return [r.x, r.y, r.width]})()")


def test_svg(b):
    b.picture("graph")
    begin = place(b)
    b.mouse("mouseWheel", 300, 200, deltaX=0, deltaY=-240)
    time.sleep(0.2)
    TAP.ok("the wheel makes a picture larger", place(b)[2] > begin[2] * 1.05,
           begin, place(b))
    b.write("0")
    TAP.ok("0 shows all of it again",
           abs(place(b)[2] - begin[2]) < 1, begin, place(b))
    b.write("+")
    larger = place(b)
    TAP.ok("+ makes it larger", larger[2] > begin[2] * 1.05, begin, larger)
    b.write("-")
    TAP.ok("- smaller", place(b)[2] < larger[2], larger, place(b))
    b.write("0")
    b.mouse("mousePressed", 300, 200, button="left", clickCount=1)
    b.mouse("mouseMoved", 340, 250, button="left", buttons=1)
    b.mouse("mouseReleased", 340, 250, button="left", clickCount=1)
    moved = place(b)
    TAP.ok("it is dragged", abs(moved[0] - begin[0] - 40) < 3 and
           abs(moved[1] - begin[1] - 50) < 3, begin, moved)


# ------------------------------------------------------------------ all ----

def make(name, *words):
    subprocess.run([cpprof, "-symbolize=none", "-output=" + name] +
                   list(words), check=True, capture_output=True, timeout=60)
    return os.path.abspath(name)


def run(program):
    for name, stacks in (("now.folded", STACKS), ("before.folded", BEFORE)):
        with open(name, "w", encoding="utf-8") as file:
            file.write(stacks)
    b = Browser(program, os.path.abspath("home"), album)
    try:
        b.open(make("flame.html", "-flamegraph", "now.folded"))
        for test in (test_boxes, test_zoom, test_keys, test_search):
            test(b)
        b.open(make("cut.html", "-flamegraph", "-nodefraction=0.5",
                    "now.folded"))
        test_hidden(b)
        with open("none.folded", "w", encoding="ascii") as file:
            file.write("main;read 0\n")
        b.open(make("none.html", "-flamegraph", "none.folded"))
        TAP.same("a profile without values says so", info(b),
                 "The profile is empty, or all its values are 0.")
        b.open(make("diff.html", "-flamegraph", "-diff_base=before.folded",
                    "now.folded"))
        test_difference(b)
        if shutil.which("dot"):
            b.open(make("graph.svg", "-svg", "now.folded"))
            test_svg(b)
        TAP.ok("no script failed", not b.errors, b.errors)
    finally:
        b.close()


def main():
    program = find_browser()
    if not program:
        print("1..0 # SKIP no chromium here")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        run(program)
        os.chdir("/")
    return TAP.end()


sys.exit(main())
