# The wheel that packaging/portable/make_wheel.py makes of an installed tree: its metadata, and the programs that pip puts on PATH.
. "$(dirname "$0")/../cli/lib.sh"
extension=$(find "$MUSTER_PREFIX" -name '_muster_native.abi3.so')
[ -n "$extension" ] || skip "no Python package was built"
case $extension in "$MUSTER_PREFIX/lib/muster/python/"*) ;; *) skip "the libraries are not in lib, as the archive's are" ;; esac
mkdir wheel installed
expect_exit 0 /usr/bin/python3 "$MUSTER_SOURCE_DIR/packaging/portable/make_wheel.py" "$MUSTER_PREFIX" 0.1.0 wheel
expect_exit 0 /usr/bin/python3 -m zipfile -e wheel/*.whl installed
info=$(echo installed/*.dist-info)
expect_contains "$info/METADATA" 'License: Apache-2.0' 'Description-Content-Type: text/markdown' '# muster'
# A link to a file is none on a page of its own.
! grep -n '](\([^h#)]\|h[^t]\)' "$MUSTER_SOURCE_DIR/packaging/about-the-wheel.md" || fail "the description has links that only work in the sources"
expect_contains "$info/entry_points.txt" 'muster = muster._program:main' 'muster = _muster_torch_backend:register'

export PYTHONPATH=$PWD/installed
export LD_LIBRARY_PATH=$PWD/installed/muster/_installed/lib # the archive's module has this folder in its run path; that of another build has none for wheels
chmod +x installed/muster/_installed/bin/* # as pip does it
sed -n 's/^\(muster[a-z-]*\) = muster\._program:\(.*\)/\1 \2/p' "$info/entry_points.txt" >programs
expect_true test "$(wc -l <programs)" -ge 2
while read -r name function; do
    expect_exit 0 /usr/bin/python3 -c "import sys; sys.argv = ['$name', '--version']; from muster import _program; _program.$function()"
    expect_contains stdout "$name "
done <programs
rm -f installed/muster/_installed/bin/muster-stage
expect_exit 1 /usr/bin/python3 -c "from muster import _program; _program.stage()"
expect_contains stderr "muster-stage: error:" "docs/install.md"

# muster itself says where the package is, and what to do, since its ranks may run another Python.
expect_exit 0 env -u PYTHONPATH installed/muster/_installed/bin/muster doctor
expect_contains stdout "install the wheel in this Python"
