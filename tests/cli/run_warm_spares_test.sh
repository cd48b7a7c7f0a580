# timeout: 240
# --warm-spares: processes that wait in init() take the places of lost ranks at once; what becomes of those that wait in vain.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || skip "NumPy is not installed"
[ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ] || skip "the Python package is not built"
steps="$MUSTER_SOURCE_DIR/tests/cli/programs/elastic_steps.py"
host=$(hostname)
export GATE=$PWD/gate
warm=("$MUSTER" run --verbose -n 4 --slots-per-node 6 --timeout 100s --blacklist-cooldown-range 1,4 --warm-spares)
run=("${warm[@]}" --min-np 2)
waits() { grep -q "^muster: generation 0: spare $1 on $host.* waits for the place of a lost rank" "$ERR"; }

# begin SPARE... COMMAND: starts it, and lets ranks fail once these spares wait.
begin() {
    rm -f gate
    start "${@:2}"
    for spare in $1; do wait_until 60 waits $spare; done
}

# ------------------------------------------------------------------------------------------------ who takes their places

begin 0 env FAULTS='kill:2:5' "${warm[@]}" --min-np 4 --spares 1 --tag-output --output-dir out -- $python "$steps"
kill -USR2 $PID
wait_until 20 grep -q "^muster: generation 0: spare 0 on $host, pid [0-9]*: .*; waits for the place of a lost rank" "$ERR"
pid=$(sed -n "s/^muster: generation 0: spare 0 on $host, pid \([0-9]*\):.*/\1/p" "$ERR")
touch gate
expect_end 0
expect_contains stderr "muster: note: generation 0: rank 2 on $host (member 2) was killed by signal 9 (SIGKILL); 3 ranks go on in place" \
    "muster: note: generation 1: 4 ranks in place: rank 2 on $host is gone, 1 comes in on $host; spare 0 is rank 3"
expect_contains stdout "[$host:3 g1] member 4: rank 3 of 4 in generation 1 from step 5, RANK 3, HOROVOD_SIZE 4" "[$host:3 g1] member 4 has pid $pid"
expect_contains out/spare.00/stdout "member 4 ends: rank 3 of 4, total 55"
expect_equal "$(/usr/bin/python3 -c '
import json
run = json.load(open("out/run.json"))
print(run["ranks"], [g["members"] for g in run["generations"]])
for one in run["spares"]: print(one["spare"], one["place"].split(",")[0], one["generation"], one["rank"], one["member"], one["end"])
')" "4 [[0, 1, 2, 3], [0, 1, 3, 4]]
0 spare 0 on $host 1 3 4 "
for choice in '' '--rank 3'; do # what the spare printed is the rank's
    has_part jobs || break
    env PATH=/nowhere "$MUSTER" logs 1 --output-dir out $choice | grep -qx '\[3\] member 4 ends: rank 3 of 4, total 55' ||
        fail "muster logs $choice shows no line of the spare that became rank 3"
done
sed -i 's/^\[[^]]*\] //' "$OUT"
expect_survivors 4 55 0 1 3 4

begin "0 1" env FAULTS='kill:0:5 kill:3:5' "${run[@]}" --spares 2 -- $python "$steps" # two at once, rank 0 among them
touch gate
expect_end 0
expect_survivors 4 55 1 2 4 5
begin 0 env FAULTS='kill:1:3 kill:2:7' "${run[@]}" --spares 1 -- $python "$steps" # more than there are spares
touch gate
expect_end 0
expect_survivors 3 55 0 3 4
begin 0 env FAULTS='exit:1:4:0' "${run[@]}" --spares 1 -- $python "$steps" # a rank that departs leaves no place
touch gate
expect_end 0
expect_survivors 3 55 0 2 3

# ------------------------------------------------------------------------------------------------ spares that end

# While it waits: another one takes its place, and then that of a rank.
begin 0 env FAULTS='kill:2:5' "${run[@]}" --spares 1 --output-dir out -- $python "$steps"
kill -USR2 $PID
wait_until 20 grep -q "spare 0 on $host, pid" "$ERR"
kill -9 "$(sed -n "s/^muster: generation 0: spare 0 on $host, pid \([0-9]*\):.*/\1/p" "$ERR")"
wait_until 60 waits 1
expect_contains stderr "muster: note: generation 0: spare 0 on $host was killed by signal 9 (SIGKILL); another takes its place in 1 s"
touch gate
expect_end 0
expect_contains stderr "spare 1 is rank 3"
expect_survivors 4 55 0 1 3 4
expect_equal "$(/usr/bin/python3 -c '
import json
for one in json.load(open("out/run.json"))["spares"]: print(one["spare"], one["generation"], one["end"])
')" "0 None was killed by signal 9 (SIGKILL)
1 1 "
# At the moment when it is taken in: the next spare, or one rank less.
begin 0 env FAULTS='kill:2:5' KILL_AS_JOINING=4 "${run[@]}" --spares 1 -- $python "$steps"
touch gate
expect_end 0
expect_survivors 3 55 0 1 3
begin "0 1" env FAULTS='kill:2:5' KILL_AS_JOINING=4 "${run[@]}" --spares 2 -- $python "$steps"
touch gate
expect_end 0
expect_survivors 4 55 0 1 3 5
# One that ends well is not started again.
touch gate
expect_exit 0 "${run[@]}" --spares 1 -- sh -c '[ $RANK -lt $WORLD_SIZE ] || exit 0; exec "$@"' - $python "$steps"
expect_contains stderr "muster: note: generation 0: spare 0 on $host exited with code 0; no other takes its place"

