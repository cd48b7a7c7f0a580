# timeout: 180
# Ranks in PID namespaces of their own, as containers are: one number means another process in each. What they reduce is right, and
# ranks that do share a namespace keep the fast ways.
. "$(dirname "$0")/lib.sh"
sums=$MUSTER_BIN/comm_sums
[ -x "$sums" ] || skip "built without comm"
unshare -Urpf --mount-proc true 2>/dev/null || skip "this machine does not let a user make PID namespaces"
own="unshare -Urpf --mount-proc"
same_addresses="setarch -R"
setarch -R true 2>/dev/null || same_addresses=

# sums_are_right RANKS COMMAND...: started so, every rank finds its results right.
sums_are_right() {
    local ranks=$1 rank
    shift
    expect_exit 0 timeout 60 "$MUSTER" run -q -n "$ranks" --slots-per-node "$ranks" -- "$@"
    for ((rank = 0; rank < ranks; ++rank)); do expect_matches stdout "^rank $rank: [0-9]+ results are right"; done
}

# The fast ways are found by what is logged when the communicator is made.
in_place="shared buffers in place"
to_memory="from memory to memory"
sums_are_right 2 "$sums"
expect_contains stderr "$in_place"
fast=$(grep -c "$to_memory" "$ERR") # none where the kernel refuses process_vm_readv

# A namespace for each rank: all have the number 1, and with the same addresses rank 0's memory seems to be one's own.
for way in "$own" "$own $same_addresses" "unshare -Urpf" "unshare -Urpf $same_addresses"; do
    # shellcheck disable=SC2086 # words
    sums_are_right 2 $way "$sums"
    expect_not_contains stderr "$in_place" "$to_memory"
done

# Only some of them; once rank 0 and once another is outside. Rank 2 shares rank 0's namespace.
for inside in 0 1; do
    sums_are_right 3 bash -c "if [ \$MUSTER_RANK = $inside ]; then exec $own $same_addresses $sums; else exec $same_addresses $sums; fi"
    expect_not_contains stderr "$in_place" "$to_memory"
done

# One namespace for all of them keeps the fast ways; with another's /proc, which shows other numbers, only what needs no /proc.
expect_exit 0 timeout 60 $own "$MUSTER" run -q -n 2 --slots-per-node 2 -- "$sums"
expect_contains stderr "$in_place"
expect_exit 0 timeout 60 unshare -Urpf "$MUSTER" run -q -n 2 --slots-per-node 2 -- "$sums"
expect_contains stdout "results are right"
expect_not_contains stderr "$in_place"
expect_equal "$(grep -c "$to_memory" "$ERR")" "$fast" "ranks that read memory of others in one namespace"

# Of an ordinary user, a rank in a user namespace of its own has another number, with which PMIx does not take it. The ranks meet without it, and all end well.
user=()
[ "$(id -u)" != 0 ] || user=(setpriv --reuid 61234 --regid 61234 --clear-groups)
cp "$MUSTER" muster && cp "$sums" sums && chmod 755 "$lib_dir" "$lib_dir/work" muster sums
if "${user[@]}" unshare -Urpf --mount-proc true 2>/dev/null; then
    for inside in 0 1; do
        expect_exit 0 timeout 60 "${user[@]}" env HOME=/ TMPDIR=/tmp ./muster run -q -n 2 --slots-per-node 2 -- \
            bash -c "if [ \$MUSTER_RANK = $inside ]; then exec $own ./sums; else exec ./sums; fi"
        for rank in 0 1; do expect_matches stdout "^rank $rank: [0-9]+ results are right"; done
    done
fi
