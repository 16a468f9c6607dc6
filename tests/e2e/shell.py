#!/usr/bin/env python3
"""The shell: as a script drives it, and as somebody at a terminal does.

    shell.py CPPROF       TAP

The profiles are those of tests/golden. Options and messages are compared with
`go tool pprof`, where there is one: it is older, so what the newer reference
added is taken out first.
"""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from protobuf import chunk, varint  # noqa: E402 pylint: disable=C0413
from tap import Tap  # noqa: E402 pylint: disable=C0413

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CPU = os.path.join(ROOT, "tests", "golden", "cpu", "profile.pb")
HEAP = os.path.join(ROOT, "tests", "golden", "heap", "profile.pb")
PROMPT = "(pprof) "
PATIENCE = 20

cpprof = os.path.realpath(sys.argv[1])
TAP = Tap()


def environment(**more):
    kept = {k: v for k, v in os.environ.items()
            if k not in ("XDG_STATE_HOME", "NO_COLOR")}
    kept.update(TZ="UTC", LC_ALL="C.UTF-8", TERM="xterm", HOME=os.getcwd(),
                PPROF_BINARY_PATH="/nonexistent")
    kept.update(more)
    return kept


# ------------------------------------------------------------- a script ----

def script(lines, *words, tool=(cpprof, "-symbolize=none")):
    """Standard output without prompts, messages, exit status."""
    done = subprocess.run(
        list(tool) + list(words or [CPU]), input="\n".join(lines) + "\n",
        capture_output=True, text=True, check=False, env=environment(),
        timeout=PATIENCE)
    return (done.stdout.replace(PROMPT, ""), done.stderr, done.returncode)


def flags(*words):
    return subprocess.run(
        [cpprof, "-symbolize=none"] + list(words), capture_output=True,
        text=True, check=False, env=environment(), timeout=PATIENCE,
        stdin=subprocess.DEVNULL)


def test_reports():
    out, err, status = script(["top"])
    TAP.ok("top prints ten lines of a short table",
           out == flags("-top", "-compact_labels", "-nodecount=10", CPU).stdout,
           out)
    TAP.ok("the shell begins with what the profile is",
           err.startswith("File: ") and "Entering interactive mode" in err, err)
    TAP.ok("the end of the input ends the shell", status == 0, status)
    out = script(["top 1 -cum"])[0]
    TAP.ok("words change one report",
           out == flags("-top", "-compact_labels", "-nodecount=1", "-cum",
                        CPU).stdout, out)
    TAP.ok("and not the next",
           script(["top1 -cum", "top"])[0] == out + script(["top"])[0])
    TAP.ok("a number may be glued to a name",
           script(["top1"])[0] == script(["top 1"])[0])
    TAP.ok("an assignment lasts",
           script(["nodecount = 1 //: one", "top", "top"])[0] ==
           2 * script(["top1"])[0])
    TAP.ok("a sample type is a command",
           script(["samples", "top"])[0] ==
           script(["sample_index=samples", "top"])[0] != script(["top"])[0])
    TAP.ok("a filter of one report does not harm the next",
           script(["top ^main$", "traces -.", "top"])[0].endswith(
               script(["top"])[0]))
    TAP.ok(": clears the filters",
           script(["focus=main", "hide=main", ":", "top"])[0] ==
           script(["top"])[0])


def test_output():
    err = script(["top >one", "tree > two"])[1]
    with open("one", encoding="utf-8") as one:
        TAP.ok("> writes a file", one.read() == script(["top"])[0], err)
    TAP.ok("a blank may follow it", os.path.getsize("two") > 0)
    TAP.ok("and says so", "Generating report in one\n" in err, err)
    out = script(["top | tr a-z A-Z"])[0]
    TAP.ok("| pipes to a program", out == script(["top"])[0].upper(), out)
    out, err, _ = script(["top main|leaf"])
    TAP.ok("| in an expression is none", "accounting" in out, out, err)
    err = script(["top |", "top >", "| cat"])[1]
    TAP.ok("| and > want something",
           "unexpected end of line after |" in err and
           "unexpected end of line after >" in err and
           "no command before |" in err, err)
    out, err, _ = script(["proto", "proto | wc -c"])
    TAP.ok("a profile goes to a file, or to a program",
           os.path.exists("profile001.pb.gz") and int(out) > 100, out, err)


