/* SPDX-License-Identifier: MIT */
/*
 * The interpreter of line number programs (DWARF 5, 6.2): runs the program of
 * one unit and keeps a row of 16 bytes for each address at which file, line or
 * column change.
 *
 * Names of directories and files are read first, from one of two encodings
 * (before version 5, and since). Then the opcodes run. A sequence is kept only
 * if its addresses are code of this image; the linker gives dropped functions
 * addresses that are not.
 *
 * Invariants: the input is read through a bounded reader; the rows of a
 * sequence are sorted by address, and one that is not is dropped; a table that
 * breaks off keeps its whole sequences only.
 */
#include "symbol/dwarf/lines.h"

#include "base/reader.h"
#include "own/memory.h"
#include "symbol/elf/array.h"

#include <dwarf.h>
#include <string.h>

/* Addresses of user space, and what a row has room for. */
#define LARGEST_ADDRESS ((1ull << 48) - 1)

/* Content types of an entry format that are kept; others are skipped. */
#define MOST_FORMATS 16

void
cpprof__lines_free(struct cpprof__lines *lines)
{
    cpprof__free(lines->rows.at);
    cpprof__free(lines->discriminators.at);
    cpprof__free(lines->sequences.at);
    cpprof__free(lines->directories.at);
    cpprof__free(lines->files.at);
    cpprof__ranges_free(&lines->ranges);
    memset(lines, 0, sizeof *lines);
}

size_t
cpprof__lines_bytes(const struct cpprof__lines *lines)
{
    return lines->rows.capacity * sizeof *lines->rows.at +
           lines->discriminators.capacity * sizeof *lines->discriminators.at +
           lines->sequences.capacity * sizeof *lines->sequences.at +
           lines->directories.capacity * sizeof *lines->directories.at +
           lines->files.capacity * sizeof *lines->files.at +
           lines->ranges.capacity * sizeof *lines->ranges.items;
}

/* The head of a table (6.2.4). */
struct head {
    const struct cpprof__line_sections *sections;
    struct cpprof__reader program; /* the opcodes */
    uint16_t version;
    bool is_64; /* the 64-bit format: offsets are 8 bytes */
    uint8_t minimum_length;
    uint8_t operations; /* per instruction: 1 but for VLIW */
    int8_t line_base;
    uint8_t line_range;
    uint8_t opcode_base;
    const uint8_t *opcode_lengths; /* of opcodes 1 to opcode_base - 1 */
};

static uint64_t
read_offset(struct cpprof__reader *r, bool is_64)
{
    return is_64 ? cpprof__read_u64(r) : cpprof__read_u32(r);
}

static int64_t
read_signed(struct cpprof__reader *r)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = cpprof__read_u8(r);
        value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        shift += 7;
    } while (byte & 0x80 && !r->bad);
    if (shift < 64 && byte & 0x40)
        value |= ~(uint64_t)0 << shift;
    return (int64_t)value;
}

/* A string that ends inside of r; "" when it does not. */
static const char *
read_string(struct cpprof__reader *r)
{
    const uint8_t *text = r->next;
    const uint8_t *end = memchr(text, 0, cpprof__reader_left(r));

    if (!end) {
        r->bad = true;
        r->next = r->end;
        return "";
    }
    r->next = end + 1;
    return (const char *)text;
}

/* The string at an offset of a section. */
static const char *
string_at(const struct cpprof__bytes *section, uint64_t offset)
{
    if (offset >= section->n ||
        !memchr(section->data + offset, 0, section->n - offset))
        return "";
    return (const char *)section->data + offset;
}

static void
add_directory(struct cpprof__lines *lines, const char *name, uint64_t directory)
{
    if (CPPROF__BOUNDED_ROOM(&lines->directories))
        lines->directories.at[lines->directories.n++] = name;
}

static void
add_file(struct cpprof__lines *lines, const char *name, uint64_t directory)
{
    if (CPPROF__BOUNDED_ROOM(&lines->files))
        lines->files.at[lines->files.n++] = (struct cpprof__line_file){
            name, directory < UINT32_MAX ? (uint32_t)directory : UINT32_MAX};
}

