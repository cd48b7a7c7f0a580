# muster run in jobs of several hosts of PBS, where pbs_stand_in.py stands in for PBS. Some hosts have full names in the node file, as at most sites.
# timeout: 300
. "$(dirname "$0")/pbs_lib.sh"
start_cluster 3 4
install_muster
start_pbs

two=node1.lab.example:ncpus=2:ngpus=2:mpiprocs=2+node3:ncpus=4:ngpus=2:mpiprocs=2
run="prefix/bin/muster run --start-timeout 20s"
say='echo "rank $RANK, $LOCAL_RANK of $LOCAL_WORLD_SIZE on $(hostname), $OMP_NUM_THREADS threads, umask $(umask), $(ulimit -n) files"'
rank_lines() { grep '^rank ' "$OUT" | sort; }
mpirun_here() { "$cluster" run mpirun --version 2>/dev/null | grep -q 'Open MPI'; }
hydra_here() { "$cluster" run mpiexec.hydra --version 2>/dev/null | grep -q HYDRA; }

engines=
! mpirun_here || engines=mpirun
! hydra_here || engines="$engines mpiexec"
[ -n "$engines" ] || skip 'neither Open MPI nor MPICH is here'

# Daemons stay the first process of their task; names full and short; PBS's OMP_NUM_THREADS is nobody's; umask and limits are the script's.
for engine in $engines; do
    job "$two" "umask 027; ulimit -Sn 900; $run --engine $engine -- bash -c '$say'"
    expect_equal "$code" 0 "exit code over $engine: $(cat "$OUT")"
    expect_equal "$(rank_lines)" "rank 0, 0 of 2 on node1, 1 threads, umask 0027, 900 files
rank 1, 1 of 2 on node1, 1 threads, umask 0027, 900 files
rank 2, 0 of 2 on node3, 1 threads, umask 0027, 900 files
rank 3, 1 of 2 on node3, 1 threads, umask 0027, 900 files" "ranks over $engine"

    # A part of each host, and nothing says which cores: no rank is bound, also where muster has counted the GPUs itself.
    job "node1.lab.example:ncpus=1:mpiprocs=2+node3:ncpus=1:mpiprocs=2" "$run --engine $engine -- bash -c 'echo \"rank \$RANK has \$(env -u OMP_NUM_THREADS nproc) cores\"'"
    expect_equal "$code" 0 "exit code over $engine on a part of each host: $(cat "$OUT")"
    expect_equal "$(rank_lines | sort -u -k 4)" "rank 0 has $(nproc) cores" "cores over $engine of ranks on a part of each host"
    [ "$(nproc)" = 1 ] || expect_contains stdout 'the job has 1 of the' 'and nothing says which' '(and so 1 more host)'

    # A hook of PBS's names each host's own GPUs to the script and to each task. Hydra starts nothing by TM on a first host with a short name.
    GPU_HOOK=1 job "node3:ncpus=2:ngpus=2:mpiprocs=2+node1.lab.example:ncpus=2:ngpus=2:mpiprocs=2" "$run --engine $engine --gpu-visibility own -- bash -c 'echo \"rank \$RANK has \$CUDA_VISIBLE_DEVICES\"'"
    expect_equal "$code" 0 "exit code over $engine with GPUs of a hook: $(cat "$OUT")"
    expect_equal "$(rank_lines)" "rank 0 has GPU-node3-a
rank 1 has GPU-node3-b
rank 2 has GPU-node1-a
rank 3 has GPU-node1-b" "GPUs over $engine that a hook names"

    # A list of hosts that the user has made of PBS's own.
    job "node3:ncpus=2:mpiprocs=1+node1.lab.example:ncpus=2:mpiprocs=1+node2.lab.example:ncpus=2:mpiprocs=1" \
        "sort -u \$PBS_NODEFILE >mine; PBS_NODEFILE=\$PWD/mine $run --engine $engine -- bash -c 'echo \"rank \$RANK on \$(hostname)\"'"
    expect_equal "$code" 0 "exit code over $engine with an own list: $(cat "$OUT")"
    expect_equal "$(rank_lines)" "rank 0 on node3
