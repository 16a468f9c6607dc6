#!/usr/bin/env python3
"""`cpprof http` over HTTP: what it answers, to whom, and what it leaves behind.

    web.py CPPROF       TAP

What a view tells is held against the text of the same report.
"""
import base64
import gzip
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, ".."))
from processes import children  # noqa: E402
from protobuf import chunk, varint  # noqa: E402
from tap import Tap  # noqa: E402
from web_server import address, cpprof, Server, way  # noqa: E402

FIXTURES = os.path.join(HERE, "..", "fixtures")
PAGES = os.path.join(HERE, "..", "..", "src", "page")
CPU = os.path.join(FIXTURES, "go.cpu.pb.gz")
HEAP = os.path.join(FIXTURES, "go.heap.pb.gz")
tap = Tap()

STACKS = """\
main;parse;read 300
main;parse;lex::next 200
main;eval;call;read 400
main;eval;call;eval;call;read 40
main;eval;</script><b>&"x" 50
main;eval;call;rare 10
"""
BEFORE = STACKS.replace("read 400", "read 100").replace("rare 10", "gone 7")


OURS = {"Sec-Fetch-Site": "same-origin"}  # what a page of the server sends


def report(*words):
    return subprocess.run([cpprof, *words], capture_output=True,
                          check=False).stdout


# ---------------------------------------------------------------- pages ----

def test_paths(s):
    for path, to in (("/", "/ui/flamegraph"), ("/ui", "/ui/flamegraph"),
                     ("/ui/", "/ui/flamegraph"),
                     ("/ui/flamegraph2?f=x", "/ui/flamegraph?f=x"),
                     ("/top?f=a%20b", "/ui/top?f=a%20b")):
        status, headers, _ = s.ask(path)
        tap.same(path + " leads to its page", (status, headers["Location"]),
                 (302, to))
    http.client._MAXLINE = 1 << 20  # or it reads no such answer
    for n in range(87000, 87400, 50):
        query = "?f=" + "a" * (n - 100)
        status, headers, _ = s.ask("/top" + query)
        if (status, headers["Location"]) != (302, "/ui/top" + query):
            break
    tap.same("also with a head as long as it may be", (status, n), (302, 87350))
    cookies = "; ".join("name%03d=%070d" % (i, i) for i in range(500))
    tap.same("40 kB of cookies are read, of whatever was on localhost", s.ask(
        "/ui/flamegraph", headers={"Cookie": cookies})[0], 200)
    tap.same("and 1000 small headers", s.ask("/ui/flamegraph", headers={
        "X-%d" % i: "abcdefgh" for i in range(1000)})[0], 200)
    for name, value in (("X", "a" * 100000), ("Cookie", "a;" * 20000)):
        tap.same("but what is larger has one answer: " + name, s.ask(
            "/ui/flamegraph", headers={name: value})[0], 431)
    status, headers, _ = s.ask("/?f=" + "x" * 5000)
    tap.same("however long its query is", (status, len(
        headers["Location"] or "")), (302, 5000 + len("/ui/flamegraph?f=")))
    for path in ("//example.com/x", "/\\example.com", "/ui/nosuch",
                 "/ui/assets/../x", "/ui/api/nosuch", "/ui/api/report/nosuch",
                 "/ui/api/report/web", "/etc/passwd"):
        tap.same(path + " is not there", s.ask(path)[0], 404)
    status, headers, page = s.ask("/ui/top")
    tap.ok("a page is HTML", status == 200 and
           "text/html" in headers["Content-Type"], headers)
    policy = headers["Content-Security-Policy"]
    own = [base64.b64encode(hashlib.sha256(re.search(
        b"<%s>(.*?)</%s>" % (tag, tag), page, re.S).group(1)).digest()).decode()
        for tag in (b"style", b"script")]
    tap.ok("that allows no style and script but its own",
           "style-src 'sha256-%s'; script-src 'sha256-%s';" % tuple(own) in
           policy and "unsafe" not in policy and
           "require-trusted-types-for" in policy, policy, own)
    test_first(s)
    tap.ok("and tells nobody where it is from",
           headers["Referrer-Policy"] == "no-referrer" and
           headers["X-Content-Type-Options"] == "nosniff" and
           headers["Cross-Origin-Resource-Policy"] == "same-origin")
    tap.ok("who does not ask for gzip gets none", "Content-Encoding" not in
           headers and int(headers["Content-Length"]) == len(page), headers)
    packed = s.ask("/ui/top", headers={"Accept-Encoding": "gzip"})[2]
    tap.same("who does gets the same", gzip.decompress(packed), page)
    parts = [os.path.join(PAGES, part) for part in (
        "base.css", "web/page.css", "text.js", "flame.js", "web/state.js",
        "web/tables.js", "web/texts.js", "web/timeline.js", "web/configs.js",
        "web/page.js")]
    missing = []
    for part in parts:
        with open(part, "rb") as text:
            code = re.sub(rb"(?m)^ *//(?! SPDX).*\n", b"", text.read())
            missing += [] if code in page else [part]
    tap.ok("every part of it is inside", not missing and not re.search(
        rb'(?:src|href)="(?!data:|api/)', page), missing)
    tap.less("all of them are small", len(page), 120000)
    tap.less("smaller still when they are sent", len(packed), 36000)