/* Directories and files before version 5: strings, an empty one ends each. */
static void
read_old_names(struct cpprof__lines *lines, struct cpprof__reader *r)
{
    const char *name;

    lines->counts_from_one = true;
    while (*(name = read_string(r)))
        add_directory(lines, name, 0);
    while (!r->bad && *(name = read_string(r))) {
        add_file(lines, name, cpprof__read_varint(r));
        cpprof__read_varint(r); /* time */
        cpprof__read_varint(r); /* length */
    }
}

/* One value of an entry (6.2.4.1): a string or a number, by its form. */
static void
read_value(struct cpprof__reader *r, const struct head *head, uint64_t form,
           const char **text, uint64_t *number)
{
    switch (form) {
    case DW_FORM_string:
        *text = read_string(r);
        break;
    case DW_FORM_line_strp:
        *text =
            string_at(&head->sections->line_str, read_offset(r, head->is_64));
        break;
    case DW_FORM_strp:
        *text = string_at(&head->sections->str, read_offset(r, head->is_64));
        break;
    case DW_FORM_udata:
        *number = cpprof__read_varint(r);
        break;
    case DW_FORM_data1:
        *number = cpprof__read_u8(r);
        break;
    case DW_FORM_data2:
        *number = cpprof__read_u16(r);
        break;
    case DW_FORM_data4:
        *number = cpprof__read_u32(r);
        break;
    case DW_FORM_data8:
        *number = cpprof__read_u64(r);
        break;
    case DW_FORM_data16: /* MD5 */
        cpprof__read_bytes(r, 16);
        break;
    case DW_FORM_block:
        cpprof__read_bytes(r, cpprof__read_varint(r));
        break;
    default:
        r->bad = true;
    }
}

/* What the fields of the entries are. */
struct format {
    uint8_t n;
    uint64_t content[MOST_FORMATS];
    uint64_t form[MOST_FORMATS];
};

static void
read_format(struct cpprof__reader *r, struct format *format)
{
    uint8_t i;

    format->n = cpprof__read_u8(r);
    if (format->n > MOST_FORMATS) {
        r->bad = true;
        format->n = 0;
    }
    for (i = 0; i < format->n; i++) {
        format->content[i] = cpprof__read_varint(r);
        format->form[i] = cpprof__read_varint(r);
    }
}

/* Directories, or files, of version 5: add is called for each. */
static void
read_entries(struct cpprof__lines *lines, struct cpprof__reader *r,
             const struct head *head,
             void (*add)(struct cpprof__lines *, const char *, uint64_t))
{
    struct format format;
    uint64_t n_entries;
    uint8_t i;

    read_format(r, &format);
    n_entries = cpprof__read_varint(r);
    for (; n_entries > 0 && format.n > 0 && !r->bad; n_entries--) {
        const char *name = "";
        uint64_t directory = 0;

        for (i = 0; i < format.n; i++) {
            const char *text = "";
            uint64_t number = 0;

            read_value(r, head, format.form[i], &text, &number);
            if (format.content[i] == DW_LNCT_path)
                name = text;
            else if (format.content[i] == DW_LNCT_directory_index)
                directory = number;
        }
        if (!r->bad)
            add(lines, name, directory);
    }
}

/* Length and version; false when the rest is not what is known here. */
static bool
read_start(struct cpprof__reader *r, struct head *head)
{
    uint64_t n_bytes = cpprof__read_u32(r);

    head->is_64 = n_bytes == 0xffffffff;
    if (head->is_64)
        n_bytes = cpprof__read_u64(r);
    if (n_bytes > cpprof__reader_left(r))
        return false;
    r->end = r->next + n_bytes;
    head->version = cpprof__read_u16(r);
    if (head->version >= 5)
        cpprof__read_u16(r); /* sizes of addresses and segment selectors */
    return head->version >= 2 && head->version <= 5;
}

static bool
read_head(struct cpprof__reader *r, struct head *head)
{
    uint64_t n_bytes;

    if (!read_start(r, head))
        return false;
    n_bytes = read_offset(r, head->is_64);
    if (n_bytes > cpprof__reader_left(r))
        return false;
    head->program =
        cpprof__reader(r->next + n_bytes, cpprof__reader_left(r) - n_bytes);
    r->end = r->next + n_bytes;
    head->minimum_length = cpprof__read_u8(r);
    head->operations = head->version >= 4 ? cpprof__read_u8(r) : 1;
    cpprof__read_u8(r); /* default_is_stmt */
    head->line_base = (int8_t)cpprof__read_u8(r);
    head->line_range = cpprof__read_u8(r);
    head->opcode_base = cpprof__read_u8(r);
    if (!head->opcode_base || !head->line_range || !head->operations)
        return false;
    head->opcode_lengths = cpprof__read_bytes(r, head->opcode_base - 1u);
    return !r->bad;
}

