#!/usr/bin/env python3
"""Keep the layers: who may include whom (docs/architecture.md).

    layers.py ROOT        check every source file under ROOT
    layers.py --self-test

A layer is a folder. Its rule names the layers whose headers it may include
with quotes; `public` stands for <cpprof/...>. Only one way: what is not listed
is forbidden, and a folder without a rule is an error.
"""
import os
import re
import sys
import tempfile

EVERYTHING = None

RULES = {
    "include/cpprof": {"public"},
    "src/base": {"base", "public"},
    "src/arch": {"arch"},
    "src/object": {"object", "base", "public"},
    "src/profile": {"profile", "profile/legacy", "profile/text", "base",
                    "public"},
    "src/page": {"page"},
    "src/report": {"report", "symbolize", "profile", "profile/text", "base",
                   "page", "public"},
    "src/symbolize": {"symbolize", "profile", "object", "base", "public"},
    "src/symbol": {"symbol", "object", "base", "public"},
    "src/collect": {"collect", "collect/signal", "base", "object", "arch",
                    "public"},
    "src/collect/signal": {"collect/signal", "arch"},
    "src/interpose": {"interpose", "collect", "collect/signal/heap.h",
                      "collect/signal/waits.h", "arch",
                      "base/status.h", "http/listen.h", "push/process.h",
                      "vm/load/process.h", "vm/profile/session.h", "public"},
    "src/http": {"http", "collect", "base", "arch", "object/plug_in.h",
                 "public"},
    "src/http/page": {"http/page", "http", "page", "base", "collect/exempt.h",
                      "public"},
    "src/http/server": {"http/server", "http/plugin.h", "arch", "base/clock.h",
                        "base/descriptor.h", "base/status.h", "public"},
    "src/push": {"push", "collect", "base", "arch", "object/plug_in.h",
                 "public"},
    "src/push/curl": {"push/plugin.h", "arch"},
    "src/vm/state": {"vm/state", "collect", "arch", "public"},
    "src/vm/stacks": {"vm/stacks", "vm/state", "collect", "collect/signal",
                      "arch", "public"},
    "src/vm/profile": {"vm/profile", "vm/state", "collect", "collect/signal",
                       "base", "arch", "public"},
    "src/vm/load": {"vm/load", "collect", "arch", "public"},
    "src/vm": {"vm", "vm/state", "vm/stacks", "vm/profile", "vm/load",
               "collect", "collect/signal", "base", "public"},
    "src/cli": {"cli", "public"},
    "src/cli/fetch": {"cli/fetch", "cli", "public"},
    "src/cli/record": {"cli/record", "cli", "public"},
    "src/cli/report": {"cli/report", "cli/fetch", "cli", "public"},
    "src/cli/shell": {"cli/shell", "cli/report", "cli", "public"},
    "bindings": {"bindings", "public"},
    "bindings/lua": {"bindings/lua", "bindings", "public"},
    "bindings/python": {"bindings/python", "bindings", "public"},
    "examples": {"public"},
    "bench": EVERYTHING,
    "tests": EVERYTHING,
}

SOURCE = re.compile(r"\.(c|h|cc|cpp|hpp|S)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def rule_of(path):
    """The longest folder of path that has a rule, or None."""
    folder = os.path.dirname(path)
    while folder:
        if folder in RULES:
            return folder
        folder = os.path.dirname(folder)
    return None


def targets(root, path, quote, name):
    """What an include means: "public", a layer, a header, or nothing of ours.

    Returns a list of words, any of which the rule may allow.
    """
    if name.startswith("cpprof/"):
        return ["public"]
    if quote == "<":
        # A system header; but nothing of src/ may be reached that way.
        if not os.path.exists(os.path.join(root, "src", name)):
            return []
    beside = os.path.join(os.path.dirname(path), name)
    if os.path.exists(os.path.join(root, beside)):
        found = os.path.normpath(beside)
    else:
        found = os.path.join("src", name)
    inside = os.path.relpath(found, "src")
    return [os.path.dirname(inside), inside, os.path.dirname(found)]


def check_file(root, path):
    rule = rule_of(path)
    if rule is None:
        return ["%s: no layer has this folder" % path]
    allowed = RULES[rule]
    if allowed is EVERYTHING:
        return []
    wrong = []
    with open(os.path.join(root, path), encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            words = targets(root, path, match.group(1), match.group(2))
            if words and not allowed.intersection(words):
                wrong.append("%s:%d: %s may not include %s"
                             % (path, number, rule, match.group(2)))
    return wrong


def sources(root):
    for top in ("include", "src", "bindings", "examples", "bench", "tests"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if SOURCE.search(name):
                    yield os.path.relpath(os.path.join(folder, name), root)


def check(root):
    paths = list(sources(root))
    if not paths:
        return ["no source files under %s" % root]
    return [line for path in paths for line in check_file(root, path)]


BAD = {
    "src/base/x.c": '#include "collect/y.h"',
    "src/collect/x.c": '#include "symbol/symbolizer.h"',
    "src/collect/x2.c": '# include "profile/decode.h"',
    "src/collect/signal/x.c": '#include "base/buffer.h"',
    "src/collect/signal/x2.c": "#include <cpprof/status.h>",
    "src/collect/signal/x3.c": '#include "../builder.h"',
    "src/cli/x.c": '#include "base/buffer.h"',
    "src/profile/x.c": '#include "report/report.h"',
    "src/object/x.c": "#include <collect/builder.h>",
    "src/nowhere/x.c": "int x;",
    "include/cpprof/x.h": '#include "base/buffer.h"',
    "examples/x.c": '#include "base/buffer.h"',
    "bindings/lua/x.c": '#include "../python/x.h"',
}
GOOD = {
    "src/base/y.c": '#include "base/buffer.h"\n#include <stdio.h>',
    "src/collect/y.c": '#include "collect/signal/ring.h"\n'
                       '#include "object/maps.h"',
    "src/collect/builder.h": "#include <cpprof/writer.h>",
    "src/collect/signal/y.c": '#include "collect/signal/y.h"\n'
                              '#include "y.h"\n#include "arch/regs.h"',
    "src/collect/signal/y.h": "",
    "src/interpose/y.c": '#include "base/status.h"',
    "bindings/lua/y.c": '#include "y.h"',
    "bindings/lua/y.h": "#include <cpprof/writer.h>",
    "bindings/python/x.h": "",
    "tests/unit/y.c": '#include "profile/decode.h"',
}


def self_test():
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**BAD, **GOOD}.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)),
                        exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write(text + "\n")
        caught = {line.split(":")[0] for line in check(root)}
    missed = set(BAD) - caught
    wrong = set(GOOD) & caught
    for path in sorted(missed):
        print("not caught: %s: %s" % (path, BAD[path]))
    for path in sorted(wrong):
        print("caught wrongly: %s" % path)
    return 1 if missed or wrong else 0


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        sys.exit(self_test())
    found = check(sys.argv[1])
    print("\n".join(found))
    sys.exit(1 if found else 0)
