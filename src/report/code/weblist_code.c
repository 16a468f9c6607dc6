/* SPDX-License-Identifier: MIT */
/*
 * The instructions around the sites that are asked for, and the lines they are
 * shown under. Source: internal/report/source.go expandAddresses,
 * splitIntoRanges, addStack, handleUnprocessed, initSamples.
 */
#include "own/memory.h"
#include "report/code/weblist.h"

#include "base/status.h"
#include "profile/model/path.h"
#include "symbolize/image.h"
#include "symbolize/lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes around a site that are disassembled, and sites that are nearer to each
 * other than twice that are one range. */
#define AROUND 500
/* Only so many ranges are shown, those with the most value. */
#define MOST_RANGES 25
/* An instruction of a function but without a line has that of one not farther
 * before it. Padding between functions belongs to none. */
#define NEAR_BYTES 32
/* Inlined calls that are shown above an instruction, the outermost ones; and
 * above all of them. Real chains are shorter than 30; a profile may claim any
 * length, and each of its frames shows all that are outside of it. */
#define MOST_CALLS     100
#define MOST_ALL_CALLS (512 * 1024)

struct range {
    uint64_t begin, end; /* in the process */
    uint64_t base;       /* minus this: in the binary */
    uint32_t mapping;
    int64_t score;
};

/* A function that an instruction is in; texts are of w->names. */
struct frame {
    uint32_t function, file;
    int64_t line;
    bool wanted;
};

/* The file of a mapping. */
struct binary {
    bool is_tried, is_open;
    struct cpprof__image image;
    size_t number; /* for looking up */
};

struct maker {
    struct cpprof__weblist *w;
    CPPROF__ARRAY(struct range) ranges;
    struct binary *binaries; /* one per mapping */
    struct cpprof__objdump objdump;
    struct cpprof__lookup lookup;
    struct cpprof__frame found[CPPROF__LOOKUP_FRAMES];

    /* Functions of this instruction, and of the last one that has a line. */
    struct frame frames[2][CPPROF__LOOKUP_FRAMES];
    unsigned last; /* which of them */
    size_t n_last;
    uint64_t last_address;
    bool few_calls; /* some were left out */
    bool failed;    /* out of memory */
};

/* --------------------------------------------------------------- lines -- */

static uint32_t
intern(struct maker *m, const char *text, size_t n)
{
    uint32_t at = cpprof__strings_add(&m->w->names, n ? text : "", n);

    m->failed |= at == CPPROF__NO_STRING;
    return m->failed ? 0 : at;
}

/* A file name without the detours that some builds leave in it. */
static uint32_t
intern_clean(struct maker *m, uint32_t file)
{
    static const char *const fronts[] = {"/proc/self/cwd/", "./"};
    const char *text = cpprof__strings_text(&m->w->names, file);
    struct cpprof__buffer clean = {0};
    uint32_t at = 0;
    size_t i;

    for (i = 0; i < 2; i++)
        if (strncmp(text, fronts[i], strlen(fronts[i])) == 0)
            text += strlen(fronts[i]);
    cpprof__path_clean(text, strlen(text), &clean);
    if (!clean.failed)
        at = intern(m, (char *)clean.data, clean.n);
    m->failed |= clean.failed;
    cpprof__buffer_free(&clean);
    return at;
}

static bool
is_wanted(const struct cpprof__weblist *w, const char *function)
{
    return cpprof__strings_find(&w->wanted, function, strlen(function)) !=
           CPPROF__NO_STRING;
}