# ------------------------------------------------------------------------------------------------ spares that wait in vain

expect_exit 0 "${run[@]}" --spares 2 --output-dir out -- $python "$steps"
expect_survivors 4 55 0 1 2 3
expect_empty out/spare.00/stderr
# Handlers are the program's: it comes back from init() to its end.
rm -f go
begin 0 "${run[@]}" --spares 1 --grace 60s -- $python -c '
import os, signal, time, muster
signal.signal(signal.SIGTERM, lambda *_: None)
muster.init()
while int(os.environ["RANK"]) == 0 and not os.path.exists("go"): time.sleep(0.01)'
touch go
expect_end 0
expect_not_contains stderr Traceback killing
# Programs that never come to init(): whatever the ranks end with.
expect_exit 0 "${run[@]}" --spares 1 -- sh -c '[ $RANK -lt $WORLD_SIZE ] || exec sleep 1000; exec "$@"' - $python "$steps"
expect_survivors 4 55 0 1 2 3
expect_exit 3 "${run[@]}" --spares 1 -- sh -c '[ $RANK -lt $WORLD_SIZE ] || exec sleep 1000; exit 3'
expect_nothing_left
expect_exit 0 "${run[@]}" --spares 1 --grace 1s -- sh -c '[ $RANK -lt $WORLD_SIZE ] || { trap "" TERM; touch armed; while :; do sleep 0.1; done; }; until [ -e armed ]; do sleep 0.01; done'
expect_contains stderr "muster: generation 0: killing 1 spare that did not end within 1 s (--grace)"
expect_nothing_left
# One that saves at the signal asks for no other start of a run that is over.
rm -f armed
expect_exit 0 "${run[@]}" --spares 1 -- sh -c '[ $RANK -lt $WORLD_SIZE ] || { trap "exit 75" TERM; touch armed; while :; do sleep 0.1; done; }; until [ -e armed ]; do sleep 0.01; done'
# A loss meanwhile leaves one rank less.
begin "" env FAULTS='kill:2:5' "${run[@]}" --spares 1 -- sh -c '[ $RANK -lt $WORLD_SIZE ] || exec sleep 1000; exec "$@"' - $python "$steps"
touch gate
expect_end 0
expect_survivors 3 55 0 1 3
# One that is started in place of a lost rank, and comes when the others have ended.
expect_exit 0 env FAULTS='kill:2:5' "$MUSTER" run -n 4 --slots-per-node 6 --timeout 100s --min-np 2 --spares 1 -- sh -c '
    [ $MUSTER_GENERATION.$RANK = 0.2 ] && ! mkdir first 2>/dev/null && until [ -e over ]; do sleep 0.01; done
    "$@"; code=$?; [ $RANK = 2 ] || touch over; exit $code' - $python "$steps"
expect_survivors 3 55 0 1 3

for signal in INT:130 TERM:143; do
    begin 0 env STEPS=1000000 "${run[@]}" --spares 1 -- $python "$steps"
    kill -"${signal%:*}" $PID
    expect_end "${signal#*:}"
    expect_nothing_left
done
# A launcher that is killed leaves nothing.
begin 0 env STEPS=1000000 "${run[@]}" --spares 1 -- $python "$steps"
kill -9 "$(ps -o pid= --ppid $PID | head -n 1)"
expect_end 137
expect_nothing_left

# ------------------------------------------------------------------------------------------------ what it is not for

expect_exit 2 "${run[@]}" -- true
expect_contains stderr "--warm-spares starts the processes of --spares N: give that as well"
expect_exit 2 "$MUSTER" run -n 2 --spares 1 --warm-spares -- true
expect_contains stderr "--spares is for runs that go on after a failure"
expect_exit 125 "$MUSTER" run -H elsewhere:2 -n 1 --min-np 1 --spares 1 --warm-spares -- true
expect_contains stderr "--warm-spares: on one node spares wait where muster run itself is, on $host, and this run has elsewhere: start it there"
expect_exit 0 "$MUSTER" run -H $host:2,elsewhere:2 --min-np 1 --spares 1 --warm-spares --dry-run -- true
expect_contains stdout "$host 0-1 here" "elsewhere 2-3 spare"
expect_exit 0 "$MUSTER" run -H a:2,b:2,c:2,d:2 -n 2 --min-np 1 --spares 1 --warm-spares --dry-run -- true # idle nodes are none of the spares
expect_contains stdout "a 0-1" "d 2-3 spare"
expect_equal "$(grep -c ' spare$' "$OUT")" 1 'nodes of spares'
expect_exit 125 "$MUSTER" run -H a:900,b:101 --min-np 1 --spares 1 --warm-spares --dry-run -- true
expect_contains stderr "900 ranks and 101 spares are more than the 1000 processes of which some can be replaced over several nodes"
expect_exit 0 "${run[@]}" --spares 2 --dry-run -- true
expect_contains stdout "true  # spare 1"
