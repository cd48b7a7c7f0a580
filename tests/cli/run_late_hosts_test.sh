# Hosts that are not up yet when the run begins: a remote shell that fails is tried again for a while.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
cat >late.sh <<'SH2'
#!/bin/bash
echo call >>calls
[ "$(wc -l <calls)" -gt "$(cat failures)" ] || { echo "ssh: Could not resolve hostname $1: Name or service not known" >&2; exit "${CODE:-255}"; }
exec /bin/bash -c "$2"
SH2
chmod +x late.sh
run=("$MUSTER" run --remote-shell "$PWD/late.sh")
calls() { wc -l <calls; }

echo 2 >failures
expect_exit 0 "${run[@]}" -H elsewhere:1 -- echo there
expect_equal "$(cat "$OUT")" there output
expect_matches stderr '^muster: note: elsewhere cannot be reached yet: .*/late.sh exited with code 255; trying again for [0-9]+ s \(--start-timeout\)$'
expect_equal "$(grep -c 'cannot be reached yet' "$ERR")" 1 'how often it is told'
expect_equal "$(calls)" 3 calls
# --start-timeout bounds it.
rm calls
echo 1000 >failures
expect_exit 125 "${run[@]}" -H elsewhere:1 --start-timeout 4s -- true
expect_contains stderr "no agent of muster came from elsewhere: $PWD/late.sh exited with code 255"
expect_true [ "$(calls)" -gt 1 ]
# A program that is not there does not come.
rm calls
expect_exit 125 env CODE=127 "${run[@]}" -H elsewhere:1 -- true
expect_equal "$(calls)" 1 calls
# Hosts that never answer when they are asked what they have do not outlast --timeout.
printf '#!/bin/sh\nexec sleep 100\n' >silent.sh
chmod +x silent.sh
for hosts in 'h1,h2' 'h1:1,h2:1 --preflight'; do
    expect_exit 124 "$MUSTER" run -H $hosts --timeout 2s --remote-shell "$PWD/silent.sh" -- true
    expect_matches stderr 'asked the nodes what they have until --timeout 2 s had passed; .*h1.*h2.* did not answer by then'
done
expect_nothing_left
