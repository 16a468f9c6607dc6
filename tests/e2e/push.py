#!/usr/bin/env python3
"""`cpprof push`: files that are sent to servers.

    push.py CPPROF

Prints TAP. Servers are those of tests/live/push_server.py, and what arrives is
read by decoders of others.
"""
import base64
import gzip
import json
import os
import random
import re
import subprocess
import sys
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "http"),
                 os.path.join(HERE, "..", "live")]
import proto  # noqa: E402
from otlp import Profiles  # noqa: E402
from protobuf import chunk, varint  # noqa: E402
from push_server import Server, closed_port, pushed, raw_of  # noqa: E402
from tap import scratch_folder, Tap  # noqa: E402

CPPROF = os.path.abspath(sys.argv[1])
FIXTURES = os.path.join(HERE, "..", "fixtures")
CPU = os.path.join(FIXTURES, "go.cpu.pb.gz")
HEAP = os.path.join(FIXTURES, "go.heap.pb.gz")
MUTEX = os.path.join(FIXTURES, "go.mutex.pb.gz")
FOLDER = scratch_folder("cpprof-push-")
TAP = Tap()


def run(*words, **env):
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("OTEL_", "CURL_", "SSL_"))
                   and "proxy" not in key.lower()}
    return subprocess.run([CPPROF, "push"] + list(words), capture_output=True,
                          env=dict(environment, **env), cwd=FOLDER, text=True,
                          check=False)


def sums(data, i):
    """How many samples, and the sum of value i."""
    rows = [[n for f, v in proto.fields(sample) if f == 2
             for n in proto.numbers(v)]
            for f, sample in proto.fields(data) if f == 2]
    return len(rows), sum(row[i] for row in rows)


def content(path):
    with gzip.open(path) as file:
        return file.read()


def refused(name, done, why):
    TAP.ok("refused: " + name, done.returncode == 2 and why in done.stderr
           and done.stderr.count("\n") == 1 and not done.stdout,
           done.returncode, done.stderr)


def check_otlp():
    with Server() as server:
        done = run(CPU, HEAP, "-to=otlp+" + server.url,
                   "-labels=service.version=1.2", OTEL_SERVICE_NAME="shop")
        requests = list(server.requests)
    TAP.same("otlp: ends well and says nothing",
             (done.returncode, done.stdout, done.stderr), (0, "", ""))
    TAP.same("otlp: where, and how", [
        (r.path, r.headers["Content-Type"], r.headers["Content-Encoding"])
        for r in requests], [("/v1development/profiles",
                              "application/x-protobuf", "gzip")] * 2)
    cpu, heap = [Profiles(gzip.decompress(r.body)) for r in requests]
    TAP.same("otlp: sums", (cpu.total("cpu"), heap.total("inuse_space")),
             (sums(content(CPU), 1)[1], sums(content(HEAP), 3)[1]))
    TAP.same("otlp: whose they are", cpu.resource,
             {"service.name": "shop", "service.version": "1.2"})
    with Server() as server:
        run("-to", "otlp+" + server.url, "-name", "other", CPU,
            OTEL_SERVICE_NAME="shop")
        found = Profiles(gzip.decompress(server.requests[0].body)).resource
    TAP.same("otlp: the word comes before the variable", found,
             {"service.name": "other"})


def check_answers():
    with Server([503]) as server:
        done = run("-to=otlp+" + server.url, CPU)
        bodies = [r.body for r in server.requests]
    TAP.ok("answers: 503 is tried again, with the same bytes",
           done.returncode == 0 and len(bodies) == 2
           and bodies[0] == bodies[1] and "trying again" in done.stderr,
           done.stderr)
    with Server([503] * 9) as server:
        done = run("-to=otlp+" + server.url, "-give_up=0", CPU, HEAP)
        n = len(server.requests)
    refused("a server that never can", done, "answers 503")
    TAP.same("answers: and the next file is not tried", n, 1)
    with Server([(400, chunk(2, b"no such thing"))]) as server:
        done = run("-to=otlp+" + server.url, CPU)
        n = len(server.requests)
    refused("400, with its words and the file", done,
            "answers 400: no such thing; not sent: " + CPU)
    TAP.same("answers: it is not tried again", n, 1)
    for body in (b'{"code":"invalid_argument","message":"a \\"b\\" c"}',
                 b'{"code":3, "message": "a \\"b\\" c", "details":[]}',
                 b'a "b" c\n'):
        with Server([(400, body, "application/json")]) as server:
            done = run("-to=" + server.url, CPU)
        refused("with what %s says" % body.decode().strip(), done,
                'answers 400: a "b" c; not sent: ' + CPU)
    check_taken_in_part()
    with Server([packed_refusal]) as server:
        done = run("-to=" + server.url, CPU)
    refused("400, whose words are compressed", done,
            "answers 400: no such thing; not sent: " + CPU)
    done = run("-to=otlp+http://127.0.0.1:%d" % closed_port(), "-give_up=0",
               CPU)
    refused("nobody there", done, "not sent")
    with Server(["silence"] * 9) as server:
        done = run("-to=otlp+" + server.url, "-give_up=2", CPU)
        n = len(server.requests)
    refused("a server that is silent", done, "; not sent: ")
    TAP.same("answers: its silence is a part of the time", n, 1)


