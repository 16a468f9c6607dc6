/* SPDX-License-Identifier: MIT */
/*
 * `cpprof convert`: writes any profile that can be read in another format. The
 * format to read is found by the bytes, the format to write by -to or the
 * ending of -o. A report shows what it can; a conversion fails if a file cannot
 * be read.
 */
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/messages.h"
#include "cli/output_file.h"
#include "cli/resource.h"

#include <cpprof/pprof/change.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct words {
    const char *to, *output, *sample_index; /* NULL: not given */
    enum pprof_format format;
    char **sources;
    int n_sources;
};

/* Names of formats, the first one of each in the help; and endings of files,
 * longer ones first. */
static const struct {
    const char *name;
    enum pprof_format format;
} names[] =
    {
        {"pprof", PPROF_FORMAT_GZIP},
        {"collapsed", PPROF_FORMAT_COLLAPSED},
        {"folded", PPROF_FORMAT_COLLAPSED},
        {"perf-script", PPROF_FORMAT_PERF_SCRIPT},
        {"otlp", PPROF_FORMAT_OTLP},
        {"text", PPROF_FORMAT_TEXT},
},
  endings[] = {
      {".gz", PPROF_FORMAT_GZIP},
      {".pb", PPROF_FORMAT_PLAIN},
      {".pprof", PPROF_FORMAT_GZIP},
      {".prof", PPROF_FORMAT_GZIP},
      {".collapsed", PPROF_FORMAT_COLLAPSED},
      {".folded", PPROF_FORMAT_COLLAPSED},
      {".perf", PPROF_FORMAT_PERF_SCRIPT},
      {".otlp", PPROF_FORMAT_OTLP},
      {".txt", PPROF_FORMAT_TEXT},
};
#define N_NAMES   (sizeof names / sizeof names[0])
#define N_ENDINGS (sizeof endings / sizeof endings[0])

#define FLAG(word, member, value, can_be, help)                                \
    CPPROF__FLAG(STRING, word, struct words, member, value, can_be, help)

const struct cpprof__flag cpprof__convert_flag_table[] = {
    FLAG("to", to, "=FORMAT", "pprof collapsed perf-script otlp text",
         "pprof: profile.proto, compressed; not if -o ends in .pb\n"
         "collapsed: a line per stack, as flame graphs are made\n"
         "of; also: folded\n"
         "perf-script: as `perf script` prints it\n"
         "otlp: as OpenTelemetry's collector takes it\n"
         "text: everything, to be read"),
    FLAG("o", output, " FILE", ":files",
         "write there instead of standard output; the ending\n"
         "chooses the format: .pb.gz, .pb, .pprof, .prof,\n"
         ".collapsed, .folded, .perf, .otlp, .txt"),
    FLAG("output", output, "=FILE", ":files", "the same"),
    FLAG("sample_index", sample_index, "=N|NAME",
         "cpu samples inuse_space inuse_objects alloc_space alloc_objects "
         "contentions delay",
         "the values of collapsed and perf-script"),
    {0},
};

/* ------------------------------------------------------------- words ---- */

static bool
ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);

    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

static bool
to_stdout(const struct words *w)
{
    return !w->output || strcmp(w->output, "-") == 0;
}

static bool
has_one_type(const struct words *w)
{
    return w->format == PPROF_FORMAT_COLLAPSED ||
           w->format == PPROF_FORMAT_PERF_SCRIPT;
}

/* The format of -to, or of the ending of -o. */
static bool
choose_format(struct words *w)
{
    bool terminal = to_stdout(w) && isatty(STDOUT_FILENO);
    size_t i = 0;

    if (w->to) {
        while (i < N_NAMES && strcmp(w->to, names[i].name) != 0)
            i++;
        if (i == N_NAMES) {
            cpprof__cli_fail("convert: no such format: -to=%s; it is pprof, "
                             "collapsed, perf-script, otlp or text",
                             w->to);
            return false;
        }
        w->format = names[i].format;
        if (w->format == PPROF_FORMAT_GZIP && !to_stdout(w) &&
            ends_in(w->output, ".pb"))
            w->format = PPROF_FORMAT_PLAIN;
    } else if (!to_stdout(w)) {
        while (i < N_ENDINGS && !ends_in(w->output, endings[i].name))
            i++;
        if (i == N_ENDINGS) {
            cpprof__cli_fail("convert: %s: the ending tells no format; say "
                             "-to=...",
                             w->output);
            return false;
        }
        w->format = endings[i].format;
    } else {
        w->format = terminal ? PPROF_FORMAT_COLLAPSED : PPROF_FORMAT_GZIP;
    }
    if (terminal &&
        (w->format <= PPROF_FORMAT_PLAIN || w->format == PPROF_FORMAT_OTLP))
        cpprof__cli_fail("convert: %s is not for terminals; say -o FILE or "
                         "-to=collapsed",
                         w->format == PPROF_FORMAT_OTLP ? "otlp" : "pprof");
    else if (w->sample_index && !has_one_type(w))
        cpprof__cli_fail("convert: -sample_index is for collapsed and "
                         "perf-script, the others have all sample types");
    else
        return true;
    return false;
}

