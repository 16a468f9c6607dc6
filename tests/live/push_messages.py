"""What push.py checks of profiles that arrive: what they say, in each protocol,
and that nothing is lost or sent twice."""
import gzip
import json
import os
import re
import shutil
import urllib.parse

from push_program import (KINDS, PROGRAM, TAP, TYPES, FOLDER, go_reads,
    run_by)
from push_server import (Profile, Pushed, Server, decode, parts_of, pushed, raw_of,
    seconds_of)
from otlp import Profiles
from protobuf import chunk

PUSH = "/push.v1.PusherService/Push"


def check_push():
    with Server() as server:
        ran = run_by("push=%s/base/,push-interval=1,push-name=shop.api,"
                     "push-label=region=eu,push-label=pid=%%p,"
                     "push-tenant=blue" % server.url, "work=2300")
        all_ = pushed(server)
    TAP.same("push: the program ends as it does, and says nothing",
             (ran.status, ran.err), (0, ""))
    TAP.ok("push: protoc knows every field, and there is one profile in each",
           all_ and not any(p.unknown for p in all_)
           and all(len(p.ids) == 1 and p.raw for p in all_))
    TAP.same("push: kinds", {p.kind for p in all_}, KINDS)
    counts = {kind: sum(p.kind == kind for p in all_) for kind in KINDS}
    # A busy machine makes fewer of them, and they are longer.
    TAP.ok("push: two intervals and what was left, and nothing in between",
           len(set(counts.values())) == 1 and counts["memory"] in (1, 2, 3)
           and seconds_of(p for p in all_ if p.kind == "memory") > 2.2,
           counts)
    labels = dict(all_[0].labels)
    pid = labels.pop("pid", "")
    labels.pop("__name__")
    TAP.same("push: labels", labels, {
        "__delta__": "false", "service_name": "shop.api",
        "pyroscope_spy": "cpprof", "region": "eu"})
    TAP.ok("push: %p in a label is the pid", pid.isdigit(), pid)
    TAP.ok("push: no label twice", all(p.n_labels == len(p.labels)
                                       for p in all_))
    ids = [p.ids[0] for p in all_]
    TAP.ok("push: ids are UUIDs of version 4, each another",
           len(set(ids)) == len(ids) and all(re.fullmatch(
               "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
               "[0-9a-f]{12}", i) for i in ids), ids)
    headers = all_[0].request.headers
    TAP.same("push: headers", {name: headers.get(name) for name in (
        "Content-Type", "Connect-Protocol-Version", "X-Scope-OrgID", "Expect",
        "Authorization")}, {
            "Content-Type": "application/proto",
            "Connect-Protocol-Version": "1", "X-Scope-OrgID": "blue",
            "Expect": None, "Authorization": None})
    TAP.same("push: path", {p.request.path for p in all_}, {"/base" + PUSH})
    profiles = [(p.kind, Profile(p.raw)) for p in all_]
    TAP.ok("push: sample types", all(p.types == TYPES[kind]
                                     for kind, p in profiles))
    TAP.ok("push: the first is of one interval",
           all(0.4 < p.seconds < 9 for kind, p in profiles[:5]
               if kind != "goroutine"),
           [(kind, p.seconds) for kind, p in profiles[:5]])
    cpu = [p for kind, p in profiles if kind == "process_cpu"]
    TAP.ok("push: the function that ran is there",
           any(p.total(0, "burn_here") for p in cpu))
    if shutil.which("go"):
        TAP.ok("push: go tool pprof reads all of them",
               all(go_reads(p.raw) for p in all_[:5]))


