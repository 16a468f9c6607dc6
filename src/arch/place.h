/* SPDX-License-Identifier: MIT */
/*
 * Where variables and functions lie in libcpprof.so. Each page that a start of
 * the program or a forked child touches costs it a fault, of 1 to 3 us.
 */
#ifndef ARCH_PLACE_H
#define ARCH_PLACE_H

/* A variable of 1 KiB and more. The linker sorts variables by alignment, so it
 * stands before the small ones, which then share two pages. */
#define CPPROF__LARGE __attribute__((aligned(128)))

/* A variable that is written to at each start, or in each forked child: beside
 * those that the loader writes to. All of them have one page
 * (tests/lint/mapped.py), so whatever is large or not always written to stays
 * elsewhere. */
#define CPPROF__AT_START __attribute__((section(".data")))

/* A function that runs at each start, in each forked child or at its end: they
 * lie side by side. After a fork no page of a library's code is there. */
#define CPPROF__FIRST_STEP __attribute__((section(".text.startup.cpprof")))

#endif
