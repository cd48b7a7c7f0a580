# timeout: 200
# A rank in an uninterruptible wait in the middle of training is named within seconds, and not killed for it. The run ends as ever after --grace, or goes on without the
# rank once that is lost.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/elastic.sh"
mkfifo fifo
cat >blocked.py <<'PY'
"""Rank 1 waits, from step 20 on, for a child that waits for a fifo before it executes its program: the wait of vfork, which only SIGKILL ends."""
import os

import muster
import numpy as np
from muster import arrays, elastic, world
from muster.errors import CollectiveError

muster.init()
assert elastic.announce()
step = 0
while step < 50:
    try:
        if step == 20 and world.rank() == 1 and world.size() == 3:
            with open("pid.new", "w") as file:
                print(os.getpid(), file=file)
            os.rename("pid.new", "pid")
            os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 3, "fifo", os.O_RDONLY, 0)])
        arrays.allreduce(np.ones(1), "step")
        step += 1
    except CollectiveError as error:
        elastic.reform_world(error)
        step = 30
PY

# begin OPTION..: until the rank is named.
begin() {
    rm -f pid
    start "$MUSTER" run --min-np 2 --grace 1s "$@" -- $python blocked.py
    wait_until 20 test -e pid
    pid=$(cat pid)
    wait_until 20 grep -q "^State:.D" "/proc/$pid/status"
    wait_until 30 grep -q "rank 1 on .* (member 1) has been in an uninterruptible wait.* for more than 5 s" "$ERR"
    expect_not_contains stderr 'killing it' 'go on in place'
}
for ways in '-n 3 --slots-per-node 3' '--engine remote -H 127.0.0.1:3'; do  # behind shims, as on other nodes
    # shellcheck disable=SC2086
    begin $ways
    kill -KILL "$pid"
    expect_end 0
    expect_matches stderr 'rank 1 on .* \(member 1\) was killed by signal 9 \(SIGKILL\); 2 ranks go on in place'
    expect_nothing_left
    # shellcheck disable=SC2086
    begin $ways
    kill -TERM "$PID"
    expect_end 143
    expect_nothing_left
done
begin -n 3 --slots-per-node 3 --timeout 15s --max-restarts 1
expect_end 124
expect_matches stderr 'rank 1 on .*, pid [0-9]*: in an uninterruptible wait'
expect_nothing_left
