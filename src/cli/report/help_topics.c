/* SPDX-License-Identifier: MIT */
/* `cpprof help TOPIC`. The same texts are the help on reports, in one piece. */
#include "cli/report/help.h"

#include "cli/commands.h"
#include "cli/report/report_flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct topic {
    const char *name;
    const char *summary;
    const char *text;
} topics[] = {
    {"formats", "what can be printed",
     "FORMAT is one of\n"
     "\n"
     "  top, text             a line per function, the largest first\n"
     "  tree                  each function between its callers and callees\n"
     "  peek=REGEXP           the same of matching functions alone\n"
     "  list=REGEXP           the source of matching functions\n"
     "  disasm=REGEXP         the instructions of matching functions\n"
     "  weblist=REGEXP        source and instructions, as a page of HTML\n"
     "  traces                every sample, a line per frame\n"
     "  tags                  labels, and what their samples add up to\n"
     "  comments              the comments of the profile\n"
     "  flamegraph            a page of HTML to zoom and to search\n"
     "  collapsed             a line per stack\n"
     "  json                  stacks, for other programs\n"
     "  raw                   all that is left of the profile, as text\n"
     "  dot                   the graph of calls, for Graphviz\n"
     "  svg, png, gif, pdf, ps\n"
     "                        the same as a picture\n"
     "  web, evince, eog, gv  the same, shown by a browser or by that program\n"
     "  callgrind             the same for KCachegrind\n"
     "  kcachegrind           the same, shown by it\n"
     "  proto                 what the filters leave, as a profile\n"
     "  topproto              the table of top as a profile\n"
     "\n"
     "  -output=FILE          write there instead of standard output;\n"
     "                        profiles never go to a terminal, but into\n"
     "                        profile001.pb.gz\n"
     "\n"
     "Without a format the shell starts: cpprof help shell.\n"},
    {"sources", "where profiles come from",
     "  FILE                  a profile of any kind that pprof reads\n"
     "  URL                   of a server that answers with one\n"
     "  FOLDER                every profile in it, but not in its folders\n"
     "  -                     standard input\n"
     "\n"
     "Several are added up. One that cannot be read is left out, with a\n"
     "warning, as long as there are others. The first of several may be the\n"
     "program, or its build id. Flags may stand before and behind; files "
     "whose\n"
     "names begin with a dash come behind \"--\".\n"
     "\n"
     "  -seconds=N            how long a server is to measure\n"
     "  -timeout=N            how long to wait for it\n"
     "  -tls_ca=FILE, -tls_cert=FILE, -tls_key=FILE\n"
     "                        authorities to trust, and who asks, in PEM\n"
     "  -add_comment=TEXT     a line for the heading\n"},
    {"comparing", "two profiles",
     "  -base=FILE            subtract this profile\n"
     "  -diff_base=FILE       the same, with percentages of it\n"
     "  -normalize            scale to the total of the base first\n"
     "  -drop_negative        no negative values\n"},
    {"lines", "what a line of a report is",
     "  -functions (default), -filefunctions, -files, -lines, -addresses\n"
     "  -granularity=WORD     the same: functions, ...\n"
     "  -noinlines            leave out inlined functions\n"
     "  -showcolumns          line:column\n"
     "  -trim_path=DIR:...    cut these off source files\n"
     "  -source_path=DIR:...  where sources are looked for\n"
     "  -intel_syntax         of instructions\n"},
    {"values", "what is counted",
     "  -sample_index=N|NAME  the sample type; or -inuse_space,\n"
     "                        -inuse_objects, -alloc_space,\n"
     "                        -alloc_objects, -contentions, -total_delay,\n"
     "                        -mean_delay\n"
     "  -mean                 divide by the first sample type\n"
     "  -divide_by=X          divide by a number\n"
     "  -unit=UNIT            minimum (default), auto, s, ms, MB, ...\n"},
    {"size", "how much is shown, and in which order",
     "  -flat (default), -cum sort by own or by cumulative value\n"
     "  -sort=flat, -sort=cum the same\n"
     "  -nodecount=N          at most N lines\n"
     "  -nodefraction=X       nothing below X of the total (0.005)\n"
     "  -edgefraction=X       no calls below X of the total (0.001)\n"
     "  -trim=false           everything\n"
     "  -call_tree            a function once for each way to it\n"
     "  -compact_labels       a short heading\n"
     "  -relative_percentages percent of what the filters leave\n"},
    {"filters", "parts of a profile",
     "Regular expressions (RE2, found anywhere) over the names of functions,\n"
     "files and mappings:\n"
     "\n"
     "  -focus=RE             only samples with a matching frame\n"
     "  -ignore=RE            no samples with a matching frame\n"
     "  -hide=RE, -show=RE    no, or only, matching frames\n"
     "  -show_from=RE         nothing above the highest matching frame\n"
     "  -prune_from=RE        nothing below the lowest matching frame\n"
     "  -tagfocus=EXPR, -tagignore=EXPR\n"
     "                        by label: RE, KEY=RE, 16kb:4mb\n"
     "  -tagshow=RE, -taghide=RE\n"
     "                        only, or no, labels of these keys\n"
     "  -tagroot=KEYS, -tagleaf=KEYS\n"
     "                        labels as frames\n"
     "  -all_frames           also those the profile says to drop\n"},
    {"names", "symbols, binaries and C++ names",
     "  -symbolize=HOW        none: as they are in the file; local,\n"
     "                        fastlocal (functions only), remote; force:\n"
     "                        also where there are some; demangle=none,\n"
     "                        full, templates or default: parts of C++\n"
     "                        names; several are joined by colons. Binaries\n"
     "                        are found by PPROF_BINARY_PATH, too.\n"
     "  -buildid=ID           of the program\n"
     "  -tools=PATH           where objdump and nm are\n"},
    {"shell", "commands instead of flags",
     "`cpprof FILE` reads a profile once and then commands from the terminal,\n"
     "or from standard input:\n"
     "\n"
     "  top 20 parse -idle -cum    20 lines; only samples with \"parse\", "
     "none\n"
     "                             with \"idle\"; sorted by cumulative value\n"
     "  top20                      the same number\n"
     "  tree >calls.txt            into a file\n"
     "  traces | less              to a program; the blank before | matters\n"
     "  focus=parse                an option, for all reports that follow\n"
     "  lines                      one of the choices of an option\n"
     "  :                          no focus, ignore, hide, tagfocus, "
     "tagignore\n"
     "  inuse_space, mean_delay    a sample type of the profile, or its mean\n"
     "  o, help, help top, quit\n"
     "\n"
     "Tab completes commands, options and functions; Ctrl-R searches what was\n"
     "typed before; Ctrl-C ends a report, or forgets the line.\n"},
    {"environment", "variables that matter",
     "  PPROF_BINARY_PATH     where binaries are looked for\n"
     "  PPROF_TOOLS           where objdump and nm are; as -tools\n"
     "  PPROF_TMPDIR          where fetched profiles are kept\n"
     "  NO_COLOR              if set, no colours on the terminal\n"
     "  XDG_STATE_HOME        the shell keeps its history in cpprof/history\n"
     "                        there, or in ~/.local/state\n"},
};
#define N_TOPICS (sizeof topics / sizeof topics[0])

