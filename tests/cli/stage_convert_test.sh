# timeout: 300
# muster-stage convert under adversity: killed at any point, two at once, a full file system, a source that changes, flipped bytes; the same bytes on
# any number of ranks. MUSTER_KILLS=200 kills it that many times.
# parts: data
. "$(dirname "$0")/lib.sh"

STAGE=$MUSTER_BIN/muster-stage
[ -x "$STAGE" ] || skip "muster-stage was not built (no MPI or no parallel HDF5)"
RANDOM=4711

# idx DIMENSIONS... : the header of an IDX file of unsigned bytes.
idx() {
    local dimension
    printf '\0\0\10'"\\$(printf %03o $#)"
    for dimension; do printf "\\$(printf %03o $((dimension >> 24 & 255)))\\$(printf %03o $((dimension >> 16 & 255)))\\$(printf %03o $((dimension >> 8 & 255)))\\$(printf %03o $((dimension & 255)))"; done
}
{
    idx 10000 64 64
    head -c 40960000 /dev/urandom
} >images
{
    idx 10000
    head -c 10000 /dev/urandom
} >labels
# The command line is kept in the file: the same bytes come of the same words.
words=(convert train=images,labels -o out.h5 --classes 256 --json)
convert() { "$STAGE" "${words[@]}" "$@"; }

# Any number of ranks gives the same bytes.
expect_exit 0 convert --name same
mv out.h5 one.h5
for ranks in 2 4 16; do
    expect_exit 0 "$MUSTER" run -q -n $ranks --slots-per-node $ranks -- "$STAGE" "${words[@]}" --name same
    expect_true cmp one.h5 out.h5
    rm out.h5
done

# One source divided into splits: by the seed alone, on any number of ranks, from a compressed file too.
{
    echo x,label
    for ((i = 0; i < 3000; ++i)); do echo "$i,$((i % 7))"; done
} >table.csv
gzip -k table.csv
divide() { expect_exit 0 "${@:3}" "$STAGE" convert "$1" --split train=0.8,val=0.15,test=0.05 --seed "$2" -o divided.h5 --no-digests --force; }
divide table.csv 5
expect_contains stdout '/train: 2400 rows' '/val: 450 rows' '/test: 150 rows' '7 classes'
expect_not_contains stdout 'no sample'
divide table.csv.gz 5
mv divided.h5 five.h5
for ranks in 2 4; do
    divide table.csv.gz 5 "$MUSTER" run -q -n $ranks --slots-per-node $ranks --
    expect_true cmp five.h5 divided.h5
done
expect_exit 0 "$STAGE" verify divided.h5
refused() { expect_exit 2 "$STAGE" convert -o divided.h5 "${@:2}" && expect_contains stderr "$1"; }
refused 'the fractions make 0.9' table.csv --split train=0.8,val=0.1
refused 'of 3000 samples is none' table.csv --split train=0.9999,val=0.0001
refused '--split divides one source, and 2 are given' train=table.csv test=table.csv --split a=0.5,b=0.5
refused '--seed is of --split' table.csv --seed 3
rm -f divided.h5 five.h5 table.csv table.csv.gz

# Killed at any point: no file of the final name, and in the end the bytes of a conversion that was left alone.
expect_exit 0 convert
mv out.h5 whole.h5
begin=$(date +%s%N)
convert >/dev/null
took_ms=$((($(date +%s%N) - begin) / 1000000))
rm out.h5
resumed=0
kills=${MUSTER_KILLS:-12}
for ((i = 0; i < kills; ++i)); do
    ms=$((RANDOM % (took_ms + 1) + 1))
    timeout -s KILL "$((ms / 1000)).$(printf %03d $((ms % 1000)))" "$STAGE" "${words[@]}" >/dev/null 2>&1
    if [ -e out.h5 ]; then # it was done before
        expect_true cmp whole.h5 out.h5
        rm out.h5
    elif [ $((RANDOM % 2)) = 0 ]; then
        expect_exit 0 convert
        grep -q '"found_bytes": 0,' "$OUT" || resumed=$((resumed + 1))
        expect_true cmp whole.h5 out.h5
        expect_true [ "$(ls out.h5*)" = out.h5 ]
        rm out.h5
    fi
done
[ "$kills" -lt 50 ] || echo "$kills kills, $resumed conversions taken up in the midst"
rm -f out.h5*

# What is left of one on several ranks, all killed, is taken up by another number.
"$MUSTER" run -q -n 2 --slots-per-node 2 --timeout 0.4s -- "$STAGE" "${words[@]}" >/dev/null 2>&1
rm -f out.h5 # where it was quick enough
expect_exit 0 convert
expect_true cmp whole.h5 out.h5

# Two at once: the second is refused and harms nothing. The first stands still while it holds the lock; one that was done before it
# stood still is started again.
for _ in $(seq 50); do
    rm -f out.h5*
    "$STAGE" "${words[@]}" >/dev/null &
    first=$!
    until [ -s out.h5.partial.journal ] || ! kill -0 $first 2>/dev/null; do :; done
    kill -STOP $first 2>/dev/null
    until ! [ -e /proc/$first ] || grep -qsE '^State:[[:space:]]+[TZ]' /proc/$first/status; do :; done
    [ ! -s out.h5.partial.journal ] || break
    kill -CONT $first 2>/dev/null
    wait $first
