/* SPDX-License-Identifier: MIT */
/*
 * Reads the profiles that a command line names into one. Source:
 * internal/driver fetch.go.
 */
#include "cli/hide_password.h"
#include "cli/messages.h"
#include "cli/report/report_flags.h"
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the name of a source, in messages. */
#define SHOWN_BYTES 900

/* "-" is the standard input. *url is where it came from, or NULL. */
static enum cpprof_status
read_path(const char *path, const struct cpprof__report_flags *w,
          struct pprof_profile **profile, const char **url,
          struct cpprof_error *error)
{
    struct cpprof__fetch *fetch = w->origins->fetch;
    enum cpprof_status status;
    char *file;

    *url = NULL;
    if (cpprof__fetch_is_next(fetch, path))
        return cpprof__fetch_read(fetch, profile, url, error);
    if (strcmp(path, "-") == 0)
        return pprof_read_fd(STDIN_FILENO, NULL, profile, error);
    file = cpprof__file_url_path(path);
    status = pprof_read_path(file ? file : path, NULL, profile, error);
    free(file);
    return status;
}

/* Read one, with the binary and build id of the command line. */
static enum cpprof_status
read_one(const char *path, const struct cpprof__report_flags *w,
         struct pprof_profile **profile)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p = NULL;
    enum cpprof_status status;
    const char *url;
    char shown[SHOWN_BYTES];

    status = read_path(path, w, &p, &url, &error);
    if (status == CPPROF_OK)
        status = cpprof__find_binaries(p, &error);
    /* Done even if neither is given: a profile without mappings gets one. */
    if (status == CPPROF_OK)
        status = pprof_set_binary(p, w->binary, w->build_id, &error);
    if (status == CPPROF_OK && url)
        status = cpprof__origins_note(w->origins, p, url, &error);
    if (status == CPPROF_OK) {
        *profile = p;
        return status;
    }
    cpprof__hide_password(path, shown, sizeof shown);
    if (error.offset)
        cpprof__cli_warn("%s: %s at byte %llu", shown, error.text,
                         (unsigned long long)error.offset);
    else
        cpprof__cli_warn("%s: %s", shown, error.text);
    pprof_free(p);
    return status;
}

/* --------------------------------------------------------- adding up ---- */

/* The sum of profiles. If there is only one it is not merged, which makes a
 * difference: merging renumbers everything and adds up equal samples. */
struct sum {
    struct pprof_profile *only;  /* while there is but one */
    struct pprof_merger *merger; /* of several */
    int n;
};

static enum cpprof_status
add_to_merger(struct sum *sum, struct pprof_profile *p,
              struct cpprof_error *error)
{
    enum cpprof_status status = pprof_merger_add(sum->merger, p, error);

    pprof_free(p);
    return status;
}

/* Add a profile; frees it. */
static enum cpprof_status
add(struct sum *sum, struct pprof_profile *p, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;

    if (sum->n++ == 0) {
        sum->only = p;
        return CPPROF_OK;
    }
    if (sum->only) {
        status = pprof_merger_new(&sum->merger, error);
        if (status == CPPROF_OK)
            status = add_to_merger(sum, sum->only, error);
        else
            pprof_free(sum->only);
        sum->only = NULL;
    }
    if (status == CPPROF_OK)
        return add_to_merger(sum, p, error);
    pprof_free(p);
    return status;
}

/* Frees the rest. */
static enum cpprof_status
take(struct sum *sum, enum cpprof_status status, struct pprof_profile **profile,
     struct cpprof_error *error)
{
    if (status == CPPROF_OK && sum->merger)
        status = pprof_merger_finish(sum->merger, profile, error);
    else if (status == CPPROF_OK)
        *profile = sum->only;
    else
        pprof_free(sum->only);
    pprof_merger_free(sum->merger);
    return status;
}

/* Files to be added up. */
struct group {
    const char *what; /* "source" or "base" */
    char **paths;
    int n;
};

