#!/usr/bin/env python3
"""Programs in containers and on small machines: what may not be done, is not
there or is short costs one clear line at most, and what is written is right.

    confined.py CPPROF VICTIM CONFINE       TAP

Each place is made by unshare(1), mounts and limits; where that is not allowed it
is skipped. A place is a shell script and the words behind it, so that they add
up. CONFINE is confine.c.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
import tap

t = tap.Tap()
IS_ROOT = os.getuid() == 0
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
          "--inh-caps=-all", "--bounding-set=-all"] if IS_ROOT else []
APART = ["unshare"] + ([] if IS_ROOT else ["-U", "-r"])
BURN_MS, THREAD_MS = 120, 80


class Place:
    """What stands before a command; script is run before, with $0 the folder
    that may be written to."""

    def __init__(self, words=(), script="", apart="-m", after=()):
        self.words, self.after = list(words), list(after)
        self.script, self.apart = script, apart

    def command(self, folder, words):
        if not self.script:
            return self.words + self.after + words
        return self.words + APART + [self.apart] * bool(self.apart) + [
            "sh", "-ec", self.script + '\nexec "$@"', folder] + \
            self.after + words

    def run(self, folder, words, **environment):
        env = {key: value for key, value in os.environ.items()
               if key not in ("XDG_RUNTIME_DIR", "CPPROF")}
        env.update({"TMPDIR": folder}, **environment)
        return subprocess.run(self.command(folder, words), cwd=folder, text=True,
                              env=env, timeout=120,
                              capture_output=True, check=False)

    def why_not(self, folder):
        """"" where it can be made."""
        try:
            done = self.run(folder, ["true"])
        except OSError as error:
            return str(error)
        return "" if not done.returncode else \
            (done.stderr.strip() or "status %d" % done.returncode)


# A container's /dev has no /dev/shm if that is so configured.
NO_SHM = """mkdir "$0/dev"
for name in null zero urandom; do
    : >"$0/dev/$name"; mount --bind /dev/$name "$0/dev/$name"
done
ln -s /proc/self/fd "$0/dev/fd"
mount --rbind "$0/dev" /dev
"""
# The folder is a mount of its own, as a volume is.
READ_ONLY = """mount --bind "$0" "$0"
for folder in /dev/shm /run; do
    [ ! -d $folder ] || mount -t tmpfs -o ro none $folder
