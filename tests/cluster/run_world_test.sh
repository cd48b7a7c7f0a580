# timeout: 180
# `muster run` over the nodes of a Slurm job, by an ordinary user: every rank in its place, with its own GPU, the user's environment and the right streams. NVML
# finds no GPU there; the ranks' ones are those that Slurm names in each step's CUDA_VISIBLE_DEVICES.
. "$(dirname "$0")/cluster_lib.sh"
CLUSTER_GPU_VARIABLES=1 start_cluster 4 4
install_muster
muster=prefix/bin/muster

write_program say <<'SAY'
echo "rank $RANK of $WORLD_SIZE local $LOCAL_RANK of $LOCAL_WORLD_SIZE on $(</proc/sys/kernel/hostname) gpu ${MUSTER_GPU_INDEX:--}"
SAY
# world COUNT...: what `say` prints where node1, node2, ... have so many ranks.
world() {
    local rank=0 size=0 node=0 count local_rank
    for count; do size=$((size + count)); done
    for count; do
        node=$((node + 1))
        for ((local_rank = 0; local_rank < count; local_rank++)); do
            echo "rank $rank of $size local $local_rank of $count on node$node gpu $local_rank"
            rank=$((rank + 1))
        done
    done
}
expect_world() { expect_equal "$(sort -V "$OUT")" "$(world "$@" | sort -V)" 'the ranks'; }

# A shell by salloc runs on the login node, which has no GPU.
expect_exit 0 as_user salloc -Q -N4 --ntasks-per-node=4 --gres=gpu:4 "$muster" run -- ./say
expect_world 4 4 4 4

# A batch script; Slurm is told nothing but nodes and GPUs.
batch -N4 --gres=gpu:4 <<'JOB'
prefix/bin/muster run -q -- ./say
JOB
finish_job
expect_equal "$code" 0:0 'exit code of the job'
expect_world 4 4 4 4

# What a job script sets for itself holds on all of its nodes.
write_program limits <<<'echo "core $(ulimit -c) stack $(ulimit -s) files $(ulimit -n) mask $(umask)"'
batch -N2 -w node1,node2 --gres=gpu:4 <<'JOB'
ulimit -S -c 0 -s 4096 -n 777
umask 027
prefix/bin/muster run -q -- ./limits
JOB
finish_job
expect_equal "$(sort "$OUT" | uniq -c | tr -s ' ')" ' 8 core 0 stack 4096 files 777 mask 0027' 'limits of the ranks'

allocate -N4 --gres=gpu:4
run() { inside "$muster" run "$@"; }
expect_exit 0 run -- ./say
expect_world 4 4 4 4

# In a step: of the job as a whole, as salloc makes one where it starts its shell on a node, or of one node alone.
expect_exit 0 inside srun -Q --interactive --preserve-env "$muster" run -- ./say
expect_world 4 4 4 4
expect_exit 0 inside srun -Q --overlap -N1 -n1 "$muster" run -- ./say
expect_world 4

# From the login node only the umask does: its own limits say nothing of the nodes.
expect_exit 0 inside bash -c 'ulimit -S -s 4096; umask 027; exec "$@"' - "$muster" run -- ./limits
expect_equal "$(grep -c 'mask 0027$' "$OUT")" 16 'ranks with the umask'
expect_not_contains stdout 'stack 4096'

# Uneven layouts, and part of the nodes.
expect_exit 0 run -n 7 --nodes 2 -- ./say
expect_world 4 3
expect_exit 0 run -n 6 --ranks-per-node 3 -- ./say
expect_world 3 3
expect_exit 0 run -n 2 -- ./say
expect_world 2
expect_exit 0 run -n 6 --map-by node -- ./say
expect_equal "$(sort -V "$OUT" | cut -d' ' -f2,6,10,12 | paste -sd,)" \
    '0 0 node1 0,1 0 node2 0,2 0 node3 0,3 0 node4 0,4 1 node1 1,5 1 node2 1' 'rank, local rank, node and GPU'
expect_exit 125 run -n 17 -- ./say
expect_contains stderr '17 ranks' '16 GPUs on 4 nodes'

# Its messages' reader goes away, and the launcher still ends as the ranks did.
run -n 1 -- false 2>&1 >"$OUT" | :
expect_equal "${PIPESTATUS[0]}" 1 'exit code with nobody who reads the messages'

# Nothing is started by these.
expect_exit 0 run --dry-run -- ./say
expect_matches stdout '(^|[ /])srun .*--mpi=pmix'
expect_not_contains stdout 'rank 0'
expect_exit 0 run --print-env 6 -- ./say
expect_matches stdout '^RANK=6$' '^LOCAL_RANK=2$' '^WORLD_SIZE=16$' '^GROUP_RANK=1$'

# The environment arrives as it is, -x adds to it, --wd is on the nodes.
write_program show <<'SHOW'
printf '%s\0' "$GIVEN" "$ADDED" "$PWD" "${UNSET_THERE-none}" >"$work/shown.$RANK"
SHOW
hostile=$'two\nlines, a b; "c" $d `e` \xff\xfe =\\'
mkdir "$work/a folder" && chmod 777 "$work/a folder"
expect_exit 0 env GIVEN="$hostile" work="$work" bash -c 'cd "$work" && exec timeout 60 "$0" run env "$@"' "$cluster" "${salloc_env[@]}" \
    GIVEN="$hostile" work="$work" "$muster" run -x ADDED="$hostile" --wd "$work/a folder" -- "$work/show"
