/* SPDX-License-Identifier: MIT */
/*
 * start() and stop(), one at a time, because both release the GIL in between. A
 * call from inside itself, by a signal handler or a finalizer of the program,
 * is refused.
 */
#include "python.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

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

void
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
    return __atomic_load_n(&cpprof_vm_spans, __ATOMIC_RELAXED);
}

static bool
is_running(void)
{
    return counts_spans() ||
           __atomic_load_n(&cpprof_vm_ticks, __ATOMIC_RELAXED);
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

static enum cpprof_status
start_with(struct cpprof_writer writer, const struct cpprof_vm_options *options,
           struct cpprof_error *error)
{
    enum cpprof_status status;

    Py_BEGIN_ALLOW_THREADS;
    status = cpprof_vm_start(&writer, options, error);
    Py_END_ALLOW_THREADS;
    return status;
}

/* NULL: raised. */
static PyObject *
start_controlled(struct cpprof_writer writer,
                 const struct cpprof_vm_options *options)
{
    struct cpprof_error error;

    if (start_with(writer, options, &error) != CPPROF_OK)
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

PyObject *
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

void
profile_join(void)
{
    if (!is_running() || !take_control())
        return;
    ticks_start();
    begin();
    give_control();
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

PyObject *
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
