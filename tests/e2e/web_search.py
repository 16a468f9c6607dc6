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
                     ready, search, text)
import web_server  # noqa: E402
from protobuf import chunk, varint  # noqa: E402
from tap import Tap  # noqa: E402

tap = Tap()


def opened(b, folder, name, data, view):
    """A server of a profile that is this text, or these bytes, and its page."""
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    s = web_server.Server("-symbolize=none", name, cwd=folder)
    b.open(s.url + view)
    ready(b)
    return s


def test_search(b, folder):
    """Of 3000 functions each has a box that is too small to be drawn, and a
    name that keeps a browser's matcher busy for ever."""
    s = opened(b, folder, "many", "".join(
        "main;%s_%d 1\n" % ("abcdefgh" * 5, k) for k in range(3000)) +
        "main;large;inner 200000\nmain;large;small_in 3\n", "flamegraph")
    tap.same("search adds up what is too small to be drawn",
             search(b, "abc.*_1.$"), "0 drawn, 10 (0.00%)")
    b.key("Escape")
    tap.ok("an expression that explodes freezes nothing", search(
        b, "^(((([a-z_]+)+)+)+)+@|^large").startswith("1 drawn"))
    tap.ok("and marks what matches", boxes(b)["large"]["isHit"])
    b.key("Escape")
    click_box(b, "large")
    ready(b)
    tap.same("it adds up what is enlarged", search(b, "small_in|abc"),
             "0 drawn, 3 (0.00%)")
    # The answer to "small_i" comes, and none to what is typed after it.
    b.tell("window.fetch = (real => (url, more) => /=small_(&|$)/.test(url) ? "
           "new Promise(() => {}) : real(url, more))(fetch)")
    b.key("Escape")
    search(b, "small_i")
    b.tell("search.value = 'small_'; search.dispatchEvent(new Event('input'))")
    tap.ok("a sum of what was typed before is pale, and tells of what it is",
           b.wait("document.getElementById('found').className === 'old'", 5) and
           b.tell("document.getElementById('found').title") == "of small_i")
    b.key("Escape")
    search(b, "(")
    tap.ok("an expression that is none is marked, and why is told", b.wait(
        "document.getElementById('q').title.includes('missing')", 5))
    tap.ok("no script failed", not b.errors, b.errors)
    s.close()


def test_large_table(b, folder):
    s = opened(b, folder, "wide", "".join(
        "main;outer;f%d 1\n" % k for k in range(50001)), "top?by=cum")
    row = "document.querySelectorAll('tr.row')[%d].lastChild.textContent"
    tap.same("of more rows than the page takes it has those that have most of "
             "what it sorts by", sorted(b.tell(row % k) for k in (0, 1)),
             ["main", "outer"])
    b.open(s.url + "top")
    ready(b)
    search(b, "^outer$")
    tap.same("and finds those that it has not", (b.tell(
        "document.querySelectorAll('tr.row').length"), b.tell(row % 0)),
        (1, "outer"))
    s.close()


def test_nameless(b, folder):
    number = lambda field, value: varint(field << 3) + varint(value)
    s = opened(
        b, folder, "nameless",
        chunk(1, number(1, 1) + number(2, 2)) +
        chunk(2, chunk(1, varint(1)) + chunk(2, varint(7))) +
        chunk(3, number(1, 1) + number(2, 0x1000) + number(3, 0x9000) +
              number(5, 3)) +
        chunk(4, number(1, 1) + number(2, 1) + number(3, 0x1234)) +
        b"".join(chunk(6, t) for t in (b"", b"cpu", b"count", b"/no/file")),
        "flamegraph")
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
            test_large_table(b, folder)
            test_nameless(b, folder)
        finally:
            b.close()
    return tap.end()


sys.exit(main())
