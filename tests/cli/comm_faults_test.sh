# timeout: 240
# A rank that stops or dies at any time is named by all others within their deadline: in the making of the communicator, within
# collectives, at the end.
. "$(dirname "$0")/lib.sh"
victim=$MUSTER_BIN/comm_victim

# Backends that this build has and that serve three ranks on one node.
backends=()
for backend in ${COMM_BACKENDS:-mpi}; do
    timeout 30 "$MUSTER" run -q -n 3 --slots-per-node 3 -- "$victim" init none 0 20 "$backend" >/dev/null 2>&1 && backends+=("$backend")
done
[ ${#backends[@]} -gt 0 ] || skip "no backend serves several ranks"

# expect_blamed CULPRIT HOW: the two others wrote a line, in time, that blames it alone.
expect_blamed() {
    local rank
    for rank in 0 1 2; do
        [ "$rank" = "$1" ] && continue
        expect_matches stdout "^rank $rank: (timeout|peer failed), culprits \[$1\], in time: .*(rank $1 on|rank $1 of)"
    done
}

for backend in "${backends[@]}"; do
    culprit=0
    for when in init collective finalise; do
        for how in kill stop; do
            culprit=$(((culprit + 1) % 3))
            code=7
            [ $how = kill ] && code=137
            expect_exit $code timeout 60 "$MUSTER" run -q -n 3 --slots-per-node 3 --grace 20s -- "$victim" $when $how $culprit 4 "$backend"
            expect_blamed $culprit $how
        done
    done
done

# Who gives up takes in what others send, so that these can go on, but waits for none of it: over TCP the rest of a large message
# never comes from a rank that is stopped.
if [[ " ${backends[*]} " == *" mpi "* ]]; then
    export OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo # interfaces of other tests' hosts come and go
    for how in kill stop; do
        code=7
        [ $how = kill ] && code=137
        expect_exit $code timeout 60 "$MUSTER" run -q -n 3 --slots-per-node 3 --grace 20s -- "$victim" sending $how 1 4 mpi
        expect_blamed 1 $how
    done
fi
