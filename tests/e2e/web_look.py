#!/usr/bin/env python3
"""How the page of `cpprof http` looks, by what a browser computes, and what a
click on a label leads to.

    web_look.py CPPROF      TAP
"""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, ".."))
from browser import Browser, find_browser, ready, text  # noqa: E402
import web_server  # noqa: E402
from protobuf import chunk, varint  # noqa: E402
from tap import Tap  # noqa: E402

tap = Tap()
STRINGS = [b"", b"cpu", b"milliseconds", b"hot", b"tepid", b"two.c", b"size",
           b"bytes", b"path", b"a,b", b"aab", b"by", b"x\xc3\xa4,b z",
           b"/no/program_with_a_long_name"]


def number(field, value):
    return varint(field << 3) + varint(value)


def make_profile(values, labels):
    """hot calls tepid, lines 1 and 3 of two.c. A sample of hot for each of the
    labels: (key, text, number, unit)."""
    samples = [([2, 1], values[1], b"")]
    samples += [([1], values[0], chunk(3, b"".join(
        number(k, v) for k, v in zip((1, 2, 3, 4), label) if v)))
        for label in labels]
    return (
        chunk(1, number(1, 7) + number(2, 7)) +
        chunk(1, number(1, 1) + number(2, 2)) +
        b"".join(chunk(2, chunk(1, b"".join(map(varint, stack))) +
                       chunk(2, varint(1) + varint(value)) + label)
                 for stack, value, label in samples) +
        chunk(3, number(1, 1) + number(3, 0x9000) + number(5, 13)) +
        b"".join(chunk(4, number(1, k) + number(2, 1) + chunk(4, number(1, k) +
                                               number(2, 2 * k - 1)))
                 for k in (1, 2)) +
        b"".join(chunk(5, number(1, k) + number(2, 2 + k) + number(4, 5))
                 for k in (1, 2)) +
        b"".join(chunk(6, word) for word in STRINGS))


def write_profiles(folder):
    with open(os.path.join(folder, "two.c"), "w", encoding="ascii") as file:
        file.write("hot();\n\ntepid();\n")
    # 66000 and 66001 bytes are printed as the same.
    labels = [(6, 0, 65536, 7), (6, 0, 66000, 7), (6, 0, 66001, 7),
              (8, 9, 0, 0), (8, 10, 0, 0), (8, 12, 0, 0)]
    for name, values in (("new", (1000, 10)), ("old", (3000, 1))):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(make_profile(values, labels))


def look(b, s, view):
    b.open(s.url + view)
    b.ask("Emulation.setDeviceMetricsOverride", width=1200, height=700,
          deviceScaleFactor=1, mobile=False)
    ready(b)


def test_difference(b, s):
    look(b, s, "tree")
    tap.same("the changes in a tree can be read: red and blue, on no colour",
             b.tell("""[...document.querySelectorAll('td.more, td.less')]
        .map(td => [td.className, getComputedStyle(td)]).every(([name, look]) =>
        look.backgroundImage === 'none' && look.color === getComputedStyle(
        document.body.appendChild(make('p', {className: name}))).color)"""),
             True)
    tap.same("and there are both", sorted(set(b.tell(
        "[...document.querySelectorAll('.tree td:nth-child(2)')].map("
        "td => td.className)"))), ["less", "more"])
    tops = b.tell("[...document.querySelectorAll('.bar')[0].children].map(e => "
                  "e.getBoundingClientRect()).filter(r => r.height).map("
                  "r => Math.round((r.top + r.bottom) / 2))")
    tap.ok("the first line of the bar is one line", max(tops) - min(tops) < 4,
           tops)
    over = []
    for width in (320, 640, 900, 1000, 1150, 1200):
        b.ask("Emulation.setDeviceMetricsOverride", width=width, height=700,
              deviceScaleFactor=1, mobile=False)
        over += [width] * (b.tell(
            "Math.max(...[...document.querySelectorAll('header button')].map("
            "e => e.getBoundingClientRect().right)) > innerWidth"))
    tap.same("no button is off the page, however narrow that is", over, [])
    look(b, s, "graph")
    if not b.tell("!!document.querySelector('svg')"):
        tap.skip("the graph of a difference", "no Graphviz")
        return
    # The strongest of red, green and blue.
    most = b.tell("""[...document.querySelectorAll('.node polygon')].map(e => {
        const parts = e.getAttribute('stroke').match(/[0-9a-f]{2}/g) || [];
        return parts.indexOf(parts.slice().sort().pop()); })""")
    tap.same("a graph tells less by blue as well, and more by red",
             sorted(set(most) - {-1}), [0, 2])


