/* SPDX-License-Identifier: MIT */
/*
 * Walks the modules, and changes what entries.h tells.
 *
 * Each module is looked at in a call of dl_iterate_phdr(), in which the loader
 * unmaps nothing. One call handles one module, so a thread that loads, unloads
 * or throws waits for a fraction of a millisecond. If the list changes between
 * two calls, the walk begins anew. Symbols come first, in a walk of their own:
 * what is bound after it is bound to what was asked for.
 *
 * A module that is just being loaded is in the list, too, while the loader
 * relocates it. Entries that cannot be written to later, since the loader
 * protects them when it has relocated (PT_GNU_RELRO), are touched only if they
 * are protected already, and are protected again. For others it makes no
 * difference, because each change is one compare-and-swap from what the loader
 * has written.
 *
 * An entry that was not bound yet leads to a stub in the module itself. The
 * loader would bind it to the first definition in the module's scope; that is
 * ours to replace if there is only one definition in the process. When a thread
 * has just been binding it, the loader's word stands behind ours: whoever can
 * looks again a second later.
 *
 * Source: ELF gABI 5 (dynamic section); the processors' supplements
 * (relocations).
 */
#include "collect/entries/entries.h"

#include "arch/atomic.h"
#include "collect/entries/pages.h"
#include "collect/runtime/loader.h"
#include "collect/runtime/next.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

/* Relocations that hold a function's address and nothing else. */
#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT  R_X86_64_GLOB_DAT
#define ABSOLUTE  R_X86_64_64
#elif defined(__aarch64__)
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT  R_AARCH64_GLOB_DAT
#define ABSOLUTE  R_AARCH64_ABS64
#else
#error "which relocations hold an address?"
#endif

#define N_SLOTS 1024

struct range {
    uintptr_t lo, hi;
};

static bool
has(const struct range *range, uintptr_t address)
{
    return address - range->lo < range->hi - range->lo;
}

struct walk {
    struct cpprof__changes *changes;
    struct cpprof__pages pages;
    bool is_of_symbols;
    unsigned at;   /* the module to be looked at */
    unsigned seen; /* modules of this look */
    uint64_t subs; /* modules that were ever unloaded */
    bool is_over;
    bool is_stale; /* modules went meanwhile */
    bool is_left;  /* something could not be done now */
    /* By the hash of a name: a number and one, or 0. */
    uint8_t index[N_SLOTS];
};

struct module {
    struct walk *walk;
    const struct dl_phdr_info *info;
    uintptr_t base;
    struct range relro; /* whole pages, as the loader protects them */
    uintptr_t open;     /* the page that can be written to now, or 0 */
    int protection;     /* that it had */
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2];
    size_t n[2];
};

/* ---- which names ------------------------------------------------------ */

static uint8_t *
slot_of(struct walk *w, const char *name)
{
    uint32_t i = cpprof__symbol_hash(name) % N_SLOTS;

    while (w->index[i] &&
           strcmp(w->changes->of[w->index[i] - 1].name, name) != 0)
        i = (i + 1) % N_SLOTS;
    return &w->index[i];
}

static void
make_index(struct walk *w)
{
    unsigned i;

    for (i = 0; i < w->changes->n; i++)
        if (w->changes->of[i].from && w->changes->of[i].to)
            *slot_of(w, w->changes->of[i].name) = (uint8_t)(i + 1);
}

static const struct cpprof__change *
change_of(struct walk *w, const char *name)
{
    unsigned number =
        cpprof__pages_read_text(&w->pages, name) ? *slot_of(w, name) : 0;

    return number ? &w->changes->of[number - 1] : NULL;
}

/* ---- one module ------------------------------------------------------- */

/* Some loaders relocate these words in place, some not. */
static const void *
address_in(const struct module *m, ElfW(Addr) value)
{
    return (const void *)(value < m->base ? value + m->base : value);
}