/* The registers of the machine that a line program runs on (6.2.2). */
struct machine {
    struct cpprof__lines *lines;
    const struct head *head;
    const struct cpprof__ranges *code;
    uint64_t address;
    uint64_t operation;
    uint64_t file;
    uint64_t line;
    uint64_t column;
    uint32_t discriminator; /* of the next row alone */
    size_t first;           /* row of the sequence */
    bool is_out_of_order;
};

static void
start_sequence(struct machine *m)
{
    m->address = 0;
    m->operation = 0;
    m->file = 1;
    m->line = 1;
    m->column = 0;
    m->discriminator = 0;
    m->first = m->lines->rows.n;
    m->is_out_of_order = false;
}

static struct cpprof__line_row
row_of(const struct machine *m)
{
    return (struct cpprof__line_row){
        .address = m->address & LARGEST_ADDRESS,
        .column = m->column <= UINT16_MAX ? m->column : 0,
        .line = m->line <= INT32_MAX ? (uint32_t)m->line : 0,
        .file = m->file <= UINT32_MAX ? (uint32_t)m->file : 0};
}

static bool
is_same_location(const struct cpprof__line_row *a,
                 const struct cpprof__line_row *b)
{
    return a->line == b->line && a->column == b->column && a->file == b->file;
}

/* Room for a row and its discriminator. */
static bool
has_room(struct cpprof__lines *lines)
{
    if (!CPPROF__BOUNDED_ROOM(&lines->rows))
        return false;
    if (!lines->wants_discriminators)
        return true;
    lines->discriminators.n = lines->rows.n;
    return CPPROF__BOUNDED_ROOM(&lines->discriminators);
}

/* Of several rows for one address the last one counts; one that says the same
 * as the one before it (about a third) says nothing. */
static void
add_row(struct machine *m)
{
    struct cpprof__lines *lines = m->lines;
    struct cpprof__line_row row = row_of(m);
    struct cpprof__line_row *last =
        lines->rows.n > m->first ? &lines->rows.at[lines->rows.n - 1] : NULL;

    if (last && row.address < last->address)
        m->is_out_of_order = true;
    if (last && row.address == last->address)
        *last = row;
    else if ((!last || !is_same_location(last, &row) ||
              m->discriminator != cpprof__lines_discriminator(lines, last)) &&
             has_room(lines))
        lines->rows.at[lines->rows.n++] = row;
    if (lines->wants_discriminators && lines->rows.n > m->first)
        lines->discriminators.at[lines->rows.n - 1] = m->discriminator;
    m->discriminator = 0;
}

/* Keep the sequence if it is code of this image. */
static void
end_sequence(struct machine *m)
{
    struct cpprof__lines *lines = m->lines;
    size_t n = lines->rows.n - m->first;
    uint64_t start = n ? lines->rows.at[m->first].address : 0;

    if (n && !m->is_out_of_order && cpprof__ranges_find(m->code, start) &&
        CPPROF__BOUNDED_ROOM(&lines->sequences)) {
        cpprof__ranges_add(&lines->ranges,
                           (struct cpprof__range){start, m->address,
                                                  (uint32_t)lines->sequences.n,
                                                  0});
        lines->sequences.at[lines->sequences.n++] =
            (struct cpprof__line_sequence){m->first, n};
    } else {
        lines->rows.n = m->first;
    }
    start_sequence(m);
}

static void
advance(struct machine *m, uint64_t operations)
{
    uint64_t at = m->operation + operations;

    m->address += m->head->minimum_length * (at / m->head->operations);
    m->operation = at % m->head->operations;
}

/* An opcode of one byte that advances both and adds a row (6.2.5.1). */
static void
run_special(struct machine *m, uint8_t opcode)
{
    uint8_t adjusted = opcode - m->head->opcode_base;

    advance(m, adjusted / m->head->line_range);
    m->line += (uint64_t)(m->head->line_base + adjusted % m->head->line_range);
    add_row(m);
}

