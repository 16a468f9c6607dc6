/* SPDX-License-Identifier: MIT */
/*
 * What a CPU profile is worth: judge FILE [FUNCTION ...] prints its sum, what
 * was lost, how many stacks reach a root, the roots, and the share of each
 * FUNCTION as a leaf.
 */
#include "tests/live/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOTS_MAX 32

struct share {
    char name[128];
    int64_t count;
};

static struct share roots[ROOTS_MAX];
static size_t n_roots;

static void
count_root(const char *name, int64_t count)
{
    size_t i;

    for (i = 0; i < n_roots && strcmp(roots[i].name, name); i++)
        continue;
    if (i == ROOTS_MAX)
        i--; /* all others */
    snprintf(roots[i].name, sizeof roots[i].name, "%s", name);
    roots[i].count += count;
    if (i == n_roots)
        n_roots++;
}

/* A root without a name is told by its file. */
static void
name_root(const struct profile *p, const struct frame *root, char *name,
          size_t n)
{
    const char *file = root->mapping == NO_MAPPING
                           ? "no mapping"
                           : p->mappings[root->mapping].file;
    const char *slash = strrchr(file, '/');

    if (*root->name)
        snprintf(name, n, "%s", root->name);
    else
        snprintf(name, n, "[%s]", slash ? slash + 1 : file);
}

static int
compare(const void *a, const void *b)
{
    const struct share *x = a, *y = b;

    return (x->count < y->count) - (x->count > y->count);
}

static double
percent(int64_t part, int64_t all)
{
    return all ? 100.0 * (double)part / (double)all : 0;
}

int
main(int argc, char **argv)
{
    int64_t all = 0, cpu_ns = 0, lost = 0, broken = 0, truncated = 0;
    struct profile *p;
    char name[128];
    size_t i;
    int k;

    if (argc < 2)
        return 2;
    p = profile_load(argv[1]);
    for (i = 0; i < p->n_samples; i++) {
        const struct sample *s = &p->samples[i];
        const struct frame *root = &s->frames[s->n_frames - 1];

        all += s->count;
        cpu_ns += s->cpu_ns;
        lost += strcmp(root->name, "[lost samples]") ? 0 : s->count;
        broken += strcmp(root->name, "[unwind failed]") ? 0 : s->count;
        truncated += strcmp(root->name, "[truncated]") ? 0 : s->count;
        name_root(p, root, name, sizeof name);
        count_root(name, s->count);
    }
    printf("samples %lld  cpu %.3f s  lost %lld  complete %.2f %%  "
           "truncated %lld  unwind failed %lld\n",
           (long long)all, (double)cpu_ns / 1e9, (long long)lost,
           percent(all - lost - broken - truncated, all), (long long)truncated,
           (long long)broken);
    qsort(roots, n_roots, sizeof *roots, compare);
    for (i = 0; i < n_roots && i < 8; i++)
        printf("  root %-32s %6.2f %%\n", roots[i].name,
               percent(roots[i].count, all));
    for (k = 2; k < argc; k++) {
        int64_t count = 0;

        for (i = 0; i < p->n_samples; i++)
            if (!strcmp(p->samples[i].frames[0].name, argv[k]))
                count += p->samples[i].count;
        printf("  leaf %-32s %6.2f %%\n", argv[k], percent(count, all));
    }
    return 0;
}
