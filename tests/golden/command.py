#!/usr/bin/env python3
"""The command line of reports: what is accepted, and one clear line for what is
not. command.py CPPROF
"""
import glob
import gzip
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, ".."))
from tap import Tap  # noqa: E402

CPU = os.path.join(HERE, "cpu", "profile.pb")

# The binaries of the profile are nowhere, and each report says so first.
MISSING = (b"cpprof: Local symbolization failed",
           b"cpprof: Some binary filenames not available",
           b"cpprof: Try setting PPROF_BINARY_PATH")


def start(*words, **options):
    """Run it; stderr is without those lines."""
    done = subprocess.run(*words, **options)
    if done.stderr:
        done.stderr = b"".join(line for line in done.stderr.splitlines(True)
                               if not line.startswith(MISSING))
    return done


# Words, then the whole of stderr after "cpprof: ". FILES are made below.
ERRORS = [
    ([], "no command given; see cpprof help"),
    (["tpo", CPU], 'unknown command "tpo"; see cpprof help'),
    (["top"], "no profile source specified"),
    (["http", ":0"], "no profile source specified"),
    (["http", "8080"], "no profile source specified"),
    (["-top"], "no profile source specified"),
    (["-top", "nowhere.pb"], "nowhere.pb: No such file or directory"),
    (["-top", "none"], "none: no files in this folder"),
    (["-top", "empty"], "empty: parsing profile: empty input file"),
    (["-top", "cut.gz"],
     "cut.gz: decompressing profile: gzip: damaged or cut short"),
    (["-top", "cut"],
     "cut: parsing profile: unrecognized profile format at byte 6"),
    (["-top", "text"], "text: parsing profile: unrecognized profile format"),
    (["-top", "-nosuch", CPU],
     "flag provided but not defined: -nosuch"),
    (["-top", "-nodecount=many", CPU],
     'invalid value "many" for flag -nodecount: parse error'),
    (["-top", "-cum=perhaps", CPU],
     'invalid value "perhaps" for flag -cum: parse error'),
    (["-top", "-focus"], "flag needs an argument: -focus"),
    (["-top", "---cum", CPU], "bad flag syntax: ---cum"),
    (["-top", "-flat", "-cum", CPU],
     "conflicting options set: more than one of -flat, -cum"),
    (["-top", "-lines", "-files", CPU],
     "conflicting options set: more than one of -functions, "
     "-filefunctions, ..."),
    (["-top", "-text", CPU], "must set at most one output format"),
    (["-top", "-peek=x", CPU], "must set at most one output format"),
    (["-top", "-http=:", CPU],
     "-http is not compatible with an output format on the command line"),
    (["-top", "-no_browser", CPU], "-no_browser only makes sense with -http"),
    (["-top", "-base=a", "-diff_base=b", CPU],
     "-base and -diff_base flags cannot both be specified"),
    (["-top", "-normalize", CPU],
     "must have base profile to normalize by"),
    (["-top", "-divide_by=0", CPU], "zero divisor specified"),
    (["top", "-by=thread", CPU],
     'invalid value "thread" for flag -by: it is file, process or '
     'label:KEY,...'),
    (["top", "-by=", CPU],
     'invalid value "" for flag -by: it is file, process or label:KEY,...'),
    (["top", "-by=label:a,,b", CPU],
     'invalid value "label:a,,b" for flag -by: it is file, process or '
     'label:KEY,...'),
    (["top", "-by=label:,", CPU],
     'invalid value "label:," for flag -by: it is file, process or '
     'label:KEY,...'),
    (["-top", "-sample_index=7", CPU],
     "sample_index 7 is outside the range [0..1]"),
    (["-top", "-focus=(", CPU],
     "parsing focus regexp: error parsing regexp: missing closing ): `(`"),
    (["-top", "-tagbase=(", CPU],
     "parsing tagbase regexp: error parsing regexp: missing closing ): `(`"),
    (["-top", "nowhere1", "nowhere2"],
     "nowhere1: No such file or directory\n"
     "cpprof: nowhere2: No such file or directory\n"
     "cpprof: failed to fetch any source profiles"),
    (["-top", "-base=nowhere", CPU], "nowhere: No such file or directory"),
    (["-raw", "-proto", CPU], "must set at most one output format"),
    (["raw", "-tags", CPU], "must set at most one output format"),
    (["merge", "-top", CPU], "must set at most one output format"),
    (["merge"], "no profile source specified"),
    (["merge", CPU, "other"],
     "problem fetching source profiles: other: profiles have empty common "
     "sample type list"),
    (["-raw", "-sample_index=7", CPU],
     "sample_index 7 is outside the range [0..1]"),
    (["-top", "-output=nodir/x", CPU], None),
]

