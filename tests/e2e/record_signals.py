#!/usr/bin/env python3
"""cpprof record is no wall between a command and whoever started it: signals
that come to it alone go on to the command, and a command that stops gives the
terminal back.

    record_signals.py CPPROF       TAP
"""
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from tap import Tap  # noqa: E402 pylint: disable=C0413
from terminal import lines_of  # noqa: E402 pylint: disable=C0413

cpprof = os.path.realpath(sys.argv[1])
tap = Tap()
RECORD = [cpprof, "record", "-o", "x.pb.gz", "--"]

# Says each signal that comes, and ends after SIGTERM.
TELLER = """
import os, signal, sys
def tell(number, frame):
    print(signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM:
        sys.exit(3)
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
               signal.SIGHUP, signal.SIGWINCH, signal.SIGTERM):
    signal.signal(number, tell)
print("ready", flush=True)
while True:
    signal.pause()
"""
SENT = [signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
        signal.SIGHUP, signal.SIGWINCH, signal.SIGTERM]


def told(words):
    """What a command says that gets each signal once, and its status."""
    with subprocess.Popen(words + [sys.executable, "-c", TELLER],
                          stdout=subprocess.PIPE, text=True,
                          start_new_session=True) as run:
        lines = [run.stdout.readline().strip()]
        for number in SENT:
            run.send_signal(number)
            lines.append(run.stdout.readline().strip())
        return lines, run.wait(timeout=60)


def test_signals_to_the_recorder():
    alone = told([])
    tap.same("alone a command gets each signal", alone,
             (["ready"] + [number.name for number in SENT], 3))
    tap.same("signals to the recorder alone go on to the command",
             told(RECORD), alone)
    tap.ok("and its profile is written", os.path.getsize("x.pb.gz") > 0)


# It tells who started it that it is ready, as an X server does.
READY = "kill -USR1 $PPID; sleep 0.2; echo over"


def test_a_signal_to_the_parent():
    ready = []
    signal.signal(signal.SIGUSR1, lambda *_: ready.append(1))
    done = subprocess.run(RECORD + ["sh", "-c", READY], check=False,
                          capture_output=True, text=True)
    tap.same("a signal to the parent of the command reaches it",
             (len(ready), done.returncode, done.stdout), (1, 0, "over\n"))
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)


def shell(words):
    """A shell with job control, as far as it matters here: it starts a job in
    front, and continues it when it has stopped."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpgrp())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(words[0], words)
    end = time.monotonic() + 30
    n_stops = 0
    while time.monotonic() < end:
        pid, status = os.waitpid(job, os.WUNTRACED | os.WNOHANG)
        if pid and not os.WIFSTOPPED(status):
            print("%d stops, status %d" % (n_stops,
                                           os.waitstatus_to_exitcode(status)),
                  flush=True)
            os._exit(0)
        if pid:
            n_stops += 1
            os.tcsetpgrp(0, os.getpgrp())
            os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)
        time.sleep(0.01)
    print("the terminal was not given back", flush=True)
    os.killpg(job, signal.SIGKILL)
    os._exit(1)


def at_terminal(words):
    pid, terminal = pty.fork()
    if pid == 0:
        shell(words)
    lines = lines_of(terminal)
    os.waitpid(pid, 0)
    return lines


def test_a_command_that_stops():
    words = ["sh", "-c", "kill -STOP $$; echo on; kill -TSTP $$; exit 4"]
    alone = at_terminal(words)
    tap.same("alone a command that stops gives the terminal back", alone,
             ["on", "2 stops, status 4"])
    lines = [line for line in at_terminal(RECORD + words)
             if "cpprof: " not in line]
    tap.same("recorded, too", lines, alone)
    with subprocess.Popen(RECORD + ["sh", "-c", "kill -STOP $$; exit 5"],
                          stderr=subprocess.DEVNULL,
                          start_new_session=True) as run:
        time.sleep(0.5)
        with open("/proc/%d/task/%d/children" % (run.pid, run.pid),
                  encoding="ascii") as f:
            os.kill(int(f.read()), signal.SIGCONT)
        tap.same("without a terminal the recorder waits", run.wait(timeout=60),
                 5)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    test_signals_to_the_recorder()
    test_a_signal_to_the_parent()
    test_a_command_that_stops()
    os.chdir("/")
sys.exit(tap.end())
