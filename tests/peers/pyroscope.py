#!/usr/bin/env python3
"""Pyroscope, which takes what cpprof sends.

    pyroscope.py CPPROF PROGRAM PYROSCOPE [ALLOY]

Prints TAP. PYROSCOPE is the server, all of it in one process that keeps its
data in a folder: `./dev peers pyroscope`. What it has is what it answers by
its own interface, as profile.proto, and is held against the files. ALLOY is a
Grafana Alloy (alloy/main.go), which scrapes and sends what it gets there.
"""
import os
import re
import subprocess
import sys
import time

from peer import (fixtures, free_port, get, of_program, Peer, Profile,
                  run_program, scratch_folder, Server, TAP, write_large)
from protobuf import chunk, varint

CPPROF, PROGRAM, PYROSCOPE, *ALLOY = map(os.path.abspath, sys.argv[1:5])
FOLDER = scratch_folder("cpprof-pyroscope-")
HERE = "127.0.0.1"
RINGS = ("compactor.ring", "distributor.ring", "overrides-exporter.ring",
         "query-frontend", "query-scheduler.ring", "store-gateway.sharding-ring")


def newer_storage(grpc):
    """Flags of what is called v2, which alone names frames when it is asked."""
    raft = "%s:%d" % (HERE, free_port())
    return ["-all.enable-v1-write-path=false", "-all.enable-v1-read-path=false",
            "-write-path=segment-writer", "-enable-query-backend=true",
            "-query-backend.address=" + grpc, "-metastore.address=" + grpc,
            "-metastore.raft.server-id=" + raft,
            "-metastore.raft.bind-address=" + raft,
            "-metastore.raft.advertise-address=" + raft,
            "-metastore.raft.dir=%s/raft" % FOLDER,
            "-metastore.raft.snapshots-dir=%s/snapshots" % FOLDER,
            "-metastore.data-dir=%s/metastore" % FOLDER,
            "-metastore.min-ready-duration=0s",
            "-segment-writer.min-ready-duration=0s",
            "-segment-writer.lifecycler.addr=" + HERE,
            "-symbolizer.enabled=true",
            "-symbolizer.debuginfod-url=http://127.0.0.1:1"]


class Pyroscope:
    def __init__(self, is_newer=False):
        port, grpc, gossip = free_port(), free_port(), free_port()
        os.environ["PYROSCOPE_V2"] = "1" if is_newer else ""
        self.url = "http://%s:%d" % (HERE, port)
        self.peer = Peer(
            [PYROSCOPE, "-target=all", "-config.show_banner=false",
             "-server.http-listen-address=" + HERE,
             "-server.http-listen-port=%d" % port,
             "-server.grpc-listen-address=" + HERE,
             "-server.grpc-listen-port=%d" % grpc,
             "-memberlist.bind-addr=" + HERE,
             "-memberlist.bind-port=%d" % gossip,
             "-memberlist.advertise-addr=" + HERE,
             "-storage.backend=filesystem",
             "-storage.filesystem.dir=%s/store%d" % (FOLDER, is_newer),
             "-pyroscopedb.data-path=%s/db%d" % (FOLDER, is_newer),
             "-compactor.data-dir=%s/compactor" % FOLDER,
             "-blocks-storage.bucket-store.sync-dir=%s/sync" % FOLDER,
             "-self-profiling.disable-push=true", "-usage-stats.enabled=false",
             "-ingester.lifecycler.addr=" + HERE,
             "-ingester.min-ready-duration=1s"]
            + ["-%s.instance-addr=%s" % (ring, HERE) for ring in RINGS]
            + (newer_storage("%s:%d" % (HERE, grpc)) if is_newer else []),
            self.url + "/ready", FOLDER)

    def profile(self, type_, service):
        """All that a series has, or what is said instead."""
        now = int(time.time() * 1000)
        body = b"".join((
            chunk(1, type_.encode()),
            chunk(2, b'{service_name="%s"}' % service.encode()),
            b"\x18" + varint(now - 43200000), b"\x20" + varint(now + 600000)))
        status, answer = get(
            self.url + "/querier.v1.QuerierService/SelectMergeProfile", body,
            {"Content-Type": "application/proto"})
        if status != 200:
            return answer
        path = os.path.join(FOLDER, "answer.pb")
        with open(path, "wb") as out:
            out.write(answer)
        return Profile(CPPROF, path)


