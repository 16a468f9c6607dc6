#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a search for lost memory costs, beside LeakSanitizer: leaks.py BUILD.

A heap of lists (leaks.c) in which every 1 000th block is lost, in a living
process that is asked for its heapleak profile. Its threads stand still while the
kernel makes a child of it, so "child ms" is the least that a pause can be: the
median of nine children of the same process. SIZES="100 1000" are MB; 4000 needs
9 GB of memory. SHAPES="64/seq 64/random 256/seq" are bytes of a block, and the
order in which they lead to each other; "256/seq/huge" has its heap in huge pages.
ROUNDS=3 processes are asked, and each column has its median.
"""
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def compile_to(path, *flags):
    return subprocess.run(["cc", "-O2", "-fno-builtin", *flags,
                           HERE + "/leaks.c", "-o", path],
                          stderr=subprocess.DEVNULL).returncode == 0


def own_memory(pid):
    """MB that a child of a process has for itself: as root only."""
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            children = f.read().split()
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, task)) as f:
                children += f.read().split()
        kb = 0
        for child in children:
            with open("/proc/%s/comm" % child) as f:
                if f.read() != "cpprof-leak\n":
                    continue
            with open("/proc/%s/smaps_rollup" % child) as f:
                kb = max(kb, int(re.search(r"Private_Dirty: +(\d+)",
                                           f.read())[1]))
        return kb // 1024
    except (OSError, TypeError):
        return 0


def answer(path):
    """What the living process says of what it has lost."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.sendall(b"GET /debug/pprof/heapleak HTTP/1.0\r\n\r\n")
        head, _, body = b"".join(iter(lambda: s.recv(1 << 16), b"")
                                 ).partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        sys.exit("leaks.py: " + body.decode(errors="replace"))
    return body


def look(running, seen, ended):
    while not ended.is_set():
        seen.append(own_memory(running.pid))
        time.sleep(0.02)


def ours(build, folder, program, words, huge):
    out, path = folder + "/leaks.pb.gz", folder + "/socket"
    env = dict(os.environ, LD_PRELOAD=build + "/libcpprof.so",
               CPPROF="heap=16k,symbolize=none,http=unix:" + path)
    if huge:
        env["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    running = subprocess.Popen([program, *words], env=env,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child = float(running.stdout.readline())
    memory, ended = [0], threading.Event()
    threading.Thread(target=look, args=(running, memory, ended)).start()
    begun = time.monotonic()
    with open(out, "wb") as file:
        file.write(answer(path))
    took = time.monotonic() - begun
    ended.set()
    running.kill()
    running.wait()
    text = subprocess.run([build + "/cpprof", "-comments", out], check=True,
                          capture_output=True, text=True).stdout
    raw = subprocess.run([build + "/cpprof", "-raw", out], check=True,
                         capture_output=True, text=True).stdout
    cpu = int(re.search(r"(\d+) ms of CPU", text)[1])
    pause = re.search(r"stood still for ([\d.]+) ms", text)
    lost = sum(int(m[1]) for m in
               re.finditer(r"^ *\d+ +(\d+):", raw, re.MULTILINE))
    return child, float(pause[1]) if pause else 0, cpu / 2000, max(memory), \
        lost / 1e6, took


def main():
    build = os.path.abspath(sys.argv[1])
    sizes = os.environ.get("SIZES", "100 1000").split()
    rounds = int(os.environ.get("ROUNDS", 3))
    print("%-24s %9s %9s %12s %7s %8s %9s   %s" % (
        "heap", "child ms", "pause ms", "CPU s, each", "own MB", "lost MB", "answer s",
        "LeakSanitizer: stands still, CPU s"))
    with tempfile.TemporaryDirectory() as folder:
        plain, lsan = folder + "/plain", folder + "/lsan"
        compile_to(plain)
        has_lsan = compile_to(lsan, "-fsanitize=leak", "-DLSAN")
        for size in sizes:
            for shape in os.environ.get(
                    "SHAPES", "64/seq 64/random 256/seq").split():
                bytes_, order, *huge = shape.split("/")
                words = (size, bytes_, order)
                runs = [ours(build, folder, plain, words, huge)
                        for _ in range(rounds)]
                middle = [statistics.median(column) for column in zip(*runs)]
                theirs = "not there"
                if has_lsan:
                    theirs = subprocess.run(
                        [lsan, *words], capture_output=True, text=True,
                        env=dict(os.environ, LSAN_OPTIONS="max_leaks=1")
                    ).stdout.strip()
                print("%-24s %9.1f %9.1f %12.2f %7d %8.3f %9.1f   %s" % (
                    " ".join([*words, *huge]), *middle,
                    theirs.replace(" ", " s, ") + " s"),
                    flush=True)


main()