/* Show the last instruction under all functions it is in that are wanted. */
static void
show(struct maker *m, const struct frame *frames, size_t n)
{
    struct cpprof__weblist *w = m->w;
    size_t i, j, n_calls;

    for (i = 0; i < n && !m->failed; i++) {
        struct cpprof__shown_code *slot;

        if (!frames[i].wanted)
            continue;
        n_calls = i < MOST_CALLS ? i : MOST_CALLS;
        if (n_calls > MOST_ALL_CALLS - w->calls.n)
            n_calls = 0;
        m->few_calls |= n_calls < i;
        if (!CPPROF__ARRAY_ROOM(&w->calls, n_calls) ||
            !(slot = CPPROF__ARRAY_ADD(&w->shown))) {
            m->failed = true;
            return;
        }
        *slot = (struct cpprof__shown_code){
            .file = intern_clean(m, frames[i].file),
            .function = frames[i].function,
            .line = frames[i].line,
            .is_nowhere = !frames[i].file || !frames[i].line,
            .code = w->codes.n - 1,
            .first_call = w->calls.n,
            .n_calls = n_calls};
        for (j = i; j-- > i - n_calls;)
            w->calls.at[w->calls.n++] =
                (struct cpprof__call_site){frames[j].file, frames[j].line};
    }
}

static struct cpprof__code *
add_code(struct maker *m, const struct frame *frames, size_t n)
{
    struct cpprof__code *code = CPPROF__ARRAY_ADD(&m->w->codes);

    if (!code) {
        m->failed = true;
        return NULL;
    }
    memset(code, 0, sizeof *code);
    if (n) {
        code->file = frames->file;
        code->line = frames->line;
    }
    return code;
}

/* -------------------------------------------------------- no binary ---- */

/* A site whose binary is missing is shown with what the profile says. */
static void
add_site(struct maker *m, const struct cpprof__site *site)
{
    const struct pprof_profile *p = m->w->r->p;
    const struct pprof_location *l = &p->locations.at[site->location];
    struct frame *frames = cpprof__calloc(l->n_lines + 1, sizeof *frames);
    struct cpprof__code *code;
    uint32_t i;

    for (i = 0; frames && i < l->n_lines; i++) {
        const struct pprof_line *line = &p->lines.at[l->first_line + i];
        const struct pprof_function *f = &p->functions.at[line->function];
        const char *name = cpprof__strings_text(&p->strings, f->name);
        const char *file = cpprof__strings_text(&p->strings, f->file);

        frames[i].function = intern(m, name, strlen(name));
        frames[i].file = intern(m, file, strlen(file));
        frames[i].line = line->line;
        frames[i].wanted = is_wanted(m->w, name);
    }
    m->failed |= !frames;
    code = m->failed ? NULL : add_code(m, frames, l->n_lines);
    if (code) {
        code->address = code->object_address = site->address;
        code->length = 1;
        show(m, frames, l->n_lines);
    }
    cpprof__free(frames);
}

/* ------------------------------------------------------------- ranges -- */

/* The file of a mapping; NULL when it cannot be read. */
static struct binary *
open_binary(struct maker *m, uint32_t mapping)
{
    const struct pprof_profile *p = m->w->r->p;
    const char *path =
        cpprof__strings_text(&p->strings, p->mappings.at[mapping].file);
    struct binary *b = &m->binaries[mapping];
    enum cpprof_status status;
    bool nomem;

    if (b->is_tried)
        return b->is_open ? b : NULL;
    b->is_tried = true;
    status = cpprof__image_open(&b->image, path, NULL);
    b->is_open = status == CPPROF_OK;
    m->failed |= status == CPPROF_NOMEM;
    if (!b->is_open)
        return NULL;
    b->number =
        cpprof__lookup_binary(&m->lookup, path, b->image.build_id, &nomem);
    m->failed |= nomem;
    return b;
}

/* Find the base: an address near the site, minus the base, is an address in its
 * binary. False if the binary cannot be read. */
static bool
find_base(struct maker *m, const struct cpprof__site *site, uint32_t mapping,
          uint64_t *base)
{
    const struct pprof_mapping *map;
    const struct binary *binary;
    struct cpprof__mapped_range range;
    uint64_t address;

    if (mapping == PPROF_NONE)
        return false;
    map = &m->w->r->p->mappings.at[mapping];
    range = (struct cpprof__mapped_range){map->start, map->limit, map->offset};
    if (site->address < map->start || site->address >= map->limit)
        return false;
    binary = open_binary(m, mapping);
    if (!binary ||
        !cpprof__image_address(&binary->image, &range, site->address, &address))
        return false;
    *base = site->address - address;
    return true;
}

