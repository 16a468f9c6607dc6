/* SPDX-License-Identifier: MIT */
/*
 * The names of a function. `name` is what the programmer calls it, so that all
 * copies of a function the compiler made add up in a report: the demangled
 * DW_AT_linkage_name, or DW_AT_name where the linkage name is not mangled.
 * `system_name` is what the linker calls it, so that nothing is lost: the
 * linkage name, or the symbol that covers the address where that is the name
 * of a copy ("f.constprop.0", "f.cold").
 *
 * A library calls its functions by names that only it uses ("__GI___poll" for
 * poll): where such a one is known under a plainer name too, that is taken for
 * both, as it would be from the library's symbols alone.
 *
 * Units that clang writes with -gline-tables-only have no linkage names; there
 * the symbol gives both.
 */
#include "symbol/dwarf/frames.h"

#include "base/text.h"

#include "symbol/elf/demangle.h"

#include <dwarf.h>
#include <string.h>

/* Of a call that was inlined; not in every <dwarf.h>. */
#ifndef DW_AT_GNU_discriminator
#define DW_AT_GNU_discriminator 0x2136
#endif

/* A place in the source. */
struct position {
    const char *file; /* or NULL */
    int64_t line;
    int64_t column;
    uint32_t discriminator;
};

static const char *
string_of(Dwarf_Die *die, unsigned int name)
{
    Dwarf_Attribute attribute;

    return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

static uint64_t
number_of(Dwarf_Die *die, unsigned int name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;

    if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) != 0)
        return 0;
    return value;
}

static int64_t
start_line_of(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;

    if (dwarf_formudata(dwarf_attr_integrate(die, DW_AT_decl_line, &attribute),
                        &value))
        return 0;
    return value <= INT32_MAX ? (int64_t)value : 0;
}

static const char *
linkage_name_of(Dwarf_Die *die)
{
    const char *name = string_of(die, DW_AT_linkage_name);

    return name ? name : string_of(die, DW_AT_MIPS_linkage_name);
}

static bool
is_mangled(const char *name)
{
    return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/*
 * Is symbol the name itself, or that of a copy of it? A constructor is C4 in
 * the DWARF of GCC and C1, C2 or C3 in the symbol table; D4 the same.
 */
static bool
is_copy_of(const char *symbol, const char *name)
{
    size_t n = cpprof__symbol_source_length(symbol, strlen(symbol));
    size_t i;

    if (strlen(name) != n)
        return false;
    for (i = 0; i < n; i++)
        if (symbol[i] != name[i] &&
            !(i > 0 && name[i] == '4' && symbol[i] < '4' &&
              (name[i - 1] == 'C' || name[i - 1] == 'D')))
            return false;
    return true;
}

/* A symbol without its version. */
static const char *
add_symbol(struct cpprof__names *names, const char *symbol)
{
    const char *at = strchr(symbol, '@');

    return cpprof__names_add(names, symbol,
                             at && at > symbol ? (size_t)(at - symbol)
                                               : strlen(symbol));
}

bool
cpprof__frame_of_symbol(struct cpprof__names *names, const char *symbol,
                        struct cpprof__frame *frame)
{
    *frame = (struct cpprof__frame){0};
    frame->system_name = add_symbol(names, symbol);
    frame->name = cpprof__names_demangle(names, symbol, strlen(symbol));
    return frame->name && frame->system_name;
}

/* Is symbol a name for others of what its library calls by name? */
static bool
is_plainer(const char *symbol, const char *name)
{
    return !is_mangled(symbol) && !is_mangled(name) &&
           (strspn(symbol, "_") < strspn(name, "_") ||
            strncmp(name, "__GI_", 5) == 0);
}

/* Is symbol the one for where a part of the function starts? */
static bool
names_start_of(struct cpprof__symbols *symbols, const char *symbol,
               Dwarf_Die *die)
{
    Dwarf_Addr base;
    Dwarf_Addr start;
    Dwarf_Addr limit;
    ptrdiff_t at = 0;

    while ((at = dwarf_ranges(die, at, &base, &start, &limit)) > 0)
        if (cpprof__symbols_find(symbols, start) == symbol)
            return true;
    return false;
}

/* The linker's name of a function: see the head of this file. symbol covers
 * the address, and NULL is none. */
static const char *
system_name_of(const struct cpprof__frame_source *source, Dwarf_Die *die,
               const char *linkage, const char *name, const char *symbol)
{
    const char *known = linkage ? linkage : name;

    if (!known || !symbol)
        return known ? known : symbol;
    if (is_copy_of(symbol, known) || (!linkage && is_mangled(symbol)))
        return symbol;
    return is_plainer(symbol, known) &&
                   names_start_of(source->symbols, symbol, die)
               ? symbol
               : known;
}

/* Is DW_AT_name the name to show? Not for a mangled or a foreign symbol. */
static bool
is_display_name(const char *name, const char *system_name, const char *linkage)
{
    if (!name || is_mangled(system_name))
        return false;
    return is_copy_of(system_name, linkage ? linkage : name);
}

/* DW_AT_name, with its scopes in a language that has them. */
static const char *
source_name_of(const struct cpprof__frame_source *source,
               const struct cpprof__unit *unit, Dwarf_Die *die,
               const char *name)
{
    Dwarf_Die language = unit->body;

    switch (dwarf_srclang(&language)) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
        return cpprof__scopes_qualify(source->scopes, source->names, die, name);
    default:
        return cpprof__names_add(source->names, name, strlen(name));
    }
}

