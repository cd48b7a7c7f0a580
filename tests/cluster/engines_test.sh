# muster run over several nodes by mpirun and mpiexec: with host files, over an agent that stands in for ssh (node_rsh.py), and in Slurm jobs.
# timeout: 240
. "$(dirname "$0")/cluster_lib.sh"
start_cluster 3 4
install_muster
serve_stand_in node_rsh.py "$work/rsh" node1 node2 node3
# Hydra does not get all variables: its agent sets what it needs by itself.
printf '#!/bin/sh\nNODE_RSH_FOLDER=%s exec %s "$@"\n' "$work/rsh" "$work/node_rsh.py" >"$work/agent"
chmod 755 "$work/agent"
export NODE_RSH_FOLDER=$work/rsh OMPI_MCA_plm_rsh_agent=$work/node_rsh.py HYDRA_LAUNCHER_EXEC=$work/agent

# run MUSTER-OPTIONS...: on the login node; $OUT and $ERR.
run() {
    COMMAND="muster run $*"
    as_user prefix/bin/muster run "$@" >"$OUT" 2>"$ERR" </dev/null
    code=$?
}
say='echo "rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE on $(hostname), master $MASTER_ADDR"'
address() { (cd / && "$cluster" on "$1" hostname -I) | tr -d ' '; }
first=$(address node3)

# lines ENGINE: an uneven layout, on nodes that are not in their usual order.
expect_uneven() {
    run -H node3:1,node1:3,node2:2 --engine "$1" -- bash -c "$say"
    expect_equal "$code" 0 "exit code over $1: $(cat "$ERR")"
    expect_equal "$(sort "$OUT")" "rank 0 of 6, 0 of 1 on node3, master $first
rank 1 of 6, 0 of 3 on node1, master $first
rank 2 of 6, 1 of 3 on node1, master $first
rank 3 of 6, 2 of 3 on node1, master $first
rank 4 of 6, 0 of 2 on node2, master $first
rank 5 of 6, 1 of 2 on node2, master $first" "ranks over $1"
}

# The world of every rank is the plan's, the first failure is named and ends all, what is written on stdin reaches rank 0.
expect_engine() {
    expect_uneven "$1"
    run -H node1:2,node2:2 --engine "$1" -- bash -c '[ "$RANK" != 3 ] || exit 7; sleep 60'
    expect_equal "$code" 7 "exit code of a failed rank over $1"
    expect_contains "$ERR" 'rank 3 on node2 exited with code 7'
    COMMAND="stdin over $1"
    echo hello | as_user prefix/bin/muster run -H node1:1,node2:1 --engine "$1" -- bash -c '[ "$RANK" != 0 ] || cat' >"$OUT" 2>"$ERR"
    expect_equal "$(cat "$OUT")" hello "what rank 0 read over $1"
    run --timeout 20s -H node1:1,node2:2 --engine "$1" -- bash -c 'cat; echo "rank $RANK has read all"'
    expect_equal "$code $(lines "$OUT")" '0 rank 0 has read all; rank 1 has read all; rank 2 has read all' "the end of stdin over $1: $(cat "$ERR")"
    COMMAND="the key in a file, over $1"
    as_user env SECRET_A=1 SECRET_B=2 prefix/bin/muster run --verbose --pass-key file --env-exclude 'SECRET_*' -x SECRET_B -H node1:1,node2:1 --engine "$1" -- \
        bash -c 'echo "${SECRET_A-none} ${SECRET_B-none} ${MUSTER_TOKEN-none}"' >"$OUT" 2>"$ERR" </dev/null
    expect_equal "$(lines "$OUT")" 'none 2 none; none 2 none' "variables over $1"
    expect_contains "$ERR" 'shims read the key of this run from'
    expect_equal "$(find "$CLUSTER_DIR/home/.cache/muster" -type f)" '' 'files of keys that are left'
    COMMAND="--remote-shell over $1"
    as_user env -u OMPI_MCA_plm_rsh_agent -u HYDRA_LAUNCHER_EXEC prefix/bin/muster run --remote-shell "$work/agent -q" -H node1:1,node2:1 --engine "$1" -- hostname \
        >"$OUT" 2>"$ERR" </dev/null
    expect_equal "$(lines "$OUT")" 'node1; node2' "hosts called by --remote-shell over $1: $(cat "$ERR")"
}

write_program sit <<'SIT'
echo $$ >"$0.new.$RANK" && mv "$0.new.$RANK" "$0.pid.$RANK"
exec sleep infinity
SIT
all_sit() { [ "$(ls "$work" | grep -c '^sit\.pid\.')" = 4 ]; }
sitting() {
    rm -f "$work"/sit.pid.*
    start as_user prefix/bin/muster run -H node1:2,node2:2 --engine "$1" -- ./sit
    wait_until 30 all_sit || exit 1
}
parent_of() { "$cluster" on "$1" ps -o ppid= -p "$2" | tr -d ' '; } # NODE PID
ended_on() { ! "$cluster" on "$1" kill -0 "$2" 2>/dev/null; }       # NODE PID