def first_of(page):
    return json.loads(page.split(b'id="first">')[1].split(b"</script>")[0])


def test_first(s):
    """What a page shows first comes with it."""
    s.ready()
    first = first_of(s.get("/ui/flamegraph?f=main&z=0123456789abcdef&gz=t"))
    tap.same("a flame graph comes with its boxes", first["first"]["data"], {
        "profile": s.data("profile?f=main"), "boxes": s.data(
            "boxes?f=main&w=%d" % first["width"])})
    tap.same("one from the leaves with its own", first_of(s.get(
        "/ui/inverted"))["first"]["data"]["boxes"], s.data(
            "boxes?inv=t&w=%d" % first["width"]))
    tap.same("and with what the command was started with", dict(
        first["start"], seconds=0), dict(s.data("status"), seconds=0))
    tap.same("other views with what there is", first_of(s.get("/ui/top"))[
        "first"]["data"], s.data("profile"))
    tap.same("also the sandwich, by its old name", first_of(s.get(
        "/ui/flamegraph?p=main"))["first"]["data"], s.data("profile"))
    tap.same("what is wrong in an address is told when the page asks", first_of(
        s.get("/ui/flamegraph?f=("))["first"], None)
    tap.ok("what filters say comes, too", first_of(s.get(
        "/ui/flamegraph?i=nosuch"))["first"]["note"])
    tap.same("a page that another site leads to has nothing of the profile", [
        first_of(s.ask("/ui/flamegraph", headers={"Sec-Fetch-Site": site})[2])
        for site in ("cross-site", "same-site")], [{}, {}])
    tap.same("HEAD has no body", s.ask("/ui/flamegraph", method="HEAD", headers={
        "Accept-Encoding": "gzip"})[2], b"")


def test_guards(s):
    api, page = "/ui/api/report/top", "/ui/top"
    for host in ("localhost:1", "127.0.0.1", "[::1]:99", "localhost",
                 "a.localhost"):
        tap.same("Host %s may ask" % host, s.ask(api, host=host)[0], 200)
    for host in ("evil.example", "localhost.evil.example:80", "a.b:7001"):
        tap.same("Host %s may not" % host, s.ask(api, host=host)[0], 403)
    for site, path, wanted in (
            ("cross-site", api, 403), ("same-site", api, 403),
            ("cross-site", "/ui/download", 403), ("same-origin", api, 200),
            ("none", api, 200), ("cross-site", page, 200),
            ("same-site", "/ui/api/boxes", 403)):
        tap.same("%s, asked by %s" % (path, site),
                 s.ask(path, headers={"Sec-Fetch-Site": site})[0], wanted)
    # A browser that does not say which site asks.
    for origin, path, wanted in (
            ("http://evil.example", api, 403), ("null", api, 403),
            ("http://127.0.0.1:%d" % s.port, api, 200),
            ("http://evil.example", page, 200)):
        tap.same("%s, asked by a page of %s" % (path, origin),
                 s.ask(path, host="127.0.0.1:%d" % s.port,
                       headers={"Origin": origin})[0], wanted)
    for site, origin in ((None, None), ("cross-site", None), ("none", None),
                         ("same-site", "http://localhost:%d" % s.port),
                         (None, "http://evil.example"), (None, "null")):
        tap.same("nothing is changed for site %s, origin %s" % (site, origin), s.ask(
            "/ui/saveconfig?config=x", "POST", {
                name: value for name, value in (
                    ("Sec-Fetch-Site", site), ("Origin", origin)) if value})[0],
            403)
    for method, path in (("GET", "saveconfig"), ("DELETE", "saveconfig"),
                         ("GET", "deleteconfig"), ("PUT", "deleteconfig"),
                         ("POST", "top")):
        tap.same("%s %s changes nothing" % (method, path), s.ask(
            "/ui/%s?config=x" % path, method, OURS)[0], 405)
    tap.same("1500 parameters are read", s.ask(
        "/ui/api/report/top?" + "&".join(["n=3"] * 1500))[2],
        report("-top", "-nodecount=3", CPU))
    tap.same("more than there is room for are refused", s.ask(
        "/ui/top?" + "&".join(["n=3"] * 25000))[0], 414)
    status, headers, body = s.ask(api, method="HEAD")
    tap.ok("HEAD gets no body", status == 200 and not body and
           int(headers["Content-Length"]) > 100)
    tap.ok("nobody else may read answers", not any(
        name.lower().startswith("access-control") for name in headers))


# -------------------------------------------------------------- configs ----

# As pprof writes it.
SETTINGS = """\
{
  "configs": [
    {
      "name": "mine",
      "unit": "minimum",
      "sort": "flat",
      "nodecount": -1,
      "nodefraction": 0.005,
      "edgefraction": 0.001,
      "trim": true,
      "focus": "burn"
    }
  ]
}"""


