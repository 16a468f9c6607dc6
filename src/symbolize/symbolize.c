/* SPDX-License-Identifier: MIT */
/*
 * Names for the locations of a profile, from the binaries on this machine.
 *
 * The image of every mapping without names is opened, but only its headers are
 * read: they suffice to say what is missing, and to convert addresses of the
 * process to those of the image. The library that reads symbols and DWARF is
 * loaded only when an image was found. It is asked about addresses of the
 * image.
 *
 * Source: internal/symbolizer/symbolizer.go doLocalSymbolize, newMapping.
 */
#include "base/options.h"
#include "base/status.h"
#include "own/memory.h"
#include "profile/model/check.h"
#include "profile/model/make.h"
#include "profile/model/path.h"
#include "profile/model/stand_ins.h"
#include "symbolize/given.h"
#include "symbolize/image_find.h"
#include "symbolize/lookup.h"
#include "symbolize/warn.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What says that a mapping needs no names any more. */
#define HAS_NAMES                                                              \
    (PPROF_HAS_FUNCTIONS | PPROF_HAS_FILENAMES | PPROF_HAS_LINE_NUMBERS)
#define HAS_ALL (HAS_NAMES | PPROF_HAS_INLINE_FRAMES)

/* A mapping of the profile. */
struct source {
    bool is_used; /* by a location */
    bool has_stand_ins;
    bool is_open;
    bool is_asked; /* it lacked names */
    bool is_named; /* a name or a line of it is new, and no stand-in */
    size_t number; /* of the lookup */
    struct cpprof__mapped_range range;
    struct cpprof__image image;
};

struct work {
    struct pprof_profile *p;
    const struct pprof_symbolize_options *options;
    uint32_t flags;
    struct source *sources; /* one per mapping */
    struct cpprof__given *given;
    size_t n_given;
    bool is_missing; /* the file of some mapping */

    struct cpprof__lookup lookup;
    struct cpprof__maker maker;
    struct cpprof__frame frames[CPPROF__LOOKUP_FRAMES];
};

/* ------------------------------------------------ options, warnings ---- */

#define LONGEST_WARNING 2048

enum cpprof_status
cpprof__symbolize_take(const struct pprof_symbolize_options *given,
                       struct pprof_symbolize_options *options,
                       struct cpprof_error *error)
{
    const uint32_t known =
        PPROF_SYMBOLIZE_FORCE | PPROF_SYMBOLIZE_FAST | PPROF_SYMBOLIZE_LINES;
    enum cpprof_status status;
    size_t i;

    *options = (struct pprof_symbolize_options){.size = sizeof *options};
    status = cpprof__options(options, sizeof *options, given,
                             "pprof_symbolize_options", error);
    if (status == CPPROF_OK)
        status = cpprof__options_flags(options->flags, known,
                                       CPPROF_SYMBOLIZE_FULL, error);
    for (i = 0; i < options->n_binaries && status == CPPROF_OK; i++)
        if (!options->binaries || !options->binaries[i])
            status = cpprof__fail(error, CPPROF_INVALID, 0,
                                  "binary %zu of %zu is NULL", i,
                                  options->n_binaries);
    return status;
}

void
cpprof__symbolize_warn(const struct pprof_symbolize_options *options,
                       const char *format, ...)
{
    char text[LONGEST_WARNING];
    va_list args;

    if (!options->warn)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    options->warn(options->ctx, text);
}

/* ---------------------------------------------------- what is missing ---- */

/* What warnings call a mapping: "NAME", "NAME (build ID ID)". */
struct title {
    char text[PATH_MAX];
};

static struct title
title_of(const struct pprof_profile *p, const struct pprof_mapping *m)
{
    const char *file = cpprof__strings_text(&p->strings, m->file);
    const char *id = cpprof__strings_text(&p->strings, m->build_id);
    struct title title;
    size_t n;
    const char *name = cpprof__path_base(file, strlen(file), &n);

    snprintf(title.text, sizeof title.text, "%.*s%s%s%s",
             (int)(n < 1024 ? n : 1024), name, *id ? " (build ID " : "", id,
             *id ? ")" : "");
    return title;
}

