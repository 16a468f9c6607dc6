/* SPDX-License-Identifier: MIT */
/*
 * with cpprof.labels(route="/cart"): adds labels to those of the thread. They
 * belong to the native thread, so that other profiles have them too.
 *
 * Each thread holds its current set, and each object the set before it. So
 * objects may be left in any order, as asynchronous code does.
 */
#include "python.h"

#include <cpprof/labels.h>
#include <stdlib.h>
#include <string.h>

struct labels {
    PyObject_HEAD PyObject *values; /* dict */
    struct cpprof_labels *before;   /* held */
    bool is_entered;
};

const struct cpprof_labels *
labels_of_thread(void *thread)
{
    return ((struct thread *)thread)->labels;
}

/* Takes the hold on set. */
static void
make_current(struct thread *t, struct cpprof_labels *set)
{
    struct cpprof_labels *old = t->labels;

    t->labels = set;
    cpprof_labels_set_current(set);
    cpprof_labels_free(old);
}

/* NULL with an exception: it would be cut at a zero byte. */
static const char *
text_of(PyObject *string)
{
    Py_ssize_t n;
    const char *text = PyUnicode_AsUTF8AndSize(string, &n);

    if (!text || strlen(text) == (size_t)n)
        return text;
    PyErr_SetString(PyExc_ValueError, "embedded null character");
    return NULL;
}

/* A string or a whole number. */
static bool
read_label(PyObject *key, PyObject *value, struct cpprof_label *label)
{
    *label = (struct cpprof_label){.key = text_of(key)};
    if (PyUnicode_Check(value))
        label->str = text_of(value);
    else if (PyLong_Check(value))
        label->num = PyLong_AsLongLong(value);
    else
        PyErr_Format(PyExc_TypeError,
                     "label %R is neither a string nor a whole number", key);
    return !PyErr_Occurred();
}

static bool
merge(PyObject *values, struct cpprof_labels **set)
{
    size_t n = (size_t)PyDict_Size(values), i = 0;
    struct cpprof_label *labels = calloc(n + 1, sizeof *labels);
    PyObject *key, *value;
    Py_ssize_t at = 0;
    struct cpprof_error error;

    while (labels && PyDict_Next(values, &at, &key, &value) &&
           read_label(key, value, &labels[i]))
        i++;
    if (!labels)
        PyErr_NoMemory();
    else if (!PyErr_Occurred() &&
             cpprof_labels_merge(cpprof_labels_current(), labels, n, set,
                                 &error) != CPPROF_OK)
        raise_failure(&error);
    free(labels);
    return !PyErr_Occurred();
}

static PyObject *
labels_enter(PyObject *object, PyObject *unused)
{
    struct labels *self = (struct labels *)object;
    struct thread *t = thread_of_caller();
    struct cpprof_labels *set = NULL;

    if (!t)
        return PyErr_NoMemory();
    if (self->is_entered) {
        PyErr_SetString(PyExc_RuntimeError, "labels are in use already");
        return NULL;
    }
    if (!merge(self->values, &set))
        return NULL;
    self->before = cpprof_labels_ref(cpprof_labels_current());
    self->is_entered = true;
    make_current(t, set);
    return Py_NewRef(object);
}

static PyObject *
labels_exit(PyObject *object, PyObject *unused)
{
    struct labels *self = (struct labels *)object;
    struct thread *t = thread_of_caller();

    if (self->is_entered && t)
        make_current(t, self->before);
    else
        cpprof_labels_free(self->before);
    self->before = NULL;
    self->is_entered = false;
    Py_RETURN_FALSE;
}

static PyObject *
labels_new(PyTypeObject *type, PyObject *args, PyObject *values)
{
    struct labels *self;

    if (PyTuple_GET_SIZE(args)) {
        PyErr_SetString(PyExc_TypeError, "labels() takes name=value only");
        return NULL;
    }
    self = (struct labels *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->values = values ? PyDict_Copy(values) : PyDict_New();
    if (!self->values)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void
labels_dealloc(PyObject *object)
{
    struct labels *self = (struct labels *)object;

    cpprof_labels_free(self->before);
    Py_XDECREF(self->values);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef methods[] = {{"__enter__", labels_enter, METH_NOARGS, NULL},
                                {"__exit__", labels_exit, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};

PyTypeObject labels_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cpprof.labels",
    .tp_doc = "labels(**labels): a with block whose samples carry them",
    .tp_basicsize = sizeof(struct labels),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = labels_new,
    .tp_dealloc = labels_dealloc,
    .tp_methods = methods,
};
