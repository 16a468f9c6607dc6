/* SPDX-License-Identifier: MIT */
/*
 * The labels that tell the processes of a profile apart, "process" and "pid" as
 * `cpprof record -one` gives them: by both the heading of a report tells how
 * many processes were added up. A source without them is taken for one process.
 */
#include "base/status.h"

#include "cli/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who a sample is of; 0 where it has no such label. */
struct process {
    int64_t pid;
    pprof_string name;
};

static bool
has_key(const struct pprof_profile *profile, const struct pprof_label *label,
        const char *key)
{
    return strcmp(pprof_text(profile, label->key, NULL), key) == 0;
}

static struct process
process_of(const struct pprof_profile *profile, size_t index)
{
    struct pprof_sample sample = {.size = sizeof sample};
    struct process process = {0};
    size_t i;

    pprof_get_sample(profile, index, &sample);
    for (i = 0; i < sample.n_labels; i++) {
        const struct pprof_label *label = &sample.labels[i];

        if (label->kind == PPROF_LABEL_TEXT &&
            has_key(profile, label, "process"))
            process.name = label->text;
        if (label->kind == PPROF_LABEL_NUMBER && has_key(profile, label, "pid"))
            process.pid = label->num;
    }
    return process;
}

static int
compare(const void *a, const void *b)
{
    const struct process *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

enum cpprof_status
cpprof__count_processes(const struct pprof_profile *profile, size_t *n,
                        struct cpprof_error *error)
{
    size_t n_samples = pprof_sample_count(profile), n_all = 0, n_found = 1, i;
    struct process *all = calloc(n_samples + 1, sizeof *all);

    if (!all)
        return cpprof__fail(error, CPPROF_NOMEM, 0, "out of memory");
    /* Samples of a process follow each other mostly: few are to be sorted. */
    for (i = 0; i < n_samples; i++) {
        all[n_all] = process_of(profile, i);
        if (!n_all || compare(&all[n_all - 1], &all[n_all]))
            n_all++;
    }
    qsort(all, n_all, sizeof *all, compare);
    for (i = 1; i < n_all; i++)
        n_found += compare(&all[i - 1], &all[i]) != 0;
    free(all);
    *n = n_found;
    return CPPROF_OK;
}

/* --------------------------------------------------------- heading ---- */

enum cpprof_status
cpprof__tell_sum(struct pprof_profile *profile,
                 const struct cpprof__report_flags *w,
                 struct cpprof_error *error)
{
    char text[80];

    if (!w->tell_sum || w->n_added < 2)
        return CPPROF_OK;
    if (w->n_processes == w->n_added)
        snprintf(text, sizeof text, "Sum of %zu files", w->n_added);
    else
        snprintf(text, sizeof text, "Sum of %zu files, %zu processes",
                 w->n_added, w->n_processes);
    return pprof_add_comment(profile, text, error);
}
