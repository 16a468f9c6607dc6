/* SPDX-License-Identifier: MIT */
/*
 * cpprof record [-t KINDS] [-F HZ] [-o FILE] [-duration S] -- CMD ARGS
 *
 * Runs a command with libcpprof.so preloaded and writes where its CPU time
 * went, where it allocated memory, or both. The library keeps the samples in
 * files that this process can read at any moment, so nothing depends on how the
 * command ends. Every error in the request is reported before the command runs.
 */
#include "cli/record/record.h"

#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/messages.h"
#include "cli/record/preflight.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_MAX_HZ    10000
#define WALL_HZ_MAX    1000
#define DEPTH_MAX      1024
#define BYTES_MAX      (1ul << 40)
#define RATE_NS_MAX    INT_MAX
#define DURATION_MAX_S 1e9 /* 31 years, which fits every type */

/* Our own failure after the command ran well. */
#define EXIT_NOT_WRITTEN 1

/* The most stacks in the list of what is in use at the end. */
#define LINES_MAX 10

#define FLAG(of, word, member, value, can_be, help)                            \
    CPPROF__FLAG(of, word, struct cpprof__record_flags, member, value, can_be, \
                 help)
#define TEXT(lines)                                                            \
    {                                                                          \
        .name = "", .kind = CPPROF__FLAG_TEXT, .text = lines                   \
    }

const struct cpprof__flag cpprof__record_flag_table[] = {
    FLAG(STRING, "t", kinds, " KINDS", "cpu heap block mutex wall offcpu vm",
         "of cpu, heap, block, mutex, and wall or offcpu, as in\n"
         "cpu,heap (cpu)"),
    FLAG(STRING, "o", out, " FILE", ":files",
         "the profile (cpu.pb.gz, heap.pb.gz); of several, %k in\n"
         "it is the kind, or else it gets one: FILE.cpu"),
    FLAG(STRING, "duration", duration, " S", NULL,
         "stop and write after S seconds; CMD runs on"),
    FLAG(STRING, "symbolize", symbolize, " HOW", "full functions none",
         "full, functions or none (full)"),
    FLAG(BOOL, "legacy", legacy, NULL, NULL,
         "in the forms of 2016: of the CPU profile the binary\n"
         "one of gperftools, of others text with addresses"),
    TEXT("\nOf CPU profiles:\n"),
    FLAG(STRING, "F", rate, " HZ", NULL,
         "samples per second of CPU time, 1 to 10000 (100)"),
    FLAG(STRING, "e", engine, " ENGINE", "auto perf timer itimer",
         "auto, perf, timer or itimer (auto)"),
    FLAG(STRING, "depth", depth, " N", NULL,
         "frames kept of a stack, 1 to 1024 (128)"),
    TEXT("\nOf heap profiles, which end with a line for each of the stacks "
         "that\nhold most at the end:\n"),
    FLAG(STRING, "heap", heap, " BYTES", NULL,
         "sample one allocation in BYTES, as in 64k (512k); 1: all"),
    FLAG(BOOL, "peak", peak, NULL, NULL,
         "in use when it was most, and not at the end"),
    FLAG(BOOL, "labels", labels, NULL, NULL,
         "with the labels of threads; of waits, too"),
    TEXT("\nOf block profiles, where threads waited, and mutex profiles, who "
         "held\nthe locks that they waited for:\n"),
    FLAG(STRING, "block", block, " NS", NULL,
         "sample one wait in NS nanoseconds (10000); 1: all"),
    FLAG(STRING, "mutex", mutex, " N", NULL,
         "follow one wait for a lock of N (1)"),
    TEXT("\nOf wall profiles, where all threads were, and offcpu profiles, "
         "where\nthey were while they did not run:\n"),
    FLAG(STRING, "wall", wall, " HZ", NULL,
         "samples per second and thread, 1 to 1000 (100)"),
    TEXT("\nOf scripts of Lua 5.4, Lua 5.1 and Python 3.11, whose "
         "interpreters then\nload a module of cpprof, by LUA_INIT and "
         "PYTHONPATH; -t KINDS,vm is this,\nand vm.pb.gz or FILE.vm, which has "
         "scripts alone, by wall time:\n"),
    FLAG(BOOL, "scripts", scripts, NULL, NULL,
         "lines of the script in these profiles, in one stack with\n"
         "the C code that they call"),
    {0},
};

