/* SPDX-License-Identifier: MIT */
/* A library with nothing in it: what it costs to preload one at all. */
extern int cpprof_empty;
int cpprof_empty;
