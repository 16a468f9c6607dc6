#!/usr/bin/env python3
"""The command line of reports: what is accepted, and one clear line for what is
not. command.py CPPROF
"""
import gzip
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CPU = os.path.join(HERE, "cpu", "profile.pb")

# Words, then the whole of stderr after "cpprof: ". FILES are made below.
ERRORS = [
    ([], "no command given; see cpprof help"),
    (["tpo", CPU], 'unknown command "tpo"; see cpprof help'),
    (["top"], "no profile source specified"),
    (["-top"], "no profile source specified"),
    (["-top", "nowhere.pb"], "nowhere.pb: No such file or directory"),
    (["-top", "."], ".: Is a directory"),
    (["-top", "empty"], "empty: parsing profile: empty input file"),
    (["-top", "cut.gz"],
     "cut.gz: decompressing profile: gzip: damaged or cut short"),
    (["-top", "cut"], "cut: parsing profile: too much data at byte 6"),
    (["-top", "text"], "text: parsing profile: unknown wire type"),
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
    (["-tree", CPU], "-tree is not supported yet"),
    (["-list=x", CPU], "-list is not supported yet"),
    (["-cum", CPU], "no output format given, such as -top; the interactive "
     "shell is not supported yet"),
    (["-top", "-http=:", CPU],
     "-http is not compatible with an output format on the command line"),
    (["-top", "-no_browser", CPU], "-no_browser only makes sense with -http"),
    (["-top", "-base=a", "-diff_base=b", CPU],
     "-base and -diff_base flags cannot both be specified"),
    (["-top", "-normalize", CPU],
     "must have base profile to normalize by"),
    (["-top", "-divide_by=0", CPU], "zero divisor specified"),
    (["-top", "-sample_index=7", CPU],
     "sample_index 7 is outside the range [0..1]"),
    (["-top", "-focus=(", CPU],
     "parsing focus regexp: missing closing parenthesis: `(`"),
    (["-top", "nowhere1", "nowhere2"],
     "nowhere1: No such file or directory\n"
     "cpprof: nowhere2: No such file or directory"),
    (["-top", "-output=nodir/x", CPU], None),
]

# Words that must print the same as -top of the same file.
ALIKE = [
    ["top", CPU], ["-text", CPU], ["text", CPU], ["--top", CPU],
    ["-top=true", CPU], ["-top", "-cum=false", CPU], ["top", "-top", CPU],
    ["-top", "--", CPU], ["-top", "-trim=t", "-nodecount", "0", CPU],
    ["-top", "-symbolize=none", "-symbolize=local", CPU],
    ["-top", "packed.gz"], ["-top", "-output=", CPU], ["-top", "/dev/stdin"],
]


class Tap:
    def __init__(self):
        self.n = 0
        self.failed = 0

    def test(self, ok, name, *details):
        self.n += 1
        self.failed += not ok
        print("%s %d - %s" % ("ok" if ok else "not ok", self.n, name))
        if not ok:
            for detail in details:
                print("#   %r" % (detail,))


def run(cpprof, words):
    with open(CPU, "rb") as stdin:
        return subprocess.run([cpprof] + words, capture_output=True,
                              check=False, stdin=stdin,
                              env=dict(os.environ, TZ="UTC", LC_ALL="C"))


def make_files():
    with open(CPU, "rb") as file:
        profile = file.read()
    packed = gzip.compress(profile)
    for name, data in (("empty", b""), ("cut", b"\n\4\10\1\20\2\22\5\1"),
                       ("cut.gz", packed[:-5]), ("packed.gz", packed),
                       ("text", b"{\n"), ("binary", b"\x7fELF....")):
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
        tap.test(ok, "refused: " + short(words), done.returncode, said,
                 done.stdout)


def test_alike(tap, cpprof):
    want = run(cpprof, ["-top", CPU]).stdout
    for words in ALIKE:
        done = run(cpprof, words)
        tap.test(done.returncode == 0 and done.stdout == want,
                 "as -top: " + short(words), done.returncode, done.stderr)


def test_rest(tap, cpprof):
    done = run(cpprof, ["-top", "-output=made", CPU])
    with open("made", "rb") as made:
        tap.test(done.returncode == 0 and not done.stdout and
                 made.read() == run(cpprof, ["-top", CPU]).stdout and
                 done.stderr == b"Generating report in made\n", "-output")
    done = run(cpprof, ["-top", "nowhere", CPU])
    tap.test(done.returncode == 0 and
             done.stderr == b"cpprof: nowhere: No such file or directory\n"
             b"cpprof: read 1 profiles out of 2\n" and
             done.stdout == run(cpprof, ["-top", CPU]).stdout,
             "a file that is missing is left out", done.stderr)
    done = run(cpprof, ["-top", "binary", CPU])
    tap.test(done.stdout.startswith(b"File: binary\nBuild ID: c0ffee\n"),
             "a first file that is a program names it", done.stdout[:60])
    done = run(cpprof, ["-top", "abcd1234", CPU])
    tap.test(done.stdout.startswith(b"File: server\nBuild ID: abcd1234\n"),
             "a first word that is a build id is taken", done.stdout[:60])
    done = run(cpprof, ["-top", "-focus=nothing", CPU])
    tap.test(done.stderr == b"cpprof: Focus expression matched no samples\n",
             "an expression that matches nothing is told", done.stderr)
    with open("/dev/full", "wb") as full:
        status = subprocess.run([cpprof, "-top", CPU], stdout=full,
                                stderr=subprocess.DEVNULL,
                                check=False).returncode
    tap.test(status == 2, "a full disk is an error", status)


def test_help(tap, cpprof):
    for words in (["help"], ["-h"], ["--help"], ["help", "top"], ["help", "record"],
                  ["-top", "-help"], ["top", "-h"], ["version"],
                  ["--version"]):
        done = run(cpprof, words)
        tap.test(done.returncode == 0 and b"cpprof" in done.stdout and
                 not done.stderr, "printed: " + short(words), done.stderr)


def main():
    cpprof = os.path.realpath(sys.argv[1])
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_files()
        test_errors(tap, cpprof)
        test_alike(tap, cpprof)
        test_rest(tap, cpprof)
        test_help(tap, cpprof)
        os.chdir("/")
    print("1..%d" % tap.n)
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