def check_ingest():
    with Server() as server:
        ran = run_by("push=%s,push-interval=1,push-protocol=ingest,"
                     "push-name=shop,push-label=a=b c,wall=50,cpu,heap,block,"
                     "mutex,goroutine" % server.url, "work=2400")
        requests = list(server.requests)
    TAP.same("ingest: the program ends as it does", (ran.status, ran.err),
             (0, ""))
    queries = [urllib.parse.parse_qs(urllib.parse.urlsplit(r.path).query)
               for r in requests]
    TAP.same("ingest: path", {urllib.parse.urlsplit(r.path).path
                              for r in requests}, {"/ingest"})
    TAP.ok("ingest: name, spy and rates",
           all(q["name"] == ["shop{a=b c}"] and q["spyName"] == ["cpprof"]
               and "format" not in q for q in queries)
           and {q["sampleRate"][0] for q in queries} == {"100", "50"}, queries)
    spans = [(int(q["until"][0]) - int(q["from"][0])) / 1e9 for q in queries]
    TAP.ok("ingest: from and until are 19 digits, an interval apart",
           all(len(q["from"][0]) == 19 for q in queries)
           and all(0.4 < span < 9 for span in spans[:6]), spans)
    by_type, ends, gaps = {}, {}, []
    for r, q in zip(requests, queries):
        parts = parts_of(r)
        types = tuple(Profile(parts["profile"]).types)
        config = parts.get("sample_type_config")
        if config:
            gaps.append(int(q["from"][0]) - ends.get(config, int(q["from"][0])))
            ends[config] = int(q["until"][0])
        config = json.loads(parts.get("sample_type_config", b"null"))
        by_type.setdefault(types, []).append(config)
    TAP.ok("ingest: where one interval ends the next begins",
           len(gaps) >= 8 and not any(gaps), gaps)
    TAP.same("ingest: kinds", set(by_type),
             {tuple(types) for types in TYPES.values()})
    TAP.same("ingest: the server has what it needs for CPU and wall time",
             [by_type[tuple(TYPES[kind])][0] for kind in ("process_cpu",
                                                          "wall")],
             [None, None])
    heap = by_type[tuple(TYPES["memory"])][0]
    TAP.ok("ingest: allocations are differences, what is in use an average",
           all(not heap[name]["cumulative"] for name in TYPES["memory"])
           and heap["inuse_space"]["aggregation"] == "average", heap)
    names = {config["delay"]["display-name"]
             for config in by_type[tuple(TYPES["block"])]}
    TAP.same("ingest: block is told from mutex", names,
             {"block_duration", "mutex_duration"})
    TAP.same("ingest: threads", by_type[("goroutine",)][0]["goroutine"], {
        "display-name": "goroutines", "units": "goroutines",
        "aggregation": "average"})


def check_sums():
    """Intervals add up to the one profile of the whole time."""
    with Server() as server:
        ran = run_by("cpu=100,heap=1,block=1,mutex=1,out=%s/sum.%%k.pb.gz,"
                     "push=%s,push-interval=1" % (FOLDER, server.url),
                     "work=2300", "burn=1000", "work=300", "quiet=1200")
        by_kind = {}
        for p in pushed(server):
            by_kind.setdefault(p.kind, []).append(Profile(p.raw))
    whole = {}
    for kind, name in (("process_cpu", "cpu"), ("memory", "heap"),
                       ("block", "block"), ("mutex", "mutex")):
        with open("%s/sum.%s.pb.gz" % (FOLDER, name), "rb") as file:
            whole[kind] = Profile(file.read())

    def both(kind, i, function=None):
        return (sum(p.total(i, function) for p in by_kind[kind]),
                whole[kind].total(i, function))

    got, wanted = both("process_cpu", 0, "burn_here")
    TAP.near("sums: CPU samples of %d intervals are those of one profile"
             % len(by_kind["process_cpu"]), got, wanted,
             2 * len(by_kind["process_cpu"]))
    TAP.ok("sums: there were some", wanted > 60, wanted)
    got, wanted = both("memory", 0, "allocate_here")
    TAP.same("sums: allocations, to the last one", (got, wanted),
             (int(ran.word("allocated")),) * 2)
    for kind in ("block", "mutex"):
        for i, unit in enumerate(TYPES[kind]):
            got, wanted = both(kind, i, "hold")
            TAP.ok("sums: %s of %s" % (unit, kind), got == wanted > 0,
                   got, wanted)


# -------------------------------------------------------------------- OTLP --

OTLP = "/v1development/profiles"


def messages(server):
    """Decoded strictly: an unknown field, an element twice or a text that is
    not UTF-8 ends the test."""
    return [Profiles(gzip.decompress(r.body)) for r in server.requests
            if r.answer in (200, 202)]


