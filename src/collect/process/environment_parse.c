/* SPDX-License-Identifier: MIT */
/*
 * The parser of the variable CPPROF: a list of KEY or KEY=VALUE, separated by
 * commas.
 *
 * Each word either turns a kind of profile on or sets an option of all of
 * them. Defaults that depend on other words are filled in at the end. The
 * first word that is wrong makes the whole variable invalid, with an error
 * that names it; secrets are never part of an error.
 */
#include "collect/process/environment.h"

#include "arch/place.h"
#include "base/status.h"
#include "base/text.h"
#include "collect/signal/heap/heap.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Tunable: bytes of what is said about pushing. */
#define TEXT_MAX 255

static enum cpprof_status
bad_value(struct cpprof_error *error, const char *key, const char *value,
          const char *wanted)
{
    return cpprof__fail(error, CPPROF_INVALID, 0,
                        "CPPROF: %s=%s is not %s; not profiling", key, value,
                        wanted);
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

static enum cpprof_status
parse_heap(struct cpprof__environment *env, const char *value,
           struct cpprof_error *error)
{
    if (*value &&
        !cpprof__parse_bytes(value, CPPROF__HEAP_RATE_MAX, &env->heap_rate))
        return bad_value(error, "heap", value,
                         "a number of bytes such as 512k; 1: all, 0: none");
    if (env->heap_rate)
        env->kinds |= CPPROF__KIND_HEAP;
    else
        env->kinds &= ~CPPROF__KIND_HEAP;
    return CPPROF_OK;
}

/* The same number, whose kind is another one: 0 is to look for nothing. */
static enum cpprof_status
parse_heapleak(struct cpprof__environment *env, const char *value,
               struct cpprof_error *error)
{
    int64_t rate = env->heap_rate ? env->heap_rate : CPPROF__HEAP_RATE;

    if (*value && !cpprof__parse_bytes(value, CPPROF__HEAP_RATE_MAX, &rate))
        return bad_value(error, "heapleak", value,
                         "a number of bytes such as 512k; 1: all, 0: none");
    if (!rate) {
        env->kinds &= ~CPPROF__KIND_HEAPLEAK;
        return CPPROF_OK;
    }
    env->heap_rate = rate;
    env->kinds |= CPPROF__KIND_HEAPLEAK;
    return CPPROF_OK;
}

static enum cpprof_status
parse_cpu(struct cpprof__environment *env, const char *value,
          struct cpprof_error *error)
{
    env->kinds |= CPPROF__KIND_CPU;
    return !*value || cpprof__parse_count(value, 10000, &env->cpu.rate_hz)
               ? CPPROF_OK
               : bad_value(error, "cpu", value,
                           "a number of Hz from 1 to 10000");
}

/* Tunables: what a profile without a number records. Waits that matter are
 * longer than 10 us, and all of those are recorded. */
#define BLOCK_RATE     10000
#define MUTEX_FRACTION 1

#define WALL_HZ_MAX 1000

/* ORDER: CPPROF__KIND_*. threads is another name of goroutine. */
static const char *const kinds[] = {
    "cpu",       "heap",         "block",    "mutex",      "wall",    "offcpu",
    "goroutine", "threadcreate", "heapleak", "threadleak", "threads", NULL};

static uint32_t
kind_of(const char *word)
{
    int kind = parse_word(word, kinds);

    if (kind < 0)
        return 0;
    return kinds[kind + 1] ? 1u << kind : CPPROF__KIND_THREADS;
}

static enum cpprof_status
parse_block(struct cpprof__environment *env, const char *value,
            struct cpprof_error *error)
{
    uint32_t rate = BLOCK_RATE;

    if (*value && strcmp(value, "0") &&
        !cpprof__parse_count(value, INT_MAX, &rate))
        return bad_value(error, "block", value,
                         "a number of nanoseconds; 1: all waits, 0: none");
    env->block_rate = strcmp(value, "0") ? rate : 0;
    return CPPROF_OK;
}

static enum cpprof_status
parse_mutex(struct cpprof__environment *env, const char *value,
            struct cpprof_error *error)
{
    env->mutex_fraction = MUTEX_FRACTION;
    if (!strcmp(value, "0"))
        env->mutex_fraction = 0;
    else if (*value &&
             !cpprof__parse_count(value, INT_MAX, &env->mutex_fraction))
        return bad_value(error, "mutex", value,
                         "a number of waits to follow one of; 1: all, 0: "
                         "none");
    return CPPROF_OK;
}

static enum cpprof_status
parse_wall(struct cpprof__environment *env, const char *key, const char *value,
           struct cpprof_error *error)
{
    if (env->kinds & CPPROF__KINDS_OF_WALL)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "CPPROF: %s beside another of wall and offcpu; not "
                            "profiling",
                            key);
    return !*value ||
                   cpprof__parse_count(value, WALL_HZ_MAX, &env->wall.rate_hz)
               ? CPPROF_OK
               : bad_value(error, key, value, "a number of Hz from 1 to 1000");
}

