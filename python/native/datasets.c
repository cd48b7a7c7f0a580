/* The module _muster_data: datasets, samplers and loaders of libmuster_io.so, as io/c_api/muster_io.h has them, of CPython's limited API from 3.9 on. A module of its
 * own, since that library needs HDF5, and with it MPI. What blocks runs without the GIL; who may call at the same time stands in muster_io.h.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "io/c_api/muster_io.h"

#define METHOD(function) (PyCFunction)(void (*)(void)) function
#define UNLOCKED(call)      \
    Py_BEGIN_ALLOW_THREADS; \
    code = call;            \
    Py_END_ALLOW_THREADS

/* Holds what the library made; freed with the last reference, in the process that made it: a fork has neither its threads nor its locks. */
typedef struct {
    PyObject_HEAD
    void* made;
    unsigned made_after_forks;
    PyObject* weak_references;
} owner;

static PyTypeObject *data_type, *sampler_type, *loader_type;
static PyObject* error_classes; /* code -> class, set by muster.data */
static unsigned forks;

static void count_fork(void) {
    ++forks;
}

/* What the library says of its last call, as the class of its code; always null. */
static PyObject* raise_last(int code) {
    PyObject* number = PyLong_FromLong(code);
    if (number == NULL) return NULL;
    PyObject* class = error_classes == NULL ? NULL : PyDict_GetItemWithError(error_classes, number);
    Py_DECREF(number);
    PyObject* text = PyUnicode_DecodeUTF8(muster_io_last_error(), (Py_ssize_t)strlen(muster_io_last_error()), "replace");
    if (text == NULL) return NULL;
    PyErr_SetObject(class == NULL ? PyExc_RuntimeError : class, text);
    Py_DECREF(text);
    return NULL;
}

static PyObject* none_or_raise(int code) {
    if (code != MUSTER_IO_OK) return raise_last(code);
    Py_RETURN_NONE;
}

static PyObject* own(PyTypeObject* type, void* made) {
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    owner* self = (owner*)make(type, 0);
    if (self == NULL) return NULL;
    self->made = made;
    self->made_after_forks = forks;
    return (PyObject*)self;
}

static void release(PyObject* self, int (*end)(void*)) {
    owner* held = (owner*)self;
    void* made = held->made_after_forks == forks ? held->made : NULL;
    held->made = NULL;
    if (made == NULL) return;
    Py_BEGIN_ALLOW_THREADS;
    end(made);
    Py_END_ALLOW_THREADS;
}

static int end_data(void* made) {
    return muster_dataset_close(made);
}
static int end_sampler(void* made) {
    return muster_sampler_free(made);
}
static int end_loader(void* made) {
    return muster_loader_free(made);
}

static void drop(PyObject* self, int (*end)(void*)) {
    PyTypeObject* type = Py_TYPE(self);
    freefunc give_back = (freefunc)PyType_GetSlot(type, Py_tp_free);
    if (((owner*)self)->weak_references != NULL) PyObject_ClearWeakRefs(self);
    release(self, end);
    give_back(self);
    Py_DECREF(type);
}
static void drop_data(PyObject* self) {
    drop(self, end_data);
}
static void drop_sampler(PyObject* self) {
    drop(self, end_sampler);
}
static void drop_loader(PyObject* self) {
    drop(self, end_loader);
}

static void* made_of(PyObject* self) {
    void* made = ((owner*)self)->made;
    if (made == NULL) PyErr_SetString(PyExc_ValueError, "this was closed");
    return made;
}

/* ------------------------------------------------------------------------------------------------ datasets */

static PyObject* open_data(PyObject* module, PyObject* given) {
    (void)module;
    char const *path, *split;
    if (!PyArg_ParseTuple(given, "ys", &path, &split)) return NULL;
    muster_dataset* made = NULL;
    int code;
    UNLOCKED(muster_dataset_open(path, split, &made));
    return code == MUSTER_IO_OK ? own(data_type, made) : raise_last(code);
}

