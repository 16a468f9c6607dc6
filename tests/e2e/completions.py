#!/usr/bin/env python3
"""What completions/ offers is what cpprof takes, in all shells the same.

    completions.py CPPROF       TAP
"""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(os.path.dirname(os.path.dirname(HERE)), "completions")
cpprof = os.path.realpath(sys.argv[1])
checks = []


def check(name, ok, *seen):
    checks.append(bool(ok))
    print("%sok %d - %s" % ("" if ok else "not ", len(checks), name))
    if not ok:
        for text in seen:
            print("# %s" % (text,))


def skip(name, why):
    checks.append(True)
    print("ok %d - %s # SKIP %s" % (len(checks), name, why))


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def bash(*words):
    """What bash completes the last word to."""
    script = ('source "$1"; shift; COMP_WORDS=("$@"); '
              "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _cpprof; "
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(
        ["bash", "-c", script, "bash", os.path.join(FOLDER, "cpprof.bash")] +
        list(words), capture_output=True, text=True, check=False)
    return done.stdout.split()


def flags_of_fish():
    return set(re.findall(r" -o (\w+)", read("cpprof.fish")))


def flags_of_zsh():
    text = read("_cpprof")
    found = set(re.findall(r"^    '-(\w+)", text, re.M))
    for name in ("formats", "searches"):
        block = re.search(r"^  %s=\(\n(.*?)^  \)" % name, text,
                          re.S | re.M).group(1)
        found |= set(re.findall(r"'(\w+):", block))
    return found


def refused(flag):
    """Does cpprof not know it?"""
    done = subprocess.run(
        [cpprof, "-%s=1" % flag, "/nonexistent"], capture_output=True,
        text=True, check=False, stdin=subprocess.DEVNULL)
    return "not defined" in done.stderr


def main():
    flags = {word.strip("-=") for word in bash("cpprof", "-")}
    check("bash completes flags", len(flags) > 60, flags)
    wrong = [flag for flag in sorted(flags) if refused(flag)]
    check("cpprof takes them all", wrong in ([], ["help"]), wrong)
    check("fish completes the same", flags_of_fish() == flags,
          flags_of_fish() ^ flags)
    check("and zsh", flags_of_zsh() == flags, flags_of_zsh() ^ flags)
    check("a flag is completed", bash("cpprof", "-diff") == ["-diff_base="])
    check("and its value",
          bash("cpprof", "-symbolize", "=", "fa") == ["fastlocal"])
    check("a command is completed", "record" in bash("cpprof", "rec"))
    check("and a topic of help", bash("cpprof", "help", "fil") == ["filters"])
    check("files come behind flags",
          "/etc/passwd" in bash("cpprof", "-top", "/etc/passw"))
    for shell, name in (("zsh", "_cpprof"), ("fish", "cpprof.fish")):
        if shutil.which(shell):
            done = subprocess.run([shell, "-n", os.path.join(FOLDER, name)],
                                  check=False)
            check("%s reads its file" % shell, done.returncode == 0)
        else:
            skip("%s reads its file" % shell, "no %s here" % shell)
    print("1..%d" % len(checks))
    return not all(checks)


sys.exit(main())
