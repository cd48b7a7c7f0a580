#!/usr/bin/env python3
"""Measures how long it takes to start and end ranks, by muster, mpirun and Hydra, taking turns.

    python3 tests/speed/launch.py                                  /bin/true on 32 ranks, MPI_Init + MPI_Finalize on 8
    python3 tests/speed/launch.py --endurance 200 --ranks 128      only muster, looking for hangs

Wall time from before the launcher is started until it has ended. bare: this program starts the same processes itself, the least that any launcher
can take. A run that has not ended after 15 s counts as hung and is killed; mpirun 4.1 hangs now and then on ranks that end at once.
With --slurm it also measures how long a run lasts after the death of one rank. Each node gets as many ranks: give --ranks and --mpi-ranks (a rank a
GPU: nodes x GPUs).
"""
import argparse
import collections
import json
import os
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import turns

DEADLINE = 15
LINE = "epoch 3 step 1200 loss 0.5193 images/s 15612.3 wait 0.4 ms"

Launcher = collections.namedtuple("Launcher", "name before after variables")  # the command up to the number of ranks, and behind it
Ended = collections.namedtuple("Ended", "wall_s code words")  # code 128+n for signal n, None: hung; the last words of its standard error


def start(command, variables, errors=None):
    """Starts it in its own process group; its output is thrown away."""
    files = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    if errors is not None:
        files[2] = (os.POSIX_SPAWN_DUP2, errors.fileno(), 2)
    return os.posix_spawnp(command[0], command, variables, file_actions=files, setpgroup=0)


def wait_for(pid):
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else 128 - code


def run(command, variables):
    with tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        pid = start(command, variables, errors)
        end = os.pidfd_open(pid)
        hung = not select.select([end], [], [], DEADLINE)[0]
        if hung:
            os.killpg(pid, signal.SIGKILL)
        code = wait_for(pid)
        wall = time.perf_counter() - began
        os.close(end)
        errors.seek(0)
        lines = errors.read().decode(errors="replace").split("\n") if hung or code else []
    words = [line.strip() for line in lines if line.strip()]
    return Ended(wall, None if hung else code, "".join(c for c in words[-1] if c.isprintable()) if words else "")


def run_bare(command, count):
    began = time.perf_counter()
    for pid in [start(command, os.environ) for _ in range(count)]:
        wait_for(pid)
    return time.perf_counter() - began


def command_of(launcher, ranks, program):
    return [*launcher.before, str(ranks), *launcher.after, *program]


def find_launchers(muster):
    found = [Launcher("muster", [muster, "run", "-q", "-n"], ["--"], os.environ)]
    if path := shutil.which("mpirun.openmpi"):
        version = subprocess.run([path, "--version"], capture_output=True, text=True).stdout.split("\n")[0]
        as_root = ["--allow-run-as-root"] if os.getuid() == 0 else []
        found.append(Launcher(version or "mpirun", [path, "--oversubscribe", *as_root, "-n"], [], os.environ))
    if path := shutil.which("mpiexec.hydra"):
        found.append(Launcher("mpiexec.hydra", [path, "-n"], [], os.environ))
    return found


