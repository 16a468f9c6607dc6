/* SPDX-License-Identifier: MIT */
/*
 * Does what the unwinder needs outside handlers: notice that modules came or
 * went, and list them, where libc cannot be asked inside a handler.
 */
#include "arch/atomic.h"
#include "collect/signal/tables/reserve.h"
#include "collect/signal/unwind/module.h"
#include "collect/signal/unwind/unwind.h"
#include "own/memory.h"
#include "own/sort.h"

#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

struct list {
    struct cpprof__cfi *modules;
    size_t n;
    size_t capacity;
    bool failed;
    uint64_t changes; /* modules loaded and unloaded, ever */
};

/* Changes at the last refresh. */
static uint64_t last_changes;

/* The process that refreshes now, or 0. A child that was forked meanwhile
 * finds its parent's id here and takes over. */
static int32_t refresher;

static void
add(struct list *l, const struct cpprof__cfi *module)
{
    if (l->n == l->capacity) {
        size_t capacity = l->capacity > 0 ? 2 * l->capacity : 64;
        void *p = cpprof__realloc(l->modules, capacity * sizeof *l->modules);

        l->failed |= p == NULL;
        if (p == NULL)
            return;
        l->modules = p;
        l->capacity = capacity;
    }
    l->modules[l->n++] = *module;
}

/* The range of a module's segments, and its .eh_frame_hdr. */
static struct cpprof__cfi
describe(uintptr_t base, const ElfW(Phdr) * headers, size_t n)
{
    uintptr_t lo = UINTPTR_MAX;
    uintptr_t hi = 0;
    struct cpprof__cfi module = {.hdr = NULL};
    size_t i;

    for (i = 0; i < n; i++) {
        uintptr_t start = base + headers[i].p_vaddr;
        uintptr_t limit = start + headers[i].p_memsz;

        if (headers[i].p_type == PT_GNU_EH_FRAME)
            module.hdr = (const uint8_t *)start;
        if (headers[i].p_type != PT_LOAD)
            continue;
        lo = start < lo ? start : lo;
        hi = limit > hi ? limit : hi;
    }
    module.lo = (const uint8_t *)(lo < hi ? lo : hi);
    module.hi = (const uint8_t *)hi;
    return module;
}

static void
count_changes(struct list *l, const struct dl_phdr_info *info, size_t n_bytes)
{
    const size_t need =
        offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs;

    if (n_bytes >= need)
        l->changes = info->dlpi_adds + info->dlpi_subs;
}

static int
on_first_module(struct dl_phdr_info *info, size_t n_bytes, void *list)
{
    count_changes(list, info, n_bytes);
    return 1;
}

static int
on_module(struct dl_phdr_info *info, size_t n_bytes, void *list)
{
    struct list *l = list;
    struct cpprof__cfi module =
        describe(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum);

    count_changes(l, info, n_bytes);
    if (module.lo < module.hi)
        add(l, &module);
    return 0;
}

static bool
lists(const struct list *l, uintptr_t at)
{
    size_t i;

    for (i = 0; i < l->n; i++) {
        if ((uintptr_t)l->modules[i].lo <= at &&
            at < (uintptr_t)l->modules[i].hi)
            return true;
    }
    return false;
}

/* The kernel's own module, which not every libc lists. */
static void
add_vdso(struct list *l)
{
    uintptr_t at = getauxval(AT_SYSINFO_EHDR);
    const ElfW(Ehdr) *elf = (const ElfW(Ehdr) *)at;
    const ElfW(Phdr) * headers;
    struct cpprof__cfi module;
    uintptr_t base = at;
    size_t i;

    if (at == 0 || lists(l, at))
        return;
    headers = (const ElfW(Phdr) *)(at + elf->e_phoff);
    for (i = 0; i < elf->e_phnum; i++) {
        if (headers[i].p_type == PT_LOAD) {
            base = at - headers[i].p_vaddr + headers[i].p_offset;
            break;
        }
    }
    module = describe(base, headers, elf->e_phnum);
    if (module.lo < module.hi)
        add(l, &module);
}

static int
by_address(const void *a, const void *b)
{
    const struct cpprof__cfi *x = a;
    const struct cpprof__cfi *y = b;

    return (x->lo > y->lo) - (x->lo < y->lo);
}

/* Room for n entries in a buffer that late readers may still be in. */
static bool
make_room(struct cpprof__module_buffer *b, size_t n)
{
    size_t capacity = b->capacity > 0 ? b->capacity : 128, bytes;
    void *memory;

    if (n <= b->capacity)
        return true;
    while (capacity < n)
        capacity *= 2;
    bytes = capacity * sizeof *b->entries;
    memory = mmap((void *)cpprof__table_place(bytes), bytes,
                  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    store_release(&b->n, 0);
    store_release(&b->entries, memory);
    b->capacity = capacity;
    return true;
}

/* Make the sorted list l the table. If there is no memory the old table stays.
 */
static void
publish(const struct list *l)
{
    struct cpprof__module_table *t = &cpprof__module_table;
    uint64_t version = load_relaxed(&t->version) + 1;
    struct cpprof__module_buffer *b = &t->buffers[version & 1];
    size_t i;

    if (!make_room(b, l->n))
        return;
    for (i = 0; i < l->n; i++) {
        store_release(&b->entries[i].lo, (uintptr_t)l->modules[i].lo);
        store_release(&b->entries[i].hi, (uintptr_t)l->modules[i].hi);
        store_release(&b->entries[i].hdr, (uintptr_t)l->modules[i].hdr);
    }
    store_release(&b->n, l->n);
    store_release(&t->version, version);
}

static void
list_and_publish(void)
{
    struct list l = {0};

    dl_iterate_phdr(on_module, &l);
    add_vdso(&l);
    cpprof__sort(l.modules, l.n, sizeof *l.modules, by_address);
    if (!l.failed)
        publish(&l);
    cpprof__free(l.modules);
}

static bool
begin(void)
{
    int32_t me = (int32_t)getpid();
    int32_t holder = 0;

    if (cas_acq_rel(&refresher, &holder, me))
        return true;
    return holder != me && cas_acq_rel(&refresher, &holder, me);
}

void
cpprof__unwind_refresh_modules(void)
{
    struct list l = {0};

    if (!begin())
        return;
    dl_iterate_phdr(on_first_module, &l);
    if (cpprof__module_needs_table())
        list_and_publish();
    if (l.changes != last_changes)
        cpprof__unwind_forget();
    last_changes = l.changes;
    store_release(&refresher, 0);
}