def test_heat(b, s):
    look(b, s, "source?sym=.")
    heats = b.tell("""[...document.querySelectorAll('.code .l')].map(e =>
        +(e.style.background.match(/[0-9.]+(?=[)])/) || [0])[0])
        .filter(heat => heat)""")
    tap.ok("a function that takes little is as cold as it is",
           len(heats) == 2 and heats[0] > 0.4 and heats[1] < 0.1, heats)


def test_labels(b, s):
    link = "[...document.querySelectorAll('.tags button[title=\"only these " \
           "samples\"]')].find(e => e.textContent === '%s')"
    for name, wanted in (("64kB", "1s"), ("64.45kB", "2s"), ("a,b", "1s"),
                         ("x\u00e4,b z", "1s")):
        look(b, s, "tags")
        b.tell((link % name) + ".click()")
        b.wait("location.search.includes('tf=')", 5)
        ready(b)
        tap.same("a click on %s leaves what it says" % name, b.tell(
            "[...document.querySelectorAll('.tags tr')].map(e => e.children[1]"
            ".textContent)"), [wanted])
    look(b, s, "tags?f=nosuch")
    tap.same("labels that filters leave out are not said to be none",
             text(b, "#main"), "The filters leave nothing.")
    look(b, s, "tags")
    for typed, wanted in (
            ("tagfocus=size=64k", "tagfocus=size=65536bytes:65536bytes"),
            ("tagfocus=path=x\u00e4", "tagfocus='path=^x\u00e4\\\\x2cb z$'")):
        b.tell("search.value = ''; search.focus()")
        b.ask("Input.insertText", text=typed)
        tap.ok("%s is completed" % typed, b.wait(
            "[...document.querySelectorAll('#names option')].some(o => "
            "o.value === \"%s\")" % wanted, 5))


def test_focus(b, s):
    look(b, s, "top")
    b.write("/")
    b.write("ho")
    b.tell("render()")  # as a process that runs makes it do
    b.wait("main.dataset.state === 'ready'", 5)
    b.write("t")
    tap.same("a new profile does not end what somebody types", b.tell(
        "document.activeElement.id + ' ' + search.value"), "q hot")
    b.key("Escape")
    for key, view in (("9", "traces"), ("0", "tags")):
        b.write(key)
        b.wait("location.pathname.endsWith('/%s')" % view, 5)
        ready(b)
        tap.same("%s has the keys that scroll, and no line of the view before" %
                 view, (b.tell("document.activeElement.id"),
                        text(b, "#detail").strip()), ("main", ""))
    for view, asks in (("sandwich", "callers and callees"),
                       ("source", "Choose a function")):
        look(b, s, view)
        tap.ok("%s says what to choose a function for" % view,
               asks in text(b, "#main"), text(b, "#main"))


def main():
    chromium = find_browser()
    if not chromium:
        tap.skip("the look of the page", "no chromium")
        return tap.end()
    with tempfile.TemporaryDirectory() as folder:
        write_profiles(folder)
        b = Browser(chromium, os.path.join(folder, "home"), None)
        try:
            s = web_server.Server("-symbolize=none", "-diff_base=old", "new",
                                  cwd=folder)
            test_difference(b, s)
            s.close()
            s = web_server.Server("-symbolize=none", "new", cwd=folder)
            test_heat(b, s)
            test_labels(b, s)
            test_focus(b, s)
            s.close()
            tap.ok("no script failed", not b.errors, b.errors)
        finally:
            b.close()
    return tap.end()


sys.exit(main())
