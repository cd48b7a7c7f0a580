# The exit code that says "saved, start me again": what a run makes of it, MUSTER_LIFE, and job scripts of chains that go on, are done, or stop.
# parts: jobs
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
unset MUSTER_SITE_PATH XDG_CONFIG_HOME
export HOME=$PWD
run=("$MUSTER" run -n 3)

# ------------------------------------------------------------------------------------------------ the code of a run

expect_exit 75 "${run[@]}" -- sh -c 'exit 75'
expect_contains stderr 'muster: note: 3 of 3 ranks ended with 75: saved, to go on in another start (--saved-code)'
expect_not_contains stderr error
expect_exit 75 "${run[@]}" -q -- sh -c 'exit 75'
expect_empty stderr
# The ranks that are done wait for nobody, and nobody ends the others.
expect_exit 75 "${run[@]}" -- sh -c '[ $RANK != 1 ] || exit 75; until [ -e go.$RANK ]; do :>go.$RANK; done; exit 0'
expect_contains stderr '1 of 3 ranks ended with 75'
# A failure is one, whoever has saved before.
cat >late.sh <<'SH'
echo $$ >pid.$RANK
[ $RANK = 1 ] || exit 75
over() { [ -s pid.$1 ] && ! kill -0 "$(cat pid.$1)" 2>/dev/null; }
until over 0 && over 2; do :; done
exit 3
SH
expect_exit 3 "${run[@]}" -- sh late.sh
expect_contains stderr "error: rank 1 on $(hostname) exited with code 3" 'had ended with code 75 before that'
expect_exit 4 "${run[@]}" --saved-code 75 -- sh -c 'exit 4'
# Settable; 0: a failure like any other.
expect_exit 9 "${run[@]}" --saved-code 9 -- sh -c 'exit 9'
expect_contains stderr '3 of 3 ranks ended with 9: saved'
expect_exit 75 "${run[@]}" --saved-code 9 -- sh -c 'exit 75'
expect_contains stderr 'exited with code 75, '
expect_exit 75 env MUSTER_SAVED_CODE=0 "${run[@]}" -- sh -c '[ $RANK = 1 ] && exit 75; exec sleep 100'
expect_contains stderr "error: rank 1 on $(hostname) exited with code 75, "
expect_exit 2 "${run[@]}" --saved-code 256 -- true
expect_contains stderr "'256' is no exit code; write one from 0 to 255"
# No restart follows: the program wants another job.
expect_exit 75 "${run[@]}" --max-restarts 3 -- sh -c 'echo $MUSTER_LIFE >>lives.$RANK; exit 75'
expect_equal "$(cat lives.0)" 0
# Asked to end, a program that saves then has not failed; one that does not is ended as always.
mkfifo fifo.0 fifo.1 fifo.2
for signal in TERM:143 INT:130; do
    start "${run[@]}" -- bash -c 'trap "exit 75" TERM INT; echo ready; while :; do read -r -t 0.02 <>fifo.$RANK; done'
    wait_until 20 out_lines 3
    kill -"${signal%:*}" $PID
    expect_end 75
    start "${run[@]}" -- bash -c '[ $RANK = 0 ] && trap "exit 75" TERM INT; echo ready; while :; do read -r -t 0.02 <>fifo.$RANK; done'
    wait_until 20 out_lines 3
    kill -"${signal%:*}" $PID
    expect_end "${signal#*:}"
done
expect_exit 124 "${run[@]}" --timeout 0.3s -- bash -c 'trap "exit 75" TERM; while :; do read -r -t 0.02 <>fifo.$RANK; done'

# ------------------------------------------------------------------------------------------------ lives

expect_exit 0 "${run[@]}" -q -- sh -c 'echo $MUSTER_LIFE'
expect_equal "$(sort -u "$OUT")" 0
expect_exit 0 env MUSTER_CHAIN_LINK=3 SLURM_RESTART_COUNT=2 "${run[@]}" -q --max-restarts 2 -- sh -c 'echo $MUSTER_LIFE $TORCHELASTIC_RESTART_COUNT; exit $((MUSTER_GENERATION == 0))'
expect_equal "$(sort -u "$OUT" | tail -n 1)" '5 1' 'life and restart'
expect_exit 0 env MUSTER_LIFE=7 "${run[@]}" -q -- sh -c 'echo $MUSTER_LIFE'
expect_equal "$(sort -u "$OUT")" 0 'of an outer run'

# chain [LINKS] OPTIONS... -- PROGRAM: the job script of a chain, run as so many jobs one after the other; their exit codes in $codes, what they printed in said.N.
chain() {
    local links=$1
    shift
    expect_exit 0 "$MUSTER" script --site generic-pbs --gpus 2 --time 1h --chain "$links" --job-name c --muster "$PWD/muster-here" "$@" || exit 1
    cp "$OUT" chain.sh
    codes=
    for ((link = 1; link <= links; link++)); do
        PBS_O_WORKDIR=$PWD MUSTER_CHAIN_START=$link bash chain.sh >said.$link 2>&1
        codes+="$? "
    done
}
# Job scripts start the ranks with what the site asks for; here on this machine, whatever it has.
printf '#!/bin/sh\nexec "%s" "$@"\n' "$MUSTER" >muster-here && chmod +x muster-here
export MUSTER_SLOTS_PER_NODE=3