# As the collector's receivers answer: what it is about may be long.
LONG = b"these are too old: " + b"v" * 8000 + b" and that is why"
LONG_SHOWN = r"these are too old: v+ \.\.\. v+ and that is why"
REJECTED = chunk(1, b"\x08\x07" + chunk(2, LONG))
REJECTED_JSON = (b'{"partialSuccess": {"rejectedProfiles": "7", '
                 b'"errorMessage": "too \\"old\\""}}')


def packed_refusal(file):
    body = gzip.compress(b"no such thing")
    file.write(b"HTTP/1.1 400 No\r\nContent-Encoding: gzip\r\n"
               b"Content-Length: %d\r\n\r\n" % len(body) + body)


def check_taken_in_part():
    for name, answer, why in (
            ("in protobuf", (200, REJECTED), LONG_SHOWN),
            ("in JSON", (200, REJECTED_JSON, "application/json"),
             'too "old"')):
        with Server([answer]) as server:
            done = run("-to=otlp+" + server.url, CPU, HEAP)
            n = len(server.requests)
        TAP.ok("answers: what is rejected ends it, with its words, " + name,
               done.returncode == 2 and n == 1 and re.search(
                   ": rejects 7 profiles: %s: %s$" % (why, CPU), done.stderr,
                   re.M), done.returncode, n, done.stderr)
    with Server([(200, chunk(1, chunk(2, b"slow down")))]) as server:
        done = run("-to=otlp+" + server.url, CPU)
    TAP.ok("answers: a warning is said", done.returncode == 0
           and ": warns: slow down\n" in done.stderr, done.stderr)
    with Server([(400, chunk(2, LONG))]) as server:
        done = run("-to=otlp+" + server.url, CPU)
    TAP.matches("answers: a long refusal has its begin and its end",
                "answers 400: %s; not sent" % LONG_SHOWN, done.stderr)


def check_recorded_answers():
    """What the servers of tests/peers said, word by word."""
    with open(os.path.join(HERE, "..", "data", "answers.json")) as file:
        recorded = json.load(file)
    path = write_random("recorded.pb", 200, 400)
    for one in recorded:
        name = "recorded: %s, %s: %s" % (one["peer"], one["protocol"],
                                         one["what"])
        with Server([(one["status"], one["body"].encode(),
                      one.get("type"))]) as server:
            done = run("-to=" + server.url, "-protocol=" + one["protocol"],
                       path)
            n = len(server.requests)
            values = sum(values_of(r) for r in server.requests
                         if r.answer == 200)
        said, words = done.stderr, one.get("words", "")
        if one["outcome"] == "refused":
            TAP.ok(name, done.returncode == 2 and n == 1 and words in said
                   and "not sent" in said, said, n)
        elif one["outcome"] == "again":
            TAP.ok(name, done.returncode == 0 and n == 2 and words in said
                   and "trying again" in said, said, n)
        else:
            TAP.ok(name, done.returncode == 0 and not said
                   and n == (3 if one["outcome"] == "halved" else 1), said, n)
        if one["outcome"] in ("halved", "again"):
            TAP.same(name + ": each sample once", values, 200 * 201 // 2)


def check_pyroscope():
    with Server() as server:
        done = run(CPU, HEAP, MUTEX, "-to=" + server.url, "-labels=region=eu",
                   "-tenant=blue")
        all_, headers = pushed(server), server.requests[0].headers
    TAP.same("pyroscope: ends well", (done.returncode, done.stderr), (0, ""))
    TAP.same("pyroscope: series", [p.kind for p in all_],
             ["process_cpu", "memory", "mutex"])
    TAP.ok("pyroscope: labels", all(
        p.labels["region"] == "eu" and p.labels["service_name"]
        and not p.unknown for p in all_), [p.labels for p in all_])
    TAP.same("pyroscope: tenant", headers["X-Scope-OrgID"], "blue")
    TAP.same("pyroscope: sums", sums(gzip.decompress(all_[0].raw), 1),
             sums(content(CPU), 1))
    with Server() as server:
        run(CPU, "-to=" + server.url, "-protocol=ingest", "-name=shop")
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(
            server.requests[0].path).query)
    TAP.ok("pyroscope: ingest", query["name"] == ["shop{}"]
           and len(query["from"][0]) == 19, query)


