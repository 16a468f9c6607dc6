#!/usr/bin/env python3
"""What code that runs inside a signal handler may call.

    as_symbols.py BUILD             the objects of src/collect/signal in BUILD
    as_symbols.py --cross CC ROOT   the same, compiled here by CC
    as_symbols.py --self-test [CC]

Every undefined symbol of those objects must stand in as-symbols.allow, or be
defined by another of them. Thread-local storage must be initial-exec: a call
of __tls_get_addr or of a TLS descriptor may allocate the first time a thread
comes by. A call must not be bound by the loader when it is first made, which
takes 3 KiB of the stack (-fno-plt). An entry of the allow list that nothing uses is an error too, so that
the list stays the truth.

What libcpprof.so calls of libc, in handlers or elsewhere, must be libc's own
and not a function of that name in the program: through a word that
src/collect/entries/libc_names.c points at it, of a version that it knows.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = "src/collect/signal/"
FLAGS = ["-std=gnu11", "-O2", "-g", "-D_GNU_SOURCE", "-fPIC",
         "-fvisibility=hidden", "-fno-plt", "-ftls-model=initial-exec",
         "-fno-strict-aliasing"]

# Relocations of TLS models that call a function: general and local dynamic,
# and descriptors.
LAZY_TLS = re.compile(
    r"R_\w*(TLSGD|TLSLD|TLSDESC|DTPMOD|DTPREL|DTPOFF|LDM)\w*")


def run(*words):
    return subprocess.run(words, capture_output=True, text=True,
                          check=True).stdout


def tool(cc, name):
    """binutils of the compiler's target."""
    return cc[:-len("gcc")] + name if cc.endswith("-gcc") else name