static PyObject* data_describe(PyObject* self, PyObject* none) {
    (void)none;
    muster_dataset* data = made_of(self);
    if (data == NULL) return NULL;
    muster_dataset_facts facts = {0};
    int const code = muster_dataset_describe(data, &facts);
    if (code != MUSTER_IO_OK) return raise_last(code);
    return Py_BuildValue("{s:K,s:(KKK),s:K,s:K,s:K,s:K,s:K,s:K,s:i,s:i,s:i}", "samples", (unsigned long long)facts.samples,
                         "shape", (unsigned long long)facts.channels, (unsigned long long)facts.height,
                         (unsigned long long)facts.width, "sample_bytes", (unsigned long long)facts.sample_bytes, "label_bytes",
                         (unsigned long long)facts.label_bytes, "classes", (unsigned long long)facts.classes, "image_offset",
                         (unsigned long long)facts.image_offset, "label_offset", (unsigned long long)facts.label_offset,
                         "class_names", (unsigned long long)facts.class_names, "type", facts.type, "label_type", facts.label_type,
                         "is_row", facts.is_row);
}

static PyObject* data_class_name(PyObject* self, PyObject* number) {
    muster_dataset* data = made_of(self);
    if (data == NULL) return NULL;
    uint64_t const wanted = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) return NULL;
    char const* name = NULL;
    int const code = muster_dataset_class_name(data, wanted, &name);
    if (code != MUSTER_IO_OK) return raise_last(code);
    if (name == NULL) name = "";
    return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");
}

static PyObject* data_column_name(PyObject* self, PyObject* number) {
    muster_dataset* data = made_of(self);
    if (data == NULL) return NULL;
    uint64_t const wanted = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) return NULL;
    char const* name = NULL;
    int const code = muster_dataset_column_name(data, wanted, &name);
    if (code != MUSTER_IO_OK) return raise_last(code);
    if (name == NULL) Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");
}

/* read(first, count, samples, labels): into bytearrays of the whole size; an empty one leaves that part out. */
static PyObject* data_read(PyObject* self, PyObject* given) {
    muster_dataset* data = made_of(self);
    unsigned long long first, count;
    PyObject *samples, *labels;
    if (data == NULL || !PyArg_ParseTuple(given, "KKYY", &first, &count, &samples, &labels)) return NULL;
    muster_dataset_facts facts = {0};
    int code = muster_dataset_describe(data, &facts);
    if (code != MUSTER_IO_OK) return raise_last(code);
    Py_ssize_t const sample_bytes = PyByteArray_Size(samples), label_bytes = PyByteArray_Size(labels);
    if ((sample_bytes != 0 && (uint64_t)sample_bytes != count * facts.sample_bytes) ||
        (label_bytes != 0 && (uint64_t)label_bytes != count * facts.label_bytes))
        return PyErr_Format(PyExc_ValueError, "read(): %zd bytes for %llu samples and %zd for their labels", sample_bytes, count,
                            label_bytes);
    void* const into = sample_bytes == 0 ? NULL : PyByteArray_AsString(samples);
    void* const labels_into = label_bytes == 0 ? NULL : PyByteArray_AsString(labels);
    UNLOCKED(muster_dataset_read(data, first, count, into, labels_into));
    return none_or_raise(code);
}

static PyObject* data_verify(PyObject* self, PyObject* none) {
    (void)none;
    muster_dataset* data = made_of(self);
    if (data == NULL) return NULL;
    int code;
    UNLOCKED(muster_dataset_verify(data));
    return none_or_raise(code);
}

static PyObject* data_window(PyObject* self, PyObject* none) {
    (void)none;
    muster_dataset* data = made_of(self);
    uint64_t samples = 0, chunks = 0;
    if (data == NULL) return NULL;
    int const code = muster_dataset_window(data, &samples, &chunks);
    return code == MUSTER_IO_OK ? Py_BuildValue("KK", (unsigned long long)samples, (unsigned long long)chunks) : raise_last(code);
}

static PyObject* data_close(PyObject* self, PyObject* none) {
    (void)none;
    release(self, end_data);
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------------------------------------ samplers */

/* A sequence of `count` numbers, to be freed; null with an exception. */
static double* read_numbers(PyObject* given, Py_ssize_t count) {
    double* numbers = calloc((size_t)count + 1, sizeof *numbers);
    if (numbers == NULL) return (double*)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* each = PySequence_GetItem(given, i);
        numbers[i] = each == NULL ? -1 : PyFloat_AsDouble(each);
        Py_XDECREF(each);
        if (PyErr_Occurred()) {
            free(numbers);
            return NULL;
        }
    }
    return numbers;
}

