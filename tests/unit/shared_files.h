/* SPDX-License-Identifier: MIT */
/*
 * Reference inputs, for tests that compare with them. They lie beside the
 * source folder, in ../shared/testdata, and not everybody has them: a test
 * skips, saying so, where they are missing.
 */
#ifndef TESTS_SHARED_FILES_H
#define TESTS_SHARED_FILES_H

#include "base/buffer.h"
#include <cpprof/pprof/profile.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Open a file below ../shared/testdata, or -1. The name of this file is what
 * the compiler was given: absolute, or seen from the top of the build. */
static inline int
shared_open(const char *name)
{
    char path[3 * PATH_MAX], program[PATH_MAX] = "", *end;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    int i;

    program[n > 0 ? n : 0] = '\0';
    for (i = 0; i < 3 && (end = strrchr(program, '/')); i++)
        *end = '\0';
    snprintf(path, sizeof path, "%s%s%.*s../../../shared/testdata/%s",
             __FILE__[0] == '/' ? "" : program, __FILE__[0] == '/' ? "" : "/",
             (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Append all of a file; false, with a word about it, when it is not there. */
static inline bool
shared_read(const char *name, struct cpprof__buffer *out)
{
    int fd = shared_open(name);
    ssize_t n = 1;

    if (fd < 0) {
        printf("# skipped: no ../shared/testdata/%s\n", name);
        return false;
    }
    while (n > 0 && cpprof__buffer_reserve(out, 65536)) {
        n = read(fd, out->data + out->n, 65536);
        out->n += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    return n == 0;
}

static inline int
shared_append(void *ctx, const void *data, size_t n)
{
    cpprof__buffer_append(ctx, data, n);
    return 0;
}

/* Append a profile as text, Profile.String(). */
static inline enum cpprof_status
shared_text(const struct pprof_profile *p, struct cpprof__buffer *out)
{
    struct cpprof_writer writer = {sizeof writer, shared_append, NULL, out};

    return pprof_write(p, &writer, PPROF_FORMAT_TEXT, NULL, NULL);
}

#endif
