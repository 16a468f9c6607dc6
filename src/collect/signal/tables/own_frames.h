/* SPDX-License-Identifier: MIT */
/*
 * Frames of our own making: numbers that stand where a pc would, below every
 * address that code can have.
 */
#ifndef COLLECT_SIGNAL_OWN_FRAMES_H
#define COLLECT_SIGNAL_OWN_FRAMES_H

#include "collect/signal/unwind/unwind.h"

#include <stddef.h>
#include <stdint.h>

enum cpprof__own_frame {
    CPPROF__FRAME_LOST = 1,   /* "[lost samples]": there was no room */
    CPPROF__FRAME_TRUNCATED,  /* "[truncated]": the stack goes on */
    CPPROF__FRAME_BROKEN,     /* "[unwind failed]": it could not be followed */
    CPPROF__FRAME_BLOCKED,    /* "[signal blocked]": CPU time of a thread that
                               * blocks the sampling signal, which libc's
                               * calls do not do */
    CPPROF__FRAME_EXITED,     /* "[short-lived thread]": CPU time a thread used
                               * up before its first tick could come */
    CPPROF__FRAME_SILENT,     /* "[no answer]": a thread that was asked for its
                               * stack and did not come to answer */
    CPPROF__FRAME_MAIN,       /* "[main thread]": which nothing created */
    CPPROF__FRAME_ORPHAN,     /* "[unknown creator]": a bare clone() */
    CPPROF__FRAME_UNREADABLE, /* "[not readable]": a thread that sleeps where
                               * the kernel lets nobody see it */
    CPPROF__FRAME_NO_ROOM,    /* "[no room on alternate stack]": not walked, for
                               * that would overrun it */
    CPPROF__FRAME_NO_SCRIPT,  /* "[script not read]": where its frames would be;
                               * too many stacks were read at once */
    CPPROF__FRAME_NO_LIBC,    /* "[thread without libc]": a bare clone() with a
                               * thread pointer that is not libc's, whose stack
                               * is not walked */
    CPPROF__FRAME_NO_CALLS,   /* "[SIGSYS blocked]": a filter could end the
                               * process for a call that a walk makes */
    CPPROF__FRAME_END = 16
};

/* Add the frame that says why a walk ended early, if it did, at the root of a
 * stack; there is room for it. Returns the new number of frames. Safety: AS. */
static inline size_t
cpprof__mark_end(uintptr_t *pcs, size_t n, enum cpprof__unwind_end end)
{
    if (end == CPPROF__UNWIND_DEPTH)
        pcs[n++] = CPPROF__FRAME_TRUNCATED;
    else if (end == CPPROF__UNWIND_BROKEN)
        pcs[n++] = CPPROF__FRAME_BROKEN;
    return n;
}

#endif
