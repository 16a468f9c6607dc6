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
#include "cli/ndjson.h"
#include "cli/output_file.h"
#include "cli/resource.h"
#include "cli/terminal.h"

#include <cpprof/pprof/change.h>

#include <errno.h>
#include <fts.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct words {
    const char *to, *output, *sample_index, *labels; /* NULL: not given */
    bool keep_going;
    enum pprof_format format; /* or NDJSON */
    char **sources;
    int n_sources;
};

/* Lines, of one profile after another (ndjson.h). */
#define NDJSON ((enum pprof_format)(PPROF_FORMAT_OTLP + 1))

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
        {"ndjson", NDJSON},
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
      {".ndjson", NDJSON},
      {".jsonl", NDJSON},
      {".txt", PPROF_FORMAT_TEXT},
};
#define N_NAMES   (sizeof names / sizeof names[0])
#define N_ENDINGS (sizeof endings / sizeof endings[0])

#define FLAG(word, member, value, can_be, help)                                \
    CPPROF__FLAG(STRING, word, struct words, member, value, can_be, help)

const struct cpprof__flag cpprof__convert_flag_table[] = {
    FLAG("to", to, "=FORMAT", "pprof collapsed perf-script otlp ndjson text",
         "pprof: profile.proto, compressed; not if -o ends in .pb\n"
         "collapsed: a line per stack, as flame graphs are made\n"
         "of; also: folded\n"
         "perf-script: as `perf script` prints it\n"
         "otlp: as OpenTelemetry's collector takes it\n"
         "ndjson: a line of JSON for each sample and each stack\n"
         "text: everything, to be read"),
    FLAG("o", output, " FILE", ":files",
         "write there instead of standard output; the ending\n"
         "chooses the format: .pb.gz, .pb, .pprof, .prof,\n"
         ".collapsed, .folded, .perf, .otlp, .ndjson, .jsonl, .txt"),
    FLAG("output", output, "=FILE", ":files", "the same"),
    FLAG("sample_index", sample_index, "=N|NAME",
         "cpu samples inuse_space inuse_objects alloc_space alloc_objects "
         "contentions delay",
         "the values of collapsed and perf-script"),
    FLAG("labels", labels, "=KEY=VALUE,...", NULL,
         "for ndjson: labels of all samples that have none of\n"
         "their own"),
    CPPROF__FLAG(BOOL, "keep_going", struct words, keep_going, NULL, NULL,
                 "leave out files that cannot be read, and name them"),
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

/* Are they "KEY=VALUE,KEY=VALUE"? A value with a comma would be none. */
static bool
check_labels(const char *labels)
{
    const char *text = labels ? labels : "";
    size_t n, n_key;

    for (; *text; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        n_key = strcspn(text, "=,");
        if (n_key && n_key < n)
            continue;
        cpprof__cli_fail("convert: -labels=%s: \"%.*s\" is not KEY=VALUE",
                         labels, (int)n, text);
        return false;
    }
    return true;
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
                             "collapsed, perf-script, otlp, ndjson or text",
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
    else if (w->labels && w->format != NDJSON)
        cpprof__cli_fail("convert: -labels is for ndjson");
    else
        return check_labels(w->labels);
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

/* What is done with a profile; false: no more of them. Frees it. */
typedef bool
use_profile(void *ctx, struct pprof_profile *p, const char *path);

static bool
read_and_use(const struct words *w, const char *path, use_profile *use,
             void *ctx)
{
    struct pprof_profile *p = read_one(path);

    return p ? use(ctx, p, path) : w->keep_going;
}

static int
by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* The files of a folder and those below it; the hidden ones are nobody's. */
static bool
each_below(const struct words *w, char *path, use_profile *use, void *ctx)
{
    char *paths[] = {path, NULL};
    FTS *walk = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    bool goes_on = walk != NULL;
    FTSENT *at;

    while (goes_on && (at = fts_read(walk))) {
        if (at->fts_level && *at->fts_name == '.')
            fts_set(walk, at, FTS_SKIP);
        else if (at->fts_info == FTS_F)
            goes_on = read_and_use(w, at->fts_path, use, ctx);
        else if (at->fts_info == FTS_DNR || at->fts_info == FTS_ERR ||
                 at->fts_info == FTS_NS) {
            cpprof__cli_fail("%s: %s", at->fts_path, strerror(at->fts_errno));
            goes_on = w->keep_going;
        }
    }
    if (walk)
        fts_close(walk);
    else
        cpprof__cli_fail("%s: %s", path, strerror(errno));
    return goes_on;
}

static bool
is_folder(const char *path)
{
    struct stat st;

    return strcmp(path, "-") != 0 && stat(path, &st) == 0 &&
           S_ISDIR(st.st_mode);
}

static bool
each_profile(const struct words *w, use_profile *use, void *ctx)
{
    int i;

    for (i = 0; i < w->n_sources; i++)
        if (!(is_folder(w->sources[i])
                  ? each_below(w, w->sources[i], use, ctx)
                  : read_and_use(w, w->sources[i], use, ctx)))
            return false;
    return true;
}

static bool
add_to_merger(void *ctx, struct pprof_profile *p, const char *path)
{
    struct cpprof_error error = {0};
    enum cpprof_status status = pprof_merger_add(ctx, p, &error);

    pprof_free(p);
    if (status != CPPROF_OK)
        cpprof__cli_fail("%s: %s", name_of(path), error.text);
    return status == CPPROF_OK;
}

/* A single profile need not be merged for a report. But a profile in pprof's
 * format or OTLP has each stack once, and a text may have it several times. */
static struct pprof_profile *
read_all(const struct words *w)
{
    struct cpprof_error error = {0};
    struct pprof_merger *merger = NULL;
    struct pprof_profile *merged = NULL;

    if (w->n_sources == 1 && w->format > PPROF_FORMAT_PLAIN &&
        w->format != PPROF_FORMAT_OTLP && !is_folder(w->sources[0]))
        return read_one(w->sources[0]);
    if (pprof_merger_new(&merger, &error) != CPPROF_OK) {
        cpprof__cli_fail("%s", error.text);
        return NULL;
    }
    if (each_profile(w, add_to_merger, merger) &&
        pprof_merger_finish(merger, &merged, &error) != CPPROF_OK)
        cpprof__cli_fail("%s", error.text);
    pprof_merger_free(merger);
    return merged;
}

/* ------------------------------------------------------------ writing ---- */

static enum cpprof_status
open_output(const struct words *w, struct cpprof_writer *writer,
            struct cpprof_error *error)
{
    if (!to_stdout(w))
        return cpprof__output_file(w->output, writer, error);
    cpprof_writer_to_fd(STDOUT_FILENO, writer);
    *writer = cpprof__clean_writer(*writer, STDOUT_FILENO);
    return CPPROF_OK;
}

static enum cpprof_status
write_profile(const struct pprof_profile *p, const struct words *w,
              struct cpprof_error *error)
{
    struct pprof_write_options options = {.size = sizeof options,
                                          .sample_index = SIZE_MAX};
    char *resource =
        w->format == PPROF_FORMAT_OTLP ? cpprof__cli_resource() : NULL;
    struct cpprof_writer writer;
    enum cpprof_status status = CPPROF_OK;

    options.resource = resource;
    if (has_one_type(w))
        status = pprof_find_sample_type(p, w->sample_index,
                                        &options.sample_index, error);
    if (status == CPPROF_OK)
        status = open_output(w, &writer, error);
    if (status == CPPROF_OK)
        status = pprof_write(p, &writer, w->format, &options, error);
    free(resource);
    return status;
}

static bool
add_lines(void *ctx, struct pprof_profile *p, const char *path)
{
    struct cpprof_error error = {0};
    enum cpprof_status status = cpprof__ndjson_add(ctx, p, path, &error);

    pprof_free(p);
    if (status != CPPROF_OK)
        cpprof__cli_fail("convert: %s", error.text);
    return status == CPPROF_OK;
}

/* One profile after another, so that memory is that of the largest. */
static int
write_lines(const struct words *w)
{
    struct cpprof_error error = {0};
    struct cpprof_writer writer;
    struct cpprof__ndjson *lines;
    bool failed;

    if (open_output(w, &writer, &error) != CPPROF_OK)
        return cpprof__cli_fail("convert: %s", error.text);
    lines = cpprof__ndjson_make(&writer, w->labels);
    if (!lines)
        return cpprof__cli_fail("convert: out of memory");
    failed = !each_profile(w, add_lines, lines);
    if (cpprof__ndjson_end(lines, failed, &error) != CPPROF_OK && !failed)
        return cpprof__cli_fail("convert: %s", error.text);
    return failed ? CPPROF__EXIT_ERROR : CPPROF__EXIT_OK;
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
             "Several are added up; a folder is all files below it.\n");
        cpprof__print_flags(cpprof__convert_flag_table, true);
        puts("\nWithout -to and -o it is pprof, or collapsed on a terminal.");
        return CPPROF__EXIT_OK;
    }
    if (!choose_format(&w) || !choose_sources(&w, argc - n_used, argv + n_used))
        return CPPROF__EXIT_ERROR;
    if (w.format == NDJSON)
        return write_lines(&w);
    p = read_all(&w);
    if (!p)
        return CPPROF__EXIT_ERROR;
    if (write_profile(p, &w, &error) != CPPROF_OK)
        status = cpprof__cli_fail("convert: %s", error.text);
    pprof_free(p);
    return status;
}
