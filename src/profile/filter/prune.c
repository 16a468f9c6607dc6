/* SPDX-License-Identifier: MIT */
/*
 * Removes the frames below a function: those that the profile itself calls
 * uninteresting (drop_frames), and -prune_from. All names are matched before
 * anything is removed, so that a failure leaves the profile unchanged.
 */
#include "base/status.h"
#include "own/memory.h"
#include "profile/filter/filter.h"
#include "profile/model/check.h"

#include <string.h>

/* What is known of a location. */
enum {
    PRUNE = 1,         /* it goes, with all below */
    PRUNE_BENEATH = 2, /* it stays, what is below goes */
};

/* The two names that have a parenthesis of their own. */
static size_t
reserved(const char *text, size_t n)
{
    static const char *const names[] = {"(anonymous namespace)", "operator()"};
    size_t i;

    for (i = 0; i < 2; i++)
        if (n >= strlen(names[i]) &&
            memcmp(text, names[i], strlen(names[i])) == 0)
            return strlen(names[i]);
    return 0;
}

/* How much of a name comes before the parameters. */
static size_t
without_parameters(const char *name, size_t n)
{
    size_t i = 0;

    while (i < n) {
        size_t skip = reserved(name + i, n - i);

        if (!skip && name[i] == '(')
            break;
        i += skip ? skip : 1;
    }
    return i;
}

/* Does the function's simplified name match? A function without a name never
 * does. */
static bool
function_matches(const struct pprof_profile *p, uint32_t function,
                 struct cpprof__regexp *drop, struct cpprof__regexp *keep)
{
    uint32_t name = p->functions.at[function].name;
    const char *text = cpprof__strings_text(&p->strings, name);
    size_t n = cpprof__strings_n(&p->strings, name);

    if (!n)
        return false;
    if (*text == '.') { /* of the PPC ELF v1 ABI */
        text++;
        n--;
    }
    n = without_parameters(text, n);
    return cpprof__regexp_matches(drop, text, n) &&
           !(keep && cpprof__regexp_matches(keep, text, n));
}

/* For each function: is it to be dropped? NULL: out of memory. */
static uint8_t *
find_dropped(const struct pprof_profile *p, struct cpprof__regexp *drop,
             struct cpprof__regexp *keep)
{
    uint8_t *dropped = cpprof__calloc(p->functions.n + 1, 1);
    size_t i;

    for (i = 0; dropped && i < p->functions.n; i++)
        dropped[i] = function_matches(p, (uint32_t)i, drop, keep);
    return dropped;
}

/* Cut a location below the outermost dropped function of its lines. */
static uint8_t
prune_location(const struct pprof_profile *p, struct pprof_location *l,
               const uint8_t *dropped)
{
    uint32_t n;

    for (n = l->n_lines; n; n--)
        if (dropped[p->lines.at[l->first_line + n - 1].function])
            break;
    if (!n)
        return 0;
    if (n == l->n_lines)
        return PRUNE | PRUNE_BENEATH;
    l->first_line += n;
    l->n_lines -= n;
    return PRUNE_BENEATH;
}

/* From the root. The frames before the first one of the user's code stay, so
 * that no stack becomes empty. */
static void
prune_sample(const struct pprof_profile *p, struct cpprof__sample *sample,
             const uint8_t *what)
{
    const uint32_t *frames;
    bool found_user = false;
    uint32_t i;

    if (!sample->n_frames)
        return;
    frames = p->frames.at + sample->first_frame;
    for (i = sample->n_frames; i; i--) {
        uint8_t w = what[frames[i - 1]];

        if (w && found_user) {
            uint32_t cut = w & PRUNE ? i : i - 1;

            sample->first_frame += cut;
            sample->n_frames -= cut;
            return;
        }
        found_user |= !w;
    }
}

/* Cut a location below the innermost function that matches. */
static uint8_t
prune_location_from(const struct pprof_profile *p, struct pprof_location *l,
                    const uint8_t *dropped)
{
    uint32_t i;

    for (i = 0; i < l->n_lines; i++)
        if (dropped[p->lines.at[l->first_line + i].function])
            break;
    if (i == l->n_lines)
        return 0;
    l->first_line += i;
    l->n_lines -= i;
    return PRUNE_BENEATH;
}

static void
prune_sample_from(const struct pprof_profile *p, struct cpprof__sample *sample,
                  const uint8_t *what)
{
    const uint32_t *frames;
    uint32_t i;

    if (!sample->n_frames)
        return;
    frames = p->frames.at + sample->first_frame;
    for (i = 0; i < sample->n_frames; i++)
        if (what[frames[i]]) {
            sample->first_frame += i;
            sample->n_frames -= i;
            return;
        }
}

/* Match all functions, then cut locations and samples. */
static enum cpprof_status
prune(struct pprof_profile *p, struct cpprof__regexp *drop,
      struct cpprof__regexp *keep, bool is_from, struct cpprof_error *error)
{
    uint8_t *dropped = find_dropped(p, drop, keep);
    uint8_t *what = cpprof__calloc(p->locations.n + 1, 1);
    enum cpprof_status status =
        dropped && what ? CPPROF_OK : cpprof__fail_nomem(error);
    size_t i;

    if (status == CPPROF_OK)
        status = cpprof__regexp_status(drop, error);
    if (status == CPPROF_OK)
        status = cpprof__regexp_status(keep, error);
    for (i = 0; i < p->locations.n && status == CPPROF_OK; i++)
        what[i] = (is_from ? prune_location_from
                           : prune_location)(p, &p->locations.at[i], dropped);
    for (i = 0; i < p->samples.n && status == CPPROF_OK; i++)
        (is_from ? prune_sample_from : prune_sample)(p, &p->samples.at[i],
                                                     what);
    cpprof__free(dropped);
    cpprof__free(what);
    return status;
}

enum cpprof_status
cpprof__prune_from(struct pprof_profile *p, struct cpprof__regexp *prune_from,
                   struct cpprof_error *error)
{
    return prune_from ? prune(p, prune_from, NULL, true, error) : CPPROF_OK;
}

enum cpprof_status
pprof_prune(struct pprof_profile *p, const char *drop_text,
            const char *keep_text, struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    struct cpprof__regexp *drop = NULL, *keep = NULL;
    enum cpprof_status status;

    if (!drop_text || !*drop_text)
        return CPPROF_OK;
    status = cpprof__regexp_make_whole(drop_text, &drop, error);
    if (status == CPPROF_OK && keep_text && *keep_text)
        status = cpprof__regexp_make_whole(keep_text, &keep, error);
    if (status == CPPROF_OK)
        status = prune(p, drop, keep, false, error);
    cpprof__regexp_free(drop);
    cpprof__regexp_free(keep);
    cpprof__debug_check(p);
    return status;
}

enum cpprof_status
pprof_drop_frames(struct pprof_profile *p, struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    return pprof_prune(
        p, cpprof__strings_text(&p->strings, p->info.drop_frames),
        cpprof__strings_text(&p->strings, p->info.keep_frames), error);
}
