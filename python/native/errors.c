/* Turns codes of muster_comm.h into exceptions. */
#include "python/native/native.h"

static PyObject* error_class; /* set by muster.errors, which is imported before anything is made */

PyObject* raise_last(int code) {
    int const* ranks = NULL;
    int const count = muster_last_error_ranks(&ranks);
    PyObject* list = PyTuple_New(count);
    if (list == NULL) return NULL;
    for (int i = 0; i < count; ++i) {
        PyObject* rank = PyLong_FromLong(ranks[i]);
        if (rank == NULL || PyTuple_SetItem(list, i, rank) != 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    PyObject* error = PyObject_CallFunction(error_class, "siN", muster_last_error(), code, list);
    if (error != NULL) {
        PyErr_SetObject((PyObject*)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

PyObject* none_or_raise(int code) {
    if (code != MUSTER_OK) return raise_last(code);
    Py_RETURN_NONE;
}

PyObject* set_error_class(PyObject* module, PyObject* class) {
    (void)module;
    Py_INCREF(class);
    Py_XDECREF(error_class);
    error_class = class;
    Py_RETURN_NONE;
}
