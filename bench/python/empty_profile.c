/* SPDX-License-Identifier: MIT */
/* What a profile function written in C costs that does nothing. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyMODINIT_FUNC
PyInit_empty_profile(void);

static int
hook(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    return 0;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "empty_profile",
    .m_size = -1,
};

PyMODINIT_FUNC
PyInit_empty_profile(void)
{
    PyEval_SetProfile(hook, NULL);
    return PyModule_Create(&definition);
}
