"""Lists horovodrun's options, and what becomes of each: an option of `muster run`, a variable, a note, or a refusal."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple


@dataclass
class Translation:
    """A command line of horovodrun, as far as it was read."""

    words: List[str] = field(default_factory=list)  #: options of `muster run`
    variables: Dict[str, str] = field(default_factory=dict)  #: for muster and the ranks
    notes: List[str] = field(default_factory=list)  #: what was given and has no effect
    ranks: Optional[int] = None
    least_ranks: Optional[int] = None
    has_hosts: bool = False
    discovery_script: Optional[str] = None
    elastic: Dict[str, str] = field(default_factory=dict)  #: options of `muster run` for a world that changes
    ssh: List[str] = field(default_factory=list)  #: words for ssh
    shows_map: bool = False  #: print where each rank goes before the start
    asks: Optional[str] = None  #: "help", "version" or "check-build": print that instead


Action = Callable[[Translation, str, List[str]], None]  # (translation, the option as it was written, its values)


class Option(NamedTuple):
    """An option: its names, what its values are called, what becomes of it."""

    names: Tuple[str, ...]
    values: Tuple[str, ...]
    action: Action
    help: str


class Refused(ValueError):
    """An option or a value that cannot be taken."""


def _whole(option: str, text: str) -> int:
    if not text.isdigit():
        raise Refused(f"{option} {text}: not a whole number; write {option} 4")
    return int(text)


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Refused(f"{option} {text}: not a number; write {option} 2.5") from None


def _ranks(to: Translation, option: str, values: List[str]) -> None:
    to.ranks = _whole(option, values[0])


def _least_ranks(to: Translation, option: str, values: List[str]) -> None:
    to.least_ranks = _whole(option, values[0])
    to.elastic["--min-np"] = values[0]


def _elastic(name: str, unit: str = "") -> Action:
    """Gives `muster run` an option for runs whose world may change."""

    def action(to: Translation, option: str, values: List[str]) -> None:
        to.elastic[name] = ",".join(str(_whole(option, value)) for value in values) + unit

    return action


def _hosts(to: Translation, option: str, values: List[str]) -> None:
    to.has_hosts = True
    to.words += ["--hosts", values[0]]


def _hostfile(to: Translation, option: str, values: List[str]) -> None:
    to.has_hosts = True
    to.words += ["--hostfile", values[0]]


def _discovery(to: Translation, option: str, values: List[str]) -> None:
    to.discovery_script = values[0]


def _interfaces(to: Translation, option: str, values: List[str]) -> None:
    first, *others = values[0].split(",")
    to.words += ["--network-interface", first]
    if others:
        to.notes.append(f"{option} {values[0]}: {first} alone is used")


def _ssh_port(to: Translation, option: str, values: List[str]) -> None:
    to.ssh += ["-p", str(_whole(option, values[0]))]


def _ssh_key(to: Translation, option: str, values: List[str]) -> None:
    to.ssh += ["-i", values[0]]


def _log_level(to: Translation, option: str, values: List[str]) -> None:
    level = {"fatal": "critical"}.get(values[0].lower(), values[0].lower())
    if level not in ("trace", "debug", "info", "warning", "error", "critical"):
        raise Refused(f"{option} {values[0]}: give TRACE, DEBUG, INFO, WARNING, ERROR or FATAL")
    to.words += ["-x", f"MUSTER_LOG={level}"]


def _start_timeout(to: Translation, option: str, values: List[str]) -> None:
    to.words += ["--start-timeout", f"{_whole(option, values[0])}s"]


def _megabytes(to: Translation, option: str, values: List[str]) -> None:
    to.variables["HOROVOD_FUSION_THRESHOLD"] = str(int(_number(option, values[0]) * 1024 * 1024))


def _cycle_time(to: Translation, option: str, values: List[str]) -> None:
    to.variables["HOROVOD_CYCLE_TIME"] = f"{_number(option, values[0]):g}"


_OF_MPIRUN = ("tag-output", "timestamp-output", "display-map", "display-allocation", "display-devel-map", "x")


def _mpi_args(to: Translation, option: str, values: List[str]) -> None:
    """Prints what mpirun prints with these words, and sets the variables of -x; the other words have no effect."""
    words, left = shlex.split(values[0]), []
    while words:
        word = words.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or name not in _OF_MPIRUN or equals:
            left.append(word)
        elif name == "x":
            if not words:
                raise Refused(f"{option}: -x needs a variable: -x NAME=VALUE")
            to.words += ["-x", words.pop(0)]
        elif name.startswith("display"):
            to.shows_map = True
        else:
            to.words += [f"--{name}"]
    if left:
        to.notes.append(f"{option}: {shlex.join(left)} has no effect: these words are for mpirun, and muster starts the ranks itself")


def _variable(name: str, value: Optional[str] = None, whole: bool = True) -> Action:
    """Sets a variable to the option's value, or to `value` for an option that has none."""

    def action(to: Translation, option: str, values: List[str]) -> None:
        if value is None and whole:
            _whole(option, values[0])
        to.variables[name] = values[0] if value is None else value

    return action


