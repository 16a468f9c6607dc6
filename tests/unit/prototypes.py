#!/usr/bin/env python3
"""The functions that public headers declare, as lines of C: the name, whether
it returns a status, and its arguments as they are declared.

    prototypes.py FOLDER OUTPUT DEPFILE

DEPFILE tells the build which headers were read. A double goes by in a register
of its own, so it is left out.
"""
import glob
import re
import sys

FUNCTION = re.compile(r"CPPROF_API\s+([^;]+?)\b(c?pprof_\w+)\(([^;]*)\)[^;)]*;")


def arguments(text):
    """What stands between commas, of which those in parentheses part nothing:
    of a function that is an argument only its name is left."""
    if "..." in text:
        text = text.split(")")[0]
    text = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"(*\1)", " ".join(text.split()))
    return [one for one in text.split(", ")
            if one not in ("void", "...") and not one.startswith("double ")]


folder, output, depfile = sys.argv[1:]
headers = sorted(glob.glob(folder + "/**/*.h", recursive=True))
with open(depfile, "w", encoding="ascii") as out:
    out.write("%s: %s\n" % (output, " ".join(headers)))
with open(output, "w", encoding="ascii") as out:
    for path in headers:
        with open(path, encoding="ascii") as header:
            code = re.sub(r"/\*.*?\*/", "", header.read(), flags=re.S)
        for result, name, text in FUNCTION.findall(code):
            out.write("CALL(%s, %d, {%s})\n" % (
                name, result.split() == ["enum", "cpprof_status"],
                ", ".join('"%s"' % one for one in arguments(text)) or "NULL"))
