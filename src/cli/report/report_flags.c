/* SPDX-License-Identifier: MIT */
/*
 * The command line of a report, into options. A flag that chooses one of
 * several is a bool here, as in `go tool pprof`: two of them are a
 * contradiction. Source: internal/driver/cli.go, config.go.
 */
#include "cli/report/report.h"

#include "cli/commands.h"
#include "cli/messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Was the flag given, as true or with a value? `given` has a place for each row
 * of the table. */
static bool
is_given(const bool *given, const struct cpprof__flag *flag)
{
    return given[flag - cpprof__report_flag_table];
}

static bool
is_set(const char *text)
{
    return text && *text;
}

/* ------------------------------------------------------------ format ---- */

const struct cpprof__flag *
cpprof__choose_format(struct cpprof__report_flags *w, const char *name)
{
    const struct cpprof__flag *flag = cpprof__report_flag(name);

    if (!flag || !flag->format)
        return NULL;
    w->format = flag->format->format;
    w->picture = flag->format->picture;
    w->viewer = flag->format->viewer;
    return flag;
}

bool
cpprof__cli_is_report(const char *word)
{
    const struct cpprof__flag *flag = cpprof__report_flag(word);

    return flag && flag->format;
}

/* The format that a command is called after, or the one among the flags. False
 * after printing what is wrong. */
static bool
choose_format(struct cpprof__report_flags *w, const bool *given,
              const char *command)
{
    const struct cpprof__flag *flag = cpprof__report_flag_table;
    int n = command != NULL;

    if (command && !cpprof__choose_format(w, command))
        w->format = PPROF_REPORT_PROTO; /* merge, symbolize */
    for (; flag->name; flag++) {
        if (!flag->format || !is_given(given, flag) ||
            (command && flag->kind == CPPROF__FLAG_GIVEN &&
             strcmp(flag->name, command) == 0))
            continue;
        cpprof__choose_format(w, flag->name);
        n++;
    }
    w->interactive = n == 0;
    if (n > 1)
        cpprof__cli_fail("must set at most one output format");
    else if (n && is_set(w->http))
        cpprof__cli_fail("-http is not compatible with an output format on "
                         "the command line");
    else if (w->no_browser && !is_set(w->http))
        cpprof__cli_fail("-no_browser only makes sense with -http");
    else
        return true;
    return false;
}

/* ------------------------------------------------------------ groups ---- */

/* `-sort=cum` is `-cum`. */
static bool
take_choice(bool *given, const char *group, const char *name)
{
    const struct cpprof__flag *word;
    size_t i;

    if (!is_set(name))
        return true;
    for (i = 0; (word = cpprof__report_choice(group, i)) != NULL; i++)
        if (strcmp(word->name, name) == 0) {
            given[word - cpprof__report_flag_table] = true;
            return true;
        }
    cpprof__cli_fail("invalid value \"%s\" for flag -%s: it is one of %s, "
                     "%s%s",
                     name, group, cpprof__report_choice(group, 0)->name,
                     cpprof__report_choice(group, 1)->name,
                     i > 2 ? ", ..." : "");
    return false;
}

/* The index of the word of a group that is given, none: -1. False after
 * printing that there are several. */
static bool
choose_one(const bool *given, const char *group, int *index)
{
    const struct cpprof__flag *word;
    size_t i;
    int n = 0;

    *index = -1;
    for (i = 0; (word = cpprof__report_choice(group, i)) != NULL; i++)
        if (is_given(given, word)) {
            *index = (int)i;
            n++;
        }
    if (n > 1)
        cpprof__cli_fail("conflicting options set: more than one of -%s, -%s%s",
                         cpprof__report_choice(group, 0)->name,
                         cpprof__report_choice(group, 1)->name,
                         i > 2 ? ", ..." : "");
    return n <= 1;
}

/* -inuse_space and its like are other words for -sample_index; total_delay and
 * mean_delay are of the type delay. */
static void
choose_type(struct cpprof__report_flags *w, const bool *given)
{
    const struct cpprof__flag *word;
    size_t i;

    for (i = 0; (word = cpprof__report_choice("sample_index", i)) != NULL;
         i++) {
        bool mean = strncmp(word->name, "mean_", 5) == 0;
        bool total = strncmp(word->name, "total_", 6) == 0;

        if (!is_given(given, word))
            continue;
        if (is_set(w->options.sample_index))
            cpprof__cli_warn("Multiple value selections, ignoring -%s",
                             word->name);
        else
            w->options.sample_index = word->name + (mean ? 5 : total ? 6 : 0);
        if (mean)
            w->options.flags |= PPROF_REPORT_MEAN;
    }
}

/* ----------------------------------------------------------- sources ---- */

static bool
choose_base(struct cpprof__report_flags *w)
{
    w->diff_base = w->diff_bases.n > 0;
    if (w->bases.n && w->diff_bases.n)
        cpprof__cli_fail("-base and -diff_base flags cannot both be specified");
    else if (w->normalize && !w->bases.n && !w->diff_bases.n &&
             !is_set(w->tagbase))
        cpprof__cli_fail("must have base profile to normalize by");
    else {
        if (w->diff_base)
            w->bases = w->diff_bases;
        w->diff_bases = (struct cpprof__flag_list){NULL, 0};
        return true;
    }
    return false;
}

