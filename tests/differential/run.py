#!/usr/bin/env python3
"""`cpprof -raw` and `go tool pprof -raw` of random profiles, under every flag.

    run.py CPPROF            200 profiles, 60 older ones and those of
                             ../fixtures, some flags each
    run.py --all CPPROF      all of them under all flags, which takes long
    run.py --seed N CPPROF   one profile under all flags
    run.py --legacy --seed N CPPROF  the same for one of the older formats

TAP, a line for each profile. Skipped where Go is missing. --keep=FOLDER leaves
the profiles there, --peer=FOLDER the program that does what `go tool pprof` does
(peer.py). That one itself is asked of the fixtures, too, and of everything where
the other cannot be built.

The older pprof merges even a single file with itself: equal samples become one,
those of zeros go, all is numbered anew. The newer one, which cpprof follows,
keeps it as it is. So cpprof is given what it merged itself before
(`cpprof convert`), except for the sources of a merge.
"""
import argparse
import concurrent.futures
import gzip
import os
import shutil
import subprocess
import sys
import tempfile

import flags
import generate
import legacy
import normalise
import peer as the_peer

N_PROFILES = 200
N_LEGACY = 60
CASES_EACH = 4  # so that each of 120 flags meets 9 profiles
# Go's collector of garbage would take a fifth of the time of so short a run.
ENVIRONMENT = dict(os.environ, TZ="UTC", LC_ALL="C", GOGC="off",
                   HOME="/nonexistent",
                   PPROF_BINARY_PATH="/nonexistent",
                   PPROF_TMPDIR="/nonexistent")
# pprof asks each tool of binutils for its version whenever it starts, which takes
# eight times as long as the rest.
WITHOUT = dict(ENVIRONMENT, PATH="/nonexistent")


def peer():
    """Go's pprof itself, as `go tool` takes as long as pprof does."""
    if not shutil.which("go"):
        return None
    folder = subprocess.run(["go", "env", "GOTOOLDIR"], capture_output=True,
                            check=False, text=True).stdout.strip()
    tool = os.path.join(folder, "pprof")
    return tool if os.path.exists(tool) else None


def run(tool, words, environment=ENVIRONMENT):
    if isinstance(tool, the_peer.Peer):
        return tool.run(words, environment["PATH"])
    try:
        done = subprocess.run([tool] + words, stdin=subprocess.DEVNULL,
                              capture_output=True, check=False, timeout=60,
                              env=environment)
    except subprocess.TimeoutExpired:
        return None, b"", b"takes too long"
    return done.returncode, done.stdout, done.stderr


def first_difference(got, want):
    got, want = got.split(b"\n"), want.split(b"\n")
    for i in range(max(len(got), len(want))):
        ours = got[i] if i < len(got) else b"(end)"
        theirs = want[i] if i < len(want) else b"(end)"
        if ours != theirs:
            return "line %d: got %r, want %r" % (i + 1, ours, theirs)
    return "equal"


def merged(cpprof, path):
    """A file of the merged profile, or the same where it is refused."""
    target = path + ".merged.pb"
    status, _, _ = run(cpprof, ["convert", "-o", target, path])
    return target if status == 0 else path


def command_lines(case, paths, ours):
    """Of cpprof and of the peer. paths are the files, ours the merged ones, by
    their word in the case."""
    readable = [word for word in flags.sources(case)
                if ours[word] != paths[word]]
    is_merge = len(readable) > 1
    return (flags.words(case, paths if is_merge else ours, ours),
            flags.words(case, paths, paths))


def compare(cpprof, go_pprof, our_words, words):
    """None, or what differs."""
    want_status, want, want_said = run(go_pprof, words, WITHOUT)
    status, got, said = run(cpprof, our_words)
    if normalise.is_known_refusal(want_said):
        return None if status in (0, 2) else "status %s" % status
    if (status == 0) != (want_status == 0) or status not in (0, 2):
        return "status %s and %r; the peer %s and %r" % (
            status, said[-300:], want_status, want_said[-300:])
    if status != 0:
        return None
    got = normalise.raw(got)
    return None if got == want else first_difference(got, want)


