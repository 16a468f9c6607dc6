/* SPDX-License-Identifier: MIT */
/*
 * Which native code is CPython's run loop, and which only stands between it and
 * the functions that it calls, or that call it. Much of it has no names in a
 * binary without its symbols. So the addresses are those that the interpreter
 * itself calls, in slots of types and objects, and how far a function goes is
 * what the unwind table says: up to the next.
 *
 * What is rare in a run loop stands elsewhere, as a function of its own with no
 * name. Nobody but the loop jumps into the midst of it.
 *
 * Source: Linux Standard Base 5.0, 10.6.2 (.eh_frame_hdr).
 */
#include "python.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* Jumps into the midst of something that make it a part of the run loop; fewer
 * may be bytes that only look like a jump. */
#define JUMPS_MIN 8
#define PARTS_MAX 16

/* ---- functions --------------------------------------------------------- */

struct entry {
    int32_t start; /* from the header */
    int32_t fde;
};

struct functions {
    uintptr_t pc; /* in the module that is looked for */
    uintptr_t header;
    uintptr_t limit; /* of the code */
    const struct entry *entries;
    size_t n;
};

struct range {
    uintptr_t start, limit;
};

static void
read_header(struct functions *f, uintptr_t at)
{
    /* Version 1; the count a word of 4 bytes, entries pairs of those, from the
     * header; what others do nobody has seen. */
    static const unsigned char usual[] = {1, 0x1b, 0x03, 0x3b};
    uint32_t n;

    if (memcmp((const void *)at, usual, sizeof usual))
        return;
    memcpy(&n, (const char *)at + 8, sizeof n);
    f->header = at;
    f->entries = (const struct entry *)(at + 12);
    f->n = n;
}

static int
look_at_module(struct dl_phdr_info *info, size_t n_bytes, void *ctx)
{
    struct functions *f = ctx;
    uintptr_t header = 0;
    int i;

    f->limit = 0;
    for (i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + p->p_vaddr;

        if (p->p_type == PT_LOAD && f->pc - start < p->p_memsz)
            f->limit = start + p->p_memsz;
        if (p->p_type == PT_GNU_EH_FRAME)
            header = start;
    }
    if (f->limit && header)
        read_header(f, header);
    return f->limit != 0;
}

/* Those of the module that pc is in. */
static struct functions
functions_around(const void *pc)
{
    struct functions f = {.pc = (uintptr_t)pc};

    dl_iterate_phdr(look_at_module, &f);
    return f;
}

static uintptr_t
start_of(const struct functions *f, size_t i)
{
    return i < f->n ? f->header + (uintptr_t)(intptr_t)f->entries[i].start
                    : f->limit;
}

static bool
find_range(const struct functions *f, uintptr_t pc, struct range *range)
{
    size_t low = 0, high = f->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (start_of(f, middle) <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || pc >= f->limit)
        return false;
    *range = (struct range){start_of(f, low - 1), start_of(f, low)};
    return true;
}

/* ---- the run loop ------------------------------------------------------ */

/* Where the code at p jumps to, if that is a jump far away; else 0. */
static uintptr_t
target_of(const unsigned char *p)
{
#if defined(__x86_64__)
    bool is_conditional = p[0] == 0x0f && (p[1] & 0xf0) == 0x80;
    int32_t distance;

    if (!is_conditional && p[0] != 0xe9)
        return 0;
    memcpy(&distance, p + 1 + is_conditional, sizeof distance);
    return (uintptr_t)p + 5 + is_conditional + (uintptr_t)(intptr_t)distance;
#elif defined(__aarch64__)
    uint32_t word;

    memcpy(&word, p, sizeof word);
    if ((uintptr_t)p % 4 || (word & 0xfc000000) != 0x14000000)
        return 0;
    return (uintptr_t)p + (uintptr_t)(intptr_t)((int32_t)(word << 6) >> 4);
#else
    return 0;
#endif
}

struct part {
    struct range range;
    unsigned n_jumps;
};

static void
count_jump(struct part *parts, const struct range *range)
{
    size_t i = 0;

    while (i < PARTS_MAX && parts[i].n_jumps &&
           parts[i].range.start != range->start)
        i++;
    if (i == PARTS_MAX)
        return;
    parts[i].range = *range;
    parts[i].n_jumps++;
}

