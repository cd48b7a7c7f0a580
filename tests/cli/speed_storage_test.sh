# timeout: 180
# tests/speed/storage.py: every row with its bound, DLIO's keys, programs and modules that are not there told by name; a wrong byte is found.
# parts: bench data
. "$(dirname "$0")/lib.sh"

[ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ] || skip "the Python package is not built"
for python in python3 /usr/bin/python3; do "$python" -c 'import numpy' 2>/dev/null && break; done
"$python" -c 'import numpy' 2>/dev/null || skip "NumPy is not installed"
python=$(command -v "$python")
storage() { "$python" -B "$MUSTER_SOURCE_DIR/tests/speed/storage.py" --muster "$MUSTER" --size 2MiB --files 20 --repetitions 1 --step-ms 0.01 "$@"; }

expect_exit 0 storage --json all.json
expect_true python3 - <<'END'
import json
found = json.load(open("all.json"))
rows = {(row["group"], row["name"]): row for row in found["rows"]}
bounds = {"pread, sequential, cold", "memcpy", "write of the file from memory", "write of the small files from memory"}
staging = "staging and converting"
for wanted in (
    ("reading", "dd, sequential, cold"), ("reading", "cp to the same disk, cold"), ("reading", "pread a sample, shuffled, warm"),
    ("reading", "loader whole, shuffled"), ("reading", "loader windowed, shuffled, cold"), (staging, "muster-stage copy, one file"),
    (staging, "cp, one file"), (staging, "dd, one file"), (staging, "muster-stage copy, small files"), (staging, "cp -r, small files"),
    (staging, "muster-stage convert, IDX")):
    assert wanted in rows, wanted
for (group, name), row in rows.items():
    assert row["mb_per_s"][0] > 0, name
    assert (name in bounds) != (row["bound"] in bounds and row["of_bound"] > 0), row
keys = {"train_au_percentage", "train_throughput_samples_per_second", "train_io_mean_MB_per_second"}
assert len(found["metric"]) == 2 and all(keys <= set(each) for each in found["metric"].values())
END
if "$python" -c 'import h5py, PIL' 2>/dev/null; then
    expect_contains stdout "Pillow and h5py, PNG" "NumPy and h5py, IDX" "muster-stage convert, PNG"
fi

# On a file system that is memory nothing can be cold.
if [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then
    expect_exit 0 env TMPDIR=/dev/shm "$python" -B "$MUSTER_SOURCE_DIR/tests/speed/storage.py" --muster "$MUSTER" --size 2MiB --files 20 --repetitions 1 --only reading
    expect_matches stdout '^warm: [0-9]+ % of the file stayed in the page cache where it was to be cold$'
fi

# Programs and modules that are not there are told; the rest is measured.
mkdir path hidden && for program in sh cp dd cat mkdir; do ln -s "$(command -v $program)" path/; done
printf 'raise ImportError\n' | tee hidden/h5py.py >hidden/PIL.py
expect_exit 0 env PATH="$PWD/path" PYTHONPATH="$PWD/hidden" "$python" -B "$MUSTER_SOURCE_DIR/tests/speed/storage.py" --muster "$MUSTER" --size 2MiB --files 20 --repetitions 1
expect_contains stdout "not measured: tar | tar, small files: tar is not there; install it" "not measured: tar, sequential, cold: tar is not there" "not measured: what needs h5py"
expect_exit 2 storage --only writing
expect_contains stderr "invalid choice: 'writing'"

# A program that leaves a wrong byte fails the run: a row of wrong bytes means nothing.
cat >hidden/cp <<END
#!/bin/sh
$(command -v cp) "\$@" || exit
for last; do :; done
[ ! -f "\$last" ] || printf x | $(command -v dd) of="\$last" bs=1 seek=100000 conv=notrunc status=none
END
chmod +x hidden/cp
expect_exit 1 env PATH="$PWD/hidden:$PATH" "$python" -B "$MUSTER_SOURCE_DIR/tests/speed/storage.py" --muster "$MUSTER" --size 2MiB --files 20 --repetitions 1 --only staging
expect_contains stderr "target does not hold what was to be brought there; its row means nothing"
