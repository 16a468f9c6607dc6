/* SPDX-License-Identifier: MIT */
/*
 * The threads of the interpreter that imported the module. Its list has the
 * newest in front, with numbers that fall and are never given again: so does
 * ours, and both are gone through at once. An interpreter that is started again
 * begins with 1: ours is emptied then. And the stack of each, which whoever
 * holds the GIL may walk.
 */
#include "python.h"

#include <limits.h>
#include <stdlib.h>

struct cpprof_vm *python_vm;
struct thread *threads;

/* Labels that are still set may belong to its native thread, which may go on.
 */
static void
free_thread(struct thread *t)
{
    cpprof_vm_thread_free(t->vm);
    forget_builtins(t);
    free(t->builtins);
    free(t);
}

static struct thread *
make_thread(PyThreadState *state, struct thread *next)
{
    struct thread *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->state = state;
    t->id = PyThreadState_GetID(state);
    t->next = next;
    return t;
}

/* A thread of C code makes its state without the GIL, under the lock of the
 * list, and is in it before all is set. Any function that takes that lock comes
 * back when it is; this one looks for a thread that there is not. That address
 * and number are known says nothing: they may have been another's. */
static PyThreadState *
complete_head(PyInterpreterState *interpreter)
{
    PyThreadState *state = PyInterpreterState_ThreadHead(interpreter);

    PyThreadState_SetAsyncExc(ULONG_MAX, NULL);
    return state;
}

void
threads_forget(void)
{
    struct thread *t;

    while ((t = threads)) {
        threads = t->next;
        free_thread(t);
    }
}

void
threads_update(void)
{
    PyInterpreterState *interpreter =
        PyThreadState_GetInterpreter(PyThreadState_Get());
    PyThreadState *state = complete_head(interpreter);
    struct thread **at = &threads, *gone;

    if (interpreter != PyInterpreterState_Main())
        return;
    while (state || *at) {
        uint64_t id = state ? PyThreadState_GetID(state) : 0;

        if (*at && (*at)->id > id) {
            gone = *at;
            *at = gone->next;
            free_thread(gone);
            continue;
        }
        if (!*at || (*at)->id < id) {
            struct thread *made = make_thread(state, *at);

            if (made)
                *at = made;
        }
        if (*at && (*at)->id == id)
            at = &(*at)->next;
        state = PyThreadState_Next(state);
    }
}

struct thread *
thread_find(void)
{
    PyThreadState *state = PyThreadState_Get();
    struct thread *t;

    for (t = threads; t && t->state != state; t = t->next) {
    }
    return t && t->id == PyThreadState_GetID(state) ? t : NULL;
}

struct thread *
thread_of_caller(void)
{
    struct thread *t = thread_find();

    if (t)
        return t;
    threads_update();
    return thread_find();
}

bool
thread_wakes(struct thread *t)
{
    PyFrameObject *frame = PyThreadState_GetFrame(t->state);

    if (!frame) {
        cpprof_vm_thread_free(t->vm);
        t->vm = NULL;
        return false;
    }
    Py_DECREF(frame);
    if (t->vm)
        return true;
    if (cpprof_vm_thread_new(python_vm, t, &t->vm, NULL) != CPPROF_OK)
        return false;
    cpprof_vm_thread_set_tid(t->vm, (int32_t)t->state->native_thread_id);
    return true;
}

/* ---- stacks ------------------------------------------------------------ */

/* The stack of a thread, with the C functions that spans have seen. */
struct walk {
    struct thread *t;
    uint32_t n_builtins; /* that are still to come */
    struct cpprof_vm_frame *frames;
    size_t n, max;
};

static void
put(struct walk *w, const void *function, int line)
{
    struct cpprof_vm_frame *frame = &w->frames[w->n++];

    frame->function = function;
    frame->line = line > 0 ? line : 0;
    frame->pc = (uint32_t)frame->line;
    frame->flags = 0;
}

static void
put_builtins(struct walk *w, const PyFrameObject *caller)
{
    while (w->n_builtins && w->n < w->max) {
        const struct builtin *b = &w->t->builtins[w->n_builtins - 1];

        if (b->caller != caller)
            break;
        w->n_builtins--;
        put(w, function_of_builtin(b->function), 0);
    }
}

static void
put_frame(struct walk *w, PyFrameObject *frame)
{
    PyCodeObject *code;

    put_builtins(w, frame);
    if (w->n == w->max)
        return;
    code = PyFrame_GetCode(frame);
    put(w, function_of_code(code), PyFrame_GetLineNumber(frame));
    Py_DECREF(code);
}

size_t
walk_stack(void *thread, struct cpprof_vm_frame *frames, size_t max)
{
    struct thread *t = thread;
    struct walk w = {
        .t = t, .n_builtins = t->n_builtins, .frames = frames, .max = max};
    PyFrameObject *frame = PyThreadState_GetFrame(t->state), *back;
    uint32_t skip = t->skip;

    functions_begin();
    for (; frame; frame = back) {
        if (skip)
            skip--;
        else if (w.n < max)
            put_frame(&w, frame);
        back = w.n < max ? PyFrame_GetBack(frame) : NULL;
        Py_DECREF(frame);
    }
    return w.n;
}
