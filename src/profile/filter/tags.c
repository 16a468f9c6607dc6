/* SPDX-License-Identifier: MIT */
/*
 * Filters by label. They depend on the label set alone, so each expression is
 * tried once for each set and not for each sample.
 */
#include "base/buffer.h"
#include "base/status.h"
#include "own/memory.h"
#include "profile/filter/filter.h"
#include "profile/model/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- units ---- */

uint8_t *
cpprof__used_label_sets(const struct pprof_profile *p)
{
    uint8_t *used = cpprof__calloc(p->labels.sets.n, 1);
    size_t i;

    for (i = 0; used && i < p->samples.n; i++)
        used[p->samples.at[i].labels] = 1;
    return used;
}

/* Note the first unit of each key of the set. */
static void
add_units(const struct pprof_profile *p, uint32_t set,
          struct cpprof__label_units *units)
{
    size_t n, i;
    const struct pprof_label *l = cpprof__label_set(&p->labels, set, &n);

    for (i = 0; i < n; i++) {
        uint32_t *unit = &units->units[l[i].key];

        if (l[i].kind == PPROF_LABEL_NUMBER &&
            (*unit == CPPROF__NO_STRING || !*unit))
            *unit = l[i].unit;
    }
}

/* In the order of the samples: each set where it comes first. */
static bool
find_units(const struct pprof_profile *p, struct cpprof__label_units *units)
{
    uint8_t *seen = cpprof__calloc(p->labels.sets.n, 1);
    size_t i;

    for (i = 0; seen && i < p->samples.n; i++) {
        uint32_t set = p->samples.at[i].labels;

        if (!seen[set])
            add_units(p, set, units);
        seen[set] = 1;
    }
    cpprof__free(seen);
    return seen != NULL;
}

enum cpprof_status
cpprof__label_units_make(struct pprof_profile *p,
                         struct cpprof__label_units *units,
                         struct cpprof_error *error)
{
    size_t i;

    units->n = p->strings.table.n;
    units->units = cpprof__malloc(units->n * sizeof *units->units);
    if (!units->units)
        return cpprof__fail_nomem(error);
    memset(units->units, 0xff, units->n * sizeof *units->units);
    if (!find_units(p, units))
        return cpprof__fail_nomem(error);
    for (i = 0; i < units->n; i++)
        if (!units->units[i]) {
            units->units[i] = cpprof__strings_add_text(
                &p->strings, cpprof__suggested_unit(cpprof__strings_text(
                                 &p->strings, (uint32_t)i)));
            if (units->units[i] == CPPROF__NO_STRING)
                return cpprof__fail_nomem(error);
        }
    return CPPROF_OK;
}

/* A key, and a unit that is not the one it is read in; both as text. */
struct other_unit {
    const char *key, *unit, *used;
};

static int
by_key_and_unit(const void *a, const void *b)
{
    const struct other_unit *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order ? order : strcmp(x->unit, y->unit);
}

typedef CPPROF__ARRAY(struct other_unit) other_units;

static bool
add_others(const struct pprof_profile *p, uint32_t set,
           const struct cpprof__label_units *units, other_units *others)
{
    size_t n, i;
    const struct pprof_label *l = cpprof__label_set(&p->labels, set, &n);

    for (i = 0; i < n; i++) {
        if (l[i].kind != PPROF_LABEL_NUMBER || !l[i].unit ||
            l[i].unit == units->units[l[i].key])
            continue;
        if (!CPPROF__ARRAY_ROOM(others, 1))
            return false;
        others->at[others->n++] = (struct other_unit){
            cpprof__strings_text(&p->strings, l[i].key),
            cpprof__strings_text(&p->strings, l[i].unit),
            cpprof__strings_text(&p->strings, units->units[l[i].key])};
    }
    return true;
}

enum cpprof_status
cpprof__label_units_tell(const struct pprof_profile *p,
                         const struct cpprof__label_units *units,
                         void (*tell)(void *ctx, const char *line), void *ctx,
                         struct cpprof_error *error)
{
    uint8_t *used = cpprof__used_label_sets(p);
    struct cpprof__buffer line = {0};
    other_units others = {0};
    bool failed = !used;
    uint32_t set;
    size_t i;

