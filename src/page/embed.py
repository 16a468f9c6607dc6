#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Text files as C.

    embed.py OUTPUT PREFIX FILE...
        strings: flame.js is PREFIXflame_js. PREFIXflame_js_hash is what a
        policy calls it when it stands inside of a page.
    embed.py OUTPUT --packed NAME FILE...
        a table of type struct cpprof__page_file[], compressed
    embed.py OUTPUT --page NAME PAGE.html FILE...
        the page with all styles and scripts inside, as struct cpprof__web_page
"""
import base64
import gzip
import hashlib
import os
import re
import sys
import zlib

TYPES = {".css": "text/css", ".js": "text/javascript"}


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def literal(line):
    text = line.replace("\\", "\\\\").replace('"', '\\"')
    # "??=" and its like are other characters to a compiler of C11.
    return '    "%s\\n"' % text.replace("??", '?""?')


def digest(text):
    """What a policy calls it."""
    return "'sha256-%s'" % base64.b64encode(
        hashlib.sha256(text.encode()).digest()).decode()


def string(prefix, path):
    text = read(path)
    name = prefix + re.sub(r"\W", "_", os.path.basename(path))
    return ("extern const char %s[], %s_hash[];\nconst char %s[] =\n%s;\n"
            "const char %s_hash[] = \"%s\";\n" %
            (name, name, name, "\n".join(map(literal, text.splitlines())),
             name, digest(text)))


def lean(path):
    """Without lines of comments, which a browser needs none of; no string of
    ours goes over several lines."""
    return re.sub(r"(?m)^ *//(?! SPDX).*\n", "", read(path))


def page(name, document, paths):
    text, digests = read(document), []
    for tag, suffix in (("style", ".css"), ("script", ".js")):
        inside = "".join(lean(path) for path in paths if path.endswith(suffix))
        empty = "<%s></%s>" % (tag, tag)
        if text.count(empty) != 1 or "</" + tag in inside or "<!--" in inside:
            sys.exit("embed.py: the %s of %s" % (tag, document))
        text = text.replace(empty, empty.replace("><", ">%s<" % inside))
        digests.append(digest(inside))
    at = text.index("{}</script>")
    head, rest = text[:at].encode(), text[at + len("{}"):]
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = (b"\x1f\x8b\x08" + bytes(6) + b"\xff" + packer.compress(head) +
              packer.flush(zlib.Z_SYNC_FLUSH))
    return ['#include "page/web/page.h"\n',
            "static const unsigned char head[] = {%s};\n" %
            ",".join(map(str, packed)),
            "const struct cpprof__web_page %s = {\n    head, sizeof head, %d, "
            '%du, \n    "%s",\n    "%s",\n%s};\n' %
            (name, len(head), zlib.crc32(head), *digests,
             "\n".join(map(literal, rest.splitlines())))]


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
    elif first == "--page":
        parts = page(rest[0], rest[1], rest[2:])
    else:
        parts = [string(first, path) for path in rest]
    with open(output, "w", encoding="ascii") as file:
        file.write("\n".join(parts))


main(*sys.argv[1:])
