# timeout: 240
# muster stage copy to four nodes with memory of their own: one read of each byte, the same files everywhere, verify, clean, out; a node that is lost or full.
# parts: data
. "$(dirname "$0")/cluster_lib.sh"
[ -x "$MUSTER_BIN/muster-stage" ] || skip 'muster-stage was not built (no MPI or no parallel HDF5)'
start_cluster 4 0
install_muster
cp "$MUSTER_BIN/muster-stage" "$work/prefix/bin/" && chmod 755 "$work/prefix/bin/muster-stage"
muster=prefix/bin/muster
allocate -N4
run() { inside "$muster" run --timeout 60s --slots-per-node "${per_node:-1}" "$@"; }
# each_node COMMAND...: on every node, one line each with what it prints.
each_node() { for node in node1 node2 node3 node4; do (cd / && "$cluster" on "$node" "$@" | paste -sd' '); done | sort -u; }
sums() { each_node bash -c 'cd "$1" && find . -type f ! -path "./.muster-stage*" -exec md5sum {} + | sort | md5sum' - "$1"; }

mkdir -p "$work/src/many"
head -c 30000000 /dev/urandom >"$work/src/large"
for i in $(seq 300); do head -c $((i * 101)) "$work/src/large" >"$work/src/many/$i"; done
chmod -R a+rX "$work/src"

expect_mpi_exit 0 run -- "$muster" stage copy src /tmp/data
expect_contains stdout 'on each of 4 nodes'
read_from_source=$(sed -n 's/ read from the source.*//p' "$OUT")
expect_equal "$read_from_source" "$(sed -n 's/.* links, \(.*\) on each of.*/\1/p' "$OUT")" 'bytes read from the source'
want=$(cd "$work/src" && find . -type f -exec md5sum {} + | sort | md5sum)
expect_equal "$(sums /tmp/data/src)" "$want" 'the checksums of all nodes'
expect_mpi_exit 0 run -- "$muster" stage verify /tmp/data
expect_matches stdout '^/tmp/data: 1204 files on 4 nodes, .*: ok$'

# What one node lacks is sent to it; several ranks of a node write once.
(cd / && "$cluster" on node2 rm /tmp/data/src/many/7)
per_node=2
expect_mpi_exit 0 run -- "$muster" stage copy src /tmp/data
per_node=1
expect_contains stdout '707 B read from the source, 707 B written'
expect_equal "$(sums /tmp/data/src)" "$want" 'the checksums of all nodes'

# A byte flipped on one node is named with the node, which is no rank of the run.
(cd / && "$cluster" on node1 bash -c 'touch -r /tmp/data/src/large /tmp/t; printf "\0\1\2\3" | dd of=/tmp/data/src/large bs=1 seek=12345678 conv=notrunc status=none; touch -r /tmp/t /tmp/data/src/large; rm /tmp/t')
per_node=2
expect_mpi_exit 125 run -- "$muster" stage verify /tmp/data
per_node=1
expect_matches stderr '/tmp/data/src/large: chunk 2 \(bytes 8388608 to 12582911\): .* differs is at offset 1234567[89]'
expect_contains stderr 'verify /tmp/data failed on 1 of 4 nodes:'
expect_matches stderr '^ *node1: /tmp/data/src/large'
expect_mpi_exit 0 run -- "$muster" stage clean /tmp/data
expect_equal "$(each_node ls -A /tmp/data)" '' 'what is left'

# Parts, and results back.
expect_mpi_exit 0 run -- "$muster" stage copy --shard src/many /tmp/data
expect_equal "$(each_node ls /tmp/data/many | tr ' ' '\n' | sort | uniq -c | grep -c ' 1 ')" 300 'files on one node each'
expect_mpi_exit 2 run -- "$muster" stage copy --shard src/large /tmp/data
expect_contains stderr '1 file cannot be divided among 4 nodes, since a file stays whole; leave out --shard'
expect_mpi_exit 0 run -- "$muster" stage out /tmp/data/many results
expect_equal "$(ls "$work/results" | paste -sd' ')" 'node1 node2 node3 node4' 'folders'
expect_mpi_exit 0 run -- "$muster" stage out /tmp/data/many merged --merge
expect_true diff -r "$work/src/many" "$work/merged/many"
expect_mpi_exit 2 run -- "$muster" stage out /etc/hostname merged --merge
expect_contains stderr 'both have hostname; leave out --merge'

