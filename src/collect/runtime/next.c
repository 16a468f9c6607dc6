/* SPDX-License-Identifier: MIT */
/*
 * Looks names up in the modules of the process without the loader: walks the
 * loader's list of modules and their hash tables, once for all names that are
 * asked for together.
 *
 * It must work inside malloc, before any constructor and in a handler, so it
 * takes no lock and calls nothing. A symbol counts if it is defined, of the
 * right kind and not of an old version.
 *
 * Source: ELF gABI 5 (symbol table, hash table); "GNU hash" as in glibc.
 */
#include "collect/runtime/next.h"

#include "arch/atomic.h"
#include "arch/find_object.h"
#include "arch/place.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Some loaders relocate these pointers in place, some not, and none does so in
 * the vdso. */
static const void *
address_in(const struct link_map *m, ElfW(Addr) value)
{
    return (const void *)(value < m->l_addr ? value + m->l_addr : value);
}

CPPROF__FIRST_STEP bool
cpprof__definitions_read(const struct link_map *m,
                         struct cpprof__definitions *names)
{
    const ElfW(Dyn) *d = m->l_ld;

    memset(names, 0, sizeof *names);
    names->module = m;
    for (; d && d->d_tag != DT_NULL; d++) {
        const void *at = address_in(m, d->d_un.d_ptr);

        if (d->d_tag == DT_SYMTAB)
            names->symbols = at;
        else if (d->d_tag == DT_STRTAB)
            names->strings = at;
        else if (d->d_tag == DT_GNU_HASH)
            names->gnu_hash = at;
        else if (d->d_tag == DT_HASH)
            names->hash = at;
        else if (d->d_tag == DT_VERSYM)
            names->versions = at;
        else if (d->d_tag == DT_VERDEF)
            names->defined = at;
    }
    return names->symbols && names->strings;
}

/* 0: not one that old programs were linked with, and no new one is. */
static bool
is_version(const struct cpprof__definitions *names, uint32_t i, unsigned wanted)
{
    if (!names->versions)
        return true;
    return wanted ? (names->versions[i] & 0x7fff) == wanted
                  : !(names->versions[i] & 0x8000);
}

CPPROF__FIRST_STEP unsigned
cpprof__version_number(const struct cpprof__definitions *names, uint32_t hash)
{
    const ElfW(Verdef) *d = names->defined;

    while (d && d->vd_hash != hash)
        d = d->vd_next ? (const void *)((const char *)d + d->vd_next) : NULL;
    return d ? d->vd_ndx : 0;
}

/* Not by strcmp(), which a library in front may have and not be ready for: the
 * address sanitizer, while it looks for names itself. */
static bool
is_same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

CPPROF__FIRST_STEP static bool
is_it(const struct cpprof__definitions *names, uint32_t i,
      const struct cpprof__definition *of)
{
    const ElfW(Sym) *s = &names->symbols[i];
    /* The low bits mean the same in both classes. */
    unsigned type = ELF64_ST_TYPE(s->st_info);
    unsigned binding = ELF64_ST_BIND(s->st_info);

    return s->st_shndx != SHN_UNDEF && s->st_value && binding != STB_LOCAL &&
           (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
           is_version(names, i, of->version) &&
           is_same(names->strings + s->st_name, of->name);
}

CPPROF__FIRST_STEP uint32_t
cpprof__symbol_hash(const char *name)
{
    uint32_t h = 5381;

    for (; *name; name++)
        h = h * 33 + (unsigned char)*name;
    return h;
}

static const ElfW(Sym) *
    find_by_gnu_hash(const struct cpprof__definitions *names,
                     const struct cpprof__definition *of)
{
    const uint32_t *t = names->gnu_hash, h = of->hash;
    uint32_t n_buckets = t[0], first = t[1], n_words = t[2], shift = t[3];
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)(t + 4);
    const uint32_t *buckets = (const uint32_t *)(bloom + n_words);
    const uint32_t *chain = buckets + n_buckets;
    const unsigned bits = 8 * sizeof *bloom;
    uint32_t i;
    ElfW(Addr) word;

    if (!n_buckets || !n_words)
        return NULL;
    word = bloom[(h / bits) & (n_words - 1)];
    if (!((word >> (h % bits)) & (word >> ((h >> shift) % bits)) & 1))
        return NULL;
    i = buckets[h % n_buckets];
    if (i < first)
        return NULL;
    for (;; i++) {
        uint32_t of_this = chain[i - first];

        if ((of_this | 1) == (h | 1) && is_it(names, i, of))
            return &names->symbols[i];
        if (of_this & 1)
            return NULL;
    }
}

