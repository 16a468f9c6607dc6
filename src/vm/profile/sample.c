/* SPDX-License-Identifier: MIT */
/*
 * Takes one sample, on the thread that runs the interpreter: walks the stack,
 * finds the numbers of its locations, queues the description of new ones, and
 * queues the sample. Callbacks of the interpreter run without the session's
 * lock, so the session may end or its table be cleared meanwhile: that is
 * looked at each time the lock is taken again.
 */
#include "vm/profile/sample.h"

#include "collect/labels/labels.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/uncancelled.h"
#include "own/memory.h"
#include "vm/profile/count.h"
#include "vm/profile/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 4095

/* Times that a table may be cleared by others during one sample. */
#define CLEARED_MAX 4

static struct cpprof__vm_session *const session = &cpprof__vm_session;

struct taking {
    struct cpprof__vm_thread *t;
    struct cpprof__vm_scratch *scratch;
    uint32_t epoch;
    uint32_t generation;
    uint32_t n_frames;
    bool is_truncated;
    uint64_t value_ns;
    const struct cpprof_labels *labels;
};

/* False, without the lock: the session is over. */
static bool
lock_session(uint32_t epoch)
{
    cpprof__own_lock_take(&session->lock);
    if (session->epoch == epoch)
        return true;
    cpprof__own_lock_give(&session->lock);
    return false;
}

/* ---- working memory --------------------------------------------------- */

static struct cpprof__vm_scratch *
make_scratch(uint32_t max_depth)
{
    size_t n_frames = (max_depth + 1) * sizeof(struct cpprof_vm_frame);
    struct cpprof__vm_scratch *made =
        cpprof__malloc(sizeof *made + n_frames + max_depth * sizeof *made->ids);

    if (made) {
        made->max_depth = max_depth;
        made->ids = (uint32_t *)((char *)made->frames + n_frames);
    }
    return made;
}

/* False: the session is over. No memory: scratch is NULL. */
static bool
take_scratch(struct taking *taking)
{
    uint32_t max_depth;

    if (!lock_session(taking->epoch))
        return false;
    taking->scratch = session->scratches;
    if (taking->scratch)
        session->scratches = taking->scratch->next;
    max_depth = session->max_depth;
    cpprof__own_lock_give(&session->lock);
    if (!taking->scratch)
        taking->scratch = make_scratch(max_depth);
    return true;
}

static void
give_scratch(struct taking *taking)
{
    struct cpprof__vm_scratch *scratch = taking->scratch;

    if (!scratch)
        return;
    if (lock_session(taking->epoch)) {
        scratch->next = session->scratches;
        session->scratches = scratch;
        cpprof__own_lock_give(&session->lock);
    } else {
        cpprof__free(scratch);
    }
}

/* ---- the walk --------------------------------------------------------- */

static void
walk(struct taking *taking)
{
    const struct cpprof_vm_ops *ops = &taking->t->vm->ops;
    struct cpprof__vm_scratch *scratch = taking->scratch;
    size_t n =
        ops->stack(taking->t->thread, scratch->frames, scratch->max_depth + 1);

    taking->is_truncated = n > scratch->max_depth;
    taking->n_frames = taking->is_truncated ? scratch->max_depth : (uint32_t)n;
    taking->labels =
        ops->labels ? ops->labels(taking->t->thread) : cpprof_labels_current();
}

/* ---- what is new; with the lock --------------------------------------- */

static void
clear_table(void)
{
    cpprof__vm_table_clear(&session->table);
    session->has_to_forget = true;
}

static void *
add_record(enum cpprof__vm_record_type type, size_t n_bytes)
{
    if (session->has_to_forget &&
        !cpprof__vm_queue_add(&session->queue, CPPROF__VM_RECORD_FORGET,
                              sizeof(struct cpprof__vm_record)))
        return NULL;
    session->has_to_forget = false;
    return cpprof__vm_queue_add(&session->queue, type, n_bytes);
}

