# timeout: 200
# A rank whose cgroup is frozen in the middle of training is as one that is stopped: the others go on without it, also where SIGKILL does not end it.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || skip "NumPy is not installed"
[ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ] || skip "the Python package is not built"
mkdir freezer
at_end() {
    ! mountpoint -q freezer || { thaw; wait_until 20 rmdir "$frozen" 2>/dev/null; umount freezer; }
}
frozen=$PWD/freezer/muster-test-$$
host=$(hostname)

thaw() { [ ! -d "$frozen" ] || echo "$running" >"$frozen/$file"; }

# goes_on TYPE OPTIONS FILE FREEZE THAW OPTION..: FILE of such a cgroup freezes it.
goes_on() {
    mount -t "$1" $2 none freezer 2>/dev/null || { echo "$1 with a freezer cannot be mounted here"; return 0; }
    file=$3 running=$5
    mkdir "$frozen"
    rm -f pid.*
    STEPS=400000 start "$MUSTER" run "${@:6}" --min-np 2 --timeout 100s -- $python "$MUSTER_SOURCE_DIR/tests/cli/programs/elastic_steps.py"
    wait_until 30 test -s pid.0 -a -s pid.1 -a -s pid.2
    cat pid.1 >"$frozen/cgroup.procs"
    echo "$4" >"$frozen/$file"
    wait_until 60 grep -q "generation 1: 2 ranks in place: rank 1 on $host is gone" "$ERR"
    kill -TERM "$PID"
    expect_end 143
    expect_contains stderr "rank 1 on $host (member 1) has been stopped (SIGSTOP, or a frozen cgroup) for more than 5 s: killing it"
    thaw
    expect_nothing_left
    wait_until 20 rmdir "$frozen"
    umount freezer
    tried=1
}
goes_on cgroup2 '' cgroup.freeze 1 0 -n 3 --slots-per-node 3
goes_on cgroup '-o freezer' freezer.state FROZEN THAWED -n 3 --slots-per-node 3
goes_on cgroup '-o freezer' freezer.state FROZEN THAWED --engine remote -H 127.0.0.1:3 # behind shims, as on other nodes
[ -n "${tried-}" ] || skip 'no freezer can be mounted here'
