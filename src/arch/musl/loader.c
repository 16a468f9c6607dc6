/* SPDX-License-Identifier: MIT */
/*
 * In which module an address is, by musl's list of modules: its dladdr() has no
 * entry of that list to give. And where the stack of the process began.
 */
#include "arch/atomic.h"
#include "collect/runtime/next.h"
#include "collect/signal/unwind/unwind.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct search {
    uintptr_t address, base;
    int is_found;
};

static int
look(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct search *search = ctx;
    unsigned i;

    for (i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_LOAD &&
            search->address - (info->dlpi_addr + part->p_vaddr) <
                part->p_memsz) {
            search->base = info->dlpi_addr;
            search->is_found = 1;
        }
    }
    return search->is_found;
}

int
cpprof__musl_dladdr1(const void *address, Dl_info *info, void **map, int kind)
{
    struct search search = {.address = (uintptr_t)address};
    struct link_map *m;

    (void)info;
    (void)kind;
    if (!dl_iterate_phdr(look, &search))
        return 0;
    for (m = _r_debug.r_map; m && m->l_addr != search.base; m = m->l_next)
        continue;
    *map = m;
    return m != NULL;
}

/* The 28th field of /proc/PID/stat, behind a name in brackets, is where the
 * kernel put the arguments. 0: it cannot be read. */
#define FIELDS_BEHIND_NAME 26

static uintptr_t
first_sp_of_kernel(void)
{
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n;
    char text[1024];
    const char *at;
    unsigned i;

    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    at = strrchr(text, ')');
    for (i = 0; at && i < FIELDS_BEHIND_NAME; i++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

/* At the start libc's variable leads to where the kernel put the environment:
 * in front of it are 0, the arguments from the last one on, and their number,
 * at which the stack pointer was. */
static uintptr_t
first_sp_by_environment(void)
{
    const uintptr_t *end = (const uintptr_t *)environ - 1;
    uintptr_t n = 0;

    if (*end)
        return 0;
    while (*(end - 1 - n) != n)
        n++;
    return (uintptr_t)(end - 1 - n);
}

/* Before the library's first steps, which may change a variable; later the
 * program may have changed it. */
__attribute__((constructor(101))) static void
note_first_sp(void)
{
    store_relaxed(&cpprof__outermost.main_sp, cpprof__own_is_late()
                                                  ? first_sp_of_kernel()
                                                  : first_sp_by_environment());
}
