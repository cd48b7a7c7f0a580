# timeout: 300
# muster-stage as a user runs it: convert, info, verify; alone and on several ranks; its errors and exit codes.
# parts: data
. "$(dirname "$0")/lib.sh"

STAGE=$MUSTER_BIN/muster-stage
[ -x "$STAGE" ] || skip "muster-stage was not built (no MPI or no parallel HDF5)"

# idx DIMENSIONS... : the header of an IDX file of unsigned bytes.
idx() {
    local dimension
    printf '\0\0\10'"\\$(printf %03o $#)"
    for dimension; do printf "\\$(printf %03o $((dimension >> 24 & 255)))\\$(printf %03o $((dimension >> 16 & 255)))\\$(printf %03o $((dimension >> 8 & 255)))\\$(printf %03o $((dimension & 255)))"; done
}
# 3000 images of 20 x 30, and labels 0 to 9.
{
    idx 3000 20 30
    head -c 1800000 /dev/zero | tr '\0' a
} >images
{
    idx 3000
    for i in $(seq 300); do printf '\0\1\2\3\4\5\6\7\10\11'; done
} >labels
gzip -k images labels

# Help and usage.
expect_exit 0 "$STAGE" --help
expect_contains stdout "muster-stage convert --images" "verify" "info" "Exit codes: 0 done, 2 wrong usage, 125 failed."
for command in convert verify info; do
    expect_exit 0 env COLUMNS=200 "$STAGE" $command --help
    expect_contains stdout "muster-stage $command"
    longest=24
    [ $command = convert ] && longest=44  # a line an option, and formats have theirs
    [ "$(wc -l <"$OUT")" -le $longest ] || fail "help of $command is longer than a screen"
    expect_empty stderr
done
expect_exit 2 "$STAGE"
expect_exit 2 "$STAGE" convrt
expect_contains stderr "no command 'convrt', did you mean 'convert'?"
expect_empty stdout
expect_exit 2 "$STAGE" convert --image images
expect_contains stderr "unknown option '--image', did you mean --images?"
expect_exit 2 "$STAGE" convert --images images -o out.h5
expect_contains stderr "give --labels"
expect_exit 125 "$STAGE" convert --images images --labels labels -o out.h5 stray
expect_contains stderr "open stray: No such file"
expect_exit 2 "$STAGE" convert --images images --labels labels -o out.h5 --classes many
expect_contains stderr "'many' is no whole number from 1 to 2147483648"
expect_exit 2 "$STAGE" verify
expect_exit 2 "$STAGE" info
expect_true [ ! -e out.h5 ]
expect_exit 0 "$STAGE" --version
expect_matches stdout '^muster-stage [0-9]+\.[0-9]+\.[0-9]+$'

# Alone: MPI is linked but not started.
expect_exit 0 "$STAGE" convert train=images.gz,labels.gz test=images,labels -o out.h5 --name made-up --class-names a,b,c,d,e,f,g,h,i,j
expect_contains stdout "out.h5: /train: 3000 images of 1 x 20 x 30, 10 classes" "out.h5: /test: 3000 images" "by 1 rank ("
expect_empty stderr
expect_exit 0 "$STAGE" info out.h5
expect_contains stdout "made-up" "muster.dataset version 1" "/train" "/test" "3000 of 1 x 20 x 30 unsigned bytes" "10: a, b, c, d, e, f, g, h, i, j" "images.gz" "contiguous, images at byte"
expect_exit 0 "$STAGE" info out.h5 --json
expect_true python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); s={x["split"]:x for x in d["splits"]}; assert d["name"]=="made-up" and s["train"]["samples"]==3000 and s["train"]["shape"]==[1,20,30] and s["test"]["classes"]==10 and s["train"]["image_offset"]%1048576==0 and len(s["train"]["checksum_images"])==16' "$OUT"
expect_exit 0 "$STAGE" verify out.h5
expect_matches stdout '^out.h5: /train: 3000 samples, .*: ok$' '^out.h5: /test: 3000 samples, .*: ok$'
expect_exit 0 "$STAGE" verify out.h5 --split test --json
expect_true python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert len(d)==1 and d[0]["ok"] is True and d[0]["split"]=="test"' "$OUT"
expect_exit 0 "$MUSTER" stage info out.h5
expect_contains stdout "/train"

