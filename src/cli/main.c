/* SPDX-License-Identifier: MIT */
/*
 * The command: a table of words. A flag, or the name of a file, begins a report
 * in the syntax of `go tool pprof`.
 */
#include "cli/commands.h"
#include "cli/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int
help(int argc, char **argv);

const struct cpprof__command cpprof__commands[] = {
    {"record", cpprof__cli_record, "record [flags] -- CMD ARGS",
     "run a program and write its profiles", cpprof__record_flag_table},
    {"leaks", cpprof__cli_leaks, "leaks [flags] -- CMD ARGS",
     "run a program and print what it lost", cpprof__leaks_flag_table},
    {"doctor", cpprof__cli_doctor, "doctor PID",
     "say whether record -p PID would work", NULL},
    {"threads", cpprof__cli_threads, "threads [-stuck] -p PID",
     "print where threads are, of a process or a URL",
     cpprof__threads_flag_table},
    {"gate", cpprof__cli_gate, "gate [flags] BASE... -- HEAD...",
     "say whether a program became slower, with an exit status",
     cpprof__gate_flag_table},
    {"merge", cpprof__cli_report, "merge [-output=FILE] FILE...",
     "write the sum of profiles as a profile; same as -proto", NULL},
    {"symbolize", cpprof__cli_report, "symbolize [flags] FILE...",
     "write a profile with the names that its binaries have", NULL},
    {"http", cpprof__cli_report, "http [[HOST]:PORT] FILE...",
     "show all reports in a browser; same as -http", NULL},
    {"convert", cpprof__cli_convert, "convert [flags] [FILE ...]",
     "write profiles in another format", cpprof__convert_flag_table},
    {"push", cpprof__cli_push, "push -to=URL [flags] FILE...",
     "send profiles to a collector or to Pyroscope", cpprof__push_flag_table},
    {"pgo", cpprof__cli_pgo, "pgo [flags] PROFILE...",
     "make of profiles what a compiler needs for a faster build",
     cpprof__pgo_flag_table},
    {"help", help, "help [COMMAND|TOPIC]",
     "print this, or more on a command or topic", NULL},
    {"-h", help, NULL, NULL, NULL},
    {"-help", help, NULL, NULL, NULL},
    {"--help", help, NULL, NULL, NULL},
    {"version", cpprof__cli_version, "version [-v]",
     "print the version; -v: and what can be done on this machine",
     cpprof__version_flag_table},
    {"-version", cpprof__cli_version, NULL, NULL, NULL},
    {"--version", cpprof__cli_version, NULL, NULL, NULL},
    {"complete", cpprof__cli_complete, NULL, NULL, NULL},
    {0},
};

static const struct cpprof__command *
find(const char *name)
{
    const struct cpprof__command *c = cpprof__commands;

    while (c->name && strcmp(c->name, name) != 0)
        c++;
    return c->name ? c : NULL;
}

/* Print help on a topic; or all help on reports, for "report" and the names of
 * reports. */
static int
help_on(const char *word)
{
    if (cpprof__help_topic(word) ||
        (*word == '-' && cpprof__help_flag(word + 1 + (word[1] == '-'))))
        return CPPROF__EXIT_OK;
    if (find(word) || cpprof__cli_is_report(word) ||
        strcmp(word, "report") == 0) {
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
    const struct cpprof__command *c = argc > 1 ? find(argv[1]) : NULL;
    char *ask[] = {argv[argc > 1], "-help", NULL};

    if (c && c->run != help)
        return c->run(2, ask);
    if (argc > 1)
        return help_on(argv[1]);
    puts("usage: cpprof COMMAND\n"
         "       cpprof [-FORMAT] [flags] [BINARY] SOURCE...\n");
    for (c = cpprof__commands; c->name; c++)
        if (c->summary)
            printf("  %-28s %s\n", c->use, c->summary);
    printf("  %-28s %s\n  %-28s %s\n", "FORMAT [flags] SOURCE...",
           "print a report, such as top; same as -FORMAT",
           "FORMAT [flags] RE SOURCE...",
           "the same of functions: peek, list, disasm, weblist");
    puts("\nReports take the flags of `go tool pprof`: cpprof -top -cum FILE. "
         "Without\na format, cpprof FILE starts a shell.");
    cpprof__help_topics();
    return CPPROF__EXIT_OK;
}

/* A descriptor that is closed would be that of the next file or pipe that is
 * opened, and what is printed would go there. One that fails takes its place,
 * also if it is opened anew, as /dev/stdout. */
static void
hold_closed(void)
{
    int fd;

    for (fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open(fd ? "/" : "/dev/null", fd ? O_PATH : O_WRONLY);
}

/* A command that is run has the descriptors that were given. */
static bool
runs_another(const struct cpprof__command *c)
{
    return c && (c->run == cpprof__cli_record || c->run == cpprof__cli_leaks ||
                 c->run == cpprof__cli_gate);
}

static int
run(int argc, char **argv)
{
    const struct cpprof__command *c = argc > 1 ? find(argv[1]) : NULL;

    if (!runs_another(c))
        hold_closed();
    if (argc < 2)
        return cpprof__cli_fail("no command given; see cpprof help");
    if (c && c->run != cpprof__cli_report)
        return c->run(argc - 1, argv + 1);
    if (c || cpprof__cli_is_report(argv[1]))
        return cpprof__cli_of_process(argc - 1, argv + 1, cpprof__cli_report);
    /* "FILE -top", or only FILE, which starts the shell. */
    if (argv[1][0] == '-' || access(argv[1], F_OK) == 0 ||
        strpbrk(argv[1], "/:"))
        return cpprof__cli_of_process(argc, argv, cpprof__cli_flag_report);
    return cpprof__cli_fail("unknown command \"%s\"; see cpprof help", argv[1]);
}

int
main(int argc, char **argv)
{
    int status = run(argc, argv);

    if (status == CPPROF__EXIT_OK && (fflush(stdout) || ferror(stdout)))
        return cpprof__cli_fail("writing standard output: %s", strerror(errno));
    return status;
}
