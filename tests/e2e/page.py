#!/usr/bin/env python3
"""Pages and pictures, driven in a browser as somebody does who looks at them.

    page.py CPPROF [PICTURE-FOLDER]      TAP

With a folder, pictures of what was seen are left there.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from browser import Browser, find_browser

cpprof = os.path.realpath(sys.argv[1])
album = os.path.realpath(sys.argv[2]) if len(sys.argv) > 2 else None
checks = []

STACKS = """\
main;parse;read 300
main;parse;lex::next 200
main;eval;call;read 400
main;eval;<b>&"x" 90
main;eval;call;rare 10
"""
BEFORE = STACKS.replace("read 400", "read 100").replace("next 200", "next 280")


def check(name, ok, *seen):
    checks.append(bool(ok))
    print("%sok %d - %s" % ("" if ok else "not ", len(checks), name))
    if not ok:
        for text in seen:
            print("# %s" % (text,))
    sys.stdout.flush()


# ---------------------------------------------------------- flame graph ----

def boxes(b):
    """What is drawn, by name; equal names are numbered."""
    found = {}
    for box in b.tell("cpprof.shown()"):
        name = box["name"]
        while name in found:
            name += "'"
        found[name] = box
    return found


def click_box(b, name):
    box = boxes(b)[name]
    b.click(box["x"] + box["width"] / 2, box["y"] + 8)


def info(b):
    return b.tell("document.getElementById('info').textContent")


def selected(b):
    return [name for name, box in boxes(b).items() if box["isSelected"]]


def test_boxes(b):
    all_boxes = boxes(b)
    check("a page has a box for each call",
          len(all_boxes) == 10 and '<b>&"x"' in all_boxes, all_boxes)
    width = {name: box["width"] for name, box in all_boxes.items()}
    check("as wide as its value", abs(width["parse"] * 2 - width["main"]) < 2
          and abs(width["rare"] * 100 - width["main"]) < 100, width)
    check("below its caller", all_boxes["parse"]["y"] ==
          all_boxes["eval"]["y"] > all_boxes["main"]["y"], all_boxes)
    check("names are no HTML", b.tell(
        "document.querySelectorAll('main b').length") == 0)
    painted = b.tell(
        "(() => { const c = document.querySelector('canvas'); const k ="
        "devicePixelRatio; return [...c.getContext('2d').getImageData(300 * k,"
        "24 * k, 1, 1).data]; })()")
    check("it is painted", painted[3] == 255 and len(set(painted[:3])) > 1,
          painted)
    b.mouse("mouseMoved", all_boxes["parse"]["x"] + 9,
            all_boxes["parse"]["y"] + 8)
    check("the pointer tells a value",
          info(b).startswith("parse") and "50.00%" in info(b), info(b))
    b.picture("flamegraph")


def test_zoom(b):
    whole = boxes(b)["main"]["width"]
    click_box(b, "eval")
    seen = boxes(b)
    check("a click makes a box as wide as the page",
          abs(seen["eval"]["width"] - whole) < 2 and "parse" not in seen, seen)
    check("with its callers above it", seen["main"]["isAbove"], seen)
    b.picture("zoomed")
    b.key("Backspace")
    check("Backspace is one step out", "parse" in boxes(b), boxes(b))
    click_box(b, "call")
    b.key("Escape")
    check("Escape is all of them", len(boxes(b)) == 10, boxes(b))


def test_keys(b):
    b.key("ArrowDown")
    b.key("ArrowDown")
    first = selected(b)
    b.key("ArrowRight")
    second = selected(b)
    check("arrows go to the callee, and beside it",
          sorted(first + second) == ["eval", "parse"], first, second)
    b.key("ArrowLeft")
    check("and back", selected(b) == first, selected(b))
    b.key("Enter")
    check("Enter zooms", len(boxes(b)) < 10, boxes(b))
    b.key("ArrowUp")
    check("Up goes to the caller", first[0] not in selected(b), selected(b))
    b.key("Escape")
    before = boxes(b)["main"]["y"]
    b.write("f")
    check("f turns it upside down", boxes(b)["main"]["y"] > before, boxes(b))
    b.key("Escape")
    b.key("ArrowUp")
    b.key("ArrowUp")
    check("and the arrows with it", selected(b) in (["eval"], ["parse"]),
          selected(b))
    b.write("f")
    dark = b.tell("document.documentElement.className")
    b.write("t")
    check("t changes the colours",
          b.tell("document.documentElement.className") != dark)
    b.picture("dark")
    b.write("t")
    b.key("Escape")


def test_search(b):
    b.write("/")
    b.write("^re")
    found = b.tell("document.getElementById('found').textContent")
    marked = [n for n, box in boxes(b).items() if box["isHit"]]
    check("/ searches by expression", marked == ["read", "read'"], marked)
    check("and adds up what it finds", "700" in found and "70.00%" in found,
          found)
    b.picture("search")
    b.write("(")
    check("an expression that is none is marked",
          b.tell("document.getElementById('q').className") == "bad")
    b.key("Escape")
    check("Escape ends the search", not [
        n for n, box in boxes(b).items() if box["isHit"]], boxes(b))
    b.tell("document.getElementById('q').value = ''")
    b.write("/")
    b.write("main")
    found = b.tell("document.getElementById('found').textContent")
    check("what is inside a match is not counted twice", "100.00%" in found,
          found)
    b.key("Escape")


def test_difference(b):
    more = [box for box in boxes(b).values()
            if box["name"] == "read" and "100 \u2192 400" in box["text"]]
    check("a difference tells both values", len(more) == 1 and "+300" in
          more[0]["text"], boxes(b))
    check("and shows it as a colour", more and more[0]["color"].startswith(
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
    check("the wheel makes a picture larger", place(b)[2] > begin[2] * 1.05,
          begin, place(b))
    b.write("0")
    check("0 shows all of it again",
          abs(place(b)[2] - begin[2]) < 1, begin, place(b))
    b.write("+")
    larger = place(b)
    check("+ makes it larger", larger[2] > begin[2] * 1.05, begin, larger)
    b.write("-")
    check("- smaller", place(b)[2] < larger[2], larger, place(b))
    b.write("0")
    b.mouse("mousePressed", 300, 200, button="left", clickCount=1)
    b.mouse("mouseMoved", 340, 250, button="left", buttons=1)
    b.mouse("mouseReleased", 340, 250, button="left", clickCount=1)
    moved = place(b)
    check("it is dragged", abs(moved[0] - begin[0] - 40) < 3 and
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
        b.open(make("diff.html", "-flamegraph", "-diff_base=before.folded",
                    "now.folded"))
        test_difference(b)
        if shutil.which("dot"):
            b.open(make("graph.svg", "-svg", "now.folded"))
            test_svg(b)
        check("no script failed", not b.errors, b.errors)
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
    print("1..%d" % len(checks))
    return not all(checks)


sys.exit(main())
