# timeout: 240
# A study of a program that knows nothing of muster but one printed line.
# parts: bench jobs
. "$(dirname "$0")/lib.sh"
bench=$MUSTER_BIN/muster-bench
[ -x "$bench" ] || skip "muster-bench was not built (launcher only)"
scale() { "$bench" scale --muster "$MUSTER" "$@"; }

# No figures, which take seconds: as if there were no Matplotlib.
mkdir hidden
echo 'raise ImportError("hidden")' >hidden/matplotlib.py
export PYTHONPATH=$PWD/hidden

# Rank 0 logs its start, tells a time that is known, and waits for ever where the test says so. Three ranks fail.
cat >program <<'PROGRAM'
#!/bin/bash
echo "$WORLD_SIZE of $*" >&2
[ "$RANK" = 0 ] || exit 0
echo "$WORLD_SIZE $2" >>starts
[ "$WORLD_SIZE $2" != "$(cat hang 2>/dev/null)" ] || { : >hangs; exec sleep infinity; }
[ "$WORLD_SIZE" != 3 ] || { echo 'the dog ate it' >&2; exit 3; }
echo "muster-metric: epoch_s 100 s"
echo "muster-metric: epoch_s $((12 / WORLD_SIZE)) s"
echo "done after $((24 / WORLD_SIZE)) units"
echo "{\"loss\": 0.$WORLD_SIZE}" >>lines.jsonl
PROGRAM
chmod +x program

# Failed points are shown as failed, the rest goes on; the whole output of a run is kept.
expect_exit 1 scale --ranks 1,2,3 --repeats 2 --time-metric epoch_s --metric 'units:u=after ([0-9]+)' --metric-file lines.jsonl -o one -- ./program {ranks} {repeat}
expect_matches stdout '^Provisional \(2 failed.*\): program is 2.00 times as fast on 2 ranks' '^ranks +epoch_s +spread +speed-up +efficiency$' \
    '^ *1 +12\.0 +12\.0 to 12\.0 \(range\) +1\.00 +100%$' '^ *2 +6\.00 .* 2\.00 +100%$' '^ *3 +- +- +- +-$' '^3 ranks: failed: exit code 3: the dog ate it; see runs/0006-3-ranks.txt' \
    '^units \(u\) +24\.0 +12\.0 +-$' '^loss +0\.100 +0\.200 +-$' 'speed-up against 1 rank \(epoch_s 12\.0 s\)'
expect_contains stdout '3 ranks failed; the end of one/runs/0006-3-ranks.txt:' '  | the dog ate it'
expect_contains one/runs/0003-3-ranks-warmup.txt 'the dog ate it' '3 of 3 0'
expect_equal "$(sort starts | uniq -c | tr -s ' ' | paste -sd,)" ' 1 1 0, 1 1 1, 1 1 2, 1 2 0, 1 2 1, 1 2 2, 1 3 0, 1 3 1, 1 3 2' 'runs that were started'
expect_true python3 - <<'PY'
import json
study = json.load(open("one/results.json"))
assert study["schema"] == "muster.results/3" and study["plan"]["program"] == ["./program", "{ranks}", "{repeat}"]
counted = [r for r in study["runs"] if not r["warmup"]]
assert [(r["ranks"], r["repetition"], r["status"]) for r in counted] == [
    (1, 0, "ok"), (2, 0, "ok"), (3, 0, "failed"), (1, 1, "ok"), (2, 1, "ok"), (3, 1, "failed")]
assert counted[2]["exit_code"] == 3 and counted[2]["reason"] == "exit code 3"
first = {m["name"]: m for m in counted[0]["metrics"]}
assert first["epoch_s"] == {"name": "epoch_s", "unit": "s", "rank": 0, "values": [100, 12]}, first
assert first["loss"]["values"] == [0.1], "of this run alone"
assert [len(p["places"]) for p in study["points"]] == [1, 2, 3]
assert all("train" not in r for r in study["runs"])
lines = open("one/runs.jsonl").read().splitlines()
assert len(lines) == 10 and all(json.loads(line) for line in lines)
PY
expect_exit 0 "$bench" report one
expect_contains stdout '3 ranks failed; the end of one/runs/0006-3-ranks.txt:' '  | the dog ate it'
expect_exit 0 "$bench" report one --format json
expect_true python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))["studies"][0]["rows"]; assert r[1]["speedup"]["value"] == 2 and r[2]["failed"] == 2' "$OUT"
expect_exit 1 scale --ranks 1,2,3 --repeats 2 --time-metric epoch_s --metric 'units:u=after ([0-9]+)' --metric-file lines.jsonl -o one -- ./program {ranks} {repeat}
expect_contains stderr '9 of 9 runs are done'
expect_equal "$(wc -l <starts)" 9 'runs in all'

