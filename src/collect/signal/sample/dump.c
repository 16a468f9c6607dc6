/* SPDX-License-Identifier: MIT */
/*
 * Questions to threads and their answers: the words of a slot, the handler's
 * part, and what the side that asks does to a slot. dump.h has the protocol.
 *
 * The handler needs a buffer for its walk and takes one of a few by
 * compare-and-swap on its owner. If none is free the question goes back to
 * "asked", and the signal is sent again later. A stack that waits for its
 * script leaves the slot in "taken" until the interpreter's safepoint
 * completes it.
 *
 * Invariants: a slot's word changes only by compare-and-swap, and each change
 * of its owner changes the word; so a late handler never writes into another
 * question.
 */
#include "collect/signal/sample/dump.h"
#include "collect/signal/tables/interp_frames.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "collect/signal/heap/hook_stack.h"
#include "collect/signal/sample/question_timer.h"
#include "collect/signal/sample/sampler.h"
#include "collect/signal/tables/label_numbers.h"
#include "collect/signal/tables/own_frames.h"
#include "collect/signal/tables/reserve.h"
#include "collect/signal/tables/stack_tree.h"
#include "collect/signal/unwind/stack_view.h"
#include "collect/signal/waits/waits.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * A word, from bit 0: stack 20, labels 21, state 2, free 5, sequence 16. A
 * wait: since, in units of 1024 ns, 40, kind 8, sequence 16. A value: slot 23,
 * user 1, sequence 16, CPPROF__QUESTION_MAGIC 24.
 */
#define STACK_BITS  20
#define LABELS_BITS 21
#define LABELS_MASK ((1u << LABELS_BITS) - 1)
#define STATE_AT    41
#define SEQUENCE_AT 48

_Static_assert(CPPROF__TREE_NODES <= 1u << STACK_BITS, "stacks fit");
_Static_assert(CPPROF__TREE_NODES < LABELS_MASK, "labels fit, and lost ones");

struct buffer {
    struct cpprof__stack_view view;
    struct cpprof__regs regs;
    bool has_hook; /* was in the stack */
    enum cpprof__unwind_end end;
    size_t n;
    uintptr_t pcs[CPPROF__MAX_DEPTH + 2];
};
static struct buffer *buffers; /* CPPROF__DUMP_BUFFERS; NULL: not yet */
static const void *owners[CPPROF__DUMP_BUFFERS]; /* NULL: free */

struct cpprof__dump_slot
    *cpprof__dump_slots[CPPROF__DUMP_ASKERS][CPPROF__DUMP_CHUNKS] CPPROF__LARGE;
uint32_t cpprof__dump_depth[CPPROF__DUMP_USERS] = {128, 128, 128};

struct cpprof__tree *cpprof__dump_tree;

static uint64_t
word_of(uint64_t sequence, enum cpprof__dump_state state)
{
    return sequence << SEQUENCE_AT | (uint64_t)state << STATE_AT;
}

struct cpprof__dump_slot *
cpprof__dump_slot(enum cpprof__dump_user user, uint32_t index)
{
    struct cpprof__dump_slot *chunk;

    if (index >= CPPROF__MAX_THREADS)
        return NULL;
    chunk =
        load_acquire(&cpprof__dump_slots[user][index / CPPROF__DUMP_PER_CHUNK]);
    return chunk ? &chunk[index % CPPROF__DUMP_PER_CHUNK] : NULL;
}

uint64_t
cpprof__dump_value(enum cpprof__dump_user user, uint32_t index)
{
    const struct cpprof__dump_slot *slot = cpprof__dump_slot(user, index);

    return CPPROF__QUESTION_MAGIC << 40 |
           (load_acquire(&slot->word) >> SEQUENCE_AT) << 24 |
           (uint64_t)user << 23 | index;
}

uint64_t
cpprof__dump_ask(enum cpprof__dump_user user, uint32_t index, int32_t tid)
{
    struct cpprof__dump_slot *slot = cpprof__dump_slot(user, index);
    uint64_t sequence;

    if (!slot)
        return 0;
    sequence = (load_acquire(&slot->word) >> SEQUENCE_AT) + 1;
    store_relaxed(&slot->tid, tid);
    store_release(&slot->word, word_of(sequence & 0xffff, CPPROF__DUMP_ASKED));
    return cpprof__dump_value(user, index);
}

enum cpprof__dump_state
cpprof__dump_state(const struct cpprof__dump_slot *slot)
{
    return (enum cpprof__dump_state)(load_acquire(&slot->word) >> STATE_AT & 3);
}

struct cpprof__dump_answer
cpprof__dump_take(struct cpprof__dump_slot *slot)
{
    uint64_t word = load_acquire(&slot->word);
    uint32_t labels = word >> STACK_BITS & LABELS_MASK;

    cpprof__question_end(&slot->place);
    store_release(&slot->word, word_of(word >> SEQUENCE_AT, CPPROF__DUMP_FREE));
    return (struct cpprof__dump_answer){
        .stack = word & ((1u << STACK_BITS) - 1),
        .labels = labels == LABELS_MASK ? CPPROF__LABELS_LOST : labels,
    };
}

