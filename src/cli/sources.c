/* SPDX-License-Identifier: MIT */
/*
 * The profiles that a command line names, as one. Source: internal/driver
 * fetch.go.
 */
#include "cli.h"
#include "report_words.h"

/* Read one, with the binary and build id of the command line. */
static enum cpprof_status
read_one(const char *path, const struct cpprof__report_words *w,
         struct cpprof_pprof **profile)
{
    struct cpprof_error error = {0};
    struct cpprof_pprof *p = NULL;
    enum cpprof_status status;

    status = cpprof_pprof_read_path(path, NULL, &p, &error);
    if (status == CPPROF_OK && (w->binary || w->build_id))
        status = cpprof_pprof_set_binary(p, w->binary, w->build_id, &error);
    if (status == CPPROF_OK) {
        *profile = p;
        return status;
    }
    if (error.offset)
        cpprof__cli_warn("%s: %s at byte %llu", path, error.text,
                         (unsigned long long)error.offset);
    else
        cpprof__cli_warn("%s: %s", path, error.text);
    cpprof_pprof_free(p);
    return status;
}

/* In a profile without negative values equal samples need not be added up
 * before they are shown. */
static bool
has_negative(const struct cpprof_pprof *p)
{
    struct cpprof_pprof_info info = cpprof_pprof_info(p);
    size_t i, j;

    for (i = 0; i < info.n_samples; i++) {
        struct cpprof_pprof_sample sample = cpprof_pprof_sample(p, i);

        for (j = 0; j < info.n_sample_types; j++)
            if (sample.values[j] < 0)
                return true;
    }
    return false;
}

/* Add n files to the merger; how many could be read, -1 if they do not go
 * together. */
static int
add_all(struct cpprof_pprof_merger *merger, char **paths, int n,
        const struct cpprof__report_words *w)
{
    struct cpprof_error error = {0};
    int n_read = 0, i;

    for (i = 0; i < n; i++) {
        struct cpprof_pprof *p;
        enum cpprof_status status;

        if (read_one(paths[i], w, &p) != CPPROF_OK)
            continue;
        status = cpprof_pprof_merger_add(merger, p, &error);
        cpprof_pprof_free(p);
        if (status != CPPROF_OK) {
            cpprof__cli_fail("%s: %s", paths[i], error.text);
            return -1;
        }
        n_read++;
    }
    if (n_read && n_read < n)
        cpprof__cli_warn("read %d profiles out of %d", n_read, n);
    return n_read;
}

static struct cpprof_pprof *
merge_files(char **paths, int n, const struct cpprof__report_words *w)
{
    struct cpprof_error error = {0};
    struct cpprof_pprof_merger *merger = NULL;
    struct cpprof_pprof *merged = NULL;

    if (cpprof_pprof_merger_make(&merger, &error) != CPPROF_OK)
        cpprof__cli_fail("%s", error.text);
    else if (add_all(merger, paths, n, w) > 0 &&
             cpprof_pprof_merger_finish(merger, &merged, &error) != CPPROF_OK)
        cpprof__cli_fail("%s", error.text);
    cpprof_pprof_merger_free(merger);
    return merged;
}

/* Add two profiles up; frees both. */
static enum cpprof_status
merge_two(struct cpprof_pprof *a, struct cpprof_pprof *b,
          struct cpprof_pprof **merged, struct cpprof_error *error)
{
    struct cpprof_pprof_merger *merger = NULL;
    enum cpprof_status status = cpprof_pprof_merger_make(&merger, error);

    if (status == CPPROF_OK)
        status = cpprof_pprof_merger_add(merger, a, error);
    cpprof_pprof_free(a);
    if (status == CPPROF_OK)
        status = cpprof_pprof_merger_add(merger, b, error);
    cpprof_pprof_free(b);
    if (status == CPPROF_OK)
        status = cpprof_pprof_merger_finish(merger, merged, error);
    cpprof_pprof_merger_free(merger);
    return status;
}

/* The profile minus its base; frees both. */
static struct cpprof_pprof *
subtract(struct cpprof_pprof *p, struct cpprof_pprof *base,
         const struct cpprof__report_words *w)
{
    struct cpprof_error error = {0};
    struct cpprof_pprof *difference = NULL;
    enum cpprof_status status = CPPROF_OK;

    if (w->diff_base)
        status = cpprof_pprof_set_label(base, "pprof::base", "true", &error);
    if (status == CPPROF_OK && w->normalize)
        status = cpprof_pprof_normalize(p, base, &error);
    if (status == CPPROF_OK) {
        cpprof_pprof_scale(base, -1);
        status = merge_two(p, base, &difference, &error);
    } else {
        cpprof_pprof_free(p);
        cpprof_pprof_free(base);
    }
    if (status != CPPROF_OK)
        cpprof__cli_fail("%s", error.text);
    return difference;
}

static struct cpprof_pprof *
read_only_source(const struct cpprof__report_words *w)
{
    struct cpprof_pprof *p = NULL;

    if (read_one(w->sources[0], w, &p) != CPPROF_OK)
        return NULL;
    if (!has_negative(p))
        return p;
    cpprof_pprof_free(p);
    return merge_files(w->sources, 1, w);
}

struct cpprof_pprof *
cpprof__read_sources(const struct cpprof__report_words *w)
{
    struct cpprof_pprof *p, *base;
    char *base_path;

    if (w->n_sources == 1 && !w->base)
        return read_only_source(w);
    p = merge_files(w->sources, w->n_sources, w);
    if (!p || !w->base)
        return p;
    base_path = (char *)w->base;
    base = merge_files(&base_path, 1, w);
    if (base)
        return subtract(p, base, w);
    cpprof_pprof_free(p);
    return NULL;
}
