/* SPDX-License-Identifier: MIT */
/*
 * Collapsed stacks from a profile. Frames are compared by the text that is
 * printed, so that stacks which differ in addresses or lines only are one.
 *
 * - Inlined functions are frames of their own.
 * - ';' in a name is ':', control characters are spaces, as inferno has it.
 * - A frame without a name is "[FILE <0xADDRESS>]", "[unknown <0x...>]"
 *   without a mapping; a sample without frames is "[unknown]".
 * - What would read as something else is bent: a root frame's first '#' (a
 *   comment) and a leaf's last space in front of digits (a second count) are
 *   underscores.
 * - Stacks whose values add up to nothing are left out.
 */
#include "own/memory.h"
#include "profile/text/text.h"

#include "profile/model/path.h"

#include <string.h>

#define NO_FRAME CPPROF__NO_STRING

/* A stack that has been seen. */
struct stack {
    size_t first; /* into folder.frames, root first */
    uint32_t n;
    int64_t value;
};

struct folder {
    const struct pprof_profile *p;
    bool failed;
    struct cpprof__strings names; /* a frame is the number of one of these */
    struct cpprof__buffer scratch;
    uint32_t *of_function; /* the frame of a function; NO_FRAME: not made yet */
    uint32_t *of_location; /* of a location without lines */
    CPPROF__ARRAY(uint32_t) frames;
    CPPROF__ARRAY(struct stack) stacks;
    struct cpprof__index index; /* of stacks, by their frames */
};

static uint32_t *
no_frames(size_t n)
{
    uint32_t *at = n ? cpprof__malloc(n * sizeof *at) : NULL;

    if (at)
        memset(at, 0xff, n * sizeof *at);
    return at;
}

static bool
begin(struct folder *f)
{
    const struct pprof_profile *p = f->p;

    f->of_function = no_frames(p->functions.n);
    f->of_location = no_frames(p->locations.n);
    return cpprof__strings_begin(&f->names) &&
           (f->of_function || !p->functions.n) &&
           (f->of_location || !p->locations.n);
}

static void
end(struct folder *f)
{
    cpprof__strings_free(&f->names);
    cpprof__buffer_free(&f->scratch);
    cpprof__free(f->of_function);
    cpprof__free(f->of_location);
    CPPROF__ARRAY_FREE(&f->frames);
    CPPROF__ARRAY_FREE(&f->stacks);
    cpprof__index_free(&f->index);
}

/* ------------------------------------------------------------ frames ---- */

static void
append_text(struct cpprof__buffer *out, const char *text, size_t n,
            char semicolon)
{
    uint8_t *to;
    size_t i;

    if (!cpprof__buffer_reserve(out, n))
        return;
    to = out->data + out->n;
    for (i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c < ' ' || c == 0x7f)
            c = ' ';
        to[i] = c == ';' ? (unsigned char)semicolon : c;
    }
    out->n += n;
}

void
cpprof__append_clean(struct cpprof__buffer *out, const struct pprof_profile *p,
                     uint32_t string, char semicolon)
{
    append_text(out, cpprof__strings_text(&p->strings, string),
                cpprof__strings_n(&p->strings, string), semicolon);
}

void
cpprof__append_base(struct cpprof__buffer *out, const struct pprof_profile *p,
                    uint32_t file, char semicolon)
{
    size_t n;
    const char *base =
        cpprof__path_base(cpprof__strings_text(&p->strings, file),
                          cpprof__strings_n(&p->strings, file), &n);

    append_text(out, base, n, semicolon);
}

/* The frame that the scratch buffer names. */
static uint32_t
scratch_frame(struct folder *f)
{
    uint32_t frame = NO_FRAME;

    if (!f->scratch.failed)
        frame = cpprof__strings_add(&f->names,
                                    f->scratch.n ? (char *)f->scratch.data : "",
                                    f->scratch.n);
    f->failed = f->failed || frame == NO_FRAME;
    f->scratch.n = 0;
    return frame;
}

static uint32_t
function_frame(struct folder *f, uint32_t function)
{
    uint32_t *frame = &f->of_function[function];
    uint32_t text = cpprof__function_text(f->p, function);

    if (*frame == NO_FRAME) {
        if (text)
            cpprof__append_clean(&f->scratch, f->p, text, ':');
        else
            cpprof__buffer_append(&f->scratch, "[unknown]", 9);
        *frame = scratch_frame(f);
    }
    return *frame;
}

static uint32_t
location_frame(struct folder *f, uint32_t location)
{
    const struct pprof_location *l = &f->p->locations.at[location];
    uint32_t *frame = &f->of_location[location];
    uint32_t file = cpprof__location_file(f->p, l);

    if (*frame == NO_FRAME) {
        cpprof__buffer_append(&f->scratch, "[", 1);
        if (file)
            cpprof__append_base(&f->scratch, f->p, file, ':');
        else
            cpprof__buffer_append(&f->scratch, "unknown", 7);
        cpprof__buffer_printf(&f->scratch, " <0x%llx>]",
                              (unsigned long long)l->address);
        *frame = scratch_frame(f);
    }
    return *frame;
}

