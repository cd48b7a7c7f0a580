# Timelines of all ranks become one file that is JSON; what failed ranks leave is explained.
. "$(dirname "$0")/lib.sh"

expect_exit 2 "$MUSTER" trace
expect_contains stderr "give merge or explain"
expect_exit 0 "$MUSTER" trace --help
expect_contains stdout "muster trace merge FOLDER" --output
expect_exit 2 "$MUSTER" trace mereg
expect_contains stderr "did you mean 'merge'?"
expect_exit 2 "$MUSTER" trace merge
expect_contains stderr "takes one folder"
expect_exit 2 "$MUSTER" trace merge lines
expect_contains stderr "give the file to write"
expect_exit 2 "$MUSTER" trace explain lines -o x
expect_exit 125 "$MUSTER" trace explain nowhere
expect_contains stderr "no files flight-RANK.json"

ranks=1
timeout 30 "$MUSTER" run -q -n 2 --slots-per-node 2 -- "$MUSTER_BIN/comm_c_api" >/dev/null 2>&1 && ranks=2
expect_exit 0 timeout 30 env MUSTER_TIMELINE="$PWD/lines" MUSTER_TIMELINE_MARK_CYCLES=1 \
    "$MUSTER" run -q -n $ranks --slots-per-node $ranks -- "$MUSTER_BIN/comm_c_api"
expect_exit 0 "$MUSTER" trace merge lines -o all.json
expect_contains stderr "of $ranks timelines in all.json"
expect_exit 0 python3 - all.json $ranks <<'EOF'
import json, sys
events = json.load(open(sys.argv[1]))
ranks = int(sys.argv[2])
for rank in range(ranks):
    names = [e["name"] for e in events if e["pid"] == rank]
    for name in ("allreduce", "allgather", "broadcast", "NEGOTIATE w", "QUEUE w", "PACK", "UNPACK", "ROUND", "muster_clock"):
        # a group of two doubles is packed, its neighbour on the stack may not be
        if name not in names and name not in ("PACK", "UNPACK"):
            sys.exit("rank %d: no %s among %s" % (rank, name, sorted(set(names))))
opened = sum(1 for e in events if e["ph"] == "b")
closed = sum(1 for e in events if e["ph"] == "e")
if opened != closed or opened == 0:
    sys.exit("%d spans begin and %d end" % (opened, closed))
if any(e.get("dur", 0) < 0 for e in events):
    sys.exit("a span that ends before it begins")
EOF

"$MUSTER_BIN/exchange_victims" --trials 1 --flight "$PWD/flight" >/dev/null 2>&1
if [ -d flight ]; then
    expect_exit 0 "$MUSTER" trace explain flight
    expect_matches stdout "rank[s]? [0-2].* left no file: killed, stopped, or not failed"
    expect_matches stdout "blame[s]? rank [0-2]: "
fi

# ------------------------------------------------------------------------------------------------ a rank is lost, and the others go on
python=/usr/bin/python3
if [ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ] && $python -c 'import numpy' 2>/dev/null; then
    expect_exit 0 env FAULTS=kill:2:5 MUSTER_TIMELINE="$PWD/story" MUSTER_FLIGHT_RECORDER="$PWD/last" \
        "$MUSTER" run -q -n 4 --slots-per-node 4 --timeout 100s --min-np 2 -- $python "$MUSTER_SOURCE_DIR/tests/cli/programs/elastic_steps.py"
    expect_exit 0 "$MUSTER" trace merge story -o story.json
    expect_contains stderr "generation 1: 3 ranks; rank 2 ($(hostname)) is gone" "story/timeline-2.json ends early"
    expect_equal "$($python -c '
import json
events = json.load(open("story.json"))
print(*sorted(e["args"]["name"].replace("'"$(hostname)"'", "HOST") for e in events if e["name"] == "process_name"), sep="; ")
print(*(e["name"].split(";")[0] for e in events if e["ph"] == "i"))
')" 'rank 0 (HOST); rank 1 (HOST); rank 2 (HOST); rank 3 (HOST), rank 2 in generation 1
generation 1: 3 ranks'
    expect_exit 0 "$MUSTER" trace explain last
    expect_contains stdout "blame rank 2"
fi
