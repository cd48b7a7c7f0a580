/* Makes and frees the objects that Python holds, keeps a child of fork() away from them, and turns codes of muster_comm.h into exceptions. */
#include "python/native/native.h"

unsigned forks;

void free_object(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

PyObject* new_object(PyTypeObject* type) {
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return make(type, 0);
}

muster_comm* comm_of(PyObject* self) {
    comm_object* object = (comm_object*)self;
    if (object->comm == NULL) {
        PyErr_SetString(PyExc_ValueError, "the communicator has been shut down; call init() again");
        return NULL;
    }
    if (object->made_after_forks != forks) {
        PyErr_SetString(
            PyExc_ValueError,
            "this process was forked from one that had called init(): it is no rank. Start ranks with `muster run`, and leave "
            "collectives to the parent");
        return NULL;
    }
    return object->comm;
}

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