/* The range of the wanted site at `first`, with all that are near; returns the
 * index behind them. */
static size_t
add_range(struct maker *m, size_t first, uint32_t mapping, uint64_t base)
{
    const struct cpprof__site *sites = m->w->sites.at;
    const struct pprof_mapping *map = &m->w->r->p->mappings.at[mapping];
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

/* The functions of an instruction. Where the library cannot be loaded, objdump
 * knows one. */
static size_t
find_frames(struct maker *m, const struct range *r,
            const struct cpprof__instruction *in, struct frame *frames)
{
    const struct cpprof__strings *strings = &m->w->r->p->strings;
    size_t n, i;

    if (m->lookup.no_library) {
        struct cpprof__text f = in->function;

        frames->function = intern(m, f.at, f.n);
        frames->file = intern(m, in->file.at, in->file.n);
        frames->line = in->line;
        frames->wanted = cpprof__strings_find(&m->w->wanted, f.n ? f.at : "",
                                              f.n) != CPPROF__NO_STRING;
        return 1;
    }
    n = cpprof__lookup_frames(&m->lookup, m->binaries[r->mapping].number,
                              in->address, m->found);
    for (i = 0; i < n; i++) {
        const struct cpprof__frame *f = &m->found[i];
        const char *name = f->name;
        uint32_t at = cpprof__strings_find(strings, f->system_name,
                                           strlen(f->system_name));

        /* As it stands in the profile. */
        if (at != CPPROF__NO_STRING && m->w->pretty[at] != CPPROF__NO_STRING)
            name = cpprof__strings_text(strings, m->w->pretty[at]);
        frames[i].function = intern(m, name, strlen(name));
        frames[i].file = f->file ? intern(m, f->file, strlen(f->file)) : 0;
        frames[i].line = f->line;
        frames[i].wanted =
            is_wanted(m->w, f->system_name) || is_wanted(m->w, f->name);
    }
    return n;
}

static void
add_instruction(struct maker *m, const struct range *r,
                const struct cpprof__instruction *in, uint64_t next)
{
    struct cpprof__weblist *w = m->w;
    struct frame *frames = m->frames[!m->last];
    size_t n = find_frames(m, r, in, frames);
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
        m->last = !m->last;
        m->n_last = n;
        m->last_address = code->address;
    } else if (n && m->n_last &&
               code->address - m->last_address <= NEAR_BYTES) {
        frames = m->frames[m->last];
        n = m->n_last;
    }
    show(m, frames, n);
}

static void
add_instructions(struct maker *m, const struct range *r,
                 const struct cpprof__disassembly *d)
{
    uint64_t most = 0;
    size_t i;

    m->n_last = 0;
    for (i = 0; i < d->at.n && !m->failed; i++) {
        const struct cpprof__instruction *in = &d->at.at[i];

        if (in->address + r->base <= most)
            continue;
        most = in->address + r->base;
        add_instruction(m, r, in, i + 1 < d->at.n ? in[1].address : 0);
    }
}

static void
warn(const struct maker *m, const char *text)
{
    const struct pprof_report_options *o = m->w->r->options;

    if (o->warn)
        o->warn(o->ctx, text);
}

/* A range that cannot be disassembled is left out, as in the reference, but
 * told of. */
static void
read_range(struct maker *m, const struct range *r)
{
    const struct pprof_report_options *o = m->w->r->options;
    const struct pprof_profile *p = m->w->r->p;
    struct cpprof__disassemble what = {
        .objdump = &m->objdump,
        .tools = o->tools,
        .path =
            cpprof__strings_text(&p->strings, p->mappings.at[r->mapping].file),
        .begin = r->begin - r->base,
        .end = r->end - r->base,
        .intel_syntax = o->flags & PPROF_REPORT_INTEL_SYNTAX,
    };
    struct cpprof__disassembly d = {0};
    struct cpprof_error error = {0};
    enum cpprof_status status = cpprof__disassemble(&d, &what, &error);

    if (status == CPPROF_OK)
        add_instructions(m, r, &d);
    else if (status == CPPROF_NOMEM)
        m->failed = true;
    else
        warn(m, error.text);
    cpprof__disassembly_free(&d);
}

