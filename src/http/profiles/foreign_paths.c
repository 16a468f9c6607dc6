/* SPDX-License-Identifier: MIT */
/*
 * Paths for which Go or gperftools serve something that a native program does
 * not have, or has in another form.
 *
 * Source: gperftools pprof_remote_servers.html; Go net/http/pprof (Trace).
 */
#include "arch/atomic.h"
#include "collect/heap/heap_maps.h"
#include "http/call.h"

#include <cpprof/heap.h>

void
cpprof__http_trace(struct cpprof__call *call)
{
    cpprof__answer_error(&call->answer, 501,
                         "There is no execution trace of a native program; "
                         "wall and offcpu show where its threads wait");
}

void
cpprof__http_pmu(struct cpprof__call *call)
{
    cpprof__answer_error(&call->answer, 501,
                         "Hardware counters are not served; profile has CPU "
                         "time");
}

/* To gperftools, the stacks that made the heap grow. */
void
cpprof__http_growth(struct cpprof__call *call)
{
    const struct cpprof__answer_head head = {
        .status = 200,
        .content_type = CPPROF__BYTES,
        .file_name = "growth",
        .n_body = -1,
    };
    struct cpprof_heap_options options = {.size = sizeof options};
    struct cpprof_writer writer;
    struct cpprof_heap *heap;
    struct cpprof_error error;
    enum cpprof_status status;

    if (!load_acquire(&cpprof__maps_heap)) {
        cpprof__answer_error(&call->answer, 404,
                             "Mappings are not followed: CPPROF=mmap=on or "
                             "cpprof_heap_follow_mmap() has them followed");
        return;
    }
    if (call->answer.is_head) {
        cpprof__answer_begin(&call->answer, &head);
        return;
    }
    if (call->request.flags & CPPROF_HTTP_NO_NAMES)
        options.symbolize = CPPROF_SYMBOLIZE_NONE;
    status = cpprof_heap_follow_mmap(&heap, &error); /* the one there is */
    if (status == CPPROF_OK) {
        options.heap = heap;
        writer = cpprof__answer_writer(&call->answer, &head);
        status = cpprof_heap_write(&writer, &options, &error);
    }
    cpprof__answer_end(&call->answer, status, &error);
}
