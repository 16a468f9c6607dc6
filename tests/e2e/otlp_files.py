#!/usr/bin/env python3
"""OTLP Profiles as a file: written, read, and both.

    otlp_files.py CPPROF

Prints TAP. tests/otlp.py decodes what is written. What is read back is printed
as the profile that it was made of; what nobody here writes is made here.
"""
import gzip
import hashlib
import os
import resource
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "http"),
                 os.path.join(HERE, "..", "differential")]
import generate  # noqa: E402
import proto  # noqa: E402
from otlp import Profiles  # noqa: E402
from protobuf import chunk, varint  # noqa: E402
from tap import scratch_folder, Tap  # noqa: E402

CPPROF = os.path.abspath(sys.argv[1])
FIXTURES = os.path.join(HERE, "..", "fixtures")
FOLDER = scratch_folder("cpprof-otlp-")
TAP = Tap()


def run(*words, data=None, **env):
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("OTEL_")}
    return subprocess.run([CPPROF, "convert"] + list(words), input=data,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(environment, **env), cwd=FOLDER,
                          check=False)


def otlp(data, **env):
    return run("-to=otlp", data=data, **env).stdout


def text(data):
    return run("-to=text", data=data).stdout.decode(errors="replace")


def fixture(name):
    with open(os.path.join(FIXTURES, name), "rb") as file:
        return file.read()


# --------------------------------------------------------- there and back ----

def sums_of(packed, types):
    """Of each type in a profile.proto."""
    rows = [[number - (number >> 63 << 64) for field, value in
             proto.fields(sample) if field == 2
             for number in proto.numbers(value)]
            for field, sample in proto.fields(gzip.decompress(packed))
            if field == 2]
    return {kind[0]: sum(row[i] for row in rows)
            for i, kind in enumerate(types)}


def check_fixtures():
    wrong, n = [], 0
    for name in sorted(os.listdir(FIXTURES)):
        once = run("-to=pprof", os.path.join(FIXTURES, name))
        if once.returncode or not name.endswith((".gz", ".perf", ".heap",
                                                 ".cpu")):
            continue
        n += 1
        data = otlp(once.stdout)
        back = run("-to=pprof", data=data).stdout
        wrong += [name] if text(back) != text(once.stdout) \
            or text(data) != text(once.stdout) else []
        there, mine = Profiles(data), proto.Profile(once.stdout)
        sums = sums_of(once.stdout, mine.types)
        wrong += [(name, sums)] if sums != {
            kind[0]: there.total(kind[0]) for kind in there.profiles} else []
        wrong += [(name, there.profiles)] if \
            there.profiles[0][0] != (mine.default or mine.types[-1][0]) or \
            [there.profiles[there.scope["pprof.scope.sample_type_order"]
                            .index(i)] for i in range(len(mine.types))] \
            != mine.types else []
    TAP.none("fixtures: %d are read back as they were, to the last text" % n,
             wrong)
    TAP.ok("fixtures: there are some", n > 15, n)


def check_random():
    wrong, n = [], 0
    # The numbers of one key in a sample have one unit in OTLP, not in 33.
    for seed in set(range(60)) - {33}:
        once = run("-to=pprof", data=generate.profile(seed))
        if once.returncode:
            continue
        n += 1
        data = otlp(once.stdout)
        Profiles(data)
        if text(run("-to=pprof", data=data).stdout) != text(once.stdout):
            wrong.append("seed %d" % seed)
    TAP.none("random profiles: %d of them, too" % n, wrong)
    TAP.ok("random profiles: there are some", n > 30, n)


# ---------------------------------------------------------------- pprof ------

