# timeout: 240
# muster-stage copy, verify, clean and out on one node: what is copied, what is not copied again, and every way to fail.
# parts: data
. "$(dirname "$0")/lib.sh"

STAGE=$MUSTER_BIN/muster-stage
[ -x "$STAGE" ] || skip "muster-stage was not built (no MPI or no parallel HDF5)"

# tree FOLDER: path, mode, time, link and contents of everything in it, but the state of a copy.
tree() {
    python3 - "$1" <<'END'
import hashlib, os, stat, sys
for folder, folders, files in os.walk(sys.argv[1]):
    folders[:] = [name for name in folders if not name.startswith(".muster-stage")]
    for name in sorted(folders + files):
        path = os.path.join(folder, name)
        found = os.lstat(path)
        link = stat.S_ISLNK(found.st_mode)
        what = os.readlink(path) if link else hashlib.md5(open(path, "rb").read()).hexdigest() if stat.S_ISREG(found.st_mode) else ""
        print(repr(os.path.relpath(path, sys.argv[1])), oct(found.st_mode), 0 if link else found.st_mtime_ns, what)
END
}
same_trees() { diff <(tree "$1" | sort) <(tree "$2" | sort); }

mkdir -p src/deep/er src/empty
printf 'short' >src/a
: >src/nothing
head -c 9000000 /dev/urandom >src/large
printf '#!/bin/sh\n' >src/deep/run && chmod 755 src/deep/run
printf 'secret' >src/deep/er/'a name
with a line feed' && chmod 400 src/deep/er/a*
ln -s ../a src/deep/link
ln -s /nowhere src/dangling
ln src/a src/hard
chmod 555 src/deep/er
touch -d '2001-02-03 04:05:06.789' src/a src/empty

# Usage.
for command in copy out clean; do
    expect_exit 0 env COLUMNS=200 "$STAGE" $command --help
    expect_contains stdout "muster-stage $command"
    [ "$(wc -l <"$OUT")" -le 26 ] || fail "help of $command is longer than a screen"
done
expect_exit 2 "$STAGE" copy
expect_contains stderr "the sources are missing"
expect_exit 2 "$STAGE" copy src
expect_contains stderr "the target folder is missing; give what to copy, and then the folder to copy to"
expect_exit 2 "$STAGE" copy src dst --check some
expect_exit 125 "$STAGE" copy nowhere dst
expect_contains stderr "the source nowhere does not exist"
expect_exit 2 "$STAGE" copy src src/deep/dst
expect_contains stderr "the target src/deep/dst lies in the source src"
mkdir other && : >other/a && : >other/b
expect_exit 2 "$STAGE" copy src/a other/a dst
expect_contains stderr "/src/a and " "/other/a would both become a; copy them to two folders"
mkfifo other/pipe
expect_exit 2 "$STAGE" copy other dst
expect_contains stderr "other/pipe is a pipe, which cannot be copied"
rm other/pipe
expect_true [ ! -e dst ]

# A dry run writes nothing, a copy is the same as its source, and the second does nothing.
expect_exit 0 "$STAGE" copy src dst --dry-run
expect_contains stdout "would be written; nothing was, because of --dry-run"
expect_true [ ! -e dst ]
expect_exit 0 "$STAGE" copy src dst
expect_contains stdout "dst: 6 files, 4 folders, 2 links" "8.6 MiB read from the source"
expect_true same_trees src dst/src
expect_exit 0 "$STAGE" copy src dst --json
expect_true python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert d["files_there"]==6 and d["bytes_read"]==0 and d["bytes_written"]==0' "$OUT"
expect_exit 0 "$STAGE" verify dst
expect_matches stdout '^dst: 6 files, .*: ok$'
expect_exit 0 "$MUSTER" stage verify dst

# What changed is copied, alone; contents of a folder; several sources.
printf 'longer' >src/a
chmod 700 src/nothing
expect_exit 0 "$STAGE" copy src dst --json
expect_true python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert d["files_there"]==3 and d["bytes_written"]==12, d' "$OUT"
expect_true same_trees src dst/src
expect_exit 0 "$STAGE" copy src/. other other/b contents
expect_true same_trees src/deep contents/deep
expect_true [ -e contents/other/a ]
expect_true [ -e contents/b ]
expect_exit 0 "$STAGE" copy other dst
expect_exit 0 "$STAGE" verify dst
expect_matches stdout '^dst: 8 files'

