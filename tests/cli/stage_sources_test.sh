# muster-stage convert of tables and folders of pictures: labels of every kind by one rule over all splits, columns by name, what is left out, in words and in JSON.
# parts: data
. "$(dirname "$0")/lib.sh"

STAGE=$MUSTER_BIN/muster-stage
[ -x "$STAGE" ] || skip "muster-stage was not built (no MPI or no parallel HDF5)"
convert() { "$STAGE" convert "$@" -o out.h5 --force; }

# Help and error name the same columns of labels.
names='label, labels, class, target, y, species, category, variety'
expect_exit 0 env COLUMNS=200 "$STAGE" convert --help
expect_contains stdout "default: the first of $names"
printf 'a,b\n1,2\n' >none.csv
expect_exit 2 convert none.csv
expect_contains stderr "no column has one of the names $names (it has a, b)"

# A table of file names, with a header or without, is refused where it names the first one; a column of them may be left out.
printf 'file,label\nimg/0.png,0\nimg/1.png,1\n' >files.csv
expect_exit 125 convert files.csv
expect_contains stderr "files.csv:2:1: 'img/0.png' names a picture, and a table of file names is not read" '  ^' 'one folder a class'
sed -i 1d files.csv
expect_exit 125 convert files.csv --label-column 2
expect_contains stderr "files.csv:1:1: 'img/0.png' names a picture" '  ^'
printf 'file,x,label\nimg/0.JPG,7,0\nimg/1.JPG,8,1\n' >files.csv
expect_exit 0 convert files.csv --drop file
mkdir img
expect_exit 2 convert --images img --labels files.csv
expect_contains stderr 'img: is a folder, and IMAGES,LABELS are two files of arrays'

# Numbers of classes that no sample has, in any split, are said; a folder is no dataset.
printf 'x,label\n1,1\n2,5\n' >train.csv
printf 'x,label\n3,2\n' >test.csv
expect_exit 0 convert train.csv test.csv
expect_contains stdout 'no sample has the labels 0, 3, 4: each counts as a class, as classes are numbered from 0 to the largest label, 5'
printf '3,0\n4,3\n5,4\n' >>test.csv
expect_exit 0 convert train.csv test.csv
expect_not_contains stdout 'no sample has'
printf 'x,label\n1,0\n2,100000\n' >gap.csv
expect_exit 0 convert gap.csv
expect_contains stdout '100001 classes' 'no sample has the labels 1, 2, 3, 4, 5, 6, 7, 8, …: each counts as a class, as classes are numbered from 0 to the largest label, 100000'

# Labels of which only the first 16777216 are recorded: what is not recorded is not missing.
python3 - <<'PY'
import array
def write(name, kind, numbers, shape):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (117 - len(header)) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(numbers))
labels = array.array("I", range((1 << 24) + 1))
labels[-1] += 1
write("recorded.npy", "|u1", len(labels), f"({len(labels)}, 1)")
write("labels.npy", "<u4", labels, f"({len(labels)},)")
PY
expect_exit 0 convert recorded.npy,labels.npy
expect_contains stdout '16777218 classes'
expect_not_contains stdout 'no sample has'

# A class that only one split has is said, of names and of numbers.
printf 'x,label\n1,Coat\n2,bag\n' >named.csv
printf 'x,label\n1,coat\n2,bag\n' >other.csv
expect_exit 0 convert train=named.csv test=other.csv
expect_contains stdout "  no sample of the class coat, which another split has; 'Coat' here is another class than 'coat'" \
    "  no sample of the class Coat, which another split has; 'coat' here"
expect_exit 0 convert train=train.csv test=test.csv
expect_contains stdout '  no sample of the classes 0, 2, 3, 4, which another split has' '  no sample of the classes 1, 5, which another split has'
expect_exit 0 convert train=named.csv test=named.csv
expect_not_contains stdout 'no sample'
for command in info verify; do
    expect_exit 125 "$STAGE" $command img
    expect_contains stderr 'img: is a folder, and a dataset is one file; make it by: muster stage convert img -o img.h5'
