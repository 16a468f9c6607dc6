/* SPDX-License-Identifier: MIT */
/*
 * Reports on a process that runs: its CPU profile of some seconds, in a file
 * that is removed afterwards. `-p PID threads` prints where its threads are.
 */
#include "cli/record/record.h"

#include "cli/commands.h"
#include "cli/fetch/debuginfod.h"
#include "cli/messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECONDS 5

/* The processes in "-p PID" or "-p=PID" at argv[at], and how many words that
 * is; 0: it is something else. */
static int
processes_at(int argc, char **argv, int at, const char **pids)
{
    const char *word = argv[at];

    word += *word == '-' && word[1] == '-';
    if (!strncmp(word, "-p=", 3)) {
        *pids = word + 3;
        return 1;
    }
    if (strcmp(word, "-p") || at + 1 == argc)
        return 0;
    *pids = argv[at + 1];
    return 2;
}

static bool
record(const char *pids, const char *path, unsigned kinds, double seconds)
{
    struct cpprof__record_options options = {.kinds = kinds,
                                             .symbolize = CPPROF_SYMBOLIZE_FULL,
                                             .debuginfod =
                                                 cpprof__debuginfod_default,
                                             .out = path,
                                             .pids = pids,
                                             .one = true,
                                             .duration_s = seconds};

    return cpprof__debuginfod_begin(options.debuginfod) &&
           cpprof__record_attached(&options);
}

/* Run a report with a file in the place of n words. */
static int
report(int argc, char **argv, int at, int n, char *path,
       int (*run)(int argc, char **argv))
{
    char **words = calloc((size_t)argc + 1, sizeof *words);
    int status;

    if (!words)
        return cpprof__cli_fail("out of memory");
    memcpy(words, argv, (size_t)at * sizeof *words);
    words[at] = path;
    memcpy(words + at + 1, argv + at + n,
           (size_t)(argc - at - n) * sizeof *words);
    status = run(argc - n + 1, words);
    free(words);
    return status;
}

/* Where the threads are, and no more. */
static int
print_threads(const char *pids)
{
    struct cpprof__record_options options = {.debuginfod =
                                                 cpprof__debuginfod_default,
                                             .pids = pids,
                                             .prints_threads = true};

    return cpprof__debuginfod_begin(options.debuginfod) &&
                   cpprof__record_attached(&options)
               ? CPPROF__EXIT_OK
               : CPPROF__EXIT_ERROR;
}

int
cpprof__cli_of_process(int argc, char **argv, int (*run)(int argc, char **argv))
{
    char path[] = "/tmp/cpprof-XXXXXX.pb.gz";
    const char *pids = NULL;
    int at, n = 0, fd, status = CPPROF__EXIT_ERROR;

    for (at = 1; at < argc; at++) {
        n = processes_at(argc, argv, at, &pids);
        if (n || !strcmp(argv[at], "--"))
            break;
    }
    if (!n)
        return run(argc, argv);
    if (at + n + 1 == argc && !strcmp(argv[at + n], "threads"))
        return print_threads(pids);
    fd = mkstemps(path, (int)strlen(".pb.gz"));
    if (fd < 0)
        return cpprof__cli_fail("%s: %s", path, strerror(errno));
    close(fd);
    if (record(pids, path, CPPROF__RECORD_CPU, SECONDS))
        status = report(argc, argv, at, n, path, run);
    unlink(path);
    return status;
}