# A parameter of pprof's page, its value, and the flag that it is.
PARAMETERS = [
    ("f", "burn", "-focus"), ("i", "small", "-ignore"), ("h", "spin", "-hide"),
    ("s", "main", "-show"), ("sf", "burn", "-show_from"),
    ("prunefrom", "spin", "-prune_from"), ("tf", "phase", "-tagfocus"),
    ("ti", "phase=a", "-tagignore"), ("tb", "phase=a", "-tagbase"), ("ts", "nosuch", "-tagshow"),
    ("th", "phase", "-taghide"), ("g", "lines", "-granularity"),
    ("g", "filefunctions", "-granularity"), ("si", "samples", "-sample_index"),
    ("si", "0", "-sample_index"), ("n", "2", "-nodecount"),
    ("nf", "0.3", "-nodefraction"), ("ef", "0.3", "-edgefraction"),
    ("trim", "f", "-trim"), ("sort", "cum", "-sort"), ("unit", "us", "-unit"),
    ("rel", "t", "-relative_percentages"), ("mean", "t", "-mean"),
    ("dropneg", "t", "-drop_negative"), ("calltree", "t", "-call_tree"),
    ("compact", "t", "-compact_labels"), ("intel", "t", "-intel_syntax"),
    ("noinlines", "t", "-noinlines"), ("showcolumns", "t", "-showcolumns"),
    ("rec", "t", "-fold_recursion"), ("tr", "phase", "-tagroot"), ("tl", "phase", "-tagleaf")]
# Reports of which one at least shows each of them.
SHOWN = [["-top"], ["-tree", "-cum"], ["-dot"], ["-traces"]]


def test_parameters(s):
    wrong, idle = [], []
    for name, value, flag in PARAMETERS:
        words = [flag + "=" + {"t": "true", "f": "false"}.get(value, value)]
        more = {"rel": "&f=small", "trim": "&n=1"}.get(name, "")
        words += {"rel": ["-focus=small"], "trim": ["-nodecount=1"]}.get(name, [])
        differs = False
        for form in SHOWN:
            wanted = report(*form, *words, CPU)
            got = s.get("/ui/api/report/%s?%s=%s%s%s" % (
                form[0][1:], name, value, more,
                "&sort=cum" * (len(form) > 1)))
            differs |= wanted != report(*form, *words[1:], CPU)
            if got != wanted or not wanted:
                wrong.append((form, name, got[:99], wanted[:99]))
        if not differs:
            idle.append(name)
    tap.none("every parameter is its flag, in every report", wrong)
    tap.same("and shows in one of them", idle,
             ["dropneg", "intel", "showcolumns", "rec"])


def test_normalize(folder):
    for flag, extra in (("-diff_base", []), ("-base", []),
                        ("-base", ["-normalize"])):
        words = ["-symbolize=none", flag + "=" + os.path.join(folder, "old")]
        path = os.path.join(folder, "new")
        s = Server(*words, *extra, path).ready()
        if flag == "-base" and not extra:
            tap.same("of -base there is nothing to normalize by", s.get(
                "/ui/api/report/top?norm=t")[0], 400)
        else:
            for form in ("top", "traces", "collapsed", "tree"):
                tap.same("norm=t is -normalize of %s%s: %s" % (flag, extra, form),
                         s.get("/ui/api/report/%s?norm=t" % form),
                         report("-" + form, *words, "-normalize", path))
        s.close()


def test_configs(folder):
    env = dict(os.environ, XDG_CONFIG_HOME=os.path.join(folder, "config"))
    path = os.path.join(folder, "config/pprof/settings.json")
    s = Server(CPU, env=env).ready()
    send = lambda method, query: s.ask("/ui/" + query, method, OURS)[0]
    known = lambda: {c["name"]: c["parameters"] for c in
                     s.data("configs")["configs"]}
    tap.same("without a file there are no configs", known(), {})
    tap.same("one is saved", send("POST", "saveconfig?config=mine&f=burn"), 200)
    tap.same("in pprof's file, as pprof writes it", open(path).read(), SETTINGS)
    tap.same("for its user alone", [os.stat(p).st_mode & 0o777 for p in (
        path, os.path.dirname(path))], [0o600, 0o700])
    tap.same("its parameters are what is not the default", known(),
             {"mine": {"f": "burn"}})
    with open(path, "w", encoding="ascii") as file:
        file.write('{"more":[1,{"a":"]"}],"configs":[{"name":"a","new":{"x": 1},'
                   '"mean":true},\n{"focus":"\\u00e9<","name":"b","nodecount":3,'
                   '"granularity":"functions"}],"z":null}')
    tap.same("what pprof leaves out is false, or 0", known(), {
        "a": {"mean": "t", "n": "0", "nf": "0", "ef": "0", "trim": "f"},
        "b": {"f": "\u00e9<", "n": "3", "nf": "0", "ef": "0", "trim": "f",
              "g": "functions"}})
    send("POST", "saveconfig?config=a&norm=t&g=functions&n=7&h=%22%5C%22")
    text = json.load(open(path))
    tap.same("one of this name is replaced, with what is known of it", text[
        "configs"][0], {
            "name": "a", "unit": "minimum", "normalize": True, "sort": "flat",
            "nodecount": 7, "nodefraction": 0.005, "edgefraction": 0.001,
            "trim": True, "hide": '"\\"', "granularity": "functions",
            "new": {"x": 1}})
    tap.same("the rest stays", (text["configs"][1]["name"], text["more"],
                                text["z"]), ("b", [1, {"a": "]"}], None))
    for name, left in (("a", ["b"]), ("b", [])):
        tap.same("%s is deleted" % name, (send(
            "DELETE", "deleteconfig?config=" + name), list(known())), (200, left))
    tap.same("once", send("DELETE", "deleteconfig?config=a"), 400)
    tap.same("none has no name", send("POST", "saveconfig?f=x"), 400)
    tap.same("nor a name that is no text", send(
        "POST", "saveconfig?config=%FF"), 400)
    tap.same("nor what is no number", send(
        "POST", "saveconfig?config=x&nf=inf"), 400)
    for text in ('{"configs":[{]', '{"configs":{}}', '[]', '{"configs":[1]}', "{",
                 '{"a":"\\ud8"}', "[" * 9999):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        tap.ok("a file that is none of it stays: " + text[:20], send(
            "POST", "saveconfig?config=x") == 400 and open(path).read() == text
            and "parse" in s.data("configs")["error"])
    with open(path, "w", encoding="ascii") as file:
        file.write('{"a":"\\u0000","configs":[{"name":"b","focus":"x"}]}')
    tap.same("a letter 0 is nobody's loss", sorted(known()), ["b"])
    os.rename(path, path + ".true")
    os.symlink(path + ".true", path)
    for text in ("", "{}", '{"configs":null}', '{"a":1}', '{"configs":[]}'):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        send("POST", "saveconfig?config=x&f=y")
        tap.ok("a link stays one, and leads to what is saved: " + text, known() ==
               {"x": {"f": "y"}} and os.path.islink(path), known())
    with open(path, "w", encoding="ascii") as file:
        json.dump({"configs": [{"name": str(i), "focus": "x" * 400}
                               for i in range(4000)]}, file)
    send("POST", "saveconfig?config=x&f=y")
    tap.same("4000 are not too many", (len(known()), known()["x"]),
             (4001, {"f": "y"}))
    with open(path, "w", encoding="ascii") as file:
        file.write('{"a":"%s"}' % ("x" * ((16 << 20) - 100)))
    tap.ok("what could not be read again is not written", send(
        "POST", "saveconfig?config=x") == 400 and
        s.data("configs")["error"] == "" and os.path.getsize(path) < 16 << 20)
    s.close()


