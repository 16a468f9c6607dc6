"""What Debian's `go tool pprof` (of Go 1.19) is known to print otherwise than
the newer pprof, which cpprof follows: as few rules as there can be, each for
one line of -raw. All else must be equal.
"""
import re

COLUMN = re.compile(rb"(:-?\d+):-?\d+( s=-?\d+)")
SAMPLE = re.compile(rb"^ +-?\d+( +-?\d+)*: ")
EMPTY = re.compile(rb"^ +-?\d+( +-?\d+)*: $")


def raw(text):
    """The -raw of the newer pprof as the older one would print it."""
    out, section, empty = [], b"", False
    for line in text.split(b"\n"):
        if line in (b"Samples:", b"Locations", b"Mappings"):
            section, empty = line, False
        # The older one knows no documentation links.
        if not section and line.startswith(b"Doc: "):
            continue
        # It reads no columns.
        if section == b"Locations":
            line = COLUMN.sub(rb"\1\2", line)
        # It leaves out the samples without a stack, and their labels.
        if section == b"Samples:":
            empty = bool(EMPTY.match(line)) or (
                empty and not SAMPLE.match(line))
            if empty:
                continue
        out.append(line)
    return b"\n".join(out)


def is_known_refusal(said):
    """Profiles whose sample types differ: the newer pprof merges what they have
    in common."""
    return b"inconsistent samples type count: " in said
