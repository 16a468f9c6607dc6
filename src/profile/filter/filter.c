/* SPDX-License-Identifier: MIT */
/*
 * Filters by name. Whether a frame matches depends on its location alone. So
 * expressions are tried once for each location, and then each frame of a sample
 * costs one lookup of a byte.
 */
#include "profile/filter/filter.h"

#include "base/status.h"
#include "own/memory.h"

#include <string.h>

/* What is known of a location. */
enum {
    FOCUSED = 1,
    IGNORED = 2,
    HIDDEN = 4,
};

static bool
line_matches(const struct pprof_profile *p, const struct pprof_line *line,
             struct cpprof__regexp *r)
{
    const struct pprof_function *f = &p->functions.at[line->function];

    return cpprof__regexp_matches_string(r, &p->strings, f->name) ||
           cpprof__regexp_matches_string(r, &p->strings, f->file);
}

static bool
mapping_matches(const struct pprof_profile *p, const struct pprof_location *l,
                struct cpprof__regexp *r)
{
    return l->mapping != PPROF_NONE &&
           cpprof__regexp_matches_string(r, &p->strings,
                                         p->mappings.at[l->mapping].file);
}

static bool
location_matches(const struct pprof_profile *p, const struct pprof_location *l,
                 struct cpprof__regexp *r)
{
    size_t i;

    for (i = 0; i < l->n_lines; i++)
        if (line_matches(p, &p->lines.at[l->first_line + i], r))
            return true;
    return mapping_matches(p, l, r);
}

/* Match all names and remember the results. What follows cannot fail. */
static enum cpprof_status
match_names(const struct pprof_profile *p, struct cpprof__regexp *r,
            struct cpprof_error *error)
{
    size_t i;

    if (!r)
        return CPPROF_OK;
    for (i = 0; i < p->functions.n; i++) {
        const struct pprof_function *f = &p->functions.at[i];

        cpprof__regexp_matches_string(r, &p->strings, f->name);
        cpprof__regexp_matches_string(r, &p->strings, f->file);
    }
    for (i = 0; i < p->mappings.n; i++)
        cpprof__regexp_matches_string(r, &p->strings, p->mappings.at[i].file);
    return cpprof__regexp_status(r, error);
}

/* Keep the lines for which r matches, or does not. */
static void
keep_lines(struct pprof_profile *p, struct pprof_location *l,
           struct cpprof__regexp *r, bool wanted)
{
    struct pprof_line *lines;
    uint32_t kept = 0, i;

    if (!l->n_lines) /* there may be no table at all */
        return;
    lines = p->lines.at + l->first_line;
    for (i = 0; i < l->n_lines; i++)
        if (line_matches(p, &lines[i], r) == wanted)
            lines[kept++] = lines[i];
    l->n_lines = kept;
}

/* A location loses the lines that match hide; all, if its mapping does. */
static bool
hide_lines(struct pprof_profile *p, struct pprof_location *l,
           struct cpprof__regexp *hide, struct cpprof__name_matches *matches)
{
    if (!hide || !location_matches(p, l, hide))
        return false;
    matches->hide = true;
    if (mapping_matches(p, l, hide))
        l->n_lines = 0;
    else
        keep_lines(p, l, hide, false);
    return l->n_lines == 0;
}

static bool
show_lines(struct pprof_profile *p, struct pprof_location *l,
           struct cpprof__regexp *show, struct cpprof__name_matches *matches)
{
    if (!show)
        return false;
    if (!mapping_matches(p, l, show))
        keep_lines(p, l, show, true);
    if (l->n_lines)
        matches->show = true;
    return l->n_lines == 0;
}

static uint8_t
examine(struct pprof_profile *p, struct pprof_location *l,
        const struct cpprof__name_filter *filter,
        struct cpprof__name_matches *matches)
{
    uint8_t what = 0;

    if (filter->ignore && location_matches(p, l, filter->ignore)) {
        matches->ignore = true;
        what |= IGNORED;
    } else if (!filter->focus || location_matches(p, l, filter->focus)) {
        matches->focus = true;
        what |= FOCUSED;
    }
    if (hide_lines(p, l, filter->hide, matches))
        what |= HIDDEN;
    if (show_lines(p, l, filter->show, matches))
        what |= HIDDEN;
    return what;
}

