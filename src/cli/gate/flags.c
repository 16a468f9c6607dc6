/* SPDX-License-Identifier: MIT */
/*
 * The command line of `cpprof gate`: its table of flags, and what they mean
 * together. The first "--" parts the sides; flags may stand anywhere before it.
 */
#include "cli/gate/gate.h"

#include "cli/commands.h"
#include "cli/messages.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOT_GIVEN INT_MIN

#define STRING(word, member, value, can_be, help)                              \
    CPPROF__FLAG(STRING, word, struct cpprof__gate_flags, member, value,       \
                 can_be, help)
#define OF(kind, word, member, value, can_be, help)                            \
    CPPROF__FLAG(kind, word, struct cpprof__gate_flags, member, value, can_be, \
                 help)
/* Of reports, with the same meaning: `cpprof help -NAME` tells more. */
#define FILTER(word, member, help)                                             \
    STRING(word, report.options.member, "=RE", NULL, help)

const struct cpprof__flag cpprof__gate_flag_table[] = {
    STRING("fail-over", fail_over_text, "=5%", NULL,
           "how much the whole or a function may grow: it fails\n"
           "when it surely grew, and may have grown by that much"),
    STRING("of", of, "=cum|flat", "cum flat",
           "functions with all that they call, or by themselves"),
    STRING("by", by_text, "=function|label|package", "function label package",
           "what is judged; label:KEY is one label, also of numbers"),
    STRING("per", per, "=WORK", "run seconds total",
           "the work that values are divided by: run (default),\n"
           "seconds of the profile, total (shares), or a sample type,\n"
           "a label with a number, a comment NAME=NUMBER: requests"),
    STRING("confidence", confidence_text, "=99%", NULL,
           "how many of a hundred gates without a change must not\n"
           "fail"),
    STRING("smallest", smallest_text, "=1%", NULL,
           "the part of the whole that a function has to have to be\n"
           "judged"),
    STRING("sure", sure_text, "=10%", NULL,
           "to pass, of functions with that part it must be known\n"
           "that they did not grow by -fail-over"),
    STRING("json", json, "=FILE", ":files",
           "write the report for programs, too; - is standard output"),
    STRING("junit", junit, "=FILE", ":files", "the same as JUnit XML"),
    STRING("markdown", markdown, "=FILE", ":files",
           "the same as a comment for a pull request"),
    STRING("flamegraph", flamegraph, "=FILE", ":files",
           "a page with the difference of both sides as a flame graph"),
    OF(INT, "record", n_record, "=N", NULL,
       "record both commands N times in turn, and judge that"),
    STRING("base", base_command, "=CMD", NULL, "what is run for base"),
    STRING("head", head_command, "=CMD", NULL, "what is run for head"),
    OF(BOOL, "one-core", one_core, "", NULL,
       "run both on one core, always the same"),
    STRING("F", rate, " HZ", NULL, "samples a second of -record (1000)"),
    STRING("e", engine, " ENGINE", "auto perf timer",
           "what samples, as in cpprof record"),
    STRING("against", against, "=FOLDER|URL", ":files",
           "compare with the last profiles of a folder; or with a\n"
           "query to Pyroscope, see docs/gate.md"),
    OF(INT, "last", last, "=N", NULL, "how many of them (20)"),
    STRING("sample_index", report.options.sample_index, "=N|NAME",
           "cpu samples inuse_space inuse_objects alloc_space alloc_objects "
           "contentions delay",
           "the sample type to compare"),
    FILTER("focus", focus, "only samples with a frame that matches"),
    FILTER("ignore", ignore, "no samples with a frame that matches"),
    FILTER("hide", hide, "leave out frames that match"),
    FILTER("show", show, "only frames that match"),
    FILTER("show_from", show_from,
           "leave out all above the highest frame that matches"),
    FILTER("prune_from", prune_from,
           "leave out the lowest frame that matches, and all below"),
    STRING("tagfocus", report.options.tagfocus, "=EXPR", NULL,
           "only samples with such labels"),
    STRING("tagignore", report.options.tagignore, "=EXPR", NULL,
           "no samples with such labels"),
    OF(BOOL, "all_frames", report.all_frames, "", NULL,
       "frames that the profiles say to drop, too"),
    STRING("symbolize", report.symbolize_text, "=HOW",
           "none local fastlocal remote force demangle=none demangle=full "
           "demangle=templates demangle=default",
           "where names come from"),
    OF(FILES, "binary", report.symbolize.binaries, "=FILE", ":files",
       "a binary to take names from"),
    OF(MAYBE, "debuginfod", report.symbolize.debuginfod, "[=URL]", NULL,
       "fetch debug information that is missing here"),
    OF(INT, "seconds", report.fetch.seconds, "=N", NULL,
       "how long a server is to measure"),
    OF(INT, "timeout", report.fetch.timeout, "=N", NULL,
       "how many seconds to wait for a server"),
    STRING("tls_ca", report.fetch.tls_ca, "=FILE", ":files",
           "authorities to trust"),
    STRING("tls_cert", report.fetch.tls_cert, "=FILE", ":files",
           "the client's certificate"),
    STRING("tls_key", report.fetch.tls_key, "=FILE", ":files", "its key"),
    {0},
};

