# The checker of PBS' directives, which script_golden_test.sh holds the scripts against, finds what is wrong.
# parts: jobs
. "$(dirname "$0")/lib.sh"
unset MUSTER_SITE_PATH XDG_CONFIG_HOME
export HOME=$PWD
checker=$MUSTER_SOURCE_DIR/tests/cli/pbs_directives.py
expect_exit 0 "$MUSTER" script --site polaris --gpus 8 --time 10min --account a --queue debug --after 7 --sweep 1,8 -- x
cp "$OUT" good.sh
expect_exit 0 python3 "$checker" good.sh
expect_empty stdout
# wrong SED-EXPRESSION TEXT: the script so changed is found faulty, and why.
wrong() {
    sed "$1" good.sh >bad.sh
    ! cmp -s good.sh bad.sh || fail "$1 changes nothing"
    expect_exit 1 python3 "$checker" bad.sh
    expect_contains stdout "$2"
}
wrong 's/select=2:/select=2::/' 'no value of select'
wrong 's/select=2/select=0/' 'asks for no chunk'
wrong 's/walltime=.*/walltime=10min/' 'no value of walltime'
wrong 's/place=scatter/place=scattered/' 'no value of place'
wrong 's/-J 0-1/-J 0/' 'no value of -J'
wrong 's/-J 0-1/-J 1-1/' 'two jobs or more'
wrong 's/afterok:7/after:/' 'no value of -W'
wrong 's/^#PBS -q.*/# a comment\n&\n&/' 'stands twice'
wrong 's/^#PBS -q/\n&/' "behind the script's first command"
wrong 's/^#PBS -q/#PBS  -q/' "not '#PBS OPTION VALUE'"
wrong 's/^#PBS -r y/#PBS -X y/' 'no option of qsub'