# An existing file stays unless it is to be replaced.
expect_exit 2 "$STAGE" convert --images images --labels labels -o out.h5
expect_contains stderr "out.h5: exists"
expect_exit 0 "$STAGE" convert --images images --labels labels -o out.h5 --force --json --align 4KiB --chunk 100
expect_true python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert d["ranks"]==1 and d["splits"][0]["samples"]==3000 and d["bytes"]==3000*601' "$OUT"
expect_exit 0 "$STAGE" verify out.h5
expect_exit 0 "$STAGE" info out.h5
expect_contains stdout "chunks of 100 images"

# Bad files: each error names file, offset, field, what was found and expected, and what to do; no output is left.
bad() { # WHAT-IS-EXPECTED IMAGES LABELS [OPTIONS]
    local words=$1 images=$2 labels=$3
    shift 3
    expect_exit 125 "$STAGE" convert --images "$images" --labels "$labels" -o bad.h5 "$@"
    expect_contains stderr "$words"
    expect_true [ ! -e bad.h5 ] && expect_true [ ! -e bad.h5.partial ]
}
head -c 1000000 images >truncated
head -c -6 labels.gz >truncated.gz
cp images.gz gz-named-as-plain
{ cat labels; printf x; } >trailing
{ printf 'PK\3\4'; cat images; } >zip
{ idx 2000; head -c 2000 /dev/zero; } >fewer-labels
bad "truncated: offset 1000000: data: found the end of the file after 1000000 bytes, expected 1800016 bytes (16 of header and 3000 x 20 x 30);" truncated labels
bad "truncated.gz: gzip: the file ends inside its compressed data at compressed offset $(stat -c %s truncated.gz), after 3008 uncompressed bytes; copy or download it again" images truncated.gz
bad "labels: offset 3: rank: found 1, expected 2 to 4 (count, then the dimensions of a sample); it was given as images; this looks like labels" labels images
bad "images: offset 3: rank: found 3, expected 1 (count); it was given as labels; this looks like images" images images
bad "zip: offset 0: magic: found 0x50 0x4b, expected 0x00 0x00; a zip archive: unpack it" zip labels
bad "trailing: offset 3008: trailing bytes: found 1 bytes after the last element, expected the end of the file at 3008 (3000);" images trailing
bad "fewer-labels: offset 4: label count: found 2000, expected 3000, the number of images in images;" images fewer-labels
bad "labels: offset 13: label: found 5 for item 5, expected below 5, the number of classes;" images labels --classes 5
bad "open missing: No such file" missing labels
expect_exit 0 "$STAGE" convert --images gz-named-as-plain --labels labels -o renamed.h5
expect_contains stderr "gz-named-as-plain: the contents are gzip data, against its name"

# Damaged and foreign dataset files.
expect_exit 0 "$STAGE" convert --images images --labels labels -o out.h5 --force
printf 'b' | dd of=out.h5 bs=1 seek=$((1048576 + 600 * 2000)) conv=notrunc status=none
expect_exit 125 "$STAGE" verify out.h5
expect_contains stderr "out.h5: /train/images: samples 1747 to 2999 (block 1, bytes 2096776 to 2848575 of the file): checksum"
head -c 1000000 out.h5 >short.h5
expect_exit 125 "$STAGE" info short.h5
expect_contains stderr "short.h5" "truncated file" "copy or convert it again"
expect_exit 125 "$STAGE" info images
expect_contains stderr "this is no HDF5 file: make one with"
expect_exit 125 "$STAGE" verify nowhere.h5
expect_contains stderr "nowhere.h5: No such file"
expect_exit 125 "$STAGE" verify renamed.h5 --split tran
expect_contains stderr "has no split 'tran'; it has train; did you mean train?"

# A dataset's elements may lie in a file that whoever made it names: the reader's own files are not read as images.
for python in python3 /usr/bin/python3; do "$python" -c 'import h5py' 2>/dev/null && break; done
if "$python" -c 'import h5py' 2>/dev/null; then
    cp renamed.h5 outside.h5
    "$python" - <<'END'
