/* SPDX-License-Identifier: MIT */
/*
 * Calls cpprof_attach() and cpprof_detach() of a library in a process again and
 * again, and prints how long a thread was held: attach_calls PID LIBRARY N.
 *
 * The exit status is 1 if a call failed, and 2, with the reason, if the process
 * may not be attached to.
 */
#include "cli/attach/attach.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
call(pid_t pid, const char *library, bool is_attach,
     struct cpprof__injected *how)
{
    char text[CPPROF__REASON_BYTES];
    struct cpprof__target target;
    bool done;

    if (!cpprof__attach_look(&target, pid, library, library, false, text)) {
        puts(text);
        exit(2);
    }
    done =
        cpprof__inject(&target, is_attach ? "cpprof_attach" : "cpprof_detach",
                       is_attach ? "config" : NULL, text, how) &&
        !strcmp(text, is_attach ? "heard config" : "bye");
    if (!done)
        puts(text);
    cpprof__attach_free(&target);
    return done;
}

int
main(int argc, char **argv)
{
    pid_t pid = argc == 4 ? atoi(argv[1]) : 0;
    size_t n = pid ? (size_t)atoi(argv[3]) * 2 : 0, i, n_failed = 0;
    size_t n_unsafe = 0, n_tries = 0;
    uint64_t *held = calloc(n + 1, sizeof *held);
    uint64_t *total = calloc(n + 1, sizeof *total);

    if (!n || !held || !total)
        return 3;
    for (i = 0; i < n && !kill(pid, 0); i++) {
        struct cpprof__injected how = {0};

        n_failed += !call(pid, argv[2], i % 2 == 0, &how);
        held[i] = how.held_ns;
        total[i] = how.total_ns;
        n_unsafe += how.was_unsafe;
        n_tries += how.n_tries;
    }
    printf("calls %zu failed %zu unsafe %zu tries %zu first_ms %.3f", i,
           n_failed, n_unsafe, n_tries, (double)held[0] * 1e-6);
    print("held", held, n);
    print("total", total, n);
    puts("");
    free(held);
    free(total);
    return i < n || n_failed;
}
