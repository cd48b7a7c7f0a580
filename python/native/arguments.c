/* Reads tensors, ranks and options out of a call's arguments. */
#include "python/native/native.h"

int is_wrong_count(char const* what, Py_ssize_t count, Py_ssize_t wanted) {
    if (count == wanted) return 0;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", what, wanted, count);
    return 1;
}

/* Extents of any tuple or list of numbers; false with an exception. */
static int read_shape(PyObject* given, int64_t* shape, int* dimensions) {
    Py_ssize_t const count = PySequence_Size(given);
    if (count < 0) return 0;
    if (count > MAX_DIMENSIONS) {
        PyErr_Format(PyExc_ValueError, "a tensor has %zd dimensions; at most %d are possible: reshape it", count,
                     (int)MAX_DIMENSIONS);
        return 0;
    }
    int const is_tuple = PyTuple_Check(given);
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* extent = is_tuple ? PyTuple_GetItem(given, i) : PySequence_GetItem(given, i);
        if (extent == NULL) return 0;
        shape[i] = PyLong_AsLongLong(extent);
        if (!is_tuple) Py_DECREF(extent);
        if (shape[i] == -1 && PyErr_Occurred()) return 0;
    }
    *dimensions = (int)count;
    return 1;
}

int read_tensor(PyObject* const* given, muster_tensor* tensor, int64_t* shape, int memory) {
    memset(tensor, 0, sizeof *tensor);
    tensor->struct_size = sizeof *tensor;
    tensor->name = PyUnicode_AsUTF8AndSize(given[0], NULL);
    if (tensor->name == NULL) return 0;
    tensor->in = PyLong_AsVoidPtr(given[1]);
    tensor->out = PyLong_AsVoidPtr(given[2]);
    tensor->type = (int)PyLong_AsLong(given[4]);
    tensor->shape = shape;
    tensor->memory = memory;
    return !PyErr_Occurred() && read_shape(given[3], shape, &tensor->dimensions);
}

int read_call(PyObject* const* given, muster_call* call, int* memory) {
    memset(call, 0, sizeof *call);
    call->struct_size = sizeof *call;
    call->prescale = PyFloat_AsDouble(given[0]);
    call->postscale = PyFloat_AsDouble(given[1]);
    call->set = (int)PyLong_AsLong(given[2]);
    call->compression = (int)PyLong_AsLong(given[3]);
    call->error_feedback = (int)PyLong_AsLong(given[4]);
    *memory = (int)PyLong_AsLong(given[5]);
    call->stream = PyLong_AsVoidPtr(given[6]);
    return !PyErr_Occurred();
}

/* A list of ranks, to be freed; null with an exception. */
int* read_ranks(PyObject* given, int* count) {
    Py_ssize_t const size = PySequence_Size(given);
    if (size < 0) return NULL;
    int* ranks = malloc(sizeof *ranks * (size_t)(size + 1));
    if (ranks == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < size; ++i) {
        PyObject* rank = PySequence_GetItem(given, i);
        ranks[i] = rank == NULL ? -1 : (int)PyLong_AsLong(rank);
        Py_XDECREF(rank);
    }
    if (PyErr_Occurred()) {
        free(ranks);
        return NULL;
    }
    *count = (int)size;
    return ranks;
}

void free_tensors(struct tensors* these) {
    free(these->all);
    free(these->shapes);
    Py_XDECREF(these->list);
}

int read_tensors(PyObject* given, int memory, struct tensors* these) {
    memset(these, 0, sizeof *these);
    if ((these->list = PySequence_List(given)) == NULL) return 0;
    these->count = PyList_Size(these->list);
    these->all = malloc(sizeof *these->all * (size_t)(these->count + 1));
    these->shapes = malloc(sizeof *these->shapes * (size_t)(these->count + 1));
    if (these->all == NULL || these->shapes == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t i = 0; i < these->count; ++i) {
        PyObject* one = PyList_GetItem(these->list, i);
        PyObject* parts[TENSOR_ARGUMENTS];
        if (!PyTuple_Check(one) || PyTuple_Size(one) != TENSOR_ARGUMENTS) {
            PyErr_SetString(PyExc_TypeError, "a tensor of a group is (name, in, out, shape, type)");
            return 0;
        }
        for (int part = 0; part < TENSOR_ARGUMENTS; ++part) parts[part] = PyTuple_GetItem(one, part);
        if (!read_tensor(parts, &these->all[i], these->shapes[i], memory)) return 0;
    }
    return 1;
}