static void
print_help(void)
{
    puts("usage: cpprof record [flags] -- CMD ARGS\n"
         "\n"
         "Runs CMD, passes on its exit status, and writes where its CPU time\n"
         "went, where it allocated memory, or where its threads waited;\n"
         "processes that it starts get files of their own beside FILE.\n");
    cpprof__print_flags(cpprof__record_flag_table, true);
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

/* vm comes beside another kind. */
static bool
parse_kinds(const char *text, struct cpprof__record_options *o)
{
    const unsigned either = CPPROF__RECORD_WALL | CPPROF__RECORD_OFF_CPU;
    const char *word = text;
    bool is_known = true;

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

bool
cpprof__record_parse_bytes(const char *flag, const char *text, int64_t *bytes)
{
    static const char units[] = "kmg";
    const char *unit;
    char *end;
    unsigned long v = strtoul(text, &end, 10);
    unsigned shift = 0;

    unit = *end ? strchr(units, *end | 0x20) : NULL;
    if (unit) {
        shift = 10 * (unsigned)(unit - units + 1);
        end++;
    }
    if (*text < '0' || *text > '9' || *end || v < 1 || v > BYTES_MAX >> shift) {
        cpprof__cli_fail("record: %s takes bytes, 1 to 1024g, not \"%s\"", flag,
                         text);
        return false;
    }
    *bytes = (int64_t)(v << shift);
    return true;
}

bool
cpprof__record_understand(const struct cpprof__record_flags *w,
                          struct cpprof__record_options *o)
{
    unsigned number;
    int64_t heap_rate;

    o->peak = w->peak;
    o->labels = w->labels;
    o->legacy = w->legacy;
    o->scripts = w->scripts;
    o->ignore = w->ignore;
    o->engine = w->engine;
    o->out = w->out;
    o->heap_rate = w->heap;
    o->block_rate = w->block;
    o->mutex_fraction = w->mutex;
    o->wall_rate = w->wall;
    return (!w->kinds || parse_kinds(w->kinds, o)) &&
           (!w->rate ||
            parse_number("-F", w->rate, RATE_MAX_HZ, "Hz", &o->rate_hz)) &&
           (!w->depth || parse_number("-depth", w->depth, DEPTH_MAX, "frames",
                                      &o->max_depth)) &&
           (!w->duration || parse_duration(w->duration, &o->duration_s)) &&
           (!w->engine || parse_engine(w->engine)) &&
           (!w->symbolize || parse_symbolize(w->symbolize, &o->symbolize)) &&
           (!w->heap ||
            cpprof__record_parse_bytes("-heap", w->heap, &heap_rate)) &&
           (!w->block || parse_number("-block", w->block, RATE_NS_MAX,
                                      "nanoseconds", &number)) &&
           (!w->mutex ||
            parse_number("-mutex", w->mutex, INT_MAX, "waits", &number)) &&
           (!w->wall ||
            parse_number("-wall", w->wall, WALL_HZ_MAX, "Hz", &number)) &&
           (!w->min ||
            cpprof__record_parse_bytes("-min", w->min, &o->min_bytes));
}

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

/* Run the command, write the files, and print what was written. */
static struct cpprof__record_result
run(struct cpprof__record_options *options,
    const struct cpprof__record_folder *folder, bool pass_on)
{
    struct cpprof__record_result result = {0};
    struct cpprof__record_child child;
    time_t start = time(NULL);
    bool ended;

    result.exit_status = cpprof__record_child_start(options, folder, &child);
    if (result.exit_status)
        return result;
    result.is_started = true;
    ended = cpprof__record_child_wait(&child, options->duration_s);
    if (ended)
        cpprof__record_child_ended(folder);
    result.is_written = cpprof__record_files_write(options, folder, child.pid);
    if (!ended)
        cpprof__record_child_wait(&child, 0);
    cpprof__record_vm_tell(options, start);
    cpprof__record_folder_remove(folder);
    result.exit_status = pass_on ? cpprof__record_child_pass_on(&child)
                                 : cpprof__record_child_status(&child);
    return result;
}

struct cpprof__record_result
cpprof__record_run(struct cpprof__record_options *options, bool pass_on)
{
    struct cpprof__record_result result = {.exit_status = CPPROF__EXIT_ERROR};
    struct cpprof__record_folder folder;
    struct cpprof__preflight preflight;
    unsigned kind;

    for (kind = 1; kind < CPPROF__RECORD_END; kind *= 2)
        if (!check_file(options, kind))
            return result;
    cpprof__preflight(options->command[0], &preflight);
    if (preflight.exit_status) {
        cpprof__cli_fail("%s", preflight.text);
        result.exit_status = preflight.exit_status;
        return result;
    }
    if (!cpprof__record_folder_make(&folder))
        return result;
    result = run(options, &folder, pass_on);
    cpprof__record_folder_remove(&folder);
    return result;
}

static int
record(struct cpprof__record_options *options)
{
    struct cpprof__record_result result = cpprof__record_run(options, true);

    if (result.exit_status || result.is_written)
        return result.exit_status;
    return EXIT_NOT_WRITTEN;
}

int
cpprof__cli_record(int argc, char **argv)
{
    struct cpprof__record_options options = {
        .kinds = CPPROF__RECORD_CPU, .min_bytes = 1, .max_lines = LINES_MAX};
    struct cpprof__record_flags w = {0};
    struct cpprof__flags flags = {.table = cpprof__record_flag_table,
                                  .into = &w};
    int n_used;

    if (!cpprof__cli_flags(argc, argv, &flags, &n_used))
        return CPPROF__EXIT_ERROR;
    if (flags.help) {
        print_help();
        return CPPROF__EXIT_OK;
    }
    if (!cpprof__record_understand(&w, &options))
        return CPPROF__EXIT_ERROR;
    if (n_used == argc)
        return cpprof__cli_fail("record: no command given; "
                                "cpprof record [flags] -- CMD ARGS");
    options.command = argv + n_used;
    return record(&options);
}
