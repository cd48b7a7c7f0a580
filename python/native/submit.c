/* Submits collectives: the methods submit, submit_group and prepare of Comm. */
#include "python/native/native.h"

/* submit(kind, how, splits, name, in, out, shape, type, prescale, postscale, set, compression, error_feedback, memory, stream, keep, out_elements=0) -> Handle.
 * `how` is the reduction, or the root within the set. Of allgather, reducescatter and alltoall `out` holds out_elements; with out 0 the result is in the handle. */
PyObject* comm_submit(PyObject* self, PyObject* const* given, Py_ssize_t count) {
    muster_comm* comm = comm_of(self);
    int const all = 3 + TENSOR_ARGUMENTS + CALL_ARGUMENTS;
    if (comm == NULL || (count != all + 1 && is_wrong_count("submit", count, all))) return NULL;
    muster_tensor tensor;
    muster_call call;
    int64_t shape[MAX_DIMENSIONS];
    int memory = 0;
    PyObject* const* of_call = given + 3 + TENSOR_ARGUMENTS;
    int const kind = (int)PyLong_AsLong(given[0]);
    int const how = (int)PyLong_AsLong(given[1]);
    if (!read_call(of_call, &call, &memory) || !read_tensor(given + 3, &tensor, shape, memory)) return NULL;
    if (count > all && (tensor.out_elements = PyLong_AsSize_t(given[all])) == (size_t)-1) return NULL;
    release_dropped();
    int64_t* splits = NULL;
    if (given[2] != Py_None) {
        Py_ssize_t const ranks = PySequence_Size(given[2]);
        int size = 0;
        if (ranks < 0) return NULL;
        int const known = muster_process_set_size(comm, call.set, &size);
        if (known != MUSTER_OK) return raise_last(known);
        if (ranks != size) {
            PyErr_Format(PyExc_ValueError, "alltoall %s: %zd splits for %d ranks; give one number of rows a rank", tensor.name,
                         ranks, size);
            return NULL;
        }
        if ((splits = malloc(sizeof *splits * (size_t)(ranks + 1))) == NULL) return PyErr_NoMemory();
        for (Py_ssize_t i = 0; i < ranks; ++i) {
            PyObject* rows = PySequence_GetItem(given[2], i);
            splits[i] = rows == NULL ? -1 : PyLong_AsLongLong(rows);
            Py_XDECREF(rows);
        }
        if (PyErr_Occurred()) {
            free(splits);
            return NULL;
        }
        call.splits = splits;
    }
    muster_handle* handle = NULL;
    int code = MUSTER_OK;
    switch (kind) {
        case ALLREDUCE: code = muster_allreduce_async(comm, &tensor, how, &call, &handle); break;
        case ALLGATHER: code = muster_allgather_async(comm, &tensor, &call, &handle); break;
        case BROADCAST:
            call.root = how;
            code = muster_broadcast_async(comm, &tensor, &call, &handle);
            break;
        case REDUCESCATTER: code = muster_reducescatter_async(comm, &tensor, how, &call, &handle); break;
        case ALLTOALL: code = muster_alltoall_async(comm, &tensor, &call, &handle); break;
        case BARRIER: code = muster_barrier_async(comm, &call, &handle); break;
        case JOIN: code = muster_join_async(comm, &call, &handle); break;
        default: free(splits); return PyErr_Format(PyExc_ValueError, "%d is no kind of collective", kind);
    }
    free(splits);
    return code == MUSTER_OK ? new_handle(handle, of_call[CALL_ARGUMENTS - 1]) : raise_last(code);
}

/* submit_group(name, tensors, how, prescale … keep, kind=ALLREDUCE) -> Handle; prepare(the same without kind) -> Group, collective and blocking. */
enum { GROUP_ARGUMENTS = 3 };

PyObject* comm_submit_group(PyObject* self, PyObject* const* given, Py_ssize_t count) {
    Py_ssize_t const usual = GROUP_ARGUMENTS + CALL_ARGUMENTS;
    muster_comm* comm = comm_of(self);
    if (comm == NULL || (count != usual + 1 && is_wrong_count("submit_group", count, usual))) return NULL;
    muster_call call;
    int memory = 0;
    struct tensors these;
    char const* name = PyUnicode_AsUTF8AndSize(given[0], NULL);
    int const how = (int)PyLong_AsLong(given[2]);
    int const kind = count > usual ? (int)PyLong_AsLong(given[usual]) : ALLREDUCE;
    if (name == NULL || !read_call(given + GROUP_ARGUMENTS, &call, &memory)) return NULL;
    PyObject* made = NULL;
    release_dropped();
    if (read_tensors(given[1], memory, &these)) {
        size_t const tensors = (size_t)these.count;
        muster_handle* handle = NULL;
        int code = MUSTER_OK;
        switch (kind) {
            case ALLREDUCE: code = muster_allreduce_group_async(comm, name, these.all, tensors, how, &call, &handle); break;
            case ALLGATHER: code = muster_allgather_group_async(comm, name, these.all, tensors, &call, &handle); break;
            case REDUCESCATTER:
                code = muster_reducescatter_group_async(comm, name, these.all, tensors, how, &call, &handle);
                break;
            default: PyErr_Format(PyExc_ValueError, "%d is no kind of a group", kind);
        }
        if (code != MUSTER_OK)
            raise_last(code);
        else if (handle != NULL)
            made = new_handle(handle, given[usual - 1]);
    }
    free_tensors(&these);
    return made;
}

PyObject* comm_prepare(PyObject* self, PyObject* const* given, Py_ssize_t count) {
    muster_comm* comm = comm_of(self);
    if (comm == NULL || is_wrong_count("prepare", count, GROUP_ARGUMENTS + CALL_ARGUMENTS)) return NULL;
    muster_call call;
    int memory = 0;
    struct tensors these;
    char const* name = PyUnicode_AsUTF8AndSize(given[0], NULL);
    int const how = (int)PyLong_AsLong(given[2]);
    if (name == NULL || !read_call(given + GROUP_ARGUMENTS, &call, &memory)) return NULL;
    group_object* made = NULL;
    if (read_tensors(given[1], memory, &these) && (made = (group_object*)new_object(group_type)) != NULL) {
        made->made_after_forks = forks;
        made->keep = given[GROUP_ARGUMENTS + CALL_ARGUMENTS - 1];
        Py_INCREF(made->keep);
        int code;
        Py_BEGIN_ALLOW_THREADS
        code = muster_allreduce_prepare(comm, name, these.all, (size_t)these.count, how, &call, &made->group);
        Py_END_ALLOW_THREADS
        if (code != MUSTER_OK) {
            raise_last(code);
            Py_DECREF((PyObject*)made);
            made = NULL;
        }
    }
    free_tensors(&these);
    return (PyObject*)made;
}
