/* SPDX-License-Identifier: MIT */
/*
 * Stacks and labels out of tables, and the parts that all profiles of tables
 * have in common: the symbolizer, the builder with the tables' mappings, or the
 * text, and buffers for one sample.
 */
#include "collect/encode/source.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "base/status.h"
#include "base/writer.h"
#include "collect/encode/names.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/tables/label_numbers.h"
#include "collect/signal/tables/scripts.h"
#include "own/memory.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

size_t
cpprof__source_stack(const struct cpprof__source *source, uint32_t stack,
                     const uint32_t *numbers, size_t n_numbers,
                     struct cpprof__builder_frame *frames, size_t max)
{
    size_t i, n;

    if (stack == CPPROF__SOURCE_LOST) {
        frames[0] = (struct cpprof__builder_frame){CPPROF__FRAME_LOST,
                                                   CPPROF__NO_MAPPING};
        return 1;
    }
    n = cpprof__tables_stack(source->tables, stack, numbers, n_numbers, frames,
                             max);
    for (i = 0; i < n; i++) {
        uint32_t found;

        if (frames[i].mapping != CPPROF__NO_MAPPING ||
            frames[i].pc < CPPROF__FRAME_END || cpprof__is_script(frames[i].pc))
            continue;
        found = cpprof__store_find_mapping(&source->tables->store, frames[i].pc,
                                           n_numbers);
        if (found != CPPROF__NO_MAPPING)
            frames[i].mapping = numbers[found];
    }
    return n;
}

/* ---- labels ----------------------------------------------------------- */

/* Make room for n bytes; those of the record before are overwritten. */
static bool
make_room(struct cpprof__label_list *labels, size_t n)
{
    char *bytes;

    if (n <= labels->room)
        return true;
    bytes = cpprof__realloc(labels->bytes, n);
    if (!bytes)
        return false;
    labels->bytes = bytes;
    labels->room = n;
    return true;
}

void
cpprof__record_labels(const struct cpprof__tables *tables, uint32_t number,
                      struct cpprof__label_list *labels)
{
    static const struct cpprof__builder_label lost = {.key = "labels",
                                                      .str = "[lost]"};
    const struct cpprof__tree *tree = &tables->tree;
    size_t n;

    if (!number)
        return;
    n = load_acquire(&tree->head)
            ? cpprof__label_set_bytes(tree, number, NULL, 0)
            : 0;
    if (!n) {
        cpprof__label_list_add(labels, &lost);
    } else if (!make_room(labels, n + 1)) {
        labels->failed = true;
    } else {
        n = cpprof__label_set_bytes(tree, number, labels->bytes, n);
        labels->bytes[n] = 0;
        cpprof__labels_decode(labels->bytes, n, labels);
    }
}

int
cpprof_labels_keep(int on)
{
    if (on < 0)
        return (int)load_relaxed(&cpprof__wants_labels);
    return (int)__atomic_exchange_n(&cpprof__wants_labels, on != 0,
                                    __ATOMIC_ACQ_REL);
}

/* ---- a profile that is being written ---------------------------------- */

static struct cpprof__source
source_self(enum cpprof_symbolize symbolize)
{
    return (struct cpprof__source){
        .tables = &cpprof__tables,
        .ops = symbolize == CPPROF_SYMBOLIZE_NONE ? NULL : cpprof__names_load(),
        .pid = (int32_t)getpid(),
        .is_self = true,
        .time_ns = (int64_t)cpprof__now_ns(CLOCK_REALTIME),
    };
}

/* NULL: no names are wanted, or there is no symbolizer. */
static struct cpprof__symbolizer *
make_symbolizer(const struct cpprof__source *source,
                enum cpprof_symbolize symbolize)
{
    struct cpprof__symbolizer_options options = {
        .fetcher = cpprof__fetcher,
        .functions_only = symbolize == CPPROF_SYMBOLIZE_FUNCTIONS,
        .pid = source->pid,
    };

    if (symbolize == CPPROF_SYMBOLIZE_NONE || !source->ops)
        return NULL;
    return source->ops->make(&options);
}

struct cpprof__source_profile *
cpprof__source_profile_make(const struct cpprof__source *source,
                            enum cpprof_symbolize symbolize,
                            const struct cpprof_writer *writer,
                            struct cpprof_error *error)
{
    struct cpprof__source_profile *p = cpprof__calloc(1, sizeof *p);

