/* SPDX-License-Identifier: MIT */
/*
 * Reports on the command line: `cpprof -top [flags] FILE`, or `cpprof top`.
 * Prepares the profile as the reference does (internal/driver/fetch.go) and
 * writes the report.
 */
#include "cli.h"
#include "report_words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void
cpprof__cli_report_help(void)
{
    puts("usage: cpprof -top [flags] [BINARY] FILE\n"
         "       cpprof top [flags] [BINARY] FILE\n"
         "\n"
         "FILE is a profile in pprof's format, compressed or not.\n"
         "\n"
         "  -top, -text           a line per function, the largest first\n"
         "  -output=FILE          write there instead of standard output\n"
         "\n"
         "What a line is:\n"
         "  -functions (default), -filefunctions, -files, -lines, -addresses\n"
         "  -noinlines            leave out inlined functions\n"
         "  -showcolumns          line:column\n"
         "\n"
         "What is counted:\n"
         "  -sample_index=N|NAME  the sample type; or -inuse_space,\n"
         "                        -inuse_objects, -alloc_space,\n"
         "                        -alloc_objects, -contentions, -total_delay,\n"
         "                        -mean_delay\n"
         "  -mean                 divide by the first sample type\n"
         "  -divide_by=X          divide by a number\n"
         "  -unit=UNIT            minimum (default), auto, s, ms, MB, ...\n"
         "\n"
         "What is shown:\n"
         "  -flat (default), -cum sort by own or by cumulative value\n"
         "  -nodecount=N          at most N lines\n"
         "  -nodefraction=X       nothing below X of the total (0.005)\n"
         "  -trim=false           everything\n"
         "  -drop_negative        no negative values\n"
         "  -compact_labels       a short heading\n"
         "  -relative_percentages percent of what the filters leave\n"
         "  -trim_path=DIR:...    cut these off source files\n"
         "\n"
         "Filters, regular expressions:\n"
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
         "  -all_frames           also those the profile says to drop\n"
         "\n"
         "Names:\n"
         "  -symbolize=none       as they are in the file\n"
         "  -symbolize=demangle=none|full|templates|default\n"
         "  -buildid=ID           of the program\n"
         "  -add_comment=TEXT     a line for the heading");
}

static void
warn(void *ctx, const char *line)
{
    (void)ctx;
    cpprof__cli_warn("%s", line);
}

static enum cpprof_status
prepare(struct cpprof_pprof *p, const struct cpprof__report_words *w,
        struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;

    if (!w->symbolize.none)
        status = cpprof_pprof_demangle(p, w->symbolize.demangle,
                                       w->symbolize.flags, error);
    if (status != CPPROF_OK)
        return status;
    /* As the reference has it, a profile whose drop_frames are no expression
     * is shown whole. */
    if (!w->all_frames && cpprof_pprof_drop_frames(p, error) != CPPROF_OK)
        cpprof__cli_warn("%s", error->text);
    return w->add_comment && *w->add_comment
               ? cpprof_pprof_add_comment(p, w->add_comment, error)
               : CPPROF_OK;
}

/* Where the report goes. */
static enum cpprof_status
open_output(const char *path, struct cpprof_writer *writer,
            struct cpprof_error *error)
{
    if (path && *path) {
        fprintf(stderr, "Generating report in %s\n", path);
        return cpprof_path_writer(path, writer, error);
    }
    *writer = cpprof_fd_writer(STDOUT_FILENO);
    return CPPROF_OK;
}

static enum cpprof_status
write_report(struct cpprof_pprof *p, struct cpprof__report_words *w,
             struct cpprof_error *error)
{
    struct cpprof_writer writer;
    enum cpprof_status status = open_output(w->output, &writer, error);

    w->options.warn = warn;
    return status == CPPROF_OK ? cpprof_report_write(p, CPPROF_REPORT_TOP,
                                                     &w->options, writer, error)
                               : status;
}

int
cpprof__cli_report(int argc, char **argv)
{
    struct cpprof_error error = {0};
    struct cpprof__report_words words;
    struct cpprof_pprof *p;
    int status = CPPROF__EXIT_OK;

    if (!cpprof__report_words(argc, argv, argv[0][0] == 't', &words))
        return CPPROF__EXIT_ERROR;
    if (words.help) {
        cpprof__cli_report_help();
        return CPPROF__EXIT_OK;
    }
    p = cpprof__read_sources(&words);
    if (!p)
        return CPPROF__EXIT_ERROR;
    if (prepare(p, &words, &error) != CPPROF_OK ||
        write_report(p, &words, &error) != CPPROF_OK)
        status = cpprof__cli_fail("%s", error.text);
    cpprof_pprof_free(p);
    return status;
}
