/* SPDX-License-Identifier: MIT */
/* Which row of a profile comes first; see rows_profile.h. */
#ifndef COLLECT_ROWS_ORDER_H
#define COLLECT_ROWS_ORDER_H

#include "collect/labels.h"
#include "collect/rows_profile.h"

/* Labels of one row that are written; more are cut. */
#define CPPROF__ROW_LABELS 64

/* The labels of a row of this process, valid as long as it; returns how
 * many. */
size_t
cpprof__row_labels(const struct cpprof__row *row,
                   struct cpprof__builder_label labels[CPPROF__ROW_LABELS]);

/* The same of what the form is of, maybe another process. */
size_t
cpprof__form_labels(const struct cpprof__rows_form *form,
                    const struct cpprof__row *row,
                    struct cpprof__builder_label labels[CPPROF__ROW_LABELS]);

#endif