struct keeper {
    struct pprof_profile *p;
    const uint8_t *what; /* by location */
};

static bool
keep_named(void *ctx, struct cpprof__sample *sample)
{
    const struct keeper *k = ctx;
    uint32_t kept = 0, i, *frames;
    uint8_t seen = 0;

    if (!sample->n_frames)
        return false;
    frames = k->p->frames.at + sample->first_frame;
    for (i = 0; i < sample->n_frames; i++)
        seen |= k->what[frames[i]];
    if (!(seen & FOCUSED) || seen & IGNORED)
        return false;
    if (!(seen & HIDDEN))
        return true;
    for (i = 0; i < sample->n_frames; i++)
        if (!(k->what[frames[i]] & HIDDEN))
            frames[kept++] = frames[i];
    sample->n_frames = kept;
    return kept != 0;
}

/* A byte for each location, zeroed; NULL only when out of memory. */
static uint8_t *
location_bytes(const struct pprof_profile *p)
{
    return cpprof__calloc(p->locations.n + 1, 1);
}

static enum cpprof_status
match_filter(const struct pprof_profile *p,
             const struct cpprof__name_filter *filter,
             struct cpprof_error *error)
{
    enum cpprof_status status = match_names(p, filter->focus, error);

    if (status == CPPROF_OK)
        status = match_names(p, filter->ignore, error);
    if (status == CPPROF_OK)
        status = match_names(p, filter->hide, error);
    if (status == CPPROF_OK)
        status = match_names(p, filter->show, error);
    return status;
}

enum cpprof_status
cpprof__filter_names(struct pprof_profile *p,
                     const struct cpprof__name_filter *filter,
                     struct cpprof__name_matches *matches,
                     struct cpprof_error *error)
{
    struct keeper keeper = {p, NULL};
    enum cpprof_status status;
    uint8_t *what;
    size_t i;

    memset(matches, 0, sizeof *matches);
    matches->focus = !filter->focus;
    if (!filter->focus && !filter->ignore && !filter->hide && !filter->show)
        return CPPROF_OK;
    status = match_filter(p, filter, error);
    if (status != CPPROF_OK)
        return status;
    keeper.what = what = location_bytes(p);
    if (!what)
        return cpprof__fail_nomem(error);
    matches->focus = false;
    for (i = 0; i < p->locations.n; i++)
        what[i] = examine(p, &p->locations.at[i], filter, matches);
    cpprof__keep_samples(p, keep_named, &keeper);
    cpprof__free(what);
    return CPPROF_OK;
}

/* Cut the callers above the last matching line; does anything match? */
static bool
cut_callers(struct pprof_profile *p, struct pprof_location *l,
            struct cpprof__regexp *r)
{
    uint32_t n;

    if (mapping_matches(p, l, r))
        return true;
    for (n = l->n_lines; n; n--)
        if (line_matches(p, &p->lines.at[l->first_line + n - 1], r))
            break;
    if (n)
        l->n_lines = n;
    return n != 0;
}

static bool
keep_from(void *ctx, struct cpprof__sample *sample)
{
    const struct keeper *k = ctx;
    const uint32_t *frames;

    if (!sample->n_frames)
        return false;
    frames = k->p->frames.at + sample->first_frame;
    while (sample->n_frames && !k->what[frames[sample->n_frames - 1]])
        sample->n_frames--;
    return sample->n_frames != 0;
}

enum cpprof_status
cpprof__show_from(struct pprof_profile *p, struct cpprof__regexp *show_from,
                  bool *matched, struct cpprof_error *error)
{
    struct keeper keeper = {p, NULL};
    enum cpprof_status status;
    uint8_t *what;
    size_t i;

    *matched = false;
    status = match_names(p, show_from, error);
    if (!show_from || status != CPPROF_OK)
        return status;
    keeper.what = what = location_bytes(p);
    if (!what)
        return cpprof__fail_nomem(error);
    for (i = 0; i < p->locations.n; i++) {
        what[i] = cut_callers(p, &p->locations.at[i], show_from);
        *matched |= what[i];
    }
    cpprof__keep_samples(p, keep_from, &keeper);
    cpprof__free(what);
    return CPPROF_OK;
}