def check_parca():
    """Ids that count from 1 in order, whatever those of the file are."""
    body = chunk(1, b"\x08\x01\x10\x02") + chunk(2, chunk(1, b"\x63") + chunk(
        2, b"\x07")) + chunk(4, b"\x08\x63" + chunk(4, b"\x08\x62")) + chunk(
            5, b"\x08\x62\x10\x03") + b"".join(
                chunk(6, s) for s in (b"", b"n", b"count", b"f"))
    path = os.path.join(FOLDER, "ids.pb")
    with open(path, "wb") as file:
        file.write(body)
    with Server() as server:
        done = run(path, CPU, "-to=parca+" + server.url, "-name=shop",
                   "-labels=region=eu")
        sent = [json.loads(r.body)["series"][0] for r in server.requests]
    TAP.same("parca: ends well", (done.returncode, done.stderr), (0, ""))
    first, cpu = [gzip.decompress(base64.b64decode(
        s["samples"][0]["rawProfile"])) for s in sent]
    TAP.ok("parca: ids", [f for f, v in proto.fields(first) if f in (4, 5)
                          and v[:2] == b"\x08\x01"] == [4, 5], first)
    TAP.same("parca: sums", sums(cpu, 1), sums(content(CPU), 1))
    TAP.same("parca: labels", sent[0]["labels"]["labels"], [
        {"name": "__name__", "value": "n"},
        {"name": "service_name", "value": "shop"},
        {"name": "region", "value": "eu"}])
    with Server([204]) as server:
        done = run(CPU, "-to=pprof+" + server.url)
        request = server.requests[0]
    TAP.ok("pprof: the profile as it is", done.returncode == 0 and request.path
           == "/v1/pprof" and sums(gzip.decompress(request.body), 1) == sums(
               content(CPU), 1), done.stderr)


def check_names():
    """Real servers refuse these, or forget them: see tests/peers."""
    custom = os.path.join(FIXTURES, "go.custom.txt")
    for name in ("", "parca+"):
        with Server() as server:
            done = run(custom, "-to=" + name + server.url, "-name=shop")
            body = server.requests[0].body
        series, raw = json_series(body) if name else (None, None)
        if not name:
            one = pushed(server)[0]
            series, raw = one.kind, one.raw
        told = subprocess.run(
            [CPPROF, "convert", "-to=text", "-"], input=raw,
            capture_output=True, check=False).stdout.decode()
        TAP.same("names: a type of one's own names its series " + name,
                 series, "my_own_kind")
        TAP.ok("names: no / in a type, and it is said " + name,
               "my_own_kind/count" in told and "my/own" not in told and
               "my/own.kind/count is sent as my_own_kind/count" in done.stderr,
               told[:300], done.stderr)
        TAP.matches("names: a profile of no time is one of now " + name,
                    r"^Time: 20[2-9]\d-", told)
    path = os.path.join(FOLDER, "plain.pb")
    with open(path, "wb") as file:
        file.write(large(10, 2))
    with Server() as server:
        run(path, "-to=parca+" + server.url)
        raw = json_series(server.requests[0].body)[1]
    told = subprocess.run([CPPROF, "convert", "-to=text", "-"], input=raw,
                          capture_output=True, check=False).stdout.decode()
    TAP.has("names: a period without a type has that of the samples", told,
            "PeriodType: n count\n")
    with open(path, "wb") as file:
        file.write(b"".join(
            [chunk(1, b"\x08" + varint(i) + b"\x10\x04") for i in (1, 2, 3)]
            + [chunk(2, chunk(2, b"\x01\x02\x03"))]
            + [chunk(6, s) for s in (b"", b"a-b", b"a_b", b"a.b", b"count")]))
    with Server() as server:
        done = run(path, "-to=" + server.url)
        told = subprocess.run(
            [CPPROF, "convert", "-to=text", "-"], input=pushed(server)[0].raw,
            capture_output=True, check=False).stdout.decode()
    TAP.ok("names: types that differ in what is refused stay apart",
           "a_b_2/count a_b/count a_b_3/count" in told and
           "a-b/count is sent as a_b_2/count" in done.stderr, told, done.stderr)


