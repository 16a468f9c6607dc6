/* SPDX-License-Identifier: MIT */
/* A profile whose stacks found room, and whose mappings find none, is refused
 * with one line: each in a child of its own, which has no more address space
 * once the rates are set. */
#include "tap.h"
#include <cpprof/heap.h>
#include <cpprof/profiles.h>
#include <cpprof/writer.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REFUSED = 1, WRITTEN, SILENT };

static int
take(void *ctx, const void *data, size_t n_bytes)
{
    (void)ctx, (void)data, (void)n_bytes;
    return 0;
}

static int
end(void *ctx, int failed)
{
    (void)ctx;
    return failed;
}

/* Enough for small blocks, and too little for a table. */
static void
leave(size_t n_bytes)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    rlim_t limit;

    if (!file || fscanf(file, "%lu", &pages) != 1)
        _exit(99);
    fclose(file);
    limit = pages * (unsigned long)getpagesize() + n_bytes;
    setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit});
}

static int
write_without_room(const char *name, int debug)
{
    const struct cpprof_writer writer = {sizeof writer, take, end, NULL};
    struct cpprof_profile_options options = {.size = sizeof options,
                                             .debug = debug};
    struct cpprof_error error = {0};
    struct cpprof_profile *p = cpprof_profile_lookup(name);

    cpprof_heap_set_rate(1000);
    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    free(malloc(100000));
    leave(5 << 20);
    if (cpprof_profile_write(p, &writer, &options, &error) == CPPROF_OK)
        return WRITTEN;
    return *error.text ? REFUSED : SILENT;
}

int
main(void)
{
    static const char *const names[] = {"heap",  "allocs",    "block",
                                        "mutex", "goroutine", "threadcreate"};
    char text[64];
    size_t i;
    int debug, status;

    for (i = 0; i < sizeof names / sizeof *names; i++)
        for (debug = 0; debug < 3; debug++) {
            pid_t pid = fork();

            if (pid == 0)
                _exit(write_without_room(names[i], debug));
            waitpid(pid, &status, 0);
            snprintf(text, sizeof text, "%s, debug %d, without room", names[i],
                     debug);
            check_equal(WIFEXITED(status) ? WEXITSTATUS(status)
                                          : -WTERMSIG(status),
                        REFUSED, text);
        }
    return check_done();
}
