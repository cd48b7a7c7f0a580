# libmuster_io.so: what it exports; used from C and from Python by ctypes, on a file that muster-stage converts.
. "$(dirname "$0")/../cli/lib.sh"
[ "$MUSTER_HAVE_HDF5" = ON ] || exit 77
here=$MUSTER_SOURCE_DIR/tests/package
library=$(find "$MUSTER_PREFIX" -name libmuster_io.so)
[ -n "$library" ] || fail "libmuster_io.so is not installed"
folder=$(dirname "$library")

# Exports: what the header declares and nothing else. The number in the name is the ABI's.
header=$MUSTER_PREFIX/include/muster/io/c_api/muster_io.h
grep -v '^ \*\|^/\*' "$header" | sed -n 's/.*\b\(muster_[a-z_]*\)(.*/\1/p' | sort -u >declared
nm -D --defined-only "$library" | awk '{print $3}' | sort >exported
diff declared exported || fail "what libmuster_io.so exports is not what muster_io.h declares"
abi=$(awk '/#define MUSTER_IO_ABI/ {print $3}' "$header")
readelf -d "$library" >dynamic
expect_contains dynamic "soname: [libmuster_io.so.$abi]"

# 60 images of 4 x 4 with 3 classes, in IDX.
images() { printf '\0\0\10\3\0\0\0\74\0\0\0\4\0\0\0\4' && for i in $(seq 60); do printf '%016d' "$i"; done; }
labels() { printf '\0\0\10\1\0\0\0\74' && for _ in $(seq 20); do printf '\0\1\2'; done; }
images >images
labels >labels
expect_exit 0 "$MUSTER_PREFIX/bin/muster-stage" convert --images images --labels labels -o small.h5

# C, with what pkg-config says and nothing else.
PKG_CONFIG_PATH=$(dirname "$(find "$MUSTER_PREFIX" -name muster-io.pc)")
export PKG_CONFIG_PATH
read -ra flags <<<"$(pkg-config --cflags --libs muster-io)"
expect_exit 0 "$CC" -std=c11 -Wall -Wextra -Werror -o dataset "$here/dataset.c" "${flags[@]}"
export LD_LIBRARY_PATH=$folder
expect_exit 0 ./dataset small.h5
expect_contains stdout "60 samples of 16 bytes, 3 classes"
grep '^120 samples, sum' "$OUT" >delivered
[ "$(wc -l <delivered)" = 4 ] || fail "not every memory mode delivered two epochs"
[ "$(sort -u delivered | wc -l)" = 1 ] || fail "the memory modes delivered different samples"
expect_contains stdout "refused: tail is 9; give 0 to 2"
expect_contains stdout "/no/such/file.h5"

# A flipped byte is told with its code.
cp small.h5 damaged.h5
at=$("$MUSTER_PREFIX/bin/muster-stage" info small.h5 --json | sed -n 's/.*"image_offset": \([0-9]*\).*/\1/p')
printf x | dd of=damaged.h5 bs=1 seek=$((at + 100)) conv=notrunc status=none
expect_exit 40 ./dataset damaged.h5
expect_contains stderr "verify: damaged.h5: /train/images: samples 0 to 59 (block 0, bytes $at to $((at + 959)) of the file): checksum"

# One copy a node: two ranks draw from the memory of one, and have every sample once between them.
expect_exit 0 "$MUSTER_PREFIX/bin/muster" run -q --timeout 60s -n 2 --slots-per-node 2 -- ./dataset small.h5 shared
expect_contains stdout "call muster_loader_create_shared" "leave them 0" "memory mode shared"
for i in $(seq 60); do printf 'sample %d is %016d\n' $((i - 1)) "$i"; done | sort >wanted
sed -n 's/.*\(sample [0-9]* is [0-9]*\)$/\1/p' "$OUT" | sort >delivered
diff wanted delivered || fail "two ranks that share a copy did not deliver every sample once"

if [ -x /usr/bin/python3 ]; then
    expect_exit 0 /usr/bin/python3 "$here/dataset.py" "$library" small.h5
    expect_contains stdout "60 samples once each"
    expect_contains stdout "memory mode whole"
fi
