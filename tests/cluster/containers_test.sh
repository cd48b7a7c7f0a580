# Ranks in containers, each its own: muster submit --container over two nodes, by a stand-in for apptainer. The cluster's folder does not lie in /tmp, which containers show.
# timeout: 240
# parts: jobs
. "$(dirname "$0")/cluster_lib.sh"
CLUSTER_PARENT=/srv start_cluster 2 4
install_muster
mkdir -p "$work/bin/session" "$work/image"/{usr,etc,tmp,var/tmp,proc,sys,dev,root,home,opt,srv} || exit 1
cp "$MUSTER_SOURCE_DIR/tests/cluster/apptainer_stand_in.py" "$work/bin/apptainer" && chmod 755 "$work/bin/apptainer" || exit 1
for folder in bin lib lib64 sbin; do ln -s usr/$folder "$work/image/$folder"; done
echo mine >"$work/image/etc/image-name"
chown -R 7777:7777 "$work/bin" "$work/image"
export PATH=$work/bin:$PATH
as_user apptainer exec --pid --bind /usr image true || skip 'no user namespaces for ordinary users here'
m() { as_user prefix/bin/muster "$@"; }
# submit GPUS OPTIONS...: the job's number is then in $job. The image holds a name only: its programs are the node's.
submit() {
    m submit --site generic-slurm --time 5min --gpus "$1" --gpus-per-node 2 --container image --container-args "--nv --bind /usr${more:+ $more}" "${@:2}" >"$OUT" 2>"$ERR" ||
        fail "muster submit $*"
    job=$(sed -n 's/^job //p' "$OUT")
    [ -n "$job" ] || exit 1
}

# In the image, where they were submitted, with what PMIx left on the node; and with what was staged in.
submit 4 --env 'GREETING=hello you' -- \
    sh -c 'echo "rank $RANK of $WORLD_SIZE in $(cat /etc/image-name) at $PWD: $GREETING"; [ -d "$PMIX_SERVER_TMPDIR" ] && [ ! -e /etc/fstab ] && [ -w /dev/shm ]'
expect_exit 0 m watch "$job"
for rank in 0 1 2 3; do expect_contains stdout "[$rank] rank $rank of 4 in mine at $work: hello you"; done
if [ -e "$MUSTER_BIN/muster-stage" ]; then
    cp "$MUSTER_BIN/muster-stage" "$work/prefix/bin" && chmod a+rx "$work/prefix/bin/muster-stage" || exit 1
    as_user mkdir -p from
    as_user cp bin/apptainer from/data
    mkdir -p "$CLUSTER_DIR/local" && chown 7777:7777 "$CLUSTER_DIR/local" || exit 1
    submit 2 --stage-in "from:$CLUSTER_DIR/local/here" -- cmp "$CLUSTER_DIR/local/here/from/data" from/data
    expect_exit 0 m watch "$job"
fi

# Ranks meet: by the engine's PMIx over both nodes, and in /dev/shm on one. With process numbers of their own, too.
if [ -n "${MUSTER_WORLD_SIZE:-}" ] && install_programs comm_sums; then
    cp "$MUSTER_WORLD_SIZE" "$work/world_size" && chmod 755 "$work/world_size" || exit 1
    for try in 1 2 3; do # Open MPI now and then does not get through MPI_Init: see expect_mpi_exit
        submit 4 -- ./world_size
        m watch "$job" >"$OUT" 2>"$ERR" && break
    done
    expect_contains stdout '] rank 0 of 4 on node1' '] rank 3 of 4 on node2'
    expect_not_contains stdout 'PMIX ERROR'
    for more in '' '--pid --ipc'; do
        submit 2 -- ./comm_sums
        expect_exit 0 m watch "$job"
        expect_contains stdout '[0] rank 0: 144 results are right' '[1] rank 1: 144 results are right'
    done
    more=''
fi

# Codes and signals come through, and the right rank is named.
submit 4 -- sh -c '[ $RANK != 2 ] || exit 7; exec sleep 100'
expect_exit 7 m watch "$job"
expect_matches stdout '^muster: error: rank 2 on node2 \(GPU 0\) exited with code 7'
submit 4 -- sh -c '[ $RANK != 1 ] || kill -SEGV $$; exec sleep 100'
expect_exit 139 m watch "$job"
expect_matches stdout '^muster: error: rank 1 on node1 \(GPU 1\) was killed by signal 11'
more=--pid submit 4 -- sh -c '[ $RANK != 3 ] || kill -SEGV $$; exec sleep 100'
expect_exit 139 m watch "$job"
expect_matches stdout '^muster: error: rank 3 on node2 \(GPU 1\) exited with code 139'
submit 4 -- no-such-program
expect_exit 255 m watch "$job"
expect_contains stdout 'FATAL:   "no-such-program": executable file not found'

# Cancelled: the programs are asked to end, and nothing is left of them.
# The loop is what is cancelled: it waits for nothing but the signal.
submit 4 -- bash -c 'trap "trap : TERM; echo told; exit 0" TERM; echo up; while :; do sleep 0.1; done'
start m watch "$job"
wait_until 60 eval '[ "$(grep -c "up$" "$OUT")" = 4 ]'
m cancel "$job" >/dev/null
expect_end 143
expect_equal "$(grep -c 'told$' "$OUT")" 4 'ranks that were told'
expect_nothing_left

# A request to end that comes while the containers are made, when Apptainer loses it: their programs get it when they run. On one node by muster itself, on two by shims.
write_program told <<'TOLD'
trap 'trap : TERM; echo told; exit 0' TERM
while :; do sleep 0.1; done
TOLD
held() { [ "$(ls "$work/bin" | grep -c '^making\.')" = 2 ]; }
while_opening() { # COMMAND...
    rm -f "$work"/bin/making.*
    as_user touch bin/hold
    start "$@" prefix/bin/muster run -n 2 --grace 20s -- apptainer exec --bind /usr image ./told
    wait_until 30 held || exit 1
    "$cluster" on head kill -TERM "$("$cluster" on head pgrep -nf 'bin/muster run -n 2')"
    wait_until 30 grep -q 'got SIGTERM' "$ERR" || exit 1
    as_user rm bin/hold
    expect_end 143
    expect_not_contains stderr 'did not end within' 'giving them up'
    expect_nothing_left
}
while_opening as_user
allocate --nodes=2 --ntasks-per-node=1
while_opening inside
release

# An image that is not there is refused before anything is queued.
expect_exit 2 m submit --site generic-slurm --time 5min --gpus 2 --container none.sif -- true
expect_contains stderr "--container none.sif: there is no such image in $work, where the job would start"
