#!/usr/bin/env python3
"""The shape of the files: at most 1000 lines, plain ASCII, no tab in C, one
licence line at the head of each source file, no trailing blanks, and every
TODO names an issue. What src/arch/kernel.h names for older headers is used
where that is included. A C file over 100 lines begins with a comment that says
what it does; in src and bindings that is a block, which has room for the idea
and the invariants. A file of src that prose names by a folder and a name, as
"store/spool.h", is there.

    shape.py ROOT
    shape.py --self-test
"""
import os
import re
import subprocess

from trees import main

MAX_LINES = 1000
# From here on a reader needs to be told what a file is about.
HEAD_LINES = 100

SOURCE = re.compile(r"\.(c|h|cc|cpp|hpp|S)$")
TEXT = re.compile(r"(\.(c|h|cc|cpp|hpp|S|py|sh|lua|md|build|allow)|/dev|/run)$")
# Made by a tool or kept as found: data, not ours to shape.
DATA = re.compile(r"(^|/)(fixtures|golden|corpus)/")
C_FILE = re.compile(r"\.c$")
PRODUCT = re.compile(r"^(src|bindings)/")
PROSE = re.compile(r"^(src|bindings|include)/.*\.[ch]$|^[^/]*\.md$|^docs/")
NAMED = re.compile(r"(?<![\w/.-])(?:[a-z_]+/)+\w+\.[ch]\b")
KERNEL = "src/arch/kernel.h"
TODO = re.compile(r"\b(TODO|FIXME|XXX)\b(?!.*#\d+)")


def paths_of(root):
    """The files that git knows or would take; all files where there is none."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
        capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return sorted(set(listed.stdout.split("\n")) - {""})
    return sorted(
        os.path.relpath(os.path.join(folder, name), root)
        for folder, _, names in os.walk(root) for name in names
        if not os.path.relpath(folder, root).startswith("build"))


def check_line(path, number, line):
    if SOURCE.search(path) and "\t" in line:
        yield "%s:%d: tab" % (path, number)
    if line != line.rstrip():
        yield "%s:%d: blank at the end" % (path, number)
    if SOURCE.search(path) and TODO.search(line):
        yield "%s:%d: TODO without an issue" % (path, number)


def has_head(path, lines):
    """Does a comment follow the licence line? A block, in the product."""
    line = lines[1] if len(lines) > 1 else ""
    return line == "/*" if PRODUCT.search(path) else line.startswith("/*")


def check_file(path, data):
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        line = data[:error.start].count(b"\n") + 1
        if not path.endswith(".md"):
            yield "%s:%d: not ASCII" % (path, line)
        text = data.decode("utf-8", "replace")
    lines = text.split("\n")
    if lines[-1] != "":
        yield "%s:%d: no newline at the end" % (path, len(lines))
    else:
        lines.pop()
    if len(lines) > MAX_LINES and not path.endswith(".md"):
        yield "%s: %d lines, more than %d" % (path, len(lines), MAX_LINES)
    if SOURCE.search(path) and not any(
            "SPDX-License-Identifier: MIT" in line for line in lines[:2]):
        yield "%s:1: no SPDX licence line" % path
    if C_FILE.search(path) and len(lines) > HEAD_LINES and \
            not has_head(path, lines):
        yield "%s:2: no head comment: what it does, its idea, invariants" \
            % path
    for number, line in enumerate(lines, 1):
        yield from check_line(path, number, line)


def tails_of(path):
    """What it may be called by: src/a/b.c, a/b.c and b.c."""
    parts = path.split("/")
    return {"/".join(parts[i:]) for i in range(len(parts))}


class Names:
    """Files of src as prose names them: by the end of a path."""

    def __init__(self, paths):
        ours = [path for path in paths if path.startswith("src/")]
        self.folders = {folder for path in ours
                        for folder in path.split("/")[:-1]}
        self.tails = {tail for path in paths for tail in tails_of(path)}

    def check(self, path, text):
        """An include is the compiler's to check."""
        for number, line in enumerate(text.split("\n"), 1):
            if not PROSE.search(path) or line.startswith("#"):
                continue
            for name in NAMED.findall(line):
                if name.split("/")[0] in self.folders and \
                        name not in self.tails:
                    yield "%s:%d: there is no %s" % (path, number, name)


def names_of_kernel(root):
    """What the headers of an older libc may lack."""
    path = os.path.join(root, KERNEL)
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as file:
        names = re.findall(r"^#ifndef (\w+)\n#define \1 ", file.read(), re.M)
    return re.compile(r"(?<!def )\b(%s)\b" % "|".join(names))


def check_kernel(path, text, names):
    """Newer headers have the names, so no compiler here would say it. Who asks
    by #ifdef needs none."""
    if not names or not PRODUCT.search(path) or path == KERNEL or \
            '#include "arch/kernel.h"' in text:
        return
    for name in sorted(set(names.findall(text))):
        if "#ifdef " + name not in text:
            yield "%s: %s without arch/kernel.h" % (path, name)


def check(root):
    found = []
    younger = names_of_kernel(root)
    n_files = 0
    paths = paths_of(root)
    names = Names(paths)
    for path in paths:
        full = os.path.join(root, path)
        if DATA.search(path) or not TEXT.search("/" + path) or \
                not os.path.isfile(full):
            continue
        n_files += 1
        with open(full, "rb") as file:
            data = file.read()
        found.extend(check_file(path, data))
        text = data.decode("utf-8", "replace")
        found.extend(names.check(path, text))
        found.extend(check_kernel(path, text, younger))
    if n_files == 0:
        found.append("no files under %s" % root)
    return found


HEAD = "/* SPDX-License-Identifier: MIT */\n"
BAD = {
    "long.c": HEAD + "/* One line. */\n" + "int x;\n" * MAX_LINES,
    "tab.c": HEAD + "\tint x;\n",
    "blank.h": HEAD + "int x; \n",
    "licence.c": "int x;\n",
    "ascii.c": HEAD + "/* \u00e9 */\n",
    "todo.c": HEAD + "/* TO" + "DO: later */\n",
    "newline.c": HEAD + "int x;",
    "head.c": HEAD + "int x;\n" * HEAD_LINES,
    "src/named.h": HEAD + "/* See src/gone.c. */\n",
    "docs/named.md": "Read `src/gone.h`.\n",
    "src/younger.c": HEAD + "int x = SYS_new;\n",
    "src/line.c": HEAD + "/* One line. */\n" + "int x;\n" * HEAD_LINES,
}
BLOCK = "/*\n * What it does.\n */\n"
GOOD = {
    "good.c": HEAD + "/* One line. */\n" + "int x;\n" * (MAX_LINES - 2),
    "short.c": HEAD + "int x;\n" * (HEAD_LINES - 1),
    "src/block.c": HEAD + BLOCK + "int x;\n" * HEAD_LINES,
    "src/names.h": HEAD + "/* See src/block.c and linux/fs.h. */\n",
    "src/arch/kernel.h": HEAD + "#ifndef SYS_new\n#define SYS_new 9\n#endif\n",
    "src/known.c": HEAD + '#include "arch/kernel.h"\nint x = SYS_new;\n',
    "src/asked.c": HEAD + "#ifdef SYS_new\nint x = SYS_new;\n#endif\n",
    "todo_issue.c": HEAD + "/* TO" + "DO #12: later */\n",
    "fixtures/long.c": "\t" * 2000,
}

if __name__ == "__main__":
    main(check, BAD, GOOD)
