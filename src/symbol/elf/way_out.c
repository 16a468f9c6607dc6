/* SPDX-License-Identifier: MIT */
/*
 * Gives libdw and libelf memory of ours, and leaves them when there is none
 * (way_out.h).
 *
 * Both call malloc() and what else of libc asks for memory by entries of their
 * own, words that the loader filled in. Each of these entries is pointed at a
 * function here. Within our calls it does what libc's would do, with our
 * memory; what such calls have made is used and freed within such calls, and
 * the program never sees it. All other calls are the program's, which may use
 * the libraries, too: they go on to what stood in the entry before, and notice
 * nothing. So no thread ever frees a block that came from the other memory.
 *
 * A NULL for a block goes on to the library only if the thread is not in
 * without_exit(): there that is where the thread goes on. Nothing is left by
 * that but frames of the two libraries: hooks of ours have returned, and of
 * ours only tree.c and the sort call back, which hold nothing while they do.
 * They hold no lock but that of the Dwarf, which dwarf_end() does not ask for.
 *
 * An entry that is not bound yet leads into the library itself, to a stub that
 * has the loader write to it. It is called once, so that the entry has what the
 * library would have called: that need not be our malloc where the program
 * loaded the library by RTLD_DEEPBIND.
 *
 * Source: ELF gABI 5 (dynamic section, relocations).
 */
#include "symbol/elf/way_out.h"

#include "arch/atomic.h"
#include "arch/find_object.h"
#include "own/memory.h"
#include "own/sort.h"
#include "symbol/elf/tree.h"

#include <dlfcn.h>
#include <elfutils/libdw.h>
#include <limits.h>
#include <link.h>
#include <search.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where the running cpprof__without_exit() of the thread goes on. */
static __thread jmp_buf *way_out;

/* The thread is in a call of ours. */
static __thread bool is_within;

static bool is_used;      /* by us */
static unsigned n_others; /* calls of others since then */

bool
cpprof__within_begin(void)
{
    bool before = is_within;

    is_within = true;
    store_relaxed(&is_used, true);
    return before;
}

void
cpprof__within_end(bool before)
{
    is_within = before;
}

unsigned
cpprof__within_n_others(void)
{
    return load_relaxed(&n_others);
}

void
cpprof__out_of_memory(void)
{
    if (way_out)
        longjmp(*way_out, 1);
    abort(); /* a Dwarf is read outside cpprof__without_exit(): a bug here */
}

/* Tunable: more than the loader takes for the variables of a thread. */
#define ROOM_BYTES (32 * 1024)

static __thread bool has_variables;

/*
 * Both libraries have variables for each thread, which the loader makes room
 * for when the thread first looks at one, and it ends the process where there
 * is none. So that is here, right after there was more than enough.
 */
static bool
make_variables(void)
{
    void *volatile room = has_variables ? NULL : malloc(ROOM_BYTES);

    if (room) {
        free(room);
        elf_errno();
        dwarf_errno();
        has_variables = true;
    }
    return has_variables;
}

bool
cpprof__without_exit(void (*function)(void *arg), void *arg)
{
    jmp_buf *volatile before = way_out;
    const bool was_within = cpprof__within_begin();
    jmp_buf here;
    volatile bool returned = false;

    if (make_variables() && setjmp(here) == 0) {
        way_out = &here;
        function(arg);
        returned = true;
    }
    way_out = before;
    cpprof__within_end(was_within);
    return returned;
}

/* From cpprof__stay() on; otherwise 0. */
static __thread size_t largest_block;
static __thread bool has_refused;

void *
cpprof__stay(size_t largest)
{
    jmp_buf *before = way_out;

    way_out = NULL;
    largest_block = largest;
    has_refused = false;
    return before;
}

bool
cpprof__stay_end(void *before)
{
    way_out = before;
    largest_block = 0;
    return has_refused;
}

static inline bool
is_refused(size_t n)
{
    if (__builtin_expect(!largest_block || n <= largest_block, 1))
        return false;
    has_refused = true;
    return true;
}

/* ---- what they call --------------------------------------------------- */

enum { OF_DW, OF_ELF, N_LIBRARIES };
enum {
    MALLOC,
    CALLOC,
    REALLOC,
    FREE,
    STRDUP,
    REALPATH,
    QSORT,
    TSEARCH,
    TFIND,
    TDESTROY,
    N_NAMES
};