static void
add_loop(const struct functions *f, uintptr_t loop)
{
    struct part parts[PARTS_MAX] = {0};
    struct range whole, range;
    uintptr_t at, target;
    size_t i;

    if (!find_range(f, loop, &whole) || whole.start != loop)
        return;
    cpprof_vm_add_run_loop(python_vm, (const void *)whole.start,
                           whole.limit - whole.start);
    for (at = whole.start; at + 6 <= whole.limit; at++) {
        target = target_of((const unsigned char *)at);
        if (target - whole.start >= whole.limit - whole.start &&
            find_range(f, target, &range) && range.start != target)
            count_jump(parts, &range);
    }
    for (i = 0; i < PARTS_MAX; i++)
        if (parts[i].n_jumps >= JUMPS_MIN)
            cpprof_vm_add_run_loop(python_vm,
                                   (const void *)parts[i].range.start,
                                   parts[i].range.limit - parts[i].range.start);
}

/* ---- plumbing ---------------------------------------------------------- */

struct plumbing {
    const struct functions *functions;
    uintptr_t known[64];
    size_t n;
};

/* The function at address; twice is once. Those of other modules stay. */
static void
add_code(struct plumbing *p, const void *address)
{
    struct range range;
    size_t i = 0;

    if (!find_range(p->functions, (uintptr_t)address, &range) ||
        range.start != (uintptr_t)address)
        return;
    while (i < p->n && p->known[i] != range.start)
        i++;
    if (i < p->n || p->n == sizeof p->known / sizeof *p->known)
        return;
    p->known[p->n++] = range.start;
    cpprof_vm_add_plumbing(python_vm, address, range.limit - range.start);
}

static void
add_names(struct plumbing *p)
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
        add_code(p, dlsym(RTLD_DEFAULT, names[i]));
}

/* How C functions are called, by what they take. */
static void
add_values(struct plumbing *p, PyObject *dict)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;

    while (dict && PyDict_Next(dict, &at, &name, &value)) {
        if (PyCFunction_CheckExact(value))
            add_code(p, ((PyCFunctionObject *)value)->vectorcall);
        else if (Py_IS_TYPE(value, &PyMethodDescr_Type))
            add_code(p, ((PyMethodDescrObject *)value)->vectorcall);
    }
}

static void
add_types(struct plumbing *p)
{
    PyObject *method = PyMethod_New(Py_None, Py_None);

    if (method)
        add_code(p, ((PyMethodObject *)method)->vectorcall);
    Py_XDECREF(method);
    add_code(p, PyType_Type.tp_call);
    add_code(p, PyMethod_Type.tp_call);
    add_code(p, PyCFunction_Type.tp_call);
    add_code(p, PyMethodDescr_Type.tp_call);
    add_code(p, PyClassMethodDescr_Type.tp_call);
    add_code(p, PyWrapperDescr_Type.tp_call);
    add_code(p, PyGen_Type.tp_iternext);
    add_code(p, PyGen_Type.tp_as_async->am_send);
}

/* The slots of a class that has methods of Python in them. */
static void
add_slots(struct plumbing *p)
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
    add_code(p, type->tp_init);
    add_code(p, type->tp_new);
    add_code(p, type->tp_call);
    add_code(p, type->tp_iter);
    add_code(p, type->tp_iternext);
    add_code(p, type->tp_descr_get);
    add_code(p, type->tp_getattro);
    add_code(p, type->tp_setattro);
    add_code(p, type->tp_richcompare);
    add_code(p, type->tp_hash);
    add_code(p, type->tp_repr);
    add_code(p, type->tp_str);
    add_code(p, type->tp_as_number->nb_add);
    add_code(p, type->tp_as_mapping->mp_length);
    add_code(p, type->tp_as_mapping->mp_subscript);
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
    struct functions functions = functions_around(loop);
    struct plumbing plumbing = {.functions = &functions};

    if (loop && functions.n) {
        add_loop(&functions, (uintptr_t)loop);
        add_names(&plumbing);
        add_values(&plumbing, PyEval_GetBuiltins());
        add_values(&plumbing, PyUnicode_Type.tp_dict);
        add_values(&plumbing, PyDict_Type.tp_dict);
        add_types(&plumbing);
        add_slots(&plumbing);
    }
    learn_by_probe();
    PyErr_Clear();
}
