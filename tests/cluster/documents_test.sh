# The examples of README.md and docs/ that need Slurm, on a real one.
. "$(dirname "$0")/cluster_lib.sh"
block() { python3 -B "$MUSTER_SOURCE_DIR/tests/docs/documents.py" "$MUSTER_SOURCE_DIR" "$@"; } # DOCUMENT NEED
start_cluster 2 4
install_muster
cat >"$work/ddp.py" <<'PYTHON'
import os
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"])
PYTHON
printf '#!/bin/sh\necho "rank $RANK of $WORLD_SIZE"\n' >"$work/a.out"
chmod 755 "$work/a.out"
path=$work/prefix/bin:$PATH

# README: the batch script, as it stands.
block README.md slurm >"$work/job.sh"
job=$(as_user env PATH="$path" sbatch --parsable job.sh) || { fail 'sbatch refused the script of README.md' && exit 1; }
finish_job
expect_equal "$code" 0:0 'exit code of the job'
expect_equal "$(lines "$OUT")" "$(printf 'rank %s of 8\n' 0 1 2 3 4 5 6 7 | paste -sd';' | sed 's/;/; /g')" 'ranks of the job'

# docs/launching.md: salloc, and what is typed in its shell.
block docs/launching.md slurm >"$work/typed"
options=$(sed -n 's/^salloc \([^#]*\).*/\1/p' "$work/typed")
expect_true test -n "$options"
# shellcheck disable=SC2086
allocate $options
while IFS= read -r line; do
    case $line in '' | salloc*) continue ;; esac
    expect_exit 0 inside env PATH="$path" bash -c "$line"
    case $line in 'muster run -- '*) expect_equal "$(grep -c '^rank [0-7] of 8$' "$OUT")" 8 "ranks of: $line" ;; esac
done <"$work/typed"
release
expect_nothing_left
