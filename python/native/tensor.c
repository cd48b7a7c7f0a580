/* Submits a tensor of torch in one call, where it is what is usual: contiguous, on the host, of a type that muster adds. */
#include "python/native/native.h"

enum { MOST_TYPES = 16, MOST_NAME = 240 };

/* What know_tensors was told; torch itself is not known here. */
static struct {
    PyObject* dtype;
    int type, is_floating;
} types[MOST_TYPES];
static int type_count;
static PyObject* strided;
static PyObject *word_dtype, *word_layout, *word_is_cpu, *word_is_contiguous, *word_is_neg, *word_data_ptr, *word_shape;

/* know_tensors(types: sequence of (dtype, muster's number, is_floating), strided): the objects that tensors of torch have as dtype and layout. */
PyObject* know_tensors(PyObject* module, PyObject* arguments) {
    (void)module;
    PyObject *given = NULL, *layout = NULL;
    if (!PyArg_ParseTuple(arguments, "OO", &given, &layout)) return NULL;
    PyObject* list = PySequence_List(given);
    if (list == NULL) return NULL;
    type_count = 0;
    for (Py_ssize_t i = 0; i < PyList_Size(list) && i < MOST_TYPES; ++i) {
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "Oip", &types[i].dtype, &types[i].type, &types[i].is_floating)) break;
        Py_INCREF(types[i].dtype);
        type_count = (int)i + 1;
    }
    Py_DECREF(list);
    if (PyErr_Occurred()) return NULL;
    Py_INCREF(layout);
    strided = layout;
    word_dtype = PyUnicode_InternFromString("dtype");
    word_layout = PyUnicode_InternFromString("layout");
    word_is_cpu = PyUnicode_InternFromString("is_cpu");
    word_is_contiguous = PyUnicode_InternFromString("is_contiguous");
    word_is_neg = PyUnicode_InternFromString("is_neg");
    word_data_ptr = PyUnicode_InternFromString("data_ptr");
    word_shape = PyUnicode_InternFromString("shape");
    Py_RETURN_NONE;
}

/* Whether the attribute, or what the method gives, is this object. -1 with an exception. */
static int is(PyObject* owner, PyObject* word, int is_method, PyObject* wanted) {
    PyObject* value = is_method ? PyObject_CallMethodObjArgs(owner, word, NULL) : PyObject_GetAttr(owner, word);
    if (value == NULL) return -1;
    Py_DECREF(value);
    return value == wanted;
}

/* The place in `types` of the tensor's, -1 if it is none of them, -2 with an exception. */
static int type_of(PyObject* tensor) {
    PyObject* dtype = PyObject_GetAttr(tensor, word_dtype);
    if (dtype == NULL) return -2;
    int at = type_count;
    while (--at >= 0 && types[at].dtype != dtype) continue;
    Py_DECREF(dtype);
    return at;
}

/* Address and shape; 1 if they were read, 0 if the tensor is not for here, -1 with an exception. */
static int read_torch(PyObject* given, muster_tensor* tensor, int64_t* shape) {
    int usual = is(given, word_layout, 0, strided);
    if (usual > 0) usual = is(given, word_is_cpu, 0, Py_True);
    if (usual > 0) usual = is(given, word_is_contiguous, 1, Py_True);
    if (usual > 0) usual = is(given, word_is_neg, 1, Py_False);
    if (usual <= 0) return usual;
    PyObject* address = PyObject_CallMethodObjArgs(given, word_data_ptr, NULL);
    if (address == NULL) return -1;
    tensor->out = PyLong_AsVoidPtr(address);
    tensor->in = tensor->out;
    Py_DECREF(address);
    PyObject* extents = PyErr_Occurred() ? NULL : PyObject_GetAttr(given, word_shape);
    if (extents == NULL) return -1;
    Py_ssize_t const count = PyTuple_Check(extents) ? PyTuple_Size(extents) : MAX_DIMENSIONS + 1;
    for (Py_ssize_t i = 0; i < count && count <= MAX_DIMENSIONS; ++i) shape[i] = PyLong_AsLongLong(PyTuple_GetItem(extents, i));
    Py_DECREF(extents);
    if (PyErr_Occurred()) return -1;
    tensor->shape = shape;
    tensor->dimensions = (int)count;
    return count <= MAX_DIMENSIONS;
}

/* Horovod's number of a reduction, or None, as muster's; -1 for what is not for here. */
static int how_of(PyObject* op) {
    if (op == Py_None) return MUSTER_AVERAGE;
    long const number = PyLong_Check(op) ? PyLong_AsLong(op) : -1;
    switch (number) {
        case 0: return MUSTER_AVERAGE;
        case 1: return MUSTER_SUM;
        case 3: return MUSTER_MIN;
        case 4: return MUSTER_MAX;
        case 5: return MUSTER_PRODUCT;
        default: return -1;
    }
}

/* reduce(tensor, name, op, prescale, postscale) -> Handle, or None where the tensor or what is asked for is not usual: nothing was done then. In place, over all
 * ranks; `op` is Horovod's number or None; the name gets the prefix "allreduce.". */
PyObject* comm_reduce(PyObject* self, PyObject* const* given, Py_ssize_t count) {
    static char const prefix[] = "allreduce.";
    muster_comm* comm = comm_of(self);
    if (comm == NULL || is_wrong_count("reduce", count, 5)) return NULL;
    int const how = how_of(given[2]);
    double const prescale = PyFloat_AsDouble(given[3]), postscale = PyFloat_AsDouble(given[4]);
    char full[sizeof prefix + MOST_NAME];
    struct text name;
    if (PyErr_Occurred() || !read_text(given[1], &name)) return NULL;
    Py_ssize_t const length = PyBytes_Size(name.bytes);
    if (length <= MOST_NAME) memcpy(full + sizeof prefix - 1, name.chars, (size_t)length + 1);
    free_text(&name);
    if (type_count == 0 || how < 0 || prescale == 0 || postscale == 0 || length > MOST_NAME) Py_RETURN_NONE;
    int const type = type_of(given[0]);
    if (type < -1) return NULL;
    if (type < 0 || (!types[type].is_floating && (how == MUSTER_AVERAGE || prescale != 1 || postscale != 1))) Py_RETURN_NONE;
    muster_tensor tensor;
    int64_t shape[MAX_DIMENSIONS];
    memset(&tensor, 0, sizeof tensor);
    int const usual = read_torch(given[0], &tensor, shape);
    if (usual < 0) return NULL;
    if (usual == 0) Py_RETURN_NONE;
    memcpy(full, prefix, sizeof prefix - 1);
    tensor.struct_size = sizeof tensor;
    tensor.name = full;
    tensor.type = types[type].type;
    tensor.memory = MUSTER_HOST;
    muster_call call;
    memset(&call, 0, sizeof call);
    call.struct_size = sizeof call;
    call.prescale = prescale;
    call.postscale = postscale;
    release_dropped();
    muster_handle* handle = NULL;
    int const code = muster_allreduce_async(comm, &tensor, how, &call, &handle);
    return code == MUSTER_OK ? new_handle(handle, given[0]) : raise_last(code);
}
