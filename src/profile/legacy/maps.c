/* SPDX-License-Identifier: MIT */
/*
 * The lines of a memory map, as the reference's two regular expressions read
 * them, which are anchored in front only: two hexadecimal digits are a mapping.
 * What is no mapping may be an attribute, "name=value", and replaces $name in
 * the lines below it.
 */
#include "profile/legacy/maps.h"

#include "base/buffer.h"
#include "base/status.h"
#include "profile/legacy/numbers.h"

/* What replacing attributes may cost, in bytes compared and inserted. Values
 * may contain attributes, so a few lines could grow without end; maps that
 * people have stay far below. */
#define ATTRIBUTES_MAX ((size_t)4096)
#define WORK_MAX       ((size_t)64 << 20)

struct slice {
    size_t offset, n;
};

struct attribute {
    struct slice name, value; /* of maps.texts */
};

struct maps {
    struct pprof_profile *p;
    struct cpprof__buffer line;  /* the current one, attributes replaced */
    struct cpprof__buffer texts; /* of the attributes */
    CPPROF__ARRAY(struct attribute) attributes;
    size_t work;
    bool failed; /* out of memory while matching */
};

struct entry {
    struct cpprof__text start, limit, permissions, offset, file, build_id;
};

#define HEX   "[[:xdigit:]]+"
#define RANGE "^\\s*(?:0x)?(" HEX ")[\\s-]?\\s*(?:0x)?(" HEX "):?"
#define FLAGS "(?:\\s+([-rwxp]+))?"
#define WORD  "(?:\\s+(\\S+))?"

static bool
scan_entry(struct maps *m, struct cpprof__text line, struct entry *e)
{
    static struct cpprof__pattern proc = {
        RANGE FLAGS "(?:\\s+(" HEX "))?\\s+" HEX ":" HEX "\\s+\\d+" WORD, NULL};
    static struct cpprof__pattern brief = {
        RANGE FLAGS WORD "(?:\\s+\\(@(" HEX ")\\))?(?:\\s+(" HEX "))?", NULL};
    struct cpprof__text f[7];

    if (cpprof__pattern_find(&proc, line, f, 6, &m->failed))
        *e = (struct entry){f[1], f[2], f[3], f[4], f[5], {"", 0}};
    else if (cpprof__pattern_find(&brief, line, f, 7, &m->failed))
        *e = (struct entry){f[1], f[2], f[3], f[5], f[4], f[6]};
    else
        return false;
    return true;
}

/* ----------------------------------------------------------- mappings ---- */

enum outcome {
    OUTCOME_MAPPING, /* or one that is not executable */
    OUTCOME_NOTHING, /* no mapping */
    OUTCOME_NO_MEMORY,
};

static enum outcome
add_mapping(struct pprof_profile *p, const struct entry *e)
{
    struct pprof_mapping m = {0}, *added;

    if (e->permissions.n && !memchr(e->permissions.at, 'x', e->permissions.n))
        return OUTCOME_MAPPING;
    if (cpprof__parse_uint(e->start, 16, &m.start) ||
        cpprof__parse_uint(e->limit, 16, &m.limit) ||
        (e->offset.n && cpprof__parse_uint(e->offset, 16, &m.offset)))
        return OUTCOME_NOTHING;
    m.file = cpprof__strings_add(&p->strings, e->file.at, e->file.n);
    m.build_id =
        cpprof__strings_add(&p->strings, e->build_id.at, e->build_id.n);
    if (m.file == CPPROF__NO_STRING || m.build_id == CPPROF__NO_STRING ||
        p->mappings.n >= PPROF_NONE - 1)
        return OUTCOME_NO_MEMORY;
    added = CPPROF__ARRAY_ADD(&p->mappings);
    if (!added)
        return OUTCOME_NO_MEMORY;
    m.id = p->mappings.n;
    *added = m;
    return OUTCOME_MAPPING;
}

/* --------------------------------------------------------- attributes ---- */

static struct slice
keep(struct maps *m, struct cpprof__text text)
{
    struct slice kept = {m->texts.n, text.n};

    cpprof__buffer_append(&m->texts, text.at, text.n);
    return kept;
}

