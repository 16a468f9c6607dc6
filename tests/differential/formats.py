#!/usr/bin/env python3
"""Every format of reports, of files of real writers (../fixtures) and of
programs that are compiled and recorded here, as cpprof and pprof print it.

    formats.py CPPROF          each format of each profile, under some options
    formats.py --all CPPROF    under all of them, which takes long
    formats.py --first N CPPROF  under others: those from the Nth on

TAP, a line for each profile and format. `go tool pprof` has another reader of
binaries than pprof itself, so that is built out of the copy that Go carries
(peer.py), and stays in the folder of --peer. Without it, or without a compiler,
the programs are left out, and it says so.

What must not be compared, and why, is in undefined(); what differs for a reason
in alike(). docs/differences.md has the words for users.
"""
import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile

import normalise
import peer as the_peer
import run

HERE = os.path.dirname(os.path.abspath(__file__))
FORMATS = ["-top", "-tree", "-peek=a", "-traces", "-raw", "-comments", "-dot",
           "-callgrind", "-proto", "-topproto", "-list=%s", "-disasm=%s"]
# Without binaries its instructions come in random order there.
OF_PROGRAMS = ["-weblist=%s"]
# pprof uses the tools of binutils for these only.
WITH_TOOLS = ("-disasm", "-weblist")
WRITTEN = ("-proto", "-topproto", "-weblist")  # with -output
BASE = "BASE"
OPTIONS = [
    ["-lines"], ["-addresses"], ["-files"], ["-filefunctions"], ["-cum"],
    ["-noinlines"], ["-call_tree"], ["-functions", "-cum"],
    ["-focus=a"], ["-ignore=a"], ["-hide=o"], ["-show=main|a"],
    ["-show_from=main"], ["-prune_from=a"], ["-focus=run|mix", "-cum"],
    ["-relative_percentages", "-focus=a"], ["-tagfocus=1kb:"],
    ["-tagignore=two"], ["-tagshow=bytes"], ["-taghide=."],
    ["-tagroot=phase"], ["-tagleaf=bytes"], ["-unit=ms"], ["-unit=auto"],
    ["-nodecount=5"], ["-nodefraction=0.1"], ["-edgefraction=0.2"],
    ["-trim=false"], ["-mean"], ["-sample_index=0"], ["-divide_by=3"],
    ["-compact_labels"], ["-drop_negative"], ["-intel_syntax"],
    ["-source_path=/usr"], ["-trim_path=/usr"], ["-normalize"],
    ["-base", BASE], ["-diff_base", BASE], ["-add_comment=hello"],
]
N_OPTIONS = 1  # for each profile and format, in rotation; and none
TRIES = 12

# -------------------------------------------------------------- profiles ----

class Profile:
    def __init__(self, name, path, symbol, formats):
        self.name = name
        self.path = path
        self.symbol = symbol  # what code is asked of
        self.formats = formats
        self.base = path
        self.ours = path  # as the older pprof merges it with itself


def fixtures():
    return [Profile(name, os.path.join(run.FIXTURES, name), "spin|hot|main.cpu",
                    FORMATS) for name in run.fixture_names()]


def record(cpprof, folder, name, words, formats=FORMATS + OF_PROGRAMS):
    """A profile of code.cc, compiled in that way; without parts of functions
    that are elsewhere, which LLVM's tools take for other functions."""
    program = os.path.join(folder, name)
    path = program + ".pb.gz"
    compiled = shutil.which("g++") and subprocess.run(
        ["g++", "-fno-reorder-blocks-and-partition", *words, "-o", program,
         os.path.join(HERE, "code.cc")],
        check=False).returncode == 0
    if not compiled or subprocess.run(
            [cpprof, "record", "-F", "250", "-o", path, "--", program],
            check=False, capture_output=True).returncode:
        return None
    # A constructor that is not inlined has two names.
    symbol = "filling|mix|Box" if "-O0" in words else "sorting|filling|mix|Box"
    return Profile(name, path, symbol, formats)


def record_go(folder):
    program = os.path.join(folder, "code_go")
    path = program + ".pb.gz"
    built = the_peer.go(folder, ["build", "-o", program,
                                 os.path.join(HERE, "code.go")], folder)
    if not built or subprocess.run([program, path], check=False).returncode:
        return None
    return Profile("code_go", path, "main\\.main|fill|mix|sort",
                   FORMATS + OF_PROGRAMS)


def programs(cpprof, folder):
    # Without DWARF, LLVM takes the names of files from the symbol table.
    made = [record(cpprof, folder, "code_names", ["-O2"], FORMATS),
            record(cpprof, folder, "code_pie", ["-O2", "-g", "-pie", "-fPIE"]),
            record(cpprof, folder, "code_fixed", ["-O2", "-g", "-no-pie"]),
            record(cpprof, folder, "code_slow", ["-O0", "-g"]),
            record_go(folder)]
    return [profile for profile in made if profile]


# ----------------------------------------------------------------- cases ----

def undefined(form, options):
    """There is nothing to compare with: pprof-tool defects, or the older pprof
    is known to be another."""
    graph = form in ("-dot", "-callgrind", "-tree", "-peek")
    if "-files" in options:  # rows of one file come apart, in random order
        return graph or form in ("-top", "-topproto")
    if "-call_tree" in options:  # equal nodes have no order
        return form in ("-dot", "-callgrind")
    if BASE in options:  # nor have edges of equal weight and opposite sign
        return graph or form == "-weblist"  # nor lines without binaries
    # The older one does not hear it where lines are addresses anyway.
    return "-noinlines" in options and form in ("-raw", "-proto", "-callgrind")


