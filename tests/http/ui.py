#!/usr/bin/env python3
"""The page /debug/pprof/ui in a browser: captures, graphs, keys, hostile names.

    ui.py PROGRAM [PICTURE-FOLDER]      TAP

PROGRAM is program.c. With a folder, pictures of what was seen are left there.
"""
import os
import re
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "e2e"))
from browser import Browser, find_browser  # noqa: E402
from served import HOSTILE, Server, Tap  # noqa: E402

TAP = Tap()


def state(b):
    return b.tell("document.getElementById('state').textContent")


def names(b):
    return b.tell("cpprof.shown().map(r => r.text.split('   ')[0])")


def box_of(b, name):
    """A box, after the page was scrolled so that it is seen."""
    b.tell("document.getElementById('g').scrollIntoView({block: 'nearest'})")
    return next(box for box in b.tell("cpprof.shown()") if box["name"] == name)


def form(name):
    return ("[...document.forms].find(f => f.dataset.name === %s)"
            % repr(name))


def press(b, expression):
    """A click in the middle of an element, where a person's comes in."""
    x, y = b.tell("(() => {const e = %s; e.scrollIntoView({block: 'center'});"
                  "const r = e.getBoundingClientRect();"
                  "return [r.x + r.width / 2, r.y + r.height / 2]})()"
                  % expression)
    b.click(x, y)


def set_seconds(b, name, seconds):
    b.tell(form(name) + ".elements.seconds.value = '%s'" % seconds)


def take(b, name, seconds=None):
    """Start it by its button, and wait until it is shown."""
    b.tell("document.getElementById('state').textContent = ''")
    if seconds is not None:
        set_seconds(b, name, seconds)
    press(b, form(name) + ".querySelector('button')")
    return b.wait("/stacks|nothing was|[45]..:/.test("
                  "document.getElementById('state').textContent)")


def select(b, text):
    b.tell("(() => {const s = document.getElementById('type');"
           "s.value = [...s.options].findIndex(o => o.text.startsWith('%s'));"
           "s.dispatchEvent(new Event('change'))})()" % text)


# ----------------------------------------------------------------- tests ----

def test_list(b):
    forms = b.tell("[...document.forms].map(f => f.dataset.name)")
    TAP.ok("all profiles have a form", set(forms) >= {
        "profile", "wall", "offcpu", "heap", "allocs", "block", "mutex",
        "goroutine", "threadcreate", HOSTILE}, forms)
    TAP.ok("a hostile name is text", b.tell(
        "document.querySelectorAll('#profiles c').length") == 0 and b.tell(
            "[...document.querySelectorAll('#profiles td')].some("
            "e => e.textContent === %r)" % HOSTILE))
    b.picture("ui-list")


def test_capture(b):
    b.tell("document.getElementById('state').textContent = ''")
    set_seconds(b, "profile", 2)
    press(b, form("profile") + ".querySelector('button')")
    TAP.ok("a capture shows how much of its time is over", b.wait(
        "/^1 of 2 s/.test(document.getElementById('state').textContent)", 20)
        and b.tell("document.getElementById('progress').value") > 0.3,
        state(b))
    TAP.ok("no second one starts meanwhile", b.tell(
        "[...document.querySelectorAll('form button')].every(b => b.disabled)"))
    b.wait("/stacks/.test(document.getElementById('state').textContent)")
    shown = names(b)
    TAP.ok("the graph is there", "burn_time" in shown and
           "run_busy" in shown and shown[0] == "root", state(b), shown)
    rows = b.tell("[...document.querySelectorAll('#top tbody tr')].map("
                  "r => [...r.cells].map(c => c.textContent))")
    TAP.ok("and the table", rows and rows[0][4] == "burn_time" and
           rows[0][0].endswith("s") and rows[0][1].endswith("%"), rows)
    b.tell("document.getElementById('by-cum').click()")
    shares = b.tell("[...document.querySelectorAll('#top tbody tr')].map("
                    "r => parseFloat(r.cells[3].textContent))")
    TAP.ok("by what callees use, too", len(shares) == len(rows) and
           shares == sorted(shares, reverse=True) and shares[0] > 50, shares)
    b.picture("ui-cpu")