def test_cut():
    """A signal that comes while a file is written, or just before or after."""
    with open("many.collapsed", "w", encoding="utf-8") as stacks:
        stacks.writelines("main;f%d;g%d %d\n" % (i % 97, i, i + 1)
                          for i in range(100000))
    os.mkdir("cut")
    ends = []
    for number in 3 * (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        for name in os.listdir("cut"):
            os.unlink(os.path.join("cut", name))
        run = subprocess.Popen(
            [cpprof, "-raw", "-symbolize=none", "-output=cut/raw",
             "many.collapsed"], env=environment(), stderr=subprocess.DEVNULL)
        while run.poll() is None and not os.listdir("cut"):
            time.sleep(0.001)
        run.send_signal(number)
        ends.append((run.wait(PATIENCE) + number, os.listdir("cut")))
    TAP.ok("a file that is cut short goes, and the signal ends the command",
           (0, []) in ends and
           all(not names or names == ["raw"] for _, names in ends), ends)


def test_peer():
    go = shutil.which("go")
    if not go:
        TAP.skip("the shell says what `go tool pprof` says", "no go here")
        return
    lines = ["o", "divide_by=1000000", "nodefraction=.00001", "o",
             "help nosuch", "bogus", "focus x",
             "nodecount", "nodecount=abc", "sample_index=bad",
             "sample_index=7", "sort=bad", "cum=0", "cum=1", "lines",
             "trim=maybe", "list", "top >", "help a b", "nodefraction=z",
             "granularity=foo", "sort", "10", "mean_cpu", "o", "top nosuch",
             "top (", "peek nosuch", "q"]
    own = re.compile(r" *(showcolumns|fold_recursion|tagbase) .*\n|Time: .*\n")
    for name, profile in (("cpu", CPU), ("heap", HEAP)):
        got = script(lines, profile)
        want = script(lines, profile,
                      tool=(go, "tool", "pprof", "-symbolize=none"))
        TAP.ok("the shell says what `go tool pprof` says, " + name,
               own.sub("", got[1]) == own.sub("", want[1]), got[1], want[1])


def test_help():
    err = script(["help"])[1]
    TAP.ok("help lists commands and options",
           all(re.search("^    %s +[A-Z]" % word, err, re.M)
               for word in ("top", "peek", "focus", "unit")), err)
    err = script(["help top"])[1]
    TAP.ok("help on a command tells of its words", "-cum" in err, err)
    err = script(["help tags"])[1]
    TAP.ok("that are not those of others", "-cum" not in err, err)
    err = script(["help sample_index"])[1]
    TAP.ok("help on sample_index names the types", "[samples cpu]" in err, err)


# ----------------------------------------------------------- a terminal ----

class Terminal:
    def __init__(self, *words, columns=100, **more):
        self.seen = ""
        argv = [cpprof, "-symbolize=none"] + list(words)
        variables = environment(**more)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(cpprof, argv, variables)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 40, columns, 0, 0))

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += data.decode("utf-8", "replace")
        return bool(data)

    def expect(self, text):
        """What comes until text, without it; None: it does not."""
        end = time.monotonic() + PATIENCE
        while text not in self.seen:
            if time.monotonic() > end or not self.read(end - time.monotonic()):
                return None
        before, self.seen = self.seen.split(text, 1)
        return before

    def type(self, keys, text=PROMPT):
        os.write(self.fd, keys.encode())
        return self.expect(text)

    def close(self, keys="\x04"):
        """Type what ends it. Returns its status."""
        end = time.monotonic() + PATIENCE
        os.write(self.fd, keys.encode())
        while time.monotonic() < end:
            self.read(0.1)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return status
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)
        return "killed"


def option(terminal, name):
    text = terminal.type("o\r") or ""
    found = re.search(r"^ *%s += (.*?) *(//:.*)?\r?$" % name, text, re.M)
    return found.group(1) if found else text


def test_terminal():
    t = Terminal(CPU)
    TAP.ok("a terminal gets a prompt", t.expect(PROMPT) is not None, t.seen)
    text = t.type("top\r")
    TAP.ok("and a report with a bold title",
           text and "\x1b[1m" in text and "accounting" in text, text)
    text = t.type("nonsense\r")
    TAP.ok("and messages in red",
           text and "\x1b[31munrecognized command: \"nonsense\"" in text, text)
    t.type("lines\r")
    TAP.ok("a choice is set by its name alone",
           option(t, "granularity") == "lines", option(t, "granularity"))
    TAP.ok("quit ends the shell", t.close("quit\r") == 0)
    t = Terminal(CPU)
    t.expect(PROMPT)
    TAP.ok("so does Ctrl-D", t.close() == 0)
    t = Terminal(CPU, TERM="dumb")
    t.expect(PROMPT)
    text = t.type("top\r")
    TAP.ok("a dumb terminal gets plain text",
           text and "accounting" in text and "\x1b" not in text, text)
    TAP.ok("and may end, too", t.close() == 0)