static void
read_ranges(struct maker *m)
{
    char text[96];
    size_t i;

    if (m->ranges.n)
        qsort(m->ranges.at, m->ranges.n, sizeof *m->ranges.at, by_score);
    if (m->ranges.n > MOST_RANGES) {
        snprintf(text, sizeof text,
                 "only %d of %zu pieces of code are shown, those with the most "
                 "samples",
                 MOST_RANGES, m->ranges.n);
        warn(m, text);
    }
    for (i = 0; i < m->ranges.n && i < MOST_RANGES && !m->failed; i++)
        read_range(m, &m->ranges.at[i]);
}

/* ------------------------------------------------------------- values -- */

/* Samples in the middle of an instruction are its own. */
static void
add_values(struct cpprof__weblist *w)
{
    size_t i, k, high;

    for (i = 0; i < w->codes.n; i++) {
        struct cpprof__code *c = &w->codes.at[i];

        /* k becomes the first site that is not before the instruction. */
        for (k = 0, high = w->sites.n; k < high;) {
            size_t middle = k + (high - k) / 2;

            if (w->sites.at[middle].address < c->address)
                k = middle + 1;
            else
                high = middle;
        }
        for (;
             k < w->sites.n && w->sites.at[k].address - c->address < c->length;
             k++) {
            c->flat = cpprof__add(c->flat, w->sites.at[k].flat);
            c->cum = cpprof__add(c->cum, w->sites.at[k].cum);
        }
    }
}

/* By file, then line, then as they came; what is nowhere by its function before
 * that. */
static int
by_position(const void *x, const void *y, void *ctx)
{
    const struct cpprof__weblist *w = ctx;
    const struct cpprof__shown_code *a = x, *b = y;
    int order = cpprof__strings_compare(&w->names, a->file, b->file);

    if (!order)
        order = (a->line > b->line) - (a->line < b->line);
    if (!order)
        order = a->is_nowhere - b->is_nowhere;
    if (!order && a->is_nowhere)
        order = cpprof__strings_compare(&w->names, a->function, b->function);
    if (!order)
        order = (a->code > b->code) - (a->code < b->code);
    return order ? order
                 : (a->n_calls > b->n_calls) - (a->n_calls < b->n_calls);
}

enum cpprof_status
cpprof__weblist_code(struct cpprof__weblist *w)
{
    struct maker *m = cpprof__calloc(1, sizeof *m);
    size_t n = w->r->p->mappings.n, i;
    bool failed;

    if (!m)
        return cpprof__fail_nomem(w->r->error);
    m->w = w;
    m->binaries = cpprof__calloc(n + 1, sizeof *m->binaries);
    m->failed = !m->binaries;
    if (!m->failed)
        find_ranges(m);
    if (!m->failed)
        read_ranges(m);
    if (m->few_calls)
        warn(m, "some chains of inlined calls are too long: their "
                "innermost calls are not shown");
    failed = m->failed;
    for (i = 0; m->binaries && i < n; i++)
        cpprof__image_close(&m->binaries[i].image);
    cpprof__free(m->binaries);
    CPPROF__ARRAY_FREE(&m->ranges);
    cpprof__objdump_free(&m->objdump);
    cpprof__lookup_free(&m->lookup);
    cpprof__free(m);
    if (failed)
        return cpprof__fail_nomem(w->r->error);
    add_values(w);
    if (w->shown.n)
        qsort_r(w->shown.at, w->shown.n, sizeof *w->shown.at, by_position, w);
    return CPPROF_OK;
}
