# timeout: 240
# Ranks that take the places of lost ones in an elastic program, and what ends such a run.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/elastic.sh"

# ------------------------------------------------------------------------------------------------ who takes their places

# A rank that is started in place of a lost one comes last, and gets the state of the others.
spares=("$MUSTER" run -n 4 --slots-per-node 6 --timeout 100s --min-np 2)
expect_exit 0 env FAULTS='kill:0:5' UNTIL=4 "${spares[@]}" --spares 2 --output-dir out -- $python "$steps"
expect_contains stdout "member 1: rank 0 of 3 in generation 1 from step 5" "member 4: rank 3 of 4 in generation 2 from step "
for member in 1:0 2:1 3:2 4:3; do expect_matches stdout "member ${member%:*} ends: rank ${member#*:} of 4, total "; done
expect_equal "$(sed -n 's/.* ends: .*total //p' "$OUT" | sort -u | wc -l)" 1 "states at the end"
expect_contains stderr "muster: note: generation 2: 4 ranks in place: 1 comes in on $host"
expect_contains out/spare.00/stdout "member 4: rank 3 of 4 in generation 2"
expect_nothing_left
# One that is lost, too; and one that never comes.
expect_exit 0 env FAULTS='kill:3:5' KILL_ON_RESET='2:1' UNTIL=4 "${spares[@]}" --spares 2 -q -- $python "$steps"
expect_equal "$(grep -c ' ends: rank . of 4' "$OUT")" 4 "ranks that have ended well"
expect_exit 0 env FAULTS='kill:2:5' STEPS=200 "${spares[@]}" --spares 1 -- sh -c 'mkdir rank.$RANK 2>/dev/null || exit 5; exec "$@"' - $python "$steps"
expect_survivors 3 20100 0 1 3

# ------------------------------------------------------------------------------------------------ what ends it

expect_exit 137 env FAULTS='kill:0:2 kill:1:4 kill:2:6' "${run[@]}" -- $python "$steps"
expect_contains stderr "the others cannot go on in place: 1 rank left, 2 needed (--min-np)" "muster: error: generation 2: "
expect_nothing_left
# A restart follows where one is allowed; without --min-np nobody asked to go on in place.
expect_exit 0 env FAULTS='kill:1:2' "$MUSTER" run -n 3 --slots-per-node 3 --timeout 100s --max-restarts 1 -- $python "$steps"
expect_contains stderr "generation 1 begins in " "(restart 1 of 1)"
expect_not_contains stderr '--min-np' 'the launcher ends the run'
expect_exit 0 env FAULTS='kill:0:2 kill:1:4 kill:2:6' "${run[@]}" --max-restarts 1 -- $python "$steps"
expect_contains stderr "generation 3 begins in " "(restart 1 of 1)"
expect_survivors 4 55 4 5 6 7
# What was measured before a rank was lost counts as progress of its start: no two of these came no further.
expect_exit 0 env FAULTS='kill:0:2 exit:1:4:3 kill:4:2 exit:5:4:4 kill:8:2 exit:9:4:5' "$MUSTER" run -n 4 --slots-per-node 4 --timeout 100s --min-np 3 --max-restarts 3 -- \
    sh -c 'echo "muster-metric: begun 1 s"; exec "$@"' - $python "$steps"
expect_survivors 4 55 12 13 14 15
# Programs that do not say that they can: the first failure ends them, or starts all again.
expect_exit 3 "${run[@]}" -- sh -c '[ $RANK = 1 ] && exit 3; exec sleep 100'
expect_contains stderr "muster: error: generation 0: rank 1 on $host (member 1) exited with code 3" \
    "note: generation 0: --min-np: no rank had begun elastic.run, so this failure ends the run; --max-restarts N starts it again"
expect_exit 0 "${run[@]}" --max-restarts 1 -- sh -c '[ $RANK.$MUSTER_GENERATION = 1.0 ] && exit 3; [ $MUSTER_GENERATION = 1 ] || exec sleep 100'
expect_not_contains stderr 'elastic.run'
expect_nothing_left
# A program that has announced that it goes on, and does not: who is lost is to blame, not those that end because of it.
cat >unhandled.py <<'PY'
import os, signal
import numpy as np, muster
from muster import arrays, elastic, world
muster.init()
assert elastic.announce()
for step in range(1000 if os.environ["MUSTER_GENERATION"] == "0" else 10):
    if step == 20 and world.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    arrays.allreduce(np.ones(1), "x")
PY
expect_exit 137 "${run[@]}" --output-dir unhandled -- $python unhandled.py
expect_contains stderr "muster: error: generation 0: rank 1 on $host (member 1) was killed by signal 9 (SIGKILL)"
expect_equal "$($python -c 'import json; end = json.load(open("unhandled/run.json"))["exit"]; print(end["code"], end["rank"])')" '137 1' 'code and rank'
expect_exit 0 "${run[@]}" --max-restarts 1 --restart-on KILL --output-dir unhandled -- $python unhandled.py
expect_equal "$($python -c 'import json; first = json.load(open("unhandled/run.json"))["generations"][0]; print(first["code"], first["rank"], first["member"])')" \
    '137 1 1' 'code, rank and member of the first generation'
expect_nothing_left

# Whoever asks the run to end means all of it, also while ranks wait for a generation.
for signal in INT:130 TERM:143; do
    start env FAULTS='stop:2:5 kill:0:5' STEPS=1000000 MUSTER_COMM_DEADLINE=50s "${run[@]}" -- $python "$steps"
    wait_until 20 grep -q 'go on in place' "$ERR"
    kill -"${signal%:*}" $PID
    expect_end "${signal#*:}"
    expect_nothing_left
done
# The table of ranks has the numbers of the present generation, and those that are in it.
touch gate
start env FAULTS=kill:1:5 GATE="$PWD/gate" STEPS=1000000 "${run[@]}" -- $python "$steps"
wait_until 20 eval '[ "$(grep -c " in generation 1 " "$OUT")" = 3 ]'
kill -USR2 $PID
for rank in 0:0 1:2 2:3; do
    pid=$(sed -n "s/^member ${rank#*:} has pid \([0-9]*\)$/\1/p" "$OUT" | head -n 1)
    wait_until 20 grep -q "^muster: generation 1: rank ${rank%:*} on $host, pid $pid: " "$ERR"
done
expect_equal "$(grep -c "^muster: generation 1: rank . on" "$ERR")" 3 "lines of the table"
kill $PID
expect_end 143
# A launcher that is killed leaves nothing.
start env FAULTS=kill:2:5 STEPS=1000000 "${run[@]}" -- $python "$steps"
wait_until 20 grep -q 'generation 1' "$OUT"
kill -9 "$(ps -o pid= --ppid $PID | head -n 1)"
expect_end 137
expect_nothing_left
