# timeout: 200
# Processes that SIGKILL does not end, as in an uninterruptible wait: here in a frozen cgroup. They are named, and hold no run.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
host=$(hostname -s)
freezer=$PWD/freezer
mkdir freezer
mount -t cgroup -o freezer none "$freezer" 2>/dev/null || skip 'a freezer of cgroup v1 cannot be mounted here'
frozen=$freezer/muster-test-$$
thaw() {
    echo THAWED >"$frozen/freezer.state"
    expect_nothing_left
}
at_end() {
    [ ! -d "$frozen" ] || echo THAWED >"$frozen/freezer.state"
    wait_until 20 rmdir "$frozen" 2>/dev/null
    umount "$freezer"
}
mkdir "$frozen"
# Rank 1 is in it. Nothing of it ends before the test lets it.
cat >freeze.sh <<SH2
[ "\$RANK" = 1 ] || { until [ "\$(cat $frozen/freezer.state)" = FROZEN ]; do sleep 0.05; done; : >frozen.\$RANK; \$1; exit 7; }
echo \$\$ >$frozen/cgroup.procs
(echo \$BASHPID >$freezer/cgroup.procs; echo FROZEN >$frozen/freezer.state) &
exec sleep 300
SH2

# A rank has failed: its code counts, and who is left behind is said.
expect_exit 7 "$MUSTER" run -n 2 --grace 1s -- bash freeze.sh
expect_contains stderr "rank 0 on $host exited with code 7"
expect_matches stderr "^muster: error: rank 1 on $host, pid [0-9]+, does not end by SIGKILL: in an uninterruptible wait.*; it is left behind"
thaw
# A time limit, and no restart beside what is left.
expect_exit 124 "$MUSTER" run -n 2 --grace 1s --timeout 2s --max-restarts 2 -- bash freeze.sh 'sleep 100'
expect_contains stderr 'does not end by SIGKILL'
thaw
# The second request ends it at once.
rm -f frozen.0
start "$MUSTER" run -n 2 --grace 60s -- bash freeze.sh 'sleep 100'
wait_until 20 test -e frozen.0
kill -INT "$PID"
wait_until 20 grep -q 'got SIGINT' "$ERR"
sleep 0.5  # closer together they would be one request
kill -INT "$PID"
expect_end 130
expect_contains stderr 'does not end by SIGKILL'
thaw
# What a rank has left behind holds nothing up either.
expect_exit 0 "$MUSTER" run -n 1 --grace 1s -- bash -c "setsid bash -c 'echo \$BASHPID >$frozen/cgroup.procs; : >there; exec sleep 300' & until [ -e there ]; do sleep 0.05; done; echo FROZEN >$frozen/freezer.state"
expect_contains stderr 'a process that ranks have started does not end by SIGKILL: left behind'
thaw
