/* SPDX-License-Identifier: MIT */
/*
 * The gate: how many profiles are made at once, and the buffer that each is
 * made in.
 *
 * A turn is one of a counted few. Who finds none free looks again after a
 * while, and at each look whether the client is still there. The profile is
 * written into memory during the turn and sent after it.
 *
 * Invariants: a turn that was begun is ended exactly once, also when making
 * the profile fails.
 */
#include "http/profiles/gate.h"

#include "collect/runtime/exempt.h"
#include "http/profiles/timed.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* Between two looks, longer the more of them there were. */
#define LOOK_NS     1000000u
#define LOOK_MAX_NS 32000000u

static struct cpprof__timed_count made;

/* False: the client has left. */
static bool
wait_a_little(struct cpprof__call *call, uint64_t ns)
{
    const struct timespec t = {0, (long)ns};

    /* A server that ends does not wait. */
    nanosleep(&t, NULL);
    if (call->request.wait && call->request.wait(call->request.ctx, 0))
        call->answer.sys = ECANCELED;
    return !call->answer.sys;
}

bool
cpprof__turn_begin(struct cpprof__call *call)
{
    uint64_t ns = LOOK_NS;

    while (!cpprof__timed_count_up(&made, CPPROF__GATE)) {
        if (!wait_a_little(call, ns))
            return false;
        ns = ns < LOOK_MAX_NS ? 2 * ns : ns;
    }
    return true;
}

void
cpprof__turn_end(void)
{
    cpprof__timed_count_down(&made);
}

/* ---- a profile -------------------------------------------------------- */

bool
cpprof__gate_begin(struct cpprof__gate *gate, struct cpprof__call *call,
                   const struct cpprof__answer_head *head)
{
    memset(gate, 0, sizeof *gate);
    gate->call = call;
    gate->head = *head;
    gate->has_turn = cpprof__turn_begin(call);
    return gate->has_turn;
}

static void
end_turn(struct cpprof__gate *gate)
{
    if (gate->has_turn)
        cpprof__turn_end();
    gate->has_turn = false;
}

static int
send_body(struct cpprof__gate *gate)
{
    struct cpprof__answer *a = &gate->call->answer;

    end_turn(gate);
    cpprof__answer_begin(a, &gate->head);
    return cpprof__answer_write(a, gate->body.data, gate->body.n);
}

static int
write_body(void *ctx, const void *data, size_t n)
{
    struct cpprof__gate *gate = ctx;
    CPPROF__EXEMPT;

    cpprof__buffer_append(&gate->body, data, n);
    return gate->body.failed ? ENOMEM : 0;
}

static int
close_body(void *ctx, int failed)
{
    struct cpprof__gate *gate = ctx;

    gate->is_whole = !failed;
    return failed || !gate->is_kept_unsent ? 0 : send_body(gate);
}

struct cpprof_writer
cpprof__gate_writer(struct cpprof__gate *gate)
{
    return (struct cpprof_writer){sizeof(struct cpprof_writer), write_body,
                                  close_body, gate};
}

void
cpprof__gate_end(struct cpprof__gate *gate, enum cpprof_status status,
                 const struct cpprof_error *error)
{
    CPPROF__EXEMPT;

    end_turn(gate);
    if (gate->is_whole && !gate->is_kept_unsent)
        send_body(gate);
    cpprof__answer_end(&gate->call->answer, status, error);
    cpprof__buffer_free(&gate->body);
}
