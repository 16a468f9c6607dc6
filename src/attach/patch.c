/* SPDX-License-Identifier: MIT */
/*
 * Patches the entries of modules; patch.h tells what.
 *
 * Each module is looked at in a call of dl_iterate_phdr(), in which the loader
 * unmaps nothing. One call handles one module, so a thread that loads, unloads
 * or throws waits for a fraction of a millisecond. If the list changes between
 * two calls, the walk begins anew.
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
 * has just been binding it, the loader's word stands behind ours: whoever
 * patches looks again a second later.
 *
 * Source: ELF gABI 5 (dynamic section); the processors' supplements
 * (relocations).
 */
#include "attach/patch.h"

#include "arch/atomic.h"
#include "arch/find_object.h"
#include "arch/place.h"
#include "base/buffer.h"
#include "collect/runtime/loader.h"
#include "collect/runtime/next.h"
#include "collect/runtime/proc.h"
#include "collect/runtime/real.h"
#include <cpprof/object.h>

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

/* ---- what stands for what --------------------------------------------- */

#define PART_ALLOCATE CPPROF__PATCH_HEAP
#define PART_RELEASE  CPPROF__PATCH_HEAP
#define PART_NEW      CPPROF__PATCH_HEAP
#define PART_DELETE   CPPROF__PATCH_HEAP
#define PART_MAPS     0
#define PART_WAITS    CPPROF__PATCH_WAITS
#define PART_PROCESS  CPPROF__PATCH_PROCESS
#define PART_UNLOAD   CPPROF__PATCH_PROCESS

#define PART(group, name) PART_##group,
#define TEXT(group, name) #name "\0"

static const uint8_t parts_of[] = {CPPROF__NAMES(PART)};
static const char names[] = CPPROF__NAMES(TEXT);

enum { N_TARGETS = CPPROF__N_NAMES, N_SLOTS = 1024 };
_Static_assert(N_TARGETS < 255, "numbers fit a byte of the index");

/* Both have .address NULL where there is nothing to patch. */
static struct cpprof__definition ours[N_TARGETS] CPPROF__LARGE;
static struct cpprof__definition
    theirs[N_TARGETS] CPPROF__LARGE; /* module: the only one */
/* By hash: a number and one, or 0. */
static uint8_t index_of[N_SLOTS] CPPROF__LARGE;

static uint8_t *
slot_of(const char *name, uint32_t hash)
{
    uint32_t i = hash % N_SLOTS;

    while (index_of[i] && strcmp(ours[index_of[i] - 1].name, name))
        i = (i + 1) % N_SLOTS;
    return &index_of[i];
}

/* The number of a name, or -1. */
static int
number_of(const char *name)
{
    return *slot_of(name, cpprof__symbol_hash(name)) - 1;
}

static bool
is_operator(unsigned number)
{
    return strncmp(ours[number].name, "_Z", 2) == 0;
}

/* What the hooks call underneath. An operator that calls malloc is counted
 * there. */
static void *
underneath(unsigned number)
{
    if (is_operator(number) &&
        !cpprof__is_of_allocator((enum cpprof__name)number))
        return NULL;
    return load_acquire(&cpprof__next[number]);
}

static bool
is_in(const struct link_map *module, const void *address)
{
    struct dl_find_object found;

    return cpprof__find_object(address, &found) &&
           found.dlfo_link_map == module;
}

static void
find_theirs(void)
{
    const struct link_map *own = cpprof__own_module();
    unsigned i;

    memcpy(theirs, ours, sizeof theirs);
    for (i = 0; i < N_TARGETS; i++) {
        theirs[i].address = underneath(i);
        /* What nobody defines is ours or a stand-in of ours. */
        if (theirs[i].address && is_in(own, theirs[i].address))
            theirs[i].address = NULL;
    }
}

static bool
has_sanitizer(void)
{
    static const char *const starts[] = {"__asan_init", "__tsan_init",
                                         "__msan_init", "__hwasan_init"};
    const struct link_map *module = NULL;
    size_t i;

    for (i = 0; i < sizeof starts / sizeof *starts; i++)
        if (cpprof__first_symbol(starts[i], &module))
            return true;
    return false;
}

struct beginning {
    enum cpprof__patch_state state;
    bool sanitized;
};

/* The loader takes nothing out of its list while this is called. */
static int
find_all(struct dl_phdr_info *info, size_t size, void *arg)
{
    const struct link_map *module = NULL;
    struct beginning *beginning = arg;
    unsigned i;

    beginning->state = CPPROF__PATCH_NOT_NEEDED;
    cpprof__own_symbols(names, ours, N_TARGETS);
    if (cpprof__first_symbol("pthread_create", &module) ==
        ours[CPPROF__NAME_pthread_create].address)
        return 1;
    memset(index_of, 0, sizeof index_of);
    for (i = 0; i < N_TARGETS; i++)
        *slot_of(ours[i].name, cpprof__symbol_hash(ours[i].name)) =
            (uint8_t)(i + 1);
    find_theirs();
    beginning->sanitized = has_sanitizer();
    beginning->state = CPPROF__PATCH_READY;
    return 1;
}

