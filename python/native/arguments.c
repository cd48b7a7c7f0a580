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

int read_text(PyObject* given, struct text* text) {
    text->chars = NULL;
    if (PyUnicode_Check(given))
        text->bytes = PyUnicode_AsUTF8String(given);
    else
        text->bytes = PyErr_Format(PyExc_TypeError, "a text was expected, not %R", given);
    if (text->bytes != NULL) text->chars = PyBytes_AsString(text->bytes);
    return text->bytes != NULL;
}

void free_text(struct text* text) {
    Py_XDECREF(text->bytes);
    text->bytes = NULL;
}

int read_tensor(PyObject* given, int memory, muster_tensor* tensor, int64_t* shape, struct text* name) {
    enum { PARTS = 5 };
    PyObject* parts[PARTS];
    name->bytes = NULL;
    if (!PyTuple_Check(given) || PyTuple_Size(given) != PARTS) {
        PyErr_SetString(PyExc_TypeError, "a tensor is (name, in, out, shape, type)");
        return 0;
    }
    for (int part = 0; part < PARTS; ++part) parts[part] = PyTuple_GetItem(given, part);
    memset(tensor, 0, sizeof *tensor);
    tensor->struct_size = sizeof *tensor;
    if (!read_text(parts[0], name)) return 0;
    tensor->name = name->chars;
    tensor->in = PyLong_AsVoidPtr(parts[1]);
    tensor->out = PyLong_AsVoidPtr(parts[2]);
    tensor->type = (int)PyLong_AsLong(parts[4]);
    tensor->shape = shape;
    tensor->memory = memory;
    if (!PyErr_Occurred() && read_shape(parts[3], shape, &tensor->dimensions)) return 1;
    free_text(name);
    return 0;
}

/* The names of options, in the order in which callers give them: then each is found at the first look. */
enum { SPLITS, PRESCALE, POSTSCALE, SET, COMPRESSION, ERROR_FEEDBACK, MEMORY, STREAM, KEEP, OUT_ELEMENTS, OPTIONS };
static char const* const spellings[OPTIONS] = {"splits",         "prescale", "postscale", "set",  "compression",
                                               "error_feedback", "memory",   "stream",    "keep", "out_elements"};
static PyObject* words[OPTIONS];

int make_words(void) {
    for (int i = 0; i < OPTIONS; ++i)
        if ((words[i] = PyUnicode_InternFromString(spellings[i])) == NULL) return 0;
    return 1;
}

/* Names in a call are interned as `words` are, except those that a program made at run time. -1 if it is none of them. */
static int option_of(PyObject* name, int expected) {
    for (int i = 0; i < OPTIONS; ++i)
        if (words[(expected + i) % OPTIONS] == name) return (expected + i) % OPTIONS;
    for (int i = 0; i < OPTIONS; ++i)
        if (PyUnicode_CompareWithASCIIString(name, spellings[i]) == 0) return i;
    return -1;
}

int read_options(PyObject* const* values, PyObject* names, struct options* options) {
    memset(options, 0, sizeof *options);
    options->call.struct_size = sizeof options->call;
    options->call.prescale = options->call.postscale = 1;
    options->memory = MUSTER_HOST;
    options->splits = options->keep = Py_None;
    Py_ssize_t const count = names == NULL ? 0 : PyTuple_Size(names);
    int option = -1;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* name = PyTuple_GetItem(names, i);
        option = option_of(name, option + 1);
        switch (option) {
            case SPLITS: options->splits = values[i]; break;
            case PRESCALE: options->call.prescale = PyFloat_AsDouble(values[i]); break;
            case POSTSCALE: options->call.postscale = PyFloat_AsDouble(values[i]); break;
            case SET: options->call.set = (int)PyLong_AsLong(values[i]); break;
            case COMPRESSION: options->call.compression = (int)PyLong_AsLong(values[i]); break;
            case ERROR_FEEDBACK: options->call.error_feedback = (int)PyLong_AsLong(values[i]); break;
            case MEMORY: options->memory = (int)PyLong_AsLong(values[i]); break;
            case STREAM: options->call.stream = PyLong_AsVoidPtr(values[i]); break;
            case KEEP: options->keep = values[i]; break;
            case OUT_ELEMENTS: options->out_elements = PyLong_AsSize_t(values[i]); break;
            default: PyErr_Format(PyExc_TypeError, "a collective has no option %R", name); return 0;
        }
    }
    return !PyErr_Occurred();
}

char const** read_texts(PyObject* given, PyObject** list) {
    if ((*list = PySequence_List(given)) == NULL) return NULL;
    Py_ssize_t const count = PyList_Size(*list);
    char const** texts = calloc((size_t)count + 1, sizeof *texts);
    if (texts == NULL) PyErr_NoMemory();
    for (Py_ssize_t i = 0; texts != NULL && i < count; ++i) {
        struct text text;
        if (read_text(PyList_GetItem(*list, i), &text) && PyList_SetItem(*list, i, text.bytes) == 0) {
            texts[i] = text.chars;
            continue;
        }
        free(texts);
        return NULL;
    }
    return texts;
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
        struct text name; /* takes the tensor's place in the list, which is a copy */
        if (!read_tensor(PyList_GetItem(these->list, i), memory, &these->all[i], these->shapes[i], &name)) return 0;
        if (PyList_SetItem(these->list, i, name.bytes) != 0) return 0;
    }
    return 1;
}
