/* SPDX-License-Identifier: MIT */
/*
 * Libraries that a plug-in of ours brings into the process. libc runs their
 * destructors on whoever calls exit(). That may be a handler of the program
 * which interrupted malloc: what frees memory there waits for ever, and the
 * program has no part in it. At the end of a process they have nothing to do
 * that the kernel does not do, so they are left out.
 */
#ifndef OBJECT_BROUGHT_H
#define OBJECT_BROUGHT_H

struct cpprof__brought;

/* Before a plug-in is loaded: note which libraries are there. NULL: no memory.
 */
struct cpprof__brought *
cpprof__brought_begin(void);

/* When it is there: plug_in is its handle, or NULL. A library that was there
 * before, or that the plug-in does not need, keeps its destructors, and so does
 * the plug-in. Frees b. */
void
cpprof__brought_end(struct cpprof__brought *b, void *plug_in);

#endif
