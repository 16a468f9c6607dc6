#!/usr/bin/env python3
"""Texts of a profile that no compiler makes: bytes that are no UTF-8, zero bytes,
what a terminal obeys, labels of one key with several units.

    odd_texts.py CPPROF       TAP
"""
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import xml.dom.minidom

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
import tap
from protobuf import chunk, varint

t = tap.Tap()
cpprof = os.path.realpath(sys.argv[1])
MS = 1000000


def number(field, n):
    return varint(field << 3) + varint(n)


def write(path, samples):
    """samples: (functions from the leaf on, ns, labels: key, value and unit)."""
    strings, functions, body = [b""], [], b""

    def text(s):
        s = s.encode() if isinstance(s, str) else s
        if s not in strings:
            strings.append(s)
        return strings.index(s)

    def function(name):
        if name not in functions:
            functions.append(name)
        return functions.index(name) + 1

    def label(key, value, unit=""):
        return chunk(3, number(1, text(key)) + (
            number(3, value) + number(4, text(unit))
            if isinstance(value, int) else number(2, text(value))))

    head = chunk(1, number(1, text("cpu")) + number(2, text("nanoseconds")))
    for names, ns, labels in samples:
        body += chunk(2, chunk(1, b"".join(
            varint(function(name)) for name in names)) + chunk(2, varint(ns)) +
            b"".join(label(*one) for one in labels))
    for i, name in enumerate(functions, 1):
        body += chunk(4, number(1, i) + chunk(4, number(1, i)))
        body += chunk(5, number(1, i) + number(2, text(name)) +
                      number(3, text(name)))
    with open(path, "wb") as f:
        f.write(head + body + b"".join(chunk(6, s) for s in strings))


def run(*words):
    done = subprocess.run([cpprof, *words], capture_output=True, check=False,
                          timeout=60)
    # It says that there is no binary.
    return done.returncode, done.stdout, b"".join(
        line for line in done.stderr.splitlines(True)
        if b"Main binary" not in line)


def bytes_that_are_no_utf8():
    write("bytes.pb", [([b"a\x80b\x85", b"main\x9b"], 10 * MS, [])])
    if not shutil.which("dot"):
        t.skip("-svg", "no Graphviz")
        return
    status, picture, said = run("-svg", "bytes.pb")
    t.same("-svg: status, and nothing is said", (status, said), (0, b""))
    texts = [node.firstChild.data for node in
             xml.dom.minidom.parseString(picture).getElementsByTagName("text")]
    t.ok("a byte that is no UTF-8 is U+FFFD in it", "a\ufffdb\ufffd" in texts,
         texts)


def zero_bytes():
    write("zero.pb", [([b"f\0x", "main"], 10 * MS, [(b"k\0a", b"v\0b")]),
                      ([b"f\0y", "main"], 20 * MS, [])])
    top = run("-top", "zero.pb")[1]
    t.ok("names that differ behind a zero byte are two functions",
         b"67%  f\0y\n" in top and b"33%  f\0x\n" in top, top)
    t.ok("and stay so in what is written",
         b"67%  f\0y\n" in run("-proto", "-output=zero2.pb", "zero.pb")[1] +
         run("-top", "zero2.pb")[1])
    t.ok("-traces prints a label as it is", b"       k\0a:  v\0b\n" in run(
        "-traces", "zero.pb")[1])


def what_a_terminal_obeys():
    write("terminal.pb", [(["u\u009b31m\x1b]0;t\x07", "main"], 10 * MS, [])])
    for form in "collapsed", "text", "ndjson":
        us, its = pty.openpty()
        subprocess.run([cpprof, "convert", "-to=" + form, "terminal.pb"],
                       stdout=its, stderr=subprocess.DEVNULL, check=False)
        os.close(its)
        shown = b""
        try:
            while True:
                shown += os.read(us, 65536)
        except OSError:  # all is read
            pass
        os.close(us)
        t.ok("convert -to=%s sends a terminal no escapes" % form,
             b"31m" in shown and b"\xc2\x9b" not in shown and
             b"\x1b" not in shown and b"\x07" not in shown, shown)
    t.ok("a file has the bytes", b"\xc2\x9b31m" in run(
        "convert", "-to=collapsed", "terminal.pb")[1])


def several_units():
    write("units.pb", [
        (["a", "main"], 10 * MS, [("req", 1, "kb"), ("req", 2, "mb")]),
        (["b", "main"], 10 * MS, [("req", 1, "kb"), ("of", 1, "s")]),
        (["c", "main"], 10 * MS, [("req", 3, "gb"), ("of", 1, "ms")])])
    for report in "-top", "-tags", "-raw":
        t.same(report + " says which unit is used", run(
            report, "units.pb")[2],
            b"cpprof: For tag of used unit s, also encountered unit(s) ms\n"
            b"cpprof: For tag req used unit kb, also encountered unit(s) gb, "
            b"mb\n")
    run("convert", "-o", "units.otlp", "units.pb")
    raw = run("-raw", "units.otlp")[1]
    for label in b"req:[1 kb]", b"req:[2 mb]", b"req:[3 gb]", b"of:[1 ms]":
        t.ok("OTLP keeps %s" % label.decode(), label in raw, raw)


def any_key():
    write("key.pb", [(["a", "main"], 10 * MS, [("thread", "io")]),
                     (["b", "main"], 20 * MS, [])])
    for word in "=io", "=", "thread=io":
        t.ok("-tagfocus=%s takes the label" % word, b"33%  a\n" in run(
            "-top", "-tagfocus=" + word, "key.pb")[1])


def files_of_others():
    for begin, hint in (
            (b"\xfd7zXZ\0", "it is packed by xz: unpack it first"),
            (b"(\xb5/\xfd", "it is packed by zstd: unpack it first"),
            (b"BZh9", "it is packed by bzip2: unpack it first"),
            (b"PK\3\4", "it is a zip archive: unpack it first"),
            (b"PERFILE2", "it is perf's own: perf script -i FILE gives what can "
             "be read")):
        with open("other", "wb") as file:
            file.write(begin + 50 * b"\1x")
        t.same("%r is told as what it is" % begin, run("top", "other"), (
            2, b"", b"cpprof: other: parsing profile: unrecognized profile "
            b"format (%s)\n" % hint.encode()))


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    files_of_others()
    bytes_that_are_no_utf8()
    zero_bytes()
    what_a_terminal_obeys()
    several_units()
    any_key()
sys.exit(t.end())
