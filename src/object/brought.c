/* SPDX-License-Identifier: MIT */
/*
 * Takes the destructors out of libraries that came with a plug-in (brought.h):
 * the loader reads how many there are from the library's dynamic section when
 * the process ends, and finds none.
 *
 * Another thread may load libraries at the same time, so those are meant that
 * were not there before and that the plug-in needs, itself or by another one.
 * They stay, because the plug-in is never unloaded. All is done inside of one
 * look at the loader's list, which no library leaves meanwhile. No malloc: the
 * symbolizer is loaded by who calls exit().
 *
 * Source: ELF gABI 5 (dynamic section), DT_FINI_ARRAYSZ.
 */
#include "object/brought.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A process with more is left as it is. */
#define MODULES_MAX 512

struct module {
    uintptr_t base;
    const char *path;
    ElfW(Dyn) * dynamic;
    uintptr_t guarded_lo, guarded_hi; /* read-only once it is loaded */
    bool is_needed;
};

struct cpprof__brought {
    const ElfW(Dyn) * before[MODULES_MAX];
    size_t n_before;
    struct module modules[MODULES_MAX]; /* that were not there before */
    size_t n;
    const ElfW(Dyn) * plug_in;
};

static ElfW(Dyn) * entry(const struct module *m, ElfW(Sxword) tag)
{
    ElfW(Dyn) *d = m->dynamic;

    while (d->d_tag != DT_NULL && d->d_tag != tag)
        d++;
    return d->d_tag == tag ? d : NULL;
}

static struct module
module_of(const struct dl_phdr_info *info)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct module m = {.base = info->dlpi_addr, .path = info->dlpi_name};
    unsigned i;

    for (i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t lo = m.base + p->p_vaddr, hi = lo + p->p_memsz;

        if (p->p_type == PT_DYNAMIC)
            m.dynamic = (void *)lo;
        if (p->p_type == PT_GNU_RELRO) {
            m.guarded_lo = lo & -page;
            m.guarded_hi = hi & -page;
        }
    }
    return m;
}

static int
note_before(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct cpprof__brought *b = arg;

    (void)size;
    if (b->n_before < MODULES_MAX)
        b->before[b->n_before++] = module_of(info).dynamic;
    return 0;
}

struct cpprof__brought *
cpprof__brought_begin(void)
{
    struct cpprof__brought *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (b == MAP_FAILED)
        return NULL;
    dl_iterate_phdr(note_before, b);
    return b;
}

static int
note_new(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct cpprof__brought *b = arg;
    struct module m = module_of(info);
    size_t i;

    (void)size;
    for (i = 0; i < b->n_before; i++)
        if (b->before[i] == m.dynamic)
            return 0;
    m.is_needed = m.dynamic == b->plug_in;
    if (m.dynamic && b->n < MODULES_MAX)
        b->modules[b->n++] = m;
    return 0;
}

/* By the name that the loader would know it by, which is that of its file. */
static bool
is_called(const struct module *m, const char *name)
{
    const char *slash = strrchr(m->path, '/');

    return !strcmp(slash ? slash + 1 : m->path, name);
}

/* True: there are more than before. */
static bool
note_needed_by(struct cpprof__brought *b, const struct module *m)
{
    const ElfW(Dyn) * d, *strings = entry(m, DT_STRTAB);
    bool is_more = false;
    size_t i;

    for (d = m->dynamic; strings && d->d_tag != DT_NULL; d++) {
        uintptr_t at = strings->d_un.d_ptr; /* some loaders relocate it */

        at = (at < m->base ? at + m->base : at) + d->d_un.d_val;
        for (i = 0; d->d_tag == DT_NEEDED && i < b->n; i++)
            if (!b->modules[i].is_needed &&
                is_called(&b->modules[i], (const char *)at))
                is_more = b->modules[i].is_needed = true;
    }
    return is_more;
}

static void
take_destructors(const struct module *m)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    ElfW(Dyn) *size = entry(m, DT_FINI_ARRAYSZ);
    /* Its other half may be in the page before. */
    uintptr_t at = size ? (uintptr_t)&size->d_un.d_val & -page : 0;

    if (!size || mprotect((void *)at, page, PROT_READ | PROT_WRITE))
        return;
    size->d_un.d_val = 0;
    if (at >= m->guarded_lo && at < m->guarded_hi)
        mprotect((void *)at, page, PROT_READ);
}

static int
take_all(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct cpprof__brought *b = arg;
    bool is_more;
    size_t i;

    (void)info;
    (void)size;
    dl_iterate_phdr(note_new, b);
    do {
        is_more = false;
        for (i = 0; i < b->n; i++)
            if (b->modules[i].is_needed)
                is_more |= note_needed_by(b, &b->modules[i]);
    } while (is_more);
    for (i = 0; i < b->n; i++)
        if (b->modules[i].is_needed && b->modules[i].dynamic != b->plug_in)
            take_destructors(&b->modules[i]);
    return 1;
}

void
cpprof__brought_end(struct cpprof__brought *b, void *plug_in)
{
    struct link_map *map;

    if (b && plug_in && b->n_before < MODULES_MAX &&
        !dlinfo(plug_in, RTLD_DI_LINKMAP, &map)) {
        b->plug_in = map->l_ld;
        dl_iterate_phdr(take_all, b);
    }
    if (b)
        munmap(b, sizeof *b);
}