rank 1 on node1
rank 2 on node2" "ranks over $engine with an own list"

    # muster in a folder whose name has a blank.
    mkdir -p "$work/my dir" && cp "$MUSTER" "$work/my dir/muster" && chmod -R a+rX "$work/my dir"
    job "$two" "'my dir/muster' run --start-timeout 20s --engine $engine -- true"
    expect_equal "$code" 0 "exit code over $engine of a muster with a blank in its path: $(cat "$OUT")"

    # The script runs where no rank is, and pbs_tmrsh to the first of the other hosts does not return.
    job "node1.lab.example:ncpus=1:mpiprocs=0+node2.lab.example:ncpus=2:ngpus=1:mpiprocs=1+node3:ncpus=2:ngpus=1:mpiprocs=1" \
        "$run --engine $engine -- bash -c 'sleep 0.3; echo \"rank \$RANK on \$(hostname)\"'"
    expect_equal "$code" 0 "exit code over $engine with mpiprocs=0: $(cat "$OUT")"
    expect_equal "$(rank_lines)" "rank 0 on node2
rank 1 on node3" "ranks over $engine with mpiprocs=0"
    expect_not_contains stdout 'still runs' 'waiting for'
done

# qdel: every rank has the time that --grace promises, and can say so.
write_program save <<'SAVE'
trap 'sleep 3 & wait; echo "rank $RANK saved"; echo saved >"$0.saved.$RANK"; exit 0' TERM
echo $$ >"$0.pid.$RANK"
while :; do sleep 1000 & wait $!; done
SAVE
all_wait() { [ "$(ls "$work" | grep -c "^save\.$1\.pid\.")" = 4 ]; }
for engine in $engines; do
    cp "$work/save" "$work/save.$engine"
    start as_user ./pbs_stand_in.py job "$work/pbs" "$two" \
        /bin/bash -c "export PATH=$PATH; trap : TERM; $run --engine $engine --grace 6s -- ./save.$engine & wait \$!; wait \$!"
    wait_until 30 all_wait "$engine" || exit 1
    expect_true as_user bash -c 'kill -USR1 "$(cat pbs/running)"'
    wait "$PID"
    expect_equal "$(ls "$work" | grep -c "^save\.$engine\.saved\.")" 4 "ranks over $engine that saved at qdel; $(cat "$OUT")"
    expect_equal "$(rank_lines | grep -c saved)" 4 "ranks over $engine that could still print; $(cat "$OUT")"
    expect_contains stdout 'was cancelled'
    expect_nothing_left
done

# ranks NAME ENGINE OPTION...: starts a job whose ranks wait, each with a child in a session of its own that SIGTERM does not end.
write_program orphan <<'ORPHAN'
setsid bash -c 'trap "" TERM; echo $$ >"$0"; sleep 1000' "$0.child.$RANK" &
echo $PPID >"$0.watcher.$RANK"
while :; do sleep 1000 & wait $!; done
ORPHAN
all_have_children() { [ "$(ls "$work" | grep -c "^$name\.child\.")" = 4 ]; }
ranks() {
    name=$1
    cp "$work/orphan" "$work/$name"
    start as_user ./pbs_stand_in.py job "$work/pbs" "$two" \
        /bin/bash -c "export PATH=$PATH; trap : TERM; $run --engine ${*:2} -- ./$name; echo code \$?"
    wait_until 30 all_have_children || exit 1
}
# The launcher is killed, or both of its processes. Engines then kill what they have started at once, and TM the sessions. Files of a killed mpirun stay,
# and those of a run whose two processes are killed.
spared='^node1: file /(dev/shm/muster-|tmp/(ompi|prterun)\.)'
for engine in $engines; do
    for victims in launcher both; do
        ranks "$engine.$victims" "$engine"
        guardian=$("$cluster" on node1 pgrep -o -x muster)
        launcher=$("$cluster" on node1 pgrep -P "$guardian" -x muster)
        [ "$victims" = launcher ] && guardian=
        "$cluster" on node1 kill -9 $guardian $launcher 2>/dev/null # the second may end because of the first
        wait "$PID"
        expect_contains stdout 'code 137'
        expect_nothing_left 20
    done

    # A watcher is killed, as it or as its guard: the engine then kills the guards of all the others.
    for whose in watcher guard; do
        ranks "$engine.$whose" "$engine" --grace 1s
        victim=$(cat "$work/$name.watcher.3")
        [ "$whose" = watcher ] || victim=$("$cluster" on node3 ps -o ppid= -p "$victim" | tr -d ' ')
        expect_true "$cluster" on node3 kill -9 "$victim"
        wait "$PID"
        expect_contains stdout 'the watcher of rank 3 on node3 was killed' 'code 125'
        expect_nothing_left 20
    done
done

