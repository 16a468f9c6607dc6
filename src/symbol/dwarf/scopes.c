/* SPDX-License-Identifier: MIT */
/*
 * Finds the scopes of a function. One walk over all DIEs of a unit notes where
 * each scope begins and ends in the section. Which scopes an offset lies in is
 * then a lookup of ranges.
 */
#include "symbol/dwarf/scopes.h"

#include "own/memory.h"
#include "symbol/elf/array.h"

#include <dwarf.h>
#include <string.h>

#define DEEPEST 200

/* Scopes that are written before a name; more are left out. */
#define MOST_NAMES 32

static bool
is_scope(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
           tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
           tag == DW_TAG_subprogram || tag == DW_TAG_module;
}

/*
 * A scope and what stands before it. A function with a linkage name has its own
 * scopes in that. The unnamed classes inside of functions are lambdas, save for
 * a few.
 */
static struct cpprof__scope
describe(Dwarf_Die *die, uint32_t parent)
{
    int tag = dwarf_tag(die);
    const char *name = dwarf_diename(die);
    Dwarf_Attribute attribute;
    const char *linkage;

    if (!name && tag == DW_TAG_namespace)
        name = "(anonymous namespace)";
    else if (!name && tag != DW_TAG_subprogram)
        name = parent == UINT32_MAX ? "{unnamed}" : "{lambda}";
    linkage = tag == DW_TAG_subprogram
                  ? dwarf_formstring(dwarf_attr_integrate(
                        die, DW_AT_linkage_name, &attribute))
                  : NULL;
    if (linkage)
        return (struct cpprof__scope){linkage, UINT32_MAX, true};
    return (struct cpprof__scope){name, parent, false};
}

static uint32_t
add_scope(struct cpprof__unit_scopes *unit, Dwarf_Die *die, uint32_t parent)
{
    struct cpprof__scope scope = describe(die, parent);

    if (!scope.name || !CPPROF__BOUNDED_ROOM(&unit->items))
        return parent;
    unit->items.at[unit->items.n] = scope;
    return (uint32_t)unit->items.n++;
}

/* Most functions hold no scope: those are forgotten again. */
static void
keep_scope(struct cpprof__unit_scopes *unit, int tag,
           struct cpprof__range range)
{
    if (tag == DW_TAG_subprogram && range.value + 1 == unit->items.n)
        unit->items.n--;
    else
        cpprof__ranges_add(&unit->ranges, range);
}

/* The children of parent, whose own range ends before limit. */
static void
walk(struct cpprof__unit_scopes *unit, Dwarf_Die *parent, uint32_t number,
     uint64_t limit, uint32_t depth)
{
    Dwarf_Die die;
    Dwarf_Die next;
    bool is_last;

    if (depth > DEEPEST || dwarf_child(parent, &die) != 0)
        return;
    do {
        Dwarf_Off start = dwarf_dieoffset(&die);
        Dwarf_Off end = limit;
        uint32_t inner = number;

        is_last = dwarf_siblingof(&die, &next) != 0 ||
                  dwarf_dieoffset(&next) <= start;
        if (!is_last)
            end = dwarf_dieoffset(&next);
        if (dwarf_haschildren(&die) > 0) {
            int tag = dwarf_tag(&die);

            if (is_scope(tag))
                inner = add_scope(unit, &die, number);
            walk(unit, &die, inner, end, depth + 1);
            if (inner != number)
                keep_scope(unit, tag,
                           (struct cpprof__range){start, end, inner, depth});
        }
        if (!is_last)
            die = next;
    } while (!is_last);
}

struct key {
    const struct cpprof__scopes *scopes;
    const Dwarf_CU *unit;
};

static bool
is_unit(void *ctx, uint32_t value)
{
    const struct key *key = ctx;

    return key->scopes->units.at[value].unit == key->unit;
}

