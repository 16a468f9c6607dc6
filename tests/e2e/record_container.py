#!/usr/bin/env python3
"""Into processes that see another root and other pids: as a container does, they
have neither the library nor a folder of the recorder.

    record_container.py CPPROF HOST       TAP

HOST is attach_host. It is copied to where only the container has it, so its
names have to be read there. Each is made by unshare(1), which needs root, or
user namespaces.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
import tap
from processes import innermost

cpprof, host = (os.path.realpath(p) for p in sys.argv[1:3])
t = tap.Tap()

# $1 what is hidden, $2 a copy of the host, $3 options of /tmp there. A
# descriptor leads to the copy once its folder is hidden.
INSIDE = """
exec 9< "$2"
mount -t tmpfs none "$1" && mount -t tmpfs -o "$3" none /tmp &&
mount -t tmpfs -o noexec none /dev/shm && mount -t tmpfs -o "$3" none /var/tmp &&
mount -t tmpfs none /mnt && cat <&9 > /mnt/inside && chmod 755 /mnt/inside &&
exec 9<&- && exec /mnt/inside pulse
"""
CONTAINER = ["unshare", "-m", "-p", "-f", "--mount-proc"]


class Container:
    """attach_host alone in namespaces of its own."""

    def __init__(self, before, tmp="mode=1777"):
        self.outer = subprocess.Popen(
            before + CONTAINER + ["sh", "-c", INSIDE, "sh",
                                  os.path.dirname(cpprof), host, tmp],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ready = self.outer.stdout.readline() == "ready\n"
        self.pid = innermost(self.outer.pid) if self.ready else self.outer.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.outer.communicate()

    def sees(self, path):
        return "/proc/%d/root%s" % (self.pid, path)

    def end(self):
        """The status of it; its unshare(1) has the same."""
        os.kill(self.pid, signal.SIGTERM)
        return self.outer.wait(timeout=60)


def run(words, runner=(), command=cpprof):
    done = subprocess.run(list(runner) + [command] + words, capture_output=True,
                          text=True, check=False, timeout=120)
    return done.returncode, done.stdout + done.stderr


def records(name, before=(), runner=(), command=cpprof, is_sidecar=False):
    """Twice, as the file of the library is gone the second time. A sidecar is
    in the pid namespace, too."""
    with Container(list(before)) as c:
        if not c.ready:
            t.skip(name, c.outer.communicate()[1].strip())
            return
        pid = "1" if is_sidecar else str(c.pid)
        if is_sidecar:
            runner = ["nsenter", "-t", str(c.pid), "-p", "--", "unshare", "-m",
                      "--mount-proc"]
        t.ok("%s: its pid is another there" % name,
             os.readlink("/proc/%d/ns/pid" % c.pid)
             != os.readlink("/proc/self/ns/pid"))
        status, words = run(["doctor", pid], runner, command)
        t.has("%s: doctor says where the library will be" % name, words,
              "a copy, in /tmp of its own root")
        descriptors = os.listdir("/proc/%d/fd" % c.pid)
        for turn in ("first", "second"):
            status, words = run(["record", "-p", pid, "-t", "cpu,wall",
                                 "-duration", "2", "-o", "a.%k.pb.gz"], runner,
                                command)
            t.ok("%s: %s recording: status 0" % (name, turn), status == 0,
                 words)
            if status:
                break
            t.matches("%s: %s: FILE is the process's" % (name, turn),
                      r"(?m)^cpprof: a\.cpu\.pb\.gz: [1-9][0-9]* samples?", words)
            t.has("%s: %s: names come from its root" % (name, turn),
                  run(["top", "a.cpu.pb.gz"])[1], "do_pulse")
            t.has("%s: %s: wall time, too" % (name, turn),
                  run(["top", "-cum", "a.wall.pb.gz"])[1], "do_pulse")
            os.unlink("a.cpu.pb.gz")
            os.unlink("a.wall.pb.gz")
        t.same("%s: no folder is left" % name, os.listdir(c.sees("/tmp")), [])
        t.same("%s: and no descriptor" % name,
               os.listdir("/proc/%d/fd" % c.pid), descriptors)
        t.same("%s: it goes on" % name, c.end(), 0)


def records_as_nobody(folder):
    """The same user, who may make namespaces and nothing else."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        t.skip("without a capability", "not root")
        return
    for name in ("cpprof", "libcpprof.so", "libcpprof-symbol.so"):
        shutil.copy(os.path.join(os.path.dirname(cpprof), name), folder)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    records("without a capability", nobody + ["unshare", "-U", "-r"], nobody,
            os.path.join(folder, "cpprof"))


