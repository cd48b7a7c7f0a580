#!/usr/bin/python3
"""Stands in for OpenPBS and its TM between the nodes of a test cluster: does what a genuine 23.06.06 was measured to do, no more.

  pbs_stand_in.py serve FOLDER           on each node: its pbs_mom, obeys through a socket in FOLDER
  pbs_stand_in.py job FOLDER CHUNKS CMD  runs CMD as a job of the chunks "node1.lab.example:ncpus=2:ngpus=2:mpiprocs=2+node2:…";
                                         ends with its exit code. SIGUSR1 to the process whose
                                         number is in FOLDER/running is qdel. $WALLTIME (01:00:00) is the job's, which nothing enforces;
                                         $RUN_COUNT is how often it was started; $TOLERATE is what it was given as tolerate_node_failures;
                         with $GPU_HOOK a hook tells the script and each task GPUs of their host
  pbs_tmrsh, qstat                       links to this program in FOLDER/exec/bin, for the job

A task is a session of its own; when its first process ends, what is left in that session is killed, and what has left it is not. It has PBS's
variables and umask, none of the script's, and its output goes to the job's file. pbs_tmrsh takes a host as $PBS_NODEFILE spells it, counts its line,
and takes that line of PBS's own file. SIGHUP to it stands for a restart of its host's pbs_mom: it loses its task, and ends; the task runs on. It never returns from a host that is lost; nor, where the first chunk has mpiprocs=0, from the first of
the other hosts. qdel notes who it was in the job's comment, sends SIGTERM to the session of the script only, and SIGKILL to all of the job's sessions after 10 s.
"""
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time


def short(host):
    return host.split(".")[0]


def call(folder, host, request):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.path.join(folder, short(host)))
    connection.sendall(json.dumps(request).encode() + b"\n")
    return connection


def kill_session(session, number):
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            if int(fields[3]) == session:
                os.kill(int(name), number)
        except (OSError, IndexError):
            pass


def job_variables(folder, job, host):
    cpus = str(next(c["ncpus"] for c in job["chunks"] if short(c["host"]) == short(host)))
    return {"PATH": "/bin:/usr/bin", "HOME": os.environ["HOME"], "PBS_JOBID": job["id"], "PBS_ENVIRONMENT": "PBS_BATCH",
            "PBS_JOBCOOKIE": "0" * 32, "PBS_NODEFILE": f"{folder}/aux/{job['id']}", "PBS_CONF_FILE": f"{folder}/pbs.conf",
            "NCPUS": cpus, "OMP_NUM_THREADS": cpus} | \
        ({"CUDA_VISIBLE_DEVICES": f"GPU-{short(host)}-a,GPU-{short(host)}-b"} if job["gpu_hook"] else {})


def limits():
    os.umask(0o077)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (1000, hard))


def obey(folder, connection):
    """One task, or the job's script: started, waited for, its session killed."""
    request = json.loads(connection.makefile().readline())
    job = request["job"]
    host = socket.gethostname()
    output = open(f"{folder}/{job['id']}.out", "ab")
    variables = job_variables(folder, job, host)
    if request["script"]:
        variables |= {"USER": "tester", "LOGNAME": "tester", "SHELL": "/bin/bash"}
    task = subprocess.Popen(request["argv"], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=variables,
                            cwd=request["cwd"] if request["script"] else variables["HOME"], start_new_session=True, preexec_fn=limits)
    ended = os.pidfd_open(task.pid)
    kill_at = None
    while True:
        wait = None if kill_at is None else max(0, kill_at - time.monotonic())
        ready = select.select([ended, connection], [], [], wait)[0]
        if ended in ready:
            break
        if connection in ready:
            order = connection.recv(1)
            if order == b"T":
                kill_session(task.pid, signal.SIGTERM)
                kill_at = time.monotonic() + 10
                continue
            if request["script"] or order == b"K":
                kill_session(task.pid, signal.SIGKILL)
            else:  # pbs_tmrsh is gone: its task runs on
                connection = open("/dev/null")
                os.waitid(os.P_PIDFD, ended, os.WEXITED | os.WNOWAIT)
        elif kill_at is not None:
            kill_session(task.pid, signal.SIGKILL)
    status = task.wait()
    kill_session(task.pid, signal.SIGKILL)
    try:
        connection.sendall(bytes([status if status >= 0 else 128 - status if request["script"] else -status]))
    except (OSError, AttributeError):
        pass


def serve(folder):
    path = os.path.join(folder, short(socket.gethostname()))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen(64)
    os.rename(path + ".new", path)  # whoever finds it can connect
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            obey(folder, connection)
            os._exit(0)
        connection.close()


def read_chunks(text):
    chunks = []
    for part in text.split("+"):
        host, *resources = part.split(":")
        chunks.append({"host": host} | {name: int(value) for name, value in (r.split("=") for r in resources)})
    return chunks


