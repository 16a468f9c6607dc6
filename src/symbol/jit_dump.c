/* SPDX-License-Identifier: MIT */
/*
 * Reads jitdump files. A record says when its code came into being, and threads
 * may write them in another order: so all are read first, then put in the order
 * of time, and then those that moved are given the names of what they were.
 * The file is not trusted.
 */
#include "symbol/jit_dump.h"

#include "base/reader.h"
#include "base/text.h"
#include "own/memory.h"
#include "own/sort.h"
#include "symbol/elf/array.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC 0x4a695444u /* "JiTD" */

#define LEAST_HEADER 40
#define RECORD_HEAD  16

/* Kinds of records; others have nothing to tell here. */
enum { CODE_LOAD = 0, CODE_MOVE = 1, CODE_DEBUG_INFO = 2 };

/* Of one function: bounds what a look-up can cost. */
#define MOST_LINES 65536

/* V8 has its lines so many bytes too far, for the header of the ELF file that
 * `perf inject` makes. */
#define V8_SHIFT 64

/* Lines come before their code. */
struct pending {
    uint64_t start;
    uint32_t first_line;
    uint32_t n_lines;
};

struct dump {
    struct cpprof__jit_table *table;
    struct pending pending;
    uint64_t time;     /* of the record */
    uint64_t file_end; /* where it ends */
};

/* A text up to its zero; NULL and bad without one. */
static const char *
read_text(struct cpprof__reader *r, size_t *n)
{
    const uint8_t *text = r->next;
    const uint8_t *end = memchr(text, 0, cpprof__reader_left(r));

    if (!end) {
        r->bad = true;
        return NULL;
    }
    *n = (size_t)(end - text);
    r->next = end + 1;
    return (const char *)text;
}

/* The offset in the table of a copy; false: it has no room for more. */
static bool
add_text(struct cpprof__jit_table *t, const char *text, size_t n, uint32_t *at)
{
    if (t->text.n + n > UINT32_MAX)
        return false;
    *at = (uint32_t)t->text.n;
    cpprof__buffer_append(&t->text, text, n);
    return !t->text.failed;
}

static void
add_code(struct dump *d, struct cpprof__jit_code code)
{
    if (code.n_bytes > UINT64_MAX - code.start)
        return;
    code.time = d->time;
    code.file_end = d->file_end;
    code.position = (uint32_t)d->table->codes.n;
    cpprof__jit_table_add(d->table, &code);
}

static void
read_load(struct dump *d, struct cpprof__reader *r)
{
    struct cpprof__jit_code code = {0};
    const char *name;
    size_t n = 0;

    cpprof__read_u64(r); /* process and thread */
    cpprof__read_u64(r); /* vma */
    code.start = cpprof__read_u64(r);
    code.n_bytes = cpprof__read_u64(r);
    code.index = cpprof__read_u64(r);
    name = read_text(r, &n);
    if (r->bad || !n || !add_text(d->table, name, n, &code.name))
        return;
    code.n_name = (uint32_t)n;
    if (d->pending.start == code.start) {
        code.first_line = d->pending.first_line;
        code.n_lines = d->pending.n_lines;
    }
    d->pending = (struct pending){0};
    add_code(d, code);
}

static void
read_move(struct dump *d, struct cpprof__reader *r)
{
    struct cpprof__jit_code code = {.is_moved = true};

    cpprof__read_u64(r); /* process and thread */
    cpprof__read_u64(r); /* vma */
    cpprof__read_u64(r); /* where it was */
    code.start = cpprof__read_u64(r);
    code.n_bytes = cpprof__read_u64(r);
    code.index = cpprof__read_u64(r);
    if (!r->bad)
        add_code(d, code);
}

/* V8 has written the names of files from memory that it had freed. */
static bool
is_text(const char *text, size_t n)
{
    uint32_t rune;
    size_t n_rune;

    for (; n; text += n_rune, n -= n_rune) {
        n_rune = cpprof__utf8_next(text, n, &rune);
        if (!n_rune || rune < ' ' || rune == 0x7f)
            return false;
    }
    return true;
}

/* One line of the function at start; false when it is malformed. */
static bool
read_line(struct dump *d, struct cpprof__reader *r, uint64_t start,
          struct cpprof__jit_line *line)
{
    const char *file;
    size_t n = 0;

    line->offset = cpprof__read_u64(r) - start;
    line->line = cpprof__read_u32(r);
    cpprof__read_u32(r); /* discriminator */
    file = read_text(r, &n);
    if (r->bad)
        return false;
    if (n == 1 && *file == '\xff') /* the same as before */
        return line->n_file > 0;
    line->n_file = (uint32_t)n;
    return n > 0 && is_text(file, n) &&
           add_text(d->table, file, n, &line->file);
}

