/* SPDX-License-Identifier: MIT */
/*
 * The flags of `go tool pprof`, from the command line into options. A flag
 * that chooses one of several is a bool here, as there: two of them are a
 * contradiction. Source: internal/driver/cli.go, config.go.
 */
#include "cli/report/report_flags.h"

#include "cli/cli.h"
#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The words for formats; flags, and names of commands. */
static const struct format_word {
    const char *name;
    enum cpprof_report_format format;
} formats[] = {
    {"top", CPPROF_REPORT_TOP},
    {"text", CPPROF_REPORT_TOP},
    {"tags", CPPROF_REPORT_TAGS},
    {"comments", CPPROF_REPORT_COMMENTS},
    {"raw", CPPROF_REPORT_RAW},
    {"proto", CPPROF_REPORT_PROTO},
    {"topproto", CPPROF_REPORT_TOPPROTO},
    {"tree", CPPROF_REPORT_TREE},
    {"traces", CPPROF_REPORT_TRACES},
    {"dot", CPPROF_REPORT_DOT},
    {"callgrind", CPPROF_REPORT_CALLGRIND},
    {"collapsed", CPPROF_REPORT_COLLAPSED},
    {"json", CPPROF_REPORT_JSON},
    {"flamegraph", CPPROF_REPORT_FLAMEGRAPH},
    {"svg", CPPROF_REPORT_DOT},
    {"png", CPPROF_REPORT_DOT},
    {"gif", CPPROF_REPORT_DOT},
    {"pdf", CPPROF_REPORT_DOT},
    {"ps", CPPROF_REPORT_DOT},
    {"web", CPPROF_REPORT_DOT},
    {"gv", CPPROF_REPORT_DOT},
    {"evince", CPPROF_REPORT_DOT},
    {"eog", CPPROF_REPORT_DOT},
    {"kcachegrind", CPPROF_REPORT_CALLGRIND},
};
#define N_FORMATS (sizeof formats / sizeof formats[0])

/* Of those, what Graphviz is to make of the graph, and what shows it. */
static const struct picture_word {
    const char *name, *picture, *viewer;
} pictures[] = {
    {"svg", "svg", NULL},  {"png", "png", NULL},
    {"gif", "gif", NULL},  {"pdf", "pdf", NULL},
    {"ps", "ps", NULL},    {"web", "svg", "web"},
    {"gv", "ps", "gv"},    {"evince", "pdf", "evince"},
    {"eog", "svg", "eog"}, {"kcachegrind", NULL, "kcachegrind"},
};
#define N_PICTURES (sizeof pictures / sizeof pictures[0])

/* Words for formats that take a regular expression: `-peek=RE`, `peek RE`. */
static const struct format_word searches[] = {
    {"peek", CPPROF_REPORT_PEEK},
    {"list", CPPROF_REPORT_LIST},
    {"disasm", CPPROF_REPORT_DISASM},
    {"weblist", CPPROF_REPORT_WEBLIST},
};
#define N_SEARCHES (sizeof searches / sizeof searches[0])

/* A group of flags of which one may be set. */
struct choice {
    const char *name;
    bool set;
};

/* Every flag as it is given. */
struct given {
    struct choice formats[N_FORMATS + 1]; /* ORDER: formats */
    struct choice granularities[6]; /* ORDER: enum cpprof_report_granularity */
    struct choice sorts[3];         /* flat, cum */
    const char *searches[N_SEARCHES]; /* ORDER: searches */
    struct choice types[8];           /* ORDER: type_names */
    bool mean, trim, noinlines, showcolumns, compact_labels;
    bool relative_percentages, drop_negative, call_tree, intel_syntax;
    bool no_browser;
    int nodecount;
    const char *symbolize, *http, *granularity, *sort;
    struct cpprof__flag_list diff_bases, bases;
};

/* The sample type that each of given.types stands for. */
static const char *const type_names[] = {
    "delay",         "delay",       "contentions",   "inuse_space",
    "inuse_objects", "alloc_space", "alloc_objects",
};
#define MEAN_DELAY 1

#define MAX_FLAGS 96

struct flag_table {
    struct cpprof__flag flags[MAX_FLAGS];
    size_t n;
};

static void
add(struct flag_table *t, const char *name, enum cpprof__flag_kind kind,
    void *value)
{
    if (t->n < MAX_FLAGS - 1)
        t->flags[t->n++] = (struct cpprof__flag){name, kind, value};
}

static void
add_choices(struct flag_table *t, struct choice *choices)
{
    for (; choices->name; choices++)
        add(t, choices->name, CPPROF__FLAG_BOOL, &choices->set);
}

