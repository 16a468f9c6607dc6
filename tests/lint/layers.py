#!/usr/bin/env python3
"""Keep the rooms: who may include whom, as docs/architecture.md says.

    layers.py ROOT        check every source file under ROOT
    layers.py --self-test

The table in docs/architecture.md is the rule; there is no other. A room is a
folder. It may include its own headers, those of the rooms and the headers in
its last column, and <cpprof/...>; code of handlers (src/collect/signal) may
not include the last. Also: a room has at most 25 files; rooms never include
each other in a circle; within a room at most two files do.
"""
import os
import re

from trees import main

MAP = "docs/architecture.md"
MAX_FILES = 25
HANDLERS = "src/collect/signal"
# These may include everything: they are nobody's room.
FREE = ("bench", "tests")
TOPS = ("include", "src", "bindings", "examples") + FREE

ROW = re.compile(r"^\| `(\S+)/` \| [^|]+ \| ([^|]+) \|$")
SOURCE = re.compile(r"\.(c|h|cc|cpp|hpp|S)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def read_map(root):
    """{room: folders and headers it may include}, as the table has them."""
    words = {}
    with open(os.path.join(root, MAP), encoding="utf-8") as lines:
        for line in lines:
            match = ROW.match(line.rstrip("\n"))
            if match:
                words[match.group(1)] = re.findall(r"`([^`]+)`",
                                                   match.group(2))
    rules = {}
    for room, names in words.items():
        rules[room] = set()
        for name in names:
            tried = [name, "src/" + name, "src/collect/" + name]
            rules[room].add(next(
                (path for path in tried if path in words or
                 os.path.isfile(os.path.join(root, path))), name))
    return rules


def sources(root):
    for top in TOPS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if SOURCE.search(name):
                    yield os.path.relpath(os.path.join(folder, name), root)


def included(root, path):
    """(line number, name, path or None) of each include line of ours."""
    with open(os.path.join(root, path), encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            name = match.group(2)
            if name.startswith("cpprof/"):
                yield number, name, None
                continue
            beside = os.path.normpath(
                os.path.join(os.path.dirname(path), name))
            for found in (beside, os.path.join("src", name)):
                if os.path.exists(os.path.join(root, found)):
                    yield number, name, found
                    break
            else:
                if match.group(1) == '"':
                    yield number, name, os.path.join("src", name)


def check_file(root, path, rules, arrows):
    """What is wrong with the include lines of one file; arrows collects them
    as {unit: units}, a unit being a .c and its .h."""
    room = os.path.dirname(path)
    if path.split(os.sep)[0] in FREE:
        return []
    if room not in rules:
        return ["%s: %s has no line for this folder" % (path, MAP)]
    wrong = []
    for number, name, found in included(root, path):
        if found is None:
            if not room.startswith(HANDLERS):
                continue
        else:
            if os.path.dirname(found) == room:
                arrows.setdefault(os.path.splitext(path)[0], set()).add(
                    os.path.splitext(found)[0])
                continue
            if rules[room] & {os.path.dirname(found), found}:
                continue
        wrong.append("%s:%d: %s may not include %s"
                     % (path, number, room, name))
    return wrong


def circles(arrows):
    """The sets of nodes that reach each other (Tarjan's components)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(arrows.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return found


def check(root):
    rules = read_map(root)
    paths = list(sources(root))
    arrows, n_files, wrong = {}, {}, []
    if not paths or not rules:
        return ["no source files, or no table in %s" % MAP]
    for path in paths:
        room = os.path.dirname(path)
        n_files[room] = n_files.get(room, 0) + 1
        wrong += check_file(root, path, rules, arrows)
    for room, n in sorted(n_files.items()):
        if n > MAX_FILES and room.startswith("src/"):
            wrong.append("%s: %d files, more than %d" % (room, n, MAX_FILES))
    for room, names in sorted(rules.items()):
        if room not in n_files:
            wrong.append("%s: %s has no source file" % (MAP, room))
        for name in sorted(names - set(n_files) - set(paths)):
            wrong.append("%s: %s names %s, which is not there"
                         % (MAP, room, name))
    rooms = {room: {name if name in rules else os.path.dirname(name)
                    for name in names} for room, names in rules.items()}
    for circle in circles(rooms):
        wrong.append("%s: in a circle: %s" % (MAP, " ".join(circle)))
    for circle in circles(arrows):
        if len(circle) > 2:
            wrong.append("include each other: " + " ".join(circle))
    return wrong


TABLE = """
| `include/cpprof/` | public | nothing |
| `src/arch/` | a | nothing |
| `src/base/` | b | nothing |
| `src/collect/signal/` | handlers | `arch` |
| `src/collect/store/` | stacks | `signal`, `base` |
| `src/page/` | below what includes it | `base` |
| `src/http/` | one header of another | `store`, `page/page.h` |
| `src/cli/` | the command | nothing |
| `src/many/` | more than there may be | nothing |
| `bindings/lua/` | a module | nothing |
| `bindings/python/` | a module | nothing |
| `examples/` | examples | nothing |
"""
BAD = {
    "src/base/x.c": '#include "collect/store/y.h"',
    "src/collect/store/x.c": '#include "page/page.h"',
    "src/collect/store/x2.c": '# include "profile/decode.h"',
    "src/collect/signal/x.c": '#include "base/y.h"',
    "src/collect/signal/x2.c": "#include <cpprof/status.h>",
    "src/collect/signal/x3.c": '#include "../store/y.h"',
    "src/cli/x.c": '#include "base/y.h"',
    "src/http/x.c": '#include "page/other.h"',
    "src/base/x2.c": "#include <collect/store/y.h>",
    "src/nowhere/x.c": "int x;",
    "include/cpprof/x.h": '#include "base/y.h"',
    "examples/x.c": '#include "base/y.h"',
    "bindings/lua/x.c": '#include "../python/x.h"',
}
GOOD = {
    "src/arch/regs.h": "",
    "src/base/y.c": '#include "base/y.h"\n#include <stdio.h>',
    "src/base/y.h": "",
    "src/collect/store/y.c": '#include "collect/signal/y.h"\n'
                             '#include "base/y.h"\n#include "y.h"',
    "src/collect/store/y.h": "#include <cpprof/writer.h>",
    "src/collect/signal/y.c": '#include "collect/signal/y.h"\n'
                              '#include "y.h"\n#include "arch/regs.h"',
    "src/collect/signal/y.h": "",
    "src/page/page.h": "",
    "src/page/other.h": "",
    "src/http/y.c": '#include "page/page.h"',
    "bindings/lua/y.c": '#include "y.h"',
    "bindings/lua/y.h": "#include <cpprof/writer.h>",
    "bindings/python/x.h": "",
    "tests/unit/y.c": '#include "collect/store/y.h"',
}
CIRCLE = {"src/cli/a.h": '#include "b.h"', "src/cli/b.h": '#include "c.h"',
          "src/cli/c.h": '#include "a.h"'}
# What is said of the whole, whichever files there are.
SAID = ["src/many: 26 files", "include each other: src/cli/a src/cli/b",
        "in a circle: src/base src/page"]
OTHERS = {**CIRCLE, MAP: TABLE.replace("| b | nothing |", "| b | `page` |"),
          **{"src/many/%d.c" % i: "int x;" for i in range(26)}}

if __name__ == "__main__":
    main(check, BAD, GOOD, OTHERS, SAID)
