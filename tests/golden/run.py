#!/usr/bin/env python3
"""What `cpprof` prints for the profiles of this folder, flag by flag.

    run.py CPPROF             compare with the texts that are kept, as TAP
    run.py --update CPPROF    keep what it prints now
    run.py --peer CPPROF      compare with `go tool pprof`, as TAP; skipped
                              where there is none

FOLDER/cases has a line for each case: a name, and the flags. The text kept is
FOLDER/NAME.txt. "%" in the flags is the folder of the profiles. A format comes
first; else it is -top. What is a profile is shown by -raw.

Debian's `go tool pprof` is older than what cpprof follows. What it prints
otherwise is left out of the comparison: the form of the line "Time:", and the
cases marked with "-" in front of their name.
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

TEXTS = ("-top", "-tags", "-comments", "-raw")
PROFILES = ("-proto", "-topproto")
HERE = os.path.dirname(os.path.abspath(__file__))


def cases():
    for folder in sorted(os.listdir(HERE)):
        path = os.path.join(HERE, folder, "cases")
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                name, flags = line.rstrip("\n").split("\t")
                yield folder, name.lstrip("-"), flags, name.startswith("-")


def run(tool, words):
    return subprocess.run(
        tool + words, stdin=subprocess.DEVNULL, capture_output=True,
        check=False,
        env=dict(os.environ, TZ="UTC", PPROF_BINARY_PATH="/nonexistent"))


def report(tool, folder, flags):
    words = [word.replace("%", HERE) for word in shlex.split(flags)]
    if not words or words[0] not in TEXTS + PROFILES:
        words.insert(0, "-top")
    done = run(tool, words + [os.path.join(HERE, folder, "profile.pb")])
    if words[0] in PROFILES and done.returncode == 0:
        with tempfile.NamedTemporaryFile() as file:
            file.write(done.stdout)
            file.flush()
            done = run(tool, ["-raw", "-symbolize=none", file.name])
    return done.stdout.decode("utf-8", "replace"), done.returncode


def without_time(text):
    return [line for line in text.split("\n") if not line.startswith("Time:")]


def tap(number, ok, name, got, want):
    print("%s %d - %s" % ("ok" if ok else "not ok", number, name))
    if not ok:
        for mark, text in (("got ", got), ("want", want)):
            for line in text.split("\n")[:60]:
                print("# %s %s" % (mark, line))
    return ok


def compare(cpprof, all_cases):
    """With the texts that are kept; how many differ."""
    wrong = 0
    for number, (folder, name, flags, _) in enumerate(all_cases, 1):
        with open(os.path.join(HERE, folder, name + ".txt"),
                  encoding="utf-8") as kept:
            want = kept.read()
        got, status = report([cpprof], folder, flags)
        wrong += not tap(number, got == want and status == 0,
                         "%s: %s" % (folder, flags), got, want)
    return wrong


def compare_peer(cpprof, all_cases):
    if not shutil.which("go"):
        print("1..0 # SKIP no go tool pprof")
        return 0
    wrong = 0
    both = [case for case in all_cases if not case[3]]
    for number, (folder, _, flags, _) in enumerate(both, 1):
        got, status = report([cpprof], folder, flags)
        want, peer_status = report(["go", "tool", "pprof"], folder, flags)
        wrong += not tap(
            number, without_time(got) == without_time(want) and
            status == peer_status == 0, "%s: %s" % (folder, flags), got,
            want)
    print("1..%d" % len(both))
    return wrong


def update(cpprof, all_cases):
    for folder, name, flags, _ in all_cases:
        text, status = report([cpprof], folder, flags)
        if status != 0:
            sys.exit("%s: %s: exit status %d" % (folder, flags, status))
        with open(os.path.join(HERE, folder, name + ".txt"), "w",
                  encoding="utf-8") as kept:
            kept.write(text)


def main():
    all_cases = list(cases())
    if sys.argv[1] == "--update":
        update(sys.argv[2], all_cases)
        return 0
    if sys.argv[1] == "--peer":
        return 1 if compare_peer(sys.argv[2], all_cases) else 0
    print("1..%d" % len(all_cases))
    return 1 if compare(sys.argv[1], all_cases) else 0


if __name__ == "__main__":
    sys.exit(main())
