# timeout: 300
# Runs in jobs of PBS go on without a rank or a host that is lost, where pbs_stand_in.py stands in for PBS.
. "$(dirname "$0")/pbs_lib.sh"
start_elastic_cluster 3 2
start_pbs
two=node1.lab.example:ncpus=2:mpiprocs=2+node3:ncpus=2:mpiprocs=2
three=node1.lab.example:ncpus=2:mpiprocs=2+node2.lab.example:ncpus=2:mpiprocs=2+node3:ncpus=2:mpiprocs=2
run="prefix/bin/muster run --heartbeat 2s --timeout 60s"
steps='-- /usr/bin/python3 steps.py'
export TOLERATE=all

# A rank of the other host, and rank 0. Messages call hosts by their short names.
job "$two" "FAULTS=kill:2:5 $run --min-np 2 $steps"
expect_equal "$code" 0 "exit code without rank 2: $(cat "$OUT")"
expect_contains stdout 'rank 2 on node3 (member 2) was killed by signal 9 (SIGKILL); 3 ranks go on in place' 'generation 1: 3 ranks in place: rank 2 on node3 is gone'
expect_survivors 3 55 0 1 3
job "$two" "FAULTS=kill:0:5 $run --min-np 2 $steps"
expect_equal "$code" 0 "exit code without rank 0: $(cat "$OUT")"
expect_contains stdout 'generation 1: 3 ranks in place: rank 0 on node1 is gone'
expect_survivors 3 55 1 2 3
expect_nothing_left

# PBS kills a job that has lost a host, unless it was asked not to: only where the run could go on without one, muster says so.
for tolerate in '' job_start; do
    TOLERATE=$tolerate job "$two" "$run --min-np 2 -- true"
    expect_contains stdout 'note: PBS kills this job some minutes after it has lost a host' 'qsub -W tolerate_node_failures=all'
done
TOLERATE='' job "$two" "$run --max-restarts 1 -- true"
expect_not_contains stdout 'PBS kills this job'
job "$two" "$run --min-np 2 -- true"
expect_not_contains stdout 'PBS kills this job'

# lose NODE LINE CHUNKS OPTIONS PROGRAM: a job of which NODE loses its power once LINE is in the job's output. What started its agent never returns.
lose() {
    start as_user ./pbs_stand_in.py job "$work/pbs" "$3" /bin/bash -c "export PATH=$PATH; $run $4 -- $5"
    has_begun() { grep -q "$1" "$work/pbs/$(cat "$work/pbs/running").head.out"; }
    wait_until 60 has_begun "$2" || exit 1
    "$cluster" crash "$1"
    expect_end 0
}
# The first generation's ranks are ended by muster: they would never end by themselves.
write_program sit <<'SIT'
echo "rank $RANK of $WORLD_SIZE in $MUSTER_GENERATION on $(hostname -s)"
[ "$MUSTER_GENERATION" = 1 ] || exec sleep 1000
SIT
lose node2 '^rank 3 of 4 in 0 on node2' "$three" '--spares 1 --max-restarts 1' ./sit
expect_contains stdout '2 ranks on node2 are gone, 2 come in on node3'
expect_equal "$(grep ' in 1 on ' "$OUT" | sort | sed 's/.* //' | paste -sd' ')" 'node1 node1 node3 node3' 'hosts of generation 1'
expect_nothing_left 20
lose node3 '^member 3: rank 3 of 4 in generation 0' "$two" '--min-np 2' 'env MOST=2 /usr/bin/python3 steps.py'
expect_contains stdout 'lost ranks 2-3 on node3; 2 ranks go on in place' 'generation 1: 2 ranks in place: 2 ranks on node3 are gone'
expect_equal "$(grep -c ' ends: rank . of 2' "$OUT")" 2 "ranks that have ended well: $(cat "$OUT")"
expect_nothing_left 20