# A flipped byte is named, also where size and time stay; --check full mends it.
cp -p dst/src/large kept
printf '\0' | dd of=dst/src/large bs=1 seek=5000000 conv=notrunc status=none
cmp -s kept dst/src/large && printf '\1' | dd of=dst/src/large bs=1 seek=5000000 conv=notrunc status=none
touch -r kept dst/src/large
expect_exit 125 "$STAGE" verify dst
expect_contains stderr "dst/src/large: chunk 1 (bytes 4194304 to 8388607): checksum" "the first byte that differs is at offset 5000000:"
expect_exit 0 "$STAGE" copy src dst
expect_exit 125 "$STAGE" verify dst
expect_exit 0 "$STAGE" copy src dst --check full
expect_exit 0 "$STAGE" verify dst
rm dst/src/deep/run
printf 'x' >>dst/src/hard
expect_exit 125 "$STAGE" verify dst
expect_contains stderr "dst/src/deep/run: is missing" "dst/src/hard: has"
expect_exit 0 "$STAGE" copy src dst
expect_true same_trees src dst/src
sed -i 's/^file\t\(...\)\t6\t/file\t\1\t7\t/' dst/.muster-stage/manifest
expect_exit 125 "$STAGE" verify dst
expect_contains stderr "dst/.muster-stage/manifest: line "

# Killed at any moment: nothing but whole files has a final name, and the next copy goes on. `many` is made of files of all sizes.
mkdir many
for i in $(seq 200); do head -c $((i * 401 % 20000)) src/large >many/$i; done
for i in 1 2 3 4 5 6; do cat src/large; done >many/large # many chunks
for i in $(seq 20); do
    (timeout -s KILL 0.0$((RANDOM % 4))$((RANDOM % 10)) "$STAGE" copy many killed --threads 1; :) >/dev/null 2>&1
    for file in $([ ! -d killed/many ] || ls killed/many); do cmp "many/$file" "killed/many/$file" || fail "killed/many/$file is not whole"; done
    [ $((i % 7)) != 0 ] || "$STAGE" clean killed >/dev/null 2>&1
done
expect_exit 0 "$STAGE" copy many killed
expect_true same_trees many killed/many
expect_exit 0 "$STAGE" verify killed
expect_true [ ! -e killed/.muster-stage/incoming ]

# What a copy that failed has written is read again, not copied again. A disk that fails (a fake: LD_PRELOAD) is named with the byte.
if [ -e "$MUSTER_BIN/read_fault.so" ] && ! grep -q __asan_init "$STAGE"; then
    expect_exit 125 env LD_PRELOAD="$MUSTER_BIN/read_fault.so" READ_FAULT_NAME=/large READ_FAULT_FROM=6000000 "$STAGE" copy src faulty --threads 1
    expect_contains stderr "src/large at byte" "Input/output error"
    expect_true [ ! -e faulty/src ]
    expect_exit 0 "$STAGE" copy src faulty
    expect_contains stdout "were there from a copy that had not ended"
    expect_true same_trees src faulty/src
    printf 'b' | dd of=kept bs=1 seek=3 conv=notrunc status=none
    expect_exit 125 env LD_PRELOAD="$MUSTER_BIN/read_fault.so" READ_FAULT_NAME=/kept "$STAGE" copy kept faulty --threads 1
    expect_contains stderr "kept at byte 0"
fi

# Other users' folders, folders in the place of files.
mkdir -p taken/src/a
expect_exit 2 "$STAGE" copy src taken
expect_contains stderr "taken/src/a is a folder, and a file is to be copied there"
ln -s dst link_to_dst
expect_exit 125 "$STAGE" copy src link_to_dst
expect_contains stderr "link_to_dst is a symbolic link or no folder"
if [ "$(id -u)" = 0 ] && mkdir foreign && chown 12345 foreign; then
    expect_exit 125 "$STAGE" copy src foreign
    expect_contains stderr "the folder foreign belongs to the user with number 12345; give a folder of your own"
fi

# Only one at a time.
mkdir -p held/.muster-stage
expect_exit 125 flock held/.muster-stage/lock "$STAGE" copy src held
expect_contains stderr "another muster-stage works in held"

