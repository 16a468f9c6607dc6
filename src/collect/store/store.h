/* SPDX-License-Identifier: MIT */
/*
 * Samples, counted: (stack, labels) -> count, and the mappings that their
 * addresses lie in. Stacks are the leaves of a tree that grows from the root
 * frame, so that stacks share what they have in common: 16 bytes for each frame
 * that no earlier stack had.
 *
 * A store is one block of memory of a fixed layout without pointers, anonymous
 * or a shared file. In a file it is readable by another process at any moment:
 * entries are filled before the count that covers them is raised. The two hash
 * indexes are private to the writer; a reader rebuilds them if it wants to add.
 *
 * Bounds (tunables). A larger bound lets one store hold more, and costs memory
 * only when it is used. All together are 7.2 MiB, so that a full store and its
 * ring stay under the 8 MiB that docs/cpu.md states. When one bound is reached
 * the store is full: the caller writes it and goes on with an empty one.
 */
#ifndef COLLECT_STORE_H
#define COLLECT_STORE_H

#include "object/symbolizer.h"
#include <cpprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPPROF__STORE_NODES      (1u << 18)
#define CPPROF__STORE_SAMPLES    (1u << 15)
#define CPPROF__STORE_MAPPINGS   2048u
#define CPPROF__STORE_LABEL_SETS 4096u
#define CPPROF__STORE_TEXT       (256u * 1024)

/* In place of the number of a mapping: none lists the address. */
#define CPPROF__NO_MAPPING UINT32_MAX

/* The same of code that was made at run time, with how many bytes the file had
 * that names such code: its lines up to there tell what the code was when it
 * ran. The largest numbers mean other things to others. */
#define CPPROF__MADE_CODE      0x80000000u
#define CPPROF__MADE_CODE_LAST 0xfffffff0u

static inline uint32_t
cpprof__made_code(uint64_t n_file_bytes)
{
    return n_file_bytes <= CPPROF__MADE_CODE_LAST - CPPROF__MADE_CODE
               ? CPPROF__MADE_CODE + (uint32_t)n_file_bytes
               : CPPROF__NO_MAPPING;
}

static inline bool
cpprof__is_made_code(uint32_t mapping)
{
    return mapping >= CPPROF__MADE_CODE && mapping <= CPPROF__MADE_CODE_LAST;
}

/* One frame under its caller. Node 0 is the root, above all stacks. */
struct cpprof__store_node {
    uint64_t pc;
    uint32_t parent;  /* the caller; lower than this node's own number */
    uint32_t mapping; /* index, CPPROF__NO_MAPPING or a made code */
};

struct cpprof__store_sample {
    uint32_t node;   /* the leaf */
    uint32_t labels; /* label set + 1, or 0 */
    uint64_t count;
};

/* An executable mapping that was there at some time. */
struct cpprof__store_mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
    uint64_t inode;
    uint32_t path;     /* offset of terminated text */
    uint32_t build_id; /* offset of terminated hex digits */
    uint32_t is_gone;  /* gone: its addresses are another mapping's now, or
                          nobody's */
    uint32_t pad;
};

/* A label set as text: see labels.h. */
struct cpprof__store_labels {
    uint64_t identity; /* address of the set in the process, or 0 */
    uint32_t text;     /* offset of n_bytes encoded bytes */
    uint32_t n_bytes;
};

struct cpprof__store_head {
    char magic[8];
    uint32_t n_nodes;
    uint32_t n_samples;
    uint32_t n_mappings;
    uint32_t n_label_sets;
    uint32_t n_text;
    uint32_t pad;
    uint64_t total; /* sum of all counts */
};

/* A handle on the block: pointers into it, and the writer's indexes. */
struct cpprof__store {
    struct cpprof__store_head *head;
    struct cpprof__store_mapping *mappings;
    struct cpprof__store_labels *label_sets;
    char *text;
    struct cpprof__store_sample *samples;
    struct cpprof__store_node *nodes;
    uint32_t *sample_index; /* number + 1; 0: empty; open addressing */
    uint32_t *node_index;
    uint32_t sample_mask; /* capacity in use - 1; doubles as it fills */
    uint32_t node_mask;
    size_t ready[8];  /* bytes of each part that may be touched */
    const char *path; /* of the file, or NULL */
    bool is_reserved; /* what is not in the file is address space only */
};

/* Size of the block, most of which is never touched. */
size_t
cpprof__store_bytes(void);

/* Bytes of the block that are in its file, for other processes. */
size_t
cpprof__store_shared_bytes(void);

/* Make a store in a zeroed block of memory. */
bool
cpprof__store_make(struct cpprof__store *store, void *block);

/*
 * The same in a block that is address space only, which becomes memory as the
 * store grows: what is private counts under RLIMIT_DATA once it is writable,
 * and the program may have little. Where there is no more, the store is full.
 *
 * path is the file that the front of the block is a shared mapping of, or NULL;
 * it is needed because a hole in a file must be filled before it is touched
 * (SIGBUS otherwise). The string must outlive the store.
 */
bool
cpprof__store_make_reserved(struct cpprof__store *store, void *block,
                            const char *path);

/*
 * Open a block that another process wrote, in a private, writable copy. Its
 * counts are cut to what can be true. False: it is no store.
 */
bool
cpprof__store_open(struct cpprof__store *store, void *block);

/* Rebuild the indexes of an opened store, so that samples can be added. */
bool
cpprof__store_index(struct cpprof__store *store);

/*
 * Count a sample. pcs are leaf first and mappings[i] belongs to pcs[i]. False
 * when the store is full; nothing was counted then.
 */
bool
cpprof__store_add(struct cpprof__store *store, const uint64_t *pcs,
                  const uint32_t *mappings, size_t n, uint32_t labels,
                  uint64_t count);

/* Append n bytes and a terminator to the text: its offset, or 0 when full. */
uint32_t
cpprof__store_add_text(struct cpprof__store *store, const char *text, size_t n);

/* Index of the new mapping, or CPPROF__NO_MAPPING when full. */
uint32_t
cpprof__store_add_mapping(struct cpprof__store *store,
                          const struct cpprof__store_mapping *mapping);

/* A mapping as symbolizers and builders take it. Its texts are the store's. */
struct cpprof__symbolizer_mapping
cpprof__store_mapping_at(const struct cpprof__store *store, size_t index);

/* The mapping of pc among the first n, without those that are gone, or
 * CPPROF__NO_MAPPING. It tries them all, so it is for few addresses. */
uint32_t
cpprof__store_find_mapping(const struct cpprof__store *store, uint64_t pc,
                           size_t n);

/* Number + 1 of a new set of encoded bytes, without an identity as yet; 0 when
 * full. */
uint32_t
cpprof__store_add_labels(struct cpprof__store *store, const void *encoded,
                         size_t n);

/* Text at an offset, "" for anything that is not one. */
const char *
cpprof__store_text(const struct cpprof__store *store, uint32_t offset);

#endif