# Bounds and baselines.
limit() { scale --ranks 1,2 --repeats 2 --warmup 0 --time-metric epoch_s -o two "$@" -- ./program x {repeat}; }
expect_exit 0 limit --expect 'speedup[2]>=1.9' --expect 'epoch_s<=12' --expect 'efficiency>99%'
expect_contains stdout 'kept: speedup[2]>=1.9: 2.00' 'kept: epoch_s<=12 at 1 rank: 12.0'
expect_exit 1 limit --expect 'speedup[2]>2.5'
expect_contains stdout 'broken: speedup[2]>2.5: 2.00'
expect_exit 1 limit --expect 'los[1]<5'
expect_contains stdout 'no run printed it; known are speedup, efficiency, epoch_s, wall_s'
expect_exit 2 limit --expect 'speedup[4]>1'
expect_contains stderr 'no runs of 4 ranks are made'
expect_exit 2 limit --expect 'speedup=1'
expect_contains stderr '^' 'expected >=, <=, > or <'
expect_exit 2 limit --baseline two
expect_contains stderr '--baseline two: it is this study, which goes on; give another folder with -o, or --fresh'
cp two/results.json before.json
expect_exit 0 limit --baseline before.json
python3 - <<'PY'
import json
study = json.load(open("two/results.json"))
for run in study["runs"]:
    for metric in run["metrics"]: metric["values"] = [v * 0.9 for v in metric["values"]]
json.dump(study, open("faster.json", "w"))
PY
expect_exit 1 limit --baseline faster.json
expect_contains stdout 'worse: epoch_s at 2 ranks: 6.00 against 5.40 (+11.1%, 5.0% allowed)'
expect_exit 0 limit --baseline faster.json --tolerance 12%
expect_exit 1 "$bench" report two --baseline faster.json

# Another program is no baseline, which is found before the first run; other arguments and other work are named.
cp starts before
cp program other.sh
expect_exit 2 scale --ranks 1,2 --time-metric epoch_s -o other --baseline two -- ./other.sh y
expect_contains stderr "--baseline: it is of another program: './program x '{repeat}'' there, './other.sh y' here"
expect_exit 2 scale --ranks 1,2 -o other --baseline two -- ./program x {repeat}
expect_contains stderr '--baseline: it is judged by epoch_s, this study by wall_s'
expect_exit 2 scale --ranks 4 --time-metric epoch_s -o other --baseline two -- ./program x {repeat}
expect_contains stderr '--baseline: it has no number of ranks in common'
expect_true cmp -s starts before
expect_exit 0 scale --ranks 1,2 --repeats 2 --warmup 0 --time-metric epoch_s -o other --strong --batch 8 --baseline two -- ./program y{batch} {repeat}
expect_contains stdout "note: the baseline is of './program x '{repeat}'', this study './program 'y{batch}' '{repeat}'', strong, batch 8" 'kept: epoch_s at 2 ranks'
expect_exit 2 "$bench" report one --tolerance 5%
expect_contains stderr '--tolerance is of a --baseline'

# A name that no run prints is found by the first runs.
rm -f starts
unknown() { expect_exit 2 scale --ranks 1,2 --repeats 3 -o unknown "$@" -- ./program x {repeat}; }
unknown --expect 'epch_s<13'
expect_contains stderr "--expect epch_s<13: no run of 1 rank printed epch_s; known are epoch_s, wall_s; did you mean epoch_s?" 'correct the name'
expect_equal "$(paste -sd, starts)" '1 0' 'runs before the name was found'
unknown --time-metric epch_s
expect_contains stderr '--time-metric: no run printed epch_s'
expect_equal "$(paste -sd, starts)" '1 0,2 0' 'runs before the name was found'
expect_exit 0 scale --ranks 1,2 --repeats 3 -o unknown --time-metric epoch_s -- ./program x {repeat}
expect_contains stderr '2 of 8 runs are done'

