/* SPDX-License-Identifier: MIT */
/*
 * Sets or removes the labels of one key on all samples. The work is done once
 * for each label set. The sets that samples had before stay in the table,
 * unused.
 */
#include "base/status.h"
#include "own/memory.h"
#include "profile/filter/filter.h"
#include "profile/model/check.h"

#include <string.h>

/* Labels of `kind` and `key` go; `label`, unless NULL, comes instead. */
struct change {
    struct pprof_profile *p;
    const struct pprof_label *label;
    uint32_t kind, key;
    CPPROF__ARRAY(struct pprof_label) spare; /* the set being made */
};

/* The set that replaces this one. */
static uint32_t
changed_set(struct change *c, uint32_t set)
{
    struct pprof_profile *p = c->p;
    size_t n, i;
    const struct pprof_label *from = cpprof__label_set(&p->labels, set, &n);

    c->spare.n = 0;
    if (!CPPROF__ARRAY_ROOM(&c->spare, n + 1))
        return CPPROF__NO_LABEL_SET;
    for (i = 0; i < n; i++)
        if (from[i].kind != c->kind || from[i].key != c->key)
            c->spare.at[c->spare.n++] = from[i];
    if (c->label)
        c->spare.at[c->spare.n++] = *c->label;
    return cpprof__label_sets_add(&p->labels, &p->strings, c->spare.at,
                                  c->spare.n);
}

/* What becomes of each set that a sample has. */
static bool
change_sets(struct change *c, const uint8_t *used, uint32_t *made, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (!used[i])
            continue;
        made[i] = changed_set(c, (uint32_t)i);
        if (made[i] == CPPROF__NO_LABEL_SET)
            return false;
    }
    return true;
}

static enum cpprof_status
change_labels(struct change *c, struct cpprof_error *error)
{
    size_t n = c->p->labels.sets.n, i;
    uint32_t *made = cpprof__malloc(n * sizeof *made);
    uint8_t *used = cpprof__used_label_sets(c->p);
    bool ok = made && used && change_sets(c, used, made, n);

    for (i = 0; ok && i < c->p->samples.n; i++)
        c->p->samples.at[i].labels = made[c->p->samples.at[i].labels];
    cpprof__free(made);
    cpprof__free(used);
    CPPROF__ARRAY_FREE(&c->spare);
    cpprof__debug_check(c->p);
    return ok ? CPPROF_OK : cpprof__fail_nomem(error);
}

static enum cpprof_status
set_label(struct pprof_profile *p, const struct pprof_label *label,
          struct cpprof_error *error)
{
    struct change c = {
        .p = p, .label = label, .kind = label->kind, .key = label->key};

    if (label->key == CPPROF__NO_STRING || label->text == CPPROF__NO_STRING ||
        label->unit == CPPROF__NO_STRING)
        return cpprof__fail_nomem(error);
    return change_labels(&c, error);
}

static enum cpprof_status
remove_labels(struct pprof_profile *p, uint32_t kind, const char *key,
              struct cpprof_error *error)
{
    struct change c = {.p = p,
                       .kind = kind,
                       .key =
                           cpprof__strings_find(&p->strings, key, strlen(key))};

    return c.key == CPPROF__NO_STRING ? CPPROF_OK : change_labels(&c, error);
}

enum cpprof_status
pprof_set_label(struct pprof_profile *p, const char *key, const char *value,
                struct cpprof_error *error)
{
    CPPROF__NEED(error, p && key && value);

    struct pprof_label label = {
        .key = cpprof__strings_add_text(&p->strings, key),
        .text = cpprof__strings_add_text(&p->strings, value),
        .kind = PPROF_LABEL_TEXT};

    return set_label(p, &label, error);
}

enum cpprof_status
pprof_remove_label(struct pprof_profile *p, const char *key,
                   struct cpprof_error *error)
{
    CPPROF__NEED(error, p && key);

    return remove_labels(p, PPROF_LABEL_TEXT, key, error);
}

enum cpprof_status
pprof_set_num_label(struct pprof_profile *p, const char *key, int64_t number,
                    const char *unit, struct cpprof_error *error)
{
    CPPROF__NEED(error, p && key);

    struct pprof_label label = {
        .key = cpprof__strings_add_text(&p->strings, key),
        .num = number,
        .unit = cpprof__strings_add_text(&p->strings, unit ? unit : ""),
        .kind = PPROF_LABEL_NUMBER};

    return set_label(p, &label, error);
}

enum cpprof_status
pprof_remove_num_label(struct pprof_profile *p, const char *key,
                       struct cpprof_error *error)
{
    CPPROF__NEED(error, p && key);

    return remove_labels(p, PPROF_LABEL_NUMBER, key, error);
}