# -------------------------------------------------------------- reports ----

def test_reports(s):
    cases = [("top", [], ""), ("top", ["-cum", "-nodecount=3"], "sort=cum&n=3"),
             ("tree", ["-focus=burn"], "f=burn"), ("traces", [], ""),
             ("tags", ["-sample_index=samples"], "si=samples"),
             ("collapsed", ["-ignore=small"], "i=small"), ("json", [], ""),
             ("raw", ["-hide=spin"], "h=spin"), ("dot", ["-lines"], "g=lines"),
             ("callgrind", [], ""),
             ("top", ["-show_from=burn", "-unit=us"], "sf=burn&unit=us"),
             ("top", ["-tagfocus=phase", "-relative_percentages"],
              "tf=phase&rel=t"),
             ("top", ["-tagroot=phase", "-noinlines"], "tr=phase&noinlines=t"),
             ("top", ["-show=main", "-trim=false"], "s=main&trim=f"),
             ("flamegraph", ["-prune_from=spin"], "prunefrom=spin")]
    for name, flags, query in (
            ("text", [], ""), ("comments", [], ""), ("topproto", [], ""),
            ("proto", ["-focus=burn", "-tagshow=x"], "f=burn&ts=x"),
            ("list", ["-focus=spin"], "f=spin"), ("weblist", ["-cum"],
                                                  "sort=cum&sym=spin"),
            ("peek", [], "sym=spin"),
            ("kcachegrind", [], None), ("web", [], None)):
        if query is None:
            tap.same(name + " is for a viewer", s.get("/ui/api/report/" + name)[0],
                     404)
        else:
            flag = name + "=spin" * (name in ("list", "weblist", "peek"))
            cases.append((flag, flags, query))
    if shutil.which("dot"):
        cases += [("svg", ["-ignore=small"], "i=small"), ("ps", [], ""),
                  ("png", [], "")]
    wrong = []
    for name, flags, query in cases:
        wanted = report("-" + name, *flags, CPU)
        got = s.get("/ui/api/report/%s?%s" % (name.split("=")[0], query))
        if got != wanted or not wanted and name != "comments":
            wrong.append("%s %s: %r, not %r" % (name, flags, got[:99],
                                                wanted[:99]))
    tap.none("reports are those of the command line, to the byte", wrong)
    tap.same("peek of what is focused on, as on pprof's page",
             s.get("/ui/api/report/peek?f=spin"),
             report("-peek=spin", "-focus=spin", CPU))
    tap.same("or of another", s.get("/ui/api/report/peek?sym=burn"),
             report("-peek=burn", CPU))
    tap.same("the whole profile to save", gzip.decompress(
        s.get("/ui/download?f=nothing")), gzip.decompress(report("-proto", CPU)))
    status, text = s.get("/ui/api/report/top?f=%28")
    tap.ok("a wrong expression is told", status == 400 and
           b"missing closing" in text, text)
    tap.same("so is a wrong number", s.get("/ui/api/report/top?n=x")[0], 400)
    tap.same("and a bad escape", s.get("/ui/api/report/top?f=%zz")[0], 400)
    tap.ok("an expression that matches nothing is told, too", "Ignore" in
           s.ask("/ui/api/boxes?i=nosuch")[1]["X-Cpprof-Note"])


