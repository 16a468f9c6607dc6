/* SPDX-License-Identifier: MIT */
/*
 * Reads the runs of both sides: each source is one run, each file of a folder
 * is one. A source that is no profile, or an empty one, is told and left out as
 * long as its side has others.
 */
#include "cli/gate/gate.h"

#include "base/status.h"

#include "cli/messages.h"
#include "cli/terminal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* -------------------------------------------------------------- work ---- */

/* What is divided by less, or by more than its inverse, has squares that are
 * no numbers. */
#define LEAST_WORK 1e-18

static bool
is_number(const char *text, double *value)
{
    char *end;

    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value);
}

/* The sum of a sample type of that name. */
static bool
sum_of_type(const struct pprof_profile *p, const char *name, double *sum)
{
    const struct pprof_value_type *types = pprof_sample_types(p);
    struct pprof_sample s = {.size = sizeof s};
    size_t n = pprof_sample_type_count(p), i, k;

    for (i = 0; i < n; i++)
        if (strcmp(pprof_text(p, types[i].type, NULL), name) == 0)
            break;
    *sum = 0;
    for (k = 0; i < n && k < pprof_sample_count(p); k++) {
        pprof_get_sample(p, k, &s);
        *sum += (double)s.values[i];
    }
    return i < n;
}

/* A number that stands somewhere in a profile. */
struct number {
    double value;
    bool is_found;
    bool has_several; /* others were found, too: so it is none of the run */
};

static void
find_number(struct number *n, double x)
{
    n->has_several |= n->is_found && x != n->value;
    n->value = x;
    n->is_found = true;
}

/* The number that a label of that key has. */
static void
number_of_label(const struct pprof_profile *p, const char *key,
                struct number *number)
{
    struct pprof_sample s = {.size = sizeof s};
    size_t i, k;

    for (i = 0; i < pprof_sample_count(p); i++) {
        pprof_get_sample(p, i, &s);
        for (k = 0; k < s.n_labels; k++) {
            const struct pprof_label *l = &s.labels[k];
            double x = (double)l->num;

            if (strcmp(pprof_text(p, l->key, NULL), key) == 0 &&
                (l->kind != PPROF_LABEL_TEXT ||
                 is_number(pprof_text(p, l->text, NULL), &x)))
                find_number(number, x);
        }
    }
}

/* "requests=120" or "requests: 120" among the comments. */
static void
number_of_comment(const struct pprof_profile *p, const char *key,
                  struct number *number)
{
    const pprof_string *comments = pprof_comments(p);
    size_t i, n = strlen(key);

    for (i = 0; i < pprof_comment_count(p); i++) {
        const char *text = pprof_text(p, comments[i], NULL);
        double x;

        if (strncmp(text, key, n) == 0 && (text[n] == '=' || text[n] == ':') &&
            is_number(text + n + 1, &x))
            find_number(number, x);
    }
}

/* What was done by a name of its own. False after printing why that is not
 * known. */
static bool
find_work(const struct pprof_profile *p, const char *per, const char *name,
          double *work)
{
    struct number comment = {0}, label = {0};

    number_of_comment(p, per, &comment);
    if (!comment.is_found && sum_of_type(p, per, work))
        return true;
    if (!comment.is_found)
        number_of_label(p, per, &label);
    *work = comment.is_found ? comment.value : label.value;
    if (comment.has_several || label.has_several)
        cpprof__cli_fail("%s: the %s %s has several values, so it does not "
                         "tell how much was done",
                         name, comment.is_found ? "comment" : "label", per);
    else if (!comment.is_found && !label.is_found)
        cpprof__cli_fail("%s: no sample type, label or comment tells the "
                         "number of %s",
                         name, per);
    else
        return true;
    return false;
}

/* What was done in a run, as -per says. False after printing why that is not
 * known. */
static bool
read_work(const struct pprof_profile *p, const char *per, const char *name,
          double *work)
{
    struct pprof_info info = {.size = sizeof info};

    *work = 1;
    if (!per || strcmp(per, "total") == 0)
        return true;
    pprof_get_info(p, &info);
    if (strcmp(per, "seconds") == 0)
        *work = (double)info.duration_ns / 1e9;
    else if (!find_work(p, per, name, work))
        return false;
    if (*work >= LEAST_WORK && *work <= 1 / LEAST_WORK)
        return true;
    cpprof__cli_fail("%s: the number of %s is %g, and nothing can be divided "
                     "by that",
                     name, per, *work);
    return false;
}

/* ------------------------------------------------------------ filters ---- */

static enum cpprof_status
filter(struct pprof_profile *p, const struct pprof_report_options *o,
       struct cpprof_error *error)
{
    const struct pprof_name_filter names = {.size = sizeof names,
                                            .focus = o->focus,
                                            .ignore = o->ignore,
                                            .hide = o->hide,
                                            .show = o->show};
    enum cpprof_status status = pprof_filter_names(p, &names, NULL, error);

    if (status == CPPROF_OK)
        status = pprof_show_from(p, o->show_from, NULL, error);
    if (status == CPPROF_OK)
        status = pprof_filter_labels(p, o->tagfocus, o->tagignore, NULL, error);
    if (status == CPPROF_OK && o->prune_from && *o->prune_from)
        status = pprof_prune_from(p, o->prune_from, error);
    return status;
}

/* --------------------------------------------------------------- runs ---- */

static bool
is_per_total(const struct cpprof__gate_flags *w)
{
    return w->per && strcmp(w->per, "total") == 0;
}

