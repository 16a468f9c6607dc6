/* SPDX-License-Identifier: MIT */
/*
 * The ticker of wall time: a thread of ours, which runs for as long as somebody
 * counts with it. wall.c says who that is.
 */
#ifndef COLLECT_WALL_TICKER_H
#define COLLECT_WALL_TICKER_H

#include "collect/runtime/own_lock.h"
#include "collect/runtime/periodic.h"
#include "collect/wall/wall_sampler.h"

#include <time.h>

struct cpprof__wall_capture;

struct cpprof__wall_ticker {
    struct cpprof__periodic periodic;      /* first: its turn() gets this */
    struct cpprof_wall_options options;    /* whose rate and depth they are */
    struct cpprof__wall_sampler sampler;   /* guarded by busy, */
    struct cpprof__wall_capture *captures; /* as they are */
    int64_t time_ns;
    uint64_t start_ns;
};

/* Held while a tick is being done. */
extern struct cpprof__own_lock cpprof__wall_busy;

/* Start the thread; all other fields must be set. 0 or an errno. */
int
cpprof__wall_ticker_start(struct cpprof__wall_ticker *w);

/* What it has done until now, by CLOCK_MONOTONIC. */
struct cpprof__wall_summary
cpprof__wall_ticker_summary(const struct cpprof__wall_ticker *w, uint64_t now);
/* The same, told to the recorder. */
void
cpprof__wall_ticker_keep(const struct cpprof__wall_ticker *w, uint64_t now);

#endif
