/* SPDX-License-Identifier: MIT */
/*
 * The tags of a drawing's nodes: for each node that is shown, what each label
 * set of its samples adds up to.
 *
 * Texts of a label set are joined once for the set and not once for each
 * sample. Tags are then found by node, set and name through an index, and
 * `seen` keeps a node that occurs several times in a stack from counting
 * twice. Tags below the cutoff are dropped at the end, because only the sum
 * decides.
 *
 * Invariants: the tags of one node lie together, in the order that the
 * reference has.
 */
#include "own/memory.h"
#include "report/dot/visual.h"

#include "base/status.h"
#include "report/dot/dot_text.h"

#include <stdlib.h>
#include <string.h>

/* A number of a label set: its text, value and unit. */
struct number {
    uint32_t name;
    uint32_t unit;
    int64_t number;
};

/* A label set as tags. */
struct set {
    uint32_t labels;
    size_t first_number, n_numbers;
};

struct maker {
    struct cpprof__node_tags *tags;
    const struct cpprof__trimmed *t;
    struct set *sets;
    CPPROF__ARRAY(struct number) numbers;
    struct cpprof__table keys; /* of tags: node, labels, name */
    uint8_t *wanted;           /* by node */
    uint32_t *seen;            /* by node: the last sample, + 1 */
    bool failed;
};

/* -------------------------------------------------------- label sets ---- */

