/* SPDX-License-Identifier: MIT */
/*
 * Differences within one profile: of samples with some labels and those with
 * others, and of the two sides of a difference that was made before.
 */
#include "cli/report/report.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

#define BASE_LABEL "pprof::base"
#define OF_BASE    BASE_LABEL "=^true$"

/* An expression that was given as -tagbase is filtered with as a focus. */
static void
name_base(struct cpprof_error *error)
{
    static const char focus[] = "tagfocus", base[] = "tagbase";
    char *word = error ? strstr(error->text, focus) : NULL;

    if (word) {
        memcpy(word, base, strlen(base));
        memmove(word + strlen(base), word + strlen(focus),
                strlen(word + strlen(focus)) + 1);
    }
}

/* Take the samples of some labels out as *base; of the rest those of `focus`,
 * or all that are not of `ignore`, stay. */
static enum cpprof_status
part(struct pprof_profile *p, const char *of_base, const char *focus,
     const char *ignore, struct pprof_profile **base,
     struct cpprof_error *error)
{
    enum cpprof_status status = pprof_copy(p, base, error);

    if (status == CPPROF_OK) {
        status = pprof_filter_labels(*base, of_base, NULL, NULL, error);
        if (status != CPPROF_OK)
            name_base(error);
    }
    if (status == CPPROF_OK)
        status = pprof_filter_labels(p, focus, ignore, NULL, error);
    return status;
}

static enum cpprof_status
subtract(struct pprof_profile *p, struct pprof_profile *base, bool normalizes,
         struct pprof_profile **difference, struct cpprof_error *error)
{
    struct pprof_merger *merger = NULL;
    enum cpprof_status status = CPPROF_OK;

    if (normalizes)
        status = pprof_normalize(p, base, error);
    pprof_scale(base, -1);
    if (status == CPPROF_OK)
        status = pprof_merger_new(&merger, error);
    if (status == CPPROF_OK)
        status = pprof_merger_add(merger, p, error);
    if (status == CPPROF_OK)
        status = pprof_merger_add(merger, base, error);
    if (status == CPPROF_OK)
        status = pprof_merger_finish(merger, difference, error);
    else
        pprof_merger_free(merger);
    return status;
}

enum cpprof_status
cpprof__normalize(struct pprof_profile *p, struct pprof_profile **difference,
                  struct cpprof_error *error)
{
    struct pprof_profile *base = NULL;
    enum cpprof_status status = part(p, OF_BASE, NULL, OF_BASE, &base, error);

    if (status == CPPROF_OK) {
        pprof_scale(base, -1);
        status = subtract(p, base, true, difference, error);
    }
    pprof_free(base);
    return status;
}

/* Tell an expression of labels that no sample has, as reports tell theirs. */
static void
warn_if_none(const struct cpprof__report_flags *w, const char *name,
             const struct pprof_profile *p)
{
    char line[64];

    snprintf(line, sizeof line, "%s expression matched no samples", name);
    if (w->options.warn && !pprof_sample_count(p))
        w->options.warn(w->options.ctx, line);
}

enum cpprof_status
cpprof__compare_labels(struct pprof_profile *p, struct cpprof__report_flags *w,
                       struct pprof_profile **difference,
                       struct cpprof_error *error)
{
    struct pprof_profile *base = NULL;
    enum cpprof_status status;

    if (w->bases.n)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "this is a difference already, so -tagbase can "
                            "subtract nothing");
    status = part(p, w->tagbase, w->options.tagfocus, NULL, &base, error);
    if (status == CPPROF_OK) {
        warn_if_none(w, "TagBase", base);
        if (w->options.tagfocus && *w->options.tagfocus)
            warn_if_none(w, "TagFocus", p);
        w->options.tagfocus = NULL; /* it is done */
        status = pprof_set_label(base, BASE_LABEL, "true", error);
    }
    if (status == CPPROF_OK)
        status = subtract(p, base, w->normalize, difference, error);
    pprof_free(base);
    return status;
}
