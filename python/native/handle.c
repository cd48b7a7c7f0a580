/* Makes the type Handle: waits for a request and gives its result. */
#include "python/native/native.h"

/* Handles that were dropped before their request had ended: freed, and what they keep released, when it has. */
static struct dropped {
    muster_handle* handle;
    PyObject* keep;
    struct dropped* next;
} * dropped_handles;
static unsigned dropped_after_forks;

void release_dropped(void) {
    if (dropped_handles == NULL || dropped_after_forks != forks) return;
    struct dropped** at = &dropped_handles;
    while (*at != NULL) {
        struct dropped* one = *at;
        if (muster_poll(one->handle) == MUSTER_PENDING) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        muster_handle_free(one->handle);
        Py_XDECREF(one->keep);
        free(one);
        at = &dropped_handles; /* releasing may have run any code */
    }
}

/* Takes over `handle`. */
PyObject* new_handle(muster_handle* handle, PyObject* keep) {
    handle_object* made = (handle_object*)new_object(handle_type);
    if (made == NULL) {
        muster_handle_free(handle);
        return NULL;
    }
    made->handle = handle;
    made->keep = keep;
    Py_XINCREF(keep);
    made->made_after_forks = forks;
    return (PyObject*)made;
}

static muster_handle* handle_of(PyObject* self) {
    handle_object* object = (handle_object*)self;
    if (object->handle != NULL && object->made_after_forks == forks) return object->handle;
    PyErr_SetString(PyExc_ValueError, "the request belongs to the process that this one was forked from");
    return NULL;
}

/* Whether it has ended; in turns, so that Ctrl-C is heard. `seconds` < 0 is without end. -1: an exception. */
static int wait_in_turns(muster_handle const* handle, double seconds) {
    double const turn = 0.2;
    if (muster_poll(handle) == MUSTER_OK) return 1;
    for (;;) {
        double const now = seconds < 0 || seconds > turn ? turn : seconds;
        int code;
        Py_BEGIN_ALLOW_THREADS
        code = muster_wait_in_turns(handle, now);
        Py_END_ALLOW_THREADS
        if (code == MUSTER_OK) return 1;
        if (code != MUSTER_PENDING) {
            raise_last(code);
            return -1;
        }
        if (PyErr_CheckSignals() != 0) return -1;
        if (seconds >= 0 && (seconds -= now) <= 0) return 0;
    }
}

/* wait(): until it has ended; raises what it failed of. wait(seconds): one that does not end in time fails the communicator. */
static PyObject* handle_wait(PyObject* self, PyObject* const* given, Py_ssize_t count) {
    muster_handle* handle = handle_of(self);
    if (handle == NULL) return NULL;
    double const seconds = count > 0 ? PyFloat_AsDouble(given[0]) : 0;
    if (PyErr_Occurred()) return NULL;
    int code;
    if (seconds > 0) {
        Py_BEGIN_ALLOW_THREADS
        code = muster_wait(handle, seconds);
        Py_END_ALLOW_THREADS
    } else {
        if (wait_in_turns(handle, -1) < 0) return NULL;
        code = muster_wait(handle, 0);
    }
    if (code != MUSTER_OK) return raise_last(code);
    handle_object* object = (handle_object*)self;
    PyObject* keep = object->keep;
    object->keep = NULL;
    Py_XDECREF(keep);
    Py_RETURN_NONE;
}

/* wait_for(seconds) -> bool: whether it has ended by then. Changes nothing. */
static PyObject* handle_wait_for(PyObject* self, PyObject* seconds) {
    muster_handle* handle = handle_of(self);
    double const at_most = handle == NULL ? 0 : PyFloat_AsDouble(seconds);
    if (handle == NULL || PyErr_Occurred()) return NULL;
    int const ended = wait_in_turns(handle, at_most < 0 ? 0 : at_most);
    return ended < 0 ? NULL : PyBool_FromLong(ended);
}

/* wait_many(handles): until all have ended; raises what the first that failed, failed of. */
PyObject* wait_many(PyObject* module, PyObject* given) {
    (void)module;
    PyObject* list = PySequence_List(given);
    if (list == NULL) return NULL;
    Py_ssize_t const count = PyList_Size(list);
    muster_handle const** handles = malloc(sizeof *handles * (size_t)(count + 1));
    int code = MUSTER_OK;
    for (Py_ssize_t i = 0; handles != NULL && i < count && !PyErr_Occurred(); ++i) {
        PyObject* one = PyList_GetItem(list, i);
        if (Py_TYPE(one) != handle_type)
            PyErr_SetString(PyExc_TypeError, "wait_many takes handles");
        else if ((handles[i] = handle_of(one)) != NULL && wait_in_turns(handles[i], -1) < 0)
            break;
    }
    if (handles == NULL) PyErr_NoMemory();
    if (!PyErr_Occurred()) code = muster_wait_many(handles, (size_t)count, 0); /* which have ended */
    free(handles);
    Py_DECREF(list);
    return PyErr_Occurred() ? NULL : none_or_raise(code);
}

