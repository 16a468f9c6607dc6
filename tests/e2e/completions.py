#!/usr/bin/env python3
"""What completions/ offers, help tells and the manual describes is what cpprof
takes, in all shells the same: they ask `cpprof complete`. The flags are those
of `cpprof help flags`, which prints the table that they are parsed by.

    completions.py CPPROF       TAP
"""
import glob
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
from tap import Tap  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(os.path.dirname(os.path.dirname(HERE)), "completions")
cpprof = os.path.realpath(sys.argv[1])
OWN_FLAGS = ("record", "leaks", "convert", "push", "pgo", "gate", "version",
             "threads")
TAP = Tap()


PATH = dict(os.environ, PATH=os.path.dirname(cpprof) + ":" +
            os.environ["PATH"])


def bash(*words):
    """What bash completes the last word to."""
    script = ('source "$1"; shift; COMP_WORDS=("$@"); '
              "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _cpprof; "
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(
        ["bash", "-c", script, "bash", os.path.join(FOLDER, "cpprof.bash")] +
        list(words), capture_output=True, text=True, check=False, env=PATH)
    return done.stdout.split()


def fish(line):
    """The same of fish, of a whole line."""
    done = subprocess.run(
        ["fish", "--no-config", "-c", 'source "$argv[1]"; '
         'complete -C "$argv[2]"', os.path.join(FOLDER, "cpprof.fish"), line],
        capture_output=True, text=True, check=False, env=PATH)
    return [found.split("\t")[0] for found in done.stdout.splitlines()]


def zsh(line):
    """What zsh lists for a line, at a terminal of its own."""
    setup = ("stty rows 400 cols 200; autoload -U compinit; compinit -u -D; "
             "fpath=(%s $fpath); autoload -U _cpprof; compdef _cpprof cpprof; "
             "LISTMAX=0 PS1='rea''dy> '\n" % FOLDER)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], dict(PATH, TERM="dumb"))
    seen, start = b"", 0
    os.write(terminal, setup.encode())
    steps = [(b"ready> ", line + "\t"), (b"\x07", "\t"), (None, "")]
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 65536)
        elif steps[0][0] is None:
            break
        if steps[0][0] and steps[0][0] in seen[start:]:
            start = seen.index(steps[0][0], start) + len(steps[0][0])
            os.write(terminal, steps.pop(0)[1].encode())
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(terminal)
    return seen[start:].decode(errors="replace")


def refused(flag):
    """Does cpprof not know it?"""
    done = subprocess.run(
        [cpprof, "-%s=1" % flag, "/nonexistent"], capture_output=True,
        text=True, check=False, stdin=subprocess.DEVNULL)
    return "not defined" in done.stderr


def said(*words):
    return subprocess.run([cpprof] + list(words), capture_output=True,
                          text=True, check=False).stdout


def test_help(known):
    silent = [flag for flag, text in known.items() if not text]
    TAP.ok("help has a text for every flag", not silent, silent)
    silent = [flag for flag in known if not said("help", "-" + flag)]
    TAP.ok("and for each by its name", not silent, silent)
    silent = [flag for flag in known if not said("help", flag)]
    TAP.ok("also without the dash", not silent, silent)
    topics = said("help", "report")
    silent = [flag for flag in known if
              not re.search(r"(?<!\w)%s\b" % flag, topics)]
    TAP.ok("each belongs to a topic", not silent, silent)


def test_manual(known):
    with open(os.path.join(os.path.dirname(FOLDER), "man", "cpprof.1"),
              encoding="utf-8") as manual:
        text = manual.read()
    lines = " ".join(re.findall(r"^\.(?:It|Ss) (.*)", text, re.M))
    silent = [flag for flag in known if
              not re.search(r"(?<!\w)%s\b" % flag, lines) and
              not re.search(r"^\.Fl %s\b" % flag, text, re.M)]
    TAP.ok("the manual describes every flag", not silent, silent)
    told = set(re.findall(r"Fl (\w+)", text.split(".Sh REPORT FLAGS")[1]))
    wrong = sorted(told - set(known) - {"x"})
    TAP.ok("and none that is not there", not wrong, wrong)
    commands = re.findall(r"^  (\w+) ", said("help").split("\n\n")[1], re.M)
    silent = [word for word in commands if word != "FORMAT" and
              not re.search(r"^\.(Ss|Cm) %s\b" % word, text, re.M)]
    TAP.ok("and every command", "record" in commands and not silent, silent)