static struct cpprof__unit_scopes *
add_unit(struct cpprof__scopes *scopes, Dwarf_CU *unit, uint64_t hash)
{
    struct cpprof__unit_scopes *added;
    Dwarf_Die die;

    if (!CPPROF__BOUNDED_ROOM(&scopes->units) ||
        !cpprof__index_add(&scopes->index, hash, (uint32_t)scopes->units.n))
        return NULL;
    added = &scopes->units.at[scopes->units.n++];
    *added = (struct cpprof__unit_scopes){.unit = unit};
    if (dwarf_cu_info(unit, NULL, NULL, &die, NULL, NULL, NULL, NULL) == 0)
        walk(added, &die, UINT32_MAX, UINT64_MAX, 0);
    if (!cpprof__ranges_seal(&added->ranges))
        added->items.n = 0;
    return added;
}

static struct cpprof__unit_scopes *
find_or_add_unit(struct cpprof__scopes *scopes, Dwarf_CU *unit)
{
    struct key key = {scopes, unit};
    uint64_t hash = cpprof__hash_u64((uintptr_t)unit);
    uint32_t value = cpprof__index_find(&scopes->index, hash, is_unit, &key);

    return value != CPPROF__INDEX_NONE ? &scopes->units.at[value]
                                       : add_unit(scopes, unit, hash);
}

/* Go from die to the one that declares its function. */
static void
find_declaration(Dwarf_Die *die)
{
    static const unsigned int links[] = {DW_AT_abstract_origin,
                                         DW_AT_specification};
    Dwarf_Attribute attribute;
    size_t i;

    for (i = 0; i < sizeof links / sizeof *links; i++)
        if (dwarf_attr(die, links[i], &attribute))
            dwarf_formref_die(&attribute, die);
}

static void
append(struct cpprof__buffer *text, const char *name)
{
    if (text->n)
        cpprof__buffer_append(text, "::", 2);
    cpprof__buffer_append(text, name, strlen(name));
}

static void
append_scope(struct cpprof__buffer *text, struct cpprof__names *names,
             const struct cpprof__scope *scope)
{
    const char *name = scope->name;

    if (scope->is_linkage)
        name = cpprof__names_demangle(names, name, strlen(name));
    if (name)
        append(text, name);
}

static void
append_scopes(const struct cpprof__unit_scopes *unit, Dwarf_Off offset,
              struct cpprof__names *names, struct cpprof__buffer *text)
{
    const struct cpprof__range *range =
        cpprof__ranges_find(&unit->ranges, offset);
    uint32_t at = range ? range->value : UINT32_MAX;
    const struct cpprof__scope *chain[MOST_NAMES];
    size_t n = 0;

    /* The scope of a function that is one itself is not its own. */
    if (range && range->start == offset)
        at = unit->items.at[at].parent;
    for (; at < unit->items.n && n < MOST_NAMES; at = unit->items.at[at].parent)
        chain[n++] = &unit->items.at[at];
    while (n > 0)
        append_scope(text, names, chain[--n]);
}

const char *
cpprof__scopes_qualify(struct cpprof__scopes *scopes,
                       struct cpprof__names *names, Dwarf_Die *die,
                       const char *name)
{
    struct cpprof__unit_scopes *unit;
    struct cpprof__buffer text = {0};
    Dwarf_Die declaration = *die;
    const char *qualified = NULL;

    find_declaration(&declaration);
    unit = find_or_add_unit(scopes, declaration.cu);
    if (unit)
        append_scopes(unit, dwarf_dieoffset(&declaration), names, &text);
    append(&text, name);
    if (!text.failed)
        qualified = cpprof__names_add(names, (char *)text.data, text.n);
    cpprof__buffer_free(&text);
    return qualified;
}

void
cpprof__scopes_free(struct cpprof__scopes *scopes)
{
    size_t i;

    for (i = 0; i < scopes->units.n; i++) {
        cpprof__ranges_free(&scopes->units.at[i].ranges);
        cpprof__free(scopes->units.at[i].items.at);
    }
    cpprof__free(scopes->units.at);
    cpprof__index_free(&scopes->index);
    memset(scopes, 0, sizeof *scopes);
}