def write(path, data):
    # Not as they are: to Go's reader of object files, though not to that of the
    # newer pprof, a first file that begins with zeros is a program.
    if data.startswith(bytes(2)):
        data = gzip.compress(data, mtime=0)
    with open(path, "wb") as file:
        file.write(data)


def make_profile(folder, seed):
    paths = [os.path.join(folder, "%d%s.pb" % (seed, name))
             for name in ("", "base")]
    for path, data in zip(paths, generate.pair(seed)):
        write(path, data)
    return "profile %d" % seed, paths


def make_legacy(folder, seed):
    """One profile, and the next of the same kind to compare it with."""
    paths = []
    for each in (seed, seed + len(legacy.KINDS)):
        kind, data = legacy.profile(each)
        paths.append(os.path.join(folder, "%d.%s" % (each, kind)))
        write(paths[-1], data)
    return "%s %d" % (kind, seed), paths


FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                        "fixtures")


def make_fixture(folder, number):
    """A file of ../fixtures, and its neighbour to compare it with."""
    names = fixture_names()
    paths = []
    for name in (names[number], names[number - 1]):
        paths.append(os.path.join(folder, "%d.%s" % (number, name)))
        with open(os.path.join(FIXTURES, name), "rb") as file:
            write(paths[-1], file.read())
    return names[number], paths


def fixture_names():
    """Without jemalloc's, which only cpprof reads."""
    return sorted(name[:-len(".raw")] for name in os.listdir(FIXTURES)
                  if name.endswith(".raw") and not name.startswith("jemalloc"))


def cases_of(number, everything):
    """Some of the flags, in rotation; the first case is always there."""
    if everything:
        return flags.CASES
    n = len(flags.CASES) - 1
    return [flags.CASES[0]] + [flags.CASES[1 + (number * CASES_EACH + i) % n]
                               for i in range(CASES_EACH)]


def test(job):
    cpprof, peers, folder, make, seed, everything = job
    name, paths = make(folder, seed)
    paths = dict(zip((flags.FILE, flags.BASE), paths))
    ours = {word: merged(cpprof, path) for word, path in paths.items()}
    wrong = []
    cases = cases_of(seed, everything)
    for case in cases:
        our_words, words = command_lines(case, paths, ours)
        for each in peers if make == make_fixture else peers[:1]:
            said = compare(cpprof, each, our_words, words)
            if said:
                wrong.append("%s\n#   %s" % (" ".join(words), said))
    return "%s, %d sets of flags" % (name, len(cases)), wrong


def jobs(options, peers, folder):
    cpprof = os.path.realpath(options.cpprof)
    if options.seed is not None:
        make = make_legacy if options.legacy else make_profile
        return [(cpprof, peers, folder, make, options.seed, True)]
    return [(cpprof, peers, folder, make, seed, options.all)
            for make, n in ((make_profile, N_PROFILES), (make_legacy, N_LEGACY),
                            (make_fixture, len(fixture_names())))
            for seed in range(n)]


def run_all(test_one, all_jobs, n_at_once):
    """The name of each job and what is wrong, as TAP; the exit status."""
    failed = 0
    print("1..%d" % len(all_jobs))
    with concurrent.futures.ThreadPoolExecutor(n_at_once) as pool:
        for number, (name, wrong) in enumerate(pool.map(test_one, all_jobs), 1):
            failed += bool(wrong)
            print("%s %d - %s" % ("not ok" if wrong else "ok", number, name))
            for line in wrong:
                print("# " + line, flush=True)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--legacy", action="store_true")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--keep")
    parser.add_argument("--peer", metavar="FOLDER")
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("cpprof")
    options = parser.parse_args()
    go_pprof = peer()
    if not go_pprof:
        print("1..0 # SKIP no go tool pprof")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        built = the_peer.kept(options.peer or temporary,
                              os.path.join(temporary, "sources"))
        peers = [the_peer.Peer(built, ENVIRONMENT)] if built else []
        return run_all(test, jobs(options, peers + [go_pprof],
                                  options.keep or temporary), options.j)


if __name__ == "__main__":
    sys.exit(main())
