#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Text files as strings of C, each line of one a literal.

    embed.py OUTPUT PREFIX FILE...     flamegraph.js is PREFIXflamegraph_js
"""
import os
import re
import sys


def literal(line):
    text = line.replace("\\", "\\\\").replace('"', '\\"')
    # "??=" and its like are other characters to a compiler of C11.
    return '    "%s\\n"' % text.replace("??", '?""?')


def main(output, prefix, *paths):
    parts = []
    for path in paths:
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
        name = prefix + re.sub(r"\W", "_", os.path.basename(path))
        parts.append("extern const char %s[];\nconst char %s[] =\n%s;\n" %
                     (name, name, "\n".join(map(literal, lines))))
    with open(output, "w", encoding="ascii") as file:
        file.write("\n".join(parts))


main(*sys.argv[1:])