done
expect_exit 125 convert
expect_contains stderr "out.h5: is being written by another conversion (host $(uname -n), process $first)"
kill -CONT $first
wait $first
expect_true cmp whole.h5 out.h5

# A flipped byte is named: array, block, samples and bytes.
size=$((10000 * 4096))
at=$("$STAGE" info out.h5 --json | grep '"image_offset"' | grep -o '[0-9]*')
for i in 1 2 3; do
    offset=$(((RANDOM * 32768 + RANDOM) % size))
    cp whole.h5 flipped.h5
    byte=$(od -An -tu1 -j $((at + offset)) -N 1 flipped.h5)
    printf "\\$(printf %03o $((byte ^ 64)))" | dd of=flipped.h5 bs=1 seek=$((at + offset)) conv=notrunc status=none
    block=$((offset / 1048576))
    expect_exit 125 "$STAGE" verify flipped.h5
    expect_contains stderr "flipped.h5: /train/images: samples $((block * 256)) to " "(block $block, bytes $((at + block * 1048576)) to "
done

# A source that changes while it is read, or is cut short, is told; nothing is left.
for _ in $(seq 20); do
    rm -f changed.h5*
    cp images changing
    (
        until [ -e changed.h5.partial ] || [ -e changed.h5 ]; do :; done
        touch -d '2001-01-01' changing
    ) &
    watcher=$!
    "$STAGE" convert train=changing,labels -o changed.h5 --classes 256 >/dev/null 2>change.err
    code=$?
    wait $watcher
    [ $code = 0 ] || break # else it was done before the source changed
done
expect_equal $code 125 'the exit code for a source that changes'
grep -q 'changing: changed while it was read:' change.err || fail "not told: $(cat change.err)"
expect_true [ -z "$(ls changed.h5* 2>/dev/null)" ]

# A full file system is told before the first sample is written. Needs root.
if [ "$(id -u)" = 0 ] && mkdir -p small && mount -t tmpfs -o size=20m none small 2>/dev/null; then
    expect_exit 125 "$STAGE" convert train=images,labels -o small/out.h5 --classes 256
    expect_contains stderr "small/out.h5.partial: No space left on device" "free some space"
    expect_true [ -z "$(ls small)" ]
    # Compressed, it is found out on the way.
    expect_exit 125 "$STAGE" convert train=images,labels -o small/out.h5 --classes 256 --gzip 1
    expect_contains stderr "No space left on device" "free some space"
    expect_true [ -z "$(ls small)" ]
    umount small
fi

# More than 2^31 bytes, most of them a hole.
if [ "$(df --output=avail -k . | tail -1)" -gt 6000000 ] && [ -n "${MUSTER_LARGE:-}" ]; then
    idx 600000 64 64 >large
    truncate -s $((16 + 600000 * 4096)) large
    { idx 600000; head -c 600000 /dev/zero; } >large-labels
    expect_exit 0 "$MUSTER" run -q -n 2 --slots-per-node 2 -- "$STAGE" convert train=large,large-labels -o large.h5
    expect_exit 0 "$STAGE" verify large.h5
    rm -f large*
fi

# What would be written, progress in its forms, a contact sheet.
expect_exit 0 "$STAGE" convert train=images,labels --dry-run
expect_contains stdout "/train: 10000 images of 1 x 64 x 64" "would be written"
rm -f out.h5
expect_exit 0 convert --progress json
expect_contains stderr '"what":"convert"' '"bytes_per_second"' '"done_bytes":40970000'
rm -f out.h5
expect_exit 0 convert --progress lines
expect_empty stderr
expect_exit 2 convert --progress fast
expect_contains stderr "--progress: 'fast' is no way to show it"
expect_exit 0 "$STAGE" info whole.h5 --preview sheet.png
expect_contains stdout 'sheet.png: images of /'
printf 'a,b,label\n1,2,0\n3,4,1\n' >table.csv
expect_exit 0 "$STAGE" convert table.csv -o table.h5
expect_exit 2 "$STAGE" info table.h5 --preview table.png
expect_contains stderr 'its samples are rows of a table'
expect_equal "$(od -An -c -N 4 sheet.png | tr -d ' ')" '211PNG' "beginning of the sheet"