/* Tell how many files could not be read. */
static void
tell_missing(const struct group *group, int n_read)
{
    if (n_read && n_read < group->n)
        cpprof__cli_warn("Fetched %d %s profiles out of %d", n_read,
                         group->what, group->n);
    if (!n_read && group->n > 1) /* of one file, all is said */
        cpprof__cli_fail("failed to fetch any %s profiles", group->what);
}

/* One file after the other, so that no more than one is in memory. NULL after
 * printing why there is nothing. */
static struct pprof_profile *
read_group(const struct group *group, const struct cpprof__report_flags *w)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p, *all = NULL;
    struct sum sum = {NULL, NULL, 0};
    enum cpprof_status status = CPPROF_OK;
    char shown[SHOWN_BYTES] = "";
    int i;

    for (i = 0; i < group->n && status == CPPROF_OK; i++) {
        cpprof__hide_password(group->paths[i], shown, sizeof shown);
        cpprof__progress("reading %s (%d of %d)", shown, i + 1, group->n);
        if (read_one(group->paths[i], w, &p) == CPPROF_OK)
            status = add(&sum, p, &error);
    }
    if (status != CPPROF_OK)
        cpprof__cli_fail("problem fetching %s profiles: %s: %s", group->what,
                         shown, error.text);
    else
        tell_missing(group, sum.n);
    if (take(&sum, status, &all, &error) != CPPROF_OK && status == CPPROF_OK)
        cpprof__cli_fail("%s", error.text);
    return all;
}

/* -------------------------------------------------------------- base ---- */

/* The profile minus its base; frees both. */
static struct pprof_profile *
subtract(struct pprof_profile *p, struct pprof_profile *base,
         const struct cpprof__report_flags *w)
{
    struct cpprof_error error = {0};
    struct pprof_profile *difference = NULL;
    struct sum sum = {NULL, NULL, 0};
    enum cpprof_status status = CPPROF_OK;

    if (w->diff_base)
        status = pprof_set_label(base, "pprof::base", "true", &error);
    if (status == CPPROF_OK && w->normalize)
        status = pprof_normalize(p, base, &error);
    pprof_scale(base, -1);
    if (status == CPPROF_OK) {
        status = add(&sum, p, &error);
        p = NULL;
    }
    if (status == CPPROF_OK) {
        status = add(&sum, base, &error);
        base = NULL;
    }
    pprof_free(p);
    pprof_free(base);
    if (take(&sum, status, &difference, &error) != CPPROF_OK)
        cpprof__cli_fail("%s", error.text);
    return difference;
}

/* Ask for all URLs at once: those of the base are last. False after printing
 * what is wrong. */
static bool
begin_fetching(const struct cpprof__report_flags *w)
{
    size_t n = (size_t)w->n_sources, n_bases = (size_t)w->bases.n;
    char **all = malloc((n + n_bases + 1) * sizeof *all);
    struct cpprof_error error = {.text = "out of memory"};
    enum cpprof_status status = CPPROF_NOMEM;

    if (all) {
        memcpy(all, w->sources, n * sizeof *all);
        if (n_bases)
            memcpy(all + n, w->bases.at, n_bases * sizeof *all);
        w->origins->options = &w->fetch;
        status = cpprof__fetch_begin(all, n + n_bases, &w->fetch,
                                     &w->origins->fetch, &error);
    }
    free(all);
    if (status != CPPROF_OK)
        cpprof__cli_fail("%s", error.text);
    return status == CPPROF_OK;
}

struct pprof_profile *
cpprof__read_sources(const struct cpprof__report_flags *w)
{
    struct group sources = {"source", w->sources, w->n_sources};
    struct group bases = {"base", w->bases.at, w->bases.n};
    struct pprof_profile *p, *base;

    p = begin_fetching(w) ? read_group(&sources, w) : NULL;
    if (!p || !w->bases.n)
        return p;
    base = read_group(&bases, w);
    if (base)
        return subtract(p, base, w);
    pprof_free(p);
    return NULL;
}
