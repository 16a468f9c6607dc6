/* SPDX-License-Identifier: MIT */
/*
 * Which native code is CPython's run loop, and which only stands between it and
 * the functions that it calls, or that call it. Much of it has no names in a
 * binary without its symbols. So the addresses are those that the interpreter
 * itself calls, in slots of types and objects; how far a function goes is known
 * to the library, by the unwind table.
 *
 * What the compiler put aside of the run loop as rare is not known. Half a
 * percent of the samples of a program that raises and sorts are in there, and
 * have a frame without a name more.
 */
#include "python.h"

#include <dlfcn.h>

/* Report a function as plumbing, if it has an address. */
static void
add_code(const void *address)
{
    if (address)
        cpprof_vm_add_plumbing(python_vm, address, 0);
}

static void
add_names(void)
{
    static const char *const names[] = {"_PyEval_Vector",
                                        "_PyFunction_Vectorcall",
                                        "PyObject_Vectorcall",
                                        "PyObject_VectorcallDict",
                                        "PyObject_VectorcallMethod",
                                        "PyVectorcall_Call",
                                        "PyObject_Call",
                                        "PyObject_CallNoArgs",
                                        "PyObject_CallOneArg",
                                        "PyObject_CallObject",
                                        "PyObject_CallFunction",
                                        "PyObject_CallMethod",
                                        "PyObject_CallFunctionObjArgs",
                                        "PyObject_CallMethodObjArgs",
                                        "_PyObject_MakeTpCall",
                                        "_PyObject_Call_Prepend",
                                        "_PyObject_FastCallDictTstate",
                                        "PyIter_Send"};
    size_t i;

    for (i = 0; i < sizeof names / sizeof *names; i++)
        add_code(dlsym(RTLD_DEFAULT, names[i]));
}

/* How C functions are called, by the arguments that they take. */
static void
add_values(PyObject *dict)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;

    while (dict && PyDict_Next(dict, &at, &name, &value)) {
        if (PyCFunction_CheckExact(value))
            add_code(((PyCFunctionObject *)value)->vectorcall);
        else if (Py_IS_TYPE(value, &PyMethodDescr_Type))
            add_code(((PyMethodDescrObject *)value)->vectorcall);
    }
}

static void
add_types(void)
{
    PyObject *method = PyMethod_New(Py_None, Py_None);

    if (method)
        add_code(((PyMethodObject *)method)->vectorcall);
    Py_XDECREF(method);
    add_code(PyType_Type.tp_call);
    add_code(PyMethod_Type.tp_call);
    add_code(PyCFunction_Type.tp_call);
    add_code(PyMethodDescr_Type.tp_call);
    add_code(PyClassMethodDescr_Type.tp_call);
    add_code(PyWrapperDescr_Type.tp_call);
    add_code(PyGen_Type.tp_iternext);
    add_code(PyGen_Type.tp_as_async->am_send);
}

/* The slots of a class that has methods of Python in them. */
static void
add_slots(void)
{
    static const char *const names[] = {
        "__init__", "__new__",     "__call__",    "__iter__", "__next__",
        "__get__",  "__getattr__", "__setattr__", "__eq__",   "__hash__",
        "__repr__", "__str__",     "__add__",     "__len__",  "__getitem__"};
    PyObject *dict = PyDict_New(), *class;
    const PyTypeObject *type;
    size_t i;

    for (i = 0; dict && i < sizeof names / sizeof *names; i++)
        if (PyDict_SetItemString(dict, names[i], (PyObject *)&PyLong_Type))
            break;
    class = dict ? PyObject_CallFunction((PyObject *)&PyType_Type, "s()O",
                                         "slots", dict)
                 : NULL;
    Py_XDECREF(dict);
    if (!class)
        return;
    type = (const PyTypeObject *)class;
    add_code(type->tp_init);
    add_code(type->tp_new);
    add_code(type->tp_call);
    add_code(type->tp_iter);
    add_code(type->tp_iternext);
    add_code(type->tp_descr_get);
    add_code(type->tp_getattro);
    add_code(type->tp_setattro);
    add_code(type->tp_richcompare);
    add_code(type->tp_hash);
    add_code(type->tp_repr);
    add_code(type->tp_str);
    add_code(type->tp_as_number->nb_add);
    add_code(type->tp_as_mapping->mp_length);
    add_code(type->tp_as_mapping->mp_subscript);
    Py_DECREF(class);
}

/* ---- what has no name and is in no slot -------------------------------- */

static const void *outer; /* of the call that is under way */

static PyObject *
probe(PyObject *self, PyObject *unused)
{
    cpprof_vm_learn_run_loop(python_vm, (const void *)probe, outer);
    Py_RETURN_NONE;
}

static PyMethodDef probe_method = {"probe", probe, METH_NOARGS, NULL};

/* A function and a generator that call it. */
static void
run_probes(PyObject *globals)
{
    PyObject *code = Py_CompileString("def f(): probe()\n"
                                      "def g(): yield probe()\n"
                                      "g = g()\n",
                                      "<cpprof>", Py_file_input);
    PyObject *done = code ? PyEval_EvalCode(code, globals, globals) : NULL;

    if (done) {
        outer = (const void *)PyObject_CallNoArgs;
        Py_XDECREF(PyObject_CallNoArgs(PyDict_GetItemString(globals, "f")));
        outer = (const void *)PyIter_Next;
        Py_XDECREF(PyIter_Next(PyDict_GetItemString(globals, "g")));
    }
    Py_XDECREF(done);
    Py_XDECREF(code);
}

static void
learn_by_probe(void)
{
    PyObject *globals = PyDict_New();
    PyObject *function = PyCFunction_New(&probe_method, NULL);

    if (globals && function &&
        !PyDict_SetItemString(globals, "probe", function))
        run_probes(globals);
    Py_XDECREF(function);
    Py_XDECREF(globals);
}

void
learn_run_loop(void)
{
    const void *loop = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");

    if (loop && cpprof_vm_add_run_loop(python_vm, loop, 0)) {
        add_names();
        add_values(PyEval_GetBuiltins());
        add_values(PyUnicode_Type.tp_dict);
        add_values(PyDict_Type.tp_dict);
        add_types();
        add_slots();
    }
    learn_by_probe();
    PyErr_Clear();
}