static const ElfW(Sym) * find_by_hash(const struct cpprof__definitions *names,
                                      const struct cpprof__definition *of)
{
    const uint32_t *t = names->hash;
    const uint32_t *buckets = t + 2, *chain = buckets + t[0];
    uint32_t h = 0, i;
    const char *c;

    for (c = of->name; *c; c++) {
        h = (h << 4) + (unsigned char)*c;
        h = (h ^ ((h & 0xf0000000) >> 24)) & 0x0fffffff;
    }
    if (!t[0])
        return NULL;
    for (i = buckets[h % t[0]]; i; i = chain[i])
        if (is_it(names, i, of))
            return &names->symbols[i];
    return NULL;
}

static void *
address_of(const struct link_map *m, const ElfW(Sym) * s)
{
    typedef void *resolver_fn(void);
    uintptr_t at = m->l_addr + s->st_value;

    if (ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC)
        return ((resolver_fn *)at)();
    return (void *)at;
}

/* Missing in a program that is linked statically. */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((weak));

CPPROF__FIRST_STEP const struct link_map *
cpprof__own_module(void)
{
    const struct link_map *map;
    struct dl_find_object found;

    if (cpprof__has_find_object())
        return _dl_find_object((void *)cpprof__own_module, &found)
                   ? NULL
                   : found.dlfo_link_map;
    for (map = _r_debug.r_map; map && map->l_ld != _DYNAMIC; map = map->l_next)
        continue;
    return map;
}

static const struct link_map *
first_of(const struct link_map *m)
{
    while (m && m->l_prev)
        m = m->l_prev;
    return m;
}

/* Is it there? */
CPPROF__FIRST_STEP static bool
find_in(const struct link_map *m, const struct cpprof__definitions *names,
        struct cpprof__definition *d)
{
    const ElfW(Sym) *s = names->gnu_hash ? find_by_gnu_hash(names, d)
                         : names->hash   ? find_by_hash(names, d)
                                         : NULL;

    if (!s)
        return false;
    d->address = address_of(m, s);
    d->module = m;
    d->symbol = s;
    return d->address;
}

/* The first definitions in the modules from `from` on, and up to `last`, of
 * those that have none yet: how many are left. No module is looked at behind
 * the last one that is needed: those that may be unloaded stand last. */
CPPROF__FIRST_STEP static unsigned
find(struct cpprof__definition *d, unsigned n, unsigned left,
     const struct link_map *from, const struct link_map *last)
{
    const struct link_map *m;
    struct cpprof__definitions names;
    unsigned i;

    for (m = from; left && m; m = m == last ? NULL : m->l_next) {
        if (!cpprof__definitions_read(m, &names))
            continue;
        for (i = 0; i < n; i++)
            if (!d[i].address && find_in(m, &names, &d[i]))
                left--;
    }
    return left;
}

CPPROF__FIRST_STEP static void
begin(struct cpprof__definition *d, const char *name)
{
    d->name = name;
    d->hash = cpprof__symbol_hash(name);
    d->version = 0;
    d->address = NULL;
    d->module = NULL;
    d->symbol = NULL;
}

CPPROF__FIRST_STEP static void
begin_all(struct cpprof__definition *d, const char *names, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++, names += strlen(names) + 1)
        begin(&d[i], names);
}

/* In those that stand in front of this library. */
CPPROF__FIRST_STEP static unsigned
find_in_front(struct cpprof__definition *d, unsigned n, unsigned left,
              const struct link_map *own)
{
    return own && own->l_prev ? find(d, n, left, first_of(own), own->l_prev)
                              : left;
}

