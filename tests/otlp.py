"""OTLP Profiles, read without any code that wrote it: the fields of version 1.10
by number, and what the definitions want of them.

Source: opentelemetry-proto, opentelemetry/proto/{profiles/v1development,
common/v1,resource/v1}; sig-profiling, profcheck.
"""
import functools

# Of each message: number -> (name, kind). A kind is a message below, or
# int, text, bytes, bool, fixed64, double; [kind] is repeated.
MESSAGES = {
    "ProfilesData": {1: ("resource_profiles", ["ResourceProfiles"]),
                     2: ("dictionary", "ProfilesDictionary")},
    "ProfilesDictionary": {
        1: ("mapping_table", ["Mapping"]), 2: ("location_table", ["Location"]),
        3: ("function_table", ["Function"]), 4: ("link_table", ["Link"]),
        5: ("string_table", ["text"]),
        6: ("attribute_table", ["KeyValueAndUnit"]),
        7: ("stack_table", ["Stack"])},
    "ResourceProfiles": {1: ("resource", "Resource"),
                         2: ("scope_profiles", ["ScopeProfiles"]),
                         3: ("schema_url", "text")},
    "Resource": {1: ("attributes", ["KeyValue"]), 2: ("dropped", "int")},
    "ScopeProfiles": {1: ("scope", "Scope"), 2: ("profiles", ["Profile"]),
                      3: ("schema_url", "text")},
    "Scope": {1: ("name", "text"), 2: ("version", "text"),
              3: ("attributes", ["KeyValue"]), 4: ("dropped", "int")},
    "Profile": {1: ("sample_type", "ValueType"), 2: ("samples", ["Sample"]),
                3: ("time_unix_nano", "fixed64"), 4: ("duration_nano", "int"),
                5: ("period_type", "ValueType"), 6: ("period", "int"),
                7: ("profile_id", "bytes"), 8: ("dropped", "int"),
                9: ("original_payload_format", "text"),
                10: ("original_payload", "bytes"),
                11: ("attribute_indices", ["int"])},
    "Sample": {1: ("stack_index", "int"), 2: ("attribute_indices", ["int"]),
               3: ("link_index", "int"), 4: ("values", ["int"]),
               5: ("timestamps_unix_nano", ["fixed64"])},
    "Stack": {1: ("location_indices", ["int"])},
    "Location": {1: ("mapping_index", "int"), 2: ("address", "int"),
                 3: ("lines", ["Line"]), 4: ("attribute_indices", ["int"])},
    "Line": {1: ("function_index", "int"), 2: ("line", "int"),
             3: ("column", "int")},
    "Function": {1: ("name", "int"), 2: ("system_name", "int"),
                 3: ("filename", "int"), 4: ("start_line", "int")},
    "Mapping": {1: ("memory_start", "int"), 2: ("memory_limit", "int"),
                3: ("file_offset", "int"), 4: ("filename", "int"),
                5: ("attribute_indices", ["int"])},
    "Link": {1: ("trace_id", "bytes"), 2: ("span_id", "bytes")},
    "ValueType": {1: ("type", "int"), 2: ("unit", "int")},
    "KeyValueAndUnit": {1: ("key", "int"), 2: ("value", "AnyValue"),
                        3: ("unit", "int")},
    "KeyValue": {1: ("key", "text"), 2: ("value", "AnyValue")},
    "AnyValue": {1: ("string", "text"), 2: ("bool", "bool"), 3: ("int", "int"),
                 4: ("double", "double"), 5: ("array", "Array")},
    "Array": {1: ("values", ["AnyValue"])},
    "ProcessContext": {1: ("resource", "Resource"),
                       2: ("attributes", ["KeyValue"])},
    "Response": {1: ("partial_success", "PartialSuccess")},
}


class Wrong(Exception):
    pass


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data):
            raise Wrong("cut off")
        byte = data[at]
        value |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if byte < 128:
            return value, at


def scalar(kind, value):
    if kind == "text":
        return value.decode("utf-8")  # strict: a reader would refuse it
    if kind == "int":
        return value - (1 << 64) if value >> 63 else value
    return value


WIRES = {"text": 2, "bytes": 2, "int": 0, "bool": 0, "fixed64": 1, "double": 1}


def read(data, message):
    fields = MESSAGES[message]
    found = {name: [] if isinstance(kind, list) else None
             for name, kind in fields.values()}
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        wire = tag & 7
        if tag >> 3 not in fields:
            raise Wrong("field %d of %s" % (tag >> 3, message))
        name, kind = fields[tag >> 3]
        repeated = isinstance(kind, list)
        kind = kind[0] if repeated else kind
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        elif wire == 2:
            n, at = varint(data, at)
            value, at = data[at:at + n], at + n
            if len(value) != n:
                raise Wrong("cut off")
        else:
            raise Wrong("wire type %d" % wire)
        if repeated and kind == "int" and wire == 2:
            inner = 0
            while inner < len(value):
                number, inner = varint(value, inner)
                found[name].append(scalar("int", number))
            continue
        if wire != WIRES.get(kind, 2):
            raise Wrong("%s.%s has wire type %d" % (message, name, wire))
        value = read(value, kind) if kind in MESSAGES else scalar(kind, value)
        if repeated:
            found[name].append(value)
        elif found[name] is not None:
            raise Wrong("%s.%s twice" % (message, name))
        else:
            found[name] = value
    return found