/* Is that the address on the net that the profile came from? */
static bool
is_url(const char *file)
{
    static const char *const schemes[] = {"http:", "https:", "https+insecure:"};
    size_t i;

    for (i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncasecmp(file, schemes[i], strlen(schemes[i])) == 0)
            return true;
    return false;
}

/* Is the mapping to be given names at all? */
static bool
is_wanted(struct work *w, size_t mapping)
{
    const struct pprof_mapping *m = &w->p->mappings.at[mapping];
    const char *given = cpprof__given_for(w->given, w->n_given, w->p, mapping);
    uint32_t enough = given || w->flags & PPROF_SYMBOLIZE_LINES
                          ? (m->flags & HAS_NAMES) == HAS_NAMES
                          : m->flags & HAS_NAMES;

    if (!w->sources[mapping].is_used)
        return false;
    if (!(w->flags & PPROF_SYMBOLIZE_FORCE) && enough)
        return false;
    if (!m->file || given)
        return true;
    return !pprof_is_unsymbolizable(w->p, mapping) &&
           (m->build_id ||
            !is_url(cpprof__strings_text(&w->p->strings, m->file)));
}

/* ------------------------------------------------------------- images ---- */

static void
warn_closed(struct work *w, size_t mapping, const struct cpprof_error *error)
{
    const struct pprof_mapping *m = &w->p->mappings.at[mapping];

    if (!m->file && mapping == 0) {
        cpprof__symbolize_warn(w->options,
                               "Main binary filename not available.");
        return;
    }
    if (m->file)
        cpprof__symbolize_warn(w->options,
                               "Local symbolization failed for %s: %s",
                               title_of(w->p, m).text, error->text);
    w->is_missing |= !strstr(error->text, "build ID");
}

/* Open the image of a mapping; *path is where it is then. */
static enum cpprof_status
open_source(struct work *w, size_t mapping, char path[PATH_MAX])
{
    const struct pprof_mapping *m = &w->p->mappings.at[mapping];
    const char *given = cpprof__given_for(w->given, w->n_given, w->p, mapping);
    struct source *source = &w->sources[mapping];
    struct cpprof_error error = {0};
    struct cpprof__wanted_image wanted = {
        .file = given ? given : cpprof__strings_text(&w->p->strings, m->file),
        .build_id = cpprof__strings_text(&w->p->strings, m->build_id),
        .time_ns = given ? 0 : w->p->info.time_ns,
        .range = {m->start, m->limit, m->offset},
        .options = w->options,
    };
    enum cpprof_status status =
        cpprof__find_image(&source->image, &wanted, path, &error);

    source->range = wanted.range;
    if (status != CPPROF_OK && status != CPPROF_NOMEM)
        warn_closed(w, mapping, &error);
    return status;
}

/* Tell the library of a mapping's image; loads it for the first one. */
static bool
add_image(struct work *w, struct source *source, const char *path)
{
    bool nomem;

    source->number =
        cpprof__lookup_binary(&w->lookup, path, source->image.build_id, &nomem);
    source->is_open = source->number != SIZE_MAX;
    w->maker.failed |= nomem;
    if (w->lookup.no_library)
        cpprof__symbolize_warn(w->options,
                               "local symbolization: libcpprof-symbol.so "
                               "cannot be loaded");
    return source->is_open;
}

static void
open_sources(struct work *w)
{
    struct pprof_profile *p = w->p;
    char path[PATH_MAX];
    size_t i;

    for (i = 0; i < p->mappings.n && !w->maker.failed; i++) {
        enum cpprof_status status;

        if (!is_wanted(w, i))
            continue;
        w->sources[i].is_asked = true;
        status = open_source(w, i, path);
        w->maker.failed |= status == CPPROF_NOMEM;
        if (status == CPPROF_OK && !add_image(w, &w->sources[i], path))
            return;
    }
    if (w->is_missing)
        cpprof__symbolize_warn(
            w->options,
            "Some binary filenames not available. Symbolization may be "
            "incomplete.\nTry setting PPROF_BINARY_PATH to the search path "
            "for local binaries.");
}

