/* SPDX-License-Identifier: MIT */
/*
 * The module cpprof for CPython: its functions and its life. docs/python.md
 * tells what the functions are for; python.h tells how it samples.
 */
#include "python.h"

#include <cpprof/writer.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_OUT "python.pb.gz"

static struct cpprof_vm_ops ops = {
    .size = sizeof ops,
    .name = "python",
    .flags = CPPROF_VM_SIGNAL_SAFE,
    .stack = walk_stack,
    .describe = describe_function,
    .labels = labels_of_thread,
    .interrupt = ticks_interrupt,
    .peek = peek_stack,
    .peek_asleep = peek_sleeper,
};

PyObject *
raise_failure(const struct cpprof_error *error)
{
    if (error->status == CPPROF_NOMEM)
        return PyErr_NoMemory();
    if (error->status == CPPROF_SYSTEM && error->sys) {
        PyObject *args = Py_BuildValue("(is)", error->sys, error->text);

        if (args)
            PyErr_SetObject(PyExc_OSError, args);
        Py_XDECREF(args);
        return NULL;
    }
    PyErr_SetString(error->status == CPPROF_INVALID ? PyExc_ValueError
                                                    : PyExc_RuntimeError,
                    error->text);
    return NULL;
}

bool
writer_of(PyObject *out, struct cpprof_writer *writer)
{
    struct cpprof_error error;
    enum cpprof_status status;
    PyObject *path = NULL;

    if (out && !PyUnicode_FSConverter(out, &path))
        return false;
    status = cpprof_writer_to_path(path ? PyBytes_AS_STRING(path) : DEFAULT_OUT,
                                   writer, &error);
    Py_XDECREF(path);
    if (status != CPPROF_OK)
        raise_failure(&error);
    return status == CPPROF_OK;
}

/* ---- one start or stop at a time --------------------------------------- */

/* Both release the GIL in between. A call from inside itself, by a signal
 * handler or a finalizer of the program, is refused. */
static struct {
    pthread_mutex_t lock; /* taken without the GIL */
    bool is_taken;
    pthread_t owner;
} control = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* When the interpreter ends, threads with the lock may be gone. */
static bool
lock_control(void)
{
    if (_Py_IsFinalizing())
        return !pthread_mutex_trylock(&control.lock);
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&control.lock);
    Py_END_ALLOW_THREADS;
    return true;
}

/* False: the caller has it already, or it is not to be had. */
static bool
take_control(void)
{
    if (control.is_taken && pthread_equal(control.owner, pthread_self()))
        return false;
    if (!lock_control())
        return false;
    control.owner = pthread_self();
    control.is_taken = true;
    return true;
}

static void
give_control(void)
{
    control.is_taken = false;
    pthread_mutex_unlock(&control.lock);
}

static void
profile_after_fork(void)
{
    ticks_after_fork();
    if (control.is_taken && pthread_equal(control.owner, pthread_self()))
        return;
    control.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    control.is_taken = false;
}

/* ---- arguments --------------------------------------------------------- */

static bool
read_mode(const char *name, enum cpprof_vm_mode *mode)
{
    /* ORDER: enum cpprof_vm_mode */
    static const char *const modes[] = {"tick", "span", "cpu"};
    unsigned i;

    for (i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(name, modes[i]))
            continue;
        *mode = (enum cpprof_vm_mode)i;
        return true;
    }
    PyErr_Format(PyExc_ValueError, "mode '%s' is not tick, span or cpu", name);
    return false;
}

/* NULL: as the library has it. */
static bool
read_number(PyObject *given, const char *error, uint32_t max, uint32_t *number)
{
    int overflow = 0;
    long value = given ? PyLong_AsLongAndOverflow(given, &overflow) : 1;

    if (!given)
        return true;
    if (value == -1 && PyErr_Occurred())
        return false;
    if (overflow || value < 1 || value > (long)max) {
        PyErr_Format(PyExc_ValueError, error, given, max);
        return false;
    }
    *number = (uint32_t)value;
    return true;
}

/* ---- start ------------------------------------------------------------- */

static bool
counts_spans(void)
{
    return load_relaxed(&cpprof_vm_running->spans);
}

/* The clock of each thread begins now. */
static void
begin(void)
{
    if (counts_spans())
        spans_begin();
    else
        ticks_sample();
    collector_hook();
}

