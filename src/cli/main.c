/* SPDX-License-Identifier: MIT */
/*
 * The command: a table of words. A flag, or the name of a file, begins a report
 * in the syntax of `go tool pprof`.
 */
#include "cli.h"
#include "help.h"

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
} commands[] = {
    {"record", cpprof__cli_record, "record [flags] -- CMD ARGS",
     "run a program and write its CPU profile"},
    {"top", cpprof__cli_report, "top [flags] FILE",
     "print where the time of a profile went; same as -top"},
    {"text", cpprof__cli_report, NULL, NULL},
    {"peek", cpprof__cli_report, "peek [flags] REGEXP FILE...",
     "print functions with their callers and callees; same as -peek"},
    {"list", cpprof__cli_report, "list [flags] REGEXP FILE...",
     "print the source of functions, with values; same as -list"},
    {"disasm", cpprof__cli_report, "disasm [flags] REGEXP FILE...",
     "print the instructions of functions; same as -disasm"},
    {"tags", cpprof__cli_report, "tags [flags] FILE...",
     "print the labels of a profile; same as -tags"},
    {"comments", cpprof__cli_report, "comments FILE...",
     "print the comments of a profile; same as -comments"},
    {"raw", cpprof__cli_report, "raw [flags] FILE...",
     "print all that is in a profile; same as -raw"},
    {"merge", cpprof__cli_report, "merge [-output=FILE] FILE...",
     "write the sum of profiles as a profile; same as -proto"},
    {"proto", cpprof__cli_report, NULL, NULL},
    {"topproto", cpprof__cli_report, NULL, NULL},
    {"convert", cpprof__cli_convert, "convert [flags] [FILE ...]",
     "write profiles in another format"},
    {"help", help, "help [COMMAND|TOPIC]",
     "print this, or more on a command or topic"},
    {"-h", help, NULL, NULL},
    {"-help", help, NULL, NULL},
    {"--help", help, NULL, NULL},
    {"version", version, "version", "print the version"},
    {"-version", version, NULL, NULL},
    {"--version", version, NULL, NULL},
};
#define N_COMMANDS (sizeof commands / sizeof commands[0])

/* On a topic; or on all of reports, for the names of reports and "report". */
static int
help_on(const char *word)
{
    size_t i;

    if (cpprof__help_topic(word) ||
        (*word == '-' && cpprof__help_word(word + 1 + (word[1] == '-'))))
        return CPPROF__EXIT_OK;
    for (i = 0; i < N_COMMANDS; i++)
        if (strcmp(word, commands[i].name) == 0 ||
            strcmp(word, "report") == 0) {
            cpprof__cli_report_help();
            return CPPROF__EXIT_OK;
        }
    return cpprof__cli_fail("no help on \"%s\"; see cpprof help", word);
}

static int
help(int argc, char **argv)
{
    char *ask[] = {"record", "-help", NULL};
    size_t i;

    if (argc > 1 && strcmp(argv[1], "record") == 0)
        return cpprof__cli_record(2, ask);
    if (argc > 1 && strcmp(argv[1], "convert") == 0) {
        cpprof__cli_convert_help();
        return CPPROF__EXIT_OK;
    }
    if (argc > 1)
        return help_on(argv[1]);
    puts("usage: cpprof COMMAND\n");
    for (i = 0; i < N_COMMANDS; i++)
        if (commands[i].summary)
            printf("  %-28s %s\n", commands[i].use, commands[i].summary);
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
    /* "FILE -top", or a FILE for the shell. */
    if (argv[1][0] == '-' || access(argv[1], F_OK) == 0 ||
        strpbrk(argv[1], "/:"))
        return cpprof__cli_flag_report(argc, argv);
    return cpprof__cli_fail("unknown command \"%s\"; see cpprof help", argv[1]);
}