# An expression that matches nothing is told after the first run, and ends the study after one of each; both show what was printed.
rm -f starts
expect_exit 2 scale --ranks 1,2 --repeats 3 -o unmatched --metric 'units:u=afterwards ([0-9]+)' --rate-metric units -- ./program x {repeat}
expect_matches stderr "note: no line of this run matches --metric 'units:u=afterwards \(\[0-9\]\+\)'" "error: --metric 'units:u=.*: no line of any run matches it" \
    '^the end of what it printed, unmatched/runs/0001-1-ranks-warmup.txt:' '^the end of what it printed, unmatched/runs/0002-2-ranks-warmup.txt:' '^  .*done after 12 units' 'begin anew with --fresh'
expect_equal "$(paste -sd, starts)" '1 0,2 0' 'runs before the expression was found'

# Killed in the middle, it goes on with exactly the runs that are missing.
rm -f starts
echo '2 1' >hang
begin() { scale --ranks 1,2 --repeats 2 -o three -- ./program "$1" {repeat}; }
"$bench" scale --muster "$MUSTER" --ranks 1,2 --repeats 2 -o three -- ./program x {repeat} >"$OUT" 2>"$ERR" &
wait_until 60 test -e hangs
kill -9 $!
wait 2>/dev/null
expect_equal "$(wc -l <three/runs.jsonl)" 4 'lines of the journal'
printf '{"ranks": 2, "no' >>three/runs.jsonl
rm hang hangs
expect_exit 2 begin y
expect_contains stderr 'three holds another study' "program: ./program x '{repeat}' then, ./program y '{repeat}' now" '--fresh'
expect_exit 0 begin x
expect_contains stderr 'going on with the study in three: 3 of 6 runs are done'
expect_equal "$(paste -sd, starts)" '1 0,2 0,1 1,2 1,2 1,1 2,2 2' 'runs that were started'
expect_exit 0 scale --ranks 1,2 --repeats 3 -o three -- ./program x {repeat}
expect_equal "$(tail -n 2 starts | paste -sd,)" '1 3,2 3' 'runs of one repetition more'

# An edited program is another one; a file of data that it writes to is not.
cp program as_begun
echo '# faster' >>program
expect_exit 2 scale --ranks 1,2 --repeats 4 -o three -- ./program x {repeat}
expect_matches stderr '^  ./program: changed since the study began \(sha256 [0-9a-f]{16} then, sha256 [0-9a-f]{16} now\)$' '--fresh'
expect_equal "$(tail -n 2 starts | paste -sd,)" '1 3,2 3' 'no run of the edited program'
mv as_begun program
log_to() { scale --ranks 1 --repeats "$1" --warmup 0 -o data -- ./program data.txt {repeat}; }
echo 1 >data.txt
expect_exit 0 log_to 1
echo 2 >>data.txt
expect_exit 0 log_to 2
expect_contains stderr '1 of 2 runs are done'

# A number of ranks more; the table says that it came later. It stays part of the study.
more() { scale --repeats 3 -o three "$@" -- ./program x {repeat}; }
expect_exit 2 more --ranks 4
expect_contains stderr 'ranks: 1,2 then, 4 now; to add to them, give --ranks 1,2,4'
expect_exit 0 more --ranks 1,2,4
expect_equal "$(tail -n 4 starts | paste -sd,)" '4 0,4 1,4 2,4 3' 'runs of 4 ranks'
expect_contains stderr '8 of 12 runs are done'
expect_matches stdout '^ *4 ' 'note: 4 ranks came later: they did not take turns'
expect_exit 2 more --ranks 1,2
expect_contains stderr 'ranks: 1,2,4 then, 1,2 now'

# Ctrl-C: the run at hand is ended, the journal is whole, and the run is made again.
echo '1 1' >hang
"$bench" scale --muster "$MUSTER" --ranks 1 --warmup 0 --repeats 2 -o four -- ./program x {repeat} >"$OUT" 2>"$ERR" &
pid=$!
wait_until 60 test -e hangs
kill -TERM $pid
wait $pid
expect_equal $? 143 'exit code'
expect_contains stderr 'stopped by signal 15' 'the same command goes on'
expect_true python3 -c 'import json; l = open("four/runs.jsonl").read().splitlines(); assert len(l) == 2 and json.loads(l[1])["status"] == "interrupted"'
rm hang hangs
expect_exit 0 scale --ranks 1 --warmup 0 --repeats 2 -o four -- ./program x {repeat}
expect_true python3 -c 'import json; assert [r["status"] for r in json.load(open("four/results.json"))["runs"]] == ["ok", "ok"]'

