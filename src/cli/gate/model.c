/* SPDX-License-Identifier: MIT */
/*
 * Profiles of many runs in one model: names are keys, stacks are nodes of one
 * tree, and a run is the values of its nodes. What is in no key is not kept:
 * lines, addresses and files, so code that moved is the same code.
 */
#include "cli/gate/gate.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- tables ---- */

struct wanted {
    const struct cpprof__gate_model *model;
    const char *name;
    size_t n; /* of the name */
    uint32_t parent, key;
    bool is_judged;
};

static bool
same_key(void *ctx, uint32_t value)
{
    const struct wanted *w = ctx;
    const struct cpprof__gate_key *key = &w->model->keys.at[value];

    return key->is_judged == w->is_judged &&
           strncmp(key->name, w->name, w->n) == 0 && !key->name[w->n];
}

static bool
same_node(void *ctx, uint32_t value)
{
    const struct wanted *w = ctx;
    const struct cpprof__gate_node *node = &w->model->nodes.at[value];

    return node->parent == w->parent && node->key == w->key;
}

/* The key of a name of n bytes; NONE: no memory. */
static uint32_t
key_of(struct cpprof__gate_model *m, const char *name, size_t n, bool is_judged)
{
    struct wanted w = {
        .model = m, .name = name, .n = n, .is_judged = is_judged};
    uint64_t hash = cpprof__hash_bytes(name, n, is_judged);
    uint32_t k = cpprof__index_find(&m->key_index, hash, same_key, &w);
    struct cpprof__gate_key *key;
    char *copy;

    if (k != CPPROF__INDEX_NONE)
        return k;
    copy = cpprof__arena_copy(&m->arena, name, n);
    key = copy ? CPPROF__ARRAY_ADD(&m->keys) : NULL;
    if (!key)
        return CPPROF__GATE_NONE;
    k = (uint32_t)m->keys.n - 1;
    *key = (struct cpprof__gate_key){
        .name = copy, .is = k, .is_judged = is_judged};
    return cpprof__index_add(&m->key_index, hash, k) ? k : CPPROF__GATE_NONE;
}

/* The node of a key below another node; NONE: no memory. */
static uint32_t
node_of(struct cpprof__gate_model *m, uint32_t parent, uint32_t key)
{
    struct wanted w = {.model = m, .parent = parent, .key = key};
    uint64_t hash = cpprof__hash_u64((uint64_t)parent << 32 | key);
    uint32_t n = cpprof__index_find(&m->node_index, hash, same_node, &w);
    struct cpprof__gate_node *node;

    if (n != CPPROF__INDEX_NONE)
        return n;
    node = CPPROF__ARRAY_ADD(&m->nodes);
    if (!node)
        return CPPROF__GATE_NONE;
    n = (uint32_t)m->nodes.n - 1;
    *node = (struct cpprof__gate_node){.parent = parent, .key = key};
    return cpprof__index_add(&m->node_index, hash, n) ? n : CPPROF__GATE_NONE;
}

/* ------------------------------------------------------------- frames ---- */

/* What one profile is read with: the keys of its lines, and of its locations
 * without any. */
struct reader {
    struct cpprof__gate_model *m;
    const struct pprof_profile *p;
    const struct pprof_location *locations;
    const struct pprof_line *lines;
    const struct pprof_function *functions;
    uint32_t *function_keys; /* NONE: not looked for; not for packages */
    struct cpprof__buffer text;
};

/* The key of a name that was written to r->text. */
static uint32_t
key_of_text(struct reader *r, bool is_judged)
{
    return r->text.failed
               ? CPPROF__GATE_NONE
               : key_of(r->m, (const char *)r->text.data, r->text.n, is_judged);
}

static const char *
mapping_file(const struct reader *r, const struct pprof_location *l)
{
    return l->mapping == PPROF_NONE
               ? ""
               : pprof_text(r->p, pprof_mappings(r->p)[l->mapping].file, NULL);
}

/* The key of a line of a location; or, for NULL, of one without lines. */
static uint32_t
frame_key(struct reader *r, const struct pprof_location *location,
          const struct pprof_line *line)
{
    bool by_function = r->m->flags->by != CPPROF__GATE_PACKAGE;
    bool is_judged = r->m->flags->by != CPPROF__GATE_LABEL;
    const struct pprof_function *f =
        line ? &r->functions[line->function] : NULL;
    uint32_t *kept =
        f && by_function ? &r->function_keys[line->function] : NULL;
    const char *name = f ? pprof_text(r->p, f->name, NULL) : "";
    const char *source = f ? pprof_text(r->p, f->file, NULL) : "";
    const char *mapping = mapping_file(r, location);
    uint32_t key;
    size_t n;

    if (kept && *kept != CPPROF__GATE_NONE)
        return *kept;
    if (f && by_function) {
        key = key_of(r->m, name, cpprof__gate_plain_length(name, source),
                     is_judged);
        *kept = key;
        return key;
    }
    n = cpprof__gate_package(by_function ? "" : name, by_function ? "" : source,
                             mapping, &name);
    if (!by_function)
        return key_of(r->m, name, n, is_judged);
    r->text.n = 0;
    cpprof__buffer_printf(&r->text, *name == '[' ? "%s" : "[%s]", name);
    return key_of_text(r, is_judged);
}