    if (!p) {
        cpprof__writer_refuse(writer);
        cpprof__fail_nomem(error);
        return NULL;
    }
    p->source = source ? *source : source_self(symbolize);
    /* Hooks may have found room for stacks, and their mappings find none. */
    if (p->source.tables == &cpprof__tables &&
        cpprof__tables_make(error) != CPPROF_OK) {
        cpprof__writer_refuse(writer);
        cpprof__free(p);
        return NULL;
    }
    p->symbolizer = make_symbolizer(&p->source, symbolize);
    return p;
}

void
cpprof__source_profile_free(struct cpprof__source_profile *p)
{
    if (p->symbolizer)
        p->source.ops->free(p->symbolizer);
    cpprof__label_list_free(&p->labels);
    cpprof__free(p->numbers);
    cpprof__free(p);
}

enum cpprof_status
cpprof__source_begin_proto(struct cpprof__source_profile *p,
                           const struct cpprof__profile_head *head,
                           struct cpprof_writer writer,
                           struct cpprof_error *error)
{
    const struct cpprof__tables *tables = p->source.tables;
    enum cpprof_status status = cpprof__builder_make(
        head, writer, p->source.ops, p->symbolizer, &p->builder, error);

    if (status != CPPROF_OK)
        return status;
    cpprof__builder_use_scripts(p->builder, tables->scripts);
    p->numbers =
        cpprof__builder_add_store(p->builder, &tables->store, &p->n_numbers);
    return CPPROF_OK;
}

void
cpprof__source_expect(struct cpprof__source_profile *p, uint32_t stack)
{
    size_t i, n;

    if (!p->symbolizer)
        return;
    n = cpprof__source_stack(&p->source, stack, p->numbers, p->n_numbers,
                             p->stack, CPPROF__SOURCE_DEPTH);
    for (i = 0; i < n; i++)
        cpprof__builder_expect(p->builder, p->stack[i]);
}

void
cpprof__source_add_sample(struct cpprof__source_profile *p,
                          const int64_t *values, uint32_t stack,
                          uint32_t labels, bool (*hides)(const char *name))
{
    size_t n = cpprof__source_stack(&p->source, stack, p->numbers, p->n_numbers,
                                    p->stack, CPPROF__SOURCE_DEPTH);
    size_t skip = cpprof__builder_n_hidden(p->builder, p->stack, n, hides);

    cpprof__record_labels(p->source.tables, labels, &p->labels);
    if (p->labels.failed)
        cpprof__builder_fail_nomem(p->builder);
    cpprof__builder_add_sample(p->builder, values, p->stack + skip, n - skip,
                               p->labels.at, p->labels.n);
    p->labels.n = 0;
}

void
cpprof__source_begin_text(struct cpprof__source_profile *p,
                          struct cpprof_writer writer)
{
    cpprof__text_begin(&p->text, writer, p->source.ops, p->symbolizer);
    cpprof__text_add_mappings(&p->text, p->source.tables);
}

size_t
cpprof__source_text_stack(struct cpprof__source_profile *p, uint32_t stack)
{
    size_t n = cpprof__source_stack(&p->source, stack, p->text.mappings,
                                    p->text.n_mappings, p->stack,
                                    CPPROF__SOURCE_DEPTH);

    if (!n)
        p->stack[n++] = (struct cpprof__builder_frame){CPPROF__FRAME_BROKEN,
                                                       CPPROF__NO_MAPPING};
    return n;
}

void
cpprof__source_put_record(struct cpprof__source_profile *p, size_t n,
                          uint32_t labels, bool names)
{
    struct cpprof__text_profile *text = &p->text;

    cpprof__text_addresses(text, p->stack, n);
    if (labels) {
        p->labels.n = 0;
        cpprof__record_labels(p->source.tables, labels, &p->labels);
        if (p->labels.failed)
            cpprof__fail_nomem(&text->error);
        cpprof__text_printf(text, "# labels: ");
        cpprof__labels_print(&text->out, p->labels.at, p->labels.n);
        cpprof__text_printf(text, "\n");
    }
    if (names)
        cpprof__text_stack(text, p->stack, n);
}
