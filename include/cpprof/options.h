/* SPDX-License-Identifier: MIT */
/*
 * What the options of several calls have in common. A flag has the same value
 * and the same meaning wherever it is taken. Each struct says which flags it
 * takes; the others are refused.
 */
#ifndef CPPROF_OPTIONS_H
#define CPPROF_OPTIONS_H

/* How much of the symbol information goes into the file. */
enum cpprof_symbolize {
    CPPROF_SYMBOLIZE_FULL = 0,  /* functions, files, lines, inlined frames */
    CPPROF_SYMBOLIZE_FUNCTIONS, /* function names only */
    CPPROF_SYMBOLIZE_NONE,      /* addresses and build ids only */
};

/* CPU and wall: leave the labels of threads out. */
#define CPPROF_FLAG_NO_LABELS 0x1u
/* Heap, block and mutex: samples carry the labels of their thread. Those
 * of a heap are there since the first such call, or cpprof_labels_keep(). */
#define CPPROF_FLAG_LABELS 0x2u
/* The form that came before profile.proto: CPU, the binary form of gperftools;
 * others, their text of 2016, not compressed. */
#define CPPROF_FLAG_LEGACY 0x4u
/* CPU with LEGACY: without the decoys of docs/cpu.md. */
#define CPPROF_FLAG_NO_DECOYS 0x8u
/* Heap: in-use values at the moment when most was in use. */
#define CPPROF_FLAG_PEAK 0x10u
/* Block: also waits that have not ended. */
#define CPPROF_FLAG_IN_PROGRESS 0x20u
/* Heap: the default sample type is alloc_space, as in Go's "allocs". */
#define CPPROF_FLAG_ALLOCS 0x40u
/* Wall: only threads that do not run. */
#define CPPROF_FLAG_OFF_CPU 0x80u
/* Wall: the value is called "time", as fgprof calls it, instead of "wall". */
#define CPPROF_FLAG_FGPROF 0x100u
/* Wall: text, a line "main;f;g 42" for each stack. */
#define CPPROF_FLAG_COLLAPSED 0x200u
/* Snapshot: the first delta is everything since the start. */
#define CPPROF_FLAG_SINCE_START 0x400u
/* Snapshot of a heap: what is in use is written as it is, not as a delta. */
#define CPPROF_FLAG_IN_USE 0x800u
/* VM: samples of the same stack and labels become one, which needs memory for
 * each stack; else they are written as they come. */
#define CPPROF_FLAG_MERGE 0x1000u

#endif