def run(*words):
    return subprocess.run([CPPROF, "push", *words], capture_output=True,
                          text=True, check=False)


def mended(name):
    return re.sub(r"\W", "_", name)


def check_file(pyroscope, service, path, series, protocol):
    """All types of a file, stack by stack."""
    profile, wrong = Profile(CPPROF, path), []
    done = run("-to=" + pyroscope.url, "-protocol=" + protocol,
               "-name=" + service, path)
    for i, type_ in enumerate(profile.types):
        name = ":".join([series] + [mended(t) for t in
                                    type_ + profile.period_type])
        got, want = pyroscope.profile(name, service), profile.stacks(i)
        got = got.stacks(0) if isinstance(got, Profile) else got
        if got != want:
            wrong.append((name, str(got)[:300], str(want)[:300]))
    TAP.none("%s by %s: each stack is there with its value" % (
        os.path.basename(path), protocol),
        wrong + [done.stderr] * done.returncode)


def check_files(pyroscope):
    for path, series in of_program(PROGRAM, FOLDER).items():
        check_file(pyroscope, "program." + series + path.split(".")[-3], path,
                   series, "push")
        # By /ingest, other series are what the sample types make of them.
        if series in ("process_cpu", "memory", "block", "mutex"):
            check_file(pyroscope, "ingest." + series, path, series, "ingest")
    for path in fixtures(CPPROF, FOLDER):
        if "linux.perf" in path:
            check_file(pyroscope, "perf", path, "process_cpu", "push")
        elif "go.cpu.pb" in path:
            done = run("-to=" + pyroscope.url, path)
            TAP.ok("old: refused, with its words", done.returncode == 2 and
                   "answers 400" in done.stderr and
                   "outside of ingestion window" in done.stderr, done.stderr)


def otlp_series(profile, i):
    """What Pyroscope calls it, and by what it multiplies: samples of CPU time
    are its own CPU profile, any other is called as its period."""
    type_, period = profile.types[i], profile.period_type
    if type_ + period == ("samples", "count", "cpu", "nanoseconds"):
        return "process_cpu:cpu:nanoseconds:cpu:nanoseconds", profile.period
    return ":".join(period[:1] + type_ + period), 1


def check_otlp(pyroscope):
    """All kinds over OTLP, stack by stack."""
    for path, kind in of_program(PROGRAM, FOLDER).items():
        if path.endswith("/program.x.pb.gz"):  # its queries cannot name a type with : in it
            continue
        profile, wrong = Profile(CPPROF, path), []
        service = "otlp." + kind + path.split(".")[-3]
        done = run("-to=otlp+" + pyroscope.url, "-name=" + service, path)
        for i in range(len(profile.types)):
            name, times = otlp_series(profile, i)
            want = {k: v * times for k, v in profile.stacks(i).items()}
            got = pyroscope.profile(name, service)
            got = got.stacks(0) if isinstance(got, Profile) else got
            if got != want:
                wrong.append((name, str(got)[:300], str(want)[:300]))
        TAP.none("%s over OTLP: each stack is there with its value"
                 % os.path.basename(path), wrong + [done.stderr]
                 * done.returncode)


