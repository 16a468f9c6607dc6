/* SPDX-License-Identifier: MIT */
/*
 * cpprof record [-t KINDS] [-F HZ] [-o FILE] [-one] [-duration T] -- CMD ARGS
 * cpprof record [-t KINDS] [-F HZ] [-o FILE] [-one] [-duration T] -p PID
 * cpprof leaks [-min BYTES] [-ignore RE] [-o FILE] -- CMD ARGS
 * cpprof leaks -growth PROFILE... | URL
 *
 * record runs a command with libcpprof.so preloaded and writes where its CPU
 * time went, where it allocated memory, or both. The library keeps the samples
 * in files that this process can read at any moment, so nothing depends on how
 * the command ends. Every error in the request is reported before the command
 * runs.
 *
 * record -p does the same with processes that run already (attached.c).
 *
 * leaks is `record -t heap -heap 1` with a verdict: every allocation is
 * followed, and at its end the command itself looks for what no pointer leads
 * to (CPPROF=heapleak). There is a verdict only if the command ends by itself
 * and successfully.
 */
#include "cli/record/record.h"

#include "base/text.h"
#include "cli/commands.h"
#include "cli/fetch/debuginfod.h"
#include "cli/flags.h"
#include "cli/messages.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define RATE_MAX_HZ     10000
#define RATE_DEFAULT_HZ 100 /* the library's */
#define WALL_HZ_MAX     1000
#define DEPTH_MAX       1024
#define BYTES_MAX       (1ul << 40)
#define RATE_NS_MAX     INT_MAX
#define DURATION_MAX_S  1e9 /* 31 years, which fits every type */

/* Our own failure after the command ran well. */
#define EXIT_NOT_WRITTEN 1
/* The verdict of leaks. */
#define EXIT_LEAKS 1

/* The most stacks in the list of what is in use at the end. */
#define LINES_MAX 10

/* What is given to either command: the options, and what has to be parsed to
 * become one. */
struct words {
    struct cpprof__record_options o;
    const char *kinds, *rate, *depth, *duration, *symbolize, *min, *every;
};

#define FLAG(of, word, member, value, can_be, help)                            \
    CPPROF__FLAG(of, word, struct words, member, value, can_be, help)
#define TEXT(lines)                                                            \
    {                                                                          \
        .name = "", .kind = CPPROF__FLAG_TEXT, .text = lines                   \
    }

