# The portable archive of `./bootstrap.sh package`, where that was made: what its files need, what they show, and that they work where they were unpacked.
. "$(dirname "$0")/../cli/lib.sh"
archive=$(find "$MUSTER_SOURCE_DIR/build/packages" -name 'muster-*-linux-x86_64.tar.xz' 2>/dev/null)
[ -n "$archive" ] || skip "no archive was made: ./bootstrap.sh package"
tar -x -f "$archive"
root=$(echo "$PWD"/muster-*)
[ "$(stat -c %s "$archive")" -lt 15000000 ] || fail "the archive is larger than 15 MB"

# Nothing but a C library of 2.28; nothing outside of the archive by a path; of the libraries within it nothing to be seen.
find "$root" -type f \( -perm -u+x -o -name '*.so*' \) | while read -r file; do head -c 4 "$file" | grep -q ELF && echo "$file"; done >files
expect_true test "$(wc -l <files)" -ge 6
while read -r file; do
    name=$(basename "$file")
    readelf -h "$file" | grep -q 'Type: *DYN' || fail "$name is loaded at a fixed address: link it with -pie"
    highest=$(objdump -T "$file" | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -n 1)
    [ "$(printf '%s\nGLIBC_2.28\n' "$highest" | sort -V | tail -n 1)" = GLIBC_2.28 ] || fail "$name needs $highest"
    ! objdump -T "$file" | grep 'GLIBCXX\|CXXABI' || fail "$name needs libstdc++"
    readelf -d "$file" >dynamic
    sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' dynamic | grep -v -x 'lib\(c\|m\|pthread\|dl\|rt\|util\)\.so\.[0-9]\|ld-linux-x86-64\.so\.2\|libmuster_comm\.so\.[0-9]*' >more || true
    [ ! -s more ] || fail "$name needs $(paste -sd' ' more)"
    case $name in
        muster | muster-bench | libmuster_comm.so*) objdump -T "$file" | grep -q 'GLIBC.* memcpy$' || fail "$name has a memcpy of its own, which is slow" ;;
    esac
    ! ldd "$file" | grep 'not found' || fail "$name does not find its libraries"
    sed -n 's/.*R.*PATH.*\[\(.*\)\]/\1/p' dynamic | tr : '\n' | grep -v '^\$ORIGIN/' && fail "$name looks for libraries outside of the archive"
    case $name in
        libmuster_comm.so*) shown=muster_ ;;
        libmuster_pmix.so.2) shown=PMIx_ ;;
        _muster_native.abi3.so) shown=PyInit_ ;;
        *) shown='accept$\|bind$' ;; # by which the PMIx library calls the program
    esac
    nm -D --defined-only "$file" | awk '{print $3}' | grep -v "^\($shown\)" >exported || true
    [ "$name" != muster ] || { nm -D --defined-only "$file" | grep -q ' accept$' && nm -D --defined-only "$file" | grep -q ' bind$'; } || fail "the PMIx library would not call the program's accept and bind"
    case $name in muster*) ;; *) [ ! -s exported ] || fail "$name shows $(head -n 3 exported | paste -sd' ')" ;; esac
done <files

# Sums and notes are those of these files.
(cd "$(dirname "$archive")" && sha256sum --quiet -c SHA256SUMS) || fail "SHA256SUMS is not of these files"
grep -qF "$(sha256sum <"$archive" | cut -d' ' -f1)" "${archive%-linux*}-notes.md" || fail "the notes are not of this archive"

# It works, also without a PMIx library of the system.
export PATH=$root/bin:$PATH
unset PYTHONPATH
expect_exit 0 muster --version
expect_contains stdout "archive for Linux"
for command in trace bench plan; do expect_exit 0 muster $command --help; done
expect_exit 0 muster bench collectives --ranks 2 --max 1KiB --repeats 1 --backend shm --peers none --pair none
expect_contains stdout "average busbw GB/s: shm "
[ -x /usr/bin/python3 ] || exit 0
cat >ranks.py <<'PYTHON'
import sys
for name in sys.argv[1:]:
    __import__(name)  # its libstdc++, fmt, hwloc
import muster
muster.init()
print("rank", muster.rank(), "of", muster.size())
PYTHON
expect_exit 0 muster run -q -n 2 --slots-per-node 2 --timeout 60s -- /usr/bin/python3 ranks.py
expect_contains stdout "rank 1 of 2"
/usr/bin/python3 -c 'import torch' 2>/dev/null || exit 0
expect_exit 0 muster run -q -n 2 --slots-per-node 2 --timeout 100s -- /usr/bin/python3 ranks.py torch
expect_contains stdout "rank 1 of 2"
