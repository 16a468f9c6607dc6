#!/usr/bin/env python3
"""Profiles that are pushed, and the servers that take them or do not.

    push.py PROGRAM [B_SANITIZE [CHECK...]]

Most of it is waiting, so checks run side by side, each in a process of its own.
PROGRAM is push_worker.c. Prints TAP. What arrives is read by decoders of
others: protoc with the published definitions, Python's parsers of multipart
and of URLs, `go tool pprof`. TSan comes without the names that are taken over,
so without the hooks of fork and of the process's beginning and end.
"""
import base64
import concurrent.futures
import email.parser
import email.policy
import email.utils
import gzip
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                ".."))
from push_program import FOLDER, PROGRAM, SANITIZER, Ran, run_by  # noqa: E402
from push_server import (Profile, Pushed, Server, closed_port, decode, pushed,
    seconds_of)  # noqa: E402
from otlp import Profiles  # noqa: E402
from protobuf import chunk  # noqa: E402
from tap import Tap  # noqa: E402

HAS_HOOKS = SANITIZER != "thread"
PUSH = "/push.v1.PusherService/Push"
KINDS = {"process_cpu", "memory", "block", "mutex", "goroutine"}
TYPES = {
    "process_cpu": ["samples", "cpu"],
    "memory": ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"],
    "block": ["contentions", "delay"],
    "mutex": ["contentions", "delay"],
    "goroutine": ["goroutine"],
    "wall": ["samples", "wall"],
}
TAP = Tap()


def go_reads(raw):
    path = os.path.join(FOLDER, "go.pb.gz")
    with open(path, "wb") as out:
        out.write(raw)
    done = subprocess.run(["go", "tool", "pprof", "-raw", path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(os.environ, HOME=FOLDER), check=False)
    return done.returncode == 0 and b"PeriodType" in done.stdout


# ---------------------------------------------------------------- messages --

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


def parts_of(request):
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(
        b"Content-Type: " + request.headers["Content-Type"].encode()
        + b"\r\n\r\n" + request.body)
    return {part.get_param("name", header="Content-Disposition"):
            part.get_payload(decode=True) for part in message.iter_parts()}


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
                          "deployment.environment.name=a%2Cb,host.name=h"})
        requests, all_ = list(server.requests), messages(server)
    TAP.same("otlp: the program ends as it does, and says nothing",
             (ran.status, ran.err), (0, ""))
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
    inner = b"\x08" + bytes([rejected]) if rejected else b""
    return chunk(1, inner + chunk(2, text))


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
    with Server([(200, response(3, b"too old")), (200, b"\xff\xff")]) as server:
        ran = run_by("cpu,push=otlp+%s,push-interval=1" % server.url,
                     "quiet=2400")
        bodies = [r.body for r in server.requests]
    TAP.ok("otlp partial: is not tried again, and is said once",
           len(bodies) == len(set(bodies)) and ran.err.count("\n") == 1
           and "rejects 3 profiles: too old" in ran.err, ran.err)


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
    raws = [base64.b64decode(s["samples"][0]["rawProfile"], validate=True)
            for s in series]
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


# ------------------------------------------------------------- credentials --

def authorization(words, env=None, user_info=""):
    with Server() as server:
        ran = run_by("cpu,push=%s,push-interval=1,%s" % (
            server.url.replace("//", "//" + user_info), words),
            "quiet=300", env=env or {})
        found = {r.headers.get("Authorization") for r in server.requests}
        tenants = {r.headers.get("X-Scope-OrgID") for r in server.requests}
    return found, tenants, ran


def basic(text):
    return {"Basic " + base64.b64encode(text.encode()).decode()}


