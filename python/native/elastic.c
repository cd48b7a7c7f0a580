/* Elastic runs: the world is made again without ranks that are lost. */
#include "comm/membership/kept_beginning.h"
#include "python/native/native.h"

/* announce() -> bool: whether there is a launcher that can; False outside of an elastic run. */
PyObject* announce(PyObject* module, PyObject* none) {
    (void)module, (void)none;
    int code;
    Py_BEGIN_ALLOW_THREADS /* a spare waits here for its place */
    code = muster_reform_announce();
    Py_END_ALLOW_THREADS
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

/* keep_state(step, [(address, bytes), …]) */
PyObject* keep_state(PyObject* module, PyObject* arguments) {
    (void)module;
    unsigned long long step = 0;
    PyObject* list = NULL;
    if (!PyArg_ParseTuple(arguments, "KO", &step, &list)) return NULL;
    Py_ssize_t const count = PySequence_Size(list);
    muster_piece* pieces = count < 0 ? NULL : calloc((size_t)count + 1, sizeof *pieces);
    if (pieces == NULL) return count < 0 ? NULL : PyErr_NoMemory();
    int read = 1;
    for (Py_ssize_t i = 0; read && i < count; ++i) {
        PyObject* const one = PySequence_GetItem(list, i);
        unsigned long long address = 0;
        Py_ssize_t bytes = 0;
        read = one != NULL && PyArg_ParseTuple(one, "Kn", &address, &bytes);
        pieces[i].data = (void const*)(uintptr_t)address;
        pieces[i].bytes = (size_t)bytes;
        Py_XDECREF(one);
    }
    int code = MUSTER_OK;
    if (read) {
        Py_BEGIN_ALLOW_THREADS
        code = muster_state_keep(step, pieces, (size_t)count);
        Py_END_ALLOW_THREADS
    }
    free(pieces);
    return read ? none_or_raise(code) : NULL;
}

/* kept_state(which) -> (step, address, bytes) or None */
PyObject* kept_state(PyObject* module, PyObject* which) {
    (void)module;
    long const number = PyLong_AsLong(which);
    if (number == -1 && PyErr_Occurred()) return NULL;
    muster_kept copy;
    memset(&copy, 0, sizeof copy);
    copy.struct_size = sizeof copy;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = muster_state_kept((int)number, &copy);
    Py_END_ALLOW_THREADS
    if (code == MUSTER_E_UNAVAILABLE) Py_RETURN_NONE;
    if (code != MUSTER_OK) return raise_last(code);
    return Py_BuildValue("(KKn)", (unsigned long long)copy.step, (unsigned long long)(uintptr_t)copy.data,
                         (Py_ssize_t)copy.bytes);
}

/* choose_commit([numbers], most) -> (number, is_common, root, next) */
PyObject* choose_commit(PyObject* module, PyObject* arguments) {
    (void)module;
    PyObject* list = NULL;
    Py_ssize_t most = 0;
    if (!PyArg_ParseTuple(arguments, "On", &list, &most)) return NULL;
    Py_ssize_t const count = PySequence_Size(list);
    if (count < 0) return NULL;
    if (most <= 0 || count % most != 0) {
        PyErr_SetString(PyExc_ValueError, "each rank has to give as many numbers as the others");
        return NULL;
    }
    uint64_t* const steps = calloc((size_t)count + 1, sizeof *steps);
    if (steps == NULL) return PyErr_NoMemory();
    int read = 1;
    for (Py_ssize_t i = 0; read && i < count; ++i) {
        PyObject* const one = PySequence_GetItem(list, i);
        if (one != NULL) steps[i] = PyLong_AsUnsignedLongLong(one);
        read = one != NULL && !PyErr_Occurred();
        Py_XDECREF(one);
    }
    struct muster_kept_beginning const chosen = muster_choose_kept_beginning(steps, (size_t)(count / most), (size_t)most);
    free(steps);
    if (!read) return NULL;
    return Py_BuildValue("(KinK)", (unsigned long long)chosen.step, chosen.is_common, (Py_ssize_t)chosen.root,
                         (unsigned long long)chosen.next);
}