static enum cpprof_status
parse_vm(struct cpprof__environment *env, const char *value,
         struct cpprof_error *error)
{
    /* ORDER: enum cpprof_vm_mode */
    static const char *const modes[] = {"tick", "span", "cpu", NULL};
    int mode = parse_word(value, modes);

    env->has_vm = strcmp(value, "0") != 0;
    if (mode >= 0)
        env->vm.mode = (enum cpprof_vm_mode)mode;
    else if (*value && env->has_vm &&
             !cpprof__parse_count(value, 10000, &env->vm.rate_hz))
        return bad_value(error, "vm", value,
                         "tick, span, cpu or a number of Hz from 1 to 10000");
    return CPPROF_OK;
}

static enum cpprof_status
parse_deadlock(struct cpprof__environment *env, const char *value,
               struct cpprof_error *error)
{
    static const char *const ways[] = {"report", "abort", NULL};
    int way = parse_word(value, ways);

    if (way < 0 && *value && strcmp(value, "0"))
        return bad_value(error, "deadlock", value, "report or abort");
    env->looks_for_deadlocks = strcmp(value, "0") != 0;
    env->aborts_at_deadlocks = way == 1;
    return CPPROF_OK;
}

/* One of the kinds, with its rate. */
static enum cpprof_status
parse_kind(struct cpprof__environment *env, uint32_t kind, const char *key,
           const char *value, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;

    if (kind == CPPROF__KIND_CPU)
        return parse_cpu(env, value, error);
    if (kind == CPPROF__KIND_HEAP)
        return parse_heap(env, value, error);
    if (kind == CPPROF__KIND_HEAPLEAK)
        return parse_heapleak(env, value, error);
    if (kind == CPPROF__KIND_BLOCK)
        status = parse_block(env, value, error);
    else if (kind == CPPROF__KIND_MUTEX)
        status = parse_mutex(env, value, error);
    else if (kind & CPPROF__KINDS_OF_WALL)
        status = parse_wall(env, key, value, error);
    else if (*value)
        status = bad_value(error, key, value, "a word without a value");
    if (strcmp(value, "0"))
        env->kinds |= kind;
    else
        env->kinds &= ~kind;
    return status;
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

static void
set_flag(uint32_t *flags, uint32_t flag, bool on)
{
    *flags = on ? *flags | flag : *flags & ~flag;
}

/* All kinds can have labels: CPU samples have them unless told not to, tables
 * only when told to. */
static enum cpprof_status
parse_labels(struct cpprof__environment *env, const char *value,
             struct cpprof_error *error)
{
    enum cpprof_status status = parse_switch(
        &env->heap.flags, CPPROF_FLAG_LABELS, "labels", value, error);
    bool on = env->heap.flags & CPPROF_FLAG_LABELS;

    if (status != CPPROF_OK)
        return status;
    set_flag(&env->cpu.flags, CPPROF_FLAG_NO_LABELS, !on);
    set_flag(&env->wall.flags, CPPROF_FLAG_NO_LABELS, !on);
    set_flag(&env->others.flags, CPPROF_FLAG_LABELS, on);
    return CPPROF_OK;
}

static enum cpprof_status
parse_legacy(struct cpprof__environment *env, const char *value,
             struct cpprof_error *error)
{
    enum cpprof_status status = parse_switch(
        &env->others.flags, CPPROF_FLAG_LEGACY, "legacy", value, error);
    bool on = env->others.flags & CPPROF_FLAG_LEGACY;

    if (status != CPPROF_OK)
        return status;
    set_flag(&env->cpu.flags, CPPROF_FLAG_LEGACY, on);
    set_flag(&env->heap.flags, CPPROF_FLAG_LEGACY, on);
    return CPPROF_OK;
}

static enum cpprof_status
parse_debug(struct cpprof__environment *env, const char *value,
            struct cpprof_error *error)
{
    if (*value < '0' || *value > '2' || value[1])
        return bad_value(error, "debug", value, "0, 1 or 2");
    env->heap.debug = env->others.debug = *value - '0';
    return CPPROF_OK;
}

static enum cpprof_status
parse_choice(struct cpprof_cpu_options *options, const char *key,
             const char *value, struct cpprof_error *error)
{
    /* ORDER: enum cpprof_engine, enum cpprof_symbolize */
    static const char *const engines[] = {"auto", "perf", "timer", NULL};
    static const char *const symbols[] = {"full", "functions", "none", NULL};
    int choice;

    if (!strcmp(key, "engine")) {
        choice = parse_word(value, engines);
        if (choice < 0)
            return bad_value(error, key, value, "auto, perf or timer");
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
parse_path(const char *key, const char *value, const char **path,
           struct cpprof_error *error)
{
    if (!*value || strlen(value) >= PATH_MAX)
        return bad_value(error, key, value, "a path");
    *path = value;
    return CPPROF_OK;
}

/* A word for the server; *known: it was one. */
static enum cpprof_status
parse_http(struct cpprof__environment *env, const char *key, const char *value,
           bool *known, struct cpprof_error *error)
{
    *known = true;
    if (!strcmp(key, "http") && !*value)
        return bad_value(error, key, value,
                         "an address such as 127.0.0.1:6060 or unix:/path");
    if (!strcmp(key, "http"))
        return parse_path(key, value, &env->http, error);
    if (!strcmp(key, "http-token-file"))
        return parse_path(key, value, &env->http_token_file, error);
    if (!strcmp(key, "http-token")) {
        /* The value is not shown. */
        if (!*value || strlen(value) > CPPROF__TOKEN_MAX)
            return bad_value(error, key, "...", "a token of 1 to 255 bytes");
        env->http_token = value;
        return CPPROF_OK;
    }
    if (!strcmp(key, "insecure")) {
        env->http_insecure = true;
        return *value ? bad_value(error, key, value, "a word without a value")
                      : CPPROF_OK;
    }
    *known = false;
    return CPPROF_OK;
}

static enum cpprof_status
parse_text(const char *key, const char *value, size_t n_max, const char **text,
           struct cpprof_error *error)
{
    if (!*value || strlen(value) > n_max)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "CPPROF: %s= wants 1 to %zu bytes; not profiling",
                            key, n_max);
    *text = value;
    return CPPROF_OK;
}

static enum cpprof_status
parse_push_label(struct cpprof__push_settings *push, const char *key,
                 const char *value, struct cpprof_error *error)
{
    size_t n = strlen(push->labels);
    enum cpprof_status status;

    if (!strchr(value, '='))
        return bad_value(error, key, value, "a label such as region=eu");
    if (n + 1 < sizeof push->labels && n)
        push->labels[n++] = ',';
    status = parse_text(key, value, sizeof push->labels - n - 1, &value, error);
    if (status == CPPROF_OK)
        strcpy(push->labels + n, value);
    return status;
}

/* "1%", "0.25%": in millionths. */
static bool
parse_share(const char *text, uint32_t *ppm)
{
    uint32_t share = 0, unit = 10000;
    bool has_point = false;

    for (; *text && *text != '%'; text++) {
        if (*text == '.' && !has_point) {
            has_point = true;
        } else if (*text < '0' || *text > '9' || share > 1000000 || !unit) {
            return false;
        } else if (has_point) {
            unit /= 10;
            share += (uint32_t)(*text - '0') * unit;
        } else {
            share = share * 10 + (uint32_t)(*text - '0') * unit;
        }
    }
    *ppm = share;
    return !strcmp(text, "%") && share && share <= 1000000;
}

/* A word about pushing; *known: it was one. */
static enum cpprof_status
parse_push(struct cpprof__push_settings *push, const char *key,
           const char *value, bool *known, struct cpprof_error *error)
{
    static const char *const protocols[] = {"push",  "ingest", "otlp",
                                            "pprof", "parca",  NULL};

    *known = true;
    if (!strcmp(key, "push"))
        return parse_text(key, value, PATH_MAX - 1, &push->url, error);
    if (!strcmp(key, "push-name"))
        return parse_text(key, value, TEXT_MAX, &push->name, error);
    if (!strcmp(key, "push-label"))
        return parse_push_label(push, key, value, error);
    if (!strcmp(key, "push-user"))
        return parse_text(key, value, TEXT_MAX, &push->user, error);
    if (!strcmp(key, "push-token-file"))
        return parse_path(key, value, &push->token_file, error);
    if (!strcmp(key, "push-tenant"))
        return parse_text(key, value, TEXT_MAX, &push->tenant, error);
    if (!strcmp(key, "push-interval"))
        return cpprof__parse_count(value, 3600, &push->interval_s)
                   ? CPPROF_OK
                   : bad_value(error, key, value, "1 to 3600 seconds");
    if (!strcmp(key, "push-every"))
        return cpprof__parse_count(value, 3600, &push->every_s)
                   ? CPPROF_OK
                   : bad_value(error, key, value, "1 to 3600 seconds");
    if (!strcmp(key, "budget"))
        return parse_share(value, &push->budget_ppm)
                   ? CPPROF_OK
                   : bad_value(error, key, value,
                               "a share of CPU time such as 1%");
    if (!strcmp(key, "push-keep"))
        return cpprof__parse_count(value, INT_MAX, &push->keep)
                   ? CPPROF_OK
                   : bad_value(error, key, value, "a number of files");
    if (!strcmp(key, "push-protocol")) {
        push->protocol = (uint32_t)parse_word(value, protocols);
        return parse_word(value, protocols) >= 0
                   ? CPPROF_OK
                   : bad_value(error, key, value,
                               "push, ingest, otlp, pprof or parca");
    }
    *known = false;
    return CPPROF_OK;
}

static enum cpprof_status
parse_pair(struct cpprof__environment *env, const char *key, const char *value,
           struct cpprof_error *error)
{
    const struct {
        const char *key;
        bool *is_on;
    } switches[] = {{"scripts", &env->has_scripts},
                    {"thread-names", &env->names_threads},
                    {"probes", &env->has_probes},
                    {"context", &env->has_context}};
    struct cpprof_cpu_options *options = &env->cpu;
    uint32_t kind = kind_of(key);
    enum cpprof_status status;
    bool is_known;
    size_t i;

    if (kind)
        return parse_kind(env, kind, key, value, error);
    status = parse_http(env, key, value, &is_known, error);
    if (!is_known) {
        status = parse_push(&env->push, key, value, &is_known, error);
        env->is_push_named |= is_known;
    }
    if (is_known)
        return status;
    if (!strcmp(key, "vm"))
        return parse_vm(env, value, error);
    if (!strcmp(key, "deadlock"))
        return parse_deadlock(env, value, error);
    for (i = 0; i < sizeof switches / sizeof *switches; i++)
        if (!strcmp(key, switches[i].key)) {
            *switches[i].is_on = true;
            return *value
                       ? bad_value(error, key, value, "a word without a value")
                       : CPPROF_OK;
        }
    if (!strcmp(key, "labels"))
        return parse_labels(env, value, error);
    if (!strcmp(key, "legacy"))
        return parse_legacy(env, value, error);
    if (!strcmp(key, "peak"))
        return parse_switch(&env->heap.flags, CPPROF_FLAG_PEAK, key, value,
                            error);
    if (!strcmp(key, "mmap"))
        return parse_switch(&env->kinds, CPPROF__KIND_MMAP, key, value, error);
    if (!strcmp(key, "inprogress"))
        return parse_switch(&env->others.flags, CPPROF_FLAG_IN_PROGRESS, key,
                            value, error);
    if (!strcmp(key, "debug"))
        return parse_debug(env, value, error);
    if (!strcmp(key, "depth"))
        return cpprof__parse_count(value, 1024, &options->max_depth)
                   ? CPPROF_OK
                   : bad_value(error, key, value,
                               "a number of frames from 1 to 1024");
    if (!strcmp(key, "out"))
        return parse_path(key, value, &env->out, error);
    if (!strcmp(key, "record"))
        return parse_path(key, value, &env->directory, error);
    if (!strcmp(key, "command"))
        return cpprof__parse_count(value, INT32_MAX, &env->command)
                   ? CPPROF_OK
                   : bad_value(error, key, value, "the pid of a command");
    return parse_choice(options, key, value, error);
}

static enum cpprof_status
finish_http(struct cpprof__environment *env, bool named,
            struct cpprof_error *error)
{
    bool has_token = *env->http_token || *env->http_token_file;

    if (!*env->http && (has_token || env->http_insecure))
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "CPPROF: %s without http=; not profiling",
                            has_token ? "http-token" : "insecure");
    if (*env->http_token && *env->http_token_file)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "CPPROF: http-token beside http-token-file; not "
                            "profiling");
    env->serves_only =
        (*env->http || *env->push.url) && !*env->out && !*env->directory;
    if (env->serves_only && !named)
        env->kinds = CPPROF__KIND_HEAP;
    return CPPROF_OK;
}

