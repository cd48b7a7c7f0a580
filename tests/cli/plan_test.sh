# parts: preflight
. "$(dirname "$0")/lib.sh"
expect_exit 0 "$MUSTER" plan
expect_contains stdout rank host GPU cores NUMA NIC why
expect_exit 0 "$MUSTER" plan --topology "$MUSTER_SOURCE_DIR/tests/fixtures/topology/two-packages.xml" -n 4 --json
expect_true python3 - "$OUT" <<'PY'
import json, sys
plan = json.load(open(sys.argv[1]))
assert plan["schema"] == "muster.plan/1" and plan["world_size"] == 4
assert [r["cpus"] for r in plan["ranks"]] == ["0-3", "4-7", "8-11", "12-15"], plan
assert [r["numa"] for r in plan["ranks"]] == [0, 0, 1, 1]
PY

# Other machines: the whole table, so that what people read is held too.
machines=$MUSTER_SOURCE_DIR/tests/fixtures/topology
expect_exit 0 "$MUSTER" plan --topology "$machines/polaris.xml" --site polaris
expect_empty stderr
expect_true diff - "$OUT" <<'TABLE'
rank  host     GPU             cores        NUMA  NIC   why
0     polaris  0 0000:07:00.0  24-31,56-63  3     hsn0  8 cores of NUMA 3, next to the GPU, as the site says
1     polaris  1 0000:46:00.0  16-23,48-55  2     hsn1  8 cores of NUMA 2, next to the GPU, as the site says
2     polaris  2 0000:85:00.0  8-15,40-47   1     hsn1  8 cores of NUMA 1, next to the GPU, as the site says
3     polaris  3 0000:c7:00.0  0-7,32-39    0     hsn0  8 cores of NUMA 0, next to the GPU, as the site says
TABLE
expect_exit 0 "$MUSTER" plan --topology "$machines/two-packages.xml" --gpus none --reserved-cpus 0-3
expect_not_contains stdout 'not bound' # reserved cores are no slots
expect_exit 0 "$MUSTER" plan --topology "$machines/frontier.xml" --site frontier --no-smt --bind-to core
expect_equal "$(awk 'NR > 1 { printf "%s,", $5 } NR == 1 { next }' "$OUT")" "49,57,17,25,1,9,33,41," "LUMI's and Frontier's cores"
expect_exit 0 "$MUSTER" plan --topology "$machines/dgx-a100.xml" --bind-to gpu --gpu-visibility own --json
expect_true python3 - "$OUT" <<'PY'
import json, sys
plan = json.load(open(sys.argv[1]))
assert [r["nic"] for r in plan["ranks"]] == ["ib%d" % i for i in range(8)]
assert [r["cpus"] for r in plan["ranks"]][::2] == ["48-63,176-191", "16-31,144-159", "112-127,240-255", "80-95,208-223"]
assert [r["gpu"]["visible_devices"] for r in plan["ranks"]] == list("01234567")
assert {r["gpu"]["device_index"] for r in plan["ranks"]} == {0}
PY
expect_exit 0 "$MUSTER" plan --topology "$machines/gh200.xml" --gpus cpus:0-71/72-143 -n 2
expect_contains stdout "72-143" "GPU"
expect_exit 0 "$MUSTER" plan --topology "$machines/polaris.xml" -H a:4,b:4 -n 6
expect_matches stdout '^5 +b +1 0000:46:00.0 +16-23,48-55 '
expect_exit 0 "$MUSTER" plan -H nowhere-a:2,nowhere-b:2
expect_contains stdout "not known from here"
expect_contains stderr "GPUs and cores of 2 of 2 nodes are not known from here"
expect_exit 125 "$MUSTER" plan --topology "$machines/polaris.xml" -n 5
expect_contains stderr "use -n 4, or --ranks-per-gpu 2"
expect_exit 2 "$MUSTER" plan --topology "$machines/polaris.xml" --gpus numa:9
expect_contains stderr "expected a NUMA node with cores" "^"
expect_exit 2 "$MUSTER" plan --gpus 4
expect_contains stderr "--topology FILE.xml"

