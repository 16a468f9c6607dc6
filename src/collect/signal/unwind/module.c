/* SPDX-License-Identifier: MIT */
/*
 * Finds the call-frame information of the module that contains an address.
 *
 * glibc's _dl_find_object answers without a lock. Where it is missing, a table
 * written by collect/runtime/modules.c does. module.h has its protocol; a
 * reader searches again if the version has changed meanwhile, at most MAX_TRIES
 * times.
 */
#include "collect/signal/unwind/module.h"
#include "arch/atomic.h"
#include "arch/find_object.h"
#include "arch/place.h"

/* A search meets two new tables only if modules are loaded while it runs. */
#define MAX_TRIES 4

struct cpprof__module_table cpprof__module_table;

static uint32_t table_wanted CPPROF__AT_START;

static bool
ask_libc(uintptr_t pc, struct cpprof__cfi *cfi)
{
    struct dl_find_object found;

    if (_dl_find_object((void *)pc, &found) != 0)
        return false;
    cfi->lo = found.dlfo_map_start;
    cfi->hi = found.dlfo_map_end;
    cfi->hdr = found.dlfo_eh_frame;
    cfi->code_lo = (uintptr_t)cfi->lo;
    cfi->code_hi = (uintptr_t)cfi->hi;
    /* Parts of a program that lie apart, as it is linked for large pages, are
     * told one by one. */
    if (cfi->hdr && (cfi->hdr < cfi->lo || cfi->hdr >= cfi->hi) &&
        _dl_find_object((void *)(uintptr_t)cfi->hdr, &found) == 0) {
        cfi->lo = found.dlfo_map_start;
        cfi->hi = found.dlfo_map_end;
    }
    return true;
}

void
cpprof__module_use_table(bool use)
{
    store_relaxed(&table_wanted, use);
}

CPPROF__FIRST_STEP bool
cpprof__module_needs_table(void)
{
    return !cpprof__has_find_object() || load_relaxed(&table_wanted);
}

/* The last entry that begins at pc or before, n: there is none. */
static size_t
search(const struct cpprof__module_entry *entries, size_t n, uintptr_t pc)
{
    size_t lo = 0;
    size_t hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        /* Acquire, as the version is read again after it. */
        if (load_acquire(&entries[mid].lo) <= pc)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 ? lo - 1 : n;
}

/* One search; what it found is to be used only if the version stayed. */
static bool
look_up(const struct cpprof__module_buffer *b, uintptr_t pc,
        struct cpprof__cfi *cfi)
{
    size_t n = load_acquire(&b->n); /* before entries: see module.h */
    const struct cpprof__module_entry *entries = load_acquire(&b->entries);
    size_t i = search(entries, n, pc);

    if (i == n)
        return false;
    cfi->lo = (const uint8_t *)load_acquire(&entries[i].lo);
    cfi->hi = (const uint8_t *)load_acquire(&entries[i].hi);
    cfi->hdr = (const uint8_t *)load_acquire(&entries[i].hdr);
    cfi->code_lo = (uintptr_t)cfi->lo;
    cfi->code_hi = (uintptr_t)cfi->hi;
    return pc < (uintptr_t)cfi->hi;
}

bool
cpprof__module_find(uintptr_t pc, struct cpprof__cfi *cfi)
{
    unsigned i;

    if (!cpprof__module_needs_table())
        return ask_libc(pc, cfi);
    for (i = 0; i < MAX_TRIES; i++) {
        const struct cpprof__module_table *t = &cpprof__module_table;
        uint64_t v = load_acquire(&t->version);
        bool found = look_up(&t->buffers[v & 1], pc, cfi);

        if (load_relaxed(&t->version) == v)
            return found;
    }
    return false;
}
