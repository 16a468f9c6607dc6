#!/usr/bin/env python3
"""Root records processes of several users: a server that drops root before it
forks, a command that is run as another user, processes that are attached to.

    record_users.py CPPROF       TAP
"""
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402 pylint: disable=C0413

cpprof = os.path.realpath(sys.argv[1])
t = tap.Tap()
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}

# Works so many seconds in each of two children.
WORK = """
import os, sys, time
def work():
    kept = []
    while time.process_time() < float(sys.argv[1]):
        kept.append(bytearray(100000))
        del kept[:-20]
"""
DROPS_THEN_FORKS = WORK + """
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for i in range(2):
    if not os.fork():
        work()
        os._exit(0)
for i in range(2):
    os.wait()
"""
WORKS = WORK + """
print(os.getpid(), os.getuid(), flush=True)
work()
"""
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def folders():
    return set(glob.glob("run/cpprof-*"))


def samples(files):
    """Of each file, in seconds; a file that cannot be read has none."""
    found = []
    for file in sorted(files):
        text = subprocess.run([cpprof, "-top", "-unit=s", file],
                              capture_output=True, text=True, check=False).stdout
        total = re.search(r"Total samples = ([\d.]+)s", text)
        found.append(float(total.group(1)) if total else 0.0)
    return found


def record(name, seconds, *words):
    """The files that a command leaves, after one that lasts longer if it must."""
    done = subprocess.run(
        [cpprof, "record", "-t", "cpu,heap", "-o", name + ".%k.pb.gz", "--"] +
        list(words) + [str(seconds)], capture_output=True, text=True,
        check=False, timeout=120)
    return done, glob.glob(name + ".cpu*.pb.gz"), glob.glob(
        name + ".heap*.pb.gz")


def children_of_a_server_that_dropped_root():
    done, cpu, heap = record("a", 0.6, sys.executable, "-c", DROPS_THEN_FORKS)
    t.same("a server drops root and forks", done.returncode, 0)
    busy = [s for s in samples(cpu) if s > 0.2]
    t.ok("both children have their CPU time", len(busy) == 2, cpu,
         samples(cpu), done.stderr)
    t.ok("and a heap profile", len(heap) >= 2, heap, done.stderr)
    t.ok("nothing is said to be missing", "in no profile" not in done.stderr,
         done.stderr)


def a_command_of_another_user():
    library = os.path.join(os.path.dirname(cpprof), "libcpprof.so")
    if subprocess.run(["cat", library], stdout=subprocess.DEVNULL, check=False,
                      stderr=subprocess.DEVNULL, **NOBODY).returncode:
        t.skip("a command is run as another user", "who may not read the build")
        return
    done, cpu, heap = record("b", 0.6, *AS_NOBODY, sys.executable, "-c", WORKS)
    t.same("a command is run as another user", done.stdout.split()[1:],
           ["65534"])
    t.ok("its CPU time is recorded", max(samples(cpu), default=0) > 0.3,
         samples(cpu), done.stderr)
    t.ok("and its heap", heap != [], done.stderr)


def processes_of_two_users():
    begun = [subprocess.Popen([sys.executable, "-c", WORKS, "60"], text=True,
                              stdout=subprocess.PIPE, **rights)
             for rights in ({}, NOBODY)]
    pids = [p.stdout.readline().split()[0] for p in begun]
    for seconds in "1", "5", "20":  # others may have the processors
        for file in glob.glob("c*.pb.gz"):
            os.remove(file)
        done = subprocess.run([cpprof, "record", "-p", ",".join(pids),
                               "-duration", seconds, "-o", "c.pb.gz"],
                              capture_output=True, text=True, check=False,
                              timeout=120)
        found = samples(glob.glob("c*.pb.gz"))
        if len(found) == 2 and min(found) > 0.1:
            break
    t.same("processes of two users are attached to", done.returncode, 0)
    t.ok("both have samples", len(found) == 2 and min(found) > 0.1, found,
         done.stderr)
    for p in begun:
        p.kill()
        p.communicate()


LOOKS = """
import os, sys
try:
    print(os.listdir(sys.argv[1]))
except PermissionError:
    print("refused")
"""


