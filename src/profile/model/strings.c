/* SPDX-License-Identifier: MIT */
#include "profile/model/strings.h"

#include <string.h>

bool
cpprof__strings_begin(struct cpprof__strings *s)
{
    return cpprof__strings_add(s, "", 0) == 0;
}

void
cpprof__strings_free(struct cpprof__strings *s)
{
    cpprof__arena_free(&s->texts);
    CPPROF__ARRAY_FREE(&s->table);
    cpprof__index_free(&s->index);
}

struct wanted {
    const struct cpprof__strings *strings;
    const char *text;
    size_t n;
};

static bool
is_wanted(void *ctx, uint32_t value)
{
    const struct wanted *w = ctx;
    const struct cpprof__string *s = &w->strings->table.at[value];

    /* An empty one may have no text, which memcmp() may not be given. */
    return s->n == w->n && (!w->n || memcmp(s->text, w->text, w->n) == 0);
}

uint32_t
cpprof__strings_find(const struct cpprof__strings *s, const char *text,
                     size_t n)
{
    struct wanted wanted = {s, text, n};

    return cpprof__index_find(&s->index, cpprof__hash_bytes(text, n, 0),
                              is_wanted, &wanted);
}

uint32_t
cpprof__strings_add(struct cpprof__strings *s, const char *text, size_t n)
{
    uint32_t number = cpprof__strings_find(s, text, n);
    const char *copy;

    if (number != CPPROF__INDEX_NONE)
        return number;
    if (s->table.n >= CPPROF__NO_STRING)
        return CPPROF__NO_STRING;
    if (!CPPROF__ARRAY_ROOM(&s->table, 1))
        return CPPROF__NO_STRING;
    copy = cpprof__arena_copy(&s->texts, text, n);
    number = (uint32_t)s->table.n;
    if (!copy ||
        !cpprof__index_add(&s->index, cpprof__hash_bytes(text, n, 0), number))
        return CPPROF__NO_STRING;
    s->table.at[s->table.n++] = (struct cpprof__string){copy, n};
    return number;
}

uint32_t
cpprof__strings_add_text(struct cpprof__strings *s, const char *text)
{
    return cpprof__strings_add(s, text, strlen(text));
}

int
cpprof__strings_compare(const struct cpprof__strings *s, uint32_t a, uint32_t b)
{
    const struct cpprof__string *x = &s->table.at[a], *y = &s->table.at[b];
    int order = memcmp(x->text, y->text, x->n < y->n ? x->n : y->n);

    return order ? order : (x->n > y->n) - (x->n < y->n);
}