def check_credentials():
    token = os.path.join(FOLDER, "token")
    with open(token, "w", encoding="ascii") as file:
        file.write("s3cret\nmore\n")
    found = authorization("push-token-file=" + token)
    TAP.same("credentials: the first line of a file", found[0],
             {"Bearer s3cret"})
    found = authorization("push-user=123,push-token-file=" + token)
    TAP.same("credentials: with a user it is the password", found[0],
             basic("123:s3cret"))
    found = authorization("", {"PYROSCOPE_AUTH_TOKEN": "t1",
                               "PYROSCOPE_TENANT_ID": "red"})
    TAP.same("credentials: the token that Pyroscope's clients take",
             found[:2], ({"Bearer t1"}, {"red"}))
    found = authorization("", {"PYROSCOPE_BASIC_AUTH_USER": "me",
                               "PYROSCOPE_BASIC_AUTH_PASSWORD": "pw"})
    TAP.same("credentials: user and password of theirs", found[0],
             basic("me:pw"))
    found = authorization("", user_info="me:p%40w@")
    TAP.same("credentials: in the URL", found[0], basic("me:p@w"))
    found = authorization("push-token-file=%s/none" % FOLDER)
    TAP.ok("credentials: without the file nothing is sent, and it is said",
           not found[0] and "there is no token" in found[2].err,
           found[2].err)
    ran = run_by("cpu,push=http://me:hidden@127.0.0.1:%d,push-interval=1"
                 % closed_port(), "quiet=200")
    TAP.ok("credentials: are not in what is said",
           "hidden" not in ran.err and "127.0.0.1" in ran.err
           and ran.err.startswith("cpprof: push: "), ran.err)


def check_rotation_of_tokens():
    token = os.path.join(FOLDER, "changing")
    with open(token, "w", encoding="ascii") as file:
        file.write("one\n")

    def change(server):
        while not server.requests:
            time.sleep(0.05)
        with open(token, "w", encoding="ascii") as file:
            file.write("two\n")

    with Server() as server:
        threading.Thread(target=change, args=(server,), daemon=True).start()
        run_by("cpu,push=%s,push-interval=1,push-token-file=%s"
               % (server.url, token), "quiet=2400")
        found = [r.headers["Authorization"] for r in server.requests]
    TAP.ok("credentials: a file that changes is read anew",
           found[0] == "Bearer one" and found[-1] == "Bearer two", found)


# ------------------------------------------------ servers that do not take --

def check_try_again():
    with Server([429, 503, 408]) as server:
        ran = run_by("cpu,push=%s,push-interval=1" % server.url,
                     "quiet=12500")
        requests = list(server.requests)
    ids = [Pushed(r).ids for r in requests[:4]]
    TAP.ok("again: 429, 503 and 408 are tried again, under the same id",
           len(requests) > 4 and ids[0] == ids[1] == ids[2] == ids[3], ids)
    gaps = [b.at - a.at for a, b in zip(requests, requests[1:4])]
    TAP.ok("again: after a second and more, and longer each time",
           gaps[0] > 0.95 and gaps[1] > 1.9 and gaps[2] > 3.8, gaps)
    TAP.same("again: one line for all of it", ran.err.count("\n"), 1)
    TAP.ok("again: which says why", "answers 429: no, and this is why; trying "
           "again" in ran.err, ran.err)
    seconds = seconds_of(map(Pushed, requests))
    TAP.ok("again: nothing is lost", seconds > 12.2, seconds)


def check_refused():
    with Server([400, 401, 302]) as server:
        ran = run_by("cpu,push=%s,push-interval=1" % server.url,
                     "quiet=4400")
        ids = [Pushed(r).ids[0] for r in server.requests]
    TAP.ok("refused: 400, 401 and redirections are not tried again",
           len(set(ids)) == len(ids) >= 4, ids)
    TAP.ok("refused: that is said", "answers 400: no, and this is why; dropped"
           in ran.err, ran.err)
    lines = ran.err.splitlines()
    TAP.ok("refused: once, with their number, and at the end the others",
           len(lines) == 2 and sum(
               int(n) for n in re.findall(r"\(dropped: (\d+)\)", ran.err)) == 3,
           ran.err)


# As Pyroscope answers: what it was asked comes before what was wrong.
LABELS = ", ".join('label_%d="%s"' % (i, "v" * 40) for i in range(20))
WORDS = ("profile with labels '{%s}' has invalid label name 'a-b'" % LABELS)


def check_long_refusals():
    answer = json.dumps({"code": "invalid_argument", "message": WORDS})
    with Server([(400, answer.encode(), "application/json")]) as server:
        ran = run_by("cpu,push=%s,push-interval=1" % server.url, "quiet=1300",
                     "end=exit")
    TAP.ok("refused: a long reason has its begin and its end",
           re.search(r"answers 400: profile with labels '\{label_0=\"v+.* \.\.\. "
                     r".* has invalid label name 'a-b'; dropped", ran.err)
           and ran.err.count("\n") == 1, ran.err)


def endless(begin, part, limit=256 << 20):
    sent = [0]

    def answer(file):
        file.write(begin)
        while sent[0] < limit:
            sent[0] += file.write(part)
    return answer, sent


OK = b"HTTP/1.1 200 OK\r\n"