def others_do_not_know_the_folder():
    before = folders()
    p = subprocess.Popen([cpprof, "record", "-o", "d.pb.gz", "--",
                          sys.executable, "-c", WORKS, "60"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.readline()
    (outer,) = folders() - before
    (inner,) = [f.path for f in os.scandir(outer) if f.is_dir()]
    looked = subprocess.run([sys.executable, "-c", LOOKS, outer], text=True,
                            capture_output=True, check=False, **NOBODY)
    t.same("another user may not list the folder", looked.stdout, "refused\n")
    t.ok("which has one with a name that nobody guesses",
         re.fullmatch("[0-9a-f]{32}", os.path.basename(inner)), inner)
    t.same("where nobody may remove what others have made",
           os.stat(inner).st_mode & 0o7777, 0o1733)
    t.ok("where files are their owners' alone",
         all(f.stat().st_mode & 0o777 == 0o600 or f.name == "control"
             for f in os.scandir(inner)), os.listdir(inner))
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60)
    t.same("it is gone in the end", folders(), before)


# Moves a folder of its own, in which another user has one, into the recorder's.
MOVES = """
import os, re
folder = re.match("record=([^,]*)", os.environ["CPPROF"]).group(1)
os.rename("shared", folder + "/shared")
open(folder + "/1.0", "w").close()
"""


def nothing_of_others_is_removed():
    before = folders()
    os.mkdir("shared", 0o777)
    os.chmod("shared", 0o777)
    os.chown("shared", 65534, 65534)
    os.mkdir("shared/theirs", 0o700)
    with open("shared/theirs/file", "w", encoding="ascii"):
        pass
    os.chown("shared/theirs", 1234, 1234)
    os.chmod(".", 0o777)
    done = subprocess.run([cpprof, "record", "-o", "e.pb.gz", "--"] + AS_NOBODY +
                          [sys.executable, "-c", MOVES], capture_output=True,
                          check=False, timeout=60)
    os.chmod(".", 0o755)
    t.same("a folder of somebody else is moved to the recorder's",
           (done.returncode, os.path.exists("shared")), (0, False))
    left = glob.glob("run/cpprof-*/*/shared/theirs/file")
    t.same("what is in it is not removed", len(left), 1)
    (outer,) = folders() - before
    shared = glob.glob(outer + "/*/shared")[0]
    os.utime(outer, (time.time() - 100,) * 2)
    subprocess.run(["rm", "-r", shared], check=True)
    subprocess.run([cpprof, "record", "-o", "f.pb.gz", "--", "true"],
                   capture_output=True, check=False)
    t.same("the next recorder removes the rest when it has gone", folders(),
           before)


# In a mount namespace of its own: mounts a folder in the recorder's.
MOUNTS = r"""
mount -t tmpfs none /dev/shm || exit 3
echo $$
(while ! folder=$(grep -aom1 '/[^ ]*/cpprof-[^/]*/[0-9a-f]*' /proc/$$/maps)
 do sleep 0.01; done
 mkdir "$folder/x" && touch "$folder/x/keep" "$folder/y" &&
     mount --bind "$1" "$folder/x" && mount --bind "$1/file" "$folder/y" &&
     echo mounted) &
exec python3 -c '
while True:
    sum(range(20000))'
"""


def nothing_is_removed_through_a_mount():
    os.mkdir("victim", 0o755)
    with open("victim/file", "w", encoding="ascii") as f:
        f.write("mine")
    p = subprocess.Popen(["unshare", "-Urm", "sh", "-c", MOUNTS, "sh",
                          os.path.realpath("victim")], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, **NOBODY)
    pid = p.stdout.readline().strip()
    if not pid:
        t.skip("mounts in the recorder's folder", "no user namespace")
        return
    time.sleep(0.3)
    done = subprocess.run([cpprof, "record", "-p", pid, "-duration", "1", "-o",
                           "g.pb.gz"], capture_output=True, text=True,
                          check=False, timeout=60)
    p.kill()
    said = p.communicate()[0]
    t.ok("somebody mounts a folder of others in the recorder's",
         said == "mounted\n", said, done.stderr)
    t.same("nothing is removed there", os.listdir("victim"), ["file"])


def main():
    for name in ("LD_PRELOAD", "CPPROF"):
        os.environ.pop(name, None)
    if os.getuid():
        t.skip("programs of several users", "for root")
        return t.end()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        os.chdir(folder)
        os.mkdir("run", 0o755)
        os.environ["XDG_RUNTIME_DIR"] = os.path.join(folder, "run")
        children_of_a_server_that_dropped_root()
        a_command_of_another_user()
        processes_of_two_users()
        others_do_not_know_the_folder()
        nothing_of_others_is_removed()
        nothing_is_removed_through_a_mount()
        os.chdir("/")
    return t.end()


sys.exit(main())
