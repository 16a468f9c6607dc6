/* SPDX-License-Identifier: MIT */
/*
 * The last step of reading a legacy profile, as the reference has it: repairs
 * the mappings of writers that split them, leave out the first part of one, or
 * write none.
 *
 * A location belongs to the first mapping, in their order, that it lies in.
 * Mappings may overlap and may be many, so a table answers that question
 * (base/ranges.h).
 *
 * Source: profile.go massageMappings, legacy_profile.go remapMappingIDs.
 */
#include "base/ranges.h"
#include "base/status.h"
#include "own/memory.h"
#include "profile/legacy/maps.h"

#include <string.h>

#define MAIN_START ((uint64_t)0x400000)

/* What making the tables anew may cost, in mappings: a file in which every
 * mapping misses its first part must not take a minute. */
#define WORK_MAX ((size_t)4 << 20)

/* -------------------------------------------------------- the mappings ---- */

static bool
differ(uint64_t a, uint64_t b)
{
    return a && b && a != b;
}

/* Is b the rest of a? What is not known does not differ. */
static bool
are_adjacent(const struct pprof_mapping *a, const struct pprof_mapping *b)
{
    return !differ(a->file, b->file) && !differ(a->build_id, b->build_id) &&
           a->limit == b->start &&
           (!a->offset || !b->offset ||
            a->offset + (a->limit - a->start) == b->offset);
}

static void
join_adjacent(struct pprof_profile *p)
{
    struct pprof_mapping *all = p->mappings.at;
    size_t kept = 0, i;

    for (i = 1; i < p->mappings.n; i++) {
        if (!are_adjacent(&all[kept], &all[i])) {
            all[++kept] = all[i];
            continue;
        }
        all[kept].limit = all[i].limit;
        if (all[i].file)
            all[kept].file = all[i].file;
        if (all[i].build_id)
            all[kept].build_id = all[i].build_id;
    }
    p->mappings.n = p->mappings.n ? kept + 1 : 0;
}

/* A file name without "(deleted)" and the blanks around it, which may leave
 * nothing. Copies into `room`. */
static struct cpprof__text
without_deleted(struct cpprof__text file, char *room)
{
    static const char word[] = "(deleted)";
    struct cpprof__text rest = {room, 0};
    size_t i = 0;

    while (i < file.n) {
        struct cpprof__text left = {file.at + i, file.n - i};

        if (cpprof__begins(left, word))
            i += sizeof word - 1;
        else
            room[rest.n++] = file.at[i++];
    }
    return cpprof__trim(rest);
}

static bool
is_program(struct cpprof__text file, bool *failed)
{
    static struct cpprof__pattern library = {"[.]so(?:$|[._][0-9])", NULL};

    return file.n && file.at[0] != '[' &&
           !cpprof__pattern_find(&library, file, NULL, 0, failed);
}

/* Find the first mapping that may be the program's, or n_mappings if there is
 * none; false when out of memory. */
static bool
find_program(const struct pprof_profile *p, size_t *found)
{
    bool failed = false;
    char *room = NULL;
    size_t i;

    for (i = 0; i < p->mappings.n; i++) {
        uint32_t file = p->mappings.at[i].file;
        struct cpprof__text name = {cpprof__strings_text(&p->strings, file),
                                    cpprof__strings_n(&p->strings, file)};

        cpprof__free(room);
        room = cpprof__malloc(name.n + 1);
        if (!room)
            return false;
        if (is_program(without_deleted(name, room), &failed))
            break;
    }
    cpprof__free(room);
    *found = i;
    return !failed;
}

static void
number_mappings(struct pprof_profile *p)
{
    size_t i;

    for (i = 0; i < p->mappings.n; i++)
        p->mappings.at[i].id = i + 1;
}

enum cpprof_status
cpprof__massage_maps(struct pprof_profile *p, struct cpprof_error *error)
{
    struct pprof_mapping *all = p->mappings.at, program;
    size_t i;

    join_adjacent(p);
    if (!find_program(p, &i))
        return cpprof__fail_nomem(error);
    if (i < p->mappings.n) {
        program = all[i];
        all[i] = all[0];
        all[0] = program;
    }
    number_mappings(p);
    return CPPROF_OK;
}

/* The program's mapping, where its writer moved it to huge pages or gave the
 * start of a section only. */
static void
mend_main(struct pprof_profile *p)
{
    struct pprof_mapping *m = p->mappings.at;
    struct cpprof__text file;

    if (!p->mappings.n)
        return;
    file.at = cpprof__strings_text(&p->strings, m->file);
    file.n = cpprof__strings_n(&p->strings, m->file);
    if (cpprof__begins(file, "/anon_hugepage") && p->mappings.n > 1 &&
        m[0].limit == m[1].start)
        memmove(m, m + 1, --p->mappings.n * sizeof *m);
    if (m->start - m->offset == MAIN_START) {
        m->start = MAIN_START;
        m->offset = 0;
    }
}

/* ------------------------------------------------ the locations' mapping ----
 */

struct remapping {
    struct pprof_profile *p;
    struct cpprof__ranges inside; /* value: mapping; what was written of it */
    struct cpprof__ranges before; /* what its offset says lies in front */
    size_t work;
    uint32_t fake; /* mapping of addresses that lie in none */
};

/* Of several mappings the first one has an address: the highest rank. */
static bool
make_ranges(struct remapping *r)
{
    size_t i;

    r->work += r->p->mappings.n;
    cpprof__ranges_free(&r->inside);
    cpprof__ranges_free(&r->before);
    for (i = 0; i < r->p->mappings.n; i++) {
        const struct pprof_mapping *m = &r->p->mappings.at[i];
        uint32_t at = (uint32_t)i, rank = UINT32_MAX - at;

        cpprof__ranges_add(
            &r->inside, (struct cpprof__range){m->start, m->limit, at, rank});
        if (m->offset <= m->start)
            cpprof__ranges_add(&r->before,
                               (struct cpprof__range){m->start - m->offset,
                                                      m->start, at, rank});
    }
    return cpprof__ranges_seal(&r->inside) && cpprof__ranges_seal(&r->before);
}