# A disk that fails, at whatever write of libhdf5: words and 125, and nothing left under the name.
printf 'label,a\n' >rows.csv
for ((i = 0; i < 3000; ++i)); do echo "$((i % 10)),$((i % 256))"; done >>rows.csv
if [ -e "$MUSTER_BIN/read_fault.so" ] && ! grep -q __asan_init "$STAGE"; then
    for ((from = 1; from < 60; from += 4)); do
        env LD_PRELOAD="$MUSTER_BIN/read_fault.so" WRITE_FAULT_NAME=failing.h5.partial WRITE_FAULT_FROM=$from \
            "$STAGE" convert rows.csv --from csv --label-column label --gzip 1 -o failing.h5 >"$OUT" 2>"$ERR"
        status=$?
        [ $status = 0 ] && break
        expect_equal $status 125 "exit code where write $from fails"
        expect_contains stderr 'file write failed'
        expect_true test ! -e failing.h5
    done
    expect_equal $((status == 0 && from > 3)) 1 'some writes failed, and none was left to fail'
    for from in 3 9 15; do # two ranks, which end MPI
        expect_exit 125 env LD_PRELOAD="$MUSTER_BIN/read_fault.so" WRITE_FAULT_NAME=failing.h5.partial WRITE_FAULT_FROM=$from \
            "$MUSTER" run -q -n 2 -- "$STAGE" convert rows.csv --from csv --label-column label --gzip 1 -o failing.h5 --force
        expect_contains stderr 'completing a dataset file failed on '
    done
fi
expect_exit 125 bash -c 'ulimit -f 2; exec "$0" convert rows.csv --from csv --label-column label -o limited.h5' "$STAGE"
expect_contains stderr 'File too large' 'ulimit -f'

# Where numpy, h5py and Pillow are, their own files are read, and ours by them.
for python in python3 /usr/bin/python3; do "$python" -c 'import h5py, numpy' 2>/dev/null && break; done
if "$python" -c 'import h5py, numpy' 2>/dev/null; then
    "$python" - <<'END'
import h5py, numpy
random = numpy.random.default_rng(1)
x = random.integers(0, 256, (300, 9, 8, 3), dtype="u1")
y = random.integers(0, 1000, 300)
numpy.savez("s.npz", x_train=x, y_train=y)
numpy.savez_compressed("d.npz", x_train=x, y_train=y)
numpy.save("x.npy", (x / 255).astype(">f4"))
numpy.save("y.npy", y)
with h5py.File("any.h5", "w") as file:
    file.create_dataset("deep/x", data=x, compression="gzip")
    file["deep/y"] = y
    file["link"] = h5py.ExternalLink("other.h5", "/x")
    file["soft"] = h5py.SoftLink("/deep/x")
    file["folder"] = h5py.SoftLink("/deep")
    for name, source in (("inside", "."), ("outside", "other.h5")):
        layout = h5py.VirtualLayout(x.shape, "u1")
        layout[:] = h5py.VirtualSource(source, "deep/x", x.shape)
        file.create_virtual_dataset(name, layout)
with h5py.File("other.h5", "w") as file:
    file["deep/x"] = file["x"] = x
END
    for source in s.npz d.npz "any.h5 --images deep/x --labels deep/y" "d.npz --gzip 6 --chunk 7"; do
        expect_exit 0 "$STAGE" convert $source -o from.h5 --force
        expect_true "$python" - <<'END'
import h5py, numpy
x, y = numpy.load("s.npz")["x_train"], numpy.load("s.npz")["y_train"]
with h5py.File("from.h5") as file:
    assert (file["train/images"][:] == x.transpose(0, 3, 1, 2)).all() and (file["train/labels"][:] == y).all()
    assert file.attrs["format_version"] == 2 and file["train/labels"].dtype == "uint16"
    assert file["train"].attrs["sources"][0].startswith(b"xxh3-128 ") and b"--force" in file.attrs["command"]
END
        expect_exit 0 "$STAGE" verify from.h5
    done
    expect_exit 0 "$STAGE" convert x.npy,y.npy -o from.h5 --force
    expect_exit 0 "$STAGE" info from.h5
    expect_contains stdout "300 of 3 x 9 x 8 float32" "muster.dataset version 2"
    expect_true "$python" -c 'import h5py, numpy; assert (h5py.File("from.h5")["train/images"][:] == numpy.load("x.npy").transpose(0, 3, 1, 2)).all()'
    # Very many groups: libhdf5 looks for each from the first on where it is asked by number, and more than a dataset has are not read at all.
    cp from.h5 many.h5
    expect_true "$python" -c 'import h5py; file = h5py.File("many.h5", "r+"); [file.create_group(f"g{i}") for i in range(10000)]'
    for command in info verify; do
        expect_exit 125 "$STAGE" $command many.h5
        expect_contains stderr 'many.h5: /: has 10001 entries, more than the 10000'
    done
    expect_equal "$(grep -rl _by_idx "$MUSTER_SOURCE_DIR/io")" '' 'sources that list by number'
    expect_exit 125 "$STAGE" convert any.h5 --images link --labels none -o from.h5 --force
    expect_contains stderr "any.h5: /link: is an external link, which is not followed"
    for name in soft folder/x; do
        expect_exit 125 "$STAGE" convert any.h5 --images $name --labels none -o from.h5 --force
        expect_contains stderr "any.h5: /${name%/x}: is a soft link, which is not followed"
    done
    for name in inside outside; do
        expect_exit 125 "$STAGE" convert any.h5 --images $name --labels none -o from.h5 --force
        expect_contains stderr "any.h5: /$name: is put together from other datasets (HDF5 virtual layout), which are not read"
    done
fi
