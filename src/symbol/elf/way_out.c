/* SPDX-License-Identifier: MIT */
/*
 * Leaves libdw and libelf when memory runs out (way_out.h).
 *
 * Both call malloc, calloc and realloc by entries of their own, words that the
 * loader filled in. Each of these entries is pointed at a function here, which
 * calls what stood in it before. What comes back goes on to the library,
 * unless it is NULL and the thread is in without_exit(): then that is where the
 * thread goes on. So the program may use the libraries, too, and sees no
 * difference.
 *
 * Nothing is left by that but frames of the two libraries: libc calls back none
 * of their functions that allocate, and hooks of ours have returned. They hold
 * no lock but that of the Dwarf, which dwarf_end() does not ask for.
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

#include <dlfcn.h>
#include <elfutils/libdw.h>
#include <link.h>
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
    jmp_buf here;
    volatile bool returned = false;

    if (make_variables() && setjmp(here) == 0) {
        way_out = &here;
        function(arg);
        returned = true;
    }
    way_out = before;
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
enum { MALLOC, CALLOC, REALLOC, N_NAMES };

/* What stood in the entries; until then what a thread may call that finds our
 * function in an entry and not yet this. */
static uintptr_t next[N_LIBRARIES][N_NAMES] = {
    {(uintptr_t)malloc, (uintptr_t)calloc, (uintptr_t)realloc},
    {(uintptr_t)malloc, (uintptr_t)calloc, (uintptr_t)realloc},
};

static inline void *
block_or_out(void *block, size_t n)
{
    if (__builtin_expect(!block && n && way_out, 0))
        cpprof__out_of_memory();
    return block;
}

#define NEXT(library, name, kind)                                              \
    ((__typeof__(name) *)load_relaxed(&next[library][kind]))

#define CALLS(library)                                                         \
    static void *malloc_##library(size_t n)                                    \
    {                                                                          \
        if (is_refused(n))                                                     \
            return NULL;                                                       \
        return block_or_out(NEXT(library, malloc, MALLOC)(n), n);              \
    }                                                                          \
    static void *calloc_##library(size_t n, size_t each)                       \
    {                                                                          \
        return block_or_out(NEXT(library, calloc, CALLOC)(n, each),            \
                            n && each);                                        \
    }                                                                          \
    static void *realloc_##library(void *old, size_t n)                        \
    {                                                                          \
        if (is_refused(n))                                                     \
            return NULL;                                                       \
        return block_or_out(NEXT(library, realloc, REALLOC)(old, n), n);       \
    }

CALLS(OF_DW)
CALLS(OF_ELF)

static const struct call {
    const char *name;
    void *ours[N_LIBRARIES];
} calls[N_NAMES] = {
    {"malloc", {malloc_OF_DW, malloc_OF_ELF}},
    {"calloc", {calloc_OF_DW, calloc_OF_ELF}},
    {"realloc", {realloc_OF_DW, realloc_OF_ELF}},
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

/* Have the loader write to an entry that leads to its stub. False where that
 * cannot be called: elsewhere it wants the address of its entry, too. */
static bool
bind_entry(unsigned which, uintptr_t stub, size_t kind)
{
    /* Some bytes, and no leak to who looks for pointers. */
    static void *volatile kept[N_LIBRARIES][N_NAMES];
    void *volatile *here = &kept[which][kind];

#ifdef __x86_64__
    if (kind == MALLOC)
        *here = ((__typeof__(malloc) *)stub)(1);
    else if (kind == CALLOC)
        *here = ((__typeof__(calloc) *)stub)(1, 1);
    else
        *here = ((__typeof__(realloc) *)stub)(NULL, 1);
#else
    (void)stub;
#endif
    return *here != NULL;
}

/* Point the entry at our function. */
static bool
change(const struct library *l, uintptr_t *entry, size_t kind)
{
    uintptr_t at = (uintptr_t)entry, was = load_relaxed(entry);
    bool is_protected = at >= l->relro && at < l->relro_end;

    if (!is_bound(l, was)) {
        if (!bind_entry(l->which, was, kind))
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

    is_ready = find_library("libdw.so.", &dw) &&
               is_called(&dw, dwarf_begin_elf) && change_all(&dw) &&
               (!find_library("libelf.so.", &elf) || change_all(&elf));
}

bool
cpprof__way_out_is_ready(void)
{
    return is_ready;
}