done

# Targets of a regression: numbers that are no classes, in any split.
printf 'x,price\n1,2.5\n2,4\n' >train.csv
printf 'x,price\n3,7\n' >test.csv
expect_exit 0 convert train.csv test.csv --label-column price
expect_contains stdout "/train: 2 rows of 1 of float32, float targets" "/test: 1 row of 1 of float32, float targets"
expect_exit 0 "$STAGE" info out.h5
expect_contains stdout "muster.dataset version 3" "float32, 2.5 to 4" "float32, 7 to 7"
expect_exit 0 "$STAGE" info out.h5 --json
expect_contains stdout '"label_type": "float32"' '"target_max": 7.0'
expect_exit 0 "$STAGE" verify out.h5
expect_exit 0 convert train.csv --label-column price --gzip 1
expect_exit 0 "$STAGE" verify out.h5
expect_exit 0 "$MUSTER" run -q -n 2 --slots-per-node 2 -- "$STAGE" convert train.csv test.csv --label-column price -o two.h5
expect_exit 0 "$STAGE" verify two.h5
expect_exit 0 convert test.csv --label-column price
expect_contains stdout "8 classes"
expect_exit 0 convert test.csv --label-column price --label-type float
expect_contains stdout "float targets"
expect_exit 2 convert train.csv --label-column price --label-type float --classes 3
expect_contains stderr "--label-type float with --classes or --class-names"

# Names in one split and numbers in another; one bad label.
printf 'a,b,label\n1,2,cat\n3,4,dog\n' >train.csv
printf 'a,b,label\n1,2,10\n' >test.csv
expect_exit 2 convert train.csv test.csv
expect_contains stderr "train.csv names its classes (cat, dog), and test.csv numbers them"
printf 'a,b,label\n1,2,0\n1,2,?\n1,2,10\n' >bad.csv
expect_exit 125 convert bad.csv
expect_contains stderr "bad.csv:3:5: the label '?' is no number" "  1,2,?"

printf 'a,label\nNA,1\n' >bad.csv
expect_exit 125 convert bad.csv
expect_contains stderr "bad.csv:2:1: 'NA' is no float32; correct it (nan stands for what is not known)"
expect_exit 125 convert bad.csv --type int32
expect_not_contains stderr 'nan stands'

# Whole numbers that float32 does not hold are told.
printf 'id,label\n16777217,0\n16777216,1\n-123456789,1\n' >large.csv
expect_exit 0 convert large.csv
expect_contains stdout '  2 whole numbers were rounded, which a larger --type, such as float64 or int64, keeps: 16777217 in line 2, -123456789 in line 4'
expect_exit 0 "$MUSTER" run -q -n 2 --slots-per-node 2 -- "$STAGE" convert large.csv -o out.h5 --force
expect_contains stdout '  2 whole numbers were rounded'
for type in float64 int64; do
    expect_exit 0 convert large.csv --type $type
    expect_not_contains stdout rounded
done

printf 'id,label\n9007199254740993,0\n' >larger.csv
expect_exit 0 convert larger.csv --type float64
expect_contains stdout '  1 whole number was rounded, which --type int64 keeps (or leave its column out by --drop): 9007199254740993 in line 2'

# Columns are the same by name; pandas' index is left out, and that is said.
printf ',b,a,label\n0,4,3,dog\n1,6,5,emu\n' >test.csv
expect_exit 0 convert train.csv test.csv
expect_contains stdout "3 classes" "the first column of test.csv has no name, as pandas' index, and was left out"
expect_exit 0 "$STAGE" info out.h5
expect_contains stdout '  columns       a, b'
expect_exit 0 convert train=train.csv val=test.csv --columns b
expect_contains stdout "/val: 2 rows of 1 of float32"
expect_exit 0 "$STAGE" info out.h5 --json
expect_contains stdout '"columns": [' '"b"'
printf 'a,c,label\n1,2,cat\n' >test.csv
expect_exit 2 convert train.csv test.csv
expect_contains stderr "train.csv and test.csv have other columns: only the first has b, only the second has c"
expect_exit 2 convert train.csv --resize 2x2
expect_contains stderr "train.csv: --resize is for images, and this is csv; leave it out"