def check_otlp():
    with Server() as server:
        ran = run_by("cpu=100,heap=1,block=1,mutex=1,wall=50,goroutine,"
                     "push=otlp+%s/base/,push-interval=1,"
                     "push-label=service.version=1.3" % server.url,
                     "work=2300", "burn=600",
                     env={"OTEL_SERVICE_NAME": "shop",
                          "OTEL_RESOURCE_ATTRIBUTES":
                          "deployment.environment.name=a%2Cb,host.name=h,"
                          "nothing"})
        requests, all_ = list(server.requests), messages(server)
    TAP.same("otlp: the program ends as it does, and says what is no attribute",
             (ran.status, ran.err),
             (0, "cpprof: push: OTEL_RESOURCE_ATTRIBUTES: not KEY=VALUE with "
                 "percent-encoding: 'nothing'\n"))
    TAP.same("otlp: path", {r.path for r in requests}, {"/base" + OTLP})
    headers = requests[0].headers
    TAP.same("otlp: headers", {name: headers.get(name) for name in (
        "Content-Type", "Content-Encoding", "Connect-Protocol-Version")}, {
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "gzip", "Connect-Protocol-Version": None})
    TAP.same("otlp: all kinds", {frozenset(kind[0] for kind in m.profiles)
                                 for m in all_},
             {frozenset(types) for types in TYPES.values()})
    resource = dict(all_[0].resource)
    instance = resource.pop("service.instance.id")
    TAP.ok("otlp: one instance", len(instance) == 36 and all(
        m.resource["service.instance.id"] == instance for m in all_))
    TAP.ok("otlp: the pid is a number",
           isinstance(resource.pop("process.pid"), int))
    resource.pop("container.id", None)
    TAP.same("otlp: resource", resource, {
        "service.name": "shop", "service.version": "1.3", "host.name": "h",
        "deployment.environment.name": "a,b",
        "process.executable.name": os.path.basename(PROGRAM),
        "process.executable.path": os.path.realpath(PROGRAM),
        "telemetry.sdk.name": "cpprof", "telemetry.sdk.language": "cpp"})
    heap = [m for m in all_ if m.profiles[0][0] == "inuse_space"]
    TAP.same("otlp: allocations of all intervals, to the last one",
             sum(m.total("alloc_objects", "allocate_here") for m in heap),
             int(ran.word("allocated")))
    cpu = [m for m in all_ if m.profiles[0] == ("cpu", "nanoseconds")]
    TAP.ok("otlp: the function that ran",
           sum(m.total("cpu", "burn_here") for m in cpu) > 3e8)
    TAP.same("otlp: period", cpu[0].periods[0],
             (("cpu", "nanoseconds"), 10000000))
    mapping = [m for m in cpu[0].mappings
               if m["file"] == os.path.realpath(PROGRAM)]
    TAP.ok("otlp: who the program is", mapping and len(mapping[0].get(
        "process.executable.build_id.htlhash", "")) == 32 and
        mapping[0].get("process.executable.build_id.gnu"), mapping)


def response(rejected, text):
    return chunk(1, b"\x08" + bytes([rejected]) + chunk(2, text))


def check_otlp_answers():
    with Server([429, 502, (503, chunk(2, b"come later"))]) as server:
        ran = run_by("cpu,push=otlp+%s,push-interval=1" % server.url,
                     "quiet=9500")
        bodies = [r.body for r in server.requests]
    TAP.ok("otlp again: 429, 502 and 503, the same bytes",
           len(bodies) > 3 and len(set(bodies[:4])) == 1
           and len(set(bodies)) == len(bodies) - 3, len(bodies))
    TAP.ok("otlp again: which is said", "answers 429: no, and this is why; "
           "trying again" in ran.err and ran.err.count("\n") == 1, ran.err)
    with Server([(400, b"\x08\x03" + chunk(2, b"this is why")), 500, 408, 501,
                 301]) as server:
        ran = run_by("cpu,push=otlp+%s,push-interval=1" % server.url,
                     "quiet=6400")
        bodies = [r.body for r in server.requests]
    TAP.ok("otlp refused: all others are not tried again",
           len(bodies) == len(set(bodies)) >= 5, len(bodies))
    TAP.ok("otlp refused: with the words of the message",
           "answers 400: this is why; dropped" in ran.err, ran.err)
    TAP.same("otlp refused: all are counted", sum(
        int(n) for n in re.findall(r"dropped: (\d+)", ran.err)), 5)
    long = b"too old: " + b"v" * 8000
    with Server([(200, response(3, long)), (200, b"\xff\xff")]) as server:
        ran = run_by("cpu,push=otlp+%s,push-interval=1" % server.url,
                     "quiet=2400")
        bodies = [r.body for r in server.requests]
    TAP.ok("otlp partial: is not tried again, and is said once",
           len(bodies) == len(set(bodies)) and ran.err.count("\n") == 1
           and "rejects 3 profiles: too old: vv" in ran.err, ran.err)
    TAP.has("otlp partial: is counted", ran.err, "(dropped: 1)")


