/* SPDX-License-Identifier: MIT */
/*
 * -weblist, first part: which locations are wanted.
 *
 * Every location with samples becomes a site, with its values. Functions are
 * matched by name, or by address where the expression is one. A site is wanted
 * if one of its functions matches. Locations without an address (of scripts,
 * say) get one behind all mappings, so that all sites can be sorted by
 * address.
 *
 * Source: internal/report/source.go newSourcePrinter, synth.go.
 */
#include "report/code/weblist.h"

#include "base/status.h"
#include "own/memory.h"

#include <stdlib.h>
#include <string.h>

/* Locations without an address get one behind all mappings. */
static void
give_addresses(struct cpprof__weblist *w)
{
    const struct pprof_profile *p = w->r->p;
    uint64_t next = 1;
    size_t i;

    for (i = 0; i < p->mappings.n; i++)
        if (next < p->mappings.at[i].limit)
            next = p->mappings.at[i].limit;
    for (i = 0; i < p->locations.n; i++) {
        uint64_t address = p->locations.at[i].address;

        w->sites.at[i] = (struct cpprof__site){
            .address = address ? address : next, .location = (uint32_t)i};
        next += !address;
    }
    w->sites.n = p->locations.n;
}

static void
add_sample(struct cpprof__weblist *w, const struct cpprof__sample *s,
           const int64_t *values)
{
    const uint32_t *frames = w->r->p->frames.at + s->first_frame;
    int64_t value = values[w->r->value];
    uint32_t i;

    if (w->r->divisor != CPPROF__NO_DIVISOR)
        value = cpprof__mean(value, values[w->r->divisor]);
    for (i = 0; i < s->n_frames; i++) {
        struct cpprof__site *site = &w->sites.at[frames[i]];

        site->wanted = true; /* so far: it has samples */
        site->cum = cpprof__add(site->cum, value);
        if (i == 0)
            site->flat = cpprof__add(site->flat, value);
    }
}

static bool
matches(struct cpprof__weblist *w, uint32_t string)
{
    return cpprof__regexp_matches_string(w->matching, &w->r->p->strings,
                                         string);
}

/* Ask for a function by its name. */
static void
want(struct cpprof__weblist *w, uint32_t string)
{
    const struct cpprof__strings *s = &w->r->p->strings;

    if (cpprof__strings_add(&w->wanted, cpprof__strings_text(s, string),
                            cpprof__strings_n(s, string)) == CPPROF__NO_STRING)
        w->failed = true;
}

/* Does a function at the location match? Each that does is marked. */
static bool
mark(struct cpprof__weblist *w, const struct cpprof__site *site)
{
    const struct pprof_profile *p = w->r->p;
    const struct pprof_location *l = &p->locations.at[site->location];
    uint32_t object = cpprof__location_file(p, l), i;
    bool all = w->address && site->address == w->address, found = false;

    for (i = 0; i < l->n_lines; i++) {
        const struct pprof_function *f =
            &p->functions.at[p->lines.at[l->first_line + i].function];

        w->pretty[f->system_name] = f->name;
        if (all ? i + 1 < l->n_lines
                : !(i == 0 && l->mapping != PPROF_NONE && matches(w, object)) &&
                      !matches(w, f->name) && !matches(w, f->system_name) &&
                      !matches(w, f->file))
            continue;
        want(w, f->name);
        want(w, f->system_name);
        found = true;
    }
    return found;
}

static int
by_address(const void *x, const void *y)
{
    const struct cpprof__site *a = x, *b = y;

    if (a->address != b->address)
        return a->address > b->address ? 1 : -1;
    return (a->location > b->location) - (a->location < b->location);
}

/* Sort, and make those of one address one. */
static void
join(struct cpprof__weblist *w)
{
    struct cpprof__site *at = w->sites.at;
    size_t n = 0, i;

    if (w->sites.n)
        qsort(at, w->sites.n, sizeof *at, by_address);
    for (i = 0; i < w->sites.n; i++) {
        if (!n || at[n - 1].address != at[i].address) {
            at[n++] = at[i];
            continue;
        }
        at[n - 1].flat = cpprof__add(at[n - 1].flat, at[i].flat);
        at[n - 1].cum = cpprof__add(at[n - 1].cum, at[i].cum);
        if (at[i].wanted && !at[n - 1].wanted)
            at[n - 1].location = at[i].location;
        at[n - 1].wanted |= at[i].wanted;
    }
    w->sites.n = n;
}

static enum cpprof_status
find_sites(struct cpprof__weblist *w)
{
    const struct pprof_profile *p = w->r->p;
    size_t n_strings = p->strings.table.n, i;
    bool any = false;

    w->pretty = cpprof__malloc((n_strings + 1) * sizeof *w->pretty);
    if (!w->pretty || !CPPROF__ARRAY_ROOM(&w->sites, p->locations.n + 1))
        return cpprof__fail_nomem(w->r->error);
    memset(w->pretty, 0xff, (n_strings + 1) * sizeof *w->pretty);
    give_addresses(w);
    for (i = 0; i < p->samples.n; i++)
        add_sample(w, &p->samples.at[i], cpprof__values(p, i));
    for (i = 0; i < w->sites.n; i++) {
        struct cpprof__site *site = &w->sites.at[i];

        site->wanted = site->wanted && mark(w, site);
        any |= site->wanted;
    }
    join(w);
    if (w->failed)
        return cpprof__fail_nomem(w->r->error);
    if (cpprof__regexp_status(w->matching, w->r->error) != CPPROF_OK)
        return cpprof__regexp_status(w->matching, w->r->error);
    return any ? CPPROF_OK : cpprof__fail_no_match(w->r);
}

enum cpprof_status
cpprof__weblist(struct cpprof__report *r)
{
    const struct pprof_report_options *o = r->options;
    struct cpprof__weblist w = {.r = r};
    enum cpprof_status status = cpprof__symbol_regexp(r, &w.matching);

    w.address = cpprof__symbol_address(r);
    if (status == CPPROF_OK && !cpprof__strings_begin(&w.names))
        status = cpprof__fail_nomem(r->error);
    if (status == CPPROF_OK)
        status = find_sites(&w);
    if (status == CPPROF_OK)
        status = cpprof__source_begin(&w.source, o->source_path, o->trim_path,
                                      r->error);
    if (status == CPPROF_OK)
        status = cpprof__weblist_code(&w);
    if (status == CPPROF_OK)
        status = cpprof__weblist_page(&w);
    cpprof__regexp_free(w.matching);
    CPPROF__ARRAY_FREE(&w.sites);
    cpprof__strings_free(&w.wanted);
    cpprof__free(w.pretty);
    cpprof__strings_free(&w.names);
    CPPROF__ARRAY_FREE(&w.codes);
    CPPROF__ARRAY_FREE(&w.shown);
    CPPROF__ARRAY_FREE(&w.calls);
    cpprof__buffer_free(&w.texts);
    cpprof__source_free(&w.source);
    return status;
}
