/* SPDX-License-Identifier: MIT */
/*
 * Reports on the command line: `cpprof -top [flags] FILE`, or `cpprof top`; and
 * `cpprof merge` and `cpprof symbolize`, which are -proto.
 * Prepares the profile as the reference does (internal/driver/fetch.go) and
 * writes the report.
 */
#include "cli/report/report.h"

#include "base/status.h"

#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/output_file.h"
#include "cli/terminal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum cpprof_status
prepare(struct pprof_profile *p, const struct cpprof__report_flags *w,
        struct cpprof_error *error)
{
    enum cpprof_status status =
        cpprof__symbolize(p, &w->symbolize, w->origins, error);

    if (status != CPPROF_OK)
        return status;
    /* As in the reference, nothing is dropped if a profile's drop_frames is no
     * valid expression. */
    if (!w->all_frames && pprof_drop_frames(p, error) != CPPROF_OK)
        cpprof__cli_warn("%s", error->text);
    if (w->symbolize.lines) /* what nothing refers to is not written */
        status = pprof_compact(p, error);
    if (status == CPPROF_OK)
        status = cpprof__origins_forget(w->origins, p, error);
    if (status == CPPROF_OK && w->add_comment && *w->add_comment)
        status = pprof_add_comment(p, w->add_comment, error);
    if (status == CPPROF_OK && !w->keeps_no_copy)
        cpprof__origins_save(w->origins, p);
    return status;
}

/* ------------------------------------------------------------ output ---- */

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

static enum cpprof_status
write_report(struct pprof_profile *p, struct cpprof__report_flags *w,
             struct cpprof_error *error)
{
    const char *path = w->output && *w->output ? w->output : NULL;
    const char *ending = file_ending(w);
    char numbered[PATH_MAX] = "", end[32];
    struct cpprof_writer writer;
    enum cpprof_status status = CPPROF_OK;
    int fd;

    /* Bytes do not go to a terminal, but into profile001.pb.gz. */
    if (!path && ending && (w->interactive || isatty(STDOUT_FILENO))) {
        snprintf(end, sizeof end, ".%s", ending);
        fd = cpprof__numbered_file(numbered, "profile", end);
        if (fd < 0)
            return cpprof__fail(error, CPPROF_SYSTEM, errno, "%s: %s", numbered,
                                strerror(errno));
        close(fd);
        path = numbered;
    }
    if (path) {
        status = cpprof__output_file(path, &writer, error);
        cpprof__progress_hide();
        if (status == CPPROF_OK && !w->viewer) /* which tells where it is */
            fprintf(stderr, "Generating report in %s\n", path);
    } else {
        writer = cpprof__terminal_writer(w->format);
    }
    if (status == CPPROF_OK && w->picture)
        status = cpprof__draw(p, &w->options, w->picture, writer, error);
    else if (status == CPPROF_OK)
        status = pprof_report_write(p, &writer, w->format, &w->options, error);
    if (status != CPPROF_OK && *numbered)
        unlink(numbered);
    return status;
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
        return cpprof__view(w->viewer, path, !w->interactive, error);
    unlink(path);
    return status;
}

int
cpprof__print_report(struct pprof_profile *p, struct cpprof__report_flags *w)
{
    struct cpprof_error error = {0};
    struct pprof_profile *difference = NULL;
    bool has_file = w->output && *w->output;
    enum cpprof_status status = CPPROF_OK;

    cpprof__progress("making the report");
    /* A page of source and instructions is shown in a browser, unless it is
     * written somewhere else. */
    if (w->format == PPROF_REPORT_WEBLIST && !has_file &&
        (w->interactive || isatty(STDOUT_FILENO)))
        w->viewer = "web";
    w->options.warn = cpprof__cli_warn_once;
    if (w->tagbase && *w->tagbase)
        status = cpprof__compare_labels(p, w, &difference, &error);
    p = difference ? difference : p;
    if (status == CPPROF_OK)
        status =
            w->viewer ? view_report(p, w, &error) : write_report(p, w, &error);
    pprof_free(difference);
    cpprof__progress_end();
    if (status == CPPROF_OK)
        return CPPROF__EXIT_OK;
    if (status == CPPROF_SYSTEM && has_file &&
        strncmp(error.text, "writing", strlen("writing")) == 0)
        return cpprof__cli_fail("%s: %s", w->output, error.text);
    return cpprof__cli_fail("%s", error.text);
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

struct pprof_profile *
cpprof__read_prepared(void *flags)
{
    struct cpprof__report_flags *w = flags;
    struct cpprof_error error = {0};
    struct pprof_profile *p = cpprof__read_sources(w);

    if (!p)
        return NULL;
    cpprof__progress("looking for symbols");
    if (prepare(p, w, &error) == CPPROF_OK &&
        cpprof__tell_sum(p, w, &error) == CPPROF_OK)
        return p;
    cpprof__cli_fail("%s", error.text);
    pprof_free(p);
    return NULL;
}

/* The same of a source that is made anew: what is read changes the flags. */
static struct pprof_profile *
read_anew(void *flags)
{
    struct cpprof__report_flags now = *(struct cpprof__report_flags *)flags;

    return cpprof__read_prepared(&now);
}

/* The hint is of the whole profile, which the filters of the report change. */
static int
print_with_hint(struct pprof_profile *p, struct cpprof__report_flags *w)
{
    char hint[512] = "";
    int status;

    if (w->tell_sum && !w->bases.n)
        cpprof__hint(p, w->options.sample_index, hint, sizeof hint);
    status = cpprof__print_report(p, w);
    if (status == CPPROF__EXIT_OK && *hint)
        cpprof__cli_warn("%s", hint);
    return status;
}

static int
read_and_report(struct cpprof__report_flags *w)
{
    struct cpprof__origins origins = {0};
    struct pprof_profile *p;
    int status = CPPROF__EXIT_ERROR;

    w->origins = &origins;
    if (w->http && *w->http)
        return cpprof__web(w, cpprof__live ? read_anew : cpprof__read_prepared,
                           w);
    p = cpprof__read_prepared(w);
    cpprof__viewer_begin();
    if (p) {
        if (!w->interactive)
            status = print_with_hint(p, w);
        else if (free_stdin(w))
            status = cpprof__shell(p, w);
        else
            cpprof__cli_fail("no output format given, such as -top, and no "
                             "terminal to read commands from");
    }
    cpprof__viewer_end();
    cpprof__progress_end();
    pprof_free(p);
    cpprof__origins_free(&origins);
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
        status = read_and_report(&flags);
    free(flags.bases.at);
    free(flags.symbolize.binaries.at);
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