def slurm_launchers(muster, ranks):
    """muster, and srun with the layout that muster chooses: the same number of ranks on each node.

    What salloc and sbatch have set would make of srun's step another one than muster's; srun asks Slurm for the job by its number."""
    nodes, path = os.environ.get("SLURM_JOB_NUM_NODES"), shutil.which("srun")
    if not nodes or not path:
        sys.exit("--slurm: this is no Slurm job; start it by salloc or sbatch")
    if ranks % int(nodes):
        sys.exit(f"--slurm: {ranks} ranks on {nodes} nodes; give a multiple of {nodes}")
    each = str(ranks // int(nodes))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SRUN_")) or name in ("SLURM_JOB_ID", "SLURM_CONF")}
    srun = [path, "-Q", "--mpi=pmix", "--overlap", "--nodes=" + nodes, "--ntasks-per-node=" + each, "-n"]
    return [Launcher("muster", [muster, "run", "-q", "--ranks-per-node", each, "-n"], ["--"], os.environ), Launcher("srun", srun, [], kept)]


def failure_text(runs):
    """Says why the first of them that did not end well did not; "" if all ended well."""
    bad = [each for each in runs if each.code != 0]
    if not bad:
        return ""
    how = "hung" if bad[0].code is None else f"exit code {bad[0].code}"
    return f"{len(bad)} of {len(runs)} runs did not end well; the first: {how}{': ' if bad[0].words else ''}{bad[0].words}"


def compare(title, program, ranks, launchers, repeats, bare, records):
    """Prints one table, a program on a number of ranks by each launcher. Returns whether muster's runs all ended well."""
    ended, alone = {each.name: [] for each in launchers}, []
    for turn in range(repeats + 1):  # the first round is not counted
        if bare:
            alone.append(run_bare(program, ranks))
        for each in launchers:
            one = run(command_of(each, ranks, program), each.variables)
            if turn > 0 or one.code != 0:
                ended[each.name].append(one)
                records.append({"what": title, "ranks": ranks, "launcher": each.name, "repetition": turn, **one._asdict()})
    print(f"{title}, {ranks} ranks: wall ms, medians of {repeats} runs taking turns")
    times = {name: [1e3 * each.wall_s for each in runs if each.code == 0] for name, runs in ended.items()}
    own = times[launchers[0].name]
    rows = [["launcher", "median", "smallest", "largest", "muster/this", "failed", "hung"]]
    if bare:
        rows.append(["bare", *turns.short([1e3 * wall for wall in alone[1:]]), "-", "0", "0"])
    for name, runs in ended.items():
        ratio = f"{statistics.median(own) / statistics.median(times[name]):.2f}" if own and times[name] and times[name] is not own else "-"
        rows.append([name, *turns.short(times[name]), ratio, str(sum(each.code not in (0, None) for each in runs)), str(sum(each.code is None for each in runs))])
    turns.print_table(rows)
    for name, runs in ended.items():
        if text := failure_text(runs):
            print(f"{name}: {text}")
    if own and times.get("srun"):
        print(f"muster run adds {statistics.median(own) - statistics.median(times['srun']):.0f} ms to srun")
    print(flush=True)
    return not failure_text(ended[launchers[0].name])


def compare_deaths(ranks, launchers, repeats, records):
    """One rank in the middle prints a line and kills itself while the others sleep: wall time from its line to the end of the run.

    It sleeps for a second first, so that the others have begun: under a bare srun nothing says when they have.
    """
    launchers[-1].before.insert(-1, "--kill-on-bad-exit=1")  # srun's option for the same
    script = f'[ "$SLURM_PROCID" = {ranks // 2} ] || exec sleep 1000; sleep 1; echo dying; kill -9 $$'
    times = {each.name: [] for each in launchers}
    for turn in range(repeats):
        for each in launchers:
            with subprocess.Popen(command_of(each, ranks, ["sh", "-c", script]), env=each.variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True) as job:  # fmt: skip
                end = os.pidfd_open(job.pid)
                told = select.select([job.stdout], [], [], DEADLINE)[0] and job.stdout.read(1)
                began = time.perf_counter()
                ended = select.select([end], [], [], DEADLINE)[0]
                wall = time.perf_counter() - began
                os.close(end)
                if not told or not ended:
                    os.killpg(job.pid, signal.SIGKILL) if job.poll() is None else None
                    print(f"note: {each.name} hung, or the rank did not run", file=sys.stderr)
                    continue
            times[each.name].append(1e3 * wall)
            records.append({"what": "death", "ranks": ranks, "launcher": each.name, "repetition": turn, "wall_s": wall, "code": job.returncode})
    turns.print_table([["a rank kills itself: ms to the end of the run", "median", "smallest", "largest"], *([name, *turns.short(all_)] for name, all_ in times.items())])
    print()


def compare_output(muster, mib, repeats, records):
    """The cost of forwarding for a rank that prints as fast as it can: the same program read through a pipe with and without muster."""
    program = ["sh", "-c", f"yes '{LINE}' | head -c {mib}M"]
    through = [muster, "run", "-q", "-n", "1"]
    ways = {"a pipe alone": program, "muster run": [*through, "--", *program], "muster run --tag-output": [*through, "--tag-output", "--", *program]}
    rates = {name: [] for name in ways}
    for turn in range(repeats):
        for name, command in ways.items():
            began = time.perf_counter()
            got = len(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            wall = time.perf_counter() - began
            if got < mib << 20:
                sys.exit(f"{name}: {got} bytes of {mib} MiB were received")
            rates[name].append(mib * 1.048576 / wall)
            records.append({"what": "output", "launcher": name, "repetition": turn, "mib": mib, "wall_s": wall})
    alone = statistics.median(rates["a pipe alone"])
    print(f"{mib} MiB of lines, medians of {repeats} runs taking turns (1 MB = 1e6 bytes)")
    turns.print_table([["one rank prints through", "MB/s", "smallest", "largest", "this/pipe"],
                       *([name, *turns.short(all_, ".0f"), f"{statistics.median(all_) / alone:.2f}"] for name, all_ in rates.items())])  # fmt: skip
    print()


def endure(launcher, ranks, runs):
    good = True
    for count in ranks:
        ended = [run(command_of(launcher, count, ["/bin/true"]), launcher.variables) for _ in range(runs)]
        times = [1e3 * each.wall_s for each in ended if each.code == 0]
        median, _, longest = turns.short(times)
        print(f"{runs} runs of {count} ranks: {sum(each.code is None for each in ended)} hung; median {median} ms, longest {longest} ms")
        if text := failure_text(ended):
            good = False
            print(text)
    return good


def numbers(text):
    return [int(word) for word in text.split(",") if word != "0"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    turns.add_launcher(parser)
    parser.add_argument("--ranks", type=numbers, default=[32], help="numbers of ranks for /bin/true [32]")
    parser.add_argument("--mpi-ranks", type=numbers, default=[8], help="numbers of ranks for MPI_Init + MPI_Finalize; 0: without it [8]")
    parser.add_argument("--output-mib", type=int, default=256, help="MiB that a rank prints, through muster and through a pipe alone; 0: without it [256]")
    parser.add_argument("--repeats", type=int, default=15, help="runs of each, taking turns [15]")
    parser.add_argument("--slurm", action="store_true", help="inside a Slurm job: over its nodes, compared with a bare srun of the same programs and layout")
    parser.add_argument("--endurance", type=int, help="so many runs of muster run -- /bin/true, and nothing else")
    parser.add_argument("--json", help="a file for every run")
    given = parser.parse_args()
    muster, records, good = str(given.muster.resolve()), [], True
    others = turns.OtherWork(given.strict)
    found = find_launchers(muster)
    if given.endurance:
        return endure(found[0], given.ranks, given.endurance)
    for count in given.ranks:
        by = slurm_launchers(muster, count) if given.slurm else found
        good &= compare("/bin/true", ["/bin/true"], count, by, given.repeats, not given.slurm, records)
    program = given.muster.resolve().with_name("mpi_start")
    if given.mpi_ranks and not program.exists():
        good = False
        print(f"MPI_Init + MPI_Finalize is left out: there is no {program}; build the target mpi_start, or give --mpi-ranks 0", file=sys.stderr)
        given.mpi_ranks = []
    for count in given.mpi_ranks:  # Hydra starts MPICH programs; this one is Open MPI's
        by = slurm_launchers(muster, count) if given.slurm else found[:2]
        good &= compare("MPI_Init + MPI_Finalize", [str(program)], count, by, given.repeats, False, records)
    if given.slurm:
        compare_deaths(given.ranks[0], slurm_launchers(muster, given.ranks[0]), given.repeats, records)
    elif given.output_mib:
        compare_output(muster, given.output_mib, min(given.repeats, 5), records)
    print(others.note(not given.slurm), end="")  # Slurm's daemons, not this process, start the ranks
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"schema": "muster.launch/2", **others.facts(not given.slurm), "runs": records}, file, indent=1)
    return good


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
