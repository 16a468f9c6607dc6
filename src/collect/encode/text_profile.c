/* SPDX-License-Identifier: MIT */
/*
 * Text profiles: writes lines through a buffer and aligns the lines of a stack
 * as Go's text/tabwriter would.
 *
 * The lines of one stack are kept until it is complete, because the width of a
 * column depends on all neighbouring lines that have it. Failures are sticky:
 * the first one is returned by cpprof__text_end().
 *
 * Source: Go runtime/pprof/pprof.go (printStackRecord), text/tabwriter.
 */
#include "collect/encode/text_profile.h"

#include "arch/atomic.h"
#include "base/status.h"
#include "base/writer.h"
#include "own/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Size of the buffer in front of the writer. */
#define OUT_BYTES (64 * 1024)

#define TAB   8
#define CELLS (sizeof((struct cpprof__text_line *)0)->cells / sizeof(uint32_t))

void
cpprof__text_begin(struct cpprof__text_profile *t, struct cpprof_writer writer,
                   const struct cpprof__symbolizer_ops *ops,
                   struct cpprof__symbolizer *symbolizer)
{
    memset(t, 0, sizeof *t);
    t->writer = writer;
    t->ops = ops;
    t->symbolizer = symbolizer;
}

void
cpprof__text_add_mappings(struct cpprof__text_profile *t,
                          const struct cpprof__tables *tables)
{
    const struct cpprof__store *store = &tables->store;
    size_t i, n = load_acquire(&store->head->n_mappings);

    t->scripts = tables->scripts;
    n = n < CPPROF__STORE_MAPPINGS ? n : CPPROF__STORE_MAPPINGS;
    t->mappings = cpprof__calloc(n + 1, sizeof *t->mappings);
    if (!t->mappings) {
        cpprof__fail_nomem(&t->error);
        return;
    }
    t->n_mappings = n;
    for (i = 0; i < n; i++) {
        const struct cpprof__symbolizer_mapping mapping =
            cpprof__store_mapping_at(store, i);
        size_t number = t->symbolizer
                            ? t->ops->add_mapping(t->symbolizer, &mapping)
                            : SIZE_MAX;

        t->mappings[i] =
            number < CPPROF__NO_MAPPING ? (uint32_t)number : CPPROF__NO_MAPPING;
    }
}

static void
flush(struct cpprof__text_profile *t)
{
    int sys = 0;

    if (t->out.failed && t->error.status == CPPROF_OK)
        cpprof__fail_nomem(&t->error);
    if (t->error.status == CPPROF_OK && t->out.n)
        sys = t->writer.write(t->writer.ctx, t->out.data, t->out.n);
    if (sys)
        cpprof__fail(&t->error, CPPROF_SYSTEM, sys, "write: %s", strerror(sys));
    t->out.n = 0;
}

static void
flush_full(struct cpprof__text_profile *t)
{
    if (t->out.failed || t->out.n >= OUT_BYTES)
        flush(t);
}

void
cpprof__text_printf(struct cpprof__text_profile *t, const char *format, ...)
{
    char text[512];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0)
        cpprof__buffer_append(&t->out, text,
                              (size_t)n < sizeof text ? (size_t)n
                                                      : sizeof text - 1);
    flush_full(t);
}

void
cpprof__text_addresses(struct cpprof__text_profile *t,
                       const struct cpprof__builder_frame *stack, size_t n)
{
    size_t i, n_put = 0;

    for (i = 0; i < n; i++) {
        if (cpprof__is_script(stack[i].pc))
            continue;
        cpprof__text_printf(t, " 0x%" PRIx64, stack[i].pc + 1);
        n_put++;
    }
    if (!n_put)
        cpprof__text_printf(t, " 0x%x", CPPROF__FRAME_BROKEN + 1);
    cpprof__text_printf(t, "\n");
}

/* ---- frames ----------------------------------------------------------- */

static void
add_cell(struct cpprof__text_profile *t, struct cpprof__text_line *line,
         const char *format, ...) __attribute__((format(printf, 3, 4)));

static void
add_cell(struct cpprof__text_profile *t, struct cpprof__text_line *line,
         const char *format, ...)
{
    char text[4096];
    va_list args;

    line->cells[line->n_cells++] = (uint32_t)t->cells.n;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cpprof__buffer_append(&t->cells, text, strlen(text) + 1);
}

static const char *
cell_of(const struct cpprof__text_profile *t,
        const struct cpprof__text_line *line, size_t cell)
{
    return (const char *)t->cells.data + line->cells[cell];
}

/* Texts of a program are anything. */
static const char *
plain(char to[1024], const char *text)
{
    size_t i;

    for (i = 0; i < 1023 && text[i]; i++)
        to[i] = (char)((unsigned char)text[i] < ' ' ? '?' : text[i]);
    to[i] = 0;
    return to;
}

/* The one frame of a script's pc, in the form of a symbolizer's; returns 1. Its
 * texts live until the next call and have no line break in them. */
static size_t
script_frame(struct cpprof__text_profile *t, uint64_t pc,
             struct cpprof__frame *frame)
{
    const char *mapping;

    cpprof__script_frame(t->scripts, pc, frame, &mapping);
    plain(t->script_texts[0], *mapping ? mapping : "-");
    frame->name = plain(t->script_texts[1], frame->name);
    if (frame->file)
        frame->file = plain(t->script_texts[2], frame->file);
    return 1;
}