/* For the flame graph: the sum of a side, each run by its work. */
static enum cpprof_status
merge(struct cpprof__gate_model *m, struct pprof_profile *p, bool is_head,
      double work, struct cpprof_error *error)
{
    struct pprof_merger **merger = &m->mergers[is_head];
    enum cpprof_status status = CPPROF_OK;

    if (!m->flags->flamegraph)
        return CPPROF_OK;
    if (!*merger)
        status = pprof_merger_new(merger, error);
    if (work != m->runs.at[0].work)
        pprof_scale(p, m->runs.at[0].work / work);
    return status == CPPROF_OK ? pprof_merger_add(*merger, p, error) : status;
}

enum outcome {
    ADDED,
    LEFT_OUT, /* told, and others may do */
    FAILED,   /* told */
};

static enum outcome
add(struct cpprof__gate_model *m, struct pprof_profile *p, const char *name,
    bool is_head)
{
    struct cpprof_error error = {0};
    enum cpprof_status status;
    size_t n = pprof_sample_count(p);
    bool is_filtered;
    double work;

    /* -per may ask for what filters would drop. */
    if (!read_work(p, m->flags->per, name, &work))
        return FAILED;
    status = filter(p, &m->flags->report.options, &error);
    is_filtered = pprof_sample_count(p) < n;
    /* What filters leave nothing of has 0, which is a value; but 0 of 0 is no
     * share. */
    if (status == CPPROF_OK)
        status = cpprof__gate_add(
            m, p,
            (struct cpprof__gate_run){
                .name = (char *)name, .is_head = is_head, .work = work},
            is_filtered && !is_per_total(m->flags), &error);
    if (status == CPPROF_OK &&
        merge(m, p, is_head, work, &error) != CPPROF_OK) {
        cpprof__cli_fail("%s: %s", name, error.text);
        return FAILED;
    }
    if (status == CPPROF_OK)
        return ADDED;
    if (status == CPPROF_BAD_DATA &&
        strncmp(error.text, CPPROF__GATE_SAME_RUN,
                strlen(CPPROF__GATE_SAME_RUN)) == 0) {
        cpprof__cli_warn("%s: %s; it is left out", name, error.text);
        return LEFT_OUT;
    }
    if (status == CPPROF_BAD_DATA && strstr(error.text, "no samples")) {
        cpprof__cli_warn("%s: %s; it is left out", name,
                         is_filtered ? "the filters leave no sample, so there "
                                       "are no shares"
                                     : error.text);
        return LEFT_OUT;
    }
    cpprof__cli_fail("%s: %s", name, error.text);
    return FAILED;
}

static enum outcome
read_one(struct cpprof__gate_model *m, char *source, bool is_head)
{
    struct cpprof__report_flags flags = m->flags->report;
    struct cpprof__origins origins = {0};
    struct pprof_profile *p;
    enum outcome outcome = LEFT_OUT;
    char shown[900];

    flags.sources = &source;
    flags.n_sources = 1;
    flags.origins = &origins;
    p = cpprof__read_prepared(&flags);
    cpprof__hide_password(source, shown, sizeof shown);
    if (p)
        outcome = add(m, p, shown, is_head);
    pprof_free(p);
    cpprof__origins_free(&origins);
    return outcome;
}

/* Was the file given before? What is no file is never the same. */
static bool
is_given(const struct cpprof__flag_list *all, int i)
{
    struct stat file, other;
    int k;

    if (stat(all->at[i], &file) != 0 || !S_ISREG(file.st_mode))
        return false;
    for (k = 0; k < i; k++)
        if (stat(all->at[k], &other) == 0 && file.st_ino == other.st_ino &&
            file.st_dev == other.st_dev) {
            cpprof__cli_warn("%s: it is the same file as %s; it is left out",
                             all->at[i], all->at[k]);
            return true;
        }
    return false;
}

static bool
read_side(struct cpprof__gate_model *m, char *const *sources, int n,
          bool is_head)
{
    const char *side = is_head ? "head" : "base";
    struct cpprof__flag_list all = {NULL, 0};
    bool ok = cpprof__expand_sources(sources, n, &all);
    int i, n_added = 0;

    for (i = 0; ok && i < all.n; i++) {
        enum outcome outcome;

        cpprof__progress("reading %s, %d of %d", side, i + 1, all.n);
        outcome =
            is_given(&all, i) ? LEFT_OUT : read_one(m, all.at[i], is_head);
        ok = outcome != FAILED;
        n_added += outcome == ADDED;
    }
    if (ok && !n_added) {
        cpprof__cli_fail("gate: no run of %s could be read", side);
        ok = false;
    } else if (ok && n_added < all.n)
        cpprof__cli_warn("gate: %d of %d runs of %s are left out",
                         all.n - n_added, all.n, side);
    for (i = 0; i < all.n; i++)
        free(all.at[i]);
    free(all.at);
    return ok;
}

/* False after printing that a label is in no run. */
static bool
check_label(const struct cpprof__gate_model *m)
{
    const char *key = m->flags->label_key;
    size_t i;

    if (m->flags->by != CPPROF__GATE_LABEL)
        return true;
    for (i = 0; i < m->keys.n; i++)
        if (m->keys.at[i].is_judged)
            return true;
    cpprof__cli_fail("gate: no sample has a label%s%s",
                     key ? " " : " with a text", key ? key : "");
    return false;
}

bool
cpprof__gate_read(struct cpprof__gate_model *m)
{
    const struct cpprof__gate_flags *w = m->flags;
    bool ok = read_side(m, w->base, w->n_base, false) &&
              read_side(m, w->head, w->n_head, true);
    double all = 0;
    size_t i;

    for (i = 0; ok && i < m->runs.n; i++) {
        all += m->runs.at[i].total;
        /* Shares: each run is its own measure. */
        if (is_per_total(w))
            m->runs.at[i].work = m->runs.at[i].total;
    }
    if (ok && !all) {
        cpprof__cli_fail("gate: the filters leave no sample of any run");
        return false;
    }
    return ok && check_label(m);
}
