/* SPDX-License-Identifier: MIT */
/*
 * -tags: what the samples of each label add up to. Samples that share a label
 * set are added up first, so that each label is looked at once per set. A view
 * gets them as JSON.
 * Source: internal/report/report.go printTags.
 */
#include "own/memory.h"
#include "report/report.h"

#include "base/status.h"
#include "report/flame/boxes.h"

#include <inttypes.h>
#include <stdlib.h>

/* A value of a label key; numbers as they are printed, so it may be several,
 * from `low` to `high`. */
struct tag {
    uint32_t key, text;
    int64_t sum, low, high;
    bool is_number;
};

struct tags {
    struct cpprof__report *r;
    CPPROF__ARRAY(struct tag) list; /* until it is sorted, as `keys` */
    struct cpprof__table keys;      /* key and text */
};

/* Of the numbers of a key; until a string is added. */
static const char *
unit_of(const struct tags *t, uint32_t key)
{
    const struct cpprof__label_units *units = &t->r->label_units;

    return key < units->n && units->units[key] != CPPROF__NO_STRING
               ? cpprof__strings_text(&t->r->p->strings, units->units[key])
               : "";
}

static bool
add_set(struct tags *t, uint32_t set, int64_t value)
{
    struct pprof_profile *p = t->r->p;
    size_t n, i;
    const struct pprof_label *l = cpprof__label_set(&p->labels, set, &n);

    for (i = 0; i < n; i++) {
        uint32_t text = l[i].text, at = CPPROF__INDEX_NONE;
        char number[CPPROF__LABEL_TEXT];
        bool is_number = l[i].kind != PPROF_LABEL_TEXT;
        struct tag *tag;

        if (is_number) {
            cpprof__scaled_label(number, l[i].num, unit_of(t, l[i].key),
                                 t->r->output_unit);
            text = cpprof__strings_add_text(&p->strings, number);
        }
        if (text != CPPROF__NO_STRING && CPPROF__ARRAY_ROOM(&t->list, 1))
            at = cpprof__keys_number(&t->keys, l[i].key, text, 0);
        if (at == CPPROF__INDEX_NONE)
            return false;
        tag = &t->list.at[at];
        if (at == t->list.n) {
            *tag =
                (struct tag){l[i].key, text, 0, l[i].num, l[i].num, is_number};
            t->list.n++;
        }
        tag->sum = cpprof__add(tag->sum, value);
        tag->low = l[i].num < tag->low ? l[i].num : tag->low;
        tag->high = l[i].num > tag->high ? l[i].num : tag->high;
    }
    return true;
}

/* What the samples of a label set add up to. */
struct set_sum {
    int64_t value;
    bool used;
};

static bool
collect(struct tags *t)
{
    const struct pprof_profile *p = t->r->p;
    struct set_sum *sums = cpprof__calloc(p->labels.sets.n + 1, sizeof *sums);
    bool ok = sums;
    size_t i;

    for (i = 0; ok && i < p->samples.n; i++) {
        struct set_sum *sum = &sums[p->samples.at[i].labels];

        sum->value = cpprof__add(sum->value, cpprof__values(p, i)[t->r->value]);
        sum->used = true;
    }
    for (i = 0; ok && i < p->labels.sets.n; i++)
        if (sums[i].used)
            ok = add_set(t, (uint32_t)i, sums[i].value);
    cpprof__free(sums);
    return ok;
}

/* By key; then the largest first, as the reference compares them: signed,
 * after taking away the sign; then by name. */
static int
compare(const void *x, const void *y, void *ctx)
{
    const struct tags *t = ctx;
    const struct tag *a = x, *b = y;
    const struct cpprof__strings *strings = &t->r->p->strings;
    int64_t m = cpprof__abs(a->sum), n = cpprof__abs(b->sum);

    if (a->key != b->key)
        return cpprof__strings_compare(strings, a->key, b->key);
    if (m != n)
        return m > n ? -1 : 1;
    return cpprof__strings_compare(strings, a->text, b->text);
}

/* The tags of one key, which are n. */
static void
print_key(const struct tags *t, const struct tag *tags, size_t n,
          struct cpprof__buffer *out)
{
    char text[CPPROF__LABEL_TEXT], total[CPPROF__LABEL_TEXT];
    char percent[CPPROF__PERCENT_TEXT];
    int64_t sum = 0;
    size_t i;

