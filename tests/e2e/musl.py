#!/usr/bin/env python3
"""Programs for musl under `cpprof record` and CPPROF=, and attached to, and
process trees in which both libcs are: musl.py CPPROF FOLDER

A library for musl is built in FOLDER, which is kept, beside copies of the
command and of its library. It is not optimised: that takes a third of the time.
Skipped where there is no musl-gcc.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
from processes import descriptors, innermost, own_threads
from tap import Tap  # pylint: disable=wrong-import-position

COPIED = ["cpprof", "libcpprof.so", "libcpprof-symbol.so", "libcpprof-re2.so"]
# musl-gcc leaves out the table by which stacks are walked.
TABLE = "-Wl,--eh-frame-hdr"
# Modes of attach_host: calls that wait in each way that musl has, threads that
# never wait, and what holds locks of libc at any moment.
MODES = ["nanosleep", "futex", "epoll", "sigtimedwait", "semop", "accept",
         "io_uring", "registers", "spin 2", "malloc 4", "fork", "dlopen",
         "unshare"]
# It does not know the kernel's headers either.
MUSL_CC = ["musl-gcc", "-idirafter", "/usr/include", "-idirafter",
           "/usr/include/%s-linux-gnu" % os.uname().machine]
HOSTS = [("clone_without_libc", "cpu=400,engine=perf,out=%p.pb.gz"),
         ("last_thread", "deadlock"),
         ("mask_inherited", "heap,wall=400,out=%k.%p.pb.gz")]


def run(command, **environment):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CPPROF", "LD_"))}
    done = subprocess.run(command, env=dict(env, **environment), text=True,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=500, check=False)
    return done.returncode, done.stdout, done.stderr


def build(folder):
    """False, after saying why."""
    musl = os.path.join(folder, "musl")
    if not os.path.exists(os.path.join(musl, "build.ninja")):
        done = run(["meson", "setup", musl, TOP, "--cross-file",
                    os.path.join(TOP, "packaging/musl-gcc.ini"),
                    "-Doptimization=0", "-Ddebug=false"])
        if done[0]:
            return done
    return run(["ninja", "-j2", "-C", musl])


def stacks(cpprof, path, *options):
    """{stack, root first: value} of a profile."""
    said = run([cpprof, "-collapsed", *options, path])[1]
    lines = [line.rpartition(" ") for line in said.splitlines()]
    return {stack: int(value) for stack, _, value in lines if value.isdigit()}


def share(found, pattern):
    total = sum(found.values())
    return sum(value for stack, value in found.items()
               if re.search(pattern, stack)) / total if total else 0


def test_kinds(tap, cpprof, alone, folder):
    os.chdir(folder)
    for old in glob.glob("*.pb.gz"):
        os.unlink(old)
    status = run([cpprof, "record", "-t", "cpu,wall,heap,block,mutex",
                  "-o", "all.%k.pb.gz", "--", "./host"])
    tap.same("record: the program ends as alone", status[:2], alone)
    kinds = {kind: stacks(cpprof, "all.%s.pb.gz" % kind)
             for kind in ("cpu", "wall", "heap", "block", "mutex")}
    cpu = kinds["cpu"]
    tap.near("cpu: seconds of the program", sum(cpu.values()) / 1e9, 1, 0.2)
    tap.less("cpu: stacks that are not whole",
             share(cpu, r"^\[unwind failed\]"), 0.05)
    tap.less("cpu: threads are below their start routine",
             0.5, share(cpu, r"(^|;)work;burn"))
    tap.less("cpu: what libc calls is below main", 0.1,
             share(cpu, r"(^|;)main;sort;[^;]+;."))
    tap.less("wall: threads are below their start routine",
             0, share(kinds["wall"], r"(^|;)work;"))
    tap.same("heap: who asked for the blocks",
             {stack.rpartition("work;")[2] for stack in kinds["heap"]},
             {"keep"})
    tap.less("block: of the mutex's waiters", 0,
             share(kinds["block"], r"(^|;)work;(pthread_mutex_lock;?)+$"))
    tap.less("mutex: who held it", 0.99,
             share(kinds["mutex"], r"(^|;)work;(pthread_mutex_unlock;?)+$"))
    children = glob.glob("all.cpu.host.*.pb.gz")
    tap.same("cpu: the forked child has its own", len(children), 1)
    for child in children:
        tap.near("cpu: of the child", sum(stacks(cpprof, child).values()) / 1e9,
                 0.2, 0.05)


def test_trees(tap, cpprof, folder):
    """The first program starts one of the other libc, and that becomes one of
    the first libc."""
    os.chdir(folder)
    for name, chain in (("glibc first", ["./glibcs", "./musls", "./glibcs2"]),
                        ("musl first", ["./musls", "./glibcs", "./musls2"])):
        for old in glob.glob("tree*.pb.gz"):
            os.unlink(old)
        got = run([cpprof, "record", "-o", "tree.pb.gz", "--"] + chain)
        tap.same("%s: the last one's status" % name, got[0], 3)
        tap.same("%s: no loader says anything" % name,
                 [line for line in got[2].splitlines()
                  if not line.startswith("cpprof: tree")], [])
        found = [sum(stacks(cpprof, path).values()) / 1e9
                 for path in glob.glob("tree*.pb.gz")]
        tap.near("%s: all programs are in the profiles" % name, sum(found),
                 1.6, 0.3)


def test_variable(tap, alone, folder):
    os.chdir(folder)
    preload = os.path.join(folder, "musl/$LIB/libcpprof.so")
    tap.same("preloaded, nothing asked for: as alone",
             run(["./host"], LD_PRELOAD=preload), alone + ("",))
    got = run(["./host"], LD_PRELOAD=preload, CPPROF="http=127.0.0.1:0,deadlock")
    tap.same("http and deadlock: the program goes on", got[:2], alone)
    # A child that was forked says it, too.
    tap.same("each is refused by one line", sorted(set(got[2].splitlines())),
             ["cpprof: http: a program for musl, or one that is linked "
              "statically, loads no plug-ins",
              "cpprof: not looking for deadlocks: stuck: the locks of musl are "
              "not known to cpprof"])


def test_static(tap, cpprof, folder):
    """A program that is linked statically with musl and with the library, whose
    own functions are seen in its stacks where they are not optimised."""
    os.chdir(folder)
    linked = run(MUSL_CC + [
        "-static", "-O1", "-g", os.path.join(TOP, "examples/static_program.c"),
        "-I" + os.path.join(TOP, "include"), "-Wl,@musl/static.link",
        "musl/libcpprof-static.a",
        "/usr/lib/%s-linux-gnu/libdeflate.a" % os.uname().machine,
        "-o", "static"])
    tap.same("static: it links without a word", linked, (0, "", ""))
    for command, environment in (
            (["./static"], {"CPPROF": "cpu,heap,block,out=static.%k.pb.gz"}),
            ([cpprof, "record", "-t", "cpu,heap,block", "-o",
              "static.%k.pb.gz", "--", "./static"], {})):
        for old in glob.glob("static.*.pb.gz"):
            os.unlink(old)
        name = "static, by %s" % os.path.basename(command[0])
        tap.same(name + ": it ends as alone",
                 run(command, **environment)[:2], (0, ""))
        cpu, heap, block = (stacks(cpprof, "static.%s.pb.gz" % kind)
                            for kind in ("cpu", "heap", "block"))
        tap.near(name + ": seconds", sum(cpu.values()) / 1e9, 0.25, 0.1)
        tap.less(name + ": the thread's stacks are whole", 0.7,
                 share(cpu, r"^start;(.*;)?work;burn_cpu"))
        tap.same(name + ": who asked for the blocks",
                 {re.sub(".*;main;(\\w+).*", r"\1", stack) for stack in heap},
                 {"keep_memory"})
        tap.less(name + ": waiters of the mutex", 0,
                 share(block, r"^start;(.*;)?work;pthread_mutex_lock"))


def test_hosts(tap, folder):
    """Hosts of the guest suite that musl has shown to be its own cases."""
    preload = os.path.join(folder, "musl/$LIB/libcpprof.so")
    for host, words in HOSTS:
        program = os.path.join(folder, host)
        compile_musl(os.path.join("../guest/hosts", host + ".c"), program,
                     "-fno-builtin", "-I" + os.path.join(HERE, "../guest"))
        alone = run([program], HOST_BUSY="25")[:2]
        for _ in range(2):
            got = run([program], HOST_BUSY="25", LD_PRELOAD=preload,
                      CPPROF=words)
            tap.same("%s under %s: as alone" % (host, words), got[:2], alone)


def compile_musl(source, program, *flags):
    subprocess.run(MUSL_CC + ["-std=gnu11", "-O1", "-g", "-w", "-D_GNU_SOURCE",
                              TABLE, os.path.join(HERE, source), "-pthread",
                              "-o", program] + list(flags), check=True)


def bound_entries(pid, path):
    """What the words are by which a program calls libc."""
    said = run(["readelf", "-rW", path])[1]
    with open("/proc/%d/maps" % pid, encoding="utf-8") as file:
        base = min(int(line.split("-")[0], 16) for line in file
                   if line.rstrip().endswith(path))
    entries = {}
    with open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
        for offset, name in re.findall(
                r"^([0-9a-f]+) .*R_\w+_JU?MP_SLOT?T? .* (\w+) \+ 0", said, re.M):
            memory.seek(base + int(offset, 16))
            entries[name] = memory.read(8)
    return entries


class Host:
    """One that checks itself, until it is told to end."""

    def __init__(self, folder, mode):
        self.process = subprocess.Popen(
            [os.path.join(folder, "attach_host")] + mode.split(),
            stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        self.pid = str(self.process.pid)

    def end(self):
        self.process.terminate()
        said = self.process.communicate(timeout=60)[0]
        return self.process.returncode, said


def test_attached(tap, cpprof, folder):
    """Into programs for musl that run, and out again."""
    os.chdir(folder)
    compile_musl("attach_host.c", os.path.join(folder, "attach_host"),
                 os.path.join(HERE, "attach_waits.c"))
    for mode in MODES:
        host = Host(folder, mode)
        said = [run([cpprof, "record", "-t", "wall,heap,block,mutex", "-o",
                     "in.%k.pb.gz", "-duration", "0.3", "-p", host.pid])
                for _ in range(2)]
        tap.same("%s: attached to twice" % mode, [got[0] for got in said],
                 [0, 0])
        tap.same("%s: it sees nothing of that" % mode, host.end()[0], 0)
    host = Host(folder, "allocate 4")
    path = os.path.realpath("attach_host")
    before = bound_entries(host.process.pid, path)
    tap.less("the program calls libc by entries", 5, len(before))
    got = run([cpprof, "record", "-t", "cpu,wall,heap,block,mutex", "-o",
               "in.%k.pb.gz", "-duration", "2", "-p", host.pid])
    tap.same("all kinds of a program that allocates", got[0], 0)
    tap.same("its entries are put back",
             bound_entries(host.process.pid, path), before)
    tap.same("no thread is left",
             len(os.listdir("/proc/%s/task" % host.pid)), 4)
    for kind in ("cpu", "wall", "heap"):
        index = ["-sample_index=alloc_space"] if kind == "heap" else []
        found = stacks(cpprof, "in.%s.pb.gz" % kind, *index)
        tap.less("%s: who allocates" % kind, 0, share(found, "allocate_all"))
    tap.less("cpu: stacks that are whole", 0.9,
             1 - share(stacks(cpprof, "in.cpu.pb.gz"), "unwind failed"))
    got = run([cpprof, "threads", "-p", host.pid])
    tap.same("threads: all four", (got[0], len(re.findall(
        r"attach_host", got[1])) > 3), (0, True))
    tap.same("doctor: it may be", run([cpprof, "doctor", host.pid])[0], 0)
    recorder = subprocess.Popen([cpprof, "record", "-t", "heap", "-o",
                                 "in.%k.pb.gz", "-p", host.pid],
                                stdin=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
    wait_until(lambda: own_threads(host.process.pid))
    recorder.kill()
    recorder.wait()
    tap.same("a recorder that is killed: no thread is left",
             wait_until(lambda: not own_threads(host.process.pid)), True)
    tap.same("and no entry", bound_entries(host.process.pid, path), before)
    tap.same("the program ends well", host.end()[0], 0)
    os.rename("musl", "hidden")
    host = Host(folder, "poll")
    tap.same("without a library for musl: refused by a line",
             run([cpprof, "record", "-t", "heap", "-p", host.pid])[::2],
             (2, "cpprof: %s (attach_host): is a program for musl libc, and "
              "there is no libcpprof.so for musl beside this one\n" % host.pid))
    os.rename("hidden", "musl")
    host.end()


# $1 a root that holds musl's libc, a program and nothing else.
CONTAINER = """
mount -t proc none "$1/proc" && exec chroot "$1" /attach_host pulse
"""


def test_container(tap, cpprof, folder):
    """From the host into a root, pids and a /proc of its own, as a container of
    Alpine has them: neither the library nor glibc is there."""
    name = "musl in a container"
    root = os.path.join(folder, "root")
    shutil.rmtree(root, ignore_errors=True)
    for part in ("lib", "proc", "tmp"):
        os.makedirs(os.path.join(root, part))
    host = os.path.join(folder, "attach_host")
    needed = re.search(r"interpreter: /lib/(\S+)\]",
                       run(["readelf", "-lW", host])[1]).group(1)
    shutil.copy("/lib/" + needed, os.path.join(root, "lib"))
    shutil.copy(host, root)
    outer = subprocess.Popen(
        ["unshare", "-m", "-p", "-f", "sh", "-c", CONTAINER, "sh", root],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if outer.stdout.readline() != "ready\n":
        tap.skip(name, outer.communicate()[1].strip())
        return
    pid = innermost(outer.pid)
    before = descriptors(pid)
    for turn in ("first", "second"):
        for seconds in ("1", "4", "8"):  # few samples are others' by chance
            got = run([cpprof, "record", "-t", "cpu,wall,heap", "-duration",
                       seconds, "-o", "in.%k.pb.gz", "-p", str(pid)])
            shares = {kind: share(stacks(cpprof, "in.%s.pb.gz" % kind),
                                  "do_pulse") for kind in ("cpu", "wall")}
            if min(shares.values()) > 0.9:
                break
        tap.same("%s: %s recording" % (name, turn), got[0], 0)
        for kind in ("cpu", "wall"):
            tap.less("%s: %s: whose %s it is" % (name, turn, kind), 0.9,
                     shares[kind])
    tap.same("%s: a dump of its threads" % name,
             "do_pulse" in run([cpprof, "threads", "-p", str(pid)])[1], True)
    tap.same("%s: no file is left, and no descriptor" % name,
             (os.listdir(os.path.join(root, "tmp")),
              descriptors(pid)), ([], before))
    os.kill(pid, 15)
    outer.communicate(timeout=60)
    tap.same("%s: it ends well" % name, outer.returncode, 0)


def wait_until(ready, seconds=30):
    end = time.monotonic() + seconds
    while not ready() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(ready())


def main():
    cpprof, folder = map(os.path.abspath, sys.argv[1:])
    tap = Tap()
    if not shutil.which("musl-gcc"):
        tap.skip("programs for musl", "there is no musl-gcc (musl-tools)")
        return tap.end()
    os.makedirs(folder, exist_ok=True)
    for name in COPIED:
        shutil.copy2(os.path.join(os.path.dirname(cpprof), name), folder)
    built = build(folder)
    tap.same("the library is built for musl", built[0], 0)
    if built[0]:
        print("# " + "\n# ".join((built[1] + built[2]).splitlines()[-30:]))
        return tap.end()
    source = os.path.join(HERE, "musl_host.c")
    for names, compiler in ((["host", "musls", "musls2"], ["musl-gcc"]),
                            (["glibcs", "glibcs2"],
                             [os.environ.get("CC", "cc")])):
        subprocess.run(compiler + ["-O1", "-g", TABLE, source, "-pthread",
                                   "-o", os.path.join(folder, names[0])],
                       check=True)
        for name in names[1:]:
            shutil.copy2(os.path.join(folder, names[0]),
                         os.path.join(folder, name))
    alone = run([os.path.join(folder, "host")])
    tap.same("alone", alone, (3, "cancelled: 1 1, forked: 1, names: 1, "
                              "signals: 1\n", ""))
    here = os.path.join(folder, "cpprof")
    test_kinds(tap, here, alone[:2], folder)
    test_trees(tap, here, folder)
    test_variable(tap, alone[:2], folder)
    test_static(tap, here, folder)
    test_hosts(tap, folder)
    test_attached(tap, here, folder)
    test_container(tap, here, folder)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