#define STRING(name, member) add(t, name, CPPROF__FLAG_STRING, &(member))
#define BOOL(name)           add(t, #name, CPPROF__FLAG_BOOL, &g->name)

static void
add_option_flags(struct flag_table *t, struct cpprof_report_options *o,
                 struct given *g)
{
    STRING("focus", o->focus);
    STRING("ignore", o->ignore);
    STRING("hide", o->hide);
    STRING("show", o->show);
    STRING("show_from", o->show_from);
    STRING("prune_from", o->prune_from);
    STRING("tagfocus", o->tagfocus);
    STRING("tagignore", o->tagignore);
    STRING("tagshow", o->tagshow);
    STRING("taghide", o->taghide);
    STRING("tagroot", o->tagroot);
    STRING("tagleaf", o->tagleaf);
    STRING("unit", o->unit);
    STRING("sample_index", o->sample_index);
    STRING("trim_path", o->trim_path);
    STRING("source_path", o->source_path);
    add(t, "nodefraction", CPPROF__FLAG_DOUBLE, &o->nodefraction);
    add(t, "edgefraction", CPPROF__FLAG_DOUBLE, &o->edgefraction);
    add(t, "divide_by", CPPROF__FLAG_DOUBLE, &o->divide_by);
    add(t, "nodecount", CPPROF__FLAG_INT, &g->nodecount);
    BOOL(mean);
    BOOL(trim);
    BOOL(noinlines);
    BOOL(showcolumns);
    BOOL(compact_labels);
    BOOL(relative_percentages);
    BOOL(drop_negative);
    BOOL(call_tree);
    BOOL(intel_syntax);
}

static void
add_source_flags(struct flag_table *t, struct cpprof__report_flags *w,
                 struct given *g)
{
    STRING("output", w->output);
    STRING("buildid", w->build_id);
    STRING("add_comment", w->add_comment);
    add(t, "base", CPPROF__FLAG_LIST, &g->bases);
    add(t, "diff_base", CPPROF__FLAG_LIST, &g->diff_bases);
    STRING("symbolize", g->symbolize);
    STRING("granularity", g->granularity);
    STRING("sort", g->sort);
    STRING("tools", w->options.tools);
    STRING("http", g->http);
    add(t, "seconds", CPPROF__FLAG_INT, &w->fetch.seconds);
    add(t, "timeout", CPPROF__FLAG_INT, &w->fetch.timeout);
    STRING("tls_cert", w->fetch.tls_cert);
    STRING("tls_key", w->fetch.tls_key);
    STRING("tls_ca", w->fetch.tls_ca);
    add(t, "normalize", CPPROF__FLAG_BOOL, &w->normalize);
    add(t, "all_frames", CPPROF__FLAG_BOOL, &w->all_frames);
    BOOL(no_browser);
}

static void
make_table(struct flag_table *t, struct cpprof__report_flags *w,
           struct given *g)
{
    size_t i;

    add_choices(t, g->formats);
    add_choices(t, g->granularities);
    add_choices(t, g->sorts);
    add_choices(t, g->types);
    for (i = 0; i < N_SEARCHES; i++)
        add(t, searches[i].name, CPPROF__FLAG_STRING, &g->searches[i]);
    add_option_flags(t, &w->options, g);
    add_source_flags(t, w, g);
}

static void
begin(struct given *g)
{
    size_t i;

    *g = (struct given){
        .granularities = {{"functions", false},
                          {"filefunctions", false},
                          {"files", false},
                          {"lines", false},
                          {"addresses", false}},
        .sorts = {{"flat", false}, {"cum", false}},
        .types = {{"total_delay", false},
                  {"mean_delay", false},
                  {"contentions", false},
                  {"inuse_space", false},
                  {"inuse_objects", false},
                  {"alloc_space", false},
                  {"alloc_objects", false}},
        .trim = true,
        .nodecount = -1,
    };
    for (i = 0; i < N_FORMATS; i++)
        g->formats[i].name = formats[i].name;
}

/* ---------------------------------------------------- what they mean ---- */

/* The index of the one that is set, -1 for none, -2 for several. */
static int
chosen(const struct choice *choices)
{
    int found = -1, i;

    for (i = 0; choices[i].name; i++)
        if (choices[i].set)
            found = found == -1 ? i : -2;
    return found;
}

static bool
is_set(const char *text)
{
    return text && *text;
}

static void
take_format(struct cpprof__report_flags *w, const struct format_word *word)
{
    size_t i;

    w->format = word->format;
    w->picture = w->viewer = NULL;
    for (i = 0; i < N_PICTURES; i++)
        if (strcmp(pictures[i].name, word->name) == 0) {
            w->picture = pictures[i].picture;
            w->viewer = pictures[i].viewer;
        }
}

