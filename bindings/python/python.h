/* SPDX-License-Identifier: MIT */
/*
 * The module cpprof for CPython 3.11. docs/python.md tells how it works.
 *
 * Whoever holds the GIL may look at the stacks of all threads, so one thread
 * samples for all: no stack is ever entered (cpprof_vm_thread_enter), and
 * safepoints come by the main thread, in a pending call, or by a thread of the
 * module when the main thread sleeps. Only spans are counted by each thread
 * itself.
 *
 * For stacks with native code in them each thread looks at its own, with or
 * without the GIL (peek.c).
 *
 * All of this needs the GIL, except where a comment says otherwise.
 */
#ifndef PYTHON_PYTHON_H
#define PYTHON_PYTHON_H

#include "arch/atomic.h"

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cpprof/vm.h>
#include <frameobject.h>
#include <stdbool.h>
#include <stdint.h>

/* A C function that runs, and the frame that called it: not held, compared. */
struct builtin {
    const PyFrameObject *caller;
    PyObject *function; /* held */
};

struct thread {
    struct thread *next;
    PyThreadState *state;
    uint64_t id; /* id of the state; the list is in descending order */
    struct cpprof_vm_thread *vm;  /* NULL: it runs no Python code */
    struct cpprof_labels *labels; /* held; current in its native thread */

    /* Spans. */
    bool is_hooked;
    uint64_t looked; /* at the clock, by the counter */
    uint32_t depth;  /* frames of Python */
    uint32_t skip;   /* how many frames at the leaf the next walk leaves out */
    uint32_t n_builtins;
    uint32_t max_builtins;
    struct builtin *builtins; /* C functions that run, the last on top */
};

/* ---------------------------------------------------- threads.c ---------- */

extern struct cpprof_vm *python_vm;
extern struct thread *threads;

/* Bring the list up to date with the interpreter's. */
void
threads_update(void);
/* The interpreter was started again: none of those known is left. */
void
threads_forget(void);
/* NULL: not in the list yet. */
struct thread *
thread_find(void);
/* NULL: no memory. */
struct thread *
thread_of_caller(void);
/* Does it run Python code? Then it has a vm, unless there was no memory. */
bool
thread_wakes(struct thread *t);
/* ops.stack */
size_t
walk_stack(void *thread, struct cpprof_vm_frame *frames, size_t max);

/* ------------------------------------------------------ ticks.c ---------- */

/* ops.interrupt: without the GIL. */
void
ticks_interrupt(void *thread);
/* Sample all threads, now. */
void
ticks_sample(void);
/* Start a thread that samples when the main thread does not answer. False:
 * errno. */
bool
ticks_start(void);
/* Releases the GIL meanwhile. */
void
ticks_stop(void);
void
ticks_after_fork(void);
/* Sample if a tick has no answer yet. */
void
ticks_answer(void);

/* ------------------------------------------------------ spans.c ---------- */

/* Objects that sys.setprofile() is given, and threading's for new threads. */
extern PyTypeObject spans_type;

void
spans_begin(void);
void
spans_end(void);
/* Threads that nobody profiles. */
void
spans_hook_all(void);
/* All C functions that run, in one thread or in all. */
void
forget_builtins(struct thread *t);
void
spans_forget(void);
/* Around code that counts as a C function and is none. */
void
spans_function_begin(struct thread *t, PyObject *function);
void
spans_function_end(struct thread *t, PyObject *function);

/* -------------------------------------------------- collector.c ---------- */

#define COLLECTOR_NAME "[garbage collection]"
/* The frame whose line made the collector run in the thread of state; NULL: it
 * does not. Safety: AS, in that thread. */
const struct _PyInterpreterFrame *
collector_caller(const PyThreadState *state);
/* gc.callbacks has one of ours while a profile runs. */
void
collector_hook(void);
void
collector_unhook(void);

/* -------------------------------------------------- functions.c ---------- */

/* Identities, which stay as long as functions_forget() is not called. */
const void *
function_of_code(PyCodeObject *code);
const void *
function_of_builtin(PyObject *function);
/* To be called before a walk: releases all if too many are held. */
void
functions_begin(void);
void
functions_forget(void);
bool
describe_function(void *thread, const void *function,
                  struct cpprof_vm_function *what);

/* Bytes of a name that is put together; more is cut. */
#define NAME_BYTES 256

/* qualified, as readers take it for what it is: maybe in out. NULL: named as
 * its file. Safety: AS. */
const char *
name_in_profile(const char *qualified, const char *file, char out[NAME_BYTES]);

/* ------------------------------------------------------- peek.c ---------- */

/* ops.peek: the stack of the calling native thread, whatever `thread` is.
 * Safety: AS, with the GIL or without. */
void
peek_stack(void *thread, cpprof_vm_visit *visit, void *ctx);
/* ops.peek_asleep; without the GIL. */
void
peek_sleeper(int32_t tid, cpprof_vm_visit *visit, void *ctx);
/* Does peek find the stack of the caller that the interpreter itself reports?
 */
bool
peek_works(void);

/* --------------------------------------------------- run_loop.c ---------- */

/* Tell python_vm which native code runs scripts. */
void
learn_run_loop(void);

/* ----------------------------------------- labels.c, profiles.c ---------- */

extern PyTypeObject labels_type, profile_type;
const struct cpprof_labels *
labels_of_thread(void *thread);

/* ----------------------------------------------------- module.c ---------- */

PyMODINIT_FUNC
PyInit_cpprof(void);

/* Raises what fits; NULL. */
PyObject *
raise_failure(const struct cpprof_error *error);
/* out: a path, as open() takes it. False: raised. */
bool
writer_of(PyObject *out, struct cpprof_writer *writer);

#endif