/* ---------------------------------------------------------- locations ---- */

static void
add_line(struct work *w, const struct cpprof__frame *frame,
         struct pprof_mapping *m)
{
    struct pprof_profile *p = w->p;
    uint32_t name = cpprof__make_text(&w->maker, frame->system_name);
    uint32_t file =
        cpprof__make_text(&w->maker, frame->file ? frame->file : "");
    uint32_t function = cpprof__make_function(&w->maker, name, name, file);

    cpprof__make_line(
        &w->maker, (struct pprof_line){frame->line, frame->column, function});
    if (w->maker.failed)
        return;
    if (!p->functions.at[function].start_line)
        p->functions.at[function].start_line = frame->start_line;
    w->sources[m - p->mappings.at].has_stand_ins |= frame->is_stand_in;
    m->flags |=
        (name ? PPROF_HAS_FUNCTIONS : 0) | (file ? PPROF_HAS_FILENAMES : 0) |
        (frame->line ? PPROF_HAS_LINE_NUMBERS : 0) | PPROF_HAS_INLINE_FRAMES;
}

/* Does the innermost frame tell more than the location does by now? */
static bool
is_news(const struct work *w, const struct pprof_location *l,
        const struct cpprof__frame *frame)
{
    const struct pprof_profile *p = w->p;
    const char *name = frame->system_name;
    const struct pprof_function *f;
    const struct pprof_line *line;

    if (frame->is_stand_in || !l->n_lines)
        return !frame->is_stand_in;
    line = &p->lines.at[l->first_line];
    if (line->function == PPROF_NONE || (frame->line && !line->line))
        return true;
    f = &p->functions.at[line->function];
    return strcmp(cpprof__strings_text(&p->strings, f->name), name) != 0 &&
           strcmp(cpprof__strings_text(&p->strings, f->system_name), name) != 0;
}

/* Is the name that a location has by now a stand-in? Then its mapping lacks
 * names, whatever others of its locations get. */
static bool
keeps_stand_in(const struct pprof_profile *p, const struct pprof_location *l)
{
    uint32_t function =
        l->n_lines ? p->lines.at[l->first_line].function : PPROF_NONE;
    uint32_t name;

    if (function == PPROF_NONE)
        return false;
    name = p->functions.at[function].name;
    return cpprof__is_stand_in(cpprof__strings_text(&p->strings, name),
                               cpprof__strings_n(&p->strings, name));
}

static void
name_location(struct work *w, struct pprof_location *l)
{
    struct pprof_profile *p = w->p;
    const struct source *source = &w->sources[l->mapping];
    size_t first = p->lines.n, n, i;
    uint64_t address;

    if (!source->is_open ||
        !cpprof__image_address(&source->image, &source->range, l->address,
                               &address))
        return;
    n = cpprof__lookup_frames(&w->lookup, source->number, address, w->frames);
    if (n && w->frames[0].is_stand_in && l->n_lines) /* no better than that */
        n = 0;
    w->sources[l->mapping].is_named |= n && is_news(w, l, w->frames);
    for (i = 0; i < n && !w->maker.failed; i++)
        add_line(w, &w->frames[i], &p->mappings.at[l->mapping]);
    if (n == 0 || w->maker.failed) {
        p->lines.n = first;
        w->sources[l->mapping].has_stand_ins |= keeps_stand_in(p, l);
        return;
    }
    l->first_line = first;
    l->n_lines = (uint32_t)n;
    l->flags &= ~PPROF_FOLDED;
}

/* There are lines of the mapping's, but what is inlined is in a file that is
 * lost. Without lines there is nothing to inline: "yes", as pprof says. */
static bool
lacks_inlines(const struct work *w, size_t mapping)
{
    return w->sources[mapping].is_open &&
           w->p->mappings.at[mapping].flags & PPROF_HAS_LINE_NUMBERS &&
           !w->lookup.ops->knows_inlines(w->lookup.symbolizer,
                                         w->sources[mapping].number);
}

