"""Turns a command line of horovodrun into one of `muster run --as-horovod`, and runs that."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from typing import Dict, List, Mapping, NoReturn, Optional, Tuple

from horovod.runner.options import Refused, Translation, help_text, translate

_SSH = ("ssh", "-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")  # the shell that muster run has by default
_SCHEDULERS = ("SLURM_JOB_ID", "PBS_JOBID", "COBALT_JOBID", "LSB_JOBID", "FLUX_JOB_ID")


def _own_folder() -> str:
    """The folder that holds this package, as it was found: links in its path are kept, since the program lies next to the link."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def find_muster() -> str:
    """The program `muster` of this installation or build, else that of PATH. FileNotFoundError without one."""
    folder = _own_folder()
    for _ in range(5):
        folder = os.path.dirname(folder)
        program = os.path.join(folder, "bin", "muster")
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    found = shutil.which("muster")
    if found is None:
        raise FileNotFoundError("there is no program muster in PATH, nor beside this package; add the folder of muster's programs to PATH")
    return found


def _elastic_words(to: Translation) -> List[str]:
    """The options of `muster run` for a world that changes. Without a script of hosts only lost ranks change it."""
    words = [word for pair in to.elastic.items() for word in pair]
    if to.discovery_script and not to.has_hosts:
        to.has_hosts = True
        return ["--host-discovery-script", to.discovery_script, *words]
    idle = [name for name in to.elastic if name != "--min-np"]
    if idle:
        to.notes.append(f"{', '.join(idle)}: no effect without --host-discovery-script, since no hosts come")
    return ["--min-np", to.elastic["--min-np"]] if "--min-np" in to.elastic else []


def muster_command(words: List[str], variables: Mapping[str, str]) -> Tuple[List[str], Dict[str, str], Translation]:
    """The command of `muster run` for these words of a command line of horovodrun.

    Args:
        words: options and program, without the word horovodrun.
        variables: the environment, which tells whether this is a job of a scheduler.

    Returns:
        (command, variables to set for it, what the options were).

    Raises:
        Refused: an unknown option, a wrong value, no program or no number of ranks.
    """
    to, program = translate(words)
    if to.asks:
        return [], {}, to
    to.words += _elastic_words(to)
    ranks = to.ranks if to.ranks is not None else to.least_ranks
    in_job = any(name in variables for name in _SCHEDULERS)
    if ranks is None and not in_job:
        raise Refused("the number of ranks is missing; write horovodrun -np 4 …")
    if not program:
        raise Refused("the program is missing; write horovodrun -np 4 python3 train.py")
    command = [find_muster(), "run", "--as-horovod", "--tag-output"]
    if ranks is not None:
        command += ["-n", str(ranks)]
        # horovodrun starts as many ranks on this machine as it is asked for, whatever the machine has.
        if not to.has_hosts and not in_job and "--slots-per-node" not in to.words:
            command += ["--slots-per-node", str(ranks)]
    if to.ssh:
        command += ["--remote-shell", shlex.join([*_SSH, *to.ssh])]
    return [*command, *to.words, "--", *program], to.variables, to


def map_options(command: List[str]) -> List[str]:
    """Returns those options of a command of `muster run` that say where the ranks go, as `muster plan` takes them."""
    words = command[: command.index("--")]
    chosen: List[str] = []
    for word, value in zip(words, words[1:]):
        if word in ("-n", "--hosts", "--hostfile", "--slots-per-node"):
            chosen += [word, value]
    return chosen


def _print_build() -> NoReturn:
    """Becomes `python3 -m muster`, with the package next to this one."""
    package = os.path.join(os.path.dirname(_own_folder()), "python")
    if os.path.isdir(package):
        os.environ["PYTHONPATH"] = os.pathsep.join(part for part in (*os.environ.get("PYTHONPATH", "").split(os.pathsep), package) if part)
    os.execv(sys.executable, [sys.executable, "-m", "muster"])


def run_commandline(words: Optional[List[str]] = None) -> int:
    """The program horovodrun. Becomes `muster run`; returns 2 for a wrong command line, 127 without muster."""
    try:
        command, variables, to = muster_command(sys.argv[1:] if words is None else words, os.environ)
        if to.asks == "check-build":
            _print_build()
    except Refused as error:
        print(f"horovodrun: error: {error}", file=sys.stderr)
        return 2
    except FileNotFoundError as error:
        print(f"horovodrun: error: {error}", file=sys.stderr)
        return 127
    if to.asks == "help":
        print(help_text())
        return 0
    if to.asks == "version":
        import horovod

        print(horovod.__version__)
        return 0
    for note in to.notes:
        print(f"horovodrun: note: {note}", file=sys.stderr)
    sys.stderr.flush()
    if to.shows_map:
        subprocess.run([command[0], "plan", *map_options(command)], env={**os.environ, **variables}, stdout=sys.stderr.fileno())
    os.execve(command[0], command, {**os.environ, **variables})
