#!/bin/sh
# over_fake_gpus.sh LIBRARIES COMMAND... -- PROGRAM...
# Runs COMMAND -- env ... PROGRAM, so that the PROGRAM that it starts, and not COMMAND, finds the fake driver and the fake NCCL
# in the folder LIBRARIES. Its ranks meet in a folder that is gone afterwards.
libraries=$1
shift
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 143' INT TERM
seen=no
for word; do
    shift
    set -- "$@" "$word"
    [ "$word" = -- ] && [ $seen = no ] || continue
    seen=yes
    set -- "$@" env LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" MUSTER_FAKE_GPU_FOLDER="$folder"
done
"$@"
