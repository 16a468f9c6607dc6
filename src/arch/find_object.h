/* SPDX-License-Identifier: MIT */
/*
 * Which of the loaded objects an address is in: glibc's _dl_find_object, which
 * answers without a lock and came with 2.35. A build with older headers uses
 * it, too, where the libc at run time has it. Where that has not, the loader is
 * asked under its lock.
 *
 * Source: the GNU C library's manual, "Dynamic Linker Introspection".
 */
#ifndef ARCH_FIND_OBJECT_H
#define ARCH_FIND_OBJECT_H

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef DLFO_STRUCT_HAS_EH_DBASE
#define DLFO_STRUCT_HAS_EH_DBASE 0 /* nor has it on the processors of arch/ */
struct dl_find_object {
    __extension__ unsigned long long dlfo_flags;
    void *dlfo_map_start;
    void *dlfo_map_end;
    struct link_map *dlfo_link_map;
    void *dlfo_eh_frame;
    __extension__ unsigned long long reserved[7];
};
int
_dl_find_object(void *address, struct dl_find_object *result);
#endif
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

static inline bool
cpprof__has_find_object(void)
{
    return &_dl_find_object != NULL;
}

/* The range of the object of dlfo_link_map. */
static inline int
cpprof__find_range(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct dl_find_object *found = (struct dl_find_object *)ctx;
    uintptr_t lo = UINTPTR_MAX, hi = 0;
    unsigned i;

    if (info->dlpi_addr != found->dlfo_link_map->l_addr)
        return 0;
    for (i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type != PT_LOAD)
            continue;
        if (part->p_vaddr < lo)
            lo = part->p_vaddr;
        if (part->p_vaddr + part->p_memsz > hi)
            hi = part->p_vaddr + part->p_memsz;
    }
    found->dlfo_map_start = (void *)(info->dlpi_addr + lo);
    found->dlfo_map_end = (void *)(info->dlpi_addr + hi);
    return hi > lo;
}

/* False: in none. Only dlfo_map_start, _end and _link_map are set. Safety: AS;
 * MT where there is no _dl_find_object. */
static inline bool
cpprof__find_object(const void *address, struct dl_find_object *found)
{
    struct link_map *map = NULL;
    Dl_info info;

    if (cpprof__has_find_object())
        return !_dl_find_object((void *)(uintptr_t)address, found);
    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return false;
    found->dlfo_link_map = map;
    return dl_iterate_phdr(cpprof__find_range, found) == 1;
}

#endif