/* All of them count, or none. */
static void
read_lines(struct dump *d, struct cpprof__reader *r)
{
    struct cpprof__jit_table *t = d->table;
    struct cpprof__jit_line line = {0};
    uint64_t start = cpprof__read_u64(r), n = cpprof__read_u64(r), i;
    size_t first = t->lines.n;
    uint64_t shift = 0;

    d->pending = (struct pending){0};
    if (r->bad || n > MOST_LINES)
        return;
    for (i = 0; i < n; i++) {
        if (!read_line(d, r, start, &line) ||
            !CPPROF__BOUNDED_ROOM(&t->lines)) {
            t->lines.n = first;
            return;
        }
        if (i == 0 && line.offset == V8_SHIFT)
            shift = V8_SHIFT;
        t->lines.at[t->lines.n] = line;
        t->lines.at[t->lines.n++].offset -= shift;
    }
    d->pending = (struct pending){start, (uint32_t)first, (uint32_t)n};
}

/* ---- what all records say together ------------------------------------- */

static int
by_time(const void *a, const void *b)
{
    const struct cpprof__jit_code *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

struct load {
    uint64_t index;
    uint32_t code;
};

static int
by_index(const void *a, const void *b)
{
    const struct load *x = a, *y = b;

    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return (x->code > y->code) - (x->code < y->code);
}

/* The last load of an index before a code, or NULL. */
static const struct load *
load_before(const struct load *loads, size_t n, uint64_t index, uint32_t code)
{
    struct load key = {index, code};
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (by_index(&loads[mid], &key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo && loads[lo - 1].index == index ? &loads[lo - 1] : NULL;
}

static void
name_moved(struct cpprof__jit_table *t)
{
    struct load *loads = cpprof__calloc(t->codes.n + 1, sizeof *loads);
    size_t n = 0, i;

    for (i = 0; loads && i < t->codes.n; i++)
        if (!t->codes.at[i].is_moved)
            loads[n++] = (struct load){t->codes.at[i].index, (uint32_t)i};
    if (loads)
        cpprof__sort(loads, n, sizeof *loads, by_index);
    for (i = 0; loads && i < t->codes.n; i++) {
        struct cpprof__jit_code *code = &t->codes.at[i];
        const struct load *load =
            code->is_moved ? load_before(loads, n, code->index, (uint32_t)i)
                           : NULL;

        if (!load)
            continue;
        code->name = t->codes.at[load->code].name;
        code->n_name = t->codes.at[load->code].n_name;
        code->first_line = t->codes.at[load->code].first_line;
        code->n_lines = t->codes.at[load->code].n_lines;
    }
    cpprof__free(loads);
}

static void
put_in_order(struct cpprof__jit_table *t)
{
    if (!t->codes.n)
        return;
    cpprof__sort(t->codes.at, t->codes.n, sizeof *t->codes.at, by_time);
    name_moved(t);
    cpprof__jit_table_seal(t);
}

bool
cpprof__jit_dump_read(struct cpprof__jit_table *table, const void *bytes,
                      size_t n)
{
    struct cpprof__reader r = cpprof__reader(bytes, n);
    struct dump d = {.table = table};
    uint32_t magic = cpprof__read_u32(&r), n_header;

    cpprof__read_u32(&r); /* version */
    n_header = cpprof__read_u32(&r);
    if (r.bad || magic != MAGIC || n_header < LEAST_HEADER)
        return false;
    cpprof__read_bytes(&r, n_header - 12);
    while (!r.bad && cpprof__reader_left(&r)) {
        uint32_t kind = cpprof__read_u32(&r);
        uint32_t n_record = cpprof__read_u32(&r);
        struct cpprof__reader record;
        const uint8_t *body;

        d.time = cpprof__read_u64(&r);
        if (n_record < RECORD_HEAD)
            break;
        body = cpprof__read_bytes(&r, n_record - RECORD_HEAD);
        if (!body)
            break;
        d.file_end = n - cpprof__reader_left(&r);
        record = cpprof__reader(body, n_record - RECORD_HEAD);
        if (kind == CODE_LOAD)
            read_load(&d, &record);
        else if (kind == CODE_MOVE)
            read_move(&d, &record);
        else if (kind == CODE_DEBUG_INFO)
            read_lines(&d, &record);
    }
    put_in_order(table);
    return true;
}