    for (set = 0; !failed && set < p->labels.sets.n; set++)
        failed = used[set] && !add_others(p, set, units, &others);
    cpprof__free(used);
    if (others.n)
        qsort(others.at, others.n, sizeof *others.at, by_key_and_unit);
    for (i = 0; !failed && i < others.n; i++) {
        const struct other_unit *o = &others.at[i];

        if (!i || strcmp(o[-1].key, o->key) != 0)
            cpprof__buffer_printf(
                &line, "For tag %s used unit %s, also encountered unit(s) %s",
                o->key, o->used, o->unit);
        else if (strcmp(o[-1].unit, o->unit) != 0)
            cpprof__buffer_printf(&line, ", %s", o->unit);
        if (i + 1 < others.n && strcmp(o->key, o[1].key) == 0)
            continue;
        cpprof__buffer_append(&line, "", 1);
        failed = line.failed;
        if (!failed)
            tell(ctx, (char *)line.data);
        line.n = 0;
    }
    cpprof__buffer_free(&line);
    CPPROF__ARRAY_FREE(&others);
    return failed ? cpprof__fail_nomem(error) : CPPROF_OK;
}

void
cpprof__label_units_free(struct cpprof__label_units *units)
{
    cpprof__free(units->units);
    units->units = NULL;
}

/* ------------------------------------------------------- expressions ---- */

#define UNIT_TEXT 32

/* The end of a range: digits with a sign, letters. */
struct bound {
    int64_t value;
    char unit[UNIT_TEXT];
};

struct tag_filter {
    const struct pprof_profile *p;
    const struct cpprof__label_units *units;
    bool any;     /* there is no expression: everything matches */
    bool has_key; /* only labels of this key, which may be no string at all */
    uint32_t key;
    bool is_range;
    double low, high;
    char unit[UNIT_TEXT]; /* of the range */
    CPPROF__ARRAY(struct cpprof__regexp *) regexps;
    struct cpprof__buffer pair; /* for matching; fails for want of memory */
};

static void
tag_filter_free(struct tag_filter *f)
{
    size_t i;

    for (i = 0; i < f->regexps.n; i++)
        cpprof__regexp_free(f->regexps.at[i]);
    CPPROF__ARRAY_FREE(&f->regexps);
    cpprof__buffer_free(&f->pair);
}