/* "name=value" */
static bool
add_attribute(struct maps *m, struct cpprof__text line)
{
    /* an empty line may have no address */
    const char *equals = line.n ? memchr(line.at, '=', line.n) : NULL;
    struct cpprof__text name = {line.at, 0}, value;
    struct attribute *added;

    if (!equals || m->attributes.n == ATTRIBUTES_MAX)
        return true;
    name.n = (size_t)(equals - line.at);
    value.at = equals + 1;
    value.n = line.n - name.n - 1;
    added = CPPROF__ARRAY_ADD(&m->attributes);
    if (!added)
        return false;
    added->name = keep(m, cpprof__trim(name));
    added->value = keep(m, cpprof__trim(value));
    return !m->texts.failed;
}

/* The attribute whose name begins text, the first if there are many. */
static const struct attribute *
find_attribute(struct maps *m, struct cpprof__text text)
{
    size_t i;

    m->work += m->attributes.n;
    for (i = 0; i < m->attributes.n; i++) {
        const struct attribute *a = &m->attributes.at[i];

        if (a->name.n == 0 ||
            (a->name.n <= text.n &&
             memcmp(m->texts.data + a->name.offset, text.at, a->name.n) == 0))
            return a;
    }
    return NULL;
}

/* Replace attributes; false when out of memory. */
static bool
replace(struct maps *m, struct cpprof__text *line)
{
    const char *at = line->at, *end = line->at + line->n, *dollar;

    if (!m->attributes.n || !memchr(at, '$', line->n))
        return true;
    m->line.n = 0;
    while (m->work < WORK_MAX &&
           (dollar = memchr(at, '$', (size_t)(end - at)))) {
        struct cpprof__text rest = {dollar + 1, (size_t)(end - dollar - 1)};
        const struct attribute *a = find_attribute(m, rest);

        cpprof__buffer_append(&m->line, at,
                              (size_t)(dollar - at) + (a ? 0 : 1));
        if (a)
            cpprof__buffer_append(&m->line, m->texts.data + a->value.offset,
                                  a->value.n);
        at = rest.at + (a ? a->name.n : 0);
        m->work += a ? a->value.n : 0;
    }
    cpprof__buffer_append(&m->line, at, (size_t)(end - at));
    *line = (struct cpprof__text){(const char *)m->line.data, m->line.n};
    return !m->line.failed;
}

/* "... file:line] " in front, as glog prints. */
static struct cpprof__text
without_log_prefix(struct maps *m, struct cpprof__text line)
{
    static struct cpprof__pattern prefix = {"^[^\\[\\]]+:[0-9]+\\]\\s", NULL};
    struct cpprof__text found;

    if (cpprof__pattern_find(&prefix, line, &found, 1, &m->failed))
        cpprof__skip(&line, found.n);
    return line;
}

static bool
read_line(struct maps *m, struct cpprof__text line)
{
    enum outcome outcome = OUTCOME_NOTHING;
    struct entry entry;

    line = without_log_prefix(m, line);
    if (!replace(m, &line))
        return false;
    if (scan_entry(m, line, &entry))
        outcome = add_mapping(m->p, &entry);
    if (outcome == OUTCOME_NOTHING && !m->failed)
        return add_attribute(m, line);
    return outcome == OUTCOME_MAPPING;
}

enum cpprof_status
cpprof__parse_maps(struct cpprof__legacy_lines *lines, struct pprof_profile *p,
                   struct cpprof_error *error)
{
    struct maps m = {.p = p};
    struct cpprof__text line;
    bool ok = true;

    while (ok && cpprof__next_line(lines, &line))
        ok = read_line(&m, line);
    cpprof__buffer_free(&m.line);
    cpprof__buffer_free(&m.texts);
    CPPROF__ARRAY_FREE(&m.attributes);
    return ok ? CPPROF_OK : cpprof__fail_nomem(error);
}

enum cpprof_status
cpprof__read_maps(struct cpprof__legacy_lines *lines, struct pprof_profile *p,
                  struct cpprof_error *error)
{
    enum cpprof_status status = cpprof__parse_maps(lines, p, error);

    if (status == CPPROF_OK)
        status = cpprof__massage_maps(p, error);
    return status == CPPROF_OK ? cpprof__remap(p, error) : status;
}

enum cpprof_status
cpprof__read_sections(struct cpprof__legacy_lines *lines,
                      struct cpprof__text line, struct pprof_profile *p,
                      struct cpprof_error *error)
{
    while (!cpprof__is_maps_sentinel(line) && cpprof__next_line(lines, &line))
        ;
    return cpprof__read_maps(lines, p, error);
}
