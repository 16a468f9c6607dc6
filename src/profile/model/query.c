/* SPDX-License-Identifier: MIT */
/*
 * Questions about a profile, answered without changing it: what its mappings
 * have, which sample type a name means, which labels samples have, and in
 * which units.
 *
 * Source: profile/profile.go (HasFunctions, HasFileLines, SampleIndexByName,
 * HasLabel, DiffBaseSample, NumLabelUnits).
 */
#include "base/buffer.h"
#include "base/status.h"
#include "profile/model/model.h"

#include <errno.h>
#include <string.h>

static const char *
text(const struct pprof_profile *p, uint32_t string)
{
    return cpprof__strings_text(&p->strings, string);
}

/* ---------------------------------------------------------- mappings ---- */

/* Do the mappings of all locations have these flags? */
static bool
all_have(const struct pprof_profile *p, uint32_t flags)
{
    size_t i;

    for (i = 0; i < p->locations.n; i++) {
        uint32_t mapping = p->locations.at[i].mapping;

        if (mapping != PPROF_NONE &&
            (p->mappings.at[mapping].flags & flags) != flags)
            return false;
    }
    return true;
}

bool
pprof_has_functions(const struct pprof_profile *p)
{
    return p && all_have(p, PPROF_HAS_FUNCTIONS);
}

bool
pprof_has_file_lines(const struct pprof_profile *p)
{
    return p && all_have(p, PPROF_HAS_FILENAMES | PPROF_HAS_LINE_NUMBERS);
}

static bool
begins(const char *path, const char *prefix)
{
    return strncmp(path, prefix, strlen(prefix)) == 0;
}

/* The last name of a path, also when slashes follow it. */
static const char *
last_name(const char *path)
{
    const char *end = path + strlen(path);

    while (end > path && end[-1] == '/')
        end--;
    while (end > path && end[-1] != '/')
        end--;
    return end;
}

bool
pprof_is_unsymbolizable(const struct pprof_profile *p, size_t mapping)
{
    const char *path = p && mapping < p->mappings.n
                           ? text(p, p->mappings.at[mapping].file)
                           : "";
    const char *name = last_name(path);

    return !*path || *name == '[' || begins(name, "linux-vdso") ||
           begins(path, "/dev/dri/") || begins(path, "/memfd:") ||
           strcmp(path, "//anon") == 0;
}

/* ------------------------------------------------------ sample types ---- */

size_t
cpprof__find_type(const struct pprof_profile *p, const char *name)
{
    size_t i;

    for (i = 0; i < p->sample_types.n; i++)
        if (strcmp(text(p, p->sample_types.at[i].type), name) == 0)
            break;
    return i;
}

/* The first type that is called name, or "inuse_" in front of which is. */
static size_t
find_asked_type(const struct pprof_profile *p, const char *name)
{
    size_t without_prefix = p->sample_types.n,
           exact = cpprof__find_type(p, name);

    if (begins(name, "inuse_"))
        without_prefix = cpprof__find_type(p, name + strlen("inuse_"));
    return exact < without_prefix ? exact : without_prefix;
}

static size_t
default_type(const struct pprof_profile *p)
{
    size_t n = p->sample_types.n, found = n;

    if (p->info.default_sample_type)
        found = cpprof__find_type(p, text(p, p->info.default_sample_type));
    return found < n ? found : n - 1;
}

/* As Go prints a string with %q, but for what is not ASCII. */
static void
put_quoted(struct cpprof__buffer *out, const char *name)
{
    cpprof__buffer_append(out, "\"", 1);
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;

        if (c == '"' || c == '\\')
            cpprof__buffer_printf(out, "\\%c", c);
        else if (c < ' ' || c == 0x7f)
            cpprof__buffer_printf(out, "\\x%02x", c);
        else
            cpprof__buffer_append(out, name, 1);
    }
    cpprof__buffer_append(out, "\"", 1);
}

static enum cpprof_status
no_such_type(const struct pprof_profile *p, const char *name,
             struct cpprof_error *error)
{
    struct cpprof__buffer out = {0};
    enum cpprof_status status;
    size_t i;

