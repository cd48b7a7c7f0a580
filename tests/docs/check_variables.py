#!/usr/bin/env python3
"""Holds docs/environment.md against what a rank of `muster run` really gets, on this machine: every variable stands there, and is kept, replaced or added to as it says.
Arguments: SOURCE MUSTER."""
import fnmatch
import pathlib
import re
import subprocess
import sys

SOURCE, MUSTER = pathlib.Path(sys.argv[1]), sys.argv[2]
MINE = "7"  # a value that every variable can have, and that none of muster's own is in a world of two ranks


def table_rows(text):
    """(names, what happens to the user's) of each row of a table with the column "Yours"."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[2] in ("kept", "replaced", "added to"):
            yield re.findall(r"`([^`]+)`", cells[0]), cells[2]


def variables_of_rank_1(given):
    done = subprocess.run([MUSTER, "run", "-q", "-n", "2", "--", "sh", "-c", 'if [ "$RANK" = 1 ]; then env -0; fi'],
                          env=given, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    return dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)


if not pathlib.Path(MUSTER).exists():
    sys.exit(f"{MUSTER} is not there; build it first: cmake --build BUILD --target muster")
base = {"PATH": "/usr/bin:/bin", "HOME": "/"}
documented = {name: yours for names, yours in table_rows((SOURCE / "docs/environment.md").read_text()) for name in names}
got = {name for name in variables_of_rank_1(base) if name not in base and name not in ("PWD", "SHLVL", "_", "OLDPWD")}
faults = [f"{name}: docs/environment.md does not name it" for name in sorted(got)
          if not any(fnmatch.fnmatchcase(name, known) for known in documented)]
named = sorted(got & documented.keys())
after = variables_of_rank_1({**base, **{name: MINE for name in named}})
for name in named:
    value = after.get(name)
    became = "kept" if value == MINE else "added to" if value and MINE in value.split(":") else "replaced"
    if became != documented[name]:
        faults.append(f"{name}: docs/environment.md says {documented[name]}, but {MINE} became {value}")
print("\n".join(faults))
print(f"{len(named)} variables are as docs/environment.md says")
sys.exit(1 if faults or len(named) < 40 else 0)