static PyObject* handle_poll(PyObject* self, PyObject* none) {
    (void)none;
    muster_handle* handle = handle_of(self);
    return handle == NULL ? NULL : PyBool_FromLong(muster_poll(handle) != MUSTER_PENDING);
}

/* result() -> (address, bytes), valid as long as the handle; result(index): of one tensor of a group. After wait(). */
static PyObject* handle_result(PyObject* self, PyObject* const* given, Py_ssize_t count) {
    muster_handle* handle = handle_of(self);
    size_t const index = handle == NULL || count == 0 ? 0 : PyLong_AsSize_t(given[0]);
    if (handle == NULL || PyErr_Occurred()) return NULL;
    void const* data = NULL;
    size_t bytes = 0;
    int const code =
        count == 0 ? muster_handle_result(handle, &data, &bytes) : muster_handle_result_of(handle, index, &data, &bytes);
    return code == MUSTER_OK ? Py_BuildValue("(NN)", PyLong_FromVoidPtr((void*)data), PyLong_FromSize_t(bytes))
                             : raise_last(code);
}

static PyObject* handle_rows(PyObject* self, PyObject* const* given, Py_ssize_t count) {
    muster_handle* handle = handle_of(self);
    size_t const index = handle == NULL || count == 0 ? 0 : PyLong_AsSize_t(given[0]);
    if (handle == NULL || PyErr_Occurred()) return NULL;
    int64_t const* rows = NULL;
    int ranks = 0;
    int const code = count == 0 ? muster_handle_rows(handle, &rows, &ranks) : muster_handle_rows_of(handle, index, &rows, &ranks);
    if (code != MUSTER_OK) return raise_last(code);
    PyObject* made = PyTuple_New(ranks);
    for (int i = 0; made != NULL && i < ranks; ++i)
        if (PyTuple_SetItem(made, i, PyLong_FromLongLong(rows[i])) != 0) return NULL;
    return made;
}

static PyObject* handle_number(PyObject* self, PyObject* none) {
    (void)none;
    muster_handle* handle = handle_of(self);
    if (handle == NULL) return NULL;
    int number = 0;
    int const code = muster_handle_number(handle, &number);
    return code == MUSTER_OK ? PyLong_FromLong(number) : raise_last(code);
}

static PyObject* handle_order(PyObject* self, PyObject* stream) {
    muster_handle* handle = handle_of(self);
    if (handle == NULL) return NULL;
    void* on = PyLong_AsVoidPtr(stream);
    if (PyErr_Occurred()) return NULL;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = muster_handle_order(handle, on);
    Py_END_ALLOW_THREADS
    return none_or_raise(code);
}

static void handle_dealloc(PyObject* self) {
    handle_object* object = (handle_object*)self;
    muster_handle* handle = object->handle;
    PyObject* keep = object->keep;
    object->handle = NULL;
    object->keep = NULL;
    if (handle == NULL || object->made_after_forks != forks) {
        /* nothing of ours: the parent's memory is shared, its threads are not here */
    } else if (muster_poll(handle) == MUSTER_PENDING) {
        struct dropped* one = malloc(sizeof *one);
        if (one != NULL) { /* else both are kept for ever, which is safe */
            if (dropped_after_forks != forks) dropped_handles = NULL;
            dropped_after_forks = forks;
            *one = (struct dropped){handle, keep, dropped_handles};
            dropped_handles = one;
        }
        keep = NULL;
    } else {
        muster_handle_free(handle);
    }
    Py_XDECREF(keep);
    free_object(self);
}

static PyMethodDef handle_methods[] = {
    {"wait", FAST(handle_wait),
     "wait(seconds=0): until it has ended; raises what it failed of. With seconds its deadline is brought forward."},
    {"wait_for", handle_wait_for, METH_O, "wait_for(seconds) -> whether it has ended by then; changes nothing"},
    {"poll", handle_poll, METH_NOARGS, "whether it has ended, well or not"},
    {"result", FAST(handle_result),
     "(address, bytes), after wait(); valid as long as the handle. result(index): of one tensor of a group"},
    {"rows", FAST(handle_rows),
     "of allgather and alltoall: how many rows came from each rank; of reducescatter how many there are. rows(index): of one "
     "tensor of a group"},
    {"number", handle_number, METH_NOARGS, "of join: the rank that joined last"},
    {"order", handle_order, METH_O, "order(stream): what is put on the stream from now on waits, on the device, for the results"},
    {NULL, NULL, 0, NULL}};
static PyType_Slot handle_slots[] = {
    {Py_tp_dealloc, handle_dealloc}, {Py_tp_methods, handle_methods}, {Py_tp_doc, "A request that was submitted."}, {0, NULL}};
PyType_Spec handle_spec = {"_muster_native.Handle", sizeof(handle_object), 0, Py_TPFLAGS_DEFAULT, handle_slots};