# Words that must print the same as -top of the same file.
ALIKE = [
    ["top", CPU], ["-text", CPU], ["text", CPU], ["--top", CPU],
    ["-top=true", CPU], ["-top", "-cum=false", CPU], ["top", "-top", CPU],
    ["-top", "--", CPU], ["-top", "-trim=t", "-nodecount", "0", CPU],
    ["-top", "-symbolize=none", "-symbolize=local", CPU],
    ["-top", "packed.gz"], ["-top", "-output=", CPU], ["-top", "/dev/stdin"],
    ["-top", "-"],
]

# Commands and flags that are the same.
PAIRS = [
    (["raw", CPU], ["-raw", CPU]),
    (["raw", "-raw", CPU], ["-raw", CPU]),
    (["tags", "-sample_index=samples", CPU],
     ["-tags", "-sample_index=0", CPU]),
    (["comments", CPU], ["-comments", CPU]),
    (["merge", CPU, CPU], ["-proto", CPU, CPU]),
    (["proto", CPU], ["-proto", CPU]),
    (["topproto", "-lines", CPU], ["-topproto", "-lines", CPU]),
    (["-raw", "-"], ["-raw", CPU]),
    (["-raw", CPU, "nowhere"], ["-raw", CPU]),
]


def run(cpprof, words):
    with open(CPU, "rb") as stdin:
        return start([cpprof] + words, capture_output=True,
                              check=False, stdin=stdin,
                              env=dict(os.environ, TZ="UTC", LC_ALL="C"))


def make_files():
    with open(CPU, "rb") as file:
        profile = file.read()
    packed = gzip.compress(profile)
    os.mkdir("none")
    for name, data in (("empty", b""), ("cut", b"\n\4\10\1\20\2\22\5\1"),
                       ("cut.gz", packed[:-5]), ("packed.gz", packed),
                       ("text", b"{\n"), ("binary", b"\x7fELF...."),
                       ("other", b"\x32\0\x32\5space\x32\5bytes"
                        b"\n\4\10\1\20\2\x5a\4\10\1\20\2")):
        with open(name, "wb") as file:
            file.write(data)


def short(words):
    return " ".join(word.replace(CPU, "FILE") for word in words)


def test_errors(tap, cpprof):
    for words, text in ERRORS:
        done = run(cpprof, words)
        said = done.stderr.decode()
        ok = done.returncode == 2 and not done.stdout and said.endswith("\n")
        if text is not None:
            ok = ok and said == "cpprof: %s\n" % text
        tap.ok("refused: " + short(words), ok, done.returncode, said,
               done.stdout)


def test_alike(tap, cpprof):
    want = run(cpprof, ["-top", CPU]).stdout
    for words in ALIKE:
        done = run(cpprof, words)
        tap.ok("as -top: " + short(words),
               done.returncode == 0 and done.stdout == want,
               done.returncode, done.stderr)


def test_pairs(tap, cpprof):
    for one, other in PAIRS:
        a, b = run(cpprof, one), run(cpprof, other)
        tap.ok("same: %s and %s" % (short(one), short(other)),
               a.returncode == b.returncode == 0 and a.stdout and
               a.stdout == b.stdout, a.stderr, b.stderr)


# As it is in the file.
WHOLE = ["-symbolize=none", "-all_frames"]


def raw_of(cpprof, profile):
    return start([cpprof, "-raw"] + WHOLE + ["-"], input=profile,
                          capture_output=True, check=True,
                          env=dict(os.environ, TZ="UTC")).stdout