static uint32_t
text_bytes(const char *text)
{
    return text ? (uint32_t)strnlen(text, TEXT_MAX) + 1 : 0;
}

static char *
put_text(char *out, const char *text, uint32_t n)
{
    if (!n)
        return out;
    memcpy(out, text, n - 1);
    out[n - 1] = 0;
    return out + n;
}

/* Room for a record of what is new, which gets its number; NULL: no room. */
static void *
add_new(enum cpprof__vm_record_type type, size_t n_bytes,
        struct cpprof__table *numbers, const void *key, size_t n_key)
{
    size_t before = session->queue.n;
    void *r = add_record(type, n_bytes);
    bool added;

    if (r && cpprof__table_add(numbers, key, n_key, n_key, &added) ==
                 CPPROF__VM_NONE) {
        session->queue.n = before;
        clear_table();
        r = NULL;
    }
    return r;
}

static bool
queue_function(const struct cpprof__vm_function_key *key,
               const struct cpprof_vm_function *what)
{
    uint32_t n_name = text_bytes(what->name), n_file = text_bytes(what->file);
    uint32_t n_system = text_bytes(what->system_name);
    struct cpprof__vm_record_function *r = add_new(
        CPPROF__VM_RECORD_FUNCTION, sizeof *r + n_name + n_system + n_file,
        &session->table.functions, key, sizeof *key);
    char *out = (char *)(r + 1);

    if (!r)
        return false;
    r->mapping = ((const struct cpprof_vm *)key->vm)->mapping;
    r->start_line = what->start_line;
    r->n_name = n_name;
    r->n_system_name = n_system;
    r->n_file = n_file;
    out = put_text(out, what->name, n_name);
    out = put_text(out, what->system_name, n_system);
    put_text(out, what->file, n_file);
    return true;
}

static bool
queue_location(const struct cpprof__vm_location_key *key, int32_t line)
{
    struct cpprof__vm_record_location *r =
        add_new(CPPROF__VM_RECORD_LOCATION, sizeof *r,
                &session->table.locations, key, sizeof *key);

    if (!r)
        return false;
    r->function = key->function;
    r->line = line;
    return true;
}

/* ---- asking about it; without the lock -------------------------------- */

static uint32_t
function_of(const struct taking *taking, const struct cpprof_vm_frame *frame)
{
    const struct cpprof__vm_function_key key = {taking->t->vm, frame->function};

    return cpprof__table_find(&session->table.functions, &key, sizeof key,
                              sizeof key);
}

static uint32_t
location_of(const struct taking *taking, const struct cpprof_vm_frame *frame)
{
    struct cpprof__vm_location_key key = {function_of(taking, frame), frame->pc,
                                          frame->line};

    if (key.function == CPPROF__VM_NONE)
        return CPPROF__VM_NONE;
    return cpprof__table_find(&session->table.locations, &key, sizeof key,
                              sizeof key);
}

enum outcome {
    GO_ON,
    NO_ROOM,
    OVER, /* the session is; no lock is held */
};

/* Another thread may have added it while we asked the interpreter. */
static enum outcome
learn_function(const struct taking *taking, const struct cpprof_vm_frame *frame)
{
    const struct cpprof__vm_function_key key = {taking->t->vm, frame->function};
    struct cpprof_vm_function what = {0};

    if (!taking->t->vm->ops.describe(taking->t->thread, frame->function, &what))
        memset(&what, 0, sizeof what);
    if (!lock_session(taking->epoch))
        return OVER;
    if (cpprof__vm_table_is_full(&session->table))
        clear_table();
    if (function_of(taking, frame) != CPPROF__VM_NONE)
        return GO_ON;
    return queue_function(&key, &what) ? GO_ON : NO_ROOM;
}