static void
push(struct folder *f, uint32_t frame)
{
    uint32_t *added = CPPROF__ARRAY_ADD(&f->frames);

    if (added)
        *added = frame;
    else
        f->failed = true;
}

/* Append the frames of a sample, root first. */
static void
push_frames(struct folder *f, const struct cpprof__sample *sample)
{
    const struct pprof_profile *p = f->p;
    size_t i = sample->n_frames;

    while (i-- && !f->failed) {
        uint32_t location = p->frames.at[sample->first_frame + i];
        const struct pprof_location *l = &p->locations.at[location];
        size_t j = l->n_lines;

        if (!j)
            push(f, location_frame(f, location));
        while (j--)
            push(f, function_frame(f, p->lines.at[l->first_line + j].function));
    }
    if (!sample->n_frames) {
        cpprof__buffer_append(&f->scratch, "[unknown]", 9);
        push(f, scratch_frame(f));
    }
}

/* ------------------------------------------------------------ stacks ---- */

struct wanted {
    const struct folder *f;
    size_t first, n;
};

static bool
is_wanted(void *ctx, uint32_t value)
{
    const struct wanted *w = ctx;
    const struct stack *s = &w->f->stacks.at[value];

    return s->n == w->n &&
           memcmp(w->f->frames.at + s->first, w->f->frames.at + w->first,
                  w->n * sizeof *w->f->frames.at) == 0;
}

/* Add the frames from `first` on as a new stack. */
static void
add_stack(struct folder *f, size_t first, int64_t value, uint64_t hash)
{
    struct stack *s = NULL;

    if (f->stacks.n < CPPROF__INDEX_NONE && f->frames.n - first <= UINT32_MAX)
        s = CPPROF__ARRAY_ADD(&f->stacks);
    if (!s) {
        f->failed = true;
        return;
    }
    *s = (struct stack){first, (uint32_t)(f->frames.n - first), value};
    if (!cpprof__index_add(&f->index, hash, (uint32_t)f->stacks.n - 1))
        f->failed = true;
}

/* Sums wrap around, as they do in Go. */
static void
add_sample(struct folder *f, const struct cpprof__sample *sample, int64_t value)
{
    size_t first = f->frames.n;
    struct wanted wanted = {f, first, 0};
    uint64_t hash;
    uint32_t found;

    push_frames(f, sample);
    if (f->failed)
        return;
    wanted.n = f->frames.n - first;
    hash = cpprof__hash_bytes(f->frames.at + first,
                              wanted.n * sizeof *f->frames.at, 0);
    found = cpprof__index_find(&f->index, hash, is_wanted, &wanted);
    if (found == CPPROF__INDEX_NONE) {
        add_stack(f, first, value, hash);
        return;
    }
    f->frames.n = first;
    f->stacks.at[found].value =
        (int64_t)((uint64_t)f->stacks.at[found].value + (uint64_t)value);
}

/* ------------------------------------------------------------ output ---- */

/* The space in front of the digits that a text ends with, or n. */
static size_t
space_before_digits(const uint8_t *text, size_t n)
{
    size_t i = n;

    while (i &&
           ((text[i - 1] >= '0' && text[i - 1] <= '9') || text[i - 1] == '.'))
        i--;
    i -= i && i < n && text[i - 1] == '-';
    return i && i < n && text[i - 1] == ' ' ? i - 1 : n;
}

void
cpprof__escape_collapsed(struct cpprof__buffer *b, size_t start)
{
    size_t space, first = start;

    if (b->failed)
        return;
    while (first < b->n && b->data[first] == ' ')
        first++;
    if (first < b->n && b->data[first] == '#')
        b->data[first] = '_';
    space = space_before_digits(b->data + start, b->n - start);
    if (space < b->n - start)
        b->data[start + space] = '_';
}

static void
write_stack(const struct folder *f, const struct stack *s,
            struct cpprof__sink *out)
{
    struct cpprof__buffer *b = &out->buffer;
    size_t start = b->n;
    uint32_t i;

    for (i = 0; i < s->n; i++) {
        uint32_t frame = f->frames.at[s->first + i];

        if (i)
            cpprof__buffer_append(b, ";", 1);
        cpprof__buffer_append(b, cpprof__strings_text(&f->names, frame),
                              cpprof__strings_n(&f->names, frame));
    }
    cpprof__escape_collapsed(b, start);
    cpprof__buffer_printf(b, " %lld\n", (long long)s->value);
    cpprof__sink_mind(out);
}

void
cpprof__write_collapsed(const struct pprof_profile *p, size_t type,
                        struct cpprof__sink *out)
{
    struct folder f = {.p = p};
    size_t i;

    f.failed = !begin(&f);
    for (i = 0; i < p->samples.n && !f.failed; i++) {
        int64_t value = cpprof__values(p, i)[type];

        if (value)
            add_sample(&f, &p->samples.at[i], value);
    }
    for (i = 0; i < f.stacks.n && !f.failed; i++)
        if (f.stacks.at[i].value)
            write_stack(&f, &f.stacks.at[i], out);
    if (f.failed)
        out->buffer.failed = true;
    end(&f);
}