static uint32_t
owner_of(const struct cpprof__ranges *r, uint64_t address)
{
    const struct cpprof__range *range = cpprof__ranges_find(r, address);

    return range ? range->value : PPROF_NONE;
}

/* The address lies in the part of a mapping that was not written. */
static bool
extend(struct remapping *r, uint32_t mapping)
{
    struct pprof_mapping *m = &r->p->mappings.at[mapping];

    m->start -= m->offset;
    m->offset = 0;
    return make_ranges(r);
}

static bool
add_fake(struct remapping *r)
{
    struct pprof_mapping *m;

    if (r->fake != PPROF_NONE)
        return true;
    m = CPPROF__ARRAY_ADD(&r->p->mappings);
    if (!m)
        return false;
    memset(m, 0, sizeof *m);
    m->limit = UINT64_MAX;
    r->fake = (uint32_t)r->p->mappings.n - 1;
    return true;
}

static bool
find_mapping(struct remapping *r, struct pprof_location *l)
{
    uint32_t found = owner_of(&r->inside, l->address);

    /* All locations without a mapping share one that is made up. */
    if (found == PPROF_NONE && r->fake == PPROF_NONE && r->work < WORK_MAX) {
        found = owner_of(&r->before, l->address);
        if (found != PPROF_NONE && !extend(r, found))
            return false;
    }
    if (found == PPROF_NONE) {
        if (!add_fake(r))
            return false;
        found = r->fake;
    }
    l->mapping = found;
    return true;
}

static bool
find_mappings(struct pprof_profile *p)
{
    struct remapping r = {.p = p, .fake = PPROF_NONE};
    size_t i;
    bool ok;

    ok = make_ranges(&r);
    for (i = 0; i < p->locations.n && ok; i++) {
        struct pprof_location *l = &p->locations.at[i];

        if (l->mapping == PPROF_NONE && l->address)
            ok = find_mapping(&r, l);
    }
    cpprof__ranges_free(&r.inside);
    cpprof__ranges_free(&r.before);
    number_mappings(p);
    return ok;
}

/* --------------------------------------------------- order of first use ----
 */

/* The new numbers of the elements of a table. */
struct order {
    uint32_t *number; /* PPROF_NONE: not used so far */
    size_t n;
    uint32_t used;
};

static bool
order_make(struct order *o, size_t n)
{
    o->number = cpprof__malloc((n + 1) * sizeof *o->number);
    o->n = n;
    o->used = 0;
    if (o->number)
        memset(o->number, 0xff, n * sizeof *o->number);
    return o->number != NULL;
}

static uint32_t
number_of(struct order *o, uint32_t old)
{
    if (o->number[old] == PPROF_NONE)
        o->number[old] = o->used++;
    return o->number[old];
}

static bool
is_identity(const struct order *o)
{
    size_t i = 0;

    while (i < o->n && o->number[i] == i)
        i++;
    return i == o->n;
}

/* Bring a table into the order; its elements begin with their id. */
static bool
rearrange(const struct order *o, void **table, size_t *n, size_t *capacity,
          size_t stride)
{
    char *from = *table, *to;
    size_t i;

    *n = o->used;
    if (!is_identity(o)) {
        to = cpprof__malloc((o->used + (size_t)1) * stride);
        if (!to)
            return false;
        for (i = 0; i < o->n; i++)
            if (o->number[i] != PPROF_NONE)
                memcpy(to + o->number[i] * stride, from + i * stride, stride);
        cpprof__free(from);
        *table = to;
        *capacity = o->used + (size_t)1;
    }
    for (i = 0; i < o->used; i++) {
        uint64_t id = i + 1;

        memcpy((char *)*table + i * stride, &id, sizeof id);
    }
    return true;
}

#define REARRANGE(o, table)                                                    \
    rearrange(o, (void **)&(table)->at, &(table)->n, &(table)->capacity,       \
              sizeof *(table)->at)

static bool
order_locations(struct pprof_profile *p)
{
    struct order o;
    size_t i, j;
    bool ok;

    if (!order_make(&o, p->locations.n))
        return false;
    for (i = 0; i < p->samples.n; i++) {
        const struct cpprof__sample *s = &p->samples.at[i];
        uint32_t *frames = p->frames.at + s->first_frame;

        for (j = 0; j < s->n_frames; j++)
            frames[j] = number_of(&o, frames[j]);
    }
    ok = REARRANGE(&o, &p->locations);
    cpprof__free(o.number);
    return ok;
}

static bool
order_functions(struct pprof_profile *p)
{
    struct order o;
    size_t i, j;
    bool ok;

    if (!order_make(&o, p->functions.n))
        return false;
    for (i = 0; i < p->locations.n; i++) {
        const struct pprof_location *l = &p->locations.at[i];

        for (j = 0; j < l->n_lines; j++) {
            uint32_t *function = &p->lines.at[l->first_line + j].function;

            *function = number_of(&o, *function);
        }
    }
    ok = REARRANGE(&o, &p->functions);
    cpprof__free(o.number);
    return ok;
}

enum cpprof_status
cpprof__remap(struct pprof_profile *p, struct cpprof_error *error)
{
    if (!order_locations(p) || !order_functions(p))
        return cpprof__fail_nomem(error);
    mend_main(p);
    if (!find_mappings(p))
        return cpprof__fail_nomem(error);
    return CPPROF_OK;
}