class Pprof:
    """A profile.proto with one stack per sample, f in m."""

    def __init__(self, file="/bin/prog", build_id="abcd"):
        self.strings, self.body = [""], b""
        self.kind(1, "samples", "count")
        self.kind(1, "cpu", "nanoseconds")
        self.kind(11, "cpu", "nanoseconds")
        self.part(3, (1, 1), (2, 4096), (3, 8192), (5, self.at(file)),
                  (6, self.at(build_id)), (7, 1))
        self.part(5, (1, 1), (2, self.at("f")))
        self.body += chunk(4, self.numbers((1, 1), (2, 1), (3, 4100))
                           + chunk(4, self.numbers((1, 1), (2, 7))))

    def at(self, string):
        if string not in self.strings:
            self.strings.append(string)
        return self.strings.index(string)

    @staticmethod
    def numbers(*numbers):
        return b"".join(varint(field << 3) + varint(value)
                        for field, value in numbers)

    def part(self, field, *numbers):
        self.body += chunk(field, self.numbers(*numbers))

    def kind(self, field, *texts):
        self.part(field, *((i + 1, self.at(t)) for i, t in enumerate(texts)))

    def sample(self, values, *labels):
        body = chunk(1, varint(1)) + chunk(2, b"".join(map(varint, values)))
        for key, value, *unit in labels:
            body += chunk(3, self.numbers((1, self.at(key)), *(
                [(2, self.at(value))] if isinstance(value, str) else
                [(3, value)] + [(4, self.at(u)) for u in unit])))
        self.body += chunk(2, body)
        return self

    def data(self):
        return self.body + b"".join(chunk(6, s.encode("utf-8", "surrogateescape"))
                                    for s in self.strings)


def check_labels():
    trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    data = Pprof().sample(
        [1, 2], ("thread", "io"), ("tid", 7), ("size", 5, "bytes"),
        ("k", "a"), ("k", "b"), ("both", "t"), ("both", 9, "ms")).sample(
        [3, 4], ("trace_id", trace), ("span_id", span), ("k", "a")).sample(
        [5, 6], ("trace_id", "no id"), ("span_id", span)).data()
    there = Profiles(otlp(data))
    TAP.same("labels: thread.name and thread.id, units, arrays of one key",
             there.samples[0][0][1], {
                 "thread.name": "io", "thread.id": 7, "size": (5, "bytes"),
                 "k": ["a", "b"], "both": (["t", 9], "ms")})
    TAP.same("labels: a trace and a span are a link",
             there.samples[0][1][1], {"link": (trace, span), "k": "a"})
    TAP.same("labels: what is no id is none", there.samples[0][2][1],
             {"trace_id": "no id", "span_id": span})
    other = Pprof().sample([1, 2], ("thread", "io"), ("thread.name", "cpu"),
                           ("a\udcff", "1"), ("a\udcfe", "2")).data()
    TAP.same("labels: two that have one key in OTLP are one attribute",
             Profiles(otlp(other)).samples[0][0][1],
             {"thread.name": ["io", "cpu"], "a\ufffd": ["2", "1"]})
    once = run("-to=pprof", data=data).stdout
    TAP.same("labels: all are read back", text(otlp(data)), text(once))
    TAP.same("labels: each value is one of its sample",
             [[s[2] for s in samples] for samples in there.samples],
             [[2, 4, 6], [1, 3, 5]])


def check_text():
    data = Pprof(build_id="go/id").sample([1, 2], ("k", "a\udcffb")).data()
    there = Profiles(otlp(data))
    TAP.same("text: bytes that are not UTF-8 become U+FFFD",
             there.samples[0][0][1], {"k": "a\ufffdb"})
    TAP.same("text: a build id that is not hex is Go's", there.mappings,
             [{"process.executable.build_id.go": "go/id", "file": "/bin/prog",
               "pprof.mapping.has_functions": True, "start": 4096}])


def check_frames():
    kinds = {}
    for file in ("/bin/prog", "[lua]", "[python]", "[luajit]"):
        there = Profiles(otlp(Pprof(file=file).sample([1, 2]).data()))
        kinds[file] = there.samples[0][0][0]
    TAP.same("frames: they say who runs them", kinds, {
        "/bin/prog": [("f", "", 7, "native")], "[lua]": [("f", "", 7, "lua")],
        "[python]": [("f", "", 7, "cpython")],
        "[luajit]": [("f", "", 7, "luajit")]})