/* What stood in the entries; until then what a thread may call that finds our
 * function in an entry and not yet this. */
#define OF_LIBC                                                                \
    {                                                                          \
        (uintptr_t) malloc, (uintptr_t)calloc, (uintptr_t)realloc,             \
            (uintptr_t)free, (uintptr_t)strdup, (uintptr_t)realpath,           \
            (uintptr_t)qsort, (uintptr_t)tsearch, (uintptr_t)tfind,            \
            (uintptr_t)tdestroy                                                \
    }
static uintptr_t next[N_LIBRARIES][N_NAMES] = {OF_LIBC, OF_LIBC};

static inline void *
block_or_out(void *block, size_t n)
{
    if (__builtin_expect(!block && n && way_out, 0))
        cpprof__out_of_memory();
    return block;
}

/* The call is another's; it is counted where none but ours are expected. */
static inline bool
is_others(void)
{
    if (__builtin_expect(is_within, 1))
        return false;
    if (load_relaxed(&is_used))
        __atomic_add_fetch(&n_others, 1, __ATOMIC_RELAXED);
    return true;
}

/* libdw looks whether there is a path, or a node, as libc's may fail, too. */
static char *
own_realpath(const char *path, char *result)
{
    char found[PATH_MAX];

    if (result)
        return realpath(path, result);
    return realpath(path, found) ? cpprof__strdup(found) : NULL;
}

#define NEXT(library, name, kind)                                              \
    ((__typeof__(name) *)load_relaxed(&next[library][kind]))

#define MEMORY_FOR(library)                                                    \
    static void *malloc_##library(size_t n)                                    \
    {                                                                          \
        if (is_others())                                                       \
            return NEXT(library, malloc, MALLOC)(n);                           \
        return is_refused(n) ? NULL : block_or_out(cpprof__malloc(n), n);      \
    }                                                                          \
    static void *calloc_##library(size_t n, size_t each)                       \
    {                                                                          \
        if (is_others())                                                       \
            return NEXT(library, calloc, CALLOC)(n, each);                     \
        return block_or_out(cpprof__calloc(n, each), n && each);               \
    }                                                                          \
    static void *realloc_##library(void *old, size_t n)                        \
    {                                                                          \
        if (is_others())                                                       \
            return NEXT(library, realloc, REALLOC)(old, n);                    \
        return is_refused(n) ? NULL                                            \
                             : block_or_out(cpprof__realloc(old, n), n);       \
    }                                                                          \
    static void free_##library(void *block)                                    \
    {                                                                          \
        (is_others() ? NEXT(library, free, FREE) : cpprof__free)(block);       \
    }                                                                          \
    static char *strdup_##library(const char *text)                            \
    {                                                                          \
        if (is_others())                                                       \
            return NEXT(library, strdup, STRDUP)(text);                        \
        return block_or_out(cpprof__strdup(text), 1);                          \
    }

#define TEXTS_AND_TREES_FOR(library)                                           \
    static char *realpath_##library(const char *path, char *result)            \
    {                                                                          \
        return (is_others() ? NEXT(library, realpath, REALPATH)                \
                            : own_realpath)(path, result);                     \
    }                                                                          \
    static void qsort_##library(void *items, size_t n, size_t each,            \
                                cpprof__tree_compare *compare)                 \
    {                                                                          \
        (is_others() ? NEXT(library, qsort, QSORT)                             \
                     : cpprof__sort)(items, n, each, compare);                 \
    }                                                                          \
    static void *tsearch_##library(const void *key, void **root,               \
                                   cpprof__tree_compare *compare)              \
    {                                                                          \
        return (is_others() ? NEXT(library, tsearch, TSEARCH)                  \
                            : cpprof__tree_search)(key, root, compare);        \
    }                                                                          \
    static void *tfind_##library(const void *key, void *const *root,           \
                                 cpprof__tree_compare *compare)                \
    {                                                                          \
        return (is_others() ? NEXT(library, tfind, TFIND)                      \
                            : cpprof__tree_find)(key, root, compare);          \
    }                                                                          \
    static void tdestroy_##library(void *root, void (*free_key)(void *))       \
    {                                                                          \
        (is_others() ? NEXT(library, tdestroy, TDESTROY)                       \
                     : cpprof__tree_destroy)(root, free_key);                  \
    }

MEMORY_FOR(OF_DW)
MEMORY_FOR(OF_ELF)
TEXTS_AND_TREES_FOR(OF_DW)
TEXTS_AND_TREES_FOR(OF_ELF)