# ---------------------------------------------------------------- boxes ----

def boxes(data):
    """[name, flags, children, plus, minus, self plus, self minus], with paths;
    each before its children."""
    at, found, way, left = data["boxes"], [], [], []
    for k in range(0, len(at), 7):
        while left and not left[-1]:
            left.pop()
            way.pop()
        name = data["names"][at[k]]
        if left:
            left[-1] -= 1
        found.append((tuple(way[1:] + [name]) if way else (),
                      at[k + 3] - at[k + 4], at[k + 5] - at[k + 6]))
        way.append(name)
        left.append(at[k + 2])
    return found


def test_boxes(s):
    tree = boxes(s.data("boxes"))
    value = {path: v for path, v, _ in tree}
    wanted = {}
    for line in STACKS.splitlines():
        stack, n = line.rsplit(" ", 1)
        stack = tuple(stack.split(";"))
        for k in range(len(stack) + 1):
            wanted[stack[:k]] = wanted.get(stack[:k], 0) + int(n)
    tap.same("boxes have the values of their stacks", value, wanted)
    tap.same("what is left of a box is its own", sum(v for _, _, v in tree),
             wanted[()])
    raw = s.get("/ui/api/boxes")
    tap.ok("names cannot end a script", b"</script>" not in raw and
           b"\\u003c/script" in raw)
    path = ("main", "eval", "call", "eval")
    deep = s.data("boxes?z=" + address(path))
    found = boxes(deep)
    tap.same("an enlarged box comes with its callers alone",
             [p for p, _, _ in found],
             [path[:k] for k in range(5)] +
             [path + ("call",), path + ("call", "read")])
    tap.same("and says where it is", deep["zoom"], 4)
    tap.ok("with the same values", all(value[p] == v for p, v, _ in found))
    small = [p for p, _, _ in boxes(s.data("boxes?w=50"))]
    tap.ok("what is less than a pixel is not sent",
           ("main", "eval", "call") in small and
           ("main", "eval", "call", "rare") not in small, small)
    near = [p for p, _, _ in boxes(s.data(
        "boxes?w=50&z=" + address(("main", "eval", "call"))))]
    tap.ok("but it is when its caller is enlarged",
           ("main", "eval", "call", "rare") in near, near)
    tap.same("and so it does by the way there", s.data("boxes?z=" + way(path)),
             deep)
    tap.same("a box that is not there", [s.data("boxes?z=" + z)["zoom"] for z in (
        "%016x" % 1, "%016x-11" % 1, way(path)[:-2])], [-1] * 3)
    tap.same("or is none", [s.get("/ui/api/boxes?z=" + z)[0] for z in (
        "1", "%016x-1" % 1, "%016x-zz" % 1)], [400] * 3)


def test_other_ways(s):
    value = {p: v for p, v, _ in boxes(s.data("boxes?inv=t"))}
    tap.ok("inverted: callers of where stacks end", value[("read",)] == 740 and
           value[("read", "parse")] == 300 and
           value[("read", "call", "eval", "call", "eval", "main")] == 40, value)
    value = {p: v for p, v, _ in boxes(s.data("boxes?p=%5Eeval%24"))}
    tap.ok("callees of a function, from the outermost call of it",
           value[()] == 500 and value[("eval", "call", "eval")] == 40 and
           value[("eval", "call")] == 450, value)
    value = {p: v for p, v, _ in boxes(s.data("boxes?p=%5Ecall%24&callers=t"))}
    tap.same("and its callers", value, {
        (): 450, ("call",): 450, ("call", "eval"): 450,
        ("call", "eval", "main"): 450})


def test_found(s):
    def value(query):
        found = s.data("found?" + query)
        return found["value"], sorted(found["names"])
    whole = sum(v for _, v, _ in boxes(s.data("boxes"))[:1])
    tap.same("a search adds up the stacks in which something matches",
             value("q=%5E(eval%7Ccall)%24"), (500, ["call", "eval"]))
    tap.same("which may be all", value("q=.")[0], whole)
    tap.same("of what is enlarged", value("q=%5Erare%24&z=" + address(
        ("main", "eval"))), value("q=%5Erare%24"))
    tap.same("from that box on", value("q=%5Emain%24&z=" + address(
        ("main", "eval")))[0], 0)
    tap.same("and with it", value("q=eval&z=" + address(("main", "eval")))[0],
             500)
    tap.same("of callers", value("q=%5Emain%24&p=%5Ecall%24&callers=t"),
             (450, ["main"]))
    tap.same("but not of callees", value("q=%5Emain%24&p=%5Ecall%24"),
             (0, ["main"]))
    tap.same("an expression that is none", s.get("/ui/api/found?q=%28")[0], 400)
    tap.same("nothing is looked for in a box that is not there",
             value("q=.&z=%016x" % 1)[0], 0)


