/* SPDX-License-Identifier: MIT */
/*
 * Calls cpprof_attach() and cpprof_detach() of a library in a process again and
 * again, and prints how long a thread was held: attach_calls PID LIBRARY N
 * [CONFIG]. Without CONFIG the library is attach_library, which answers. With
 * it, it is libcpprof.so, and the mappings, descriptors and threads of the
 * process are counted before the first round, after it and after the last.
 * SIGTERM ends it after a whole round.
 *
 * The exit status is 1 if a call failed, and 2, with the reason, if the process
 * may not be attached to.
 */
#include "cli/attach/attach.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t must_end;

static void
on_term(int number)
{
    must_end = 1;
}

struct calls {
    pid_t pid;
    const char *library;
    const char *config; /* NULL: of attach_library */
};

static int
by_size(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void
print(const char *what, uint64_t *ns, size_t n)
{
    qsort(ns, n, sizeof *ns, by_size);
    printf(" %s_ms_median %.3f %s_ms_max %.3f", what, (double)ns[n / 2] * 1e-6,
           what, (double)ns[n - 1] * 1e-6);
}

/* One call; false after printing why it failed. */
static bool
call(const struct calls *calls, bool is_attach, struct cpprof__injected *how)
{
    const char *config = calls->config ? calls->config : "config";
    const char *expected = calls->config ? ""
                           : is_attach   ? "heard config"
                                         : "bye";
    char text[CPPROF__REASON_BYTES];
    struct cpprof__target target;
    bool done;

    if (!cpprof__attach_look(&target, calls->pid, calls->library,
                             calls->library, false, text)) {
        puts(text);
        exit(2);
    }
    done =
        cpprof__inject(&target, is_attach ? "cpprof_attach" : "cpprof_detach",
                       is_attach ? config : NULL, text, how) &&
        !strcmp(text, expected);
    if (!done)
        puts(text);
    cpprof__attach_free(&target);
    return done;
}

/* ---- what the process has --------------------------------------------- */

static size_t
count_entries(pid_t pid, const char *folder)
{
    char path[64];
    size_t n = 0;
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, folder);
    dir = opendir(path);
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n > 2 ? n - 2 : 0;
}

static size_t
count_mappings(pid_t pid)
{
    struct cpprof__buffer maps = {0};
    size_t i, n = 0;

    cpprof__read_proc(&maps, "/proc/%d/maps", (int)pid);
    for (i = 0; i < maps.n; i++)
        n += maps.data[i] == '\n';
    cpprof__buffer_free(&maps);
    return n;
}

static void
print_counts(const struct calls *calls, const char *when)
{
    if (calls->config)
        printf("%s: %zu mappings %zu descriptors %zu threads\n", when,
               count_mappings(calls->pid), count_entries(calls->pid, "fd"),
               count_entries(calls->pid, "task"));
    fflush(stdout);
}

int
main(int argc, char **argv)
{
    struct calls calls = {.pid = argc >= 4 ? atoi(argv[1]) : 0,
                          .library = argv[2],
                          .config = argc > 4 ? argv[4] : NULL};
    size_t n = calls.pid ? (size_t)atoi(argv[3]) * 2 : 0, i, n_failed = 0;
    size_t n_unsafe = 0, n_tries = 0;
    uint64_t *held = calloc(n + 1, sizeof *held);
    uint64_t *total = calloc(n + 1, sizeof *total);
    double first_ms;

    if (!n || !held || !total)
        return 3;
    signal(SIGTERM, on_term);
    print_counts(&calls, "before");
    for (i = 0; i < n && !kill(calls.pid, 0); i++) {
        struct cpprof__injected how = {0};

        n_failed += !call(&calls, i % 2 == 0, &how);
        held[i] = how.held_ns;
        total[i] = how.total_ns;
        n_unsafe += how.was_unsafe;
        n_tries += how.n_tries;
        if (i == 1)
            print_counts(&calls, "first");
        if (must_end && i % 2)
            n = i + 1;
    }
    print_counts(&calls, "last");
    first_ms = (double)held[0] * 1e-6;
    printf("calls %zu failed %zu unsafe %zu tries %zu first_ms %.3f", i,
           n_failed, n_unsafe, n_tries, first_ms);
    print("held", held, n);
    print("total", total, n);
    puts("");
    free(held);
    free(total);
    return i < n || n_failed;
}