CPPROF__FIRST_STEP void
cpprof__next_symbols(const char *names, struct cpprof__definition *d,
                     unsigned n)
{
    const struct link_map *own = cpprof__own_module();
    unsigned left = n;

    begin_all(d, names, n);
    if (cpprof__own_is_late())
        left = find_in_front(d, n, left, own);
    if (own)
        left = find(d, n, left, own->l_next, NULL);
    find_in_front(d, n, left, own);
}

void
cpprof__module_symbols(const struct link_map *m, const char *names,
                       struct cpprof__definition *d, unsigned n)
{
    begin_all(d, names, n);
    if (m)
        find(d, n, n, m, m);
}

CPPROF__FIRST_STEP void *
cpprof__definition_find(const struct cpprof__definitions *names,
                        const char *name, unsigned version)
{
    struct cpprof__definition d;

    begin(&d, name);
    d.version = version;
    return find_in(names->module, names, &d) ? d.address : NULL;
}

void
cpprof__own_symbols(const char *names, struct cpprof__definition *d, unsigned n)
{
    cpprof__module_symbols(cpprof__own_module(), names, d, n);
}

void
cpprof__note_other_definitions(const struct link_map *m,
                               struct cpprof__definition *d, unsigned n)
{
    struct cpprof__definition other;
    struct cpprof__definitions names;
    unsigned i;

    for (i = 0; cpprof__definitions_read(m, &names) && i < n; i++) {
        other = d[i];
        if (find_in(m, &names, &other) && other.address != d[i].address)
            d[i].module = NULL;
    }
}

void *
cpprof__next_symbol(const char *name)
{
    struct cpprof__definition d;

    cpprof__next_symbols(name, &d, 1);
    return d.address;
}

CPPROF__FIRST_STEP void *
cpprof__first_symbol(const char *name, const struct link_map **module)
{
    struct cpprof__definition d;

    begin(&d, name);
    find(&d, 1, 1, first_of(cpprof__own_module()), NULL);
    if (d.address)
        *module = d.module;
    return d.address;
}

/* ---- who was linked with whom ----------------------------------------- */

static const char *
strings_of(const struct link_map *m)
{
    const ElfW(Dyn) *d = m->l_ld;

    for (; d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_STRTAB)
            return address_in(m, d->d_un.d_ptr);
    return NULL;
}

CPPROF__FIRST_STEP static const char *
name_of(const struct link_map *m)
{
    const char *strings = strings_of(m);
    const ElfW(Dyn) *d = m->l_ld;

    for (; strings && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_SONAME)
            return strings + d->d_un.d_val;
    return NULL;
}

CPPROF__FIRST_STEP const struct link_map *
cpprof__module_named(const char *name)
{
    const struct link_map *m = first_of(cpprof__own_module());
    const char *its;

    for (; m; m = m->l_next)
        if ((its = name_of(m)) && is_same(its, name))
            return m;
    return NULL;
}

CPPROF__FIRST_STEP static bool
needs(const struct link_map *m, const char *name)
{
    const char *strings = strings_of(m);
    const ElfW(Dyn) *d = m->l_ld;

    for (; strings && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_NEEDED && is_same(strings + d->d_un.d_val, name))
            return true;
    return false;
}

CPPROF__FIRST_STEP bool
cpprof__own_is_linked(void)
{
    const struct link_map *own = cpprof__own_module(), *m;
    const char *name = own ? name_of(own) : NULL;

    if (!name)
        return true; /* it is the program itself */
    for (m = first_of(own); m; m = m->l_next)
        if (needs(m, name))
            return true;
    return false;
}

/* What is there at the start of a program stands in front of its libc, or was
 * linked. libc alone defines this name. */
CPPROF__FIRST_STEP static bool
is_late(void)
{
    const struct link_map *own = cpprof__own_module();
    struct cpprof__definition d;

    begin(&d, "getauxval");
    return own && !find_in_front(&d, 1, 1, own) && !cpprof__own_is_linked();
}

CPPROF__FIRST_STEP bool
cpprof__own_is_late(void)
{
    static uint32_t late CPPROF__AT_START; /* 1: no, 2: yes */

    if (!load_acquire(&late))
        store_release(&late, is_late() ? 2u : 1u);
    return load_acquire(&late) == 2;
}
