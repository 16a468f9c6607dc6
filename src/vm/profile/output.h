/* SPDX-License-Identifier: MIT */
/* Turns records into a profile. Used by one thread at a time. */
#ifndef VM_OUTPUT_H
#define VM_OUTPUT_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "collect/encode/builder.h"
#include "collect/labels/labels.h"
#include <cpprof/vm.h>

struct cpprof__vm_output {
    struct cpprof__builder *builder;
    bool is_merging;
    bool failed; /* no memory, for what is not the builder's */

    /* Indexed by the numbers that records have had since the last `forget`. */
    struct cpprof__buffer functions; /* struct function of output.c */
    struct cpprof__buffer locations; /* uint64_t, numbers of the builder */

    /* Locations by script word (cpprof__scripts). */
    struct cpprof__table words; /* struct known_word of output.c */

    /* Samples merged by stack and labels; struct sample of output.c. */
    struct cpprof__arena arena;
    struct cpprof__buffer samples;
    struct cpprof__index sample_index;

    /* Room for one sample. */
    struct cpprof__buffer ids;
    struct cpprof__label_list labels;
};

/* options are complete. The writer is closed when this fails. */
enum cpprof_status
cpprof__vm_output_make(struct cpprof__vm_output *output,
                       struct cpprof_writer writer,
                       const struct cpprof_vm_options *options,
                       struct cpprof_error *error);

void
cpprof__vm_output_records(struct cpprof__vm_output *output, const uint8_t *data,
                          size_t n_bytes);

/* A stack of words of cpprof__scripts. */
struct cpprof__vm_word_stack {
    uint64_t value_ns;
    const uint64_t *words; /* leaf first */
    uint32_t n;
    bool is_truncated;
    const struct cpprof__label_set *labels; /* NULL: none */
};
void
cpprof__vm_output_stack(struct cpprof__vm_output *output,
                        const struct cpprof__vm_word_stack *stack);

/* Time without a stack; nothing when there is none. */
void
cpprof__vm_output_own(struct cpprof__vm_output *output,
                      enum cpprof__own_frame frame, uint64_t value_ns);

/* A profile that is not to be: close the writer as failed. */
void
cpprof__vm_output_give_up(struct cpprof__vm_output *output);

/* Close the writer and give back all memory. */
enum cpprof_status
cpprof__vm_output_end(struct cpprof__vm_output *output, int64_t duration_ns,
                      struct cpprof_error *error);

#endif
