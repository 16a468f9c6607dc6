/* SPDX-License-Identifier: MIT */
/*
 * Reports on the command line: `cpprof -top [flags] FILE`, or `cpprof top`; and
 * `cpprof merge`, which is -proto of several files.
 * Prepares the profile as the reference does (internal/driver/fetch.go) and
 * writes the report.
 */
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/output_file.h"
#include "cli/report/graphviz.h"
#include "cli/report/report_flags.h"
#include "cli/report/source_list.h"
#include "cli/report/viewer.h"
#include "cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A warning is printed once, even if it is true of many functions in a row. */
static void
warn(void *ctx, const char *line)
{
    static char last[256];

    (void)ctx;
    if (strncmp(line, last, sizeof last - 1) == 0)
        return;
    snprintf(last, sizeof last, "%s", line);
    cpprof__cli_warn("%s", line);
}

static enum cpprof_status
prepare(struct pprof_profile *p, const struct cpprof__report_flags *w,
        struct cpprof_error *error)
{
    const struct cpprof__remote remote = {cpprof__origins_symbolize,
                                          w->origins};
    enum cpprof_status status =
        cpprof__symbolize(p, &w->symbolize, &remote, error);

    if (status != CPPROF_OK)
        return status;
    /* As in the reference, nothing is dropped if a profile's drop_frames is no
     * valid expression. */
    if (!w->all_frames && pprof_drop_frames(p, error) != CPPROF_OK)
        cpprof__cli_warn("%s", error->text);
    status = cpprof__origins_forget(w->origins, p, error);
    if (status == CPPROF_OK && w->add_comment && *w->add_comment)
        status = pprof_add_comment(p, w->add_comment, error);
    if (status == CPPROF_OK)
        cpprof__origins_save(w->origins, p);
    return status;
}

/* ------------------------------------------------------------ output ---- */

/* Where a report goes. */
struct output {
    const char *path; /* NULL: standard output */
    bool made;        /* the file was made here, to have its name */
    char numbered[sizeof "profile0000.callgraph.out"];
};

/* The ending of files of a format that is not readable text; NULL: it is. */
static const char *
file_ending(const struct cpprof__report_flags *w)
{
    enum pprof_report_format format = w->format;

    if (w->picture)
        return w->picture;
    if (format == PPROF_REPORT_FLAMEGRAPH || format == PPROF_REPORT_WEBLIST)
        return "html";
    if (format == PPROF_REPORT_PROTO || format == PPROF_REPORT_TOPPROTO)
        return "pb.gz";
    return format == PPROF_REPORT_CALLGRIND ? "callgraph.out" : NULL;
}

/* The first name of profile001.pb.gz, ... that is free; makes the file. */
static enum cpprof_status
make_numbered(struct output *output, const char *ending,
              struct cpprof_error *error)
{
    int i, fd;