# Folders of pictures: what is left out is told; --skip-damaged goes on. A PNG of one gray pixel each.
png() { # png FILE
    mkdir -p "$(dirname "$1")"
    base64 -d >"$1" <<<iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgBwAACQAIICPDjAAAAABJRU5ErkJggg==
}
png d/a/1.png
png d/b/1.png
png d/b/2.png
: >d/b/3.tiff
: >d/b/.DS_Store
expect_exit 0 convert d --dry-run
expect_contains stdout "3 images of 1 x 1 x 1, 2 classes" "  1 file was left out, being none of .png, .jpg, .jpeg, .webp, or hidden: d/b/3.tiff"
head -c 40 d/a/1.png >d/b/0.png
expect_exit 125 convert d
expect_contains stderr "d/b/0.png: PNG: the file ends too early" "--skip-damaged"
expect_exit 0 convert d --skip-damaged --json
expect_contains stdout '"damaged": {' '"d/b/0.png"' '"left_out": {' '"d/b/3.tiff"' '"samples": 3'
expect_exit 0 "$MUSTER" run -q -n 2 --slots-per-node 2 -- "$STAGE" convert d --skip-damaged -o out.h5 --force
expect_contains stdout "3 images of 1 x 1 x 1" "1 damaged picture was left out: d/b/0.png"
# A link whose target is gone, which a listing shows, and a picture that may not be read are damaged pictures.
ln -s nowhere.png d/a/0.png
expect_exit 125 convert d
expect_contains stderr 'd/a/0.png: is a link to nowhere.png, which is not there; mend or remove the link, or give --skip-damaged'
expect_exit 0 convert d --skip-damaged
expect_contains stdout "3 images of 1 x 1 x 1" "2 damaged pictures were left out: d/a/0.png, d/b/0.png"
rm d/a/0.png
ln -s nowhere.csv gone.csv
expect_exit 125 convert gone.csv
expect_contains stderr 'gone.csv: is a link to nowhere.csv, which is not there'
user=()
[ "$(id -u)" != 0 ] || user=(setpriv --reuid 61234 --regid 61234 --clear-groups)
if "${user[@]}" test -x "$STAGE" -a -r d/a/1.png; then
    png locked/1.png
    png locked/2.png
    chmod 000 locked/1.png
    expect_exit 125 "${user[@]}" "$STAGE" convert locked -o x.h5 --dry-run
    expect_contains stderr 'locked/1.png: Permission denied' 'check its permissions, or give --skip-damaged'
    expect_exit 0 "${user[@]}" "$STAGE" convert locked -o x.h5 --dry-run --skip-damaged
    expect_contains stdout "1 damaged picture was left out: locked/1.png"
fi
# Names of classes that are asked for say their order, or take the place of the folders'.
expect_exit 0 convert d --skip-damaged --class-names b,a
expect_exit 0 "$STAGE" info out.h5
expect_contains stdout "b 2, a 1"
expect_exit 0 convert d --skip-damaged --class-names cat,dog
expect_exit 0 "$STAGE" info out.h5
expect_contains stdout "cat 1, dog 2"
png d/cover.png
expect_exit 125 convert d
expect_contains stderr "d: holds pictures (cover.png) and folders of pictures (a, b)"

# An archive of pictures is to be unpacked first; one of arrays is not.
tar -cf d.tar d
tar -czf d.tgz d
tar -czf e.tar.gz d
python3 -c 'import zipfile; zipfile.ZipFile("d.zip", "w").write("d/a/1.png")'
for archive in d.tar d.tgz e.tar.gz d.zip; do
    expect_exit 2 convert $archive
    expect_contains stderr "$archive: is an archive; unpack it first, with \`" " $archive\` or on every node with \`muster stage copy --unpack\`"
done
expect_contains stderr 'unzip d.zip'

