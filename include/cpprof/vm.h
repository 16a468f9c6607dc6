/* SPDX-License-Identifier: MIT */
/*
 * Profiles of interpreted code: which line of the script, not where in the
 * interpreter. An interpreter says what a frame is and how to walk its stack;
 * the rest is here.
 *
 *     static const struct cpprof_vm_ops ops = {
 *         .size = sizeof ops, .name = "toy", .stack = walk, .describe = tell,
 *     };
 *     cpprof_vm_new(&ops, &vm, NULL);
 *     cpprof_vm_thread_new(vm, state, &t, NULL);
 *
 *     before = cpprof_vm_thread_enter(t); // the host calls the interpreter
 *     cpprof_vm_span_begin(t);
 *     interpret(t);                 // cpprof_vm_thread_poll(t) in its loops
 *     cpprof_vm_span_next(t);       // a call: before the callee has a frame
 *     ...
 *     cpprof_vm_span_next(t);       // its return: while its frame is there
 *     ...
 *     cpprof_vm_span_end(t);
 *     cpprof_vm_thread_enter(before);
 *
 * so that the time of a frame is without that of its callees. An end and a
 * later begin leave out what is between. Spans are what mode SPAN goes by,
 * polls are for TICK and CPU; an interpreter that does not want to do something
 * at each call has only the latter. docs/vm.md tells more.
 */
#ifndef CPPROF_VM_H
#define CPPROF_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cpprof/labels.h>
#include <cpprof/options.h>
#include <cpprof/status.h>
#include <cpprof/writer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cpprof_vm; /* one kind of interpreter; never freed */

/* struct cpprof_vm_frame and cpprof_vm_peek flags, for mixed stacks: the run
 * loop was entered for this frame, so the native code that did stands below. */
#define CPPROF_VM_ENTRY 1u
/* ... its name is not known here; that of a later frame with its key counts. */
#define CPPROF_VM_UNNAMED 2u

/* A frame, as the interpreter has it. */
struct cpprof_vm_frame {
    const void *function; /* identity of its code, the same for all calls */
    uint32_t pc;          /* of the instruction in the function, any count */
    int32_t line;         /* of the source, 0: not known, -1: ask .line */
    uint32_t flags;       /* CPPROF_VM_* of above */
};

/* What is told of a function; copied. Texts are cut at 4095 bytes. */
struct cpprof_vm_function {
    const char *name;        /* NULL, "": toplevel code, named as its file */
    const char *system_name; /* NULL: as name */
    const char *file;        /* NULL: none (a builtin) */
    int64_t start_line;      /* 0: not known */
};

/* A frame with all that is told of it, valid during the call. */
struct cpprof_vm_peek {
    uint64_t key; /* the function's, the same for all calls and ever; 0: what
                   * its texts and first line say */
    struct cpprof_vm_function function;
    int32_t line;   /* of the source, 0: not known */
    uint32_t flags; /* CPPROF_VM_ENTRY, CPPROF_VM_UNNAMED */
};

/* False: that was enough. */
typedef bool
cpprof_vm_visit(void *ctx, const struct cpprof_vm_peek *frame);

/* struct cpprof_vm_ops flags: .peek only reads memory that is there, and may
 * run in a handler that interrupted its thread anywhere. */
#define CPPROF_VM_SIGNAL_SAFE 1u
/* .interrupt finds out whether a thread runs, and where: it is called for those
 * that are not entered, too, and in mode SPAN some times a second. */
#define CPPROF_VM_FINDS 2u

/*
 * All but .interrupt and .peek... are called on the native thread that runs the
 * interpreter, from a call of span_end, span_next, safepoint or stop, without a
 * lock. They may allocate and collect garbage; a span or a poll in them does
 * nothing.
 */
