/* SPDX-License-Identifier: MIT */
/*
 * Names in front of a legacy profile: the section is read into a table, sorted
 * by address, before the profile itself; once that has been read, each
 * location gets the names of its address.
 *
 * One entry may name several functions, joined by "--": those are inlined into
 * each other, the last one deepest. So they become the lines of one location
 * in the reverse order.
 */
#include "profile/legacy/symbolized.h"

#include "base/status.h"
#include "profile/legacy/numbers.h"
#include "profile/model/make.h"

/* "0x", at most 16 digits and a blank in front, or false. */
static bool
take_address(struct cpprof__text *line, uint64_t *address)
{
    struct cpprof__text digits;

    if (!cpprof__take(line, "0x"))
        return false;
    digits = cpprof__take_while(line, cpprof__is_hex_digit);
    return digits.n <= 16 && !cpprof__parse_uint(digits, 16, address) &&
           line->n && (line->at[0] == ' ' || line->at[0] == '\t');
}

static bool
add_line(struct cpprof__legacy_names *names, struct cpprof__text line)
{
    struct cpprof__legacy_name *added;
    uint64_t address;

    if (cpprof__take(&line, "binary=")) {
        names->binary = cpprof__trim(line);
        return true;
    }
    if (!take_address(&line, &address))
        return true;
    added = CPPROF__ARRAY_ADD(&names->list);
    if (added)
        *added = (struct cpprof__legacy_name){address, cpprof__trim(line)};
    return added != NULL;
}

static int
compare_names(const void *a, const void *b)
{
    const struct cpprof__legacy_name *x = a, *y = b;

    return x->address < y->address ? -1 : x->address > y->address;
}

enum cpprof_status
cpprof__read_names(const char **data, size_t *n,
                   struct cpprof__legacy_names *out, struct cpprof_error *error)
{
    struct cpprof__legacy_lines lines = {*data, *data + *n};
    struct cpprof__text line;
    bool ok = true;

    if (!cpprof__next_line(&lines, &line) ||
        !cpprof__is_text(line, "--- symbol"))
        return CPPROF_OK;
    while (ok && cpprof__next_line(&lines, &line) &&
           !cpprof__is_text(line, "---"))
        ok = add_line(out, line);
    if (!ok)
        return cpprof__fail_nomem(error);
    /* The heading of the profile; contention's is its own as well. */
    if (cpprof__next_line(&lines, &line) && cpprof__begins(line, "--- ")) {
        *n -= (size_t)(lines.next - *data);
        *data = lines.next;
    }
    if (out->list.n)
        qsort(out->list.at, out->list.n, sizeof *out->list.at, compare_names);
    return CPPROF_OK;
}

static const struct cpprof__legacy_name *
find(const struct cpprof__legacy_names *names, uint64_t address)
{
    struct cpprof__legacy_name wanted = {.address = address};

    return names->list.n ? bsearch(&wanted, names->list.at, names->list.n,
                                   sizeof wanted, compare_names)
                         : NULL;
}

/* A line for each name, the last one first: it is inlined deepest. */
static void
add_names(struct cpprof__maker *m, struct cpprof__text names,
          struct pprof_location *l)
{
    const char *end = names.at + names.n, *at = end;

    l->first_line = m->p->lines.n;
    while (!m->failed && end > names.at) {
        while (at > names.at &&
               !(at - names.at >= 2 && at[-1] == '-' && at[-2] == '-'))
            at--;
        if (at < end) {
            uint32_t name = cpprof__make_string(m, at, (size_t)(end - at));

            cpprof__make_line(
                m, (struct pprof_line){
                       .function = cpprof__make_function(m, name, name, 0)});
        }
        at -= at > names.at ? 2 : 0;
        end = at;
    }
    l->n_lines = (uint32_t)(m->p->lines.n - l->first_line);
}

/* The addresses of calls were lowered by one when the names were looked up. Old
 * versions lowered them in the profile as well, so by now that has happened
 * twice. */
static void
name_location(struct cpprof__maker *m, const struct cpprof__legacy_names *names,
              struct pprof_location *l)
{
    const struct cpprof__legacy_name *found = find(names, l->address);

    if (!found)
        found = find(names, l->address + 1);
    if (!found || l->n_lines)
        return;
    if (l->mapping != PPROF_NONE)
        m->p->mappings.at[l->mapping].flags |= PPROF_HAS_FUNCTIONS;
    add_names(m, found->names, l);
}

enum cpprof_status
cpprof__apply_names(const struct cpprof__legacy_names *names,
                    struct pprof_profile *p, struct cpprof_error *error)
{
    struct cpprof__maker m = {.p = p};
    size_t i;

    for (i = 0; i < p->locations.n && !m.failed && names->list.n; i++)
        name_location(&m, names, &p->locations.at[i]);
    if (names->binary.n && p->mappings.n && !p->mappings.at[0].file)
        p->mappings.at[0].file =
            cpprof__make_string(&m, names->binary.at, names->binary.n);
    cpprof__maker_free(&m);
    return m.failed ? cpprof__fail_nomem(error) : CPPROF_OK;
}
