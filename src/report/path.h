/* SPDX-License-Identifier: MIT */
/*
 * The path from the root to the leaf of the current sample.
 *
 * The stacks of neighbouring samples mostly begin alike at the root. So a walk
 * over all samples keeps this path, and goes from one sample to the next by
 * leaving and entering only the frames in which they differ. A step collects
 * the values of all samples that it is on the path of; when it is left, it
 * hands them on, and to its caller. The sums are the same as if every sample
 * were walked from end to end.
 */
#ifndef REPORT_PATH_H
#define REPORT_PATH_H

#include "report/graph.h"

/* struct cpprof__step flags */
#define CPPROF__STEP_FIRST  1u /* nearest to the root of what counts once */
#define CPPROF__STEP_INLINE 2u /* its call was inlined */
#define CPPROF__STEP_EDGE   4u /* the edge into it is wanted */
#define CPPROF__STEP_OVER   8u /* nodes before it are left out */

/* One node of the path. */
struct cpprof__step {
    int64_t sum;
    int64_t divisor_sum;
    uint32_t node;
    uint32_t flags;
};

struct cpprof__path {
    CPPROF__ARRAY(struct cpprof__step) steps; /* from the root */
    /* The sample's frames, and how many steps there are behind each of them,
     * counted from the root: none where all its nodes are left out. */
    const uint32_t *frames;
    size_t n_frames;
    CPPROF__ARRAY(size_t) ends;
};

static inline void
cpprof__path_free(struct cpprof__path *path)
{
    CPPROF__ARRAY_FREE(&path->steps);
    CPPROF__ARRAY_FREE(&path->ends);
}

/* How many frames a stack has in common with the path, from the root. */
static inline size_t
cpprof__path_shared(const struct cpprof__path *path, const uint32_t *frames,
                    size_t n)
{
    const uint32_t *a = path->frames + path->n_frames, *b = frames + n;
    size_t most = n < path->n_frames ? n : path->n_frames, i = 0;

    while (i < most && a[-1 - (ptrdiff_t)i] == b[-1 - (ptrdiff_t)i])
        i++;
    return i;
}

/* How many steps stay when that many frames do. */
static inline size_t
cpprof__path_steps(const struct cpprof__path *path, size_t shared)
{
    return shared ? path->ends.at[shared - 1] : 0;
}

/* Fix the frames that the path now leads along; false when out of memory. */
static inline bool
cpprof__path_begin(struct cpprof__path *path, const uint32_t *frames, size_t n,
                   size_t shared)
{
    path->frames = frames;
    path->n_frames = n;
    path->ends.n = shared;
    return CPPROF__ARRAY_ROOM(&path->ends, n - shared) &&
           CPPROF__ARRAY_ROOM(&path->steps, n - shared);
}

/* What a sample counts for; the divisor is 0 where there is none. */
static inline int64_t
cpprof__sample_value(const struct cpprof__graph *g, size_t sample,
                     int64_t *divisor)
{
    const int64_t *values = cpprof__values(g->p, sample);

    *divisor = 0;
    if (g->divisor != CPPROF__NO_DIVISOR)
        *divisor = values[g->divisor];
    return values[g->value];
}

#endif
