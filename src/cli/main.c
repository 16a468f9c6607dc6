/* SPDX-License-Identifier: MIT */
/*
 * The command: a table of words. A flag, or the name of a file, begins a report
 * in the syntax of `go tool pprof`.
 */
#include "cli/cli.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef CPPROF_VERSION
#define CPPROF_VERSION "0.1.0"
#endif

static int
help(int argc, char **argv);

static int
version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("cpprof " CPPROF_VERSION);
    return CPPROF__EXIT_OK;
}

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *use;
    const char *summary; /* NULL: another name of the one above */
    bool has_help;       /* of its own: -help */
} commands[] = {
    {"record", cpprof__cli_record, "record [flags] -- CMD ARGS",
     "run a program and write its profiles", true},
    {"leaks", cpprof__cli_leaks, "leaks [flags] -- CMD ARGS",
     "run a program and print what it did not free", true},
    {"merge", cpprof__cli_report, "merge [-output=FILE] FILE...",
     "write the sum of profiles as a profile; same as -proto", false},
    {"convert", cpprof__cli_convert, "convert [flags] [FILE ...]",
     "write profiles in another format", true},
    {"help", help, "help [COMMAND|TOPIC]",
     "print this, or more on a command or topic", false},
    {"-h", help, NULL, NULL, false},
    {"-help", help, NULL, NULL, false},
    {"--help", help, NULL, NULL, false},
    {"version", version, "version", "print the version", false},
    {"-version", version, NULL, NULL, false},
    {"--version", version, NULL, NULL, false},
};
#define N_COMMANDS (sizeof commands / sizeof commands[0])

/* On a topic; or on all of reports, for the names of reports and "report". */
static int
help_on(const char *word)
{
    size_t i;

    if (cpprof__help_topic(word) ||
        (*word == '-' && cpprof__help_flag(word + 1 + (word[1] == '-'))))
        return CPPROF__EXIT_OK;
    for (i = 0; i < N_COMMANDS; i++)
        if (strcmp(word, commands[i].name) == 0 ||
            cpprof__cli_is_report(word) || strcmp(word, "report") == 0) {
            cpprof__cli_report_help();
            return CPPROF__EXIT_OK;
        }
    if (cpprof__help_flag(word))
        return CPPROF__EXIT_OK;
    return cpprof__cli_fail("no help on \"%s\"; see cpprof help", word);
}

static int
help(int argc, char **argv)
{
    char *ask[] = {NULL, "-help", NULL};
    size_t i;

    for (i = 0; argc > 1 && i < N_COMMANDS; i++)
        if (commands[i].has_help && strcmp(argv[1], commands[i].name) == 0) {
            ask[0] = argv[1];
            return commands[i].run(2, ask);
        }
    if (argc > 1)
        return help_on(argv[1]);
    puts("usage: cpprof COMMAND\n"
         "       cpprof [-FORMAT] [flags] [BINARY] SOURCE...\n");
    for (i = 0; i < N_COMMANDS; i++)
        if (commands[i].summary)
            printf("  %-28s %s\n", commands[i].use, commands[i].summary);
    printf("  %-28s %s\n  %-28s %s\n", "FORMAT [flags] SOURCE...",
           "print a report, such as top; same as -FORMAT",
           "FORMAT [flags] RE SOURCE...",
           "the same of functions: peek, list, disasm, weblist");
    puts("\nReports take the flags of `go tool pprof`: cpprof -top -cum FILE. "
         "Without\na format, cpprof FILE starts a shell.");
    cpprof__help_topics();
    return CPPROF__EXIT_OK;
}

int
main(int argc, char **argv)
{
    size_t i;

    if (argc < 2)
        return cpprof__cli_fail("no command given; see cpprof help");
    for (i = 0; i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    if (cpprof__cli_is_report(argv[1]))
        return cpprof__cli_report(argc - 1, argv + 1);
    /* "FILE -top", or a FILE for the shell. */
    if (argv[1][0] == '-' || access(argv[1], F_OK) == 0 ||
        strpbrk(argv[1], "/:"))
        return cpprof__cli_flag_report(argc, argv);
    return cpprof__cli_fail("unknown command \"%s\"; see cpprof help", argv[1]);
}