/* Tunables: so often it is tried while the program forks, and so long after. */
#define BEGIN_TRIES 1000
#define BEGIN_NS    1000000

enum cpprof__patch_state
cpprof__patch_begin(bool *sanitized)
{
    const struct timespec pause = {0, BEGIN_NS};
    struct beginning beginning = {CPPROF__PATCH_CANNOT, false};
    unsigned i;

    for (i = 0; i < BEGIN_TRIES; i++) {
        if (cpprof__loader_visit(find_all, &beginning))
            break;
        syscall(SYS_nanosleep, &pause, NULL);
    }
    *sanitized = beginning.sanitized;
    return beginning.state;
}

/* ---- one module ------------------------------------------------------- */

struct range {
    uintptr_t lo, hi;
};

static bool
has(const struct range *range, uintptr_t address)
{
    return address - range->lo < range->hi - range->lo;
}

struct module {
    const struct dl_phdr_info *info;
    uintptr_t base;
    struct range relro; /* whole pages, as the loader protects them */
    bool is_open;       /* they can be written to now */
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2];
    size_t n[2];
};

struct pass {
    unsigned parts;                    /* 0: put back */
    const struct cpprof__buffer *maps; /* of /proc, or empty */
    unsigned at;                       /* the module to be looked at */
    unsigned seen;                     /* modules of this look */
    uint64_t subs;                     /* modules that were ever unloaded */
    bool is_over;
    bool is_stale; /* modules went meanwhile */
    bool is_left;  /* something could not be done now */
};

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

    for (; d->d_tag != DT_NULL; d++) {
        const void *at = address_in(m, d->d_un.d_ptr);

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
    return m->symbols && m->strings && has_addends;
}

static bool
read_module(struct module *m, const struct dl_phdr_info *info)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    const ElfW(Dyn) *dynamic = NULL;
    unsigned i;

    memset(m, 0, sizeof *m);
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

/* Is the address in a segment with these rights? */
static bool
is_in_segment(const struct module *m, uintptr_t address, unsigned rights)
{
    unsigned i;

    for (i = 0; i < m->info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &m->info->dlpi_phdr[i];
        struct range range = {m->base + p->p_vaddr,
                              m->base + p->p_vaddr + p->p_memsz};

        if (p->p_type == PT_LOAD && (p->p_flags & rights) == rights &&
            has(&range, address))
            return true;
    }
    return false;
}

/* ---- pages that are protected ----------------------------------------- */

/* Was all of the range readable and not writable when the maps were read? */
static bool
is_protected(const struct cpprof__buffer *maps, struct range range)
{
    const char *at = (const char *)maps->data, *end = at + maps->n;
    struct cpprof_map map = {.size = sizeof map};

    while (range.lo < range.hi && at && cpprof_maps_next(&at, end, &map)) {
        if (map.limit <= range.lo)
            continue;
        if (map.start > range.lo || memcmp(map.perms, "r-", 2) != 0)
            return false;
        range.lo = map.limit;
    }
    return range.lo >= range.hi;
}

/* To put back is possible without /proc, as in a chroot: what is ours in these
 * pages was put there when they were protected. */
static bool
may_open(const struct module *m, const struct pass *pass)
{
    return pass->maps->n ? is_protected(pass->maps, m->relro) : !pass->parts;
}

static bool
open_pages(struct module *m, const struct pass *pass)
{
    if (!m->is_open)
        m->is_open = may_open(m, pass) &&
                     !mprotect((void *)m->relro.lo, m->relro.hi - m->relro.lo,
                               PROT_READ | PROT_WRITE);
    return m->is_open;
}

static void
close_pages(const struct module *m)
{
    if (m->is_open)
        mprotect((void *)m->relro.lo, m->relro.hi - m->relro.lo, PROT_READ);
}

/* ---- entries ---------------------------------------------------------- */

/* Does the entry lead to the module's own stub, which would have it bound? */
static bool
is_unbound(const struct module *m, const ElfW(Rela) * r, uintptr_t value)
{
    const ElfW(Sym) *s = &m->symbols[ELF64_R_SYM(r->r_info)];

    return ELF64_R_TYPE(r->r_info) == JUMP_SLOT && s->st_shndx == SHN_UNDEF &&
           is_in_segment(m, value, PF_X);
}

/* Has libc an older function of the same name, which the stub may be for? All
 * others that it has in two versions are one function. */
static bool
has_old_version(unsigned number)
{
    return number == CPPROF__NAME_pthread_cond_wait ||
           number == CPPROF__NAME_pthread_cond_timedwait;
}