def test_profiles(tap, cpprof):
    done = run(cpprof, ["-proto"] + WHOLE + [CPU])
    tap.ok("what -proto writes, -raw prints as before",
           raw_of(cpprof, done.stdout) ==
           run(cpprof, ["-raw"] + WHOLE + [CPU]).stdout)
    done = run(cpprof, ["merge"] + WHOLE + ["-output=sum.gz", CPU, "cut", "packed.gz"])
    tap.ok("merge leaves out what it cannot read",
           done.returncode == 0 and not done.stdout and
           done.stderr.decode() ==
           "cpprof: cut: parsing profile: unrecognized profile format "
           "at byte 6\n"
           "cpprof: Fetched 2 source profiles out of 3\n"
           "Generating report in sum.gz\n", done.stderr)
    done = run(cpprof, ["-top", "-diff_base=" + CPU, "sum.gz"])
    tap.ok("twice a profile minus itself is the profile",
           done.stdout.split(b"\n")[6:] ==
           run(cpprof, ["-top", CPU]).stdout.split(b"\n")[6:], done.stdout)
    done = run(cpprof, ["-raw", "-base=" + CPU, CPU])
    tap.ok("a profile minus itself is empty",
           done.returncode == 0 and b"samples/count" in done.stdout and
           b"Locations\nMappings\n" in done.stdout, done.stdout[:300])


def heading(cpprof, words):
    """Which lines of a heading tell a sum."""
    return [line.decode() for line in run(cpprof, words).stdout.splitlines()
            if line.startswith(b"Sum of ")]


def test_sum(tap, cpprof):
    os.mkdir("two")
    for name in ("two/a.pb.gz", "two/b.pb.gz"):
        shutil.copy("packed.gz", name)
    for words, want in (
            (["top", "two"], ["Sum of 2 files"]),
            (["tree", CPU, "two"], ["Sum of 3 files"]),
            (["peek", ".", CPU, CPU], ["Sum of 2 files"]),
            (["top", "-base=two", CPU, CPU], ["Sum of 2 files"]),
            (["top", CPU, "nowhere", CPU], ["Sum of 2 files"]),
            (["top", CPU], []),
            (["top", "-base=two", CPU], []),
            (["-top", "two"], []),
            (["comments", "two"], [])):
        told = heading(cpprof, words)
        tap.ok("what was added up: " + short(words), told == want, told)
    run(cpprof, ["merge", "-output=two.gz", "two"])
    tap.ok("a profile that is merged does not say so",
           b"Sum of" not in run(cpprof, ["comments", "two.gz"]).stdout)


def test_ahead(tap, cpprof):
    """Many files are read on all processors, and as on one."""
    os.mkdir("many")
    for i in range(70):
        shutil.copy("cut" if i % 30 == 7 else "packed.gz" if i % 2 else CPU,
                    "many/%02d" % i)
    words = ["merge"] + WHOLE + ["-by=file", "-output=many.gz", "many"]
    said, made = run(cpprof, words).stderr, open("many.gz", "rb").read()
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    alone = run(cpprof, words).stderr
    os.sched_setaffinity(0, processors)
    tap.ok("many files are added up as by one processor, to the byte",
           made == open("many.gz", "rb").read(), len(made))
    tap.ok("and what cannot be read is named in order",
           said == alone and [line.split(b":")[1] for line in
                              said.splitlines() if b": parsing" in line]
           == [b" many/07", b" many/37", b" many/67"], said)


def labels(cpprof, words):
    """The values of the label "process", and how many percent have each."""
    text = run(cpprof, ["tags", "-symbolize=none", "-tagshow=^process$"] +
               words).stdout.decode()
    return sorted(re.findall(r"\( *([0-9.]+)%\): (\S+)$", text, re.M))


