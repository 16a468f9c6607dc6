/* SPDX-License-Identifier: MIT */
/*
 * The threads of the process that may run a state whose own is not known. Who
 * sleeps, or blocks the signal, is left alone.
 *
 * Source: proc(5).
 */
#include "state.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TASKS       "/proc/self/task"
#define STATUS_MAX  4096
#define FOLDER_MAX  8192
#define THREADS_MAX 1024 /* of a process, that are looked at */

/* As getdents64 fills it in. */
struct entry {
    uint64_t inode;
    int64_t next;
    unsigned short n_bytes;
    unsigned char type;
    char name[];
};

static size_t
read_status(int thread, char *text, size_t n)
{
    char path[64];
    ssize_t got;
    int fd;

    snprintf(path, sizeof path, TASKS "/%d/status", thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    got = read(fd, text, n - 1);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    return got > 0 ? (size_t)got : 0;
}

bool
search_is_blocked(int thread, int number)
{
    char text[STATUS_MAX];
    const char *found;

    if (thread <= 0 || !read_status(thread, text, sizeof text))
        return false;
    found = strstr(text, "\nSigBlk:");
    return found && strtoull(found + 8, NULL, 16) >> (number - 1) & 1;
}

static void
send_if_it_runs(int thread, int number)
{
    uint64_t no_sleep = 0;

    if (cpprof_vm_sleep_of(thread, &no_sleep) == CPPROF_VM_AWAKE &&
        !search_is_blocked(thread, number))
        syscall(SYS_tgkill, getpid(), thread, number);
}

static unsigned
search_entries(const char *block, size_t n, int number, int not )
{
    const struct entry *entry;
    unsigned n_threads = 0;
    size_t at;

    for (at = 0; at < n; at += entry->n_bytes) {
        int thread;

        entry = (const struct entry *)(const void *)(block + at);
        thread = atoi(entry->name);
        if (thread <= 0 || thread == not || thread == own_thread())
            continue;
        send_if_it_runs(thread, number);
        n_threads++;
    }
    return n_threads;
}

void
search_threads(int number, int not )
{
    _Alignas(8) char block[FOLDER_MAX];
    unsigned n_threads = 0;
    long n;
    int fd = open(TASKS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    while (n_threads < THREADS_MAX &&
           (n = syscall(SYS_getdents64, fd, block, sizeof block)) > 0)
        n_threads += search_entries(block, (size_t)n, number, not );
    close(fd);
}
