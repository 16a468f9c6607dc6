#!/usr/bin/env python3
"""Parca, which takes what cpprof sends and scrapes what it serves.

    parca.py CPPROF PROGRAM PARCA

Prints TAP. PARCA is the server: `./dev peers parca`. What it has is what it
answers by its own interface, and is held against the files.
"""
import base64
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse

from peer import (fixtures, free_port, get, of_program, Peer, Profile,
                  run_program, scratch_folder, Server, TAP, write_large)

CPPROF, PROGRAM, PARCA = map(os.path.abspath, sys.argv[1:4])
FOLDER = scratch_folder("cpprof-parca-")
AGE = {"start": "2000-01-01T00:00:00Z", "end": "2200-01-01T00:00:00Z"}

CONFIG = """
object_storage:
  bucket: {type: FILESYSTEM, config: {directory: "%s/data"}}
scrape_configs:
  - job_name: server
    scrape_interval: 5s
    static_configs: [{targets: ["127.0.0.1:%d"]}]
    profiling_config:
      pprof_config:
        memory:
          path: /debug/pprof/heap
          keep_sample_type:
            - {type: inuse_space, unit: bytes}
            - {type: inuse_objects, unit: count}
        allocations:
          enabled: true
          path: /debug/pprof/allocs
          delta: true
          keep_sample_type:
            - {type: alloc_space, unit: bytes}
            - {type: alloc_objects, unit: count}
        block: {delta: true}
        mutex: {delta: true}
        fgprof: {enabled: true, path: /debug/fgprof, delta: true}
"""


class Parca:
    def __init__(self):
        port, self.scraped = free_port(), free_port()
        config = os.path.join(FOLDER, "parca.yaml")
        with open(config, "w") as out:
            out.write(CONFIG % (FOLDER, self.scraped))
        self.at = "http://127.0.0.1:%d" % port
        self.url = "parca+" + self.at
        # No server of debug information is asked.
        self.peer = Peer(
            [PARCA, "--config-path=" + config, "--debuginfod-upstream-servers=",
             "--debuginfo-cache-dir=" + FOLDER,
             "--http-address=127.0.0.1:%d" % port], self.at + "/ready", FOLDER)

    def ask(self, path, **words):
        status, text = get("%s/api/profiles/%s?%s" % (
            self.at, path, urllib.parse.urlencode(words)))
        return json.loads(text) if status == 200 else {"error": text}

    def names(self, profile, type_):
        """The series that a type of a profile may be in."""
        period = profile.period_type if profile.period_type[0] \
            else profile.types[-1]
        rest = [mended(t) for t in type_ + period]
        if profile.is_delta:
            rest.append("delta")
        return [":".join([t["name"]] + rest)
                for t in self.ask("types").get("types", [])
                if [t["sampleType"], t["sampleUnit"], t["periodType"],
                    t["periodUnit"]] + ["delta"] * t["delta"] == rest]

    def profile(self, series, labels):
        """All that a series has, or None."""
        answer = self.ask("query", **{
            "mode": "MODE_MERGE", "merge.query": series + labels,
            "merge.start": AGE["start"], "merge.end": AGE["end"],
            "report_type": "REPORT_TYPE_PPROF"})
        if "pprof" not in answer:
            return None
        path = os.path.join(FOLDER, "answer.pb.gz")
        with open(path, "wb") as out:
            out.write(base64.b64decode(answer["pprof"]))
        return Profile(CPPROF, path)


def mended(name):
    return re.sub(r"\W", "_", name)


def wanted(profile, i):
    """What Parca says of a type: samples as the time that they stand for."""
    times = profile.period if profile.types[i] == ("samples", "count") else 1
    return {stack: n * (times or 1) for stack, n in profile.stacks(i).items()}


def run(*words):
    return subprocess.run([CPPROF, *words], capture_output=True, text=True,
                          check=False)


def check_file(parca, n, path, series):
    """All types of a file, stack by stack."""
    profile, wrong = Profile(CPPROF, path), []
    done = run("push", "-to=" + parca.url, "-name=file%d" % n, path)
    for i, type_ in enumerate(profile.types):
        want, found = wanted(profile, i), {}
        want.pop("[unknown]", None)  # no location: Parca shows none of it
        for name in parca.names(profile, type_):
            got = parca.profile(name, '{service_name="file%d"}' % n)
            if got and got.stacks(0):
                found[name] = got.stacks(0)
        if path.endswith("perf.pb.gz"):  # addresses of no mapping are mixed up
            want = {"": sum(want.values())}
            found = {k: {"": sum(v.values())} for k, v in found.items()}
        if list(found.values()) != [want] * bool(want) or series and any(
                not name.startswith(series + ":") for name in found):
            wrong.append((type_, str(found)[:300], str(want)[:300]))
    TAP.none("%s: each stack is there with its value" %
             os.path.basename(path), wrong + [done.stderr] *
             (done.returncode or "is sent as" not in done.stderr != ""))


