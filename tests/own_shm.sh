#!/bin/sh
# own_shm.sh COMMAND...: runs it with a /dev/shm of its own, where this user may mount one, so that it need not tell its files there from those of other tests;
# MUSTER_OWN_SHM says so.
mine='mount -t tmpfs -o mode=1777 tmpfs /dev/shm'
unshare --mount sh -c "$mine" 2>/dev/null || exec "$@"
exec unshare --mount sh -c "$mine"' && MUSTER_OWN_SHM=1 exec "$@"' sh "$@"
