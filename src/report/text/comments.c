/* SPDX-License-Identifier: MIT */
/* -comments: every comment on a line of its own. */
#include "report/report.h"

enum cpprof_status
cpprof__comments(struct cpprof__report *r)
{
    const struct cpprof__strings *strings = &r->p->strings;
    size_t i;

    for (i = 0; i < r->p->comments.n; i++) {
        uint32_t comment = r->p->comments.at[i];

        cpprof__buffer_append(&r->out, cpprof__strings_text(strings, comment),
                              cpprof__strings_n(strings, comment));
        cpprof__buffer_append(&r->out, "\n", 1);
    }
    return CPPROF_OK;
}
