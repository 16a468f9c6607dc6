/* SPDX-License-Identifier: MIT */
/*
 * The change of a profile since the last request, as in godeltaprof. The first
 * request gets everything, so that nothing is missed or counted twice. This
 * works for one scraper: a second one would take its share away from the first.
 *
 * Source: grafana/pyroscope-go godeltaprof/http/pprof.
 */
#include "arch/atomic.h"
#include "http/profiles/limits.h"

#include <cpprof/captures.h>

#include <string.h>
#include <unistd.h>

/* Apart from what changes, which nobody touches until it is asked for. */
static const struct {
    const char *endpoint;
    const char *profile;
    const char *file_name;
} known[] = {
    {"delta_block", "block", "block.pprof.gz"},
    {"delta_heap", "heap", "heap.pprof.gz"},
    {"delta_mutex", "mutex", "mutex.pprof.gz"},
};

static struct since {
    uint64_t owner; /* process of the request that has the rest; 0: none */
    struct cpprof_snapshot *snapshot; /* NULL: was never asked for */
} all[sizeof known / sizeof *known];

/* ---- one request at a time -------------------------------------------- */

#define LOOK_NS 5000000

/* What a request of the parent held at the time of the fork is neither trusted
 * nor freed here. */
static bool
take(struct cpprof__call *call, struct since *since)
{
    uint64_t self = (uint64_t)getpid(), owner = load_relaxed(&since->owner);

    while (owner == self || !cas_acq_rel(&since->owner, &owner, self)) {
        if (owner == self && !cpprof__look_again(call, LOOK_NS))
            return false;
        owner = load_relaxed(&since->owner);
    }
    if (owner)
        since->snapshot = NULL;
    return true;
}

/* ---- answers ---------------------------------------------------------- */

static enum cpprof_status
begin(struct since *since, struct cpprof_error *error)
{
    struct cpprof_profile_options options = {
        .size = sizeof options,
        .flags = CPPROF_FLAG_SINCE_START | CPPROF_FLAG_IN_USE,
    };

    if (since->snapshot)
        return CPPROF_OK;
    return cpprof_snapshot_new(
        cpprof_profile_lookup(known[since - all].profile), &options,
        &since->snapshot, error);
}

static void
answer(struct cpprof__call *call, struct since *since,
       const struct cpprof__answer_head *head)
{
    struct cpprof_profile_options options = {.size = sizeof options};
    struct cpprof_error error;
    enum cpprof_status status;
    struct cpprof_writer writer;
    struct cpprof__gate gate;

    if (!cpprof__gate_begin(&gate, call, head))
        return;
    gate.is_kept_unsent = true;
    status = begin(since, &error);
    if (call->request.flags & CPPROF_HTTP_NO_NAMES)
        options.symbolize = CPPROF_SYMBOLIZE_NONE;
    writer = cpprof__gate_writer(&gate);
    if (status == CPPROF_OK)
        status = cpprof_snapshot_write_delta(since->snapshot, &writer, &options,
                                             &error);
    cpprof__gate_end(&gate, status, &error);
}

void
cpprof__http_since(struct cpprof__call *call)
{
    struct cpprof__answer_head head = {
        .status = 200,
        .content_type = CPPROF__BYTES,
        .n_body = -1,
    };
    struct since *since;
    unsigned i = 0;

    /* One of them: handle.c has no other paths that lead here. */
    while (strcmp(known[i].endpoint, call->name))
        i++;
    since = &all[i];
    head.file_name = known[i].file_name;
    if (call->answer.is_head) {
        cpprof__answer_begin(&call->answer, &head);
    } else if (take(call, since)) {
        answer(call, since, &head);
        store_release(&since->owner, (uint64_t)0);
    }
}
