# muster run over several nodes by its own engine, remote: with host files, over an agent that stands in for ssh (node_rsh.py), and in jobs of PBS, for which
# pbs_stand_in.py stands in. No mpirun or mpiexec is on the way.
# timeout: 420
# parts: preflight
. "$(dirname "$0")/cluster_lib.sh"
start_cluster 6 4
install_muster
for stand_in in node_rsh pbs_stand_in; do serve_stand_in $stand_in.py "$work/$stand_in" node{1..6}; done
export NODE_RSH_FOLDER=$work/node_rsh MUSTER_REMOTE_SHELL=$work/node_rsh.py

run() {
    COMMAND="muster run $*"
    as_user prefix/bin/muster run --engine remote "$@" >"$OUT" 2>"$ERR" </dev/null
    code=$?
}
# job CHUNKS SCRIPT: a job of PBS; what it printed, on both ways, becomes $OUT, its exit code $code.
job() {
    COMMAND="job of $1: $2"
    as_user env -u MUSTER_REMOTE_SHELL ./pbs_stand_in.py job "$work/pbs_stand_in" "$1" /bin/bash -c "export PATH=$PATH; $2" >"$OUT" 2>"$ERR"
    code=$?
}
said() { grep -v '^muster: note: ' "$OUT" | sort; }
two=node1.lab.example:ncpus=2:ngpus=2:mpiprocs=2+node3:ncpus=4:ngpus=2:mpiprocs=2
address() { (cd / && "$cluster" on "$1" hostname -I) | tr -d ' '; }
first=$(address node3)