def removes_what_a_killed_one_left():
    with Container([]) as c:
        if not c.ready:
            t.skip("killed", c.outer.communicate()[1].strip())
            return
        p = subprocess.Popen([cpprof, "record", "-p", str(c.pid), "-o",
                              "k.pb.gz"], stderr=subprocess.PIPE, text=True)
        p.stderr.readline()
        p.kill()
        p.communicate()
        tasks = "/proc/%d/task" % c.pid
        for _ in range(100):
            if len(os.listdir(tasks)) == 1:
                break
            time.sleep(0.2)
        t.same("the recorder is killed: no thread of ours is left",
               len(os.listdir(tasks)), 1)
        left = c.sees("/tmp/" + os.listdir(c.sees("/tmp"))[0])
        os.utime(left, (1, 1))
        status, words = run(["record", "-p", str(c.pid), "-duration", "1", "-o",
                             "k.pb.gz"])
        t.ok("another can record", status == 0, words)
        t.same("and removes what was left", os.listdir(c.sees("/tmp")), [])
        t.same("the process goes on", c.end(), 0)


def has_no_place():
    with Container([], "noexec") as c:
        if not c.ready:
            t.skip("noexec", c.outer.communicate()[1].strip())
            return
        status, words = run(["record", "-p", str(c.pid), "-duration", "1"])
        t.same("no folder for code: status 2", status, 2)
        t.matches("no folder for code: the line says so",
                  r"\Acpprof: %d: has another root \(a container, a chroot\), and no "
                  r"[^\n]*noexec\n\Z" % c.pid, words)
        t.same("no folder for code: doctor has status 1",
               run(["doctor", str(c.pid)])[0], 1)
        t.same("no folder for code: it goes on", c.end(), 0)


def two_apart():
    with Container([]) as c:
        if not c.ready:
            t.skip("two", c.outer.communicate()[1].strip())
            return
        here = subprocess.Popen([host, "pulse"], stdout=subprocess.DEVNULL)
        time.sleep(0.1)
        for first, second in ((c.pid, here.pid), (here.pid, c.pid)):
            status, words = run(["record", "-p", "%d,%d" % (first, second),
                                 "-duration", "1"])
            t.same("inside and outside in one recording: status 2", status, 2)
            t.matches("and the line says which is apart",
                      r"\Acpprof: %d [^\n]*\n\Z" % second, words)
        here.terminate()
        t.same("the one outside goes on", here.wait(), 0)
        t.same("the one inside, too", c.end(), 0)


# Uses half a second of CPU time, in a root that has nothing if it is asked to.
BURN = """
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    volatile long x = 0;
    struct timespec t;

    if (argc > 1 && (chroot(argv[1]) || chdir("/")))
        return 3;
    do {
        for (int i = 0; i < 10000; i++)
            x += i;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    } while (t.tv_sec == 0 && t.tv_nsec < 500000000);
    return 0;
}
"""


def samples_of(words, name):
    status, said = run(["record", "-one", "-F", "100", "-o", "burn.pb.gz",
                        "--"] + words)
    found = re.search(r"(\d+) samples of (\d+) process", said)
    t.ok("%s: recorded" % name, status == 0 and found, said)
    return [int(number) for number in found.groups()] if found else [0, 0]


def begun_by_a_command():
    """Processes of one number at one time, of a /proc that knows others, and
    one that leaves the folder of the recorder at once."""
    with open("burn.c", "w", encoding="ascii") as source:
        source.write(BURN)
    if (not shutil.which("cc") or
            subprocess.run(["cc", "-o", "burn", "burn.c"], check=False)
            .returncode):
        t.skip("containers that a command begins", "no compiler")
        return
    alone = "unshare -p -f %s./burn"
    if subprocess.run((alone % "--mount-proc ").split(),
                      stderr=subprocess.DEVNULL, check=False).returncode:
        t.skip("containers that a command begins", "no right to namespaces")
        return
    samples, processes = samples_of(
        ["sh", "-c", "for i in 1 2 3; do %s & done; wait" %
         (alone % "--mount-proc ")], "three first processes at once")
    t.ok("each is in the profile", processes >= 3, processes)  # and the shell
    t.ok("with its time", 120 < samples < 180, samples)
    _, said = run(["-tags", "burn.pb.gz"])
    found = re.search(r"pid_namespace: Total .*\n((?: +.*\n)+)", said)
    t.ok("and with its namespace", found and len(
        found.group(1).splitlines()) == 3, said)
    samples, processes = samples_of((alone % "").split(),
                                    "the /proc of another namespace")
    t.ok("its time is there", 40 < samples < 60 and processes == 1,
         (samples, processes))
    os.mkdir("empty")
    samples, processes = samples_of(["sh", "-c", "./burn empty & wait"],
                                    "a chroot at once")
    t.ok("its time is there, too", 40 < samples < 60, (samples, processes))


def main():
    os.environ.pop("CPPROF", None)
    if not shutil.which("unshare"):
        t.skip("containers", "no unshare(1)")
        return t.end()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.chmod(folder, 0o777)
        records("other mounts and pids")
        records("a user namespace", ["unshare", "-U", "-r"])
        records("from beside", is_sidecar=True)
        records_as_nobody(folder)
        removes_what_a_killed_one_left()
        has_no_place()
        two_apart()
        begun_by_a_command()
        os.chdir("/")
    return t.end()


sys.exit(main())
