/* SPDX-License-Identifier: MIT */
/*
 * The instructions around the sites that are asked for, and the lines they are
 * shown under. Source: internal/report/source.go expandAddresses,
 * splitIntoRanges, addStack, handleUnprocessed, initSamples.
 */
#include "report/weblist.h"

#include "base/status.h"
#include "profile/path.h"
#include "symbolize/image.h"

#include <stdlib.h>
#include <string.h>

/* Bytes around a site that are disassembled, and sites that are nearer to each
 * other than twice that are one range. */
#define AROUND 500
/* Only so many ranges are shown, those with the most value. */
#define MOST_RANGES 25
/* An instruction without a line has that of one not farther before it. */
#define NEAR_BYTES 32

struct range {
    uint64_t begin, end; /* in the process */
    uint64_t base;       /* minus this: in the binary */
    uint32_t mapping;
    int64_t score;
};

struct maker {
    struct cpprof__weblist *w;
    CPPROF__ARRAY(struct range) ranges;
    /* Of the last instruction that has a line. */
    const struct cpprof__frame *last;
    size_t n_last;
    uint64_t last_address;
    bool failed; /* out of memory */
};

/* --------------------------------------------------------------- lines -- */

static uint32_t
intern(struct maker *m, struct cpprof__slice text)
{
    uint32_t at =
        cpprof__strings_add(&m->w->names, text.n ? text.at : "", text.n);

    m->failed |= at == CPPROF__NO_STRING;
    return m->failed ? 0 : at;
}

/* A file name without the detours that some builds leave in it. */
static uint32_t
intern_clean(struct maker *m, struct cpprof__slice text)
{
    static const char *const fronts[] = {"/proc/self/cwd/", "./"};
    struct cpprof__buffer clean = {0};
    uint32_t at = 0;
    size_t i;

    for (i = 0; i < 2; i++) {
        size_t n = strlen(fronts[i]);

        if (text.n >= n && memcmp(text.at, fronts[i], n) == 0) {
            text.at += n;
            text.n -= n;
        }
    }
    cpprof__path_clean(text.at, text.n, &clean);
    if (!clean.failed)
        at = intern(m, (struct cpprof__slice){(char *)clean.data, clean.n});
    m->failed |= clean.failed;
    cpprof__buffer_free(&clean);
    return at;
}

/* A clone that the compiler made of a function, "f.isra.0", is that one. */
static bool
is_wanted(const struct cpprof__weblist *w, struct cpprof__slice function)
{
    const char *name = function.n ? function.at : "";
    const char *dot = memchr(name, '.', function.n);

    if (cpprof__strings_find(&w->wanted, name, function.n) != CPPROF__NO_STRING)
        return true;
    return dot &&
           cpprof__strings_find(&w->wanted, name, (size_t)(dot - name)) !=
               CPPROF__NO_STRING;
}

/* Show the last instruction under all functions it is in that are wanted. */
static void
show(struct maker *m, const struct cpprof__frame *frames, size_t n)
{
    struct cpprof__weblist *w = m->w;
    size_t i, j;

    for (i = 0; i < n && !m->failed; i++) {
        struct cpprof__shown_code s = {.line = frames[i].line,
                                       .code = w->codes.n - 1,
                                       .first_call = w->calls.n,
                                       .n_calls = i},
                                  *slot;

        if (!is_wanted(w, frames[i].function))
            continue;
        s.file = intern_clean(m, frames[i].file);
        s.function = intern(m, frames[i].function);
        if (!CPPROF__ARRAY_ROOM(&w->calls, i) ||
            !(slot = CPPROF__ARRAY_ADD(&w->shown))) {
            m->failed = true;
            return;
        }
        *slot = s;
        for (j = i; j-- > 0;)
            w->calls.at[w->calls.n++] = (struct cpprof__call){
                intern(m, frames[j].file), frames[j].line};
    }
}

static struct cpprof__code *
add_code(struct maker *m, const struct cpprof__frame *frames, size_t n)
{
    struct cpprof__code *code = CPPROF__ARRAY_ADD(&m->w->codes);

    if (!code) {
        m->failed = true;
        return NULL;
    }
    memset(code, 0, sizeof *code);
    if (n) {
        code->file = intern(m, frames->file);
        code->line = frames->line;
    }
    return code;
}

/* -------------------------------------------------------- no binary ---- */

static struct cpprof__slice
slice_of(const struct cpprof_pprof *p, uint32_t string)
{
    return (struct cpprof__slice){cpprof__strings_text(&p->strings, string),
                                  cpprof__strings_n(&p->strings, string)};
}

