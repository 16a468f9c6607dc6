/* SPDX-License-Identifier: MIT */
/*
 * The table of function symbols of an image: gathered from one or more symbol
 * sections, sorted by address, and sealed into ranges that do not overlap.
 *
 * Several symbols often share an address. The one that users know is preferred:
 * with a type before without, not local, with fewer leading underscores, of the
 * default version, global before weak, and then the shorter name.
 *
 * Where it is known which addresses will be asked for, and each has a symbol
 * with a size, only the symbols that share bytes with these are gathered.
 * Within them the table is as it would be with all, since a symbol with a size
 * goes before those without; who asks for another address gets the whole table.
 *
 * Invariants: after cpprof__symbols_seal() every address belongs to at most one
 * range, and no range reaches beyond its section.
 */
#include "symbol/elf/symbols.h"

#include "own/memory.h"
#include "own/sort.h"
#include "symbol/elf/array.h"

#include <stdlib.h>
#include <string.h>

void
cpprof__symbols_free(struct cpprof__symbols *symbols)
{
    cpprof__free(symbols->items.at);
    cpprof__free(symbols->resolvers.at);
    cpprof__free(symbols->names);
    cpprof__ranges_free(&symbols->ranges);
    cpprof__ranges_free(&symbols->known);
    memset(symbols, 0, sizeof *symbols);
}

/* Labels for the assembler and, on ARM, for the disassembler ("$x"). */
static bool
is_label(const char *name)
{
    return !*name || *name == '$' || strncmp(name, ".L", 2) == 0;
}

/* Of an older version, kept for programs that were linked long ago: "@" in
 * the names of a .symtab, where "@@" is the default one. */
static bool
is_old_version(const char *name)
{
    const char *at = strchr(name, '@');

    return at && at > name && at[1] != '@';
}

/* Leading underscores; many for "__GI_NAME", by which libc calls its own. */
static uint32_t
count_underscores(const char *name)
{
    size_t n = strspn(name, "_");

    return n < 3 && strncmp(name, "__GI_", 5) != 0 ? (uint32_t)n : 3;
}

static uint32_t
preference_of(const GElf_Sym *symbol, const char *name, bool is_old)
{
    uint32_t type = GELF_ST_TYPE(symbol->st_info);
    uint32_t binding = GELF_ST_BIND(symbol->st_info);

    return (uint32_t)(type != STT_NOTYPE) << 5 |
           (uint32_t)(binding != STB_LOCAL) << 4 |
           (3 - count_underscores(name)) << 2 | (uint32_t)!is_old << 1 |
           (uint32_t)(binding == STB_GLOBAL);
}

static bool
is_function(const GElf_Sym *symbol)
{
    uint32_t type = GELF_ST_TYPE(symbol->st_info);

    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
           (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

/* A section full of symbols, opened. */
struct source {
    Elf *elf;
    Elf_Data *data;
    size_t n;           /* symbols */
    size_t names;       /* section of their names */
    Elf_Data *versions; /* SHT_GNU_versym, or NULL */
    bool is_whole;      /* lists all functions, not only exported ones */
    const struct cpprof__ranges *code;
};

/* The version of symbol number i is hidden: not the default one. */
static bool
is_hidden(const struct source *source, size_t i)
{
    GElf_Versym version;

    return source->versions &&
           gelf_getversym(source->versions, (int)i, &version) &&
           version & 0x8000;
}

/* The name of a symbol that belongs into the table; NULL: it does not. */
static const char *
name_of(const struct source *source, const GElf_Sym *symbol)
{
    const char *name =
        is_function(symbol) &&
                cpprof__ranges_find(source->code, symbol->st_value)
            ? elf_strptr(source->elf, source->names, symbol->st_name)
            : NULL;

    return name && !is_label(name) ? name : NULL;
}

static void
add_symbol(struct cpprof__symbols *symbols, const struct source *source,
           const GElf_Sym *symbol, size_t i)
{
    const char *name = name_of(source, symbol);
    bool is_old;

    if (!name || !CPPROF__ARRAY_ROOM(&symbols->items, 1))
        return;
    if (GELF_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC &&
        CPPROF__BOUNDED_ROOM(&symbols->resolvers))
        symbols->resolvers.at[symbols->resolvers.n++] =
            (struct cpprof__resolver){symbol->st_value, symbol->st_size};
    is_old = is_old_version(name) || is_hidden(source, i);
    symbols->items.at[symbols->items.n++] = (struct cpprof__symbol){
        symbol->st_value, symbol->st_size, name,
        preference_of(symbol, name, is_old), source->is_whole};
}

/* The first section of a type, or NULL. */
static Elf_Data *
find_data(Elf *elf, uint32_t type, GElf_Shdr *header)
{
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(elf, section)))
        if (gelf_getshdr(section, header) && header->sh_type == type)
            return elf_getdata(section, NULL);
    return NULL;
}