/* symbol: of the function itself; NULL for an inlined one. */
static bool
name_frame(const struct cpprof__frame_source *source,
           const struct cpprof__unit *unit, Dwarf_Die *die, const char *symbol,
           struct cpprof__frame *frame)
{
    const char *linkage = linkage_name_of(die);
    const char *name = dwarf_diename(die);
    const char *system_name =
        system_name_of(source, die, linkage, name, symbol);

    if (!system_name ||
        !cpprof__frame_of_symbol(source->names, system_name, frame))
        return false;
    if (is_display_name(name, system_name, linkage))
        frame->name = source_name_of(source, unit, die, name);
    frame->start_line = start_line_of(die);
    return frame->name != NULL;
}

/* The file of a unit, with the directories that it is relative to. */
static const char *
add_file(struct cpprof__names *names, struct cpprof__unit *unit,
         const char *directory, const char *name)
{
    const char *file = name;

    if (directory)
        file = cpprof__names_add_path(names, directory, name);
    return file ? cpprof__names_add_path(
                      names, string_of(&unit->die, DW_AT_comp_dir), file)
                : NULL;
}

/* What the line table says. */
static struct position
position_of(const struct cpprof__frame_source *source,
            struct cpprof__unit *unit, uint64_t address)
{
    const struct cpprof__lines *lines =
        cpprof__unit_lines(source->units, unit, source->code);
    const struct cpprof__line_row *row = cpprof__lines_find(lines, address);
    struct position position = {0};
    const char *directory;
    const char *name;

    if (!row)
        return position;
    if (cpprof__lines_file(lines, row->file, &directory, &name))
        position.file = add_file(source->names, unit, directory, name);
    position.line = row->line;
    position.column = row->column;
    position.discriminator = cpprof__lines_discriminator(lines, row);
    return position;
}

/* Where an inlined function was called. */
static struct position
call_position_of(const struct cpprof__frame_source *source,
                 struct cpprof__unit *unit, Dwarf_Die *inlined)
{
    struct position position = {0};
    uint64_t file = number_of(inlined, DW_AT_call_file);
    const char *directory;
    const char *name;

    if (cpprof__unit_file(source->units, unit, file, &directory, &name))
        position.file = add_file(source->names, unit, directory, name);
    position.line = (int64_t)(number_of(inlined, DW_AT_call_line) & INT32_MAX);
    position.column =
        (int64_t)(number_of(inlined, DW_AT_call_column) & INT32_MAX);
    if (source->units->wants_discriminators)
        position.discriminator =
            (uint32_t)number_of(inlined, DW_AT_GNU_discriminator);
    return position;
}

static void
set_position(struct cpprof__frame *frame, const struct position *position)
{
    frame->file = position->file;
    frame->line = position->line;
    frame->column = position->column;
    frame->discriminator = position->discriminator;
}

/*
 * The functions inlined at address, innermost first; each is where the one
 * before was called. An inlined function without a name is left out: what it
 * called then seems called by its caller.
 */
static size_t
add_inlined(const struct cpprof__frame_source *source,
            struct cpprof__unit *unit, const struct cpprof__inlines *inlines,
            uint64_t address, struct position *position,
            struct cpprof__frame *frames, size_t max)
{
    const struct cpprof__range *range =
        cpprof__ranges_find(&inlines->ranges, address);
    uint32_t number = range ? range->value : UINT32_MAX;
    size_t n = 0;

    while (number < inlines->items.n) {
        const struct cpprof__inlined *inlined = &inlines->items.at[number];
        Dwarf_Die die;

        number = inlined->parent;
        if (!cpprof__unit_die(unit, inlined->offset, &die))
            continue;
        if (n < max && name_frame(source, unit, &die, NULL, &frames[n]))
            set_position(&frames[n++], position);
        *position = call_position_of(source, unit, &die);
    }
    return n;
}

/* The last frame: the function itself, from its DIE or its symbol alone. */
static bool
name_function(const struct cpprof__frame_source *source,
              const struct cpprof__unit *unit,
              const struct cpprof__function *function, uint64_t address,
              struct cpprof__frame *frame)
{
    const char *symbol = cpprof__symbols_find(source->symbols, address);
    Dwarf_Die die;

    if (function && cpprof__unit_die(unit, function->offset, &die) &&
        name_frame(source, unit, &die, symbol, frame))
        return true;
    return symbol && cpprof__frame_of_symbol(source->names, symbol, frame);
}

size_t
cpprof__frames_find(const struct cpprof__frame_source *source, uint64_t address,
                    struct cpprof__frame *frames, size_t max)
{
    struct cpprof__unit *unit = cpprof__units_find(source->units, address);
    const struct cpprof__inlines *inlines = NULL;
    struct cpprof__function *function;
    struct position position;
    size_t n = 0;

    if (!unit)
        return 0;
    function = cpprof__unit_find(unit, address, source->code);
    if (function)
        inlines = cpprof__function_inlines(unit, function);
    position = position_of(source, unit, address);
    if (inlines)
        n = add_inlined(source, unit, inlines, address, &position, frames,
                        max - 1);
    if (!name_function(source, unit, function, address, &frames[n]))
        return 0;
    set_position(&frames[n], &position);
    return n + 1;
}

size_t
cpprof__frames_find_function(const struct cpprof__frame_source *source,
                             uint64_t address, struct cpprof__frame *frame)
{
    struct cpprof__unit *unit = cpprof__units_find(source->units, address);
    struct cpprof__function *function;

    if (!unit)
        return 0;
    function = cpprof__unit_find(unit, address, source->code);
    if (!name_function(source, unit, function, address, frame))
        return 0;
    frame->start_line = 0;
    return 1;
}
