/* SPDX-License-Identifier: MIT */
#include "collect/encode/record_labels.h"

#include "arch/atomic.h"
#include "base/status.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/tables/label_numbers.h"
#include "collect/signal/tables/label_set.h"
#include "collect/store/tables.h"

static void
add_lost(struct cpprof__label_list *labels)
{
    const struct cpprof__builder_label lost = {.key = "labels",
                                               .str = "[lost]"};

    cpprof__label_list_add(labels, &lost);
}

static void
add_own(uint32_t number, struct cpprof__label_list *labels)
{
    const struct cpprof__label_set *set = NULL;

    if (number <= CPPROF__LABEL_SETS)
        set = load_acquire(&cpprof__label_sets_numbered[number - 1]);
    if (set)
        cpprof__labels_decode(set->encoded, set->n_encoded, labels);
    else
        add_lost(labels);
}

/* Of another process, which may have written anything. */
static void
add_kept(const struct cpprof__store *store, uint32_t number,
         struct cpprof__label_list *labels)
{
    const struct cpprof__store_labels *set = NULL;

    if (number <= CPPROF__STORE_LABEL_SETS &&
        number <= load_acquire(&store->head->n_label_sets))
        set = &store->label_sets[number - 1];
    if (!set || !set->text || set->text >= CPPROF__STORE_TEXT ||
        set->n_bytes >= CPPROF__STORE_TEXT - set->text)
        add_lost(labels);
    else
        cpprof__labels_decode(store->text + set->text, set->n_bytes, labels);
}

void
cpprof__record_labels(const struct cpprof__source *source, uint32_t number,
                      struct cpprof__label_list *labels)
{
    if (!number)
        return;
    if (!source || source->is_self)
        add_own(number, labels);
    else
        add_kept(&source->tables->store, number, labels);
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
