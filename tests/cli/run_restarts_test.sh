# timeout: 240
# --max-restarts: what is left of a failed generation ends, and the next one starts whole; which failures that follows, and what ends it.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
python=/usr/bin/python3
run=("$MUSTER" run -q -n 3)

# ------------------------------------------------------------------------------------------------ generations

cat >prog.sh <<'SH'
echo "rank $RANK of generation $MUSTER_GENERATION: restart $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS"
echo "$MUSTER_NSPACE $MASTER_PORT $TORCHELASTIC_RUN_ID" >>worlds
[ "$RANK" != 1 ] || [ "$MUSTER_GENERATION" -ge 2 ] || exit $((3 + MUSTER_GENERATION))
[ "$MUSTER_GENERATION" -ge 2 ] || exec sleep 100
SH
expect_exit 0 "$MUSTER" run -n 3 --max-restarts 3 --output-dir out -- sh prog.sh
expect_equal "$(sort "$OUT" | sed -n 's/rank 1 of //p')" "$(printf '%s\n' 'generation 0: restart 0 of 3' 'generation 1: restart 1 of 3' 'generation 2: restart 2 of 3')"
expect_contains stderr "muster: error: generation 0: rank 1 on $(hostname) (member 1) exited with code 3" \
    "muster: error: generation 1: rank 1 on $(hostname) (member 4) exited with code 4" "generation 1 begins in " "(restart 2 of 3)"
expect_equal "$(sort -u worlds | wc -l)" 3 "worlds: each generation has its own, and its ranks share it"
for column in 1 2 3; do expect_equal "$(cut -d' ' -f$column worlds | sort -u | wc -l)" 3 "names or ports"; done
expect_contains out/rank.01/stdout "rank 1 of generation 0"
expect_contains out/generation.1/rank.01/stdout "rank 1 of generation 1"
expect_contains out/generation.2/rank.01/stdout "rank 1 of generation 2"
expect_equal "$($python -c '
import json
run = json.load(open("out/run.json"))
took = run["generations"][2]["seconds"]
assert 0 <= took["first_output"] < took["lived"] + 1 and took["first_metric"] == -1, took
print(run["generation"], run["exit"]["code"], run["places"][1].split(", ")[-1])
for g in run["generations"]:
    took = g["seconds"]
    assert all(took[k] >= 0 for k in ("start", "lived", "ending")), took
    print(g["number"], g["kind"], g["code"], g["rank"], g["member"], g["members"], g["host"] != "", took["waited"] > 0)
')" '2 0 member 7
0 rank 3 1 1 [0, 1, 2] True True
1 rank 4 1 4 [3, 4, 5] True True
2 last 0 -1 -1 [6, 7, 8] False False'
if has_part jobs; then
    mkdir muster-runs stand-ins && cp -r out muster-runs/77
    for name in squeue scontrol; do printf '#!/bin/sh\n' >stand-ins/$name && chmod +x stand-ins/$name; done # a scheduler that has forgotten the job
    expect_exit 0 env PATH="$PWD/stand-ins:$PATH" "$MUSTER" show 77
    expect_matches stdout 'generation 0 +3 ranks: started in .*, lived .*; .*rank 1 on .* \(member 1\) exited with code 3' 'generation 1 .*\(member 4\)' 'generation 2 '
fi
expect_exit 0 "$MUSTER" run -q -n 2 --tag-output --max-restarts 1 -- sh -c 'echo rank; [ $RANK.$MUSTER_GENERATION != 0.0 ]'
expect_contains stdout "[$(hostname):0 g0] rank" "[$(hostname):0 g1] rank" "[$(hostname):1 g1] rank"
# A later run there leaves nothing of this one.
expect_exit 0 "$MUSTER" run -q -n 1 --output-dir out -- true
[ ! -e out/generation.1 ] && [ ! -e out/generation.2 ] || fail "folders of former generations are left"
$python -c 'import json; run = json.load(open("out/run.json")); assert "generation" not in run and "generations" not in run' || fail "a run that cannot start again names generations"