/* A site whose binary is not there is shown as the profile has it. */
static void
add_site(struct maker *m, const struct cpprof__site *site)
{
    const struct cpprof_pprof *p = m->w->r->p;
    const struct cpprof_pprof_location *l = &p->locations.at[site->location];
    struct cpprof__frame *frames = calloc(l->n_lines + 1, sizeof *frames);
    struct cpprof__code *code;
    uint32_t i;

    for (i = 0; frames && i < l->n_lines; i++) {
        const struct cpprof_pprof_line *line = &p->lines.at[l->first_line + i];
        const struct cpprof_pprof_function *f =
            &p->functions.at[line->function];

        frames[i] = (struct cpprof__frame){slice_of(p, f->name),
                                           slice_of(p, f->file), line->line};
    }
    m->failed |= !frames;
    code = m->failed ? NULL : add_code(m, frames, l->n_lines);
    if (code) {
        code->address = code->object_address = site->address;
        code->length = 1;
        show(m, frames, l->n_lines);
    }
    free(frames);
}

/* ------------------------------------------------------------- ranges -- */

/* The image of a mapping's file, and where site is in it. */
static bool
find_base(struct maker *m, const struct cpprof__site *site, uint32_t mapping,
          uint64_t *base)
{
    const struct cpprof_pprof *p = m->w->r->p;
    const struct cpprof_pprof_mapping *map;
    struct cpprof__image image = {0};
    struct cpprof__place place;
    uint64_t address;
    bool found = false;

    if (mapping == CPPROF_PPROF_NONE)
        return false;
    map = &p->mappings.at[mapping];
    place = (struct cpprof__place){map->start, map->limit, map->offset};
    if (site->address < map->start || site->address >= map->limit)
        return false;
    if (cpprof__image_open(&image, cpprof__strings_text(&p->strings, map->file),
                           NULL) == CPPROF_OK)
        found = cpprof__image_address(&image, &place, site->address, &address);
    cpprof__image_close(&image);
    if (found)
        *base = site->address - address;
    return found;
}

/* The range of the wanted site at `first`, with all that are near; returns the
 * index behind them. */
static size_t
add_range(struct maker *m, size_t first, uint32_t mapping, uint64_t base)
{
    const struct cpprof__site *sites = m->w->sites.at;
    const struct cpprof_pprof_mapping *map = &m->w->r->p->mappings.at[mapping];
    uint64_t begin = sites[first].address, end = begin;
    struct range r = {.base = base, .mapping = mapping}, *slot;
    size_t i;

    for (i = first; i < m->w->sites.n; i++) {
        if (!sites[i].wanted)
            continue;
        if (sites[i].address - end > 2 * AROUND ||
            sites[i].address >= map->limit)
            break;
        end = sites[i].address;
        r.score = cpprof__add(r.score, sites[i].flat);
    }
    r.begin = begin - map->start > AROUND ? begin - AROUND : map->start;
    r.end = map->limit - end > AROUND ? end + AROUND : map->limit;
    slot = CPPROF__ARRAY_ADD(&m->ranges);
    if (slot)
        *slot = r;
    m->failed |= !slot;
    return i;
}

static void
find_ranges(struct maker *m)
{
    const struct cpprof__weblist *w = m->w;
    size_t i = 0;

    while (i < w->sites.n && !m->failed) {
        const struct cpprof__site *site = &w->sites.at[i];
        uint32_t mapping = w->r->p->locations.at[site->location].mapping;
        uint64_t base;

        if (!site->wanted) {
            i++;
        } else if (find_base(m, site, mapping, &base)) {
            i = add_range(m, i, mapping, base);
        } else {
            add_site(m, site);
            i++;
        }
    }
}

