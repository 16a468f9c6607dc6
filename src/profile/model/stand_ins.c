/* SPDX-License-Identifier: MIT */
#include "profile/model/stand_ins.h"

#include "own/memory.h"
#include "profile/model/make.h"
#include "profile/model/path.h"

#include <stdlib.h>
#include <string.h>

/* Digits of a build id that names have; as many as are needed to tell some
 * builds of one file apart. */
#define ID_DIGITS 8

bool
cpprof__is_stand_in(const char *name, size_t n)
{
    const char *plus = n > 2 && name[0] == '[' ? strrchr(name, '+') : NULL;
    size_t n_digits;

    if (!plus || plus == name + 1 || strncmp(plus, "+0x", 3) != 0)
        return false;
    n_digits = strspn(plus + 3, "0123456789abcdef");
    return n_digits > 0 && !strcmp(plus + 3 + n_digits, "]");
}

/* The last part of a mapping's file name. */
static const char *
base_of(const struct pprof_profile *p, size_t mapping, size_t *n)
{
    uint32_t file = p->mappings.at[mapping].file;

    return cpprof__path_base(cpprof__strings_text(&p->strings, file),
                             cpprof__strings_n(&p->strings, file), n);
}

/* Is there a mapping of another build of the same file? */
static bool
has_other_build(const struct pprof_profile *p, size_t mapping)
{
    size_t n, n_other, i;
    const char *base = base_of(p, mapping, &n), *other;

    for (i = 0; i < p->mappings.n; i++) {
        if (p->mappings.at[i].build_id == p->mappings.at[mapping].build_id)
            continue;
        other = base_of(p, i, &n_other);
        if (n == n_other && !memcmp(base, other, n))
            return true;
    }
    return false;
}

static void
part_line(struct cpprof__maker *m, struct pprof_line *line, const char *id)
{
    const struct pprof_function *f = &m->p->functions.at[line->function];
    const char *name = cpprof__strings_text(&m->p->strings, f->name);
    size_t n = cpprof__strings_n(&m->p->strings, f->name);
    struct cpprof__buffer text = {0};
    uint32_t string, function;

    if (!cpprof__is_stand_in(name, n))
        return;
    cpprof__buffer_append(&text, name, n - 1);
    cpprof__buffer_printf(&text, " of %.*s]", ID_DIGITS, id);
    string = cpprof__make_string(m, (const char *)text.data, text.n);
    function = cpprof__make_function(m, string, string, 0);
    m->failed |= text.failed;
    if (!m->failed)
        line->function = function;
    cpprof__buffer_free(&text);
}

bool
cpprof__stand_ins_part(struct pprof_profile *p)
{
    struct cpprof__maker m = {.p = p};
    bool *parted = cpprof__calloc(p->mappings.n + 1, sizeof *parted);
    size_t i, k;

    m.failed = !parted;
    for (i = 0; parted && i < p->mappings.n; i++)
        parted[i] = p->mappings.at[i].build_id && has_other_build(p, i);
    for (i = 0; i < p->locations.n && !m.failed; i++) {
        const struct pprof_location *l = &p->locations.at[i];

        if (l->mapping == PPROF_NONE || !parted[l->mapping])
            continue;
        for (k = 0; k < l->n_lines && !m.failed; k++)
            part_line(&m, &p->lines.at[l->first_line + k],
                      cpprof__strings_text(
                          &p->strings, p->mappings.at[l->mapping].build_id));
    }
    cpprof__maker_free(&m);
    cpprof__free(parted);
    return !m.failed;
}