# No space: known before the first byte, and where it goes away meanwhile.
if unshare -rm true 2>/dev/null; then
    expect_exit 125 unshare -rm sh -c 'mkdir full && mount -t tmpfs -o size=4m tmpfs full && { "$0" copy src full; code=$?; ls -A full; exit $code; }' "$STAGE"
    expect_contains stderr "full has 4 MiB and" "8.6 MiB in 12 files and folders are to be written; free space there, or give another folder"
    expect_exit 125 unshare -rm sh -c 'mkdir -p few && mount -t tmpfs -o nr_inodes=8 tmpfs few && "$0" copy src few' "$STAGE"
    expect_contains stderr "inodes free"
fi

# Several ranks of one node: one of them copies.
for ranks in 2 3; do
    expect_exit 0 "$MUSTER" run -n $ranks --slots-per-node $ranks -- "$STAGE" copy src ranks$ranks
    expect_equal "$(grep -c ' read from the source' "$OUT")" 1 'reports'
    expect_true same_trees src ranks$ranks/src
    expect_exit 0 "$MUSTER" run -n $ranks --slots-per-node $ranks -- "$STAGE" verify ranks$ranks
done
expect_exit 125 "$MUSTER" run -n 2 --slots-per-node 2 -- "$STAGE" copy nowhere ranks2
expect_equal "$(grep -c '^muster-stage: error' "$ERR")" 1 'errors told'

# clean removes what copy brought and nothing else.
: >ranks2/src/own
printf 'changed' >ranks2/src/a
expect_exit 0 "$STAGE" clean ranks2 --dry-run
expect_true [ -e ranks2/src/large ]
expect_exit 0 "$STAGE" clean ranks2
expect_contains stderr "ranks2/src/a has changed since it was copied: kept"
expect_equal "$(cd ranks2 && find . -type f | sort | paste -sd' ')" './src/a ./src/own' 'what is left'
expect_exit 0 "$STAGE" clean ranks3
expect_equal "$(ls -A ranks3)" '' 'what is left'
expect_exit 125 "$STAGE" clean ranks3
expect_contains stderr "ranks3 holds no copy of muster stage"

# out: to a folder of the node; again and again until SIGTERM, SIGUSR1 at once.
host=$(hostname)
expect_exit 0 "$STAGE" out src results
expect_true same_trees src "results/$host/src"
expect_exit 0 "$STAGE" out src merged --merge
expect_true same_trees src merged/src
expect_exit 0 "$STAGE" verify merged
mkdir ckpt
printf 1 >ckpt/1
"$STAGE" out ckpt run --every 1h >out.log 2>&1 &
pid=$!
wait_until 20 test -e "run/$host/ckpt/1"
printf 2 >ckpt/2
kill -USR1 $pid
wait_until 20 test -e "run/$host/ckpt/2"
printf 3 >ckpt/3
kill -TERM $pid
wait $pid
expect_equal $? 0 'exit code'
expect_true same_trees ckpt "run/$host/ckpt"

# --unpack: a folder that appears whole, once; archives that lead out of it, by any way, are refused.
mkdir -p env/bin && printf '#!/bin/sh\necho hello\n' >env/bin/hello && chmod 755 env/bin/hello && ln -s bin/hello env/link && ln env/bin/hello env/hard && ln -s ../bin env/bin/up
find env -exec touch -h -d 2020-01-02 {} + # tar keeps whole seconds
tar -czf env.tar.gz -C env .
tar -cf plain.tar env
"$STAGE" copy --unpack env.tar.gz unpacked >"$OUT" 2>"$ERR"
if grep -q 'this build of muster has no libarchive' "$ERR"; then
    echo 'libarchive: not here'
    exit
