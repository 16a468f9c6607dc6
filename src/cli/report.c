/* SPDX-License-Identifier: MIT */
/*
 * Reports on the command line: `cpprof -top [flags] FILE`, or `cpprof top`; and
 * `cpprof merge`, which is -proto of several files.
 * Prepares the profile as the reference does (internal/driver/fetch.go) and
 * writes the report.
 */
#include "cli.h"
#include "report_words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void
cpprof__cli_report_help(void)
{
    puts("usage: cpprof -FORMAT [flags] [BINARY] FILE...\n"
         "       cpprof FORMAT [flags] [BINARY] FILE...\n"
         "       cpprof merge [-output=FILE] FILE...\n"
         "\n"
         "FILE is a profile of any kind that pprof reads; \"-\" is standard\n"
         "input. Several are added up. FORMAT is one of\n"
         "\n"
         "  top, text             a line per function, the largest first\n"
         "  peek=REGEXP           matching functions, their callers and "
         "callees\n"
         "  tags                  labels, and what their samples add up to\n"
         "  comments              the comments of the profile\n"
         "  list=REGEXP           the source of matching functions\n"
         "  disasm=REGEXP         the instructions of matching functions\n"
         "  raw                   all that is left of the profile, as text\n"
         "  proto                 the same as a profile\n"
         "  topproto              the table of top as a profile\n"
         "\n"
         "  -output=FILE          write there instead of standard output;\n"
         "                        profiles never go to a terminal, but into\n"
         "                        profile001.pb.gz\n"
         "\n"
         "Comparing:\n"
         "  -base=FILE            subtract this profile\n"
         "  -diff_base=FILE       the same, with percentages of it\n"
         "  -normalize            scale to the total of the base first\n"
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
         "  -symbolize=HOW        none: as they are in the file; local,\n"
         "                        fastlocal (functions only), remote; force:\n"
         "                        also where there are some; demangle=none,\n"
         "                        full, templates or default: parts of C++\n"
         "                        names; several are joined by colons. Binaries\n"
         "                        are found by PPROF_BINARY_PATH, too.\n"
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
    const struct cpprof__remote remote = {cpprof__origins_symbolize,
                                          w->origins};
    enum cpprof_status status =
        cpprof__symbolize(p, &w->symbolize, &remote, error);

    if (status != CPPROF_OK)
        return status;
    /* As the reference has it, a profile whose drop_frames are no expression
     * is shown whole. */
    if (!w->all_frames && cpprof_pprof_drop_frames(p, error) != CPPROF_OK)
        cpprof__cli_warn("%s", error->text);
    status = cpprof__origins_forget(w->origins, p, error);
    if (status == CPPROF_OK && w->add_comment && *w->add_comment)
        status = cpprof_pprof_add_comment(p, w->add_comment, error);
    if (status == CPPROF_OK)
        cpprof__origins_save(w->origins, p);
    return status;
}

/* ------------------------------------------------------------ output ---- */

/* Where a report goes. */
struct output {
    const char *path; /* NULL: standard output */
    bool made;        /* the file was made here, to have its name */
    char numbered[sizeof "profile0000.pb.gz"];
};

/* The first name of profile001.pb.gz, ... that is free; makes the file. */
static enum cpprof_status
make_numbered(struct output *output, struct cpprof_error *error)
{
    int i, fd;

    for (i = 1; i < 10000; i++) {
        snprintf(output->numbered, sizeof output->numbered, "profile%03d.pb.gz",
                 i);
        fd = open(output->numbered, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                  0666);
        if (fd >= 0) {
            close(fd);
            output->path = output->numbered;
            output->made = true;
            return CPPROF_OK;
        }
        if (errno != EEXIST)
            break;
    }
    error->status = CPPROF_SYSTEM;
    error->sys = errno;
    snprintf(error->text, sizeof error->text, "%s: %s", output->numbered,
             strerror(errno));
    return CPPROF_SYSTEM;
}

static bool
is_binary(enum cpprof_report_format format)
{
    return format == CPPROF_REPORT_PROTO || format == CPPROF_REPORT_TOPPROTO;
}

static enum cpprof_status
open_output(struct output *output, const struct cpprof__report_words *w,
            struct cpprof_writer *writer, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;

    if (w->output && *w->output)
        output->path = w->output;
    else if (is_binary(w->format) && isatty(STDOUT_FILENO))
        status = make_numbered(output, error);
    if (status != CPPROF_OK)
        return status;
    if (output->path) {
        fprintf(stderr, "Generating report in %s\n", output->path);
        return cpprof_path_writer(output->path, writer, error);
    }
    *writer = cpprof_fd_writer(STDOUT_FILENO);
    return CPPROF_OK;
}

static enum cpprof_status
write_report(struct cpprof_pprof *p, struct cpprof__report_words *w,
             struct cpprof_error *error)
{
    struct output output = {NULL, false, ""};
    struct cpprof_writer writer;
    enum cpprof_status status = open_output(&output, w, &writer, error);

    w->options.warn = warn;
    if (status == CPPROF_OK)
        status = cpprof_report_write(p, w->format, &w->options, writer, error);
    if (status != CPPROF_OK && output.made)
        unlink(output.path);
    return status;
}

/* ---------------------------------------------------------- commands ---- */

static int
report(int argc, char **argv, const char *command)
{
    struct cpprof_error error = {0};
    struct cpprof__report_words words;
    struct cpprof__origins origins = {0};
    struct cpprof_pprof *p;
    int status = CPPROF__EXIT_OK;

    if (!cpprof__report_words(argc, argv, command, &words))
        return CPPROF__EXIT_ERROR;
    if (words.help) {
        cpprof__cli_report_help();
        return CPPROF__EXIT_OK;
    }
    words.origins = &origins;
    p = cpprof__read_sources(&words);
    if (!p)
        status = CPPROF__EXIT_ERROR;
    else if (prepare(p, &words, &error) != CPPROF_OK ||
        write_report(p, &words, &error) != CPPROF_OK)
        status = cpprof__cli_fail("%s", error.text);
    cpprof_pprof_free(p);
    cpprof__origins_free(&origins);
    return status;
}

int
cpprof__cli_report(int argc, char **argv)
{
    return report(argc, argv, argv[0]);
}

int
cpprof__cli_flag_report(int argc, char **argv)
{
    return report(argc, argv, NULL);
}