    for (i = 0; i < n; i++)
        sum = cpprof__add(sum, tags[i].sum);
    cpprof__format_value(t->r, sum, text);
    cpprof__format_value(t->r, t->r->total, total);
    cpprof__percentage(percent, sum, t->r->total);
    cpprof__append_string(t->r->p, tags->key, out);
    cpprof__buffer_printf(out, ":\t Total %s of %s (%s)\n", text, total,
                          percent);
    for (i = 0; i < n; i++) {
        cpprof__format_value(t->r, tags[i].sum, text);
        cpprof__percentage(percent, tags[i].sum, t->r->total);
        cpprof__buffer_printf(out, " \t%s (%s):\t ", text, percent);
        cpprof__append_string(t->r->p, tags[i].text, out);
        cpprof__buffer_append(out, "\n", 1);
    }
    cpprof__buffer_append(out, "\n", 1);
}

static bool
print(struct tags *t)
{
    struct cpprof__buffer text = {0};
    size_t first, end;
    bool ok;

    for (first = 0; first < t->list.n; first = end) {
        const struct tag *tag = &t->list.at[first];

        for (end = first + 1; end < t->list.n; end++)
            if (t->list.at[end].key != tag->key)
                break;
        print_key(t, tag, end - first, &text);
    }
    ok = !text.failed && cpprof__tabs_align(text.data, text.n, &t->r->out);
    cpprof__buffer_free(&text);
    return ok;
}

/* "1024bytes:1033bytes". A unit that is no word is none to a filter. */
static void
print_range(const struct tags *t, const struct tag *tag,
            struct cpprof__buffer *out)
{
    const char *unit = unit_of(t, tag->key);
    size_t i;

    for (i = 0; unit[i]; i++)
        if ((unsigned char)((unit[i] | 32) - 'a') >= 26)
            unit = "";
    cpprof__buffer_printf(out, ",\"%" PRId64 "%s:%" PRId64 "%s\"", tag->low,
                          unit, tag->high, unit);
}

/* {..., "keys": [{"key", "values": [[text, sum]...]}...]}; of a number a third
 * is the range that a filter takes. */
static void
print_as_data(struct tags *t)
{
    const struct cpprof__strings *strings = &t->r->p->strings;
    struct cpprof__buffer *out = &t->r->sink.buffer;
    uint32_t key = CPPROF__NO_STRING;
    size_t i;

    cpprof__print_data_head(t->r, out);
    cpprof__buffer_printf(out, ",\n\"keys\":[");
    for (i = 0; i < t->list.n; i++) {
        const struct tag *tag = &t->list.at[i];

        if (tag->key != key) {
            cpprof__buffer_printf(out, "%s\n{\"key\":", i ? "]}," : "");
            cpprof__json_text(out, cpprof__strings_text(strings, tag->key),
                              cpprof__strings_n(strings, tag->key));
            cpprof__buffer_printf(out, ",\"values\":[");
        } else {
            cpprof__buffer_printf(out, ",");
        }
        key = tag->key;
        cpprof__buffer_printf(out, "[");
        cpprof__json_text(out, cpprof__strings_text(strings, tag->text),
                          cpprof__strings_n(strings, tag->text));
        cpprof__buffer_printf(out, ",%" PRId64, tag->sum);
        if (tag->is_number)
            print_range(t, tag, out);
        cpprof__buffer_printf(out, "]");
        cpprof__sink_mind(&t->r->sink);
    }
    cpprof__buffer_printf(out, "%s]}\n", t->list.n ? "]}" : "");
}

enum cpprof_status
cpprof__tags(struct cpprof__report *r)
{
    struct tags t = {.r = r};
    bool ok = collect(&t);

    if (ok && t.list.n)
        qsort_r(t.list.at, t.list.n, sizeof *t.list.at, compare, &t);
    if (ok && r->view)
        print_as_data(&t);
    else if (ok)
        ok = print(&t);
    CPPROF__ARRAY_FREE(&t.list);
    cpprof__table_free(&t.keys);
    return ok ? CPPROF_OK : cpprof__fail_nomem(r->error);
}