# A site's nodes are shown where it has a machine, as many as the ranks need.
expect_exit 0 "$MUSTER" plan --site polaris
expect_matches stdout '^3 +polaris +3 0000:c7:00.0 +0-7,32-39 .*as the site says$'
expect_contains stderr 'nodes like those of polaris are shown' 'polaris.xml has them, and not this machine'
expect_exit 0 "$MUSTER" plan --site polaris -n 8
expect_matches stdout '^4 +polaris2 +0 0000:07:00.0 +24-31,56-63 '
expect_exit 0 "$MUSTER" plan --site polaris --nnodes 3 --gpus 12
expect_equal "$(awk 'NR > 1 { print $2 }' "$OUT" | uniq -c | awk '{ printf "%s:%s ", $2, $1 }')" 'polaris1:4 polaris2:4 polaris3:4 ' 'ranks'
expect_exit 0 "$MUSTER" plan --site deltaai # which names another machine's file
expect_contains stdout '216-287'
expect_exit 0 "$MUSTER" plan --site lumi-g -n 1
expect_contains stderr 'frontier.xml'
printf 'name = "here"\ndescription = "x"\nscheduler = "slurm"\n[source]\nfacts = "none"\ndate = 2026-01-31\n[node]\ncores = 3\n' >here.toml
expect_exit 0 "$MUSTER" plan --site ./here.toml -n 1
expect_contains stderr 'this machine is shown, and no node of here'
# … with as many ranks a node as the site has GPUs.
echo 'gpus = 4' >>here.toml
expect_exit 0 "$MUSTER" plan --site ./here.toml --gpus 8
expect_contains stderr 'this machine is shown, and no node of here'
expect_equal "$(awk 'NR > 1 { print $2 }' "$OUT" | uniq -c | awk '{ printf "%s ", $1 }')" '4 4 ' 'ranks of each node'
# In a job its own nodes are.
expect_exit 0 env SLURM_JOB_ID=7 SLURM_JOB_NODELIST=far1 SLURM_TASKS_PER_NODE=2 "$MUSTER" plan --site polaris
expect_not_contains stderr 'nodes like those of'

# GPUs that only the scheduler knows keep its names; outside of a job nobody vouches for them.
if ! "$MUSTER" plan --json 2>/dev/null | grep -q '"known_to": "driver"'; then
    expect_exit 0 env SLURM_JOB_ID=7 CUDA_VISIBLE_DEVICES=2,3 "$MUSTER" plan --scheduler local
    expect_contains stdout "2 (Slurm's gres/gpu 2)"
    expect_contains stderr "known to Slurm only (CUDA_VISIBLE_DEVICES=2,3)"
    for command in plan 'run -n 1'; do
        expect_exit 0 env CUDA_VISIBLE_DEVICES=0,1 "$MUSTER" $command -- true
        expect_contains stderr 'CUDA_VISIBLE_DEVICES=0,1 changes nothing: there is no GPU here'
    done
fi

# What is printed instead of started can be started later on: the files that it writes are not in a folder of this run.
if command -v mpirun >/dev/null; then
    expect_exit 0 "$MUSTER" run -q --engine mpirun -H localhost:2 --dry-run -- true
    file=$(sed -n "1s/^cat >'\{0,1\}\([^ ']*\)'\{0,1\} <<.*/\1/p" "$OUT")
    expect_true test -d "$(dirname "${file:-/nowhere/x}")"
fi

expect_exit 125 "$MUSTER" plan --topology none.xml
expect_contains stderr "no topology file none.xml"
expect_exit 125 "$MUSTER" plan --topology "$MUSTER_SOURCE_DIR/README.md"
expect_exit 125 "$MUSTER" plan -n 9 --slots-per-node 8
expect_contains stderr "use -n 8, or --slots-per-node 9"

expect_exit 0 "$MUSTER" doctor --json
expect_true python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))["findings"]) > 5' "$OUT"
if unshare -n true 2>/dev/null; then
    unshare -n "$MUSTER" doctor >"$OUT" 2>"$ERR"
    expect_matches stdout 'loopback +no interface that is up has 127.0.0.1'
