/* SPDX-License-Identifier: MIT */
/*
 * `cpprof gate -against`: base is history, which somebody else keeps. The files
 * of a folder are put into the order of the times that they have inside, and
 * the last ones become the sources of base.
 */
#include "cli/gate/gate.h"

#include "cli/messages.h"

#include <stdlib.h>
#include <string.h>

/* A file of the folder. Those without a time come in the order of their
 * names, which is that of the list. */
struct past {
    char *path;
    int64_t time_ns;
    int order;
};

static struct {
    struct cpprof__flag_list kept;
} history;

static int
by_time(const void *a, const void *b)
{
    const struct past *x = a, *y = b;

    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->order - y->order;
}

static void
free_list(struct cpprof__flag_list *list)
{
    int i;

    for (i = 0; i < list->n; i++)
        free(list->at[i]);
    free(list->at);
    *list = (struct cpprof__flag_list){NULL, 0};
}

/* Is the file one of head? It is in the folder already, maybe. */
static bool
is_head(const struct cpprof__flag_list *head, const char *path)
{
    char *real = realpath(path, NULL);
    bool found = false;
    int i;

    for (i = 0; real && i < head->n && !found; i++) {
        char *other = realpath(head->at[i], NULL);

        found = other && strcmp(real, other) == 0;
        free(other);
    }
    free(real);
    return found;
}

/* When the profile was made; false after telling that it is none. */
static bool
time_of(const char *path, int64_t *time_ns)
{
    struct pprof_info info = {.size = sizeof info};
    struct cpprof_error error = {0};
    struct pprof_profile *p;

    if (pprof_read_path(path, NULL, &p, &error) != CPPROF_OK) {
        cpprof__cli_warn("%s: %s; it is left out", path, error.text);
        return false;
    }
    pprof_get_info(p, &info);
    *time_ns = info.time_ns;
    pprof_free(p);
    return true;
}

bool
cpprof__gate_against(struct cpprof__gate_flags *w)
{
    char *source = (char *)w->against;
    struct cpprof__flag_list all = {NULL, 0}, head = {NULL, 0};
    struct past *past;
    int i, n = 0, first;

    if (strstr(w->against, "://") && strchr(w->against, '?'))
        return cpprof__gate_query(w);
    if (!cpprof__expand_sources(&source, 1, &all) ||
        !cpprof__expand_sources(w->head, w->n_head, &head)) {
        free_list(&all);
        return false;
    }
    past = calloc((size_t)all.n + 1, sizeof *past);
    for (i = 0; past && i < all.n; i++) {
        past[n] = (struct past){.path = all.at[i], .order = i};
        if (!is_head(&head, all.at[i]) && time_of(all.at[i], &past[n].time_ns))
            n++;
        else
            free(all.at[i]);
    }
    free_list(&head);
    if (!past || !n) {
        cpprof__cli_fail("gate: %s: no profile to compare with", w->against);
        free(all.at);
        free(past);
        return false;
    }
    qsort(past, (size_t)n, sizeof *past, by_time);
    first = n > w->last ? n - w->last : 0;
    for (i = 0; i < first; i++)
        free(past[i].path);
    for (i = first; i < n; i++)
        all.at[i - first] = past[i].path;
    all.n = n - first;
    free(past);
    history.kept = all;
    w->base = history.kept.at;
    w->n_base = history.kept.n;
    return true;
}

void
cpprof__gate_against_free(void)
{
    free_list(&history.kept);
}
