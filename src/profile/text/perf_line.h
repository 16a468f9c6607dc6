/* SPDX-License-Identifier: MIT */
/*
 * The lines that `perf script` prints. A sample is a header, then a frame per
 * line, leaf first, then an empty line; or, without call chains, all of it on
 * one line:
 *
 *     V8 Worker 24636/25607 [000] 94564.109216:     1003009 cycles:u:
 *             ffffffff81013236 cpu_idle+0x16 ([kernel.kallsyms])
 *                 7f533952bc77 f(int) (inlined)
 *                 7f533952bc77 operator()+0x5 (/tmp/a b.so (deleted))
 *
 * Which fields there are depends on -F and on the event.
 *
 * Source: tools/perf/builtin-script.c, util/evsel_fprintf.c of Linux.
 */
#ifndef PROFILE_TEXT_PERF_LINE_H
#define PROFILE_TEXT_PERF_LINE_H

#include "profile/legacy/lines.h"

struct cpprof__perf_header {
    struct cpprof__text comm;
    struct cpprof__text event; /* with its modifiers; empty: not printed */
    struct cpprof__text rest;  /* behind the event */
    int64_t pid, tid;          /* -1: not printed */
    int64_t period;            /* where has_period */
    int64_t time_ns;           /* since boot, or -1 */
    bool has_period;
    bool is_record; /* no sample, but what --show-mmap-events and such print */
};

struct cpprof__perf_frame {
    uint64_t address;
    struct cpprof__text name; /* without its offset; empty: unknown */
    struct cpprof__text dso;  /* empty: unknown; at NULL: not printed */
    bool inlined;
};

/* False when the line is no header. */
bool
cpprof__perf_header(struct cpprof__text line, struct cpprof__perf_header *h);

/* False when the line is no frame. */
bool
cpprof__perf_frame(struct cpprof__text line, struct cpprof__perf_frame *f);

/* "FILE:NUMBER", which -F +srcline prints below a frame. */
bool
cpprof__perf_source(struct cpprof__text line, struct cpprof__text *file,
                    int64_t *number);

#endif