def read_allowed(path):
    """{symbol: reason}; a line is `symbol  reason`, # starts a comment."""
    allowed = {}
    with open(path, encoding="ascii") as lines:
        for number, line in enumerate(lines, 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            symbol, _, reason = line.partition(" ")
            if not reason.strip():
                sys.exit("%s:%d: no reason for %s" % (path, number, symbol))
            allowed[symbol] = reason.strip()
    return allowed


def symbols(nm, objects, *flags):
    found = {}
    for path in objects:
        for line in run(nm, "-P", *flags, path).split("\n"):
            words = line.split()
            if len(words) >= 2:
                found.setdefault(words[0], os.path.basename(path))
    return found


def is_allowed(symbol, allowed):
    """Is it listed: as it is, with ?, or by an entry that ends in *?"""
    names = [name.rstrip("?") for name in allowed]
    return symbol in names or any(
        name.endswith("*") and symbol.startswith(name[:-1]) for name in names)


def lazy_tls(readelf, path):
    """Kinds of relocations in code that mean a call for a TLS address."""
    kinds = set()
    for section in run(readelf, "-rW", path).split("Relocation section ")[1:]:
        if not section.startswith("'.rela.debug"):
            kinds.update(match.group(0) for match in LAZY_TLS.finditer(section))
    return kinds


def lazily_bound(readelf, objects):
    """Symbols that are called by way of the linker's table, on x86-64."""
    return {symbol for path in objects
            for symbol in re.findall(r"R_X86_64_PLT32 .* (\w+) [-+] \w+\n",
                                     run(readelf, "-rW", path))}


def check(objects, allowed, cc="gcc", unused=True):
    """Lines of what is wrong with the objects."""
    wrong = []
    if not objects:
        return ["no object of %s found: nothing was checked" % FOLDER]
    undefined = symbols(tool(cc, "nm"), objects, "-u")
    defined = symbols(tool(cc, "nm"), objects, "--defined-only")
    for symbol, where in sorted(undefined.items()):
        if symbol in defined or symbol == "_GLOBAL_OFFSET_TABLE_":
            continue
        if not is_allowed(symbol, allowed):
            wrong.append("%s: %s is not allowed in a handler"
                         % (where, symbol))
        elif symbol in lazily_bound(tool(cc, "readelf"), objects):
            wrong.append("%s: %s is bound by a handler's first call"
                         % (where, symbol))
    for path in objects:
        for kind in sorted(lazy_tls(tool(cc, "readelf"), path)):
            wrong.append("%s: thread-local storage by %s may allocate"
                         % (os.path.basename(path), kind))
    if unused:
        for symbol in sorted(set(allowed) - set(undefined)):
            if not symbol.endswith("?"):
                wrong.append("as-symbols.allow: nothing uses %s" % symbol)
    return wrong


# Of sanitizers and of libgcc, asked for where they are there.
MAY_BE_THERE = {"__tsan_init", "__lsan_disable", "_Unwind_GetCFA"}
VERSIONS_MAX = 64  # N_VERSIONS of libc_names.c


def not_libcs(library, readelf="readelf"):
    """Lines about functions of others that the library's first step leaves as
    the loader has found them."""
    text = run(readelf, "-W", "--dyn-syms", library)
    functions = dict(re.findall(
        r" (?:FUNC|IFUNC|NOTYPE) +(?:GLOBAL|WEAK) +DEFAULT +UND (\w+)(@\S+)?",
        text))
    wrong = ["%s: %s has no version" % (os.path.basename(library), name)
             for name, version in sorted(functions.items())
             if not version and name not in MAY_BE_THERE]
    for kind, name in re.findall(
            r"^\w+  \w+ (R_\w+) +\w+ (\w+)", run(readelf, "-rW", library),
            re.M):
        if name in functions and not kind.endswith(("JUMP_SLOT", "GLOB_DAT",
                                                    "JUMP_SL")):
            wrong.append("%s: %s by %s stays another's" % (
                os.path.basename(library), name, kind))
    numbers = [int(n) for n in re.findall(r"Version: (\d+)\n",
                                          run(readelf, "-VW", library))]
    if not functions or max(numbers, default=VERSIONS_MAX) >= VERSIONS_MAX:
        wrong.append("%s: nothing is bound, or too many versions" % library)
    return wrong


def objects_of(build):
    """The objects of the handler's sources, from what meson says it built."""
    path = os.path.join(build, "compile_commands.json")
    with open(path, encoding="utf-8") as text:
        commands = json.load(text)
    found = []
    for command in commands:
        source = os.path.normpath(
            os.path.join(command["directory"], command["file"]))
        if "/" + FOLDER in source and "libsignal.a.p/" in command["output"]:
            found.append(os.path.join(build, command["output"]))
    return sorted(found)


def compile_all(cc, root, folder):
    """Every handler source of root, compiled by cc into folder."""
    found = []
    top = os.path.join(root, FOLDER)
    for room, _, names in sorted(os.walk(top)):
        for name in sorted(names):
            if not name.endswith((".c", ".S")):
                continue
            path = os.path.join(folder, name + ".o")
            run(cc, *FLAGS, "-I" + os.path.join(root, "include"),
                "-I" + os.path.join(root, "src"), "-c",
                os.path.join(room, name), "-o", path)
            found.append(path)
    return found


# name: (source, flags, is it caught?)
CASES = {
    "malloc": ("#include <stdlib.h>\nvoid *f(void){return malloc(9);}",
               [], True),
    "lock": ("#include <pthread.h>\nint f(pthread_mutex_t *m)"
             "{return pthread_mutex_lock(m);}", [], True),
    "lazy_tls": ("__thread int x; int *f(void){return &x;}",
                 ["-ftls-model=global-dynamic"], True),
    "lazy_static_tls": ("static __thread int x; int *f(void){return &x;}"
                        "int g(void){return x++;}",
                        ["-ftls-model=local-dynamic"], True),
    "eager_tls": ("__thread int x; int *f(void){return &x;}",
                  ["-ftls-model=initial-exec"], False),
    "memcpy": ("#include <string.h>\nvoid f(char*a,char*b,int n)"
               "{memcpy(a,b,n);}", [], False),
    "lazy_call": ("#include <string.h>\nvoid f(char*a,char*b,int n)"
                  "{memcpy(a,b,n);}", ["-fplt"], True),
}


# source: is it caught?
LIBRARIES = {
    "#include <unistd.h>\nint f(void){return getpid();}": False,
    "#include <unistd.h>\nint(*const f)(void)=getpid;": True,
    "int other(void);int f(void){return other();}": True,
}


def self_test_library():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/it"
        for source, caught in LIBRARIES.items():
            with open(path + ".c", "w", encoding="ascii") as out:
                out.write(source)
            run("gcc", "-shared", "-fPIC", "-nostartfiles", "-o", path,
                path + ".c")
            found = not_libcs(path)
            if bool(found) != caught:
                print("%s: %s" % (source, found or "not caught"))
                bad = 1
    return bad


def self_test(cc):
    allowed = {"memcpy?": "a builtin", "__aarch64_*?": "atomics"}
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (source, flags, caught) in CASES.items():
            if name == "lazy_call" and cc != "gcc":
                continue
            path = os.path.join(folder, name)
            with open(path + ".c", "w", encoding="ascii") as out:
                out.write(source)
            run(cc, *FLAGS, *flags, "-c", path + ".c", "-o", path + ".o")
            found = check([path + ".o"], allowed, cc, unused=False)
            if bool(found) != caught:
                print("%s: %s %s" % (cc, name, found or "not caught"))
                bad = 1
        if not check([path + ".o"], {**allowed, "never": "x"}, cc):
            print("an entry that nothing uses is not caught")
            bad = 1
    if cc == "gcc":
        bad |= self_test_library()
    if not check([], allowed, cc):
        print("no objects at all is not caught")
        bad = 1
    return bad


def main():
    if sys.argv[1] == "--self-test":
        return self_test(sys.argv[2] if len(sys.argv) > 2 else "gcc")
    allowed = read_allowed(os.path.join(HERE, "as-symbols.allow"))
    if sys.argv[1] == "--cross":
        with tempfile.TemporaryDirectory() as folder:
            objects = compile_all(sys.argv[2], sys.argv[3], folder)
            # Another architecture may need less.
            found = check(objects, allowed, sys.argv[2], unused=False)
    else:
        found = check(objects_of(sys.argv[1]), allowed)
        found += not_libcs(os.path.join(sys.argv[1], "libcpprof.so"))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
