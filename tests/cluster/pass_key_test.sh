# How the key of a run reaches the nodes of a Slurm job: sealed by its munge, whatever engine carries it, so that nobody else who sees it can open it.
# timeout: 240
# parts: preflight
. "$(dirname "$0")/cluster_lib.sh"
start_cluster 2 0
install_muster
muster=$work/prefix/bin/muster
socket=$CLUSTER_DIR/munge/socket
engines=srun
"$cluster" run mpirun --version 2>/dev/null | grep -q 'Open MPI' && engines+=' mpirun'
"$cluster" run mpiexec.hydra --version 2>/dev/null | grep -q HYDRA && engines+=' mpiexec'

# token_of_shim: MUSTER_TOKEN of the process beside this rank, as its engine has passed it on.
write_program token_of_shim <<'PROGRAM'
tr '\0' '\n' </proc/$PPID/environ | sed -n 's/^MUSTER_TOKEN=//p'
echo "of the rank: ${MUSTER_TOKEN-none}"
PROGRAM

allocate --nodes=2 --ntasks-per-node=2
for engine in $engines; do
    expect_exit 0 inside "$muster" run --verbose --engine "$engine" -- ./token_of_shim
    expect_contains "$ERR" "shims get the key of this run from $engine, sealed by munge for this user"
    expect_equal "$(grep -c "^munge:$socket:MUNGE:" "$OUT") $(grep -c '^of the rank: none$' "$OUT") $(wc -l <"$OUT")" '4 4 8' "what shims were told over $engine: $(cat "$OUT")"
    credential=$(sed -n "s/^munge:[^:]*://p" "$OUT" | head -1)
    expect_equal "$(printf %s "$credential" | setpriv --reuid 65534 --clear-groups unmunge -S "$socket" 2>&1 >/dev/null | grep -o 'Unauthorized credential')" 'Unauthorized credential' \
        "another user who opens the credential of a run over $engine"
done

# As the user says; without munged where nothing answers at its own socket, which is not the cluster's.
expect_exit 0 inside "$muster" run --pass-key environment -- ./token_of_shim
expect_equal "$(grep -c -E '^[0-9a-f]{64}$' "$OUT")" 4 'keys in the environment'
expect_exit 0 inside "$muster" run --preflight --pass-key munge -- true
release
if [ ! -S /run/munge/munge.socket.2 ]; then
    expect_exit 125 as_user "$muster" run --pass-key munge --engine mpirun -H node1:1,node2:1 -- true
    expect_contains "$ERR" 'munge cannot seal the key of this run: '
    expect_contains "$ERR" '; start muster run with --pass-key environment, or with --pass-key file'
fi
