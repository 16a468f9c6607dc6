/* SPDX-License-Identifier: MIT */
/*
 * The interface of libcpprof-symbol.so, which turns addresses into functions,
 * files and lines. Its callers are the writer of a profile and the command that
 * adds names to a profile without any. The plug-in is loaded with dlopen when
 * it is needed first and found by the one symbol below; everything else about
 * it is private.
 */
#ifndef OBJECT_SYMBOLIZER_H
#define OBJECT_SYMBOLIZER_H

#include "own/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CPPROF__SYMBOLIZER_ABI    14
#define CPPROF__SYMBOLIZER_SYMBOL "cpprof__symbolizer"

/* One function of a location: the physical one, or one inlined into it. */
struct cpprof__frame {
    const char *name;        /* demangled; never NULL */
    const char *system_name; /* as the linker knows it; never NULL */
    const char *file;        /* or NULL */
    int64_t start_line;      /* of the function's declaration, 0: unknown */
    int64_t line;            /* 0: unknown */
    int64_t column;          /* 0: unknown */
    uint64_t entry;          /* pc of the first byte of the physical function,
                              * the same in all frames; 0: unknown */
    bool is_stand_in;        /* name is made of the function's address, or is
                              * concluded: it gives way to a true one */
    uint64_t limit;          /* the first pc behind that function's symbol, the
                              * same in all frames; 0: unknown */
    uint32_t discriminator;  /* of line, as DWARF has it; 0: none, or not
                              * asked for */
};

/*
 * Who brings files of debug information that are not on this machine. Zero
 * bytes is nobody: a profiled process has no such one.
 */
struct cpprof__fetcher {
    /* Put the path of the debug file of a build id, in hex, into path; false:
     * there is none, or it does not fit. What comes is checked. */
    bool (*debug_file)(void *ctx, const char *build_id, char *path,
                       size_t n_path);
    /* Tell whoever looks on what is missing and what to do, in one line; NULL:
     * nobody does. */
    void (*warn)(void *ctx, const char *text);
    void *ctx;
    const char *proc; /* where pids are those of the profiles; NULL: /proc */
};

static inline const char *
cpprof__proc_of(const struct cpprof__fetcher *fetcher)
{
    return fetcher->proc ? fetcher->proc : "/proc";
}

/* That of this process: `cpprof record` sets it before it writes profiles. */
extern struct cpprof__fetcher cpprof__fetcher;

struct cpprof__symbolizer_options {
    struct cpprof__fetcher fetcher;
    bool functions_only; /* names, no files, lines or inlined frames */
    bool addresses; /* a pc is an address of the image itself, so the position
                       of mappings does not matter */
    bool discriminators; /* which of several blocks of a line it is */
    int32_t pid;         /* for /tmp/perf-PID.map and the vdso */
};

struct cpprof__symbolizer_mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
    const char *path;     /* "" for anonymous memory, "[vdso]" */
    const char *build_id; /* hex, or "". A file with another id is not the image
                             that ran and is not used */
    uint64_t inode;       /* of the file that is mapped, 0: unknown. Without a
                             build id it tells whether a file is that one */
};

/* The number N of a path ".../jit-N.dump", 0 for others. A compiler maps this
 * file to execute, for profilers to find it: a symbolizer is told of such a
 * mapping before it is asked for code without one. */
static inline int
cpprof__jit_dump_pid(const char *path)
{
    const char *base = strrchr(path, '/');
    int pid = 0, n = 0;

    return base && sscanf(base, "/jit-%9d.dump%n", &pid, &n) == 1 && n &&
                   !base[n] && pid > 0
               ? pid
               : 0;
}

struct cpprof__symbolizer; /* opaque, one thread at a time */

struct cpprof__symbolizer_ops {
    uint32_t abi; /* CPPROF__SYMBOLIZER_ABI */

    /* Before all others, by who loads the plug-in: where it has its memory
     * from, and libdw and libelf while it calls them (own/memory.h). */
    void (*borrow)(const struct cpprof__memory *lender);

    /* NULL when out of memory. */
    struct cpprof__symbolizer *(*make)(
        const struct cpprof__symbolizer_options *options);

    /* Copies *mapping; returns its index, 0, 1, ..., the same for the same, or
     * SIZE_MAX. Cheap: the file is opened when the first address of the mapping
     * is asked for. */
    size_t (*add_mapping)(struct cpprof__symbolizer *s,
                          const struct cpprof__symbolizer_mapping *mapping);

    /* resolve() will be asked for pc. Who says so of all before the first is
     * asked for saves the reading of what they do not need. */
    void (*expect)(struct cpprof__symbolizer *s, size_t mapping, uint64_t pc);

    /*
     * The frames of pc, innermost inlined function first, the physical
     * function last; at most max. pc lies inside the instruction (callers are
     * already return address - 1). 0 when nothing is known. Strings live until
     * free. mapping SIZE_MAX: memory that no mapping lists (JIT code).
     */
    size_t (*resolve)(struct cpprof__symbolizer *s, size_t mapping, uint64_t pc,
                      struct cpprof__frame *frames, size_t max);

    /* Code that no mapping lists is from here on what it was when the file that
     * names it, the dump or else the perf map, had n_bytes; UINT64_MAX: what it
     * was last. Code without a name up to there has the next name. */
    void (*turn_to_code)(struct cpprof__symbolizer *s, uint64_t n_bytes);

    /* True when inlined frames of this mapping are known: it has DWARF with
     * inline information, no file of it was missing for what was asked for so
     * far, and functions_only is off. */
    bool (*knows_inlines)(struct cpprof__symbolizer *s, size_t mapping);

    /* From here on it is about another process, which has no mappings yet. What
     * is known of images, by their build ids, stays. */
    void (*turn_to)(struct cpprof__symbolizer *s, int32_t pid);

    /*
     * Close files, the largest first, until at most max_bytes are held, and
     * those that are not what lies at their path any more or may change without
     * notice: to read one that was cut is a SIGBUS. Whoever asks again later
     * does this before. They are opened again when they are needed. Returns the
     * bytes that are held, about.
     */
    size_t (*trim)(struct cpprof__symbolizer *s, size_t max_bytes);

    void (*free)(struct cpprof__symbolizer *s);
};

/* NULL when libcpprof-symbol.so is not there or is another version; profiles
 * then have addresses and build ids. */
const struct cpprof__symbolizer_ops *
cpprof__symbolizer_load(void);

#endif
