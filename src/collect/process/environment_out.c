/* SPDX-License-Identifier: MIT */
/*
 * File names of CPPROF=out=: expands %k, %p, %t, %e and %%, puts the kind in
 * front of the suffix where %k is missing, and appends the pid for
 * descendants.
 */
#include "collect/process/environment.h"

#include "arch/clock.h"
#include "base/buffer.h"
#include "base/status.h"
#include "collect/runtime/proc.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bool
cpprof__environment_expand(const char *pattern, const char *name, char *path,
                           size_t n)
{
    struct cpprof__buffer out = {0};
    bool fits;

    for (; *pattern; pattern++) {
        if (pattern[0] == '%' && pattern[1] == 'p')
            cpprof__buffer_printf(&out, "%d", (int)getpid());
        else if (pattern[0] == '%' && pattern[1] == 't')
            cpprof__buffer_printf(
                &out, "%lld",
                (long long)(cpprof__now_ns(CLOCK_REALTIME) / CPPROF__NS_PER_S));
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

bool
cpprof__environment_path(const char *pattern, char *path, size_t n)
{
    char name[256];

    cpprof__proc_name(name, sizeof name);
    return cpprof__environment_expand(pattern, name, path, n);
}

/* Nothing can be written beside a device or a pipe. */
static bool
is_special(const char *path)
{
    struct stat st;

    return !stat(path, &st) && !S_ISREG(st.st_mode);
}

/* Where the suffix that names the type of file begins: ".pb.gz". */
static size_t
suffix_at(const char *pattern)
{
    static const char *const known[] = {".pb.gz", ".pprof.gz", ".gz", ".pb",
                                        ".txt"};
    size_t n = strlen(pattern), i;

    for (i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n_known = strlen(known[i]);

        if (n > n_known && pattern[n - n_known - 1] != '/' &&
            !strcmp(pattern + n - n_known, known[i]))
            return n - n_known;
    }
    return n;
}

static enum cpprof_status
too_long(struct cpprof_error *error)
{
    return cpprof__fail(error, CPPROF_INVALID, 0,
                        "CPPROF: out= is too long; not profiling");
}

/* The next %k, but not that of %%k. */
static const char *
find_kind(const char *pattern)
{
    for (; *pattern; pattern++) {
        if (pattern[0] != '%' || !pattern[1])
            continue;
        if (pattern[1] == 'k')
            return pattern;
        pattern++;
    }
    return NULL;
}

enum cpprof_status
cpprof__environment_pattern(const struct cpprof__environment *env,
                            const char *kind, char *pattern, size_t n,
                            struct cpprof_error *error)
{
    /* Under a recorder only the profile of interpreted code is written here. */
    bool is_one =
        (!(env->kinds & (env->kinds - 1)) && !(env->kinds && env->has_vm)) ||
        *env->directory;
    struct cpprof__buffer out = {0};
    const char *from = env->out, *at = find_kind(from);
    enum cpprof_status status = CPPROF_OK;

    if (!at && !is_one && !is_special(from)) {
        size_t n_front = suffix_at(from);

        cpprof__buffer_printf(&out, "%.*s.%s", (int)n_front, from, kind);
        from += n_front;
    }
    for (; at; from = at + 2, at = find_kind(from))
        cpprof__buffer_printf(&out, "%.*s%s", (int)(at - from), from, kind);
    cpprof__buffer_printf(&out, "%s", from);
    if (out.failed)
        status = cpprof__fail_nomem(error);
    else if (out.n >= n)
        status = too_long(error);
    else
        memcpy(pattern, out.data, out.n);
    pattern[status == CPPROF_OK ? out.n : 0] = 0;
    cpprof__buffer_free(&out);
    return status;
}

/* A process that another one started. Beside a recorder its files are named as
 * the recorder names the files of that process: FILE.NAME.PID. */
static void
keep_apart(const struct cpprof__environment *env, char *pattern)
{
    static const char apart[] = ".%e.%p";
    size_t n = strlen(pattern), at = suffix_at(pattern);
    const char *slash = strrchr(pattern, '/'), *dot = strrchr(pattern, '.');

    if (!*env->directory) {
        strcat(pattern, ".%p");
        return;
    }
    if (at == n && dot && dot > (slash ? slash + 1 : pattern))
        at = (size_t)(dot - pattern);
    memmove(pattern + at + sizeof apart - 1, pattern + at, n - at + 1);
    memcpy(pattern + at, apart, sizeof apart - 1);
}

enum cpprof_status
cpprof__environment_open(const struct cpprof__environment *env,
                         const char *kind, const char *folder,
                         bool is_descendant, struct cpprof_writer *writer,
                         struct cpprof_error *error)
{
    char pattern[PATH_MAX + 8], path[PATH_MAX], whole[2 * PATH_MAX];

    enum cpprof_status status;

    status = cpprof__environment_pattern(env, kind, pattern, PATH_MAX, error);
    if (status != CPPROF_OK)
        return status;
    if (is_descendant && !strstr(pattern, "%p") && !is_special(pattern))
        keep_apart(env, pattern);
    if (!cpprof__environment_path(pattern, path, sizeof path) || !*pattern)
        return too_long(error);
    if (!folder || *path == '/')
        return cpprof_writer_to_path(path, writer, error);
    snprintf(whole, sizeof whole, "%s/%s", folder, path);
    return cpprof_writer_to_path(whole, writer, error);
}
