# Who calls Hydra's port in the place of its proxy is not told the key of the run, nor the user's variables.
. "$(dirname "$0")/lib.sh"
command -v mpiexec.hydra >/dev/null || skip 'this test needs mpiexec.hydra'
make_hosts
# Stands in for ssh: says where Hydra's port is, and is slow.
mkdir "$homes/alice/bin"
cat >"$homes/alice/bin/agent" <<'AGENT'
#!/bin/bash
echo "$*" >~/agent.tmp && mv ~/agent.tmp ~/agent.out
exec sleep infinity
AGENT
ln -s "$(command -v mpiexec.hydra)" "$homes/alice/bin/mpiexec"
chmod 755 "$homes/alice/bin" "$homes/alice/bin/agent"
COMMAND='muster run over Hydra, and mallory as its proxy 0'
on login alice PATH="$homes/alice/bin:$bin:/usr/bin:/bin" HYDRA_LAUNCHER_EXEC="$homes/alice/bin/agent" MUSTER_PASS_KEY=file SECRET_API_KEY=hunter2 \
    muster run --engine mpiexec --start-timeout 30 -H node:1 -- true >"$OUT" 2>"$ERR" &
wait_until 20 test -e "$homes/alice/agent.out" || exit 1
port=$(sed -n 's/.*--control-port [^: ]*:\([0-9]*\).*/\1/p' "$homes/alice/agent.out")
version=$(mpiexec.hydra --version | sed -n 's/^ *Version: *//p')
on login mallory python3 "$bin/wire_attack.py" hydra 10.77.0.1 "$port" "$version" >"$common/told"
expect_contains "$common/told" MUSTER_LAUNCHER= MUSTER_TOKEN=  # the attack worked
! grep -aE 'MUSTER_TOKEN=[0-9a-f:]{60,}' "$common/told" || fail 'mallory has the key of the run'
! grep -a hunter2 "$common/told" || fail "mallory has alice's variables"