struct cpprof_vm_ops {
    size_t size;      /* sizeof (struct cpprof_vm_ops) */
    const char *name; /* "lua"; the mapping is then "[lua]" */
    uint32_t flags;
    /* The stack of a thread, leaf first; returns how many, at most max. */
    size_t (*stack)(void *thread, struct cpprof_vm_frame *frames, size_t max);
    /* Asked when a function is sampled first in a profile, and again when it
     * was forgotten; the strings live until the next call. False: nothing is
     * known. */
    bool (*describe)(void *thread, const void *function,
                     struct cpprof_vm_function *what);
    /* NULL: lines are in the frames. */
    int32_t (*line)(void *thread, const void *function, uint32_t pc);
    /* NULL: the labels of the native thread. */
    const struct cpprof_labels *(*labels)(void *thread);
    /* Make the thread come to cpprof_vm_thread_safepoint() soon; NULL: it
     * polls. Called by a thread of cpprof's at every tick, as long as t is
     * entered or if it never was (CPPROF_VM_FINDS: always), or in a signal
     * handler that interrupted it; calls nothing of cpprof but
     * cpprof_vm_read_sleep(), if it means to send a signal. */
    void (*interrupt)(void *thread);
    /*
     * For mixed stacks and the lines of heap profiles; NULL: not in them. With
     * CPPROF_VM_SIGNAL_SAFE for mode CPU, too: of threads that are never
     * entered, thread is NULL then, and the calling one's is meant. Tell
     * the stack, leaf first, and change nothing: no allocation, no lock, no
     * collection of garbage. Called on the thread that runs it, at safepoints
     * and wherever the interpreter or what it calls allocates; with
     * CPPROF_VM_SIGNAL_SAFE also in signal handlers, else .interrupt is, and
     * the safepoint that follows tells.
     */
    void (*peek)(void *thread, cpprof_vm_visit *visit, void *ctx);
    /*
     * The same of native thread tid, which sleeps in a call that a signal would
     * end: wall-clock profiles ask from another thread, one at a time; NULL:
     * those sleeps have no frames of scripts. It may wake up meanwhile; then
     * what is told is not used, but memory may go while it is read.
     */
    void (*peek_asleep)(int32_t tid, cpprof_vm_visit *visit, void *ctx);
};

/*
 * Errors:  CPPROF_INVALID (no name, stack or describe), CPPROF_NOMEM.
 * Owner:   ops and its strings live as long as the process.
 * Safety:  MT. Not AS.
 */
CPPROF_API enum cpprof_status
cpprof_vm_new(const struct cpprof_vm_ops *ops, struct cpprof_vm **vm,
              struct cpprof_error *error);

/*
 * Native code that is the interpreter's run loop: in mixed stacks a frame of it
 * is replaced by those of the script that it runs, from a CPPROF_VM_ENTRY on.
 * Several pieces may be named, up to 16; false: there were as many. n_bytes 0:
 * the function that begins at start; false if none does, by its unwind table.
 * Safety: MT.
 */
CPPROF_API bool
cpprof_vm_add_run_loop(struct cpprof_vm *vm, const void *start, size_t n_bytes);

/* Native code that stands between the run loop and functions that it calls, or
 * that call it: left out of mixed stacks. Up to 64. n_bytes as above. Safety:
 * MT. */
CPPROF_API bool
cpprof_vm_add_plumbing(struct cpprof_vm *vm, const void *start, size_t n_bytes);

/*
 * The same for interpreters without symbols. A native function, `inner`, calls
 * it. A script has called `inner`, and the host started the script by calling
 * `outer`. Of the functions between the two, and `outer` itself, the largest is
 * the run loop, and the others are plumbing.
 *
 * False: the stack could not be walked, or there was no room.
 * Safety: MT.
 */
CPPROF_API bool
cpprof_vm_learn_run_loop(struct cpprof_vm *vm, const void *inner,
                         const void *outer);

/* Called by what the collector of garbage calls, as a finalizer, where the run
 * loop called the collector: the function there is "[garbage collection]" in
 * mixed stacks. False: it is not found. Safety: MT. */
CPPROF_API bool
cpprof_vm_learn_collector(struct cpprof_vm *vm);

/*
 * One stack of an interpreter: a coroutine, a lua_State, a thread of Python.
 * One native thread at a time uses it.
 */
struct cpprof_vm_thread {
    uint32_t due; /* something is to be done at a safepoint */
};

/* Errors: CPPROF_NOMEM. Owner: the caller frees it when the stack ends; thread
 * is handed back to ops. Safety: MT. */
CPPROF_API enum cpprof_status
cpprof_vm_thread_new(struct cpprof_vm *vm, void *thread,
                     struct cpprof_vm_thread **t, struct cpprof_error *error);
/* NULL is fine. Time of it that is in no sample yet goes to the next stack of
 * its interpreter that is sampled. Safety: MT, while nobody uses t. */