fi
expect_exit 2 "$MUSTER" doctor all
expect_exit 0 "$MUSTER" doctor --allocation -- bash
expect_contains stdout 'engine embedded' 'the node is fit for ranks'
expect_exit 1 "$MUSTER" doctor --allocation -- no-such-program
expect_contains stdout "no program 'no-such-program'" 'the node is not fit for ranks'
expect_exit 0 "$MUSTER" run --preflight -n 1 -- true
expect_exit 125 "$MUSTER" run --preflight -n 1 -- no-such-program
expect_contains stderr 'did not pass preflight'

# Rows are as wide as there is room.
widest() { awk '{ if (length($0) > most) most = length($0) } END { print most }' "$OUT"; }
env -u COLUMNS "$MUSTER" doctor >"$OUT" 2>"$ERR"
expect_true test "$(widest)" -le 80
COLUMNS=80 "$MUSTER" doctor >"$OUT" 2>"$ERR"
expect_true test "$(widest)" -le 80

# A program beside muster that cannot be loaded is missing, though its file is there.
mkdir "$lib_dir/beside"
cp "$MUSTER" "$lib_dir/beside/muster"
if [ -x "$MUSTER_BIN/muster-stage" ] && LC_ALL=C sed 's/libmpi\.so\./libnot.so./g' "$MUSTER_BIN/muster-stage" >"$lib_dir/beside/muster-stage"; then
    chmod +x "$lib_dir/beside/muster-stage"
    expect_exit 1 "$lib_dir/beside/muster" doctor
    expect_matches stdout '^MISSING +muster-stage +/.*/beside/muster-stage'
    expect_contains stdout 'libnot.so.' # what the loader says
    expect_exit 0 "$MUSTER" doctor
    expect_matches stdout '^ok +muster-stage '
fi

# In a PBS job what hides GPUs is named. A machine of PBS is told nothing of Slurm's plugins, though Slurm's programs may lie there.
hostname >"$lib_dir/nodes"
expect_exit 0 env PBS_JOBID=7 PBS_NODEFILE="$lib_dir/nodes" CUDA_VISIBLE_DEVICES= "$MUSTER" plan
expect_contains stderr 'are hidden from this job by CUDA_VISIBLE_DEVICES, which is empty'
mkdir "$lib_dir/fakes"
printf '#!/bin/sh\necho pmix\n' >"$lib_dir/fakes/srun" && chmod +x "$lib_dir/fakes/srun"
printf 'PBS_EXEC=/opt/pbs\n' >"$lib_dir/pbs.conf"
if [ ! -e /etc/slurm/slurm.conf ] && [ ! -e /run/slurm/conf/slurm.conf ]; then
    expect_exit 0 env -u SLURM_CONF PBS_CONF_FILE="$lib_dir/pbs.conf" PATH="$lib_dir/fakes:$PATH" "$MUSTER" doctor
    expect_not_contains stdout "Slurm's MPI plugins"
    expect_matches stdout '^(ok|note) +PBS '
fi

# What the loader says of a missing driver is for --verbose alone.
"$MUSTER" doctor >"$OUT" 2>"$ERR"
expect_not_contains stdout 'cannot open shared object file'

# A job of several nodes is not quietly run on one.
export SLURM_JOB_NUM_NODES=2 SLURM_JOB_ID=17 SLURM_JOB_NODELIST='n[1-2]'
expect_exit 125 "$MUSTER" run --engine embedded -- true
expect_contains stderr "2 of the 2 nodes are elsewhere"
expect_exit 0 "$MUSTER" run --scheduler local -q -n 1 -- true

expect_exit 0 "$MUSTER" --version
expect_matches stdout "^muster [0-9.]+$" "^compiler +[A-Z]" "^PMIx +[0-9]" "^hwloc +[0-9]" '^MPI +(none|[A-Z].* [0-9.]+)'
git -C "$MUSTER_SOURCE_DIR" rev-parse HEAD >/dev/null 2>&1 && expect_matches stdout '^origin .*([0-9a-f]{7}|no git)'
expect_exit 0 "$MUSTER" version
expect_matches stdout "^muster [0-9]"
expect_exit 2 "$MUSTER"

# One is no plural.
expect_exit 0 "$MUSTER" run --scheduler local --dry-run -n 1 -- true
expect_matches stdout '^# muster itself starts 1 rank on '
expect_exit 0 "$MUSTER" run --scheduler local -v --preflight -n 1 -- true
expect_matches stderr 'inspected 1 node in '
