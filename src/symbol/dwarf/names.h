/* SPDX-License-Identifier: MIT */
/*
 * The strings that a symbolizer hands out: each text once, valid UTF-8 without
 * control characters whatever the bytes of the image were (string_table of
 * profile.proto is UTF-8), alive until freed.
 */
#ifndef SYMBOL_NAMES_H
#define SYMBOL_NAMES_H

#include "base/arena.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/hash.h"

/* Zero bytes is a valid, empty set. */
struct cpprof__names {
    struct cpprof__arena arena;
    struct cpprof__index index; /* of items, by text */
    CPPROF__ARRAY(struct cpprof__name {
        const char *text;
        const char *demangled; /* NULL: not asked for yet */
        uint32_t n;
    })
    items;
    struct cpprof__buffer scratch;
};

/* NULL when out of memory. Longer texts are cut at 64 KiB. */
const char *
cpprof__names_add(struct cpprof__names *names, const char *text, size_t n);

/*
 * What a function is called in the source, for its linker symbol of n bytes:
 * demangled, without the suffix of a compiler-made copy (".cold",
 * ".constprop.0"). The symbol itself where it is not mangled. NULL when out of
 * memory. Remembered by symbol.
 */
const char *
cpprof__names_demangle(struct cpprof__names *names, const char *symbol,
                       size_t n);

/* path; in front of it directory, if it is relative to that. */
const char *
cpprof__names_add_path(struct cpprof__names *names, const char *directory,
                       const char *path);

void
cpprof__names_free(struct cpprof__names *names);

#endif