CPPROF_API void
cpprof_vm_thread_free(struct cpprof_vm_thread *t);

/*
 * The calling native thread runs t from here on (NULL: none), as at a resume or
 * yield; returns which it ran before. Only the time of entered threads counts;
 * of spans, too: the clock of one that runs stands still until t is entered
 * again. One t that is never entered is taken to run always.
 *
 * Safety: MT. AS, but for the one that runs. A few nanoseconds.
 */
CPPROF_API struct cpprof_vm_thread *
cpprof_vm_thread_enter(struct cpprof_vm_thread *t);

/*
 * An interpreter that has one lock for all its threads may let any that holds
 * it come to the safepoints of the others, which are never entered then. The
 * CPU time of t (mode CPU) is that of the native thread tid, as gettid() has
 * it; without this, of the thread that comes.
 *
 * Safety: the caller holds that lock.
 */
CPPROF_API void
cpprof_vm_thread_set_tid(struct cpprof_vm_thread *t, int32_t tid);

/*
 * For interpreters that poll native threads instead of following them
 * (CPPROF_VM_FINDS); modes TICK and CPU. What a poll finds has run since the
 * poll before.
 *
 * The calling native thread runs t: it is entered, and has the time that the
 * one of its kind that was entered has not been charged with.
 */
CPPROF_API void
cpprof_vm_thread_found(struct cpprof_vm_thread *t);
/* If the clock of t runs: until then, on CLOCK_MONOTONIC, the host was at work;
 * 0: until now. */
CPPROF_API void
cpprof_vm_thread_leave_out(struct cpprof_vm_thread *t, uint64_t until_ns);
/* It went on in another native thread than was known: if it was asked and did
 * not answer, the time until now is "[no answer]". Safety of all three: AS, on
 * the native thread that runs t or would. */
CPPROF_API void
cpprof_vm_thread_no_answer(struct cpprof_vm_thread *t);

/* The code of a function is gone; its identity may come again for another.
 * What was sampled keeps its name. Safety: MT. A few nanoseconds when no
 * profile runs. */
CPPROF_API void
cpprof_vm_forget_function(struct cpprof_vm *vm, const void *function);

/* What a signal would do to a native thread; signal(7). */
enum cpprof_vm_sleep {
    CPPROF_VM_AWAKE,          /* it runs, waits for a processor, or is gone */
    CPPROF_VM_ASLEEP,         /* the system call goes on after the handler */
    CPPROF_VM_ASLEEP_LIGHTLY, /* the call would end early, with EINTR */
};

/*
 * For .interrupt that is a signal: a thread that sleeps lightly is to be left
 * alone. It may fall asleep between the look and the signal. One that was
 * woken sleeps until it has run: *cpu_ns, at first 0, is kept between the looks
 * at a thread to know that.
 *
 * Units:   tid as gettid() has it, of this process.
 * Safety:  MT. It reads a small file of /proc, some microseconds.
 */
CPPROF_API enum cpprof_vm_sleep
cpprof_vm_read_sleep(int32_t tid, uint64_t *cpu_ns);

/*
 * A thread that serves profiles is in none of them: what makes an interpreter
 * come to its safepoints, say. It calls the one first and the other last.
 * Safety: MT.
 */
CPPROF_API void
cpprof_vm_own_thread_begin(void);
CPPROF_API void
cpprof_vm_own_thread_end(void);

/* The profile that runs, by its number; 0: none. For callers that want to know
 * at every call: it is two loads. Only cpprof changes it. */
struct cpprof_vm_running {
    uint32_t ticks; /* that goes by ticks */
    uint32_t spans; /* that counts spans */
};
CPPROF_API extern const struct cpprof_vm_running *const cpprof_vm_running;

CPPROF_API void
cpprof_vm_span_begin_counted(struct cpprof_vm_thread *t);
CPPROF_API void
cpprof_vm_span_next_counted(struct cpprof_vm_thread *t);
CPPROF_API void
cpprof_vm_span_end_counted(struct cpprof_vm_thread *t);
/* What poll calls, and what .interrupt leads to. */
CPPROF_API void
cpprof_vm_thread_safepoint(struct cpprof_vm_thread *t);

/* Safety: the thread that runs t. */
static inline void
cpprof_vm_span_begin(struct cpprof_vm_thread *t)
{
    if (__builtin_expect(
            __atomic_load_n(&cpprof_vm_running->spans, __ATOMIC_RELAXED), 0))
        cpprof_vm_span_begin_counted(t);
}

