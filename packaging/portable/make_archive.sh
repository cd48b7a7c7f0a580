#!/bin/bash
# make_archive.sh BUILD OUT: the portable archive and its wheel in the folder OUT, from a build with the preset `portable`, their SHA-256 sums and the release notes.
set -euo pipefail
build=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
name=muster-$version-linux-x86_64
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}

rm -rf "$out/$name"
cmake --install "$build" --prefix "$out/$name" >/dev/null
XZ_OPT=-9 tar -C "$out" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -c -J -f "$out/$name.tar.xz" "$name"
wheel=$(python3 "$(dirname "$0")/make_wheel.py" "$out/$name" "$version" "$out")
(cd "$out" && sha256sum "$name.tar.xz" "$(basename "$wheel")" >SHA256SUMS)
notes=$out/muster-$version-notes.md
{
    printf '# muster %s\n\nUnpack the archive, or `pip install` the wheel: docs/install.md. Both run on Linux on x86-64 with glibc 2.28 or later.\n\n' "$version"
    awk -v version="$version" '/^## / { wanted = $2 == version } wanted' "$(dirname "$0")/../../CHANGELOG.md" | sed 's/\[\([^]]*\)\]([^)]*)/\1/g'
    printf '\n**Files** (SHA-256)\n\n```text\n%s\n```\n' "$(cat "$out/SHA256SUMS")"
} >"$notes"
printf '%s\n' "$out/$name.tar.xz" "$wheel" "$out/SHA256SUMS" "$notes"
