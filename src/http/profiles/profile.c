/* SPDX-License-Identifier: MIT */
/*
 * A profile by its name, as it is now; with ?seconds= its change over that time
 * (delta.c).
 *
 * And paths for which Go or gperftools serve something that a native program
 * does not have, or has in another form.
 *
 * Source: Go net/http/pprof (handler.ServeHTTP, Trace), runtime/pprof
 * (WriteTo); gperftools pprof_remote_servers.html.
 */
#include "arch/atomic.h"
#include "collect/heap/heap_maps.h"
#include "http/profiles/limits.h"

#include <cpprof/heap.h>
#include <cpprof/profiles.h>

#include <string.h>

/* A negative number is text to the two of the heap, and none to the others;
 * which is text/plain all the same. */
static int32_t
debug_of(const char *name, int64_t debug)
{
    if (debug < 0)
        return !strcmp(name, "heap") || !strcmp(name, "allocs");
    return debug < 2 ? (int32_t)debug : 2;
}

void
cpprof__http_profile_options(const struct cpprof__call *call,
                             struct cpprof_profile_options *options)
{
    const struct cpprof_http_request *request = &call->request;

    *options = (struct cpprof_profile_options){.size = sizeof *options};
    if (request->flags & CPPROF_HTTP_NO_NAMES)
        options->symbolize = CPPROF_SYMBOLIZE_NONE;
    if (cpprof__form_number(request, "labels") > 0)
        options->flags |= CPPROF_FLAG_LABELS;
    if (strcmp(call->name, "block") == 0 &&
        cpprof__form_number(request, "inprogress") > 0)
        options->flags |= CPPROF_FLAG_IN_PROGRESS;
}

static void
answer(struct cpprof__call *call, struct cpprof_profile *profile)
{
    struct cpprof__answer_head head = {.status = 200, .n_body = -1};
    int64_t debug = cpprof__form_number(&call->request, "debug");
    struct cpprof_profile_options options;
    struct cpprof_error error;
    enum cpprof_status status;
    struct cpprof_writer writer;
    struct cpprof__gate gate;

    head.content_type = debug ? CPPROF__PLAIN : CPPROF__BYTES;
    head.file_name = debug ? NULL : call->name;
    if (call->answer.is_head) {
        cpprof__answer_begin(&call->answer, &head);
        return;
    }
    cpprof__http_profile_options(call, &options);
    options.debug = debug_of(call->name, debug);
    if (!cpprof__gate_begin(&gate, call, &head))
        return;
    writer = cpprof__gate_writer(&gate);
    status = cpprof_profile_write(profile, &writer, &options, &error);
    cpprof__gate_end(&gate, status, &error);
}

void
cpprof__http_profile(struct cpprof__call *call)
{
    struct cpprof_profile *profile = cpprof_profile_lookup(call->name);
    struct cpprof__form_value seconds;

    if (!profile) {
        cpprof__answer_error(&call->answer, 404, "Unknown profile");
        return;
    }
    seconds = cpprof__form_value(&call->request, "seconds");
    if (seconds.n)
        cpprof__http_delta(call, profile, seconds);
    else
        answer(call, profile);
}

void
cpprof__http_contention(struct cpprof__call *call)
{
    call->name = "mutex";
    cpprof__http_profile(call);
}

/* ---- paths of gperftools and Go that differ here ------------------------ */

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

/* gperftools serves the stacks that made the heap grow; we serve the heap of
 * mappings. */
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
