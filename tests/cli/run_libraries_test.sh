# The libraries of the program muster: few are loaded at its start, and PMIx where a run needs it.
. "$(dirname "$0")/lib.sh"

# Sanitizers need those of the languages to be shared.
loaded='libpmix'
nm "$MUSTER" 2>/dev/null | grep -q '__asan_init\|__tsan_init' || loaded='libpmix\|libstdc\|libgcc_s\|libtomlplusplus'
! readelf -d "$MUSTER" | grep NEEDED | grep "$loaded" || fail "muster loads libraries at its start that it should not"

# fmt and spdlog are a part of it where they are Debian's (cmake/muster_link_in.cmake). Then any libstdc++ may stand in front, as that of a conda environment.
debian=$(. /etc/os-release && echo "$ID $VERSION_ID")
if [ "$loaded" != libpmix ] && { [ "$debian" = 'debian 12' ] || [ "$debian" = 'debian 13' ]; }; then
    ! readelf -d "$MUSTER" | grep NEEDED | grep 'libfmt\|libspdlog' || fail 'muster loads fmt or spdlog at its start'
    mkdir front
    : >front/libstdc++.so.6
    LD_LIBRARY_PATH=$PWD/front expect_exit 0 "$MUSTER" run -n 2 -- true
fi

# The PMIx library must find the accept that looks at who calls: pmix/library/accept_own_user.cpp.
nm -D --defined-only "$MUSTER" | grep -q ' accept$' || fail "the PMIx library would call the C library's accept"

# A PMIx library that cannot be opened stands against a run, and against nothing else.
mkdir broken
: >broken/libpmix.so.2
LD_LIBRARY_PATH=$PWD/broken expect_exit 0 "$MUSTER" plan -n 2
LD_LIBRARY_PATH=$PWD/broken expect_exit 125 "$MUSTER" run -n 2 -- true
expect_contains stderr "cannot open the PMIx library" "broken/libpmix.so.2" "install PMIx"
# One that is none is named by its file.
other=$(ldconfig -p 2>/dev/null | sed -n 's/.*librt\.so\.1.* => //p' | head -n 1)
if [ -e "$other" ]; then
    ln -sf "$(readlink -f "$other")" broken/libpmix.so.2
    LD_LIBRARY_PATH=$PWD/broken expect_exit 125 "$MUSTER" run -n 2 -- true
    expect_contains stderr "the PMIx library $PWD/broken/libpmix.so.2 has no PMIx_" 'LD_LIBRARY_PATH'
fi