fi
expect_exit 0 "$STAGE" copy --unpack env.tar.gz plain.tar unpacked
expect_true same_trees env unpacked/env
expect_true same_trees env/bin unpacked/plain/env/bin
expect_equal "$(unpacked/env/link)" hello 'what the unpacked program prints'
: >unpacked/env/own
expect_exit 0 "$STAGE" copy --unpack env.tar.gz unpacked
expect_true [ -e unpacked/env/own ]
touch env.tar.gz
expect_exit 0 "$STAGE" copy --unpack env.tar.gz unpacked
expect_true [ ! -e unpacked/env/own ]
expect_exit 0 "$STAGE" clean unpacked
expect_equal "$(ls -A unpacked)" '' 'what is left'
expect_exit 2 "$STAGE" copy --unpack src/a unpacked
python3 - <<'END'
import io, tarfile
def archive(name, *entries):
    with tarfile.open(name, "w") as out:
        for path, kind, target in entries:
            info = tarfile.TarInfo(path)
            info.type, info.linkname = kind, target
            info.size = 4 if kind == tarfile.REGTYPE else 0
            out.addfile(info, io.BytesIO(b"evil"))
link, hard, file, fifo = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.REGTYPE, tarfile.FIFOTYPE
archive("bad1.tar", ("../evil", file, ""))
archive("bad2.tar", ("/tmp/evil", file, ""))
archive("bad3.tar", ("a/../../evil", file, ""))
archive("bad4.tar", ("out", link, "/tmp"))
archive("bad5.tar", ("out", link, ".."))
archive("bad6.tar", ("x", link, "."), ("x/evil", file, ""))
archive("bad7.tar", ("h", hard, "../../../../src/a"))
archive("bad8.tar", ("pipe", fifo, ""))
END
for i in 1 2 3 4 5 6 7 8; do
    "$STAGE" copy --unpack bad$i.tar bad >"$OUT" 2>"$ERR" && fail "bad$i.tar was unpacked"
    expect_matches stderr 'not unpacked|open the folder'
    expect_true [ ! -e bad/bad$i ]
done
expect_equal "$(find . -name evil | grep -v /unpacking/)" '' 'what came out'
head -c 100 env.tar.gz >cut.tar.gz
expect_exit 125 "$STAGE" copy --unpack cut.tar.gz bad
expect_matches stderr "cut.tar.gz cannot be (opened|read)"

# A command that reaches one of a job's nodes says so; one that reaches all, or outside of a job, does not.
printf 'a\na\nb\n' >nodes
expect_exit 0 env SLURM_JOB_NUM_NODES=3 "$STAGE" copy src/a noted
expect_contains stderr "muster-stage: note: this is for 1 of the job's 3 nodes; \`muster run -- muster stage …\`, without -n, is for all, if each has its own target"
expect_exit 0 env PBS_NODEFILE="$PWD/nodes" "$STAGE" verify noted
expect_contains stderr "1 of the job's 2 nodes"
for set in SLURM_JOB_NUM_NODES=1 SLURM_JOB_NUM_NODES= PBS_NODEFILE="$PWD/none"; do
    expect_exit 0 env "$set" "$STAGE" copy src/a noted
    expect_equal "$(grep -c note: "$ERR")" 0 "notes with $set"
done

# A file that no copy brought stays as it is; one that a copy brought is replaced, and so is one like the source.
mkdir mine && echo precious >mine/a
expect_exit 2 "$STAGE" copy src/a mine
expect_contains stderr 'mine/a is there and was not brought by muster stage: it would be replaced; move it away, or give another folder'
expect_equal "$(cat mine/a)" precious 'the file that was there'
cp -p src/a mine/a
expect_exit 0 "$STAGE" copy src/a mine
echo changed >>mine/a
expect_exit 0 "$STAGE" copy src/a mine
expect_true cmp src/a mine/a
expect_exit 0 "$STAGE" copy src/a linked
rm linked/a && ln -s ../mine/a linked/a
expect_exit 0 "$STAGE" copy src/a linked
expect_exit 0 "$STAGE" out src/a results

# What a copy placed that ended before its manifest was written is its own, whatever the source has become; nothing is refused where the manifest is damaged.
mkdir -p late && echo one >late/file && ln -s one late/link
mkdir -p placed/.muster-stage/manifest.new
expect_exit 125 "$STAGE" copy late placed
expect_true same_trees late placed/late
rmdir placed/.muster-stage/manifest.new
echo another >late/file && ln -sfn another late/link
expect_exit 0 "$STAGE" copy late placed
expect_true same_trees late placed/late
echo damaged >placed/.muster-stage/manifest
echo 3 >late/file
expect_exit 0 "$STAGE" copy late placed
expect_contains stderr 'what it lists is not trusted'
expect_true same_trees late placed/late