# A run that takes too long is no failure of the study; --retry makes it again, --fresh all.
echo '1 1' >hang
expect_exit 1 scale --ranks 1 --warmup 0 --repeats 2 --timeout 1 -o five -- ./program x {repeat}
expect_contains stdout '1 of 2 failed: took longer than 1 s'
rm hang hangs
expect_exit 0 scale --ranks 1 --warmup 0 --repeats 2 --timeout 1 --retry -o five -- ./program x {repeat}
expect_contains stderr '1 of 2 runs are done'
expect_exit 0 scale --ranks 1 --warmup 0 --repeats 1 --fresh -o five -- ./program z {repeat}
expect_equal "$(wc -l <five/runs.jsonl)" 2 'lines of the journal that was begun anew'

# The batch of a rank.
expect_exit 0 scale --ranks 1,2 --warmup 0 --repeats 1 --strong --batch 64 -o six -- ./program b{batch} {repeat}
expect_contains six/runs/0002-2-ranks.txt '2 of b32 1'
expect_exit 0 scale --ranks 1,2 --warmup 0 --repeats 1 --weak --batch 64 -o seven -- ./program b{batch} {repeat}
expect_contains seven/runs/0002-2-ranks.txt '2 of b64 1'
expect_contains stdout 'weak series: batch 64 a rank' 'one run a row: there is no spread'
expect_equal "$(grep -E '[0-9] to [0-9]|spread +speed-up' "$OUT")" '' 'spreads of one run'

# Nobody ends well: the end of the messages.
expect_exit 125 scale --ranks 3 --warmup 0 --repeats 1 -o eight -- ./program x {repeat}
expect_contains stderr 'no run ended well; the first that failed: 3 ranks: exit code 3' 'the dog ate it'

# Wrong command lines are told before the first run.
rm -f starts
wrong() { expect_exit 2 scale -o nine "$@"; }
wrong --strong --batch 3 --ranks 1,2 -- ./program {batch}
expect_contains stderr '3 does not divide among 2 ranks'
wrong --batch 4 -- ./program {batch}
wrong -- ./program {rank}
expect_contains stderr 'did you mean {ranks}?'
wrong -- ./program {batch}
expect_contains stderr 'give --batch N'
for series in --strong --weak; do
    wrong $series --batch 4 --ranks 1,2 -- ./program '{{batch}' {ranks}
    expect_contains stderr '--batch 4: the program has no argument with {batch}' "-- ./program '{{batch}' '{ranks}' --batch {batch}"
done
for each in "--run-options '-x BATCH={batch}'" "--run-options '-H a:{ranks}'" '--name n{nodes}' '-o nine-{repeat}'; do
    eval "expect_exit 2 scale --strong --batch 4 --ranks 1,2 $each -- ./program {batch}"
    expect_contains stderr "is filled in the program's arguments and --metric-file alone" 'env NAME={'
done
wrong --tolerance 5% -- ./program
expect_contains stderr '--tolerance is of a --baseline'
wrong --submit --shuffle 1 -- ./program
expect_contains stderr '--shuffle does not go with --submit'
wrong --metric 'x=(' -- ./program
wrong --take x=lats -- ./program
expect_contains stderr 'did you mean last?'
wrong --strong --weak -- ./program
wrong --epochs 3 -- ./program
expect_contains stderr '--epochs is for a --net of muster-bench'
wrong ./program
expect_contains stderr "unexpected word './program'; write -- before the program: -- ./program …"
wrong python3 train.py --epochs=2 --learning-rate 0.1
expect_contains stderr "unexpected word 'python3'; write -- before the program: -- python3 …"
expect_exit 125 scale --ranks 3 --run-options '--slots-per-node 2' -o eleven -- ./program
expect_contains stderr 'cannot map 3 ranks' "here -n is --ranks, and other options of muster run go into --run-options '…'"
expect_true test ! -e starts

# A busy machine: seen before the first run, and by whom.
for ((i = 0; i < $(nproc); ++i)); do
    bash -c 'exec -a spinner bash -c "while :; do :; done"' &
    spinners+=($!)
done
expect_exit 2 scale --strict --ranks 1 -o ten -- ./program x {repeat}
expect_contains stderr '--strict: other programs used' 'CPU' 'give the same command to go on'
expect_true test ! -e starts
kill "${spinners[@]}"

