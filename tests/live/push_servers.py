"""What push.py checks with servers that do not take what they are sent: they
refuse it, say odd things, say nothing, or are away."""
import email.utils
import gzip
import json
import re
import threading
import time

from otlp import Profiles
from push_program import TAP, Ran, run_by
from push_server import (Profile, Pushed, Server, closed_port, pushed, raw_of,
    seconds_of)


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


def allocations(request):
    if "/v1development" in request.path:
        return Profiles(gzip.decompress(request.body)).total(
            "alloc_objects", "allocate_here")
    return Profile(raw_of(request)).total(0, "allocate_here")


def check_too_large():
    """By each protocol, and in several intervals."""
    for name in ("", "ingest+", "otlp+", "parca+", "pprof+"):
        word, protocol = name, ""
        if name == "ingest+":
            word, protocol = "", ",push-protocol=ingest"
        for ms in (1300, 5000, 15000):  # a busy machine needs longer
            with Server(limit=18000, closes=not name) as server:
                ran = run_by("heap=1,push=%s%s,push-interval=1%s"
                             % (word, server.url, protocol), "stacks=12000",
                             "quiet=%d" % ms, "stacks=12000", "quiet=%d" % ms,
                             "end=exit")
                requests = list(server.requests)
                n_refused = len(server.too_large)
            if not ran.err:
                break
        TAP.ok("too large: %s halves until it is taken" % name, ran.status == 7
               and not ran.err and n_refused and len(requests) >= 4,
               ran.err, n_refused, len(requests))
        TAP.same("too large: %s has each sample once" % name,
                 sum(map(allocations, requests)), 24000)
        TAP.ok("too large: %s remembers" % name, n_refused < 5, n_refused)


def check_never_small_enough():
    """A server that takes nothing is not asked for ever."""
    with Server(limit=1000) as server:
        ran = run_by("heap=1,push=%s,push-interval=1" % server.url,
                     "stacks=12000", "quiet=2300", "end=exit")
        sizes, n = server.too_large, len(server.requests)
    TAP.ok("too large: less than 16 KiB is not halved", n == 0 and
           len(sizes) < 16 and min(sizes) > 1000, sizes, n)
    TAP.ok("too large: that is said, with its words, and counted", ran.status
           == 7 and "answers 413: this is too much; dropped" in ran.err and
           sum(int(n) for n in re.findall(r"dropped: (\d+)", ran.err)) >= 2,
           ran.err)


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