const struct cpprof__flag cpprof__record_flag_table[] = {
    TEXT("usage: cpprof record [flags] -- CMD ARGS\n"
         "       cpprof record [flags] -p PID[,PID...]\n"
         "\n"
         "Runs CMD, passes on its exit status, and writes where its CPU time\n"
         "went, where it allocated memory, or where its threads waited;\n"
         "processes that it starts get files of their own beside FILE.\n\n"),
    FLAG(STRING, "t", kinds, " KINDS", "cpu heap block mutex wall offcpu vm",
         "of cpu, heap, block, mutex, and wall or offcpu, as in\n"
         "cpu,heap (cpu)"),
    FLAG(STRING, "o", o.out, " FILE", ":files",
         "the profile (cpu.pb.gz, heap.pb.gz); of several, %k in\n"
         "it is the kind, or else it gets one: FILE.cpu"),
    FLAG(BOOL, "one", o.one, NULL, NULL,
         "one profile of all processes, with the labels process,\n"
         "pid and, of CPU time, thread; no files beside FILE"),
    FLAG(STRING, "duration", duration, " TIME", NULL,
         "stop and write after 10s, 500ms, 2m, 1h or so many\n"
         "seconds; CMD runs on"),
    FLAG(STRING, "p", o.pids, " PID", NULL,
         "no CMD, but processes that run already: they load the\n"
         "library, and leave it alone after Ctrl-C or -duration"),
    FLAG(STRING, "name", o.process_name, " NAME", NULL,
         "likewise all processes of this name, also new ones"),
    FLAG(BOOL, "force", o.force, NULL, NULL,
         "of -p, also a process with a seccomp filter, which may\n"
         "kill it for what profiling calls"),
    FLAG(STRING, "symbolize", symbolize, " HOW", "full functions none",
         "full, functions or none (full)"),
    FLAG(MAYBE, "debuginfod", o.debuginfod, "[=URL]", NULL,
         "fetch debug information that is missing here, from that\n"
         "server or those of DEBUGINFOD_URLS, which are asked\n"
         "without the flag, too, unless it is false"),
    FLAG(BOOL, "legacy", o.legacy, NULL, NULL,
         "in the forms of 2016: of the CPU profile the binary\n"
         "one of gperftools, of others text with addresses"),
    TEXT("\nOf CPU profiles:\n"),
    FLAG(STRING, "F", rate, " HZ", NULL,
         "samples per second of CPU time, 1 to 10000 (100)"),
    FLAG(STRING, "e", o.engine, " ENGINE", "auto perf timer",
         "auto, perf or timer (auto)"),
    FLAG(STRING, "depth", depth, " N", NULL,
         "frames kept of a stack, 1 to 1024 (128)"),
    TEXT("\nOf heap profiles, which end with a line for each of the stacks "
         "that\nhold most at the end:\n"),
    FLAG(STRING, "heap", o.heap_rate, " BYTES", NULL,
         "sample one allocation in BYTES, as in 64k (512k); 1: all"),
    FLAG(BOOL, "peak", o.peak, NULL, NULL,
         "in use when it was most, and not at the end"),
    FLAG(BOOL, "labels", o.labels, NULL, NULL,
         "with the labels of threads; of waits, too"),
    TEXT("\nOf block profiles, where threads waited, and mutex profiles, who "
         "held\nthe locks that they waited for:\n"),
    FLAG(STRING, "block", o.block_rate, " NS", NULL,
         "sample one wait in NS nanoseconds (10000); 1: all"),
    FLAG(STRING, "mutex", o.mutex_fraction, " N", NULL,
         "follow one wait for a lock of N (1)"),
    TEXT("\nOf wall profiles, where all threads were, and offcpu profiles, "
         "where\nthey were while they did not run:\n"),
    FLAG(STRING, "wall", o.wall_rate, " HZ", NULL,
         "samples per second and thread, 1 to 1000 (100)"),
    TEXT("\nOf scripts of Lua 5.4, Lua 5.1 and Python 3.11, whose "
         "interpreters then\nload a module of cpprof, by LUA_INIT and "
         "PYTHONPATH; -t KINDS,vm is this,\nand vm.pb.gz or FILE.vm, which has "
         "scripts alone, by wall time:\n"),
    FLAG(BOOL, "scripts", o.scripts, NULL, NULL,
         "lines of the script in these profiles, in one stack with\n"
         "the C code that they call"),
    {0},
};

const struct cpprof__flag cpprof__leaks_flag_table[] = {
    TEXT(
        "usage: cpprof leaks [flags] -- CMD ARGS\n"
        "       cpprof leaks -growth [flags] PROFILE... or URL\n"
        "\n"
        "Runs CMD, writes what it allocated, and prints what of it was lost "
        "at\n"
        "the end, a line for each stack: no pointer led to it any more. FILE\n"
        "has what was in use, and FILE.lost what was lost. Processes that CMD\n"
        "starts have no part in the verdict.\n\n"),
    FLAG(BOOL, "growth", o.is_growth, NULL, NULL,
         "no CMD, but heap profiles of one program, in their order, or\n"
         "a URL that is asked again: the stacks that hold more and\n"
         "more, with the confidence that it is no accident"),
    FLAG(INT, "times", o.n_times, " N", NULL, "of a URL: so many profiles (6)"),
    FLAG(STRING, "every", every, " TIME", NULL, "so far apart (10s)"),
    FLAG(BOOL, "reachable", o.is_reachable_too, NULL, NULL,
         "what is still reachable counts as well: all in use"),
    FLAG(STRING, "min", min, " BYTES", NULL,
         "stacks that hold less are passed over (1)"),
    FLAG(STRING, "ignore", o.ignore, " RE", NULL,
         "so are those with a function that matches"),
    FLAG(INT, "n", o.max_lines, " LINES", NULL,
         "lines that are printed at most (10)"),
    FLAG(STRING, "o", o.out, " FILE", ":files", "the profile (heap.pb.gz)"),
    FLAG(STRING, "heap", o.heap_rate, " BYTES", NULL,
         "sample one allocation in BYTES; 1: all (1)"),
    FLAG(STRING, "symbolize", symbolize, " HOW", "full functions none",
         "full, functions or none (full)"),
    TEXT("\nExit status: 0 nothing, 1 something was lost, 2 there is no\n"
         "verdict: CMD could not be run, failed, its memory could not be\n"
         "searched, or the profile not written. Of -growth: 0 none grows\n"
         "steadily, 1 some do, 2 something is wrong.\n"),
    {0},
};