# Every rank has its place, its host and its variables; nodes not in their usual order, ranks node by node and dealt out.
run -H node3:1,node1:3,node2:2 -- bash -c 'echo "rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE on $(hostname), master $MASTER_ADDR"'
expect_equal "$code" 0 "exit code: $(cat "$ERR")"
expect_equal "$(sort "$OUT")" "rank 0 of 6, 0 of 1 on node3, master $first
rank 1 of 6, 0 of 3 on node1, master $first
rank 2 of 6, 1 of 3 on node1, master $first
rank 3 of 6, 2 of 3 on node1, master $first
rank 4 of 6, 0 of 2 on node2, master $first
rank 5 of 6, 1 of 2 on node2, master $first" ranks
run -H node1:2,node2:2 --map-by node -- bash -c 'echo "rank $RANK on $(hostname)"'
expect_equal "$(lines "$OUT")" 'rank 0 on node1; rank 1 on node2; rank 2 on node1; rank 3 on node2' 'ranks dealt out'
COMMAND='variables and the key'
write_program told <<'TOLD'
echo "${SECRET_A-none} $SECRET_B ${MUSTER_TOKEN-none}"
key=$(tr '\0' '\n' </proc/$PPID/environ | sed -n 's/^MUSTER_TOKEN=//p')
[ ${#key} = 64 ] || echo 'the shim has no key'
lines=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ')
for secret in "$key" "SECRET_B=$SECRET_B"; do [[ $lines != *"$secret"* ]] || echo "$secret is on a command line"; done
TOLD
as_user env SECRET_A=1 SECRET_B=two prefix/bin/muster run --engine remote --env-exclude 'SECRET_*' -x SECRET_B -H node1:1,node2:1 -- ./told >"$OUT" 2>"$ERR" </dev/null
expect_equal "$(lines "$OUT")" 'none two none; none two none' variables

# Output is whole: many ranks, long lines, lines in pieces, a last line without an end.
write_program talk <<'TALK'
for i in $(seq 200); do printf '%s ' "$RANK"; printf '%s%0*d\n' "$RANK" 3000 "$i"; done
[ "$RANK" != 3 ] || printf 'the last'
TALK
run -H node1:2,node2:2 -- ./talk
expect_equal "$code" 0 "exit code: $(cat "$ERR")"
# What comes behind a line without an end is on that line.
sed 's/the last//' "$OUT" | grep . >"$lib_dir/whole"
expect_equal "$(sort -u "$lib_dir/whole" | wc -l) $(awk 'length($0) != 3003 || substr($0, 1, 1) != substr($0, 3, 1)' "$lib_dir/whole" | wc -l)" '800 0' 'whole lines'
expect_equal "$(grep -c 'the last' "$OUT")" 1 'a last line without an end'
run -H node1:1,node2:1 -- head -c 30000000 /dev/zero
expect_equal "$code $(wc -c <"$OUT")" '0 60000000' 'bytes of two ranks without a line'
COMMAND='a reader that leaves'
as_user bash -c 'prefix/bin/muster run --engine remote -H node1:1,node2:1 -- yes | head -n 1; echo "code ${PIPESTATUS[0]}"' >"$OUT" 2>"$ERR" </dev/null
expect_equal "$(lines "$OUT")" 'code 141; y' 'a reader that leaves'
expect_nothing_left

# Standard input: rank 0 reads it, whichever host it is on; the others, and rank 0 in the end, find its end.
for hosts in node1:1,node2:2 node2:1,node1:2; do
    COMMAND="stdin, $hosts"
    head -c 3000000 /dev/urandom >"$lib_dir/in"
    as_user prefix/bin/muster run --engine remote --timeout 30s -H $hosts -- bash -c 'md5sum >sum.$RANK; cat sum.$RANK' <"$lib_dir/in" >"$OUT" 2>"$ERR"
    expect_equal "$(sort "$OUT")" "$({ md5sum <"$lib_dir/in"; md5sum </dev/null; md5sum </dev/null; } | sort)" "what ranks read on $hosts"
    yes | as_user prefix/bin/muster run --engine remote --timeout 30s -H $hosts -- bash -c '[ "$RANK" != 0 ] || head -n 1' >"$OUT" 2>"$ERR"
    expect_equal "$? $(cat "$OUT")" '0 y' "input that nobody reads to its end, $hosts"
done

# Ends. A rank that fails, or is killed, is named; exit codes are the rank's; all others end.
run -H node1:2,node2:2 -- bash -c '[ "$RANK" != 3 ] || exit 7; exec sleep 60'
expect_equal "$code" 7 'exit code of a failed rank'
expect_contains stderr 'rank 3 on node2 exited with code 7'
run -H node1:2,node2:2 -- bash -c '[ "$RANK" != 2 ] || kill -9 $$; exec sleep 60'
expect_equal "$code" 137 'exit code of a killed rank'
expect_contains stderr 'rank 2 on node2 was killed by signal 9'
run -H node1:1,nowhere:1,node2:1,node3:1,node4:1,node5:1 -- true
expect_equal "$code" 125 'exit code with a host that is not there'
expect_contains stderr 'no agent of muster came from nowhere' 'no rank was started'
expect_not_contains stderr 'cannot reach' 'rank 0 on node1'
# One that says nothing is named alone.
printf '#!/bin/bash\n[ "$1" != node2 ] || exec sleep 60\nexec %q "$@"\n' "$MUSTER_REMOTE_SHELL" >"$work/silent_rsh"
chmod 755 "$work/silent_rsh"
run --remote-shell "$work/silent_rsh" --start-timeout 3s -H node1:1,node2:2,node3:1 -- true
expect_equal "$code" 124 'exit code with a silent host'
expect_contains stderr 'missing: ranks 1-2 on node2; check'
expect_nothing_left

write_program sit <<'SIT'
setsid bash -c 'trap "" TERM; echo $$ >"$0"; sleep 1000' "$0.child.$RANK" &
trap 'echo "rank $RANK saved"; exit 0' TERM
echo "$PPID" >"$0.watcher.$RANK"
while :; do sleep 1000 & wait $!; done
SIT
all_sit() { [ "$(ls "$work" | grep -c '^sit\.child\.')" = 4 ]; }
sitting() {
    rm -f "$work"/sit.child.* "$work"/sit.watcher.*
    start as_user prefix/bin/muster run --engine remote --grace 2s -H node1:2,node2:2 "$@" -- ./sit
    wait_until 30 all_sit || exit 1
}
parent_of() { "$cluster" on "$1" ps -o ppid= -p "$2" | tr -d ' '; } # NODE PID
launcher() { "$cluster" on head pgrep -nf 'bin/muster run --engine'; }

# Ctrl-C, by the launcher; every rank may save.
sitting
"$cluster" on head kill -INT "$(launcher)"
expect_end 130
expect_nothing_left
sitting
"$cluster" on head kill -TERM "$(launcher)"
expect_end 143
expect_equal "$(grep -c saved "$OUT")" 4 "ranks that saved: $(cat "$OUT" "$ERR")"
expect_nothing_left

# A watcher, an agent, the starter and the launcher are killed: named, and nothing is left, not even children in sessions of their own.
sitting
"$cluster" on node2 kill -9 "$(cat "$work/sit.watcher.3")"
expect_end 125
expect_contains stderr 'the watcher of rank 3 on node2 was killed'
expect_nothing_left
# One that is stopped can end nothing: its agent's end wakes it.
sitting --heartbeat 1s
"$cluster" on node2 kill -STOP "$(cat "$work/sit.watcher.3")"
expect_end 125
expect_contains stderr 'the watcher of rank 3 on node2 has not answered'
expect_nothing_left
# So does a stopped agent's watchers' end the agent.
sitting --heartbeat 1s
"$cluster" on node2 kill -STOP "$(parent_of node2 "$(cat "$work/sit.watcher.3")")"
expect_end 125
expect_contains stderr 'muster-agent, which had started ranks 2-3 on node2, has not answered' 'ending 4 ranks'
expect_equal "$(grep -c saved "$OUT")" 4 "ranks that saved beside a stopped agent: $(cat "$OUT" "$ERR")"
expect_nothing_left
sitting
"$cluster" on node2 kill -9 "$(parent_of node2 "$(cat "$work/sit.watcher.3")")"
expect_end 125
expect_contains stderr 'muster-agent on node2 died'
spared=': file /dev/shm/muster-' # the folder of a killed agent: a later run on that host sweeps it
expect_nothing_left
sitting
"$cluster" on head kill -9 "$("$cluster" on head pgrep -nf 'bin/muster remote')"
expect_end 125
expect_contains stderr 'remote was killed by signal 9'
expect_nothing_left
sitting
"$cluster" on head kill -9 "$(launcher)"
expect_end 137
expect_nothing_left
# The remote shell alone is no part of the run once the agent is there.
sitting
"$cluster" on head kill -9 $("$cluster" on head pgrep -f 'node_rsh.py node')
sleep 1 # nothing happens that could be waited for; a run that needs the shell ends within this time
expect_true kill -0 "$PID"
"$cluster" on head kill -TERM "$(launcher)"
expect_end 143
expect_equal "$(grep -c saved "$OUT")" 4 "ranks that saved without a remote shell: $(cat "$OUT" "$ERR")"
expect_nothing_left
# A host that is cut off is named, and its ranks end there too.
sitting --heartbeat 1s
"$cluster" link node2 down
expect_end 125
expect_contains stderr 'lost ranks 2-3 on node2'
"$cluster" link node2 up
expect_nothing_left 30
node2_is_back() { "$cluster" on node2 bash -c ': </dev/tcp/head/1' 2>&1 | grep -q refused; } # the kernel asks anew who has the address
wait_until 30 node2_is_back
# With a longer heartbeat a link may be away for longer: the agents' connections, too.
sitting --heartbeat 60s
"$cluster" link node2 down
sleep 17 # nothing happens that could be waited for; without the option hosts are given up after 15 s
"$cluster" link node2 up
wait_until 30 node2_is_back
expect_true kill -0 "$PID"
"$cluster" on head kill -TERM "$(launcher)"
expect_end 143
expect_equal "$(grep -c saved "$OUT")" 4 "ranks that saved after 17 s without a link: $(cat "$OUT" "$ERR")"
expect_nothing_left
spared='^$'
for node in node1 node2; do as_user env NODE_RSH_FOLDER="$NODE_RSH_FOLDER" ./node_rsh.py $node 'rm -rf /dev/shm/muster-*'; done

# Many hosts at once are checked first; a dead one is named.
run --preflight -H node1:1,node2:1,node3:1 -- true
expect_equal "$code" 0 "preflight: $(cat "$ERR")"
run --preflight -H node1:1,nowhere:1,node2:1 -- true
expect_equal "$code" 125 'exit code of preflight with a host that is not there'
expect_matches stderr '^muster: nowhere: it could not be reached: .*node_rsh.py exited with code 255: .*nowhere'
expect_contains stderr '1 of 3 nodes did not pass preflight: nowhere'

# More hosts, ranks dealt out over them.
six=$(seq -s, -f 'node%g:2' 6)
run -H "$six" --map-by node -- bash -c 'echo "rank $RANK on $(hostname)"'
expect_equal "$code $(lines "$OUT")" "0 $(for rank in {0..11}; do echo "rank $rank on node$((rank % 6 + 1))"; done | paste -sd';' | sed 's/;/; /g')" 'ranks on six hosts'

# MPI: each host's server gives its ranks what those of other hosts have told theirs.
if [ -n "${MUSTER_WORLD_SIZE:-}" ]; then
    cp "$MUSTER_WORLD_SIZE" "$work/world_size" && chmod 755 "$work/world_size"
    for order in slot node; do
        expect_mpi_exit 0 as_user prefix/bin/muster run --engine remote --timeout 20s -H node2:2,node1:2 --map-by $order -- ./world_size
        expect_equal "$(grep -c '^rank [0-3] of 4' "$OUT")" 4 "an Open MPI program, by $order: $(cat "$OUT" "$ERR")"
    done
    expect_mpi_exit 0 as_user prefix/bin/muster run --engine remote --timeout 30s -H "$(seq -s, -f 'node%g:1' 6)" -- ./world_size
    expect_equal "$(grep -c '^rank [0-5] of 6' "$OUT")" 6 "an Open MPI program on six hosts: $(cat "$OUT" "$ERR")"
fi
if command -v mpicxx.mpich >/dev/null && mpicxx.mpich -o "$work/mpich_world" "$MUSTER_SOURCE_DIR/tests/cluster/world_size_main.cpp"; then
    chmod 755 "$work/mpich_world"
    # Debian's MPICH 4.0.2 often hangs in MPI_Finalize on several nodes, whoever started it.
    run --timeout 20s -H node2:2,node1:1 -- ./mpich_world
    expect_equal "$(grep '^rank ' "$OUT" | sort)" "rank 0 of 3 on node2
rank 1 of 3 on node2
rank 2 of 3 on node1" "an MPICH program; $(cat "$ERR")"
    # A rank that aborts waits until it is killed: its message tells of it, or where that goes elsewhere, PMI-1.
    cat >"$lib_dir/abort.cpp" <<'ABORT'
#include <mpi.h>
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) MPI_Send(&rank, 1, MPI_INT, 77, 0, MPI_COMM_WORLD);  // a rank that there is not
    MPI_Barrier(MPI_COMM_WORLD);
}
ABORT
    mpicxx.mpich -o "$work/mpich_abort" "$lib_dir/abort.cpp" && chmod 755 "$work/mpich_abort"
    run --timeout 30s -H node1:1,node2:1 -- ./mpich_abort
    expect_equal "$code" 6 "exit code of an MPICH rank that aborts: $(cat "$ERR")"
    expect_contains stderr 'rank 1 on node2 aborted the job with code'
    run --timeout 30s -H node1:1,node2:1 -- bash -c './mpich_abort 2>/dev/null'
    expect_contains stderr 'rank 1 on node2 aborted the job with code'
    [ "$code" != 0 ] && [ "$code" != 124 ] || fail "exit code of an MPICH rank that aborts without a word: $code"
