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
# What it takes of Python is in the stable interface of 3.10, so no name begins with _Py but those that every version has.
stable='^_Py_Dealloc$\|^_Py_NoneStruct$\|^_Py_TrueStruct$\|^_Py_FalseStruct$\|^_PyArg_Parse.*_SizeT$\|^_Py_BuildValue_SizeT$'
for each in "$folder"/*.abi3.so; do nm -D --undefined-only "$each"; done | awk '{print $2}' | grep '^_Py' | grep -v "$stable" >private
expect_true test ! -s private

# Its only files are the package's: what is on PYTHONPATH hides nothing of the user's.
(cd "$folder" && ls) | grep -v '^muster\|^_muster_native.abi3.so$\|^_muster_data.abi3.so$\|^_muster_torch_backend.py$\|^__pycache__$' >others
expect_true test ! -s others

export PYTHONPATH=$folder
for python in /usr/bin/python3 /usr/bin/python3.1? /usr/local/bin/python3; do
    [ -x "$python" ] && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || continue
    expect_exit 0 "$python" -m muster
    expect_contains stdout "Library: $(readlink -f "$MUSTER_PREFIX")/lib"
    [ ! -e "$folder/_muster_data.abi3.so" ] || expect_exit 0 "$python" -c 'import muster.data._library as data; data.library()'
    expect_exit 0 "$MUSTER_PREFIX/bin/muster" run -q -n 2 --slots-per-node 2 --timeout 30s -- "$python" -c '
import muster
muster.init()
print("rank", muster.rank(), "of", muster.size())'
    expect_contains stdout "rank 1 of 2"
done
