/* SPDX-License-Identifier: MIT */
/*
 * A request with its answer, and the functions that answer: one for each kind
 * of path. They return when the answer is complete or has failed.
 */
#ifndef HTTP_CALL_H
#define HTTP_CALL_H

#include "base/buffer.h"
#include "http/answer.h"
#include "http/form.h"
#include <cpprof/profiles.h>

struct cpprof__call {
    struct cpprof_http_request request; /* whole, with a method and a path */
    struct cpprof__answer answer;
    const char *name; /* what stands behind the last '/' of a known path */
};

void
cpprof__http_index(struct cpprof__call *call);
void
cpprof__http_cmdline(struct cpprof__call *call);
void
cpprof__http_cmdline_lines(struct cpprof__call *call);
void
cpprof__http_symbol(struct cpprof__call *call);

/* A profile that the program has by the name of the call, or 404. */
void
cpprof__http_profile(struct cpprof__call *call);

/* The change of a profile over ?seconds=N. */
void
cpprof__http_delta(struct cpprof__call *call, struct cpprof_profile *profile,
                   struct cpprof__form_value seconds);

/* delta_heap and the like: what has changed since it was asked for last. */
void
cpprof__http_since(struct cpprof__call *call);

void
cpprof__http_cpu(struct cpprof__call *call);
void
cpprof__http_wall(struct cpprof__call *call);
void
cpprof__http_off_cpu(struct cpprof__call *call);
void
cpprof__http_fgprof(struct cpprof__call *call);

/* The page for people, and the files it is made of. */
void
cpprof__http_page(struct cpprof__call *call);
void
cpprof__http_page_file(struct cpprof__call *call);

/* Paths that other implementations serve and we do not. */
void
cpprof__http_trace(struct cpprof__call *call);
void
cpprof__http_pmu(struct cpprof__call *call);

/* The profile of contended locks. */
void
cpprof__http_contention(struct cpprof__call *call);

/* The heap of mappings, if they are followed. */
void
cpprof__http_growth(struct cpprof__call *call);

/* labels= and the like, for the profile of that name. */
void
cpprof__http_profile_options(const struct cpprof__call *call,
                             struct cpprof_profile_options *options);

/* Append the canonical form of a path, with a NUL, as Go's ServeMux wants it:
 * the shortest path from the root that means the same, without empty elements,
 * "." and "..", with the '/' at its end that it has. */
void
cpprof__mux_clean(struct cpprof__buffer *b, const char *path);

#endif