def cases(profile, number, everything, start):
    """Pairs of a format and options."""
    for place, form in enumerate(profile.formats):
        form = form % profile.symbol if "%s" in form else form
        first = start + number * 7 + place * N_OPTIONS
        some = OPTIONS if everything else itertools.islice(
            itertools.cycle(OPTIONS), first, first + N_OPTIONS)
        for options in itertools.chain([[]], some):
            if not undefined(form.split("=")[0], options):
                yield form, options


def printed(tool, form, options, path, reader):
    """The status, the text and what was said."""
    words = ["-symbolize=none", form] + options
    kind = form.split("=")[0]
    around = run.ENVIRONMENT if kind in WITH_TOOLS else run.WITHOUT
    if kind not in WRITTEN:
        return run.run(tool, words + [path], around)
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "report")
        status, _, said = run.run(tool, words + ["-output=" + target, path],
                                  around)
        if kind != "-weblist":
            return status, run.run(reader, ["-symbolize=none", "-raw",
                                            target])[1], said
        try:
            with open(target, "rb") as file:
                return status, file.read(), said
        except OSError:
            return status, b"", said


def without(pattern, text):
    return re.sub(pattern, b"", text, flags=re.M)


def alike(form, options, text):
    """What both print, less of what is another in the newer pprof, or better
    here."""
    kind = form.split("=")[0]
    text = re.sub(rb"Time: [^\n<\\]*", b"Time", text)
    # The older one reads no columns.
    if "-addresses" in options or kind == "-traces":
        text = re.sub(rb"(\S:\d+):\d+", rb"\1", text)
    if kind in ("-raw", "-proto", "-topproto"):
        text = normalise.raw(text)
    # It does not escape them in labels, and prints what dot cannot read.
    if kind == "-dot":
        text = text.replace(b'\\"', b'"')
    # The page around them is our own; what fills the room behind functions is
    # of none.
    if kind == "-weblist":
        text = text[text.find(b"<body>"):]
        text = without(rb"^.*<span class=unimportant></span>\n", text)
        text = without(rb"^ +\xe2\x8b\xae\n", text)
    return text


def same(form, got, want):
    """Equal but for the calls to nothing (cfn=) of the older one."""
    if form != "-callgrind" or b"\ncfn=\n" not in want:
        return got == want
    got, want = got.split(b"\n"), want.split(b"\n")
    return len(got) == len(want) and all(
        a == b or b == b"cfn=" for a, b in zip(got, want))


def compare(cpprof, peer, profile, form, options):
    """None, or what differs."""
    options = [profile.base if word == BASE else word for word in options]
    status, got, said = printed(cpprof, form, options, profile.ours, cpprof)
    got = alike(form, options, got)
    for _ in range(TRIES):
        want_status, want, want_said = printed(peer, form, options,
                                               profile.path, cpprof)
        want = alike(form, options, want)
        if (status == 0) == (want_status == 0) and (
                status != 0 or same(form, got, want)):
            return None
        # It looks for code where a random address says that the binary is.
        if not form.startswith("-disasm"):
            break
    if normalise.is_known_refusal(want_said):
        return None
    return "status %s %r, the peer's %s %r; %s" % (
        status, said[-200:], want_status, want_said[-200:],
        run.first_difference(got, want))


def test(job):
    cpprof, peer, profile, form, some = job
    wrong = []
    for options in some:
        said = compare(cpprof, peer, profile, form, options)
        if said:
            wrong.append("%s %s\n#   %s" % (form, " ".join(options), said))
    return "%s %s, %d sets of options" % (profile.name, form, len(some)), wrong


def prepare(cpprof, profiles, folder):
    for before, profile in zip(profiles[-1:] + profiles, profiles):
        profile.base = before.path
        merged = os.path.join(folder, profile.name + ".merged.pb")
        if run.run(cpprof, ["convert", "-o", merged, profile.path])[0] == 0:
            profile.ours = merged


def jobs(options, folder):
    cpprof = os.path.realpath(options.cpprof)
    built = the_peer.kept(options.peer or folder,
                          os.path.join(folder, "sources"))
    peer = the_peer.Peer(built, run.ENVIRONMENT) if built else None
    profiles = fixtures()
    if peer:
        profiles += programs(cpprof, folder)
    else:
        print("# no programs: pprof cannot be built")
    prepare(cpprof, profiles, folder)
    for number, profile in enumerate(profiles):
        for form, group in itertools.groupby(
                cases(profile, number, options.all, options.first),
                key=lambda case: case[0]):
            if options.k not in "%s %s" % (profile.name, form):
                continue
            yield (cpprof, peer or run.peer(), profile, form,
                   [words for _, words in group])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--first", type=int, default=0, metavar="N")
    parser.add_argument("-k", default="", metavar="TEXT",
                        help="only profiles and formats with it")
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("--peer", metavar="FOLDER")
    parser.add_argument("cpprof")
    options = parser.parse_args()
    if not run.peer():
        print("1..0 # SKIP no go tool pprof")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return run.run_all(test, list(jobs(options, folder)), options.j)


if __name__ == "__main__":
    sys.exit(main())