# A watcher is stopped: the engine ends its guard in the end, and it then goes on to end its rank.
ranks stopped "${engines##* }" --grace 1s --heartbeat 1s
expect_true "$cluster" on node3 kill -STOP "$(cat "$work/stopped.watcher.3")"
wait "$PID"
expect_contains stdout 'the watcher of rank 3 on node3 has not answered for' 'code 125'
expect_nothing_left 20

# The first host's pbs_mom is started anew: what started the engine's daemons has lost them and ends, and the run goes on.
no_tmrsh() { ! "$cluster" on node1 pgrep -x pbs_tmrsh >/dev/null; }
for engine in $engines; do
    ranks "tmrsh.$engine" "$engine" --grace 1s
    expect_true "$cluster" on node1 pkill -HUP -x pbs_tmrsh
    wait_until 30 no_tmrsh || exit 1
    # An engine that takes it for the end of its daemon ends its ranks within this time.
    sleep 2
    expect_true kill -0 "$PID"
    expect_true as_user bash -c 'kill -USR1 "$(cat pbs/running)"'
    wait "$PID"
    expect_contains stdout 'err not connected (17002)' 'was cancelled' 'code 143'
    expect_not_contains stdout 'ended its ranks'
    expect_nothing_left 20
done

# Before the end of the job's time the program is told, also where its results are copied beside it, by a program of Open MPI.
if [ -x "$MUSTER_BIN/muster-stage" ] && mpirun_here; then
    cp "$MUSTER_BIN/muster-stage" "$work/prefix/bin/" && chmod 755 "$work/prefix/bin/muster-stage" || exit 1
    write_program noticed <<'NOTICED'
trap 'echo told >"$MUSTER_SYNC_DIR/told.$RANK"; exit 0' USR1
while :; do sleep 1000 & wait $!; done
NOTICED
    WALLTIME=00:01:00 job "$two" "export MUSTER_SYNC_DIR=/tmp/sync; mkdir out; prefix/bin/muster run --ranks-per-node 1 -- mkdir -p /tmp/sync
        $run --engine mpirun --timeout 40s --signal-before-end USR1@50s -- prefix/bin/muster stage out --every 600s /tmp/sync out -- ./noticed"
    expect_equal "$code" 0 "exit code of ranks that were told: $(cat "$OUT")"
    expect_equal "$(cd "$work/out" && find . -name 'told.*' | sed 's,.*/,,' | sort | tr '\n' ' ')" 'told.0 told.1 told.2 told.3 ' 'who was told'
    for node in node1 node3; do "$cluster" on "$node" rm -rf /tmp/sync; done
fi

# A scaling study over the job's hosts, killed in the middle and gone on with in another job.
[ -x "$MUSTER_BIN/muster-bench" ] || exit 0
cp "$MUSTER_BIN/muster-bench" "$work/prefix/bin/" && chmod 755 "$work/prefix/bin/muster-bench" || exit 1
write_program train <<'TRAIN'
echo "$WORLD_SIZE $1 $2" >>"starts.$RANK"
[ ! -e hang ] || [ "$WORLD_SIZE $2" != '4 1' ] || { : >"hangs.$RANK"; exec sleep infinity; }
echo "muster-metric: step_s $((8 / WORLD_SIZE + RANK)) s"
TRAIN
scale="prefix/bin/muster-bench scale --ranks 1,2,4 --repeats 2 --warmup 0 --time-metric step_s --take step_s=last,min -o study -- ./train {nodes} {repeat}"
: >"$work/hang"
start as_user ./pbs_stand_in.py job "$work/pbs" "$two" /bin/bash -c "export PATH=$PATH; exec $scale"
all_hang() { [ -e "$work/hangs.0" ] && [ -e "$work/hangs.3" ]; }
wait_until 60 all_hang || exit 1
expect_true "$cluster" on node1 pkill -KILL -x muster-bench
wait "$PID"
expect_nothing_left 20
rm "$work/hang"
job "$two" "$scale"
expect_equal "$code" 0 "exit code of the study: $(cat "$OUT" "$ERR")"
expect_matches stdout '^ranks +nodes +step_s' '^ *2 +1 +4\.00 ' '^ *4 +2 +2\.00 .* 4\.00 +100%'
expect_true python3 - "$work/study/results.json" <<'PY'
import json, sys
study = json.load(open(sys.argv[1]))
assert study["scheduler"] == "pbs", study["scheduler"]
last = study["runs"][-1]
assert last["nodes"] == 2 and [host.split(".")[0] for host in last["hosts"]] == ["node1", "node3"], last
assert study["variables"]["PBS_JOBID"]
PY
