# timeout: 240
# Jobs submitted from within jobs: whatever the outer one is, and however it was asked for, the inner one has the nodes, slots and GPUs that it has when it is
# submitted from the login node. Every pair of an outer and an inner kind, by real jobs; sbatch and salloc pass on the variables of the outer one.
. "$(dirname "$0")/cluster_lib.sh"
CLUSTER_GPU_VARIABLES=1 start_cluster 3 4
install_muster
command -v mpirun >/dev/null || skip 'one of the outer jobs is a rank of mpirun, which is not here'

# What it finds, without what differs from job to job. A job's tasks of an array and the components of a heterogeneous one find their own.
write_program find_hosts <<'FIND'
if prefix/bin/muster hosts --format json >"found.$1.json" 2>"found.$1.err"; then
    tr -d ' \n' <"found.$1.json" | grep -oE '"slots":[0-9]+,"gpus":[0-9]+,"cpus":[0-9]+' | sort >"found.$1.tmp"
else
    cat "found.$1.err" >"found.$1.tmp"
fi
mv "found.$1.tmp" "found.$1"
FIND

# The inner kinds: how each is asked for.
declare -A asks=(
    [by_gres4]='-N2 --gres=gpu:4' [by_gres1]='-N2 --gres=gpu:1' [tasks]='-N2 -n8 --ntasks-per-node=4 --gres=gpu:4'
    [by_node]='-N2 --gpus-per-node=2' [by_task]='-n3 --gpus-per-task=1' [one_node]='-N1 -n2' [cores]='-N1 -n1 -c4'
    [array]='--array=7 -N1 --gpus-per-node=2' [uneven]='-N2 -n3 --gres=gpu:3' [het]='-N1 -n1 : -N1 -n2'
)
# submit_inner OUTER: submits all inner kinds, as the program of an outer job.
{
    echo 'for kind in "$@"; do'
    echo '    case $kind in'
    for kind in "${!asks[@]}"; do echo "    $kind) ask='${asks[$kind]}' ;;"; done
    echo '    esac'
    echo '    case $kind in het) option= ;; *) option=--requeue ;; esac'
    echo '    sbatch --parsable $option -t 1 -o "job.$OUTER.$kind" $ask ./inner.sh "$OUTER.$kind" >>submitted || echo "$OUTER.$kind: refused" >>refused'
    echo 'done'
    echo 'salloc -Q -N2 --gres=gpu:2 ./find_hosts "$OUTER.salloc"'
    echo ': >"done.$OUTER"'
} | write_program submit_inner
write_program inner.sh <<'INNER'
exec ./find_hosts "$1"
INNER

# The outer kinds.
outer() { # NAME COMMAND...: COMMAND submits the inner jobs
    printf -v COMMAND '%q ' "${@:2}"
    as_user env OUTER="$1" "${@:2}" >"$work/outer.$1" 2>&1 || fail "the outer job $1: $(cat "$work/outer.$1")"
}
kinds=("${!asks[@]}")
write_program outer.sh <<<"exec ./submit_inner ${kinds[*]}"
write_program on_rank_0 <<'RANK'
[ "${RANK:-${OMPI_COMM_WORLD_RANK:-}}" != 0 ] || exec ./submit_inner "$@"
until [ -e "done.$OUTER" ]; do sleep 0.1; done
RANK
outer login ./submit_inner "${kinds[@]}"
outer cpus sbatch -W -N1 -n3 -c2 -t 2 outer.sh
outer by_node sbatch -W -N1 --gpus-per-node=1 -t 2 outer.sh
outer by_gres sbatch -W -N1 --gres=gpu:3 -t 2 outer.sh
outer array sbatch -W --array=3 -N1 --gpus-per-node=3 -t 2 outer.sh
outer het sbatch -W -t 2 -N1 -n1 : -N1 -n2 --gres=gpu:1 outer.sh
outer salloc salloc -Q -N1 --gpus-per-node=4 ./submit_inner "${kinds[@]}"
outer step srun -N1 -n1 --gpus-per-task=2 ./submit_inner "${kinds[@]}"
outer rank salloc -Q -N1 -n4 prefix/bin/muster run -n 4 -- ./on_rank_0 "${kinds[@]}"
outer mpirun salloc -Q -N1 -n2 mpirun -n 2 -x OUTER ./on_rank_0 "${kinds[@]}"

[ ! -e "$work/refused" ] || fail "sbatch refused: $(cat "$work/refused")"
outers=(cpus by_node by_gres array het salloc step rank mpirun)
kinds+=(salloc)
all_found() { [ "$(ls "$work" | grep -c '^found\.[a-z_0-9]*\.[a-z_0-9]*$')" = $(((${#outers[@]} + 1) * ${#kinds[@]})) ]; }
wait_until 120 all_found || {
    as_user squeue
    ls "$work"
}
for kind in "${kinds[@]}"; do
    COMMAND="the inner job $kind"
    [ -s "$work/found.login.$kind" ] && ! grep -q 'error' "$work/found.login.$kind" || fail "from the login node: $(cat "$work/found.login.$kind")"
    for name in "${outers[@]}"; do
        cmp -s "$work/found.login.$kind" "$work/found.$name.$kind" ||
            fail "submitted from $name it finds: $(cat "$work/found.$name.$kind") and not: $(cat "$work/found.login.$kind")"
    done
done

# Ranks, and what they are told of GPUs and of launchers around them.
write_program say <<'SAY'
echo "rank $RANK of $WORLD_SIZE, GPUs ${CUDA_VISIBLE_DEVICES-none}, array ${SLURM_ARRAY_TASK_ID-none} ${MUSTER_ARRAY_INDEX-none}, components ${SLURM_HET_SIZE-none}"
SAY
write_program ranks.sh <<'RANKS'
prefix/bin/muster run --nested -- ./say
RANKS
expect_exit 0 as_user salloc -Q -N1 --gpus-per-node=1 sbatch -W -N2 --gres=gpu:4 -o ranks.8 ranks.sh
expect_equal "$(grep -c 'of 8,' "$work/ranks.8")" 8 "ranks: $(cat "$work/ranks.8")"
write_program nest <<'NEST'
sbatch -W -N1 -n2 -o ranks.2 ranks.sh
NEST
expect_exit 0 as_user sbatch -W --array=5 -N1 --gres=gpu:2 nest
expect_equal "$(sort "$work/ranks.2")" "rank 0 of 2, GPUs none, array none none, components none
rank 1 of 2, GPUs none, array none none, components none" 'what the ranks see'
expect_nothing_left