def write_answer(folder, job_id, answer, ended_by=""):
    answer["Jobs"][job_id] |= {"job_state": "R", "substate": 42, "comment": "Job run at Mon Nov 23 at 07:03" + ended_by}
    with open(f"{folder}/{job_id}.qstat.new", "w") as file:
        json.dump(answer, file)
    os.rename(f"{folder}/{job_id}.qstat.new", f"{folder}/{job_id}.qstat")


def delete_job(folder, job_id, script):
    with open(f"{folder}/{job_id}.qstat") as file:
        write_answer(folder, job_id, json.load(file), " and terminated by tester@head")
    script.sendall(b"T")


def write_job(folder, job):
    chunks = job["chunks"]
    os.makedirs(f"{folder}/aux", exist_ok=True)
    os.makedirs(f"{folder}/exec/bin", exist_ok=True)
    for name in ("pbs_tmrsh", "qstat"):
        if not os.path.lexists(f"{folder}/exec/bin/{name}"):
            os.symlink(os.path.abspath(__file__), f"{folder}/exec/bin/{name}")
    with open(f"{folder}/pbs.conf", "w") as file:
        file.write(f"PBS_EXEC={folder}/exec\nPBS_HOME={folder}\n")
    with open(f"{folder}/aux/{job['id']}", "w") as file:
        file.write("".join((c["host"] + "\n") * c.get("mpiprocs", 1) for c in chunks))
    resources = (":".join(f"{name}={c[name]}" for name in ("ncpus", "ngpus") if name in c) for c in chunks)
    answer = {"Jobs": {job["id"]: {
        "exec_host": "+".join(f"{short(c['host'])}/0*{c['ncpus']}" for c in chunks),
        "exec_vnode": "+".join(f"({short(c['host'])}:{r})" for c, r in zip(chunks, resources))}}}
    if "TOLERATE" in os.environ:
        answer["Jobs"][job["id"]]["tolerate_node_failures"] = os.environ["TOLERATE"]
    if "RUN_COUNT" in os.environ:
        answer["Jobs"][job["id"]]["run_count"] = int(os.environ["RUN_COUNT"])
    if "WALLTIME" in os.environ:
        answer["Jobs"][job["id"]] |= {"stime": time.strftime("%a %b %d %H:%M:%S %Y"), "Resource_List": {"walltime": os.environ["WALLTIME"]}}
    write_answer(folder, job["id"], answer)
    with open(f"{folder}/{job['id']}.job", "w") as file:
        json.dump(job, file)


def run_job(folder, chunks, argv):
    job = {"id": f"{os.getpid()}.head", "chunks": read_chunks(chunks), "gpu_hook": "GPU_HOOK" in os.environ}
    write_job(folder, job)
    script = call(folder, job["chunks"][0]["host"], {"job": job, "script": True, "argv": argv, "cwd": os.getcwd()})
    signal.signal(signal.SIGUSR1, lambda *_: delete_job(folder, job["id"], script))
    with open(f"{folder}/running", "w") as file:
        file.write(str(os.getpid()))
    answer = script.recv(1)
    with open(f"{folder}/{job['id']}.out", "rb") as file:
        sys.stdout.buffer.write(file.read())
    return answer[0] if answer else 255


def tmrsh(words):
    if words and words[0] == "-n":
        words = words[1:]
    own = os.path.realpath(os.environ["PBS_CONF_FILE"])
    folder = os.path.dirname(own)
    with open(f"{folder}/{os.environ['PBS_JOBID']}.job") as file:
        job = json.load(file)
    with open(os.environ["PBS_NODEFILE"]) as file:
        named = file.read().split()
    with open(f"{folder}/aux/{job['id']}") as file:
        hosts = file.read().split()
    if len(words) < 2 or words[0] not in named or named.index(words[0]) >= len(hosts):
        sys.stderr.write(f'pbs_tmrsh: host "{words[0] if words else ""}" is not in the job\n')
        return 255
    host = hosts[named.index(words[0])]
    connection = call(folder, host, {"job": job, "script": False, "argv": words[1:], "cwd": "/"})

    def lose_mom(*_):
        sys.stderr.write(f'pbs_tmrsh: tm_poll(obit): host "{words[0]}" err not connected (17002)\n')
        sys.stderr.flush()
        os._exit(255)

    signal.signal(signal.SIGHUP, lose_mom)
    started = time.monotonic()
    answer = connection.recv(1)
    first_is_absent = job["chunks"][0].get("mpiprocs", 1) == 0
    if not answer or (first_is_absent and short(host) == short(hosts[0]) and time.monotonic() - started > 0.1):
        signal.pause()
    return answer[0]


def qstat(job_id):
    with open(f"{os.path.dirname(os.environ['PBS_CONF_FILE'])}/{job_id}.qstat") as file:
        print(file.read())
    return 0


if __name__ == "__main__":
    called, words = os.path.basename(sys.argv[0]), sys.argv[1:]
    if called == "pbs_tmrsh":
        sys.exit(tmrsh(words))
    if called == "qstat":
        sys.exit(qstat(words[-1]))
    if words[0] == "serve":
        serve(words[1])
    sys.exit(run_job(words[1], words[2], words[3:]))
