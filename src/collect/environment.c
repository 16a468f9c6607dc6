/* SPDX-License-Identifier: MIT */
#include "collect/environment.h"

#include "base/buffer.h"
#include "base/status.h"
#include "collect/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Set to the pid of the first profiled process, so that its descendants can
 * tell that a path without %p is not theirs. */
#define OWNER_VARIABLE "CPPROF_OWNER"

/* How long _exit() may wait for the profile to be written. */
#define HASTE_SECONDS 10

static struct cpprof__environment environment;
static bool is_on;          /* CPPROF was understood */
static bool is_descendant;  /* of a process profiled by the same variable */
static bool is_child;       /* made by fork from one */
static int32_t started_pid; /* the process that a session was started in */

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

static enum cpprof_status
parse_choice(struct cpprof_cpu_options *options, const char *key,
             const char *value, struct cpprof_error *error)
{
    /* ORDER: enum cpprof_engine, enum cpprof_symbolize */
    static const char *const engines[] = {"auto", "perf", "timer", "itimer",
                                          NULL};
    static const char *const symbols[] = {"full", "functions", "none", NULL};
    static const char *const switches[] = {"on", "off", NULL};
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
    } else if (!strcmp(key, "labels")) {
        choice = parse_word(value, switches);
        if (choice < 0)
            return bad_value(error, key, value, "on or off");
        options->flags = choice ? CPPROF_CPU_NO_LABELS : 0;
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
        return !*value || parse_number(value, 10000, &options->rate_hz)
                   ? CPPROF_OK
                   : bad_value(error, key, value,
                               "a number of Hz from 1 to 10000");
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

enum cpprof_status
cpprof__environment_parse(const char *text, struct cpprof__environment *env,
                          struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    char copy[2 * PATH_MAX], *rest = copy, *word;

    memset(env, 0, sizeof *env);
    strcpy(env->out, "cpu.%p.pb.gz");
    if (strlen(text) >= sizeof copy)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "CPPROF: longer than %zu bytes; not profiling",
                            sizeof copy - 1);
    strcpy(copy, text);
    while (status == CPPROF_OK && (word = strsep(&rest, ","))) {
        char *value = strchr(word, '=');

        if (value)
            *value++ = 0;
        if (*word)
            status = parse_pair(env, word, value ? value : "", error);
    }
    return status;
}

bool
cpprof__environment_path(const char *pattern, char *path, size_t n)
{
    struct cpprof__buffer out = {0};
    char name[256];
    bool fits;

    cpprof__proc_name(name, sizeof name);
    for (; *pattern; pattern++) {
        if (pattern[0] == '%' && pattern[1] == 'p')
            cpprof__buffer_printf(&out, "%d", (int)getpid());
        else if (pattern[0] == '%' && pattern[1] == 't')
            cpprof__buffer_printf(&out, "%lld", (long long)time(NULL));
        else if (pattern[0] == '%' && pattern[1] == 'e')
            cpprof__buffer_printf(&out, "%s", name);
        else if (pattern[0] == '%' && pattern[1] == '%')
            cpprof__buffer_append(&out, "%", 1);
        else {
            cpprof__buffer_append(&out, pattern, 1);
            continue;
        }
        pattern++;
    }
    fits = !out.failed && out.n < n;
    if (fits && out.n)
        memcpy(path, out.data, out.n);
    path[fits ? out.n : 0] = 0;
    cpprof__buffer_free(&out);
    return fits;
}

static void
complain(const struct cpprof_error *error)
{
    char line[sizeof error->text + 16];
    int n = snprintf(line, sizeof line, "cpprof: %s\n", error->text);

    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return;
}

/* A device or a pipe has no place beside it. */
static bool
is_special(const char *path)
{
    struct stat st;

    return !stat(path, &st) && !S_ISREG(st.st_mode);
}

/* Where this process writes: as asked, and kept apart from the ancestor that
 * writes there too when the pattern does not say the pid. */
static enum cpprof_status
open_out(struct cpprof_writer *writer, struct cpprof_error *error)
{
    char pattern[PATH_MAX + 8], path[PATH_MAX];

    snprintf(pattern, sizeof pattern, "%s%s", environment.out,
             is_descendant && !strstr(environment.out, "%p") &&
                     !is_special(environment.out)
                 ? ".%p"
                 : "");
    if (!cpprof__environment_path(pattern, path, sizeof path))
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "CPPROF: out= is too long; not profiling");
    return cpprof_path_writer(path, writer, error);
}

/* A child whose recorder is gone, or that may not reach the folder any more,
 * is not recorded; it has nobody to tell. */
static bool
is_worth_a_line(const struct cpprof_error *error)
{
    return !*environment.directory || !is_child ||
           (error->sys != ENOENT && error->sys != ENOTDIR &&
            error->sys != EACCES);
}

static void
start(void)
{
    struct cpprof__session_plan plan = environment.plan;
    enum cpprof_status status = CPPROF_OK;
    struct cpprof_error error;

    if (*environment.directory)
        plan.directory = environment.directory;
    else
        status = open_out(&plan.writer, &error);
    if (status == CPPROF_OK)
        status = cpprof__session_start(&plan, &error);
    if (status == CPPROF_OK)
        started_pid = getpid();
    else if (is_worth_a_line(&error))
        complain(&error);
}

static void
note_owner(void)
{
    const char *owner = getenv(OWNER_VARIABLE);
    char pid[16];

    is_descendant = owner && atoi(owner) != getpid();
    if (owner)
        return;
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv(OWNER_VARIABLE, pid, 1);
}

void
cpprof__environment_start(void)
{
    const char *text = secure_getenv("CPPROF");
    struct cpprof_error error;

    if (!text || !*text)
        return;
    if (cpprof__environment_parse(text, &environment, &error) != CPPROF_OK) {
        complain(&error);
        return;
    }
    is_on = true;
    if (!*environment.directory)
        note_owner();
    start();
}

void
cpprof__environment_start_child(void)
{
    started_pid = 0;
    if (!is_on)
        return;
    is_child = is_descendant = true;
    start();
}

void
cpprof__environment_stop(bool hastily)
{
    struct cpprof_error error;

    if (!started_pid || started_pid != getpid())
        return;
    /* A forked child may find the loader's lock taken for good, by a thread
     * that only its parent has: it waits for symbols, but not for ever. */
    if (hastily || is_child) {
        cpprof__session_stop_hastily(HASTE_SECONDS);
        return;
    }
    started_pid = 0;
    if (cpprof__session_stop(&error) != CPPROF_OK)
        complain(&error);
}