# A rank that stays stopped is lost, or the program that its script waits for; one with a stopped child besides works.
cat >stopped.sh <<'SH'
[ "$MUSTER_GENERATION" = 0 ] || exit 0
if [ "$RANK" = 1 ]; then
    sh -c 'kill -STOP $$; :'
    exit 9
fi
sleep 100 &
kill -STOP $!
exec sleep 100
SH
expect_exit 0 "$MUSTER" run -n 2 --max-restarts 1 -- sh stopped.sh
expect_contains stderr "rank 1 on $(hostname) (member 1) has been stopped (SIGSTOP, or a frozen cgroup) for more than 5 s: killing it"
expect_not_contains stderr "rank 0 on $(hostname) (member 0) has been stopped"
expect_nothing_left

# The first failure ends any other run, in the words of always.
expect_exit 3 "$MUSTER" run -n 3 -- sh -c '[ $RANK = 1 ] && exit 3; exec sleep 100'
expect_contains stderr "muster: error: rank 1 on $(hostname) exited with code 3"
expect_not_contains stderr generation member
expect_exit 0 "$MUSTER" run -q -n 1 -- sh -c 'echo $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS ${MUSTER_GENERATION-unset}'
expect_equal "$(cat "$OUT")" "0 0 unset"
# Not even as a rank of one that can.
expect_exit 0 "$MUSTER" run -q -n 1 --max-restarts 5 -- "$MUSTER" run -q -n 1 --nested --max-restarts 0 -- sh -c 'echo $TORCHELASTIC_MAX_RESTARTS ${MUSTER_GENERATION-unset}'
expect_equal "$(cat "$OUT")" "0 unset"

# torchrun's words.
expect_exit 0 "${run[@]}" --max-restarts=1 --monitor-interval 0.1 -- sh -c '[ $MUSTER_GENERATION = 0 ] && kill -9 $$; exit 0'

# ------------------------------------------------------------------------------------------------ programs

if [ -x "$MUSTER_BIN/mpi_fault" ]; then
    for fault in kill exit3 abort42 exit0; do
        expect_exit 0 "${run[@]}" --tag-output --max-restarts 1 -- sh -c '[ $MUSTER_GENERATION = 0 ] && exec "$0" '$fault' 1; exec "$0" none' "$MUSTER_BIN/mpi_fault"
        expect_equal "$(sed -n 's/.* g1\] //p' "$OUT" | sort | paste -sd,)" 'rank 0 of 3,rank 1 of 3,rank 2 of 3' 'the ranks of the second world'
        expect_nothing_left
    done
fi
if $python -c 'import torch.distributed as d; assert d.is_available()' 2>/dev/null; then
    cat >train.py <<'PY'
import os, signal, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, life = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
step, total = torch.load("snapshot") if os.path.exists("snapshot") else (0, 0)
while step < 6:
    if step == 3 and life == 0 and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    one = torch.tensor([float(step)])
    dist.all_reduce(one)
    step, total = step + 1, total + int(one)
    if rank == 0:
        torch.save((step, total), "snapshot.new")
        os.replace("snapshot.new", "snapshot")
    dist.barrier()
print(f"rank {rank} life {life} total {total}", flush=True)
PY
    expect_exit 0 "${run[@]}" --timeout 2min --max-restarts 1 -- $python train.py
    expect_equal "$(sort "$OUT")" "$(printf 'rank %d life 1 total 45\n' 0 1 2)" "a DDP program that goes on from its snapshot"
    expect_nothing_left
fi

# ------------------------------------------------------------------------------------------------ what ends it