# Jobs, by a launcher whose scheduler makes a job's runs at once, or keeps it waiting. A job that waits is listed once; one that made all that was
# asked then is no failure when more is asked for.
cat >launcher <<'LAUNCHER'
#!/bin/bash
case " $* " in
    ' submit'*' --dry-run '*) exec "$MUSTER" "$@" ;;
    ' submit'*' --check-only '*) exec "$MUSTER" "${@/#--check-only/--dry-run}" ;; # without sbatch
    ' submit '*' --job-name scale-4 '*) echo 'the queue is full' >&2 && exit 1 ;;
    ' submit '*) number=$(($(cat number) + 1)) && echo $number >number && echo "{\"id\": \"$number\", \"output\": \"\"}"
        [ -e waiting ] || { while [ "$1" != -- ]; do shift; done; "${@:2}" >>job.txt 2>&1; } ;;
    ' show '*) [ -e waiting ] && echo '{"jobs": [{"phase": "waiting", "state": "PENDING", "exit_code": null}]}' ||
        echo '{"jobs": [{"phase": "ended", "state": "COMPLETED", "exit_code": 0}]}' ;;
    *) exec "$MUSTER" "$@" ;;
esac
LAUNCHER
chmod +x launcher
export MUSTER
echo 0 >number
printf 'name = "cpus"\ndescription = "d"\nscheduler = "slurm"\n[source]\nfacts = "f"\ndate = 2026-01-01\n[node]\ngpus = 0\ncores = 8\n' >cpus.toml
sed '/^gpus/d; s/"cpus"/"none"/' cpus.toml >none.toml && printf '[header]\ngpus_by = "none"\n' >>none.toml
sed 's/^gpus = 0/gpus = 4/; s/"cpus"/"gpus"/' cpus.toml >gpus.toml
jobs() { expect_exit "$1" "$bench" scale --muster ./launcher --ranks 1 --warmup 0 -o jobs --submit --submit-options '--site ./cpus.toml --time 1h --no-check' "${@:2}" -- true; }
: >waiting
jobs 0 --repeats 1
jobs 0 --repeats 1
expect_equal "$(grep -c 'job 1 (1 rank): PENDING' "$ERR")" 1 'lines about a job that waits'
rm waiting
jobs 0 --repeats 1
expect_contains stderr '1 rank: job 1 has ended without all of its runs (COMPLETED); it is submitted again'
jobs 0 --repeats 1
jobs 0 --repeats 3 --collect
expect_contains stdout '1 of 3 runs were made'
expect_not_contains stdout failed
jobs 0 --repeats 3
expect_contains stderr '1 rank: more runs are asked for: job 2 made 1, 3 are wanted'
expect_not_contains stderr 'without all of its runs'
jobs 0 --repeats 3
expect_equal "$(cat number)" 3 'jobs in all'

# The folder alone is enough to collect, whatever began it.
expect_exit 0 "$bench" scale --submit --collect -o jobs
expect_matches stdout '^ *1 +[0-9.]+ +[0-9.]+ to '
expect_equal "$(cat number)" 3 'jobs in all'
expect_exit 2 "$bench" scale --submit --collect --retry -o jobs
expect_contains stderr '--retry submits jobs again, and --collect submits none; leave out one of them'
expect_exit 2 "$bench" scale --submit --collect -o mistyped
expect_contains stderr 'mistyped holds no study of jobs; give the folder of one with -o'
expect_true test ! -e mistyped
# What would be another study there leaves nothing.
expect_exit 2 "$bench" scale --muster ./launcher --submit -o jobs --python python3
expect_contains stderr 'jobs holds another study'
expect_true test ! -e jobs/published_table.py

# Nothing is queued for a program that muster submit would refuse, nor does the folder then refuse the right one.
for program in ./nosuch 'python3 nosuch.py' 'python3 {ranks}.py'; do
    for how in --dry-run ''; do
        # shellcheck disable=SC2086
        expect_exit 2 "$bench" scale --muster ./launcher --ranks 1,2 -o wrong --submit $how --submit-options '--site ./cpus.toml --time 1h' -- $program
        expect_contains stderr 'the job of 1 rank would be refused, so none was submitted'
    done