/* What a server of profiles shows first: all but wall time. */
static enum cpprof_status
finish_push(struct cpprof__environment *env, bool named,
            struct cpprof_error *error)
{
    if (!env->is_push_named)
        return CPPROF_OK;
    if (!*env->push.url)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "CPPROF: push-... or budget= without push=; not "
                            "profiling");
    if (*env->directory)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "CPPROF: push= beside record=; not profiling");
    if (!env->serves_only || named)
        return CPPROF_OK;
    env->kinds =
        CPPROF__KIND_CPU | CPPROF__KINDS_OF_TABLES | CPPROF__KIND_THREADS;
    env->block_rate = BLOCK_RATE;
    env->mutex_fraction = MUTEX_FRACTION;
    return CPPROF_OK;
}

/* Without the name of a kind it is the CPU profile, unless something else is
 * asked for. Options that are for all kinds are copied to each. */
static enum cpprof_status
finish(struct cpprof__environment *env, bool named, struct cpprof_error *error)
{
    const uint32_t recordable = CPPROF__KIND_CPU | CPPROF__KINDS_OF_TABLES |
                                CPPROF__KINDS_OF_WALL | CPPROF__KIND_HEAPLEAK;
    const uint32_t mmap = env->kinds & CPPROF__KIND_MMAP;

    if (!named)
        env->kinds =
            env->looks_for_deadlocks || env->has_probes || env->has_context
                ? 0
                : CPPROF__KIND_CPU;
    if (finish_http(env, named, error) != CPPROF_OK ||
        finish_push(env, named, error) != CPPROF_OK)
        return CPPROF_INVALID;
    env->kinds &= ~CPPROF__KIND_MMAP;
    if (env->kinds & CPPROF__KIND_HEAP)
        env->kinds |= mmap;
    if (*env->directory && env->kinds & ~recordable)
        return cpprof__fail(
            error, CPPROF_INVALID, 0,
            "CPPROF: record= takes cpu, heap, block, mutex, wall, "
            "offcpu and heapleak; not profiling");
    if (*env->directory && env->others.flags & CPPROF_FLAG_IN_PROGRESS)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "CPPROF: inprogress=on beside record=; not "
                            "profiling");
    if (!*env->out)
        env->out = "%k.%p.pb.gz";
    if (env->kinds & CPPROF__KIND_OFF_CPU)
        env->wall.flags |= CPPROF_FLAG_OFF_CPU;
    env->wall.max_depth = env->vm.max_depth = env->cpu.max_depth;
    env->heap.symbolize = env->others.symbolize = env->wall.symbolize =
        env->cpu.symbolize;
    return CPPROF_OK;
}

