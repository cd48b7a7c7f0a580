# Sourced first by every tests/security/*_test.sh: two ordinary users, alice (who runs muster) and mallory (who attacks), on two hosts, `login` and `node`.
#
# How to use it: `. "$(dirname "$0")/lib.sh"; make_hosts`; then `on HOST USER COMMAND...` runs a command as that user on that host (`on login alice "$bin/muster" run ...`),
# `ports_of HOST USER` prints the TCP ports on which that user's processes listen there, programs of this folder
# (*.py, forged_orders) are in $bin.
#
# A host is a network namespace of the test's own: login has 10.77.0.1, node has 10.77.0.2. The users have numbers of the test's own, no capabilities and homes
# that are closed to others ($homes/USER, shared by both hosts). They see each other's processes, as on a login node. What they may both read and write: $common.
# Everything ends with the test. It needs root and is skipped without. The rest is tests/cli/lib.sh.
here=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")")
. "$here/../cli/lib.sh"
base=/tmp/muster-security.$$
homes=$base/home
common=$base/common
bin=$base/bin
hosts=()
declare -A uid_of=([alice]=$((1000000 + $$ * 2)) [mallory]=$((1000001 + $$ * 2)))

security_lacking() {
    local program lacking=()
    for program in ip setpriv unshare python3 prlimit pgrep; do PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || lacking+=("$program"); done
    [ "$(id -u)" = 0 ] || lacking+=("the rights of root")
    ip netns list >/dev/null 2>&1 || lacking+=("network namespaces (ip netns)")
    [ ${#lacking[@]} = 0 ] || (IFS=,; echo "${lacking[*]}")
}

# make_hosts: the two hosts and the two users; ends the test as skipped, with the reason, where there can be none.
make_hosts() {
    local lacking user
    lacking=$(security_lacking)
    [ -z "$lacking" ] || skip "this test makes users and hosts of its own; lacking here: $lacking"
    # Should this test be killed, someone else must end what it started.
    setsid -f bash -c "$(declare -f clear_away users_processes; declare -p base uid_of); tail --pid=$$ -f /dev/null; clear_away" </dev/null >/dev/null 2>&1
    mkdir -p "$homes" "$common" "$bin"
    chmod 755 "$base" "$homes" "$bin"
    chmod 1777 "$common"
    for user in alice mallory; do install -d -o "${uid_of[$user]}" -g "${uid_of[$user]}" -m 700 "$homes/$user" || exit 1; done
    cp "$MUSTER" "$FORGED_ORDERS" "$bin/" && { ! compgen -G "$here/*.py" >/dev/null || cp "$here"/*.py "$bin/"; } || exit 1
    chmod -R a+rX "$bin"
    hosts=(login node)
    printf '%s\n' '127.0.0.1 localhost' '10.77.0.1 login' '10.77.0.2 node' >"$base/hosts"
    ip netns add "ms$$-login" && ip netns add "ms$$-node" || exit 1
    printf '%s\n' 'link set lo up' "link add eth0 type veth peer name eth0 netns ms$$-node" 'addr add 10.77.0.1/24 dev eth0' 'link set eth0 up' |
        ip -n "ms$$-login" -batch - || exit 1
    printf '%s\n' 'link set lo up' 'addr add 10.77.0.2/24 dev eth0' 'link set eth0 up' | ip -n "ms$$-node" -batch - || exit 1
}

# on HOST USER COMMAND...: in $common, with the variables of a fresh login; NAME=VALUE words before the command are set, too.
on() {
    local host=$1 user=$2
    shift 2
    (cd "$common" && exec ip netns exec "ms$$-$host" unshare --uts sh -c 'hostname "$0" && mount --bind "$1" /etc/hosts && shift && exec "$@"' "$host" "$base/hosts" \
        setpriv --reuid "${uid_of[$user]}" --regid "${uid_of[$user]}" --clear-groups --inh-caps=-all --bounding-set=-all \
        env -i HOME="$homes/$user" USER="$user" LOGNAME="$user" PATH="$bin:/usr/local/bin:/usr/bin:/bin" LC_ALL=C "$@")
}

# as_root_on HOST COMMAND...: to prepare a host: addresses, routes, firewalls.
as_root_on() {
    local host=$1
    shift
    ip netns exec "ms$$-$host" "$@"
}

# ports_of HOST USER: one a line, as everybody can read them in /proc/net/tcp and tcp6.
ports_of() {
    on "$1" mallory cat /proc/net/tcp /proc/net/tcp6 | awk -v uid="${uid_of[$2]}" '$4 == "0A" && $8 == uid { sub(/.*:/, "", $2); print $2 }' |
        while read -r hex; do echo $((16#$hex)); done | sort -nu
}
listens() { [ -n "$(ports_of "$1" "$2")" ]; }

users_processes() { ps -o pid= -U "${uid_of[alice]},${uid_of[mallory]}"; }

clear_away() {
    local pids try name
    for try in 1 2 3 4 5 6 7 8 9 10; do
        pids=$(users_processes)
        [ -n "$pids" ] || break
        kill -KILL $pids 2>/dev/null
        sleep 0.05
    done
    for name in login node; do ip netns del "ms${base##*.}-$name" 2>/dev/null; done
    find /dev/shm /tmp -maxdepth 1 \( -uid "${uid_of[alice]}" -o -uid "${uid_of[mallory]}" \) -exec rm -rf {} + 2>/dev/null
    rm -rf "$base"
}

at_end() { [ ${#hosts[@]} = 0 ] || clear_away; }

# The launcher is the child of the first muster, its guardian, which also passes signals on.
guardian() { pgrep -U "${uid_of[alice]}" -x muster | head -n 1; }
# end_run SECONDS: waits for $run, which a watchdog ends if it hangs; its exit code becomes $rc.
end_run() {
    # Without the test's other descriptors: an attacker's pipe that this held open too would not end with the attack.
    ( exec 7>&- 8>&- 9>&-; trap 'kill "$!"; exit' TERM; sleep "$1" & wait; pkill -KILL -U "${uid_of[alice]}" -x muster ) >/dev/null 2>&1 &
    local watchdog=$!
    wait "$run"
    rc=$?
    kill "$watchdog" 2>/dev/null
}