def json_series(body):
    """The name of Parca's request, and the profile."""
    one = json.loads(body)["series"][0]
    return one["labels"]["labels"][0]["value"], base64.b64decode(
        one["samples"][0]["rawProfile"])


def large(n, depth):
    """n samples, each with a stack of its own."""
    body = [chunk(1, b"\x08\x01\x10\x02")]
    for i in range(n):
        stack = b"".join(varint(1 + (i >> 4 * k & 15) + 16 * k)
                         for k in range(depth))
        body.append(chunk(2, chunk(1, stack) + chunk(2, varint(i + 1))))
    for i in range(16 * depth):
        body.append(chunk(4, b"\x08" + varint(i + 1) + chunk(
            4, b"\x08" + varint(i + 1))))
        body.append(chunk(5, b"\x08" + varint(i + 1) + b"\x10"
                          + varint(i + 3)))
    names = [b"f%d" % i for i in range(16 * depth)]
    return b"".join(body + [chunk(6, s) for s in [b"", b"n", b"count"] + names])


def check_limits():
    for name, n, depth in (("16 000 samples", 20000, 4),
                           ("2 MiB", 6000, 400)):
        data = large(n, depth)
        path = os.path.join(FOLDER, "large.pb")
        with open(path, "wb") as file:
            file.write(data)
        with Server() as server:
            done = run(path, "-to=" + server.url)
            parts = [gzip.decompress(p.raw) for p in pushed(server)]
        found = [sums(part, 0) for part in parts]
        TAP.ok("limits: parts of %s" % name, done.returncode == 0
               and len(parts) > 1 and all(
                   n <= 16000 and len(part) <= 7 << 18
                   for (n, _), part in zip(found, parts)),
               found, [len(part) for part in parts], done.stderr)
        TAP.same("limits: each sample once, of %s" % name,
                 tuple(map(sum, zip(*found))), sums(data, 0))
        times = {v // 1000000 for part in parts
                 for f, v in proto.fields(part) if f == 9}
        TAP.same("limits: no two parts of one millisecond, of %s" % name,
                 len(times), len(parts))


def check_limits_of_otlp():
    """A collector takes 20 MiB, of which 600 names here are more than half."""
    n, names = 600, [b"%d" % i * 5000 for i in range(10000, 10600)]
    body = [chunk(1, b"\x08\x01\x10\x02")]
    for i in range(1, n + 1):
        body += [chunk(2, chunk(1, varint(i)) + chunk(2, varint(i))),
                 chunk(4, b"\x08" + varint(i) + chunk(4, b"\x08" + varint(i))),
                 chunk(5, b"\x08" + varint(i) + b"\x10" + varint(i + 2))]
    path = os.path.join(FOLDER, "names.pb")
    with open(path, "wb") as file:
        file.write(b"".join(body + [chunk(6, s) for s in
                                    [b"", b"n", b"count"] + names]))
    with Server() as server:
        done = run(path, "-to=otlp+" + server.url)
        parts = [gzip.decompress(r.body) for r in server.requests]
    TAP.ok("limits: parts for a collector", done.returncode == 0
           and len(parts) == 2 and all(len(p) < 20 << 20 for p in parts),
           [len(p) for p in parts], done.stderr)
    TAP.same("limits: each sample once, of those",
             sum(Profiles(p).total("n") for p in parts), n * (n + 1) // 2)


def write_random(name, n, n_bytes):
    """Samples 1 to n of functions whose names are so long, and like no other:
    packed they need more than half of it."""
    chance = random.Random(1)
    body = [chunk(1, b"\x08\x01\x10\x02")]
    names = [b"%x" % chance.getrandbits(4 * n_bytes) for _ in range(n)]
    for i in range(1, n + 1):
        body += [chunk(2, chunk(1, varint(i)) + chunk(2, varint(i))),
                 chunk(4, b"\x08" + varint(i) + chunk(4, b"\x08" + varint(i))),
                 chunk(5, b"\x08" + varint(i) + b"\x10" + varint(i + 2))]
    path = os.path.join(FOLDER, name)
    with open(path, "wb") as file:
        file.write(b"".join(body + [chunk(6, s) for s in
                                    [b"", b"n", b"count"] + names]))
    return path


def values_of(request):
    if "/v1development" in request.path:
        return Profiles(gzip.decompress(request.body)).total("n")
    return sums(gzip.decompress(raw_of(request)), 0)[1]


def times_of(request):
    return {v // 1000000 for f, v in proto.fields(gzip.decompress(
        raw_of(request))) if f == 9}


