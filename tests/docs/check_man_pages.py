#!/usr/bin/env python3
"""Checks the man pages of all programs and commands: each has its sections, and groff and mandoc, where they are here, have nothing to say. Argument: BIN."""
import pathlib
import re
import shutil
import subprocess
import sys

BIN = pathlib.Path(sys.argv[1])
SECTIONS = ("NAME", "SYNOPSIS", "ENVIRONMENT", "STANDARD INPUT AND OUTPUT", "SIGNALS", "FILES", "EXIT STATUS", "SEE ALSO")
LINTERS = (["groff", "-man", "-Tascii", "-ww", "-z"], ["mandoc", "-Tlint", "-Wwarning"])
faults = []


def output_of(*words, text=None):
    done = subprocess.run([str(word) for word in words], input=text, capture_output=True, text=True, timeout=60)
    if done.returncode and text is None:
        faults.append(f"{' '.join(map(str, words))}: exit code {done.returncode}: {done.stderr}")
    return done.stdout + (done.stderr if text is not None else "")


def pages():
    """(name, page) of every page."""
    yield "muster", output_of(BIN / "muster", "man")
    for name in re.findall(r"^  ([a-z-]+) +\S", output_of(BIN / "muster", "--help").split("commands", 1)[1], re.M):
        program = BIN / f"muster-{name}"
        if name not in ("stage", "bench", "trace"):
            yield f"muster {name}", output_of(BIN / "muster", "man", name)
        elif program.exists():
            yield program.name, output_of(program, "man")


def check(name, page):
    found = re.findall(r'^\.SH "?([A-Z ]+?)"?$', page, re.M)
    faults.extend(f"{name}: the page has no section {section}" for section in SECTIONS if section not in found)
    for section in ("EXIT STATUS", "ENVIRONMENT"):
        body = page.partition(f'.SH "{section}"')[2].partition("\n.SH")[0]
        if ".TP" not in body:
            faults.append(f"{name}: {section} says nothing")
    if re.search(r"(?<!\\)--?[a-z]", re.sub(r'^\.\\".*$|^\.[A-Z]+.*$', "", page, flags=re.M)):
        faults.append(f"{name}: the page has a bare hyphen before a letter, which troff may show as another character")
    for linter in LINTERS:
        if shutil.which(linter[0]):
            said = [line for line in output_of(*linter, text=page).splitlines() if "missing date" not in line]
            faults.extend(f"{name}: {line}" for line in said)


count = 0
for name, page in pages():
    check(name, page)
    count += 1
print("\n".join(faults))
print(f"{count} man pages, seen by {', '.join(l[0] for l in LINTERS if shutil.which(l[0])) or 'nobody: there is no groff here'}")
sys.exit(1 if faults or count < 9 else 0)