def test_by(tap, cpprof):
    run(cpprof, ["merge", "-by=file", "-output=by.gz", "two", "packed.gz"])
    want = [("33.33", "packed.gz"), ("33.33", "two/a"), ("33.33", "two/b")]
    tap.ok("merge -by=file: samples tell their file",
           labels(cpprof, ["by.gz"]) == want, labels(cpprof, ["by.gz"]))
    tap.ok("processes are counted by their labels",
           heading(cpprof, ["top", "by.gz", CPU]) ==
           ["Sum of 2 files, 4 processes"],
           heading(cpprof, ["top", "by.gz", CPU]))
    seen = labels(cpprof, ["-by=file", "by.gz", "two/a.pb.gz"])
    tap.ok("-by=file: what has a process keeps it",
           seen == [("25.00", "packed.gz"), ("25.00", "two/b"),
                    ("50.00", "two/a")], seen)
    seen = labels(cpprof, ["-by=process", "two"])
    tap.ok("-by=process: samples tell their program",
           seen == [("100", "server")], seen)
    top = run(cpprof, ["top", "-by=file", "-tagfocus=process=two/a", "two"])
    tap.ok("a report of one of them",
           b"accounting for 1.54s, 50.00% of 3.08s total" in top.stdout,
           top.stdout)


def tags(cpprof, path):
    """Keys and values of all labels, in percent."""
    text = run(cpprof, ["tags", "-symbolize=none", path]).stdout.decode()
    found, key = {}, None
    for line in text.splitlines():
        head = re.match(r" *(\S+): Total ", line)
        value = re.search(r"\( *([0-9.]+)%\): (\S+)$", line)
        if head:
            key = head[1]
        elif value:
            found.setdefault(key, []).append((value[1], value[2]))
    return {key: sorted(values) for key, values in found.items()}


def test_dimensions(tap, cpprof):
    """One profile three times: of two versions, on two hosts."""
    for n, (version, host) in enumerate((("1", "a"), ("1", "b"), ("2", "a"))):
        folder = "fleet/version=%s/host=%s" % (version, host)
        os.makedirs(folder)
        run(cpprof, ["merge", "-by=process", "-output=%s/%d.pb.gz"
                     % (folder, n), CPU])
    files = sorted(glob.glob("fleet/*/*/*.gz"))
    run(cpprof, ["merge", "-by=label:version,zone", "-output=v.gz"] + files)
    seen = tags(cpprof, "v.gz")
    tap.ok("merge -by=label: the label of the folder, and no other",
           seen == {"version": [("33.33", "2"), ("66.67", "1")]}, seen)
    run(cpprof, ["merge", "-by=label:process,host", "-output=h.gz", "v.gz"]
        + files)
    seen = tags(cpprof, "h.gz")
    tap.ok("merge -by=label: what samples have, and several keys",
           seen == {"process": [("50.00", "server")],
                    "host": [("16.67", "b"), ("33.33", "a")]}, seen)
    with open("bad.gz", "w") as file:
        file.write("no profile")
    other = os.path.join(HERE, "..", "fixtures", "go.heap.pb.gz")
    words = ["merge", "-output=k.gz", files[0], "bad.gz", other, files[1]]
    done = start([cpprof] + words, stderr=subprocess.PIPE, check=False)
    tap.ok("merge: another type ends it", done.returncode == 2
           and b"empty common sample type list" in done.stderr, done.stderr)
    done = start([cpprof] + words[:1] + ["-keep_going"] + words[1:],
                 stderr=subprocess.PIPE, check=False)
    tap.ok("merge -keep_going: or is named and left out, as what is damaged is",
           done.returncode == 0 and b"bad.gz: " in done.stderr
           and other.encode() + b": other sample types" in done.stderr
           and b"Fetched 2 source profiles out of 4" in done.stderr,
           done.stderr)
    done = start([cpprof, "merge", "-output=k.gz", "none", "fleet", CPU],
                 stderr=subprocess.PIPE, check=False)
    tap.ok("merge names a folder without files, and goes on",
           done.returncode == 0
           and b"none: no files in this folder\n" in done.stderr and b"fleet: no "
           b"files in this folder (folders below it are not read)\n"
           in done.stderr, done.returncode, done.stderr)


