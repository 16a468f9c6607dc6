/* SPDX-License-Identifier: MIT */
/*
 * Reports on a process that runs: its CPU profile of `-seconds`, in a file
 * that has no name and is gone with this program, whatever ends it. `-p PID
 * threads` prints where its threads are.
 */
#include "cli/record/record.h"

#include "cli/commands.h"
#include "cli/fetch/debuginfod.h"
#include "cli/messages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SECONDS_DEFAULT 5

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

/* For how long: what "-seconds=N" or "-seconds N" says last; < 0: it is no
 * number, which the report would say, too, but afterwards. */
static double
seconds_of(int argc, char **argv)
{
    const char *word, *value;
    long seconds = 0, n;
    char *end;
    int i;

    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        word = argv[i] + (argv[i][0] == '-' && argv[i][1] == '-');
        if (strncmp(word, "-seconds", 8) != 0)
            continue;
        value = word[8] == '=' ? word + 9 : !word[8] ? argv[i + 1] : NULL;
        if (!value)
            continue;
        n = strtol(value, &end, 10);
        if (end == value || *end) {
            cpprof__cli_fail("invalid value \"%s\" for flag -seconds: parse "
                             "error",
                             value);
            return -1;
        }
        seconds = n > 0 ? n : seconds;
    }
    return seconds > 0 ? (double)seconds : SECONDS_DEFAULT;
}

static bool
record(const char *pids, const char *path, unsigned kinds, double seconds)
{
    char shown[256];
    struct cpprof__record_options options = {.kinds = kinds,
                                             .symbolize = CPPROF_SYMBOLIZE_FULL,
                                             .debuginfod =
                                                 cpprof__debuginfod_default,
                                             .out = path,
                                             .shown = shown,
                                             .pids = pids,
                                             .one = true,
                                             .duration_s = seconds};

    snprintf(shown, sizeof shown, "process %.200s", pids);
    return cpprof__debuginfod_begin(options.debuginfod) &&
           cpprof__record_attached(&options);
}

/* Run a report with a file in the place of n words; of http at the end, as its
 * address may stand before the sources only. */
static int
report(int argc, char **argv, int at, int n, char *path,
       int (*run)(int argc, char **argv))
{
    char **words = calloc((size_t)argc + 1, sizeof *words);
    int status, is_last = !strcmp(argv[0], "http");

    if (!words)
        return cpprof__cli_fail("out of memory");
    memcpy(words, argv, (size_t)at * sizeof *words);
    memcpy(words + at + !is_last, argv + at + n,
           (size_t)(argc - at - n) * sizeof *words);
    words[is_last ? argc - n : at] = path;
    status = run(argc - n + 1, words);
    free(words);
    return status;
}

int
cpprof__record_print_threads(const char *pids, bool is_stuck)
{
    struct cpprof__record_options options = {.debuginfod =
                                                 cpprof__debuginfod_default,
                                             .pids = pids,
                                             .prints_threads = true,
                                             .prints_stuck = is_stuck};

    return cpprof__debuginfod_begin(options.debuginfod) &&
                   cpprof__record_attached(&options)
               ? CPPROF__EXIT_OK
               : CPPROF__EXIT_ERROR;
}

/* Is the page asked for, by the command or by a flag? */
static bool
is_page(int argc, char **argv)
{
    bool is = !strcmp(argv[0], "http");
    const char *word;
    int i;

    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        word = argv[i] + (argv[i][0] == '-' && argv[i][1] == '-');
        is |= !strncmp(word, "-http=", 6) || !strcmp(word, "-http");
    }
    return is;
}

int
cpprof__cli_of_process(int argc, char **argv, int (*run)(int argc, char **argv))
{
    char path[32];
    const char *pids = NULL;
    int at, n = 0, fd, status = CPPROF__EXIT_ERROR;
    double seconds;

    for (at = 1; at < argc; at++) {
        n = processes_at(argc, argv, at, &pids);
        if (n || !strcmp(argv[at], "--"))
            break;
    }
    if (!n && argc > 1 &&
        (!strcmp(argv[argc - 1], "-p") || !strcmp(argv[argc - 1], "--p")))
        return cpprof__cli_fail("-p takes the number of a process");
    if (!n)
        return run(argc, argv);
    seconds = seconds_of(argc, argv);
    if (seconds < 0)
        return CPPROF__EXIT_ERROR;
    if (at + n + 2 == argc && !strcmp(argv[at + n], "threads") &&
        (!strcmp(argv[at + n + 1], "-stuck") ||
         !strcmp(argv[at + n + 1], "--stuck")))
        return cpprof__record_print_threads(pids, true);
    if (at + n + 1 == argc && !strcmp(argv[at + n], "threads"))
        return cpprof__record_print_threads(pids, false);
    fd = memfd_create("cpprof", 0); /* also for a recorder of the page */
    if (fd < 0)
        return cpprof__cli_fail("no memory for a profile: %s", strerror(errno));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (is_page(argc, argv) ? cpprof__live_begin(pids, path, seconds)
                            : record(pids, path, CPPROF__RECORD_CPU, seconds))
        status = report(argc, argv, at, n, path, run);
    cpprof__live_end();
    close(fd);
    return status;
}