/* "5%" or "5", as a part of 1 from `least` up to `most`. */
static bool
parse_percent(const char *text, const char *flag, double standard, double most,
              double *value)
{
    char *end;
    double x;

    *value = standard;
    if (!text)
        return true;
    x = strtod(text, &end);
    end += *end == '%';
    if (end != text && !*end && x >= 0 && x <= most * 100 && isfinite(x)) {
        *value = x / 100;
        return true;
    }
    cpprof__cli_fail("gate: -%s=%s is no percentage from 0%% to %g%%", flag,
                     text, most * 100);
    return false;
}

static bool
parse_numbers(struct cpprof__gate_flags *w)
{
    double confidence;

    if (!parse_percent(w->fail_over_text, "fail-over", 0.05, 1000,
                       &w->fail_over) ||
        !parse_percent(w->confidence_text, "confidence", 0.99, 0.999999,
                       &confidence) ||
        !parse_percent(w->smallest_text, "smallest", 0.01, 1, &w->smallest) ||
        !parse_percent(w->sure_text, "sure", 0.1, 1, &w->sure))
        return false;
    w->alpha = 1 - confidence;
    if (confidence >= 0.5)
        return true;
    cpprof__cli_fail("gate: -confidence=%s is below 50%%", w->confidence_text);
    return false;
}

static bool
parse_choices(struct cpprof__gate_flags *w)
{
    const char *of = w->of ? w->of : "cum", *by = w->by_text;

    w->flat = strcmp(of, "flat") == 0;
    if (!w->flat && strcmp(of, "cum") != 0)
        cpprof__cli_fail("gate: -of=%s is neither cum nor flat", of);
    else if (!by || strcmp(by, "function") == 0)
        return true;
    else if (strcmp(by, "package") == 0)
        return w->by = CPPROF__GATE_PACKAGE, true;
    else if (strcmp(by, "label") == 0 || strncmp(by, "label:", 6) == 0) {
        w->by = CPPROF__GATE_LABEL;
        w->label_key = by[5] && by[6] ? by + 6 : NULL;
        w->flat = false;
        return true;
    } else
        cpprof__cli_fail("gate: -by=%s is none of function, label, label:KEY "
                         "and package",
                         by);
    return false;
}

/* Standard output is for one report. */
static bool
check_reports(const struct cpprof__gate_flags *w)
{
    const char *const files[] = {w->json, w->junit, w->markdown, w->flamegraph};
    int n = 0;
    size_t i;

    for (i = 0; i < sizeof files / sizeof *files; i++)
        n += files[i] && strcmp(files[i], "-") == 0;
    if (n > 1)
        cpprof__cli_fail("gate: %d reports are to be standard output, which "
                         "has room for one",
                         n);
    return n < 2;
}

