#!/usr/bin/env python3
"""cpprof gate: verdicts on simulated runs of known truth, what it does with
input that is none, and its reports: JSON, JUnit XML, Markdown, a flame graph.

    gate.py CPPROF       TAP

How often it is right is counted by `./dev bench gate`; here are few pairs.
"""
import http.server
import json
import os
import pty
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import gate_profiles as sim
from protobuf import chunk, varint
from tap import Tap

cpprof = os.path.realpath(sys.argv[1])
t = Tap()
QUIET = sim.Noise(machine=0.01, scatter=0.005)


def gate(*words, **options):
    return subprocess.run([cpprof, "gate"] + list(words), text=True, timeout=120,
                          capture_output=True, check=False,
                          stdin=subprocess.DEVNULL, **options)


def judged(*words):
    """Exit status, and the report as JSON."""
    done = gate("-json=-", *words)
    if not done.stdout:
        return done.returncode, {"rows": [], "notes": [], "base_runs": [],
                                 "head_runs": [], "verdict": done.stderr}
    return done.returncode, json.loads(done.stdout)


def row(report, name):
    return next((r for r in report["rows"] if r["name"] == name), {})


def failing(report):
    return [r["name"] for r in report["rows"] if r["verdict"] == "fail"]


def runs(name, stacks, n=8, noise=QUIET, seed=1):
    """A folder of n runs of {stack: samples}."""
    rng = random.Random("%s %d" % (name, seed))
    os.makedirs(name, exist_ok=True)
    program = sim.Program(0)
    program.stacks = {tuple(s.split(";")): n for s, n in stacks.items()}
    for i in range(n):
        sim.write("%s/%03d.folded" % (name, i), sim.run(rng, program, 1, noise))
    return name


TYPES = [("requests", "count"), ("cpu", "nanoseconds")]


def pprof_runs(name, values, files=None, types=None, n=8, **options):
    """A folder of runs of {function below main: nanoseconds}."""
    os.makedirs(name)
    rng = random.Random(name)
    for i in range(n):
        sim.write_pprof("%s/%d.pb" % (name, i), types or TYPES, [
            (["main", function], [1, int(rng.gauss(value, value / 100))], {})
            for function, value in values.items()], files=files, **options)
    return name


# ---- verdicts ---------------------------------------------------------------

def check_most():
    """What has nine tenths of the time doubles: 5 % more of a second, or of the
    whole. The rest is not what did not change."""
    wrong = []
    for seed in range(12):
        rng = random.Random(seed)
        sides = []
        for side, hot in (("base", 9), ("head", 18)):
            sides.append("most_%s%d" % (side, seed))
            os.makedirs(sides[-1])
            for i in range(3):
                rest = rng.gauss(1, 0.002)
                scale = 100000 * rng.gauss(1, 0.002) / (hot + rest)
                sim.write_pprof(
                    "%s/%d.pb" % (sides[-1], i), [("samples", "count")],
                    [(["main", "run", "hot"], [sim.count(rng, hot * scale)], {})]
                    + [(["main", "run", "f_%d" % k],
                        [sim.count(rng, rest * scale / 3)], {})
                       for k in range(3)], duration_s=10)
        for per in ("seconds", "total"):
            status, report = judged("-per=" + per, sides[0], "--", sides[1])
            if status == 0 or status == 2 and not report["further_runs"]:
                wrong.append((per, seed, report["summary"]))
    t.same("what has nine tenths and doubles never passes", wrong, [])


def test_verdicts():
    sides = sim.write_sides("slow", 1, 8, 60000, QUIET, {sim.TARGET: 1.05})
    status, report = judged(sides[0], "--", sides[1])
    t.same("5 % in a function of a tenth, 8 runs: status 1", status, 1)
    t.same("verdict is fail", report["verdict"], "fail")
    target = row(report, sim.TARGET)
    t.same("the function fails", target.get("verdict"), "fail")
    t.ok("its interval has the truth in it",
         target["low"] < 0.05 < target["high"], target)
    t.same("its path is told", target["path"],
           "main > run > mid_1 > f_target")
    t.same("its caller fails because of it, if at all",
           [r["because_of"] for r in report["rows"]
            if r["verdict"] == "fail" and r["name"] == "mid_1"] or
           ["f_target"], ["f_target"])
    text = gate(sides[0], "--", sides[1]).stdout
    t.matches("the text begins with the verdict", r"^fail: f_target: \+", text)
    files = [[os.path.join(side, name) for name in sorted(os.listdir(side))]
             for side in sides]
    t.same("files are what their folder is", gate(
        *files[0], "--", *files[1]).stdout, text)
    t.same("the same input gives the same words",
           gate(sides[0], "--", sides[1]).stdout, text)
    status, report = judged("-fail-over=20%", sides[0], "--", sides[1])
    t.same("what grew by less than -fail-over passes", status, 0)
    status, report = judged(sides[1], "--", sides[0])
    t.same("a program that became faster passes", status, 0)

    sides = sim.write_sides("same", 2, 8, 60000, QUIET)
    status, report = judged(sides[0], "--", sides[1])
    t.same("equal sides: status 0", (status, failing(report)), (0, []))
    status, report = judged("-of=flat", sides[0], "--", sides[1])
    t.same("flat, too", (status, failing(report)), (0, []))

    sides = sim.write_sides("few", 3, 3, 3000, QUIET)
    status, report = judged(sides[0], "--", sides[1])
    t.same("few samples: status 2", (status, report["verdict"]),
           (2, "inconclusive"))
    t.ok("and how many more runs", 0 < report["further_runs"] < 10000,
         report["further_runs"])
    t.matches("in words", r"about \d+ more runs? of each side would decide",
              report["summary"])
    done = gate(sides[0] + "/000.folded", "--", sides[1] + "/000.folded")
    t.same("one run a side decides nothing", done.returncode, 2)
    t.matches("and that is said", "one run of each side says nothing of the "
              "noise", done.stdout)
    status, report = judged(sides[0], "--", sides[1] + "/000.folded")
    t.same("one run beside several decides nothing either",
           {r["verdict"] for r in report["rows"]}, {"inconclusive"})
    t.matches("and how many more runs of that side would",
              r"one run of head says nothing of the noise; about \d+ more "
              r"runs of (head|base and \d+ of head) would decide",
              report["summary"])
    sides = sim.write_sides("double", 4, 3, 60000, QUIET, {sim.TARGET: 2})
    status, report = judged(sides[0], "--", sides[1])
    t.ok("twice the time is seen with 3 runs",
         status == 1 and sim.TARGET in failing(report), failing(report))
    check_most()
    small = {"main;f_%d" % i: 500 for i in range(20)}
    sides = runs("small_base", small, 2), runs(
        "small_head", {**small, "main;f_0": 1000}, 2)
    status, report = judged("-per=total", "-of=flat", sides[0], "--", sides[1])
    t.same("where no function has a tenth, the largest must be known",
           (status, row(report, "f_0").get("must_be_sure")), (2, True))


