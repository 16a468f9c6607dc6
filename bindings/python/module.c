/* SPDX-License-Identifier: MIT */
/* import cpprof: docs/python.md tells what the functions are for. */
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
    status = cpprof_path_writer(path ? PyBytes_AS_STRING(path) : DEFAULT_OUT,
                                writer, &error);
    Py_XDECREF(path);
    if (status != CPPROF_OK)
        raise_failure(&error);
    return status == CPPROF_OK;
}

/* ---- start and stop ---------------------------------------------------- */

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

/* threading.setprofile(hook) */
static void
set_hook_of_new_threads(PyObject *hook)
{
    PyObject *module = PyImport_ImportModule("threading");
    PyObject *result =
        module ? PyObject_CallMethod(module, "setprofile", "O", hook) : NULL;

    if (!result)
        PyErr_Clear();
    Py_XDECREF(result);
    Py_XDECREF(module);
}

/* A profile runs: the clock of each thread begins now. */
static void
begin(PyObject *self)
{
    PyObject *hook;

    if (!__atomic_load_n(&cpprof_vm_spans, __ATOMIC_RELAXED)) {
        ticks_sample();
        return;
    }
    hook = PyObject_GetAttrString(self, "_begin_spans");
    if (hook)
        set_hook_of_new_threads(hook);
    Py_XDECREF(hook);
    PyErr_Clear();
    spans_hook_all();
}

static enum cpprof_status
start_with(struct cpprof_writer writer, const struct cpprof_vm_options *options,
           struct cpprof_error *error)
{
    enum cpprof_status status;

    Py_BEGIN_ALLOW_THREADS;
    status = cpprof_start_vm_profile(writer, options, error);
    Py_END_ALLOW_THREADS;
    return status;
}

static PyObject *
start(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"mode", "hz", "out", "depth", "merge", NULL};
    struct cpprof_vm_options options = {.size = sizeof options};
    const char *mode = "tick";
    struct cpprof_writer writer;
    struct cpprof_error error;
    PyObject *out = NULL;
    int merge = 1;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$sIOIp:start", names,
                                     &mode, &options.rate_hz, &out,
                                     &options.max_depth, &merge) ||
        !read_mode(mode, &options.mode) || !writer_of(out, &writer))
        return NULL;
    options.flags = merge ? CPPROF_VM_MERGE : 0;
    options.vm = python_vm;
    if (start_with(writer, &options, &error) != CPPROF_OK)
        return raise_failure(&error);
    if (options.mode != CPPROF_VM_SPAN && !ticks_start()) {
        int failed = errno;

        cpprof_stop_vm_profile(NULL);
        errno = failed;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    begin(self);
    Py_RETURN_NONE;
}

/* All time until now is charged to where each thread is. */
static PyObject *
stop(PyObject *self, PyObject *unused)
{
    enum cpprof_status status;
    struct cpprof_error error;

    if (__atomic_load_n(&cpprof_vm_spans, __ATOMIC_RELAXED)) {
        spans_unhook_all();
        set_hook_of_new_threads(Py_None);
    } else {
        ticks_sample();
    }
    Py_BEGIN_ALLOW_THREADS;
    status = cpprof_stop_vm_profile(&error);
    Py_END_ALLOW_THREADS;
    ticks_stop();
    functions_forget();
    if (status != CPPROF_OK)
        return raise_failure(&error);
    Py_RETURN_NONE;
}

/* ---- the module -------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"start", (PyCFunction)(void (*)(void))start, METH_VARARGS | METH_KEYWORDS,
     "start(*, mode='tick', hz=100, out='python.pb.gz', depth=128, "
     "merge=True)\n\nProfile all threads until stop()."},
    {"stop", stop, METH_NOARGS, "stop(): write the profile"},
    {"_begin_spans", spans_begin, METH_VARARGS, NULL},
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
add_types(PyObject *module)
{
    return !PyModule_AddType(module, &labels_type) &&
           !PyModule_AddType(module, &profile_type);
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
    if (cpprof_vm_register(&ops, &python_vm, &error) != CPPROF_OK) {
        raise_failure(&error);
        return false;
    }
    if (ops.peek)
        learn_run_loop();
    pthread_atfork(NULL, NULL, ticks_after_fork);
    return true;
}

static bool
is_profiled(void)
{
    return __atomic_load_n(&cpprof_vm_spans, __ATOMIC_RELAXED) ||
           __atomic_load_n(&cpprof_vm_ticks, __ATOMIC_RELAXED);
}

/* The main thread is known to the library from here on, which starts the
 * profile that CPPROF=vm asks for. For others it was enough to register. */
static void
join_environment(PyObject *module)
{
    struct thread *t = thread_of_caller();

    if (!getenv("CPPROF") || !t || !thread_wakes(t) || !is_profiled())
        return;
    ticks_start();
    begin(module);
}

PyMODINIT_FUNC
PyInit_cpprof(void)
{
    PyObject *module = PyModule_Create(&definition);

    if (!module)
        return NULL;
    if (!add_types(module) || !register_vm() || !stop_at_exit(module)) {
        Py_DECREF(module);
        return NULL;
    }
    join_environment(module);
    return module;
}
