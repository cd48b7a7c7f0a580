# timeout: 420
# Training over several lives in a real Slurm, as an ordinary user: a chain at its time limits, and a job that is started again because it has saved, and because of
# scontrol. Whatever happens, the model is trained on each sample as often as without it.
# parts: jobs data
. "$(dirname "$0")/cluster_lib.sh"
/usr/bin/python3 -c 'import numpy' 2>/dev/null || skip 'no NumPy for /usr/bin/python3'
export CLUSTER_KILL_WAIT=2
[ -e "$MUSTER_BIN/../python/_muster_data.abi3.so" ] || skip 'muster.data was not built'
start_cluster 4 2
for part in launcher libraries python data; do cmake --install "$MUSTER_BIN/.." --prefix "$work/prefix" --component $part >/dev/null || exit 1; done
cp -r "$MUSTER_SOURCE_DIR/site-configs" "$work/prefix/share/muster/" 2>/dev/null
chmod -R a+rX "$work/prefix"
m() { as_user prefix/bin/muster "$@"; }
submit() {
    m submit --site generic-slurm --gpus 4 --gpus-per-node 2 "$@" >"$OUT" 2>"$ERR" || fail "muster submit $*"
    jobs=($(sed -n 's/^job //p' "$OUT"))
    job=${jobs[0]}
    [ -n "$job" ] || exit 1
}

cat >"$work/train.py" <<'PY'
import itertools, os, signal, sys, time
import numpy as np
import muster
from muster import arrays
from muster.checkpoint import Checkpoint, exit_saved
from muster.data import Sampler

folder, held_lives, epochs, samples, batch_size = sys.argv[1], int(sys.argv[2]), 2, 603, 2
life = int(os.environ["MUSTER_LIFE"])
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
muster.init()
sampler = Sampler(samples, rank=muster.rank, size=muster.size, seed=3)
trained, step, checkpoint = np.zeros(samples, dtype=np.int32), 0, Checkpoint(folder)
found = arrays.broadcast_object(checkpoint.load() if muster.rank() == 0 else None)
if found:
    step, state = found
    sampler.load_state_dict(state["sampler"])
before = state["trained"] if found else np.zeros_like(trained)
if muster.rank() == 0:
    print("life", life, "restart", os.environ["TORCHELASTIC_RESTART_COUNT"], "begins at", step, flush=True)


def save():
    total = before + arrays.allreduce(trained, op=arrays.Sum)
    if muster.rank() == 0:
        checkpoint.save(step, {"sampler": sampler.state_dict(), "trained": total})
    arrays.barrier()
    return total


while sampler.next_pass()[0] < epochs:
    left, numbers = samples - sampler.next_pass()[1], iter(sampler)
    while left > 0:
        for number in itertools.islice(numbers, batch_size):
            trained[number] += 1
        left -= batch_size * muster.size()
        step += 1
        if step % 20 == 0:
            save()
        while True:
            if arrays.allreduce(np.array([len(asked)]), op=arrays.Max)[0]:
                save()
                exit_saved()
            if life >= held_lives or step < 40 * (life + 1):
                break
            time.sleep(0.02)  # what it waits for ends it
    next(numbers, None)
assert (save() == epochs).all()
if muster.rank() == 0:
    print("every sample", epochs, "times in", step, "steps", flush=True)
PY
lives() { grep -h '^life' "$@" | sed 's/ begins.*//' | paste -sd';' | sed 's/;/; /g'; }
begun_at() { grep -h '^life' "$@" | sed 's/.* at //' | paste -sd' '; }

# A chain: at 25 s of a job the ranks save and end with 75, of the first one at the latest at step 40. What is left of the chain has nothing to do.
submit --time 1min --signal-before-end USR1@35 --chain 4 --job-name count -- /usr/bin/python3 train.py saved 1
longest_s=200
expect_exit 0 m watch "${jobs[@]}"
outputs=("${jobs[@]/#/$work/muster-runs/}")
outputs=("${outputs[@]/%/.out}")
expect_equal "$(cat "${outputs[@]}" | grep -c '^every sample 2 times in 152 steps$')" 1 'how often the training ended'
expect_contains "${outputs[0]}" 'SIGUSR1 to 4 ranks' '4 of 4 ranks ended with 75: saved'
expect_contains "${outputs[3]}" 'job 4 of 4: the program has ended with 0 already'
expect_matches <(lives "${outputs[@]}") '^life 0 restart 0; life 1 restart 0(; life 2 restart 0)?$'
steps=($(begun_at "${outputs[@]}"))
[ "${steps[0]}" = 0 ] && [ "${steps[1]}" -gt 0 ] || fail "the jobs began at steps ${steps[*]}"
expect_equal "$(job_field "$job" ExitCode)" 75:0 'exit code of the first job'
ls "$work"/saved | grep -qv '^step-[0-9]*.ckpt$' && fail "left in the folder: $(ls "$work/saved")"