/* Go one frame down; *node is NONE without memory. Frames of one package in a
 * row are one. */
static bool
step(struct reader *r, uint32_t *node, uint32_t key)
{
    struct cpprof__gate_model *m = r->m;

    if (key == CPPROF__GATE_NONE)
        return false;
    if (m->flags->by == CPPROF__GATE_PACKAGE && *node != CPPROF__GATE_NONE &&
        m->nodes.at[*node].key == key)
        return true;
    *node = node_of(m, *node, key);
    return *node != CPPROF__GATE_NONE;
}

/* The node of a stack below one that is there. */
static bool
stack_node(struct reader *r, const struct pprof_sample *s, uint32_t *node)
{
    size_t i, k;

    for (i = s->n_locations; i-- > 0;) {
        const struct pprof_location *l = &r->locations[s->locations[i]];

        if (!l->n_lines && !step(r, node, frame_key(r, l, NULL)))
            return false;
        for (k = l->n_lines; k-- > 0;)
            if (!step(r, node, frame_key(r, l, &r->lines[l->first_line + k])))
                return false;
    }
    if (*node == CPPROF__GATE_NONE)
        return step(r, node, key_of(r->m, "[no stack]", 10, false));
    return true;
}

/* ------------------------------------------------------------ samples ---- */

static bool
add_entry(struct cpprof__gate_run *run, uint32_t node, double value)
{
    struct cpprof__gate_entry *e = CPPROF__ARRAY_ADD(&run->entries);

    if (e)
        *e = (struct cpprof__gate_entry){node, value};
    return e != NULL;
}

/* The key of "key=value" of a label. */
static uint32_t
label_key(struct reader *r, const struct pprof_label *l)
{
    r->text.n = 0;
    cpprof__buffer_printf(&r->text, "%s=", pprof_text(r->p, l->key, NULL));
    if (l->kind == PPROF_LABEL_TEXT)
        cpprof__buffer_printf(&r->text, "%s", pprof_text(r->p, l->text, NULL));
    else
        cpprof__buffer_printf(&r->text, "%lld%s", (long long)l->num,
                              pprof_text(r->p, l->unit, NULL));
    return key_of_text(r, true);
}

/* A sample counts for each of its labels; those without one are in the whole
 * alone. */
static bool
add_by_label(struct reader *r, const struct pprof_sample *s, double value,
             struct cpprof__gate_run *run)
{
    const char *wanted = r->m->flags->label_key;
    size_t i;

    for (i = 0; i < s->n_labels; i++) {
        const struct pprof_label *l = &s->labels[i];
        uint32_t node = CPPROF__GATE_NONE;

        /* Of all labels, only texts: numbers are sizes and times, mostly. */
        if (wanted ? strcmp(pprof_text(r->p, l->key, NULL), wanted) != 0
                   : l->kind != PPROF_LABEL_TEXT)
            continue;
        if (!step(r, &node, label_key(r, l)) || !stack_node(r, s, &node) ||
            !add_entry(run, node, value))
            return false;
    }
    return true;
}

static bool
add_sample(struct reader *r, const struct pprof_sample *s, double value,
           struct cpprof__gate_run *run)
{
    uint32_t node = CPPROF__GATE_NONE;

    run->total += value;
    if (r->m->flags->by == CPPROF__GATE_LABEL)
        return add_by_label(r, s, value, run);
    return stack_node(r, s, &node) && add_entry(run, node, value);
}

static enum cpprof_status
fill_run(struct reader *r, size_t value, bool may_be_empty,
         struct cpprof__gate_run *run, struct cpprof_error *error)
{
    struct pprof_sample s = {.size = sizeof s};
    size_t i, n = pprof_sample_count(r->p);

    for (i = 0; i < n; i++) {
        pprof_get_sample(r->p, i, &s);
        if (s.values[value] < 0)
            return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                                "it has negative values, as a difference of "
                                "profiles has; a side is made of runs");
        if (s.values[value] && !add_sample(r, &s, (double)s.values[value], run))
            return cpprof__fail_nomem(error);
    }
    if (!run->total && !may_be_empty)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0, "it has no samples%s",
                            n ? " that count" : "");
    return CPPROF_OK;
}

/* --------------------------------------------------------------- runs ---- */

