/* SPDX-License-Identifier: MIT */
/*
 * The table of modules: two buffers and a version. The version's low bit says
 * which buffer is current. The writer fills the other one, then counts the
 * version up; a reader that finds another version after its search than before
 * may have read a buffer that was being refilled, and searches again. Buffers
 * that became too small are kept for ever, as a reader may still be in them;
 * they double, so that all of them together are less than the current one.
 *
 * Nothing here locks, and a thread that dies or forks inside a search leaves
 * nothing behind.
 */
#include "collect/signal/module.h"
#include "arch/atomic.h"

#include <dlfcn.h>
#include <sys/mman.h>

/* A search meets two new tables only if modules are loaded while it runs. */
#define MAX_TRIES 4

/* Three words of struct cpprof__cfi, read and written as atomics. */
struct entry {
    uintptr_t lo;
    uintptr_t hi;
    uintptr_t hdr;
};

struct buffer {
    struct entry *entries;
    size_t n;
    size_t capacity; /* the writer's */
};

static struct buffer buffers[2];
static uint64_t version;

static uint32_t table_wanted; /* set by tests only */

/* glibc 2.35; where it is missing the address is NULL. */
#ifdef DLFO_STRUCT_HAS_EH_DBASE
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

static bool
has_find_object(void)
{
    return &_dl_find_object != NULL;
}

static bool
ask_libc(uintptr_t pc, struct cpprof__cfi *cfi)
{
    struct dl_find_object found;

    if (_dl_find_object((void *)pc, &found) != 0)
        return false;
    cfi->lo = found.dlfo_map_start;
    cfi->hi = found.dlfo_map_end;
    cfi->hdr = found.dlfo_eh_frame;
    return true;
}
#else
static bool
has_find_object(void)
{
    return false;
}

static bool
ask_libc(uintptr_t pc, struct cpprof__cfi *cfi)
{
    return false;
}
#endif

void
cpprof__module_use_table(bool use)
{
    store_relaxed(&table_wanted, use);
}

bool
cpprof__module_needs_table(void)
{
    return !has_find_object() || load_relaxed(&table_wanted);
}

/* The last entry that begins at pc or before, n: there is none. */
static size_t
search(const struct entry *entries, size_t n, uintptr_t pc)
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
look_up(const struct buffer *b, uintptr_t pc, struct cpprof__cfi *cfi)
{
    size_t n = load_acquire(&b->n); /* before entries: see make_room() */
    const struct entry *entries = load_acquire(&b->entries);
    size_t i = search(entries, n, pc);

    if (i == n)
        return false;
    cfi->lo = (const uint8_t *)load_acquire(&entries[i].lo);
    cfi->hi = (const uint8_t *)load_acquire(&entries[i].hi);
    cfi->hdr = (const uint8_t *)load_acquire(&entries[i].hdr);
    return pc < (uintptr_t)cfi->hi;
}

bool
cpprof__module_find(uintptr_t pc, struct cpprof__cfi *cfi)
{
    unsigned i;

    if (!cpprof__module_needs_table())
        return ask_libc(pc, cfi);
    for (i = 0; i < MAX_TRIES; i++) {
        uint64_t v = load_acquire(&version);
        bool found = look_up(&buffers[v & 1], pc, cfi);

        if (load_relaxed(&version) == v)
            return found;
    }
    return false;
}

/* Room for n entries. A reader may still be in this buffer: n goes to 0 before
 * the array changes, and is read before it, so that a larger n is never taken
 * together with the smaller array. */
static bool
make_room(struct buffer *b, size_t n)
{
    size_t capacity = b->capacity > 0 ? b->capacity : 128;
    void *memory;

    if (n <= b->capacity)
        return true;
    while (capacity < n)
        capacity *= 2;
    memory = mmap(NULL, capacity * sizeof(struct entry), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    store_release(&b->n, 0);
    store_release(&b->entries, memory);
    b->capacity = capacity;
    return true;
}

bool
cpprof__module_publish(const struct cpprof__cfi *modules, size_t n)
{
    struct buffer *b = &buffers[(load_relaxed(&version) + 1) & 1];
    size_t i;

    if (!make_room(b, n))
        return false;
    for (i = 0; i < n; i++) {
        store_release(&b->entries[i].lo, (uintptr_t)modules[i].lo);
        store_release(&b->entries[i].hi, (uintptr_t)modules[i].hi);
        store_release(&b->entries[i].hdr, (uintptr_t)modules[i].hdr);
    }
    store_release(&b->n, n);
    store_release(&version, load_relaxed(&version) + 1);
    return true;
}
