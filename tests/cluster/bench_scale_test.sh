# timeout: 180
# A study over the nodes of a job: {nodes}, a table with nodes, metrics of ranks on every node; killed in the middle and gone on with.
# parts: bench
. "$(dirname "$0")/cluster_lib.sh"
[ -x "$MUSTER_BIN/muster-bench" ] || skip 'muster-bench was not built (launcher only)'
start_cluster 4 0
install_muster
cp "$MUSTER_BIN/muster-bench" "$work/prefix/bin/" && chmod 755 "$work/prefix/bin/muster-bench" || exit 1
write_program train <<'TRAIN'
[ "$RANK" != 0 ] || echo "$WORLD_SIZE $1 $2" >>starts
[ ! -e hang ] || [ "$WORLD_SIZE $2" != '4 1' ] || { : >"hangs.$RANK"; exec sleep infinity; }
echo "muster-metric: step_s $((8 / WORLD_SIZE + RANK)) s"
TRAIN
allocate -N4 --ntasks-per-node=1
scale() { inside prefix/bin/muster-bench scale --ranks 1,2,4 --repeats 2 --time-metric step_s --take step_s=last,min -o study."$$" -- ./train {nodes} {repeat}; }

: >"$work/hang"
scale >"$OUT" 2>"$ERR" &
wait_until 60 test -e "$work/hangs.3" || exit 1
kill -9 "$(pgrep -f "^prefix/bin/muster-bench scale .*-o study\.$$ ")"
wait $!
expect_equal "$(wc -l <"$work/study.$$/runs.jsonl")" 6 'lines of the journal: the study, and five runs'
rm "$work/hang"
expect_exit 0 scale
expect_contains stderr '5 of 9 runs are done'
expect_equal "$(paste -sd, "$work/starts")" '1 1 0,2 2 0,4 4 0,1 1 1,2 2 1,4 4 1,4 4 1,1 1 2,2 2 2,4 4 2' 'runs that were started, with their nodes'
expect_matches stdout '^ranks +nodes +step_s' '^ *1 +1 +8\.00 ' '^ *2 +2 +4\.00 .* 2\.00 +100%' '^ *4 +4 +2\.00 .* 4\.00 +100%'
expect_true python3 - "$work/study.$$/results.json" <<'PY'
import json, sys
study = json.load(open(sys.argv[1]))
assert study["scheduler"] == "slurm", study["scheduler"]
last = study["runs"][-1]
assert last["hosts"] == ["node1", "node2", "node3", "node4"] and last["nodes"] == 4, last
assert sorted((m["rank"], m["values"]) for m in last["metrics"]) == [(0, [2]), (1, [3]), (2, [4]), (3, [5])], last["metrics"]
assert last["load"]["others_during"] is None, "the ranks were not on this machine alone"
assert study["variables"]["SLURM_JOB_ID"]
PY
release
expect_nothing_left
