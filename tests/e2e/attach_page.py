#!/usr/bin/env python3
"""The page of a process that runs: cpprof http -p. Words: attached.py."""
import os
import signal
import subprocess
import sys
import time

from attached import Host, cpprof, main, t, wait_until
import browser  # in a folder that attached.py adds
from web_server import Server


def shows_the_page():
    """A new profile for as long as somebody looks; then nothing."""
    with Host("pulse") as h:
        s = Server("-p", str(h.pid), "-seconds=1")
        wait_until(lambda: s.data("status")["ready"])
        t.same("http -p: the page names the process",
               s.data("status")["sources"], ["-p=%d" % h.pid])
        t.ok("http -p: it shows where the process is", wait_until(
            lambda: b"do_pulse" in s.get("/ui/api/report/top")))
        first = s.get("/ui/api/report/top").decode()
        t.ok("http -p: and does so again", wait_until(
            lambda: s.data("status")["turn"] > 0), s.data("status"))
        t.ok("http -p: with another profile",
             wait_until(lambda: s.get("/ui/api/report/top").decode() != first),
             first)
        in_browser(s)
        t.same("http -p: status 0 at its end", s.close(), 0)
        t.same("http -p: the process is left alone",
               len(os.listdir("/proc/%d/task" % h.pid)), 1)
        t.same("http -p: and it goes on", h.end()[0], 0)
    with Host("pulse") as h:
        s = Server("-p", str(h.pid), "-seconds=1")
        wait_until(lambda: s.data("status")["ready"] and
                   b"do_pulse" in s.get("/ui/api/report/top"))
        turn = s.data("status")["turn"]
        wait_until(lambda: s.data("status")["turn"] > turn)
        time.sleep(0.6) # so that the last profile has more than a moment
        h.end()
        t.ok("http -p: the end of the process is told",
             wait_until(lambda: s.data("status")["over"]), s.data("status"))
        t.has("http -p: its last profile stays",
              s.get("/ui/api/report/top").decode(), "do_pulse")
        t.same("http -p: status 0 all the same", s.close(), 0)
        t.matches("http -p: and a line says why",
                  "there is no such process|it ended meanwhile|"
                  "has ended and waits", s.rest)
    waits_for_one_that_is_stopped()
    status, words = run_page(["-p", "2147483647"])
    t.same("http -p of nobody: status 2", status, 2)
    t.has("http -p of nobody: a line says why", words,
          "there is no such process")
    t.same("http -p leaves no file", [name for name in os.listdir("tmp")
                                     if name.startswith("cpprof-")], [])


def waits_for_one_that_is_stopped():
    with Host("pulse") as h:
        s = Server("-p", str(h.pid), "-seconds=1")
        wait_until(lambda: s.data("status")["ready"])
        os.kill(h.pid, signal.SIGSTOP)
        t.ok("http -p: a process that is stopped is told",
             wait_until(lambda: s.data("status")["stopped"]), s.data("status"))
        turn = s.data("status")["turn"]
        os.kill(h.pid, signal.SIGCONT)
        t.ok("http -p: and goes on on the page when it goes on", wait_until(
            lambda: s.data("status")["turn"] > turn), s.data("status"))
        t.ok("http -p: which says so", not s.data("status")["stopped"] and
             not s.data("status")["over"], s.data("status"))
        s.process.kill()
        s.process.communicate()
        t.ok("http -p: killed, it leaves nothing in the process", wait_until(
            lambda: len(os.listdir("/proc/%d/task" % h.pid)) == 1, 20))
        t.same("http -p: which goes on", h.end()[0], 0)
    with Host("pulse") as h:
        os.kill(h.pid, signal.SIGSTOP)
        s = Server("-p", str(h.pid), "-seconds=1")
        t.ok("http -p: of one that is stopped from the beginning", wait_until(
            lambda: "kill -CONT" in s.data("status")["progress"]),
            s.data("status"))
        os.kill(h.pid, signal.SIGCONT)
        t.ok("http -p: there is a profile when it goes on",
             wait_until(lambda: s.data("status")["ready"]), s.data("status"))
        t.same("http -p: and status 0", s.close(), 0)


def in_browser(s):
    chromium = browser.find_browser()
    if not chromium:
        t.skip("http -p: the page takes it over", "no chromium")
        return
    b = browser.Browser(chromium, os.path.join(os.getcwd(), "home"))
    try:
        b.open(s.url + "top")
        turn = s.data("status")["turn"]
        t.ok("http -p: an open page shows the new profile",
             b.wait("cpprof.state.start && cpprof.state.start.turn > %d && "
                    "main.dataset.state === 'ready'" % turn, 60))
    finally:
        b.close()


def run_page(words):
    done = subprocess.run([cpprof, "http", ":0", "-no_browser"] + words,
                          capture_output=True, text=True, check=False,
                          timeout=120)
    return done.returncode, done.stdout + done.stderr


sys.exit(main(shows_the_page))