def test_table(s):
    data = s.data("table")
    text = report("-top", "-trim=false", "-unit=ns", CPU).decode()
    rows = [re.split(r"\s+", line.strip(), 5) for line in
            text.split("cum%\n")[1].splitlines()]
    wanted = {re.sub(r" \((partial-)?inline\)$", "", row[5]): (row[0], row[3])
              for row in rows}
    unit = lambda v: "%dns" % v if v else "0"
    got = {n: (unit(f), unit(c)) for n, f, c in
           zip(data["names"], data["flat"], data["cum"])}
    tap.same("the table is that of -top", got, wanted)
    data = s.data("table?q=%5Eruntime&sort=cum&max=2")
    found = {n: int(re.sub("ns", "", c)) for n, (_, c) in wanted.items()
             if n.startswith("runtime")}
    tap.same("a search leaves the rows that match, the largest by what it is "
             "sorted by", (data["rows"], data["cum"]),
             (len(found), sorted(found.values(), reverse=True)[:2]))
    tap.same("or its first rows", len(s.data("table?max=3")["names"]), 3)
    tap.same("and says how many there are", s.data("table?max=3")["rows"],
             len(wanted))


def test_difference(folder):
    s = Server("-diff_base=old", "new", cwd=folder).ready()
    old = {p: v for p, v, _ in boxes(s.data("boxes"))}
    tap.same("a difference is new minus old", old[("main", "eval", "call",
                                                  "read")], 300)
    at = s.data("boxes")["boxes"]
    tap.same("with both values", at[3:5], [1000, 697])
    data = s.data("table")
    row = data["names"].index("read")
    tap.same("also in the table", [data[k][row] for k in (
        "flat", "old_flat", "cum", "old_cum")], [300, 440, 300, 440])
    row = data["names"].index("call")
    tap.same("where recursion counts once", [data["cum"][row],
                                             data["old_cum"][row]], [303, 147])
    tap.ok("and it is said to be one", s.data("profile")["diff"])
    start = s.data("status")
    tap.same("the command line is known", (start["sources"], start["bases"],
                                           start["base_flag"]),
             (["new"], ["old"], "diff_base"))
    s.close()


# ------------------------------------------------------------ the server ----

def memory(pid):
    with open("/proc/%d/status" % pid) as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


def test_thousand(folder):
    """Views of 200 kB each, which are more than is kept."""
    with open(os.path.join(folder, "wide"), "w", encoding="ascii") as file:
        for k in range(1400):
            file.write("main;%s%d 1\n" % ("x" * 140, k))
    s = Server("wide", cwd=folder).ready()
    for k in range(1000):
        s.get("/ui/api/report/collapsed?k=%d" % k)
    tap.less("a thousand views of 200 MB in all: memory of the server, kB",
             memory(s.process.pid), 128000)
    print("# %d kB" % memory(s.process.pid))
    tap.same("and no child is left", children(s.process.pid), [])
    s.close()


def test_many(s):
    for k in range(40):
        s.get("/ui/api/boxes?w=%d" % (100 + k))
    before = memory(s.process.pid)
    for k in range(160):
        s.get("/ui/api/boxes?w=%d" % (200 + k))
    tap.less("memory does not grow with views, kB",
             memory(s.process.pid) - before, 1500)
    tap.same("no child is left", children(s.process.pid), [])
    begin = time.process_time()
    for _ in range(20):
        s.get("/ui/api/boxes?w=200")
    tap.less("the same view again is there already, seconds of ours",
             time.process_time() - begin, 1)


def test_leaving(folder):
    """A child whose client leaves ends."""
    path = os.path.join(folder, "large")
    with open(path, "w", encoding="ascii") as file:
        for k in range(60000):
            file.write("main;a%d;b%d;c%d;d%d 1\n" % (k % 7, k % 111, k, k % 13))
    s = Server(path).ready()
    left = 0
    for _ in range(4):
        link = socket.create_connection(("127.0.0.1", s.port))
        link.sendall(b"GET /ui/api/report/svg?trim=f&g=lines&n=%d HTTP/1.1\r\n"
                     b"Host: localhost\r\n\r\n" % left)
        end = time.monotonic() + 5
        while not children(s.process.pid) and time.monotonic() < end:
            time.sleep(0.005)
        link.close()
        end = time.monotonic() + 5
        while children(s.process.pid) and time.monotonic() < end:
            time.sleep(0.01)
        left += bool(children(s.process.pid))
    tap.same("a child ends when its client leaves", left, 0)
    tap.ok("and the server goes on", b"flat" in s.get("/ui/api/report/top"))
    s.close()


