#!/usr/bin/env python3
"""Programs of others, alone and in every mode: each ends as it ends without us.

    programs.py BUILD [PROGRAM | MODE]...      ./dev programs

A program is one function, below or in servers.py: it starts what it is about,
has it checked by a checker that is not ours, and returns as text what has to be
the same. It runs alone and in each mode, in turns, ROUNDS= (3) times; the modes are those of run.py, at
the rates that are there when none is given. A line for each cell says whether
all was the same, and the medians of two ratios to the plain run of that round:
CPU time, user and system, of all processes that were started in that mode, and
time of the clock. The table at the end has the first; "differs" stands where
something did. The mode "alone" prints what is compared.

SECONDS= (10) is how long nginx is under load. Half of the programs want root.
"""
import functools
import glob
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import run as matrix  # pylint: disable=wrong-import-position
import servers  # pylint: disable=wrong-import-position,unused-import
from cell import (  # pylint: disable=wrong-import-position
    NOBODY, PROGRAMS, Cell, blank, lines_of, program)

ROUNDS = int(os.environ.get("ROUNDS", "3"))
PYTHON = "/usr/bin/python3"


# ---- many processes ----------------------------------------------------------

@program("bash, 5 000 forks", "bash")
def bash(cell):
    return cell.run(["bash", "-c", """
        trap 'echo usr1' USR1
        n=0
        for i in {1..3600}; do n=$((n + $(echo $i))); done
        for i in {1..700}; do (exit $((i % 200))); n=$((n + $?)); done
        for i in {1..500}; do /bin/echo $i | read -r x && exit; done
        for i in {1..200}; do sleep 0 & done; wait; echo $? $n
        kill -USR1 $$
        coproc cat; echo there >&"${COPROC[1]}"; read -r x <&"${COPROC[0]}"
        echo $x; kill $COPROC_PID; wait $COPROC_PID; echo $?
        (kill -SEGV $BASHPID) 2>segv; echo $?
        timeout 0.2 sleep 5; echo $?
        diff <(seq 1000) <(seq 1001)
        exec /bin/sh -c 'exit 7'"""])


@program("setpriv, su, sudo, passwd, mount refuse", "root", "setpriv")
def refusals(cell):
    text = ""
    for words in (["su", "-c", "id"], ["su", "root", "-c", "id"],
                  ["passwd", "-S", "root"], ["mount", "/dev/null", "/mnt"],
                  ["newgrp", "root"], ["chsh", "-s", "/bin/sh", "root"],
                  ["setpriv", "--reuid=0", "id"], ["sudo", "-n", "id"],
                  ["setpriv", "--dump"], ["chroot", "/", "id"],
                  ["unshare", "-Ur", "id"], ["cat", "/etc/shadow"]):
        if shutil.which(words[0]):
            text += cell.run(NOBODY + words)
    return text


@functools.lru_cache
def repository(scratch):
    """Of headers: some thousand files and two commits."""
    folder = os.path.join(scratch, "repository")
    subprocess.run(["sh", "-ec", """
        git init -q "$1"; cd "$1"; git config gc.auto 0; cp -rL /usr/include/[a-m]* .
        git add .; git commit -qm one; cp -rL /usr/include/[n-z]* .
        find . -name '*.h' | head -300 | xargs sed -i 's/int/long/'
        git add .; git commit -qm two""", "sh", folder], check=True, env={
            "PATH": "/usr/bin:/bin", "HOME": scratch,
            "GIT_AUTHOR_NAME": "a", "GIT_COMMITTER_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_EMAIL": "a@b",
            "GIT_AUTHOR_DATE": "1000000000 +0000", "GIT_COMMITTER_DATE": "1000000000 +0000"})
    return folder


@program("git fsck", "git")
def git_fsck(cell):
    return cell.run(["git", "-C", repository(cell.scratch), "fsck", "--full",
                     "--no-progress"])


