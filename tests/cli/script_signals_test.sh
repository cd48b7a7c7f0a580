# A signal for the script, or for all of its processes, reaches muster, and once; the script ends with muster's exit code. Here a stand-in takes muster's place,
# which notes what it gets.
# parts: jobs
. "$(dirname "$0")/lib.sh"
unset MUSTER_SITE_PATH XDG_CONFIG_HOME
export HOME=$PWD PBS_O_WORKDIR=$PWD
cat >stand-in <<'PROGRAM'
#!/bin/bash
for name in HUP INT USR1 USR2; do trap "echo $name >>got" "$name"; done
trap 'echo TERM >>got; exit 42' TERM
: >ready
until false; do read -r -t 0.02 <>"$0.pipe"; done
PROGRAM
chmod +x stand-in
mkfifo stand-in.pipe

shell=
at_end() { [ -z "$shell" ] || kill -KILL -- "-$shell" 2>/dev/null; }
noted() { grep -qx "$1" got; }

for site in generic-slurm generic-pbs thetagpu workstation; do
    expect_exit 0 "$MUSTER" script --site "$site" --account a --gpus 2 --time 1h --muster "$PWD/stand-in" -- x || exit 1
    cp "$OUT" job.sh
    for receiver in shell session; do
        rm -f ready
        : >got
        # As a batch system starts it: in a session of its own.
        setsid env --default-signal=INT,QUIT bash job.sh >printed 2>&1 &
        shell=$!
        wait_until 20 test -e ready || exit 1
        to=$shell
        [ $receiver = shell ] || to=-$shell
        for name in HUP INT USR1 USR2 TERM; do
            kill -s "$name" -- "$to"
            wait_until 20 noted "$name" || exit 1
        done
        wait "$shell"
        expect_equal $? 42 "exit code of the script for $site"
        expect_equal "$(sort got | tr '\n' ' ')" 'HUP INT TERM USR1 USR2 ' "signals to the $receiver of $site"
        expect_empty printed
    done
done
shell=

# Muster's own exit code without any signal, when it dies of one, and when there is no muster.
printf '#!/bin/bash\nexit 3\n' >stand-in
expect_exit 3 bash job.sh
printf '#!/bin/bash\nkill -9 $$\n' >stand-in
expect_exit 137 bash job.sh
rm stand-in
expect_exit 127 bash job.sh

# With the real program.
expect_exit 0 "$MUSTER" script --site workstation --gpus 2 -- bash -c 'exit 7'
cp "$OUT" job.sh
expect_exit 7 bash job.sh
