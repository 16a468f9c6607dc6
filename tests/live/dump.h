/* SPDX-License-Identifier: MIT */
/*
 * Threads to be seen in a dump, and dumps of them.
 */
#ifndef LIVE_DUMP_H
#define LIVE_DUMP_H

#include "profile.h"

#include <pthread.h>

/* A profile by name, decoded; and as text. free() the text. */
struct profile *
dump_take(const char *name);
char *
dump_text(const char *name, int debug);

/* Samples of stacks with this function, counted; all of them for NULL. */
int64_t
dump_count(const struct profile *p, const char *function);

/* n threads on small stacks, which sleep until they are let go. */
struct crowd {
    pthread_t *threads;
    int n;
};
struct crowd
crowd_make(int n, void *(*routine)(void *));
void
crowd_end(struct crowd *crowd);

/* Who waits from here on is not let go at once. */
void
crowd_open(void);

/* What a thread of a crowd runs: waits until the crowd is let go. */
void
crowd_wait(void);

#endif