@program("git gc, log, diff", "git")
def git_gc(cell):
    shutil.copytree(repository(cell.scratch), cell.path("r"), symlinks=True)
    return cell.run(["sh", "-c", """
        cd r; git gc -q --prune=now; git count-objects; git status --short
        git diff --stat HEAD~ | sha256sum; git log --stat | sha256sum
        git clone -q . ../clone && git -C ../clone rev-parse HEAD"""]) + \
        cell.alone(["git", "-C", cell.path("r"), "fsck", "--no-progress"])


@program("gcc, meson, ninja: this project", "gcc", "meson", "ninja")
def gcc(cell):
    """One plug-in, and the files that were made."""
    source = os.path.dirname(os.path.dirname(HERE))
    text = cell.run(["sh", "-c", """
        meson setup -Dbuildtype=release b "$1" >meson.log || cat meson.log
        ninja -C b libcpprof-symbol.so >ninja.log || tail -n 30 ninja.log
        find b -name '*.o' -o -name '*.so' | sort | xargs sha256sum""", "sh",
        source])
    if "/libcpprof-symbol.so\n" not in text:
        raise RuntimeError(text)
    return text


# ---- python's own tests ------------------------------------------------------

def python_test(cell, name):
    """Without the tests that wait for ever on virtual machines."""
    text = cell.run([PYTHON, "-m", "test", "-v", "-i", "*VSOCK*", name])
    return lines_of(r"^(?:status.*|Ran \d+ test|OK.*|FAILED.*|(?:FAIL|ERROR): .*"
                    r"|test\w+ \(.*\.\.\. skipped)", text)


for _name in ("threading", "subprocess", "signal", "os", "socket", "fork1",
              "posix", "faulthandler", "pty"):
    program("python3, test_" + _name, PYTHON)(
        functools.partial(python_test, name="test_" + _name))


# ---- single programs ---------------------------------------------------------

@program("openssl speed", "openssl")
def openssl_speed(cell):
    """CPU time is that of a block."""
    text = cell.run(["openssl", "speed", "-seconds", "1", "-evp", "sha256",
                     "-bytes", "1024"])
    cell.work = int(re.search(r"(\d+) sha256", text).group(1))
    cpu = cell.cpu
    text += cell.run(["openssl", "speed", "-multi", "3", "-seconds", "1",
                      "rsa2048"])
    cell.cpu = cpu
    return blank(r" *[\d.]+", text)  # columns are as wide as their numbers


@program("openssl dgst, enc, genrsa", "openssl")
def openssl(cell):
    return cell.run(["sh", "-c", """
        head -c 300000000 /dev/zero | openssl enc -aes-128-ctr -K 00 -iv 00 |
            openssl dgst -sha256
        openssl genrsa -out key 3072 && openssl rsa -in key -check -noout"""])


JAVA = """
import java.util.*; import java.util.stream.*; import java.util.concurrent.*;
class P {
  static long nulls(int n) { long c = 0; for (int i = 0; i < n; i++)
    try { Object o = (i & 1) == 0 ? null : "x"; c += o.hashCode(); }
    catch (NullPointerException e) { c++; } return c; }
  static long deep(int n) { try { return deep(n + 1) + 1; }
    catch (StackOverflowError e) { return 0; } }
  public static void main(String[] a) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(4);
    List<Future<Long>> all = new ArrayList<>();
    for (int t = 0; t < 16; t++) { final int s = t; all.add(pool.submit(() -> {
      Map<String, Integer> m = new TreeMap<>(); long h = nulls(20000);
      for (int i = 0; i < 60000; i++)
        m.merge("k" + (i * 31 + s) % 5003, i, Integer::sum);
      for (var e : m.entrySet()) h = h * 31 + e.getValue(); return h; })); }
    for (Future<Long> f : all) System.out.println(f.get());
    pool.shutdown(); System.out.println(deep(0) > 1000);
    for (int i = 0; i < 5; i++) System.gc();
    System.out.println(new ProcessBuilder("echo", "child").start().waitFor());
    Thread.sleep(100); System.exit(3);
  }
}"""