def json_answer(file):
    file.write(OK + b"Content-Type: application/json\r\nContent-Length: 21\r\n"
               b"\r\n{\"partialSuccess\":{}}")


def check_odd_answers():
    """The server has said 200, and then does something else."""
    body, n_body = endless(OK + b"\r\n", b"x" * 65536)
    head, n_head = endless(OK, b"X: " + b"y" * 65000 + b"\r\n")
    said = OK + b"Content-Length: 100\r\n\r\n"

    def drip(file):
        file.write(said)
        while True:
            file.write(b"x")
            time.sleep(1)

    with Server([body, head, lambda file: file.write(said + b"abc"),
                 json_answer, drip]) as server:
        ran = run_by("cpu,push=otlp+%s,push-interval=1" % server.url,
                     "quiet=5600", "end=exit")
        bodies = [r.body for r in server.requests]
    TAP.ok("odd: what was taken is not sent again",
           len(bodies) == len(set(bodies)) >= 5 and ran.status == 7
           and "again" not in ran.err and "warns" not in ran.err,
           len(bodies), ran.err)
    TAP.ok("odd: no answer is read without end",
           max(n_body[0], n_head[0]) < 32 << 20, n_body, n_head)

    interim, n_interim = endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 99)

    def later(file):
        file.write(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\nRetry-After: "
                   + email.utils.formatdate(time.time() + 4.5,
                                            usegmt=True).encode()
                   + b"\r\n\r\n")

    with Server([interim, later]) as server:
        ran = run_by("cpu,push=otlp+%s,push-interval=1" % server.url,
                     "quiet=9000")
        requests = list(server.requests)
    TAP.ok("odd: a server that only says 100 is tried again",
           len(requests) > 3 and requests[0].body == requests[1].body
           == requests[2].body and n_interim[0] < 32 << 20
           and "trying again" in ran.err, len(requests), n_interim, ran.err)
    TAP.ok("odd: not before the date that it asks for",
           requests[2].at - requests[1].at > 3,
           [r.at - requests[0].at for r in requests])


def check_silent():
    """Of a server that was silent before nothing is hoped for at the end."""
    for more in range(3):
        with Server(["silence"] * 99) as server:
            ran = Ran(server.url, "kinds=1", "interval=1",
                      "quiet=%d" % (13500 + 1000 * more), "stop")
        if float(ran.word("stop")) < 1.5:
            break
    TAP.ok("silent: the end does not wait for it",
           float(ran.word("stop")) < 1.5, ran.out)
    TAP.ok("silent: what is lost is counted", re.search(r"dropped: \d\d", ran.out),
           ran.out)


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


def check_away():
    port = closed_port()
    later = []

    def come():
        time.sleep(3.5)
        later.append(Server(port=port))

    thread = threading.Thread(target=come)
    thread.start()
    ran = run_by("cpu,push=http://127.0.0.1:%d,push-interval=1" % port,
                 "work=9500")
    thread.join()
    all_ = pushed(later[0])
    later[0].close()
    seconds = seconds_of(all_)
    TAP.ok("away: what was taken meanwhile is sent later", seconds > 9.2,
           seconds)
    TAP.ok("away: and that is said once", ran.err.count("\n") == 1
           and "trying again" in ran.err, ran.err)


def check_bound():
    port, bound = closed_port(), 6000
    later = []

    def come():
        time.sleep(8.2)
        later.append(Server(port=port))

    thread = threading.Thread(target=come)
    thread.start()
    ran = Ran("http://127.0.0.1:%d" % port, "queue=%d" % bound, "kinds=1",
              "interval=1", "quiet=11500", "stop")
    thread.join()
    requests = later[0].requests
    later[0].close()
    # One may just be written when the server comes.
    early = [r for r in requests if Profile(Pushed(r).raw).until
             < requests[0].at - 0.8]
    TAP.ok("bound: what waited was no more than it, and not nothing",
           0 < sum(len(r.body) for r in early) <= bound,
           [len(r.body) for r in requests])
    TAP.ok("bound: drops are told to who asked", "dropped" in ran.out,
           ran.out)
    TAP.same("bound: nothing is printed", ran.err, "")


