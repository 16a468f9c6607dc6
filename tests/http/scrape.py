#!/usr/bin/env python3
"""What Grafana Alloy and Parca do with a program, by their rules.

    scrape.py PROGRAM      TAP

PROGRAM is program.c. Intervals are shorter than theirs; nothing else is.
Sources: alloy internal/component/pyroscope/scrape (scrape.go, target.go,
validate.go, delta_profiles.go), parca pkg/scrape/scrape.go, pkg/config.
"""
import http.client
import os
import sys
import threading

from proto import Profile
from served import Server, Tap

TAP = Tap()
ROUNDS = 4
DELTA_SECONDS = 2  # Alloy: its interval less one; Parca: its interval

# Path, parameters. Those of a stretch of time get `seconds`.
ALLOY = [("/debug/pprof/allocs", False), ("/debug/pprof/block", False),
         ("/debug/pprof/goroutine", False), ("/debug/pprof/mutex", False),
         ("/debug/pprof/profile", True)]
ALLOY_MORE = [("/debug/fgprof", True), ("/debug/pprof/delta_heap", False),
              ("/debug/pprof/delta_mutex", False),
              ("/debug/pprof/delta_block", False),
              ("/debug/pprof/wall", True), ("/debug/pprof/offcpu", True)]
PARCA = [("/debug/pprof/allocs", True), ("/debug/pprof/heap", False),
         ("/debug/pprof/block", True), ("/debug/pprof/goroutine", False),
         ("/debug/pprof/mutex", True), ("/debug/pprof/profile", True)]

# What Alloy makes differences of (delta_profiles.go).
CUMULATIVE = {"/debug/pprof/allocs": [("alloc_objects", "count"),
                                      ("alloc_space", "bytes")],
              "/debug/pprof/mutex": [("contentions", "count"),
                                     ("delay", "nanoseconds")],
              "/debug/pprof/block": [("contentions", "count"),
                                     ("delay", "nanoseconds")]}
# What series are named by (Pyroscope's and Parca's sample types).
TYPES = {"/debug/pprof/profile": [("samples", "count"),
                                  ("cpu", "nanoseconds")],
         "/debug/pprof/heap": [("alloc_objects", "count"),
                               ("alloc_space", "bytes"),
                               ("inuse_objects", "count"),
                               ("inuse_space", "bytes")],
         "/debug/pprof/goroutine": [("goroutine", "count")]}
TYPES["/debug/pprof/allocs"] = TYPES["/debug/pprof/heap"]
TYPES["/debug/pprof/delta_heap"] = TYPES["/debug/pprof/heap"]
for name in ("block", "mutex"):
    TYPES["/debug/pprof/" + name] = CUMULATIVE["/debug/pprof/" + name]
    TYPES["/debug/pprof/delta_" + name] = CUMULATIVE["/debug/pprof/" + name]
for name in ("wall", "offcpu"):
    TYPES["/debug/pprof/" + name] = [("samples", "count"),
                                     ("wall", "nanoseconds")]
TYPES["/debug/fgprof"] = [("samples", "count"), ("time", "nanoseconds")]


def scrape(server, path, seconds, agent):
    """Status, headers, body, by a client that keeps its connection."""
    c = http.client.HTTPConnection(server.host, server.port,
                                   timeout=10 + seconds)
    c.request("GET", path + ("?seconds=%d" % seconds if seconds else ""),
              headers={"User-Agent": agent, "Accept-Encoding": "gzip"})
    r = c.getresponse()
    found = r.status, r.headers, r.read()
    c.close()
    return found