/* ------------------------------------------------------------- words ---- */

/* The parsers leave the value alone where text is NULL; they return false after
 * printing what is wrong. */

static bool
parse_number(const char *flag, const char *text, unsigned most,
             const char *unit, unsigned *number)
{
    if (!text || cpprof__parse_count(text, most, number))
        return true;
    cpprof__cli_fail("record: %s takes 1 to %u %s, not \"%s\"", flag, most,
                     unit, text);
    return false;
}

static bool
parse_bytes(const char *flag, const char *text, int64_t *bytes)
{
    int64_t v;

    if (!text)
        return true;
    if (cpprof__parse_bytes(text, BYTES_MAX, &v) && v) {
        *bytes = v;
        return true;
    }
    cpprof__cli_fail("record: %s takes bytes, 1 to 1024g, not \"%s\"", flag,
                     text);
    return false;
}

/* Seconds, or a number with one of these units. */
static bool
parse_duration(const char *text, double *seconds)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}};
    char *end;
    double v = text ? strtod(text, &end) : 0;
    size_t i = 0;

    if (!text)
        return true;
    while (i < sizeof units / sizeof *units && strcmp(end, units[i].name))
        i++;
    v *= i < sizeof units / sizeof *units ? units[i].seconds : 0;
    if (end == text || !(v > 0) || !(v <= DURATION_MAX_S)) {
        cpprof__cli_fail("record: -duration takes a time, more than 0, as 10s, "
                         "500ms or 2m, not \"%s\"",
                         text);
        return false;
    }
    *seconds = v;
    return true;
}

/* One of several words, which `are` lists for the message; its index. */
static bool
parse_word(const char *flag, const char *text, const char *const *words,
           const char *are, unsigned *index)
{
    unsigned i;

    if (!text)
        return true;
    for (i = 0; words[i]; i++)
        if (!strcmp(text, words[i])) {
            *index = i;
            return true;
        }
    cpprof__cli_fail("record: %s takes %s, not \"%s\"", flag, are, text);
    return false;
}

/* vm comes beside another kind. */
static bool
parse_kinds(const char *text, struct cpprof__record_options *o)
{
    const unsigned either = CPPROF__RECORD_WALL | CPPROF__RECORD_OFF_CPU;
    const char *word = text;
    bool is_known = true;

    if (!text)
        return true;
    o->kinds = 0;
    for (;;) {
        size_t n = strcspn(word, ",");
        unsigned kind = cpprof__record_kind(word, n);
        bool is_vm = n == 2 && !strncmp(word, "vm", n);

        o->vm |= is_vm;
        o->kinds |= kind;
        is_known &= is_vm || kind;
        if (!word[n])
            break;
        word += n + 1;
    }
    if (is_known && o->kinds && (o->kinds & either) != either)
        return true;
    cpprof__cli_fail("record: -t takes cpu, heap, block, mutex and wall or "
                     "offcpu, and vm beside them, with commas between them, "
                     "not \"%s\"",
                     text);
    return false;
}