def test_rates():
    """Few pairs: that nothing is grossly wrong."""
    wrong = found = 0
    for i in range(20):
        sides = sim.write_sides("rate", 100 + i, 8, 20000, sim.Noise(0.03, 0.01))
        wrong += judged(sides[0], "--", sides[1])[0] == 1
    t.less("A/A pairs that fail, of 20", wrong, 3)
    for i in range(8):
        sides = sim.write_sides("rate", 200 + i, 8, 60000,
                                sim.Noise(0.03, 0.005), {sim.TARGET: 1.08})
        found += sim.TARGET in failing(judged(sides[0], "--", sides[1])[1])
    t.ok("8 % found, of 8", found >= 7, found)
    usual = sim.Noise(0.02, 0.005)
    for what, n_runs, noise in (
            ("3 runs of head beside 20", (20, 3), usual),
            ("2 noisy ones beside 20", (20, 2), (usual, usual.times(4))),
            ("sides that scatter 1:4", 5, (usual, usual.times(4))),
            ("heavy tails", 5, sim.Noise(0.02, 0.005, 0.1))):
        wrong = 0
        for i in range(20):
            sides = sim.write_sides(what, 300 + i, n_runs, 20000, noise)
            wrong += judged(sides[0], "--", sides[1])[0] == 1
        t.less("A/A pairs that fail, of 20: " + what, wrong, 2)


def test_robust():
    base = {"main;big": 30000, "main;a": 8000, "main;b": 7000,
            "main;c": 6000, "main;d": 9000}
    faster = dict(base, **{"main;big": 18000})
    status, report = judged(runs("r_base", base), "--", runs("r_fast", faster))
    t.same("half of the program became faster: nothing else is blamed",
           (status, failing(report)), (0, []))
    slower = {stack: int(n * 1.2) for stack, n in base.items()}
    status, report = judged("r_base", "--", runs("r_slow", slower))
    t.ok("all of it became slower: the whole fails",
         status == 1 and "the whole" in failing(report), failing(report))
    runs("r_outlier", base, seed=5)
    rng = random.Random(3)
    program = sim.Program(0)
    program.stacks = {tuple(s.split(";")): 4 * n for s, n in base.items()}
    sim.write("r_outlier/003.folded", sim.run(rng, program, 1, QUIET))
    done = gate("r_base", "--", "r_outlier")
    t.ok("one run that is far off is no failure", done.returncode != 1,
         done.stdout)
    t.matches("and is told",
              r"r_outlier/003.folded is far from the other runs of head",
              done.stdout)


# ---- blame ------------------------------------------------------------------