def check_otlp_program(pyroscope, seconds):
    """What a program pushes over OTLP, beside its own files of it. Its mutex
    and block profiles would be one series."""
    said = run_program(PROGRAM, "otlp+%s,push-interval=5,push-name=otlp"
                       % pyroscope.url, FOLDER,
                       "cpu=100,heap=1,block=1,wall=50", seconds)
    TAP.same("program: over OTLP it says nothing", said, "")
    for kind, types, near in (
            ("cpu", ("samples", "cpu"), 0.1),
            ("wall", ("samples", "wall"), 0.1),
            ("heap", ("alloc_space", "alloc_objects"), 0.02),
            ("block", ("contentions", "delay"), 0.05)):
        whole = Profile(CPPROF, "%s/sum.%s.pb.gz" % (FOLDER, kind))
        for i, type_ in enumerate(whole.types):
            name, times = otlp_series(whole, i)
            if type_[0] not in types:
                continue
            got, want = pyroscope.profile(name, "otlp"), whole.total(type_[0])
            TAP.near("program: %s of %s over OTLP" % (type_[0], kind),
                     isinstance(got, Profile) and sum(
                         got.stacks(0).values()), want * times,
                     near * want * times)
            TAP.ok("program: there is some %s of %s" % (type_[0], kind),
                   want > 0)


