/* SPDX-License-Identifier: MIT */
/*
 * Indexes DWARF units and their functions. DIE trees are not trusted: each walk
 * goes only forward in the section and only to a limited depth, so that a
 * sibling or an origin that points back cannot make it endless.
 */
#include "symbol/dwarf/units.h"

#include "own/memory.h"
#include "symbol/elf/array.h"
#include "symbol/elf/way_out.h"

#include <dwarf.h>
#include <string.h>

/* Nesting of DIEs that is followed; the deepest seen is below 50. */
#define DEEPEST 200

/* Ranges of one index: bounds what units that share one huge, hostile list of
 * ranges can cost, to 100 MB. */
#define MOST_RANGES (4u << 20)

/* Line tables that are kept: a program of 1000 units of C++ has 300 MB. More
 * saves reading them again for profiles whose addresses lie all over. */
#define MOST_LINE_BYTES (64u << 20)

/*
 * Add what die covers. Functions that the linker dropped are left in the DWARF
 * with an address that is no code: 0, 1, or -1. code NULL: no such check.
 */
static void
add_ranges(struct cpprof__ranges *ranges, Dwarf_Die *die, uint32_t value,
           uint32_t rank, const struct cpprof__ranges *code)
{
    Dwarf_Addr base;
    Dwarf_Addr start;
    Dwarf_Addr limit;
    ptrdiff_t at = 0;

    while (ranges->n < MOST_RANGES &&
           (at = dwarf_ranges(die, at, &base, &start, &limit)) > 0)
        if (!code || cpprof__ranges_find(code, start))
            cpprof__ranges_add(
                ranges, (struct cpprof__range){start, limit, value, rank});
}

static void
unpack_lines(struct cpprof__units *units, uint64_t offset)
{
    if (!units->late_lines.packed.n)
        return;
    cpprof__lines_need(&units->late_lines, offset);
    units->sections.line =
        (struct cpprof__bytes){units->late_lines.bytes, units->late_lines.n};
}

/* Where the table of lines of a unit is. */
static bool
lines_offset(Dwarf_Die *die, Dwarf_Word *offset)
{
    Dwarf_Attribute attribute;

    return dwarf_formudata(dwarf_attr(die, DW_AT_stmt_list, &attribute),
                           offset) == 0;
}

static void
read_lines(struct cpprof__units *units, Dwarf_Die *die,
           const struct cpprof__ranges *code, struct cpprof__lines *lines)
{
    Dwarf_Word offset;

    lines->wants_discriminators = units->wants_discriminators;
    if (!lines_offset(die, &offset))
        return;
    unpack_lines(units, offset);
    cpprof__lines_read(lines, &units->sections, offset, code);
}

static bool
is_assembly(Dwarf_Die *unit)
{
    return dwarf_srclang(unit) == DW_LANG_Mips_Assembler;
}

/* Units that cannot say what they cover (DWARF 2 has only one range for each)
 * cover what their line table does. */
static void
add_line_ranges(struct cpprof__units *units, Dwarf_Die *die,
                const struct cpprof__ranges *code)
{
    struct cpprof__lines lines = {0};
    size_t i;

    read_lines(units, die, code, &lines);
    for (i = 0; i < lines.ranges.n; i++) {
        lines.ranges.items[i].value = (uint32_t)units->items.n;
        cpprof__ranges_add(&units->ranges, lines.ranges.items[i]);
    }
    cpprof__lines_free(&lines);
}

static void
add_unit(struct cpprof__units *units, Dwarf_Die *die, Dwarf_Half version,
         const struct cpprof__ranges *code)
{
    size_t before = units->ranges.n;

    if (!CPPROF__BOUNDED_ROOM(&units->items))
        return;
    add_ranges(&units->ranges, die, (uint32_t)units->items.n, 0, code);
    if (!dwarf_hasattr(die, DW_AT_ranges) &&
        (version < 3 || !dwarf_hasattr(die, DW_AT_high_pc)))
        add_line_ranges(units, die, code);
    if (units->ranges.n == before)
        return;
    units->items.at[units->items.n++] = (struct cpprof__unit){.die = *die};
    if (!is_assembly(die))
        units->has_inlines = true;
}