static bool
open_source(struct source *source, Elf *elf, uint32_t type)
{
    GElf_Shdr header = {0};

    source->elf = elf;
    if (type == SHT_DYNSYM)
        source->versions = find_data(elf, SHT_GNU_versym, &header);
    source->data = find_data(elf, type, &header);
    source->names = header.sh_link;
    if (!source->data || !source->data->d_buf)
        return false;
    source->n =
        source->data->d_size / gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
    if (source->n > INT32_MAX)
        source->n = INT32_MAX;
    return true;
}

/* ---- as many as are needed --------------------------------------------- */

/* A symbol with a size, cut off where its section ends; empty: none. */
static struct cpprof__range
extent_of(const struct source *source, const GElf_Sym *symbol)
{
    const struct cpprof__range *section =
        cpprof__ranges_find(source->code, symbol->st_value);
    uint64_t room = section ? section->limit - symbol->st_value : 0;

    return (struct cpprof__range){
        symbol->st_value,
        symbol->st_value + (symbol->st_size < room ? symbol->st_size : room), 0,
        0};
}

/* Where the symbols of the wanted addresses are. False: one has none that says
 * where it ends. */
static bool
find_known(struct cpprof__symbols *symbols, const struct source *source)
{
    const struct cpprof__wanted *wanted = symbols->wanted;
    GElf_Sym symbol;
    size_t i, at;

    for (i = 0; i < source->n; i++) {
        if (!gelf_getsym(source->data, (int)i, &symbol) || !symbol.st_size)
            continue;
        at = cpprof__wanted_from(wanted, symbol.st_value);
        if (at < wanted->n &&
            wanted->at[at] - symbol.st_value < symbol.st_size &&
            name_of(source, &symbol))
            cpprof__ranges_add(&symbols->known, extent_of(source, &symbol));
    }
    if (!cpprof__ranges_seal(&symbols->known))
        return false;
    for (i = 0; i < wanted->n; i++)
        if (!cpprof__ranges_find(&symbols->known, wanted->at[i]))
            return false;
    return true;
}

/* Add those that lie where the table is to be as the whole one. False: one lies
 * only partly there. */
static bool
add_known(struct cpprof__symbols *symbols, const struct source *source)
{
    GElf_Sym symbol;
    size_t i;

    for (i = 0; i < source->n; i++) {
        const struct cpprof__range *above, *at;
        struct cpprof__range extent;

        if (!gelf_getsym(source->data, (int)i, &symbol))
            continue;
        above = cpprof__ranges_above(&symbols->known, symbol.st_value);
        at = cpprof__ranges_find(&symbols->known, symbol.st_value);
        if (!at && (!above || symbol.st_size <= above->start - symbol.st_value))
            continue;
        extent = extent_of(source, &symbol);
        if (at ? extent.limit > at->limit : extent.limit > above->start)
            return false;
        add_symbol(symbols, source, &symbol, i);
    }
    return true;
}

static bool
add_all(struct cpprof__symbols *symbols, const struct source *source)
{
    GElf_Sym symbol;
    size_t i;

    if (!CPPROF__ARRAY_ROOM(&symbols->items, source->n))
        return false;
    for (i = 0; i < source->n; i++)
        if (gelf_getsym(source->data, (int)i, &symbol))
            add_symbol(symbols, source, &symbol, i);
    return true;
}

bool
cpprof__symbols_add(struct cpprof__symbols *symbols,
                    const struct cpprof__elf_file *file, uint32_t type,
                    const struct cpprof__ranges *code)
{
    struct source source = {.is_whole = type == SHT_SYMTAB, .code = code};

    if (!file->elf || !open_source(&source, file->elf, type))
        return false;
    if (source.is_whole && symbols->wanted) {
        symbols->file = file;
        symbols->code = code;
        if (find_known(symbols, &source) && add_known(symbols, &source))
            return true;
        cpprof__symbols_free(symbols);
    }
    return add_all(symbols, &source);
}

/* Read the others, for an address that is not known. */
static void
complete(struct cpprof__symbols *symbols)
{
    const struct cpprof__elf_file *file = symbols->file;
    const struct cpprof__ranges *code = symbols->code;

    cpprof__symbols_free(symbols);
    if (cpprof__symbols_add(symbols, file, SHT_SYMTAB, code))
        cpprof__symbols_seal(symbols, code);
}