# Splits never vanish, and their classes are one dataset's.
png s/train/b/1.png
mkdir s/train/a
png s/val/b/1.png
expect_exit 0 convert s
expect_contains stdout "/train: 1 image of" "/val: 1 image of" "2 classes" "no picture in a, which counts as a class all the same"
mkdir -p s/test/b
expect_exit 2 convert s
expect_contains stderr "s/test: a split's folder, and holds no picture"

# Files of HDF5 that cannot be read name the remedy, and no source is a thing to remove.
for python in python3 /usr/bin/python3; do "$python" -c 'import h5py, numpy' 2>/dev/null && break; done
if "$python" -c 'import h5py, numpy' 2>/dev/null; then
    "$python" - <<'END'
import h5py, numpy
with h5py.File("e.h5", "w") as f:
    f["x"] = numpy.zeros((4, 3, 3), "u1")
    f["four"] = numpy.array([1, 0, 2, 1]).reshape(4, 1, 1, 1)
    f["flags"] = numpy.array([True, False, True, True])
    f.create_dataset("kinds", data=[5, 2, 5, 9], dtype=h5py.enum_dtype({"cat": 5, "dog": 2, "emu": 9}, basetype="i2"))
    f["targets"] = numpy.array([1.5, 2, 3, 4])
    f.create_dataset("packed", data=numpy.zeros((400, 3)), chunks=(100, 3), compression="lzf")
numpy.save("x.npy", numpy.zeros((2, 5), "f4"))
numpy.save("y.npy", numpy.array([0, 1]))
numpy.save("text.npy", numpy.array(["a", "b"]))
END
    expect_exit 2 convert x.npy y.npy
    expect_contains stderr 'x.npy and y.npy are both to be the split train; name them, as train=… test=…; or, where y.npy holds the labels, give x.npy,y.npy'
    for labels in "four 1: 2" "flags TRUE 3" "kinds dog 1, cat 2, emu 1" "targets float32, 1.5 to 4"; do
        expect_exit 0 convert e.h5 --images x --labels ${labels%% *}
        expect_exit 0 "$STAGE" info out.h5
        expect_contains stdout "${labels#* }"
    done
    expect_exit 125 convert e.h5 --images packed --labels none
    expect_contains stderr "e.h5: /packed: is compressed by the filter lzf (32000), which this HDF5 does not have" "h5repack -f GZIP=1 IN OUT"
    expect_exit 125 convert x.npy,text.npy
    expect_contains stderr "numpy.unique(a, return_inverse=True)"
    "$python" -c 'import h5py, os; f = h5py.File("killed.h5", "w", libver="latest"); f["x"] = [1]; f.flush(); os._exit(0)'
    expect_exit 125 convert killed.h5
    expect_contains stderr "h5clear -s FILE"
    expect_not_contains stderr "remove"

    # Attributes that say what the numbers mean, by NetCDF's conventions and HDF5's of images.
    "$python" - <<'END'
import h5py, numpy
with h5py.File("era.h5", "w") as f:
    def array(name, kind="i2", **attributes):
        made = f.create_dataset(name, data=numpy.arange(36).reshape(4, 3, 3).astype(kind))
        for key, value in attributes.items():
            made.attrs[key] = value
    array("packed", scale_factor=0.01, add_offset=273.15)
    array("one", scale_factor=numpy.array([2.0], "f4"))
    array("neutral", scale_factor=1.0, add_offset=0, _Unsigned="false")
    array("real", "f4", _Unsigned="False")
    array("unsigned", "i1", _Unsigned="true")
    array("title", "i1", _Unsigned=numpy.bytes_("True "))
    array("capital", "i1", _Unsigned="TRUE")
    array("number", "i1", _Unsigned=1)
    array("palette", "u1", CLASS=numpy.bytes_("IMAGE"), IMAGE_SUBCLASS=numpy.bytes_("IMAGE_INDEXED"))
    array("colours", "u1", CLASS=numpy.bytes_("IMAGE"), IMAGE_SUBCLASS=numpy.bytes_("image_indexed"))
    array("gray", "u1", CLASS=numpy.bytes_("IMAGE"), IMAGE_SUBCLASS=numpy.bytes_("IMAGE_GRAYSCALE"), IMAGE_WHITE_IS_ZERO=1)
    array("holes", _FillValue=numpy.int16(-32767), units="K", valid_range=[0, 400], long_name="2 metre temperature")
    array("bare")
    f["time"] = numpy.arange(4)
    f["time"].attrs.update(units="hours since 1900-01-01", scale_factor=24.0)
    f["axis"] = numpy.arange(4)
    f["axis"].make_scale("time")
    f["bare"].dims[0].attach_scale(f["axis"])
