/* SPDX-License-Identifier: MIT */
/* Source: futex(2), FUTEX_CMP_REQUEUE and FUTEX_WAKE_OP: both read or write a
 * word in the kernel, and neither ever waits. */
#include "collect/entries/pages.h"

#include "arch/regs.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define N_KNOWN (sizeof((struct cpprof__pages *)0)->known / sizeof(uintptr_t))

void
cpprof__pages_begin(struct cpprof__pages *pages)
{
    memset(pages, 0, sizeof *pages);
    pages->bits = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
}

/* Nobody is woken, and nobody is moved. */
static bool
is_readable(uintptr_t at)
{
    uint32_t other = 0;
    long failed = cpprof__syscall(SYS_futex, (long)(at & ~(uintptr_t)3),
                                  FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, 0, 0,
                                  (long)&other, 0);

    return failed >= 0 || failed == -EAGAIN;
}

bool
cpprof__page_is_writable(uintptr_t at)
{
    uint32_t other = 0;

    return cpprof__syscall(SYS_futex, (long)&other,
                           FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0,
                           (long)(at & ~(uintptr_t)3),
                           FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, 0)) >= 0;
}

static bool
read_page(struct cpprof__pages *pages, uintptr_t page)
{
    uintptr_t *known = &pages->known[page / (pages->bits + 1) % N_KNOWN];

    if (*known != page && is_readable(page))
        *known = page;
    return *known == page;
}

bool
cpprof__pages_read(struct cpprof__pages *pages, const void *from, size_t n)
{
    uintptr_t page = (uintptr_t)from & ~pages->bits;
    uintptr_t last = ((uintptr_t)from + n - 1) & ~pages->bits;

    for (; page < last; page += pages->bits + 1)
        if (!read_page(pages, page))
            return false;
    return read_page(pages, last);
}

bool
cpprof__pages_read_text(struct cpprof__pages *pages, const char *text)
{
    if (!cpprof__pages_read(pages, text, 1))
        return false;
    for (; *text; text++)
        if (!(((uintptr_t)text + 1) & pages->bits) &&
            !cpprof__pages_read(pages, text + 1, 1))
            return false;
    return true;
}
