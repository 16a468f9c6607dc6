"""Reads profile.proto: as much of it as a profile of scripts has."""
import gzip


def fields(data):
    i = 0

    def varint():
        nonlocal i
        n = shift = 0
        while True:
            byte = data[i]
            i += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return n

    while i < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            assert key & 7 == 2, "wire type %d" % (key & 7)
            n = varint()
            yield key >> 3, data[i:i + n]
            i += n


def numbers(value):
    """A repeated number, packed or not."""
    if isinstance(value, int):
        return [value]
    out, n, shift = [], 0, 0
    for byte in value:
        n |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            out.append(n)
            n = shift = 0
    return out


class Profile:
    """samples: [(stack, value, labels)]; stack: [(name, file, line)], leaf
    first. Native code without a name has "" and its module. which: of several
    values. native: for each sample, what code it has: (file, place in it)."""

    def __init__(self, path, which=0):
        with gzip.open(path) as file:
            data = file.read()
        strings, functions, locations, raw = [], {}, {}, []
        mappings, places = {0: {}}, {}
        self.duration_ns = self.period = 0
        for field, value in fields(data):
            if field == 6:
                strings.append(value.decode())
            elif field == 5:
                f = dict(fields(value))
                functions[f[1]] = f
            elif field == 4:
                f = list(fields(value))
                places[dict(f)[1]] = dict(f).get(3, 0)
                locations[dict(f)[1]] = \
                    dict(f).get(2, 0), [dict(fields(v)) for k, v in f if k == 4]
            elif field == 3:
                m = dict(fields(value))
                mappings[m[1]] = m
            elif field == 2:
                raw.append(value)
            elif field == 10:
                self.duration_ns = value
            elif field == 12:
                self.period = value
        self.files = {}
        self.native = []

        def frames(number):
            mapping, lines = locations[number]
            for line in lines:
                f = functions[line[1]]
                yield (strings[f.get(2, 0)], strings[f.get(4, 0)],
                       line.get(2, 0))
            if not lines:
                yield "", strings[mappings[mapping].get(5, 0)], 0

        def place(number):
            m = mappings[locations[number][0]]
            return (strings[m.get(5, 0)],
                    places[number] - m.get(2, 0) + m.get(4, 0))

        self.samples = []
        for sample in raw:
            stack, values, labels = [], [], {}
            native = []
            for field, value in fields(sample):
                if field == 1:
                    native += [place(n) for n in numbers(value) if places[n]]
                    stack += [f for n in numbers(value) for f in frames(n)]
                elif field == 2:
                    values += numbers(value)
                else:
                    f = dict(fields(value))
                    labels[strings[f[1]]] = \
                        strings[f[2]] if 2 in f else f.get(3, 0)
            self.samples.append((stack, values[which], labels))
            self.native.append(native)

    def total(self):
        return sum(value for _, value, _ in self.samples)

    def time(self, test):
        return sum(value for stack, value, labels in self.samples
                   if test(stack, labels))

    def flat(self, name):
        return self.time(lambda stack, _: stack and stack[0][0] == name)

    def cum(self, name):
        return self.time(lambda stack, _: any(f[0] == name for f in stack))