def test_matching():
    base = {"main;work;parse": 9000, "main;work;hash": 8000,
            "main;work;sort;cmp": 7000, "main;io;read": 9000,
            "main;work": 3000, "main;io": 3000}
    runs("m_base", base)

    def other(name, head):
        return judged("m_base", "--", runs(name, head))

    head = {s.replace("parse", "parse.constprop.0").replace("hash", "hash.isra.3")
            .replace("cmp", "cmp.part.0.cold"): n for s, n in base.items()}
    status, report = other("m_clone", head)
    t.same("clones are their functions",
           (status, bool(row(report, "parse")), row(report, "hash.isra.3")),
           (0, True, {}))
    go = {"main.part": 9000, "main": 30000, "main.cold": 9000}
    files = {name: "/src/main.go" for name in go}
    status, report = judged(
        pprof_runs("go_base", go, files), "--",
        pprof_runs("go_head", dict(go, **{"main.part": 18000}), files))
    t.ok("main.part of Go is a function, and fails by itself",
         status == 1 and "main.part" in failing(report), report["rows"])
    long = "f<" + "x" * 2000
    names = {long + str(i) + ">": 9000 for i in range(5)}
    status, report = judged(
        pprof_runs("long_base", names), "--",
        pprof_runs("long_head", dict(names, **{long + "3>": 18000})))
    t.same("names that differ at their end only are told apart",
           (status, [name[-3:] for name in failing(report)
                     if name != "the whole"]), (1, ["x3>"]))
    head = {s.replace("sort", "order"): n for s, n in base.items()}
    status, report = other("m_renamed", head)
    t.same("a renamed function is found by who is around it",
           (status, row(report, "sort").get("name_in_head")), (0, "order"))
    head = {s.replace("sort", "order"): n * (1.3 if "sort" in s else 1)
            for s, n in base.items()}
    status, report = other("m_renamed_slow", head)
    t.ok("also if it is slower", status == 1 and
         row(report, "sort").get("name_in_head") == "order" and
         row(report, "sort")["verdict"] == "fail", report["rows"])
    head = dict(base)
    head["main;work"] += head.pop("main;work;hash")
    for of in ("cum", "flat"):
        runs("m_inlined", head)
        status, report = judged("-of=" + of, "m_base", "--", "m_inlined")
        t.same("an inlined function is a part of its caller, " + of,
               (status, failing(report)), (0, []))
        t.matches("and is told", "hash is gone", " ".join(report["notes"]))
        status, report = judged("-of=" + of, "m_inlined", "--", "m_base")
        t.same("one that was split off, too, " + of,
               (status, failing(report)), (0, []))
    head = dict(base, **{"main;work;check": 4000})
    status, report = other("m_new", head)
    t.ok("new work is growth of who calls it",
         status == 1 and row(report, "work").get("verdict") == "fail", report)
    t.same("and the path leads to it", row(report, "work").get("path"),
           "main > work > check (new)")
    old = {"main;init;old%d" % i: 250 for i in range(9)}
    old.update({"main;parse": 30000, "main;other": 15000})
    head = {s.replace("old", "ab"): n for s, n in old.items()}
    sides = runs("m_old", old), "--", runs("m_ab", {**head,
                                                    "main;brandnew": 6500})
    status, report = judged(*sides)
    t.same("the whole grew by a new function: its path ends there",
           (status, failing(report), row(report, "the whole").get("path")),
           (1, ["the whole"], "main > brandnew (new)"))
    t.matches("the largest function that one side has is told first",
              "^brandnew is new", report["notes"][0])
    done = gate("-markdown=m_ab.md", "-junit=m_ab.xml", *sides)
    for path in "m_ab.md", "m_ab.xml":
        with open(path, encoding="utf-8") as file:
            done.stdout += file.read()
    t.same("all reports have the path", len(re.findall(
        r"main (>|&gt;) brandnew \(new\)", done.stdout)), 4)
    status, report = judged("-of=flat", "m_base", "--", runs(
        "m_itself", {**base, "main": 6000}))
    t.matches("a function that called others is not new if it works itself",
              r"^main spends time by itself now, 1\d\.\d+% of the whole$",
              report["summary"])
    one = {"main;all;f": 50000, "main;all;g": 10000}
    for new in ({"main;all;g;deep": 9000}, {"main;all;g": 19000}):
        leaf = list(new)[0].rsplit(";", 1)[1]
        status, report = judged(runs("m_one", one), "--", runs(
            "m_one_" + leaf, {**one, **new}))
        t.matches("the path of the whole leads to %s" % leaf,
                  "> %s( .new.)?$" % leaf,
                  row(report, "the whole")["path"] or "")
    ring = {"main;a": 3000, "main;b": 3000, "main;c": 3000, "main;a;b": 3000,
            "main;b;c": 3000, "main;c;a": 3000, "main;d": 60000}
    runs("m_ring", ring)
    done = gate("m_ring", "--", runs("m_ring_slow", {
        s: 8000 if s.count(";") > 1 else 1000 if n == 3000 else n
        for s, n in ring.items()}))
    t.ok("a ring of functions that all grew: one of them is named",
         done.returncode == 1 and re.match(r"fail: [abc]: \+", done.stdout),
         done.stdout)
    head = dict(base, **{"main;work;parse": 11000})
    status, report = other("m_blame", head)
    t.same("callers grew because of the callee",
           {r["name"]: r["because_of"] for r in report["rows"]
            if r["verdict"] == "fail" and r["name"] in ("work", "parse")},
           {"work": "parse", "parse": None})


# ---- what is judged, and by which work --------------------------------------

