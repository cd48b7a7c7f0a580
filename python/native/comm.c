/* Makes the type Comm: membership, process sets, memory, timeline and counters. */
#include "python/native/native.h"

/* create(variables: sequence of "NAME=VALUE", ranks=None, name="") -> Comm. Collective over these ranks of the job step, or all. */
PyObject* create(PyObject* module, PyObject* arguments) {
    (void)module;
    PyObject *variables = NULL, *some = Py_None;
    char const* name = "";
    if (!PyArg_ParseTuple(arguments, "O|Os", &variables, &some, &name)) return NULL;
    PyObject* list = NULL; /* keeps the texts */
    char const** texts = read_texts(variables, &list);
    int* ranks = NULL;
    int rank_count = 0;
    comm_object* made = NULL;
    if (texts == NULL) goto done;
    if (some != Py_None && (ranks = read_ranks(some, &rank_count)) == NULL) goto done;
    made = (comm_object*)new_object(comm_type);
    if (made == NULL) goto done;
    made->made_after_forks = forks;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = ranks == NULL ? muster_comm_create_with(texts, &made->comm)
                         : muster_comm_create_of(texts, ranks, rank_count, name, &made->comm);
    Py_END_ALLOW_THREADS
    if (code != MUSTER_OK) {
        raise_last(code);
        Py_DECREF((PyObject*)made);
        made = NULL;
    }
done:
    free(ranks);
    free(texts);
    Py_XDECREF(list);
    return (PyObject*)made;
}

static PyObject* comm_end(PyObject* self, int (*end)(muster_comm*)) {
    comm_object* object = (comm_object*)self;
    muster_comm* comm = object->comm;
    object->comm = NULL;
    if (comm == NULL || object->made_after_forks != forks) Py_RETURN_NONE;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = end(comm);
    Py_END_ALLOW_THREADS
    release_dropped();
    return none_or_raise(code);
}
static PyObject* comm_destroy(PyObject* self, PyObject* none) {
    (void)none;
    return comm_end(self, muster_comm_destroy);
}
static PyObject* comm_abandon(PyObject* self, PyObject* none) {
    (void)none;
    return comm_end(self, muster_comm_abandon);
}

static void comm_dealloc(PyObject* self) {
    comm_object* object = (comm_object*)self;
    /* Destroying is collective, so it is asked for by destroy(); what was forgotten lives until the process ends. */
    object->comm = NULL;
    free_object(self);
}

static PyObject* comm_place(PyObject* self, PyObject* none) {
    (void)none;
    muster_comm const* comm = comm_of(self);
    if (comm == NULL) return NULL;
    return Py_BuildValue("(iiiiii)", muster_comm_rank(comm), muster_comm_size(comm), muster_comm_local_rank(comm),
                         muster_comm_local_size(comm), muster_comm_cross_rank(comm), muster_comm_cross_size(comm));
}
static PyObject* comm_backend(PyObject* self, PyObject* none) {
    (void)none;
    muster_comm const* comm = comm_of(self);
    return comm == NULL ? NULL : Py_BuildValue("(ss)", muster_comm_backend(comm), muster_comm_why_backend(comm));
}

static PyObject* comm_device_backend(PyObject* self, PyObject* none) {
    (void)none;
    muster_comm const* comm = comm_of(self);
    return comm == NULL ? NULL : PyUnicode_FromString(muster_comm_device_backend(comm));
}

static PyObject* comm_alloc(PyObject* self, PyObject* bytes) {
    muster_comm* comm = comm_of(self);
    size_t const wanted = comm == NULL ? 0 : PyLong_AsSize_t(bytes);
    if (comm == NULL || PyErr_Occurred()) return NULL;
    memory_object* made = (memory_object*)new_object(memory_type);
    if (made == NULL) return NULL;
    made->bytes = wanted;
    made->made_after_forks = forks;
    int const code = muster_alloc(comm, wanted, &made->address);
    if (code != MUSTER_OK) {
        raise_last(code);
        Py_DECREF((PyObject*)made);
        return NULL;
    }
    return (PyObject*)made;
}

