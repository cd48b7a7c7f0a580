/* Makes the types Group, tensors that are reduced again and again, and Memory, on which collectives are fastest. */
#include "python/native/native.h"

/* start(stream=0) -> Handle */
static PyObject* group_start(PyObject* self, PyObject* const* given, Py_ssize_t count) {
    group_object* object = (group_object*)self;
    void* stream = count > 0 ? PyLong_AsVoidPtr(given[0]) : NULL;
    if (PyErr_Occurred()) return NULL;
    if (object->group == NULL || object->made_after_forks != forks) {
        PyErr_SetString(PyExc_ValueError, "the group belongs to the process that this one was forked from");
        return NULL;
    }
    muster_handle* handle = NULL;
    int const code =
        stream == NULL ? muster_group_start(object->group, &handle) : muster_group_start_on(object->group, stream, &handle);
    return code == MUSTER_OK ? new_handle(handle, self) : raise_last(code);
}

static void group_dealloc(PyObject* self) {
    group_object* object = (group_object*)self;
    if (object->made_after_forks == forks) muster_group_free(object->group);
    object->group = NULL;
    Py_XDECREF(object->keep);
    object->keep = NULL;
    free_object(self);
}

static PyObject* memory_address(PyObject* self, void* none) {
    (void)none;
    return PyLong_FromVoidPtr(((memory_object*)self)->address);
}
static PyObject* memory_bytes(PyObject* self, void* none) {
    (void)none;
    return PyLong_FromSize_t(((memory_object*)self)->bytes);
}
static void memory_dealloc(PyObject* self) {
    memory_object* object = (memory_object*)self;
    if (object->address != NULL && object->made_after_forks == forks) muster_free(object->address);
    object->address = NULL;
    free_object(self);
}

static PyMethodDef group_methods[] = {{"start", FAST(group_start), "start(stream=0) -> Handle"}, {NULL, NULL, 0, NULL}};
static PyType_Slot group_slots[] = {{Py_tp_dealloc, group_dealloc},
                                    {Py_tp_methods, group_methods},
                                    {Py_tp_doc, "Tensors that are reduced again and again."},
                                    {0, NULL}};
PyType_Spec group_spec = {"_muster_native.Group", sizeof(group_object), 0, Py_TPFLAGS_DEFAULT, group_slots};

static PyGetSetDef memory_attributes[] = {{"address", memory_address, NULL, "where it begins", NULL},
                                          {"bytes", memory_bytes, NULL, "its size", NULL},
                                          {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot memory_slots[] = {{Py_tp_dealloc, memory_dealloc},
                                     {Py_tp_getset, memory_attributes},
                                     {Py_tp_doc, "Memory that collectives are fastest on."},
                                     {0, NULL}};
PyType_Spec memory_spec = {"_muster_native.Memory", sizeof(memory_object), 0, Py_TPFLAGS_DEFAULT, memory_slots};
