/* SPDX-License-Identifier: MIT */
/*
 * Go sorts records by a text of their addresses and labels. The order of two
 * numbers as hexadecimal texts is that of their digits from the left, so the
 * texts need not be made; stacks are compared node by node, and where they meet
 * they are the same from there to the root.
 */
#include "collect/encode/records_profile.h"
#include "own/sort.h"

#include "collect/store/tables.h"

#include <stdlib.h>
#include <string.h>

static int
order(uint64_t x, uint64_t y)
{
    return (x > y) - (x < y);
}

/* As texts in hexadecimal: the digits from the left, then the shorter one. */
static int
order_of_texts(uint64_t x, uint64_t y)
{
    unsigned zeros_x = (unsigned)__builtin_clzll(x | 1) / 4;
    unsigned zeros_y = (unsigned)__builtin_clzll(y | 1) / 4;
    int digits = order(x << zeros_x * 4, y << zeros_y * 4);

    return digits ? digits : order(zeros_y, zeros_x);
}

static int
order_of_stacks(const struct cpprof__tree *tree, uint32_t x, uint32_t y)
{
    struct cpprof__tree_node a, b;
    unsigned depth;

    for (depth = 0; x != y && depth < CPPROF__TREE_DEPTH; depth++) {
        bool is_x = cpprof__tree_node(tree, x, &a);
        bool is_y = cpprof__tree_node(tree, y, &b);
        int pcs;

        if (!is_x || !is_y)
            return is_x - is_y;
        pcs = order_of_texts(a.pc + 1, b.pc + 1);
        if (pcs)
            return pcs;
        x = a.parent;
        y = b.parent;
    }
    return 0;
}

static const struct cpprof__tables *
tables_of(const struct cpprof__records_form *form)
{
    return form->source ? form->source->tables : &cpprof__tables;
}

static void
print_labels(struct cpprof__buffer *out,
             const struct cpprof__records_form *form,
             const struct cpprof__stack_record *record)
{
    struct cpprof__label_list labels = {0};

    cpprof__record_labels(tables_of(form), record->labels, &labels);
    cpprof__labels_print(out, labels.at, labels.n);
    cpprof__buffer_append(out, "", 1);
    out->failed |= labels.failed;
    cpprof__label_list_free(&labels);
}

/* Numbers of sets are in no order. */
static int
order_of_labels(const struct cpprof__records_form *form,
                const struct cpprof__stack_record *x,
                const struct cpprof__stack_record *y)
{
    struct cpprof__buffer a = {0}, b = {0};
    int found;

    if (x->labels == y->labels || !x->labels || !y->labels)
        return order(x->labels, y->labels);
    print_labels(&a, form, x);
    print_labels(&b, form, y);
    if (a.failed || b.failed)
        found = order(x->labels, y->labels);
    else
        found = strcmp((char *)a.data, (char *)b.data);
    cpprof__buffer_free(&a);
    cpprof__buffer_free(&b);
    return found;
}

static int
by_key(const void *a, const void *b)
{
    const struct cpprof__stack_record *x = a, *y = b;
    int stacks = order(x->stack, y->stack);

    return stacks ? stacks : order(x->labels, y->labels);
}

static int
by_value(const void *a, const void *b, void *ctx)
{
    const struct cpprof__records_form *form = ctx;
    const struct cpprof__stack_record *x = a, *y = b;
    int64_t in_x = x->values[form->n_types - 1];
    int64_t in_y = y->values[form->n_types - 1];
    int stacks;

    if (in_x != in_y)
        return in_x < in_y ? 1 : -1;
    stacks = order_of_stacks(&tables_of(form)->tree, x->stack, y->stack);
    if (!stacks)
        stacks = order_of_labels(form, x, y);
    return stacks ? stacks : by_key(a, b);
}

size_t
cpprof__records_merge(const struct cpprof__records_form *form,
                      struct cpprof__stack_record *records, size_t n)
{
    size_t i, kept = 0;

    cpprof__sort(records, n, sizeof *records, by_key);
    for (i = 0; i < n; i++) {
        if (kept && !by_key(&records[kept - 1], &records[i])) {
            records[kept - 1].values[0] += records[i].values[0];
            records[kept - 1].values[1] += records[i].values[1];
        } else {
            records[kept++] = records[i];
        }
    }
    cpprof__sort_by(records, kept, sizeof *records, by_value, (void *)form);
    return kept;
}
