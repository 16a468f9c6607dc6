/* SPDX-License-Identifier: MIT */
/*
 * Small reads from /proc: whole files into a buffer, and fields of status
 * files. Nothing here may be called in a handler. Where /proc is missing every
 * call fails or returns what its header says.
 */
#include "collect/runtime/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_STEP 4096

bool
cpprof__proc_read(const char *path, struct cpprof__buffer *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;

    if (fd < 0)
        return false;
    while (cpprof__buffer_reserve(out, READ_STEP + 1)) {
        n = read(fd, out->data + out->n, READ_STEP);
        if (n <= 0)
            break;
        out->n += (size_t)n;
    }
    close(fd);
    if (n || out->failed)
        return false;
    out->data[out->n] = 0;
    return true;
}

bool
cpprof__proc_maps(struct cpprof__buffer *out)
{
    /* The first since Linux 3.17. */
    return cpprof__proc_read("/proc/thread-self/maps", out) ||
           cpprof__proc_read("/proc/self/maps", out);
}

void
cpprof__proc_exe(char *path, size_t n)
{
    static const char deleted[] = " (deleted)";
    ssize_t got = readlink("/proc/thread-self/exe", path, n - 1);
    size_t tail = sizeof deleted - 1;

    if (got < 0)
        got = readlink("/proc/self/exe", path, n - 1);
    if (got < 0)
        got = 0;
    path[got] = 0;
    if ((size_t)got > tail && !strcmp(path + got - tail, deleted))
        path[(size_t)got - tail] = 0;
}

void
cpprof__proc_name(char *name, size_t n)
{
    char path[4096];
    const char *base;

    cpprof__proc_exe(path, sizeof path);
    base = strrchr(path, '/');
    snprintf(name, n, "%s", base ? base + 1 : path);
}

/* The text after "\nKEY:" in a status file, or NULL. */
static const char *
status_field(const struct cpprof__buffer *status, const char *key)
{
    char line[32];
    const char *at;

    snprintf(line, sizeof line, "\n%s:", key);
    at = strstr((const char *)status->data, line);
    return at ? at + strlen(line) : NULL;
}

uint32_t
cpprof__proc_n_threads(void)
{
    struct cpprof__buffer status = {0};
    const char *at = NULL;
    uint32_t n;

    if (cpprof__proc_read("/proc/self/status", &status))
        at = status_field(&status, "Threads");
    n = at ? (uint32_t)strtoul(at, NULL, 10) : 0;
    cpprof__buffer_free(&status);
    return n;
}

bool
cpprof__proc_blocks(int32_t tid, int signo)
{
    struct cpprof__buffer status = {0};
    const char *at = NULL;
    uint64_t mask;
    char path[64];

    snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
    if (cpprof__proc_read(path, &status))
        at = status_field(&status, "SigBlk");
    mask = at ? strtoull(at, NULL, 16) : 0;
    cpprof__buffer_free(&status);
    return mask >> (signo - 1) & 1;
}