/* NULL: raised. */
static PyObject *
start_controlled(struct cpprof_writer writer,
                 const struct cpprof_vm_options *options)
{
    enum cpprof_status status;
    struct cpprof_error error;

    Py_BEGIN_ALLOW_THREADS;
    status = cpprof_vm_start(&writer, options, &error);
    Py_END_ALLOW_THREADS;
    if (status != CPPROF_OK)
        return raise_failure(&error);
    if (!ticks_start()) {
        int failed = errno;

        cpprof_vm_stop(NULL);
        errno = failed;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    begin();
    Py_RETURN_NONE;
}

static PyObject *
profile_start(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"mode", "hz", "out", "depth", "merge", NULL};
    struct cpprof_vm_options options = {.size = sizeof options};
    PyObject *out = NULL, *hz = NULL, *depth = NULL, *result;
    const char *mode = "tick";
    struct cpprof_writer writer;
    int merge = 1;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$sOOOp:start", names,
                                     &mode, &hz, &out, &depth, &merge) ||
        !read_mode(mode, &options.mode) ||
        !read_number(hz, "rate %S Hz is outside 1 to %u", 10000,
                     &options.rate_hz) ||
        !read_number(depth, "depth %S is outside 1 to %u", 1024,
                     &options.max_depth))
        return NULL;
    options.flags = merge ? CPPROF_FLAG_MERGE : 0;
    options.vm = python_vm;
    if (!take_control()) {
        PyErr_SetString(PyExc_RuntimeError, "profiler is starting or stopping");
        return NULL;
    }
    result =
        writer_of(out, &writer) ? start_controlled(writer, &options) : NULL;
    give_control();
    return result;
}

/* ---- stop -------------------------------------------------------------- */

/* Charge all time until now to where each thread is. */
static enum cpprof_status
stop_controlled(struct cpprof_error *error)
{
    enum cpprof_status status;

    if (counts_spans())
        spans_end();
    else
        ticks_sample();
    collector_unhook();
    spans_forget();
    Py_BEGIN_ALLOW_THREADS;
    status = cpprof_vm_stop(error);
    Py_END_ALLOW_THREADS;
    ticks_stop();
    functions_forget();
    return status;
}

static PyObject *
profile_stop(PyObject *self, PyObject *unused)
{
    enum cpprof_status status;
    struct cpprof_error error;

    if (!take_control())
        Py_RETURN_NONE;
    status = stop_controlled(&error);
    give_control();
    if (status != CPPROF_OK)
        return raise_failure(&error);
    Py_RETURN_NONE;
}

/* ---- the module -------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"start", (PyCFunction)(void (*)(void))profile_start,
     METH_VARARGS | METH_KEYWORDS,
     "start(*, mode='tick', hz=100, out='python.pb.gz', depth=128, "
     "merge=True)\n\nProfile all threads until stop()."},
    {"stop", profile_stop, METH_NOARGS, "stop(): write the profile"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "cpprof",
    .m_doc = "Profiles of Python code, as pprof files.",
    .m_size = -1,
    .m_methods = functions,
};

/* A profile that still runs is written before the interpreter ends. */
static bool
stop_at_exit(PyObject *module)
{
    PyObject *atexit = PyImport_ImportModule("atexit"), *result = NULL;
    PyObject *function = PyObject_GetAttrString(module, "stop");

    if (atexit && function)
        result = PyObject_CallMethod(atexit, "register", "O", function);
    Py_XDECREF(function);
    Py_XDECREF(atexit);
    if (!result)
        return false;
    Py_DECREF(result);
    return true;
}

static bool
register_vm(void)
{
    struct cpprof_error error;

    if (python_vm)
        return true;
    if (!peek_works()) {
        ops.peek = NULL;
        ops.peek_asleep = NULL;
    }
    if (cpprof_vm_new(&ops, &python_vm, &error) != CPPROF_OK) {
        raise_failure(&error);
        return false;
    }
    if (ops.peek)
        learn_run_loop();
    pthread_atfork(NULL, NULL, profile_after_fork);
    return true;
}

/* From here on the library knows the main thread, so it starts the profile that
 * CPPROF=vm asks for, in which we take part. For other threads it was enough to
 * register. */
static void
join_environment(void)
{
    struct thread *t = thread_of_caller();

    if (!getenv("CPPROF") || !t || !thread_wakes(t))
        return;
    if ((!counts_spans() && !load_relaxed(&cpprof_vm_running->ticks)) ||
        !take_control())
        return;
    ticks_start();
    begin();
    give_control();
}

/* Called once for each start of the main interpreter. */
PyMODINIT_FUNC
PyInit_cpprof(void)
{
    PyObject *module = PyModule_Create(&definition);

    if (!module)
        return NULL;
    if (PyThreadState_GetInterpreter(PyThreadState_Get()) ==
        PyInterpreterState_Main())
        threads_forget();
    if (PyModule_AddType(module, &labels_type) ||
        PyModule_AddType(module, &profile_type) || PyType_Ready(&spans_type) ||
        !register_vm() || !stop_at_exit(module)) {
        Py_DECREF(module);
        return NULL;
    }
    join_environment();
    return module;
}