def commands_of(page):
    """(flags, the command) of each command line of cpprof on a page."""
    with open(page, encoding="utf-8") as file:
        text = re.sub(r"\\\n\s*", "", file.read())
    # Lines of a block are marked as those that are indented.
    text = re.sub(r"^```\w*\n(.*?)^```", lambda block: re.sub(
        "^", "    ", block[1], flags=re.M), text, flags=re.M | re.S)
    for line in re.findall(r"(?:`|^    (?:\$ )?)(?:[A-Z_]+=\S+ )*cpprof "
                           r"([^`\n]*)", text, re.M):
        words = re.split(r" --(?: |$)| [|>&#] |;|  +", line)[0].split()
        first = next((word for word in words if word[0] != "-"), "")
        yield [word.lstrip("-").split("=")[0] for word in words
               if re.match(r"--?\w", word)], first


def test_pages(known):
    """What is printed can be typed."""
    own = {command: set(re.findall(r"^  -([\w-]+)", said(command, "-help"),
                                   re.M)) | {"help"} for command in OWN_FLAGS}
    commands = set(bash("cpprof", "")) | {"help"}
    wrong, n = [], 0
    root = os.path.dirname(FOLDER)
    for page in [os.path.join(root, "README.md")] + sorted(
            glob.glob(os.path.join(root, "docs", "*.md"))):
        for flags, command in commands_of(page):
            # -p: of a process in place of a file. FORMAT stands for others.
            there = own.get(command, set(known) | {"help", "p", "FORMAT"})
            n += len(flags)
            wrong += ["%s: %s -%s" % (os.path.basename(page), command, flag)
                      for flag in flags if flag not in there]
            if re.fullmatch("[a-z]+", command) and command not in commands:
                wrong.append("%s: %s" % (os.path.basename(page), command))
    TAP.ok("README and docs name commands and flags that are there",
           n > 100 and not wrong, n, *wrong)


def main():
    known = dict(re.findall(r"^  -(\w+)\S* +(.*)$", said("help", "flags"),
                            re.M))
    flags = {word.strip("-=") for word in bash("cpprof", "-")}
    TAP.ok("bash completes all flags",
           flags == set(known) | {"help"}, flags ^ set(known))
    wrong = [flag for flag in sorted(known) if refused(flag)]
    TAP.ok("cpprof takes them", len(known) > 60 and not wrong, wrong)
    if shutil.which("fish"):
        found = {word.strip("-=") for word in fish("cpprof -")}
        TAP.ok("fish completes the same", found == flags, found ^ flags)
    else:
        TAP.skip("fish completes the same", "no fish here")
    if shutil.which("zsh"):
        found = zsh("cpprof -")
        missing = [flag for flag in flags
                   if not re.search(r"-%s\b" % flag, found)]
        TAP.ok("and zsh", not missing, missing, found[-3000:])
    else:
        TAP.skip("and zsh", "no zsh here")
    if shutil.which("fish"):
        TAP.ok("files come behind flags in fish, too",
               "-output=/etc/passwd" in fish("cpprof -output=/etc/passw"))
    TAP.ok("a flag is completed", bash("cpprof", "-diff") == ["-diff_base="])
    TAP.ok("and its value",
           bash("cpprof", "-symbolize", "=", "fa") == ["fastlocal"])
    commands = set(bash("cpprof", ""))
    missing = [word for word in re.findall(
        r"^  (\w+) ", said("help").split("\n\n")[1], re.M)
        if word != "FORMAT" and word not in commands]
    TAP.ok("commands are completed", not missing, missing)
    topics = re.findall(r"^  (\w+) ", said("help").split("help:\n\n")[1], re.M)
    missing = set(topics) - set(bash("cpprof", "help", ""))
    TAP.ok("and all topics of help", len(topics) > 8 and not missing, missing)
    test_help(known)
    test_manual(known)
    test_pages(known)
    for command in OWN_FLAGS:
        text = said(command, "-help")
        wanted = set(re.findall(r"^  (-[\w-]+)", text, re.M))
        got = {word.rstrip("=") for word in bash("cpprof", command, "-")}
        TAP.ok("%s has flags of its own" % command,
               wanted and got - {"-help"} == wanted, got ^ wanted)
    TAP.ok("values of -sample_index are sample types",
           "inuse_space" in bash("cpprof", "-sample_index", "=", ""))
    TAP.ok("and of convert -to its forms",
           bash("cpprof", "convert", "-to", "=", "pe") == ["perf-script"] and
           bash("cpprof", "convert", "-to=pe") == ["-to=perf-script"])
    TAP.ok("a command is completed", "record" in bash("cpprof", "rec"))
    TAP.ok("and a topic of help", bash("cpprof", "help", "fil") == ["filters"])
    TAP.ok("files come behind flags",
           "/etc/passwd" in bash("cpprof", "-top", "/etc/passw"))
    for shell, name in (("zsh", "_cpprof"), ("fish", "cpprof.fish")):
        if shutil.which(shell):
            done = subprocess.run([shell, "-n", os.path.join(FOLDER, name)],
                                  check=False)
            TAP.ok("%s reads its file" % shell, done.returncode == 0)
        else:
            TAP.skip("%s reads its file" % shell, "no %s here" % shell)
    return TAP.end()


sys.exit(main())