@program("java", "java")
def java(cell):
    return cell.run(["java", "-Xmx256m", cell.write("P.java", JAVA)])


GO = """
package main
/*
#include <stdlib.h>
#include <string.h>
static unsigned work(unsigned n) { unsigned s = 0; char *p = malloc(n + 1);
  memset(p, 1, n + 1); for (unsigned i = 0; i < n; i++) s = s * 31 + p[i];
  free(p); return s; }
*/
import "C"
import ("bytes"; "fmt"; "os"; "os/exec"; "os/signal"; "runtime"
  "runtime/pprof"; "sync"; "syscall"; "time")
func main() {
  var profile bytes.Buffer
  if len(os.Args) > 1 { fmt.Println(pprof.StartCPUProfile(&profile)) }
  caught := make(chan os.Signal, 9); signal.Notify(caught, syscall.SIGUSR1)
  var group sync.WaitGroup; sums := make([]uint32, 64)
  for g := range sums { group.Add(1); go func(g int) { defer group.Done()
    m := map[int]int{}
    for i := 0; i < 300; i++ { sums[g] += uint32(C.work(C.uint(20000 + g)))
      for k := 0; k < 300; k++ { m[k * g] += i } ; if i % 50 == 0 {
      runtime.Gosched(); time.Sleep(time.Millisecond) } }
    sums[g] += uint32(len(m)) }(g) }
  group.Wait(); syscall.Kill(os.Getpid(), syscall.SIGUSR1); fmt.Println(<-caught)
  out, err := exec.Command("echo", "child").Output(); fmt.Println(string(out), err)
  func() { defer func() { fmt.Println(recover()) }()
    var p *int; fmt.Println(*p) }()
  if len(os.Args) > 1 { pprof.StopCPUProfile(); fmt.Println(profile.Len() > 500) }
  fmt.Println(sums); os.Exit(3)
}"""


@functools.lru_cache
def go_program(scratch):
    folder = os.path.join(scratch, "go")
    os.mkdir(folder)
    with open(folder + "/p.go", "w", encoding="ascii") as file:
        file.write(GO)
    subprocess.run(["go", "build", "-o", "p", "p.go"], cwd=folder, check=True,
                   env={"PATH": "/usr/bin:/bin", "GOCACHE": folder + "/cache",
                        "HOME": folder, "GO111MODULE": "off"})
    return folder + "/p"


@program("go with cgo", "go", "gcc")
def go(cell):
    return cell.run([go_program(cell.scratch)])


@program("go with cgo and its own CPU profile", "go", "gcc")
def go_profile(cell):
    return cell.run([go_program(cell.scratch), "profile"])


@program("sqlite3", "sqlite3")
def sqlite3(cell):
    script = """
        PRAGMA journal_mode = wal;
        CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
        WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n
            WHERE x < 400000)
        INSERT INTO t SELECT x, hex(x * 7919 % 100003), x / 3.0 FROM n;
        CREATE INDEX i ON t(b);
        SELECT count(DISTINCT b), sum(c), max(b) FROM t;
        UPDATE t SET b = b || 'x' WHERE a % 3 = 0;
        DELETE FROM t WHERE a % 5 = 0;
        SELECT b, count(*) FROM t GROUP BY b ORDER BY 2 DESC, 1 LIMIT 20;
        PRAGMA integrity_check;
        VACUUM;
        .sha3sum"""
    return cell.run(["sqlite3", "file.db", script.split(".sha3sum")[0]]) + \
        cell.run(["sqlite3", "file.db", ".sha3sum"])


