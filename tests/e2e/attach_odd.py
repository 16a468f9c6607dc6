#!/usr/bin/env python3
"""Processes that are attached to though something about them is unusual: very
many threads. Words: attached.py.
"""
import re
import subprocess
import sys

from attached import compiled, main, record, report, t

# N threads that do nothing.
IDLE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *idle(void *arg)
{
    for (;;)
        pause();
    return arg;
}

int main(int argc, char **argv)
{
    int i, n = atoi(argv[1]);
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    for (i = 0; i < n; i++)
        if (pthread_create(&thread, &attr, idle, NULL))
            return 1;
    puts("ready");
    fflush(stdout);
    idle(NULL);
}
"""


def time_in(name):
    """(the time of all threads, the duration), in seconds."""
    line = re.search(r"^Duration: .*?, Total samples = .*\((.*)%\)$",
                     report(["-top", name]), re.M)
    raw = report(["-raw", name])
    ns = sum(int(v) for v in re.findall(r"^\s+\d+\s+(\d+): ", raw, re.M))
    return ns * 1e-9, ns * 1e-7 / float(line.group(1)) if line else 0


def many_idle_threads():
    """Each has a turn to be looked at every 0.3 s, and every 1.2 s while none of
    them runs."""
    x = compiled(IDLE, ("-pthread",))
    if not x:
        t.skip("many idle threads", "no compiler")
        return
    h = subprocess.Popen([x, "1000"], stdout=subprocess.PIPE, text=True)
    h.stdout.readline()
    for seconds in "0.3", "1", "2":
        status, words = record(["-p", str(h.pid), "-t", "wall", "-duration",
                                seconds, "-o", "w%s.pb.gz" % seconds])
        t.ok("1000 idle threads for %s s: status 0" % seconds, status == 0,
             words)
        have, duration = time_in("w%s.pb.gz" % seconds)
        t.near("and all their time is in the profile", have, 1001 * duration,
               0.01 * have)
    h.kill()
    h.communicate()


sys.exit(main(many_idle_threads))
