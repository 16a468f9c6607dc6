/* SPDX-License-Identifier: MIT */
/*
 * Where a name is defined in this process, found in the loader's list of
 * modules without the loader: no lock, no allocation, no error state. So it can
 * be asked inside malloc, before any constructor, or in a handler.
 *
 * The list is in load order, which for what is there at the start is the order
 * of lookup too. Of a name that has several versions it is the default one.
 */
#ifndef COLLECT_NEXT_H
#define COLLECT_NEXT_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct cpprof__definition {
    const char *name;
    uint32_t hash;
    uint32_t version; /* its number in each module; 0: the default one */
    void *address;    /* NULL: nobody else defines it */
    const struct link_map *module; /* that it is in */
    const ElfW(Sym) * symbol;
};

/* As the hash table of a module has it (DT_GNU_HASH). Safety: AS. */
uint32_t
cpprof__symbol_hash(const char *name);

/*
 * The next definitions after this library, as dlsym(RTLD_NEXT) finds them; when
 * there is none the first one in front of it. Of a library that was loaded late
 * it is the first one in front that the program's modules have.
 * names: n of them, each with the 0 that ends it. Safety: AS, unless a module
 * is being unloaded.
 */
void
cpprof__next_symbols(const char *names, struct cpprof__definition *definitions,
                     unsigned n);
/* The same of one, or NULL. */
void *
cpprof__next_symbol(const char *name);

/* The definitions of n names in one module; NULL has none. Safety: AS, unless
 * the module is being unloaded. */
void
cpprof__module_symbols(const struct link_map *module, const char *names,
                       struct cpprof__definition *definitions, unsigned n);
/* What a module's dynamic section says about its symbols. */
struct cpprof__definitions {
    const struct link_map *module;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *hash;
    const ElfW(Half) * versions;  /* of each symbol, or NULL */
    const ElfW(Verdef) * defined; /* those versions */
};

/* False: there are none. Safety of these: as above. */
bool
cpprof__definitions_read(const struct link_map *module,
                         struct cpprof__definitions *symbols);

/* The number that a version has there, by the hash of its name; 0: it is not
 * there. */
unsigned
cpprof__version_number(const struct cpprof__definitions *symbols,
                       uint32_t hash);

/* The definition of that version, 0: of the default one; or NULL. */
void *
cpprof__definition_find(const struct cpprof__definitions *symbols,
                        const char *name, unsigned version);

/* Those of this library itself. Safety: AS. */
void
cpprof__own_symbols(const char *names, struct cpprof__definition *definitions,
                    unsigned n);

/* For each name that this module defines at another address: clears `module`.
 * Safety: AS, unless the module is being unloaded. */
void
cpprof__note_other_definitions(const struct link_map *module,
                               struct cpprof__definition *definitions,
                               unsigned n);

/* The definition that the program gets, whose module may be this one; or NULL,
 * and the module is as it was. */
void *
cpprof__first_symbol(const char *name, const struct link_map **module);

/* Is it this library's text or data, or the program's when it is part of it? */
const struct link_map *
cpprof__own_module(void);

/* The first of this soname, or NULL. Safety: AS, unless a module is being
 * unloaded. */
const struct link_map *
cpprof__module_named(const char *soname);

/* Is this library part of the program, or was it linked with it, or with one of
 * its libraries? Otherwise it was only preloaded, or loaded late. */
bool
cpprof__own_is_linked(void);

/* Was it loaded by a program that runs already, without being asked for by
 * LD_PRELOAD or by a library that was linked with it? As the first call finds
 * it. Safety: AS, unless a module is being unloaded. */
bool
cpprof__own_is_late(void);

#endif
