#!/usr/bin/env python3
"""libcpprof-static.a from libcpprof.a, and what the linker is told with it:

    wrap.py REAL_H options|options-of-musl OUTPUT
    wrap.py REAL_H archive OBJCOPY AR OUTPUT LIBCPPROF_A OBJECT...

The names that are taken over (collect/runtime/real.h) become __wrap_NAME there
(linked.c). The objects stand for init.c and plug_in.c, and with them is linked.c.
"""
import os
import re
import subprocess
import sys

REPLACED = re.compile(r"(src_interpose_init|plug_in|no_plug_ins)\.c\.o")


def names(text, macro=None):
    """In the order of the table: of one macro, or all that are taken over."""
    if macro:
        text = re.search(r"#define %s\(X\)((?:.*\\\n)*.*\n)" % macro, text)[1]
    return list(dict.fromkeys(
        re.findall(r"\bX\((?!BENEATH)[A-Z]+, (\w+)\)", text)))


def main():
    with open(sys.argv[1], encoding="utf-8") as header:
        text = header.read()
    if sys.argv[2].startswith("options"):
        plain = names(text, "CPPROF__NAMES_UNWRAPPED")
        with open(sys.argv[3], "w", encoding="utf-8") as out:
            # Stacks are walked by a table that gcc -static leaves out.
            out.write("--eh-frame-hdr\n")
            # Whatever refers to the rest may come after the archive.
            out.write("--undefined=__wrap_malloc\n")
            wrapped = [name for name in names(text) if name not in plain]
            out.writelines("--wrap=%s\n" % name for name in wrapped)
            # lld takes no member of libc for __real_NAME alone, and leaves 0.
            # musl does not have them all.
            if sys.argv[2] == "options":
                out.writelines("--undefined=%s\n" % name for name in wrapped)
        return
    objcopy, ar, output, library, *objects = sys.argv[3:]
    members = subprocess.run([ar, "t", library], check=True, text=True,
                             capture_output=True).stdout.split()
    out = [member for member in members if REPLACED.fullmatch(member)]
    assert len(out) == 2, out
    part, renamed = output + ".part", output + ".names"
    with open(renamed, "w", encoding="utf-8") as pairs:
        pairs.writelines("%s __wrap_%s\n" % (name, name) for name in names(text))
        # The linker would warn of this one wherever it finds it.
        pairs.write("dlopen cpprof__dlopen\n")
    subprocess.run(["cp", library, part], check=True)
    subprocess.run([ar, "d", part] + out, check=True)
    subprocess.run([ar, "q", part] + objects, check=True)
    subprocess.run([objcopy, "--redefine-syms=" + renamed, part, output],
                   check=True)
    os.unlink(part)
    os.unlink(renamed)


main()
