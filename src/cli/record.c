/* SPDX-License-Identifier: MIT */
/*
 * cpprof record [-F HZ] [-o FILE] [-duration S] -- CMD ARGS
 *
 * Runs a command with libcpprof.so preloaded and writes where its CPU time
 * went. The library keeps the samples in files that this process can read at
 * any moment, so nothing depends on how the command ends. All that is wrong
 * with the request is said before the command runs.
 */
#include "record.h"

#include "cli.h"
#include "preflight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_FILE   "cpu.pb.gz"
#define RATE_MAX_HZ    10000
#define DEPTH_MAX      1024
#define DURATION_MAX_S 1e9 /* 31 years: seconds still fit everywhere */

/* Our own failure after the command ran well. */
#define EXIT_NOT_WRITTEN 1

/* The flags as they were given. */
struct words {
    const char *rate, *out, *duration, *engine, *depth, *symbolize;
};

static void
print_help(void)
{
    puts("usage: cpprof record [flags] -- CMD ARGS\n"
         "\n"
         "Runs CMD, passes on its exit status, and writes where its CPU time\n"
         "went; processes that it starts get files of their own beside FILE.\n"
         "\n"
         "  -F HZ          samples per second of CPU time, 1 to 10000 (100)\n"
         "  -o FILE        the profile (" DEFAULT_FILE ")\n"
         "  -duration S    stop and write after S seconds; CMD runs on\n"
         "  -e ENGINE      auto, perf, timer or itimer (auto)\n"
         "  -depth N       frames kept of a stack, 1 to 1024 (128)\n"
         "  -symbolize HOW full, functions or none (full)");
}

static bool
parse_number(const char *flag, const char *text, unsigned most,
             const char *unit, unsigned *number)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || v < 1 || v > most) {
        cpprof__cli_fail("record: %s takes 1 to %u %s, not \"%s\"", flag, most,
                         unit, text);
        return false;
    }
    *number = (unsigned)v;
    return true;
}

static bool
parse_duration(const char *text, double *seconds)
{
    char *end;
    double v = strtod(text, &end);

    if (!*text || *end || !(v > 0) || !(v <= DURATION_MAX_S)) {
        cpprof__cli_fail("record: -duration takes seconds, more than 0, not "
                         "\"%s\"",
                         text);
        return false;
    }
    *seconds = v;
    return true;
}

static bool
parse_engine(const char *text)
{
    if (strcmp(text, "auto") && strcmp(text, "perf") && strcmp(text, "timer") &&
        strcmp(text, "itimer")) {
        cpprof__cli_fail("record: -e takes auto, perf, timer or itimer, not "
                         "\"%s\"",
                         text);
        return false;
    }
    return true;
}

static bool
parse_symbolize(const char *text, enum cpprof_symbolize *symbolize)
{
    /* ORDER: enum cpprof_symbolize */
    static const char *const words[] = {"full", "functions", "none"};
    size_t i;

    for (i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(text, words[i])) {
            *symbolize = (enum cpprof_symbolize)i;
            return true;
        }
    cpprof__cli_fail("record: -symbolize takes full, functions or none, not "
                     "\"%s\"",
                     text);
    return false;
}

static bool
understand(const struct words *w, struct cpprof__record_options *o)
{
    o->engine = w->engine;
    o->out = w->out ? w->out : DEFAULT_FILE;
    return (!w->rate ||
            parse_number("-F", w->rate, RATE_MAX_HZ, "Hz", &o->rate_hz)) &&
           (!w->depth || parse_number("-depth", w->depth, DEPTH_MAX, "frames",
                                      &o->max_depth)) &&
           (!w->duration || parse_duration(w->duration, &o->duration_s)) &&
           (!w->engine || parse_engine(w->engine)) &&
           (!w->symbolize || parse_symbolize(w->symbolize, &o->symbolize));
}

/* Can the profile be written when its time comes? */
static bool
check_file(const char *path)
{
    struct cpprof_writer writer;
    struct cpprof_error error;

    if (cpprof_path_writer(path, &writer, &error) != CPPROF_OK) {
        cpprof__cli_fail("record: %s", error.text);
        return false;
    }
    writer.close(writer.ctx, 1);
    return true;
}

/* With a folder: run, write, tell. The exit status of the program. */
static int
run(const struct cpprof__record_options *options,
    const struct cpprof__record_folder *folder)
{
    struct cpprof__record_child child;
    int failed = cpprof__record_child_start(options, folder, &child);
    bool ended, written;

    if (failed)
        return failed;
    ended = cpprof__record_child_wait(&child, options->duration_s);
    if (ended)
        cpprof__record_child_ended(folder);
    written = cpprof__record_files_write(options, folder, child.pid);
    if (!ended)
        cpprof__record_child_wait(&child, 0);
    cpprof__record_folder_remove(folder);
    failed = cpprof__record_child_pass_on(&child);
    return failed || written ? failed : EXIT_NOT_WRITTEN;
}

static int
record(const struct cpprof__record_options *options)
{
    struct cpprof__record_folder folder;
    struct cpprof__preflight preflight;
    int status;

    if (!check_file(options->out))
        return CPPROF__EXIT_ERROR;
    cpprof__preflight(options->command[0], &preflight);
    if (preflight.exit_status) {
        cpprof__cli_fail("%s", preflight.text);
        return preflight.exit_status;
    }
    if (!cpprof__record_folder_make(&folder))
        return CPPROF__EXIT_ERROR;
    status = run(options, &folder);
    cpprof__record_folder_remove(&folder);
    return status;
}

int
cpprof__cli_record(int argc, char **argv)
{
    struct cpprof__record_options options = {0};
    struct words w = {0};
    const struct cpprof__flag flags[] = {
        {"F", CPPROF__FLAG_STRING, &w.rate},
        {"o", CPPROF__FLAG_STRING, &w.out},
        {"duration", CPPROF__FLAG_STRING, &w.duration},
        {"e", CPPROF__FLAG_STRING, &w.engine},
        {"depth", CPPROF__FLAG_STRING, &w.depth},
        {"symbolize", CPPROF__FLAG_STRING, &w.symbolize},
        {0},
    };
    bool help;
    int n_used;

    if (!cpprof__cli_flags(argc, argv, flags, &n_used, &help))
        return CPPROF__EXIT_ERROR;
    if (help) {
        print_help();
        return CPPROF__EXIT_OK;
    }
    if (!understand(&w, &options))
        return CPPROF__EXIT_ERROR;
    if (n_used == argc)
        return cpprof__cli_fail("record: no command given; "
                                "cpprof record [flags] -- CMD ARGS");
    options.command = argv + n_used;
    return record(&options);
}