static PyObject* make_sampler(PyObject* module, PyObject* given, PyObject* named) {
    (void)module;
    static char* words[] = {"samples", "seed", "sequential", "tail", "spread", "window", "weights", "draws", "once", NULL};
    unsigned long long samples, seed = 0, chunk_samples = 0, chunks = 0, draws = 0;
    muster_sampler_options options = {0};
    PyObject* weights = Py_None;
    if (!PyArg_ParseTupleAndKeywords(given, named, "K|$Kpii(KK)OKp", words, &samples, &seed, &options.sequential, &options.tail,
                                     &options.spread, &chunk_samples, &chunks, &weights, &draws, &options.once))
        return NULL;
    options.seed = seed;
    options.window_chunk_samples = chunk_samples;
    options.window_chunks = chunks;
    options.draws = draws;
    double* numbers = NULL;
    if (weights != Py_None) {
        Py_ssize_t const count = PySequence_Size(weights);
        if (count < 0) return NULL;
        if ((unsigned long long)count != samples)
            return PyErr_Format(PyExc_ValueError, "%zd weights for %llu samples; give one for each", count, samples);
        if ((numbers = read_numbers(weights, count)) == NULL) return NULL;
        options.weights = numbers;
    }
    muster_sampler* made = NULL;
    int code;
    UNLOCKED(muster_sampler_create(samples, &options, &made));
    free(numbers);
    return code == MUSTER_IO_OK ? own(sampler_type, made) : raise_last(code);
}

/* A part is the tuple (epoch, rank, world, start, node_first, node_ranks); false with an exception. */
static int read_part(PyObject* given, muster_epoch_part* part) {
    memset(part, 0, sizeof *part);
    unsigned long long epoch, start;
    if (!PyArg_ParseTuple(given, "KiiKii", &epoch, &part->rank, &part->world, &start, &part->node_first, &part->node_ranks))
        return 0;
    part->epoch = epoch;
    part->start = start;
    return 1;
}

static PyObject* sampler_count(PyObject* self, PyObject* given) {
    muster_sampler* sampler = made_of(self);
    muster_epoch_part part;
    uint64_t count = 0;
    if (sampler == NULL || !read_part(given, &part)) return NULL;
    int const code = muster_sampler_count(sampler, &part, &count);
    return code == MUSTER_IO_OK ? PyLong_FromUnsignedLongLong(count) : raise_last(code);
}

/* fill(part, first, count) -> bytes of uint64. */
static PyObject* sampler_fill(PyObject* self, PyObject* given) {
    muster_sampler* sampler = made_of(self);
    PyObject* tuple;
    unsigned long long first, count;
    muster_epoch_part part;
    if (sampler == NULL || !PyArg_ParseTuple(given, "OKK", &tuple, &first, &count) || !read_part(tuple, &part)) return NULL;
    if (count > (unsigned long long)PY_SSIZE_T_MAX / sizeof(uint64_t)) return PyErr_NoMemory();
    PyObject* filled = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(uint64_t)));
    if (filled == NULL) return NULL;
    int code;
    UNLOCKED(muster_sampler_fill(sampler, &part, first, count, (uint64_t*)(void*)PyBytes_AsString(filled)));
    if (code == MUSTER_IO_OK) return filled;
    Py_DECREF(filled);
    return raise_last(code);
}

/* ------------------------------------------------------------------------------------------------ loaders */

/* One number a channel as floats, to be freed, or null where None is given; false with an exception. */
static int read_floats(PyObject* given, uint64_t channels, float** floats) {
    *floats = NULL;
    if (given == Py_None) return 1;
    Py_ssize_t const count = PySequence_Size(given);
    if (count < 0) return 0;
    if ((uint64_t)count != channels) {
        PyErr_Format(PyExc_ValueError, "%zd numbers for %llu channels; give one for each", count, (unsigned long long)channels);
        return 0;
    }
    double* numbers = read_numbers(given, count);
    if (numbers == NULL) return 0;
    *floats = calloc((size_t)count + 1, sizeof **floats);
    for (Py_ssize_t i = 0; *floats != NULL && i < count; ++i) (*floats)[i] = (float)numbers[i];
    free(numbers);
    if (*floats == NULL) PyErr_NoMemory();
    return *floats != NULL;
}