static enum outcome
learn_location(const struct taking *taking, const struct cpprof_vm_frame *frame)
{
    const struct cpprof_vm_ops *ops = &taking->t->vm->ops;
    struct cpprof__vm_location_key key = {0, frame->pc, frame->line};
    int32_t line = frame->line;

    if (line < 0)
        line = ops->line
                   ? ops->line(taking->t->thread, frame->function, frame->pc)
                   : 0;
    if (!lock_session(taking->epoch))
        return OVER;
    if (cpprof__vm_table_is_full(&session->table))
        clear_table();
    key.function = function_of(taking, frame);
    if (key.function == CPPROF__VM_NONE || /* cleared: learn that again */
        cpprof__table_find(&session->table.locations, &key, sizeof key,
                           sizeof key) != CPPROF__VM_NONE)
        return GO_ON;
    return queue_location(&key, line > 0 ? line : 0) ? GO_ON : NO_ROOM;
}

/* The caller holds the lock, which is given and taken again. */
static enum outcome
learn(const struct taking *taking, const struct cpprof_vm_frame *frame)
{
    bool has_function = function_of(taking, frame) != CPPROF__VM_NONE;

    cpprof__own_lock_give(&session->lock);
    return has_function ? learn_location(taking, frame)
                        : learn_function(taking, frame);
}

/* The caller holds the lock, also afterwards unless the session is over. */
static enum outcome
locate(struct taking *taking)
{
    struct cpprof__vm_scratch *scratch = taking->scratch;
    uint32_t i = 0, n_cleared = 0, generation = session->table.generation;
    enum outcome outcome = GO_ON;

    while (i < taking->n_frames && outcome == GO_ON) {
        if (session->table.generation != generation) {
            generation = session->table.generation;
            i = 0;
            if (++n_cleared > CLEARED_MAX)
                return NO_ROOM;
        }
        scratch->ids[i] = location_of(taking, &scratch->frames[i]);
        if (scratch->ids[i] != CPPROF__VM_NONE)
            i++;
        else
            outcome = learn(taking, &scratch->frames[i]);
    }
    return outcome;
}

/* ---- the record ------------------------------------------------------- */

static bool
queue_sample(const struct taking *taking)
{
    const struct cpprof_labels *labels = taking->labels;
    uint32_t n_labels = labels ? labels->set.n_encoded : 0;
    size_t n_ids = taking->n_frames * sizeof *taking->scratch->ids;
    struct cpprof__vm_record_sample *r;

    r = add_record(CPPROF__VM_RECORD_SAMPLE, sizeof *r + n_ids + n_labels + 1);
    if (!r)
        return false;
    r->value_ns = taking->value_ns;
    r->n_frames = taking->n_frames;
    r->n_labels = n_labels;
    r->is_truncated = taking->is_truncated;
    memcpy(r + 1, taking->scratch->ids, n_ids);
    put_text((char *)(r + 1) + n_ids, labels ? labels->set.encoded : "",
             n_labels + 1);
    return true;
}

/* The caller holds the lock, which is given. */
static void
commit(const struct taking *taking, bool has_room)
{
    bool is_filling;

    if (!has_room || !queue_sample(taking))
        session->lost_ns += taking->value_ns;
    cpprof__vm_charged(taking->t, taking->value_ns);
    is_filling = session->queue.n >= CPPROF__VM_QUEUE_BYTES / 4;
    cpprof__own_lock_give(&session->lock);
    if (is_filling)
        cpprof__vm_wake_writer();
}

static void
take(struct taking *taking)
{
    enum outcome outcome = NO_ROOM;

    if (!take_scratch(taking))
        return;
    if (taking->scratch)
        walk(taking);
    if (!lock_session(taking->epoch))
        return;
    if (taking->scratch)
        outcome = locate(taking);
    if (outcome != OVER)
        commit(taking, outcome == GO_ON);
}

void
cpprof__vm_sample(struct cpprof__vm_thread *t, uint32_t epoch,
                  uint64_t value_ns)
{
    struct taking taking = {.t = t, .epoch = epoch, .value_ns = value_ns};
    int saved = errno;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    t->is_busy = true;
    take(&taking);
    give_scratch(&taking);
    t->is_busy = false;
    errno = saved;
}