# ----------------------------------------------------------- Parca, pprof ---

def check_parca():
    """As pkg/normalizer/validate.go wants it."""
    with Server() as server:
        ran = run_by("cpu=100,heap=1,goroutine,push=parca+%s,push-interval=1,"
                     "push-name=shop,push-label=a=b\"c\\" % server.url,
                     "work=1600")
        requests = list(server.requests)
    TAP.same("parca: the program ends as it does, and says nothing",
             (ran.status, ran.err), (0, ""))
    TAP.same("parca: path", {(r.path, r.headers["Content-Type"])
                             for r in requests},
             {("/api/profiles/writeraw", "application/json")})
    series = [s for r in requests for s in json.loads(r.body)["series"]]
    labels = [{l["name"]: l["value"] for l in s["labels"]["labels"]}
              for s in series]
    TAP.same("parca: labels", {tuple(sorted(l.items())) for l in labels}, {
        (("__name__", kind), ("a", 'b"c\\'), ("service_name", "shop"))
        for kind in ("process_cpu", "memory", "goroutine")})
    raws = list(map(raw_of, requests))
    TAP.none("parca: ids count from 1, in order", [
        (kind, ids) for raw in raws for kind in ("mapping", "location",
                                                 "function")
        for ids in [ids_of(raw, kind)] if ids != list(range(1, len(ids) + 1))])
    TAP.same("parca: what was allocated", sum(
        Profile(raw).total(0, "allocate_here") for raw, l in zip(raws, labels)
        if l["__name__"] == "memory"), int(ran.word("allocated")))


def ids_of(raw, kind):
    text = decode(gzip.decompress(raw), "perftools.profiles.Profile",
                  "profile.proto")
    return [int(i) for i in re.findall(r"^%s \{\n  id: (\d+)$" % kind, text,
                                       re.M)]


def check_pprof():
    with Server([204] * 99) as server:
        ran = run_by("cpu=100,heap=1,push=pprof+%s,push-interval=1"
                     % server.url, "work=1600")
        requests = list(server.requests)
    TAP.same("pprof: the program ends as it does, and says nothing",
             (ran.status, ran.err), (0, ""))
    TAP.same("pprof: path", {(r.path, r.headers["Content-Encoding"])
                             for r in requests}, {("/v1/pprof", None)})
    profiles = [Profile(r.body) for r in requests]
    TAP.same("pprof: what was allocated", sum(
        p.total(0, "allocate_here") for p in profiles if "alloc_space" in
        p.types), int(ran.word("allocated")))


