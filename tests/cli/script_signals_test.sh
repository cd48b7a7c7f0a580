# A signal that reaches only the script's shell reaches muster, and the script ends with muster's exit code. Here a stand-in takes muster's place, which notes
# what it gets.
. "$(dirname "$0")/lib.sh"
unset MUSTER_SITE_PATH XDG_CONFIG_HOME
export HOME=$PWD PBS_O_WORKDIR=$PWD
cat >stand-in <<'PROGRAM'
#!/bin/bash
for name in HUP INT USR1 USR2; do trap "echo $name >>got" "$name"; done
trap 'echo TERM >>got; touch stopping; until [ -e may-end ]; do sleep 0.01; done; exit 42' TERM
: >ready
until false; do sleep 0.01; done
PROGRAM
chmod +x stand-in

shell=
at_end() { [ -z "$shell" ] || kill -KILL -- "-$shell" 2>/dev/null; }
gone() { ! kill -0 "$1" 2>/dev/null; }
noted() { grep -qx "$1" got; }

for site in generic-slurm generic-pbs "$MUSTER_SOURCE_DIR/tests/fixtures/sites/thetagpu.toml" workstation; do
    rm -f got ready stopping may-end
    : >got
    expect_exit 0 "$MUSTER" script --site "$site" --account a --gpus 2 --time 1h --muster "$PWD/stand-in" -- x || exit 1
    cp "$OUT" job.sh
    # As a batch system does: a session of its own, default signals, nothing on standard input.
    setsid env --default-signal=INT,QUIT bash job.sh >printed 2>&1 &
    shell=$!
    wait_until 20 test -e ready || exit 1
    for name in HUP INT USR1 USR2; do
        kill -s "$name" "$shell"
        wait_until 20 noted "$name" || exit 1
    done
    kill -s TERM "$shell"
    wait_until 20 test -e stopping || exit 1
    # A second and a third one while muster is ending its ranks: the shell stays and waits.
    kill -s TERM "$shell"
    kill -s USR1 "$shell"
    expect_true kill -0 "$shell"
    : >may-end
    wait "$shell"
    expect_equal $? 42 "exit code of the script for $site"
    wait_until 5 gone "$shell"
    expect_empty printed
done

# Muster's own exit code without any signal, and when it dies of one.
printf '#!/bin/bash\nexit 3\n' >stand-in
expect_exit 3 bash job.sh
printf '#!/bin/bash\nkill -9 $$\n' >stand-in
expect_exit 137 bash job.sh

# With the real program.
expect_exit 0 "$MUSTER" script --site workstation --gpus 2 -- bash -c 'exit 7'
cp "$OUT" job.sh
expect_exit 7 bash job.sh
