/* SPDX-License-Identifier: MIT */
/*
 * Spans: the profile function of each thread, which CPython calls when a frame
 * comes or goes, for generators and coroutines at each resume and yield, and
 * around C functions. An error that leaves a function is a return of it.
 */
#include "python.h"

#include "counter.h"

#include <stdlib.h>

static uint64_t look; /* of the counter */

static int
on_event(PyObject *self, PyFrameObject *frame, int what, PyObject *arg);

static void
unhook(struct thread *t)
{
    t->is_hooked = false;
    while (t->n_builtins) {
        PyObject *function = t->builtins[--t->n_builtins].function;

        Py_DECREF(function);
    }
    if (t->state->c_profilefunc == on_event)
        PyEval_SetProfile(NULL, NULL);
}

/* ---- C functions that run ---------------------------------------------- */

static void
push_builtin(struct thread *t, const PyFrameObject *caller, PyObject *function)
{
    uint32_t max = t->max_builtins ? 2 * t->max_builtins : 64;
    struct builtin *grown;

    if (t->n_builtins == t->max_builtins) {
        grown = realloc(t->builtins, max * sizeof *grown);
        if (!grown)
            return;
        t->builtins = grown;
        t->max_builtins = max;
    }
    t->builtins[t->n_builtins++] =
        (struct builtin){caller, Py_NewRef(function)};
}

static void
pop_builtins(struct thread *t, const PyFrameObject *caller, uint32_t most)
{
    while (t->n_builtins && most-- &&
           t->builtins[t->n_builtins - 1].caller == caller) {
        PyObject *function = t->builtins[--t->n_builtins].function;

        Py_DECREF(function);
    }
}

/* ---- events ------------------------------------------------------------ */

static inline bool
may_be_due(struct thread *t)
{
    uint64_t now = counter_read();

    if (now - t->looked < look)
        return false;
    t->looked = now;
    return true;
}

/* The time until now was the caller's. */
static void
on_call(struct thread *t)
{
    if (t->depth++ == 0) {
        cpprof_vm_span_begin(t->vm);
        t->looked = counter_read();
        return;
    }
    if (!may_be_due(t))
        return;
    t->skip = 1;
    cpprof_vm_span_next(t->vm);
    t->skip = 0;
}

static void
on_return(struct thread *t, const PyFrameObject *frame)
{
    if (t->depth)
        t->depth--;
    if (!t->depth)
        cpprof_vm_span_end(t->vm);
    else if (may_be_due(t))
        cpprof_vm_span_next(t->vm);
    pop_builtins(t, frame, UINT32_MAX);
}

static int
on_event(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    struct thread *t = PyCapsule_GetPointer(self, NULL);

    if (!__atomic_load_n(&cpprof_vm_spans, __ATOMIC_RELAXED)) {
        unhook(t);
        return 0;
    }
    switch (what) {
    case PyTrace_CALL:
        on_call(t);
        break;
    case PyTrace_RETURN:
        on_return(t, frame);
        break;
    case PyTrace_C_CALL:
        if (may_be_due(t))
            cpprof_vm_span_next(t->vm);
        push_builtin(t, frame, arg);
        break;
    case PyTrace_C_EXCEPTION:
    case PyTrace_C_RETURN:
        if (may_be_due(t))
            cpprof_vm_span_next(t->vm);
        pop_builtins(t, frame, 1);
        break;
    }
    return 0;
}

/* ---- hooks ------------------------------------------------------------- */

static uint32_t
depth_of(PyThreadState *state)
{
    PyFrameObject *frame = PyThreadState_GetFrame(state), *back;
    uint32_t n = 0;

    for (; frame; frame = back, n++) {
        back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
    }
    return n;
}

/* Of the thread whose state is the current one. */
static void
hook(struct thread *t)
{
    PyObject *self;

    if (t->is_hooked || t->state->c_profilefunc || !thread_wakes(t))
        return;
    self = PyCapsule_New(t, NULL, NULL);
    if (!self) {
        PyErr_Clear();
        return;
    }
    t->depth = depth_of(t->state);
    t->skip = 0;
    PyEval_SetProfile(on_event, self);
    Py_DECREF(self);
    t->is_hooked = t->state->c_profilefunc == on_event;
    if (t->is_hooked)
        cpprof_vm_span_begin(t->vm);
}

/* PyEval_SetProfile() is for the current thread: each is it for a moment. */
static void
as_each(void (*what)(struct thread *t))
{
    PyThreadState *own = PyThreadState_Get();
    struct thread *t, *next;

    for (t = threads; t; t = next) {
        next = t->next;
        PyThreadState_Swap(t->state);
        what(t);
        PyThreadState_Swap(own);
    }
}

void
spans_hook_all(void)
{
    if (!look)
        look = counter_measure();
    threads_update();
    as_each(hook);
}

/* What runs is charged to where it is. */
static void
end_one(struct thread *t)
{
    if (!t->is_hooked)
        return;
    t->skip = 0;
    cpprof_vm_span_end(t->vm);
    unhook(t);
}

void
spans_unhook_all(void)
{
    threads_update();
    as_each(end_one);
}

PyObject *
spans_begin(PyObject *module, PyObject *args)
{
    struct thread *t = thread_of_caller();

    if (t && t->state->c_profilefunc != on_event) {
        PyEval_SetProfile(NULL, NULL); /* this function */
        if (__atomic_load_n(&cpprof_vm_spans, __ATOMIC_RELAXED))
            hook(t);
    }
    Py_RETURN_NONE;
}