/* Take the format that a command is called after. */
static void
name_format(struct cpprof__report_flags *w, const char *name)
{
    size_t i;

    w->format = CPPROF_REPORT_PROTO; /* of merge */
    for (i = 0; i < N_FORMATS; i++)
        if (strcmp(formats[i].name, name) == 0)
            take_format(w, &formats[i]);
    for (i = 0; i < N_SEARCHES; i++)
        if (strcmp(searches[i].name, name) == 0)
            take_format(w, &searches[i]);
}

static bool
is_search(const char *name)
{
    size_t i;

    for (i = 0; i < N_SEARCHES; i++)
        if (strcmp(searches[i].name, name) == 0)
            return true;
    return false;
}

static bool
choose_format(struct cpprof__report_flags *w, struct given *g,
              const char *command)
{
    int n = command != NULL;
    size_t i;

    if (command)
        name_format(w, command);
    for (i = 0; i < N_FORMATS; i++) {
        if (!g->formats[i].set ||
            (command && strcmp(formats[i].name, command) == 0))
            continue;
        take_format(w, &formats[i]);
        n++;
    }
    for (i = 0; i < N_SEARCHES; i++) {
        if (!is_set(g->searches[i]))
            continue;
        w->format = searches[i].format;
        w->options.symbol = g->searches[i];
        n++;
    }
    if (n > 1)
        cpprof__cli_fail("must set at most one output format");
    else if (n && is_set(g->http))
        cpprof__cli_fail("-http is not compatible with an output format on "
                         "the command line");
    else if (g->no_browser && !is_set(g->http))
        cpprof__cli_fail("-no_browser only makes sense with -http");
    else if (is_set(g->http))
        cpprof__cli_fail("-http: there is no web page yet; -flamegraph makes "
                         "a file that a browser opens");
    else {
        w->interactive = n == 0;
        return true;
    }
    return false;
}

static bool
choose_one(const struct choice *choices, int *index)
{
    *index = chosen(choices);
    if (*index == -2)
        cpprof__cli_fail("conflicting options set: more than one of -%s, -%s%s",
                         choices[0].name, choices[1].name,
                         choices[2].name ? ", ..." : "");
    return *index != -2;
}

/* `-sort=cum` is `-cum`. */
static bool
choose_named(struct choice *choices, const char *flag, const char *name)
{
    struct choice *c = choices;

    if (!is_set(name))
        return true;
    while (c->name && strcmp(c->name, name) != 0)
        c++;
    if (c->name)
        c->set = true;
    else
        cpprof__cli_fail("invalid value \"%s\" for flag -%s: it is one of "
                         "%s, %s%s",
                         name, flag, choices[0].name, choices[1].name,
                         choices[2].name ? ", ..." : "");
    return c->name != NULL;
}

/* -inuse_space and its like are other words for -sample_index. */
static void
choose_type(struct cpprof__report_flags *w, struct given *g)
{
    size_t i;

    for (i = 0; g->types[i].name; i++) {
        if (!g->types[i].set)
            continue;
        if (is_set(w->options.sample_index))
            cpprof__cli_warn("Multiple value selections, ignoring -%s",
                             g->types[i].name);
        else
            w->options.sample_index = type_names[i];
    }
    if (g->types[MEAN_DELAY].set)
        g->mean = true;
}

static uint32_t
flags_of(const struct given *g, bool cum)
{
    return (cum ? CPPROF_REPORT_CUM : 0) | (g->mean ? CPPROF_REPORT_MEAN : 0) |
           (g->trim ? 0 : CPPROF_REPORT_NO_TRIM) |
           (g->noinlines ? CPPROF_REPORT_NO_INLINES : 0) |
           (g->showcolumns ? CPPROF_REPORT_COLUMNS : 0) |
           (g->compact_labels ? CPPROF_REPORT_COMPACT_LABELS : 0) |
           (g->relative_percentages ? CPPROF_REPORT_RELATIVE : 0) |
           (g->drop_negative ? CPPROF_REPORT_DROP_NEGATIVE : 0) |
           (g->call_tree ? CPPROF_REPORT_CALL_TREE : 0) |
           (g->intel_syntax ? CPPROF_REPORT_INTEL_SYNTAX : 0);
}

