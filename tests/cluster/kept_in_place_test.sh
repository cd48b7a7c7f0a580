# timeout: 480
# --keep-state over several nodes in runs that go on in place: a restart goes on from the newest commit, whichever ranks made it in whichever generation, and each sample counts once.
# parts: keep
. "$(dirname "$0")/cluster_lib.sh"
/usr/bin/python3 -c 'import torch' 2>/dev/null || skip 'PyTorch is not installed'
start_elastic_cluster 4 2
cp "$MUSTER_SOURCE_DIR/tests/cli/programs/kept_in_place.py" "$work/train.py" && chmod a+r "$work/train.py"
gate=$work/gate
# What torch 2 makes when it is imported, and only a process that ends by itself removes.
torch_made='file /tmp/tmp[a-z0-9_]{8}(/__pycache__|/(__pycache__/)?_remote_module_non_scriptable[.a-z0-9-]*)?$'
spared=$torch_made
longest_s=150

# begin FAULTS COMMAND... OPTIONS...: no rank is killed before the gate is there.
begin() {
    rm -f "$gate"*
    start "${@:2:1}" env "FAULTS=$1" "GATE=$gate" prefix/bin/muster run --verbose --heartbeat 2s --timeout 120s --max-restarts 1 "${@:3}" -- /usr/bin/python3 train.py
}
is_told() { grep -q "$1" "$ERR"; }
has_begun() { grep -q " in generation $1 begins" "$OUT"; }
await() { wait_until 60 "$@" || exit 1; }
# finish GENERATION STEP RANKS: the ranks that were started again have gone on from this step, as it was made.
finish() {
    local state
    expect_end 0
    state=$(sed -n "s/.* in generation $1 begins at //p" "$OUT" | sort -u)
    expect_matches stdout "^member [0-9]+: rank 0 of $3 in generation $1 begins at step $2 with [0-9a-f]+\$"
    expect_equal "$(wc -l <<<"$state")" 1 'states with which ranks begin again'
    expect_contains stdout "${state/ with / made }"
    expect_equal "$(grep -c " ends: rank [0-9] of $3, .* missed 0, " "$OUT")" "$3" 'ranks that have ended well'
    expect_equal "$(sed -n 's/.* ends: .*, twice//p' "$OUT" | sort -u | wc -l)" 1 'states at the end'
    expect_true [ "$(sed -n 's/.*, twice \([0-9]*\), .*/\1/p' "$OUT" | head -n 1)" -lt "$3" ]
    expect_nothing_left 20
}
allocate -N4 --ntasks-per-node=2 --no-kill

# Ranks are lost in place until too few are left. What is on two nodes is older, and of a world that is gone.
begin 'hold:0:6 kill:2:6 kill:0:7 kill:1:7' inside --nodes 2 --ranks-per-node 2 --min-np 2 --keep-state node,neighbour
await is_told 'commit 8 is on two nodes'
touch "$gate" "$gate.6"
finish 2 7 4

# All that began are gone: warm spares have committed what there is, and their node has no ranks after the restart.
begin 'kill:0:3 kill:1:5 kill:2:7 kill:3:9 kill:4:11' inside --nodes 2 --ranks-per-node 2 --min-np 2 --spares 1 --warm-spares --keep-state node
for spare in 0 1; do await is_told "spare $spare on node4 waits"; done
touch "$gate"
finish 5 11 4

# A node is lost in place, then another: copies have followed the new neighbours, and the four ranks begin again with what four had.
begin 'hold:0:3 hold:0:9' inside --nodes 3 --ranks-per-node 2 --min-np 3 --keep-state node,neighbour
await is_told 'commit 5 is on two nodes'
"$cluster" crash node2
touch "$gate.3"
await is_told 'commit 13 is on two nodes'
"$cluster" crash node3
touch "$gate.9"
finish 2 9 4
expect_contains stderr 'commit 13 is whole for all ranks'
release

# Over hosts. A keeper is killed while ranks go on in place: the others' state is there, and those on its node train with them.
serve_remote_shell node1 node4
spared+="|$torch_made"
begin 'hold:0:3 kill:2:4 kill:0:6 kill:1:6' as_user -H node1:2,node4:2 --min-np 2 --keep-state node,neighbour
await is_told 'commit 5 is on two nodes'
expect_true "$cluster" on node1 kill -9 "$("$cluster" on node1 pgrep -x muster-keeper)"
await is_told 'another holds what ranks there commit'
touch "$gate" "$gate.3"
finish 2 6 4

# The launcher is killed after a loss in place: its parent ends all of it.
begin 'kill:2:4 hold:0:6' as_user -H node1:2,node4:2 --min-np 2 --keep-state node,neighbour
touch "$gate"
await test -e "$gate.6.held"
on_head() { "$cluster" on head "$@"; }
expect_true on_head kill -9 "$(on_head pgrep -x -P "$(on_head pgrep -o -x muster)" muster)"
expect_end 137
expect_nothing_left 30
