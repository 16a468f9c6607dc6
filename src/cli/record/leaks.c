/* SPDX-License-Identifier: MIT */
/*
 * cpprof leaks [-min BYTES] [-ignore RE] [-o FILE] -- CMD ARGS
 *
 * `cpprof record -t heap -heap 1` with a verdict: every allocation is followed,
 * and what is still in use when the command has ended is a leak, whether a
 * pointer to it is left or not. There is a verdict only if the command ends by
 * itself and successfully.
 */
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/messages.h"
#include "cli/record/record.h"

#include <stddef.h>
#include <stdio.h>

#define EXIT_LEAKS 1

#define FLAG(of, word, member, value, can_be, help)                            \
    CPPROF__FLAG(of, word, struct cpprof__record_flags, member, value, can_be, \
                 help)

const struct cpprof__flag cpprof__leaks_flag_table[] = {
    FLAG(STRING, "min", min, " BYTES", NULL,
         "stacks that hold less are passed over (1)"),
    FLAG(STRING, "ignore", ignore, " RE", NULL,
         "so are those with a function that matches"),
    FLAG(INT, "n", max_lines, " LINES", NULL,
         "lines that are printed at most (10)"),
    FLAG(STRING, "o", out, " FILE", ":files", "the profile (heap.pb.gz)"),
    FLAG(STRING, "heap", heap, " BYTES", NULL,
         "sample one allocation in BYTES; 1: all (1)"),
    FLAG(STRING, "symbolize", symbolize, " HOW", "full functions none",
         "full, functions or none (full)"),
    {0},
};

static void
print_help(void)
{
    puts(
        "usage: cpprof leaks [flags] -- CMD ARGS\n"
        "\n"
        "Runs CMD, writes what it allocated, and prints what of it was still\n"
        "in use at the end, a line for each stack. Memory is not searched for\n"
        "pointers: what is kept on purpose is printed, too. Processes that\n"
        "CMD starts get profiles beside FILE and have no part in the "
        "verdict.\n");
    cpprof__print_flags(cpprof__leaks_flag_table, true);
    puts("\nExit status: 0 nothing, 1 something was in use, 2 there is no\n"
         "verdict: CMD could not be run, failed, or the profile not written.");
}

static int
judge(struct cpprof__record_options *options)
{
    struct cpprof__record_result result = cpprof__record_run(options, false);

    if (!result.is_started)
        return CPPROF__EXIT_ERROR;
    if (result.exit_status)
        return cpprof__cli_fail("leaks: no verdict: %s ended with status %d",
                                options->command[0], result.exit_status);
    if (!result.is_written)
        return CPPROF__EXIT_ERROR;
    if (options->leaked_bytes)
        return EXIT_LEAKS;
    if (options->n_lost)
        return cpprof__cli_fail("leaks: no verdict: samples were lost");
    return CPPROF__EXIT_OK;
}

int
cpprof__cli_leaks(int argc, char **argv)
{
    struct cpprof__record_options options = {
        .kinds = CPPROF__RECORD_HEAP, .is_verdict = true, .min_bytes = 1};
    struct cpprof__record_flags w = {.heap = "1", .max_lines = 10};
    struct cpprof__flags flags = {.table = cpprof__leaks_flag_table,
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
    options.max_lines = w.max_lines;
    if (options.max_lines < 0)
        return cpprof__cli_fail("leaks: -n takes 0 or more, not %d",
                                options.max_lines);
    if (w.out && !cpprof__record_has_room_beside(w.out))
        return cpprof__cli_fail("leaks: %s is no file", w.out);
    if (n_used == argc)
        return cpprof__cli_fail("leaks: no command given; "
                                "cpprof leaks [flags] -- CMD ARGS");
    options.command = argv + n_used;
    return judge(&options);
}
