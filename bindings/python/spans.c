/* SPDX-License-Identifier: MIT */
/*
 * Spans: the profile function of each thread, which CPython calls when a frame
 * comes or goes, for generators and coroutines at each resume and yield, and
 * around C functions. An error that leaves a function is a return of it.
 *
 * The program may set another meanwhile, save and restore ours by its object
 * (sys.getprofile()), or have cProfile do so. An audit hook tells of it before:
 * the spans of the thread end there, and begin anew where that has ended.
 */
#include "python.h"

#include "../counter.h"

#include <stdlib.h>
#include <string.h>

/* For sys.setprofile() and getprofile(). */
struct spans {
    PyObject_HEAD struct thread
        *t; /* NULL: of threading, for whichever comes */
};

/* The thread that is setting our profile function, or NULL. */
static PyThreadState *setting;

static int
on_event(PyObject *self, PyFrameObject *frame, int what, PyObject *arg);

static void
set_profile(Py_tracefunc function, PyObject *self)
{
    PyThreadState *outer = setting;

    setting = PyThreadState_Get();
    PyEval_SetProfile(function, self);
    setting = outer;
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

void
forget_builtins(struct thread *t)
{
    while (t->n_builtins)
        Py_DECREF(t->builtins[--t->n_builtins].function);
}

/* ---- events ------------------------------------------------------------ */

/* The time until now is the caller's. */
static void
on_call(struct thread *t)
{
    if (t->depth++ == 0) {
        cpprof_vm_span_begin(t->vm);
        t->looked = counter_read();
        return;
    }
    if (!counter_may_be_due(&t->looked))
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
    else if (counter_may_be_due(&t->looked))
        cpprof_vm_span_next(t->vm);
    pop_builtins(t, frame, UINT32_MAX);
}

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

/* The clock of t begins. C functions that run already are not known. */
static void
begin_one(struct thread *t, uint32_t depth)
{
    forget_builtins(t);
    t->depth = depth;
    t->skip = 0;
    t->is_hooked = true;
    if (depth)
        cpprof_vm_span_begin(t->vm);
}

static void
handle(struct thread *t, PyFrameObject *frame, int what, PyObject *arg)
{
    switch (what) {
    case PyTrace_CALL:
        on_call(t);
        break;
    case PyTrace_RETURN:
        on_return(t, frame);
        break;
    case PyTrace_C_CALL:
        if (counter_may_be_due(&t->looked))
            cpprof_vm_span_next(t->vm);
        push_builtin(t, frame, arg);
        break;
    case PyTrace_C_EXCEPTION:
    case PyTrace_C_RETURN:
        if (counter_may_be_due(&t->looked))
            cpprof_vm_span_next(t->vm);
        pop_builtins(t, frame, 1);
        break;
    }
}

static int
on_event(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    struct thread *t = ((struct spans *)self)->t;

    if (!load_relaxed(&cpprof_vm_running->spans)) {
        t->is_hooked = false;
        forget_builtins(t);
        set_profile(NULL, NULL);
        return 0;
    }
    if (!t->is_hooked)
        begin_one(t, depth_of(t->state) - (what == PyTrace_CALL));
    handle(t, frame, what, arg);
    return 0;
}

void
spans_function_begin(struct thread *t, PyObject *function)
{
    PyFrameObject *frame = PyThreadState_GetFrame(t->state);

    if (t->is_hooked && counter_may_be_due(&t->looked))
        cpprof_vm_span_next(t->vm);
    if (frame)
        push_builtin(t, frame, function);
    Py_XDECREF(frame);
}

void
spans_function_end(struct thread *t, PyObject *function)
{
    if (t->is_hooked && counter_may_be_due(&t->looked))
        cpprof_vm_span_next(t->vm);
    if (t->n_builtins && t->builtins[t->n_builtins - 1].function == function)
        pop_builtins(t, t->builtins[t->n_builtins - 1].caller, 1);
}

/* ---- hooks ------------------------------------------------------------- */

static PyObject *
make_spans(struct thread *t)
{
    struct spans *made = PyObject_New(struct spans, &spans_type);

    if (made)
        made->t = t;
    else
        PyErr_Clear();
    return (PyObject *)made;
}

/* Replace the profile function of the thread whose state is the current one.
 * False: no memory, or an audit hook of the program's has refused. */
static bool
install(struct thread *t)
{
    PyObject *self = make_spans(t);

    if (!self)
        return false;
    set_profile(on_event, self);
    Py_DECREF(self);
    return t->state->c_profilefunc == on_event;
}

static void
hook(struct thread *t)
{
    if (t->state->c_profilefunc || !thread_wakes(t) || !install(t))
        return;
    begin_one(t, depth_of(t->state));
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

/* Charge the time until now to the stack that runs. */
static void
end_one(struct thread *t)
{
    if (!t->is_hooked)
        return;
    t->skip = 0;
    cpprof_vm_span_end(t->vm);
    t->is_hooked = false;
    forget_builtins(t);
}

static void
unhook(struct thread *t)
{
    if (t->state->c_profilefunc != on_event)
        forget_builtins(t); /* of long ago, if nobody told */
    end_one(t);
    if (t->state->c_profilefunc == on_event)
        set_profile(NULL, NULL);
}

/* Somebody else sets a profile function, or removes ours: the thread is looked
 * at again soon. */
static int
on_audit(const char *event, PyObject *args, void *unused)
{
    struct thread *t;

    if (strcmp(event, "sys.setprofile") ||
        !load_relaxed(&cpprof_vm_running->spans) ||
        setting == PyThreadState_Get())
        return 0;
    t = thread_find();
    if (t)
        end_one(t);
    ticks_interrupt(NULL);
    return 0;
}

/* ---- the object -------------------------------------------------------- */

static int
event_of(PyObject *name)
{
    /* ORDER: PyTrace_CALL and others */
    static const char *const names[] = {"call",     "exception", "line",
                                        "return",   "c_call",    "c_exception",
                                        "c_return", "opcode"};
    int what = 0;

    while (what < 8 && PyUnicode_CompareWithASCIIString(name, names[what]))
        what++;
    return what;
}

/* The profile function of the caller's thread, as the program or threading has
 * set it; called for itself it does nothing. */
static PyObject *
call(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyThreadState *state = PyThreadState_Get();
    PyObject *frame, *event, *arg;
    struct thread *t;

    if (!PyArg_ParseTuple(args, "O!UO:spans", &PyFrame_Type, &frame, &event,
                          &arg))
        return NULL;
    if (state->c_profilefunc == on_event || state->c_profileobj != self)
        Py_RETURN_NONE;
    Py_INCREF(self); /* it may be nobody's any more */
    t = thread_of_caller();
    if (t && load_relaxed(&cpprof_vm_running->spans) && thread_wakes(t) &&
        install(t))
        on_event(state->c_profileobj, (PyFrameObject *)frame, event_of(event),
                 arg);
    else
        set_profile(NULL, NULL);
    Py_DECREF(self);
    Py_RETURN_NONE;
}

PyTypeObject spans_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cpprof.spans",
    .tp_doc = "The profile function of a profile in mode span.",
    .tp_basicsize = sizeof(struct spans),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_call = call,
};

/* ---- new threads ------------------------------------------------------- */

/* threading.setprofile(), if what there is is, or is not, ours: the program's
 * own stays. */
static void
hook_new_threads(PyObject *hook, bool is_ours)
{
    PyObject *module = PyImport_ImportModule("threading"), *result = NULL;
    PyObject *former =
        module ? PyObject_CallMethod(module, "getprofile", NULL) : NULL;

    if (former &&
        (is_ours ? Py_IS_TYPE(former, &spans_type) : Py_IsNone(former)))
        result = PyObject_CallMethod(module, "setprofile", "O", hook);
    PyErr_Clear();
    Py_XDECREF(result);
    Py_XDECREF(former);
    Py_XDECREF(module);
}

void
spans_begin(void)
{
    static bool is_auditing;
    PyObject *of_threading = make_spans(NULL);

    counter_measure();
    if (!is_auditing)
        is_auditing = !PySys_AddAuditHook(on_audit, NULL);
    PyErr_Clear();
    if (of_threading)
        hook_new_threads(of_threading, false);
    Py_XDECREF(of_threading);
    spans_hook_all();
}

void
spans_hook_all(void)
{
    threads_update();
    as_each(hook);
}

void
spans_end(void)
{
    hook_new_threads(Py_None, true);
    threads_update();
    as_each(unhook);
}

void
spans_forget(void)
{
    struct thread *t;

    for (t = threads; t; t = t->next)
        forget_builtins(t);
}