def scrape_all(server, targets, agent):
    """All paths at once, as both do."""
    found = {}

    def one(path, is_timed):
        found[path] = scrape(server, path, DELTA_SECONDS if is_timed else 0,
                             agent)

    threads = [threading.Thread(target=one, args=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


# ---------------------------------------------------------------- rules ----

def alloy_refuses(answer):
    """validate.go: the reason, or nothing."""
    status, headers, body = answer
    if not 200 <= status < 300:
        return "status %d" % status
    kind = headers.get("Content-Type", "")
    if not kind.startswith("application/octet-stream"):
        return "content type %r" % kind
    if not body:
        return "empty"
    if body[:1] in b"<{[":
        return "HTML or JSON"
    if body[:2] != b"\x1f\x8b" and body[0] & 7 not in (0, 1, 2, 5):
        return "neither gzip nor protobuf"
    return None


def parca_refuses(answer):
    """scrape.go, and the checks of google/pprof and of Parca's server."""
    status, _, body = answer
    if status != 200:
        return "status %d" % status
    p = Profile(body)
    if p.ids != list(range(1, len(p.ids) + 1)):
        return "locations are not counted from 1"
    if [m[1] for m in p.mappings] != list(range(1, len(p.mappings) + 1)):
        return "mappings are not counted from 1"
    if len(set(p.strings)) != len(p.strings) or p.strings[0] != "":
        return "a string is there twice"
    if any(len(v) != len(p.types) for v in p.samples.values()):
        return "values are not as many as types"
    if any(c.startswith("executableInfo=") for c in p.comments):
        return "executableInfo, which must be as many as mappings"
    return None


def alloy_difference(before, after, types):
    """fastdelta: by addresses and labels; what is no difference stays."""
    which = [after.types.index(t) for t in types]
    found = {}
    for key, values in after.samples.items():
        old = before.samples.get(key, [0] * len(values))
        found[key] = [v - old[k] if k in which else v
                      for k, v in enumerate(values)]
    return found, which


# ---------------------------------------------------------------- tests ----

def test_alloy(server):
    rounds = [scrape_all(server, ALLOY + ALLOY_MORE, "Alloy/v1.5.0")
              for _ in range(ROUNDS)]
    for path, is_timed in ALLOY + ALLOY_MORE:
        reasons = [alloy_refuses(r[path]) for r in rounds]
        TAP.ok("Alloy takes %s" % path, not any(reasons), reasons)
        kinds = {tuple(Profile(r[path][2]).types) for r in rounds}
        TAP.ok("its types are those that series are named by, and stay",
               kinds == {tuple(TYPES[path])}, kinds)
        if is_timed:
            durations = [Profile(r[path][2]).duration / 1e9 for r in rounds]
            TAP.ok("it has the seconds that were asked for", all(
                DELTA_SECONDS <= d < DELTA_SECONDS + 3 for d in durations),
                durations)
    return [{path: Profile(answer[2]) for path, answer in r.items()}
            for r in rounds]


def test_differences(rounds):
    for path, types in CUMULATIVE.items():
        problems, total = [], 0
        for before, after in zip(rounds, rounds[1:]):
            before, after = before[path], after[path]
            if before.repeated or after.repeated:
                problems.append("a sample is there twice")
            gone = set(before.samples) - set(after.samples)
            if gone:
                problems.append("gone: %s" % gone)
            found, which = alloy_difference(before, after, types)
            sinks = [v for v in found.values() if any(v[k] < 0 for k in which)]
            if sinks:
                problems.append("less than before: %s" % sinks)
            total += sum(v[which[0]] for v in found.values())
        TAP.ok("%s: Alloy's differences are never less than nothing" % path,
               not problems, *problems)
        TAP.ok("and there are some", total > 0, total)


def test_delta_paths(rounds):
    """godeltaprof: what is sent adds up to what is counted."""
    for path, whole, value in (
            ("/debug/pprof/delta_mutex", "/debug/pprof/mutex", 0),
            ("/debug/pprof/delta_block", "/debug/pprof/block", 0),
            ("/debug/pprof/delta_heap", "/debug/pprof/allocs", 1)):
        sent = [r[path].total(value) for r in rounds]
        counted = [r[whole].total(value) for r in rounds]
        TAP.ok("%s: never less than nothing, and something" % path,
               min(sent) >= 0 and sum(sent) > 0, sent)
        # As much as was counted a round before, and no more than a round
        # later; what is scaled up is rounded.
        sums = [sum(sent[:i + 1]) for i in range(ROUNDS)]
        TAP.ok("it adds up to what %s has" % whole.rpartition("/")[2], all(
            0.98 * counted[i - 1] <= sums[i] <= 1.02 * counted[i + 1]
            for i in range(1, ROUNDS - 1)), sums, counted)


def test_parca(server):
    rounds = [scrape_all(server, PARCA, "Parca/v0.24.0") for _ in range(2)]
    for path, is_timed in PARCA:
        reasons = [parca_refuses(r[path]) for r in rounds]
        TAP.ok("Parca takes %s" % path, not any(reasons), reasons)
        p = Profile(rounds[1][path][2])
        TAP.ok("its types are those that series are named by",
               p.types == TYPES[path], p.types)
        # Whether it is a series of differences is told by that.
        TAP.ok("a stretch of time has a duration, a state has none",
               (p.duration >= DELTA_SECONDS * 1e9) == is_timed, p.duration)


def main():
    server = Server(os.path.abspath(sys.argv[1]), "127.0.0.1:0")
    try:
        rounds = test_alloy(server)
        test_differences(rounds)
        test_delta_paths(rounds)
        test_parca(server)
    finally:
        server.end()
    return TAP.end()


sys.exit(main())
