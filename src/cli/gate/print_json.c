/* SPDX-License-Identifier: MIT */
/*
 * The report for programs, made with jansson. docs/gate.md has its members;
 * those that are there stay, and `version` changes when one means something
 * else.
 */
#include "cli/gate/gate.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

/* JSON has no infinity: null. */
static json_t *
number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* Names of a profile may be no UTF-8; what is not is left out. */
static json_t *
text(const char *s)
{
    json_t *whole = json_string(s), *made;
    size_t n = 0;
    char *ascii;

    if (whole)
        return whole;
    ascii = malloc(strlen(s) + 1);
    if (!ascii)
        return NULL;
    for (; *s; s++)
        ascii[n++] = (unsigned char)*s < 0x80 ? *s : '?';
    ascii[n] = 0;
    made = json_string(ascii);
    free(ascii);
    return made;
}

static json_t *
path_of(const struct cpprof__gate_model *m, const struct cpprof__gate_row *row)
{
    struct cpprof__buffer path = {0};
    json_t *made;

    cpprof__gate_path(m, row, INT_MAX, &path);
    cpprof__buffer_append(&path, "", 1);
    made = path.failed || path.n < 2 ? json_null() : text((char *)path.data);
    cpprof__buffer_free(&path);
    return made;
}

static json_t *
row_object(const struct cpprof__gate_model *m,
           const struct cpprof__gate_result *r,
           const struct cpprof__gate_row *row)
{
    const char *renamed =
        row->key == CPPROF__GATE_NONE ? NULL : m->keys.at[row->key].renamed;
    const char *because = row->because == CPPROF__GATE_NONE
                              ? NULL
                              : cpprof__gate_name(m, &r->rows.at[row->because]);
    json_t *o = json_object();

    json_object_set_new(o, "name", text(cpprof__gate_name(m, row)));
    json_object_set_new(o, "name_in_head",
                        renamed ? text(renamed) : json_null());
    json_object_set_new(o, "verdict",
                        json_string(cpprof__gate_word(row->verdict)));
    json_object_set_new(o, "base", number(row->base));
    json_object_set_new(o, "head", number(row->head));
    json_object_set_new(o, "growth", number(row->growth));
    json_object_set_new(o, "low", number(row->low));
    json_object_set_new(o, "high", number(row->high));
    json_object_set_new(o, "growth_of_whole", number(row->of_whole));
    json_object_set_new(o, "share", number(row->share));
    json_object_set_new(o, "p", number(row->p));
    json_object_set_new(o, "q", number(row->q));
    json_object_set_new(o, "must_be_sure", json_boolean(row->must_be_sure));
    json_object_set_new(o, "further_runs", number(row->n_further));
    json_object_set_new(o, "because_of", because ? text(because) : json_null());
    json_object_set_new(o, "path", path_of(m, row));
    return o;
}

static void
add_runs(const struct cpprof__gate_model *m, json_t *all)
{
    json_t *base = json_array(), *head = json_array();
    size_t i;

    for (i = 0; i < m->runs.n; i++) {
        const struct cpprof__gate_run *run = &m->runs.at[i];
        json_t *o = json_object();

        json_object_set_new(o, "source", text(run->name));
        json_object_set_new(o, "total", number(run->total));
        json_object_set_new(o, "work", number(run->work));
        json_array_append_new(run->is_head ? head : base, o);
    }
    json_object_set_new(all, "base_runs", base);
    json_object_set_new(all, "head_runs", head);
}

static json_t *
summary(const struct cpprof__gate_model *m, const struct cpprof__gate_result *r)
{
    struct cpprof__buffer out = {0};
    json_t *made;

    cpprof__gate_summary(m, r, &out);
    cpprof__buffer_append(&out, "", 1);
    made = out.failed ? NULL : text((char *)out.data);
    cpprof__buffer_free(&out);
    return made;
}

void
cpprof__gate_json(const struct cpprof__gate_model *m,
                  const struct cpprof__gate_result *r,
                  struct cpprof__buffer *out)
{
    json_t *all = json_object(), *rows = json_array(), *notes = json_array();
    const char *per = m->flags->per;
    char *made;
    size_t i;

    json_object_set_new(all, "version", json_integer(1));
    json_object_set_new(all, "verdict",
                        json_string(cpprof__gate_word(r->verdict)));
    json_object_set_new(all, "summary", summary(m, r));
    json_object_set_new(all, "further_runs", number(r->n_further));
    json_object_set_new(all, "type", text(m->type));
    json_object_set_new(all, "unit", text(m->unit));
    json_object_set_new(all, "of",
                        json_string(m->flags->flat ? "flat" : "cum"));
    json_object_set_new(all, "by", json_string(cpprof__gate_by_word(m)));
    json_object_set_new(all, "per", text(per ? per : "run"));
    json_object_set_new(all, "fail_over", number(m->flags->fail_over));
    json_object_set_new(all, "confidence", number(1 - m->flags->alpha));
    json_object_set_new(all, "smallest", number(m->flags->smallest));
    json_object_set_new(all, "sure", number(m->flags->sure));
    json_object_set_new(all, "relative", json_boolean(r->is_relative));
    json_object_set_new(all, "tested", json_integer((json_int_t)r->n_tested));
    json_object_set_new(all, "splits", json_integer((json_int_t)r->n_splits));
    add_runs(m, all);
    for (i = 0; i < r->notes.n; i++)
        json_array_append_new(notes, text(r->notes.at[i]));
    json_object_set_new(all, "notes", notes);
    for (i = 0; i < r->rows.n; i++)
        json_array_append_new(rows, row_object(m, r, &r->rows.at[i]));
    json_object_set_new(all, "rows", rows);
    made = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(10));
    json_decref(all);
    if (made)
        cpprof__buffer_printf(out, "%s\n", made);
    else
        out->failed = true;
    free(made);
}
