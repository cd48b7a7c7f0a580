# The PMIx server's port: another user neither joins a job nor ends it, and one who says nothing holds nobody up.
# timeout: 120
. "$(dirname "$0")/lib.sh"
make_hosts
on login alice python3 -c 'import ctypes; ctypes.CDLL("libpmix.so.2")' 2>/dev/null || skip "there is no libpmix.so.2 here for the attacker"
on login mallory unshare -U --map-user="${uid_of[alice]}" true 2>/dev/null || skip "an ordinary user can make no user namespace here"

# start_run OPTIONS...: alice's run, whose ranks wait for the file `go` and then do PROGRAM.
start_run() {
    rm -f "$common/go"
    on login alice "$bin/muster" run "$@" >"$lib_dir/run.out" 2>"$lib_dir/run.err" &
    run=$!
    wait_until 20 listens login alice
    wait_until 20 grep -q waiting "$lib_dir/run.out"
}
waiting='echo waiting; until [ -e go ]; do sleep 0.05; done'
go() { on login alice touch "$common/go"; }

# joins WHAT NAMESPACE PORT: mallory says that she is alice, as PMIx' clients may.
joins() {
    local ways=() name
    for name in PMIX_SERVER_URI2 PMIX_SERVER_URI21 PMIX_SERVER_URI3 PMIX_SERVER_URI4 PMIX_SERVER_URI41; do ways+=("$name=$2.server.0;tcp4://127.0.0.1:$3"); done
    on login mallory "${ways[@]}" PMIX_NAMESPACE="$2" PMIX_RANK=0 PMIX_SECURITY_MODE=native PMIX_MCA_ptl_base_max_retries=1 \
        timeout 10 unshare -U --map-user="${uid_of[alice]}" --map-group="${uid_of[alice]}" python3 "$bin/port_caller.py" pmix "$1" 2>/dev/null
}

# 1. The name that everybody can work out: MUSTER, host, number of the launcher. 2. The true name, should it ever leak.
start_run -n 1 -- bash -c "$waiting"
launcher=$(pgrep -U "${uid_of[alice]}" -x muster | tail -n 1)
guessed=muster.$(hostname -s).$launcher
rank=$(pgrep -U "${uid_of[alice]}" -x bash | head -n 1)
true_name=$(tr '\0' '\n' <"/proc/$rank/environ" | sed -n 's/^MUSTER_NSPACE=//p')
for name in "$guessed" "$true_name"; do
    for port in $(ports_of login alice); do
        [ "$(joins abort "$name" "$port")" != 0 ] || fail "mallory is rank 0 of $name"
    done
done
go
end_run 60
expect_equal "$rc" 0 "alice's exit code (her ranks are no MPI programs)"
expect_not_contains "$lib_dir/run.err" mallory

# 3. Connections that say nothing, before alice's ranks come.
start_run -n 2 --timeout 30s -- bash -c "$waiting; python3 $bin/port_caller.py pmix"
mkfifo "$lib_dir/hold"
on login mallory python3 "$bin/port_caller.py" hold 40 $(ports_of login alice) <"$lib_dir/hold" >"$lib_dir/held" &
exec 9>"$lib_dir/hold"
wait_until 20 grep -q held "$lib_dir/held"
go
end_run 60
exec 9>&-
expect_equal "$rc" 0 "alice's exit code beside 40 silent connections"
expect_equal "$(grep -cx 0 "$lib_dir/run.out")" 2 "the number of ranks that came through PMIx_Init"

# 4. A connection of alice's own that says nothing, as from a scan of ports: the PMIx library reads from it first, and then from the ranks.
start_run -n 2 --timeout 60s -- bash -c "$waiting; python3 $bin/port_caller.py pmix"
mkfifo "$lib_dir/own"
on login alice python3 "$bin/port_caller.py" hold 2 $(ports_of login alice) <"$lib_dir/own" >"$lib_dir/held" &
exec 9>"$lib_dir/own"
wait_until 20 grep -q held "$lib_dir/held"
go
end_run 90
exec 9>&-
expect_equal "$rc" 0 "alice's exit code beside her own silent connections"
expect_equal "$(grep -cx 0 "$lib_dir/run.out")" 2 "the number of ranks that came through PMIx_Init beside these"