/* A slot has room for 40 bits of 1024 ns: 13 days, less than a host is up. The
 * wait began before now, and not longer ago than that. */
#define SINCE_BITS 40
#define SINCE_MASK ((1ull << SINCE_BITS) - 1)

uint64_t
cpprof__dump_since_ns(uint64_t stored, uint64_t now_ns)
{
    uint64_t now = now_ns / 1024;

    return (now - ((now - stored) & SINCE_MASK)) * 1024;
}

struct cpprof__dump_wait
cpprof__dump_wait(const struct cpprof__dump_slot *slot)
{
    uint64_t wait = load_relaxed(&slot->wait);
    uint64_t word = load_acquire(&slot->word);

    if (wait >> SEQUENCE_AT != word >> SEQUENCE_AT)
        wait = 0;
    return (struct cpprof__dump_wait){
        .kind = wait >> SINCE_BITS & 0xff,
        .since_ns = cpprof__dump_since_ns(wait & SINCE_MASK,
                                          cpprof__clock_ns(CLOCK_MONOTONIC)),
    };
}

bool
cpprof__dump_give_up(struct cpprof__dump_slot *slot)
{
    uint64_t word = load_acquire(&slot->word);

    while ((word >> STATE_AT & 3) != CPPROF__DUMP_ANSWERED)
        if (cas_acq_rel(&slot->word, &word,
                        word_of(word >> SEQUENCE_AT, CPPROF__DUMP_FREE))) {
            cpprof__question_end(&slot->place);
            return true;
        }
    return false;
}

/* ---- in the thread that is asked -------------------------------------- */

static struct buffer *
take_buffer(void)
{
    unsigned first = (unsigned)((uintptr_t)&cpprof__self >> 12), i;
    struct buffer *all = cpprof__reserve_once(
        (void **)&buffers, CPPROF__DUMP_BUFFERS * sizeof *buffers);

    if (!all)
        return NULL;
    for (i = 0; i < CPPROF__DUMP_BUFFERS; i++) {
        unsigned at = (first + i) % CPPROF__DUMP_BUFFERS;
        const void *nobody = NULL;

        if (!load_relaxed(&owners[at]) &&
            cas_acq_rel(&owners[at], &nobody, (const void *)&cpprof__self))
            return &all[at];
    }
    return NULL;
}

static void
give_buffer(const struct buffer *p)
{
    store_release(&owners[p - load_acquire(&buffers)], NULL);
}

CPPROF__FIRST_STEP void
cpprof__dump_forked(void)
{
    unsigned i;

    for (i = 0; i < CPPROF__DUMP_BUFFERS; i++)
        if (owners[i])
            owners[i] = NULL;
}

/* Into p->pcs, with the frames of the script that runs, if it can be asked. */
static enum cpprof__interp_result
walk(struct buffer *p, size_t depth)
{
    const struct cpprof__wait_now now = cpprof__wait_now(cpprof__wait_own);
    const struct cpprof__interp_ops *interp = load_acquire(&cpprof__interp_ops);

    p->view.window_at = 0;
    p->view.window_n = 0;
    cpprof__hook_see_stack(&p->view, p->regs.sp);
    if (depth > CPPROF__MAX_DEPTH)
        depth = CPPROF__MAX_DEPTH;
    p->n = cpprof__unwind(&p->regs, &p->view, p->pcs, depth, &p->end);
    p->n =
        cpprof__drop_hooks(p->pcs, p->n, now.kind ? now.leaf : 0, &p->has_hook);
    p->has_hook |= p->end == CPPROF__UNWIND_BROKEN; /* who knows */
    if (!interp)
        return CPPROF__INTERP_NONE;
    return interp->merge(p->pcs, &p->n, CPPROF__MAX_DEPTH, &p->end, true);
}

static uint32_t
add_stack(uintptr_t *pcs, size_t n, enum cpprof__unwind_end end)
{
    return cpprof__tree_add(load_acquire(&cpprof__dump_tree), pcs,
                            cpprof__mark_end(pcs, n, end));
}

static void
finish(struct cpprof__dump_slot *slot, uint64_t sequence, uint64_t labels,
       uint64_t stack)
{
    uint64_t taken = word_of(sequence, CPPROF__DUMP_TAKEN);

    cas_acq_rel(&slot->word, &taken,
                word_of(sequence, CPPROF__DUMP_ANSWERED) |
                    (labels & LABELS_MASK) << STACK_BITS | stack);
}

static uint64_t
label_number(void)
{
    return cpprof__label_set_number(load_acquire(&cpprof__dump_tree),
                                    load_relaxed(&cpprof__self.labels));
}

/* ---- answers that wait for a script ----------------------------------- */

/* A slot's address, which leaves these bits, and the sequence number. */
#define COOKIE_AT 48