def end_by(how):
    if not HAS_HOOKS:
        return
    with Server() as server:
        ran = run_by("cpu,push=%s,push-interval=60" % server.url,
                     "burn=300", "end=" + how)
        got = [Profile(p.raw).total(0) for p in pushed(server)]
    TAP.ok("end: %s sends what there is" % how, ran.status == 7
           and len(got) == 1 and got[0] > 10, ran.status, got, ran.err)
    with Server(["silence"] * 99) as server:
        ran = run_by("push=%s,push-interval=1" % server.url, "work=1500",
                     "end=" + how)
    # It is silent for 30 s.
    TAP.ok("end: %s does not wait for a server that is silent" % how,
           ran.status == 7 and ran.seconds < 1.5 + 2 + 0.5 + 6,
           ran.status, ran.seconds)


def slowly(file):
    time.sleep(0.6)
    file.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def check_end_at_once():
    """One after the other the five would take longer than there is time."""
    for _ in range(5):
        with Server([slowly] * 9) as server:
            ran = run_by("push=%s,push-interval=60" % server.url, "work=300",
                         "end=exit")
            kinds = {Pushed(r).kind for r in server.requests}
        if ran.status != 7 or ran.err == "":
            break
    TAP.same("end: a server that takes its time has all kinds",
             (ran.status, kinds, ran.err), (7, KINDS, ""))


def check_slow_names():
    """No name server answers; the resolver's thread is not to be ended."""
    library = os.path.join(os.path.dirname(PROGRAM), "slow_names.so")
    for how, status in (("exit", 7), ("_exit", 7), ("thread", 0)):
        ran = run_by("push=http://pyroscope.example:4040,push-interval=1",
                     "work=1500", "end=" + how, env={"LD_PRELOAD": library})
        TAP.ok("names: %s does not wait for the resolver" % how,
               ran.status == status, ran.status, ran.err)
        TAP.ok("names: %s says what is lost" % how,
               re.search(r"dropped: \d", ran.err), ran.err)
    ran = Ran("http://pyroscope.example:4040", "kinds=1", "interval=1",
              "quiet=1500", "stop", "again", "stop",
              env={"LD_PRELOAD": library})
    TAP.ok("names: stop does not wait, either", ran.status == 0
           and len(re.findall(r"^stop ", ran.out, re.M)) == 2, ran.out)


def check_exit():
    end_by("exit")


def check_exit_at_once():
    end_by("_exit")


def check_quick_exit():
    end_by("quick")


def check_end_of_openssl():
    """What is sent first at the end, when the program's OpenSSL has ended."""
    if SANITIZER != "none":
        return
    library = os.path.join(os.path.dirname(os.path.abspath(PROGRAM)), "..",
                           "..", "libcpprof.so")
    words = "push=http://127.0.0.1:%d,push-interval=60" % closed_port()
    done = subprocess.run(
        [sys.executable, "-c", "import ssl; ssl.create_default_context()"],
        env=dict(os.environ, LD_PRELOAD=library, CPPROF=words),
        stderr=subprocess.PIPE, check=False)
    TAP.ok("end: a program whose OpenSSL ended before ends as it does alone",
           done.returncode == 0 and b"cpprof: push: " in done.stderr,
           done.returncode, done.stderr)


def check_end():
    with Server(["silence"] * 99) as server:
        ran = Ran(server.url, "interval=1", "work=1200", "stop", "again",
                  "stop")
    times = [float(t) for t in re.findall(r"^stop (.*)$", ran.out, re.M)]
    TAP.ok("end: stop is bounded, and one may start again",
           ran.out.count("start OK") == 2 and times and max(times) < 6,
           ran.out)


# --------------------------------------------------------------------- TLS --

def check_tls():
    if not shutil.which("openssl"):
        TAP.skip("TLS", "no openssl here")
        return
    key, certificate = FOLDER + "/key.pem", FOLDER + "/certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
         "1", "-subj", "/CN=localhost", "-addext", "subjectAltName="
         "DNS:localhost", "-keyout", key, "-out", certificate], check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Server() as server:
        server.http.socket = context.wrap_socket(server.http.socket,
                                                 server_side=True)
        words = "cpu,push=%s,push-interval=1" % server.url.replace(
            "http://127.0.0.1", "https://localhost")
        ran = run_by(words, "quiet=1300", "end=exit")
        TAP.ok("TLS: a certificate that nobody vouches for is refused",
               not server.requests and "certificate" in ran.err
               and ran.status == 7, ran.err, ran.status)
        ran = run_by(words, "quiet=1300", "end=exit",
                     env={"SSL_CERT_FILE": certificate})
        TAP.ok("TLS: and one that is believed is not", ran.status == 7
               and server.requests and not ran.err, ran.err, ran.status)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ran = run_by("cpu,push=https://localhost:%d,push-interval=1"
                     % silent.getsockname()[1], "quiet=1300", "end=exit")
    TAP.ok("TLS: a process ends in the middle of a handshake",
           ran.status == 7 and ran.seconds < 12, ran.status, ran.seconds)