# fails: each generation with a code of its own. The code of the last one is the run's.
fails='[ $RANK = 0 ] && exit $((10 + MUSTER_GENERATION)); exec sleep 100'
expect_exit 11 "${run[@]}" --max-restarts 1 -- sh -c "$fails"
expect_contains stderr "no restart after generation 1: this was restart 1 of 1 (--max-restarts)"
expect_exit 7 "${run[@]}" --max-restarts 9 -- sh -c '[ $RANK = 2 ] && exit 7; exec sleep 100'
expect_matches stderr "no restart after generation 2: 3 failures alike within .*\(exit code 7\)"
expect_exit 11 "${run[@]}" --max-restarts 9 --restart-on 10,KILL -- sh -c "$fails"
expect_contains stderr "no restart after generation 1: --restart-on does not name exit code 11"
# A rank that fails because another has left it is not blamed, though it ends first.
cat >left.sh <<'SH'
[ "$MUSTER_GENERATION" = 0 ] || exit 0
case $RANK in
0) echo $$ >pid.new && mv pid.new pid
   echo "rank 1 (node1) has ended the exchange and will not take part" >&2
   exit 1 ;;
1) until [ -e pid ]; do sleep 0.01; done
   while kill -0 "$(cat pid)" 2>/dev/null; do sleep 0.01; done
   exit 3 ;;
*) exec sleep 100 ;;
esac
SH
expect_exit 0 "${run[@]}" --max-restarts 1 --restart-on 3 -- sh left.sh
expect_contains stderr "error: generation 0: rank 1 on $(hostname) (member 1) exited with code 3"
expect_exit 12 "${run[@]}" --max-restarts 9 --must-grow log --restart-on 10,11 -- sh -c "[ \$MUSTER_GENERATION = 1 ] || echo >>log; $fails"
expect_contains stderr "--restart-on does not name exit code 12"
rm log
expect_exit 11 "${run[@]}" --max-restarts 9 --must-grow log -- sh -c "$fails"
expect_contains stderr "no restart after generation 1: generations 0 and 1 came no further: log has not grown (--must-grow)"
expect_exit 12 "${run[@]}" --max-restarts 9 -- sh -c "[ \$MUSTER_GENERATION != 0 ] || echo 'muster-metric: loss 1'; $fails"
expect_contains stderr "no restart after generation 2: generations 1 and 2 came no further: no line with muster-metric: was written"
# A checkpoint of a later step in each start is progress; the same step again is none.
cat >saves.py <<'PY'
import sys
from muster.checkpoint import Checkpoint
checkpoint = Checkpoint("steps")
first = (checkpoint.load() or (0, None))[0] if sys.argv[1] == "goes_on" else 0
for step in range(first + 1, first + 11):
    checkpoint.save(step, None)
    if step == 45:
        sys.exit(0)
sys.exit(3)
PY
expect_exit 0 "$MUSTER" run -q -n 1 --max-restarts 9 -- python3 saves.py goes_on
expect_equal "$(sed -n 's/^muster-checkpoint: //p' "$ERR" | paste -sd,)" 1,11,21,31,41 'the first steps that were saved'
rm -r steps
expect_exit 3 "$MUSTER" run -q -n 1 --max-restarts 9 -- python3 saves.py begins_anew
expect_matches stderr "no restart after generation 3: 3 failures alike within .*\(exit code 3\)"
# A folder of checkpoints: a new file is progress, one that is being written is none.
mkdir saved && touch saved/step-1
expect_exit 14 "${run[@]}" --max-restarts 4 --must-grow saved -- sh -c "[ \$RANK != 0 ] || { sleep 0.02; echo >saved/step-2.\$MUSTER_GENERATION; }; $fails"
expect_contains stderr "no restart after generation 4: this was restart 4 of 4 (--max-restarts)"
expect_exit 11 "${run[@]}" --max-restarts 4 --must-grow saved -- sh -c "sleep 0.02; echo >saved/step-9.new; $fails"
expect_contains stderr "generations 0 and 1 came no further: saved has not grown (--must-grow)"
# Failures alike that come from outside are no sign against the program.
expect_exit 137 "${run[@]}" --max-restarts 3 -- sh -c '[ $RANK = 2 ] && kill -9 $$; exec sleep 100'
expect_contains stderr "no restart after generation 3: this was restart 3 of 3 (--max-restarts)"
# What was killed from outside may have come as far as it could.
expect_exit 0 "${run[@]}" --max-restarts 9 -- sh -c '[ $MUSTER_GENERATION != 0 ] || echo "muster-metric: loss 1"; [ $RANK = 0 ] || exit 0
case $MUSTER_GENERATION in 0 | 1 | 3) kill -9 $$ ;; 2) kill -TERM $$ ;; 4) exit 3 ;; esac'