static void
take_mixed(uint64_t cookie, uint64_t unused, uintptr_t *pcs, size_t n,
           enum cpprof__unwind_end end, bool is_own)
{
    struct cpprof__dump_slot *slot =
        (void *)(uintptr_t)(cookie & (((uint64_t)1 << COOKIE_AT) - 1));

    (void)unused;
    finish(slot, cookie >> COOKIE_AT, is_own ? label_number() : 0,
           add_stack(pcs, n, end));
}

static bool
is_deferred(struct buffer *p, struct cpprof__dump_slot *slot, uint64_t sequence)
{
    static const struct cpprof__deferred_sink sink = {take_mixed};
    const struct cpprof__deferred_stack stack = {
        .sink = &sink,
        .cookie = (uintptr_t)slot | sequence << COOKIE_AT,
        .pcs = p->pcs,
        .n = p->n,
        .end = p->end,
    };

    return (uintptr_t)slot >> COOKIE_AT == 0 &&
           load_acquire(&cpprof__interp_ops)->defer(&stack);
}

/* ----------------------------------------------------------------------- */

/* What the hooks of locks know of the interrupted code. */
static void
note_wait(struct cpprof__dump_slot *slot, uint64_t sequence, bool has_hook)
{
    const struct cpprof__wait_now now = cpprof__wait_now(cpprof__wait_own);
    uint64_t since = now.start_ns / 1024, kind = now.kind & 0xff;

    if (!cpprof__wait_is_true((uint32_t)kind, has_hook))
        kind = CPPROF__WAITS_NOT;

    store_relaxed(&slot->wait, sequence << SEQUENCE_AT | kind << SINCE_BITS |
                                   (since & SINCE_MASK));
}

static void
note_self(struct cpprof__dump_slot *slot)
{
    /* The question came to nobody else. The kernel is not asked: a filter of
     * the program may kill for that. */
    store_relaxed(&cpprof__self.tid, load_relaxed(&slot->tid));
    store_relaxed(&slot->self,
                  (const struct cpprof__thread_self *)&cpprof__self);
    store_relaxed(&slot->cpu_ns, cpprof__clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

static void
finish_unwalked(struct cpprof__dump_slot *slot, uint64_t sequence,
                uintptr_t why)
{
    finish(slot, sequence, 0,
           cpprof__tree_add(load_acquire(&cpprof__dump_tree), &why, 1));
}

/* Answer a question. The slot stays TAKEN until the answer is there, now or
 * later. A dump of all threads does not wait for scripts. */
static void
answer(struct cpprof__dump_slot *slot, enum cpprof__dump_user user,
       uint64_t sequence, const void *context)
{
    uint64_t taken = word_of(sequence, CPPROF__DUMP_TAKEN);
    enum cpprof__interp_result result;
    enum cpprof__own_frame why;
    struct buffer *p;

    if (!context) {
        store_relaxed(&slot->self, NULL);
        finish_unwalked(slot, sequence, CPPROF__FRAME_NO_LIBC);
        return;
    }
    why = cpprof__signal_no_walk(&context);
    if (why) {
        note_self(slot);
        finish_unwalked(slot, sequence, why);
        return;
    }
    p = take_buffer();
    if (!p) {
        cas_acq_rel(&slot->word, &taken, word_of(sequence, CPPROF__DUMP_ASKED));
        return;
    }
    cpprof__regs_from_ucontext(&p->regs, context);
    result = walk(p, load_relaxed(&cpprof__dump_depth[user]));
    if (user == CPPROF__DUMP_ALL)
        note_wait(slot, sequence, p->has_hook);
    else
        note_self(slot);
    if (user != CPPROF__DUMP_WALL || result != CPPROF__INTERP_LATER ||
        !is_deferred(p, slot, sequence))
        finish(slot, sequence, label_number(), add_stack(p->pcs, p->n, p->end));
    give_buffer(p);
}

static void
answer_slot(struct cpprof__dump_slot *slot, enum cpprof__dump_user user,
            uint64_t sequence, const void *context)
{
    uint64_t asked = word_of(sequence, CPPROF__DUMP_ASKED);

    if (slot &&
        cas_acq_rel(&slot->word, &asked, word_of(sequence, CPPROF__DUMP_TAKEN)))
        answer(slot, user, sequence, context);
}

void
cpprof__dump_answer(const siginfo_t *info, const void *context)
{
    uint64_t value = (uint64_t)info->si_value.sival_ptr;
    enum cpprof__dump_user user = value >> 23 & 1;

    answer_slot(cpprof__dump_slot(user, value & 0x7fffff), user,
                value >> 24 & 0xffff, context);
}

bool
cpprof__dump_own(enum cpprof__dump_user user, struct cpprof__dump_answer *out)
{
    struct buffer *p = take_buffer();

    if (!p)
        return false;
    cpprof__regs_here(&p->regs);
    walk(p, load_relaxed(&cpprof__dump_depth[user]));
    out->stack = add_stack(p->pcs, p->n, p->end);
    out->labels = cpprof__label_set_number(load_acquire(&cpprof__dump_tree),
                                           cpprof__self.labels);
    give_buffer(p);
    return true;
}