/* As strsep(), which touches two pages more. */
static char *
next_word(char **rest)
{
    char *word = *rest, *comma = word ? strchr(word, ',') : NULL;

    if (comma)
        *comma++ = 0;
    *rest = comma;
    return word;
}

CPPROF__FIRST_STEP enum cpprof_status
cpprof__environment_parse(const char *text, struct cpprof__environment *env,
                          struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    char *rest = env->words, *word;
    bool named = false;

    env->heap_rate = CPPROF__HEAP_RATE;
    env->cpu.size = sizeof env->cpu;
    env->heap.size = sizeof env->heap;
    env->others.size = sizeof env->others;
    env->wall.size = sizeof env->wall;
    env->vm.size = sizeof env->vm;
    env->vm.flags = CPPROF_FLAG_MERGE;
    env->out = env->directory = env->http = env->http_token =
        env->http_token_file = "";
    env->push.url = env->push.name = env->push.user = env->push.token_file =
        env->push.tenant = "";
    if (strlen(text) >= sizeof env->words)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "CPPROF: longer than %zu bytes; not profiling",
                            sizeof env->words - 1);
    strcpy(env->words, text);
    while (status == CPPROF_OK && (word = next_word(&rest))) {
        char *value = strchr(word, '=');

        if (value)
            *value++ = 0;
        named = named || kind_of(word) || !strcmp(word, "vm");
        if (*word)
            status = parse_pair(env, word, value ? value : "", error);
    }
    return status == CPPROF_OK ? finish(env, named, error) : status;
}