/* Parse one bound; NULL if there is none, or if it is too large. */
static const char *
parse_bound(const char *text, struct bound *bound)
{
    const char *digits = text + (*text == '+' || *text == '-');
    size_t n_digits = strspn(digits, "0123456789");
    const char *letters = digits + n_digits;
    size_t n_letters =
        strspn(letters, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    if (!n_digits || n_letters >= sizeof bound->unit)
        return NULL;
    errno = 0;
    bound->value = strtoll(text, NULL, 10);
    memcpy(bound->unit, letters, n_letters);
    bound->unit[n_letters] = 0;
    return errno ? NULL : letters + n_letters;
}

/* "A", "A:", ":B", "A:B"; in the unit of the first bound. */
static bool
parse_range(struct tag_filter *f, const char *text)
{
    bool only_high = *text == ':';
    struct bound first, second;
    const char *rest = parse_bound(text + only_high, &first);

    if (!rest)
        return false;
    snprintf(f->unit, sizeof f->unit, "%s",
             cpprof__scale(first.value, first.unit, first.unit, &f->low));
    f->high = f->low;
    if (only_high)
        f->low = -HUGE_VAL;
    if (!*rest)
        return true;
    f->high = HUGE_VAL;
    if (only_high || *rest != ':' || !rest[1])
        return !only_high && *rest == ':';
    rest = parse_bound(rest + 1, &second);
    return rest && !*rest &&
           strcmp(cpprof__scale(second.value, second.unit, f->unit, &f->high),
                  f->unit) == 0;
}

/* Regexps parted by commas. */
static enum cpprof_status
parse_regexps(struct tag_filter *f, const char *text, const char *what,
              struct cpprof_error *error)
{
    char *copy = cpprof__strdup(text), *next = copy, *part;
    enum cpprof_status status = CPPROF_OK;

    if (!copy)
        return cpprof__fail_nomem(error);
    while (status == CPPROF_OK && (part = strsep(&next, ","))) {
        struct cpprof__regexp *regexp = NULL;

        status = cpprof__regexp_make(part, what, &regexp, error);
        if (status == CPPROF_OK && CPPROF__ARRAY_ROOM(&f->regexps, 1)) {
            f->regexps.at[f->regexps.n++] = regexp;
        } else if (status == CPPROF_OK) {
            cpprof__regexp_free(regexp);
            status = cpprof__fail_nomem(error);
        }
    }
    cpprof__free(copy);
    return status;
}

static enum cpprof_status
parse_filter(struct tag_filter *f, const char *text, const char *what,
             struct cpprof_error *error)
{
    const char *equals = text ? strchr(text, '=') : NULL;

    f->any = !text || !*text;
    if (f->any)
        return CPPROF_OK;
    if (equals) {
        f->has_key = equals > text; /* "=VALUE": of any key */
        f->key =
            cpprof__strings_find(&f->p->strings, text, (size_t)(equals - text));
        text = equals + 1;
    }
    f->is_range = parse_range(f, text);
    return f->is_range ? CPPROF_OK : parse_regexps(f, text, what, error);
}

const char *
cpprof__tag_range(const char *expression)
{
    const char *equals = expression ? strchr(expression, '=') : NULL;
    const char *text = equals ? equals + 1 : expression;
    struct tag_filter filter = {0};

    return text && *expression && parse_range(&filter, text) ? text : NULL;
}

/* ---------------------------------------------------------- matching ---- */

static bool
number_matches(const struct tag_filter *f, const struct pprof_label *l)
{
    uint32_t unit = f->units->units[l->key];
    const char *from = cpprof__strings_text(&f->p->strings, unit);
    double value;

    return strcmp(cpprof__scale(l->num, from, f->unit, &value), f->unit) == 0 &&
           value >= f->low && value <= f->high;
}

/* "KEY:VALUE", the text that an expression without a key is matched with. */
static bool
pair_matches(struct tag_filter *f, struct cpprof__regexp *r,
             const struct pprof_label *l)
{
    const struct cpprof__strings *s = &f->p->strings;

    f->pair.n = 0;
    cpprof__buffer_append(&f->pair, cpprof__strings_text(s, l->key),
                          cpprof__strings_n(s, l->key));
    cpprof__buffer_append(&f->pair, ":", 1);
    cpprof__buffer_append(&f->pair, cpprof__strings_text(s, l->text),
                          cpprof__strings_n(s, l->text));
    return !f->pair.failed &&
           cpprof__regexp_matches(r, (char *)f->pair.data, f->pair.n);
}

static bool
text_matches(struct tag_filter *f, struct cpprof__regexp *r,
             const struct pprof_label *l)
{
    return f->has_key
               ? cpprof__regexp_matches_string(r, &f->p->strings, l->text)
               : pair_matches(f, r, l);
}

/* Does any label of the set match regexp r, or the range? */
static bool
any_label_matches(struct tag_filter *f, struct cpprof__regexp *r, uint32_t set)
{
    size_t n, i;
    const struct pprof_label *l = cpprof__label_set(&f->p->labels, set, &n);

    for (i = 0; i < n; i++, l++) {
        bool number = l->kind == PPROF_LABEL_NUMBER;

        if ((f->has_key && l->key != f->key) || number != f->is_range)
            continue;
        if (number ? number_matches(f, l) : text_matches(f, r, l))
            return true;
    }
    return false;
}

/* With a key one regexp is enough, without one all must match something. */
static bool
set_matches(struct tag_filter *f, uint32_t set)
{
    size_t i;

    if (f->is_range)
        return any_label_matches(f, NULL, set);
    for (i = 0; i < f->regexps.n; i++)
        if (any_label_matches(f, f->regexps.at[i], set) == f->has_key)
            return f->has_key;
    return !f->has_key;
}

/* ----------------------------------------------------------- filters ---- */

/* What is known of a set. */
enum {
    FOCUSED = 1,
    IGNORED = 2,
};

struct keeper {
    const uint8_t *what; /* by set */
    bool focused, ignored;
};

static bool
keep_tagged(void *ctx, struct cpprof__sample *sample)
{
    struct keeper *k = ctx;
    uint8_t what = k->what[sample->labels];

    k->focused |= what & FOCUSED;
    k->ignored |= (what & IGNORED) != 0;
    return what == FOCUSED;
}

static enum cpprof_status
filter_status(const struct tag_filter *f, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    if (f->pair.failed)
        return cpprof__fail_nomem(error);
    for (i = 0; i < f->regexps.n && status == CPPROF_OK; i++)
        status = cpprof__regexp_status(f->regexps.at[i], error);
    return status;
}

/* For each label set that is used: which of the two filters match it. */
static void
examine(const struct pprof_profile *p, struct tag_filter *focus,
        struct tag_filter *ignore, uint8_t *what)
{
    size_t i;

    for (i = 0; i < p->labels.sets.n; i++) {
        if (!what[i])
            continue;
        what[i] = 0;
        if (focus->any || set_matches(focus, (uint32_t)i))
            what[i] |= FOCUSED;
        if (!ignore->any && set_matches(ignore, (uint32_t)i))
            what[i] |= IGNORED;
    }
}

static enum cpprof_status
apply(struct pprof_profile *p, struct tag_filter *focus,
      struct tag_filter *ignore, bool matched[2], struct cpprof_error *error)
{
    uint8_t *what = cpprof__used_label_sets(p);
    struct keeper keeper = {what, false, false};
    enum cpprof_status status;

    if (!what)
        return cpprof__fail_nomem(error);
    examine(p, focus, ignore, what);
    status = filter_status(focus, error);
    if (status == CPPROF_OK)
        status = filter_status(ignore, error);
    if (status == CPPROF_OK) {
        cpprof__keep_samples(p, keep_tagged, &keeper);
        matched[0] = keeper.focused;
        matched[1] = keeper.ignored;
    }
    cpprof__free(what);
    return status;
}

enum cpprof_status
cpprof__filter_tags(struct pprof_profile *p,
                    const struct cpprof__label_units *units, const char *focus,
                    const char *ignore, bool matched[2],
                    struct cpprof_error *error)
{
    struct tag_filter f = {.p = p, .units = units}, i = f;
    enum cpprof_status status = parse_filter(&f, focus, "tagfocus", error);

    if (status == CPPROF_OK)
        status = parse_filter(&i, ignore, "tagignore", error);
    matched[0] = matched[1] = true;
    if (status == CPPROF_OK && !(f.any && i.any))
        status = apply(p, &f, &i, matched, error);
    tag_filter_free(&f);
    tag_filter_free(&i);
    return status;
}

/* The keys to show and to hide. */
struct keys {
    struct cpprof__regexp *show, *hide; /* may be NULL */
    bool *matched;
};

static bool
keeps_key(const struct pprof_profile *p, const struct keys *keys, uint32_t key)
{
    bool shown = !keys->show ||
                 cpprof__regexp_matches_string(keys->show, &p->strings, key);
    bool hidden = keys->hide &&
                  cpprof__regexp_matches_string(keys->hide, &p->strings, key);

    keys->matched[0] |= shown;
    keys->matched[1] |= hidden;
    return shown && !hidden;
}

/* Keep the labels of a set whose keys are to be shown. Unless `change`, only
 * match the keys, so that a failure shows before anything is changed. */
static void
filter_set(struct pprof_profile *p, const struct keys *keys, size_t set,
           bool change)
{
    struct cpprof__label_set *s = &p->labels.sets.at[set];
    struct pprof_label *l;
    size_t kept = 0, i;

    if (!s->n) /* there may be no table at all */
        return;
    l = p->labels.labels.at + s->first;
    for (i = 0; i < s->n; i++)
        if (keeps_key(p, keys, l[i].key) && change)
            l[kept++] = l[i];
    if (change)
        s->n = kept;
}

enum cpprof_status
cpprof__filter_tag_keys(struct pprof_profile *p, struct cpprof__regexp *show,
                        struct cpprof__regexp *hide, bool matched[2],
                        struct cpprof_error *error)
{
    struct keys keys = {show, hide, matched};
    uint8_t *used = cpprof__used_label_sets(p);
    enum cpprof_status status = CPPROF_OK;
    int change;
    size_t i;

    matched[0] = matched[1] = false;
    if (!used)
        return cpprof__fail_nomem(error);
    for (change = 0; change < 2 && status == CPPROF_OK; change++) {
        for (i = 0; i < p->labels.sets.n; i++)
            if (used[i])
                filter_set(p, &keys, i, change);
        status = cpprof__regexp_status(show, error);
        if (status == CPPROF_OK)
            status = cpprof__regexp_status(hide, error);
    }
    cpprof__free(used);
    return status;
}