/* --------------------------------------------------------- all flags ---- */

#define MAX_FLAGS 128

struct flag {
    const char *name;
    bool is_bool;
};

struct flags {
    struct flag at[MAX_FLAGS];
    size_t n;
};

static void
add_flag(void *ctx, const char *name, bool is_bool)
{
    struct flags *flags = ctx;

    if (flags->n < MAX_FLAGS)
        flags->at[flags->n++] = (struct flag){name, is_bool};
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct flag *)a)->name,
                  ((const struct flag *)b)->name);
}

void
cpprof__help_all_flags(void)
{
    struct flags flags = {.n = 0};
    size_t i;

    cpprof__report_each_flag(add_flag, &flags);
    qsort(flags.at, flags.n, sizeof flags.at[0], by_name);
    for (i = 0; i < flags.n; i++) {
        const char *text = cpprof__help_flag_text(flags.at[i].name);
        int n = printf("  -%s%s", flags.at[i].name,
                       flags.at[i].is_bool ? "" : "=...");

        printf("%*s %.*s\n", n < 25 ? 25 - n : 0, "", (int)strcspn(text, "\n"),
               text);
    }
}

/* ------------------------------------------------------------ topics ---- */

void
cpprof__cli_report_help(void)
{
    size_t i;

    puts("usage: cpprof -FORMAT [flags] [BINARY] SOURCE...\n"
         "       cpprof FORMAT [flags] [BINARY] SOURCE...\n"
         "       cpprof merge [-output=FILE] SOURCE...\n"
         "       cpprof [flags] [BINARY] SOURCE...");
    for (i = 0; i < N_TOPICS; i++)
        printf("\n%s: %s\n\n%s", topics[i].name, topics[i].summary,
               topics[i].text);
}

void
cpprof__help_topics(void)
{
    size_t i;

    puts("\nTopics for cpprof help:\n");
    for (i = 0; i < N_TOPICS; i++)
        printf("  %-12s %s\n", topics[i].name, topics[i].summary);
    puts("  flags        every flag of reports, in a line\n"
         "  report       all of these in one piece\n"
         "  -FLAG        a flag of reports by its name");
}

bool
cpprof__help_topic(const char *word)
{
    size_t i;

    if (strcmp(word, "flags") == 0) {
        cpprof__help_all_flags();
        return true;
    }
    for (i = 0; i < N_TOPICS; i++)
        if (strcmp(topics[i].name, word) == 0) {
            fputs(topics[i].text, stdout);
            return true;
        }
    return false;
}