/* Flags of what is not done. */
static bool
check_modes(struct cpprof__gate_flags *w, bool records)
{
    const char *of_record = w->rate       ? "-F"
                            : w->engine   ? "-e"
                            : w->one_core ? "-one-core"
                                          : NULL;

    if (of_record && !records) {
        cpprof__cli_fail("gate: %s is for -record, and nothing is recorded",
                         of_record);
        return false;
    }
    if (w->last != NOT_GIVEN && !w->against) {
        cpprof__cli_fail(
            "gate: -last is for -against, and there is no history");
        return false;
    }
    if (w->last == NOT_GIVEN)
        w->last = 20;
    return true;
}

/* Who the sides are; false after printing that it is not told. */
static bool
check_sides(struct cpprof__gate_flags *w, bool has_dashes)
{
    bool records = w->n_record || w->base_command || w->head_command;

    if (records && (!w->base_command || !w->head_command || w->n_record < 1))
        cpprof__cli_fail("gate: recording takes -record=N, -base=CMD and "
                         "-head=CMD");
    else if (records && (w->n_base || w->n_head || w->against))
        cpprof__cli_fail("gate: -record makes both sides, so there can be no "
                         "others");
    else if (w->against && has_dashes)
        cpprof__cli_fail("gate: -against is the base, so all files are of "
                         "head and there is no --");
    else if (w->against && !w->n_head)
        cpprof__cli_fail("gate: no file of head given");
    else if (!records && !w->against && (!w->n_base || !w->n_head))
        cpprof__cli_fail("gate: give the files of base, then --, then those of "
                         "head; see cpprof gate -help");
    else if (w->last != NOT_GIVEN && w->last < 1)
        cpprof__cli_fail("gate: -last=%d is no number of profiles", w->last);
    else
        return check_modes(w, records);
    return false;
}

bool
cpprof__gate_parse(int argc, char **argv, struct cpprof__gate_flags *w)
{
    struct pprof_report_options defaults = PPROF_REPORT_DEFAULTS;
    struct cpprof__flags flags = {.table = cpprof__gate_flag_table, .into = w};
    int dashes = 1, n_words, i;

    memset(w, 0, sizeof *w);
    w->report.options = defaults;
    w->report.symbolize.debuginfod = cpprof__debuginfod_default;
    w->report.keeps_no_copy = true;
    w->last = NOT_GIVEN;
    while (dashes < argc && strcmp(argv[dashes], "--") != 0)
        dashes++;
    if (!cpprof__cli_flags_among_words(dashes, argv, &flags, &n_words))
        return false;
    w->help = flags.help;
    if (w->help)
        return true;
    w->base = argv + 1;
    w->n_base = n_words;
    w->head = argv + dashes + 1;
    w->n_head = dashes < argc ? argc - dashes - 1 : 0;
    for (i = 0; i < w->n_head; i++)
        if (w->head[i][0] == '-' && w->head[i][1]) {
            cpprof__cli_fail("gate: %s behind --: flags stand before it",
                             w->head[i]);
            return false;
        }
    if (w->against && dashes == argc) {
        w->head = w->base;
        w->n_head = w->n_base;
        w->n_base = 0;
    }
    if (w->per && (!*w->per || strcmp(w->per, "run") == 0))
        w->per = NULL;
    if (!parse_numbers(w) || !parse_choices(w) || !check_reports(w) ||
        !check_sides(w, dashes < argc))
        return false;
    cpprof__parse_symbolize(&w->report.symbolize, w->report.symbolize_text);
    return w->report.symbolize.none ||
           cpprof__debuginfod_begin(w->report.symbolize.debuginfod);
}

void
cpprof__gate_flags_free(struct cpprof__gate_flags *w)
{
    free(w->report.symbolize.binaries.at);
}