END
    for refused in "packed scale_factor 0.01, add_offset 273.15" "one scale_factor 2" 'unsigned _Unsigned "true"' 'title _Unsigned "True "' 'capital _Unsigned "TRUE"' 'number _Unsigned 1' \
        'palette IMAGE_SUBCLASS "IMAGE_INDEXED"' 'colours IMAGE_SUBCLASS "image_indexed"'; do
        expect_exit 125 convert era.h5 --images ${refused%% *} --labels none
        expect_contains stderr "era.h5: /${refused%% *}: its values are not the numbers that it stores, as its attributes say (${refused#* })" 'write the values'
    done
    expect_exit 125 convert era.h5 --images bare --labels time
    expect_contains stderr 'era.h5: /time: its values are not the numbers' 'scale_factor 24'
    for plain in neutral real bare; do
        expect_exit 0 convert era.h5 --images $plain --labels none
        expect_not_contains stdout 'attributes are not applied'
    done
    expect_exit 0 convert era.h5 --images gray --labels none
    expect_contains stdout '/gray: its attributes are not applied, and every number is taken as it is: IMAGE_WHITE_IS_ZERO 1'
    expect_exit 0 convert era.h5 --images holes --labels axis
    expect_contains stdout '/holes: its attributes are not applied, and every number is taken as it is: _FillValue -32767, valid_range [0, 400], units "K"'

    # Arrays without usual names are listed.
    "$python" -c 'import h5py; f = h5py.File("other.h5", "w"); f["deep/t2m"] = [[1.5, 2], [3, 4]]; f["names"] = ["a", "b"]; f["more"] = h5py.ExternalLink("era.h5", "/bare")'
    expect_exit 2 convert other.h5
    expect_contains stderr 'other.h5: none of its arrays has a usual name (x_train, images, …): it has /deep/t2m [2, 2] of float64; /names [2] of a type that is not read; give --images'
    expect_exit 125 convert other.h5 --images t2m --labels none
    expect_contains stderr 'other.h5: has no /t2m; it has /deep/t2m [2, 2] of float64; /names'
fi

# Formats that are not read are known by their first bytes.
printf 'PAR1\025\004\025' >t.parquet
expect_exit 2 convert t.parquet
expect_contains stderr 't.parquet: is Parquet, which is not read: write CSV, as pandas.read_parquet'
printf 'CDF\001\000\000' >t.nc
expect_exit 2 convert t.nc
expect_contains stderr 't.nc: is NetCDF of the classic format, which is not read' 'nccopy -k nc4'
printf '\003\000\000\000\000\000\000\000\260\231\111\016abc' >t.tfrecord # the length 3, and its masked CRC-32C
expect_exit 2 convert t.tfrecord
expect_contains stderr 't.tfrecord: is TFRecord, which is not read'

# A column of dates is no column of classes unless somebody says so.
printf 'a,y\n1,2024-01-31\n2,2024-02-01\n3,2024-02-02 12:00\n' >dates.csv
expect_exit 125 convert dates.csv
expect_contains stderr "the label '2024-01-31' looks like a date" '--label-column'
expect_exit 0 convert dates.csv --label-column y
expect_contains stdout '3 classes'
expect_exit 0 convert dates.csv --label-type name
printf 'a,y\n1,1.2.3\n2,1-2\n3,x-1-2\n' >versions.csv
expect_exit 0 convert versions.csv