fi

# A rank that is waited for in MPI is named: one that leaves its world without MPI_Finalize, one that never comes, one that comes late.
cat >"$lib_dir/leave.cpp" <<'LEAVE'
#include <mpi.h>
#include <cstdlib>
#include <unistd.h>
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) _exit(0);
    MPI_Barrier(MPI_COMM_WORLD);
    sleep(100);
}
LEAVE
for mpi in mpich openmpi; do
    command -v mpicxx.$mpi >/dev/null && mpicxx.$mpi -o "$work/leave.$mpi" "$lib_dir/leave.cpp" && chmod 755 "$work/leave.$mpi" || continue
    expect_mpi_exit 1 as_user prefix/bin/muster run --engine remote --timeout 30s -H node1:1,node2:1 -- ./leave.$mpi
    expect_contains stderr 'rank 1 on node2' 'exited with code 0 but without MPI_Finalize'
    run --timeout 30s -H node1:1,node2:1 -- bash -c "[ \$RANK = 0 ] || exit 0; exec ./leave.$mpi"
    expect_contains stderr 'rank 1 on node2' 'came up as a singleton or without MPI'
    expect_equal "$code" 125 "exit code where a rank does not come to MPI, $mpi: $(cat "$ERR")"
    run --start-timeout 5s --timeout 40s -H node1:1,node2:1 -- bash -c "[ \$RANK = 0 ] || exec sleep 100; exec ./leave.$mpi"
    expect_equal "$code" 124 "exit code where a rank comes late, $mpi"
    expect_contains stderr '1 of 2 ranks have met (initialised MPI, or connected to MASTER_PORT) after --start-timeout' 'missing: rank 1 on node2' 'rank 0 on node1' 'has met the others'
