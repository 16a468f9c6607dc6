/* SPDX-License-Identifier: MIT */
/*
 * CPU profiles of gperftools, Go up to 1.8, and Java: machine words of the
 * program that wrote them, 4 or 8 bytes, in either order.
 *
 *     0, 3, 0 (1: Java), period in microseconds, 0
 *     count, n, pc[0] ... pc[n - 1]      leaf first, any number of these
 *     0, 1, 0                            the end; may be missing
 *
 * then as text the memory map, or the locations of Java. All but the leaf are
 * return addresses, one is subtracted to come to the call; not so in Java.
 *
 * Source: profile/legacy_profile.go parseCPU, legacy_java_profile.go.
 */
#include "profile/legacy/maps.h"
#include "profile/legacy/rows.h"

#include <string.h>

#define HEADER_WORDS 5

/* A frame belongs to the signal handler if all but one sample in FEW have it.
 * There may be two such frames. */
#define SIMILAR_SAMPLES 32
#define HANDLER_FRAMES  2

/* ------------------------------------------------------------- words ---- */

struct words {
    const uint8_t *next, *end;
    unsigned bytes;
    bool is_big_endian;
    bool bad; /* read behind the end */
};

static size_t
bytes_left(const struct words *w)
{
    return (size_t)(w->end - w->next);
}

static uint64_t
host_word(const struct words *w)
{
    uint64_t wide;
    uint32_t narrow;

    if (w->bytes == sizeof narrow) {
        memcpy(&narrow, w->next, sizeof narrow);
        return w->is_big_endian ? __builtin_bswap32(narrow) : narrow;
    }
    memcpy(&wide, w->next, sizeof wide);
    return w->is_big_endian ? __builtin_bswap64(wide) : wide;
}

static uint64_t
read_word(struct words *w)
{
    uint64_t word;

    if (bytes_left(w) < w->bytes) {
        w->bad = true;
        w->next = w->end;
        return 0;
    }
    word = host_word(w);
    w->next += w->bytes;
    return word;
}

struct reader {
    struct cpprof__rows *rows;
    struct words words;
    bool is_java;
};

/* ------------------------------------------------------------ samples ---- */

enum record {
    RECORD_SAMPLE,
    RECORD_END,
    RECORD_BAD,
};

/* Words that are missing at the end count as 0. */
static enum record
add_sample(struct reader *r, uint64_t count, uint64_t n)
{
    struct cpprof__rows *rows = r->rows;
    int64_t values[2] = {
        (int64_t)count,
        (int64_t)(count * (uint64_t)rows->p->info.period),
    };

    for (; n > 0; n--) {
        uint64_t *added = CPPROF__ARRAY_ADD(&rows->stack.list);

        if (!added) {
            rows->maker.failed = true;
            return RECORD_END;
        }
        *added = read_word(&r->words);
    }
    cpprof__rows_sample(
        rows, r->is_java ? CPPROF__STACK_EXACT : CPPROF__STACK_CALLER, values);
    return RECORD_SAMPLE;
}

static enum record
read_record(struct reader *r)
{
    uint64_t count = read_word(&r->words), n = read_word(&r->words);
    struct words ahead = r->words;

    if (r->words.bad || n > bytes_left(&r->words) / 4 || n > UINT32_MAX)
        return RECORD_BAD;
    if (count == 0 && n == 1 && read_word(&ahead) == 0) {
        r->words = ahead;
        return RECORD_END;
    }
    return add_sample(r, count, n);
}

static enum record
read_records(struct reader *r)
{
    enum record record = RECORD_SAMPLE;

    while (record == RECORD_SAMPLE && bytes_left(&r->words) &&
           !r->rows->maker.failed)
        record = read_record(r);
    return record == RECORD_SAMPLE ? RECORD_END : record;
}

/* ------------------------------------------------------------ cleaning ---- */

/* The frame above the leaf, or PPROF_NONE. */
static uint32_t
second_frame(const struct pprof_profile *p, size_t sample)
{
    const struct cpprof__sample *s = &p->samples.at[sample];

    return s->n_frames > 1 ? p->frames.at[s->first_frame + 1] : PPROF_NONE;
}