/* (channels, crop_height, crop_width, pad, random, flip, mean, deviation); mean and deviation are to be freed, also after a read that failed. */
static int read_transform(PyObject* given, muster_transform* transform, float** mean, float** deviation) {
    unsigned long long channels, height, width, pad;
    PyObject *means, *deviations;
    memset(transform, 0, sizeof *transform);
    if (!PyArg_ParseTuple(given, "KKKKppOO", &channels, &height, &width, &pad, &transform->random, &transform->flip, &means,
                          &deviations))
        return 0;
    transform->channels = channels;
    transform->crop_height = height;
    transform->crop_width = width;
    transform->pad = pad;
    if (!read_floats(means, channels, mean) || !read_floats(deviations, channels, deviation)) return 0;
    transform->mean = *mean;
    transform->deviation = *deviation;
    return 1;
}

static PyObject* make_loader(PyObject* module, PyObject* given, PyObject* named) {
    (void)module;
    static char* words[] = {"data",    "sampler", "shared",      "batch",  "place",     "memory", "prefetch",
                            "workers", "readers", "large_pages", "pinned", "transform", NULL};
    PyObject *data, *sampler, *changes = Py_None;
    int shared = 0;
    unsigned long long batch = 0;
    muster_loader_options options = {0};
    if (!PyArg_ParseTupleAndKeywords(given, named, "O!O!|$pK(iiii)iiiipiO", words, data_type, &data, sampler_type, &sampler,
                                     &shared, &batch, &options.rank, &options.world, &options.local_rank, &options.local_size,
                                     &options.memory, &options.prefetch, &options.workers, &options.readers, &options.large_pages,
                                     &options.pinned, &changes))
        return NULL;
    options.batch = batch;
    muster_dataset* from = made_of(data);
    muster_sampler* order = made_of(sampler);
    if (from == NULL || order == NULL) return NULL;
    muster_transform transform;
    float *mean = NULL, *deviation = NULL;
    int code = MUSTER_IO_OK, is_read = 1;
    if (changes != Py_None) is_read = read_transform(changes, &transform, &mean, &deviation);
    if (changes != Py_None) options.transform = &transform;
    muster_loader* made = NULL;
    if (is_read) {
        UNLOCKED((shared ? muster_loader_create_shared : muster_loader_create)(from, order, &options, &made));
    }
    free(mean);
    free(deviation);
    if (!is_read) return NULL;
    return code == MUSTER_IO_OK ? own(loader_type, made) : raise_last(code);
}

static PyObject* loader_epoch(PyObject* self, PyObject* given) {
    muster_loader* loader = made_of(self);
    unsigned long long epoch, start;
    if (loader == NULL || !PyArg_ParseTuple(given, "KK", &epoch, &start)) return NULL;
    int code;
    UNLOCKED(muster_loader_epoch(loader, epoch, start, NULL));
    return none_or_raise(code);
}

/* next() -> (address of samples, address of labels or 0, their numbers as bytes, count, global_count, resume_at); None: the epoch is over. */
static PyObject* loader_next(PyObject* self, PyObject* none) {
    (void)none;
    muster_loader* loader = made_of(self);
    if (loader == NULL) return NULL;
    muster_batch batch = {0};
    int code;
    UNLOCKED(muster_loader_next(loader, &batch));
    if (code == MUSTER_IO_END) Py_RETURN_NONE;
    if (code != MUSTER_IO_OK) return raise_last(code);
    void const* samples = batch.values != NULL ? (void const*)batch.values : (void const*)batch.images;
    return Py_BuildValue("KKy#KKK", (unsigned long long)(uintptr_t)samples, (unsigned long long)(uintptr_t)batch.labels,
                         (char const*)(batch.count == 0 ? (void const*)"" : batch.samples), (Py_ssize_t)(8 * batch.count),
                         (unsigned long long)batch.count, (unsigned long long)batch.global_count,
                         (unsigned long long)batch.resume_at);
}

static PyObject* loader_report(PyObject* self, PyObject* none) {
    (void)none;
    muster_loader* loader = made_of(self);
    if (loader == NULL) return NULL;
    muster_loader_times times = {0};
    int const code = muster_loader_report(loader, &times);
    if (code != MUSTER_IO_OK) return raise_last(code);
    return Py_BuildValue("KKKdd", (unsigned long long)times.steps, (unsigned long long)times.samples,
                         (unsigned long long)times.bytes, times.waited_s, times.total_s);
}