static bool
check_by(const struct cpprof__report_flags *w)
{
    if (!w->by || cpprof__by_is_known(w->by))
        return true;
    cpprof__cli_fail("invalid value \"%s\" for flag -by: it is file, process "
                     "or label:KEY,...",
                     w->by);
    return false;
}

/* The first of several arguments may be the build id of the program. Its file
 * is looked at when sources are read: cpprof__read_sources(). */
static void
take_build_id(struct cpprof__report_flags *w)
{
    const char *word = w->sources[0];

    if (w->n_sources < 2 || is_set(w->build_id) || access(word, F_OK) == 0 ||
        word[strspn(word, "0123456789abcdefABCDEF")])
        return;
    w->build_id = word;
    w->sources++;
    w->n_sources--;
}

/* "8080", ":8080", "localhost:0", "unix:/run/x.sock": where a page is to be
 * served. */
static bool
is_address(const char *word)
{
    const char *colon = strrchr(word, ':');
    const char *port = colon ? colon + 1 : word;

    if (strncmp(word, "unix:", 5) == 0)
        return true;
    return *word && !strchr(word, '/') && access(word, F_OK) != 0 &&
           port[strspn(port, "0123456789")] == 0;
}

/* `cpprof http`: the address may stand before the sources. HOST:PORT alone is a
 * server that has profiles. */
static void
take_address(struct cpprof__report_flags *w)
{
    bool is_alone = w->n_sources == 1 && w->bases.n == 0;
    const char *colon = w->n_sources ? strchr(w->sources[0], ':') : NULL;

    if (!is_set(w->http) && w->n_sources && is_address(w->sources[0]) &&
        (!is_alone || !colon || colon == w->sources[0] ||
         strncmp(w->sources[0], "unix:", 5) == 0)) {
        w->http = *w->sources++;
        w->n_sources--;
    }
    if (!is_set(w->http))
        w->http = ":0";
}

/* `cpprof symbolize`: all that binaries know, and nothing is left out. */
static void
take_all_names(struct cpprof__report_flags *w)
{
    w->symbolize.lines = true;
    w->all_frames = true;
    if (w->symbolize.demangle == PPROF_DEMANGLE_SHORT)
        w->symbolize.demangle = PPROF_DEMANGLE_FULL;
}

/* ------------------------------------------------------------- words ---- */

static bool
interpret(struct cpprof__report_flags *w, bool *given, const char *command)
{
    const struct cpprof__flag *flag =
        command ? cpprof__report_flag(command) : NULL;
    int granularity, sort;

    if (command && strcmp(command, "http") == 0) {
        take_address(w);
        command = NULL;
    }
    /* A command that looks for something has that as its first argument. */
    if (flag && cpprof__report_flag_is_search(flag) && w->n_sources) {
        w->options.symbol = *w->sources++;
        w->n_sources--;
    }
    if (!w->n_sources) {
        cpprof__cli_fail("no profile source specified");
        return false;
    }
    take_build_id(w);
    if (!take_choice(given, "granularity", w->granularity) ||
        !take_choice(given, "sort", w->sort) ||
        !choose_one(given, "granularity", &granularity) ||
        !choose_one(given, "sort", &sort) ||
        !choose_format(w, given, command) || !choose_base(w) || !check_by(w))
        return false;
    /* -top prints what the reference does. */
    w->tell_sum = command && (w->format == PPROF_REPORT_TOP ||
                              w->format == PPROF_REPORT_TREE ||
                              w->format == PPROF_REPORT_PEEK);
    if (granularity >= 0)
        w->options.granularity = (enum pprof_report_granularity)granularity;
    if (sort == CPPROF__CUM)
        w->options.flags |= PPROF_REPORT_CUM;
    choose_type(w, given);
    cpprof__parse_symbolize(&w->symbolize, w->symbolize_text);
    if (command && strcmp(command, "symbolize") == 0)
        take_all_names(w);
    return w->symbolize.none ||
           cpprof__debuginfod_begin(w->symbolize.debuginfod);
}

bool
cpprof__report_flags(int argc, char **argv, const char *command,
                     struct cpprof__report_flags *words)
{
    struct pprof_report_options defaults = PPROF_REPORT_DEFAULTS;
    bool given[CPPROF__MAX_REPORT_FLAGS] = {false};
    struct cpprof__flags flags = {
        .table = cpprof__report_flag_table, .into = words, .given = given};
    bool ok;
    int n_words;

    memset(words, 0, sizeof *words);
    words->options = defaults;
    words->symbolize.debuginfod = cpprof__debuginfod_default;
    words->options.tools = getenv("PPROF_TOOLS");
    ok = cpprof__cli_flags_among_words(argc, argv, &flags, &n_words);
    words->help = flags.help;
    words->sources = argv + 1;
    words->n_sources = n_words;
    ok = ok && (words->help || interpret(words, given, command));
    free(words->diff_bases.at);
    words->diff_bases.at = NULL;
    if (!ok) {
        free(words->bases.at);
        free(words->symbolize.binaries.at);
    }
    return ok;
}