def check_too_large():
    """As the first file shows how much may come, no later one is refused."""
    n, limit = 2000, 100000
    path = write_random("random.pb", n, 400)
    # The collector's words; over OTLP they stand in a message.
    usual = 413, b"this is too much\n"
    collectors = 400, b"\x12\x1ehttp: request body too large\n"
    for words, refusal in (
            ([""], usual), (["", "-protocol=ingest"], usual),
            (["parca+"], usual), (["otlp+"], usual), (["otlp+"], collectors),
            (["pprof+"], usual), (["pprof+"], collectors)):
        name = "%s, %d" % (" ".join(words), refusal[0])
        with Server(limit=limit, closes=words == [""],
                    refusal=refusal) as server:
            done = run("-to=" + words[0] + server.url, *words[1:], path, path)
            requests, refused = server.requests, server.too_large
        TAP.same("too large: nothing is said: " + name,
                 (done.returncode, done.stderr), (0, ""))
        TAP.ok("too large: halved until it is taken: " + name, refused and all(
            b <= a * 5 // 8 for a, b in zip(refused, refused[1:])), refused)
        TAP.same("too large: each sample once, of two files: " + name,
                 sum(map(values_of, requests)), n * (n + 1))
        if words[0] not in ("otlp+", "pprof+"):  # which has no time
            half = requests[:len(requests) // 2]
            TAP.same("too large: no two parts of one millisecond: " + name,
                     len(set.union(*map(times_of, half))), len(half))


def check_never_small_enough():
    one = write_random("one.pb", 1, 300000)
    with Server(limit=100000) as server:
        done = run("-to=" + server.url, one)
        n = len(server.too_large)
    refused("a sample that is too large", done,
            "answers 413: this is too much; not sent: " + one)
    TAP.same("too large: and is asked for once", n, 1)
    path = write_random("random.pb", 2000, 400)
    with Server(limit=1000) as server:
        done = run("-to=" + server.url, path)
        sizes = server.too_large
    refused("whatever its size", done,
            "answers 413: this is too much; not sent: " + path)
    TAP.ok("too large: less than 16 KiB is not halved", len(sizes) < 8 and
           8192 < min(sizes) <= 16384 and not server.requests, sizes)


def nameless(program):
    """A profile of a program of which nothing but addresses is known: its path,
    the program's build id, and where its code is in the file."""
    told = subprocess.run(["readelf", "-nlW", program], capture_output=True,
                          text=True, check=True).stdout
    build_id = re.search(r"Build ID: (\w+)", told)[1]
    offset, address, n = [int(x, 16) for x in re.search(
        r"LOAD +(\w+) (\w+) \w+ (\w+) \w+ R E", told).groups()]
    start = 0x7f0000000000
    body = [chunk(1, b"\x08\x01\x10\x02"),
            chunk(2, chunk(1, b"\x01\x02") + chunk(2, b"\x05")),
            chunk(3, b"\x08\x01\x10" + varint(start) + b"\x18"
                  + varint(start + n) + b"\x20" + varint(offset)
                  + b"\x28\x03\x30\x04")]
    body += [chunk(4, b"\x08" + varint(i) + b"\x10\x01\x18"
                   + varint(start + 16 * i)) for i in (1, 2)]
    path = os.path.join(FOLDER, "nameless.pb")
    with open(path, "wb") as file:
        file.write(b"".join(body + [chunk(6, s) for s in (
            b"", b"n", b"count", program.encode(), build_id.encode())]))
    return path, build_id, address


YES = (200, b'{"shouldInitiateUpload": true, "reason":"First time"}',
       "application/json")
THERE = (200, b'{"reason":"Debuginfo already exists and is not marked"}',
         "application/json")
SERVICE = "/debuginfo.v1alpha1.DebuginfoService/"


def check_debuginfo():
    """As pkg/debuginfo/store.go wants it; what Pyroscope makes of it is in
    tests/peers."""
    path, build_id, address = nameless(CPPROF)
    with Server([YES]) as server:
        done = run("-to=" + server.url, "-debuginfo", path, path)
        requests = server.requests
    TAP.same("debuginfo: nothing is said", (done.returncode, done.stderr),
             (0, ""))
    TAP.same("debuginfo: uploaded once, before the profiles",
             [r.path for r in requests],
             [SERVICE + "ShouldInitiateUpload", SERVICE + "Upload/" + build_id,
              SERVICE + "UploadFinished"] + ["/push.v1.PusherService/Push"] * 2)
    TAP.same("debuginfo: whose it is", json.loads(requests[0].body), {
        "file": {"gnuBuildId": build_id, "name": "cpprof",
                 "type": "TYPE_EXECUTABLE_FULL"}})
    with open(CPPROF, "rb") as file:
        TAP.ok("debuginfo: the file", requests[1].body == file.read())
    TAP.same("debuginfo: that was all", json.loads(requests[2].body),
             {"gnuBuildId": build_id})
    sent = [dict(proto.fields(v)) for f, v in proto.fields(gzip.decompress(
        raw_of(requests[3]))) if f == 4]
    TAP.same("debuginfo: addresses are those of the file",
             [location[3] for location in sent], [address + 16, address + 32])
    with Server([THERE]) as server:
        done = run("-to=" + server.url, "-debuginfo", path)
        n = len(server.requests)
    TAP.same("debuginfo: what is there is not uploaded",
             (done.returncode, done.stderr, n), (0, "", 2))
    with Server([(200, b'{"reason":"DebugInfo upload disabled"}',
                  "application/json")]) as server:
        done = run("-to=" + server.url, "-debuginfo", path)
    TAP.ok("debuginfo: why it is not wanted is said", done.returncode == 0 and
           "upload disabled" in done.stderr, done.stderr)
    with Server([(400, b"no such service", "text/plain")]) as server:
        done = run("-to=" + server.url, "-debuginfo", path)
        n = len(server.requests)
    refused("debug information, with its words", done,
            "answers 400: no such service; not uploaded")
    TAP.same("debuginfo: and the profile is not sent", n, 1)
    stripped = os.path.join(FOLDER, "stripped")
    subprocess.run(["strip", "-o", stripped, CPPROF], check=True)
    with Server() as server:
        done = run("-to=" + server.url, "-debuginfo", nameless(stripped)[0])
        paths = [r.path for r in server.requests]
    TAP.ok("debuginfo: a file without symbols is not uploaded, which is said",
           done.returncode == 0 and "nothing here has names" in done.stderr
           and paths == ["/push.v1.PusherService/Push"], done.stderr, paths)
    with Server() as server:
        refused("debug information for a collector", run(
            "-to=otlp+" + server.url, "-debuginfo", path), "-debuginfo is of")
        done = run("-to=" + server.url, "-debuginfo", CPU)
        TAP.ok("debuginfo: nothing of what has names", done.returncode == 0 and
               not done.stderr and len(server.requests) == 1, done.stderr)


def check_refused():
    bad = os.path.join(FOLDER, "bad")
    with open(bad, "w") as file:
        file.write("no profile\n")
    with Server() as server:
        to = "-to=otlp+" + server.url
        refused("a damaged file", run(to, bad, CPU), bad + ": ")
        TAP.same("refused: and nothing behind it is sent",
                 len(server.requests), 0)
        done = run(to, "-keep_going", bad, CPU)
        TAP.ok("refused: or it is left out", done.returncode == 0
               and bad in done.stderr and len(server.requests) == 1,
               done.stderr)
        refused("no file", run(to), "no file given")
        refused("no URL", run(CPU), "say -to=URL")
        refused("another scheme", run("-to=ftp://x", CPU), "no http://")
        refused("a folder", run("-to=/tmp", CPU), "-to is the URL")
        refused("a protocol", run(to, "-protocol=grpc", CPU), "-protocol is")
        refused("a label", run("-to=" + server.url, "-labels=9=x", CPU),
                "no label")
    done = run("-to=http://me:hidden@127.0.0.1:%d" % closed_port(),
               "-give_up=0", CPU)
    TAP.ok("refused: no password is in what is said",
           "hidden" not in done.stderr and "127.0.0.1" in done.stderr,
           done.stderr)
    TAP.ok("help", re.match(r"usage: cpprof push -to=URL", run("-h").stdout))


check_otlp()
check_answers()
check_recorded_answers()
check_pyroscope()
check_parca()
check_names()
check_limits()
check_limits_of_otlp()
check_too_large()
check_never_small_enough()
check_debuginfo()
check_refused()
sys.exit(TAP.end())
