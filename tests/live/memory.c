/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include "tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int
write_memory(void *ctx, const void *data, size_t n_bytes)
{
    struct memory *m = ctx;
    char *more = realloc(m->data, m->n + n_bytes);

    if (!more)
        return ENOMEM;
    memcpy(more + m->n, data, n_bytes);
    m->data = more;
    m->n += n_bytes;
    return 0;
}

static int
close_memory(void *ctx, int failed)
{
    struct memory *m = ctx;

    m->n_closed++;
    m->failed = failed;
    return 0;
}

struct cpprof_writer
memory_writer(struct memory *m)
{
    memset(m, 0, sizeof *m);
    return (struct cpprof_writer){sizeof(struct cpprof_writer), write_memory,
                                  close_memory, m};
}

struct profile *
memory_profile(struct memory *m)
{
    char why[256] = "it was not closed once, without failure";
    struct profile *p = NULL;

    if (m->n_closed == 1 && !m->failed)
        p = profile_unpack(m->data, m->n, why, sizeof why);
    if (!p)
        note("%s", why);
    free(m->data);
    m->data = NULL;
    return p;
}
