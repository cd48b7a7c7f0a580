"""Summaries and tables of the measurements in this folder, and a watch on what other programs do meanwhile."""
import os
import pathlib
import platform
import statistics
import sys
import time

PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "bin"


def add_launcher(parser):
    parser.add_argument("--muster", type=pathlib.Path, default=PROGRAMS / "muster", help="the launcher [the release build's]")
    parser.add_argument("--strict", action="store_true", help="refuse to run while other programs use more than a tenth of the CPUs")


def short(values, form=".1f"):
    """The median, the smallest and the largest as texts; "-" without values."""
    return [format(f(values), form) if values else "-" for f in (statistics.median, min, max)]


def print_table(rows):
    """Prints rows of texts in columns, the first to the left."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join([row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]).rstrip())


class OtherWork:
    """Watches what other programs do on this machine: for a quarter of a second first, then until note() is called."""

    def __init__(self, strict=False):
        self.begin()
        time.sleep(0.25)
        self.before = self.cpus()
        self.begin()
        if strict and self.is_crowd(self.before):
            sys.exit(f"--strict: {self.text(self.before)} before the runs; wait until they end")

    def begin(self):
        self.began, self.worked, self.own = time.monotonic(), self.worked_s(), sum(os.times()[:4])

    def cpus(self):
        """CPUs that others have kept busy since begin(); the measured programs are ended children of this process."""
        return max(0.0, self.worked_s() - self.worked - sum(os.times()[:4]) + self.own) / (time.monotonic() - self.began)

    def facts(self, local=True):
        """Returns the machine and its load for a JSON file. Without `local` some of what was measured is no child of this process, and others cannot be told from it."""
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        load = {"average": os.getloadavg()[0], "cpus": os.cpu_count(), "others_before": self.before, "others_during": self.cpus() if local else None}
        return {"created": time.strftime("%FT%TZ", time.gmtime()),
                "context": {"host": platform.node(), "processor": names[0] if names else platform.machine(), "cores": os.cpu_count(), "kernel": platform.release()},
                "load": load}  # fmt: skip

    def note(self, local=True):
        """Returns a line for the end of the tables, or "" on a machine that was not busy. `local` is as for facts()."""
        during = self.cpus() if local else 0
        when, most = ("during", during) if during > self.before else ("before", self.before)
        return f"busy: {self.text(most)} {when} the runs; these figures mean little\n" if self.is_crowd(most) else ""

    @staticmethod
    def worked_s():
        with open("/proc/stat") as stat:
            user, nice, system, _, _, irq, softirq, *_ = map(int, stat.readline().split()[1:])
        return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def is_crowd(cpus):
        return cpus > 0.25 and cpus > 0.1 * os.cpu_count()

    @staticmethod
    def text(cpus):
        return f"other programs used {cpus:.1f} of {os.cpu_count()} CPUs (load average {os.getloadavg()[0]:.1f})"