def _word(*words: str) -> Action:
    """Gives these options to `muster run`, and the value behind them, if there is one."""

    def action(to: Translation, option: str, values: List[str]) -> None:
        to.words += [*words, *values]

    return action


def _ignored(why: str) -> Action:
    def action(to: Translation, option: str, values: List[str]) -> None:
        to.notes.append(f"{option} has no effect: {why}")

    return action


def _refused(why: str) -> Action:
    def action(to: Translation, option: str, values: List[str]) -> None:
        raise Refused(f"{option}: {why}")

    return action


def _asks(what: str) -> Action:
    def action(to: Translation, option: str, values: List[str]) -> None:
        to.asks = to.asks or what

    return action


_own = "muster has collectives of its own, and starts the ranks itself"
_chosen = "muster chooses the way by what the ranks are on; MUSTER_COMM_BACKEND overrides that"
_tuned = "muster has no autotuner, since it made no step faster"

OPTIONS: Tuple[Option, ...] = (
    Option(("-h", "--help"), (), _asks("help"), "print this text"),
    Option(("-v", "--version"), (), _asks("version"), "print the version of Horovod whose interface this is; muster --version prints muster's"),
    Option(("-cb", "--check-build"), (), _asks("check-build"), "print what muster has and found here (python3 -m muster)"),
    Option(("-np", "-n", "--num-proc"), ("N",), _ranks, "number of ranks; may be left out in a job of a scheduler"),
    Option(("-H", "--hosts"), ("HOST:N,…",), _hosts, "hosts, with their slots"),
    Option(("-hostfile", "--hostfile"), ("FILE",), _hostfile, "file of hosts: name slots=N"),
    Option(("--host-discovery-script",), ("FILE",), _discovery, "program that prints the hosts, asked every second"),
    Option(("-p", "--ssh-port"), ("PORT",), _ssh_port, "port of ssh on the other hosts"),
    Option(("-i", "--ssh-identity-file"), ("FILE",), _ssh_key, "key file of ssh"),
    Option(("--network-interfaces", "--network-interface"), ("NAMES",), _interfaces, "interface by which hosts reach each other; the first one counts"),
    Option(("--start-timeout",), ("SECONDS",), _start_timeout, "end the run if ranks are missing after this time"),
    Option(("--output-filename",), ("DIR",), _word("--output-dir"), "also write the output of each rank to DIR/rank.NN"),
    Option(("--verbose",), (), _word("--verbose"), "print what muster chose and why"),
    Option(("-prefix-timestamp", "--prefix-output-with-timestamp"), (), _word("--timestamp-output"), "put the time before each line"),
    Option(("--fusion-threshold-mb",), ("N",), _megabytes, "HOROVOD_FUSION_THRESHOLD, in MiB"),
    Option(("--cycle-time-ms",), ("T",), _cycle_time, "HOROVOD_CYCLE_TIME"),
    Option(("--cache-capacity",), ("N",), _variable("HOROVOD_CACHE_CAPACITY"), "HOROVOD_CACHE_CAPACITY"),
    Option(("--timeline-filename",), ("FILE",), _variable("HOROVOD_TIMELINE", whole=False), "HOROVOD_TIMELINE: rank 0's timeline"),
    Option(("--timeline-mark-cycles",), (), _variable("HOROVOD_TIMELINE_MARK_CYCLES", "1"), "with a mark for each cycle"),
    Option(("--no-timeline-mark-cycles",), (), _variable("HOROVOD_TIMELINE_MARK_CYCLES", "0"), ""),
    Option(("--no-stall-check",), (), _variable("HOROVOD_STALL_CHECK_DISABLE", "1"), "no warning about tensors that some ranks have not submitted"),
    Option(("--stall-check",), (), _variable("HOROVOD_STALL_CHECK_DISABLE", "0"), ""),
    Option(("--stall-check-warning-time-seconds",), ("S",), _variable("HOROVOD_STALL_CHECK_TIME_SECONDS"), "time until that warning"),
    Option(("--stall-check-shutdown-time-seconds",), ("S",), _variable("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"), "time until that is an error"),
    Option(("--log-level",), ("LEVEL",), _log_level, "MUSTER_LOG of the ranks"),
    Option(("--log-with-timestamp", "--no-log-hide-timestamp", "--log-without-timestamp", "--log-hide-timestamp"), (), _ignored("muster's log has times"), ""),
    Option(("--gloo", "--mpi", "--jsrun"), (), _ignored(_own), ""),
    Option(("--tcp",), (), _ignored(_own), ""),
    Option(("--mpi-args",), ("WORDS",), _mpi_args, "words for mpirun: --tag-output, --timestamp-output, --display-map and -x are done, others have no effect"),
    Option(("--binding-args",), ("WORDS",), _refused("muster binds ranks itself; `muster run --bind-to` says how"), ""),
    Option(("--disable-cache",), (), _ignored("nothing is kept between runs"), ""),
    Option(("--config-file",), ("FILE",), _refused("its settings are not read; give them as options, or `muster run` a muster.toml"), ""),
    Option(
        ("--hierarchical-allreduce", "--no-hierarchical-allreduce", "--hierarchical-allgather", "--no-hierarchical-allgather", "--torus-allreduce",
         "--no-torus-allreduce"), (), _ignored(_chosen), ""),  # fmt: skip
    Option(("--autotune", "--no-autotune"), (), _ignored(_tuned), ""),
    Option(
        ("--autotune-log-file", "--autotune-warmup-samples", "--autotune-steps-per-sample", "--autotune-bayes-opt-max-samples",
         "--autotune-gaussian-process-noise"), ("VALUE",), _ignored(_tuned), ""),  # fmt: skip
    Option(("--mpi-threads-disable", "--no-mpi-threads-disable"), (), _ignored(_own), ""),
    Option(("--num-nccl-streams", "--thread-affinity", "--gloo-timeout-seconds"), ("N",), _ignored(_own), ""),
    Option(("--min-np", "--min-num-proc"), ("N",), _least_ranks, "ranks that are enough to go on with where others are lost; the number of ranks where -np is not given"),
    Option(("--max-np", "--max-num-proc"), ("N",), _elastic("--max-np"), "go on with up to N ranks where hosts come"),
    Option(("--slots-per-host", "--slots-per-node"), ("N",), _word("--slots-per-node"), "ranks that each host may have"),
    Option(("--elastic-timeout",), ("SECONDS",), _elastic("--elastic-timeout", "s"), "end the run if there are too few hosts for so long"),
    Option(("--reset-limit",), ("N",), _elastic("--reset-limit"), "start all ranks again up to N times"),
    Option(("--blacklist-cooldown-range",), ("LEAST", "MOST"), _elastic("--blacklist-cooldown-range"), "seconds that a slot stays idle after failures there"),
    # muster's own, which its errors and documents tell to use.
    Option(("--ranks-per-gpu",), ("N",), _word("--ranks-per-gpu"), "let N ranks share each GPU"),
    Option(("--scheduler",), ("NAME",), _word("--scheduler"), "hostfile: use hosts outside the job"),
    Option(("--keep-state",), ("WHERE",), _word("--keep-state"), "node: hold in the node's memory what the program commits, for ranks that are started again"),
)