size_t
cpprof__text_resolve(struct cpprof__text_profile *t,
                     const struct cpprof__builder_frame *frame)
{
    size_t mapping =
        frame->mapping == CPPROF__NO_MAPPING ? SIZE_MAX : frame->mapping;

    if (frame->pc < CPPROF__FRAME_END) {
        t->frames[0] = (struct cpprof__frame){
            .name = cpprof__own_frame_name(frame->pc), .entry = frame->pc};
        return 1;
    }
    if (cpprof__is_script(frame->pc))
        return script_frame(t, frame->pc, &t->frames[0]);
    if (!t->symbolizer)
        return 0;
    return t->ops->resolve(t->symbolizer, mapping, frame->pc, t->frames,
                           sizeof t->frames / sizeof *t->frames);
}

static void
add_line(struct cpprof__text_profile *t, const struct cpprof__text_line *line)
{
    cpprof__buffer_append(&t->lines, line, sizeof *line);
}

static void
add_named(struct cpprof__text_profile *t, uint64_t pc,
          const struct cpprof__frame *frame)
{
    struct cpprof__text_line line = {0};
    uint64_t offset =
        frame->entry && frame->entry <= pc ? pc - frame->entry : 0;

    add_cell(t, &line, "0x%" PRIx64, pc);
    add_cell(t, &line, "%s+0x%" PRIx64, frame->name, offset);
    add_cell(t, &line, "%s:%" PRId64, frame->file ? frame->file : "?",
             frame->line);
    add_line(t, &line);
}

/* A frame of a script says whose script it is, in place of the address. */
static void
add_script(struct cpprof__text_profile *t, uint64_t pc)
{
    struct cpprof__text_line line = {0};
    struct cpprof__frame frame;

    script_frame(t, pc, &frame);
    add_cell(t, &line, "%s", t->script_texts[0]);
    add_cell(t, &line, "%s", frame.name);
    add_cell(t, &line, "%s:%" PRId64, frame.file ? frame.file : "?",
             frame.line);
    add_line(t, &line);
}

/* The lines of one address. *show: a line was shown, so nothing is hidden any
 * more. */
static void
add_frame(struct cpprof__text_profile *t,
          const struct cpprof__builder_frame *frame, bool *show)
{
    size_t i, n;

    if (cpprof__is_script(frame->pc)) {
        *show = true;
        add_script(t, frame->pc);
        return;
    }
    n = cpprof__text_resolve(t, frame);
    if (!n) {
        struct cpprof__text_line line = {0};

        *show = true;
        add_cell(t, &line, "0x%" PRIx64, frame->pc);
        add_line(t, &line);
    }
    for (i = 0; i < n; i++) {
        *show |= !t->hides || !t->hides(t->frames[i].name);
        if (*show)
            add_named(t, frame->pc, &t->frames[i]);
    }
}

static size_t
width_of(const char *cell)
{
    size_t n = 0;

    for (; *cell; cell++)
        n += ((unsigned char)*cell & 0xc0) != 0x80; /* characters of UTF-8 */
    return n;
}

/* How far a column goes on, beginning with line `first`, and its width. A line
 * that ends before the column interrupts it. */
static size_t
column_width(const struct cpprof__text_profile *t, size_t first, size_t cell,
             size_t *end)
{
    const struct cpprof__text_line *lines = (void *)t->lines.data;
    size_t i, width = 1, n = t->lines.n / sizeof *lines;

    for (i = first; i < n && lines[i].n_cells > cell + 1; i++) {
        size_t w = width_of(cell_of(t, &lines[i], cell)) + 1;

        width = w > width ? w : width;
    }
    *end = i;
    return (width + TAB - 1) / TAB * TAB;
}

static void
put_cell(struct cpprof__text_profile *t, const char *text, size_t width)
{
    size_t n = width_of(text), tabs = (width - n + TAB - 1) / TAB;

    cpprof__buffer_append(&t->out, text, strlen(text));
    while (tabs-- > 0)
        cpprof__buffer_append(&t->out, "\t", 1);
}

static void
put_lines(struct cpprof__text_profile *t)
{
    const struct cpprof__text_line *lines = (void *)t->lines.data;
    size_t i, n = t->lines.n / sizeof *lines;
    size_t width[CELLS] = {0}, end[CELLS] = {0};

    for (i = 0; i < n; i++) {
        size_t cell, last = lines[i].n_cells - 1;
        const char *rest = cell_of(t, &lines[i], last);

        cpprof__buffer_append(&t->out, "#\t", 2);
        for (cell = 0; cell < last; cell++) {
            if (i >= end[cell])
                width[cell] = column_width(t, i, cell, &end[cell]);
            put_cell(t, cell_of(t, &lines[i], cell), width[cell]);
        }
        cpprof__buffer_append(&t->out, rest, strlen(rest));
        cpprof__buffer_append(&t->out, "\n", 1);
    }
}

void
cpprof__text_stack(struct cpprof__text_profile *t,
                   const struct cpprof__builder_frame *stack, size_t n)
{
    bool show = false;
    bool (*hides)(const char *name) = t->hides;
    size_t i;

    t->cells.n = 0;
    t->lines.n = 0;
    for (i = 0; i < n; i++)
        add_frame(t, &stack[i], &show);
    t->hides = NULL;
    for (i = 0; !show && i < n; i++)
        add_frame(t, &stack[i], &(bool){true});
    t->hides = hides;
    if (t->cells.failed || t->lines.failed)
        cpprof__fail_nomem(&t->error);
    else
        put_lines(t);
    cpprof__buffer_append(&t->out, "\n", 1);
    flush_full(t);
}

enum cpprof_status
cpprof__text_end(struct cpprof__text_profile *t, struct cpprof_error *error)
{
    enum cpprof_status status;

    flush(t);
    cpprof__writer_end(&t->writer, &t->error);
    status = t->error.status;
    if (status != CPPROF_OK && error)
        *error = t->error;
    cpprof__free(t->mappings);
    cpprof__buffer_free(&t->out);
    cpprof__buffer_free(&t->cells);
    cpprof__buffer_free(&t->lines);
    return status;
}