# A target that all nodes share is refused; so is a node without space, before anything is written.
expect_mpi_exit 125 run -- "$muster" stage copy src one_folder
expect_contains stderr 'another muster-stage works in'
head -c 100 /dev/zero >"$work/big" && truncate -s 3G "$work/big"
expect_mpi_exit 125 run -- "$muster" stage copy big /tmp/data
expect_contains stderr 'free space there, or give another folder' 'node3'
expect_equal "$(each_node bash -c 'ls /tmp/data/big 2>/dev/null')" '' 'big'

# A rank is killed at random points (MUSTER_KILLS times): whatever has its final name is whole, and the next copy goes on.
mkdir "$work/src3" && for i in $(seq 30); do head -c $((i * 300007)) "$work/src/large" >"$work/src3/$i"; done
want=$(cd "$work/src3" && md5sum * | sort)
stages() { grep -lzs "^SLURM_CONF=$CLUSTER_DIR/" $(pgrep -x muster-stage | sed 's,.*,/proc/&/environ,') | cut -d/ -f3; }
for kill in $(seq "${MUSTER_KILLS:-4}"); do
    start run -- "$muster" stage copy src3 /tmp/data3
    one_runs() { stages >"$lib_dir/stages" && [ -s "$lib_dir/stages" ] || ! kill -0 "$PID" 2>/dev/null; }
    wait_until 30 one_runs
    read -t 0.$(printf %03d $((RANDOM % 800))) <> <(:) # any moment will do
    victim=$(stages | shuf -n 1) && kill -KILL $victim 2>/dev/null
    wait "$PID"
    for node in node1 node2 node3 node4; do
        (cd / && "$cluster" on $node bash -c 'cd /tmp/data3/src3 2>/dev/null && md5sum * 2>/dev/null') | sort | comm -23 - <(echo "$want") >"$lib_dir/torn"
        [ ! -s "$lib_dir/torn" ] || fail "kill $kill: not whole on $node: $(head -3 "$lib_dir/torn")"
    done
    [ $((kill % 4)) != 0 ] || (for node in node1 node3; do (cd / && "$cluster" on $node rm -rf /tmp/data3); done)
done
expect_mpi_exit 0 run -- "$muster" stage copy src3 /tmp/data3
expect_mpi_exit 0 run -- "$muster" stage verify /tmp/data3
expect_equal "$(each_node bash -c 'cd /tmp/data3/src3 && md5sum * | sort | md5sum')" "$(md5sum <<<"$want")" 'the checksums of all nodes'

# A node is lost while files are copied: the others end, nothing has a final name, the next copy goes on.
head -c 400000000 /dev/urandom >"$work/src2"
has_begun() { [ -s "/proc/$(cat "$CLUSTER_DIR/run/node4.init")/root/tmp/data/.muster-stage/journal" ]; }
has_begun_or_ended() { has_begun || ! kill -0 "$PID" 2>/dev/null; }
for try in 1 2 3 4 5; do # as expect_mpi_exit
    start run -- "$muster" stage copy src2 /tmp/data
    wait_until 30 has_begun_or_ended
    has_begun || ! grep -q 'Signal: Segmentation fault' "$ERR" || continue
    break
done
expect_true has_begun
"$cluster" crash node4
wait "$PID" && fail 'a copy that lost a node ended well'
for node in node1 node2 node3; do (cd / && "$cluster" on $node test ! -e /tmp/data/src2) || fail "src2 has its name on $node"; done
release
allocate -N3
expect_mpi_exit 0 run -- "$muster" stage copy src2 /tmp/data
expect_mpi_exit 0 run -- "$muster" stage verify /tmp/data
expect_matches stdout '^/tmp/data: .* on 3 nodes, .*: ok$'
release
