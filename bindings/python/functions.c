/* SPDX-License-Identifier: MIT */
/*
 * What a function is: its code object, held from the first sample on, so that
 * its address is that of no other; of a C function its method definition, which
 * is static, where the object that is called may be made for the call. And what
 * it is called in a profile.
 */
#include "python.h"

#include <stdlib.h>
#include <string.h>

/* Tunable: functions that are held, at 24 bytes each and the code. With more,
 * all are released, so that a program that goes on to make new code does not
 * leak. */
#define FUNCTIONS_MAX 16384
#define N_SLOTS       (2u * FUNCTIONS_MAX) /* a power of two */

struct function {
    const void *key;  /* NULL: free */
    PyObject *object; /* code, or the name of a C function */
};

static struct function *slots;
static uint32_t n_functions;

static const char unknown;

/* The memory that the last description points into. */
static PyObject *told_name, *told_file;

static struct function *
find(const void *key)
{
    uint64_t hash = (uintptr_t)key * 0x9e3779b97f4a7c15u;
    uint32_t i = (uint32_t)(hash >> 32) & (N_SLOTS - 1);

    while (slots[i].key && slots[i].key != key)
        i = (i + 1) & (N_SLOTS - 1);
    return &slots[i];
}

/* The slot where key is, or where it belongs; NULL: no room. */
static struct function *
slot_of(const void *key)
{
    struct function *f;

    if (!slots && !(slots = calloc(N_SLOTS, sizeof *slots)))
        return NULL;
    f = find(key);
    if (!f->key && n_functions == FUNCTIONS_MAX + FUNCTIONS_MAX / 2)
        return NULL;
    return f;
}

static void
keep(struct function *f, const void *key, PyObject *object)
{
    f->key = key;
    f->object = object;
    n_functions++;
}

const void *
function_of_code(PyCodeObject *code)
{
    struct function *f = slot_of(code);

    if (!f)
        return &unknown;
    if (!f->key)
        keep(f, code, Py_NewRef((PyObject *)code));
    return code;
}

/* "time.sleep", "list.append"; builtins without their module. */
static PyObject *
name_of_builtin(PyObject *function)
{
    PyObject *name = PyObject_GetAttrString(function, "__qualname__");
    PyObject *module = ((PyCFunctionObject *)function)->m_module, *full;

    if (!name || !module || !PyUnicode_Check(module) ||
        !PyUnicode_CompareWithASCIIString(module, "builtins"))
        return name;
    full = PyUnicode_FromFormat("%U.%U", module, name);
    Py_DECREF(name);
    return full;
}

const void *
function_of_builtin(PyObject *function)
{
    const void *key;
    struct function *f;
    PyObject *name;

    if (!PyCFunction_Check(function))
        return &unknown;
    key = ((PyCFunctionObject *)function)->m_ml;
    f = slot_of(key);
    if (f && f->key)
        return key;
    name = f ? name_of_builtin(function) : NULL;
    if (!name) {
        PyErr_Clear();
        return &unknown;
    }
    keep(f, key, name);
    return key;
}

void
functions_begin(void)
{
    if (n_functions >= FUNCTIONS_MAX)
        functions_forget();
}

void
functions_forget(void)
{
    struct function *old = slots;
    uint32_t i;

    slots = NULL;
    n_functions = 0;
    for (i = 0; old && i < N_SLOTS; i++) {
        if (!old[i].key)
            continue;
        cpprof_vm_forget_function(python_vm, old[i].key);
        Py_DECREF(old[i].object);
    }
    free(old);
    Py_CLEAR(told_name);
    Py_CLEAR(told_file);
}

/* ---- names ------------------------------------------------------------- */

/* A name that is put together. */
struct text {
    char *at;
    size_t left; /* with the terminator */
};

static void
add(struct text *t, const char *from, size_t n)
{
    if (n >= t->left)
        n = t->left - 1;
    memcpy(t->at, from, n);
    t->at += n;
    t->left -= n;
    *t->at = 0;
}

/* "app" of "src/app.py", "[string]" of "<string>". */
static void
add_file(struct text *t, const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *base = slash ? slash + 1 : file;

    if (*base != '<') {
        add(t, base, strcspn(base, "."));
        return;
    }
    add(t, "[", 1);
    add(t, base + 1, strcspn(base + 1, ">"));
    add(t, "]", 1);
}

/* Readers take text in <> for a C++ template and leave it out, unless the name
 * before has a dot. */
const char *
name_in_profile(const char *qualified, const char *file, char out[NAME_BYTES])
{
    struct text t = {out, NAME_BYTES};

    if (!qualified || !file || *qualified != '<')
        return qualified;
    if (strcmp(qualified, "<module>")) {
        add_file(&t, file);
        add(&t, ".", 1);
        add(&t, qualified, strlen(qualified));
        return out;
    }
    if (*file != '<')
        return NULL;
    add_file(&t, file);
    return out;
}

/* ---- descriptions ------------------------------------------------------ */

static const char *
text_of(PyObject *string)
{
    const char *text =
        string && PyUnicode_Check(string) ? PyUnicode_AsUTF8(string) : NULL;

    if (!text)
        PyErr_Clear();
    return text;
}

static void
describe_code(PyObject *code, struct cpprof_vm_function *what)
{
    static char name[NAME_BYTES];

    Py_XSETREF(told_file, PyObject_GetAttrString(code, "co_filename"));
    what->file = text_of(told_file);
    Py_XSETREF(told_name, PyObject_GetAttrString(code, "co_qualname"));
    what->name = name_in_profile(text_of(told_name), what->file, name);
    what->start_line = ((PyCodeObject *)code)->co_firstlineno;
    PyErr_Clear();
}

bool
describe_function(void *thread, const void *function,
                  struct cpprof_vm_function *what)
{
    struct function *f = slots ? find(function) : NULL;

    if (!f || !f->key)
        return false;
    if (PyCode_Check(f->object))
        describe_code(f->object, what);
    else
        what->name = text_of(f->object);
    return true;
}