done
mount -o remount,bind,ro /
cd "$0"
"""
HIDE_NONE = "mount -t proc proc /proc\n"
HIDE = "mount -t proc -o hidepid=2 proc /proc\n"


class Test:
    def __init__(self, cpprof, victim, confine):
        self.top = tempfile.mkdtemp(prefix="confined.")
        os.chmod(self.top, 0o755)
        self.tools = os.path.join(self.top, "tools")
        os.mkdir(self.tools)
        build = os.path.dirname(cpprof)
        for path in [victim, confine] + [os.path.join(build, name) for name in (
                "cpprof", "libcpprof.so", "libcpprof-symbol.so")]:
            shutil.copy(path, self.tools)
        self.cpprof, self.library, self.victim, self.confine = (
            os.path.join(self.tools, name) for name in
            ("cpprof", "libcpprof.so", os.path.basename(victim),
             os.path.basename(confine)))
        self.n = 0

    def folder(self):
        self.n += 1
        path = os.path.join(self.top, str(self.n))
        os.mkdir(path)
        os.chmod(path, 0o777)
        return path

    def ms(self, path, function, *flags):
        """What a function has of a profile, with what it calls."""
        said = subprocess.run([self.cpprof, "top", "-cum", "-unit=ms", *flags,
                               path], capture_output=True, text=True,
                              check=False).stdout
        found = re.search(r"([\d.]+)ms +[\d.]+%% +%s$" % function, said, re.M)
        return float(found.group(1)) if found else 0

    def wrong_in(self, cpu, factor):
        return [text for function, ms in (("victim_burn", BURN_MS * factor),
                                          ("victim_thread", THREAD_MS * factor))
                for text in tap.near(function, self.ms(cpu, function), ms,
                                     ms * .25)]

    def right(self, name, place, records=True, **environment):
        """A CPU profile is right, and there is no complaint: recorded, or by
        the variable. Chance may break it: then one of a longer run is."""
        folder = self.folder()
        why = place.why_not(folder)
        if why:
            return t.skip(name, why)
        for factor in (1, 3):
            words = [self.victim, "burn=%d" % (BURN_MS * factor),
                     "thread=%d" % (THREAD_MS * factor), "return=3"]
            folder = self.folder()
            file = os.path.join(folder, "cpu.pb.gz")
            if records:
                done = place.run(folder, [self.cpprof, "record", "-o", file,
                                          "--"] + words, **environment)
            else:
                done = place.run(folder, ["env", "LD_PRELOAD=" + self.library,
                                          "CPPROF=cpu,out=" + file] + words,
                                 **environment)
            wrong = self.wrong_in(file, factor) if os.path.exists(file) else \
                ["no file"]
            if not wrong:
                break
        wrong += [] if done.returncode == 3 else ["status %d" % done.returncode]
        lines = done.stderr.splitlines()
        if records and (len(lines) != 1 or not re.match(
                r"cpprof: \S+: \d+ samples, 2 threads, .*none lost", lines[0])):
            wrong.append("lines")
        t.none(name + (": recorded" if records else ": by the variable"),
               wrong + lines if wrong or (not records and lines) else [])
        return None

    def attached(self, name, place):
        """A process that has the filter of its container, as the command has,
        is recorded, and ends as it does alone."""
        folder = self.folder()
        why = place.why_not(folder)
        if why:
            return t.skip(name, why)
        file = os.path.join(folder, "cpu.pb.gz")
        done = place.run(folder, [
            "sh", "-c", '"$1" burn=2500 return=3 & sleep 0.2; '
            '"$0" record -p $! -duration 1 -o cpu.pb.gz || exit; wait $!',
            self.cpprof, self.victim])
        burnt = self.ms(file, "victim_burn") if os.path.exists(file) else 0
        t.none(name, [] if done.returncode == 3 and 100 < burnt < 1500 else [
            "status %d" % done.returncode, "%d ms" % burnt, done.stderr])
        return None

    def sleeps(self, name, place):
        """Where a thread sleeps is seen from outside."""
        folder = self.folder()
        why = place.why_not(folder)
        if why:
            return t.skip(name, why)
        file = os.path.join(folder, "wall.pb.gz")
        done = place.run(folder, [self.cpprof, "record", "-t", "wall", "-o",
                                  file, "--", "sleep", "0.5"])
        slept = self.ms(file, r"clock_nanosleep\S*") if os.path.exists(file) \
            else 0
        t.none(name, [] if done.returncode == 0 and slept > 250 else [
            "status %d" % done.returncode, "%d ms" % slept, done.stderr])
        return None

    def refused(self, name, place, words, line, **environment):
        """One line, status 2, and no file."""
        folder = self.folder()
        why = place.why_not(folder)
        if why:
            return t.skip(name, why)
        done = place.run(folder, words, **environment)
        files = [file for file in os.listdir(folder) if file.endswith(".gz")]
        t.none(name, [] if done.returncode == 2 and not files and
               re.fullmatch("cpprof: %s\n" % line, done.stderr)
               else ["status %d" % done.returncode, done.stderr] + files)
        return None


def memory_group(megabytes):
    """(a cgroup that may have so much, ""), or (None, why not)."""
    for parent, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                         ("/sys/fs/cgroup", "memory.max")):
        if not os.path.exists(os.path.join(parent, "cgroup.procs")):
            continue
        group = os.path.join(parent, "cpprof-test-%d" % os.getpid())
        try:
            os.mkdir(group)
        except OSError as error:
            return None, str(error)
        try:
            with open(os.path.join(group, file), "w", encoding="ascii") as out:
                out.write("%d" % (megabytes << 20))
            return group, ""
        except OSError as error:
            os.rmdir(group)
            return None, str(error)
    return None, "no memory cgroup"


def main():
    test = Test(*(os.path.realpath(path) for path in sys.argv[1:4]))
    docker = NOBODY + [test.confine]
    group, why = memory_group(64)
    into = ["sh", "-c", 'echo $$ >"$0" && exec "$@"',
            "%s/cgroup.procs" % group]
    core = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    try:
        for records in (True, False):
            test.right("Docker's filter, no capability", Place(docker), records)
            test.right("/proc hides others", Place(
                script=HIDE, apart="-mpf", after=NOBODY), records)
            if group:
                test.right("64 MB", Place(into), records)
        test.sleeps("sleepers, with Docker's filter", Place(docker))
        test.right("one processor", Place(core))
        test.right("one user", Place(["unshare", "-U", "-r"]))
        test.right("a user that is not mapped", Place(["unshare", "-U"]))
        test.right("no /dev/shm", Place(script=NO_SHM))
        test.right("a root that is read only", Place(script=READ_ONLY))
        test.refused("no folder that can be written to",
                     Place(script=READ_ONLY),
                     [test.cpprof, "record", "--", "true"],
                     "record: no folder for the samples in .*", TMPDIR="/")
        test.refused("attaching, with Docker's filter", Place(docker), [
            "sh", "-c", '"$1" hang & "$0" record -p $! -duration 1; '
            's=$?; kill $!; exit $s', test.cpprof, test.victim],
                     r"\d+ \((victim|sh)\): (has a seccomp filter, .*|.*ptrace.*)")
        test.refused("attaching in a container without ptrace", Place(
            script=HIDE_NONE, apart="-mpf", after=docker), [
                "sh", "-c", '"$1" hang & "$0" record -p $! -duration 1; '
                's=$?; kill $!; exit $s', test.cpprof, test.victim],
                     r"\d+ \((victim|sh)\): cannot be attached to: a seccomp "
                     r"filter refuses ptrace\(\) to this program")
        if IS_ROOT:
            test.refused("another user's process, by root without a capability",
                         Place(["setpriv", "--bounding-set=-sys_ptrace",
                                "--inh-caps=-all"]), [
                 "sh", "-c", 'setpriv --reuid=65534 --clear-groups "$1" hang & '
                 'sleep 0.3; "$0" record -p $! -duration 1; s=$?; kill $!; '
                 'exit $s', test.cpprof, test.victim],
                         r"\d+ \(victim\): belongs to user 65534 \(nobody\); be "
                         r"that user, or have CAP_SYS_PTRACE, which root lacks")
        test.attached("attaching in a container", Place(
            script=HIDE_NONE, apart="-mpf",
            after=NOBODY + [test.confine, "-ptrace"]))
        test.right("all of it", Place(into * bool(group) + core, HIDE + NO_SHM + READ_ONLY,
                                      "-mpf", docker))
    finally:
        shutil.rmtree(test.top)
        if group:
            os.rmdir(group)
    return t.end()


sys.exit(main())