def test_terminal(tap, cpprof):
    leader, follower = os.openpty()
    for name in ("profile001.pb.gz", "profile002.pb.gz"):
        done = start([cpprof, "-proto", CPU], stdout=follower,
                              stderr=subprocess.PIPE, check=False)
        tap.ok("a profile is not written to a terminal: " + name,
               done.returncode == 0 and
               done.stderr.decode() == "Generating report in %s\n" % name and
               os.path.getsize(name) > 0, done.stderr)
    done = start([cpprof, "-proto", "-divide_by=0", CPU],
                          stdout=follower, stderr=subprocess.DEVNULL,
                          check=False)
    tap.ok("no file is left of a profile that failed",
           done.returncode == 2 and not os.path.exists("profile003.pb.gz"))
    os.close(leader)
    os.close(follower)


def limit_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))


def test_many(tap, cpprof):
    """More files than may be open, and never many in memory."""
    many = start([cpprof, "merge"] + [CPU] * 1000,
                          capture_output=True, check=False,
                          preexec_fn=limit_files)
    total = run(cpprof, ["-tags", "-unit=ns", "-symbolize=none", CPU]).stdout
    ratio = start([cpprof, "-tags", "-unit=ns", "-divide_by=1000",
                            "-symbolize=none", "-"], input=many.stdout,
                           capture_output=True, check=False).stdout
    tap.ok("a thousand files are a thousand times one",
           many.returncode == 0 and total and ratio == total, many.stderr)


def test_full(tap, cpprof):
    for words in (["-top", CPU], ["-raw", CPU], ["-tags", CPU],
                  ["merge", CPU, CPU], ["-topproto", CPU]):
        with open("/dev/full", "wb") as full:
            done = start([cpprof] + words, stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        tap.ok("a full disk is an error: " + short(words),
               done.returncode == 2 and done.stderr.count(b"\n") == 1 and
               b"No space left" in done.stderr, done.returncode,
               done.stderr)


def test_rest(tap, cpprof):
    done = run(cpprof, ["-top", "-output=made", CPU])
    with open("made", "rb") as made:
        tap.ok("-output", done.returncode == 0 and not done.stdout and
               made.read() == run(cpprof, ["-top", CPU]).stdout and
               done.stderr == b"Generating report in made\n")
    done = run(cpprof, ["-top", "nowhere", CPU])
    tap.ok("a file that is missing is left out", done.returncode == 0 and
           done.stderr == b"cpprof: nowhere: No such file or directory\n"
           b"cpprof: Fetched 1 source profiles out of 2\n" and
           done.stdout == run(cpprof, ["-top", CPU]).stdout, done.stderr)
    done = run(cpprof, ["-top", "binary", CPU])
    tap.ok("a first file that is a program names it",
           done.stdout.startswith(b"File: binary\nBuild ID: c0ffee\n"),
           done.stdout[:60])
    done = run(cpprof, ["-top", "abcd1234", CPU])
    tap.ok("a first word that is a build id is taken",
           done.stdout.startswith(b"File: server\nBuild ID: abcd1234\n"),
           done.stdout[:60])
    done = run(cpprof, ["-top", "-focus=nothing", CPU])
    tap.ok("an expression that matches nothing is told",
           done.stderr == b"cpprof: Focus expression matched no samples\n",
           done.stderr)


def test_help(tap, cpprof):
    for words in (["help"], ["-h"], ["--help"], ["help", "top"], ["help", "record"],
                  ["raw", "-help"], ["merge", "-h"],
                  ["-top", "-help"], ["top", "-h"], ["version"],
                  ["--version"]):
        done = run(cpprof, words)
        tap.ok("printed: " + short(words),
               done.returncode == 0 and b"cpprof" in done.stdout and
               not done.stderr, done.stderr)


def main():
    cpprof = os.path.realpath(sys.argv[1])
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_files()
        test_errors(tap, cpprof)
        test_alike(tap, cpprof)
        test_pairs(tap, cpprof)
        test_profiles(tap, cpprof)
        test_sum(tap, cpprof)
        test_ahead(tap, cpprof)
        test_by(tap, cpprof)
        test_dimensions(tap, cpprof)
        test_terminal(tap, cpprof)
        test_many(tap, cpprof)
        test_full(tap, cpprof)
        test_rest(tap, cpprof)
        test_help(tap, cpprof)
        os.chdir("/")
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