def test_width():
    with open("wide.collapsed", "w", encoding="utf-8") as stacks:
        stacks.write("main;f%s 5\n" % ("x" * 300))
    wide = flags("-top", "wide.collapsed").stdout.split("\n")
    for columns, most in ((120, 120), (90, 90), (80, 160), (50, 100), (40, 120),
                          (20, 100)):
        rows = rows_of(columns, "-top")
        TAP.ok("names are cut to a terminal of %d columns, or some rows" %
               columns, max(map(len, rows)) == most < max(map(len, wide)),
               "\n".join(rows), "\n".join(wide))
    for words in (["-tree"], ["-peek=f"]):
        wide = flags(*words, "wide.collapsed").stdout.split("\n")
        TAP.ok("%s is not cut" % words[0], rows_of(60, *words) == wide,
               rows_of(60, *words), wide)


def rows_of(columns, *words):
    t = Terminal(*words, "wide.collapsed", columns=columns)
    while t.read(1):
        pass
    t.close("")
    return re.sub(r"\x1b\[[0-9]*m", "", t.seen).split("\r\n")


def field(number, value):
    return varint(number << 3) + varint(value)


def test_control_characters():
    """A terminal obeys no name, a pipe gets every byte."""
    names = ("\x1b[31mred", "bell\x07", "c\u009b1m", "del\x7f", "cr\rx",
             "caf\u00e9 \u65e5\u672c \U0001f600", "tab\there")
    texts = ["", "cpu", "count"] + list(names)
    with open("names.pb", "wb") as profile:
        profile.write(chunk(1, field(1, 1) + field(2, 2)))
        for n in range(1, len(names) + 1):
            profile.write(chunk(2, field(1, n) + field(2, 5)) +
                          chunk(4, field(1, n) + chunk(4, field(1, n))) +
                          chunk(5, field(1, n) + field(2, n + 2)))
        for text in texts:
            profile.write(chunk(6, text.encode()))
    for format in ("-top", "-traces", "-raw", "-tree", "-dot"):
        t = Terminal(format, "names.pb", columns=200, TERM="dumb")
        while t.read(1):
            pass
        t.close("")
        TAP.ok("%s: a terminal is shown control characters" % format,
               not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", t.seen) and
               not re.search("\r(?!\n)", t.seen) and
               "\\x1b[31mred" in t.seen and "c\\x9b1m" in t.seen and
               "caf\u00e9 \u65e5\u672c \U0001f600" in t.seen, t.seen)
    done = subprocess.run([cpprof, "-raw", "-symbolize=none",
                           "names.pb"], capture_output=True,
                          env=environment(), check=False)
    TAP.ok("a pipe gets them as they are",
           all(name.encode() in done.stdout for name in names[:4]),
           done.stdout)


def test_completion():
    t = Terminal(CPU)
    t.expect(PROMPT)
    t.type("foc\tmain\r")
    TAP.ok("an option is completed, with its =", option(t, "focus") == "main",
           option(t, "focus"))
    t.type("sort=c\t\r")
    TAP.ok("so is its value", option(t, "sort") == "cum", option(t, "sort"))
    t.type(":\r")
    t.type("focus=run(\t\r")
    TAP.ok("and the name of a function, as an expression",
           option(t, "focus") == "run\\(int,\\schar\\*\\*\\)",
           option(t, "focus"))
    TAP.ok("that matches it", "0.70s" in (t.type("top\r") or ""), t.seen)
    text = t.type("peek ous name\x7f\x7f\x7f\x7f\x7f.\r")
    TAP.ok("Backspace works", text and "anonymous namespace" in text, text)
    text = t.type("peek nymous\t\r")
    TAP.ok("a part of a name is completed to all of it",
           text and "| (anonymous namespace)::hash" in text, text)
    text = t.type("to\t\t", "topproto")
    TAP.ok("what is not certain is listed", text is not None, t.seen)
    text = t.type("\x15help tra\t\r", "Every sample")
    TAP.ok("the words of help are completed", text is not None, t.seen)
    t.expect(PROMPT)
    TAP.ok("nothing is completed to nothing",
           "unrecognized" in (t.type("zzz\t\r") or ""), t.seen)
    t.close()