def check_hash():
    path = os.path.realpath(CPPROF)
    notes = subprocess.run(["readelf", "-n", path], capture_output=True,
                           text=True, check=False).stdout
    build_id = notes.split("Build ID: ")[1].split()[0] \
        if "Build ID: " in notes else None
    if not build_id:
        TAP.skip("hash: that of the file", "no build id")
        return
    with open(path, "rb") as file:
        whole = file.read()
    wanted = hashlib.sha256(whole[:4096] + whole[-4096:] + struct.pack(
        ">Q", len(whole))).hexdigest()[:32]
    there = Profiles(otlp(Pprof(path, build_id).sample([1, 2]).data()))
    TAP.same("hash: that of the file",
             there.mappings[0].get("process.executable.build_id.htlhash"),
             wanted)
    there = Profiles(otlp(Pprof(path, "1234").sample([1, 2]).data()))
    TAP.same("hash: not that of another build", there.mappings[0].get(
        "process.executable.build_id.htlhash"), None)


def check_resource():
    data = Pprof().sample([1, 2]).data()
    there = Profiles(otlp(data))
    TAP.same("resource: the program's name where nobody gives one",
             there.resource, {"service.name": "unknown_service:prog"})
    TAP.same("resource: scope", there.scope_name, "cpprof")
    there = Profiles(otlp(data, OTEL_SERVICE_NAME="a,b=c %41",
                          OTEL_RESOURCE_ATTRIBUTES="service.name=other, k = "
                          "v%2Cw ,nothing,=,k2=,process.pid=12,host.name=h,"
                          "host.name=i"))
    TAP.same("resource: what the variables say", there.resource, {
        "service.name": "a,b=c %41", "k": "v,w", "process.pid": 12,
        "host.name": "i"})
    for members, bad in (("a=b,nothing,=", "nothing"), ("a=b, =c", " =c"),
                         ("a=b%4", "a=b%4"), ("a=%zz,b=c", "a=%zz"),
                         ("a=b%41, ,c=d,", None)):
        err = run("-to=otlp", data=data,
                  OTEL_RESOURCE_ATTRIBUTES=members).stderr.decode()
        TAP.same(f"resource: {members!r}: what is none is told", err,
                 bad and "cpprof: OTEL_RESOURCE_ATTRIBUTES: not KEY=VALUE "
                         f"with percent-encoding: '{bad}'\n" or "")
    members = ",".join(f"{i:x}=v" for i in range(16000)) + ",3=w"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    there = Profiles(otlp(data, OTEL_RESOURCE_ATTRIBUTES=members)).resource
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    TAP.same("resource: as many as fit, each once, the last of a key",
             (len(there), there["3"], there["3e7f"]), (16001, "w", "v"))
    TAP.same("resource: each is looked at once",
             seconds < 0.7 or f"{seconds} s", True)


# ------------------------------------------------- what others may write ----

def message(profiles, strings=("", "cpu", "ns", "f", "k", "v", "other"),
            stacks=((1,),), extra=b"", resources=("",)):
    """profiles: (type string, [sample body])."""
    dictionary = b"".join([
        chunk(1, b""), chunk(2, b""),
        chunk(2, chunk(3, b"\x08\x01")), chunk(3, b""), chunk(3, b"\x08\x03"),
        chunk(4, b""), *(chunk(5, s.encode()) for s in strings), chunk(6, b""),
        chunk(6, b"\x08\x04" + chunk(2, chunk(1, b"v"))), chunk(7, b""),
        *(chunk(7, chunk(1, b"".join(map(varint, s)))) for s in stacks)])
    scope = b"".join(
        chunk(2, chunk(1, b"\x08" + varint(kind) + b"\x10\x02")
              + b"".join(chunk(2, s) for s in samples)
              + b"\x19" + struct.pack("<Q", 1000) + b"\x20\x05")
        for kind, samples in profiles)
    return b"".join(chunk(1, (chunk(1, chunk(1, chunk(1, b"service.name")
                                             + chunk(2, chunk(1, r.encode()))))
                              if r else b"") + chunk(2, scope))
                    for r in resources) + chunk(2, dictionary) + extra


def times(*at):
    return chunk(5, b"".join(struct.pack("<Q", t) for t in at))


def values(*numbers):
    return chunk(4, b"".join(map(varint, numbers)))


STACK = b"\x08\x01"


