/* Makes and frees the objects that Python holds, and keeps a child of fork() away from them. */
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