/* The set of these ranks, added by all ranks of the world or, with a name, made by its members. */
static PyObject* new_process_set(muster_comm* comm, PyObject* given, char const* name) {
    int count = 0, set = 0, code;
    int* ranks = read_ranks(given, &count);
    if (ranks == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS
    code =
        name == NULL ? muster_process_set_add(comm, ranks, count, &set) : muster_process_set_make(comm, ranks, count, name, &set);
    Py_END_ALLOW_THREADS
    free(ranks);
    return code == MUSTER_OK ? PyLong_FromLong(set) : raise_last(code);
}

static PyObject* comm_add_process_set(PyObject* self, PyObject* ranks) {
    muster_comm* comm = comm_of(self);
    return comm == NULL ? NULL : new_process_set(comm, ranks, NULL);
}

static PyObject* comm_make_process_set(PyObject* self, PyObject* arguments) {
    PyObject* ranks = NULL;
    char const* name = NULL;
    muster_comm* comm = comm_of(self);
    if (comm == NULL || !PyArg_ParseTuple(arguments, "Os", &ranks, &name)) return NULL;
    return new_process_set(comm, ranks, name);
}

static PyObject* comm_remove_process_set(PyObject* self, PyObject* number) {
    muster_comm* comm = comm_of(self);
    int const set = comm == NULL ? 0 : (int)PyLong_AsLong(number);
    if (comm == NULL || PyErr_Occurred()) return NULL;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = muster_process_set_remove(comm, set);
    Py_END_ALLOW_THREADS
    return none_or_raise(code);
}

/* place_in_set(set) -> (rank or -1, size) */
static PyObject* comm_place_in_set(PyObject* self, PyObject* number) {
    muster_comm* comm = comm_of(self);
    int const set = comm == NULL ? 0 : (int)PyLong_AsLong(number);
    if (comm == NULL || PyErr_Occurred()) return NULL;
    int rank = -1, size = 0;
    int code = muster_process_set_rank(comm, set, &rank);
    if (code == MUSTER_OK) code = muster_process_set_size(comm, set, &size);
    return code == MUSTER_OK ? Py_BuildValue("(ii)", rank, size) : raise_last(code);
}

static PyObject* comm_timeline_start(PyObject* self, PyObject* arguments) {
    char const* path = NULL;
    int mark_cycles = 0;
    muster_comm* comm = comm_of(self);
    if (comm == NULL || !PyArg_ParseTuple(arguments, "sp", &path, &mark_cycles)) return NULL;
    return none_or_raise(muster_timeline_start_file(comm, path, mark_cycles));
}
static PyObject* comm_timeline_stop(PyObject* self, PyObject* none) {
    (void)none;
    muster_comm* comm = comm_of(self);
    return comm == NULL ? NULL : none_or_raise(muster_timeline_stop(comm));
}

static PyObject* comm_counters(PyObject* self, PyObject* format) {
    muster_comm* comm = comm_of(self);
    int const which = comm == NULL ? 0 : (int)PyLong_AsLong(format);
    if (comm == NULL || PyErr_Occurred()) return NULL;
    size_t room = 0;
    for (char* text = NULL;;) { /* the numbers may grow between two calls */
        size_t wanted = room;
        int const code = muster_counters(comm, which, text, &wanted);
        if (code != MUSTER_OK || (text != NULL && wanted <= room)) {
            PyObject* made = code == MUSTER_OK ? PyUnicode_FromString(text) : raise_last(code);
            free(text);
            return made;
        }
        free(text);
        room = wanted + 64;
        if ((text = malloc(room)) == NULL) return PyErr_NoMemory();
    }
}

static PyMethodDef comm_methods[] = {
    {"destroy", comm_destroy, METH_NOARGS, "Collective: ends the communicator. Does nothing in a child of fork()."},
    {"abandon", comm_abandon, METH_NOARGS, "Ends it without waiting for the other ranks, whose requests then fail."},
    {"place", comm_place, METH_NOARGS, "(rank, size, local_rank, local_size, cross_rank, cross_size)"},
    {"backend", comm_backend, METH_NOARGS, "(name, why) of the backend for host memory"},
    {"device_backend", comm_device_backend, METH_NOARGS, "that for device memory; \"\" before the first tensor there"},
    {"submit", NAMED(comm_submit),
     "submit(kind, how, tensor, *, splits=None, prescale=1.0, postscale=1.0, set=0, compression=0, error_feedback=0, "
     "memory=HOST, stream=0, "
     "keep=None, out_elements=0) -> Handle; tensor is (name, in, out, shape, type), or None for BARRIER and JOIN; how is the "
     "reduction or the root"},
    {"reduce", FAST(comm_reduce),
     "reduce(tensor, name, op, prescale, postscale) -> Handle, or None where the tensor is not one that know_tensors described, "
     "on "
     "the host and contiguous: allreduce in place, over all ranks; op is Horovod's number or None"},
    {"submit_group", NAMED(comm_submit_group),
     "submit_group(kind, how, name, tensors, *, the options of submit) -> Handle; kind is ALLREDUCE, ALLGATHER or REDUCESCATTER"},
    {"prepare", NAMED(comm_prepare), "prepare(how, name, tensors, *, the options of submit) -> Group. Collective, blocking."},
    {"alloc", comm_alloc, METH_O, "alloc(bytes) -> Memory that collectives are fastest on, zeroed"},
    {"add_process_set", comm_add_process_set, METH_O, "add_process_set(ranks) -> number. Collective, blocking."},
    {"make_process_set", comm_make_process_set, METH_VARARGS,
     "make_process_set(ranks, name) -> number. Collective over these ranks alone, blocking."},
    {"remove_process_set", comm_remove_process_set, METH_O,
     "remove_process_set(number). Collective over all ranks, or over the members that made it; blocking."},
    {"place_in_set", comm_place_in_set, METH_O, "place_in_set(number) -> (rank or -1, size)"},
    {"timeline_start", comm_timeline_start, METH_VARARGS, "timeline_start(path, mark_cycles): this rank's, into this file"},
    {"timeline_stop", comm_timeline_stop, METH_NOARGS, "timeline_stop()"},
    {"counters", comm_counters, METH_O, "counters(JSON or PROMETHEUS) -> str"},
    {NULL, NULL, 0, NULL}};
static PyType_Slot comm_slots[] = {
    {Py_tp_dealloc, comm_dealloc}, {Py_tp_methods, comm_methods}, {Py_tp_doc, "All ranks."}, {0, NULL}};
PyType_Spec comm_spec = {"_muster_native.Comm", sizeof(comm_object), 0, Py_TPFLAGS_DEFAULT, comm_slots};
