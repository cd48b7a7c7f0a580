#!/bin/bash
# A real Slurm cluster of namespaces on one machine. Its GPUs are /dev/null under other names, which only Slurm knows of.
#
#   slurm_cluster.sh up                 start it; sweeps away what a crashed one has left
#   slurm_cluster.sh run CMD [ARG..]    run CMD on the login node `head` as an ordinary user, in $PWD
#   slurm_cluster.sh on NODE CMD..      the same on node1, node2, ...
#   slurm_cluster.sh operator CMD..     on the login node as root, who is Slurm's operator here
#   slurm_cluster.sh link NODE up|down  cut a node's network link, and mend it
#   slurm_cluster.sh crash NODE         power loss: cut the link, kill everything there
#   slurm_cluster.sh boot NODE          start a crashed node again
#   slurm_cluster.sh left               print the user's processes and files in /dev/shm and /tmp on head and nodes; exit 1 if there is anything
#   slurm_cluster.sh status             nodes and jobs
#   slurm_cluster.sh down               stop everything; only the logs in $CLUSTER_DIR are left
#   slurm_cluster.sh missing            print what is needed and not there; exit 1 if anything is
#
# A node is one network, UTS, PID, IPC and mount namespace with its own /tmp and /dev/shm. Its init is a bash; killing that kills the node. The bridge
# between the nodes lies in the head's network namespace: the machine's own network and files stay as they are. Jobs run as a user of the
# cluster's own, uid 7777. What lies under /tmp is unseen on the nodes except $CLUSTER_DIR and the folders of $CLUSTER_SHARED.
#
# It takes the Slurm on PATH (22.05 or later), or that of MUSTER_TEST_SLURM, the folder that another one was installed into.
set -u
: "${CLUSTER_SLURM:=${MUSTER_TEST_SLURM:-}}"
: "${CLUSTER_DIR:=/tmp/muster-cluster}" # all state; absolute, short enough for socket names
: "${CLUSTER_NODES:=2}"
: "${CLUSTER_GPUS:=4}" # a node
: "${CLUSTER_CPUS:=8}" # a node, as told to Slurm; may be more than there are
: "${CLUSTER_MEMORY:=4000}" # MB a node, as told to Slurm
: "${CLUSTER_FEATURES:=}" # of every node
: "${CLUSTER_PREFIX:=muster}"
: "${CLUSTER_NET:=10.78.0}"
: "${CLUSTER_SHARED:=}"
: "${CLUSTER_GPU_VARIABLES:=0}" # 1: jobs keep CUDA_VISIBLE_DEVICES and its like, though no such device is there
: "${CLUSTER_NODE_TIMEOUT:=30}" # s until a node that does not answer is down (one to three times this)
: "${CLUSTER_KILL_WAIT:=10}" # s from SIGTERM to SIGKILL
: "${CLUSTER_CONF:=}" # more lines for slurm.conf
: "${CLUSTER_START_TIMEOUT:=60}"
[ -z "$CLUSTER_SLURM" ] || export PATH=$CLUSTER_SLURM/bin:$CLUSTER_SLURM/sbin:$PATH
user=tester uid=7777
self=$(readlink -f "$0")
dir=$CLUSTER_DIR
head_ns=$CLUSTER_PREFIX-head

die() {
    echo "slurm_cluster: $*" >&2
    exit 1
}
address_of() { if [ "$1" = head ]; then echo "$CLUSTER_NET.1"; else echo "$CLUSTER_NET.$((10 + ${1#node}))"; fi; }
node_names() { seq -f 'node%g' 1 "$CLUSTER_NODES"; }
our_namespaces() { ip netns list 2>/dev/null | awk -v prefix="$CLUSTER_PREFIX-" 'index($1, prefix) == 1 { print $1 }'; }

# The pid of a node's init as this machine sees it; fails if that node is not up.
init_of() {
    local pid
    read -r pid 2>/dev/null <"$dir/run/$1.init" || return 1
    [ "/proc/$pid/ns/net" -ef "/run/netns/$CLUSTER_PREFIX-$1" ] && echo "$pid"
}

# Whether this Slurm is MAJOR.MINOR ("23.02") or later.
is_from() { printf '%s\n%s\n' "$1" "$(PATH=$PATH:/usr/sbin slurmctld -V | grep -oE '[0-9]+\.[0-9]+' | head -n 1)" | sort -VC; }

# Poll a condition: no event is to be had for what Slurm's daemons do.
wait_for() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