/* A flag of profiles that were not asked for would say nothing. */
static bool
is_asked_for(const struct cpprof__record_options *o, bool is_given,
             unsigned kinds, const char *flag, const char *kind)
{
    if (!is_given || o->kinds & kinds)
        return true;
    cpprof__cli_fail("record: %s is of %s profiles: it takes -t %s", flag, kind,
                     kind);
    return false;
}

static bool
are_asked_for(const struct cpprof__record_options *o)
{
    const unsigned either = CPPROF__RECORD_WALL | CPPROF__RECORD_OFF_CPU;

    return is_asked_for(o, o->heap_rate, CPPROF__RECORD_HEAP, "-heap",
                        "heap") &&
           is_asked_for(o, o->peak, CPPROF__RECORD_HEAP, "-peak", "heap") &&
           is_asked_for(o, o->block_rate, CPPROF__RECORD_BLOCK, "-block",
                        "block") &&
           is_asked_for(o, o->mutex_fraction, CPPROF__RECORD_MUTEX, "-mutex",
                        "mutex") &&
           is_asked_for(o, o->wall_rate, either, "-wall", "wall");
}

static bool
understand(struct words *w)
{
    static const char *const engines[] = {"auto", "perf", "timer", NULL};
    /* ORDER: enum cpprof_symbolize */
    static const char *const symbolize[] = {"full", "functions", "none", NULL};
    struct cpprof__record_options *o = &w->o;
    unsigned number = 0;
    int64_t bytes;

    if (!parse_kinds(w->kinds, o) ||
        !parse_number("-F", w->rate, RATE_MAX_HZ, "Hz", &o->rate_hz) ||
        !parse_number("-depth", w->depth, DEPTH_MAX, "frames", &o->max_depth) ||
        !parse_duration(w->duration, &o->duration_s) ||
        !parse_duration(w->every, &o->every_s) ||
        !parse_word("-e", o->engine, engines, "auto, perf or timer", &number))
        return false;
    number = CPPROF_SYMBOLIZE_FULL;
    if (!parse_word("-symbolize", w->symbolize, symbolize,
                    "full, functions or none", &number))
        return false;
    o->symbolize = (enum cpprof_symbolize)number;
    if (o->one && o->legacy) {
        cpprof__cli_fail("record: -legacy has no labels, which -one needs");
        return false;
    }
    if (o->symbolize != CPPROF_SYMBOLIZE_NONE &&
        !cpprof__debuginfod_begin(o->debuginfod))
        return false;
    /* These are passed on as they are, once they are known to be right. */
    return parse_bytes("-heap", o->heap_rate, &bytes) &&
           parse_number("-block", o->block_rate, RATE_NS_MAX, "nanoseconds",
                        &number) &&
           parse_number("-mutex", o->mutex_fraction, INT_MAX, "waits",
                        &number) &&
           parse_number("-wall", o->wall_rate, WALL_HZ_MAX, "Hz", &number) &&
           parse_bytes("-min", w->min, &o->min_bytes) && are_asked_for(o);
}

/* ------------------------------------------------------------ running ---- */

/* Will it be possible to write the profile at the end? */
static bool
check_file(const struct cpprof__record_options *options, unsigned kind)
{
    struct cpprof_writer writer;
    struct cpprof_error error;
    bool can;
    char *path;

    if (!(options->kinds & kind))
        return true;
    path = cpprof__record_name(options, kind);
    can = path && cpprof_writer_to_path(path, &writer, &error) == CPPROF_OK;
    if (can)
        writer.close(writer.ctx, 1);
    else
        cpprof__cli_fail("record: %s", path ? error.text : "out of memory");
    free(path);
    return can;
}

static bool
check_files(const struct cpprof__record_options *options)
{
    unsigned kind;

    for (kind = 1; kind < CPPROF__RECORD_END; kind *= 2)
        if (!check_file(options, kind))
            return false;
    return true;
}