def check_custom():
    """By each protocol, with type and unit; names that are refused are not
    sent."""
    steps = ["custom=files", "weighted=pool", "custom=x:y/z?q", "custom=-",
             "quiet=2400", "end=exit"]
    for name in ("", "parca+"):
        with Server() as server:
            ran = run_by("cpu,push=%s%s,push-interval=1" % (name, server.url),
                         *steps)
            profiles = {}
            for request in server.requests:
                series = (Pushed(request).kind if not name else
                          json.loads(request.body)["series"][0]["labels"]
                          ["labels"][0]["value"])
                profiles[series] = Profile(raw_of(request))
        TAP.same("custom: series %s" % name, set(profiles),
                 {"process_cpu", "files", "pool", "x_y_z_q", "_"})
        TAP.same("custom: types and units %s" % name,
                 [profiles[k].pairs for k in ("files", "pool", "x_y_z_q", "_")],
                 [[("files", "count")], [("pool", "count"), ("space", "bytes")],
                  [("x_y_z_q", "count")], [("_", "count")]])
        TAP.same("custom: values %s" % name,
                 [profiles[k].total(i, "keep_here") for k, i in (
                     ("files", 0), ("pool", 0), ("pool", 1), ("x_y_z_q", 0))],
                 [3, 3, 6, 3])
        TAP.ok("custom: names that are changed are told once %s" % name,
               ran.status == 7 and ran.err.count("is sent with _") == 1,
               ran.err)
    with Server() as server:
        ran = run_by("push=otlp+%s,push-interval=1" % server.url, *steps)
        found = {m.profiles[0]: m for m in messages(server)}
    TAP.ok("custom: over OTLP as they are", ran.status == 7 and
           "sent with" not in ran.err and [
               found[k].total(k[0], "keep_here") for k in (
                   ("files", "count"), ("x:y/z?q", "count"))] == [3, 3],
           found.keys(), ran.err)
    pool = [m for m in found.values() if ("pool", "count") in m.profiles]
    TAP.ok("custom: with a weight and its unit", pool and
           ("space", "bytes") in pool[0].profiles and
           pool[0].total("space", "keep_here") == 6, found.keys())
    folder = os.path.join(FOLDER, "custom")
    run_by("cpu,push=%s,push-interval=1" % folder, *steps)
    TAP.same("custom: as files", {name.split(".")[0] for name in
                                  os.listdir(folder)},
             {"cpu", "files", "pool", "x_y_z_q", "_"})


def check_every():
    """CPU time of some seconds, and all that was allocated."""
    with Server() as server:
        ran = run_by("cpu=100,heap=1,push=%s,push-interval=1,push-every=4"
                     % server.url, "work=8000")
        all_ = [(p.kind, Profile(p.raw)) for p in pushed(server)]
    cpu = [p.seconds for kind, p in all_ if kind == "process_cpu"]
    TAP.ok("every: CPU time rests in between",
           2 <= len(cpu) <= 4 and sum(cpu) < 6, cpu)
    TAP.same("every: what was allocated is whole", sum(
        p.total(0, "allocate_here") for kind, p in all_ if kind == "memory"),
        int(ran.word("allocated")))
    TAP.ok("every: an interval of what grows is as long as the time between",
           max(p.seconds for kind, p in all_ if kind == "memory") > 1.5,
           [p.seconds for kind, p in all_ if kind == "memory"])


def check_budget():
    """A ten thousandth is less than what one profile takes."""
    for burn in (3000, 9000):
        with Server() as server:
            ran = run_by("cpu=1000,heap,symbolize=none,budget=0.01%%,push=%s,"
                         "push-interval=1" % server.url, "burn=%d" % burn)
            cpu = [Profile(p.raw) for p in pushed(server)
                   if p.kind == "process_cpu"]
        periods = [p.total(1) // max(p.total(0), 1) for p in cpu]
        seconds = sum(p.total(1) for p in cpu) / 1e9 / (burn / 3000)
        fewer = (max(periods) >= 2000000
                 and len(cpu) < sum(p.seconds for p in cpu) / 1.5)
        if fewer and 2.6 < seconds < 3.3:
            break
    TAP.ok("budget: the first interval has the rate that was asked for",
           periods[:1] == [1000000], periods, ran.err)
    TAP.ok("budget: later ones have less, and are longer", fewer, periods,
           [p.seconds for p in cpu])
    TAP.ok("budget: and weigh as much", 2.6 < seconds < 3.3, seconds, periods)


def check_split():
    """Pyroscope takes 16 000 samples."""
    with Server() as server:
        ran = run_by("heap=1,push=%s,push-interval=5" % server.url,
                     "stacks=20000", "quiet=6000")
        all_ = [p for p in pushed(server) if p.kind == "memory"]
    profiles = [Profile(p.raw) for p in all_]
    TAP.ok("split: no part has more", len(profiles) > 2 and all(
        len(p.rows) <= 16000 for p in profiles)
           and len({p.ids[0] for p in all_}) == len(all_),
           [len(p.rows) for p in profiles], ran.err)
    TAP.same("split: each sample is in one of them",
             sum(p.total(0, "allocate_here") for p in profiles),
             int(ran.word("allocated")))
    TAP.ok("split: and is as it was", sum(
        {"left", "right"} <= names for p in profiles for names, _ in p.rows)
           > 19000)