# ---------------------------------------------------------------- files
# The nodes' /etc is a copy: a file that were mounted over this machine's would be gone as soon as somebody here (useradd, apt-get) replaces that one.
write_accounts() {
    rm -rf "${dir:?}/nodes.etc" && cp -a /etc "$dir/nodes.etc" || return 1
    {
        echo '127.0.0.1 localhost'
        for name in head $(node_names); do echo "$(address_of "$name") $name"; done
    } >"$dir/nodes.etc/hosts"
    { grep -v "^$user:" /etc/passwd; echo "$user:x:$uid:$uid:cluster user:$dir/home:/bin/bash"; } >"$dir/nodes.etc/passwd"
    { grep -v "^$user:" /etc/group; echo "$user:x:$uid:"; } >"$dir/nodes.etc/group"
}

write_gpus() {
    echo AutoDetect=off
    for ((gpu = 0; gpu < CLUSTER_GPUS; gpu++)); do
        ln -sfn /dev/null "$dir/dev/nvidia$gpu" # slurmd wants a character device
        echo "Name=gpu File=$dir/dev/nvidia$gpu"
    done
}

# linuxproc, and no cgroups: the namespaces have no file system of them to look at. cred_expire: a requeued job waits that long.
write_slurm_conf() {
    cat <<CONF
ClusterName=muster
SlurmctldHost=head($(address_of head))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/slurmd.%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.%n.log
PlugStackConfig=$dir/etc/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
PropagateResourceLimits=NONE
GresTypes=gpu
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2,sched_min_interval=0
SlurmctldTimeout=10
SlurmdTimeout=$CLUSTER_NODE_TIMEOUT
MessageTimeout=$CLUSTER_NODE_TIMEOUT
KillWait=$CLUSTER_KILL_WAIT
MinJobAge=600
CompleteWait=0
JobRequeue=1
CONF
    [ "$CLUSTER_GPU_VARIABLES" = 1 ] || echo "TaskProlog=$dir/etc/task_prolog"
    for name in $(node_names); do
        echo "NodeName=$name NodeAddr=$(address_of "$name") CPUs=$CLUSTER_CPUS Boards=1 SocketsPerBoard=1 CoresPerSocket=$CLUSTER_CPUS" \
            "ThreadsPerCore=1 RealMemory=$CLUSTER_MEMORY Gres=gpu:$CLUSTER_GPUS ${CLUSTER_FEATURES:+Features=$CLUSTER_FEATURES} State=UNKNOWN"
    done
    echo 'PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=10 State=UP'
    [ -z "$CLUSTER_CONF" ] || printf '%s\n' "$CLUSTER_CONF"
}