/* The bytes of a section, unpacked: libdw did that when it opened the file. */
static struct cpprof__bytes
section_bytes(const struct cpprof__elf_file *file, const char *name,
              const char *packed_name)
{
    GElf_Shdr header;
    Elf_Scn *section = cpprof__elf_section(file, name, &header);
    Elf_Data *data;

    if (!section)
        section = cpprof__elf_section(file, packed_name, &header);
    data = section ? elf_rawdata(section, NULL) : NULL;
    if (!data || !data->d_buf || header.sh_flags & SHF_COMPRESSED)
        return (struct cpprof__bytes){0};
    return (struct cpprof__bytes){data->d_buf, data->d_size};
}

static void
open_sections(struct cpprof__line_sections *sections,
              const struct cpprof__elf_file *file)
{
    sections->line = section_bytes(file, ".debug_line", ".zdebug_line");
    sections->line_str =
        section_bytes(file, ".debug_line_str", ".zdebug_line_str");
    sections->str = section_bytes(file, ".debug_str", ".zdebug_str");
}

/* How far tables of lines will be read: up to that of the last needed unit. */
static void
expect_lines(struct cpprof__units *units, const struct cpprof__elf_file *file)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Word offset;
    Dwarf_Die die;
    bool is_there = false;

    while (file->is_partial &&
           !dwarf_get_units(file->dwarf, unit, &unit, NULL, NULL, &die, NULL))
        is_there = true;
    if (is_there && lines_offset(&die, &offset) &&
        offset < units->late_lines.packed.n_unpacked)
        units->late_lines.expected = offset;
}

void
cpprof__units_open(struct cpprof__units *units,
                   const struct cpprof__elf_file *file,
                   const struct cpprof__ranges *code)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Half version;
    Dwarf_Die die;
    uint8_t type;
    int failed;

    open_sections(&units->sections, file);
    units->late_lines = file->late_lines;
    expect_lines(units, file);
    while (!(failed = dwarf_get_units(file->dwarf, unit, &unit, &version, &type,
                                      &die, NULL)))
        if (type == DW_UT_compile || type == DW_UT_skeleton)
            add_unit(units, &die, version, code);
    units->is_cut = failed < 0;
    if (!cpprof__ranges_seal(&units->ranges))
        units->items.n = 0;
}

static void
free_functions(struct cpprof__unit *unit)
{
    size_t i;

    for (i = 0; i < unit->functions.n; i++) {
        struct cpprof__inlines *inlines = unit->functions.at[i].inlines;

        if (inlines) {
            cpprof__ranges_free(&inlines->ranges);
            cpprof__free(inlines->items.at);
            cpprof__free(inlines);
        }
    }
    CPPROF__ARRAY_FREE(&unit->functions);
    cpprof__ranges_free(&unit->ranges);
}

/* Line tables are read again when they are wanted again: 1 ms each. */
static void
forget_lines(struct cpprof__units *units)
{
    size_t i;

    for (i = 0; i < units->items.n; i++) {
        cpprof__lines_free(&units->items.at[i].lines);
        units->items.at[i].has_lines = false;
    }
    units->n_line_bytes = 0;
}

void
cpprof__units_close(struct cpprof__units *units)
{
    size_t i;

    for (i = 0; i < units->items.n; i++)
        free_functions(&units->items.at[i]);
    forget_lines(units);
    cpprof__free(units->items.at);
    cpprof__ranges_free(&units->ranges);
    memset(units, 0, sizeof *units);
}

/* What libdw holds of a unit: some 300 bytes, and its abbreviations once it is
 * read. */
#define LIBDW_BYTES 2048

size_t
cpprof__units_held(const struct cpprof__units *units)
{
    size_t n = units->n_line_bytes + units->items.capacity * LIBDW_BYTES +
               units->ranges.capacity * sizeof *units->ranges.items;
    size_t i;

    for (i = 0; i < units->items.n; i++) {
        const struct cpprof__unit *unit = &units->items.at[i];

        n += unit->functions.capacity * sizeof *unit->functions.at +
             unit->ranges.capacity * sizeof *unit->ranges.items;
    }
    return n;
}

bool
cpprof__units_are_split(const struct cpprof__units *units)
{
    size_t i;

    for (i = 0; i < units->items.n; i++)
        if (units->items.at[i].body.cu &&
            units->items.at[i].body.cu != units->items.at[i].die.cu)
            return true;
    return false;
}

