/* SPDX-License-Identifier: MIT */
/* What is pushed, and where to: the options of a program, checked and copied.
 */
#ifndef PUSH_PLAN_H
#define PUSH_PLAN_H

#include <cpprof/push.h>

#include <limits.h>
#include <stdbool.h>

#define CPPROF__PUSH_KINDS 7

struct cpprof__push_plan {
    char url[2048];         /* of the server, without a slash at its end */
    char shown[256];        /* the same to be shown: without credentials */
    char pattern[PATH_MAX]; /* of files; "": a server */

    char name[256];
    char labels[1024];
    char user[256]; /* "": none */
    char password[2048];
    char token[4096];
    char token_file[PATH_MAX];
    char tenant[256];

    uint32_t kinds; /* CPPROF_PUSH_* */
    uint32_t interval_s;
    uint32_t every_s; /* an interval begins; no less than it */
    uint32_t queue_bytes;
    uint32_t keep;
    uint32_t budget_ppm; /* 0: none */
    enum cpprof_push_protocol protocol;
    bool is_named;     /* the name was given */
    char instance[37]; /* OTLP: a UUID of this process */

    /* A process is pushed only if it lives longer than an interval. */
    bool is_descendant;

    struct cpprof_cpu_options cpu;
    struct cpprof_wall_options wall;
    struct cpprof_profile_options profiles;
    void (*report)(void *ctx, const char *line);
    void *ctx;
};

/* Errors: CPPROF_INVALID; no secret is in the text. */
enum cpprof_status
cpprof__push_plan_make(const char *url,
                       const struct cpprof_push_options *options,
                       struct cpprof__push_plan *plan,
                       struct cpprof_error *error);

/* Expand what is given for a name or for labels: the name of the executable has
 * _ for each character that a name may not have. False: it does not fit. */
bool
cpprof__push_expand(const char *given, char *text, size_t n);

/* The next of "a=b,c=d"; false at the end. What *labels points to is what is
 * left; the lengths are those of the two parts. */
struct cpprof__push_label {
    const char *name, *value;
    size_t n_name, n_value;
};
bool
cpprof__push_next_label(const char **labels, struct cpprof__push_label *label);

#endif