def test_work():
    """Head does twice the work in twice the time."""
    for side, factor in (("w_base", 1), ("w_head", 2)):
        os.makedirs(side, exist_ok=True)
        rng = random.Random(side)
        for i in range(8):
            def cpu(mean):
                return int(rng.gauss(mean, mean / 100)) * factor * 1000

            sim.write_pprof("%s/%d.pb" % (side, i), TYPES, [
                (["main", "ns::a::f"], [60 * factor, cpu(600000)],
                 {"endpoint": "/a", "done": 100 * factor}),
                (["main", "ns::b::g"], [40 * factor, cpu(400000)],
                 {"endpoint": "/b", "done": 100 * factor})],
                duration_s=10 * factor, comments=["orders=%d" % (5 * factor)])
    sides = ["w_base", "--", "w_head"]
    t.same("twice the time per run fails", judged(*sides)[0], 1)
    for per in ("requests", "done", "orders", "seconds", "total"):
        status, report = judged("-per=" + per, *sides)
        t.same("per %s nothing grew" % per, (status, failing(report)), (0, []))
        t.same("and is said so", report["per"], per)
    done = gate("-per=orders", *sides)
    t.same("comments tell no work of another name",
           gate("-per=order", *sides).returncode, 2)
    t.matches("durations that differ are told", "say -per=seconds",
              gate(*sides).stdout)
    names = {r["name"] for r in judged("-by=label", *sides)[1]["rows"]}
    t.same("by label", names, {"the whole", "endpoint=/a", "endpoint=/b"})
    names = {r["name"] for r in judged("-by=label:done", *sides)[1]["rows"]}
    t.ok("by a label of numbers", "done=100" in names, names)
    names = {r["name"] for r in judged("-by=package", *sides)[1]["rows"]}
    t.ok("by package", {"ns::a", "ns::b"} <= names, names)
    pprof_runs("packages", {name: 9000 for name in (
        "void ns::f<int>(int)", "unsigned long (anonymous namespace)::h<int>()",
        "std::vector<a::A, b::B > c::d::g<a::A>(a::A const&)",
        "bool e::operator< <int>(a::A const&, b::B)",
        "o::A::operator p::B() const", "q::A::operator->() const",
        "r::f(int) const::{lambda(int, char)#1}::operator()(int, char) const",
        "vtable thunk to s::A::f(t::B) const", "operator new(unsigned long)",
        "u::f_operator::g()")})
    names = {r["name"] for r in
             judged("-by=package", "packages", "--", "packages")[1]["rows"]}
    t.same("a package has no type that a template returns",
           names - {"the whole"},
           {"ns", "(anonymous namespace)", "c::d", "e", "o::A", "q::A", "s::A",
            "r::f(int) const::{lambda(int, char)#1}", "u::f_operator"})
    names = {r["name"] for r in
             judged("-focus=ns::a", *sides)[1]["rows"]}
    t.ok("filters are those of reports",
         "ns::a::f" not in names and "ns::b::g" not in names, names)
    rare = {"main;rare;x": 0, "main;f": 50000}
    runs("f_base", rare)
    new = runs("f_head", {**rare, "main;rare;x": 600})
    status, report = judged("-focus=rare", "-flamegraph=f.html", "f_base", "--",
                            new)
    t.same("a run of which the filter leaves nothing has 0",
           (status, [r["total"] for r in report["base_runs"]],
            row(report, "the whole").get("growth", 0), failing(report)),
           (1, [0] * 8, None, ["the whole"]))
    t.has("as a part of what is left that is none, and is told",
          gate("-per=total", "-focus=rare", "f_base", "--", new).stderr,
          "f_base/000.folded: the filters leave no sample, so there are no "
          "shares; it is left out")
    rng = random.Random(1)
    for name in os.listdir("f_base")[:4]:
        with open("f_base/" + name, "a", encoding="utf-8") as file:
            file.write("main;rare;x %d\n" % rng.gauss(600, 6))
    status, report = judged("-focus=rare", "f_base", "--", new)
    t.same("and counts in the mean", (len(report["base_runs"]), round(
        row(report, "the whole").get("growth", 0))), (8, 1))
    t.same("no run with a sample that filters leave",
           refused("-focus=never", "f_base", "--", new),
           "cpprof: gate: the filters leave no sample of any run")
    t.same("the sample type is chosen as in reports",
           judged("-sample_index=requests", *sides)[1]["type"], "requests")
    sim.write_pprof("several.pb", TYPES, [
        (["f"], [1, 1], {"done": 1}), (["f"], [1, 1], {"done": 2})])
    t.same("a label with two values tells no work",
           refused("-per=done", "several.pb", "--", "several.pb"),
           "cpprof: several.pb: the label done has several values, so it does "
           "not tell how much was done")
    sim.write_pprof("merged.pb", TYPES, [(["f"], [1, 1], {})],
                    comments=["orders=5", "orders=6"])
    t.same("two comments, as of merged files, tell no work",
           refused("-per=orders", "merged.pb", "--", "merged.pb"),
           "cpprof: merged.pb: the comment orders has several values, so it "
           "does not tell how much was done")
    for number in ("1e-320", "1e300", "-1", "0"):
        sim.write_pprof("tiny.pb", TYPES, [(["f"], [1, 1], {})],
                        comments=["orders=" + number])
        t.matches("nothing is divided by %s" % number,
                  r"^cpprof: tiny.pb: the number of orders is \S+, and nothing "
                  "can be divided by that$",
                  refused("-per=orders", "tiny.pb", "--", "tiny.pb"))
    types = [("samples", "count"), ("cpu", "nanoseconds")]
    for name, period in (("slow.pb", 10000000), ("fast.pb", 1000000)):
        sim.write_pprof(name, types, [(["f"], [10**10 // period, 10**10], {})],
                        period=period)
    t.same("samples of other periods are not compared",
           refused("-sample_index=samples", "slow.pb", "--", "fast.pb"),
           "cpprof: fast.pb: its samples have a period of 1000000, those of the "
           "runs before it one of 10000000, so they are not comparable; say "
           "-sample_index")
    t.same("their times are",
           judged("slow.pb", "--", "fast.pb")[1]["verdict"], "inconclusive")


# ---- what is none -----------------------------------------------------------

def refused(*words):
    """The line that it says, if that is one and the status is 2."""
    done = gate(*words)
    if done.returncode != 2 or done.stdout:
        return "status %d: %s" % (done.returncode, done.stdout)
    # Said of any report of profiles without a mapping.
    return done.stderr.replace(
        "cpprof: Main binary filename not available.\n", "").strip()


def test_refused():
    sides = ["same/base", "--", "same/head"]
    for words, line in (
            ((), "gate: give the files of base, then --, then those of head; "
             "see cpprof gate -help"),
            (("same/base", "same/head"), "gate: give the files of base, then "
             "--, then those of head; see cpprof gate -help"),
            (("-fail-over=x",), "gate: -fail-over=x is no percentage from 0% "
             "to 100000%"),
            (("-confidence=20",), "gate: -confidence=20 is below 50%"),
            (("-of=both",), "gate: -of=both is neither cum nor flat"),
            (("-by=line",), "gate: -by=line is none of function, label, "
             "label:KEY and package"),
            (("-record=3",), "gate: recording takes -record=N, -base=CMD and "
             "-head=CMD"),
            (("-json=-", "-junit=-"), "gate: 2 reports are to be standard "
             "output, which has room for one"),
            (("-nothing",), "flag provided but not defined: -nothing"),
            (("-against=same/base",), "gate: no file of head given"),
            (("-per=orders",), "same/base/000.folded: no sample type, label or "
             "comment tells the number of orders"),
            (("-per=seconds",), "same/base/000.folded: the number of seconds is "
             "0, and nothing can be divided by that"),
            (("-focus=(",), None)):
        has_sides = words and words[0][:4] in ("-per", "-foc", "-jso")
        said = refused(*words, *(sides if has_sides else ()))
        if line:
            t.same("refused: %s" % " ".join(words), said, "cpprof: " + line)
        else:
            t.ok("refused in one line: %s" % " ".join(words),
                 said.startswith("cpprof: ") and "\n" not in said, said)
    sim.write_pprof("n.pb", TYPES, [(["f"], [1, -5], {})])
    t.same("negative values", refused("n.pb", "--", "n.pb"),
           "cpprof: n.pb: it has negative values, as a difference of profiles "
           "has; a side is made of runs")
    sim.write_pprof("heap.pb", [("space", "bytes")], [(["f"], [4096], {})])
    t.ok("another type", refused("w_base", "--", "heap.pb").endswith(
        "it has space in bytes, and the runs before it have cpu in "
        "nanoseconds; say -sample_index"))
    sim.write_pprof("us.pb", [("requests", "count"), ("cpu", "microseconds")],
                    [(["f"], [1, 4096], {})])
    t.ok("another unit", "it has cpu in microseconds" in
         refused("w_base", "--", "us.pb"))
    sim.write_pprof("empty.pb", TYPES, [])
    t.same("a label that is in no run",
           refused("-by=label:endpont", "w_base", "--", "w_base"),
           "cpprof: gate: no sample has a label endpont")
    t.same("no label at all",
           refused("-by=label", "same/base", "--", "same/head"),
           "cpprof: gate: no sample has a label with a text")
    for words, of in ((("-F", "99"), "-record, and nothing is recorded"),
                      (("-e", "perf"), "-record, and nothing is recorded"),
                      (("-one-core",), "-record, and nothing is recorded"),
                      (("-last=3",), "-against, and there is no history")):
        t.same("a flag of what is not done: %s" % words[0],
               refused(*words, *sides), "cpprof: gate: %s is for %s" % (
                   words[0].split("=")[0], of))
    for per, said in (("seconds", "cpu per second; 1 function of"),
                      ("requests", "cpu divided by requests; 1 function of")):
        t.has("words of -per=" + per, gate(
            "-per=" + per, "-smallest=50%", "w_base", "--", "w_base").stdout, said)
    t.same("nothing to compare",
           refused("-per=total", "-smallest=100%", "m_base", "--", "m_base"),
           "cpprof: gate: nothing to compare: nothing that -by and -of name is "
           "as large as -smallest")
    t.same("a flag behind the sides",
           refused("w_base", "--", "w_base", "-junit=x.xml"),
           "cpprof: gate: -junit=x.xml behind --: flags stand before it")
    t.same("empty profiles", refused("empty.pb", "--", "empty.pb"),
           "cpprof: empty.pb: it has no samples; it is left out\n"
           "cpprof: gate: no run of base could be read")
    os.makedirs("damaged")
    for name in os.listdir("same/head"):
        os.link("same/head/" + name, "damaged/" + name)
    with open("damaged/bad.pb.gz", "wb") as file:
        file.write(b"\x1f\x8b\x08\0\0\0\0\0\0\3broken")
    done = gate("same/base", "--", "damaged")
    t.same("a damaged file among others is left out", done.returncode, 0)
    t.matches("and told", "cpprof: damaged/bad.pb.gz: ", done.stderr)
    t.matches("with the count", "1 of 9 runs of head are left out", done.stderr)
    done = gate("-json=/nonexistent/x", *sides)
    t.ok("a report that cannot be written: status 2",
         done.returncode == 2 and "/nonexistent/x" in done.stderr, done.stderr)


def test_large():
    program = sim.Program(9, 4000)
    sides = sim.write_sides("large", 9, 8, 200000, QUIET, {sim.TARGET: 1.2},
                            program)
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    status, report = judged("-smallest=0%", sides[0], "--", sides[1])
    t.less("4 000 functions, all of them judged: seconds of CPU time",
           resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began, 30)
    t.ok("all of them", report["tested"] > 3600, report["tested"])
    t.ok("and the right one is found",
         status == 1 and sim.TARGET in failing(report), failing(report)[:9])
    t.less("with few others", len([name for name in failing(report)
                                   if name not in (sim.TARGET, "mid_1", "run",
                                                   "the whole")]), 2)


# ---- history and recording --------------------------------------------------

def test_against():
    os.makedirs("history")
    for i in range(12):
        share = 30000 if i < 4 else 10000
        sim.write_pprof("history/%02d.pb" % (11 - i), TYPES, [
            (["main", "f"], [1, share + i], {}),
            (["main", "g"], [1, 50000 - i], {})])
    status, report = judged("-against=history", "-last=8", "history/03.pb")
    t.same("the last of a folder, without head itself",
           len(report.get("base_runs", [])), 8)
    status, report = judged("-against=history", "history/03.pb")
    t.same("all of them, if they are fewer", len(report["base_runs"]), 11)
    t.same("a folder as head: none of its files is its own base",
           refused("-against=history", "history"),
           "cpprof: gate: history: no profile to compare with")


def test_copies():
    for side in "ch":
        sim.write_pprof(side + ".pb", TYPES, [(["f"], [1, 10**9], {})],
                        time_s=1.6e9, duration_s=1)
    done = gate("-json=-", "c.pb", "c.pb", "./c.pb", "--", "h.pb")
    t.same("a file that is given three times is one run",
           len(json.loads(done.stdout)["base_runs"]), 1)
    t.has("and this is told", done.stderr, "cpprof: ./c.pb: it is the same file "
          "as c.pb; it is left out\n")
    status, report = judged("c.pb", "h.pb", "--", "h.pb")
    t.same("so is a copy of a run", len(report["base_runs"]), 1)
    t.has("which is told, too", gate("c.pb", "h.pb", "--", "h.pb").stderr,
          "cpprof: h.pb: it is the same run as c.pb; it is left out\n")
    sim.write_pprof("i.pb", TYPES, [(["f"], [1, 10**9], {})])
    sim.write_pprof("j.pb", TYPES, [(["f"], [1, 10**9], {})])
    t.same("runs without a time may be equal",
           len(judged("i.pb", "j.pb", "--", "h.pb")[1]["base_runs"]), 2)


class Pyroscope(http.server.BaseHTTPRequestHandler):
    """Answers each window with a profile; notes what was asked."""
    asked = []
    is_slow, ended = threading.Event(), threading.Event()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append((self.path, self.headers["Content-Type"], body))
        sim.write_pprof("answer", TYPES, [
            (["main", "f"], [1, 30000 + len(self.asked)], {}),
            (["main", "g"], [1, 50000 - len(self.asked)], {})])
        with open("answer", "rb") as file:
            answer = file.read()
        if b"slow" in body:
            self.is_slow.set()
            self.ended.wait(60)
            return
        if b"page" in body:
            answer = b"<html>\n</html>\n\nmain;f 12\n"
        self.send_response(200 if b"none" not in body else 404)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def test_query():
    server = http.server.HTTPServer(("127.0.0.1", 0), Pyroscope)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d/" % server.server_port
    words = '?query=process_cpu:cpu:nanoseconds:cpu:nanoseconds' \
        '{service_name="shop"}&from=1700000000&until=1700000800'
    status, report = judged("-against=" + url + words, "-last=8",
                            "history/03.pb")
    t.same("windows of a query to Pyroscope are runs of base",
           len(report.get("base_runs", [])), 8)
    t.ok("and are judged", status in (0, 1, 2) and report.get("rows"), report)
    t.same("it was asked as its clients ask", sorted(Pyroscope.asked[:1]), [
        ("/querier.v1.QuerierService/SelectMergeProfile", "application/proto",
         chunk(1, b"process_cpu:cpu:nanoseconds:cpu:nanoseconds") +
         chunk(2, b'{service_name="shop"}') + varint(3 << 3) +
         varint(1700000000000) + varint(4 << 3) + varint(1700000100000))])
    t.matches("a server that refuses is told in one line",
              r"^cpprof: gate: http.*404 Not Found$",
              refused("-against=" + url + "?query=none{}", "history/03.pb"))
    t.matches("and an answer that is no profile",
              r"^cpprof: gate: http.*: the answer is no profile$",
              refused("-against=" + url + "?query=page{}", "history/03.pb"))
    for words in ("query={}", "query="):
        t.ok("and a query for no type: " + words,
             "no query=TYPE{LABELS} in it" in
             refused("-against=" + url + "?" + words, "history/03.pb"))
    t.ok("and a time before all", "from=0 until=now is no time" in refused(
        "-against=" + url + "?query=x{}&from=0", "history/03.pb"))
    t.ok("and a query without one", "no query=TYPE{LABELS} in it" in
         refused("-against=" + url + "?from=now-1h", "history/03.pb"))
    t.ok("and a time that is none", "from=yesterday until=now is no time" in
         refused("-against=" + url + "?query=x{}&from=yesterday",
                 "history/03.pb"))
    with gate_in("query", "-against=" + url + "?query=slow{}",
                 "history/03.pb") as process:
        t.ok("a server may let wait", Pyroscope.is_slow.wait(60))
        check_end(process, signal.SIGINT, "waits for a server", "query")
    Pyroscope.ended.set()
    server.shutdown()


def gate_in(folder, *words):
    """A gate with a folder for its temporary files."""
    os.makedirs(folder)
    return subprocess.Popen([cpprof, "gate"] + list(words), text=True,
                            env=dict(os.environ, TMPDIR=folder),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)


def at_terminal(*words):
    """Exit status of a gate that has a terminal, and what it says there; it has
    30 s."""
    child, leader = pty.fork()
    if child == 0:
        os.execv(cpprof, [cpprof, "gate"] + list(words))
    limit = threading.Timer(30, os.kill, (child, signal.SIGKILL))
    limit.start()
    said = b""
    try:
        while True:
            said += os.read(leader, 4096)
    except OSError:
        pass
    limit.cancel()
    os.close(leader)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.decode()


def check_end(process, number, what, folder):
    """A signal ends it, and nothing is left."""
    process.send_signal(number)
    said = process.communicate(timeout=60)[0]
    t.same("a gate that %s ends by the signal, and leaves nothing" % what,
           (process.returncode, os.listdir(folder), said), (-number, [], ""))


def has_ended(pid):
    """Within ten seconds; a zombie has."""
    for _ in range(1000):
        try:
            with open("/proc/%d/stat" % pid) as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_record():
    command = "exec %s -c 'sum(i * i for i in range(%d))'"
    base = command % (sys.executable, 300000)
    left = set(os.listdir(tempfile.gettempdir()))
    status, report = judged("-record=3", "-base=" + base, "-head=" + base)
    t.same("both commands were recorded",
           (len(report.get("base_runs", [])), len(report.get("head_runs", []))),
           (3, 3))
    t.ok("and judged", status in (0, 1, 2) and report.get("type") == "cpu",
         report)
    status, report = judged("-record=4", "-one-core", "-base=" + base,
                            "-head=" + command % (sys.executable, 3000000))
    t.same("ten times the work fails", status, 1)
    t.same("nothing is left behind",
           [n for n in set(os.listdir(tempfile.gettempdir())) - left
            if n.startswith("cpprof-gate")], [])
    began = os.path.realpath("began")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        with gate_in("record%d" % number, "-record=3", "-head=true",
                     "-base=sleep 60 & echo $! > %s; wait" % began) as process:
            while not os.path.exists(began) or not os.path.getsize(began):
                time.sleep(0.01)
            check_end(process, number, "records", "record%d" % number)
        with open(began) as file:
            child = int(file.read())
        t.ok("nor what the command has started", has_ended(child), child)
        os.unlink(began)
    with gate_in("stubborn", "-record=3", "-head=true",
                 "-base=trap '' TERM INT; echo > %s; sleep 30" % began) as process:
        while not os.path.exists(began):
            time.sleep(0.01)
        for _ in range(100):
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
            if process.poll() is not None:
                break
        t.same("a command that ends by no SIGTERM is killed by the second "
               "signal, and nothing is left",
               (process.poll(), os.listdir("stubborn")), (-signal.SIGINT, []))
        process.kill()
    status, said = at_terminal("-record=1", "-head=true; " + base,
                               "-base=stty -echo < /dev/tty && " + base)
    t.ok("a command may set the terminal", status in (0, 1, 2) and
         "1 run of base" in said, (status, said))
    done = gate("-record=3", "-base=" + base, "-head=exit 7")
    t.ok("a command that fails is told in one line",
         done.returncode == 2 and done.stderr.count("\n") == 1 and
         done.stderr.endswith("of head that warms up ended with status 7\n"),
         done.stderr)
    done = gate("-record=3", "-base=" + base,
                "-head=test -e late && exit 8; echo 1; echo 2 >&2; : > late")
    t.same("a later one with its number, and without the recorder's words",
           (done.returncode, done.stderr),
           (2, "cpprof: gate: run 1 of head ended with status 8\n"))
    done = gate("-record=3", "-base=" + base, "-head=echo 1; echo 2 >&2; exit 8")
    t.has("its lines are one", done.stderr, "ended with status 8: 1; 2\n")
    done = gate("-record=1", "-head=" + base, "-base=echo hello; env -i " +
                command[5:] % (sys.executable, 3000000))
    t.matches("what cannot be recorded is told with what it said",
              "^cpprof: gate: run 1 of base has no samples, and said: hello; "
              "(cpprof: .* in no profile: .*; )?"  # if it ran long enough
              "a static program, and .* .env -i.*, cannot be recorded\n",
              done.stderr)


# ---- reports ----------------------------------------------------------------

def check_junit(path):
    """What the schema of Ant's JUnit reports (JUnit.xsd) asks for: elements in
    their order, attributes with their types. Returns what is wrong."""
    wrong = []
    with open(path, encoding="utf-8") as file:
        root = xml.etree.ElementTree.parse(file).getroot()
    suite_attributes = {
        "name": r"\S(.*\S)?", "package": r"\S+", "id": r"\d+",
        "timestamp": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "hostname": r"\S+",
        "tests": r"\d+", "failures": r"\d+", "errors": r"\d+",
        "time": r"[\d.]+"}
    case_attributes = {"name": r".+", "classname": r".+", "time": r"[\d.]+"}

    def attributes(element, allowed, optional=()):
        for name, pattern in allowed.items():
            if name not in element.attrib and name not in optional:
                wrong.append("%s lacks %s" % (element.tag, name))
            elif not re.fullmatch(pattern, element.get(name, "1"), re.S):
                wrong.append("%s=%s" % (name, element.get(name)))
        wrong.extend("%s has %s" % (element.tag, name)
                     for name in element.attrib if name not in allowed)

    if root.tag != "testsuites" or root.attrib:
        wrong.append(root.tag)
    for suite in root:
        attributes(suite, suite_attributes)
        tags = " ".join(child.tag for child in suite)
        if not re.fullmatch(r"properties( testcase)* system-out system-err",
                            tags):
            wrong.append(tags)
        for prop in suite.find("properties"):
            attributes(prop, {"name": ".+", "value": ".*"})
        counts = {"failure": 0, "error": 0, "skipped": 0}
        for case in suite.findall("testcase"):
            attributes(case, case_attributes)
            if len(case) > 1:
                wrong.append("%s has several results" % case.get("name"))
            for result in case:
                counts[result.tag] += 1
                attributes(result, {} if result.tag == "skipped" else
                           {"message": ".*", "type": ".+"}, ("message",))
        if [int(suite.get(name)) for name in ("tests", "failures", "errors")] \
                != [len(suite.findall("testcase")), counts["failure"],
                    counts["error"]]:
            wrong.append("counts: %s" % suite.attrib)
    return wrong


ODD = "operator|<a & b>::`x`\x01\xff"


def test_reports():
    base = {ODD: 9000, "g": 20000, "h": 15000}
    sides = [pprof_runs("o_base", base), "--",
             pprof_runs("o_head", dict(base, **{ODD: 12000}))]
    done = gate("-json=o.json", "-junit=o.xml", "-markdown=o.md",
                "-flamegraph=o.html", *sides)
    t.same("all reports at once", (done.returncode, done.stdout[:5]),
           (1, "fail:"))
    t.none("JUnit XML is as its schema says", check_junit("o.xml"))
    for sides_of in (("few/base", "--", "few/head"),
                     ("same/base", "--", "same/head")):
        gate("-junit=p.xml", *sides_of)
        t.none("also of %s" % sides_of[0], check_junit("p.xml"))
    with open("o.xml", encoding="utf-8") as file:
        t.has("its failure names the function", file.read(),
              "operator|&lt;a &amp; b&gt;::`x`?\xff")
    with open("o.json", encoding="utf-8") as file:
        report = json.load(file)
    wrong = [key for key, kind in (
        ("version", int), ("verdict", str), ("summary", str), ("type", str),
        ("unit", str), ("of", str), ("by", str), ("per", str),
        ("fail_over", float), ("confidence", float), ("relative", bool),
        ("tested", int), ("base_runs", list), ("head_runs", list),
        ("notes", list), ("rows", list))
        if not isinstance(report.get(key), kind)]
    t.none("JSON has its members", wrong)
    wrong = [(r, key) for r in report["rows"] for key in (
        "base", "head", "growth", "low", "high", "p", "q", "share")
        if not isinstance(r[key], float)]
    t.none("and so have its rows", wrong)
    t.none("low <= growth <= high", [
        r for r in report["rows"] if not r["low"] <= r["growth"] <= r["high"]])
    with open("o.md", encoding="utf-8") as file:
        lines = file.read().splitlines()
    t.matches("Markdown begins with the verdict", "^### :x: cpprof gate: fail",
              lines[0])
    table = [line for line in lines if line.startswith("|")]
    t.none("its rows have six cells", [
        line for line in table if len(re.findall(r"(?<!\\)\|", line)) != 7])
    with open("o.html", encoding="utf-8") as file:
        page = file.read()
    t.ok("the flame graph is one page that needs nothing else",
         "<html" in page and not re.search(r'(src|href)="http', page))
    t.ok("it has both sides: a difference of a run",
         re.search(r'"total":\s*\d+', page) is not None and "operator" in page)
    done = gate("-flamegraph=-", *sides)
    t.ok("the flame graph can be standard output, without the text",
         done.stdout.startswith("<!") and not os.path.exists("-"),
         done.stdout[:99])
    markup = "<b>|`*x*`</b>"
    for side, value in (("markup_base", 9000), ("markup_head", 9001)):
        pprof_runs(side, {"f": value, "g": 9000}, types=[("requests", "count"),
                                                       (markup, markup)])
    done = gate("-markdown=-", "markup_base", "--", "markup_head")
    bare = re.sub(r"(`+) ?.*?[^`]\1(?!`)", "", done.stdout)
    t.ok("a type with markup is code in Markdown",
         "x" in done.stdout and not re.search(r"<b>|\*x\*", bare), done.stdout)
    most = 2 ** 63 - 1
    sim.write_pprof("most.pb", TYPES, [(["main", name], [1, most], {})
                                       for name in ("f", "g")])
    t.ok("a sum above the largest number is no negative one",
         "1.84e+19ns" in gate("most.pb", "--", "most.pb").stdout)
    bars = [runs("bars_" + name, {"main;a|b": n, "main;other": 9000})
            for name, n in (("base", 1000), ("head", 3000))]
    done = gate("-markdown=-", bars[0], "--", bars[1])
    t.ok("a bar has a backslash in the table only",
         "| `a\\|b` |" in done.stdout and "- `main > a|b`" in done.stdout and
         "`a|b: +" in done.stdout, done.stdout)
    bars = [runs("slash_" + name, {"main;a\\|b\\\\|c": n, "main;other": 9000})
            for name, n in (("base", 1000), ("head", 3000))]
    done = gate("-markdown=-", bars[0], "--", bars[1])
    cell = r"(?:\\[\\|`]|[^|\\])*"
    t.none("nor does a bar behind a backslash part a cell", [
        line for line in done.stdout.splitlines() if line.startswith("|") and
        not re.fullmatch(r"\|(%s\|){6}" % cell, line)])
    t.same("- is standard output, without the text",
           json.loads(gate("-json=-", *sides).stdout)["verdict"], "fail")


def main():
    os.environ["NO_COLOR"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        test_verdicts()
        test_rates()
        test_robust()
        test_matching()
        test_work()
        test_refused()
        test_large()
        test_against()
        test_copies()
        test_query()
        test_record()
        test_reports()
        os.chdir("/")
    return t.end()


if __name__ == "__main__":
    sys.exit(main())
