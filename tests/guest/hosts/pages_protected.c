/* SPDX-License-Identifier: MIT */
/* guest: 5. The program protects its own data, with entries by which it calls
 * others, and opens what the loader has protected; later it changes that. */
#include "host.h"
#include <link.h>
#include <sys/mman.h>

static uintptr_t page, relro_start, relro_end;

/* The program comes first. */
static int
look(struct dl_phdr_info *info, size_t size, void *unused)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + p->p_vaddr;

        if (p->p_type == PT_GNU_RELRO) {
            relro_start = start & -page;
            relro_end = (start + p->p_memsz) & -page;
        }
    }
    return 1;
}

static void
protect(uintptr_t start, uintptr_t end, int protection)
{
    if (start < end)
        EXPECT(mprotect((void *)start, end - start, protection) == 0,
               "mprotect: %s", strerror(errno));
}

/* Pointers that the loader fills in, on pages of their own. */
__attribute__((aligned(65536), used)) static struct {
    void *(*allocate)(size_t n);
    void (*release)(void *address);
    char rest[65536 - 16];
} volatile calls = {malloc, free}, hidden = {malloc, free};

/* Before any library can do anything. */
static void
begin(void)
{
    page = (uintptr_t)sysconf(_SC_PAGESIZE);
    dl_iterate_phdr(look, NULL);
    protect((uintptr_t)&calls, (uintptr_t)(&calls + 1), PROT_READ);
    protect((uintptr_t)&hidden, (uintptr_t)(&hidden + 1), PROT_NONE);
    protect(relro_start, relro_end, PROT_READ | PROT_WRITE);
}

typedef void
first_fn(void);
__attribute__((section(".preinit_array"), used)) static first_fn *const first =
    begin;

int
main(void)
{
    volatile char *word = (volatile char *)relro_start;

    for (int i = 0; i < 10; i++) {
        calls.release(calls.allocate(1000));
        busy_ms(10);
    }
    if (relro_start < relro_end) /* it is still open */
        *word = *word;
    protect(relro_start, relro_end, PROT_READ);
    protect((uintptr_t)&hidden, (uintptr_t)(&hidden + 1),
            PROT_READ | PROT_WRITE);
    hidden.release(hidden.allocate(1000));
    return host_wrong;
}
