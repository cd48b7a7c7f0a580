# What holds up one of several equal ranks from outside is found within seconds, with its reason: a quota of processor time, a core that it shares, a slow disk.
# After half a minute the end of a run, and the scaling study that made it, know it too. Needs root and version 1 of cgroups.
# parts: jobs bench
# timeout: 240
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/leftovers.sh"
unset "${!SLURM_@}" "${!CUDA_@}"
[ "$(nproc)" -ge 2 ] || skip 'needs two cores'
straggler=$MUSTER_BIN/straggler
pids=()
cgroups=()
at_end() {
    : >end
    for pid in "${pids[@]}"; do kill "$pid" && wait "$pid"; done 2>"$ERR"
    for folder in "${cgroups[@]}"; do wait_until 10 rmdir "$folder" 2>"$ERR"; done
}

# new_cgroup CONTROLLER FILE VALUE: a cgroup with this limit, its folder in $cgroup; fails where this user may not make one.
new_cgroup() {
    cgroup=$(findmnt -n -t cgroup -O "$1" -o TARGET 2>"$ERR" | head -n 1)
    [ -n "$cgroup" ] && cgroup=$cgroup/muster-test-$$ && mkdir "$cgroup" 2>"$ERR" || return 1
    cgroups+=("$cgroup")
    echo "$3" 2>"$ERR" >"$cgroup/$2" && (echo "$BASHPID" >"$cgroup/cgroup.procs") 2>"$ERR"
}

# names FOLDER KIND: of the 2 ranks of this run, muster top says that rank 1 on this host keeps the other waiting, and of no other rank anything; its reason is of KIND.
cat >names.py <<'PY'
import json, os, sys
marks = json.load(open("top.json"))["oddities"]
awaited = [mark for mark in marks if mark["kind"] == "awaited"]
causes = [mark["reason"] for mark in marks if mark["kind"] == sys.argv[1] and mark.get("rank") == 1]
sys.exit(not (len(awaited) == 1 and awaited[0]["rank"] == 1 and awaited[0]["host"] == os.uname().nodename.split(".")[0] and causes
              and awaited[0]["reason"].endswith(" % of the time: " + causes[0])))
PY
names() { "$MUSTER" top "$1" --json >top.json 2>top.err && python3 names.py "$2"; }
# expect_named FOLDER KIND: within 20 s, on a machine with other tests.
expect_named() { wait_until 20 names "$1" "$2" || cat top.json top.err; }

# Each rank computes 10 ms in a step; rank 1 may use 5 % of a core.
if new_cgroup cpu cpu.cfs_quota_us 5000; then
    quota=$cgroup
    timeout 150 "$MUSTER_BIN/muster-bench" scale --ranks 2 --repeats 1 --warmup 0 --run-options '--sample 500ms --output-dir quota' -o study -- \
        bash -c '[ $RANK = 0 ] || echo $$ >"$2/cgroup.procs"; exec "$1" comm -1 10 end compute' - "$straggler" "$quota" >study.log 2>&1 &
    study=$!
    expect_named quota throttled
else
    study=
    echo 'not checked: a quota, which needs root and a cgroup of version 1'
fi

# Each rank computes 20 ms in a step; two other processes want the core of rank 1, too. All of them go before what else runs on this machine.
first=(nice -n -15)
[ "$("${first[@]}" nice 2>"$ERR")" -lt 0 ] || first=()
start "${first[@]}" "$MUSTER" run -n 2 --bind-to core --sample 500ms --timeout 2min --output-dir shared -- \
    bash -c 'taskset -cp $$ | sed "s/.*: //" >core.$RANK; exec "$1" exchange -1 20 end.shared compute' - "$straggler"
wait_until 30 test -s core.1
for i in 1 2; do
    "${first[@]}" taskset -c "$(cat core.1)" bash -c 'while :; do :; done' &
    pids+=($!)
done
expect_named shared 'shares cores'
kill "${pids[@]}" && wait "${pids[@]}" 2>"$ERR"
pids=()
: >end.shared
expect_end 0

# Each rank reads 128 KiB in a step, of which rank 1 gets 4 a second.
dd if=/dev/zero of="$PWD/file" bs=1M count=8 status=none && sync file
if new_cgroup blkio blkio.throttle.read_bps_device "$(stat -c %Hd:%Ld file) 524288"; then
    start "$MUSTER" run -n 2 --sample 500ms --timeout 2min --output-dir disk -- \
        bash -c '[ $RANK = 0 ] || echo $$ >"$3/cgroup.procs"; exec "$1" comm -1 128 end.disk "$2"' - "$straggler" "$PWD/file" "$cgroup"
    expect_named disk blocked
    : >end.disk
    expect_end 0
else
    echo 'not checked: a slow disk, which needs root, a cgroup of version 1 and a disk whose driver can be throttled'
fi

[ -n "$study" ] || exit 0
is_old() { "$MUSTER" top quota --json >top.json 2>top.err && python3 -c 'import json; exit(json.load(open("top.json"))["nodes"][0]["ranks"][0]["age_s"] < 31)'; }
wait_until 60 is_old
: >end
wait "$study" || fail "exit code $?"
told="kept the others waiting [0-9]+ ?% of the time: its cgroup's quota held it back [0-9]+ % of the time"
expect_matches study.log "^what limits it \(imbalance\): at 2 ranks, rank 1 \(.+\) $told; mend that, or leave .+ out\$"
expect_matches study/runs/0001-2-ranks.txt "^muster: note: rank 1 on .+ $told\$"
expect_exit 0 "$MUSTER" show ./quota
expect_matches stdout "rank 1 on .+ $told\$"
