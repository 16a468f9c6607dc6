/* SPDX-License-Identifier: MIT */
/*
 * Collapsed ("folded") stacks: a line per stack, frames parted by semicolons,
 * root first, then a space and how often it was seen:
 *
 *     main;read file;[libc.so.6]_[k] 12
 *
 * A frame is a function and nothing else; annotations such as _[k] (kernel),
 * _[i] (inlined) and _[j] (JIT) are part of its name, as they are for
 * flamegraph.pl and inferno. Empty frames are left out. Counts may have a
 * fraction, which is rounded. Where every line has two numbers, the file is
 * what difffolded.pl writes, and they are two sample types.
 *
 * Any line of prose that ends in a number fits; so a file is taken for
 * collapsed stacks when its first line fits and some fitting line has a
 * semicolon, or when all of its lines fit. The first pass finds that out.
 *
 * Source: flamegraph.pl, inferno's flamegraph/merge.rs, speedscope.
 */
#include "base/status.h"
#include "profile/legacy/numbers.h"
#include "profile/legacy/rows.h"
#include "profile/text/text.h"

#include <string.h>

/* ------------------------------------------------------------- lines ---- */

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Does a fraction, ".5" or ".", end the text and round up? */
static bool
parse_fraction(struct cpprof__text text, bool *up)
{
    if (!text.n)
        return true;
    *up = text.n > 1 && text.at[1] >= '5' && text.at[1] <= '9';
    return cpprof__take(&text, ".") &&
           (cpprof__take_digits(&text), text.n == 0);
}

/* "12", "-3", "0.50": the whole text. Rounds to the nearest. */
static bool
parse_count(struct cpprof__text text, int64_t *count)
{
    struct cpprof__text whole = cpprof__take_signed(&text);
    bool up = false;

    if (cpprof__parse_int(whole, 10, count) || !parse_fraction(text, &up))
        return false;
    if (up && whole.at[0] == '-')
        *count -= *count > INT64_MIN;
    else if (up)
        *count += *count < INT64_MAX;
    return true;
}

/* Cut the last word off a line, if it is a count and something is left. */
static bool
cut_count(struct cpprof__text *line, int64_t *count)
{
    struct cpprof__text word = *line, rest = *line;

    while (rest.n && !is_blank(rest.at[rest.n - 1]))
        rest.n--;
    cpprof__skip(&word, rest.n);
    if (!parse_count(word, count))
        return false;
    while (rest.n && is_blank(rest.at[rest.n - 1]))
        rest.n--;
    if (!rest.n)
        return false;
    *line = rest;
    return true;
}

/* Text, as far as one sees; bytes above ASCII are letters of other scripts. */
static bool
is_text(struct cpprof__text line)
{
    size_t i;

    for (i = 0; i < line.n; i++)
        if ((unsigned char)line.at[i] < ' ' && line.at[i] != '\t')
            return false;
    return true;
}

/* --------------------------------------------------------- first pass ---- */

struct shape {
    bool recognized;
    bool two_counts;   /* in every line */
    uint64_t bad_line; /* the first that does not fit, from 1; or 0 */
};

/* Look at a line that is neither empty nor a comment. */
static bool
check_line(struct cpprof__text line, struct shape *shape)
{
    int64_t count;

    if (!is_text(line) || !cut_count(&line, &count))
        return false;
    if (memchr(line.at, ';', line.n))
        shape->recognized = true;
    shape->two_counts = shape->two_counts && cut_count(&line, &count);
    return true;
}

static struct shape
find_shape(struct cpprof__legacy_lines lines)
{
    struct shape shape = {.two_counts = true};
    uint64_t n_lines = 0, n_fit = 0;
    struct cpprof__text line;

    while (cpprof__next_line(&lines, &line)) {
        n_lines++;
        line = cpprof__trim(line);
        if (!line.n || line.at[0] == '#')
            continue;
        if (check_line(line, &shape)) {
            n_fit++;
        } else {
            shape.bad_line = n_lines;
            break;
        }
    }
    if (!shape.bad_line)
        shape.recognized = n_fit > 0;
    return shape;
}