def check_large(pyroscope):
    """More than one profile may be, and than may come in a second."""
    for name, n, n_bytes in (("samples", 20000, 100), ("bytes", 200, 40000)):
        path = os.path.join(FOLDER, name + ".pb.gz")
        write_large(path, n, n_bytes)
        done = run("-to=" + pyroscope.url, "-name=" + name, path)
        got = pyroscope.profile("n:n:count:n:count", name)
        TAP.same("large: in parts because of %s, each sample once" % name,
                 (done.returncode, isinstance(got, Profile) and got.total("n")),
                 (0, n * (n + 1) // 2))
    TAP.has("large: 429 is obeyed", done.stderr, "answers 429: push rate limit")


def check_program(pyroscope, seconds):
    """What a program pushes in a minute, beside its own files of it."""
    said = run_program(PROGRAM, pyroscope.url + ",push-name=shop", FOLDER,
                       "cpu=100,heap=1,block=1,mutex=1,wall=50,goroutine",
                       seconds)
    TAP.ok("program: it says which name is changed", "is sent with _" in said
           and said.count("\n") == 1, said)
    for kind, series, types, near in (
            ("cpu", "process_cpu", ("cpu",), 0.1),
            ("wall", "wall", ("wall",), 0.1),
            ("heap", "memory", ("alloc_space", "alloc_objects"), 0.02),
            ("block", "block", ("contentions", "delay"), 0.05),
            ("mutex", "mutex", ("contentions", "delay"), 0.05)):
        whole = Profile(CPPROF, "%s/sum.%s.pb.gz" % (FOLDER, kind))
        for type_ in whole.types:
            if type_[0] not in types:
                continue
            want = whole.total(type_[0])
            got = pyroscope.profile(":".join((series,) + type_ +
                                             whole.period_type), "shop")
            TAP.near("program: %s %s of all intervals" % (series, type_[0]),
                     isinstance(got, Profile) and got.total(type_[0]), want,
                     near * want)
            TAP.ok("program: there is some %s" % type_[0], want > 0)
    for name in ("memory:inuse_space:bytes:space:bytes",
                 "goroutine:goroutine:count:goroutine:count",
                 "x_y_z_q:x_y_z_q:count:x_y_z_q:count"):
        got = pyroscope.profile(name, "shop")
        TAP.ok("program: there is some %s" % name, isinstance(got, Profile) and
               sum(got.stacks(0).values()) > 0)


def check_debuginfo(pyroscope):
    """Names that only the server has."""
    path = os.path.join(FOLDER, "nameless.pb.gz")
    run_program(PROGRAM, FOLDER + "/pushed,symbolize=none", FOLDER, "cpu", 3)
    os.rename(os.path.join(FOLDER, "sum.cpu.pb.gz"), path)
    whole = Profile(CPPROF, path)
    TAP.ok("debuginfo: the file has no names",
           "burn_time" not in whole.convert("-to=collapsed"))
    done = run("-to=" + pyroscope.url, "-name=nameless", "-debuginfo", path)
    TAP.ok("debuginfo: it is taken", done.returncode == 0, done.stderr)
    time.sleep(3)
    got = pyroscope.profile("process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                            "nameless")
    stacks = got.stacks(0) if isinstance(got, Profile) else {}
    TAP.ok("debuginfo: the server has the names", sum(
        v for k, v in stacks.items() if ";burn_time" in k)
           > whole.total("cpu") / 2, stacks)
    TAP.same("debuginfo: and has all", sum(stacks.values()),
             whole.total("cpu"))
    again = run("-to=" + pyroscope.url, "-name=again", "-debuginfo", path)
    TAP.same("debuginfo: it has the file already", again.returncode, 0)


SCRAPE = """
pyroscope.write "there" {
  endpoint { url = "%s" }
}
pyroscope.scrape "program" {
  targets         = [{"__address__" = "%s", "service_name" = "scraped"}]
  forward_to      = [pyroscope.write.there.receiver]
  scrape_interval = "5s"
  scrape_timeout  = "10s"
  delta_profiling_duration = "4s"
}
"""


def check_alloy(pyroscope, alloy, seconds):
    """What is scraped of a program's pages, with Alloy's own settings: of CPU
    time 4 s of each 5, of sums the differences after the first time."""
    path = os.path.join(FOLDER, "scrape.alloy")
    server = Server(PROGRAM, "127.0.0.1:0", CPPROF="cpu=100,heap=1,block=1,"
                    "mutex=1,out=%s/scraped.%%k.pb.gz" % FOLDER)
    with open(path, "w") as out:
        out.write(SCRAPE % (pyroscope.url, server.address))
    with open(path + ".log", "w") as log:
        scraper = subprocess.Popen([alloy, path], stdout=log, stderr=log)
    time.sleep(seconds)
    scraper.terminate()
    scraper.wait()
    server.end()
    with open(path + ".log") as log:
        TAP.none("Alloy: it has nothing to say of what it scrapes",
                 re.findall(r"level=(?:warn|error).*", log.read()))
    for kind, series, name, least in (
            ("cpu", "process_cpu", "cpu", 0.5),
            ("heap", "memory", "alloc_space", 0.3),
            ("heap", "memory", "alloc_objects", 0.3),
            ("block", "block", "contentions", 0.3),
            ("mutex", "mutex", "delay", 0.3)):
        whole = Profile(CPPROF, "%s/scraped.%s.pb.gz" % (FOLDER, kind))
        type_ = next(t for t in whole.types if t[0] == name)
        got, want = pyroscope.profile(":".join(
            (series,) + type_ + whole.period_type), "scraped"), \
            whole.total(name)
        total = got.total(name) if isinstance(got, Profile) else got
        TAP.ok("Alloy: %s of %s is most of what there was, and no more"
               % (name, series), isinstance(total, int) and
               least * want < total <= 1.05 * want, total, want)
    got = pyroscope.profile("goroutine:goroutine:count:goroutine:count",
                            "scraped")
    TAP.ok("Alloy: threads have names", isinstance(got, Profile) and
           any("run_waiting" in stack for stack in got.stacks(0)), got.stacks(0))


pyroscope = Pyroscope(True)
try:
    check_debuginfo(pyroscope)
finally:
    pyroscope.peer.end()
pyroscope = Pyroscope()
try:
    check_otlp(pyroscope)
    check_otlp_program(pyroscope, 20)
    check_files(pyroscope)
    check_large(pyroscope)
    check_program(pyroscope, 60)
    if ALLOY:
        check_alloy(pyroscope, ALLOY[0], 45)
finally:
    pyroscope.peer.end()
sys.exit(TAP.end())