# One job, started again: by muster, as it has saved, and by scontrol, which kills it at once.
newest() { ls "$work/again" 2>/dev/null | sed -n 's/^step-0*\([0-9]*\).ckpt$/\1/p' | sort -n | tail -n 1 | grep . || echo 0; }
life_saves() { grep -q "^life $1 " "$work/muster-runs/$job.out" && [ "$(newest)" -gt "$(begun_at "$work/muster-runs/$job.out" | sed 's/.* //')" ]; }
submit --time 5min --requeue --job-name again -- /usr/bin/python3 train.py again 2
wait_until 60 life_saves 0 || exit 1
as_user scancel --batch --signal=USR1 "$job"
wait_until 90 life_saves 1 || exit 1
cp "$work/muster-runs/$job.out" "$OUT"
expect_contains stdout "4 of 4 ranks ended with 75: saved" "job $job is back in the queue"
as_user scontrol requeue "$job"
finish_job
cp "$work/muster-runs/$job.out" "$OUT"
expect_equal "$code" 0:0 'exit code of the job'
expect_equal "$(lives "$OUT")" 'life 0 restart 0; life 1 restart 0; life 2 restart 0' lives
expect_contains stdout 'every sample 2 times in 152 steps'
read -ra steps <<<"$(begun_at "$OUT")"
[ "${steps[0]}" = 0 ] && [ "${steps[1]}" -gt 0 ] && [ "${steps[2]}" -gt "${steps[1]}" ] || fail "the lives began at steps ${steps[*]}"

# A node is lost: the next start has another one in its place, whether or not Slurm knows by then, and nodes that the user has excluded stay out. Without GPUs:
# Slurm 22.05 starts such a job on other nodes without those.
newest() { ls "$work/lost" 2>/dev/null | sed -n 's/^step-0*\([0-9]*\).ckpt$/\1/p' | sort -n | tail -n 1 | grep . || echo 0; }
as_user mkdir -p muster-runs
batch -N2 --ntasks-per-node=2 --requeue --open-mode=append --exclude node3 -o "muster-runs/%j.out" <<'JOB'
prefix/bin/muster run --heartbeat 2s --requeue-saved --lives-file lost.lives -- /usr/bin/python3 train.py lost 1
JOB
wait_until 60 life_saves 0 || exit 1
expect_equal "$(job_field "$job" NodeList)" 'node[1-2]' 'nodes of the first start'
"$cluster" crash node2
longest_s=120
wait_until 120 has_ended "$job" || exit 1
cp "$work/muster-runs/$job.out" "$OUT"
expect_contains stdout 'lost ranks 2-3 on node2' "job $job is back in the queue" "job $job does not start on node2 again" 'every sample 2 times in 152 steps'
expect_equal "$(lives "$OUT")" 'life 0 restart 0; life 1 restart 0' 'lives of the job that lost a node'
expect_equal "$(job_field "$job" ExitCode) $(job_field "$job" NodeList) $(job_field "$job" ExcNodeList)" '0:0 node[1,4] node3,node2' 'its end, the nodes of the second start, and those left out'
"$cluster" boot node2

# Two jobs in a row without progress are the last.
submit --time 1min --chain 3 --job-name broken -- bash -c 'exit 3'
expect_exit 3 m watch "${jobs[@]}"
expect_contains "$work/muster-runs/${jobs[1]}.out" "no further start: life 0 (job ${jobs[0]}) and life 1 (job ${jobs[1]}) made no progress: it ended with code 3 after"
expect_contains "$work/muster-runs/${jobs[2]}.out" 'job 3 of 3 does not start the program: life 0'