#define CALL(name)                                                             \
    {                                                                          \
#name,                                                                 \
        {                                                                      \
            name##_OF_DW, name##_OF_ELF                                        \
        }                                                                      \
    }
static const struct call {
    const char *name;
    void *ours[N_LIBRARIES];
} calls[N_NAMES] = {
    /* ORDER: as the numbers */
    CALL(malloc),   CALL(calloc), CALL(realloc), CALL(free),  CALL(strdup),
    CALL(realpath), CALL(qsort),  CALL(tsearch), CALL(tfind), CALL(tdestroy),
};

/* ---- their entries ---------------------------------------------------- */

struct library {
    unsigned which;
    uintptr_t base, start, end;
    uintptr_t relro, relro_end; /* whole pages, which the loader protected */
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t soname; /* in strings */
    const ElfW(Rela) * tables[2];
    size_t n[2];
};

static void
read_dynamic(struct library *l, const ElfW(Dyn) * d)
{
    for (; d->d_tag != DT_NULL; d++) {
        uintptr_t word = d->d_un.d_ptr;
        /* Not every loader relocates these words. */
        const void *at = (void *)(word < l->base ? word + l->base : word);

        if (d->d_tag == DT_SYMTAB)
            l->symbols = at;
        else if (d->d_tag == DT_STRTAB)
            l->strings = at;
        else if (d->d_tag == DT_SONAME)
            l->soname = word;
        else if (d->d_tag == DT_JMPREL)
            l->tables[0] = at;
        else if (d->d_tag == DT_RELA)
            l->tables[1] = at;
        else if (d->d_tag == DT_PLTRELSZ)
            l->n[0] = word / sizeof *l->tables[0];
        else if (d->d_tag == DT_RELASZ)
            l->n[1] = word / sizeof *l->tables[1];
    }
}

static void
read_relro(struct library *l)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    const ElfW(Ehdr) *header = (const void *)l->start;
    const ElfW(Phdr) *p = (const void *)(l->start + header->e_phoff);
    size_t i;

    for (i = 0; i < header->e_phnum; i++)
        if (p[i].p_type == PT_GNU_RELRO) {
            l->relro = (l->base + p[i].p_vaddr) & ~page;
            l->relro_end = (l->base + p[i].p_vaddr + p[i].p_memsz) & ~page;
        }
}

static bool
is_named(const struct library *l, const char *name)
{
    return l->symbols && l->strings && l->soname &&
           strncmp(l->strings + l->soname, name, strlen(name)) == 0;
}

/* The loaded library of that name. The loader is ours meanwhile. */
static bool
find_library(const char *name, struct library *l)
{
    const unsigned which = l->which;
    struct dl_find_object found;
    const struct link_map *map;

    if (!cpprof__find_object((void *)find_library, &found))
        return false;
    for (map = found.dlfo_link_map; map->l_prev; map = map->l_prev)
        continue;
    for (; map; map = map->l_next) {
        *l = (struct library){.which = which, .base = map->l_addr};
        read_dynamic(l, map->l_ld);
        if (is_named(l, name) && cpprof__find_object(map->l_ld, &found)) {
            l->start = (uintptr_t)found.dlfo_map_start;
            l->end = (uintptr_t)found.dlfo_map_end;
            read_relro(l);
            return true;
        }
    }
    return false;
}

/* Is the function that we call the library's? A program that takes its address
 * may have a stub for it; one that is linked with a static library has the
 * function itself. */
static bool
is_called(const struct library *l, const void *function)
{
    const ElfW(Sym) *symbol = NULL;
    Dl_info info;

    if ((uintptr_t)function >= l->start && (uintptr_t)function < l->end)
        return true;
    return dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) &&
           symbol && symbol->st_shndx == SHN_UNDEF;
}

static bool
protect(const struct library *l, int rights)
{
    return mprotect((void *)l->relro, l->relro_end - l->relro, rights) == 0;
}

static bool
is_bound(const struct library *l, uintptr_t word)
{
    return word < l->start || word >= l->end;
}

/* Call what a library would call by an entry that leads to a stub. The stub
 * finds its entry by what the library has pushed (x86-64), or by its address in
 * x16 (aarch64). Source: ELF for the Arm 64-bit architecture, PLT sequences. */