struct cpprof__unit *
cpprof__units_find(struct cpprof__units *units, uint64_t address)
{
    const struct cpprof__range *range =
        cpprof__ranges_find(&units->ranges, address);

    return range && range->value < units->items.n
               ? &units->items.at[range->value]
               : NULL;
}

/* Has a kind of DIE an attribute of such a form? libdw counts attributes with a
 * constant wrongly, but knows where they end. */
static bool
has_reference(Dwarf_Abbrev *abbreviation)
{
    unsigned int form;
    size_t i;

    for (i = 0; !dwarf_getabbrevattr(abbreviation, i, NULL, &form, NULL); i++)
        if (form == DW_FORM_ref_addr || form == DW_FORM_ref_sig8)
            return true;
    return false;
}

bool
cpprof__unit_refers_out(struct cpprof__unit *unit)
{
    Dwarf_Abbrev *abbreviation;
    Dwarf_Off at = 0;
    size_t n;

    if (unit->references != CPPROF__UNIT_UNASKED)
        return unit->references == CPPROF__UNIT_REFERS;
    unit->references = CPPROF__UNIT_ALONE;
    while (unit->references == CPPROF__UNIT_ALONE &&
           (abbreviation = dwarf_getabbrev(&unit->die, at, &n)) !=
               DWARF_END_ABBREV) {
        if (!abbreviation || has_reference(abbreviation))
            unit->references = CPPROF__UNIT_REFERS;
        at += n;
    }
    return unit->references == CPPROF__UNIT_REFERS;
}

/* A walk over the functions of a unit. */
struct walk {
    struct cpprof__unit *unit;
    const struct cpprof__ranges *code;
};

static void
add_function(struct walk *walk, Dwarf_Die *die)
{
    struct cpprof__unit *unit = walk->unit;
    size_t before = unit->ranges.n;

    if (!CPPROF__BOUNDED_ROOM(&unit->functions))
        return;
    add_ranges(&unit->ranges, die, (uint32_t)unit->functions.n, 0, walk->code);
    if (unit->ranges.n == before)
        return;
    unit->functions.at[unit->functions.n++] =
        (struct cpprof__function){dwarf_dieoffset(die), NULL};
}

/* Step to the sibling of *die, if that lies behind it. */
static bool
step(Dwarf_Die *die)
{
    Dwarf_Off before = dwarf_dieoffset(die);

    return dwarf_siblingof(die, die) == 0 && dwarf_dieoffset(die) > before;
}

/*
 * Functions stand in their unit or its namespaces; only languages that nest
 * them (Ada, Fortran, GNU C) have some elsewhere, and looking everywhere is
 * many times the work.
 */
static bool
may_hold_functions(Dwarf_Die *die, bool is_deep)
{
    int tag = dwarf_tag(die);

    return tag == DW_TAG_namespace || tag == DW_TAG_module ||
           (is_deep && tag != DW_TAG_inlined_subroutine &&
            dwarf_haschildren(die) > 0);
}

static void
walk_functions(struct walk *walk, Dwarf_Die *parent, int depth)
{
    bool is_deep = walk->unit->depth == CPPROF__UNIT_DEEP;
    Dwarf_Die die;

    if (depth > DEEPEST || dwarf_child(parent, &die) != 0)
        return;
    do {
        if (dwarf_tag(&die) == DW_TAG_subprogram)
            add_function(walk, &die);
        if (may_hold_functions(&die, is_deep))
            walk_functions(walk, &die, depth + 1);
    } while (step(&die));
}

/* The split unit of a skeleton, or the unit itself. */
static void
find_body(struct cpprof__unit *unit)
{
    Dwarf_Attribute name = {0};
    Dwarf_Die split;
    uint8_t type;

    unit->body = unit->die;
    if (dwarf_cu_info(unit->die.cu, NULL, &type, NULL, &split, NULL, NULL,
                      NULL) != 0)
        return;
    if (split.cu) {
        unit->body = split;
        dwarf_new_oom_handler(dwarf_cu_getdwarf(split.cu),
                              cpprof__out_of_memory);
    } else if (type == DW_UT_skeleton) {
        if (!dwarf_attr(&unit->die, DW_AT_dwo_name, &name))
            dwarf_attr(&unit->die, DW_AT_GNU_dwo_name, &name);
        unit->lost_split = dwarf_formstring(&name);
    }
}