def rows(data):
    done = run("-to=pprof", data=data)
    if done.returncode:
        return done.stderr.decode()
    profile = proto.Profile(done.stdout)
    return profile.types, sorted(list(v) for v in profile.samples.values())


def check_others():
    cpu = ("cpu", "ns")
    TAP.same("others: timestamps count one each",
             rows(message([(1, [STACK + times(1001, 1002, 1003)])])),
             ([cpu], [[3]]))
    TAP.same("others: values of timestamps are added",
             rows(message([(1, [STACK + values(4, 6) + times(1, 2)])])),
             ([cpu], [[10]]))
    TAP.same("others: equal samples are one",
             rows(message([(1, [STACK + values(4), STACK + values(5)])])),
             ([cpu], [[9]]))
    TAP.same("others: profiles of the same samples are types of one",
             rows(message([(1, [STACK + values(4)]),
                           (6, [STACK + values(5)])])),
             ([cpu, ("other", "ns")], [[4, 5]]))
    TAP.same("others: profiles of other samples have none of each other",
             rows(message([(1, [STACK + values(4)]),
                           (6, [STACK + b"\x12\x01\x01" + values(5)])])),
             ([cpu, ("other", "ns")], [[0, 5], [4, 0]]))
    TAP.same("others: a sample without a stack",
             rows(message([(1, [values(4)])])), ([cpu], [[4]]))
    data = message([(1, [STACK + values(4)])], resources=("a", "b"))
    TAP.ok("others: of several resources each sample knows its service",
           "service.name:[a]" in text(data) and "service.name:[b]" in
           text(data), text(data))
    back = proto.Profile(run("-to=pprof", data=data).stdout)
    TAP.same("others: time and duration", (back.time, back.duration),
             (1000, 5))
    negative = varint((1 << 64) - 3)
    data = otlp(b"".join(
        [chunk(1, b"\x08\x01\x10\x02"), chunk(2, chunk(2, b"\x05")),
         b"\x50" + negative]
        + [chunk(6, s) for s in (b"", b"n", b"count")]))
    TAP.ok("others: a duration that is negative is none",
           Profiles(data).total("n") == 5 and negative not in data, data)
    # tests/peers/otelcol.py: it refers to the keys of its resource by number.
    with open(os.path.join(HERE, "..", "fuzz", "corpus", "otlp", "collector"),
              "rb") as file:
        TAP.same("others: what a collector made of ours", text(file.read()),
                 text(fixture("go.cpu.pb.gz")))
    inner = chunk(6, chunk(1, chunk(1, b"y") + chunk(2, chunk(1, b"z")))
                  + chunk(1, b"\x18\x05" + chunk(2, b"\x18\x07")))
    data = message([(1, [STACK + b"\x12\x01\x02" + values(4)])]) + chunk(
        2, chunk(6, b"\x08\x04" + chunk(2, chunk(6, b"".join(
            chunk(1, chunk(1, key) + chunk(2, value)) for key, value in (
                (b"x", inner), (b"raw", chunk(7, b"\x00\xa5"))))))))
    TAP.ok("others: of a map each value is a label, bytes are hex",
           all(word in text(data) for word in (
               "k.raw:[00a5]", "k.x.v:[7]", "k.x.y:[z]")), text(data))
    TAP.same("others: an unknown field is skipped",
             rows(message([(1, [STACK + values(4) + chunk(99, b"x")])])),
             ([cpu], [[4]]))


def nested(depth):
    value = chunk(1, b"v")
    for _ in range(depth):
        value = chunk(6, chunk(1, chunk(1, b"m") + chunk(2, value)))
    return value


