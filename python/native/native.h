/* Lets Python submit collectives: a thin layer over libmuster_comm.so, of CPython's limited API, so that one file serves every Python from 3.9 on.
 *
 * Tensors come as numbers: address, shape, type; tensor.c alone asks an object for them. Nothing here knows torch, NumPy or MPI. All checks that cost little are made by libmuster_comm; its codes become
 * exceptions of the class that set_error_class was given: error_class(message, code, ranks).
 */
#ifndef MUSTER_NATIVE_H
#define MUSTER_NATIVE_H

#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <stdlib.h>
#include <string.h>

#include "comm/c_api/muster_comm.h"

/* In the limited API from 3.10 on only, but CPython has had this flag and this way to call since 3.7: so the modules are right for 3.9 too. It is defined here, since the headers
 * still hide most of what else is newer than 3.9. The test package.python knows every name that the modules may take. */
#define METH_FASTCALL 0x0080

/* Methods that get their arguments as an array. */
#define FAST(function) (PyCFunction)(void (*)(void)) function, METH_FASTCALL
#define NAMED(function) (PyCFunction)(void (*)(void)) function, METH_FASTCALL | METH_KEYWORDS

typedef struct {
    PyObject_HEAD
    muster_comm* comm;
    unsigned made_after_forks;
} comm_object;

typedef struct {
    PyObject_HEAD
    muster_handle* handle;
    PyObject* keep; /* what must stay until the request has ended */
    unsigned made_after_forks;
} handle_object;

typedef struct {
    PyObject_HEAD
    muster_group* group;
    PyObject* keep;
    unsigned made_after_forks;
} group_object;

typedef struct {
    PyObject_HEAD
    void* address;
    size_t bytes;
    unsigned made_after_forks;
} memory_object;

extern PyTypeObject *comm_type, *handle_type, *group_type, *memory_type;
extern PyType_Spec comm_spec, handle_spec, group_spec, memory_spec;

/* Grows in each child of fork(): it has the parent's objects, but none of its threads, and must not use them, nor end them. */
extern unsigned forks;

/* objects.c. comm_of: null with an exception where it has ended or belongs to another process. */
PyObject* new_object(PyTypeObject* type);
void free_object(PyObject* self);
muster_comm* comm_of(PyObject* self);

/* objects.c. raise_last: of the last call that failed; always null. */
PyObject* raise_last(int code);
PyObject* none_or_raise(int code);
PyObject* set_error_class(PyObject* module, PyObject* class);

/* handle.c. new_handle takes over `handle`, and holds `keep` until the request has ended. release_dropped frees what was dropped before its end. */
PyObject* new_handle(muster_handle* handle, PyObject* keep);
void release_dropped(void);
PyObject* wait_many(PyObject* module, PyObject* given);

/* arguments.c. Functions that read give 0 or null with an exception. */
enum { MAX_DIMENSIONS = 8 };
int is_wrong_count(char const* what, Py_ssize_t count, Py_ssize_t wanted);
/* A text in UTF-8. Its object holds it: the stable ABI of 3.9 cannot lend what is in a str. */
struct text {
    PyObject* bytes;
    char const* chars;
};
int read_text(PyObject* given, struct text* text);
void free_text(struct text* text);
/* A tensor is the tuple (name, in, out, shape, type). `name` is to be freed after the tensor's last use; after a failure it is empty. */
int read_tensor(PyObject* given, int memory, muster_tensor* tensor, int64_t* shape, struct text* name);

/* What a collective takes by name: splits=None, prescale=1.0, postscale=1.0, set=0, compression=0, error_feedback=0, memory=HOST, stream=0, keep=None, out_elements=0.
 * `keep` is held until the request has ended. The objects are the caller's. */
struct options {
    muster_call call;
    int memory;
    PyObject *splits, *keep;
    size_t out_elements;
};
int make_words(void); /* before the first read_options */
int read_options(PyObject* const* values, PyObject* names, struct options* options);
int* read_ranks(PyObject* given, int* count); /* to be freed */
/* The texts of a sequence and a null, to be freed; the new `list` holds them. */
char const** read_texts(PyObject* given, PyObject** list);

/* The tensors of a group. */
struct tensors {
    muster_tensor* all;
    int64_t (*shapes)[MAX_DIMENSIONS];
    PyObject* list; /* holds the names */
    Py_ssize_t count;
};
int read_tensors(PyObject* given, int memory, struct tensors* these);
void free_tensors(struct tensors* these); /* also after a read that failed */

/* comm.c, elastic.c and submit.c. */
enum { ALLREDUCE, ALLGATHER, BROADCAST, REDUCESCATTER, ALLTOALL, BARRIER, JOIN };
PyObject* create(PyObject* module, PyObject* arguments);
PyObject* announce(PyObject* module, PyObject* none);
PyObject* hosts_changed(PyObject* module, PyObject* none);
PyObject* keep_state(PyObject* module, PyObject* arguments);
PyObject* kept_state(PyObject* module, PyObject* which);
PyObject* choose_commit(PyObject* module, PyObject* arguments);
PyObject* generation(PyObject* module, PyObject* none);
PyObject* reform(PyObject* module, PyObject* arguments);
PyObject* comm_submit(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* names);
PyObject* comm_submit_group(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* names);
PyObject* comm_prepare(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* names);

/* tensor.c. */
PyObject* know_tensors(PyObject* module, PyObject* arguments);
PyObject* comm_reduce(PyObject* self, PyObject* const* given, Py_ssize_t count);

#endif
