/* SPDX-License-Identifier: MIT */
/*
 * The change of a profile over a number of seconds: a snapshot at the start is
 * subtracted from the profile at the end. Go does this for its built-in
 * profiles only, cpprof for all.
 *
 * Source: Go net/http/pprof (serveDeltaProfile).
 */
#include "base/buffer.h"
#include "http/profiles/limits.h"
#include "http/text.h"

/* Checks are in Go's order. False: an error was answered. */
static bool
take_seconds(struct cpprof__call *call, struct cpprof__form_value value,
             int64_t *seconds)
{
    const char *why = NULL;

    if (!cpprof__form_int(value, seconds) || *seconds <= 0)
        why = CPPROF__BAD_SECONDS;
    else if (cpprof__timed_is_too_long(call, *seconds))
        why = CPPROF__TOO_LONG;
    else if (cpprof__form_number(&call->request, "debug"))
        why = "seconds and debug params are incompatible";
    if (why)
        cpprof__answer_error(&call->answer, 400, "%s", why);
    return !why;
}

/* The headers are sent when the time begins. A later failure leaves the answer
 * incomplete. */
static void
run(struct cpprof__call *call, struct cpprof_profile *profile,
    const struct cpprof__answer_head *head, int64_t seconds)
{
    struct cpprof_profile_options options;
    struct cpprof_snapshot *snapshot;
    struct cpprof_writer writer;
    enum cpprof_status status;
    struct cpprof_error error;
    struct cpprof__gate gate;

    if (call->answer.is_head) {
        cpprof__answer_begin(&call->answer, head);
        return;
    }
    cpprof__http_profile_options(call, &options);
    status = cpprof_snapshot_new(profile, &options, &snapshot, &error);
    if (status != CPPROF_OK) {
        cpprof__answer_error(&call->answer, 500, "failed to collect profile");
        return;
    }
    cpprof__answer_begin(&call->answer, head);
    if (!call->answer.sys && cpprof__timed_wait(call, seconds) &&
        cpprof__gate_begin(&gate, call, head)) {
        writer = cpprof__gate_writer(&gate);
        status =
            cpprof_snapshot_write_delta(snapshot, &writer, &options, &error);
        cpprof__gate_end(&gate, status, &error);
    }
    cpprof_snapshot_free(snapshot);
}

void
cpprof__http_delta(struct cpprof__call *call, struct cpprof_profile *profile,
                   struct cpprof__form_value value)
{
    struct cpprof__buffer name = {0};
    int64_t seconds;

    if (!take_seconds(call, value, &seconds) || !cpprof__timed_begin(call))
        return;
    cpprof__text_add(&name, call->name);
    cpprof__buffer_append(&name, "-delta", sizeof "-delta");
    if (name.failed)
        cpprof__answer_error(&call->answer, 500, "out of memory");
    else
        run(call, profile,
            &(struct cpprof__answer_head){.status = 200,
                                          .content_type = CPPROF__BYTES,
                                          .file_name = (char *)name.data,
                                          .n_body = -1},
            seconds);
    cpprof__buffer_free(&name);
    cpprof__timed_end();
}
