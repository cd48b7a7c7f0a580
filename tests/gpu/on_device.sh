#!/bin/bash
# on_device.sh [--programs DIR] [--muster DIR] [--out DIR] [--python PROGRAM] [NAME..]: runs everything that is tested of a real GPU, one after the other, each
# within a limit, and prints a line for each: what passed, failed or was skipped, and its seconds. --programs holds the programs of this folder (default:
# build/release/bin), --muster those of muster (default: the same); what they print goes to --out (default: gpu-results), one file each. With NAMEs only these run.
# Exit code: 0; 1 where one failed; 77 where there is no GPU.
set -u
programs=build/release/bin muster='' out=gpu-results python=python3
while [ $# -gt 0 ]; do
    case $1 in
        --programs) programs=$2; shift 2 ;;
        --muster) muster=$2; shift 2 ;;
        --out) out=$2; shift 2 ;;
        --python) python=$2; shift 2 ;;
        -*) echo "on_device.sh: no option '$1'; read the first lines of $0" >&2; exit 2 ;;
        *) break ;;
    esac
done
muster=${muster:-$programs}
wanted=" $* "
mkdir -p "$out" || exit 1
"$programs/gpu_kernels" --gtest_list_tests >"$out/devices.txt" 2>&1
[ $? != 77 ] || { cat "$out/devices.txt"; exit 77; }
failed=0

# try NAME LIMIT COMMAND..
try() {
    local name=$1 limit=$2 begin=$SECONDS code outcome
    shift 2
    [ "$wanted" = '  ' ] || [[ $wanted = *" $name "* ]] || return 0
    timeout -k 10 "$limit" "$@" >"$out/$name.txt" 2>&1 </dev/null
    code=$?
    case $code in
        0) outcome=passed ;;
        77) outcome=skipped ;;
        124 | 137) outcome="failed: no end within $limit s" ;;
        *) outcome="failed: exit code $code" ;;
    esac
    [[ $outcome != failed* ]] || failed=1
    printf '%-18s %4d s  %s\n' "$name" $((SECONDS - begin)) "$outcome"
    [[ $outcome = passed ]] || tail -n 12 "$out/$name.txt" | cut -c1-300 | sed 's/^/    /'
}

# on RANKS PROGRAM..: ranks that share GPUs where there are fewer than ranks.
on() { echo "$muster/muster" run -q -n "$1" --slots-per-node "$1" --ranks-per-gpu "$1" --timeout 100s -- "${@:2}"; }

try kernels 60 "$programs/gpu_kernels"
[ ! -x "$muster/muster-bench" ] || try gpu-check 280 "$muster/muster-bench" gpu-check --python "$python" -o "$out/gpu-check.json"
for ranks in 1 2 4; do try nccl.n$ranks 100 $(on $ranks "$programs/gpu_nccl"); done
[ ! -x "$programs/gpu_loader" ] || try loader 60 "$programs/gpu_loader"
[ ! -x "$programs/gpu_speed" ] || try kernels_speed 60 "$programs/gpu_speed" kernels --repetitions 7
! command -v compute-sanitizer >/dev/null || try memcheck 150 compute-sanitizer --tool memcheck --leak-check full --error-exitcode 1 "$programs/gpu_kernels"
exit $failed
