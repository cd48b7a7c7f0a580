#!/bin/bash
# make_deps.sh DIR: compiler and libraries for the preset `portable` (cmake/portable_toolchain.cmake), in DIR: clang and libc++ of PyPI's ziglang, and Debian 12's
# packages: hwloc, libsodium, fmt, spdlog and Boost.Program_options compiled by it as static libraries, and the headers of the others. Needs no root, but apt,
# python3-venv and, once, a network: Debian's mirror that this machine's apt uses (MUSTER_DEBIAN_MIRROR=URL: that one), and pip's index.
set -euo pipefail
zig_version=0.17.1
suite=bookworm
sources=(hwloc libsodium fmtlib spdlog boost1.74 zlib libevent pmix)
headers=(libfmt-dev libspdlog-dev libsodium-dev libtomlplusplus-dev nlohmann-json3-dev libkainjow-mustache-dev libboost1.74-dev libboost-program-options1.74-dev libpmix-dev
    libpython3.11-dev)

say() { echo "make_deps: $*" >&2; }
die() { say "$*"; exit 1; }
[ $# = 1 ] || die "write make_deps.sh DIR"
mkdir -p "$1"
dir=$(cd "$1" && pwd)
root=$dir/root
log=$dir/make_deps.log
made_of="$zig_version $(sha256sum <"$0")"
[ -e "$root/.made" ] && [ "$(cat "$root/.made-of")" = "$made_of" ] && exit 0

# The compiler: clang and clang++ for glibc 2.28, in $dir/bin. ccache knows them by these names.
make_compiler() {
    [ -x "$dir/zig/bin/python" ] || python3 -m venv "$dir/zig" || die "python3 -m venv failed; install python3-venv"
    "$dir/zig/bin/pip" install --quiet --disable-pip-version-check "ziglang==$zig_version" || die "pip install ziglang==$zig_version failed"
    local zig
    zig=$("$dir/zig/bin/python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
    mkdir -p "$dir/bin"
    local name
    for name in clang:cc clang++:c++; do
        cat >"$dir/bin/${name%:*}" <<TEXT
#!/bin/sh
export ZIG_GLOBAL_CACHE_DIR=$dir/cache ZIG_LOCAL_CACHE_DIR=$dir/cache
exec $zig ${name#*:} -target x86_64-linux-gnu.2.28 -mcpu=x86_64 -fno-sanitize=undefined "\$@"
TEXT
    done
    for name in ar ranlib; do printf '#!/bin/sh\nexec %s %s "$@"\n' "$zig" "$name" >"$dir/bin/$name"; done
    chmod +x "$dir"/bin/*
    cp "$(dirname "$zig")/lib/libcxx/LICENSE.TXT" "$root/licenses/libc++"
    cat "$dir"/bin/clang* | sed 's/^export .*//' | sha256sum >"$root/.compiler" # for ccache
    use_memory_functions_of_libc
}

# zig's runtime library has memcpy and its like too, plain loops, and is linked wherever anything of it is needed: under other names there, so that those of the
# C library are taken. It is made, and kept, by the first link of each kind.
use_memory_functions_of_libc() {
    echo 'int main(void) { return 0; }' >"$dir/empty.c"
    local kind
    for kind in '' -pie -shared; do "$dir/bin/clang" -fPIC -s $kind -o "$dir/empty" "$dir/empty.c"; done
    rm "$dir"/empty*
    find "$dir/cache" -name libcompiler_rt.a -exec perl -0777 -pi -e 's/(?<=[\0.])(bcmp|mem(?:cmp|cpy|move|set)|strlen)(?=\0)/"z" . substr($1, 1)/ge' {} +
}

# apt's own settings, so that nothing of the system changes.
make_apt() {
    local uri=${MUSTER_DEBIAN_MIRROR:-}
    [ -n "$uri" ] || uri=$(apt-get indextargets --format '$(CREATED_BY) $(ORIGIN) $(LABEL) $(REPO_URI)' 2>/dev/null | sed -n 's/^Packages Debian Debian //p' | head -n 1)
    [ -n "$uri" ] || die "this machine's apt has no mirror of Debian (or no lists: apt-get update); give one: MUSTER_DEBIAN_MIRROR=URL"
    mkdir -p "$dir"/apt/{lists,cache/archives}/partial "$dir/debian"
    local keys=/usr/share/keyrings/debian-archive-keyring.gpg
    printf '%s [signed-by='$keys'] '"$uri $suite"' main\n' deb deb-src >"$dir/apt/sources.list"
    : >"$dir/apt/status"
    cat >"$dir/apt/conf" <<TEXT
Dir::Etc::SourceList "$dir/apt/sources.list";
Dir::Etc::SourceParts "/nonexistent";
Dir::State::Lists "$dir/apt/lists";
Dir::State::Status "$dir/apt/status";
Dir::Cache "$dir/apt/cache";
APT::Architecture "amd64";
APT::Sandbox::User "";
TEXT
    export APT_CONFIG=$dir/apt/conf
    apt-get -q update || die "apt-get update failed"
}

make_debian() {
    make_apt
    cd "$dir/debian"
    apt-get -q source --download-only "${sources[@]}"
    apt-get -q download "${headers[@]}"
    local package
    for package in "${headers[@]}"; do
        dpkg -x "$package"_*.deb "$root"
        cp "$root/usr/share/doc/$package/copyright" "$root/licenses/$package" || true # a link in those of which only headers are taken
    done
    tar -x -O -f hwloc_*.debian.tar.* debian/copyright >"$root/licenses/libhwloc-dev"
    # Debian's libraries, and what says where they lie: those of this root come in their place.
    rm -rf "$root/usr/share/doc" "$root"/usr/lib/*/*.so "$root"/usr/lib/*/*.a "$root"/usr/lib/*/pmix2/lib "$root"/usr/lib/*/cmake/{fmt,spdlog,tomlplusplus}
}

# unpack NAME [MEMBERS]: the source of a package, in $dir/src/NAME, where the caller is then.
unpack() {
    rm -rf "$dir/src/$1" && mkdir -p "$dir/src/$1"
    tar -x -f "$dir/debian/$1"_*.orig.tar.* -C "$dir/src/$1" --strip-components=1 "${@:2}"
    cd "$dir/src/$1"
}

# Hidden: who loads a library or program of muster keeps other copies of hwloc, fmt and sodium.
flags="-O2 -DNDEBUG -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections"

# archive NAME COMPILER OPTION.. <SOURCES: a static library of these sources.
archive() {
    local name=$1 compiler=$2
    shift 2
    xargs -P "$(nproc)" -I SOURCE sh -c 'object=$1.o; shift; exec "$@" -o "$object"' compile SOURCE "$dir/bin/$compiler" $flags -isystem "$root/usr/include" "$@" -c SOURCE
    find . -name '*.o' -print0 | xargs -0 "$dir/bin/ar" rcs "$root/usr/lib/$library_folder/lib$name.a"
}

# describe NAME FILE TARGET OPTION..: what find_package(NAME) finds: a library of this root, or, with FILE -, headers alone.
describe() {
    mkdir -p "$root/usr/lib/cmake/$1"
    {
        echo "add_library($3 $([ "$2" = - ] && echo INTERFACE || echo STATIC) IMPORTED)"
        echo "set_target_properties($3 PROPERTIES INTERFACE_INCLUDE_DIRECTORIES \${CMAKE_CURRENT_LIST_DIR}/../../../include"
        [ "$2" = - ] || echo "  IMPORTED_LOCATION \${CMAKE_CURRENT_LIST_DIR}/../../$library_folder/$2"
        printf '  %s\n' "${@:4}" ")"
    } >"$root/usr/lib/cmake/$1/$1-config.cmake"
}

by_configure() {
    ./configure --quiet --host=x86_64-linux-gnu --prefix=/usr --libdir="/usr/lib/$library_folder" --disable-shared --enable-static \
        CC="$dir/bin/clang" AR="$dir/bin/ar" RANLIB="$dir/bin/ranlib" CFLAGS="$flags" "$@"
}

make_hwloc() {
    unpack hwloc
    by_configure --disable-visibility --disable-cairo --disable-libxml2 --disable-readme --disable-pci --disable-opencl --disable-cuda --disable-nvml --disable-rsmi --disable-levelzero \
        --disable-gl --disable-libudev
    sed -i 's/^SUBDIRS = .*/SUBDIRS = include hwloc/' Makefile
    make -s -j2 && make -s DESTDIR="$root" install
}

# What its configure finds on x86-64 with glibc 2.28.
sodium_has="CONFIGURED NATIVE_LITTLE_ENDIAN SODIUM_STATIC HAVE_TI_MODE HAVE_CPUID HAVE_INLINE_ASM HAVE_AMD64_ASM HAVE_AVX_ASM HAVE_MMINTRIN_H HAVE_EMMINTRIN_H
    HAVE_PMMINTRIN_H HAVE_TMMINTRIN_H HAVE_SMMINTRIN_H HAVE_AVXINTRIN_H HAVE_AVX2INTRIN_H HAVE_WMMINTRIN_H HAVE_RDRAND HAVE_WEAK_SYMBOLS HAVE_ATOMIC_OPS
    HAVE_C_VARARRAYS HAVE_ALLOCA_H HAVE_ALLOCA HAVE_SYS_MMAN_H HAVE_SYS_RANDOM_H HAVE_GETRANDOM HAVE_GETENTROPY HAVE_MMAP HAVE_MLOCK
    HAVE_MADVISE HAVE_MPROTECT HAVE_EXPLICIT_BZERO HAVE_POSIX_MEMALIGN HAVE_GETPID HAVE_NANOSLEEP HAVE_PTHREAD"

make_sodium() {
    unpack libsodium
    local name options
    while read -r name options; do # what a file is for is in its name
        find src/libsodium \( -name '*.c' -o -name '*.S' \) | { [ "$name" = plain ] && grep -vE 'ssse3|sse41|avx2|aesni|internal_random' || grep "$name"; } |
            archive sodium clang $(printf -- '-D%s=1 ' $sodium_has) $options -I src/libsodium/include/sodium -I "$root/usr/include/sodium"
    done <<<'plain
ssse3 -mssse3
sse41 -msse4.1
avx2 -mavx2
aesni -maes -mpclmul -mssse3
internal_random -mrdrnd'
}

make_cxx_libraries() {
    unpack fmtlib
    printf '%s\n' src/format.cc src/os.cc | archive fmt clang++ -std=c++20
    describe fmt libfmt.a fmt::fmt
    unpack spdlog
    find src -name '*.cpp' ! -name fmt.cpp | archive spdlog clang++ -std=c++20 -DSPDLOG_COMPILED_LIB -DSPDLOG_FMT_EXTERNAL
    describe spdlog libspdlog.a spdlog::spdlog 'INTERFACE_COMPILE_DEFINITIONS "SPDLOG_COMPILED_LIB;SPDLOG_FMT_EXTERNAL"' INTERFACE_LINK_LIBRARIES fmt::fmt
    describe tomlplusplus - tomlplusplus::tomlplusplus
    unpack boost1.74 --wildcards '*/libs/program_options/src'
    find . -name '*.cpp' | archive boost_program_options clang++ -std=c++17 -D_LIBCPP_ENABLE_CXX17_REMOVED_UNARY_BINARY_FUNCTION
}

# PMIx with its parts, libevent, hwloc and zlib in it: for machines that have no PMIx, or an old one. It exports PMIx's functions alone, and
# its own calls go to them, whatever other PMIx a program has loaded.
make_pmix() {
    unpack zlib
    printf '%s\n' ./*.c | archive z clang -DHAVE_UNISTD_H -D_LARGEFILE64_SOURCE=1
    cp zlib.h zconf.h "$root/usr/include"
    unpack libevent
    by_configure --disable-openssl --disable-samples --disable-libevent-regress --disable-debug-mode
    make -s -j2 && make -s DESTDIR="$root" install
    unpack pmix
    tar -x -f "$dir"/debian/pmix_*.debian.tar.*
    local patch library
    for patch in $(sed '/^#/d;/cython/d' debian/patches/series); do patch -s -p1 <"debian/patches/$patch"; done
    ./autogen.pl
    by_configure --disable-dlopen --disable-python-bindings --disable-pmix-binaries --with-hwloc="$root/usr" --with-hwloc-libdir="$root/usr/lib/$library_folder" \
        --with-libevent="$root/usr" --with-libevent-libdir="$root/usr/lib/$library_folder" --with-zlib="$root/usr" --with-zlib-libdir="$root/usr/lib/$library_folder" \
        --with-curl=no --with-jansson=no --without-munge --without-psm2 CPPFLAGS="-I$root/usr/include" LDFLAGS="-L$root/usr/lib/$library_folder" LIBS="-lpthread -lm"
    make -s -j2 -C include && make -s -j2 -C src
    cd src/.libs
    echo '{ global: PMIx_*; local: *; };' >map
    library=$root/usr/lib/$library_folder
    "$dir/bin/clang" -shared -s -o "$library/libmuster_pmix.so.2" -Wl,-soname,libmuster_pmix.so.2 -Wl,--version-script=map -Wl,-Bsymbolic -Wl,-z,defs -Wl,--whole-archive libpmix.a "$library/libhwloc.a" \
        -Wl,--no-whole-archive "$library/libevent_pthreads.a" "$library/libevent_core.a" "$library/libz.a" -lpthread -ldl -lm
}

# A part that was made stays made, so that one that failed can be tried again.
make_once() {
    [ ! -e "$root/.made-$1" ] || return 0
    ("make_$1")
    touch "$root/.made-$1"
}

library_folder=x86_64-linux-gnu
say "into $dir; what it prints is in $log"
[ "$(cat "$root/.made-of" 2>/dev/null)" = "$made_of" ] || rm -rf "$root"
mkdir -p "$root/licenses"
echo "$made_of" >"$root/.made-of"
(
    set -euo pipefail
    for part in compiler debian hwloc sodium cxx_libraries pmix; do make_once $part; done
) >"$log" 2>&1 &
wait $! || { tail -n 20 "$log" >&2; die "failed; all of it is in $log"; }
rm -rf "$dir/src"
touch "$root/.made"
