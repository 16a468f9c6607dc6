/* SPDX-License-Identifier: MIT */
/* guest: 5. A program that makes its own tables of addresses read-only, and all
 * its variables for a while, as hardened ones do; it opens them to write. */
#include "host.h"
#include <link.h>
#include <sys/mman.h>

static volatile int written __attribute__((aligned(4096)));
static char behind[4096] __attribute__((aligned(4096), used));

static int
close_tables(struct dl_phdr_info *info, size_t n, void *arg)
{
    for (int i = 0; i < info->dlpi_phnum && !info->dlpi_name[0]; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC ||
            info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
            uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

            mprotect((void *)(at & ~4095ul), 4096, PROT_READ);
        }
    return 0;
}

static void *
churn(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        EXPECT(mprotect((void *)&written, 4096, PROT_READ) == 0, "closed");
        EXPECT(mprotect((void *)&written, 4096, PROT_READ | PROT_WRITE) == 0,
               "opened");
        written = i;
    }
    return arg;
}

int
main(void)
{
    pthread_t thread;

    /* What is called first later is bound before. */
    thread = start_busy(1);
    pthread_join(thread, NULL);
    busy_ms(1);
    sleep_ms(1);
    EXPECT(written == 0, "what a variable");
    printf("begin\n");
    pthread_create(&thread, NULL, churn, NULL);
    pthread_join(thread, NULL);
    dl_iterate_phdr(close_tables, NULL);
    for (int i = 0; i < 50; i++) {
        pthread_create(&thread, NULL, busy_thread, (void *)2);
        pthread_join(thread, NULL);
        free(malloc(5000));
    }
    printf("end\n");
    return host_wrong;
}
