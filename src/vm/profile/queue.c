/* SPDX-License-Identifier: MIT */
#include "vm/profile/queue.h"

#include "arch/atomic.h"
#include "own/memory.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

uint32_t cpprof__vm_writer_wake;

bool
cpprof__vm_queue_make(struct cpprof__vm_queue *queue)
{
    queue->n = 0;
    queue->block = cpprof__malloc(CPPROF__VM_QUEUE_BYTES);
    queue->spare = cpprof__malloc(CPPROF__VM_QUEUE_BYTES);
    if (queue->block && queue->spare)
        return true;
    cpprof__vm_queue_free(queue);
    return false;
}

void
cpprof__vm_queue_free(struct cpprof__vm_queue *queue)
{
    cpprof__free(queue->block);
    cpprof__free(queue->spare);
    memset(queue, 0, sizeof *queue);
}

void *
cpprof__vm_queue_add(struct cpprof__vm_queue *queue,
                     enum cpprof__vm_record_type type, size_t n_bytes)
{
    size_t n = (n_bytes + 7) & ~(size_t)7;
    struct cpprof__vm_record *record;

    if (n > CPPROF__VM_QUEUE_BYTES - queue->n)
        return NULL;
    record = (struct cpprof__vm_record *)(queue->block + queue->n);
    record->type = type;
    record->n_bytes = (uint32_t)n;
    queue->n += n;
    return record;
}

const uint8_t *
cpprof__vm_queue_take(struct cpprof__vm_queue *queue, size_t *n_bytes)
{
    uint8_t *full = queue->block;

    *n_bytes = queue->n;
    queue->block = queue->spare;
    queue->spare = full;
    queue->n = 0;
    return full;
}

void
cpprof__vm_wake_writer(void)
{
    if (swap_acq_rel(&cpprof__vm_writer_wake, 1u) == 0)
        syscall(SYS_futex, &cpprof__vm_writer_wake, FUTEX_WAKE, 1, NULL, NULL,
                0);
}
