# A shim obeys muster run and nobody else, whoever answers at one of its addresses; muster run cannot be kept from its shims by others' connections.
# timeout: 120
. "$(dirname "$0")/lib.sh"
make_hosts
# An address that both hosts have, as docker0's: mallory can be the launcher there, on the node.
for host in login node; do as_root_on "$host" ip -batch - <<<"$(printf 'link add both type veth peer name both1\naddr add 172.17.0.1/16 dev both\nlink set both up\n')"; done

# Stands in for an engine: hands the shim's variables on; the test starts the shim.
mkdir "$homes/alice/bin"
cat >"$homes/alice/bin/mpirun" <<'MPIRUN'
#!/bin/bash
[ "$1" != --version ] || { echo 'mpirun (Open MPI) 4.1.4'; exit; }
env | grep ^MUSTER_ >~/shim.tmp && mv ~/shim.tmp ~/shim.env
exec sleep infinity
MPIRUN
chmod 755 "$homes/alice/bin" "$homes/alice/bin/mpirun"

# launch PROGRAM...: alice's run of one rank on the node, until its shim is to come; $port is where it listens.
launch() {
    rm -f "$homes/alice/shim.env"
    on login alice prlimit --nofile=1024:1024 env PATH="$homes/alice/bin:$bin:/usr/bin:/bin" muster run --engine mpirun --start-timeout 60 -H node:1 -- "$@" \
        >"$OUT" 2>"$ERR" &
    run=$!
    wait_until 20 test -e "$homes/alice/shim.env" || exit 1
    mapfile -t variables <"$homes/alice/shim.env"
    port=$(sed -n 's/^MUSTER_LAUNCHER=10\.77\.0\.1:\([0-9]*\),.*/\1/p' "$homes/alice/shim.env")
    [ -n "$port" ] || fail "the addresses are not as expected: $(cat "$homes/alice/shim.env")"
}
shim() {
    on node alice timeout -s KILL "$1" env "${variables[@]}" OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0 \
        OMPI_COMM_WORLD_LOCAL_SIZE=1 muster shim >"$homes/shim.out" 2>&1
}
mallory_listens() { grep -q listening "$common/$1.out" 2>/dev/null; }
# attack NAME ...: mallory's program on the node, in the background.
attack() {
    on node mallory python3 "$bin/wire_attack.py" "$@" >"$common/$1.out" 2>&1 &
    attacker=$!
    wait_until 10 mallory_listens "$1"
}
finish_run() {
    for pid in $(pgrep -U "${uid_of[alice]}" -x muster); do kill -TERM "$pid" 2>/dev/null; done
    wait "$run" 2>/dev/null
    kill "$attacker" 2>/dev/null
    for pid in $(pgrep -U "${uid_of[mallory]}" python3); do kill -KILL "$pid" 2>/dev/null; done
    wait "$attacker" 2>/dev/null
    true  # the attacker was killed
}
owned="id >'$homes/alice/owned'"
expect_not_owned() {
    [ ! -e "$homes/alice/owned" ] || fail "$1: mallory's command ran as alice: $(cat "$homes/alice/owned"; cat "$common/$2.out")"
    rm -f "$homes/alice/owned"
}

COMMAND='a shim whose first address is behind a firewall, and mallory at the second'
launch true
as_root_on node ip route add unreachable 10.77.0.1
attack impostor "$port" /bin/bash -c "$owned"
shim 10
grep -q 'a shim said' "$common/impostor.out" || fail 'the attack did not reach the shim'
expect_not_owned "$COMMAND" impostor
as_root_on node ip route del unreachable 10.77.0.1
finish_run

COMMAND='a shim that reaches muster run through mallory'
launch true
as_root_on node ip rule add uidrange "${uid_of[alice]}-${uid_of[alice]}" to 10.77.0.1 unreachable
attack relay "$port" 10.77.0.1 "$port" /bin/bash -c "$owned"
shim 10
grep -q 'passed on' "$common/relay.out" || fail "the attack passed nothing on: $(cat "$common/relay.out")"
expect_not_owned "$COMMAND" relay
as_root_on node ip rule del uidrange "${uid_of[alice]}-${uid_of[alice]}" to 10.77.0.1 unreachable
finish_run

COMMAND='a run whose port mallory floods'
launch bash -c 'echo the rank ran'
: >"$common/flood.out"
on login mallory prlimit --nofile=4096:4096 python3 "$bin/wire_attack.py" flood 127.0.0.1 "$port" 1200 >"$common/flood.out" 2>&1 &
attacker=$!
is_flooded() { grep -q 'holding' "$common/flood.out"; }
wait_until 60 is_flooded
on node mallory python3 "$bin/wire_attack.py" impostor "$port" /bin/bash -c "$owned" >"$common/impostor.out" 2>&1 &
wait_until 10 mallory_listens impostor
launcher=$(pgrep -U "${uid_of[alice]}" -x muster | tail -n 1)
files=$(find "/proc/$launcher/fd" -mindepth 1 2>/dev/null | wc -l)
[ "$files" -gt 5 ] && [ "$files" -lt 200 ] || fail "muster run has $files descriptors, $(cat "$common/flood.out")"
shim 30
COMMAND="$COMMAND; its shim said: $(cat "$homes/shim.out")"
rank_ran() { grep -q 'the rank ran' "$OUT"; }
wait_until 10 rank_ran
expect_not_owned "$COMMAND" impostor
finish_run
