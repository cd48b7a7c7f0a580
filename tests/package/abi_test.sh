# The C interface of libmuster_comm.so, its functions with all types of their arguments, against tests/package/muster_comm.abi of the last release, by abidiff.
# MUSTER_STORE_ABI=1: that file is written anew, for a release.
. "$(dirname "$0")/../cli/lib.sh"
command -v abidiff >/dev/null || skip "no abidiff here (Debian's abigail-tools)"
stored=$MUSTER_SOURCE_DIR/tests/package/muster_comm.abi

# abi_of HEADER TO: what abidw says of a library with a pointer to each function that the header declares, and an enumeration of all its constants.
abi_of() {
    {
        echo '#include "muster_comm.h"'
        sed -n 's/.*\b\(muster_[a-z_]*\)(.*/__typeof__(\&\1) function_\1 = \&\1;/p' "$1" | sort -u
        grep -v '^ \*' "$1" | sed 's|/\*.*||' | grep -o 'MUSTER_[A-Z0-9_]*\b' | grep -v '_H$' | sort -u |
            sed '1 s/^/enum {/; s/MUSTER_.*/value_& = &,/; $ s/$/} values;/'
    } >probe.c
    "$CC" -std=gnu11 -g -gdwarf-4 -fPIC -shared -I "$(dirname "$1")" -o probe.so probe.c &&
        abidw --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed --no-architecture --type-id-style hash --out-file "$2" probe.so
}
header=$MUSTER_PREFIX/include/muster/comm/c_api/muster_comm.h
expect_exit 0 abi_of "$header" now.abi
[ -z "${MUSTER_STORE_ABI:-}" ] || cp now.abi "$stored"

# What is added is no change; anything else that a program sees is.
compare() { abidiff --no-added-syms --no-redundant "$stored" "$1"; }
if ! compare now.abi >changes; then
    cat changes
    fail "the C interface is not that of the last release: take the change back, or, where docs/compatibility.md allows it (a longer struct that carries its size," \
        "a new MUSTER_COMM_ABI), write the file anew: MUSTER_STORE_ABI=1"
fi

# Changes are seen: an argument, a value, a function that goes.
changed() {
    mkdir -p changed
    sed "$1" "$header" >changed/muster_comm.h
    expect_exit 0 abi_of changed/muster_comm.h changed.abi
    ! compare changed.abi >changes || fail "unseen: $1"
}
changed 's/^int muster_comm_rank(const/long muster_comm_rank(const/'
changed 's/MUSTER_E_PEER = 4/MUSTER_E_PEER = 14/'
changed 's/^    int type; .*/    short type;/'
changed '/^int muster_poll(/d'
sed 's/^int muster_poll(.*/&\nenum { MUSTER_MORE = 77 };\nint muster_poll_more(int);/' "$header" >changed/muster_comm.h
expect_exit 0 abi_of changed/muster_comm.h added.abi
expect_exit 0 compare added.abi