done

# In a job of PBS, over TM: no input, no output and no variables go through it. umask and limits are the script's; the key is sealed.
sed 's/^\([^ ]*\) \(node[12]\)$/\1 \2.lab.example \2/' "$CLUSTER_DIR/nodes.etc/hosts" >"$lib_dir/hosts" && cat "$lib_dir/hosts" >"$CLUSTER_DIR/nodes.etc/hosts"
muster_run="prefix/bin/muster run --engine remote --start-timeout 20s"
job "$two" "umask 027; ulimit -Sn 900; A=b; export A; echo hello | $muster_run -- bash -c '[ \$RANK != 0 ] || cat; echo \"rank \$RANK, \$LOCAL_RANK of \$LOCAL_WORLD_SIZE on \$(hostname), \$OMP_NUM_THREADS threads, umask \$(umask), \$(ulimit -n) files, \$A\"'"
expect_equal "$code" 0 "exit code in a job: $(cat "$OUT")"
expect_equal "$(said)" "hello
rank 0, 0 of 2 on node1, 1 threads, umask 0027, 900 files, b
rank 1, 1 of 2 on node1, 1 threads, umask 0027, 900 files, b
rank 2, 0 of 2 on node3, 1 threads, umask 0027, 900 files, b
rank 3, 1 of 2 on node3, 1 threads, umask 0027, 900 files, b" 'ranks in a job'
# The script runs where no rank is, and pbs_tmrsh to the first of the other hosts does not return; the job's names in a file of the user's own.
job "node1.lab.example:ncpus=1:mpiprocs=0+node2.lab.example:ncpus=2:ngpus=1:mpiprocs=1+node3:ncpus=2:ngpus=1:mpiprocs=1" \
    "sort -u \$PBS_NODEFILE >mine; PBS_NODEFILE=\$PWD/mine $muster_run -- bash -c 'sleep 0.3; echo \"rank \$RANK on \$(hostname)\"'"