_by_name = {name: option for option in OPTIONS for name in option.names}


def translate(words: List[str]) -> Tuple[Translation, List[str]]:
    """Reads horovodrun's options up to the program. Returns (what they become, the program with its arguments). Raises Refused."""
    to = Translation()
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        if word == "--":
            at += 1
            break
        name, equals, value = word.partition("=")
        if name not in _by_name:
            raise Refused(f"there is no option {name}{_nearest(name)}; horovodrun --help lists those there are, and muster run --as-horovod has more")
        option = _by_name[name]
        at += 1
        if equals:
            if len(option.values) != 1:
                raise Refused(f"{name} takes {len(option.values) or 'no'} values, not {word}")
            values = [value]
        else:
            values = words[at : at + len(option.values)]
            at += len(option.values)
            if len(values) < len(option.values):
                raise Refused(f"{name} needs a value: {name} {' '.join(option.values)}")
        option.action(to, name, values)
    return to, words[at:]


def _nearest(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, _by_name, 1)
    return f", did you mean {near[0]}?" if near else ""


def help_text() -> str:
    """The text of --help."""
    lines = ["usage: horovodrun -np N [options] program [arguments]", "", "Starts a program written for Horovod on muster: muster run --as-horovod.", ""]
    for option in OPTIONS:
        if option.help:
            lines.append(f"  {', '.join(option.names)} {' '.join(option.values)}".rstrip())
            lines.append(f"      {option.help}")
    lines += ["", "Other options of horovodrun are taken where they can be left out, with a note, and refused where they cannot."]
    return "\n".join(lines)
