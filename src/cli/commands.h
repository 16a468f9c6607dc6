/* SPDX-License-Identifier: MIT */
/*
 * The commands, and where main.c leaves for the folders below this one. Each is
 * defined in its folder; the folders include this one, never the other way.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/flags.h"

#include <stdbool.h>

/*
 * Each gets the words from its own name on (argv[0]) and returns the exit
 * status of the program.
 */
int
cpprof__cli_record(int argc, char **argv);
int
cpprof__cli_leaks(int argc, char **argv);
int
cpprof__cli_doctor(int argc, char **argv);
int
cpprof__cli_threads(int argc, char **argv);
int
cpprof__cli_version(int argc, char **argv);
int
cpprof__cli_convert(int argc, char **argv);
int
cpprof__cli_push(int argc, char **argv);
int
cpprof__cli_pgo(int argc, char **argv);
int
cpprof__cli_gate(int argc, char **argv);
/* A report whose format is argv[0], "top"; or "merge". */
int
cpprof__cli_report(int argc, char **argv);
/* A report whose format is among the flags; argv[0] is the program. */
int
cpprof__cli_flag_report(int argc, char **argv);

/* A report, with the profile of a process in the place of -p PID. */
int
cpprof__cli_of_process(int argc, char **argv,
                       int (*run)(int argc, char **argv));

/* Their flags. */
extern const struct cpprof__flag cpprof__record_flag_table[];
extern const struct cpprof__flag cpprof__leaks_flag_table[];
extern const struct cpprof__flag cpprof__threads_flag_table[];
extern const struct cpprof__flag cpprof__version_flag_table[];
extern const struct cpprof__flag cpprof__convert_flag_table[];
extern const struct cpprof__flag cpprof__push_flag_table[];
extern const struct cpprof__flag cpprof__pgo_flag_table[];
extern const struct cpprof__flag cpprof__gate_flag_table[];
extern const struct cpprof__flag cpprof__report_flag_table[];

/* A word that the program can begin with. */
struct cpprof__command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *use;
    const char *summary; /* NULL: another name of the row above, or not shown */
    const struct cpprof__flag *flags; /* its own flags, beside -help; or NULL */
};

/* All words except formats of reports; the last row has no name. */
extern const struct cpprof__command cpprof__commands[];

/* `cpprof complete WORD...`: what shells ask, completions.c. */
int
cpprof__cli_complete(int argc, char **argv);

/* Is it the name of a format of reports? */
bool
cpprof__cli_is_report(const char *word);

struct pprof_profile;
struct cpprof__report_flags;

/* Run the shell until `quit` or the end of its input. Returns the exit status
 * of the program. */
int
cpprof__shell(struct pprof_profile *profile,
              const struct cpprof__report_flags *flags);

/* A profile that can be made anew, of a process that runs. */
enum cpprof__live_result {
    CPPROF__LIVE_NEW,
    CPPROF__LIVE_NOTHING, /* it used no CPU time */
    CPPROF__LIVE_STOPPED, /* nor can it now, until it is continued */
    CPPROF__LIVE_OVER,    /* it cannot be made any more: that is printed */
};
struct cpprof__live {
    const char *words; /* what the command line calls it, "-p=PID" */
    /* Takes its time; one call at a time. */
    enum cpprof__live_result (*record)(void);
    /* End that call, from another thread, and let none begin. */
    void (*end)(void);
};

/* That of the source; NULL: it stays as it is. */
extern const struct cpprof__live *cpprof__live;

/* Serve the page of all reports until a signal comes. `read` gets the profile,
 * or prints why there is none; it is called on another thread. Returns the exit
 * status of the program. */
int
cpprof__web(const struct cpprof__report_flags *flags,
            struct pprof_profile *(*read)(void *ctx), void *ctx);

/* The text of `cpprof help report`. */
void
cpprof__cli_report_help(void);

/* Help on a topic, or on a flag of reports; false: it is none. */
bool
cpprof__help_topic(const char *word);
bool
cpprof__help_flag(const char *name);

/* A line for each topic. */
void
cpprof__help_topics(void);

#endif