expect_equal "$code $(said | paste -sd' ')" '0 rank 0 on node2 rank 1 on node3' 'ranks with mpiprocs=0'
# What muster says to do about such a job. Over mpirun, too, which knows the first host by its short name only.
for engine in remote $(command -v mpirun.openmpi >/dev/null && echo mpirun); do
    job "$two" "export NODE_RSH_FOLDER=$NODE_RSH_FOLDER OMPI_MCA_plm_rsh_agent=$work/node_rsh.py MUSTER_REMOTE_SHELL=$work/node_rsh.py
        prefix/bin/muster run --scheduler hostfile --hostfile \$PBS_NODEFILE --engine $engine --start-timeout 20s -- bash -c 'echo \"rank \$RANK on \$(hostname)\"'"
    # mpirun may warn of a process group that its child has made before it.
    expect_equal "$code $(said | grep -v 'Warning: setpgid' | paste -sd' ')" '0 rank 0 on node1 rank 1 on node1 rank 2 on node3 rank 3 on node3' "hosts of PBS as a host file, over $engine: $(cat "$OUT")"
done
"$cluster" on node3 sh -c 'rm -rf /tmp/ompi.*' # of mpirun's daemon, which TM ends with mpirun, sooner or later than it has cleaned up
# Where muster is on the first host only.
job "$two" "cp prefix/bin/muster /tmp/own; for option in --quiet --preflight; do /tmp/own run \$option --engine remote -- true; done; rm /tmp/own"
expect_contains stdout 'no agent of muster came from node3: pbs_tmrsh exited with code 127; is muster at /tmp/own there?' \
    'node3: it could not be reached: pbs_tmrsh exited with code 127; is muster at /tmp/own there?'
mkdir -p "$work/my dir" && cp "$MUSTER" "$work/my dir/muster" && chmod -R a+rX "$work/my dir"
job "$two" "'my dir/muster' run --start-timeout 20s --engine remote -- true"
expect_equal "$code" 0 "exit code of a muster with a blank in its path: $(cat "$OUT")"

# qdel: every rank has the time that --grace promises, and can say so, although PBS sends SIGTERM to the script's session. A restart of pbs_mom before does no harm.
rm -f "$work"/sit.child.*
start as_user env -u MUSTER_REMOTE_SHELL ./pbs_stand_in.py job "$work/pbs_stand_in" "$two" \
    /bin/bash -c "export PATH=$PATH; trap : TERM; $muster_run --grace 4s -- ./sit & wait \$!; wait \$!; echo code \$?"
wait_until 30 all_sit || exit 1
expect_true "$cluster" on node1 pkill -HUP -x pbs_tmrsh
no_tmrsh() { ! "$cluster" on node1 pgrep -x pbs_tmrsh >/dev/null; }
wait_until 30 no_tmrsh
expect_true as_user bash -c 'kill -USR1 "$(cat pbs_stand_in/running)"'
wait "$PID"
expect_contains stdout 'was cancelled' 'code 143'
expect_equal "$(grep -c saved "$OUT")" 4 "ranks that saved at qdel: $(cat "$OUT")"
expect_nothing_left