def plain(value):
    """What an AnyValue is."""
    if value["array"] is not None:
        return [plain(one) for one in value["array"]["values"]]
    found = [v for v in value.values() if v is not None]
    if len(found) != 1:
        raise Wrong("a value of %d kinds" % len(found))
    return bool(found[0]) if value["bool"] is not None else found[0]


def pairs(attributes):
    found = {one["key"]: plain(one["value"]) for one in attributes}
    if len(found) != len(attributes):
        raise Wrong("a key twice")
    return found


class Profiles:
    """A message of one resource and one scope. resource and scope: attributes;
    profiles: [(type, unit)], the order of the message; samples: of each, [(frames,
    attributes, value)], where a frame is (name, file, line), leaf first."""

    def __init__(self, data):
        whole = read(data, "ProfilesData")
        self.dictionary = whole["dictionary"]
        self.strings = self.dictionary["string_table"]
        self.used = {name: {0} for name in self.dictionary}
        self.frame = functools.cache(self.frame)  # most are in many stacks,
        self.stack = functools.cache(self.stack)  # and those in many samples
        self.check_tables()
        if len(whole["resource_profiles"]) != 1 \
                or len(whole["resource_profiles"][0]["scope_profiles"]) != 1:
            raise Wrong("not one resource and one scope")
        resource = whole["resource_profiles"][0]
        scope = resource["scope_profiles"][0]
        self.resource = pairs(resource["resource"]["attributes"])
        self.scope = pairs(scope["scope"]["attributes"])
        self.scope_name = scope["scope"]["name"]
        self.messages = scope["profiles"]
        self.profiles = [self.type(p["sample_type"]) for p in self.messages]
        self.periods = [(self.type(p["period_type"]), p["period"] or 0)
                        for p in self.messages]
        self.attributes = [self.attributes_of(p["attribute_indices"])
                           for p in self.messages]
        self.samples = [[self.sample(s) for s in p["samples"]]
                        for p in self.messages]
        self.mappings = [self.mapping(m) for m in
                         self.dictionary["mapping_table"][1:]]
        self.check_orphans()

    # Element 0 of each table is empty, and no other is there twice.
    def check_tables(self):
        for name, table in self.dictionary.items():
            if not table or any(v not in (None, [], "")
                                for v in (table[0].values()
                                          if isinstance(table[0], dict)
                                          else [table[0]])):
                raise Wrong("%s does not begin with an empty element" % name)
            if name in ("string_table", "attribute_table", "stack_table",
                        "link_table"):
                texts = [repr(one) for one in table]
                if len(set(texts)) != len(texts):
                    raise Wrong("%s has an element twice" % name)

    def check_orphans(self):
        for location in self.dictionary["location_table"]:
            for line in location["lines"]:
                self.entry("function_table", line["function_index"])
            self.entry("mapping_table", location["mapping_index"])
            self.attributes_of(location["attribute_indices"])
        for function in self.dictionary["function_table"]:
            for key in ("name", "system_name", "filename"):
                self.text(function[key])
        for name in ("string_table", "attribute_table", "stack_table",
                     "link_table"):
            left = set(range(len(self.dictionary[name]))) - self.used[name]
            if left:
                raise Wrong("%s: nobody uses %s" % (name, sorted(left)[:5]))

    def entry(self, table, index):
        index = index or 0
        if not 0 <= index < len(self.dictionary[table]):
            raise Wrong("no element %d in %s" % (index, table))
        self.used[table].add(index)
        return self.dictionary[table][index]

    def text(self, index):
        return self.entry("string_table", index)

    def type(self, value):
        return (self.text(value["type"]), self.text(value["unit"]))

    def attributes_of(self, indices):
        found = {}
        for index in indices:
            one = self.entry("attribute_table", index)
            key = self.text(one["key"])
            if not index or key in found:
                raise Wrong("attribute %s twice, or none" % key)
            value = plain(one["value"])
            found[key] = (value, self.text(one["unit"])) \
                if one["unit"] else value
        return found

    def mapping(self, m):
        return dict(self.attributes_of(m["attribute_indices"]),
                    file=self.text(m["filename"]), start=m["memory_start"])

    def frame(self, index):
        location = self.entry("location_table", index)
        kind = self.attributes_of(location["attribute_indices"])
        functions = [(self.entry("function_table", line["function_index"]),
                      line["line"] or 0) for line in location["lines"]]
        return [(self.text(function["name"]), self.text(function["filename"]),
                 line, kind.get("profile.frame.type"))
                for function, line in functions]

    def stack(self, index):
        locations = self.entry("stack_table", index)["location_indices"]
        if 0 in locations:
            raise Wrong("location 0 in a stack")
        return [frame for i in locations for frame in self.frame(i)]

    def sample(self, s):
        if len(s["values"]) != 1 or s["timestamps_unix_nano"]:
            raise Wrong("a sample that has not one value")
        attributes = self.attributes_of(s["attribute_indices"])
        link = self.entry("link_table", s["link_index"])
        if s["link_index"]:
            attributes["link"] = (link["trace_id"].hex(),
                                  link["span_id"].hex())
        return self.stack(s["stack_index"]), attributes, s["values"][0]

    def total(self, kind, function=None):
        """The sum of a type, or of its samples with a function."""
        at = [p[0] for p in self.profiles].index(kind)
        return sum(value for frames, _, value in self.samples[at]
                   if function is None or function in [f[0] for f in frames])
