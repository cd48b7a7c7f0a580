# timeout: 180
# muster-bench-dev io: every row with its bound, DLIO's keys, peers that are not there told by name; a wrong byte is found.
# parts: bench data
. "$(dirname "$0")/lib.sh"

BENCH=$MUSTER_BIN/muster-bench-dev
[ -x "$BENCH" ] || skip "muster-bench-dev was not built (no MPI or no parallel HDF5)"
small="--size 2MiB --files 20 --repetitions 1 --compute 10us"

expect_exit 0 "$BENCH" io $small --no-peers --json
cp "$OUT" all.json
expect_true python3 - <<'END'
import json
found = json.load(open("all.json"))
rows = {(row["group"], row["name"]): row for row in found["rows"]}
bounds = {"pread, sequential, cold", "memcpy", "write of the file from memory", "write of the small files from memory"}
for wanted in (
    ("reading", "dd, sequential, cold"), ("reading", "cp to the same disk, cold"), ("reading", "pread a sample, shuffled, warm"),
    ("reading", "loader whole, shuffled"), ("reading", "loader windowed, shuffled, cold"), ("staging", "muster-stage copy, one file"),
    ("staging", "cp, one file"), ("staging", "dd, one file"), ("staging", "muster-stage copy, small files"), ("staging", "cp -r, small files"),
    ("staging", "muster-stage convert, PNG"), ("staging", "muster-stage convert, IDX")):
    assert wanted in rows, wanted
for (group, name), row in rows.items():
    assert row["median_mb_per_s"] > 0, name
    assert (name in bounds) != (row.get("bound") in bounds and row["of_bound"] > 0), row
keys = {"train_au_percentage", "train_throughput_samples_per_second", "train_io_mean_MB_per_second"}
assert len(found["metric"]) == 2 and all(keys <= set(each) for each in found["metric"])
END

# Peers that are not there are told, with what to install; the rest is measured.
expect_exit 0 "$BENCH" io $small --python /no/such/python
expect_contains stdout "not measured: h5py and torch: /no/such/python is not there; install it, or give --python" \
    "not measured: converting by h5py and Pillow: /no/such/python is not there" "muster-stage copy, one file"
mkdir path && for program in sh cp dd cat mkdir; do ln -s "$(command -v $program)" path/; done
expect_exit 0 env PATH="$PWD/path" "$BENCH" io $small --no-peers
expect_contains stdout "not measured: tar | tar: tar is not there; install it" "not measured: tar, sequential, cold: tar is not there; install it"
for python in python3 /usr/bin/python3; do "$python" -c 'import h5py, numpy, PIL' 2>/dev/null && break; done
if "$python" -c 'import h5py, numpy, PIL' 2>/dev/null; then
    expect_exit 0 "$BENCH" io $small --only staging --python "$python"
    expect_contains stdout "Pillow and h5py, PNG" "NumPy and h5py, IDX"
fi
expect_exit 2 "$BENCH" io --only writing
expect_contains stderr "--only: 'writing' is neither reading nor staging"

# A program that leaves a wrong byte fails the run: a row of wrong bytes means nothing.
rm path/cp
cat >path/cp <<END
#!/bin/sh
$(command -v cp) "\$@" || exit
for last; do :; done
[ ! -f "\$last" ] || printf x | $(command -v dd) of="\$last" bs=1 seek=100000 conv=notrunc status=none
END
chmod +x path/cp
expect_exit 125 env PATH="$PWD/path" "$BENCH" io $small --only staging --no-peers
expect_contains stderr "target does not hold what was to be brought there; its row means nothing"
