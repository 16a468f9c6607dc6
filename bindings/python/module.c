/* SPDX-License-Identifier: MIT */
/*
 * The module cpprof for CPython: its functions and its life. docs/python.md
 * tells what the functions are for; python.h tells how it samples.
 */
#include "python.h"

#include <cpprof/writer.h>

#include <pthread.h>
#include <stdlib.h>

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
add_types(PyObject *module)
{
    return !PyModule_AddType(module, &labels_type) &&
           !PyModule_AddType(module, &profile_type) &&
           !PyType_Ready(&spans_type);
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
 * CPPROF=vm asks for. For other threads it was enough to register. */
static void
join_environment(void)
{
    struct thread *t = thread_of_caller();

    if (getenv("CPPROF") && t && thread_wakes(t))
        profile_join();
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
    join_environment();
    return module;
}
