/* SPDX-License-Identifier: MIT */
/* The end of the process, from the library's own first and last steps. */
#ifndef INTERPOSE_EXIT_H
#define INTERPOSE_EXIT_H

/* The library's destructor. */
void
cpprof__at_exit(void);

/* For at_quick_exit(). */
void
cpprof__at_quick_exit(void);

#endif