/* -------------------------------------------------------- second pass ---- */

struct stacks {
    struct cpprof__rows *rows;   /* its frames: of the line, root first */
    struct cpprof__maker *maker; /* of rows */
    /* The location of a string; 0: none yet, else its index and 1. */
    CPPROF__ARRAY(uint32_t) by_string;
};

static uint32_t
make_frame(struct stacks *s, uint32_t name)
{
    uint32_t function = cpprof__make_function(s->maker, name, name, 0);

    return cpprof__make_location(s->maker, PPROF_NONE, 0, function, 0);
}

/* Room for every string there is. */
static bool
make_room_for(struct stacks *s, uint32_t string)
{
    size_t more;

    if (string < s->by_string.n)
        return true;
    more = string + 1 - s->by_string.n;
    if (!CPPROF__ARRAY_ROOM(&s->by_string, more))
        return false;
    memset(s->by_string.at + s->by_string.n, 0, more * sizeof *s->by_string.at);
    s->by_string.n += more;
    return true;
}

static void
add_frame(struct stacks *s, struct cpprof__text name)
{
    uint32_t string = cpprof__make_string(s->maker, name.at, name.n);
    uint32_t *frame;

    if (!s->maker->failed && make_room_for(s, string)) {
        if (!s->by_string.at[string])
            s->by_string.at[string] = make_frame(s, string) + 1;
        frame = CPPROF__ARRAY_ADD(&s->rows->frames);
        if (frame) {
            *frame = s->by_string.at[string] - 1;
            return;
        }
    }
    s->maker->failed = true;
}

static void
add_frames(struct stacks *s, struct cpprof__text stack)
{
    while (stack.n) {
        const char *end = memchr(stack.at, ';', stack.n);
        struct cpprof__text name = stack;

        if (end)
            name.n = (size_t)(end - stack.at);
        cpprof__skip(&stack, name.n + (end != NULL));
        if (name.n)
            add_frame(s, name);
    }
}

static void
reverse(uint32_t *at, size_t n)
{
    size_t i;

    for (i = 0; i < n / 2; i++) {
        uint32_t spare = at[i];

        at[i] = at[n - 1 - i];
        at[n - 1 - i] = spare;
    }
}

static void
add_line(struct stacks *s, struct cpprof__text line, bool two_counts)
{
    int64_t values[2] = {0};

    cut_count(&line, &values[two_counts]);
    if (two_counts)
        cut_count(&line, &values[0]);
    s->rows->frames.n = 0;
    add_frames(s, line);
    reverse(s->rows->frames.at, s->rows->frames.n);
    cpprof__make_sample(s->maker, s->rows->frames.at, s->rows->frames.n,
                        values);
}

static void
add_lines(struct stacks *s, struct cpprof__legacy_lines lines, bool two_counts)
{
    struct cpprof__text line;

    if (two_counts)
        cpprof__make_sample_type(s->maker, "base", "count");
    cpprof__make_sample_type(s->maker, "samples", "count");
    cpprof__make_period(s->maker, "samples", "count", 1);
    while (!s->maker->failed && cpprof__next_line(&lines, &line)) {
        line = cpprof__trim(line);
        if (line.n && line.at[0] != '#')
            add_line(s, line, two_counts);
    }
}

enum cpprof_status
cpprof__read_collapsed(struct cpprof__rows *rows, bool *recognized,
                       struct cpprof_error *error)
{
    struct stacks s = {.rows = rows, .maker = &rows->maker};
    struct shape shape = find_shape(rows->lines);

    *recognized = shape.recognized;
    if (!shape.recognized)
        return CPPROF_OK;
    if (shape.bad_line)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "collapsed stacks: line %llu is no stack with a "
                            "count behind it",
                            (unsigned long long)shape.bad_line);
    add_lines(&s, rows->lines, shape.two_counts);
    CPPROF__ARRAY_FREE(&s.by_string);
    return CPPROF_OK;
}
