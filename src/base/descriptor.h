/* SPDX-License-Identifier: MIT */
/* Numbers of descriptors that stay, in a process that is not ours. */
#ifndef BASE_DESCRIPTOR_H
#define BASE_DESCRIPTOR_H

#include <stddef.h>

/*
 * The same file at a high number, the old one closed: low ones are those that a
 * program closes in a loop, counts on getting, or, with 0 to 2 closed, writes
 * its messages to. fd itself where there is no such number, unless it is one of
 * those three: then -1 and errno, and it is closed.
 */
int
cpprof__descriptor_high(int fd);

/*
 * For descriptors that others make, and know the numbers of: takes all free
 * ones below a certain number, so that what is made next is not among them.
 * For as short a time as can be: the program finds them taken.
 */
#define CPPROF__DESCRIPTORS_LOW 256
struct cpprof__descriptors_held {
    size_t n;
    int fds[CPPROF__DESCRIPTORS_LOW];
};
void
cpprof__descriptors_hold(struct cpprof__descriptors_held *held);
void
cpprof__descriptors_release(struct cpprof__descriptors_held *held);

#endif
