#!/usr/bin/env python3
"""Checks the man pages that lowdown wrote: each program and command has one with all sections, and groff and mandoc, where they are here, have nothing to say. Arguments: BIN PAGES."""
import pathlib
import re
import shutil
import subprocess
import sys

BIN, PAGES = map(pathlib.Path, sys.argv[1:])
SECTIONS = ("NAME", "SYNOPSIS", "ENVIRONMENT", "STANDARD INPUT AND OUTPUT", "SIGNALS", "FILES", "EXIT STATUS", "SEE ALSO")
LINTERS = (["groff", "-k", "-man", "-Tascii", "-ww", "-z"], ["mandoc", "-Tlint", "-Wwarning"])
faults = []


def output_of(*words, text=None):
    done = subprocess.run([str(word) for word in words], input=text, capture_output=True, text=True, timeout=60)
    if done.returncode and text is None:
        faults.append(f"{' '.join(map(str, words))}: exit code {done.returncode}: {done.stderr}")
    return done.stdout + (done.stderr if text is not None else "")


def pages():
    """(name, page) of every page."""
    for name in ["", *re.findall(r"^  ([a-z-]+) +\S", output_of(BIN / "muster", "--help").split("commands", 1)[1], re.M)]:
        page = PAGES / (f"muster-{name}.1" if name else "muster.1")
        if page.exists():
            yield page.stem, page.read_text()
        elif name not in ("stage", "bench") or (BIN / page.stem).exists():
            faults.append(f"there is no page {page.name}; build the target {'muster-' + name if name in ('stage', 'bench') else 'muster'}_manual")


def check(name, page):
    found = re.findall(r"^\.SH[ \n]([A-Z ]+)$", page, re.M)
    faults.extend(f"{name}: the page has no section {section}" for section in SECTIONS if section not in found)
    for section in ("EXIT STATUS", "ENVIRONMENT"):
        if not re.search(rf"^\.SH[ \n]{section}\n(?:(?!\.SH).*\n)*?\.[IT]P", page, re.M):
            faults.append(f"{name}: {section} says nothing")
    if re.search(r"(?<!\\)--?[a-z]", re.sub(r'^\.\\".*$|^\.[A-Z]+.*$', "", page, flags=re.M)):
        faults.append(f"{name}: the page has a bare hyphen before a letter, which troff may show as another character")
    for linter in LINTERS:
        if shutil.which(linter[0]):
            said = [line for line in output_of(*linter, text=page).splitlines() if "missing date" not in line]
            faults.extend(f"{name}: {line}" for line in said)


if not (BIN / "muster").exists():
    sys.exit(f"{BIN}/muster is not there; build it first: cmake --build BUILD --target muster muster_manual")
if not PAGES.exists():
    print("not checked: there is no lowdown, and so no man pages")
    sys.exit(77)
count = 0
for name, page in pages():
    check(name, page)
    count += 1
print("\n".join(faults))
print(f"{count} man pages, seen by {', '.join(l[0] for l in LINTERS if shutil.which(l[0])) or 'nobody: there is no groff here'}")
sys.exit(1 if faults or count < 9 else 0)