# -------------------------------------------------------------- processes ---

def check_fork():
    if not HAS_HOOKS:
        return
    with Server() as server:
        ran = run_by("cpu,push=%s,push-interval=2,push-label=pid=%%p"
                     % server.url, "fork=300", "fork=4000")
        pids = [p.labels["pid"] for p in pushed(server)]
    children = re.findall(r"^child (\d+)$", ran.out, re.M)
    TAP.ok("fork: a child of less than an interval sends nothing",
           children[0] not in pids, pids, children)
    TAP.ok("fork: a longer one sends its own", children[1] in pids, pids,
           children)
    TAP.ok("fork: its parent goes on", len(set(pids) - set(children)) == 1,
           pids, children)
    with Server() as server:
        ran = Ran(server.url, "interval=1", "labels=pid=%p", "fork=2500")
        pids = {p.labels["pid"] for p in pushed(server)}
    TAP.same("fork: a program that asked itself has not asked for children",
             len(pids), 1)


def check_manners():
    with Server() as server:
        ran = run_by("push=%s,push-interval=1" % server.url, "work=1500",
                     "fds", "threads", "quiet=900", "maps=libcurl")
        threads = [Profile(p.raw) for p in pushed(server)
                   if p.kind == "goroutine"]
    TAP.same("manners: no descriptor of the program's table", ran.word("fds"),
             "3")
    n, n_open = map(int, ran.word("threads").split())
    TAP.ok("manners: threads block all signals", n >= 2 and n_open == 0,
           ran.word("threads"))
    TAP.same("manners: they are in no profile", threads[-1].total(0), 1)
    TAP.same("manners: libcurl is there", ran.word("maps"), "libcurl yes")
    ran = run_by("cpu,push=%s/quiet,push-interval=1" % FOLDER, "work=1200",
                 "maps=libcurl")
    TAP.same("manners: and not for files", ran.word("maps"), "libcurl no")


def check_words():
    wrong = {
        "push=ftp://x": "neither", "push=rel/ative": "neither",
        "push=http://me:pass/word@host": "is written %2F",
        "push=http://": "neither", "push=http://a/?x=1": "neither",
        "push=/x/%t/%k": "place", "push=http://a,push-name=a b": "a name has",
        "push=http://a,push-label=9=x": "no label",
        "push=http://a,push-label=a=1,push-label=a=2": "taken",
        "push=http://a,push-interval=0": "1 to 3600",
        "push=http://a,push-every=5": "no less than",
        "push=http://a,push-protocol=grpc": "push, ingest, otlp, pprof or parca",
        "push=http://a,budget=101%": "such as 1%",
        "push=http://a,budget=1": "such as 1%",
        "push=http://a,budget=0.0%": "such as 1%",
        "budget=1%": "without push=",
        "push-name=x": "without push=", "push=http://a,record=/x": "beside",
        "push=http://a,debug=1": "protobuf",
    }
    for words, part in wrong.items():
        ran = run_by(words, "quiet=1")
        part = part.replace("neither", "no http:// or https:// URL")
        TAP.ok("words: %s" % words, ran.status == 0 and part in ran.err
               and "pass/word" not in ran.err
               and ran.err.count("\n") == 1, ran.err)
    ran = Ran("http://127.0.0.1:1", "kinds=64", "quiet=1")
    TAP.ok("words: a kind that there is not", "INVALID" in ran.out, ran.out)
    with Server() as server:
        ran = Ran(server.url, "interval=1", "again")
    TAP.ok("words: once at a time", "BUSY" in ran.out, ran.out)


# ------------------------------------------------------------------- files --