# mpirun kills the guards of the others when it has lost a process; then Open MPI 4's daemons end, and those of Open MPI 5 wait for the watchers. These stand still
# meanwhile, so that all they see is what is left of both; and so does the launcher, so that it hears of all at one moment. A daemon that was killed itself is named.
expect_blame_over_mpirun() {
    local launcher rank node daemons
    local -a program watcher guard daemon
    sitting mpirun
    launcher=$("$cluster" on head pgrep -nf 'bin/muster run -H')
    for rank in 0 1 2 3; do
        node=node$((rank / 2 + 1))
        program[rank]=$(cat "$work/sit.pid.$rank")
        watcher[rank]=$(parent_of $node "${program[rank]}")
        guard[rank]=$(parent_of $node "${watcher[rank]}")
        daemon[rank]=$(parent_of $node "${guard[rank]}")
    done
    daemons=$("$cluster" on node2 ps -o comm= -p "${daemon[3]}")
    "$cluster" on head kill -STOP "$launcher"
    "$cluster" on node1 kill -STOP "${watcher[0]}" "${watcher[1]}"
    "$cluster" on node2 kill -STOP "${watcher[2]}"
    "$cluster" on node2 kill -9 "${watcher[3]}" "${guard[3]}"
    for rank in 0 1 2; do wait_until 10 ended_on node$((rank / 2 + 1)) "${guard[rank]}"; done
    [ "$daemons" = prted ] || for rank in 0 2; do wait_until 10 ended_on node$((rank / 2 + 1)) "${daemon[rank]}"; done
    "$cluster" on node1 kill -CONT "${watcher[0]}" "${watcher[1]}"
    "$cluster" on node2 kill -CONT "${watcher[2]}"
    for rank in 0 1 2; do wait_until 10 ended_on node$((rank / 2 + 1)) "${program[rank]}"; done
    "$cluster" on head kill -CONT "$launcher"
    expect_end 125
    expect_contains stderr 'the watcher of rank 3 on node2 was killed'
    expect_not_contains stderr "$daemons on"
    sitting mpirun
    "$cluster" on node2 kill -9 "$(parent_of node2 "$(parent_of node2 "$(parent_of node2 "$(cat "$work/sit.pid.3")")")")"
    expect_end 125
    expect_contains stderr "$daemons on node2 died"
}

tested=0
if "$cluster" run mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
    tested=1
    expect_engine mpirun
    expect_blame_over_mpirun
    if [ -n "${MUSTER_WORLD_SIZE:-}" ]; then
        cp "$MUSTER_WORLD_SIZE" "$work/world_size" && chmod 755 "$work/world_size"
        run -H node2:2,node1:1 -- ./world_size
        expect_equal "$(sort "$OUT")" "rank 0 of 3 on node2
rank 1 of 3 on node2
rank 2 of 3 on node1" "an Open MPI program; $(cat "$ERR")"
    fi
fi
if "$cluster" run mpiexec.hydra --version 2>/dev/null | grep -q HYDRA; then
    tested=1
    expect_engine mpiexec
    if command -v mpicxx.mpich >/dev/null && mpicxx.mpich -o "$work/mpich_world" "$MUSTER_SOURCE_DIR/tests/cluster/world_size_main.cpp"; then
        chmod 755 "$work/mpich_world"
        # Debian's MPICH 4.0.2 often hangs in MPI_Finalize on several nodes, whoever started it (run_programs_test.sh): what its ranks say before that is tested,
        # not what its mpiexec then prints of killed ranks.
        run --timeout 20s -H node2:2,node1:1 -- ./mpich_world
        expect_equal "$(grep '^rank ' "$OUT" | sort)" "rank 0 of 3 on node2
rank 1 of 3 on node2
rank 2 of 3 on node1" "an MPICH program finds its mpiexec; $(cat "$ERR")"
    fi
fi
[ "$tested" = 1 ] || skip 'neither Open MPI nor MPICH is here'

# In a Slurm job, whose tasks are not its GPUs, each engine gives every rank its place and its GPUs; an MPICH program meets its world under srun.
cat >"$work/job.sh" <<'END'
#!/bin/bash
for engine in srun mpirun mpiexec; do
    prefix/bin/muster run --engine $engine -- bash -c "echo $engine \$RANK of \$WORLD_SIZE on \$(hostname) local \$LOCAL_RANK" </dev/null
    echo "$engine ended with $?"
done
prefix/bin/muster run -n 3 -- bash -c 'echo three $RANK on $(hostname)'
[ ! -e mpich_world ] || prefix/bin/muster run --timeout 20s -- ./mpich_world | sed 's/^/mpich /'
END
chmod 755 "$work/job.sh"
unset OMPI_MCA_plm_rsh_agent HYDRA_LAUNCHER_EXEC
submit_script job.sh -N 2 --gres=gpu:2
finish_job
expect_equal "$code" 0:0 'exit code of the job'
nodes=($(as_user scontrol show hostnames "$(job_field "$job" NodeList)"))
for engine in srun mpirun mpiexec; do
    grep -q "^$engine ended" "$OUT" || continue
    expect_equal "$(grep "^$engine [0-9]" "$OUT" | sort)" "$engine 0 of 4 on ${nodes[0]} local 0
$engine 1 of 4 on ${nodes[0]} local 1
$engine 2 of 4 on ${nodes[1]} local 0
$engine 3 of 4 on ${nodes[1]} local 1" "ranks of $engine in the job; $(cat "$OUT")"
done
expect_equal "$(grep '^three' "$OUT" | sort)" "three 0 on ${nodes[0]}
three 1 on ${nodes[0]}
three 2 on ${nodes[1]}" 'an uneven layout in the job'
[ ! -e "$work/mpich_world" ] || expect_equal "$(grep -c '^mpich rank [0-3] of 4' "$OUT")" 4 "an MPICH program under srun; $(cat "$OUT")"
