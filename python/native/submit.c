/* Submits collectives: the methods submit, submit_group and prepare of Comm. */
#include "python/native/native.h"

/* The rows for each rank of an alltoall, to be freed; null with an exception. */
static int64_t* read_splits(muster_comm* comm, char const* name, struct options const* options) {
    Py_ssize_t const ranks = PySequence_Size(options->splits);
    int size = 0;
    if (ranks < 0) return NULL;
    int const code = muster_process_set_size(comm, options->call.set, &size);
    if (code != MUSTER_OK) return (int64_t*)raise_last(code);
    if (ranks != size) {
        PyErr_Format(PyExc_ValueError, "alltoall %s: %zd splits for %d ranks; give one number of rows a rank", name, ranks, size);
        return NULL;
    }
    int64_t* splits = malloc(sizeof *splits * (size_t)(ranks + 1));
    if (splits == NULL) return (int64_t*)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < ranks; ++i) {
        PyObject* rows = PySequence_GetItem(options->splits, i);
        splits[i] = rows == NULL ? -1 : PyLong_AsLongLong(rows);
        Py_XDECREF(rows);
    }
    if (!PyErr_Occurred()) return splits;
    free(splits);
    return NULL;
}

/* The handle of one tensor's collective. */
static PyObject* submit_tensor(muster_comm* comm, int kind, int how, muster_tensor* tensor, struct options* options) {
    int64_t* splits = NULL;
    if (options->splits != Py_None) {
        splits = read_splits(comm, tensor->name, options);
        if (splits == NULL) return NULL;
        options->call.splits = splits;
    }
    muster_call* call = &options->call;
    muster_handle* handle = NULL;
    int code = MUSTER_OK;
    switch (kind) {
        case ALLREDUCE: code = muster_allreduce_async(comm, tensor, how, call, &handle); break;
        case ALLGATHER: code = muster_allgather_async(comm, tensor, call, &handle); break;
        case BROADCAST:
            call->root = how;
            code = muster_broadcast_async(comm, tensor, call, &handle);
            break;
        case REDUCESCATTER: code = muster_reducescatter_async(comm, tensor, how, call, &handle); break;
        case ALLTOALL: code = muster_alltoall_async(comm, tensor, call, &handle); break;
        case BARRIER: code = muster_barrier_async(comm, call, &handle); break;
        case JOIN: code = muster_join_async(comm, call, &handle); break;
        default: free(splits); return PyErr_Format(PyExc_ValueError, "%d is no kind of collective", kind);
    }
    free(splits);
    return code == MUSTER_OK ? new_handle(handle, options->keep) : raise_last(code);
}

/* submit(kind, how, tensor, *, …) -> Handle. `how` is the reduction, or the root within the set. Of allgather, reducescatter and alltoall `out` holds out_elements;
 * with out 0 the result is in the handle. */
PyObject* comm_submit(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* names) {
    muster_comm* comm = comm_of(self);
    if (comm == NULL || is_wrong_count("submit", count, 3)) return NULL;
    int const kind = (int)PyLong_AsLong(given[0]);
    int const how = (int)PyLong_AsLong(given[1]);
    struct options options;
    muster_tensor tensor = {0};
    int64_t shape[MAX_DIMENSIONS];
    if (!read_options(given + count, names, &options)) return NULL;
    struct text name = {0};
    if (given[2] != Py_None ? !read_tensor(given[2], options.memory, &tensor, shape, &name) : kind != BARRIER && kind != JOIN) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "a collective of kind %d needs a tensor", kind);
        return NULL;
    }
    tensor.out_elements = options.out_elements;
    release_dropped();
    PyObject* made = submit_tensor(comm, kind, how, &tensor, &options);
    free_text(&name);
    return made;
}

/* submit_group(kind, how, name, tensors, *, …) -> Handle */
PyObject* comm_submit_group(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* names) {
    muster_comm* comm = comm_of(self);
    if (comm == NULL || is_wrong_count("submit_group", count, 4)) return NULL;
    int const kind = (int)PyLong_AsLong(given[0]);
    int const how = (int)PyLong_AsLong(given[1]);
    struct options options;
    struct text name;
    if (!read_options(given + count, names, &options) || !read_text(given[2], &name)) return NULL;
    PyObject* made = NULL;
    struct tensors these;
    release_dropped();
    if (read_tensors(given[3], options.memory, &these)) {
        size_t const tensors = (size_t)these.count;
        muster_call const* call = &options.call;
        muster_handle* handle = NULL;
        int code = MUSTER_OK;
        switch (kind) {
            case ALLREDUCE: code = muster_allreduce_group_async(comm, name.chars, these.all, tensors, how, call, &handle); break;
            case ALLGATHER: code = muster_allgather_group_async(comm, name.chars, these.all, tensors, call, &handle); break;
            case REDUCESCATTER:
                code = muster_reducescatter_group_async(comm, name.chars, these.all, tensors, how, call, &handle);
                break;
            default: PyErr_Format(PyExc_ValueError, "%d is no kind of a group", kind);
        }
        if (code != MUSTER_OK)
            raise_last(code);
        else if (handle != NULL)
            made = new_handle(handle, options.keep);
    }
    free_tensors(&these);
    free_text(&name);
    return made;
}

/* prepare(how, name, tensors, *, …) -> Group, collective and blocking. */
PyObject* comm_prepare(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* names) {
    muster_comm* comm = comm_of(self);
    if (comm == NULL || is_wrong_count("prepare", count, 3)) return NULL;
    int const how = (int)PyLong_AsLong(given[0]);
    struct options options;
    struct text name;
    if (!read_options(given + count, names, &options) || !read_text(given[1], &name)) return NULL;
    group_object* made = NULL;
    struct tensors these;
    if (read_tensors(given[2], options.memory, &these) && (made = (group_object*)new_object(group_type)) != NULL) {
        made->made_after_forks = forks;
        made->keep = options.keep;
        Py_INCREF(made->keep);
        int code;
        Py_BEGIN_ALLOW_THREADS
        code = muster_allreduce_prepare(comm, name.chars, these.all, (size_t)these.count, how, &options.call, &made->group);
        Py_END_ALLOW_THREADS
        if (code != MUSTER_OK) {
            raise_last(code);
            Py_DECREF((PyObject*)made);
            made = NULL;
        }
    }
    free_tensors(&these);
    free_text(&name);
    return (PyObject*)made;
}
