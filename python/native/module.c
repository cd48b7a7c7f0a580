/* Makes the module _muster_native. */
#include <pthread.h>

#include "python/native/native.h"

PyTypeObject *comm_type, *handle_type, *group_type, *memory_type;

static void count_fork(void) {
    ++forks;
}

static PyObject* abi(PyObject* module, PyObject* none) {
    (void)module, (void)none;
    return PyLong_FromLong(muster_comm_abi());
}

/* built(what) -> int: loads the library that is asked for, without the GIL. */
static PyObject* built(PyObject* module, PyObject* what) {
    (void)module;
    struct text name;
    if (!read_text(what, &name)) return NULL;
    int number;
    Py_BEGIN_ALLOW_THREADS
    number = muster_built(name.chars);
    Py_END_ALLOW_THREADS
    free_text(&name);
    return PyLong_FromLong(number);
}

/* address() -> str */
static PyObject* address(PyObject* module, PyObject* none) {
    (void)module, (void)none;
    char text[1024];
    size_t size = sizeof text;
    int const code = muster_comm_address(text, &size);
    if (code != MUSTER_OK) return raise_last(code);
    return PyUnicode_FromString(size <= sizeof text ? text : "");
}

static PyMethodDef functions[] = {
    {"create", create, METH_VARARGS,
     "create(variables, ranks=None, name='') -> Comm. Collective over these ranks, or all. `variables` are texts NAME=VALUE."},
    {"set_error_class", set_error_class, METH_O, "set_error_class(class): called as class(message, code, ranks)"},
    {"know_tensors", know_tensors, METH_VARARGS,
     "know_tensors(types, strided): what tensors have as dtype, as (dtype, number, is_floating), and as layout, for Comm.reduce"},
    {"wait_many", wait_many, METH_O, "wait_many(handles): until all have ended; raises what the first that failed, failed of"},
    {"built", built, METH_O, "built(\"mpi\", \"pmix\", \"cuda_kernels\", \"nccl\" or \"cuda\") -> version or 1; 0: not found"},
    {"announce", announce, METH_NOARGS,
     "announce() -> bool: this program makes its world again after a failure; whether the launcher can"},
    {"generation", generation, METH_NOARGS, "generation() -> (number, rank, size, sync, variables) of an elastic run, or None"},
    {"reform", reform, METH_VARARGS,
     "reform(comm or None, variables, standing, seconds) -> Comm of the next generation, or None where this rank has no part in "
     "it"},
    {"hosts_changed", hosts_changed, METH_NOARGS, "hosts_changed() -> 1 removed, 2 added, 3 both, since the last call"},
    {"keep_state", keep_state, METH_VARARGS,
     "keep_state(step, [(address, bytes), …]): copies them into memory that may outlive the process"},
    {"kept_state", kept_state, METH_O,
     "kept_state(0 for the newest, 1 for the one before, and so on) -> (step, address, bytes) of a whole copy, or None"},
    {"choose_commit", choose_commit, METH_VARARGS,
     "choose_commit([numbers of all ranks' copies, 0 for none], how many of each) -> (number, whether all have it, the first "
     "rank "
     "that has it, the number of the next commit)"},
    {"address", address, METH_NOARGS, "where this process listens for other ranks (backend tcp), for MUSTER_ADDRESSES"},
    {"abi", abi, METH_NOARGS, "the number of the interface of libmuster_comm.so"},
    {NULL, NULL, 0, NULL}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_muster_native", "Collectives of libmuster_comm.so.", -1, functions, NULL, NULL, NULL, NULL};

static int add_type(PyObject* module, PyTypeObject** to, PyType_Spec* spec, char const* name) {
    *to = (PyTypeObject*)PyType_FromSpec(spec);
    if (*to == NULL) return 0;
    Py_INCREF((PyObject*)*to);
    return PyModule_AddObject(module, name, (PyObject*)*to) == 0;
}

/* The names in Python are those in C: of native.h, and of muster_comm.h without MUSTER_. */
#define OWN(name) \
    { #name, name }
#define PUBLIC(name) \
    { #name, MUSTER_##name }

static struct {
    char const* name;
    int value;
} const constants[] = {
    OWN(ALLREDUCE),     OWN(ALLGATHER),    OWN(BROADCAST),       OWN(REDUCESCATTER),    OWN(ALLTOALL),     OWN(BARRIER),
    OWN(JOIN),          PUBLIC(F32),       PUBLIC(F64),          PUBLIC(F16),           PUBLIC(BF16),      PUBLIC(I32),
    PUBLIC(I64),        PUBLIC(U8),        PUBLIC(I8),           PUBLIC(BOOL),          PUBLIC(I16),       PUBLIC(U16),
    PUBLIC(SUM),        PUBLIC(AVERAGE),   PUBLIC(MIN),          PUBLIC(MAX),           PUBLIC(PRODUCT),   PUBLIC(ADASUM),
    PUBLIC(HOST),       PUBLIC(DEVICE),    PUBLIC(WIRE_DEFAULT), PUBLIC(WIRE_NONE),     PUBLIC(WIRE_F16),  PUBLIC(WIRE_BF16),
    PUBLIC(E_USAGE),    PUBLIC(E_TIMEOUT), PUBLIC(E_PEER),       PUBLIC(E_UNAVAILABLE), PUBLIC(E_SYSTEM),  PUBLIC(E_LIBRARY),
    PUBLIC(E_INTERNAL), PUBLIC(HAS_STATE), PUBLIC(AT_COMMIT),    PUBLIC(JSON),          PUBLIC(PROMETHEUS)};

PyMODINIT_FUNC PyInit__muster_native(void) {
    PyObject* module = PyModule_Create(&definition);
    if (module == NULL || !make_words()) return NULL;
    if (!add_type(module, &comm_type, &comm_spec, "Comm") || !add_type(module, &handle_type, &handle_spec, "Handle") ||
        !add_type(module, &group_type, &group_spec, "Group") || !add_type(module, &memory_type, &memory_spec, "Memory"))
        return NULL;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; ++i)
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value) != 0) return NULL;
    pthread_atfork(NULL, NULL, count_fork);
    return module;
}