static bool
read_dynamic(struct module *m, const ElfW(Dyn) * d)
{
    bool has_addends = true;

    for (; cpprof__pages_read(&m->walk->pages, d, sizeof *d); d++) {
        const void *at = address_in(m, d->d_un.d_ptr);

        if (d->d_tag == DT_NULL)
            return m->symbols && m->strings && has_addends;
        if (d->d_tag == DT_SYMTAB)
            m->symbols = at;
        else if (d->d_tag == DT_STRTAB)
            m->strings = at;
        else if (d->d_tag == DT_JMPREL)
            m->tables[0] = at;
        else if (d->d_tag == DT_RELA)
            m->tables[1] = at;
        else if (d->d_tag == DT_PLTRELSZ)
            m->n[0] = d->d_un.d_val / sizeof *m->tables[0];
        else if (d->d_tag == DT_RELASZ)
            m->n[1] = d->d_un.d_val / sizeof *m->tables[1];
        else if (d->d_tag == DT_PLTREL)
            has_addends = d->d_un.d_val == DT_RELA;
    }
    return false;
}

static bool
read_module(struct module *m, struct walk *w, const struct dl_phdr_info *info)
{
    uintptr_t page = w->pages.bits;
    const ElfW(Dyn) *dynamic = NULL;
    unsigned i;

    memset(m, 0, sizeof *m);
    m->walk = w;
    m->info = info;
    m->base = info->dlpi_addr;
    for (i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t lo = m->base + p->p_vaddr;

        if (p->p_type == PT_DYNAMIC)
            dynamic = (const void *)lo;
        if (p->p_type == PT_GNU_RELRO)
            m->relro = (struct range){lo & ~page, (lo + p->p_memsz) & ~page};
    }
    return dynamic && read_dynamic(m, dynamic);
}

/* The rights of the segment that the address is in, as PF_...; 0: in none. */
static unsigned
rights_at(const struct module *m, uintptr_t address)
{
    unsigned i;

    for (i = 0; i < m->info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &m->info->dlpi_phdr[i];
        struct range range = {m->base + p->p_vaddr,
                              m->base + p->p_vaddr + p->p_memsz};

        if (p->p_type == PT_LOAD && has(&range, address))
            return p->p_flags;
    }
    return 0;
}

/* ---- pages that are protected ----------------------------------------- */

static void
close_page(struct module *m)
{
    if (m->open)
        mprotect((void *)m->open, m->walk->pages.bits + 1, m->protection);
    m->open = 0;
}

/* One that can be read and not be written to. What may be executed there may be
 * meanwhile. */
static bool
open_page(struct module *m, uintptr_t at)
{
    uintptr_t page = at & ~m->walk->pages.bits;

    if (m->open == page)
        return true;
    close_page(m);
    m->protection = PROT_READ | (rights_at(m, at) & PF_X ? PROT_EXEC : 0);
    if (cpprof__page_is_writable(page) ||
        mprotect((void *)page, m->walk->pages.bits + 1,
                 m->protection | PROT_WRITE))
        return false;
    m->open = page;
    return true;
}

/* ---- entries ---------------------------------------------------------- */

/* Does the entry lead to the module's own stub, which would have it bound? */
static bool
is_unbound(const struct module *m, const ElfW(Rela) * r, uintptr_t value)
{
    const ElfW(Sym) *s = &m->symbols[ELF64_R_SYM(r->r_info)];

    return ELF64_R_TYPE(r->r_info) == JUMP_SLOT && s->st_shndx == SHN_UNDEF &&
           rights_at(m, value) & PF_X;
}

static bool
may_change(const ElfW(Rela) * r)
{
    unsigned type = ELF64_R_TYPE(r->r_info);

    return ELF64_R_SYM(r->r_info) && (type == JUMP_SLOT || type == GLOB_DAT ||
                                      (type == ABSOLUTE && !r->r_addend));
}

/* May it be written to? Data that is not writable was protected by the program,
 * and what the loader protects but is open, by nobody yet. */
static bool
is_ready(struct module *m, uintptr_t entry)
{
    if (has(&m->relro, entry)) {
        if (open_page(m, entry))
            return true;
        m->walk->is_left = true;
        return false;
    }
    if (cpprof__page_is_writable(entry))
        return true;
    m->walk->changes->is_kept = true;
    return false;
}

static void
change_entry(struct module *m, const ElfW(Rela) * r)
{
    struct cpprof__pages *pages = &m->walk->pages;
    const ElfW(Sym) *s = &m->symbols[ELF64_R_SYM(r->r_info)];
    uintptr_t entry = m->base + r->r_offset;
    const struct cpprof__change *change;
    uintptr_t value;

    if (!cpprof__pages_read(pages, s, sizeof *s) ||
        !(change = change_of(m->walk, m->strings + s->st_name)) ||
        entry % sizeof entry || !(rights_at(m, entry) & PF_W))
        return;
    if (!cpprof__pages_read(pages, (void *)entry, sizeof entry)) {
        m->walk->changes->is_kept = true;
        return;
    }
    value = load_relaxed((uintptr_t *)entry);
    if (value != (uintptr_t)change->from &&
        !(change->is_only && is_unbound(m, r, value)))
        return;
    if (is_ready(m, entry))
        cas_acq_rel((uintptr_t *)entry, &value, (uintptr_t)change->to);
}

