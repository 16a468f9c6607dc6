/* SPDX-License-Identifier: MIT */
/*
 * Function names from the symbol tables of an image: .symtab where there is
 * one, else .dynsym and what MiniDebugInfo adds. And the names of the PLT
 * stubs, which have no symbols.
 *
 * A symbol counts for an address only when it covers it: by its size, or, for
 * one without size out of a .symtab (assembly), up to the next symbol of its
 * section. In a table that lists only exported functions what follows a symbol
 * may be anything, so there one without size covers nothing.
 */
#ifndef SYMBOL_SYMBOLS_H
#define SYMBOL_SYMBOLS_H

#include "base/array.h"
#include "symbol/elf/elf_file.h"

/* Zero bytes is a valid, empty table. */
struct cpprof__symbols {
    /* Set before anything is added: what will be asked for; NULL: anything. */
    const struct cpprof__wanted *wanted;
    /* Where the table is as it would be if it had all symbols, which are read
     * when another address is asked for; empty: everywhere. */
    struct cpprof__ranges known;
    const struct cpprof__elf_file *file; /* that has all */
    const struct cpprof__ranges *code;
    /* Until sealed: what was added. */
    CPPROF__ARRAY(struct cpprof__symbol {
        uint64_t start;
        uint64_t size;
        const char *name;
        uint32_t preference; /* of names for one address the highest */
        bool is_whole;       /* out of a table that lists all functions */
    })
    items;
    /* The resolvers of indirect functions. */
    CPPROF__ARRAY(struct cpprof__resolver {
        uint64_t start;
        uint64_t size;
    })
    resolvers;
    /* Once sealed. */
    const char **names;           /* in the string tables of the images */
    struct cpprof__ranges ranges; /* value: index of names */
};

/*
 * Add the functions of the .symtab or .dynsym (type SHT_SYMTAB, SHT_DYNSYM) of
 * file, which must stay open as long as the table; false when it has none.
 * code: where code lies in it.
 */
bool
cpprof__symbols_add(struct cpprof__symbols *symbols,
                    const struct cpprof__elf_file *file, uint32_t type,
                    const struct cpprof__ranges *code);

/* Make the table ready for cpprof__symbols_find(); false, and the table empty,
 * when out of memory. */
bool
cpprof__symbols_seal(struct cpprof__symbols *symbols,
                     const struct cpprof__ranges *code);

/* Does the symbol say where its function ends? Else its range goes up to the
 * next symbol. */
bool
cpprof__symbols_has_end(const struct cpprof__range *range);

/*
 * The symbol that covers address, or NULL. Of several at one address one that
 * is not local and has fewer leading underscores goes first, and old versions
 * last: write, not __GI___libc_write; free, not cfree.
 */
const char *
cpprof__symbols_find(struct cpprof__symbols *symbols, uint64_t address);

/* The range of that symbol, or NULL. */
const struct cpprof__range *
cpprof__symbols_range(struct cpprof__symbols *symbols, uint64_t address);

/* The symbol that starts there, of those that cover nothing; has_size: of all.
 * Or NULL. */
const char *
cpprof__symbols_at(struct cpprof__symbols *symbols, uint64_t start,
                   bool has_size);

/* The last symbol that starts before address in its section, and where; or
 * NULL. What it names may have ended long before. */
const char *
cpprof__symbols_before(struct cpprof__symbols *symbols,
                       const struct cpprof__ranges *code, uint64_t address,
                       uint64_t *start);

void
cpprof__symbols_free(struct cpprof__symbols *symbols);

/*
 * The function that the PLT stub at address jumps to, "memcpy", or NULL when
 * there is no stub there. x86-64 and aarch64.
 */
const char *
cpprof__plt_find(const struct cpprof__elf_file *file,
                 struct cpprof__symbols *symbols, uint64_t address);

/* Is the address in a section of stubs? */
bool
cpprof__plt_has(const struct cpprof__elf_file *file, uint64_t address);

#endif
