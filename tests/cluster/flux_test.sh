# muster run in jobs of several hosts of Flux, where flux_stand_in.py stands in for Flux. The hosts have no ssh.
# timeout: 300
. "$(dirname "$0")/cluster_lib.sh"
start_cluster 3 0
install_muster
serve_stand_in flux_stand_in.py "$work/flux" node1 node2 node3
mkdir "$work/flux/bin" && ln -s "$work/flux_stand_in.py" "$work/flux/bin/flux"

# job NODES SCRIPT: a job of Flux; what it printed becomes $OUT and $ERR, its exit code $code.
job() {
    COMMAND="job of $1: $2"
    as_user ./flux_stand_in.py job "$work/flux" "$1" /bin/bash -c "export PATH=\$PATH:$PATH; $2" >"$OUT" 2>"$ERR" </dev/null
    code=$?
}
run="prefix/bin/muster run --start-timeout 20s"
rank_lines() { grep '^rank ' "$OUT" | sort; }

# Which engine, and what ranks find there. Standard input is rank 0's.
job 'node1:0-1: node3:0-1:' "echo hello | $run -v -- bash -c 'echo \"rank \$RANK on \$(hostname): \$(cat)\"'"
expect_equal "$code" 0 "exit code: $(cat "$ERR")"
expect_equal "$(rank_lines)" 'rank 0 on node1: hello
rank 1 on node1: 
rank 2 on node3: 
rank 3 on node3: ' 'ranks'
expect_contains stderr 'remote: muster hands it to its own agents'
job 'node1:0-1:1 node3:0-1:0' 'prefix/bin/muster hosts --json'
expect_contains stdout '"job_id": "fStand1n"' '"gpu_ids": "1"' '"gpu_ids": "0"'
job 'node1:0-1: node3:0-1:' "$run --dry-run -- true"
expect_contains stdout 'prefix/bin/muster remote' 'fluxrsh'

# GPUs by host: the first host's are not the others', whatever its variables say.
job 'node2:0-1:1,3 node1:0-1:0,2' "$run --gpu-visibility own -- bash -c 'echo \"rank \$RANK on \$(hostname) has \$CUDA_VISIBLE_DEVICES\"'"
expect_equal "$code" 0 "exit code with GPUs: $(cat "$ERR")"
expect_equal "$(rank_lines)" 'rank 0 on node2 has 1
rank 1 on node2 has 3
rank 2 on node1 has 0
rank 3 on node1 has 2' 'GPUs by host'

job 'node2:0: node1:0:' "$run -- bash -c 'echo \"rank \$RANK has \$CUDA_VISIBLE_DEVICES\"'"
expect_equal "$(rank_lines)" 'rank 0 has -1
rank 1 has -1' 'GPUs of a job that has asked for none'

# The engines of MPI libraries start their daemons the same way.
for engine in mpirun mpiexec; do
    case $engine in
        mpirun) "$cluster" run mpirun --version 2>/dev/null | grep -q 'Open MPI' ;;
        mpiexec) "$cluster" run mpiexec.hydra --version 2>/dev/null | grep -q HYDRA ;;
    esac || continue
    job 'node1:0-1: node3:0-1:' "$run --engine $engine -- bash -c 'echo \"rank \$RANK on \$(hostname)\"'"
    expect_equal "$code" 0 "exit code over $engine: $(cat "$ERR")"
    expect_equal "$(rank_lines)" 'rank 0 on node1
rank 1 on node1
rank 2 on node3
rank 3 on node3' "ranks over $engine"
done

# A rank that fails is named; a guest of someone else's instance is refused.
job 'node1:0-1: node3:0-1:' "$run -- bash -c '[ \$RANK != 2 ] || exit 7; sleep 60'"
expect_equal "$code" 7 "exit code of a failing rank"
expect_contains stderr 'rank 2 on node3 exited with code 7'
FLUX_STAND_IN_OWNER=4294967290 job 'node1:0-1: node3:0-1:' "$run --engine remote -- true"
expect_contains stderr 'flux exec is for the owner of the instance, user 4294967290'

export KILL_TIMEOUT=60 # what is asked to end has time to, however busy this machine is
# At the time limit ranks that have no handler of SIGALRM are asked to end by SIGTERM; nobody is blamed but the limit. One node and several.
saves='trap "echo rank \$RANK saves; exit 0" TERM; echo "rank $RANK runs"; while :; do sleep 0.1; done'
for nodes in 'node1:0-1: node3:0-1:' 'node2:0-1:'; do
    TIME_LIMIT=8 job "$nodes" "exec $run -- bash -c '$saves'"
    expect_equal "$code" 143 "exit code at the time limit of $nodes: $(cat "$ERR")"
    expect_contains stderr 'job fStand1n is out of time'
    ! grep -q 'was killed by' "$ERR" || fail "a rank is blamed at the time limit: $(cat "$ERR")"
    expect_equal "$(grep -c ' saves' "$OUT")" "$(grep -c ' runs' "$OUT")" "ranks that could save on $nodes"
    TIME_LIMIT=8 job "$nodes" "exec $run -- sleep 60"
    expect_equal "$code" 143 "exit code of ranks without handlers at the time limit of $nodes: $(cat "$ERR")"
    expect_contains stderr 'job fStand1n is out of time'
    ! grep -q 'was killed by' "$ERR" || fail "a rank is blamed at the time limit: $(cat "$ERR")"
done

# flux cancel.
rm -f "$work"/up.*
start as_user ./flux_stand_in.py job "$work/flux" 'node1:0-1: node3:0-1:' /bin/bash -c "export PATH=\$PATH:$PATH; exec $run -- bash -c 'touch up.\$RANK; $saves'"
all_up() { [ -e "$work/up.0" ] && [ -e "$work/up.1" ] && [ -e "$work/up.2" ] && [ -e "$work/up.3" ]; }
wait_until 30 all_up
expect_true "$cluster" run bash -c "kill -USR1 \$(cat $work/flux/running)"
expect_end 143
expect_contains stderr 'job fStand1n was cancelled'
expect_equal "$(grep -c ' saves' "$OUT")" 4 'ranks that could save when cancelled'
spared='^node[13]: file /tmp/ompi\.' # Open MPI's folder of the engine mpirun above: its orted may be killed, as the flux exec that started it has ended, while it cleans up
expect_nothing_left 20