write_files() {
    mkdir -p "$dir"/{etc,run,log,state,spool,munge,dev,work,home,tmp} || return 1
    rm -rf "${dir:?}"/{run,log,state,spool,munge,dev}/* "${dir:?}"/munge.*
    chmod 755 "$dir" "$dir"/{etc,run,log,spool,munge,dev}
    chmod 700 "$dir/state"
    chmod 1777 "$dir/work"
    chown "$uid:$uid" "$dir/home"
    for name in $(node_names); do mkdir -p "$dir/spool/$name"; done
    head -c 128 /dev/urandom >"$dir/munge/key"
    chmod 600 "$dir/munge/key"
    write_accounts || return 1
    write_gpus >"$dir/etc/gres.conf"
    write_slurm_conf >"$dir/etc/slurm.conf"
    : >"$dir/etc/plugstack.conf"
    printf '#!/bin/sh\nfor name in CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES GPU_DEVICE_ORDINAL ZE_AFFINITY_MASK; do echo "unset $name"; done\n' >"$dir/etc/task_prolog"
    chmod 755 "$dir/etc/task_prolog"
    # Up to 23.11 it does not know "disabled", but looks at nothing where the version is named.
    if is_from 24.05; then echo CgroupPlugin=disabled; else echo CgroupPlugin=cgroup/v1; fi >"$dir/etc/cgroup.conf"
}

# ---------------------------------------------------------------- namespaces
make_network() {
    local name
    for name in head $(node_names); do ip netns add "$CLUSTER_PREFIX-$name" || return 1; done
    {
        echo "link set lo up"
        echo "link add br0 type bridge"
        echo "addr add $(address_of head)/24 dev br0"
        echo "link set br0 up"
        for name in $(node_names); do
            echo "link add $name type veth peer name eth0 netns $CLUSTER_PREFIX-$name"
            echo "link set $name master br0 up"
        done
    } | ip -n "$head_ns" -batch - || return 1
    for name in $(node_names); do
        printf 'link set lo up\naddr add %s/24 dev eth0\nlink set eth0 up\n' "$(address_of "$name")" | ip -n "$CLUSTER_PREFIX-$name" -batch - || return 1
    done
}

# Everything is redirected and in a session of its own, so that nothing holds the caller's terminal or pipes.
start_node() {
    rm -f "$dir/run/$1".{init,ready,dead}
    setsid nsenter --net="/run/netns/$CLUSTER_PREFIX-$1" \
        unshare --uts --ipc --mount --propagation private --pid --fork --mount-proc \
        bash "$self" init_of_node "$1" </dev/null >>"$dir/log/$1.init.log" 2>&1 9>&- &
    disown
}

# Each node has a munged of its own below the same name: from 23.11 on Slurm refuses a credential that its munged has decoded before.
start_munged() {
    if [ "$1" != head ]; then
        mkdir -p "$dir/munge.$1" && chmod 755 "$dir/munge.$1" && cp -p "$dir/munge/key" "$dir/munge.$1/" && mount --bind "$dir/munge.$1" "$dir/munge"
    fi
    rm -f "$dir/munge/socket"
    munged --foreground --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
        --log-file="$dir/log/munged.$1.log" --seed-file="$dir/munge/seed" --num-threads=2 &
    until [ -S "$dir/munge/socket" ]; do sleep 0.02; done
}

# Process 1 of a node.
be_node() {
    local name=$1 shared
    hostname "$name"
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    mount -t tmpfs -o mode=1777,size=1g tmpfs "$dir/tmp"
    for shared in "$dir" $CLUSTER_SHARED; do
        case $shared in /tmp/?*) mkdir -p "$dir/tmp/${shared#/tmp/}" && mount --bind "$shared" "$dir/tmp/${shared#/tmp/}" ;; esac
    done
    mount --move "$dir/tmp" /tmp
    mount -t sysfs sysfs /sys 2>/dev/null
    mount --bind "$dir/nodes.etc" /etc
    export SLURM_CONF=$dir/etc/slurm.conf HOME=/root PATH=${CLUSTER_SLURM:+$CLUSTER_SLURM/bin:$CLUSTER_SLURM/sbin:}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    unset "${!CLUSTER_@}" "${!MUSTER_@}" MUSTER OLDPWD TMPDIR
    cd /
    start_munged "$name"
    if [ "$name" = head ]; then
        { slurmctld -D -c >/dev/null 2>"$dir/log/slurmctld.err"; : >"$dir/run/head.dead"; } &
    else
        { slurmd -D -N "$name" >/dev/null 2>"$dir/log/slurmd.$name.err"; : >"$dir/run/$name.dead"; } &
    fi
    : >"$dir/run/$name.ready"
    trap : TERM INT HUP
    while :; do # stays, and reaps what is reparented to it
        sleep 1000000 &
        wait
    done
}

# The init is the one process of the node's network namespace that is process 1 in its own PID namespace.
note_init() {
    local pid
    wait_for 30 test -e "$dir/run/$1.ready" || return 1
    for pid in $(ip netns pids "$CLUSTER_PREFIX-$1"); do
        if [ "$(awk '/^NSpid:/ { print NF ":" $NF }' "/proc/$pid/status" 2>/dev/null)" = 3:1 ]; then
            echo "$pid" >"$dir/run/$1.init"
            return 0
        fi
    done
    return 1
}

nobody_left() {
    local ns
    for ns in $(our_namespaces); do [ -z "$(ip netns pids "$ns" 2>/dev/null)" ] || return 1; done
}

# Kills what lives in the cluster's own namespaces, and only that.
sweep() {
    local ns
    for ns in $(our_namespaces); do ip netns pids "$ns" 2>/dev/null | xargs -r kill -9 2>/dev/null; done
    wait_for 10 nobody_left || return 1
    for ns in $(our_namespaces); do ip netns del "$ns"; done
}

# Becomes CMD in a node, as the cluster's user (or as that of the number $CLUSTER_AS), with the caller's environment; ends with its exit code, and ends CMD when killed itself.
into() { # NODE CMD...
    local pid as=${CLUSTER_AS:-$uid}
    pid=$(init_of "$1") || die "$1 is not up"
    shift
    exec nsenter -t "$pid" -m -u -i -n -p -- setpriv --pdeathsig=TERM --reuid="$as" --regid="$as" --clear-groups \
        env -u TMPDIR SLURM_CONF="$dir/etc/slurm.conf" HOME="$dir/home" USER=$user LOGNAME=$user \
        bash -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$PWD" "$@"
}

as_operator() { # CMD...
    local pid
    pid=$(init_of head) || die "head is not up"
    exec nsenter -t "$pid" -m -u -i -n -p -- env SLURM_CONF="$dir/etc/slurm.conf" "$@"
}

# Of the cluster's user, in one node: processes (node_rsh.py, pbs_stand_in.py and flux_stand_in.py aside) and files where programs leave theirs.
left_in() {
    local init pid found=0
    init=$(init_of "$1") || return 0
    for pid in $(ip netns pids "$CLUSTER_PREFIX-$1" 2>/dev/null); do
        grep -qs "^Uid:[[:space:]]$uid[[:space:]]" "/proc/$pid/status" && ! grep -qs '^State:[[:space:]]*[ZX]' "/proc/$pid/status" || continue
        ! grep -qaF -e node_rsh.py -e pbs_stand_in.py -e flux_stand_in.py "/proc/$pid/cmdline" 2>/dev/null || continue
        echo "$1: process $(awk '/^NSpid:/ { print $NF }' "/proc/$pid/status" 2>/dev/null): $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | head -c 200)"
        found=1
    done
    find "/proc/$init/root/dev/shm" "/proc/$init/root/tmp" -xdev -mindepth 1 -user $uid -printf "$1: file %p\n" 2>/dev/null | sed "s|/proc/$init/root||" | grep . && found=1
    return $found
}
left() {
    local name found=0
    for name in head $(node_names); do left_in "$name" || found=1; done
    return $found
}

# ---------------------------------------------------------------- commands
idle_nodes() { [ "$( (into head timeout 5 sinfo -h -N -t idle -o %N) 2>/dev/null 9>&- | sort -u | wc -l)" -ge "$CLUSTER_NODES" ]; }
idle_or_dead() { compgen -G "$dir/run/*.dead" >/dev/null || idle_nodes; }

lock() {
    # Everything in this folder is removed again and again: it must be one that was made here.
    [[ $dir == /*/?* ]] || die "CLUSTER_DIR is '$dir'; give a folder such as /tmp/muster-cluster"
    if [ -d "$dir" ] && [ ! -e "$dir/.muster-cluster" ] && [ -n "$(ls -A "$dir")" ]; then die "$dir holds other things; give another CLUSTER_DIR"; fi
    mkdir -p "$dir" && : >"$dir/.muster-cluster" && exec 9>"$dir/lock" || die "cannot write into $dir"
    flock -w 120 9 || die "another one is starting or stopping in $dir"
}

