#!/usr/bin/env python3
"""The search of the page of `cpprof http`, and frames without names.

    web_search.py CPPROF      TAP
"""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, ".."))
from browser import (Browser, boxes, click_box, find_browser,  # noqa: E402
                     ready, text)
import web_server  # noqa: E402
from protobuf import chunk, varint  # noqa: E402
from tap import Tap  # noqa: E402

tap = Tap()


def test_search(b, folder):
    """Of 3000 functions each has a box that is too small to be drawn, and a
    name that keeps a browser's matcher busy for ever."""
    with open(os.path.join(folder, "many"), "w", encoding="ascii") as file:
        file.writelines("main;%s_%d 1\n" % ("abcdefgh" * 5, k)
                        for k in range(3000))
        file.write("main;large;inner 200000\nmain;large;small_in 3\n")
    s = web_server.Server("-symbolize=none", "many", cwd=folder)
    b.open(s.url + "flamegraph")
    ready(b)
    b.write("/")
    b.write("abc.*_1.$")
    b.wait("document.getElementById('found').textContent", 5)
    tap.same("search adds up what is too small to be drawn", text(b, "#found"),
             "0 drawn, 10 (0.00%)")
    b.key("Escape")
    b.write("/")
    b.write("^(((([a-z_]+)+)+)+)+@|^large")
    tap.ok("an expression that explodes freezes nothing", b.wait(
        "document.getElementById('found').textContent.startsWith('1 drawn')", 5))
    tap.ok("and marks what matches", boxes(b)["large"]["isHit"])
    b.key("Escape")
    click_box(b, "large")
    ready(b)
    b.write("/")
    b.write("small_in|abc")
    b.wait("document.getElementById('found').textContent", 5)
    tap.same("it adds up what is enlarged", text(b, "#found"),
             "0 drawn, 3 (0.00%)")
    b.key("Escape")
    b.write("/")
    b.write("(")
    tap.ok("an expression that is none is marked, and why is told", b.wait(
        "document.getElementById('q').title.includes('missing')", 5))
    tap.ok("no script failed", not b.errors, b.errors)
    s.close()
    with open(os.path.join(folder, "wide"), "w", encoding="ascii") as file:
        file.writelines("main;outer;f%d 1\n" % k for k in range(50001))
    s = web_server.Server("-symbolize=none", "wide", cwd=folder)
    b.open(s.url + "top?by=cum")
    ready(b)
    row = "document.querySelectorAll('tr.row')[%d].lastChild.textContent"
    tap.same("of more rows than the page takes it has those that have most of "
             "what it sorts by", sorted(b.tell(row % k) for k in (0, 1)),
             ["main", "outer"])
    b.open(s.url + "top")
    ready(b)
    b.write("/")
    b.write("^outer$")
    b.wait("document.getElementById('found').textContent", 20)
    tap.same("and finds those that it has not", (b.tell(
        "document.querySelectorAll('tr.row').length"), b.tell(row % 0)),
        (1, "outer"))
    s.close()


def test_nameless(b, folder):
    number = lambda field, value: varint(field << 3) + varint(value)
    with open(os.path.join(folder, "nameless"), "wb") as file:
        file.write(
            chunk(1, number(1, 1) + number(2, 2)) +
            chunk(2, chunk(1, varint(1)) + chunk(2, varint(7))) +
            chunk(3, number(1, 1) + number(2, 0x1000) + number(3, 0x9000) +
                  number(5, 3)) +
            chunk(4, number(1, 1) + number(2, 1) + number(3, 0x1234)) +
            b"".join(chunk(6, t) for t in (b"", b"cpu", b"count", b"/no/file")))
    s = web_server.Server("-symbolize=none", "nameless", cwd=folder)
    b.open(s.url + "flamegraph")
    ready(b)
    b.key("ArrowDown")
    b.write("F")
    tap.same("of a frame without a function no filter is made, and why is told",
             (text(b, "#detail"), b.tell("location.search")),
             ("[file <0x1234>] has no function", ""))
    b.write("m")
    tap.same("and the menu offers what works", b.tell(
        "[...document.querySelectorAll('#menu button:enabled kbd')].map(k => "
        "k.textContent).join('')"), "sc")
    s.close()


def main():
    chromium = find_browser()
    if not chromium:
        tap.skip("the search in a browser", "no chromium")
        return tap.end()
    with tempfile.TemporaryDirectory() as folder:
        b = Browser(chromium, os.path.join(folder, "home"), None)
        try:
            test_search(b, folder)
            test_nameless(b, folder)
        finally:
            b.close()
    return tap.end()


sys.exit(main())
