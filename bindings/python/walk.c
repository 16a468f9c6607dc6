/* SPDX-License-Identifier: MIT */
/* The stack of a thread, with the C functions that spans have seen. */
#include "python.h"

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