def check_files(parca):
    files = dict.fromkeys(fixtures(CPPROF, FOLDER))
    files.update(of_program(PROGRAM, FOLDER))
    for n, (path, series) in enumerate(files.items()):
        check_file(parca, n, path, series)


def check_large(parca):
    """More than Parca's server, or its gateway, might take at once."""
    path = os.path.join(FOLDER, "large.pb.gz")
    write_large(path, 20000, 1000)
    done = run("push", "-to=" + parca.url, "-name=large", path)
    got = parca.profile("n:n:count:n:count", '{service_name="large"}')
    TAP.same("large: in parts, and each sample once",
             (done.stderr, got and got.total("n")),
             ("", 20000 * 20001 // 2))


def check_program(parca, seconds):
    """What a program pushes in a minute, beside its own files of it."""
    said = run_program(PROGRAM, parca.url + ",push-name=shop", FOLDER,
                       "cpu=100,heap=1,block=1,mutex=1,wall=50,goroutine",
                       seconds)
    TAP.ok("program: it says which name is changed", "is sent with _" in said
           and said.count("\n") == 1, said)
    got = parca.profile("x_y_z_q:x_y_z_q:count:x_y_z_q:count",
                        '{service_name="shop"}')
    TAP.ok("program: there is some of a profile of its own",
           got and got.total("x_y_z_q") > 0)
    for kind, series, type_, near in (
            ("cpu", "process_cpu", "cpu", 0.05),
            ("wall", "wall", "wall", 0.05),
            ("heap", "memory", "alloc_space", 0.05),
            ("heap", "memory", "alloc_objects", 0.05),
            ("block", "block", "contentions", 0.05),
            ("block", "block", "delay", 0.05),
            ("mutex", "mutex", "contentions", 0.05),
            ("mutex", "mutex", "delay", 0.05)):
        whole = Profile(CPPROF, "%s/sum.%s.pb.gz" % (FOLDER, kind))
        type_ = [t for t in whole.types if t[0] == type_][0]
        whole.is_delta = True
        got = sum(p.total(type_[0]) for p in (
            parca.profile(name, '{service_name="shop"}')
            for name in parca.names(whole, type_)
            if name.startswith(series + ":")) if p)
        whole = whole.total(type_[0])
        TAP.near("program: %s %s of all intervals" % (series, type_[0]), got,
                 whole, near * whole)
        TAP.ok("program: there is some %s" % type_[0], whole > 0)


def check_scrape(parca, seconds):
    """What Parca scrapes is no more than the program has of all its time."""
    server = Server(PROGRAM, "127.0.0.1:%d" % parca.scraped,
                    CPPROF="cpu,heap=1,block=1,mutex=1,out=%s/scraped.%%k.pb.gz"
                    % FOLDER)
    time.sleep(seconds)
    server.end()
    for kind, series, type_ in (
            ("cpu", "process_cpu", "cpu:nanoseconds:cpu:nanoseconds"),
            ("heap", "allocations", "alloc_space:bytes:space:bytes"),
            ("block", "block", "delay:nanoseconds:contentions:count"),
            ("mutex", "mutex", "delay:nanoseconds:contentions:count")):
        whole = Profile(CPPROF, "%s/scraped.%s.pb.gz" % (FOLDER, kind)).total(
            type_.split(":")[0])
        got = parca.profile("%s:%s:delta" % (series, type_), '{job="server"}')
        got = got.total(type_.split(":")[0]) if got else 0
        TAP.ok("scrape: %s, of most of the time" % series,
               0.4 * whole < got < 1.1 * whole, got, whole)
    got = parca.profile("memory:inuse_space:bytes:space:bytes",
                        '{job="server"}')
    TAP.ok("scrape: what is in use", got and got.total("inuse_space") > 0)


parca = Parca()
try:
    check_files(parca)
    check_large(parca)
    check_program(parca, 60)
    check_scrape(parca, 30)
finally:
    parca.peer.end()
sys.exit(TAP.end())