for rank in 0 15; do
    printf '%s\0' "$hostile" "$hostile" "$work/a folder" none | cmp - "$work/shown.$rank" || fail "rank $rank got another environment"
done

# Standard input is rank 0's; the others find its end.
write_program add <<'ADD'
echo "$RANK $(wc -c)"
ADD
printf 'x%.0s' {1..100000} >"$work/input"
expect_exit 0 run -- ./add <"$work/input"
expect_equal "$(lines "$OUT")" "0 100000; $(for r in {1..15}; do echo "$r 0"; done | paste -sd';' | sed 's/;/; /g')" 'bytes that each rank has read'

# Lines of 16 ranks at once stay whole, with their rank before each, and in a file of each rank.
write_program lines <<'LINES'
for ((i = 0; i < 200; i++)); do echo "line $i of $RANK: abcdefghijklmnopqrstuvwxyz"; done
echo "to stderr: $RANK" >&2
printf 'no newline %s' "$RANK"
LINES
expect_exit 0 run --tag-output --output-dir output -- ./lines
expect_equal "$(wc -l <"$OUT")" $((16 * 201)) 'lines'
expect_equal "$(grep -cvE '^\[node([1-4]):([0-9]+)\] (line [0-9]+ of \2: abcdefghijklmnopqrstuvwxyz|no newline \2)$' "$OUT")" 0 'torn lines'
expect_equal "$(grep -c '^\[node4:15\] to stderr: 15$' "$ERR")" 1 'lines on standard error'
expect_equal "$(cat "$work/output/rank.15/stdout")" "$(for i in {0..199}; do echo "line $i of 15: abcdefghijklmnopqrstuvwxyz"; done; printf 'no newline 15')" \
    'what the file of rank 15 holds'

# One of 4 ranks on four nodes that keeps the others waiting is named with its node, while the run lasts.
if install_programs straggler 2>/dev/null; then
    is_named() {
        as_user "$muster" top slow --json >"$work/top.json" 2>"$work/top.err" && /usr/bin/python3 - "$work/top.json" <<'PY'
import json, sys
sys.exit([(mark["rank"], mark["host"]) for mark in json.load(open(sys.argv[1]))["oddities"] if mark["kind"] == "awaited"] != [(2, "node3")])
PY
    }
    start inside "$muster" run -q -n 4 --ranks-per-node 1 --sample 500ms --output-dir slow -- ./straggler comm 2 40 "$work/slow.end"
    wait_until 60 is_named || cat "$work/top.json" "$work/top.err"
    as_user touch slow.end
    expect_end 0
fi

# A program that only the login node has.
as_user bash -c 'printf "#!/bin/sh\n" >/tmp/only_here; chmod 755 /tmp/only_here'
expect_exit 127 run -- /tmp/only_here
expect_matches stderr 'on node[1-4].*/tmp/only_here|/tmp/only_here.*on node[1-4]'
as_user rm /tmp/only_here
expect_nothing_left
release

# One node: batch scripts run there and need no srun; a shell by salloc does not.
batch -N1 --gres=gpu:4 <<'JOB'
prefix/bin/muster run -q -- ./say; prefix/bin/muster run --dry-run -- ./say
JOB
finish_job
expect_equal "$code" 0:0 'exit code of the job'
node=$(job_field "$job" BatchHost)
expect_equal "$(grep '^rank' "$OUT" | sort)" "$(world 4 | sed "s/node1/$node/")" 'the ranks'
expect_not_contains stdout srun
expect_exit 0 as_user salloc -Q -N1 -w node2 --gres=gpu:4 "$muster" run -- ./say
expect_equal "$(sort "$OUT")" "$(world 4 | sed 's/node1/node2/')" 'the ranks'

# Two jobs on the same nodes: each rank's GPU is one that its own job has. MUSTER_GPU_INDEX counts among those that the rank sees.
write_program gpus <<'GPUS'
echo "rank $RANK on $(</proc/sys/kernel/hostname): $MUSTER_GPU_INDEX of $CUDA_VISIBLE_DEVICES"
GPUS
allocate -N2 -w node1,node2 --gres=gpu:2
beside() { as_user salloc -Q -N2 -w node1,node2 --gres=gpu:2 "$muster" run "$@"; }
expect_exit 0 beside -- ./gpus
expect_equal "$(lines "$OUT")" 'rank 0 on node1: 0 of 2,3; rank 1 on node1: 1 of 2,3; rank 2 on node2: 0 of 2,3; rank 3 on node2: 1 of 2,3' 'GPUs'
expect_exit 0 beside --gpu-visibility own -- ./gpus
expect_equal "$(lines "$OUT")" 'rank 0 on node1: 0 of 2; rank 1 on node1: 0 of 3; rank 2 on node2: 0 of 2; rank 3 on node2: 0 of 3' 'GPUs'
expect_exit 0 run --gpu-visibility own-first -- ./gpus
expect_equal "$(lines "$OUT")" 'rank 0 on node1: 0 of 0,1; rank 1 on node1: 0 of 1,0; rank 2 on node2: 0 of 0,1; rank 3 on node2: 0 of 1,0' 'GPUs'
release
expect_nothing_left
