/* SPDX-License-Identifier: MIT */
/*
 * cpprof.Profile(name): what a program acquires and gives back. An object is
 * held as long as it is in a profile, as Go does, so that its address means it
 * alone; equal objects are not the same. Stacks are those of the native code.
 */
#include "python.h"

#include <cpprof/profiles.h>

/* Frames of this file in front of a stack: the method. */
#define OWN_FRAMES 1

struct profile {
    PyObject_HEAD struct cpprof_profile *profile;
    PyObject *held; /* dict of address: object, shared by all of this name */
};

/* The dict of a profile, made when it is first asked for. */
static PyObject *
held_by(const char *name)
{
    static PyObject *all;
    PyObject *held;

    if (!all && !(all = PyDict_New()))
        return NULL;
    held = PyDict_GetItemString(all, name);
    if (held)
        return Py_NewRef(held);
    held = PyDict_New();
    if (held && PyDict_SetItemString(all, name, held))
        Py_CLEAR(held);
    return held;
}

/* There is one profile of each name: a second Profile(name) is the same. */
static PyObject *
profile_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", NULL};
    struct cpprof_error error;
    struct profile *self;
    const char *name;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s:Profile", names, &name))
        return NULL;
    self = (struct profile *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->profile = cpprof_profile_lookup(name);
    if (!self->profile &&
        cpprof_profile_new(name, &self->profile, &error) != CPPROF_OK) {
        Py_DECREF(self);
        return raise_failure(&error);
    }
    self->held = held_by(name);
    if (!self->held)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *
profile_add(PyObject *object, PyObject *value)
{
    struct profile *self = (struct profile *)object;
    PyObject *key = PyLong_FromVoidPtr(value), *result = NULL;
    struct cpprof_error error;
    int is_held = key ? PyDict_Contains(self->held, key) : -1;

    if (is_held >= 0 && !PyDict_SetItem(self->held, key, value)) {
        if (cpprof_profile_add(self->profile, value, OWN_FRAMES, &error) ==
            CPPROF_OK) {
            result = Py_NewRef(Py_None);
        } else {
            if (!is_held)
                PyDict_DelItem(self->held, key);
            raise_failure(&error);
        }
    }
    Py_XDECREF(key);
    return result;
}

static PyObject *
profile_remove(PyObject *object, PyObject *value)
{
    struct profile *self = (struct profile *)object;
    PyObject *key = PyLong_FromVoidPtr(value);

    if (!key)
        return NULL;
    cpprof_profile_remove(self->profile, value);
    if (PyDict_DelItem(self->held, key))
        PyErr_Clear();
    Py_DECREF(key);
    Py_RETURN_NONE;
}

static PyObject *
profile_write(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"out", "debug", "labels", NULL};
    struct profile *self = (struct profile *)object;
    struct cpprof_profile_options options = {.size = sizeof options};
    enum cpprof_status status;
    struct cpprof_writer writer;
    struct cpprof_error error;
    int with_labels = 0;
    PyObject *out;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|ip:write", names, &out,
                                     &options.debug, &with_labels) ||
        !writer_of(out, &writer))
        return NULL;
    options.flags = with_labels ? CPPROF_FLAG_LABELS : 0;
    Py_BEGIN_ALLOW_THREADS;
    status = cpprof_profile_write(self->profile, &writer, &options, &error);
    Py_END_ALLOW_THREADS;
    if (status != CPPROF_OK)
        return raise_failure(&error);
    Py_RETURN_NONE;
}

static Py_ssize_t
profile_count(PyObject *object)
{
    return (Py_ssize_t)cpprof_profile_count(
        ((struct profile *)object)->profile);
}

static PyObject *
profile_name(PyObject *object, void *unused)
{
    return PyUnicode_FromString(
        cpprof_profile_name(((struct profile *)object)->profile));
}

static void
profile_dealloc(PyObject *object)
{
    Py_XDECREF(((struct profile *)object)->held);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef methods[] = {
    {"add", profile_add, METH_O, "add(object): it was acquired here"},
    {"remove", profile_remove, METH_O, "remove(object): it was given back"},
    {"write", (PyCFunction)(void (*)(void))profile_write,
     METH_VARARGS | METH_KEYWORDS, "write(out, debug=0, labels=False)"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef fields[] = {{"name", profile_name, NULL, NULL, NULL},
                               {NULL, NULL, NULL, NULL, NULL}};

static PySequenceMethods sequence = {.sq_length = profile_count};

PyTypeObject profile_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cpprof.Profile",
    .tp_doc = "Profile(name): objects by where they were acquired",
    .tp_basicsize = sizeof(struct profile),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = profile_new,
    .tp_dealloc = profile_dealloc,
    .tp_methods = methods,
    .tp_getset = fields,
    .tp_as_sequence = &sequence,
};
