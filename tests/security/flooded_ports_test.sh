# Hostile connections to every port of a run: 1,200 that say nothing and 10,000 a second besides. It starts, passes output on, keeps its time limits, answers Ctrl-C.
# timeout: 150
# serial
. "$(dirname "$0")/lib.sh"
make_hosts
waiting='echo waiting; until [ -e go ]; do sleep 0.05; done'

# begin_attack PORT...
begin_attack() {
    mkfifo "$lib_dir/hold" "$lib_dir/flood"
    : >"$lib_dir/held" >"$lib_dir/flooded"
    on login mallory prlimit --nofile=4096 python3 "$bin/port_caller.py" hold 1200 "$@" <"$lib_dir/hold" >"$lib_dir/held" &
    exec 8>"$lib_dir/hold"
    wait_until 60 grep -q held "$lib_dir/held" # before the flood, behind which 1,200 would queue for long
    on login mallory python3 "$bin/port_caller.py" flood 10000 "$@" <"$lib_dir/flood" >"$lib_dir/flooded" &
    flooder=$!
    exec 9>"$lib_dir/flood"
    wait_until 20 grep -q flooding "$lib_dir/flooded"
}
end_attack() {
    exec 8>&- 9>&-
    wait "$flooder"
    rm -f "$lib_dir/hold" "$lib_dir/flood"
}

# start_run PROGRAM [OPTIONS...]: alice's run, with no more descriptors than a login shell has; the attack begins when its ports are there.
start_run() {
    local program=$1
    shift
    rm -f "$common/go"
    on login alice prlimit --nofile=1024:1024 "$bin/muster" run -n 2 "$@" -- bash -c "$waiting; $program" >"$lib_dir/run.out" 2>"$lib_dir/run.err" &
    run=$!
    wait_until 20 listens login alice
    wait_until 20 grep -q waiting "$lib_dir/run.out"
    begin_attack $(ports_of login alice)
}

# Output and a normal end.
start_run 'echo said'
on login alice touch "$common/go"
end_run 25
end_attack
expect_equal "$rc" 0 'the exit code of a flooded run'
expect_equal "$(grep -cx said "$lib_dir/run.out")" 2 'the lines of a flooded run'
expect_true [ "$(grep -c refused "$lib_dir/run.err")" -le 8 ]

# A time limit.
start_run 'echo said' --timeout 6s
end_run 25
end_attack
expect_equal "$rc" 124 'the exit code of a flooded run after its time limit'

# Ctrl-C.
start_run 'echo said'
kill -INT "$(guardian)"
end_run 25
end_attack
expect_equal "$rc" 130 'the exit code of a flooded run after Ctrl-C'

# Nobody is let in from another address of this machine's.
rm -f "$common/go"
on login alice "$bin/muster" run -n 2 -- bash -c "$waiting" >"$lib_dir/run.out" 2>"$lib_dir/run.err" &
run=$!
wait_until 20 grep -q waiting "$lib_dir/run.out"
for port in $(ports_of login alice); do
    for address in 127.0.0.1 127.0.0.2 10.77.0.1; do
        expect_equal "$(on login mallory python3 "$bin/port_caller.py" from "$address" "$port")" closed "mallory's connection from $address"
    done
done
on login alice touch "$common/go"
end_run 25
expect_equal "$rc" 0 'the exit code'
