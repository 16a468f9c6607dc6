/* SPDX-License-Identifier: MIT */
/*
 * Pauses of the garbage collector: a function of gc.callbacks, which the
 * collector calls before and after, stands above the line that allocated as if
 * that had called it, and finalizers above. Its name is the frame's.
 *
 * A tick that comes in between is answered at the end, so that as many ticks
 * see the collector as it takes of the time; one from before has its answer
 * before.
 */
#include "python.h"

static PyObject *
on_collection(PyObject *self, PyObject *const *args, Py_ssize_t n);

static PyMethodDef method = {COLLECTOR_NAME,
                             (PyCFunction)(void (*)(void))on_collection,
                             METH_FASTCALL, NULL};

static PyObject *callback;

/* There is one at a time. */
static struct {
    PyThreadState *state; /* NULL: none */
    const struct _PyInterpreterFrame *caller;
} now;

static void
note_caller(PyThreadState *state)
{
    if (state)
        store_relaxed(&now.caller, state->cframe->current_frame);
    store_release(&now.state, state);
}

const struct _PyInterpreterFrame *
collector_caller(const PyThreadState *state)
{
    return load_acquire(&now.state) == state ? load_relaxed(&now.caller) : NULL;
}

static PyObject *
on_collection(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    /* Must not be made here, because threads may be looked at just now. */
    struct thread *t = thread_find();

    if (!t || n != 2 || !PyUnicode_Check(args[0]))
        Py_RETURN_NONE;
    if (!load_relaxed(&cpprof_vm_running->spans))
        ticks_answer();
    if (!PyUnicode_CompareWithASCIIString(args[0], "start")) {
        spans_function_begin(t, callback);
        note_caller(t->state);
    } else {
        note_caller(NULL);
        spans_function_end(t, callback);
    }
    Py_RETURN_NONE;
}

/* ---- gc.callbacks ------------------------------------------------------ */

/* NULL: it does not exist, or is something else. */
static PyObject *
callbacks_of_collector(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *list = gc ? PyObject_GetAttrString(gc, "callbacks") : NULL;

    Py_XDECREF(gc);
    if (list && !PyList_CheckExact(list))
        Py_CLEAR(list);
    PyErr_Clear();
    return list;
}

static Py_ssize_t
index_in(PyObject *list)
{
    Py_ssize_t i = PyList_GET_SIZE(list);

    while (i-- && PyList_GET_ITEM(list, i) != callback)
        continue;
    return i;
}

/* A forked child has it already. */
void
collector_hook(void)
{
    PyObject *list = callbacks_of_collector();

    if (!callback)
        callback = PyCFunction_New(&method, NULL);
    if (list && callback && index_in(list) < 0)
        PyList_Append(list, callback);
    PyErr_Clear();
    Py_XDECREF(list);
}

void
collector_unhook(void)
{
    PyObject *list = callback ? callbacks_of_collector() : NULL;
    Py_ssize_t i = list ? index_in(list) : -1;

    note_caller(NULL);
    if (i >= 0)
        PyList_SetSlice(list, i, i + 1, NULL);
    Py_XDECREF(list);
}
