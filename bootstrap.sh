#!/usr/bin/env bash
# From a fresh Debian 12 or 13 to a working muster. `./bootstrap.sh` alone lists the commands.
set -euo pipefail
cd "$(dirname "$0")"

build_packages=(g++ cmake ninja-build pkg-config libpmix-dev libopenmpi-dev openmpi-bin libhdf5-openmpi-dev
    libtomlplusplus-dev libhwloc-dev libsodium-dev libspdlog-dev libfmt-dev libboost-program-options-dev nlohmann-json3-dev
    libkainjow-mustache-dev lowdown libxxhash-dev zlib1g-dev libminizip-dev libpng-dev libjpeg-dev libwebp-dev libarchive-dev python3 libpython3-dev)
demo_packages=(dataset-fashion-mnist python3-torch libopenblas0-pthread python3-matplotlib)
test_packages=(libgtest-dev libgmock-dev mpich libmpich-dev python3-numpy python3-mpi4py python3-h5py python3-h5py-mpi slurm-wlm munge
    iproute2 procps util-linux)
package_packages=(python3-venv python3-pip autoconf automake libtool flex xz-utils)
docs_packages=(mkdocs)
data=/usr/share/datasets/fashion-mnist

say() { echo "bootstrap: $*" >&2; }
die() { say "$*"; exit 1; }

usage() {
    cat <<'TEXT'
./bootstrap.sh demo               convert real images, train on 1, 2 and 4 ranks, print the scaling table, write the report
./bootstrap.sh test               build as it is installed, and test every feature once (tests/quick)
./bootstrap.sh test --all         all other tests, and --sanitize
./bootstrap.sh test --only REGEX  the tests whose names match
./bootstrap.sh test --sanitize    under AddressSanitizer and UndefinedBehaviorSanitizer, and the fuzz targets for 2 s each
./bootstrap.sh test --system debian-13 [--all | --only REGEX]   in a Debian 13 that it makes in a folder (tests/systems/debian-13.sh), as root
./bootstrap.sh build [PRESET]     release (the default), dev or tsan, into build/PRESET
./bootstrap.sh install --prefix DIR
./bootstrap.sh package            build/packages/muster-VERSION-linux-x86_64.tar.xz, which runs on any Linux with glibc 2.28, and the wheel; needs a network once
./bootstrap.sh docs               the documents and man pages as a site with search: build/site
./bootstrap.sh deps [build|demo|test]...   only the Debian packages (all of them without a word); packages instead of deps prints their names

As root, missing Debian packages are installed; as a normal user they are listed, and nothing else happens.
TEXT
}

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# packages GROUP...: the names of the packages of these groups.
packages() {
    local group
    for group; do
        case $group in
            build) printf '%s\n' "${build_packages[@]}" ;;
            demo) printf '%s\n' "${demo_packages[@]}" ;;
            test) printf '%s\n' "${test_packages[@]}" ;;
            package) printf '%s\n' cmake ninja-build pkg-config lowdown python3 "${package_packages[@]}" ;;
            docs) printf '%s\n' "${docs_packages[@]}" ;;
            system) echo mmdebstrap ;;
            *) die "no group of packages '$group'; use build, demo or test" ;;
        esac
    done
}