static int
by_score(const void *x, const void *y)
{
    const struct range *a = x, *b = y;

    if (a->score != b->score)
        return a->score < b->score ? 1 : -1;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* ------------------------------------------------------- instructions -- */

/* The functions of instruction i; where addr2line does not know, objdump may.
 */
static const struct cpprof__frame *
frames_of(const struct cpprof__places *places, bool found, size_t i,
          const struct cpprof__instruction *in, struct cpprof__frame *one,
          size_t *n)
{
    if (found)
        return cpprof__places_of(places, i, n);
    *one = (struct cpprof__frame){in->function, in->file, in->line};
    *n = 1;
    return one;
}

static void
add_instruction(struct maker *m, const struct range *r,
                const struct cpprof__instruction *in, uint64_t next,
                const struct cpprof__frame *frames, size_t n)
{
    struct cpprof__weblist *w = m->w;
    struct cpprof__code *code = add_code(m, frames, n);

    if (!code)
        return;
    code->object_address = in->address;
    code->address = in->address + r->base;
    code->length = next > in->address ? next - in->address : 1;
    code->text = w->texts.n;
    code->n_text = in->text.n;
    cpprof__buffer_append(&w->texts, in->text.at, in->text.n);
    m->failed |= w->texts.failed;
    if (n && frames->line) {
        m->last = frames;
        m->n_last = n;
        m->last_address = code->address;
    } else if (m->last && code->address - m->last_address <= NEAR_BYTES) {
        frames = m->last;
        n = m->n_last;
    }
    show(m, frames, n);
}

static void
add_instructions(struct maker *m, const struct range *r,
                 const struct cpprof__disassembly *d,
                 const struct cpprof__places *places, bool found)
{
    struct cpprof__frame ones[2];
    uint64_t most = 0;
    size_t i, n, turn = 0;

    m->last = NULL;
    for (i = 0; i < d->at.n && !m->failed; i++) {
        const struct cpprof__instruction *in = &d->at.at[i];
        uint64_t next = i + 1 < d->at.n ? in[1].address : 0;
        const struct cpprof__frame *frames;

        if (in->address + r->base <= most)
            continue;
        most = in->address + r->base;
        /* The one that m->last may be is left alone. */
        turn = m->last == &ones[turn] ? !turn : turn;
        frames = frames_of(places, found, i, in, &ones[turn], &n);
        add_instruction(m, r, in, next, frames, n);
    }
}

static bool
find_places(struct maker *m, const char *path,
            const struct cpprof__disassembly *d, struct cpprof__places *places)
{
    uint64_t *addresses = malloc((d->at.n + 1) * sizeof *addresses);
    bool found = false;
    size_t i;

    m->failed |= !addresses;
    for (i = 0; addresses && i < d->at.n; i++)
        addresses[i] = d->at.at[i].address;
    if (addresses)
        found = cpprof__places_find(places, m->w->r->options->tools, path,
                                    addresses, d->at.n, NULL) == CPPROF_OK;
    free(addresses);
    return found && places->first.n == d->at.n;
}

/* A range that cannot be disassembled is left out, as in the reference, but
 * told of. */
static void
read_range(struct maker *m, const struct range *r)
{
    const struct cpprof_report_options *o = m->w->r->options;
    const struct cpprof_pprof *p = m->w->r->p;
    struct cpprof__disassemble what = {
        .tools = o->tools,
        .path =
            cpprof__strings_text(&p->strings, p->mappings.at[r->mapping].file),
        .begin = r->begin - r->base,
        .end = r->end - r->base,
        .intel_syntax = o->flags & CPPROF_REPORT_INTEL_SYNTAX,
    };
    struct cpprof__disassembly d = {0};
    struct cpprof__places places = {0};
    struct cpprof_error error = {0};
    enum cpprof_status status = cpprof__disassemble(&d, &what, &error);

    if (status == CPPROF_OK)
        add_instructions(m, r, &d, &places,
                         find_places(m, what.path, &d, &places));
    else if (status == CPPROF_NOMEM)
        m->failed = true;
    else if (o->warn)
        o->warn(o->warn_ctx, error.text);
    cpprof__disassembly_free(&d);
    cpprof__places_free(&places);
}

/* ------------------------------------------------------------- values -- */

/* The first site that is not before an address. */
static size_t
site_at(const struct cpprof__weblist *w, uint64_t address)
{
    size_t low = 0, high = w->sites.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (w->sites.at[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Samples in the middle of an instruction are its own. */
static void
add_values(struct cpprof__weblist *w)
{
    size_t i, k;

    for (i = 0; i < w->codes.n; i++) {
        struct cpprof__code *c = &w->codes.at[i];

        for (k = site_at(w, c->address);
             k < w->sites.n && w->sites.at[k].address - c->address < c->length;
             k++) {
            c->flat = cpprof__add(c->flat, w->sites.at[k].flat);
            c->cum = cpprof__add(c->cum, w->sites.at[k].cum);
        }
    }
}

/* By file, then line, then as they came. */
static int
by_place(const void *x, const void *y, void *ctx)
{
    const struct cpprof__weblist *w = ctx;
    const struct cpprof__shown_code *a = x, *b = y;
    int order = cpprof__strings_compare(&w->names, a->file, b->file);

    if (!order)
        order = (a->line > b->line) - (a->line < b->line);
    if (!order)
        order = (a->code > b->code) - (a->code < b->code);
    return order ? order
                 : (a->n_calls > b->n_calls) - (a->n_calls < b->n_calls);
}

enum cpprof_status
cpprof__weblist_code(struct cpprof__weblist *w)
{
    struct maker m = {.w = w};
    size_t i;

    find_ranges(&m);
    if (m.ranges.n)
        qsort(m.ranges.at, m.ranges.n, sizeof *m.ranges.at, by_score);
    for (i = 0; i < m.ranges.n && i < MOST_RANGES && !m.failed; i++)
        read_range(&m, &m.ranges.at[i]);
    CPPROF__ARRAY_FREE(&m.ranges);
    if (m.failed)
        return cpprof__fail_nomem(w->r->error);
    add_values(w);
    if (w->shown.n)
        qsort_r(w->shown.at, w->shown.n, sizeof *w->shown.at, by_place, w);
    return CPPROF_OK;
}