static uintptr_t
call_by_stub(uintptr_t stub, const uintptr_t *entry, const uintptr_t args[4])
{
#ifdef __aarch64__
    register uintptr_t x0 __asm__("x0") = args[0];
    register uintptr_t x1 __asm__("x1") = args[1];
    register uintptr_t x2 __asm__("x2") = args[2];
    register uintptr_t x3 __asm__("x3") = args[3];
    register const uintptr_t *x16 __asm__("x16") = entry;
    register uintptr_t x17 __asm__("x17") = stub;

    __asm__ volatile(
        "blr x17"
        : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3), "+r"(x16), "+r"(x17)
        :
        : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
          "x15", "x18", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7",
          "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25",
          "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
    return x0;
#else
    (void)entry;
    return ((uintptr_t(*)(uintptr_t, uintptr_t, uintptr_t, uintptr_t))stub)(
        args[0], args[1], args[2], args[3]);
#endif
}

static int
no_order(const void *a, const void *b)
{
    (void)a;
    (void)b;
    return 0;
}

/* Have the loader write to an entry that leads to its stub, by a call that
 * changes nothing but some bytes. */
static bool
bind_entry(const struct library *l, const uintptr_t *entry, size_t kind)
{
    /* No leak to who looks for pointers. */
    static volatile uintptr_t kept[N_LIBRARIES][N_NAMES];
    char resolved[PATH_MAX];
    static char item[1];
    const uintptr_t at = (uintptr_t)item, order = (uintptr_t)no_order;
    const uintptr_t args[N_NAMES][4] = {
        [MALLOC] = {1},
        [CALLOC] = {1, 1},
        [REALLOC] = {0, 1},
        [STRDUP] = {at},
        [REALPATH] = {at, (uintptr_t)resolved}, /* there is no such path */
        [QSORT] = {at, 1, 1, order},
        [TSEARCH] = {at, 0, order}, /* there is no tree */
        [TFIND] = {at, 0, order},
        [TDESTROY] = {0, (uintptr_t)free},
    };

    kept[l->which][kind] = call_by_stub(load_relaxed(entry), entry, args[kind]);
    return kept[l->which][kind] || kind == FREE || kind > STRDUP;
}

/* Point the entry at our function. */
static bool
change(const struct library *l, uintptr_t *entry, size_t kind)
{
    uintptr_t at = (uintptr_t)entry, was = load_relaxed(entry);
    bool is_protected = at >= l->relro && at < l->relro_end;

    if (!is_bound(l, was)) {
        if (!bind_entry(l, entry, kind))
            return false;
        was = load_relaxed(entry);
        if (!is_bound(l, was)) /* LD_BIND_NOT */
            return false;
    }
    if (is_protected && !protect(l, PROT_READ | PROT_WRITE))
        return false;
    store_relaxed(&next[l->which][kind], was);
    store_release(entry, (uintptr_t)calls[kind].ours[l->which]);
    if (is_protected)
        protect(l, PROT_READ);
    return true;
}

/* The entry of a relocation, if it is one of those. */
static bool
see(const struct library *l, const ElfW(Rela) * r)
{
    const ElfW(Sym) *symbol = &l->symbols[ELF64_R_SYM(r->r_info)];
    size_t i;

    if (!ELF64_R_SYM(r->r_info) || symbol->st_shndx != SHN_UNDEF)
        return true;
    for (i = 0; i < N_NAMES; i++)
        if (strcmp(l->strings + symbol->st_name, calls[i].name) == 0)
            return change(l, (uintptr_t *)(l->base + r->r_offset), i);
    return true;
}

static bool
change_all(const struct library *l)
{
    bool is_done = true;
    size_t t, i;

    for (t = 0; is_done && t < 2; t++)
        for (i = 0; is_done && l->tables[t] && i < l->n[t]; i++)
            is_done = see(l, &l->tables[t][i]);
    return is_done;
}

static bool is_ready;

/* The loader, which calls this, relocates nothing meanwhile. A libelf of the
 * program's own returns an error where it has no memory; libdw ends it. */
__attribute__((constructor)) static void
begin(void)
{
    struct library dw = {.which = OF_DW}, elf = {.which = OF_ELF};

    store_release(&is_ready,
                  find_library("libdw.so.", &dw) &&
                      is_called(&dw, dwarf_begin_elf) && change_all(&dw) &&
                      (!find_library("libelf.so.", &elf) || change_all(&elf)));
}

bool
cpprof__way_out_is_ready(void)
{
    return load_acquire(&is_ready);
}
