/* SPDX-License-Identifier: MIT */
/* guest: 4. Waits of io_uring end by what they wait for and not by a signal of
 * ours; where there is none the host says so alone, too. A tick on the way to
 * sleep ends one in a thousand on a busy machine, so one of the 60 may. */
#include "host.h"
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

int
main(void)
{
    struct io_uring_params p = {0};
    int fd = (int)syscall(SYS_io_uring_setup, 8, &p), i, n_early = 0;
    struct __kernel_timespec when = {0, 10000000};
    struct io_uring_sqe *entries;
    struct io_uring_cqe *done;
    unsigned *tail, *head, *ctail, *array;
    char *ring;

    if (fd < 0) {
        puts("no io_uring");
        return 0;
    }
    ring = mmap(NULL, p.sq_off.array + p.sq_entries * 4 + 65536,
                PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
    entries = mmap(NULL, p.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE,
                   MAP_SHARED, fd, IORING_OFF_SQES);
    if (!(p.features & IORING_FEAT_SINGLE_MMAP) || ring == MAP_FAILED ||
        entries == MAP_FAILED) {
        puts("an older io_uring");
        return 0;
    }
    tail = (unsigned *)(ring + p.sq_off.tail);
    array = (unsigned *)(ring + p.sq_off.array);
    head = (unsigned *)(ring + p.cq_off.head);
    ctail = (unsigned *)(ring + p.cq_off.tail);
    done = (struct io_uring_cqe *)(ring + p.cq_off.cqes);
    for (i = 0; i < 60; i++) {
        unsigned at = *tail & 7, seen = *head;

        memset(&entries[at], 0, sizeof entries[at]);
        entries[at].opcode = IORING_OP_TIMEOUT;
        entries[at].addr = (uintptr_t)&when;
        entries[at].len = 1;
        entries[at].user_data = (unsigned)i;
        array[at] = at;
        __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
        EXPECT(syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS,
                       NULL, 0) == 1,
               "enter: %s", strerror(errno));
        while (__atomic_load_n(ctail, __ATOMIC_ACQUIRE) != seen + 1) {
            EXPECT(++n_early < 2, "it came back with nothing, twice");
            syscall(SYS_io_uring_enter, fd, 0, 1, IORING_ENTER_GETEVENTS, NULL,
                    0);
        }
        EXPECT(done[seen & (p.cq_entries - 1)].res == -ETIME, "res %d",
               done[seen & (p.cq_entries - 1)].res);
        __atomic_store_n(head, seen + 1, __ATOMIC_RELEASE);
        busy_ms(3);
    }
    return host_wrong;
}
