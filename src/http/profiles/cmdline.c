/* SPDX-License-Identifier: MIT */
/*
 * The command line, each argument with a NUL between it and the next.
 * gperftools' tools want lines.
 *
 * Source: Go net/http/pprof (Cmdline); gperftools pprof_remote_servers.html;
 * proc(5).
 */
#include "base/file.h"
#include "collect/runtime/exempt.h"
#include "http/call.h"

#include <string.h>

static void
answer(struct cpprof__call *call, bool as_lines)
{
    struct cpprof__buffer b = {0};
    size_t i;
    int sys;
    CPPROF__EXEMPT;

    sys = cpprof__file_read(&b, "/proc/self/cmdline", SIZE_MAX);
    if (!as_lines && b.n && !b.data[b.n - 1])
        b.n--;
    for (i = 0; as_lines && i < b.n; i++)
        if (!b.data[i])
            b.data[i] = '\n';
    if (sys)
        cpprof__answer_error(&call->answer, 500, "/proc/self/cmdline: %s",
                             strerror(sys));
    else
        cpprof__answer_text(&call->answer, CPPROF__PLAIN, b.data, b.n);
    cpprof__buffer_free(&b);
}

void
cpprof__http_cmdline(struct cpprof__call *call)
{
    answer(call, false);
}

void
cpprof__http_cmdline_lines(struct cpprof__call *call)
{
    answer(call, true);
}