/* The end of a command under the recorder. */
struct result {
    int exit_status; /* to be passed on; of the recorder, when not started */
    bool is_started;
    bool is_written;
};

static void
take_ended(void *ctx)
{
    cpprof__record_take_ended(ctx);
}

/* A part of the CPU time that is missing and so large is told. */
#define MISSING_SHARE 2 /* the half */
#define MISSING_MIN_S 0.2

/* Of all processes that have ended and were waited for. */
static int64_t
used_by_children_ns(void)
{
    struct rusage u;

    if (getrusage(RUSAGE_CHILDREN, &u))
        return 0;
    return (int64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
           (int64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* Those that did not load the library have no file. */
static void
tell_missing(const struct cpprof__record_options *options)
{
    unsigned rate_hz = options->rate_hz ? options->rate_hz : RATE_DEFAULT_HZ;
    double sampled_s = (double)options->n_ticks / rate_hz;
    double used_s = (double)options->used_ns * 1e-9;
    double missing_s = used_s - sampled_s;

    if (!(options->kinds & CPPROF__RECORD_CPU))
        return;
    if (missing_s >= MISSING_MIN_S && missing_s * MISSING_SHARE > used_s)
        cpprof__cli_warn("%.1f of %.1f s of CPU time are in no profile: "
                         "programs that do not load libcpprof.so (static, for "
                         "musl, 32-bit, set-user-ID), or "
                         "many short ones",
                         missing_s, used_s);
}

/* Run a command as the options say, which were checked, and write the files. If
 * a signal ended it and there is no verdict to give, that ends this program,
 * too. */
static struct result
run(struct cpprof__record_options *options)
{
    struct result result = {.exit_status = CPPROF__EXIT_ERROR};
    struct cpprof__record_folder folder;
    struct cpprof__record_child child;
    struct cpprof__record_ended parts = {options, &folder, {{0}}, {0}};
    struct cpprof__record_chore chore = {options->one ? take_ended : NULL,
                                         &parts};
    int64_t used_before_ns;
    time_t start;
    int status;
    bool ended;

    if (!check_files(options))
        return result;
    status = cpprof__preflight(options->command[0]);
    if (status) {
        result.exit_status = status;
        return result;
    }
    cpprof__record_take_signals();
    if (!cpprof__record_folder_make(&folder))
        return result;
    cpprof__record_vm_check(options);
    start = time(NULL);
    used_before_ns = used_by_children_ns(); /* of who became this by exec */
    result.exit_status = cpprof__record_child_start(options, &folder, &child);
    result.is_started = !result.exit_status;
    if (result.is_started) {
        ended = cpprof__record_child_wait(&child, options->duration_s, chore);
        if (ended) {
            cpprof__record_child_ended(&folder);
            options->used_ns = used_by_children_ns() - used_before_ns;
        }
        result.is_written =
            cpprof__record_write(options, &folder, child.pid, &parts);
        if (ended && result.is_written)
            tell_missing(options);
        if (!ended)
            cpprof__record_child_wait(&child, 0,
                                      (struct cpprof__record_chore){0});
        cpprof__record_vm_print(options, start);
    }
    cpprof__record_ended_free(&parts);
    cpprof__record_folder_remove(&folder);
    if (result.is_started)
        result.exit_status = options->is_verdict
                                 ? cpprof__record_child_status(&child)
                                 : cpprof__record_child_pass_on(&child);
    return result;
}

/* ----------------------------------------------------------- commands ---- */

/* That leaks found nothing, and what it looked at. */
static void
tell_nothing(const struct cpprof__record_options *o)
{
    const char *less =
        o->min_bytes > 1 || o->ignore ? " that -min and -ignore leave" : "";

    if (!o->n_allocated)
        cpprof__cli_warn("lost: nothing: %s allocated nothing", o->command[0]);
    else if (o->is_searched)
        cpprof__cli_warn("lost: nothing%s", less);
    else
        cpprof__cli_warn("in use at the end: nothing%s", less);
}

/* No exit status: the command is to be run. */
#define GO_ON (-1)

/* The command line of either, argv[0]: fills *w, or returns the exit status. */
static int
take_words(int argc, char **argv, const struct cpprof__flag *table,
           struct words *w)
{
    struct cpprof__flags flags = {.table = table, .into = w};
    int n_used;

    if (!cpprof__cli_flags(argc, argv, &flags, &n_used))
        return CPPROF__EXIT_ERROR;
    if (flags.help) {
        cpprof__print_flags(table, true);
        return CPPROF__EXIT_OK;
    }
    if (!understand(w))
        return CPPROF__EXIT_ERROR;
    if (w->o.pids || w->o.process_name) {
        if (n_used != argc)
            return cpprof__cli_fail("%s: -p and -name take no command: \"%s\"",
                                    argv[0], argv[n_used]);
        return GO_ON;
    }
    if (n_used == argc)
        return cpprof__cli_fail("%s: no command given; "
                                "cpprof %s [flags] -- CMD ARGS",
                                argv[0], argv[0]);
    w->o.command = argv + n_used;
    return GO_ON;
}

static int
record_attached(struct cpprof__record_options *options)
{
    return check_files(options) && cpprof__record_attached(options)
               ? CPPROF__EXIT_OK
               : CPPROF__EXIT_ERROR;
}

int
cpprof__cli_record(int argc, char **argv)
{
    struct words w = {.o = {.kinds = CPPROF__RECORD_CPU,
                            .debuginfod = cpprof__debuginfod_default,
                            .min_bytes = 1,
                            .max_lines = LINES_MAX}};
    struct result result;
    int status = take_words(argc, argv, cpprof__record_flag_table, &w);

    if (status != GO_ON)
        return status;
    if (w.o.pids || w.o.process_name)
        return record_attached(&w.o);
    result = run(&w.o);
    return result.exit_status || result.is_written ? result.exit_status
                                                   : EXIT_NOT_WRITTEN;
}

int
cpprof__cli_leaks(int argc, char **argv)
{
    struct words w = {.o = {.kinds = CPPROF__RECORD_HEAP,
                            .debuginfod = cpprof__debuginfod_default,
                            .is_verdict = true,
                            .min_bytes = 1,
                            .max_lines = LINES_MAX,
                            .n_times = 6,
                            .every_s = 10,
                            .heap_rate = "1"}};
    struct result result;
    size_t n = 0;
    int status = take_words(argc, argv, cpprof__leaks_flag_table, &w);

    if (status != GO_ON)
        return status;
    while (w.o.command[n])
        n++;
    if (w.o.is_growth)
        return cpprof__record_growth(&w.o, w.o.command, n);
    if (cpprof__is_data_file(*w.o.command))
        return cpprof__cli_fail("leaks: %s is a file, not a command to run; "
                                "cpprof top shows a profile",
                                *w.o.command);
    if (w.o.max_lines < 0)
        return cpprof__cli_fail("leaks: -n takes 0 or more, not %d",
                                w.o.max_lines);
    if (w.o.out && !cpprof__record_has_room_beside(w.o.out))
        return cpprof__cli_fail("leaks: %s is no file", w.o.out);
    result = run(&w.o);
    if (!result.is_started)
        return CPPROF__EXIT_ERROR;
    if (result.exit_status)
        return cpprof__cli_fail("leaks: no verdict: %s ended with status %d",
                                w.o.command[0], result.exit_status);
    if (!result.is_written)
        return CPPROF__EXIT_ERROR;
    if (!w.o.is_searched && !w.o.is_reachable_too && w.o.leaked_bytes)
        return cpprof__cli_fail("leaks: no verdict: memory was not searched "
                                "for pointers; with -reachable all that is in "
                                "use counts");
    if (w.o.leaked_bytes)
        return EXIT_LEAKS;
    if (w.o.n_lost)
        return cpprof__cli_fail("leaks: no verdict: samples were lost");
    tell_nothing(&w.o);
    return CPPROF__EXIT_OK;
}