static void
change_entries(struct module *m)
{
    unsigned t;
    size_t i;

    for (t = 0; t < 2; t++)
        for (i = 0; m->tables[t] && i < m->n[t]; i++) {
            const ElfW(Rela) *r = &m->tables[t][i];

            if (!cpprof__pages_read(&m->walk->pages, r, sizeof *r))
                break;
            if (may_change(r))
                change_entry(m, r);
        }
}

/* ---- symbols ---------------------------------------------------------- */

static void
change_symbol(struct module *m, const struct cpprof__change *change)
{
    uintptr_t *value = (uintptr_t *)(uintptr_t)&change->symbol->st_value;
    uintptr_t from = (uintptr_t)change->from - m->base;

    if (!rights_at(m, (uintptr_t)value))
        return; /* another module's */
    if (!cpprof__pages_read(&m->walk->pages, value, sizeof *value) ||
        (uintptr_t)value % sizeof *value || !open_page(m, (uintptr_t)value))
        m->walk->changes->is_kept = true;
    else
        cas_acq_rel(value, &from, (uintptr_t)change->to - m->base);
}

static void
change_symbols(struct module *m)
{
    const struct cpprof__changes *changes = m->walk->changes;
    unsigned i;

    for (i = 0; i < changes->n; i++)
        if (changes->of[i].symbol && changes->of[i].from && changes->of[i].to)
            change_symbol(m, &changes->of[i]);
}

/* ---- all modules ------------------------------------------------------ */

static void
change_module(struct walk *w, const struct dl_phdr_info *info)
{
    struct module m;

    if (!read_module(&m, w, info))
        return;
    if (w->is_of_symbols)
        change_symbols(&m);
    else
        change_entries(&m);
    close_page(&m);
}

static void
begin_walk(struct walk *w, const struct dl_phdr_info *info)
{
    w->subs = info->dlpi_subs;
    w->changes->n_adds = info->dlpi_adds;
    if (w->changes->before)
        w->changes->before(w->changes);
    memset(w->index, 0, sizeof w->index);
    make_index(w);
}

/* The loader takes nothing out of its list while this is called. What is
 * readable is asked anew: the memory may be another module's. */
static int
look(struct dl_phdr_info *info, size_t n, void *arg)
{
    struct walk *w = arg;

    if (w->seen == 0 && w->at == 0)
        begin_walk(w, info);
    w->is_stale = w->subs != info->dlpi_subs;
    if (!w->is_stale && w->seen++ < w->at)
        return 0;
    if (!w->is_stale) {
        cpprof__pages_begin(&w->pages);
        change_module(w, info);
    }
    w->is_over = false;
    return 1;
}

/* Tunable: so often it begins anew when modules go all the time; then the rest
 * is left for the next time. */
#define ROUNDS 10

static bool
walk(struct walk *w)
{
    unsigned rounds = 0;

    w->at = 0;
    w->is_over = false;
    while (!w->is_over && rounds < ROUNDS) {
        w->is_over = true;
        w->seen = 0;
        if (!cpprof__loader_visit(look, w)) {
            rounds = ROUNDS; /* not now */
        } else if (w->is_stale) {
            w->at = 0;
            w->is_over = w->is_stale = false;
            rounds++;
        } else {
            w->at++;
        }
    }
    return w->is_over && !w->is_left && rounds < ROUNDS;
}

static bool
has_symbols(const struct cpprof__changes *changes)
{
    unsigned i;

    for (i = 0; i < changes->n; i++)
        if (changes->of[i].symbol)
            return true;
    return false;
}

bool
cpprof__entries_change(struct cpprof__changes *changes)
{
    struct walk w = {.changes = changes, .is_of_symbols = has_symbols(changes)};

    changes->is_kept = false;
    if (w.is_of_symbols && !walk(&w))
        return false;
    w.is_of_symbols = false;
    return walk(&w);
}