def history_lines():
    path = os.path.join(os.getcwd(), ".local/state/cpprof/history")
    try:
        with open(path, encoding="utf-8") as lines:
            return lines.read().split("\n"), os.stat(path).st_mode & 0o777
    except OSError as error:
        return [str(error)], 0


def test_history():
    t = Terminal(CPU)
    t.expect(PROMPT)
    t.type("unit=ms\r")
    os.kill(t.pid, signal.SIGKILL)
    t.close("")
    lines, mode = history_lines()
    TAP.ok("a line is kept at once", "unit=ms" in lines, lines)
    TAP.ok("for the user alone", mode == 0o600, oct(mode))
    t = Terminal(CPU)
    t.expect(PROMPT)
    t.type("\x1b[A\r")
    TAP.ok("the next shell brings it back", option(t, "unit") == "ms",
           option(t, "unit"))
    t.close()
    os.mkdir("state")
    t = Terminal(CPU, XDG_STATE_HOME=os.path.join(os.getcwd(), "state"))
    t.expect(PROMPT)
    t.type("unit=s\r")
    t.close()
    TAP.ok("XDG_STATE_HOME says where",
           os.path.exists("state/cpprof/history"))


def test_interrupt():
    with open("long.collapsed", "w", encoding="utf-8") as stacks:
        stacks.writelines("main;f%d;g%d %d\n" % (i % 97, i, i + 1)
                          for i in range(20000))
    t = Terminal("long.collapsed")
    t.expect(PROMPT)
    TAP.ok("Ctrl-C forgets a line", t.type("nonsense\x03") is not None, t.seen)
    text = t.type("top 1\r")
    TAP.ok("and all of it", text and "accounting" in text, text)
    os.write(t.fd, b"top | sleep 100\r")
    time.sleep(0.7)
    begin = time.monotonic()
    TAP.ok("Ctrl-C ends a program that a report is piped to",
           t.type("\x03") is not None and time.monotonic() - begin < 5, t.seen)
    # A report that is not read waits for the terminal.
    os.write(t.fd, b"traces\r")
    time.sleep(0.7)
    TAP.ok("Ctrl-C ends a report", "interrupted" in (t.type("\x03") or ""),
           t.seen)
    text = t.type("top 1\r")
    TAP.ok("and the shell goes on", text and "accounting" in text, text)
    TAP.ok("to its end", t.close() == 0)


def ends(term, keys, seconds):
    """Statuses of shells that hear keys after so many seconds, or at once
    when there is a prompt."""
    statuses = []
    for i in range(12):
        t = Terminal(CPU, TERM=term)
        if seconds is None:
            t.expect(PROMPT)
        else:
            time.sleep(seconds * i)
        statuses.append(t.close(keys))
    return statuses


def test_early_keys():
    """The instants in which the editor begins to listen, or a report ends."""
    for term in ("xterm", "dumb"):
        seen = ends(term, "\x04", None)
        TAP.ok("Ctrl-D is heard with the prompt, " + term, not any(seen), seen)
        seen = ends(term, "\x04", 0.001)
        TAP.ok("and before it, " + term, not any(seen), seen)
        seen = []
        for i in range(12):
            t = Terminal(CPU, TERM=term)
            t.expect(PROMPT)
            if i % 2:
                os.write(t.fd, b"top1\r")
                time.sleep(0.0005 * i)
            if t.type("\x03") is None or t.type("unit=ms\r") is None:
                seen.append(t.seen)
            seen.append(t.close("\rquit\r"))
        TAP.ok("Ctrl-C leaves the shell, " + term, not any(seen), seen)


def slow_top(seconds, **more):
    """What a terminal sees when the profile comes that late."""
    t = Terminal("-top", "slow", **more)
    time.sleep(seconds)
    with open(CPU, "rb") as data, open("slow", "wb") as pipe:
        pipe.write(data.read())
    while t.read(1):
        pass
    t.close("")
    return t.seen