STRESSORS = """sigq sigrt sigfd sigsegv sigsuspend sigpending signest timer itimer
    clone fork vfork pthread futex mutex sem poll membarrier rseq remap pagemove mremap
    userfaultfd bad-altstack usersyscall seccomp sockfd pidfd aio""".split()


@program("stress-ng, stressors that verify", "root", "stress-ng")
def stress_ng(cell):
    """Those that ask the kernel for what programs seldom do, all at once."""
    words = ["stress-ng", "--verify", "-t", "3", "--temp-path", cell.folder]
    for stressor in STRESSORS:
        words += ["--" + stressor, "1"]
    return lines_of(r"status.*|fail:.*|unsuccessful.*", cell.run(NOBODY + words))


@program("qemu-img, qemu-io: coroutines", "qemu-img", "qemu-io")
def qemu(cell):
    return re.sub(r"(?m)^.* ops; .*\n|^Run completed.*\n", "", cell.run(["sh", "-ec", """
        qemu-img create -q -f qcow2 a 64M
        for i in 1 2 3; do
            qemu-io -c 'write -P 7 0 20M' -c 'aio_write -P 3 30M 4M' -c aio_flush \\
                -c 'read -P 7 0 20M' -c 'read -P 3 30M 4M' a
        done
        qemu-img bench -q -c 3000 -w -f qcow2 a
        qemu-img check a | head -n 1
        qemu-img convert -O raw a b; sha256sum b"""]))


LISP = """
(defun work (n) (let ((h (make-hash-table)) (s 0))
  (dotimes (i n) (setf (gethash (mod (* i 7919) 10007) h)
                       (make-array 20 :initial-element i)))
  (maphash (lambda (k v) (incf s (+ k (aref v 3)))) h) s))
(defun endless (n) (+ 1 (endless (1+ n))))
(let ((all (loop repeat 6 collect (sb-thread:make-thread
                                   (lambda () (work 150000))))))
  (dotimes (i 10) (sb-ext:gc) (sleep 0.01))
  (dolist (thread all) (print (sb-thread:join-thread thread))))
(dotimes (i 3) (print (handler-case (endless 0)
                        (storage-condition () "no stack"))))
(print (handler-case (sb-sys:sap-ref-8 (sb-sys:int-sap 16) 0)
         (sb-sys:memory-fault-error () "no memory there")))
(print (handler-case (sb-ext:with-timeout 0.1 (loop (work 10000)))
         (sb-ext:timeout () "timeout")))
(dotimes (i 5) (print (sb-ext:process-exit-code (sb-ext:run-program
  "/bin/sh" (list "-c" (format nil "exit ~a" i))))))
(sb-ext:exit :code 5)
"""


@program("sbcl: stops threads by signals, guards pages", "sbcl")
def sbcl(cell):
    return blank(r"\(pc=.*|0x\w+|[pt]id \d+", cell.run([
        "sbcl", "--noinform", "--non-interactive", "--no-sysinit",
        "--no-userinit", "--load", cell.write("p.lisp", LISP)]))


PAGE = """<!doctype html><body>waits<script>
let s = 0; const m = new Map(), words = [];
for (let i = 0; i < 2000000; i++) { s = (s * 31 + i) % 65521;
  m.set(i % 997, s); if (i % 20 == 0) words.push("w" + s); }
words.sort(); const n = words.join(" ").match(/w1\\d+/g).length;
document.body.textContent = "sum " + [s, m.size, n, words[500]];
</script>"""


@program("chromium", "root", "chromium-headless-shell")
def chromium(cell):
    """An allocator of its own, a zygote, a sandbox where the kernel has one."""
    page = cell.write("page.html", PAGE)
    os.mkdir(cell.path("home"))
    os.chmod(cell.path("home"), 0o777)
    return re.sub(r"(?m)^\[[\d:/.]+.*\n?", "", cell.run(NOBODY + [
        "env", "HOME=" + cell.path("home"), "chromium-headless-shell",
        "--disable-gpu", "--user-data-dir=" + cell.path("home"),
        "--dump-dom", "file://" + page]))


