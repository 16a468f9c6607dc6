/* SPDX-License-Identifier: MIT */
/*
 * The strings that a symbolizer hands out, each one stored once.
 *
 * Names come from images that are not trusted, so bytes that are not UTF-8 and
 * control characters become '?', and the length is bounded. The demangled form
 * of a name is made when it is first asked for, and kept with it.
 *
 * Invariants: a string that was handed out never moves; the table of entries
 * does.
 */
#include "symbol/dwarf/names.h"

#include "base/text.h"
#include "own/memory.h"
#include "symbol/elf/array.h"
#include "symbol/elf/demangle.h"

#include <string.h>

/* More is no name that anyone reads; bounds what a hostile image can cost. */
#define LONGEST_TEXT (64 * 1024)

struct key {
    const struct cpprof__names *names;
    const char *text;
    size_t n;
};

static bool
has_text(void *ctx, uint32_t value)
{
    const struct key *key = ctx;
    const struct cpprof__name *name = &key->names->items.at[value];

    return name->n == key->n && memcmp(name->text, key->text, key->n) == 0;
}

static struct cpprof__name *
append(struct cpprof__names *names, const struct key *key, uint64_t hash)
{
    struct cpprof__name *name;
    char *copy;

    if (!CPPROF__BOUNDED_ROOM(&names->items))
        return NULL;
    copy = cpprof__arena_copy(&names->arena, key->text, key->n);
    if (!copy ||
        !cpprof__index_add(&names->index, hash, (uint32_t)names->items.n))
        return NULL;
    name = &names->items.at[names->items.n++];
    *name = (struct cpprof__name){copy, NULL, (uint32_t)key->n};
    return name;
}

/* The entry of clean text, which moves when another is added. */
static struct cpprof__name *
find_or_append(struct cpprof__names *names, const char *text, size_t n)
{
    struct key key = {names, text, n};
    uint64_t hash = cpprof__hash_bytes(text, n, 0);
    uint32_t value = cpprof__index_find(&names->index, hash, has_text, &key);

    if (value != CPPROF__INDEX_NONE)
        return &names->items.at[value];
    return append(names, &key, hash);
}

/* The length of the character that n bytes begin with, 0 when it is none of
 * UTF-8, or one that controls a terminal. */
static size_t
character_length(const char *text, size_t n)
{
    uint32_t rune;
    size_t length = cpprof__utf8_next(text, n, &rune);

    return rune < 0x20 || rune == 0x7f ? 0 : length;
}

static bool
is_clean(const char *text, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] > 0x7e)
            return false;
    return true;
}

/* A copy of text in the scratch buffer, bad bytes replaced by '?'. */
static const char *
clean(struct cpprof__names *names, const char *text, size_t *n)
{
    struct cpprof__buffer *out = &names->scratch;
    size_t i;

    out->n = 0;
    for (i = 0; i < *n;) {
        size_t length = character_length(text + i, *n - i);

        cpprof__buffer_append(out, length ? text + i : "?",
                              length ? length : 1);
        i += length ? length : 1;
    }
    *n = out->n;
    return out->failed ? NULL : (const char *)out->data;
}

static struct cpprof__name *
add(struct cpprof__names *names, const char *text, size_t n)
{
    if (n > LONGEST_TEXT)
        n = LONGEST_TEXT;
    if (!is_clean(text, n))
        text = clean(names, text, &n);
    return text ? find_or_append(names, text, n) : NULL;
}

const char *
cpprof__names_add(struct cpprof__names *names, const char *text, size_t n)
{
    struct cpprof__name *name = add(names, text, n);

    return name ? name->text : NULL;
}

const char *
cpprof__names_demangle(struct cpprof__names *names, const char *symbol,
                       size_t n)
{
    struct cpprof__buffer out = {0};
    struct cpprof__name *name = add(names, symbol, n);
    const char *demangled;
    size_t number;

    if (!name || name->demangled)
        return name ? name->demangled : NULL;
    number = (size_t)(name - names->items.at);
    demangled = name->text;
    n = cpprof__symbol_source_length(name->text, name->n);
    if (cpprof__demangle(&out, name->text, n))
        demangled = cpprof__names_add(names, (char *)out.data, out.n);
    else if (n < name->n)
        demangled = cpprof__names_add(names, name->text, n);
    cpprof__buffer_free(&out);
    names->items.at[number].demangled = demangled;
    return demangled;
}

/*
 * Is path one below directory? "<artificial>" and "<built-in>" are no files.
 * A directory that is relative itself comes of -ffile-prefix-map=DIR=., and
 * then "./" is how an absolute path begins.
 */
static bool
is_relative(const char *directory, const char *path)
{
    if (path[0] == '/' || path[0] == '<' || !directory || !*directory)
        return false;
    return directory[0] == '/' || strncmp(path, "./", 2) != 0;
}

const char *
cpprof__names_add_path(struct cpprof__names *names, const char *directory,
                       const char *path)
{
    struct cpprof__buffer joined = {0};
    const char *text = NULL;

    if (!is_relative(directory, path))
        return cpprof__names_add(names, path, strlen(path));
    cpprof__buffer_printf(&joined, "%s/%s", directory, path);
    if (!joined.failed)
        text = cpprof__names_add(names, (char *)joined.data, joined.n);
    cpprof__buffer_free(&joined);
    return text;
}

void
cpprof__names_free(struct cpprof__names *names)
{
    cpprof__arena_free(&names->arena);
    cpprof__index_free(&names->index);
    cpprof__buffer_free(&names->scratch);
    cpprof__free(names->items.at);
    memset(names, 0, sizeof *names);
}