# Nothing that another generation would mend.
expect_exit 124 "${run[@]}" --max-restarts 9 --timeout 0.3s -- sleep 100
expect_exit 124 "${run[@]}" --max-restarts 9 --idle-timeout 0.3s -- sleep 100
expect_exit 127 "${run[@]}" --max-restarts 9 -- /no/such/program
expect_exit 2 "${run[@]}" --max-restarts 9 --restart-on nothing -- true
expect_contains stderr "'nothing' is no cause of a failure; write an exit code from 1 to 255, a signal (KILL) or node"
for option in "--restart-on 3" "--must-grow x"; do
    expect_exit 2 "${run[@]}" $option -- true
    expect_contains stderr "${option% *} is for runs that start again after a failure: give --max-restarts N as well"
done
expect_exit 2 "${run[@]}" --max-restarts 1 --min-np 4 -- true
expect_exit 125 env CUDA_VISIBLE_DEVICES= "$MUSTER" run -n 900 --max-restarts 1 --spares 1 -- true
expect_contains stderr 'too few for 900 ranks and the idle ones; use fewer, or --slots-per-node 901'
expect_exit 125 "$MUSTER" run -H a:2,b:2 -n 4 --max-restarts 1 --spares 1 --dry-run -- true
expect_contains stderr 'without b, which --spares 1 keeps idle: cannot map 4 ranks: the list of hosts has 2 slots; use -n 2'
expect_exit 2 "${run[@]}" --max-restarts 1 --keep-state -- true
expect_contains stderr '--keep-state: its value is missing; write --keep-state node'
expect_exit 2 "${run[@]}" --max-restarts 1 --engine mpirun -- true
expect_contains stderr 'the engine mpirun cannot start ranks again'
expect_exit 0 "${run[@]}" --max-restarts 9 --success-file done -- sh -c 'exit $((MUSTER_GENERATION == 0))'
[ -e done ] || fail "no success file"

# Whoever asks a run to end means all of it, also between two generations.
for signal in INT:130 TERM:143; do
    start "$MUSTER" run -n 1 --max-restarts 99 -- sh -c 'exit $((MUSTER_GENERATION % 5 + 1))'
    wait_until 20 grep -q 'generation 4 begins' "$ERR"
    kill -"${signal%:*}" $PID
    expect_end "${signal#*:}"
    expect_contains stderr "muster: got SIG${signal%:*} between two generations"
    expect_nothing_left
    start "$MUSTER" run -n 2 --max-restarts 99 -- sh -c '[ $MUSTER_GENERATION = 0 ] && exit 1; echo ready; exec sleep 100'
    wait_until 20 out_lines 2
    kill -"${signal%:*}" $PID
    expect_end "${signal#*:}"
    expect_not_contains stderr 'generation 2'
    expect_nothing_left
done

# A launcher or guardian that is killed ends the run.
for victim in guardian launcher; do
    start "$MUSTER" run -n 2 --max-restarts 99 -- sh -c '[ $MUSTER_GENERATION = 0 ] && exit 1; echo ready; exec sleep 100'
    wait_until 20 out_lines 2
    pid=$PID
    [ $victim = guardian ] || pid=$(ps -o pid= --ppid $PID | head -n 1)
    kill -9 $pid
    expect_end 137
    expect_nothing_left
done