/* All runs have values of one type and unit. */
static enum cpprof_status
check_type(struct cpprof__gate_model *m, const struct pprof_profile *p,
           size_t value, struct cpprof_error *error)
{
    const struct pprof_value_type *t = &pprof_sample_types(p)[value];
    const char *type = pprof_text(p, t->type, NULL);
    const char *unit = pprof_text(p, t->unit, NULL);
    struct pprof_info info = {.size = sizeof info};
    bool is_count = strcmp(unit, "count") == 0;
    int64_t period;

    pprof_get_info(p, &info);
    period = is_count && strncmp(type, "sample", 6) != 0 ? 0 : info.period;
    if (m->type && strcmp(m->type, type) == 0 && strcmp(m->unit, unit) == 0) {
        if (!is_count || !period || !m->period || period == m->period)
            return CPPROF_OK;
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "its samples have a period of %" PRId64
                            ", those of the runs before it one of %" PRId64
                            ", so they are not comparable; say -sample_index",
                            period, m->period);
    }
    if (m->type)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "it has %s in %s, and the runs before it have %s "
                            "in %s; say -sample_index",
                            type, unit, m->type, m->unit);
    m->period = period;
    m->type = strdup(type);
    m->unit = strdup(unit);
    if (!m->type || !m->unit)
        return cpprof__fail_nomem(error);
    if (is_count)
        m->quantum = 1;
    else if (strcmp(type, pprof_text(p, info.period_type.type, NULL)) == 0 &&
             strcmp(unit, pprof_text(p, info.period_type.unit, NULL)) == 0)
        m->quantum = (double)info.period;
    return CPPROF_OK;
}

static enum cpprof_status
read_samples(struct cpprof__gate_model *m, const struct pprof_profile *p,
             size_t value, bool may_be_empty, struct cpprof__gate_run *run,
             struct cpprof_error *error)
{
    size_t n = pprof_function_count(p);
    struct reader r = {.m = m,
                       .p = p,
                       .locations = pprof_locations(p),
                       .lines = pprof_lines(p),
                       .functions = pprof_functions(p)};
    enum cpprof_status status;

    r.function_keys = malloc((n + 1) * sizeof *r.function_keys);
    if (!r.function_keys)
        return cpprof__fail_nomem(error);
    memset(r.function_keys, 0xff, (n + 1) * sizeof *r.function_keys);
    status = fill_run(&r, value, may_be_empty, run, error);
    free(r.function_keys);
    cpprof__buffer_free(&r.text);
    return status;
}

/* The run of that side that this one is a copy of, or NULL. Without a time
 * nobody knows: runs that count what is always the same may be equal. */
static const struct cpprof__gate_run *
find_copy(const struct cpprof__gate_model *m,
          const struct cpprof__gate_run *run)
{
    size_t i, k;

    for (i = 0; i < m->runs.n && run->time_ns && run->total > 0; i++) {
        const struct cpprof__gate_run *r = &m->runs.at[i];

        if (r->is_head != run->is_head || r->time_ns != run->time_ns ||
            r->duration_ns != run->duration_ns || r->total != run->total ||
            r->work != run->work || r->entries.n != run->entries.n)
            continue;
        for (k = 0; k < r->entries.n; k++)
            if (r->entries.at[k].node != run->entries.at[k].node ||
                r->entries.at[k].value != run->entries.at[k].value)
                break;
        if (k == r->entries.n)
            return r;
    }
    return NULL;
}

enum cpprof_status
cpprof__gate_add(struct cpprof__gate_model *m, const struct pprof_profile *p,
                 struct cpprof__gate_run run, bool may_be_empty,
                 struct cpprof_error *error)
{
    struct pprof_info info = {.size = sizeof info};
    const struct cpprof__gate_run *copy;
    struct cpprof__gate_run *added;
    enum cpprof_status status;
    size_t value = 0;

    status = pprof_find_sample_type(p, m->flags->report.options.sample_index,
                                    &value, error);
    if (status == CPPROF_OK)
        status = check_type(m, p, value, error);
    if (status == CPPROF_OK)
        status = read_samples(m, p, value, may_be_empty, &run, error);
    pprof_get_info(p, &info);
    run.time_ns = info.time_ns;
    run.duration_ns = info.duration_ns;
    copy = status == CPPROF_OK ? find_copy(m, &run) : NULL;
    if (copy)
        status = cpprof__fail(error, CPPROF_BAD_DATA, 0,
                              CPPROF__GATE_SAME_RUN " %s", copy->name);
    run.name = strdup(run.name);
    added =
        status == CPPROF_OK && run.name ? CPPROF__ARRAY_ADD(&m->runs) : NULL;
    if (added) {
        *added = run;
        *(run.is_head ? &m->n_head : &m->n_base) += 1;
        return CPPROF_OK;
    }
    CPPROF__ARRAY_FREE(&run.entries);
    free(run.name);
    return status == CPPROF_OK ? cpprof__fail_nomem(error) : status;
}

void
cpprof__gate_model_free(struct cpprof__gate_model *m)
{
    size_t i;

    for (i = 0; i < m->runs.n; i++) {
        CPPROF__ARRAY_FREE(&m->runs.at[i].entries);
        free(m->runs.at[i].name);
    }
    CPPROF__ARRAY_FREE(&m->runs);
    CPPROF__ARRAY_FREE(&m->keys);
    CPPROF__ARRAY_FREE(&m->nodes);
    cpprof__index_free(&m->key_index);
    cpprof__index_free(&m->node_index);
    cpprof__arena_free(&m->arena);
    pprof_merger_free(m->mergers[0]);
    pprof_merger_free(m->mergers[1]);
    free(m->type);
    free(m->unit);
}
