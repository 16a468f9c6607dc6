"""profile.proto, read without any code that wrote it."""
import gzip


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if byte < 128:
            return value, at


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 2:
            n, at = varint(data, at)
            value, at = data[at:at + n], at + n
            if len(value) != n:
                raise ValueError("cut off")
        else:
            raise ValueError("wire type %d" % (tag & 7))
        yield tag >> 3, value


def numbers(value):
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(number)
    return found


def single(data):
    return dict(fields(data))


class Profile:
    """types: [(type, unit)]; samples: {(addresses, labels): values}."""

    def __init__(self, packed):
        if packed[:2] == b"\x1f\x8b":
            packed = gzip.decompress(packed)
        all_fields = list(fields(packed))

        def every(number):
            return [value for field, value in all_fields if field == number]

        def one(number):
            return (every(number) or [0])[-1]

        self.strings = [s.decode() for s in every(6)]
        self.types = [self.pair(t) for t in every(1)]
        self.period_type = self.pair(one(11)) if one(11) else None
        self.period = one(12)
        self.default = self.strings[one(14)]
        self.comments = [self.strings[i] for c in every(13)
                         for i in numbers(c)]
        self.time, self.duration = one(9), one(10)
        self.mappings = [single(m) for m in every(3)]
        self.functions = {f[1]: self.strings[f.get(2, 0)]
                          for f in map(single, every(5))}
        self.locations = {}
        self.lines = {}
        self.ids = []
        for data in every(4):
            location = single(data)
            self.ids.append(location[1])
            self.locations[location[1]] = location.get(3, 0)
            self.lines[location[1]] = [
                self.functions[single(line)[1]]
                for field, line in fields(data) if field == 4]
        self.samples, self.repeated = {}, 0
        self.stacks = []
        for data in every(2):
            self.add(data)

    def pair(self, data):
        pair = single(data)
        return self.strings[pair.get(1, 0)], self.strings[pair.get(2, 0)]

    def add(self, data):
        ids, values, labels = [], [], []
        for field, value in fields(data):
            if field == 1:
                ids += numbers(value)
            elif field == 2:
                values += [signed(v) for v in numbers(value)]
            else:
                label = single(value)
                labels.append((self.strings[label[1]],
                               self.strings[label.get(2, 0)],
                               label.get(3, 0)))
        key = tuple(self.locations[i] for i in ids), tuple(sorted(labels))
        self.repeated += key in self.samples
        self.samples[key] = values
        self.stacks.append(([n for i in ids for n in self.lines[i]], values))

    def names(self):
        return {n for stack, _ in self.stacks for n in stack}

    def total(self, k):
        return sum(values[k] for _, values in self.stacks)