def test_progress():
    os.mkfifo("slow")
    seen = slow_top(1.6)
    TAP.ok("after a second a terminal sees what takes so long",
           "reading slow" in seen and "accounting" in seen, seen)
    TAP.ok("and it is gone before the report",
           0 < seen.find("reading slow") < seen.rfind("\r\x1b[K") <
           seen.find("File: "), seen)
    seen = slow_top(0.3)
    TAP.ok("what is quick tells nothing",
           "reading" not in seen and "accounting" in seen, seen)
    seen = slow_top(1.6, TERM="dumb")
    TAP.ok("nor does a dumb terminal",
           "reading" not in seen and "accounting" in seen, seen)
    done = subprocess.Popen(
        [cpprof, "-symbolize=none", "-top", "slow"], env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1.6)
    with open(CPU, "rb") as data, open("slow", "wb") as pipe:
        pipe.write(data.read())
    out, err = done.communicate(timeout=PATIENCE)
    TAP.ok("nor a pipe", "accounting" in out and not err, err)


# -------------------------------------------------------------- sources ----

def test_sources():
    top = flags("-top", CPU).stdout
    TAP.ok("options have their names of the shell",
           flags("-top", "-sort=cum", "-granularity=lines", CPU).stdout ==
           flags("-top", "-cum", "-lines", CPU).stdout)
    err = flags("-top", "-sort=up", CPU).stderr
    TAP.ok("and their values", "invalid value \"up\" for flag -sort" in err, err)
    err = flags("-top", "-sort=cum", "-flat", CPU).stderr
    TAP.ok("which may not contradict", "conflicting options" in err, err)
    TAP.ok("flags may follow the file", flags(CPU, "-top").stdout == top)
    TAP.ok("and stand around it",
           flags("-cum", CPU, "-top").stdout == flags("-top", "-cum",
                                                      CPU).stdout)
    shutil.copy(CPU, "-top")
    done = flags("-top", "--", "-top")
    TAP.ok("a file that begins with a dash comes behind --",
           done.stdout == top, done.stderr)
    with open(CPU, "rb") as data:
        done = subprocess.run(
            [cpprof, "-", "-top", "-symbolize=none"], stdin=data,
            capture_output=True, text=True, check=False, env=environment())
    TAP.ok("- is standard input", done.stdout == top, done.stderr)
    os.makedirs("folder/below")
    shutil.copy(CPU, "folder/a")
    shutil.copy(CPU, "folder/b")
    shutil.copy(CPU, "folder/.hidden")
    shutil.copy(CPU, "folder/below/c")
    TAP.ok("a folder is the profiles in it",
           flags("-raw", "folder").stdout == flags("-raw", CPU, CPU).stdout)
    empty = flags("-top", "-base=folder", "folder").stdout
    TAP.ok("also as a base", "100% of 0 total" in empty or
           "0% of 0 total" in empty, empty)
    TAP.ok("several bases are added up",
           flags("-top", "-base=folder/a", "-base=folder/b",
                 "folder").stdout == empty)
    TAP.ok("none is no base", flags("-top", "-base=", CPU).stdout == top)
    with open("folder/README", "w", encoding="utf-8") as readme:
        readme.write("nothing\n")
    done = flags("-raw", "folder")
    TAP.ok("what is none there is told of and left out",
           done.stdout == flags("-raw", CPU, CPU).stdout and
           "folder/README" in done.stderr, done.stderr)
    os.mkdir("empty")
    done = flags("-top", "empty")
    TAP.ok("an empty folder is an error",
           done.returncode == 2 and "empty: no files" in done.stderr,
           done.stderr)
    with open(CPU, "rb") as data:
        done = subprocess.run(
            ["setsid", cpprof, "-"], stdin=data, capture_output=True,
            text=True, check=False, env=environment())
    TAP.ok("a shell needs a terminal when the profile is standard input",
           done.returncode == 2 and "no terminal" in done.stderr, done.stderr)


def test_topics():
    done = flags("-help")
    TAP.ok("-help tells of all reports", "-focus=RE" in done.stdout)
    for word in ("filters", "shell", "sources", "formats"):
        done = subprocess.run([cpprof, "help", word], capture_output=True,
                              text=True, check=False)
        TAP.ok("help %s is a part of it" % word,
               done.returncode == 0 and
               0 < len(done.stdout) < len(flags("-help").stdout), done.stdout)
    done = subprocess.run([cpprof, "help", "nosuch"], capture_output=True,
                          text=True, check=False)
    TAP.ok("there is not help on everything", done.returncode == 2)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        for test in (test_reports, test_output, test_cut, test_peer, test_help,
                     test_terminal, test_width, test_completion,
                     test_control_characters,
                     test_history, test_interrupt, test_early_keys,
                     test_progress, test_sources, test_topics):
            test()
        os.chdir("/")
    return TAP.end()


sys.exit(main())
