/* SPDX-License-Identifier: MIT */
/*
 * Label sets: immutable, reference-counted, one block of memory each. A
 * thread's current set is a pointer that its handlers read
 * (cpprof__self.labels); the pointer then lies in the ring, or in a slot of a
 * thread dump, until somebody reads what it points to. So a set whose last
 * reference is dropped is not freed while such a reader may still come: it
 * waits in limbo.
 *
 *   reader   whoever takes pointers to sets that others have no hold on. It
 *            begins before the first may be taken, says from time to time that
 *            it is done with all that were taken up to a moment, and ends.
 *   clock    counts sets that were freed. A set freed at t was no thread's
 *            current one after t; so a reader that is done with all up to t
 *            does not have it.
 */
#ifndef COLLECT_LABELS_H
#define COLLECT_LABELS_H

#include "base/buffer.h"
#include "collect/signal/tables/label_numbers.h"
#include <cpprof/labels.h>

struct cpprof_labels {
    struct cpprof__label_set set; /* first: handlers know only this */
    struct cpprof_labels *next;   /* in limbo */
    uint64_t freed_at;
    size_t n;
    struct cpprof_label labels[]; /* by key; strings are in the bytes behind
                                   * them, mostly those of set.encoded */
};

/* Drop the reference that a thread's end or a failed start leaves. */
void
cpprof__labels_inherited_free(const void *labels);

/* One label of a sample: text has str, a number has num and maybe a unit. */
struct cpprof__builder_label {
    const char *key;
    const char *str; /* NULL: a number */
    int64_t num;
    const char *num_unit; /* or NULL */
};

/* Labels of a sample that is about to be written; the list is used again for
 * the next one (n = 0). */
struct cpprof__label_list {
    struct cpprof__builder_label *at;
    size_t n;
    size_t max;
    bool failed; /* no memory: it is shorter than it should be */
    char *bytes; /* the decoder's: its strings may point into it */
    size_t room;
};
void
cpprof__label_list_add(struct cpprof__label_list *list,
                       const struct cpprof__builder_label *label);
void
cpprof__label_list_free(struct cpprof__label_list *list);

/* Add the labels of encoded bytes; their strings are slices of data, which
 * ends in a terminator of its own. */
void
cpprof__labels_decode(const char *data, size_t n,
                      struct cpprof__label_list *list);

/*
 * Labels encoded as bytes that mean the same in another process. Of a label:
 * 's' key 0 text 0, or 'n' key 0 unit 0 and 8 bytes.
 */
void
cpprof__labels_encode(struct cpprof__buffer *out,
                      const struct cpprof_label *label);

/*
 * The most bytes of a set in a sample, encoded. In every form of every profile
 * a larger set is one label that says so, {"labels":"[70000 bytes, too
 * large]"}. The program still sees its own labels.
 */
#define CPPROF__LABELS_BYTES_MAX (64u * 1024)

/* As Go prints them: {"key":"text", "key":"text"}. A number is "4096 bytes",
 * or without a unit 4096. */
void
cpprof__labels_print(struct cpprof__buffer *out,
                     const struct cpprof__builder_label *labels, size_t n);

/* Does Go print this character as it is, and not escaped, in a quoted string?
 */
bool
cpprof__is_printable(uint32_t rune);

/* ---- readers ---------------------------------------------------------- */

struct cpprof__labels_reader {
    uint64_t since; /* it may have sets that were freed later */
    struct cpprof__labels_reader *next;
};

/* Safety: MT. Not AS. */
void
cpprof__labels_reader_begin(struct cpprof__labels_reader *reader);
void
cpprof__labels_reader_end(struct cpprof__labels_reader *reader);

/* The clock now; and: say that nothing taken before a moment is used any more.
 */
uint64_t
cpprof__labels_clock(void);
void
cpprof__labels_reader_passed(struct cpprof__labels_reader *reader,
                             uint64_t clock);

/* Free it as soon as no reader may have it. */
void
cpprof__labels_release(struct cpprof_labels *set);

/* Sets in limbo: for tests. */
size_t
cpprof__labels_in_limbo(void);

void
cpprof__labels_in_child(void);

#endif
