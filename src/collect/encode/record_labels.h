/* SPDX-License-Identifier: MIT */
/*
 * The labels of a record of a profile. A record has the number of a label set
 * (signal/tables/label_numbers.h) in the tree of its tables. A set that can no
 * longer be found becomes one label, {"labels":"[lost]"}.
 */
#ifndef COLLECT_RECORD_LABELS_H
#define COLLECT_RECORD_LABELS_H

#include "collect/encode/source.h"
#include "collect/encode/text_profile.h"
#include "collect/labels/labels.h"

/* Add the labels of a number, 0 for none, to a list; they are valid until
 * the next call for this list. source NULL: this process. */
void
cpprof__record_labels(const struct cpprof__source *source, uint32_t number,
                      struct cpprof__label_list *labels);

/* "# labels: {...}" and a new line, when there are any. labels is room for
 * them, kept from record to record. */
void
cpprof__record_labels_text(struct cpprof__text_profile *text,
                           const struct cpprof__source *source, uint32_t number,
                           struct cpprof__label_list *labels);

#endif
