# The Python package as it is installed: found on PYTHONPATH where the tree was moved to, links no framework, no MPI, no CUDA, and runs on every Python that is here.
. "$(dirname "$0")/../cli/lib.sh"
# timeout: 120
extension=$(find "$MUSTER_PREFIX" -name '_muster_native.abi3.so')
[ -n "$extension" ] || skip "no Python package was built"
folder=$(dirname "$extension")

# What it needs, directly and through libmuster_comm.so.
readelf -d "$extension" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort >needed
printf 'libc.so.6\n%s\n' "$(basename "$(find "$MUSTER_PREFIX" -name 'libmuster_comm.so.?')")" | sort | diff - needed || fail "the extension needs more"
ldd "$extension" | awk '{print $1, $3 == "not" ? "not found" : ""}' >libraries
! grep -i 'torch\|mpi\|cuda\|python\|not found' libraries || fail "the extension reaches a framework, MPI, CUDA or one Python's library"
# What the modules take of Python: each of these names is in the stable ABI of 3.9, the oldest Python that they are for (Doc/data/stable_abi.dat of CPython). Look there before you
# add one: Python's headers hide not all that is newer.
names="
    _PyArg_ParseTuple_SizeT _PyArg_ParseTupleAndKeywords_SizeT PyArg_ParseTuple PyArg_ParseTupleAndKeywords PyBool_FromLong PyByteArray_AsString
    PyByteArray_Size PyBytes_AsString PyBytes_FromStringAndSize PyBytes_Size PyDict_GetItemWithError PyDict_New PyErr_CheckSignals PyErr_Format PyErr_NoMemory
    PyErr_Occurred PyErr_SetObject PyErr_SetString PyEval_RestoreThread PyEval_SaveThread PyExc_RuntimeError PyExc_TypeError PyExc_ValueError
    PyFloat_AsDouble PyList_GetItem PyList_SetItem PyList_Size PyLong_AsLong PyLong_AsLongLong PyLong_AsSize_t PyLong_AsUnsignedLongLong PyLong_AsVoidPtr PyLong_FromLong
    PyLong_FromLongLong PyLong_FromSize_t PyLong_FromUnsignedLongLong PyLong_FromVoidPtr PyModule_AddIntConstant PyModule_AddObject PyModule_Create2
    PyObject_CallFunction PyObject_CallMethodObjArgs PyObject_ClearWeakRefs PyObject_GetAttr PySequence_GetItem PySequence_List PySequence_Size
    PyTuple_GetItem PyTuple_New PyTuple_SetItem PyTuple_Size PyType_FromSpec PyType_GetFlags PyType_GetSlot PyUnicode_AsUTF8String
    PyUnicode_CompareWithASCIIString PyUnicode_DecodeUTF8 PyUnicode_FromString PyUnicode_InternFromString _Py_BuildValue_SizeT _Py_Dealloc _Py_FalseStruct
    _Py_NoneStruct _Py_TrueStruct Py_BuildValue
"
printf '%s\n' $names | sort >known
for each in "$folder"/*.abi3.so; do nm -D --undefined-only "$each"; done | awk '{print $2}' | grep '^_\?Py' | sort -u | comm -23 - known >newer
[ ! -s newer ] || fail "the modules take names that CPython 3.9 may lack: $(paste -sd' ' newer)"

# Its only files are the package's: what is on PYTHONPATH hides nothing of the user's.
(cd "$folder" && ls) | grep -v '^muster\|^_muster_native.abi3.so$\|^_muster_data.abi3.so$\|^_muster_torch_backend.py$\|^__pycache__$' >others
expect_true test ! -s others

export PYTHONPATH=$folder
for python in /usr/bin/python3 /usr/bin/python3.9 /usr/bin/python3.1? /usr/local/bin/python3; do
    [ -x "$python" ] && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || continue
    expect_exit 0 "$python" -m muster
    expect_contains stdout "Library: $(readlink -f "$MUSTER_PREFIX")/lib"
    [ ! -e "$folder/_muster_data.abi3.so" ] || expect_exit 0 "$python" -c 'import muster.data._library as data; data.library()'
    expect_exit 0 "$MUSTER_PREFIX/bin/muster" run -q -n 2 --slots-per-node 2 --timeout 30s -- "$python" -c '
import muster
muster.init()
print("rank", muster.rank(), "of", muster.size())'
    expect_contains stdout "rank 1 of 2"
done