/* Read the functions of the unit, one step deeper than they are. */
static void
read_functions(struct cpprof__unit *unit, const struct cpprof__ranges *code)
{
    struct walk walk = {unit, code};

    if (unit->depth == CPPROF__UNIT_UNREAD)
        find_body(unit);
    free_functions(unit);
    unit->depth++;
    walk_functions(&walk, &unit->body, 0);
    if (!cpprof__ranges_seal(&unit->ranges))
        free_functions(unit);
}

struct cpprof__function *
cpprof__unit_find(struct cpprof__unit *unit, uint64_t address,
                  const struct cpprof__ranges *code)
{
    const struct cpprof__range *range;

    while (!(range = cpprof__ranges_find(&unit->ranges, address)) &&
           unit->depth != CPPROF__UNIT_DEEP)
        read_functions(unit, code);
    return range && range->value < unit->functions.n
               ? &unit->functions.at[range->value]
               : NULL;
}

bool
cpprof__unit_die(const struct cpprof__unit *unit, Dwarf_Off offset,
                 Dwarf_Die *die)
{
    return dwarf_offdie(dwarf_cu_getdwarf(unit->body.cu), offset, die) != NULL;
}

const struct cpprof__lines *
cpprof__unit_lines(struct cpprof__units *units, struct cpprof__unit *unit,
                   const struct cpprof__ranges *code)
{
    if (unit->has_lines)
        return &unit->lines;
    if (units->n_line_bytes > MOST_LINE_BYTES)
        forget_lines(units);
    unit->has_lines = true;
    read_lines(units, &unit->die, code, &unit->lines);
    units->n_line_bytes += cpprof__lines_bytes(&unit->lines);
    return &unit->lines;
}

/* A split unit has file names of its own. */
static bool
split_file(struct cpprof__unit *unit, uint64_t number, const char **name)
{
    if (!unit->files &&
        dwarf_getsrcfiles(&unit->body, &unit->files, &unit->n_files) != 0)
        unit->files = NULL;
    if (!unit->files || number >= unit->n_files)
        return false;
    *name = dwarf_filesrc(unit->files, number, NULL, NULL);
    return *name != NULL;
}

bool
cpprof__unit_file(struct cpprof__units *units, struct cpprof__unit *unit,
                  uint64_t number, const char **directory, const char **name)
{
    *directory = NULL;
    if (unit->body.cu != unit->die.cu)
        return split_file(unit, number, name);
    return unit->has_lines &&
           cpprof__lines_file(&unit->lines, number, directory, name);
}

static uint32_t
add_inlined(struct cpprof__inlines *inlines, Dwarf_Die *die, uint32_t parent,
            uint32_t depth)
{
    if (!CPPROF__BOUNDED_ROOM(&inlines->items))
        return parent;
    add_ranges(&inlines->ranges, die, (uint32_t)inlines->items.n, depth, NULL);
    inlines->items.at[inlines->items.n] =
        (struct cpprof__inlined){dwarf_dieoffset(die), parent};
    return (uint32_t)inlines->items.n++;
}

static bool
may_hold_inlined(int tag)
{
    return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
           tag == DW_TAG_try_block || tag == DW_TAG_catch_block ||
           tag == DW_TAG_with_stmt;
}

static void
walk_inlined(struct cpprof__inlines *inlines, Dwarf_Die *parent,
             uint32_t number, uint32_t depth)
{
    Dwarf_Die die;

    if (depth > DEEPEST || dwarf_child(parent, &die) != 0)
        return;
    do {
        int tag = dwarf_tag(&die);
        uint32_t inner = number;

        if (!may_hold_inlined(tag))
            continue;
        if (tag == DW_TAG_inlined_subroutine)
            inner = add_inlined(inlines, &die, number, depth);
        walk_inlined(inlines, &die, inner, depth + 1);
    } while (step(&die));
}

const struct cpprof__inlines *
cpprof__function_inlines(const struct cpprof__unit *unit,
                         struct cpprof__function *function)
{
    struct cpprof__inlines *inlines = function->inlines;
    Dwarf_Die die;

    if (inlines)
        return inlines;
    inlines = cpprof__calloc(1, sizeof *inlines);
    function->inlines = inlines;
    if (!inlines || !cpprof__unit_die(unit, function->offset, &die))
        return inlines;
    walk_inlined(inlines, &die, UINT32_MAX, 0);
    cpprof__ranges_seal(&inlines->ranges);
    return inlines;
}
