#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Text files as C.

    embed.py OUTPUT PREFIX FILE...
        strings: flame.js is PREFIXflame_js. PREFIXflame_js_hash is what a
        policy calls it when it stands inside of a page.
    embed.py OUTPUT --packed NAME FILE...
        a table of type struct cpprof__page_file[], compressed
    embed.py OUTPUT --joined NAME FILE...
        the same, with all files of one type as one: page.css, page.js
"""
import base64
import gzip
import hashlib
import os
import re
import sys

TYPES = {".css": "text/css", ".js": "text/javascript"}


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def literal(line):
    text = line.replace("\\", "\\\\").replace('"', '\\"')
    # "??=" and its like are other characters to a compiler of C11.
    return '    "%s\\n"' % text.replace("??", '?""?')


def string(prefix, path):
    text = read(path)
    name = prefix + re.sub(r"\W", "_", os.path.basename(path))
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return ("extern const char %s[], %s_hash[];\nconst char %s[] =\n%s;\n"
            "const char %s_hash[] = \"'sha256-%s'\";\n" %
            (name, name, name, "\n".join(map(literal, text.splitlines())),
             name, digest))


def joined(paths):
    files = {}
    for path in paths:
        name = "page" + os.path.splitext(path)[1]
        files[name] = files.get(name, "") + read(path)
    return files


def table(name, files):
    parts, rows = ['#include "page/page.h"\n\n#include <stddef.h>\n'], []
    for i, (file, text) in enumerate(files.items()):
        data = gzip.compress(text.encode(), 9, mtime=0)
        parts.append("static const unsigned char file_%d[] = {%s};\n" %
                     (i, ",".join(map(str, data))))
        rows.append('    {"%s", "%s; charset=utf-8", file_%d, sizeof file_%d},' %
                    (file, TYPES[os.path.splitext(file)[1]], i, i))
    return parts + ["const struct cpprof__page_file %s[] = {\n%s\n"
                    "    {NULL, NULL, NULL, 0},\n};\n" % (name, "\n".join(rows))]


def main(output, first, *rest):
    if first == "--packed":
        parts = table(rest[0], {os.path.basename(path): read(path)
                                for path in rest[1:]})
    elif first == "--joined":
        parts = table(rest[0], joined(rest[1:]))
    else:
        parts = [string(first, path) for path in rest]
    with open(output, "w", encoding="ascii") as file:
        file.write("\n".join(parts))


main(*sys.argv[1:])
