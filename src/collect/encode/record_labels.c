/* SPDX-License-Identifier: MIT */
#include "collect/encode/record_labels.h"

#include "arch/atomic.h"
#include "base/status.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/tables/label_numbers.h"
#include "collect/store/tables.h"

#include <stdlib.h>

static void
add_lost(struct cpprof__label_list *labels)
{
    const struct cpprof__builder_label lost = {.key = "labels",
                                               .str = "[lost]"};

    cpprof__label_list_add(labels, &lost);
}

/* Make room for n bytes; those of the record before are overwritten. */
static bool
make_room(struct cpprof__label_list *labels, size_t n)
{
    char *bytes;

    if (n <= labels->room)
        return true;
    bytes = realloc(labels->bytes, n);
    if (!bytes)
        return false;
    labels->bytes = bytes;
    labels->room = n;
    return true;
}

void
cpprof__record_labels(const struct cpprof__source *source, uint32_t number,
                      struct cpprof__label_list *labels)
{
    const struct cpprof__tree *tree =
        source ? &source->tables->tree : &cpprof__tables.tree;
    size_t n;

    if (!number)
        return;
    n = tree->head ? cpprof__label_set_bytes(tree, number, NULL, 0) : 0;
    if (!n) {
        add_lost(labels);
    } else if (!make_room(labels, n + 1)) {
        labels->failed = true;
    } else {
        n = cpprof__label_set_bytes(tree, number, labels->bytes, n);
        labels->bytes[n] = 0;
        cpprof__labels_decode(labels->bytes, n, labels);
    }
}

void
cpprof__record_labels_text(struct cpprof__text_profile *text,
                           const struct cpprof__source *source, uint32_t number,
                           struct cpprof__label_list *labels)
{
    if (!number)
        return;
    labels->n = 0;
    cpprof__record_labels(source, number, labels);
    if (labels->failed)
        cpprof__fail_nomem(&text->error);
    cpprof__text_printf(text, "# labels: ");
    cpprof__labels_print(&text->out, labels->at, labels->n);
    cpprof__text_printf(text, "\n");
}

int
cpprof_labels_keep(int on)
{
    if (on < 0)
        return (int)load_relaxed(&cpprof__wants_labels);
    return (int)__atomic_exchange_n(&cpprof__wants_labels, on != 0,
                                    __ATOMIC_ACQ_REL);
}
