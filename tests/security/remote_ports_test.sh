# The engine remote's ports on two hosts: the launcher's, the starter's, and each host's servers of PMIx and PMI-1. 1,200 connections that say nothing and 10,000 a second besides hold up
# neither start nor output, time limit and Ctrl-C; nobody else is let in, as a rank, as an agent or otherwise; no secret is where others can read it.
# timeout: 240
# serial
. "$(dirname "$0")/lib.sh"
make_hosts
cp "$here/../cluster/node_rsh.py" "$bin/" || exit 1
# Stands in for ssh, and waits for the attack.
cat >"$bin/slow_rsh" <<'RSH'
#!/bin/bash
until [ -e calls ]; do sleep 0.05; done
exec "${0%/*}/node_rsh.py" "$@"
RSH
chmod 755 "$bin/node_rsh.py" "$bin/slow_rsh"
install -d -o "${uid_of[alice]}" -m 700 "$homes/alice/rsh"
on node alice python3 "$bin/node_rsh.py" serve "$homes/alice/rsh" </dev/null >/dev/null 2>&1 &
wait_until 20 test -S "$homes/alice/rsh/node" || exit 1
waiting='echo waiting; until [ -e go ]; do sleep 0.05; done'

mkfifo "$lib_dir/never"
exec 7<>"$lib_dir/never"
# attack HOST PORT...: until end_attacks.
attack() {
    local host=$1
    shift
    : >"$lib_dir/held" >"$lib_dir/flooded"
    on "$host" mallory prlimit --nofile=4096 python3 "$bin/port_caller.py" hold 1200 "$@" <"$lib_dir/never" >"$lib_dir/held" &
    disown
    wait_until 60 grep -q held "$lib_dir/held" || exit 1
    on "$host" mallory python3 "$bin/port_caller.py" flood 10000 "$@" <"$lib_dir/never" >"$lib_dir/flooded" &
    disown
    wait_until 20 grep -q flooding "$lib_dir/flooded" || exit 1
}
end_attacks() {
    local pid
    for pid in $(pgrep -U "${uid_of[mallory]}" python3); do kill -KILL "$pid" 2>/dev/null; done
}
on_login() { ports_of login alice | sed 's/^/10.77.0.1:/'; } # those that other hosts may call; connections to the others are refused

# start_run PROGRAM [OPTIONS...]: alice's run, with no more descriptors than a login shell has. Its launcher and its starter are attacked before the agent on the other host comes, all
# other ports when they are there.
start_run() {
    local program=$1
    shift
    rm -f "$common/go" "$common/calls"
    on login alice NODE_RSH_FOLDER="$homes/alice/rsh" prlimit --nofile=1024:1024 "$bin/muster" run --engine remote --remote-shell "$bin/slow_rsh" -H login:1,node:1 "$@" \
        -- bash -c "$waiting; $program" >"$lib_dir/run.out" 2>"$lib_dir/run.err" &
    run=$!
    wait_until 20 two_listen || fail "the launcher and its starter do not listen: $(cat "$lib_dir/run.err")"
    [ -n "${peaceful:-}" ] || attack login $(ports_of login alice)
    on login alice touch "$common/calls"
    wait_until 40 all_wait || fail "the ranks did not start: $(cat "$lib_dir/run.err")"
    [ -n "${peaceful:-}" ] || attack node $(ports_of node alice) $(on_login)
}
two_listen() { [ "$(ports_of login alice | wc -l)" -ge 2 ]; }
all_wait() { [ "$(grep -c waiting "$lib_dir/run.out")" = 2 ]; }

start_run 'echo said'
on login alice touch "$common/go"
end_run 40
end_attacks
expect_equal "$rc" 0 "the exit code of a flooded run: $(cat "$lib_dir/run.err")"
expect_equal "$(grep -cx said "$lib_dir/run.out")" 2 'the lines of a flooded run'

start_run 'echo said' --timeout 12s
end_run 40
end_attacks
expect_equal "$rc" 124 "the exit code of a flooded run after its time limit: $(cat "$lib_dir/run.err")"

start_run 'echo said'
kill -INT "$(guardian)"
end_run 40
end_attacks
expect_equal "$rc" 130 'the exit code of a flooded run after Ctrl-C'

# Nobody is let in from this host or another, as a rank or as an agent; what others may read of alice's processes holds no key.
peaceful=1
start_run 'echo said'
closed() { expect_equal "$(on "$1" mallory python3 "$bin/port_caller.py" from "$2" "$3")" closed "mallory's connection on $1 from $2 to $3"; }
for host in login node; do
    for port in $(ports_of $host alice); do closed $host 127.0.0.1 "$port"; done
done
keys=$(for pid in $(pgrep -U "${uid_of[alice]}"); do tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^MUSTER_TOKEN=//p'; done 2>/dev/null | sort -u)
[ -n "$keys" ] || fail 'no process of a run has its key'
for pid in $(pgrep -U "${uid_of[alice]}"); do
    for key in $keys; do ! grep -qaF "$key" "/proc/$pid/cmdline" 2>/dev/null || fail "a key is on a command line: $(tr '\0' ' ' <"/proc/$pid/cmdline")"; done
    ! on login mallory cat "/proc/$pid/environ" >/dev/null 2>&1 || fail "mallory reads the environment of $(tr '\0' ' ' <"/proc/$pid/cmdline")"
done
mapfile -d '' -t words <"/proc/$(pgrep -U "${uid_of[alice]}" -x muster-agent | head -n 1)/cmdline"
at=0
for place in "${!words[@]}"; do [ "${words[place]}" != agent ] || at=$place; done
where=${words[at + 3]}
[[ $where == 10.77.0.1:* && ${words[at + 4]} = stdin ]] || fail "an agent's command line is not as expected: ${words[*]}"
for ticket in stdin "job:$(printf '%0144d' 7)" "file:$homes/alice/.cache/muster/key"; do
    on node mallory timeout 30 "$bin/muster" agent 1 2 "$where" "$ticket" <<<"$(printf '%064d' 7)" >"$OUT" 2>"$ERR" && fail "mallory's agent with the ticket $ticket was taken"
    expect_not_contains stderr 'lost'
done
# As PMIx' clients may, mallory says that she is alice.
if on node mallory unshare -U --map-user="${uid_of[alice]}" true 2>/dev/null && on node alice python3 -c 'import ctypes; ctypes.CDLL("libpmix.so.2")' 2>/dev/null; then
    asked=0
    for rank in $(pgrep -U "${uid_of[alice]}" -x bash); do
        mapfile -t variables < <(tr '\0' '\n' <"/proc/$rank/environ" | grep ^PMIX_)
        [ ${#variables[@]} -gt 3 ] || continue
        asked=$((asked + 1))
        host=$(ip netns identify "$rank")
        host=${host#"ms$$-"}
        said=$(on "$host" mallory "${variables[@]}" PMIX_MCA_ptl_base_max_retries=1 timeout 10 unshare -U --map-user="${uid_of[alice]}" --map-group="${uid_of[alice]}" \
            python3 "$bin/port_caller.py" pmix abort 2>/dev/null)
        [ "$said" != 0 ] || fail "mallory is a rank on $host"
    done
    expect_equal "$asked" 2 'the ranks that mallory wanted to be'
fi
on login alice touch "$common/go"
end_run 40
end_attacks
expect_equal "$rc" 0 "the exit code of a run that mallory wanted to join: $(cat "$lib_dir/run.err")"