/* 6.2.5.3 */
static void
run_extended(struct machine *m, struct cpprof__reader *r)
{
    uint64_t n = cpprof__read_varint(r);
    const uint8_t *bytes = cpprof__read_bytes(r, n);

    if (!bytes || !n)
        return;
    if (bytes[0] == DW_LNE_end_sequence) {
        end_sequence(m);
    } else if (bytes[0] == DW_LNE_set_address && n <= 9) {
        m->address = 0;
        m->operation = 0;
        memcpy(&m->address, bytes + 1, n - 1);
    } else if (bytes[0] == DW_LNE_set_discriminator &&
               m->lines->wants_discriminators) {
        struct cpprof__reader value = cpprof__reader(bytes + 1, n - 1);

        m->discriminator = (uint32_t)cpprof__read_varint(&value);
    }
}

/* 6.2.5.2; the ones that set a flag are skipped by their length. */
static void
run_standard(struct machine *m, struct cpprof__reader *r, uint8_t opcode)
{
    uint8_t n;

    switch (opcode) {
    case DW_LNS_copy:
        add_row(m);
        break;
    case DW_LNS_advance_pc:
        advance(m, cpprof__read_varint(r));
        break;
    case DW_LNS_advance_line:
        m->line += (uint64_t)read_signed(r);
        break;
    case DW_LNS_set_file:
        m->file = cpprof__read_varint(r);
        break;
    case DW_LNS_set_column:
        m->column = cpprof__read_varint(r);
        break;
    case DW_LNS_const_add_pc:
        advance(m, (255u - m->head->opcode_base) / m->head->line_range);
        break;
    case DW_LNS_fixed_advance_pc:
        m->address += cpprof__read_u16(r);
        m->operation = 0;
        break;
    default:
        for (n = m->head->opcode_lengths[opcode - 1]; n > 0; n--)
            cpprof__read_varint(r);
    }
}

static void
run(struct machine *m, struct cpprof__reader *r)
{
    start_sequence(m);
    while (!r->bad && cpprof__reader_left(r)) {
        uint8_t opcode = cpprof__read_u8(r);

        if (opcode >= m->head->opcode_base)
            run_special(m, opcode);
        else if (opcode)
            run_standard(m, r, opcode);
        else
            run_extended(m, r);
    }
    m->lines->rows.n = m->first; /* of a sequence without end */
}

void
cpprof__lines_read(struct cpprof__lines *lines,
                   const struct cpprof__line_sections *sections,
                   uint64_t offset, const struct cpprof__ranges *code)
{
    struct head head = {.sections = sections};
    struct machine machine = {.lines = lines, .head = &head, .code = code};
    struct cpprof__reader r;

    if (offset >= sections->line.n)
        return;
    r = cpprof__reader(sections->line.data + offset, sections->line.n - offset);
    if (!read_head(&r, &head))
        return;
    if (head.version >= 5) {
        read_entries(lines, &r, &head, add_directory);
        read_entries(lines, &r, &head, add_file);
    } else {
        read_old_names(lines, &r);
    }
    run(&machine, &head.program);
    CPPROF__ARRAY_TRIM(&lines->rows);
    cpprof__ranges_seal(&lines->ranges);
}

const struct cpprof__line_row *
cpprof__lines_find(const struct cpprof__lines *lines, uint64_t address)
{
    const struct cpprof__range *range =
        cpprof__ranges_find(&lines->ranges, address);
    const struct cpprof__line_row *rows;
    size_t low = 0;
    size_t high;

    if (!range)
        return NULL;
    rows = lines->rows.at + lines->sequences.at[range->value].first;
    high = lines->sequences.at[range->value].n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (rows[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &rows[low - 1] : NULL;
}

uint32_t
cpprof__lines_discriminator(const struct cpprof__lines *lines,
                            const struct cpprof__line_row *row)
{
    return lines->wants_discriminators
               ? lines->discriminators.at[row - lines->rows.at]
               : 0;
}

bool
cpprof__lines_file(const struct cpprof__lines *lines, uint64_t number,
                   const char **directory, const char **name)
{
    uint64_t i = number - lines->counts_from_one;
    uint32_t in;

    if (i >= lines->files.n || !*lines->files.at[i].name)
        return false;
    *name = lines->files.at[i].name;
    in = lines->files.at[i].directory - lines->counts_from_one;
    *directory = in < lines->directories.n ? lines->directories.at[in] : NULL;
    return true;
}
