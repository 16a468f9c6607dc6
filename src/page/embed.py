#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Text files as strings of C, each line of one a literal.

    embed.py OUTPUT PREFIX FILE...     flame.js is PREFIXflame_js

PREFIXflame_js_hash is what a policy calls it when it stands inside of a page.
"""
import base64
import hashlib
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
            text = file.read()
        name = prefix + re.sub(r"\W", "_", os.path.basename(path))
        parts.append("extern const char %s[];\nconst char %s[] =\n%s;\n" %
                     (name, name, "\n".join(map(literal, text.splitlines()))))
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest())
        parts.append("extern const char %s_hash[];\n"
                     "const char %s_hash[] = \"'sha256-%s'\";\n" %
                     (name, name, digest.decode()))
    with open(output, "w", encoding="ascii") as file:
        file.write("\n".join(parts))


main(*sys.argv[1:])