    put_quoted(&out, name);
    cpprof__buffer_printf(&out, " must be one of: [");
    for (i = 0; i < p->sample_types.n; i++)
        cpprof__buffer_printf(&out, "%s%s", i ? " " : "",
                              text(p, p->sample_types.at[i].type));
    cpprof__buffer_append(&out, "]", 2);
    status = out.failed ? cpprof__fail_nomem(error)
                        : cpprof__fail(error, CPPROF_INVALID, 0,
                                       "sample_index %s", (char *)out.data);
    cpprof__buffer_free(&out);
    return status;
}

/* A decimal number that fits. */
static bool
parse_number(const char *name, long long *number)
{
    const char *digits = name + (*name == '+' || *name == '-');

    if (!*digits || strspn(digits, "0123456789") != strlen(digits))
        return false;
    errno = 0;
    *number = strtoll(name, NULL, 10);
    return !errno;
}

enum cpprof_status
pprof_find_sample_type(const struct pprof_profile *p, const char *name,
                       size_t *index, struct cpprof_error *error)
{
    CPPROF__NEED(error, p && index);

    size_t n = p->sample_types.n, found;
    long long number;

    if (!n)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "profile has no samples");
    if (!name || !*name) {
        found = default_type(p);
    } else if (parse_number(name, &number)) {
        found =
            number < 0 || (unsigned long long)number >= n ? n : (size_t)number;
        if (found == n)
            return cpprof__fail(error, CPPROF_INVALID, 0,
                                "sample_index %s is outside the range "
                                "[0..%zu]",
                                name, n - 1);
    } else {
        found = find_asked_type(p, name);
        if (found == n)
            return no_such_type(p, name, error);
    }
    *index = found;
    return CPPROF_OK;
}

/* ------------------------------------------------------------ labels ---- */

bool
pprof_has_label(const struct pprof_profile *p, size_t sample, const char *key,
                const char *value)
{
    const struct pprof_label *l;
    size_t n, i;

    if (!p || !key || !value || sample >= p->samples.n)
        return false;
    l = cpprof__label_set(&p->labels, p->samples.at[sample].labels, &n);
    for (i = 0; i < n; i++)
        if (l[i].kind == PPROF_LABEL_TEXT &&
            strcmp(text(p, l[i].key), key) == 0 &&
            strcmp(text(p, l[i].text), value) == 0)
            return true;
    return false;
}

bool
pprof_is_diff_base(const struct pprof_profile *p, size_t sample)
{
    return pprof_has_label(p, sample, "pprof::base", "true");
}

/* The units that a key was seen with, the first one first. */
struct units {
    uint32_t key;
    uint32_t units[PPROF_MAX_UNITS];
    size_t n;
    bool has_key; /* some sample has a number of that key */
};

static void
add_unit(struct units *u, uint32_t unit)
{
    size_t i;

    for (i = 0; i < u->n; i++)
        if (u->units[i] == unit)
            return;
    if (u->n < PPROF_MAX_UNITS)
        u->units[u->n++] = unit;
}

static void
add_units(struct units *u, const struct pprof_profile *p, uint32_t set)
{
    size_t n, i;
    const struct pprof_label *l = cpprof__label_set(&p->labels, set, &n);

    for (i = 0; i < n; i++)
        if (l[i].kind == PPROF_LABEL_NUMBER && l[i].key == u->key) {
            u->has_key = true;
            if (l[i].unit)
                add_unit(u, l[i].unit);
        }
}

const char *
cpprof__suggested_unit(const char *key)
{
    return strcmp(key, "alignment") == 0 || strcmp(key, "request") == 0
               ? "bytes"
               : key;
}

const char *
pprof_label_unit(const struct pprof_profile *p, const char *key,
                 size_t *n_others)
{
    struct units u = {0};
    size_t i;

    if (!p || !key)
        return NULL;
    u.key = cpprof__strings_find(&p->strings, key, strlen(key));
    for (i = 0; u.key != CPPROF__NO_STRING && i < p->samples.n; i++)
        add_units(&u, p, p->samples.at[i].labels);
    if (n_others)
        *n_others = u.n ? u.n - 1 : 0;
    if (u.n)
        return text(p, u.units[0]);
    if (!u.has_key)
        return NULL;
    return cpprof__suggested_unit(key);
}
