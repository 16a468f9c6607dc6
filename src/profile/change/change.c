/* SPDX-License-Identifier: MIT */
/*
 * The public filters, which take regular expressions as text. All expressions
 * are compiled before anything is changed, so a bad one leaves the profile as
 * it was.
 */
#include "base/options.h"
#include "base/status.h"
#include "profile/filter/filter.h"
#include "profile/model/check.h"

static bool
is_set(const char *text)
{
    return text && *text;
}

static enum cpprof_status
compile(const char *text, const char *what, struct cpprof__regexp **regexp,
        struct cpprof_error *error)
{
    return is_set(text) ? cpprof__regexp_make(text, what, regexp, error)
                        : CPPROF_OK;
}

/* Report as bits which of two kinds of expressions matched. */
static void
set_matched(uint32_t *matched, uint32_t first, uint32_t second,
            const bool both[2])
{
    if (matched)
        *matched = (both[0] ? first : 0) | (both[1] ? second : 0);
}

/* ------------------------------------------------------------- names ---- */

static enum cpprof_status
compile_names(const struct pprof_name_filter *texts,
              struct cpprof__name_filter *filter, struct cpprof_error *error)
{
    enum cpprof_status status =
        compile(texts->focus, "focus", &filter->focus, error);

    if (status == CPPROF_OK)
        status = compile(texts->ignore, "ignore", &filter->ignore, error);
    if (status == CPPROF_OK)
        status = compile(texts->hide, "hide", &filter->hide, error);
    if (status == CPPROF_OK)
        status = compile(texts->show, "show", &filter->show, error);
    return status;
}

static uint32_t
name_bits(const struct cpprof__name_matches *m)
{
    return (m->focus ? PPROF_MATCHED_FOCUS : 0) |
           (m->ignore ? PPROF_MATCHED_IGNORE : 0) |
           (m->hide ? PPROF_MATCHED_HIDE : 0) |
           (m->show ? PPROF_MATCHED_SHOW : 0);
}

enum cpprof_status
pprof_filter_names(struct pprof_profile *p,
                   const struct pprof_name_filter *texts, uint32_t *matched,
                   struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    struct pprof_name_filter all = {.size = sizeof all};
    struct cpprof__name_filter filter = {0};
    struct cpprof__name_matches matches;
    enum cpprof_status status =
        cpprof__options(&all, sizeof all, texts, "name filter", error);

    if (status == CPPROF_OK)
        status = compile_names(&all, &filter, error);
    if (status == CPPROF_OK)
        status = cpprof__filter_names(p, &filter, &matches, error);
    if (status == CPPROF_OK && matched)
        *matched = name_bits(&matches);
    cpprof__regexp_free(filter.focus);
    cpprof__regexp_free(filter.ignore);
    cpprof__regexp_free(filter.hide);
    cpprof__regexp_free(filter.show);
    cpprof__debug_check(p);
    return status;
}

enum cpprof_status
pprof_show_from(struct pprof_profile *p, const char *show_from,
                uint32_t *matched, struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    struct cpprof__regexp *r = NULL;
    enum cpprof_status status = compile(show_from, "show_from", &r, error);
    bool any = false;

    if (status == CPPROF_OK)
        status = cpprof__show_from(p, r, &any, error);
    if (status == CPPROF_OK && matched)
        *matched = any ? PPROF_MATCHED_SHOW : 0;
    cpprof__regexp_free(r);
    cpprof__debug_check(p);
    return status;
}

enum cpprof_status
pprof_prune_from(struct pprof_profile *p, const char *prune_from,
                 struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    struct cpprof__regexp *r = NULL;
    enum cpprof_status status = compile(prune_from, "prune_from", &r, error);

    if (status == CPPROF_OK)
        status = cpprof__prune_from(p, r, error);
    cpprof__regexp_free(r);
    cpprof__debug_check(p);
    return status;
}

/* ------------------------------------------------------------ labels ---- */

enum cpprof_status
pprof_filter_labels(struct pprof_profile *p, const char *focus,
                    const char *ignore, uint32_t *matched,
                    struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    struct cpprof__label_units units = {0};
    enum cpprof_status status = cpprof__label_units_make(p, &units, error);
    bool both[2];

    if (status == CPPROF_OK)
        status = cpprof__filter_tags(p, &units, focus, ignore, both, error);
    if (status == CPPROF_OK)
        set_matched(matched, PPROF_MATCHED_FOCUS, PPROF_MATCHED_IGNORE, both);
    cpprof__label_units_free(&units);
    cpprof__debug_check(p);
    return status;
}

enum cpprof_status
pprof_filter_label_keys(struct pprof_profile *p, const char *show,
                        const char *hide, uint32_t *matched,
                        struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    struct cpprof__regexp *shown = NULL, *hidden = NULL;
    enum cpprof_status status = compile(show, "tagshow", &shown, error);
    bool both[2];

    if (status == CPPROF_OK)
        status = compile(hide, "taghide", &hidden, error);
    if (status == CPPROF_OK)
        status = cpprof__filter_tag_keys(p, shown, hidden, both, error);
    if (status == CPPROF_OK)
        set_matched(matched, PPROF_MATCHED_SHOW, PPROF_MATCHED_HIDE, both);
    cpprof__regexp_free(shown);
    cpprof__regexp_free(hidden);
    cpprof__debug_check(p);
    return status;
}

enum cpprof_status
pprof_add_label_frames(struct pprof_profile *p, const char *root_keys,
                       const char *leaf_keys, const char *unit,
                       uint32_t *matched, struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    bool both[2];
    enum cpprof_status status = cpprof__add_tag_frames(
        p, root_keys, leaf_keys, unit ? unit : "minimum", both, error);

    if (status == CPPROF_OK)
        set_matched(matched, PPROF_MATCHED_FOCUS, PPROF_MATCHED_IGNORE, both);
    cpprof__debug_check(p);
    return status;
}

/* ------------------------------------------------------------- merge ---- */

enum cpprof_status
pprof_merge(struct pprof_profile *const *profiles, size_t n,
            struct pprof_profile **result, struct cpprof_error *error)
{
    CPPROF__NEED(error, profiles && result);

    struct pprof_merger *merger = NULL;
    enum cpprof_status status = pprof_merger_new(&merger, error);
    size_t i;

    for (i = 0; i < n && status == CPPROF_OK; i++)
        status = pprof_merger_add(merger, profiles[i], error);
    if (status == CPPROF_OK)
        status = pprof_merger_finish(merger, result, error);
    pprof_merger_free(merger);
    return status;
}

enum cpprof_status
pprof_compact(struct pprof_profile *p, struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    struct pprof_profile *merged = NULL, old;
    enum cpprof_status status = pprof_merge(&p, 1, &merged, error);

    if (status != CPPROF_OK)
        return status;
    old = *p;
    *p = *merged;
    *merged = old;
    pprof_free(merged);
    cpprof__debug_check(p);
    return CPPROF_OK;
}