def check_files():
    folder = os.path.join(FOLDER, "kept")
    ran = run_by("cpu,heap,push=%s,push-interval=1,push-keep=2" % folder,
                 "work=4500")
    names = sorted(os.listdir(folder))
    TAP.same("files: the newest two of each kind, and nothing else",
             [re.sub(r"\.\d+\.\d+\.", ".P.T.", name) for name in names],
             ["cpu.P.T.pb.gz"] * 2 + ["heap.P.T.pb.gz"] * 2)
    TAP.same("files: nothing is said", (ran.status, ran.err), (0, ""))
    raws = []
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            raws.append(file.read())
    if shutil.which("go"):
        TAP.ok("files: go tool pprof reads each", all(map(go_reads, raws)))
    TAP.same("files: a folder that is made is its user's alone",
             oct(os.stat(folder).st_mode & 0o777), "0o700")
    pattern = os.path.join(FOLDER, "%e-%k", "%p-%t.gz")
    run_by("goroutine,push=file://%s,push-interval=1" % pattern, "work=1300")
    made = os.listdir(os.path.join(FOLDER, "push_worker-goroutine"))
    TAP.ok("files: a pattern", len(made) == 2 and all(
        re.fullmatch(r"\d+-\d+\.gz", name) for name in made), made)
    pattern = os.path.join(FOLDER, "shared", "%k-%t.gz")
    # Each makes one, at its end.
    threads = [threading.Thread(target=run_by, args=(
        "goroutine,symbolize=none,push=%s,push-interval=600" % pattern,
        "work=300"))
               for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = os.listdir(os.path.join(FOLDER, "shared"))
    TAP.ok("files: of processes with the same name and second none is lost",
           len(made) == 12 and all(re.fullmatch(r"goroutine-\d+\.gz", name)
                                   for name in made), made)
    blocked = os.path.join(FOLDER, "blocked")
    with open(blocked, "w", encoding="ascii"):
        pass
    ran = run_by("cpu,push=%s,push-interval=1" % blocked, "work=2300")
    TAP.ok("files: where there can be none it is said once",
           ran.status == 0 and ran.err.count("\n") == 1
           and "Not a directory" in ran.err, ran.err)


# ASan's malloc is its own, so there is no heap profile; and it does not know
# that threads of a forked child have the stacks of its parent's threads.
NOT_ASAN = [check_push, check_otlp, check_ingest, check_sums, check_files,
            check_fork, check_split, check_every, check_parca, check_pprof,
            check_end_at_once, check_slow_names]


def check_without_heap():
    """What cannot be had is said once, and the others come."""
    with Server() as server:
        ran = run_by("push=%s,push-interval=1" % server.url, "work=2300")
        kinds = {p.kind for p in pushed(server)}
    TAP.same("no heap: the others come", kinds, KINDS - {"memory"})
    TAP.ok("no heap: it is said once", ran.err.count("\n") == 1
           and "allocations do not come" in ran.err, ran.err)


def runs(check):
    """Does the sanitizer have what it takes?"""
    if SANITIZER == "none":
        return check != check_without_heap
    return check not in NOT_ASAN if HAS_HOOKS else check in (check_bound,
                                                            check_end)


# The longest first.
CHECKS = [check_silent, check_odd_answers, check_bound, check_away, check_try_again,
          check_split, check_every, check_budget, check_parca, check_pprof, check_files, check_sums,
          check_fork, check_tls, check_without_heap, check_exit,
          check_exit_at_once, check_quick_exit, check_end, check_end_at_once,
          check_slow_names,
          check_end_of_openssl, check_push,
          check_ingest, check_otlp, check_otlp_answers, check_credentials, check_rotation_of_tokens,
          check_refused, check_long_refusals, check_manners, check_words]
AT_ONCE = 5


def run_alone(check):
    return subprocess.run(
        [sys.executable, os.path.abspath(__file__), PROGRAM, SANITIZER,
         check.__name__], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        check=False)


def tell_again(check, done):
    """Under numbers of ours; that it broke off counts, too."""
    for line in done.stdout.decode(errors="replace").splitlines():
        found = re.match(r"(not )?ok \d+ - (.*?)(?: # SKIP (.*))?$", line)
        if found and found[3]:
            TAP.skip(found[2], found[3])
        elif found:
            TAP.ok(found[2], not found[1])
        elif line.startswith("#"):
            print(line)
    if not re.search(rb"^1\.\.\d+$", done.stdout, re.M):
        TAP.ok("%s comes to its end" % check.__name__, False,
               done.stderr.decode(errors="replace"))


def main():
    if not shutil.which("protoc"):
        print("1..0 # SKIP no protoc")
        return 0
    named = sys.argv[3:]
    if named:
        for check in CHECKS:
            if check.__name__ in named:
                check()
    else:
        checks = [check for check in CHECKS if runs(check)]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for check, done in zip(checks, pool.map(run_alone, checks)):
                tell_again(check, done)
    shutil.rmtree(FOLDER, ignore_errors=True)
    return TAP.end()


if __name__ == "__main__":
    sys.exit(main())