    for (i = 1; i < 10000; i++) {
        snprintf(output->numbered, sizeof output->numbered, "profile%03d.%s", i,
                 ending);
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

static enum cpprof_status
open_output(struct output *output, const struct cpprof__report_flags *w,
            struct cpprof_writer *writer, struct cpprof_error *error)
{
    const char *ending = file_ending(w);
    enum cpprof_status status = CPPROF_OK;

    if (w->output && *w->output)
        output->path = w->output;
    else if (ending && (w->interactive || isatty(STDOUT_FILENO)))
        status = make_numbered(output, ending, error);
    if (status != CPPROF_OK)
        return status;
    if (!output->path) {
        *writer = cpprof__terminal_writer(w->format);
        return CPPROF_OK;
    }
    status = cpprof__output_file(output->path, writer, error);
    cpprof__progress_hide();
    if (status == CPPROF_OK && !w->viewer) /* the viewer tells where it is */
        fprintf(stderr, "Generating report in %s\n", output->path);
    return status;
}

static enum cpprof_status
write_report(struct pprof_profile *p, struct cpprof__report_flags *w,
             struct cpprof_error *error)
{
    struct output output = {NULL, false, ""};
    struct cpprof_writer writer;
    enum cpprof_status status = open_output(&output, w, &writer, error);

    w->options.warn = warn;
    if (status == CPPROF_OK && w->picture)
        status = cpprof__draw(p, &w->options, w->picture, writer, error);
    else if (status == CPPROF_OK)
        status = pprof_report_write(p, &writer, w->format, &w->options, error);
    if (status != CPPROF_OK && output.made)
        unlink(output.path);
    return status;
}

/* A page of source and instructions is shown in a browser, unless it is written
 * somewhere else. */
static void
choose_viewer(struct cpprof__report_flags *w)
{
    if (w->format == PPROF_REPORT_WEBLIST && !(w->output && *w->output) &&
        (w->interactive || isatty(STDOUT_FILENO)))
        w->viewer = "web";
}

/* Write a report into a file for a viewer, and start that. */
static enum cpprof_status
view_report(struct pprof_profile *p, struct cpprof__report_flags *w,
            struct cpprof_error *error)
{
    struct cpprof__report_flags to_file = *w;
    char path[PATH_MAX];
    const char *ending = file_ending(w);
    enum cpprof_status status;

    if (w->format == PPROF_REPORT_CALLGRIND)
        ending = "grind";
    status = cpprof__viewer_file(ending, path, error);
    if (status != CPPROF_OK)
        return status;
    to_file.output = path;
    status = write_report(p, &to_file, error);
    cpprof__progress_end();
    if (status == CPPROF_OK)
        return cpprof__view(w->viewer, path,
                            w->interactive ? CPPROF__VIEW_A_MOMENT
                                           : CPPROF__VIEW_TO_THE_END,
                            error);
    unlink(path);
    return status;
}

/* Print what went wrong, and where the report was to be written. */
static int
fail(const struct cpprof__report_flags *w, enum cpprof_status status,
     const struct cpprof_error *error)
{
    if (status == CPPROF_SYSTEM && w->output && *w->output &&
        strncmp(error->text, "writing", strlen("writing")) == 0)
        return cpprof__cli_fail("%s: %s", w->output, error->text);
    return cpprof__cli_fail("%s", error->text);
}

int
cpprof__print_report(struct pprof_profile *p, struct cpprof__report_flags *w)
{
    struct cpprof_error error = {0};
    enum cpprof_status status;

    cpprof__progress("making the report");
    choose_viewer(w);
    status = w->viewer ? view_report(p, w, &error) : write_report(p, w, &error);
    cpprof__progress_end();
    return status == CPPROF_OK ? CPPROF__EXIT_OK : fail(w, status, &error);
}

/* ---------------------------------------------------------- commands ---- */

/* If the profile came from standard input, commands come from the terminal. */
static bool
free_stdin(const struct cpprof__report_flags *w)
{
    int i;

    for (i = 0; i < w->n_sources; i++)
        if (strcmp(w->sources[i], "-") == 0)
            return freopen("/dev/tty", "re", stdin) != NULL;
    return true;
}

static int
report_on(struct pprof_profile *p, struct cpprof__report_flags *w)
{
    struct cpprof_error error = {0};

    cpprof__progress("looking for symbols");
    if (prepare(p, w, &error) != CPPROF_OK)
        return cpprof__cli_fail("%s", error.text);
    if (!w->interactive)
        return cpprof__print_report(p, w);
    if (!free_stdin(w))
        return cpprof__cli_fail("no output format given, such as -top, and "
                                "no terminal to read commands from");
    return cpprof__shell(p, w);
}

static int
read_and_report(struct cpprof__report_flags *w)
{
    struct cpprof__origins origins = {0};
    struct pprof_profile *p;
    int status = CPPROF__EXIT_ERROR;

    w->origins = &origins;
    p = cpprof__read_sources(w);
    cpprof__viewer_begin();
    if (p)
        status = report_on(p, w);
    cpprof__viewer_end();
    cpprof__progress_end();
    pprof_free(p);
    cpprof__origins_free(&origins);
    return status;
}

/* The same, with folders replaced by their files. */
static int
expand_and_report(struct cpprof__report_flags *w)
{
    struct cpprof__source_list sources, bases;
    int status = CPPROF__EXIT_ERROR;

    if (!cpprof__source_list_make(w->sources, w->n_sources, &sources))
        return status;
    if (cpprof__source_list_make(w->bases.at, w->bases.n, &bases)) {
        struct cpprof__report_flags expanded = *w;

        expanded.sources = sources.at;
        expanded.n_sources = sources.n;
        expanded.bases = (struct cpprof__flag_list){bases.at, bases.n};
        status = read_and_report(&expanded);
        cpprof__source_list_free(&bases);
    }
    cpprof__source_list_free(&sources);
    return status;
}

static int
report(int argc, char **argv, const char *command)
{
    struct cpprof__report_flags flags;
    int status = CPPROF__EXIT_OK;

    if (!cpprof__report_flags(argc, argv, command, &flags))
        return CPPROF__EXIT_ERROR;
    if (flags.help)
        cpprof__cli_report_help();
    else
        status = expand_and_report(&flags);
    free(flags.bases.at);
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