/* An end and a begin at once, while the stack is still that of the end: all
 * time counts, and there is one look at the clock. */
static inline void
cpprof_vm_span_next(struct cpprof_vm_thread *t)
{
    if (__builtin_expect(
            __atomic_load_n(&cpprof_vm_running->spans, __ATOMIC_RELAXED), 0))
        cpprof_vm_span_next_counted(t);
}

static inline void
cpprof_vm_span_end(struct cpprof_vm_thread *t)
{
    if (__builtin_expect(
            __atomic_load_n(&cpprof_vm_running->spans, __ATOMIC_RELAXED), 0))
        cpprof_vm_span_end_counted(t);
}

static inline void
cpprof_vm_thread_poll(struct cpprof_vm_thread *t)
{
    if (__builtin_expect(__atomic_load_n(&t->due, __ATOMIC_RELAXED), 0))
        cpprof_vm_thread_safepoint(t);
}

enum cpprof_vm_mode {
    CPPROF_VM_MODE_TICK = 0, /* a timer asks, the next safepoint answers,
                              * weighed by the wall time since the last */
    CPPROF_VM_MODE_SPAN,     /* every span is timed: wall time, exact */
    CPPROF_VM_MODE_CPU, /* as TICK, of each thread's CPU clock: the timer's, by
                         * a signal, and the time's */
};

struct cpprof_vm_options {
    size_t size; /* sizeof (struct cpprof_vm_options) */
    enum cpprof_vm_mode mode;
    uint32_t rate_hz;     /* 1 to 10000; 0: 100: quantum or tick of 10 ms */
    uint32_t max_depth;   /* 1 to 1024; 0: 128 */
    uint32_t flags;       /* CPPROF_FLAG_MERGE */
    struct cpprof_vm *vm; /* NULL: all of them */
};

/*
 * Profile interpreted code until cpprof_vm_stop(), streaming into
 * writer. options NULL: mode TICK at 100 Hz, of all interpreters.
 *
 * Shape:   one sample per quantum or tick, or merged; leaf first; one value,
 *          "wall", in mode CPU "cpu"; no native frames. One mapping per
 *          interpreter, "[lua]".
 * Units:   nanoseconds; the period is the quantum or tick.
 * Errors:  CPPROF_BUSY ("profiler already running"), CPPROF_INVALID,
 *          CPPROF_NOMEM, CPPROF_SYSTEM (a thread cannot be created).
 * Owner:   the writer is cpprof's until it is closed, here if this fails; a
 *          slow one does not hold up the interpreter: time that finds no room
 *          is "[lost samples]".
 * Safety:  MT. Not AS. At any moment, from any thread; a forked child has none.
 * Source:  starlark.StartProfile.
 */
CPPROF_API enum cpprof_status
cpprof_vm_start(const struct cpprof_writer *writer,
                const struct cpprof_vm_options *options,
                struct cpprof_error *error);

/* cpprof_vm_start() to the file at path, in one call: with a writer of
 * cpprof_writer_to_path(), whose errors come too. Safety: as that. */
CPPROF_API enum cpprof_status
cpprof_vm_start_to_path(const char *path,
                        const struct cpprof_vm_options *options,
                        struct cpprof_error *error);

/*
 * Write what is left and close the writer. Returns when that is done, whoever
 * calls it, as cpprof_cpu_stop() does. Harmless when no profile runs.
 *
 * Time that a thread has run without coming to a safepoint or the end of its
 * span, if it is a quantum or more, is "[no answer]": its stack cannot be told
 * from here. The calling thread's own is walked; with CPPROF_VM_FINDS, if it
 * has let some ticks in a row go by, that is "[no answer]", too.
 *
 * Errors:  CPPROF_NOMEM, CPPROF_SYSTEM: the first of the whole profile.
 * Safety:  MT. Not AS.
 * Source:  starlark.StopProfile.
 */
CPPROF_API enum cpprof_status
cpprof_vm_stop(struct cpprof_error *error);

/* Has cpprof_vm_start(), or CPPROF=vm, begun a profile that is not stopped?
 * Safety: AS. */
CPPROF_API bool
cpprof_vm_is_running(void);

#ifdef __cplusplus
}
#endif

#endif
