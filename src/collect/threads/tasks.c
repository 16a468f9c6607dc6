/* SPDX-License-Identifier: MIT */
/*
 * Lists threads and reads their files in /proc/self/task.
 *
 * The kernel's listing skips entries when threads end while it is being read.
 * So it is read until a pass finds nothing new, PASSES_MAX times at most, and
 * what was found in any pass counts.
 */
#include "collect/threads/tasks.h"

#include "base/buffer.h"
#include "base/status.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/proc.h"
#include "own/sort.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How often the list is read, at most and at least. */
#define PASSES_MAX 8
#define PASSES_MIN 2

static int
by_tid(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

static void
append(struct cpprof__buffer *tids, int32_t tid)
{
    if (tid > 0)
        cpprof__buffer_append(tids, &tid, sizeof tid);
}

static bool
read_list(struct cpprof__buffer *tids)
{
    struct cpprof__folder tasks;
    const char *name;

    if (!cpprof__proc_threads(&tasks))
        return false;
    while ((name = cpprof__folder_next(&tasks)))
        append(tids, atoi(name));
    cpprof__folder_close(&tasks);
    return true;
}

/* Sort, and remove what is there twice. */
static void
unite(struct cpprof__buffer *buffer)
{
    int32_t *tids = (int32_t *)(void *)buffer->data;
    size_t i, n = buffer->n / sizeof *tids, kept = 0;

    if (!n)
        return;
    cpprof__sort(tids, n, sizeof *tids, by_tid);
    for (i = 0; i < n; i++)
        if (!kept || tids[kept - 1] != tids[i])
            tids[kept++] = tids[i];
    buffer->n = kept * sizeof *tids;
}

static void
leave_out_own(struct cpprof__buffer *buffer)
{
    int32_t *tids = (int32_t *)(void *)buffer->data;
    size_t i, n = buffer->n / sizeof *tids, kept = 0;

    cpprof__own_threads_wait_named();
    for (i = 0; i < n; i++)
        if (!cpprof__is_own_thread(tids[i]))
            tids[kept++] = tids[i];
    buffer->n = kept * sizeof *tids;
}

int32_t *
cpprof__tasks(const int32_t *extra, size_t n_extra, size_t *n)
{
    struct cpprof__buffer tids = {0};
    size_t i, before = SIZE_MAX;
    bool ok = true;

    for (i = 0; i < n_extra; i++)
        append(&tids, extra[i]);
    for (i = 0; ok && i < PASSES_MAX; i++) {
        ok = read_list(&tids);
        unite(&tids);
        if (tids.n == before && i >= PASSES_MIN - 1)
            break;
        before = tids.n;
    }
    leave_out_own(&tids);
    if (!ok || tids.failed || !tids.n) {
        cpprof__buffer_free(&tids);
        return NULL;
    }
    *n = tids.n / sizeof(int32_t);
    return (int32_t *)(void *)tids.data;
}

enum cpprof_status
cpprof__tasks_check(struct cpprof_error *error)
{
    struct cpprof__folder tasks;

    if (!cpprof__proc_threads(&tasks))
        return cpprof__fail(error, CPPROF_UNSUPPORTED, errno,
                            "the threads cannot be listed: /proc/self/task: %s",
                            errno == ESRCH ? "of another pid namespace"
                                           : strerror(errno));
    cpprof__folder_close(&tasks);
    return CPPROF_OK;
}

/* ---- one thread ------------------------------------------------------- */

int
cpprof__tasks_folder(void)
{
    return open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Read a small file of a thread as terminated text. Returns its bytes. */
static size_t
read_file(int folder, int32_t tid, const char *name, char *text, size_t size)
{
    const char *where = folder < 0 ? "/proc/self/task/" : "";
    char path[64];
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof path, "%s%d/%s", where, tid, name);
    fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, text, size - 1);
        close(fd);
    }
    text[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

bool
cpprof__task_look(int folder, int32_t tid, struct cpprof__task *task)
{
    char text[1024];
    const char *open, *end;
    size_t n;

    memset(task, 0, sizeof *task);
    if (!read_file(folder, tid, "stat", text, sizeof text))
        return false;
    open = strchr(text, '(');
    end = strrchr(text, ')');
    if (!open || !end || end < open || end[1] != ' ')
        return false;
    n = (size_t)(end - open - 1);
    n = n < sizeof task->comm ? n : sizeof task->comm - 1;
    memcpy(task->comm, open + 1, n);
    task->state = end[2];
    end = cpprof__proc_stat_field(text, 39);
    task->processor = end ? (uint32_t)strtoul(end, NULL, 10) : UINT32_MAX;
    return true;
}

enum cpprof__task_sleep
cpprof__task_call(int folder, int32_t tid, struct cpprof__task_call *call)
{
    char text[256], *at = text, *end;
    uintptr_t words[8];
    unsigned i, n;

    if (!read_file(folder, tid, "syscall", text, sizeof text))
        return CPPROF__TASK_UNREADABLE;
    call->number = strtol(at, &end, 10);
    if (end == at)
        return CPPROF__TASK_RUNS;
    n = call->number < 0 ? 2 : 8;
    for (i = 0; i < n; i++) {
        at = end;
        words[i] = strtoul(at, &end, 16);
        if (end == at)
            return CPPROF__TASK_UNREADABLE;
    }
    memset(call->args, 0, sizeof call->args);
    memcpy(call->args, words, (n - 2) * sizeof *words);
    call->sp = words[n - 2];
    call->pc = words[n - 1];
    return CPPROF__TASK_SLEEPS;
}

void
cpprof__task_wchan(int folder, int32_t tid, char *name, size_t n)
{
    read_file(folder, tid, "wchan", name, n);
    name[strcspn(name, "\n")] = 0;
    if (!strcmp(name, "0"))
        *name = 0;
}

uint64_t
cpprof__task_last_ran_ns(int folder, int32_t tid)
{
    static const char key[] = "\nse.exec_start";
    char text[512], *at, *fraction;
    uint64_t ms, ns = 0;

    read_file(folder, tid, "sched", text, sizeof text);
    at = strstr(text, key);
    at = at ? strchr(at, ':') : NULL;
    if (!at)
        return 0;
    ms = strtoull(at + 1, &fraction, 10);
    if (*fraction == '.')
        ns = strtoull(fraction + 1, NULL, 10); /* six digits */
    return ms * 1000000 + ns;
}