static bool
choose_base(struct cpprof__report_flags *w, struct given *g)
{
    w->diff_base = g->diff_bases.n > 0;
    if (g->bases.n && g->diff_bases.n)
        cpprof__cli_fail("-base and -diff_base flags cannot both be specified");
    else if (w->normalize && !g->bases.n && !g->diff_bases.n)
        cpprof__cli_fail("must have base profile to normalize by");
    else {
        struct cpprof__flag_list *list =
            w->diff_base ? &g->diff_bases : &g->bases;

        w->bases = *list;
        *list = (struct cpprof__flag_list){NULL, 0};
        return true;
    }
    return false;
}

static bool
is_elf(const char *path)
{
    char magic[4] = "";
    FILE *file = fopen(path, "rbe");
    size_t n = file ? fread(magic, 1, sizeof magic, file) : 0;

    if (file)
        fclose(file);
    return n == sizeof magic && memcmp(magic, "\177ELF", n) == 0;
}

/* The first of several words may be the program, or its build id. */
static void
take_binary(struct cpprof__report_flags *w)
{
    const char *word = w->sources[0];

    if (w->n_sources < 2)
        return;
    if (is_elf(word))
        w->binary = word;
    else if (!is_set(w->build_id) && access(word, F_OK) != 0 &&
             strspn(word, "0123456789abcdefABCDEF") == strlen(word))
        w->build_id = word;
    else
        return;
    w->sources++;
    w->n_sources--;
}

/* The first word behind a command that looks for something. */
static void
take_symbol(struct cpprof__report_flags *w, const char *command)
{
    if (!command || !is_search(command) || !w->n_sources)
        return;
    w->options.symbol = *w->sources++;
    w->n_sources--;
}

static bool
interpret(struct cpprof__report_flags *w, struct given *g, const char *command)
{
    int granularity, sort;

    take_symbol(w, command);
    if (!w->n_sources) {
        cpprof__cli_fail("no profile source specified");
        return false;
    }
    take_binary(w);
    if (!choose_named(g->granularities, "granularity", g->granularity) ||
        !choose_named(g->sorts, "sort", g->sort) ||
        !choose_one(g->granularities, &granularity) ||
        !choose_one(g->sorts, &sort) || !choose_format(w, g, command) ||
        !choose_base(w, g))
        return false;
    if (granularity >= 0)
        w->options.granularity = (enum cpprof_report_granularity)granularity;
    choose_type(w, g);
    w->options.flags = flags_of(g, sort == 1);
    w->options.nodecount = g->nodecount;
    cpprof__parse_symbolize(&w->symbolize, g->symbolize);
    return true;
}

bool
cpprof__report_flags(int argc, char **argv, const char *command,
                     struct cpprof__report_flags *words)
{
    struct cpprof_report_options defaults = CPPROF_REPORT_DEFAULTS;
    struct flag_table table = {.n = 0};
    struct given given;
    bool ok;
    int n_words;

    memset(words, 0, sizeof *words);
    words->options = defaults;
    words->options.tools = getenv("PPROF_TOOLS");
    begin(&given);
    make_table(&table, words, &given);
    ok = cpprof__cli_flags_among_words(argc, argv, table.flags, &n_words,
                                       &words->help);
    words->sources = argv + 1;
    words->n_sources = n_words;
    ok = ok && (words->help || interpret(words, &given, command));
    free(given.bases.at);
    free(given.diff_bases.at);
    if (!ok)
        free(words->bases.at);
    return ok;
}

void
cpprof__report_each_flag(void (*each)(void *ctx, const char *name,
                                      bool is_bool),
                         void *ctx)
{
    struct cpprof__report_flags words = {.help = false};
    struct flag_table table = {.n = 0};
    struct given given;
    size_t i;

    begin(&given);
    make_table(&table, &words, &given);
    for (i = 0; i < table.n; i++)
        each(ctx, table.flags[i].name,
             table.flags[i].kind == CPPROF__FLAG_BOOL);
}

/* ------------------------------------------------------ of the shell ---- */

enum cpprof__report_command
cpprof__report_command(struct cpprof__report_flags *w, const char *name)
{
    size_t i;

    for (i = 0; i < N_FORMATS; i++)
        if (strcmp(formats[i].name, name) == 0) {
            take_format(w, &formats[i]);
            return CPPROF__COMMAND_REPORT;
        }
    for (i = 0; i < N_SEARCHES; i++)
        if (strcmp(searches[i].name, name) == 0) {
            take_format(w, &searches[i]);
            return CPPROF__COMMAND_SEARCH;
        }
    return CPPROF__COMMAND_NONE;
}

bool
cpprof__cli_is_report(const char *word)
{
    struct cpprof__report_flags words;

    return cpprof__report_command(&words, word) != CPPROF__COMMAND_NONE;
}
