# timeout: 480
# --keep-state over several nodes: shards that each rank has alone are there again after a rank is killed and, from the next node, after a node is lost; and nobody else reads them.
# parts: keep preflight
. "$(dirname "$0")/cluster_lib.sh"
start_elastic_cluster 4 2
cp "$MUSTER_SOURCE_DIR/tests/cli/programs/kept_shards.py" "$work/shards.py" && chmod a+r "$work/shards.py"
gate=$work/gate

vars=() longest_s=260
run() { inside env "${vars[@]}" prefix/bin/muster run --verbose --ranks-per-node 2 --heartbeat 2s --timeout 240s --max-restarts 2 "$@" -- /usr/bin/python3 shards.py; }
ends() { sed -n 's/^\(rank [0-9]* ends with .*\)/\1/p' "$OUT" | sort -V; }
begins() { sed -n "s/^rank [0-9]* of [0-9]* in generation $1 begins at step \([0-9]*\)/\1/p" "$OUT" | sort -u | paste -sd' '; }
allocate -N4 --ntasks-per-node=2 --no-kill

expect_exit 0 run --nodes 3
undisturbed=$(ends)
expect_equal "$(wc -l <<<"$undisturbed")" 6 'ranks that have ended well'

# A rank, and after the restart another one: each finds what it had, on its own node.
vars=(KILL=2:7,5:9)
expect_exit 0 run --nodes 3 --keep-state node
expect_matches stdout '^rank 2 of 6 in generation 1 begins at step [67]$' '^rank 5 of 6 in generation 2 begins at step [89]$'
for generation in 1 2; do expect_equal "$(begins $generation | wc -w)" 1 'steps at which ranks begin again'; done
expect_equal "$(ends)" "$undisturbed" 'shards after killed ranks'
expect_nothing_left
expect_exit 0 run --nodes 3
expect_equal "$(begins 1)" 0 'step without --keep-state'

# The next node's copy: node2 is lost with both of its ranks, which begin again on node4, that was idle.
kill=
keeper_on() { "$cluster" on "$1" pgrep -x muster-keeper; }
hold() { # COMMAND...: until step 6, when a commit of all ranks is there twice
    rm -f "$gate" "$gate.held"
    vars=("HOLD=6:$gate" "KILL=$kill")
    start "$@" --keep-state node,neighbour
    wait_until 90 test -e "$gate.held" || exit 1
    wait_until 90 grep -q 'commit 6 is on two nodes' "$ERR" || exit 1
}
expect_restored() { # GENERATION
    expect_contains stderr 'commit 6 is whole for all ranks'
    expect_equal "$(begins "$1")" 6 'step at which ranks begin again'
    expect_equal "$(ends)" "$undisturbed" 'shards after a lost node'
}
hold run --nodes 3 --spares 1 --preflight --ports 41000-41199
# The launcher and the keepers listen on ports of that range (MPI in the ranks has its own).
for node in head node1 node2 node3 node4; do "$cluster" on $node ss -tlnpH; done | grep '"muster' | grep -v '127\.0\.0\.1:' >"$work/listening"
expect_true test "$(wc -l <"$work/listening")" -ge 5
expect_equal "$(awk '{print $4}' "$work/listening" | sed 's/.*://' | grep -v '^41[01]..$')" '' "ports out of the range: $(cat "$work/listening")"
# Nobody else on the node reads what is kept, or writes to it.
file=$(sed 's/^[0-9]*://' "$gate.held")
as_nobody() { CLUSTER_AS=65534 "$cluster" on node1 "$@" 2>&1; }
expect_true "$cluster" on node1 test -w "$file"
expect_denied() { [[ $(as_nobody "$@") == *'Permission denied'* ]] || fail "another user may $*"; }
expect_denied head -c 1 "$file"
expect_denied dd if=/dev/zero "of=$file" count=1 conv=notrunc
# Each gives way to the ranks, also where several ask the kernel at once.
gives_way() { "$cluster" on "$1" grep -q ' nice 15$' "/proc/$(keeper_on "$1")/autogroup"; }
if [ -e /proc/self/autogroup ]; then for node in node1 node2 node3 node4; do expect_true gives_way $node; done; fi
# What schedulers send to each step ends no keeper.
for signal in INT USR1 USR2 ALRM; do expect_true "$cluster" on node3 kill -$signal "$(keeper_on node3)"; done
"$cluster" crash node2
expect_end 0
expect_restored 1
expect_nothing_left 20
"$cluster" boot node2
release

# All ranks on the node of muster run itself, beside one that is idle: what ends ranks there ends no keeper.
batch -N2 --ntasks-per-node=2 <<'JOB'
KILL=1:7 prefix/bin/muster run --nodes 1 --spares 1 --ranks-per-node 2 --timeout 240s --max-restarts 1 --keep-state node -- /usr/bin/python3 shards.py 2>&1
JOB
finish_job
expect_equal "$code" 0:0 'exit code of the job'
expect_matches stdout '^rank 0 of 2 in generation 1 begins at step [67]$' '^rank 1 of 2 in generation 1 begins at step [67]$'
expect_equal "$(ends | wc -l)" 2 'ranks that have ended well'

# Over hosts, by a remote shell: the node of rank 0.
serve_remote_shell node1 node2 node3 node4
run_hosts() { as_user env "${vars[@]}" prefix/bin/muster run --verbose -H node1:2,node2:2,node3:2,node4:2 --spares 1 --heartbeat 2s --timeout 240s --max-restarts 2 "$@" -- /usr/bin/python3 shards.py; }
# A keeper that is lost is told of. Without the process that leads them a restart goes on from disk: here from nothing.
kill=2:7
hold run_hosts
expect_true "$cluster" on node3 kill -9 "$(keeper_on node3)"
wait_until 60 grep -q 'another holds what ranks there commit' "$ERR"
expect_true "$cluster" on head kill -9 "$("$cluster" on head pgrep -x muster-keepers)"
touch "$gate"
expect_end 0
expect_contains stderr 'what ranks had committed is lost, and they begin from what they find on disk'
expect_equal "$(begins 1)" 0 'step at which ranks begin again'
expect_equal "$(ends)" "$undisturbed" 'shards'
expect_nothing_left 20

kill=
hold run_hosts
"$cluster" crash node1
expect_end 0
expect_restored 1
