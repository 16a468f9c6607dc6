/* SPDX-License-Identifier: MIT */
/*
 * Where variables and functions lie in libcpprof.so. Each page that a start of
 * the program or a forked child touches costs it a fault, of 1 to 3 us.
 */
#ifndef ARCH_PLACE_H
#define ARCH_PLACE_H

/* A variable of 1 KiB and more. The linker sorts variables by alignment, so it
 * stands before the small ones, which then share two pages; a child writes to
 * most of them. */
#define CPPROF__LARGE __attribute__((aligned(128)))

/* A variable that is written to at each start: beside those that the loader
 * writes to. */
#define CPPROF__AT_START __attribute__((section(".data")))

/* A function of the library's first steps that has its own file: it is laid
 * beside the others. */
#define CPPROF__FIRST_STEP __attribute__((section(".text.startup.cpprof")))

#endif
