"""Profiles of a simulated program whose truth is known, for tests and for the
benchmark of `cpprof gate`.

A program is a list of functions: a share of the time and a path of callers. A
run is a draw of samples from it. What differs between runs is what differs
between runs of real programs: the speed of the machine in that run, which all
functions share, and the scatter of each function, which is larger than that of
counts alone.

Profiles are written as collapsed stacks, which cpprof reads as it reads any
other format: a sample is 1 of the type "samples".
"""
import math
import os
import random

N_FUNCTIONS = 60
TARGET = "f_target"


class Program:
    """Functions of a program: {name: (share, callers)}. `seed` chooses the
    shares; the target has exactly one tenth."""

    def __init__(self, seed, n_functions=N_FUNCTIONS, share=0.1):
        rng = random.Random(seed)
        weights = [1 / (i + 1) ** 0.9 for i in range(n_functions - 1)]
        rng.shuffle(weights)
        total = sum(weights)
        self.stacks = {}
        for i, weight in enumerate(weights):
            callers = ["main", "run"] + ["mid_%d" % (i % 7)] * (i % 3 > 0) + \
                ["low_%d" % (i % 13)] * (i % 5 > 2)
            self.stacks[tuple(callers + ["f_%d" % i])] = \
                (1 - share) * weight / total
        self.stacks[("main", "run", "mid_1", TARGET)] = share


def count(rng, mean):
    """A count by chance: a normal number is near enough above 50."""
    if mean > 50:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    n, left = 0, math.exp(-mean)
    product = rng.random()
    while product > left:
        product *= rng.random()
        n += 1
    return n


class Noise:
    """machine: the deviation of the speed of a run; scatter: that of each
    function in a run, beside that of counts; both as parts of 1. Heavy: now and
    then a run is disturbed far more, and so is a function in a run."""

    def __init__(self, machine=0.02, scatter=0.01, heavy=0.0):
        self.machine, self.scatter, self.heavy = machine, scatter, heavy

    def times(self, factor):
        return Noise(self.machine * factor, self.scatter * factor, self.heavy)

    def of_function(self, rng):
        far = 4 if self.heavy and rng.random() < self.heavy else 1
        return math.exp(rng.gauss(0, far * self.scatter))


def run(rng, program, n_samples, noise, growth=None):
    """{stack: samples} of one run. growth: {function: factor} of leaves."""
    speed = math.exp(rng.gauss(0, noise.machine))
    if rng.random() < noise.heavy:
        speed *= 1 + rng.random()
    found = {}
    for stack, share in program.stacks.items():
        mean = n_samples * share * speed * noise.of_function(rng) * \
            (growth or {}).get(stack[-1], 1)
        n = count(rng, mean)
        if n:
            found[stack] = n
    return found


def write(path, found):
    with open(path, "w", encoding="utf-8") as out:
        for stack, n in found.items():
            out.write("%s %d\n" % (";".join(stack), n))


def write_sides(folder, seed, n_runs, n_samples, noise, growth=None,
                program=None):
    """Both sides as folders of n_runs files; head grows. n_runs and noise may
    be pairs: of base, of head. Returns the names of the folders."""
    rng = random.Random(seed)
    program = program or Program(seed)
    names = []
    for i_side, side in enumerate(("base", "head")):
        names.append(os.path.join(folder, side))
        os.makedirs(names[-1], exist_ok=True)
        for i in range(of_side(n_runs, i_side)):
            write(os.path.join(names[-1], "%03d.folded" % i),
                  run(rng, program, n_samples, of_side(noise, i_side),
                      growth if side == "head" else None))
    return names


def of_side(value, i_side):
    return value[i_side] if isinstance(value, tuple) else value


def write_pprof(path, types, samples, duration_s=0, comments=(), files=None,
                period=0, time_s=0):
    """A profile.proto: types [(type, unit)]; samples [(stack from the root,
    values, {label: text or number})]; files {function: its source}; the period
    is of the last type."""
    from protobuf import chunk, varint
    strings, functions, out = [""], {}, b""

    def text(s):
        if s not in strings:
            strings.append(s)
        return strings.index(s)

    def number(field, n):
        return varint(field << 3) + varint(n)

    for kind, unit in types:
        out += chunk(1, number(1, text(kind)) + number(2, text(unit)))
    for stack, values, labels in samples:
        body = b""
        for name in reversed(stack):
            functions.setdefault(name, len(functions) + 1)
            body += number(1, functions[name])
        for value in values:
            body += number(2, value)
        for key, value in labels.items():
            body += chunk(3, number(1, text(key)) + (
                number(2, text(value)) if isinstance(value, str)
                else number(3, value)))
        out += chunk(2, body)
    for name, i in functions.items():
        out += chunk(4, number(1, i) + chunk(4, number(1, i)))
        out += chunk(5, number(1, i) + number(2, text(name)) +
                     number(4, text((files or {}).get(name, ""))))
    for comment in comments:
        out += number(13, text(comment))
    if period:
        out += chunk(11, number(1, text(types[-1][0])) +
                     number(2, text(types[-1][1]))) + number(12, period)
    for s in strings:
        out += chunk(6, s.encode())
    out += number(9, int(time_s * 1e9))
    out += number(10, int(duration_s * 1e9))
    with open(path, "wb") as file:
        file.write(out)