def is_running(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def within(seconds, what):
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    return what()


def test_programs(folder):
    """What a view has started ends with it."""
    tools = os.path.join(folder, "tools")
    note = os.path.join(folder, "pid")
    os.mkdir(tools)
    with open(os.path.join(tools, "dot"), "w", encoding="ascii") as file:
        file.write("#!/bin/sh\necho $$ > %s.new\nmv %s.new %s\n"
                   "exec sleep 100\n" % (note, note, note))
    os.chmod(file.name, 0o755)
    env = dict(os.environ, PATH=tools + ":" + os.environ["PATH"])
    for leaves in (True, False):
        s = Server(CPU, env=env).ready()
        link = socket.create_connection(("127.0.0.1", s.port))
        link.sendall(b"GET /ui/api/report/svg HTTP/1.1\r\n"
                     b"Host: localhost\r\n\r\n")
        within(20, lambda: os.path.exists(note))
        with open(note, encoding="ascii") as file:
            dot = int(file.read())
        os.unlink(note)
        if leaves:
            link.close()
        else:
            begin = time.monotonic()
            s.close(signal.SIGINT)
            tap.less("an interrupt waits for no view, seconds",
                     time.monotonic() - begin, 1.5)
        tap.ok("dot ends with its " + ("client" if leaves else "server"),
               within(10, lambda: not is_running(dot)))
        link.close()
        if leaves:
            s.close()


def status_for(user, host, port):
    """The status that another user of this machine gets for a page."""
    code = ("import http.client, os, sys\n"
            "os.setgroups([]); os.setgid(%d); os.setuid(%d)\n"
            "link = http.client.HTTPConnection(%r, %d, timeout=30)\n"
            "link.request('GET', '/ui/api/status')\n"
            "print(link.getresponse().status)\n" % (user, user, host, port))
    return subprocess.run([sys.executable, "-c", code], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()


def test_users():
    """Only root can be another user."""
    if os.getuid() != 0:
        tap.skip("other users of the machine are refused", "needs root")
        return
    env = dict(os.environ, SUDO_UID="1234")
    for address, host in ((":0", "127.0.0.1"), ("[::1]:0", "::1")):
        s = Server(CPU, address=address, env=env)
        if not s.port:
            tap.skip("users at " + address, s.line.strip())
            continue
        tap.same("other users of the machine are refused at " + address,
                 [status_for(user, host, s.port) for user in (65534, 1234, 0)],
                 ["403", "200", "200"])
        s.close()


def test_reading(folder):
    path = os.path.join(folder, "pipe")
    os.mkfifo(path)
    s = Server(path)
    status = s.data("status")
    tap.ok("it listens before it has read", not status["ready"])
    tap.same("and tells what it does", status["progress"],
             "reading %s (1 of 1)" % path)
    tap.same("and gives the page", s.ask("/ui/flamegraph")[0], 200)
    for name in ("api/boxes", "download"):
        tap.same("but no %s yet" % name, s.get("/ui/" + name)[0], 503)
    with open(path, "wb") as file:
        file.write(open(CPU, "rb").read())
    s.ready()
    tap.same("which then is there", s.data("boxes")["boxes"][3], 200000000)
    said = s.process.stderr.readline()
    tap.ok("which is told when it is there", s.line.startswith("Reading; ") and
           said.startswith("Serving web UI on http://"), s.line, said)
    tap.same("a signal ends it", s.close(), 0)
    s = Server(path, CPU)
    tap.same("it listens before it has opened the first of several sources",
             s.data("status")["progress"], "reading %s (1 of 2)" % path)
    with open(path, "wb") as file:
        file.write(open(CPU, "rb").read())
    tap.same("of which nothing is lost",
             s.ready().data("boxes")["boxes"][3], 400000000)
    s.close()
    others = [os.path.join(folder, name) for name in ("junk1", "junk2")]
    for name in others:
        with open(name, "w", encoding="ascii") as file:
            file.write("junk")
    sources = [others[0], path, others[1]]
    s = Server(*sources)
    s.data("status")
    with open(path, "w", encoding="ascii") as file:
        file.write("junk")
    status = s.data("status")
    while not status["failed"]:
        status = s.data("status")
    tap.ok("a page that waits is told why there is no profile, source by source",
           re.fullmatch("".join(re.escape(name) + ": parsing profile: .*\n" for
                                name in sources) +
                        "failed to fetch any source profiles", status["failed"]),
           status)
    said = s.process.stderr.read()
    tap.ok("which ends it, too, and \"Serving\" is not said", s.process.wait(
        30) == 2 and said.count("\n") == 3 and "Serving" not in s.line + said,
        s.line, said)
    s.process.stderr.close()
    done = subprocess.run([cpprof, "http", ":0", "-no_browser", "/nosuch.pb.gz"],
                          capture_output=True, text=True, check=False)
    tap.ok("a file that is not there ends it, and only that is said",
           done.returncode == 2 and re.fullmatch(
               "cpprof: .*/nosuch.pb.gz.*\n", done.stderr), done)


def browsed(folder, **variables):
    """The browsers that are started with an address."""
    tools = os.path.join(folder, "browsers")
    os.makedirs(tools, exist_ok=True)
    for name in "chrome", "own":
        with open(os.path.join(tools, name), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho %s >>%s/started\n" % (name, tools))
        os.chmod(file.name, 0o755)
    env = {name: value for name, value in os.environ.items() if name not in (
        "DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
    env.update(variables, PATH=tools + ":" + os.environ["PATH"])
    s = subprocess.Popen([cpprof, "http", ":0", CPU], env=env, text=True,
                         stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    s.stderr.readline()
    time.sleep(0.5)
    s.terminate()
    s.communicate()
    try:
        with open(tools + "/started", encoding="ascii") as file:
            found = file.read().split()
        os.unlink(tools + "/started")
    except FileNotFoundError:
        found = []
    return found


def test_browser(folder):
    tap.same("without a display no browser is started", browsed(folder), [])
    tap.same("but the one that is asked for",
             browsed(folder, BROWSER="own"), ["own"])
    tap.same("with a display the first that is there",
             browsed(folder, DISPLAY=":0"), ["chrome"])


def test_download():
    s = Server("-ignore=burn", CPU).ready()
    filtered, whole = s.get("/ui/api/report/proto"), s.get("/ui/download")
    tap.same("a download has what the command line leaves out, even after a "
             "report that has not", (gzip.decompress(filtered),
                                     gzip.decompress(whole)), tuple(
        gzip.decompress(report("-proto", *words, CPU)) for words in (
            ["-ignore=burn"], [])))
    tap.ok("which is less", len(filtered) < len(whole))
    s.close()


def test_expressions():
    """A process that serves would not end by itself."""
    for flag in ("focus", "ignore", "tagfocus", "tagignore", "tagshow",
                 "taghide"):
        try:
            ran = subprocess.run(
                [cpprof, "http", ":0", "-no_browser", f"-{flag}=(", CPU],
                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=20)
        except subprocess.TimeoutExpired:
            tap.ok(f"-{flag}=( ends the command before it serves", False)
            continue
        tap.ok(f"-{flag}=( ends the command before it serves",
               ran.returncode == 2 and
               f"parsing {flag} regexp" in ran.stderr and
               ran.stderr.count("\n") == 1, ran)


def test_addresses(folder):
    s = Server(CPU, address="localhost:", command=False).ready()
    tap.ok("pprof's -http=localhost: takes a free port", s.port > 1023, s.line)
    tap.same("for this machine", s.prefix, "")
    tap.same("an interrupt ends it", s.close(signal.SIGINT), 0)
    s = Server(CPU, address="0.0.0.0:0").ready()
    tap.ok("for all machines it is behind a secret path",
           re.fullmatch("/t/[0-9a-f]{32}", s.prefix), s.line)
    tap.same("without which there is nothing", s.ask("/ui/api/boxes")[0], 404)
    tap.same("redirections keep it", s.ask(s.prefix + "/")[1]["Location"],
             s.prefix + "/ui/flamegraph")
    s.close()
    path = os.path.join(folder, "s")
    s = Server(CPU, address="unix:" + path)
    tap.same("a socket is its user's alone", os.stat(path).st_mode & 0o777,
             0o600)
    s.close()
    tap.ok("and is gone at the end", not os.path.exists(path))
    s = Server(CPU, address="0").ready()
    tap.ok("a port alone is one of this machine", s.port > 1023 and
           not s.prefix, s.line)
    s.close()
    s = Server("-focus=burn", CPU, address=":0").ready()
    tap.same("flags are where the page begins",
             (s.data("status")["settings"], s.get("/ui/api/report/top")),
             ({"focus": "burn"}, report("-top", "-focus=burn", CPU)))
    tap.same("an empty parameter clears one", s.get("/ui/api/report/top?f="),
             report("-top", CPU))
    s.close()
    s = Server("-nodecount=1", "-cum", "-trim=false", CPU, address=":0").ready()
    tap.same("also a number, a choice, and what is on or off", s.get(
        "/ui/api/report/top?n=&sort=&trim="), report("-top", CPU))
    s.close()


def test_sources(folder):
    """Only what is code is shown."""
    os.makedirs(os.path.join(folder, "home/.ssh"))
    os.symlink("/etc/passwd", os.path.join(folder, "link.c"))
    names = {"code.c": True, "notes.txt": False, "link.c": False,
             "home/.ssh/key.c": False, "binary.c": False}
    for name in names:
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            with open(path, "w", encoding="ascii") as file:
                file.write("marker\n" * 9 + "\0" * (name == "binary.c"))
    for name, wanted in names.items():
        path = os.path.join(folder, name).encode()
        number = lambda field, v: varint(field << 3) + varint(v)
        strings = [b"", b"samples", b"count", b"f", path]
        data = (chunk(1, number(1, 1) + number(2, 2)) +
                chunk(2, chunk(1, varint(1)) + chunk(2, varint(7))) +
                chunk(4, number(1, 1) + chunk(4, number(1, 1) + number(2, 3))) +
                chunk(5, number(1, 1) + number(2, 3) + number(4, 4)) +
                b"".join(chunk(6, text) for text in strings))
        profile = os.path.join(folder, "one.pb")
        with open(profile, "wb") as file:
            file.write(data)
        os.environ["HOME"] = os.path.join(folder, "home")
        s = Server(profile).ready()
        text = s.get("/ui/api/report/list?sym=f")
        s.close()
        shown = b"marker" in text or b"root:" in text
        tap.ok("%s is %sshown as a source" % (name, "" if wanted else "not "),
               shown == wanted and os.path.basename(path) in text, text)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("new", STACKS), ("old", BEFORE)):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        s = Server(CPU).ready()
        test_paths(s)
        test_guards(s)
        test_reports(s)
        test_parameters(s)
        test_table(s)
        test_many(s)
        s.close()
        s = Server("-symbolize=none", "new", cwd=folder).ready()
        test_boxes(s)
        test_other_ways(s)
        test_found(s)
        s.close()
        test_difference(folder)
        test_configs(folder)
        test_normalize(folder)
        test_thousand(folder)
        test_leaving(folder)
        test_programs(folder)
        test_users()
        test_reading(folder)
        test_browser(folder)
        test_download()
        test_expressions()
        test_addresses(folder)
        test_sources(folder)
    return tap.end()


sys.exit(main())