def check_refused():
    good = message([(1, [STACK + values(4)])])
    for name, data, why in (
            ("two values", message([(1, [STACK + values(4, 5)])]),
             "a sample of several values"),
            ("no value", message([(1, [STACK])]), "a sample without a value"),
            ("too few values", message([(1, [STACK + values(4, 5)
                                             + times(1, 2, 3)])]),
             "not a value for each timestamp"),
            ("no such stack", message([(1, [b"\x08\x09" + values(4)])]),
             "no such stack"),
            ("no such location", message([(1, [STACK + values(4)])],
                                         stacks=((9,),)), "no such location"),
            ("no such attribute", message([(1, [b"\x12\x01\x09"
                                                + values(4)])]),
             "no such attribute of a sample"),
            ("half a timestamp", message([(1, [STACK + chunk(5, b"1234")])]),
             "half a timestamp"),
            ("no such link", message([(1, [STACK + b"\x18\x05" + values(4)])]),
             "no such link"),
            ("maps in maps", many(1, nested(99), sample=b"\x12\x01\x02"),
             "a map in too many maps"),
            ("half a map", many(1, chunk(6, b"\x0a\x05x"),
                                sample=b"\x12\x01\x02"), "too much data"),
            ("no such string", message([(9, [STACK + values(4)])]),
             "no such string"),
            ("a first string", message([], strings=("x",)),
             "the first string is not the empty one"),
            ("too many types", message([(0, [])] * 2 + [
                (i, []) for i in range(1, 90)], strings=[""] + [
                    "t%d" % i for i in range(99)]),
             "more than 64 sample types")):
        done = run("-to=text", data=data)
        TAP.ok("refused: %s" % name, done.returncode == 2
               and done.stderr.decode().count("\n") == 1
               and why in done.stderr.decode() and not done.stdout,
               done.returncode, done.stderr, done.stdout)
    wrong = [n for n in range(1, len(good))
             if run("-to=text", data=good[:n]).returncode != 2]
    TAP.none("refused: a file without its end", wrong)
    done = run("-to=otlp", "-sample_index=cpu", data=good)
    TAP.ok("refused: -sample_index", done.returncode == 2
           and b"-sample_index is for" in done.stderr, done.stderr)


def many(n, attribute=b"", stack=(1,), extra=b"", link=b"", sample=b""):
    """n samples that refer to the same things, of which each may be large."""
    sample = (b"\x08\x02" if extra else STACK) + sample + values(1)
    data = message([(1, [sample] * n)], stacks=(stack,))
    return data + chunk(2, chunk(6, b"\x08\x04" + chunk(2, attribute))
                        + chunk(4, link) + chunk(7, extra))


def check_bombs():
    """What costs two bytes in the file and a walk over a megabyte here."""
    big, n = 200000, 60000
    of_it = b"\x12\x01\x02"
    for name, attribute in (
            ("empty texts", chunk(5, chunk(1, b"\x0a\x00") * big)),
            ("unknown fields", b"\x78\x01" * big),
            ("maps of empty texts",
             chunk(6, chunk(1, b"\x12\x02\x0a\x00") * big))):
        TAP.same("bombs: an attribute of many %s is read once" % name, rows(
            many(n, attribute=attribute, sample=of_it)),
                 ([("cpu", "ns")], [[n]]))
    for name, data in (
            ("attributes of many texts",
             many(n, attribute=chunk(5, chunk(1, b"\x0a\x01a") * big),
                  sample=of_it)),
            ("links of unknown fields",
             many(n, link=b"\x78\x01" * big, sample=b"\x18\x01")),
            ("stacks of no locations", many(n, stack=(0,) * big)),
            ("stacks of unknown fields", many(n, extra=b"\x78\x01" * big))):
        done = run("-to=pprof", "-o", "/dev/null", data=data)
        TAP.ok("bombs: %s are refused" % name, done.returncode == 2
               and b"larger than the file may be" in done.stderr,
               done.returncode, done.stderr)
    attribute = chunk(5, chunk(1, chunk(1, b"a")) * 40)
    TAP.same("bombs: what is usual is read", rows(many(
        200, attribute=attribute, sample=b"\x12\x01\x02")),
        ([("cpu", "ns")], [[200]]))


def check_names():
    data = Pprof().sample([1, 2]).data()
    run("-o", "x.otlp", data=data)
    with open(os.path.join(FOLDER, "x.otlp"), "rb") as file:
        TAP.same("names: the ending of a file says it", file.read(),
                 otlp(data))


check_fixtures()
check_random()
check_labels()
check_text()
check_frames()
check_hash()
check_resource()
check_others()
check_refused()
check_bombs()
check_names()
sys.exit(TAP.end())