static void
name_locations(struct work *w)
{
    struct pprof_profile *p = w->p;
    size_t i;

    for (i = 0; i < p->locations.n && !w->maker.failed; i++)
        if (p->locations.at[i].mapping != PPROF_NONE)
            name_location(w, &p->locations.at[i]);
    for (i = 0; i < p->mappings.n; i++)
        if (w->sources[i].has_stand_ins)
            p->mappings.at[i].flags &= ~HAS_ALL;
        else if (lacks_inlines(w, i))
            p->mappings.at[i].flags &= ~PPROF_HAS_INLINE_FRAMES;
}

/* Whoever gives binaries takes them for what has the names: say so if none of
 * the mappings that they are for, and that lack names, has got one. */
static enum cpprof_status
check_given(const struct work *w, struct cpprof_error *error)
{
    const char *path = NULL;
    size_t i;

    for (i = 0; w->given && i < w->p->mappings.n; i++) {
        const char *given = cpprof__given_for(w->given, w->n_given, w->p, i);

        if (given && w->sources[i].is_used &&
            (!w->sources[i].is_asked || w->sources[i].is_named))
            return CPPROF_OK;
        path = given ? given : path;
    }
    if (!path || w->lookup.no_library)
        return CPPROF_OK;
    return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                        "%s names nothing in this profile: it has no symbols, "
                        "or no sample is in it",
                        path);
}

/* --------------------------------------------------------- everything ---- */

static void
close_all(struct work *w)
{
    size_t i;

    for (i = 0; w->sources && i < w->p->mappings.n; i++)
        cpprof__image_close(&w->sources[i].image);
    cpprof__free(w->sources);
    cpprof__lookup_free(&w->lookup);
    cpprof__maker_free(&w->maker);
    cpprof__free(w->given);
}

/* The lookup wants debug files alone. */
static bool
fetch_debug_file(void *ctx, const char *build_id, char *path, size_t n_path)
{
    const struct pprof_symbolize_options *o = ctx;

    return o->fetch(o->ctx, PPROF_WANTED_DEBUG_FILE, build_id, path, n_path);
}

static void
tell(void *ctx, const char *text)
{
    cpprof__symbolize_warn(ctx, "%s", text);
}

static void
take_options(struct work *w, const struct pprof_symbolize_options *options)
{
    w->options = options;
    w->flags = options->flags;
    w->n_given = options->n_binaries;
    w->lookup.functions_only = w->flags & PPROF_SYMBOLIZE_FAST;
    w->lookup.fetcher = (struct cpprof__fetcher){
        .debug_file = options->fetch ? fetch_debug_file : NULL,
        .warn = tell,
        .ctx = (void *)(uintptr_t)options};
}

static bool
begin(struct work *w)
{
    struct pprof_profile *p = w->p;
    size_t i;

    w->maker.p = p;
    if (p->mappings.n == 0)
        return true;
    w->sources = cpprof__calloc(p->mappings.n, sizeof *w->sources);
    for (i = 0; w->sources && i < p->locations.n; i++)
        if (p->locations.at[i].mapping != PPROF_NONE)
            w->sources[p->locations.at[i].mapping].is_used = true;
    return w->sources;
}

enum cpprof_status
pprof_symbolize(struct pprof_profile *p,
                const struct pprof_symbolize_options *given,
                struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    struct pprof_symbolize_options options;
    enum cpprof_status status = cpprof__symbolize_take(given, &options, error);
    struct work *w;

    if (status != CPPROF_OK)
        return status;
    w = cpprof__calloc(1, sizeof *w);
    if (!w)
        return cpprof__fail_nomem(error);
    w->p = p;
    take_options(w, &options);
    status = cpprof__given_read(p, &options, &w->given, error);
    if (status != CPPROF_OK) {
        cpprof__free(w);
        return status;
    }
    if (begin(w)) {
        open_sources(w);
        if (w->lookup.symbolizer)
            name_locations(w);
        w->maker.failed |= !cpprof__stand_ins_part(p);
    } else {
        w->maker.failed = true;
    }
    status =
        w->maker.failed ? cpprof__fail_nomem(error) : check_given(w, error);
    close_all(w);
    cpprof__free(w);
    cpprof__debug_check(p);
    return status;
}