# Programs that are needed and not here.
missing() {
    local program lacking=()
    for program in slurmctld slurmd munged sbatch ip nsenter unshare setpriv flock; do
        PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || lacking+=("$program")
    done
    [ "$(id -u)" = 0 ] || lacking+=("the rights of root")
    ip netns list >/dev/null 2>&1 || lacking+=("network namespaces (ip netns)")
    [ ${#lacking[@]} = 0 ] || { (IFS=,; echo "${lacking[*]}"); return 1; }
}

up() {
    local name why
    why=$(missing) || die "needs $why"
    [ ${#dir} -le 60 ] || die "the name of $dir is too long for sockets"
    lock
    sweep || die "could not end what an earlier cluster has left"
    write_files || die "cannot write into $dir"
    make_network || { sweep; die "the network could not be set up"; }
    start_node head
    for name in $(node_names); do start_node "$name"; done
    for name in head $(node_names); do note_init "$name" || { sweep; die "$name did not start; see $dir/log"; }; done
    wait_for "$CLUSTER_START_TIMEOUT" idle_or_dead || { sweep; die "not all nodes came up in $CLUSTER_START_TIMEOUT s; see $dir/log"; }
    if ! idle_nodes; then
        grep -hE 'fatal|error' "$dir"/log/*.err | tail -n 5 >&2
        sweep
        die "a daemon ended at once; see $dir/log"
    fi
}

down() {
    lock
    sweep || die "some processes would not end"
    rm -rf "${dir:?}"/{etc,nodes.etc,run,spool,state,munge,dev,tmp,home,work} "${dir:?}"/munge.*
}

case ${1:-} in
    up) up ;;
    down) down ;;
    run) shift && into head "$@" ;;
    on) shift && into "$@" ;;
    operator) shift && as_operator "$@" ;;
    status) (into head sinfo -N -o '%N %T %C %G %E'); (into head squeue) ;;
    link)
        init_of "$2" >/dev/null || die "$2 is not up"
        ip -n "$head_ns" link set "$2" "$3"
        ;;
    left) left ;;
    crash)
        pid=$(init_of "$2") || die "$2 is not up"
        ip -n "$head_ns" link set "$2" down
        kill -9 "$pid"
        ;;
    boot)
        lock
        init_of "$2" >/dev/null && die "$2 is up"
        ip -n "$head_ns" link set "$2" up
        start_node "$2"
        note_init "$2" || die "$2 did not start; see $dir/log"
        ;;
    missing) missing ;;
    init_of_node) be_node "$2" ;;
    *)
        sed -n '2,/^set -u/{/^set -u/d;s/^# \{0,1\}//;p}' "$self"
        exit 2
        ;;
esac
