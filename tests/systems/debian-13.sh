#!/bin/bash
# Debian 13 (or 12: debian-12.sh is the same script) in a folder: makes it, builds muster in it and runs the tests there.
#
#   debian-13.sh test [OPTION..]  build, and run the tests, as `./bootstrap.sh test OPTION..` does there
#   debian-13.sh run CMD [ARG..]  run CMD there as root, in this checkout
#   debian-13.sh root             make it, where it is not yet; print its folder
#
# It lies in ${MUSTER_SYSTEMS:-${XDG_CACHE_HOME:-~/.cache}/muster/systems}/debian-13 and is made anew when the packages of bootstrap.sh change. They come from the
# mirror that this machine's own apt uses (MUSTER_DEBIAN_MIRROR=URL: from that one). Needs root, mmdebstrap, and Debian's keys of 13 (debian-archive-keyring).
#
# There the checkout is always /muster, so that ccache finds what another checkout has compiled; what is built lies in build/debian-13 of the checkout. A
# command has mounts and processes of its own, and all that it leaves is gone when it ends.
set -euo pipefail
system=$(basename "$0" .sh)
case $system in
    debian-12) suite=bookworm ;;
    debian-13) suite=trixie ;;
esac
checkout=$(cd "$(dirname "$0")/../.." && pwd)
systems=${MUSTER_SYSTEMS:-${XDG_CACHE_HOME:-$HOME/.cache}/muster/systems}
cache=$systems/$system
root=$cache/root
more_packages=(ccache ca-certificates)

say() { echo "$system: $*" >&2; }
die() { say "$*"; exit 1; }

mirror() {
    [ -z "${MUSTER_DEBIAN_MIRROR:-}" ] || { echo "$MUSTER_DEBIAN_MIRROR"; return; }
    apt-get indextargets --format '$(CREATED_BY) $(ORIGIN) $(LABEL) $(REPO_URI)' 2>/dev/null | sed -n 's/^Packages Debian Debian //p' | head -n 1 | grep . ||
        die "this machine's apt has no mirror of Debian (or no lists: apt-get update); give one: MUSTER_DEBIAN_MIRROR=URL"
}

is_made_of() { [ "$(cat "$root/.made-of" 2>/dev/null)" = "$1" ]; }

# make_root: where the one that is there has the packages that are wanted, nothing is done. While this process lives no other makes it anew.
make_root() {
    local packages uri
    [ "$(id -u)" = 0 ] || die "needs the rights of root"
    packages=$("$checkout/bootstrap.sh" packages && printf '%s\n' "${more_packages[@]}")
    mkdir -p "$cache" && exec 9>"$cache/lock" && flock --shared 9
    is_made_of "$packages" || flock 9
    if ! is_made_of "$packages"; then
        command -v mmdebstrap >/dev/null || die "mmdebstrap is not here; apt-get install mmdebstrap"
        uri=$(mirror)
        say "making $root"
        rm -rf --one-file-system "$root" "$root.new"
        mmdebstrap --quiet --variant=minbase --include="$(paste -sd, <<<"$packages")" "$suite" "$root.new" "deb $uri $suite main" >&2
        mkdir -p "$root.new/muster" "$root.new/ccache"
        touch "$root.new/etc/resolv.conf" "$root.new/etc/hosts"
        printf '%s\n' "$packages" >"$root.new/.made-of"
        mv "$root.new" "$root"
    fi
    flock --shared 9
}

# Process 1 of a command's namespaces: mounts what it needs, runs it as its child, and stays to reap what loses its parent.
be_inside() {
    local own=$1
    shift
    mount --bind "$root" "$root" # what is to become / must be a mount
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    mount --bind "$own" "$root/tmp"
    mount --bind "$checkout" "$root/muster"
    mount --bind "$checkout/build/$system" "$root/muster/build"
    mount --bind "$cache/ccache" "$root/ccache"
    for file in hosts resolv.conf; do mount --bind "/etc/$file" "$root/etc/$file"; done
    # chroot alone would not do: nsenter into a namespace made here would lead to the root of this machine.
    cd "$root"
    pivot_root . .
    umount -l .
    cd /
    /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        CCACHE_DIR=/ccache CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_MAXSIZE=5G \
        ${MUSTER_WERROR:+MUSTER_WERROR="$MUSTER_WERROR"} ${MUSTER_PRECOMPILE:+MUSTER_PRECOMPILE="$MUSTER_PRECOMPILE"} ${MUSTER_OPTIMISE:+MUSTER_OPTIMISE="$MUSTER_OPTIMISE"} MUSTER_TEST_KINDS="${MUSTER_TEST_KINDS:-}" /bin/bash -c 'cd /muster && exec "$@"' inside "$@"
}

# inside CMD...: ends with its code.
inside() {
    local own code=0
    make_root
    mkdir -p "$checkout/build/$system" "$cache/ccache"
    own=$(mktemp -d "$cache/tmp.XXXXXX") && chmod 1777 "$own"
    unshare --mount --propagation private --pid --fork --kill-child bash "$0" be_inside "$own" "$@" || code=$?
    rm -rf --one-file-system "$own"
    return $code
}

case ${1:-} in
    test) shift && inside ./bootstrap.sh test "$@" ;;
    run) shift && inside "$@" ;;
    root) make_root && echo "$root" ;;
    be_inside) shift && be_inside "$@" ;;
    *)
        sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"
        exit 2
        ;;
esac