/* "key:value", joined by "\n" as dot writes it, in the order of their text. */
static int
compare_texts(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

static char *
label_text(const struct cpprof__strings *strings, const struct pprof_label *l)
{
    size_t n_key = cpprof__strings_n(strings, l->key);
    size_t n_text = cpprof__strings_n(strings, l->text);
    char *text = cpprof__malloc(n_key + n_text + 2);

    if (!text)
        return NULL;
    memcpy(text, cpprof__strings_text(strings, l->key), n_key);
    text[n_key] = ':';
    memcpy(text + n_key + 1, cpprof__strings_text(strings, l->text),
           n_text + 1);
    return text;
}

static uint32_t
intern(struct maker *m, const void *text, size_t n)
{
    uint32_t string = cpprof__strings_add(&m->tags->texts, text, n);

    m->failed |= string == CPPROF__NO_STRING;
    return m->failed ? 0 : string;
}

/* The text labels of a set as one text, for inside of quotes. */
static uint32_t
join(struct maker *m, const struct pprof_label *l, size_t n)
{
    const struct cpprof__strings *strings = &m->t->g.p->strings;
    char **texts = cpprof__calloc(n + 1, sizeof *texts);
    struct cpprof__buffer joined = {0};
    uint32_t string = 0;
    size_t n_texts = 0, i;

    m->failed |= !texts;
    for (i = 0; i < n && !m->failed; i++) {
        /* The label that marks the base of a comparison is not shown. */
        if (l[i].kind != PPROF_LABEL_TEXT ||
            strcmp(cpprof__strings_text(strings, l[i].key), "pprof::base") == 0)
            continue;
        texts[n_texts] = label_text(strings, &l[i]);
        m->failed |= !texts[n_texts++];
    }
    if (!m->failed && n_texts) {
        qsort(texts, n_texts, sizeof *texts, compare_texts);
        for (i = 0; i < n_texts; i++) {
            cpprof__buffer_printf(&joined, "%s", i ? "\\n" : "");
            cpprof__dot_escape(texts[i], strlen(texts[i]), &joined);
        }
        m->failed |= joined.failed;
        if (!m->failed)
            string = intern(m, joined.data, joined.n);
    }
    for (i = 0; i < n_texts; i++)
        cpprof__free(texts[i]);
    cpprof__free(texts);
    cpprof__buffer_free(&joined);
    return string;
}

/* Only sizes of objects are shown. */
static void
add_numbers(struct maker *m, const struct pprof_label *l, size_t n)
{
    const struct cpprof__strings *strings = &m->t->g.p->strings;
    size_t i;

    for (i = 0; i < n && !m->failed; i++) {
        uint32_t unit = l[i].unit ? l[i].unit : l[i].key;
        char text[CPPROF__LABEL_TEXT];
        struct number *number;

        if (l[i].kind != PPROF_LABEL_NUMBER ||
            strcmp(cpprof__strings_text(strings, l[i].key), "bytes") != 0)
            continue;
        cpprof__scaled_label(text, l[i].num,
                             cpprof__strings_text(strings, unit),
                             m->t->r->output_unit);
        number = CPPROF__ARRAY_ADD(&m->numbers);
        m->failed |= !number;
        if (number)
            *number =
                (struct number){intern(m, text, strlen(text)), unit, l[i].num};
    }
}

static void
make_sets(struct maker *m)
{
    const struct cpprof__label_sets *sets = &m->t->g.p->labels;
    size_t i;

    m->sets = cpprof__calloc(sets->sets.n + 1, sizeof *m->sets);
    m->failed |= !m->sets;
    for (i = 0; i < sets->sets.n && !m->failed; i++) {
        size_t n;
        const struct pprof_label *l = cpprof__label_set(sets, (uint32_t)i, &n);

        m->sets[i].labels = join(m, l, n);
        m->sets[i].first_number = m->numbers.n;
        add_numbers(m, l, n);
        m->sets[i].n_numbers = m->numbers.n - m->sets[i].first_number;
    }
}

/* -------------------------------------------------------------- tags ---- */

/* What one sample adds to the tags of its nodes. */
struct charge {
    const struct set *set;
    int64_t value, divisor;
    bool flat;
};

static void
charge(struct maker *m, const struct charge *b, const struct cpprof__tag *key)
{
    struct cpprof__node_tags *tags = m->tags;
    uint32_t at = CPPROF__INDEX_NONE;
    struct cpprof__tag *tag;

    if (CPPROF__ARRAY_ROOM(&tags->all, 1))
        at = cpprof__keys_number(&m->keys, key->node, key->labels, key->name);
    m->failed |= at == CPPROF__INDEX_NONE;
    if (m->failed)
        return;
    if (at == tags->all.n)
        tags->all.at[tags->all.n++] = *key;
    tag = &tags->all.at[at];
    if (b->flat) {
        tag->flat = cpprof__add(tag->flat, b->value);
        tag->flat_div = cpprof__add(tag->flat_div, b->divisor);
    } else {
        tag->cum = cpprof__add(tag->cum, b->value);
        tag->cum_div = cpprof__add(tag->cum_div, b->divisor);
    }
}

static void
add_to_node(struct maker *m, const struct charge *b, uint32_t node)
{
    struct cpprof__tag key = {.node = node, .labels = b->set->labels};
    size_t i;

    if (key.labels)
        charge(m, b, &key);
    for (i = 0; i < b->set->n_numbers; i++) {
        const struct number *n = &m->numbers.at[b->set->first_number + i];

        key.name = n->name;
        key.unit = n->unit;
        key.number = n->number;
        charge(m, b, &key);
    }
}

static void
add_sample(struct maker *m, size_t sample)
{
    const struct cpprof__graph *g = &m->t->g;
    const struct cpprof__sample *s = &g->p->samples.at[sample];
    const int64_t *values = cpprof__values(g->p, sample);
    struct charge b = {&m->sets[s->labels], values[g->value], 0, false};
    const uint32_t *frames = g->p->frames.at + s->first_frame;
    size_t i, j;

    if (g->divisor != CPPROF__NO_DIVISOR)
        b.divisor = values[g->divisor];
    if ((!b.set->labels && !b.set->n_numbers) || (!b.value && !b.divisor) ||
        !s->n_frames)
        return;
    for (i = s->n_frames; i; i--)
        for (j = g->first_node[frames[i - 1] + 1];
             j > g->first_node[frames[i - 1]]; j--) {
            uint32_t node = g->location_nodes.at[j - 1];

            if (!m->wanted[node] || m->seen[node] == sample + 1)
                continue;
            m->seen[node] = (uint32_t)sample + 1;
            add_to_node(m, &b, node);
        }
    b.flat = true;
    j = g->location_nodes.at[g->first_node[frames[0]]];
    if (m->wanted[j])
        add_to_node(m, &b, (uint32_t)j);
}

/* Leave out what is too small, and list the rest by node. */
static void
finish(struct maker *m)
{
    struct cpprof__node_tags *tags = m->tags;
    size_t kept = 0, i;

    for (i = 0; i < tags->all.n; i++) {
        const struct cpprof__tag *tag = &tags->all.at[i];

        if (cpprof__abs(tag->flat) >= m->t->node_cutoff ||
            cpprof__abs(tag->cum) >= m->t->node_cutoff)
            tags->all.at[kept++] = *tag;
    }
    tags->all.n = kept;
    if (!cpprof__lists_make(
            &tags->by_node, tags->all.at, kept, sizeof *tags->all.at,
            offsetof(struct cpprof__tag, node), m->t->g.nodes.n))
        m->failed = true;
}

enum cpprof_status
cpprof__node_tags_make(struct cpprof__node_tags *tags,
                       const struct cpprof__trimmed *t, size_t n)
{
    struct maker m = {.tags = tags, .t = t};
    size_t i;

    m.wanted = cpprof__calloc(t->g.nodes.n + 1, 1);
    m.seen = cpprof__calloc(t->g.nodes.n + 1, sizeof *m.seen);
    m.failed = !m.wanted || !m.seen || !cpprof__strings_begin(&tags->texts);
    if (!m.failed)
        make_sets(&m);
    for (i = 0; i < n && !m.failed; i++)
        m.wanted[t->rows.at[i].node] = 1;
    for (i = 0; i < t->g.p->samples.n && !m.failed; i++)
        add_sample(&m, i);
    if (!m.failed)
        finish(&m);
    cpprof__free(m.sets);
    CPPROF__ARRAY_FREE(&m.numbers);
    cpprof__table_free(&m.keys);
    cpprof__free(m.wanted);
    cpprof__free(m.seen);
    return m.failed ? cpprof__fail_nomem(t->r->error) : CPPROF_OK;
}

void
cpprof__node_tags_free(struct cpprof__node_tags *tags)
{
    cpprof__strings_free(&tags->texts);
    CPPROF__ARRAY_FREE(&tags->all);
    cpprof__lists_free(&tags->by_node);
}

size_t
cpprof__node_tags_count(const struct cpprof__node_tags *tags, uint32_t node)
{
    size_t n = 0, i;

    for (i = tags->by_node.first[node]; i < tags->by_node.first[node + 1]; i++)
        n += tags->all.at[tags->by_node.list[i]].flat != 0;
    return n;
}
