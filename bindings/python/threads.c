/* SPDX-License-Identifier: MIT */
/*
 * The threads of the interpreter that imported the module. Its list has the
 * newest in front, with numbers that fall: so does ours, and both are gone
 * through at once.
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
    while (t->n_builtins)
        Py_DECREF(t->builtins[--t->n_builtins].function);
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
 * back when it is; this one looks for a thread that there is not. */
static PyThreadState *
complete_head(PyInterpreterState *interpreter)
{
    PyThreadState *state = PyInterpreterState_ThreadHead(interpreter);

    if (!threads || threads->state != state ||
        threads->id != PyThreadState_GetID(state))
        PyThreadState_SetAsyncExc(ULONG_MAX, NULL);
    return state;
}

/* An interpreter that is started again numbers its threads from the beginning.
 */
static bool
is_gone(const struct thread *t, const PyThreadState *state, uint64_t id)
{
    return t->id > id || (t->id == id && t->state != state);
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

        if (*at && is_gone(*at, state, id)) {
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
