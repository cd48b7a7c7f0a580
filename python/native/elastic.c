/* Elastic runs: the world is made again without ranks that are lost. */
#include "python/native/native.h"

/* announce() -> bool: whether there is a launcher that can; False outside of an elastic run. */
PyObject* announce(PyObject* module, PyObject* none) {
    (void)module, (void)none;
    int const code = muster_reform_announce();
    return code == MUSTER_OK || code == MUSTER_E_UNAVAILABLE ? PyBool_FromLong(code == MUSTER_OK) : raise_last(code);
}

/* hosts_changed() -> bits: 1 removed, 2 added. */
PyObject* hosts_changed(PyObject* module, PyObject* none) {
    (void)module, (void)none;
    int what = 0;
    int const code = muster_hosts_changed(&what);
    return code == MUSTER_OK ? PyLong_FromLong(what) : raise_last(code);
}

/* generation() -> (number, rank, size, sync, variables as lines), or None outside of an elastic run. */
PyObject* generation(PyObject* module, PyObject* none) {
    (void)module, (void)none;
    muster_generation now;
    memset(&now, 0, sizeof now);
    now.struct_size = sizeof now;
    int code = muster_generation_now(&now);
    if (code == MUSTER_E_UNAVAILABLE) Py_RETURN_NONE;
    size_t size = 0;
    if (code == MUSTER_OK) code = muster_generation_variables(NULL, &size);
    if (code != MUSTER_OK) return raise_last(code);
    size += 4096; /* a generation that begins meanwhile may have more members */
    char* text = calloc(1, size);
    if (text == NULL) return PyErr_NoMemory();
    code = muster_generation_variables(text, &size);
    PyObject* made =
        code == MUSTER_OK ? Py_BuildValue("(iiiis)", now.number, now.rank, now.size, now.sync, text) : raise_last(code);
    free(text);
    return made;
}

/* reform(comm or None, variables, standing, seconds) -> Comm of the next generation, or None where this rank has no part in it. Takes `comm` over. */
PyObject* reform(PyObject* module, PyObject* arguments) {
    (void)module;
    PyObject *old = NULL, *variables = NULL;
    int standing = 0;
    double seconds = 0;
    if (!PyArg_ParseTuple(arguments, "OOid", &old, &variables, &standing, &seconds)) return NULL;
    muster_comm* left = NULL;
    if (old != Py_None) {
        if ((left = comm_of(old)) == NULL) return NULL;
        ((comm_object*)old)->comm = NULL;
    }
    PyObject* list = NULL; /* keeps the texts */
    char const** texts = read_texts(variables, &list);
    comm_object* made = texts == NULL ? NULL : (comm_object*)new_object(comm_type);
    if (made == NULL) goto failed;
    made->made_after_forks = forks;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = muster_comm_reform(left, texts, standing, seconds, NULL, &made->comm);
    Py_END_ALLOW_THREADS
    release_dropped();
    free(texts);
    Py_DECREF(list);
    if (code == MUSTER_OK && made->comm != NULL) return (PyObject*)made;
    Py_DECREF((PyObject*)made);
    return none_or_raise(code);
failed:
    free(texts);
    Py_XDECREF(list);
    return NULL;
}