import h5py
with h5py.File("outside.h5", "r+") as file:
    shape = file["train/images"].shape
    size = shape[0] * shape[1] * shape[2] * shape[3]
    open("private", "wb").write(b"s" * size)
    del file["train/images"]
    file.create_dataset("train/images", shape, "u1", external=[("private", 0, size)])
END
    for command in info verify; do
        expect_exit 125 "$STAGE" $command outside.h5
        expect_contains stderr "outside.h5: /train/images: keeps its elements in other files (HDF5 external storage)"
    done
    cp renamed.h5 sums_outside.h5
    "$python" - <<'END'
import h5py
with h5py.File("sums_outside.h5", "r+") as file:
    shape = file["train/image_checksums"].shape
    del file["train/image_checksums"]
    file.create_dataset("train/image_checksums", shape, "u8", external=[("private", 0, 8 * shape[0])])
END
    expect_exit 125 "$STAGE" verify sums_outside.h5
    expect_contains stderr "sums_outside.h5: /train/image_checksums: keeps its elements in other files (HDF5 external storage)"
    # A byte flipped in a file of chunks is named by the chunk and where that lies.
    expect_exit 0 "$STAGE" convert --images images --labels labels -o chunked.h5 --chunk 500
    "$python" - <<'END'
import h5py
with h5py.File("chunked.h5") as file:
    begins = [file["train/images"].id.get_chunk_info_by_coord((first, 0, 0, 0)).byte_offset for first in range(0, 3000, 500)]
with open("chunked.h5", "r+b") as file:
    file.seek(begins[4] + 12345)
    file.write(b"b")
open("begins", "w").write(f"{begins[3]} to {begins[5]}")
END
    expect_exit 125 "$STAGE" verify chunked.h5
    expect_contains stderr "chunked.h5: /train/images: samples 1747 to 2999 (block 1, in chunks 3 to 5, at bytes $(cat begins) of the file): checksum"

    cp renamed.h5 virtual.h5
    "$python" - <<'END'
import h5py
with h5py.File("virtual.h5", "r+") as file:
    layout = h5py.VirtualLayout(file["train/images"].shape, "u1")
    layout[:] = h5py.VirtualSource("renamed.h5", "train/images", layout.shape)
    del file["train/images"]
    file.create_virtual_dataset("train/images", layout)
END
    for command in info verify; do
        expect_exit 125 "$STAGE" $command virtual.h5
        expect_contains stderr "virtual.h5: /train/images: is put together from other datasets (HDF5 virtual layout)"
    done
fi

# On several ranks: the same contents, one report, an error told once.
for ranks in 2 3; do
    expect_exit 0 "$MUSTER" run -n $ranks --slots-per-node $ranks -- "$STAGE" convert --images images.gz --labels labels -o many.h5 --force
    expect_contains stdout "by $ranks ranks ("
    expect_equal "$(wc -l <"$OUT")" 2 "lines of the report"
    expect_exit 0 "$MUSTER" run -n $ranks --slots-per-node $ranks -- "$STAGE" verify many.h5
    expect_equal "$(wc -l <"$OUT")" 1 "lines of the report"
    expect_exit 0 "$STAGE" verify many.h5
done
expect_exit 0 "$STAGE" convert --images images --labels labels -o one.h5
sums() { "$STAGE" info "$1" --json | grep -E 'checksum_(images|labels)'; }
expect_equal "$(sums many.h5)" "$(sums one.h5)" "checksums of one and of several ranks"
expect_exit 125 "$MUSTER" run -n 2 --slots-per-node 2 -- "$STAGE" convert --images truncated --labels labels -o bad.h5
expect_contains stderr "truncated: offset 1000000: data:" "failed on 2 of 2 ranks"
expect_not_contains stderr "left unfinalised"
expect_equal "$(grep -c '^muster-stage: error' "$ERR")" 1 "errors told"
expect_true [ ! -e bad.h5 ]
expect_exit 2 "$MUSTER" run -n 2 --slots-per-node 2 -- "$STAGE" convert --imags x
expect_contains stderr "did you mean --images?"