/* What the entry has to become; 0: it stays. */
static uintptr_t
wanted_for(const struct module *m, const ElfW(Rela) * r, uintptr_t value,
           unsigned number, unsigned parts)
{
    uintptr_t its = (uintptr_t)theirs[number].address;
    uintptr_t our = (uintptr_t)ours[number].address;

    if (!its || !our)
        return 0;
    if (!parts)
        return value == our ? its : 0;
    if (!(parts_of[number] & parts))
        return 0;
    if (value == its)
        return our;
    return theirs[number].module && !has_old_version(number) &&
                   is_unbound(m, r, value)
               ? our
               : 0;
}

static bool
is_ours_to_change(const ElfW(Rela) * r)
{
    unsigned type = ELF64_R_TYPE(r->r_info);

    return ELF64_R_SYM(r->r_info) && (type == JUMP_SLOT || type == GLOB_DAT ||
                                      (type == ABSOLUTE && !r->r_addend));
}

static void
change(struct module *m, const ElfW(Rela) * r, struct pass *pass)
{
    const ElfW(Sym) *s = &m->symbols[ELF64_R_SYM(r->r_info)];
    uintptr_t *entry = (uintptr_t *)(m->base + r->r_offset);
    int number = number_of(m->strings + s->st_name);
    uintptr_t value, wanted;

    if (number < 0 || (uintptr_t)entry % sizeof *entry ||
        !is_in_segment(m, (uintptr_t)entry, PF_W))
        return;
    value = load_relaxed(entry);
    wanted = wanted_for(m, r, value, (unsigned)number, pass->parts);
    if (!wanted)
        return;
    if (has(&m->relro, (uintptr_t)entry) && !open_pages(m, pass))
        pass->is_left = true;
    else
        cas_acq_rel(entry, &value, wanted);
}

static void
change_module(const struct dl_phdr_info *info, struct pass *pass)
{
    struct module m;
    unsigned t;
    size_t i;

    if (!read_module(&m, info))
        return;
    for (t = 0; t < 2; t++)
        for (i = 0; m.tables[t] && i < m.n[t]; i++)
            if (is_ours_to_change(&m.tables[t][i]))
                change(&m, &m.tables[t][i], pass);
    close_pages(&m);
}

/* ---- all modules ------------------------------------------------------ */

static uint64_t last_adds; /* modules that were ever loaded, at the last pass */

/* Which of their definitions is the only one of that name? */
static void
find_only_ones(void)
{
    const struct link_map *own = cpprof__own_module(), *m = own;
    unsigned i;

    for (i = 0; i < N_TARGETS; i++)
        theirs[i].module = own;
    while (m && m->l_prev)
        m = m->l_prev;
    for (; m; m = m->l_next)
        if (m != own)
            cpprof__note_other_definitions(m, theirs, N_TARGETS);
}

/* The loader takes nothing out of its list while this is called. */
static int
look(struct dl_phdr_info *info, size_t n, void *arg)
{
    struct pass *pass = arg;

    if (pass->seen == 0 && pass->at == 0) {
        pass->subs = info->dlpi_subs;
        store_relaxed(&last_adds, (uint64_t)info->dlpi_adds);
        find_only_ones();
    }
    pass->is_stale = pass->subs != info->dlpi_subs;
    if (!pass->is_stale && pass->seen++ < pass->at)
        return 0;
    if (!pass->is_stale)
        change_module(info, pass);
    pass->is_over = false;
    return 1;
}

/* Tunable: so often it begins anew when modules go all the time; then the rest
 * is left for the next time. */
#define ROUNDS 10

static bool
look_at_all(unsigned parts)
{
    struct cpprof__buffer maps = {0};
    struct pass pass = {.parts = parts, .maps = &maps};
    unsigned rounds = 0;

    cpprof__proc_read("/proc/thread-self/maps", &maps);
    while (!pass.is_over && rounds < ROUNDS) {
        pass.is_over = true;
        pass.seen = 0;
        if (!cpprof__loader_visit(look, &pass)) {
            rounds = ROUNDS; /* not now */
        } else if (pass.is_stale) {
            pass.at = 0;
            pass.is_over = pass.is_stale = false;
            rounds++;
        } else {
            pass.at++;
        }
    }
    cpprof__buffer_free(&maps);
    return pass.is_over && !pass.is_left && rounds < ROUNDS;
}

bool
cpprof__patch_all(unsigned parts)
{
    return look_at_all(parts);
}

bool
cpprof__patch_restore(void)
{
    return look_at_all(0);
}

static int
read_adds(struct dl_phdr_info *info, size_t n, void *arg)
{
    *(uint64_t *)arg = info->dlpi_adds;
    return 1;
}

bool
cpprof__patch_has_news(void)
{
    uint64_t adds = load_relaxed(&last_adds);

    cpprof__loader_visit(read_adds, &adds);
    return adds != load_relaxed(&last_adds);
}