def test_graph(b):
    b.tell("document.activeElement.blur()")
    busy = box_of(b, "run_busy")
    b.click(busy["x"] + busy["width"] / 2, busy["y"] + 8)
    # What is above it in the stack stays, as wide as all of it.
    TAP.ok("a click zooms in", b.tell("cpprof.shown()[0].isAbove") and
           "run_busy" in b.tell("document.getElementById('info').textContent"))
    b.key("Escape")
    b.write("/")
    b.write("^burn")
    TAP.ok("/ searches", "%" in b.tell(
        "document.getElementById('found').textContent"))
    b.key("Escape")
    press(b, "document.querySelector('#top tbody button')")
    first = b.tell("document.querySelector('#top tbody button').textContent")
    TAP.ok("a function of the table is searched for", b.tell(
        "document.getElementById('q').value") == "^" + re.sub(
            r"([\\^$.*+?()\[\]{}|])", r"\\\1", first) + "$")
    b.key("Escape")
    dark = "document.documentElement.className"
    before = b.tell(dark)
    b.write("t")
    TAP.ok("t is dark", b.tell(dark) != before, before)
    b.picture("ui-dark")
    b.write("t")


def test_keys_in_fields(b):
    b.tell(form("heap") + ".elements.seconds.focus()")
    before = b.tell("document.documentElement.className")
    b.write("12")
    b.write("t")
    TAP.ok("a field has its keys for itself", b.tell(
        form("heap") + ".elements.seconds.value") == "12" and
        b.tell("document.documentElement.className") == before)
    b.tell("document.activeElement.blur()")
    set_seconds(b, "heap", "")


def test_heap(b):
    take(b, "heap", "")
    types = b.tell("[...document.getElementById('type').options]"
                   ".map(o => o.text)")
    TAP.ok("the heap has its four values", types == [
        "alloc_objects (count)", "alloc_space (bytes)",
        "inuse_objects (count)", "inuse_space (bytes)"], types, state(b))
    TAP.ok("of which what is in use comes first", b.tell(
        "document.getElementById('type').value") == "3")
    select(b, "alloc_space")
    shown = names(b)
    TAP.ok("another is chosen", "allocate_much" in shown, shown)
    take(b, "allocs", "")
    TAP.ok("allocs begins with what was allocated", b.tell(
        "document.getElementById('type').value") == "1")
    take(b, "heap", "")
    select(b, "alloc_space")
    before = b.tell("cpprof.shown()[0].value")
    b.tell("document.getElementById('state').textContent = ''")
    press(b, "document.getElementById('compare')")
    b.wait("/stacks|nothing/.test(document.getElementById('state').textContent)")
    seen = b.tell("cpprof.shown()")
    grown = next((r for r in seen if r["name"] == "allocate_much"), None)
    TAP.ok("the growth of the heap between two moments", grown and 0 < grown[
        "value"] and "\u2192" in grown["text"] and b.tell("document."
        "getElementById('type').value") == "1" and "\u2192" in b.tell(
            "document.getElementById('when').textContent"), grown, before)
    b.picture("ui-growth")
    b.tell("document.getElementById('state').textContent = ''")
    press(b, "document.getElementById('again')")
    b.wait("/stacks|nothing/.test(document.getElementById('state').textContent)")
    TAP.ok("and again all of it", b.tell("cpprof.shown()[0].value") > before)
    take(b, "heap", "1")
    duration = b.tell("document.getElementById('about').textContent")
    TAP.ok("a change in a second", "Duration: 1." in duration, duration)


def test_others(b):
    for name, part in (("mutex", "hold_lock"), ("goroutine", "run_busy"),
                       ("threadcreate", "start"), (HOSTILE, "make_profiles")):
        take(b, name, "")
        shown = names(b)
        TAP.ok("%s is shown" % name, part in shown or
               part + " (inline)" in shown, state(b), shown)
    for name, part in (("wall", "hold_lock"), ("offcpu", "hold_lock")):
        take(b, name, "1")
        shown = names(b)
        TAP.ok("%s of a second is shown" % name, part in shown, state(b), shown)
    TAP.ok("the file is offered, by a name that is one", b.tell(
        "document.getElementById('save').href").startswith("blob:") and b.tell(
            "document.getElementById('save').download") == "offcpu.pb.gz")