static void
drop_second_frame(struct pprof_profile *p, size_t sample)
{
    struct cpprof__sample *s = &p->samples.at[sample];

    p->frames.at[s->first_frame + 1] = p->frames.at[s->first_frame];
    s->first_frame++;
    s->n_frames--;
}

/*
 * The second frame that nearly all samples have, or PPROF_NONE. It is
 * that of more than half, so there is one candidate (Boyer and Moore's vote).
 */
static uint32_t
common_second_frame(const struct pprof_profile *p)
{
    size_t n = p->samples.n, votes = 0, same = 0, i;
    uint32_t candidate = PPROF_NONE;

    for (i = 0; i < n; i++) {
        uint32_t frame = second_frame(p, i);

        if (votes == 0)
            candidate = frame;
        if (frame == candidate)
            votes++;
        else
            votes--;
    }
    for (i = 0; i < n; i++)
        same += second_frame(p, i) == candidate;
    return same >= n - n / SIMILAR_SAMPLES ? candidate : PPROF_NONE;
}

/* The signal handler's own frames. The leaf is exact: it comes from the
 * interrupted context and not from the stack. */
static void
drop_handler_frames(struct pprof_profile *p)
{
    unsigned pass;
    size_t i;

    for (pass = 0; pass < HANDLER_FRAMES; pass++) {
        uint32_t common = common_second_frame(p);

        if (common == PPROF_NONE)
            return;
        for (i = 0; i < p->samples.n; i++)
            if (second_frame(p, i) == common)
                drop_second_frame(p, i);
    }
}

/* ---------------------------------------------------------- the reader ---- */

static bool
is_header(struct words *w, bool *is_java, uint64_t *period)
{
    uint64_t word[HEADER_WORDS];
    size_t i;

    for (i = 0; i < HEADER_WORDS; i++)
        word[i] = read_word(w);
    *is_java = word[2] == 1;
    *period = word[3];
    return !w->bad && word[0] == 0 && word[1] == 3 && word[2] <= 1 &&
           word[3] > 0 && word[4] == 0;
}

static bool
find_header(const struct cpprof__legacy_lines *data, struct reader *r,
            uint64_t *period)
{
    static const struct {
        unsigned bytes;
        bool is_big_endian;
    } forms[] = {{4, false}, {4, true}, {8, false}, {8, true}};
    size_t i;

    for (i = 0; i < sizeof forms / sizeof *forms; i++) {
        r->words = (struct words){(const uint8_t *)data->next,
                                  (const uint8_t *)data->end, forms[i].bytes,
                                  forms[i].is_big_endian, false};
        if (is_header(&r->words, &r->is_java, period))
            return true;
    }
    return false;
}

/* The text behind the records. */
static enum cpprof_status
finish(struct reader *r, struct cpprof_error *error)
{
    struct cpprof__legacy_lines lines = {(const char *)r->words.next,
                                         (const char *)r->words.end};
    struct pprof_profile *p = r->rows->p;
    enum cpprof_status status;
    size_t i;

    if (r->is_java) {
        status = cpprof__read_java_locations(&lines, p, error);
        for (i = 0; i < p->locations.n; i++)
            p->locations.at[i].address = 0;
        return status;
    }
    drop_handler_frames(p);
    status = cpprof__read_maps(&lines, p, error);
    if (status == CPPROF_OK)
        cpprof__drop_double_leaves(p);
    return status;
}

enum cpprof_status
cpprof__read_cpu(struct cpprof__rows *rows, bool *recognized,
                 struct cpprof_error *error)
{
    struct cpprof__maker *m = &rows->maker;
    struct reader r = {.rows = rows};
    enum record end;
    uint64_t period_us;

    *recognized = find_header(&rows->lines, &r, &period_us);
    if (!*recognized)
        return CPPROF_OK;
    cpprof__make_sample_type(m, "samples", "count");
    cpprof__make_sample_type(m, "cpu", "nanoseconds");
    cpprof__make_period(m, "cpu", "nanoseconds",
                        (int64_t)(period_us * UINT64_C(1000)));
    end = read_records(&r);
    *recognized = end != RECORD_BAD;
    return *recognized && !m->failed ? finish(&r, error) : CPPROF_OK;
}
