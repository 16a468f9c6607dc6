/* SPDX-License-Identifier: MIT */
/*
 * Allocations as system calls: each that the program does not ask for itself
 * makes one that does not exist, and faults_tracer.c, which knows whose it is,
 * answers with ENOMEM where it shall fail. Preloaded in front of all others.
 *
 * libcpprof has memory of its own (src/own/memory.h). Its functions are not
 * exported, so jumps to those of here are written over them, before any is
 * called; FAULTS_OWN says where they are.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

/* jmp *0(%rip); the address */
static void
lead(uintptr_t from, const void *to)
{
    static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
    uintptr_t page = from & ~(uintptr_t)4095;

    mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy((void *)from, jump, sizeof jump);
    memcpy((void *)(from + sizeof jump), &to, sizeof to);
    mprotect((void *)page, 8192, PROT_READ | PROT_EXEC);
}

/* NAME=ADDRESS of each, with a space behind it. */
static int
lead_all(struct dl_phdr_info *info, size_t n, void *text)
{
    static const struct {
        const char *name;
        const void *here;
    } functions[] = {
        {"malloc", malloc}, {"calloc", calloc}, {"realloc", realloc},
        {"free", free},     {"strdup", strdup}, {"strndup", strndup},
    };
    unsigned i;

    (void)n;
    if (!strstr(info->dlpi_name, "/libcpprof.so"))
        return 0;
    for (i = 0; i < sizeof functions / sizeof *functions; i++) {
        char name[32];
        const char *at;

        snprintf(name, sizeof name, "cpprof__%s=", functions[i].name);
        at = strstr(text, name);
        if (!at)
            abort();
        lead(info->dlpi_addr + strtoul(at + strlen(name), NULL, 16),
             functions[i].here);
    }
    return 1;
}

__attribute__((constructor)) static void
begin(void)
{
    char *own = getenv("FAULTS_OWN");
    void *found[] = {dlsym(RTLD_NEXT, "malloc"), dlsym(RTLD_NEXT, "calloc"),
                     dlsym(RTLD_NEXT, "realloc")};

    next_malloc = (__typeof__(next_malloc))found[0];
    next_calloc = (__typeof__(next_calloc))found[1];
    next_realloc = (__typeof__(next_realloc))found[2];
    is_ready = true;
    if (own)
        dl_iterate_phdr(lead_all, own);
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

char *
strndup(const char *text, size_t n)
{
    size_t length = strnlen(text, n);
    char *copy =
        fails(__builtin_return_address(0)) ? NULL : next_malloc(length + 1);

    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *
strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = fails(__builtin_return_address(0)) ? NULL : next_malloc(n);

    return copy ? memcpy(copy, text, n) : NULL;
}