static PyObject* loader_why(PyObject* self, PyObject* none) {
    (void)none;
    muster_loader* loader = made_of(self);
    if (loader == NULL) return NULL;
    char const* why = muster_loader_why(loader);
    return PyUnicode_DecodeUTF8(why, (Py_ssize_t)strlen(why), "replace");
}

/* ------------------------------------------------------------------------------------------------ the module */

static PyMethodDef data_methods[] = {
    {"describe", data_describe, METH_NOARGS,
     "describe() -> what muster_dataset_facts holds, by name; shape is (channels, height, width)"},
    {"column_name", data_column_name, METH_O, "column_name(number) -> the name of an element of a row, or None"},
    {"class_name", data_class_name, METH_O, "class_name(number) -> the name of a class"},
    {"read", data_read, METH_VARARGS, "read(first, count, samples, labels): into bytearrays; an empty one leaves that part out"},
    {"verify", data_verify, METH_NOARGS, "verify(): compares everything with the checksums"},
    {"window", data_window, METH_NOARGS,
     "window() -> (samples of a chunk, chunks) of a shuffle that suits the file; zeros up to 4 GiB"},
    {"close", data_close, METH_NOARGS, "close(): loaders made from it go on"},
    {NULL, NULL, 0, NULL}};
static PyMethodDef sampler_methods[] = {
    {"count", sampler_count, METH_O, "count(part) -> samples of (epoch, rank, world, start, node_first, node_ranks)"},
    {"fill", sampler_fill, METH_VARARGS,
     "fill(part, first, count) -> bytes of uint64: the samples number first and on of that part"},
    {NULL, NULL, 0, NULL}};
static PyMethodDef loader_methods[] = {
    {"epoch", loader_epoch, METH_VARARGS, "epoch(epoch, start): begins an epoch, and ends the one before"},
    {"next", loader_next, METH_NOARGS,
     "next() -> (samples' address, labels' or 0, numbers, count, global_count, resume_at), valid until the next call; None: "
     "over"},
    {"report", loader_report, METH_NOARGS, "report() -> (steps, samples, bytes, waited_s, total_s) of the epoch"},
    {"why", loader_why, METH_NOARGS, "why() -> the memory mode, in words"},
    {NULL, NULL, 0, NULL}};
static PyMethodDef functions[] = {{"open", open_data, METH_VARARGS, "open(path, split) -> Data"},
                                  {"sampler", METHOD(make_sampler), METH_VARARGS | METH_KEYWORDS,
                                   "sampler(samples, seed=0, …) -> Sampler; as muster_sampler_options"},
                                  {"loader", METHOD(make_loader), METH_VARARGS | METH_KEYWORDS,
                                   "loader(data, sampler, batch=64, …) -> Loader; as muster_loader_options"},
                                  {NULL, NULL, 0, NULL}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_muster_data", "Datasets of libmuster_io.so.", -1, functions, NULL, NULL, NULL, NULL};

static PyTypeObject* make_type(PyObject* module, char const* name, void* drop_one, PyMethodDef* methods) {
    static PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(owner, weak_references), READONLY, NULL},
                                    {NULL, 0, 0, 0, NULL}};
    PyType_Slot slots[] = {{Py_tp_dealloc, drop_one}, {Py_tp_methods, methods}, {Py_tp_members, members}, {0, NULL}};
    PyType_Spec spec = {.name = name, .basicsize = sizeof(owner), .flags = Py_TPFLAGS_DEFAULT, .slots = slots};
    PyObject* type = PyType_FromSpec(&spec);
    if (type == NULL) return NULL;
    Py_INCREF(type);
    return PyModule_AddObject(module, strrchr(name, '.') + 1, type) == 0 ? (PyTypeObject*)type : NULL;
}

PyMODINIT_FUNC PyInit__muster_data(void) {
    PyObject* module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    data_type = make_type(module, "_muster_data.Data", (void*)drop_data, data_methods);
    sampler_type = make_type(module, "_muster_data.Sampler", (void*)drop_sampler, sampler_methods);
    loader_type = make_type(module, "_muster_data.Loader", (void*)drop_loader, loader_methods);
    error_classes = PyDict_New();
    if (data_type == NULL || sampler_type == NULL || loader_type == NULL || error_classes == NULL) return NULL;
    Py_INCREF(error_classes);
    if (PyModule_AddObject(module, "error_classes", error_classes) != 0) return NULL; /* filled by muster.data */
    pthread_atfork(NULL, NULL, count_fork);
    return module;
}
