/* SPDX-License-Identifier: MIT */
/*
 * The queue from the interpreters to the writer. Records go into a block of
 * memory of fixed size, which the writer exchanges for an empty one. If the
 * writer is slow the block becomes full, and further records are lost.
 *
 * A function comes before its locations, and a location before its samples.
 * Their numbers count from 0 since the last `forget`.
 */
#ifndef VM_QUEUE_H
#define VM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of each of the two blocks, touched as far as they are used. A sample is
 * some 500 at a depth of 128: 2 000 of them, while the writer is busy. More
 * takes more memory, less loses samples to shorter pauses of the writer.
 */
#define CPPROF__VM_QUEUE_BYTES (1024u * 1024)

enum cpprof__vm_record_type {
    CPPROF__VM_RECORD_FUNCTION,
    CPPROF__VM_RECORD_LOCATION,
    CPPROF__VM_RECORD_SAMPLE,
    CPPROF__VM_RECORD_FORGET, /* all numbers from here on are new */
};

/* Each begins like this, at a multiple of 8. */
struct cpprof__vm_record {
    uint32_t type;
    uint32_t n_bytes; /* with this, rounded up to 8 */
};

/* Followed by name, system name and file, each terminated. */
struct cpprof__vm_record_function {
    struct cpprof__vm_record record;
    const char *mapping;
    int64_t start_line;
    uint32_t n_name, n_system_name, n_file; /* with the terminator; 0: none */
};

struct cpprof__vm_record_location {
    struct cpprof__vm_record record;
    uint32_t function;
    int32_t line;
};

/* Followed by the numbers of the locations, uint32_t, leaf first, and by the
 * encoded labels (collect/labels/labels.h) with a terminator. */
struct cpprof__vm_record_sample {
    struct cpprof__vm_record record;
    uint64_t value_ns;
    uint32_t n_frames;
    uint32_t n_labels; /* bytes */
    uint32_t is_truncated;
    uint32_t zero;
};

struct cpprof__vm_queue {
    uint8_t *block;
    uint8_t *spare; /* the writer's */
    size_t n;       /* bytes in block */
};

/* False: no memory. */
bool
cpprof__vm_queue_make(struct cpprof__vm_queue *queue);
void
cpprof__vm_queue_free(struct cpprof__vm_queue *queue);

/* Room for a record of n bytes, its head filled; NULL: the block is full. */
void *
cpprof__vm_queue_add(struct cpprof__vm_queue *queue,
                     enum cpprof__vm_record_type type, size_t n_bytes);

/* Take the block of records. It belongs to the caller until the next call. */
const uint8_t *
cpprof__vm_queue_take(struct cpprof__vm_queue *queue, size_t *n_bytes);

/* A futex of the writer: 1, there is something to do. */
extern uint32_t cpprof__vm_writer_wake;

/* Have the writer empty what there is. Safety: AS. */
void
cpprof__vm_wake_writer(void);

#endif
