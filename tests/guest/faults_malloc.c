/* SPDX-License-Identifier: MIT */
/*
 * Allocations as system calls: each that the program does not ask for itself
 * makes one that does not exist, and faults_tracer.c, which knows whose it is,
 * answers with ENOMEM where it shall fail. Preloaded in front of all others.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#define ALLOCATION 9999L

extern void *
__libc_malloc(size_t n);
extern void *
__libc_calloc(size_t n, size_t size);
extern void *
__libc_realloc(void *p, size_t n);

static __typeof__(__libc_malloc) *next_malloc = __libc_malloc;
static __typeof__(__libc_calloc) *next_calloc = __libc_calloc;
static __typeof__(__libc_realloc) *next_realloc = __libc_realloc;
static bool is_ready;

__attribute__((constructor)) static void
begin(void)
{
    void *found[] = {dlsym(RTLD_NEXT, "malloc"), dlsym(RTLD_NEXT, "calloc"),
                     dlsym(RTLD_NEXT, "realloc")};

    next_malloc = (__typeof__(next_malloc))found[0];
    next_calloc = (__typeof__(next_calloc))found[1];
    next_realloc = (__typeof__(next_realloc))found[2];
    is_ready = true;
}

static bool
fails(const void *caller)
{
    struct dl_find_object at;
    long result = ALLOCATION;

    if (!is_ready || (_dl_find_object((void *)caller, &at) == 0 &&
                      at.dlfo_link_map && !*at.dlfo_link_map->l_name))
        return false;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(caller)
                     : "rcx", "r11", "memory");
    if (result == -ENOMEM)
        errno = ENOMEM;
    return result == -ENOMEM;
}

void *
malloc(size_t n)
{
    return fails(__builtin_return_address(0)) ? NULL : next_malloc(n);
}

void *
calloc(size_t n, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : next_calloc(n, size);
}

void *
realloc(void *p, size_t n)
{
    return fails(__builtin_return_address(0)) ? NULL : next_realloc(p, n);
}