rm -f log
chain 4 -- sh -c '[ $RANK != 0 ] || echo "$MUSTER_LIFE $MUSTER_CHAIN_LINK" >>log; [ $MUSTER_CHAIN_LINK = 3 ] || exit 75'
expect_equal "$codes" '75 75 0 0 '
expect_equal "$(paste -sd, log)" '0 1,1 2,2 3' 'lives and links'
expect_contains said.4 'job 4 of 4: the program has ended with 0 already; .muster-chain/c.done says so'
[ ! -e .muster-chain/c.lives ] || fail 'the record of the lives is left'
# A failure is no end of the chain; a second one in a row is.
rm -f log
chain 4 -- sh -c '[ $RANK != 0 ] || echo "$MUSTER_LIFE" >>log; [ $MUSTER_CHAIN_LINK = 2 ] && exit 75; exit 3'
expect_equal "$codes" '3 75 3 3 '
chain 4 -- sh -c '[ $RANK != 0 ] || echo "$MUSTER_LIFE" >>log; exit 3'
expect_equal "$codes" '3 3 1 1 '
expect_contains said.2 'muster: error: no further start: life 0 and life 1 made no progress: it ended with code 3 after' 'remove .muster-chain/c.stopped to go on with this one'
expect_contains said.3 'job 3 of 4 does not start the program: life 0 and life 1 made no progress'
# Saved, but no further, as a file shows; the next chain of that name begins anew.
rm -f log
chain 4 --must-grow log -- sh -c '[ $MUSTER_CHAIN_LINK != 1 ] || echo >>log; exit 75'
expect_equal "$codes" '75 75 75 1 '
expect_contains said.3 'made no progress: log has not grown (--must-grow)'
rm -f log
chain 3 -- sh -c '[ $MUSTER_CHAIN_LINK != 1 ] || echo "muster-metric: loss 1"; exit 3'
expect_equal "$codes" '3 3 3 '
expect_contains said.3 'no line with muster-metric: was written'
# A job that has saved is further, also where its metric comes once in several jobs.
chain 5 -- sh -c '[ $MUSTER_CHAIN_LINK != 1 ] || echo "muster-metric: loss 1"; exit 75'
expect_equal "$codes" '75 75 75 75 75 '
[ ! -e .muster-chain/c.stopped ] || fail 'stopped'
chain 3 --saved-code 9 -- sh -c 'exit 9'
expect_equal "$codes" '9 9 9 '
# A job that its scheduler kills leaves a beginning without an end, which proves nothing.
chain 3 -- sh -c '[ $RANK.$MUSTER_CHAIN_LINK != 0.2 ] || kill -9 $(ps -o ppid= $PPID) $PPID; [ $RANK.$MUSTER_CHAIN_LINK != 1.2 ] || exec sleep 100; exit 3'
expect_equal "$codes" '3 137 3 '
[ ! -e .muster-chain/c.stopped ] || fail 'stopped'

# An end with 0 after the early signal is not the end of the work.
chain 2 -- true
expect_equal "$codes" '0 0 '
cat >early.sh <<'SH'
trap 'exit 0' USR1
: >ready.$RANK
while :; do read -r -t 0.02 <>fifo.$RANK; done
SH
rm -f done
start "${run[@]}" --success-file done --lives-file my.lives -- bash early.sh
wait_until 20 test -e ready.0 -a -e ready.1 -a -e ready.2
kill -USR1 $PID
expect_end 0
[ ! -e done ] || fail 'the chain counts as done'
expect_contains stderr 'ended with 0 after the signal that announces the end' 'let a program that has saved end with 75'
expect_exit 0 "${run[@]}" --success-file done --lives-file my.lives -- true
[ -e done ] || fail 'the chain is not done'
expect_exit 0 "${run[@]}" --success-file undone --dry-run -- true
[ ! -e undone ] || fail 'a dry run is done'

# A job that saves with 75: muster has Slurm put it back into the queue, and where Slurm has done that already nobody is to submit it again.
mkdir slurm
cat >slurm/scontrol <<'SH'
#!/bin/sh
case "$*" in
requeue*) [ ! -e refuses ] || { cat refuses >&2; exit 1; } ;;
*'show job'*) echo "JobId=57 JobState=RUNNING Restarts=$(cat restarts) NodeList=$(hostname -s)" ;;
esac
SH
chmod +x slurm/scontrol
echo 0 >restarts
requeues=(env "PATH=$PWD/slurm:$PATH" SLURM_JOB_ID=57 "SLURM_JOB_NODELIST=$(hostname -s)" SLURM_JOB_NUM_NODES=1 SLURM_NTASKS=1 'SLURM_TASKS_PER_NODE=1' SLURM_CPUS_ON_NODE=1 "$MUSTER" run --engine embedded --requeue-saved)
expect_exit 75 "${requeues[@]}" -- sh -c 'exit 75'
expect_contains stderr 'note: job 57 is back in the queue, and goes on when Slurm starts it again'
echo 'Job is pending execution for job 57' >refuses
expect_exit 75 "${requeues[@]}" -- sh -c 'exit 75'
expect_contains stderr 'note: job 57 is back in the queue already, and goes on when Slurm starts it again'
echo 'slurm_requeue error: Invalid job id specified' >refuses
expect_exit 75 "${requeues[@]}" -- sh -c 'echo 1 >restarts; exit 75'
expect_contains stderr 'note: job 57 is back in the queue already'
echo 0 >restarts
expect_exit 75 "${requeues[@]}" -- sh -c 'exit 75'
expect_contains stderr 'error: job 57 is not started again' 'submit it once more'

# Ranks without a handler live on.
rm -f ready.*
start "${run[@]}" -- sh -c ': >ready.$RANK; exec cat fifo.$RANK'
wait_until 20 test -e ready.0 -a -e ready.1 -a -e ready.2
kill -USR1 $PID
wait_until 20 grep -q 'got SIGUSR1: no rank handles SIGUSR1: nothing sent' "$ERR"
for rank in 0 1 2; do : >fifo.$rank; done
expect_end 0