static bool
choose_sources(struct words *w, int argc, char **argv)
{
    static char *standard_input[] = {"-", NULL};
    int i;

    w->sources = argc ? argv : standard_input;
    w->n_sources = argc ? argc : 1;
    if (!argc && isatty(STDIN_FILENO)) {
        cpprof__cli_fail("convert: no file given; see cpprof convert -help");
        return false;
    }
    for (i = 0; i < argc; i++)
        if (argv[i][0] == '-' && argv[i][1]) {
            cpprof__cli_fail("convert: flags come before files: %s; a file of "
                             "that name is ./%s",
                             argv[i], argv[i]);
            return false;
        }
    return true;
}

/* ------------------------------------------------------------ reading ---- */

static const char *
name_of(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static struct pprof_profile *
read_one(const char *path)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p = NULL;
    enum cpprof_status status;

    if (strcmp(path, "-") == 0)
        status = pprof_read_fd(STDIN_FILENO, NULL, &p, &error);
    else
        status = pprof_read_path(path, NULL, &p, &error);
    if (status == CPPROF_OK)
        return p;
    if (error.offset)
        cpprof__cli_fail("%s: %s at byte %llu", name_of(path), error.text,
                         (unsigned long long)error.offset);
    else
        cpprof__cli_fail("%s: %s", name_of(path), error.text);
    return NULL;
}

/* A single profile need not be merged for a report. But a profile in pprof's
 * format or OTLP has each stack once, and a text may have it several times. */
static struct pprof_profile *
read_all(const struct words *w)
{
    struct cpprof_error error = {0};
    struct pprof_merger *merger = NULL;
    struct pprof_profile *p, *merged = NULL;
    enum cpprof_status status = CPPROF_OK;
    int i;

    if (w->n_sources == 1 && w->format > PPROF_FORMAT_PLAIN &&
        w->format != PPROF_FORMAT_OTLP)
        return read_one(w->sources[0]);
    if (pprof_merger_new(&merger, &error) != CPPROF_OK) {
        cpprof__cli_fail("%s", error.text);
        return NULL;
    }
    for (i = 0; i < w->n_sources && status == CPPROF_OK; i++) {
        p = read_one(w->sources[i]);
        if (!p)
            break;
        status = pprof_merger_add(merger, p, &error);
        pprof_free(p);
        if (status != CPPROF_OK)
            cpprof__cli_fail("%s: %s", name_of(w->sources[i]), error.text);
    }
    if (i == w->n_sources && status == CPPROF_OK &&
        pprof_merger_finish(merger, &merged, &error) != CPPROF_OK)
        cpprof__cli_fail("%s", error.text);
    pprof_merger_free(merger);
    return merged;
}

/* ------------------------------------------------------------ writing ---- */

static enum cpprof_status
write_profile(const struct pprof_profile *p, const struct words *w,
              struct cpprof_error *error)
{
    struct pprof_write_options options = {.size = sizeof options,
                                          .sample_index = SIZE_MAX};
    char *resource = cpprof__cli_resource();
    struct cpprof_writer writer;
    enum cpprof_status status = CPPROF_OK;

    options.resource = resource;
    if (has_one_type(w))
        status = pprof_find_sample_type(p, w->sample_index,
                                        &options.sample_index, error);
    if (status == CPPROF_OK && to_stdout(w))
        cpprof_writer_to_fd(STDOUT_FILENO, &writer);
    else if (status == CPPROF_OK)
        status = cpprof__output_file(w->output, &writer, error);
    if (status == CPPROF_OK)
        status = pprof_write(p, &writer, w->format, &options, error);
    free(resource);
    return status;
}

int
cpprof__cli_convert(int argc, char **argv)
{
    struct cpprof_error error = {0};
    struct words w = {0};
    struct cpprof__flags flags = {.table = cpprof__convert_flag_table,
                                  .into = &w};
    struct pprof_profile *p;
    int status = CPPROF__EXIT_OK, n_used;

    if (!cpprof__cli_flags(argc, argv, &flags, &n_used))
        return CPPROF__EXIT_ERROR;
    if (flags.help) {
        puts("usage: cpprof convert [flags] [FILE ...]\n"
             "\n"
             "FILE is a profile in pprof's format or an older one, the text "
             "of\n"
             "`perf script`, OTLP, or collapsed stacks; - or none is standard "
             "input.\n"
             "Several are added up.\n");
        cpprof__print_flags(cpprof__convert_flag_table, true);
        puts("\nWithout -to and -o it is pprof, or collapsed on a terminal.");
        return CPPROF__EXIT_OK;
    }
    if (!choose_format(&w) || !choose_sources(&w, argc - n_used, argv + n_used))
        return CPPROF__EXIT_ERROR;
    p = read_all(&w);
    if (!p)
        return CPPROF__EXIT_ERROR;
    if (write_profile(p, &w, &error) != CPPROF_OK)
        status = cpprof__cli_fail("convert: %s", error.text);
    pprof_free(p);
    return status;
}
