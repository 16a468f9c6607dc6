/* SPDX-License-Identifier: MIT */
/*
 * Where the builder's bytes go: compressed a member at a time and handed to
 * the writer. The first failure stops the stream for good.
 */
#include "collect/encode/builder_internal.h"

#include "base/gzip.h"
#include "base/status.h"

#include <string.h>

void
cpprof__builder_fail_nomem(struct cpprof__builder *b)
{
    if (!cpprof__builder_failed(b))
        cpprof__fail_nomem(&b->error);
}

static void
write_packed(struct cpprof__builder *b)
{
    int sys = b->writer.write(b->writer.ctx, b->packed.data, b->packed.n);

    if (sys)
        cpprof__fail(&b->error, CPPROF_SYSTEM, sys, "write: %s", strerror(sys));
}

void
cpprof__builder_flush(struct cpprof__builder *b)
{
    if (b->out.failed)
        cpprof__builder_fail_nomem(b);
    if (cpprof__builder_failed(b) || b->out.n == 0)
        return;
    b->packed.n = 0;
    if (cpprof__gzip(&b->packed, b->out.data, b->out.n, CPPROF__GZIP_LEVEL,
                     &b->error) == CPPROF_OK)
        write_packed(b);
    b->out.n = 0;
}

void
cpprof__builder_flush_full(struct cpprof__builder *b)
{
    if (b->out.failed || b->out.n >= b->member_bytes)
        cpprof__builder_flush(b);
}
