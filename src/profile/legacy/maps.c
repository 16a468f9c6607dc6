/* SPDX-License-Identifier: MIT */
/*
 * Scanners for the lines of a memory map, one for each of the reference's two
 * regular expressions:
 *
 *     range   \s*(0x)?(X+)[\s-]?\s*(0x)?(X+):?
 *     proc    range (\s+([-rwxp]+))? (\s+(X+))? \s+X+:X+ \s+[0-9]+ (\s+(\S+))?
 *     brief   range (\s+([-rwxp]+))? (\s+(\S+))? (\s+\(@(X+)\))? (\s+(X+))?
 *
 * anchored in front only. They are as lenient as that: two hexadecimal digits
 * are a mapping. What is no mapping may be an attribute, "name=value", and
 * replaces $name in the lines below it.
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
};

/* ---------------------------------------------------------- scanning ---- */

static bool
is_permission(char c)
{
    return c == '-' || c == 'r' || c == 'w' || c == 'x' || c == 'p';
}

/* \s: no vertical tab. */
static bool
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

static bool
is_not_space(char c)
{
    return !is_space(c);
}

/* \s+ and then the characters of a class; nothing moves if there are none. */
static struct cpprof__text
take_word(struct cpprof__text *s, bool (*is)(char))
{
    struct cpprof__text ahead = *s, word = {s->at, 0};

    if (cpprof__take_while(&ahead, is_space).n)
        word = cpprof__take_while(&ahead, is);
    if (word.n)
        *s = ahead;
    return word;
}

/* (0x)?X+ */
static struct cpprof__text
take_hex(struct cpprof__text *s)
{
    if (s->n > 2 && cpprof__is_xdigit(s->at[2]))
        cpprof__take(s, "0x");
    return cpprof__take_while(s, cpprof__is_xdigit);
}

struct entry {
    struct cpprof__text start, limit, permissions, offset, file, build_id;
};

static bool
take_range(struct cpprof__text *s, struct entry *e)
{
    cpprof__take_while(s, is_space);
    e->start = take_hex(s);
    if (!e->start.n)
        return false;
    cpprof__take(s, "-");
    cpprof__take_while(s, is_space);
    e->limit = take_hex(s);
    cpprof__take(s, ":");
    return e->limit.n;
}

/* If no second number follows, the last digit of the first number counts as the
 * second. The reference's expressions match a single number that way. */
static bool
split_range(struct cpprof__text *s, struct entry *e)
{
    cpprof__take_while(s, is_space);
    e->start = take_hex(s);
    if (e->start.n < 2)
        return false;
    s->at--;
    s->n++;
    e->start.n--;
    e->limit = take_hex(s);
    cpprof__take(s, ":");
    return true;
}

static bool
proc_tail(struct cpprof__text s, struct entry *e)
{
    struct cpprof__text ahead;

    e->permissions = take_word(&s, is_permission);
    ahead = s;
    e->offset = take_word(&ahead, cpprof__is_xdigit);
    if (cpprof__begins(ahead, ":"))
        e->offset.n = 0; /* the device */
    else
        s = ahead;
    if (!take_word(&s, cpprof__is_xdigit).n || !cpprof__take(&s, ":") ||
        !cpprof__take_while(&s, cpprof__is_xdigit).n)
        return false;
    if (!take_word(&s, cpprof__is_digit).n)
        return false;
    e->file = take_word(&s, is_not_space);
    e->build_id = (struct cpprof__text){"", 0};
    return true;
}

static void
brief_tail(struct cpprof__text s, struct entry *e)
{
    struct cpprof__text ahead;

    e->permissions = take_word(&s, is_permission);
    e->file = take_word(&s, is_not_space);
    ahead = s;
    e->offset.n = 0;
    if (cpprof__take_while(&ahead, is_space).n && cpprof__take(&ahead, "(") &&
        cpprof__take(&ahead, "@")) {
        e->offset = cpprof__take_while(&ahead, cpprof__is_xdigit);
        if (e->offset.n && cpprof__take(&ahead, ")"))
            s = ahead;
        else
            e->offset.n = 0;
    }
    e->build_id = take_word(&s, cpprof__is_xdigit);
}

static bool
scan_entry(struct cpprof__text line, struct entry *e)
{
    struct cpprof__text whole = line, split = line;
    struct entry first = {0}, second = {0};
    bool is_range = take_range(&whole, &first);
    bool is_split = split_range(&split, &second);

    if (is_range && proc_tail(whole, &first)) {
        *e = first;
        return true;
    }
    if (is_split && proc_tail(split, &second)) {
        *e = second;
        return true;
    }
    *e = is_range ? first : second;
    if (is_range || is_split)
        brief_tail(is_range ? whole : split, e);
    return is_range || is_split;
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
without_log_prefix(struct cpprof__text line)
{
    const char *bracket = memchr(line.at, ']', line.n);
    const char *end = line.at + line.n, *at = bracket;

    if (!bracket || bracket + 1 == end || !is_space(bracket[1]))
        return line;
    while (at > line.at && cpprof__is_digit(at[-1]))
        at--;
    if (at == bracket || at - line.at < 2 || at[-1] != ':' ||
        memchr(line.at, '[', (size_t)(at - line.at)))
        return line;
    return (struct cpprof__text){bracket + 2, (size_t)(end - bracket - 2)};
}

static bool
read_line(struct maps *m, struct cpprof__text line)
{
    enum outcome outcome = OUTCOME_NOTHING;
    struct entry entry;

    line = without_log_prefix(line);
    if (!replace(m, &line))
        return false;
    if (scan_entry(line, &entry))
        outcome = add_mapping(m->p, &entry);
    if (outcome == OUTCOME_NOTHING)
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
