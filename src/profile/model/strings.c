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
    CPPROF__ARRAY_FREE(&s->text);
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
    return s->n == w->n && (!w->n || memcmp(w->strings->text.at + s->offset,
                                            w->text, w->n) == 0);
}

uint32_t
cpprof__strings_find(const struct cpprof__strings *s, const char *text,
                     size_t n)
{
    struct wanted wanted = {s, text, n};

    return cpprof__index_find(&s->index, cpprof__hash_bytes(text, n, 0),
                              is_wanted, &wanted);
}

/* Copy the text behind the others. It may be one of them, and move with them
 * when the room for it is made. */
static bool
append(struct cpprof__strings *s, const char *text, size_t n)
{
    size_t at = (uintptr_t)text - (uintptr_t)s->text.at;
    bool inside = at < s->text.n;

    if (n == SIZE_MAX || !CPPROF__ARRAY_ROOM(&s->text, n + 1))
        return false;
    memcpy(s->text.at + s->text.n, inside ? s->text.at + at : text, n);
    s->text.at[s->text.n + n] = 0;
    s->text.n += n + 1;
    return true;
}

uint32_t
cpprof__strings_add(struct cpprof__strings *s, const char *text, size_t n)
{
    uint32_t number = cpprof__strings_find(s, text, n);
    size_t offset = s->text.n;
    uint64_t hash;

    if (number != CPPROF__INDEX_NONE)
        return number;
    if (s->table.n >= CPPROF__NO_STRING)
        return CPPROF__NO_STRING;
    hash = cpprof__hash_bytes(text, n, 0);
    if (!CPPROF__ARRAY_ROOM(&s->table, 1) || !append(s, text, n))
        return CPPROF__NO_STRING;
    number = (uint32_t)s->table.n;
    if (!cpprof__index_add(&s->index, hash, number)) {
        s->text.n = offset;
        return CPPROF__NO_STRING;
    }
    s->table.at[s->table.n++] = (struct cpprof__string){offset, n};
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
    int order = memcmp(s->text.at + x->offset, s->text.at + y->offset,
                       x->n < y->n ? x->n : y->n);

    return order ? order : (x->n > y->n) - (x->n < y->n);
}