# deps GROUP...: makes sure of the packages of these groups.
deps() {
    local package names wanted missing=()
    names=$(packages "$@") || exit 1
    mapfile -t wanted <<<"$names"
    if ! command -v dpkg-query >/dev/null; then
        say "no dpkg here: going on as if these, or what corresponds to them, were installed: ${wanted[*]}"
        return
    fi
    for package in "${wanted[@]}"; do is_installed "$package" || missing+=("$package"); done
    [ ${#missing[@]} = 0 ] && return
    if [ "$(id -u)" != 0 ]; then
        say "missing Debian packages; install them, as root, with:"
        echo "apt-get install --no-install-recommends ${missing[*]}"
        exit 1
    fi
    say "installing ${#missing[@]} Debian packages and what they need"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >/dev/null || say "apt-get update failed; trying with the lists that are here"
    apt-get install -y -q --no-install-recommends "${missing[@]}" |
        sed -un 's/^Need to get \(.*\) of archives.*/bootstrap:   downloading \1/p; s/^Fetched \(.*\)/bootstrap:   downloaded \1/p; s/^Setting up \([^ :]*\).*/bootstrap:   set up: \1/p' >&2 ||
        die "apt-get install failed; its message is above"
}

# build PRESET [TARGET...]
build() {
    local preset=$1 launcher=() kinds=()
    shift
    command -v ccache >/dev/null && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    local tests=${MUSTER_TESTS:-ON}  # unless this is a Debian without GoogleTest
    command -v dpkg-query >/dev/null && ! is_installed libgtest-dev && tests=OFF
    [ "$tests" = OFF ] || kinds=("-DMUSTER_TEST_KINDS=${MUSTER_TEST_KINDS:-}")  # CMake warns of a variable that nothing reads
    cmake --preset "$preset" "${launcher[@]}" -DMUSTER_TESTS=$tests "${kinds[@]}" ${MUSTER_WERROR:+-DMUSTER_WERROR=$MUSTER_WERROR} ${MUSTER_PRECOMPILE:+-DMUSTER_PCH=$MUSTER_PRECOMPILE} "-DMUSTER_PARTS=${MUSTER_PARTS:-all}" "-DCMAKE_CXX_FLAGS_RELEASE=${MUSTER_OPTIMISE:--O3} -DNDEBUG" >&2
    cmake --build "build/$preset" ${1:+--target "$@"} >&2
}

demo() {
    deps build demo
    build release muster muster-stage muster-bench muster_native muster_data  # the last two are what Python loads
    local bin=build/release/bin out=demo-results
    mkdir -p $out
    say "1. Fashion-MNIST becomes one HDF5 file, written by two ranks together"
    "$bin/muster" run -q -n 2 --slots-per-node 2 -- "$bin/muster-stage" convert --force --name Fashion-MNIST \
        train=$data/train-images-idx3-ubyte.gz,$data/train-labels-idx1-ubyte.gz \
        test=$data/t10k-images-idx3-ubyte.gz,$data/t10k-labels-idx1-ubyte.gz \
        --class-names T-shirt,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Boot -o $out/fashion-mnist.h5
    "$bin/muster-stage" verify $out/fashion-mnist.h5
    say "2. where the ranks go"
    "$bin/muster" plan -n 2 --slots-per-node 2
    say "3. training by PyTorch on 1, 2 and 4 ranks, three times each"
    "$bin/muster-bench" scale --net mnist --ranks 1,2,4 --repeats 3 --warmup 0 --data $out/fashion-mnist.h5 -o $out
    say "results: $out/results.json, report: $out/report.html"
}

# Most tests wait most of their time, for processes, deadlines and Slurm: three times as many at once as there are cores. A test of n ranks takes the place of n.
at_once() { echo $((3 * $(nproc))); }

# run_tests OPTION..: those that ctest chooses, in the build that is installed.
run_tests() {
    deps build demo test
    build release
    ctest --preset release --parallel "$(at_once)" "$@"
}

# test --system NAME [OPTION..]: the same there.
run_tests_on() {
    local system=tests/systems/$1.sh
    [ -x "$system" ] || { say "test: no system '$1'; use debian-13 or debian-12"; exit 2; }
    deps system
    shift
    exec "$system" test "$@"
}

# test --sanitize: what can go wrong in memory.
run_sanitizers() {
    deps build demo test
    build dev sanitized_tests
    ctest --preset dev --tests-regex '^((unit|gpu|fuzz)\..*|cli\.commands_in_memory|mpi\.(.*\.n2(\.(shm|tcp))?|.*\.n4|exchange_victims\..*))$' --parallel "$(at_once)"
}

# package: what runs anywhere. Its compiler and libraries come from packaging/portable/make_deps.sh.
package() {
    deps package
    local launcher=() origin
    packaging/portable/make_deps.sh build/portable-deps
    command -v ccache >/dev/null && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    origin=$(git describe --always --dirty 2>/dev/null || echo "no git")
    # What ccache cannot see in a script that starts the compiler.
    export CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK="string:$(cat build/portable-deps/root/.compiler)"
    cmake --preset portable "${launcher[@]}" "-DMUSTER_ORIGIN=archive for Linux on x86-64, $origin" >&2
    cmake --build --preset portable >&2
    packaging/portable/make_archive.sh build/portable build/packages
}

# docs: what build/release prints of itself becomes the man pages.
make_site() {
    deps build docs
    build release muster_manual muster-stage_manual muster-bench_manual
    /usr/bin/python3 packaging/make_site.py . build/release/man build/site
    say "search needs a server: python3 -m http.server -d build/site"
}

case ${1:-} in
    deps | packages) command=$1; shift; [ $# -gt 0 ] || set -- build demo test; "$command" "$@" ;;
    build) deps build; build "${2:-release}" ;;
    demo) demo ;;
    package) package ;;
    docs) make_site ;;
    test)
        case ${2:-} in
            '') run_tests --label-regex '^quick$' ;;
            --all) run_tests --label-exclude '^quick$'; run_sanitizers ;;
            --only) [ -n "${3:-}" ] || { say "test: write --only REGEX"; exit 2; }; run_tests --tests-regex "$3" ;;
            --system) run_tests_on "${3:-}" "${@:4}" ;;
            --sanitize) run_sanitizers ;;
            *) say "test: no option '$2'; use test, test --all, test --only, test --sanitize or test --system"; exit 2 ;;
        esac
        ;;
    install)
        [ "${2:-}" = --prefix ] && [ -n "${3:-}" ] || die "write: ./bootstrap.sh install --prefix DIR"
        deps build
        MUSTER_TESTS=OFF build release
        cmake --install build/release --prefix "$3" >/dev/null
        say "installed; put $3/bin on PATH"
        ;;
    -h | --help | help) usage ;;
    '') usage; exit 2 ;;
    *) say "no command '$1'"; usage >&2; exit 2 ;;
esac