done
expect_equal "$(cat number)" 3 'jobs in all'
: >waiting
: >1.py
: >2.py
expect_exit 0 "$bench" scale --muster ./launcher --ranks 1,2 --warmup 0 --repeats 1 -o wrong --submit --submit-options '--site ./cpus.toml --time 1h' -- python3 '{ranks}.py'
expect_equal "$(cat number)" 5 'jobs in all'
expect_exit 2 "$bench" report wrong
expect_contains stderr 'wrong: its runs are made by jobs (not ended: 4, 5), and what they bring is not collected yet; collect it by: muster-bench scale --submit --collect -o wrong'
# A number of ranks more is one job more, and stays part of the study.
more() { expect_exit "$1" "$bench" scale --muster ./launcher --ranks "$2" --warmup 0 --repeats 1 -o wrong --submit --submit-options '--site ./cpus.toml --time 1h' -- python3 '{ranks}.py'; }
: >3.py
more 0 1,2,3
expect_contains stderr 'job 6: 3 ranks'
more 2 1,2
expect_contains stderr 'ranks: 1,2,3 then, 1,2 now'
# The scheduler takes one, and refuses the next.
expect_exit 125 "$bench" scale --muster ./launcher --ranks 1,4 -o half --submit --submit-options '--site ./cpus.toml --time 1h' -- true
expect_contains stderr 'the job of 4 ranks was not submitted: the queue is full; queued are 7: end them by ./launcher cancel 7'
rm waiting

# An edited script makes no more runs; what its jobs brought is still collected.
edited() { expect_exit "$1" "$bench" scale --muster ./launcher --ranks 1 --warmup 0 --repeats 1 -o edited --submit --submit-options '--site ./cpus.toml --time 1h --no-check' "${@:2}" -- ./script; }
printf '#!/bin/sh\n' >script && chmod +x script
edited 0
echo '# faster' >>script
edited 2
expect_contains stderr './script: changed since the study began' 'or begin anew with --fresh; --collect still collects what its jobs bring'
edited 0 --collect
expect_equal "$(cat number)" 8 'jobs in all'
# The script of a --net is muster's own: it comes back where it was removed, and another release's is no other program.
printf '#!/bin/sh\n' >no_torch && chmod +x no_torch
: >waiting
net() { expect_exit 0 "$bench" scale --muster ./launcher --ranks 1 --warmup 0 --repeats 1 -o net --python ./no_torch --submit --submit-options '--site ./cpus.toml --time 1h --no-check'; }
net
rm net/published_table.py
net
expect_true test -s net/published_table.py
sed -i -E 's/(published_table.py": ?"sha256 )[0-9a-f]{16}/\10123456789abcdef/' net/runs.jsonl
expect_true grep -q 'sha256 0123456789abcdef' net/runs.jsonl
net
rm waiting

# A job asks for GPUs where its site has them, else, or with --ranks, for ranks.
dry() { expect_exit 0 "$bench" scale --muster "$MUSTER" --ranks 2 -o dry --submit --dry-run --submit-options "--no-check --time 1h $*" -- true; }
for options in '--site ./cpus.toml' '--site ./none.toml' '--site ./gpus.toml --ranks' '--site ./gpus.toml --ranks 4' '--ranks=4 --site ./gpus.toml'; do
    dry "$options"
    expect_contains stdout '#SBATCH --ntasks-per-node=2'
    expect_equal "$(grep -E '#SBATCH.*(gpu|gres)' "$OUT")" '' "GPUs asked for with $options"
done
dry --site ./gpus.toml
expect_contains stdout '#SBATCH --gpus-per-node=2'
# Of a site whose file does not say, the scheduler does.
mkdir asked && printf '#!/bin/sh\necho "debug*|infinite|1-infinite|2|8|1|4|2|$(cat "%s/gres")|n[1-2]"\n' "$PWD" >asked/sinfo && chmod +x asked/sinfo
for gres in '(null)' gpu:4; do
    echo "$gres" >gres
    PATH=$PWD/asked:$PATH dry --site generic-slurm
    expect_equal "$(grep -c '#SBATCH --gres=gpu:2' "$OUT")" "$([ "$gres" = gpu:4 ] && echo 1 || echo 0)" "GPUs asked for of a cluster with $gres"
done

# What keeps it from scaling is named: here rank 1, which tells half as much time again for its work.
cat >slow.sh <<'EOF'
[ "$RANK" = 1 ] && echo 'muster-metric: compute_s 1.5 s' || echo 'muster-metric: compute_s 1 s'
EOF
expect_exit 0 "$bench" scale --ranks 1,2 --repeats 1 --warmup 0 -o slow -- sh slow.sh
expect_matches stdout '^what limits it \(imbalance\): at 2 ranks, rank 1 \(.*\) computes 20% longer than the mean of the ranks'
expect_exit 0 "$bench" report slow --format json
expect_contains stdout '"cause": "imbalance"'