# ---- the table ---------------------------------------------------------------

FAILED = "the checker failed: "


def measure(function, scratch, mode):
    """(text, CPU time, time, what was said by us)"""
    cell = Cell(scratch, mode)
    began = time.monotonic()
    try:
        text = function(cell)
    except Exception as error:  # pylint: disable=broad-except
        text = FAILED + repr(error) + "\n" + cell.give_up()
    took = time.monotonic() - began
    return text, cell.cpu / cell.work, took / cell.work, cell.said


def difference(wanted, got):
    a, b = wanted.splitlines(), got.splitlines()
    return "\n".join(["- " + line for line in a if line not in b] +
                     ["+ " + line for line in b if line not in a])[:4000]


class Result:
    """What was seen of a program in a mode."""

    def __init__(self):
        self.differs, self.cpu, self.wall, self.said = [], [], [], set()

    def pair(self, alone, cell):
        if alone[0] != cell[0] or alone[0].startswith(FAILED):
            self.differs.append(difference(alone[0], cell[0]) or alone[0])
        self.cpu.append(cell[1] / alone[1] if alone[1] else 1)
        self.wall.append(cell[2] / alone[2])
        self.said |= {re.sub(r"[\d.]+", "N", line) for line in cell[3]}

    def told(self, name, mode):
        lines = "%-40s %-11s %s  CPU %.3f  time %.3f" % (
            name, mode, "differs" if self.differs else "same   ",
            statistics.median(self.cpu), statistics.median(self.wall))
        for line in sorted(self.said)[:6]:
            lines += "\n    # " + line
        for text in self.differs:
            lines += "\n    " + text.replace("\n", "\n    ")
        return lines

    def cell(self):
        ratio = "%.2f" % statistics.median(self.cpu)
        return ratio + " **differs**" if self.differs else ratio


def print_table(results, names, modes):
    print("\n| program | " + " | ".join(modes) + " |")
    print("|---" * (len(modes) + 1) + "|")
    for name in names:
        print("| %s | %s |" % (name, " | ".join(
            results[name, mode].cell() for mode in modes)))


def main():
    build = os.path.abspath(sys.argv[1])
    asked = sys.argv[2:]
    modes = [mode for mode, (how, *_) in matrix.MODES.items()
             if how in ("preload", "record") and
             (mode in asked or not set(matrix.MODES) & set(asked))]
    parts = [word for word in asked if word not in matrix.MODES]
    names = [name for name in PROGRAMS
             if parts in ([], ["alone"]) or any(part in name for part in parts)]
    scratch = tempfile.mkdtemp(prefix="programs.")
    results = {}
    try:
        os.chmod(scratch, 0o755)
        os.mkdir(os.path.join(scratch, "tools"))
        for path in [build + "/cpprof"] + glob.glob(build + "/libcpprof*.so*"):
            if os.path.isfile(path):
                shutil.copy(path, os.path.join(scratch, "tools"))
        for name in list(names):
            function, needs = PROGRAMS[name]
            missing = [need for need in needs if not (
                os.geteuid() == 0 if need == "root" else shutil.which(need))]
            if missing:
                print("%-40s skipped: no %s" % (name, ", ".join(missing)))
                names.remove(name)
                continue
            if asked[-1:] == ["alone"]:
                print("==== " + name, measure(function, scratch, None)[0])
                continue
            for mode in modes:
                results[name, mode] = Result()
            for k in range(ROUNDS):
                alone = measure(function, scratch, None)
                for mode in modes:
                    result = results[name, mode]
                    result.pair(alone, measure(function, scratch, mode))
                    if k == ROUNDS - 1:
                        print(result.told(name, mode), flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if results:
        print_table(results, names, modes)
    return any(result.differs for result in results.values())


if __name__ == "__main__":
    sys.exit(main())
