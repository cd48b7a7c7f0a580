# What each kind of muster's processes does with each signal, on each engine, in a real Slurm: none of them ends of what is meant for the ranks.
# timeout: 420
# parts: keep
. "$(dirname "$0")/cluster_lib.sh"
start_cluster 2 4
install_muster
longest_s=150

# A rank tells what it hears, until there is a file `go`.
write_program sit <<'SIT'
for name in USR1 USR2 ALRM; do trap "echo $name >>'$PWD/heard.$RANK'" $name; done
: >"ready.$RANK"
while [ ! -e go ]; do sleep 0.05; done
echo "rank $RANK went on to its end"
SIT
all_ready() { [ "$(ls "$work" | grep -c '^ready\.')" = 4 ]; }

# signal_muster SIGNAL KIND…: to each of muster's processes of these kinds, on all nodes; prints their kinds ("agent", "run"), one a line.
write_program signal_here <<'SIGNAL'
for folder in /proc/[0-9]*; do
    case $(readlink "$folder/exe" 2>/dev/null) in */prefix/bin/muster) ;; *) continue ;; esac
    kind=$(tr '\0' '\n' <"$folder/cmdline" 2>/dev/null | sed -n 2p)
    name=$(cat "$folder/comm" 2>/dev/null)
    [ "$name" != muster-keepers ] || kind=keepers
    case " ${*:2} " in *" $kind "* | ' all ') ;; *) continue ;; esac
    [ "$1" = none ] || kill -s "$1" "${folder#/proc/}"
    echo "$kind"
done
SIGNAL
signal_muster() {
    local node
    for node in head node1 node2; do (cd "$work" && "$cluster" on "$node" ./signal_here "$@"); done
}
write_program stopped_here <<'STOPPED'
for folder in /proc/[0-9]*; do
    case $({ tr '\0' ' ' <"$folder/cmdline"; } 2>/dev/null) in '/bin/bash '*/sit\ ) grep -s '^State:.T' "$folder/status" ;; esac
done
STOPPED
all_stopped() { [ "$(for node in node1 node2; do (cd "$work" && "$cluster" on "$node" ./stopped_here); done | wc -l)" -ge 4 ]; } # and what a rank has just forked
alive() { signal_muster none all | sort | uniq -c | tr -s ' \n' ' '; }
heard_by_all() { [ "$(grep -lsx "$1" "$work"/heard.* | wc -l)" = "${2:-4}" ]; }

# survives ENGINE KINDS OPTIONS...: all signals to all processes of a run of 4 ranks. Of those that ask for an end, only to processes that are neither the launcher nor beside a rank.
# And Slurm's own to the job's steps, for the ranks there, also where it suspends the job for a moment.
survives() {
    local engine=$1 kinds=$2 there s
    shift 2
    rm -f "$work"/{ready,heard}.* "$work/go"
    start inside prefix/bin/muster run --engine "$engine" -n 4 --ranks-per-node "${per_node:-2}" "$@" -- ./sit
    wait_until 60 all_ready || exit 1
    there=$(alive)
    for s in $kinds; do expect_true grep -q " $s " <<<"$there "; done
    for s in USR1 USR2 ALRM; do
        signal_muster "$s" all >/dev/null
        wait_until 30 heard_by_all "$s"
        expect_equal "$(alive)" "$there" "$engine, SIG$s: muster's processes"
    done
    if [ "${1:-}" != --scheduler ] && [ "$engine" != "$mpirun_of_prrte" ]; then # the daemons of PRRTE end what they have started
        rm -f "$work"/heard.*
        as_user scancel -s USR1 "$job"
        wait_until 30 heard_by_all USR1
        expect_equal "$(alive)" "$there" "$engine, scancel -s USR1: muster's processes"
    fi
    if [ "${engine#mpi}" != "$engine" ]; then # their daemons, too, stop what they have started, and shims have guards there
        "$cluster" operator scontrol suspend "$job"
        wait_until 30 all_stopped
        "$cluster" operator scontrol resume "$job"
    fi
    for s in INT QUIT HUP TERM; do
        case $s in TERM) signal_muster "$s" agent keeper keepers ;; *) signal_muster "$s" agent remote keeper keepers ;; esac >/dev/null
        expect_equal "$(alive)" "$there" "$engine, SIG$s: muster's processes"
    done
    # Of a launcher that stops, the program that entered the node would stop too (nsenter).
    for s in TSTP CONT; do signal_muster $s remote agent shim keeper keepers >/dev/null; done
    expect_equal "$(alive)" "$there" "$engine, SIGTSTP and SIGCONT: muster's processes"
    : >"$work/go"
    expect_end 0
    expect_equal "$(grep -c 'went on to its end' "$OUT")" 4 "$engine: ranks that went on: $(cat "$ERR")"
    expect_not_contains stderr 'is no longer held'
    expect_nothing_left
}
mpirun_of_prrte=''
"$cluster" run mpirun --version 2>/dev/null | grep -q 'Open MPI) 5' && mpirun_of_prrte=mpirun
allocate -N2 --ntasks-per-node=2
survives srun 'run shim'
survives remote 'run remote agent shim'
survives remote 'run remote agent shim keeper keepers' --max-restarts 1 --keep-state node
per_node=4 survives embedded run --scheduler local
if command -v mpirun >/dev/null; then survives mpirun 'run shim'; fi
if command -v mpiexec.hydra >/dev/null; then survives mpiexec 'run shim'; fi
release

# Slurm's own signal goes to every process of the job's steps: the ranks save, and the run ends as they say.
write_program saver <<'SAVER'
trap 'echo "rank $RANK saved"; exit 75' USR1
: >"ready.$RANK"
while :; do sleep 0.05; done
SAVER
for options in '--engine srun' '--engine remote' '--max-restarts 2' '--max-restarts 2 --keep-state node'; do
    rm -f "$work"/ready.*
    batch -N2 --ntasks-per-node=2 <<<"exec prefix/bin/muster run $options -- ./saver"
    wait_until 60 all_ready || exit 1
    as_user scancel -s USR1 "$job"
    finish_job
    expect_equal "$code" 75:0 "$options: the job's exit code: $(cat "$OUT")"
    expect_equal "$(grep -c 'saved$' "$OUT")" 4 "$options: ranks that saved: $(cat "$OUT")"
    expect_not_contains stdout 'muster-agent on' 'is no longer held' 'generation 1'
done
