#!/usr/bin/env python3
"""Runs the commands of README.md and docs/*.md. Arguments: SOURCE BIN [DOCUMENT...].

Each document has a scratch folder, in which its blocks are written and run in their order (see documents.py). BIN, and the examples
that were built in BIN/../tests/docs, are what is run. A block that fails, and was not marked, is an error. What cannot be run is
checked as far as it can: bash must be able to read it, and muster's programs must know its options.
"""
import collections
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import documents

SOURCE, BIN = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PROGRAMS = ("muster", "muster-stage", "muster-bench")
LIMIT_S = 120


def has_torch():
    return subprocess.run(["python3", "-c", "import torch.distributed as d; assert d.is_available()"], env=ENVIRONMENT,
                          stderr=subprocess.DEVNULL).returncode == 0


def make_environment(home):
    own = {k: v for k, v in os.environ.items() if not k.startswith("MUSTER_")}
    # Debian's python3 has the packages that the examples need; another one earlier in PATH may not.
    own.update(PATH=f"{BIN}:/usr/bin:{os.environ['PATH']}", HOME=str(home), XDG_CONFIG_HOME="", LC_ALL="C.UTF-8")
    return own


def can_run(need, folder):
    """Whether what a block needs is here; else why not."""
    examples = BIN.parent / "tests" / "docs"
    if need == "torch":
        return has_torch(), "no python3-torch"
    if need == "muster.data":
        words = "run -q -n 1 -- python3 -c".split()
        done = subprocess.run([BIN / "muster", *words, "import torch, muster.data._library as l; l.library()"], env=ENVIRONMENT, stderr=subprocess.DEVNULL)
        return done.returncode == 0, "no python3-torch, or built without Python or HDF5"
    if need == "muster.distributed":
        words = "run -q -n 1 -- python3 -c".split()
        done = subprocess.run([BIN / "muster", *words, "import muster.distributed"], env=ENVIRONMENT, stderr=subprocess.DEVNULL)
        return done.returncode == 0, "no python3-torch, or built without Python"
    if need == "fashion-mnist":
        there = pathlib.Path("/usr/share/datasets/fashion-mnist").is_dir() and (BIN / "muster-stage").exists()
        return there, "no dataset-fashion-mnist, or built without HDF5"
    if need == "the examples":
        for each in examples.glob("example_*"):
            if os.access(each, os.X_OK) and each.is_file():
                shutil.copy(each, folder / each.name.removeprefix("example_"))
        return any(examples.glob("example_*")), "the examples were not built"
    return False, ""


def run(one, folder):
    """Runs a block of commands; None if it ended as it should, else what is wrong."""
    right = [int(code) for code in one.marks.get("exit", "0").split()]
    try:
        done = subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", one.text], cwd=folder, env=ENVIRONMENT, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        return f"still running after {LIMIT_S} s"
    if done.returncode in right:
        return None
    return f"exit code {done.returncode}, expected {right}\n" + "\n".join(done.stdout.splitlines()[-15:])


KNOWN = {}


def known_options(program, command):
    """The options that a command's help lists; None: there is no such command."""
    if (program, command) not in KNOWN:
        text = ""
        for flag in ("--help", "--help-all"):
            done = subprocess.run([BIN / program, *command.split(), flag], env=ENVIRONMENT, capture_output=True, text=True)
            text += done.stdout if done.returncode == 0 else ""
        KNOWN[program, command] = set(re.findall(r"--[a-z][a-z-]*|(?<![\w-])-[a-zA-Z]\b", text)) if text else None
    return KNOWN[program, command]


def check_options(line):
    """What is wrong with a command line of muster's programs as it is written; None if nothing is."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    for at, word in enumerate(words):
        if word not in PROGRAMS or not (BIN / word).exists() or at + 1 == len(words):
            continue
        program, command, rest = word, words[at + 1], words[at + 2:]
        if command.startswith("-") or not re.fullmatch(r"[a-z-]+", command):
            continue
        if program == "muster" and command in ("stage", "bench"):
            if not rest:
                continue
            program, command, rest = f"muster-{command}", rest[0], rest[1:]
            if not (BIN / program).exists():
                continue  # a launcher alone
        options = known_options(program, command)
        if options is None:
            return f"{program} has no command '{command}'"
        for option in rest:
            if option in ("--", ">", "|", "&&"):
                break
            if " " in option:
                continue  # options within quotes: the value of another one
            name = option.split("=")[0].replace("--no-", "--")
            if option.startswith("--") and name not in {o.replace("--no-", "--") for o in options} and not is_accepted(program, command, name):
                return f"{program} {command} has no option {name}"
    return None


def is_accepted(program, command, name):
    """Whether the program takes an option that its help does not list: another launcher's spelling."""
    done = subprocess.run([BIN / program, command, name, "1", "--help"], env=ENVIRONMENT, capture_output=True, text=True)
    return done.returncode == 0


def check_unrun(one):
    """What is wrong with commands that cannot be run here."""
    read = subprocess.run(["bash", "-n"], input=one.text, capture_output=True, text=True)
    if read.returncode:
        return read.stderr
    for line in one.text.replace("\\\n", " ").splitlines():
        if wrong := check_options(line):
            return wrong
    return None


def check_document(name, scratch):
    """Runs one document; returns (blocks that ran, needs of those that did not, faults)."""
    folder = scratch / name.replace("/", "-")
    folder.mkdir()
    ran, unrun, faults = 0, collections.Counter(), []
    text = (SOURCE / name).read_text()
    for span in re.findall(r"`((?:muster|muster-[a-z]+) [^`\n]*)`", re.sub(r"```.*?```", "", text, flags=re.S)):
        if wrong := check_options(span):
            faults.append(f"{name}: `{span}`: {wrong}")
    for one in documents.read_blocks(SOURCE / name, name):
        if "file" in one.marks:
            (folder / one.marks["file"]).write_text(one.text)
        if one.language != "sh":
            continue
        need, here = one.marks.get("needs"), True
        if need:
            here, lacking = can_run(need, folder)
            if not here:
                unrun[need + (f" ({lacking})" if lacking else "")] += 1
        begin = time.monotonic()
        wrong = run(one, folder) if here else check_unrun(one)
        if time.monotonic() - begin > 5:
            print(f"{one.where}: {time.monotonic() - begin:.1f} s")
        ran += here
        if wrong:
            faults.append(f"{one.where}: {wrong}")
    return ran, unrun, faults


with tempfile.TemporaryDirectory(prefix="muster-docs.", dir="/tmp") as scratch_name:
    scratch = pathlib.Path(scratch_name)
    ENVIRONMENT = make_environment(scratch)
    ran, unrun, faults = 0, collections.Counter(), []
    for name in sys.argv[3:] or documents.all_documents(SOURCE):
        try:
            more, marked, wrong = check_document(name, scratch)
        except documents.fault as e:
            more, marked, wrong = 0, {}, [str(e)]
        ran, faults = ran + more, faults + wrong
        unrun.update(marked)
for each in faults:
    print("FAILED", each)
print(f"{ran} blocks of commands ran, {sum(unrun.values())} did not: " + ", ".join(f"{n} need {what}" for what, n in sorted(unrun.items())))
sys.exit(1 if faults or ran == 0 else 0)