static void
know(struct cpprof__symbols *symbols, uint64_t address)
{
    if (symbols->known.n && !cpprof__ranges_find(&symbols->known, address))
        complete(symbols);
}

/* ---- the table --------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
    const struct cpprof__symbol *x = a;
    const struct cpprof__symbol *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->preference != y->preference)
        return x->preference > y->preference ? -1 : 1;
    /* glob before glob64 */
    if (strlen(x->name) != strlen(y->name))
        return strlen(x->name) < strlen(y->name) ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Of the ranges of one address the highest counts. */
enum { BARE, UP_TO_NEXT, WITH_SIZE };

/* The range of items[i]. Ends with the section whatever the size says. */
static struct cpprof__range
range_of(const struct cpprof__symbols *symbols, size_t i, uint64_t next,
         const struct cpprof__ranges *code)
{
    const struct cpprof__symbol *symbol = &symbols->items.at[i];
    const struct cpprof__range *section =
        cpprof__ranges_find(code, symbol->start);
    uint64_t limit = section ? section->limit : symbol->start;
    uint32_t rank = symbol->size       ? WITH_SIZE
                    : symbol->is_whole ? UP_TO_NEXT
                                       : BARE;

    if (rank == WITH_SIZE && symbol->size < limit - symbol->start)
        limit = symbol->start + symbol->size;
    else if (rank == UP_TO_NEXT && next < limit)
        limit = next;
    else if (rank == BARE)
        limit = symbol->start + 1;
    return (struct cpprof__range){symbol->start, limit, (uint32_t)i, rank};
}

static void
add_ranges(struct cpprof__symbols *symbols, const struct cpprof__ranges *code)
{
    const struct cpprof__symbol *all = symbols->items.at;
    size_t n = symbols->items.n, above = 0, i;

    for (i = 0; i < n; i++) {
        while (above < n && all[above].start <= all[i].start)
            above++;
        cpprof__ranges_add(&symbols->ranges,
                           range_of(symbols, i,
                                    above < n ? all[above].start : UINT64_MAX,
                                    code));
        symbols->names[i] = all[i].name;
    }
}

bool
cpprof__symbols_seal(struct cpprof__symbols *symbols,
                     const struct cpprof__ranges *code)
{
    size_t n = symbols->items.n;

    if (!n)
        return true;
    cpprof__sort(symbols->items.at, n, sizeof *symbols->items.at, compare);
    symbols->names = cpprof__malloc(n * sizeof *symbols->names);
    if (symbols->names)
        add_ranges(symbols, code);
    if (!symbols->names || !cpprof__ranges_seal(&symbols->ranges)) {
        cpprof__symbols_free(symbols);
        return false;
    }
    CPPROF__ARRAY_FREE(&symbols->items);
    return true;
}

const char *
cpprof__symbols_at(struct cpprof__symbols *symbols, uint64_t start,
                   bool has_size)
{
    const struct cpprof__range *range;

    know(symbols, start);
    range = cpprof__ranges_find(&symbols->ranges, start);
    return range && range->start == start && (has_size || range->rank == BARE)
               ? symbols->names[range->value]
               : NULL;
}

const char *
cpprof__symbols_before(struct cpprof__symbols *symbols,
                       const struct cpprof__ranges *code, uint64_t address,
                       uint64_t *start)
{
    const struct cpprof__ranges *all = &symbols->ranges;
    const struct cpprof__range *section = cpprof__ranges_find(code, address);
    const struct cpprof__range *above;
    size_t n;

    if (symbols->known.n)
        complete(symbols);
    above = cpprof__ranges_above(all, address);
    n = above ? (size_t)(above - all->items) : all->n;
    if (!section || !n || all->items[n - 1].start < section->start)
        return NULL;
    *start = all->items[n - 1].start;
    return symbols->names[all->items[n - 1].value];
}

const struct cpprof__range *
cpprof__symbols_range(struct cpprof__symbols *symbols, uint64_t address)
{
    const struct cpprof__range *range;

    know(symbols, address);
    range = cpprof__ranges_find(&symbols->ranges, address);
    return range && range->rank != BARE ? range : NULL;
}

bool
cpprof__symbols_has_end(const struct cpprof__range *range)
{
    return range->rank == WITH_SIZE;
}

const char *
cpprof__symbols_find(struct cpprof__symbols *symbols, uint64_t address)
{
    const struct cpprof__range *range = cpprof__symbols_range(symbols, address);

    return range ? symbols->names[range->value] : NULL;
}
