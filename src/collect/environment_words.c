/* SPDX-License-Identifier: MIT */
/* The words of the variable CPPROF. */
#include "collect/environment.h"

#include "base/status.h"
#include "collect/signal/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum cpprof_status
bad_value(struct cpprof_error *error, const char *key, const char *value,
          const char *wanted)
{
    return cpprof__fail(error, CPPROF_INVALID, 0,
                        "CPPROF: %s=%s is not %s; not profiling", key, value,
                        wanted);
}

static bool
parse_number(const char *text, uint32_t most, uint32_t *number)
{
    char *end;
    unsigned long v;

    if (*text < '0' || *text > '9')
        return false;
    v = strtoul(text, &end, 10);
    if (*end || v < 1 || v > most)
        return false;
    *number = (uint32_t)v;
    return true;
}

/* The number of text in a NULL-terminated list of words, or -1. */
static int
parse_word(const char *text, const char *const *words)
{
    int i;

    for (i = 0; words[i]; i++)
        if (!strcmp(text, words[i]))
            return i;
    return -1;
}

/* A number of bytes with k, m or g behind it. */
static bool
parse_bytes(const char *text, int64_t *bytes)
{
    static const char units[] = "kmg";
    unsigned long long v;
    unsigned shift = 0;
    const char *unit;
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    v = strtoull(text, &end, 10);
    unit = *end ? strchr(units, *end | 0x20) : NULL;
    if (unit) {
        shift = 10 * (unsigned)(unit - units + 1);
        end++;
    }
    if (errno || *end || v > (uint64_t)CPPROF__HEAP_RATE_MAX >> shift)
        return false;
    *bytes = (int64_t)(v << shift);
    return true;
}

static enum cpprof_status
parse_heap(struct cpprof__environment *env, const char *value,
           struct cpprof_error *error)
{
    if (*value && !parse_bytes(value, &env->heap_rate))
        return bad_value(error, "heap", value,
                         "a number of bytes such as 512k; 1: all, 0: none");
    if (env->heap_rate)
        env->kinds |= CPPROF__KIND_HEAP;
    else
        env->kinds &= ~CPPROF__KIND_HEAP;
    return CPPROF_OK;
}

static enum cpprof_status
parse_cpu(struct cpprof__environment *env, const char *value,
          struct cpprof_error *error)
{
    env->kinds |= CPPROF__KIND_CPU;
    return !*value || parse_number(value, 10000, &env->plan.options.rate_hz)
               ? CPPROF_OK
               : bad_value(error, "cpu", value,
                           "a number of Hz from 1 to 10000");
}

static enum cpprof_status
parse_switch(uint32_t *flags, uint32_t flag, const char *key, const char *value,
             struct cpprof_error *error)
{
    static const char *const switches[] = {"on", "off", NULL};
    int choice = parse_word(value, switches);

    if (choice < 0)
        return bad_value(error, key, value, "on or off");
    *flags = choice ? *flags & ~flag : *flags | flag;
    return CPPROF_OK;
}

/* Both kinds have labels: of the CPU profile unless told not to, of the heap
 * when told so. */
static enum cpprof_status
parse_labels(struct cpprof__environment *env, const char *value,
             struct cpprof_error *error)
{
    enum cpprof_status status = parse_switch(
        &env->heap.flags, CPPROF_HEAP_LABELS, "labels", value, error);

    if (status == CPPROF_OK)
        env->plan.options.flags =
            env->heap.flags & CPPROF_HEAP_LABELS ? 0 : CPPROF_CPU_NO_LABELS;
    return status;
}

static enum cpprof_status
parse_debug(struct cpprof__environment *env, const char *value,
            struct cpprof_error *error)
{
    if (*value < '0' || *value > '2' || value[1])
        return bad_value(error, "debug", value, "0, 1 or 2");
    env->heap.debug = *value - '0';
    return CPPROF_OK;
}

static enum cpprof_status
parse_choice(struct cpprof_cpu_options *options, const char *key,
             const char *value, struct cpprof_error *error)
{
    /* ORDER: enum cpprof_engine, enum cpprof_symbolize */
    static const char *const engines[] = {"auto", "perf", "timer", "itimer",
                                          NULL};
    static const char *const symbols[] = {"full", "functions", "none", NULL};
    int choice;

    if (!strcmp(key, "engine")) {
        choice = parse_word(value, engines);
        if (choice < 0)
            return bad_value(error, key, value, "auto, perf, timer or itimer");
        options->engine = (enum cpprof_engine)choice;
    } else if (!strcmp(key, "symbolize")) {
        choice = parse_word(value, symbols);
        if (choice < 0)
            return bad_value(error, key, value, "full, functions or none");
        options->symbolize = (enum cpprof_symbolize)choice;
    } else {
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "CPPROF: unknown word '%s'; not profiling", key);
    }
    return CPPROF_OK;
}

static enum cpprof_status
parse_path(const char *key, const char *value, char out[PATH_MAX],
           struct cpprof_error *error)
{
    if (!*value || strlen(value) >= PATH_MAX)
        return bad_value(error, key, value, "a path");
    strcpy(out, value);
    return CPPROF_OK;
}

static enum cpprof_status
parse_pair(struct cpprof__environment *env, const char *key, const char *value,
           struct cpprof_error *error)
{
    struct cpprof_cpu_options *options = &env->plan.options;

    if (!strcmp(key, "cpu"))
        return parse_cpu(env, value, error);
    if (!strcmp(key, "heap"))
        return parse_heap(env, value, error);
    if (!strcmp(key, "labels"))
        return parse_labels(env, value, error);
    if (!strcmp(key, "peak"))
        return parse_switch(&env->heap.flags, CPPROF_HEAP_PEAK, key, value,
                            error);
    if (!strcmp(key, "debug"))
        return parse_debug(env, value, error);
    if (!strcmp(key, "depth"))
        return parse_number(value, 1024, &options->max_depth)
                   ? CPPROF_OK
                   : bad_value(error, key, value,
                               "a number of frames from 1 to 1024");
    if (!strcmp(key, "out"))
        return parse_path(key, value, env->out, error);
    if (!strcmp(key, "record"))
        return parse_path(key, value, env->directory, error);
    return parse_choice(options, key, value, error);
}

/* Without the name of a kind it is the CPU profile. The profiles share what
 * is said of all of them. */
static void
finish(struct cpprof__environment *env, bool named)
{
    if (!named)
        env->kinds = CPPROF__KIND_CPU;
    if (!*env->out)
        strcpy(env->out, "%k.%p.pb.gz");
    env->heap.symbolize = env->plan.options.symbolize;
}

enum cpprof_status
cpprof__environment_parse(const char *text, struct cpprof__environment *env,
                          struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    char copy[2 * PATH_MAX], *rest = copy, *word;
    bool named = false;

    memset(env, 0, sizeof *env);
    env->heap_rate = CPPROF__HEAP_RATE;
    env->heap.size = sizeof env->heap;
    if (strlen(text) >= sizeof copy)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "CPPROF: longer than %zu bytes; not profiling",
                            sizeof copy - 1);
    strcpy(copy, text);
    while (status == CPPROF_OK && (word = strsep(&rest, ","))) {
        char *value = strchr(word, '=');

        if (value)
            *value++ = 0;
        named = named || !strcmp(word, "cpu") || !strcmp(word, "heap");
        if (*word)
            status = parse_pair(env, word, value ? value : "", error);
    }
    if (status == CPPROF_OK)
        finish(env, named);
    return status;
}
