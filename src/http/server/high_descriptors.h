/* SPDX-License-Identifier: MIT */
/* Keeps our descriptors out of the way of the program that we run in. */
#ifndef HTTP_HIGH_DESCRIPTORS_H
#define HTTP_HIGH_DESCRIPTORS_H

#include <stddef.h>

/*
 * Move fd to a high number and return that. Programs close low numbers in a
 * loop, rely on getting them from open(), or write messages to them after
 * closing 0 to 2. Returns fd itself if no high number is free. If fd is one of
 * 0 to 2 then, it is closed instead, and the result is -1 with errno.
 */
int
cpprof__descriptor_high(int fd);

/*
 * For descriptors that a library opens and keeps the numbers of: takes all free
 * numbers below a bound, so that the next descriptor gets a higher one. Give
 * them back at once, because the program cannot open anything at these numbers
 * meanwhile.
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
