/* SPDX-License-Identifier: MIT */
/*
 * The table of locations that all of Java's legacy profiles end with:
 *
 *     0x0000000d com.example.Foo.bar (Foo.java:42)
 *     0x0000000e [libjvm.so] (/usr/lib/libjvm.so)
 *     0x0000000f GC
 *
 * Addresses are only what samples call their locations. A function is its
 * name; what a location was called last counts, and lines that are no
 * location, or that of an address without a sample, are skipped.
 *
 * Source: profile/legacy_java_profile.go parseJavaLocations.
 */

#include "base/status.h"
#include "profile/legacy/maps.h"
#include "profile/legacy/numbers.h"
#include "profile/model/make.h"
#include "profile/model/path.h"

struct table {
    struct cpprof__maker maker;
    struct cpprof__table locations; /* addresses, in the profile's order */
    struct cpprof__table functions; /* struct named_function */
};

struct named_function {
    uint32_t name; /* the key */
    uint32_t function;
};

static bool
index_locations(struct table *t)
{
    const struct pprof_profile *p = t->maker.p;
    bool added = true;
    size_t i;

    for (i = 0; i < p->locations.n && added; i++)
        cpprof__table_add(&t->locations, &p->locations.at[i].address,
                          sizeof(uint64_t), sizeof(uint64_t), &added);
    return added;
}

/* The function of a name; it has the file that it came with first. */
static uint32_t
function_of(struct table *t, struct cpprof__text name, struct cpprof__text file)
{
    struct cpprof__maker *m = &t->maker;
    struct named_function made = {.name =
                                      cpprof__make_string(m, name.at, name.n)};
    uint32_t found =
        cpprof__table_find(&t->functions, &made, sizeof made.name, sizeof made);
    bool added;

    if (found != CPPROF__INDEX_NONE)
        return ((struct named_function *)t->functions.entries.data)[found]
            .function;
    made.function = cpprof__make_function(
        m, made.name, made.name, cpprof__make_string(m, file.at, file.n));
    m->failed |= cpprof__table_add(&t->functions, &made, sizeof made.name,
                                   sizeof made, &added) == CPPROF__INDEX_NONE;
    return made.function;
}

/* The one line of a location, in place of the one it may have. */
static void
set_line(struct cpprof__maker *m, struct pprof_location *l,
         struct pprof_line line)
{
    if (l->n_lines) {
        m->p->lines.at[l->first_line] = line;
        return;
    }
    l->first_line = m->p->lines.n;
    cpprof__make_line(m, line);
    l->n_lines = !m->failed;
}

struct named {
    struct cpprof__text function, file;
    int64_t line;
};

/* "function (file:line)", "function (path/of/library)", or only a name. */
static struct named
read_name(struct cpprof__text text, bool *failed)
{
    static struct cpprof__pattern with_line = {"^(.*)\\s+\\((.+):(-?\\d+)\\)$",
                                               NULL};
    static struct cpprof__pattern with_path = {"^(.*)\\s+\\((.*)\\)$", NULL};
    struct named named = {.function = text, .file = {"", 0}};
    struct cpprof__text found[4];

    if (cpprof__pattern_find(&with_line, text, found, 4, failed)) {
        named = (struct named){.function = found[1], .file = found[2]};
        if (cpprof__parse_int(found[3], 10, &named.line) || named.line < 0)
            named.line = 0;
    } else if (cpprof__pattern_find(&with_path, text, found, 3, failed)) {
        named.function = found[1];
        named.file.at =
            cpprof__path_base(found[2].at, found[2].n, &named.file.n);
    } else if (cpprof__contains(text, "generated stub/JIT")) {
        named.function = (struct cpprof__text){"STUB", 4};
    }
    return named;
}

static enum cpprof_status
read_location(struct table *t, struct cpprof__text line,
              struct cpprof_error *error)
{
    static struct cpprof__pattern pattern = {"^0x([[:xdigit:]]+)\\s+(.*)",
                                             NULL};
    struct cpprof__text found[3];
    struct named named;
    const char *wrong;
    uint32_t location, function;
    uint64_t address;

    if (!cpprof__pattern_find(&pattern, line, found, 3, &t->maker.failed))
        return CPPROF_OK;
    wrong = cpprof__parse_uint(found[1], 16, &address);
    if (wrong)
        return cpprof__fail_number("parsing sample ", line, "ParseUint",
                                   found[1], wrong, error);
    location = cpprof__table_find(&t->locations, &address, sizeof address,
                                  sizeof address);
    if (location == CPPROF__INDEX_NONE)
        return CPPROF_OK;
    named = read_name(found[2], &t->maker.failed);
    function = function_of(t, named.function, named.file);
    if (!t->maker.failed)
        set_line(&t->maker, &t->maker.p->locations.at[location],
                 (struct pprof_line){.line = named.line, .function = function});
    return CPPROF_OK;
}

/* Locations with a name lose their address first: they are in no mapping. */
static enum cpprof_status
finish(struct pprof_profile *p, struct cpprof_error *error)
{
    enum cpprof_status status;
    size_t i;

    for (i = 0; i < p->locations.n; i++)
        if (p->locations.at[i].n_lines)
            p->locations.at[i].address = 0;
    status = cpprof__remap(p, error);
    for (i = 0; i < p->locations.n; i++)
        p->locations.at[i].address = 0;
    if (status == CPPROF_OK && p->samples.n && !p->sample_types.n)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "missing sample type information");
    return status;
}

enum cpprof_status
cpprof__read_java_locations(struct cpprof__legacy_lines *lines,
                            struct pprof_profile *p, struct cpprof_error *error)
{
    struct table t = {.maker.p = p};
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__text line;

    t.maker.failed = !index_locations(&t);
    while (status == CPPROF_OK && !t.maker.failed &&
           cpprof__next_line(lines, &line))
        status = read_location(&t, cpprof__trim(line), error);
    if (t.maker.failed)
        status = cpprof__fail_nomem(error);
    if (status == CPPROF_OK)
        status = finish(p, error);
    cpprof__table_free(&t.locations);
    cpprof__table_free(&t.functions);
    cpprof__maker_free(&t.maker);
    return status;
}