def test_stop(b, server):
    b.tell("document.getElementById('state').textContent = ''")
    set_seconds(b, "profile", "40")
    press(b, form("profile") + ".querySelector('button')")
    b.wait("/of 40/.test(document.getElementById('state').textContent)")
    press(b, "document.getElementById('stop')")
    TAP.ok("a capture is stopped", b.wait(
        "document.getElementById('state').textContent === 'stopped'", 10),
        state(b))
    began = time.monotonic()
    take(b, "profile", "1")
    TAP.ok("and another one works", "stacks" in state(b) and
           time.monotonic() - began < 30, state(b))


def test_errors(b):
    take(b, "profile", "99999")
    TAP.ok("what the program refuses is said", state(b).startswith("400:"),
           state(b))
    seen = b.tell("""(() => { const bad = []; for (const bytes of [[], [0],
        [255], [10], [10, 4, 1], [0x1b], [12, 3], [10, 255, 255, 255, 255,
        255, 255, 255, 255, 127], [8, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255]]) { try { readProfile(new Uint8Array(bytes));
        bad.push(bytes.join()); } catch (e) { if (!e.message) bad.push(e); } }
        return bad.join(' ') })()""")
    TAP.ok("bytes that are no profile are an error", seen == "", seen)


# Bytes of a real profile, changed a few at a time: what comes is a graph or an
# Error that says something, soon.
DAMAGE = """(async () => {
    const answer = await fetch('goroutine');
    const stream = answer.body.pipeThrough(new DecompressionStream('gzip'));
    const whole = new Uint8Array(await new Response(stream).arrayBuffer());
    let random = 7, graphs = 0, errors = 0;
    const next = n => {
        random = Math.imul(random, 1103515245) + 12345 >>> 0;
        return Math.floor(random / 4294967296 * n);
    };
    const began = performance.now();
    for (let i = 0; i < 2000; i++) {
        const bytes = whole.slice(0, i % 3 ? whole.length : next(whole.length));
        for (let k = next(4) + 1; k > 0; k--)
            bytes[next(bytes.length)] = next(256);
        try {
            const p = readProfile(bytes);
            for (let t = 0; t < p.types.length; t++) new Boxes(stacksOf(p, t).data);
            graphs++;
        } catch (e) {
            if (!(e instanceof Error) || !e.message) return 'no Error: ' + e;
            errors++;
        }
    }
    return performance.now() - began < 60000 && graphs && errors ? 'fine' :
        graphs + ' graphs, ' + errors + ' errors';
})()"""


def test_damage(b):
    seen = b.ask("Runtime.evaluate", expression=DAMAGE, awaitPromise=True,
                 returnByValue=True)["result"].get("value")
    TAP.ok("damaged profiles are graphs or errors", seen == "fine", seen)


def test_without_script(url):
    with urllib.request.urlopen(url + "ui") as answer:
        page = answer.read().decode()
        policy = answer.headers["Content-Security-Policy"]
    TAP.ok("without a script there are forms for files",
           '<form action="profile"' in page and "<noscript>" in page)
    TAP.ok("no script is in the page itself, and none else may run",
           not re.search(r"<script(?![^>]*src=)|\son\w+=|style=", page) and
           "default-src 'none'" in policy and "unsafe" not in policy, policy)
    TAP.ok("nothing is fetched from elsewhere", not re.search(
        r"(src|href|action)=\"(https?:)?//", page))


def run(server, program):
    album = sys.argv[2] if len(sys.argv) > 2 else None
    b = Browser(program, os.path.abspath("home"), album)
    try:
        b.open(server.url + "ui")
        b.ask("Log.enable")
        for test in (test_list, test_capture, test_graph, test_keys_in_fields,
                     test_heap, test_others, test_errors, test_damage):
            test(b)
        test_stop(b, server)
        TAP.ok("no script failed", not b.errors, b.errors)
    finally:
        b.close()


def main():
    program = find_browser()
    server = Server(os.path.abspath(sys.argv[1]), "127.0.0.1:0")
    if len(sys.argv) > 2:
        sys.argv[2] = os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        try:
            test_without_script(server.url)
            if program:
                run(server, program)
            else:
                TAP.skip("the page in a browser", "no chromium here")
        finally:
            server.end()
            os.chdir("/")
    return TAP.end()


sys.exit(main())
