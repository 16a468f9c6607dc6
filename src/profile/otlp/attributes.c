/* SPDX-License-Identifier: MIT */
/*
 * Attributes that bring their key, and the attributes of a
 * resource. Source: opentelemetry-specification, resource/sdk.md ("Specifying
 * resource information via an environment variable").
 */
#include "profile/otlp/attributes.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/proto.h"
#include "base/text.h"

#include <string.h>

void
cpprof__otlp_put_pair(struct cpprof__buffer *out, uint32_t field,
                      const char *key, size_t n_key, const char *text, size_t n)
{
    size_t mark = cpprof__put_begin(out), value, inner;

    cpprof__put_bytes(out, 1, key, n_key);
    value = cpprof__put_begin(out);
    inner = cpprof__put_begin(out);
    cpprof__put_utf8(out, text, n);
    cpprof__put_end(out, VALUE_STRING, inner);
    cpprof__put_end(out, 2, value);
    cpprof__put_end(out, field, mark);
}

/* Text without its percent signs. */
static void
put_decoded(struct cpprof__buffer *out, const char *text, size_t n)
{
    struct cpprof__buffer plain = {0};
    size_t i;

    for (i = 0; i < n; i++) {
        uint8_t c = (uint8_t)text[i];

        if (c == '%' && i + 2 < n && cpprof__digit(text[i + 1]) < 16 &&
            cpprof__digit(text[i + 2]) < 16) {
            c = (uint8_t)(cpprof__digit(text[i + 1]) << 4 |
                          cpprof__digit(text[i + 2]));
            i += 2;
        }
        cpprof__buffer_append(&plain, &c, 1);
    }
    cpprof__put_utf8(out, (const char *)plain.data, plain.n);
    out->failed |= plain.failed;
    cpprof__buffer_free(&plain);
}

/* "key=value" at the beginning of text, without spaces around. */
struct attribute {
    const char *key, *value;
    size_t n_key, n_value;
};

static void
trim(const char **text, size_t *n)
{
    while (*n && **text == ' ') {
        (*text)++;
        (*n)--;
    }
    while (*n && (*text)[*n - 1] == ' ')
        (*n)--;
}

/* The next of them; false at the end. Those without a key or '=' have no
 * n_key. */
static bool
next_attribute(const char **rest, struct attribute *a)
{
    const char *text = *rest;
    size_t n = strcspn(text, ",");
    const char *equals = memchr(text, '=', n);

    if (!*text)
        return false;
    *rest = text + n + (text[n] == ',');
    memset(a, 0, sizeof *a);
    if (!equals)
        return true;
    a->key = text;
    a->n_key = (size_t)(equals - text);
    a->value = equals + 1;
    a->n_value = n - a->n_key - 1;
    trim(&a->key, &a->n_key);
    trim(&a->value, &a->n_value);
    return true;
}

static bool
is_key(const struct attribute *a, const char *key, size_t n)
{
    return a->n_key == n && memcmp(a->key, key, n) == 0;
}

/* The members of a resource, one of each key. */
struct members {
    CPPROF__ARRAY(struct attribute) list;
    struct cpprof__index keys;
};

struct wanted {
    const struct members *members;
    const struct attribute *a;
};

static bool
is_wanted(void *ctx, uint32_t number)
{
    const struct wanted *w = ctx;

    return is_key(&w->members->list.at[number], w->a->key, w->a->n_key);
}

/* The last of a key counts. */
static bool
add_member(struct members *m, const struct attribute *a)
{
    uint64_t hash = cpprof__hash_bytes(a->key, a->n_key, 0);
    struct wanted wanted = {m, a};
    uint32_t number = cpprof__index_find(&m->keys, hash, is_wanted, &wanted);

    if (number == CPPROF__INDEX_NONE) {
        number = (uint32_t)m->list.n;
        if (!CPPROF__ARRAY_ROOM(&m->list, 1) ||
            !cpprof__index_add(&m->keys, hash, number))
            return false;
        m->list.n++;
    }
    m->list.at[number] = *a;
    return true;
}

static bool
read_members(struct members *m, const char *resource)
{
    struct attribute a;

    while (next_attribute(&resource, &a))
        if (a.n_key && !add_member(m, &a))
            return false;
    return true;
}

/* Is the key one whose value is a number? */
static bool
is_number(const struct attribute *a)
{
    static const char key[] = "process.pid";
    size_t i;

    if (!is_key(a, key, sizeof key - 1) || !a->n_value || a->n_value > 10)
        return false;
    for (i = 0; i < a->n_value; i++)
        if (a->value[i] < '0' || a->value[i] > '9')
            return false;
    return true;
}

static void
put_attribute(struct cpprof__buffer *out, const struct attribute *a)
{
    size_t mark = cpprof__put_begin(out), value, inner, i;
    uint64_t n = 0;

    inner = cpprof__put_begin(out);
    cpprof__put_utf8(out, a->key, a->n_key);
    cpprof__put_end(out, 1, inner);
    value = cpprof__put_begin(out);
    if (is_number(a)) {
        for (i = 0; i < a->n_value; i++)
            n = n * 10 + (uint64_t)(a->value[i] - '0');
        cpprof__put_uint(out, VALUE_INT, n);
    } else {
        inner = cpprof__put_begin(out);
        put_decoded(out, a->value, a->n_value);
        cpprof__put_end(out, VALUE_STRING, inner);
    }
    cpprof__put_end(out, 2, value);
    cpprof__put_end(out, 1, mark);
}

static void
put_unknown_service(struct cpprof__buffer *out, const char *program)
{
    struct cpprof__buffer name = {0};

    cpprof__buffer_append(&name, "unknown_service", 15);
    if (*program)
        cpprof__buffer_append(&name, ":", 1);
    cpprof__buffer_append(&name, program, strlen(program));
    cpprof__otlp_put_pair(out, 1, CPPROF__OTLP_SERVICE,
                          sizeof CPPROF__OTLP_SERVICE - 1,
                          (const char *)name.data, name.n);
    out->failed |= name.failed;
    cpprof__buffer_free(&name);
}

void
cpprof__otlp_resource(struct cpprof__buffer *out, const char *resource,
                      const char *program)
{
    static const char service[] = CPPROF__OTLP_SERVICE;
    struct members m = {0};
    bool has_service = false;
    size_t i;

    out->failed |= !read_members(&m, resource ? resource : "");
    for (i = 0; i < m.list.n; i++) {
        const struct attribute *a = &m.list.at[i];

        if (!a->n_value)
            continue;
        has_service |= is_key(a, service, sizeof service - 1);
        put_attribute(out, a);
    }
    if (!has_service)
        put_unknown_service(out, program);
    CPPROF__ARRAY_FREE(&m.list);
    cpprof__index_free(&m.keys);
}
