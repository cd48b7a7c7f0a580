# `muster watch` over a job that is put back into the queue: each line of its ranks comes once, and as theirs.
# timeout: 240
# parts: jobs
. "$(dirname "$0")/cluster_lib.sh"
start_cluster 1 2
install_muster
longest_s=120
write_program life <<'LIFE'
echo "rank $RANK life $MUSTER_LIFE"
[ "$MUSTER_LIFE" -lt 2 ] || exit 0
while [ ! -e "go.$MUSTER_LIFE" ]; do sleep 0.05; done
exit 75
LIFE
as_user prefix/bin/muster submit --site generic-slurm --gpus 2 --gpus-per-node 2 --time 5min --requeue -- ./life >"$work/submitted" 2>"$ERR" ||
    { fail "muster submit: $(cat "$ERR")"; exit 1; }
job=$(sed -n 's/^job //p' "$work/submitted")
start as_user prefix/bin/muster watch "$job"
for life in 0 1; do
    wait_until 60 grep -q "rank 0 life $life" "$OUT" || exit 1
    : >"$work/go.$life"
done
expect_end 0
expect_equal "$(grep -o 'rank [0-9] life [0-9]' "$OUT" | sort | paste -sd';')" \
    'rank 0 life 0;rank 0 life 1;rank 0 life 2;rank 1 life 0;rank 1 life 1;rank 1 life 2' "lines of the ranks: $(cat "$OUT")"
expect_equal "$(grep -c '^rank ' "$OUT")" 0 'lines of ranks that are shown as the script'"'"'s'
