"""Holds the directives of qsub scripts against the rules of PBS Professional's qsub (its Reference Guide, "qsub" and "Resource formats").

python3 pbs_directives.py SCRIPT...: prints each fault with file and line; ends with 1 if there is one, or if a script has no directive.
"""
import re
import sys

NAME = r"[A-Za-z0-9_.+@-]+"
RESOURCE = rf"{NAME}=[A-Za-z0-9_.+@:/,-]+"
CHUNK = rf"\d+(:{NAME}=[A-Za-z0-9_.+@/-]+)*"
JOB = r"\d+(\[\d*\])?(\.[A-Za-z0-9.-]+)?"
PLACE = r"(free|pack|scatter|vscatter)(:(excl|shared|exclhost))?(:group=" + NAME + ")?"


def resource_fault(value):
    """Why the value of -l is none that qsub takes."""
    name, _, rest = value.partition("=")
    forms = {"select": rf"{CHUNK}(\+{CHUNK})*", "place": PLACE, "walltime": r"(\d+:)?(\d+:)?\d+(\.\d+)?", "filesystems": rf"{NAME}(:{NAME})*"}
    if not re.fullmatch(forms.get(name, r".+"), rest):
        return f"'{rest}' is no value of {name}"
    if name not in forms and not re.fullmatch(RESOURCE, value):
        return f"'{value}' is no resource"
    if name == "select" and any(int(n) == 0 for n in re.findall(r"(?:^|\+)(\d+)", rest)):
        return "select asks for no chunk"
    return None


def directive_fault(option, value):
    """Why qsub refuses this option with this value."""
    forms = {
        "-N": r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,235}",
        "-A": r"\S+",
        "-q": rf"{NAME}(@{NAME})?",
        "-J": r"\d+-\d+(:\d+)?(%\d+)?",
        "-r": r"[yn]",
        "-W": rf"depend=(after(ok|notok|any)?):{JOB}(:{JOB})*",
    }
    if option == "-l":
        return resource_fault(value)
    if option not in forms:
        return f"no option of qsub that muster writes: {option}"
    if not re.fullmatch(forms[option], value):
        return f"'{value}' is no value of {option}"
    if option == "-J":
        first, last = map(int, re.match(r"(\d+)-(\d+)", value).groups())
        return None if first < last else "an array needs two jobs or more"
    return None


def faults_of(path):
    """(line number, fault) of a script; directives end at the first line that is neither one nor a comment."""
    seen, ended, found = set(), False, 0
    for number, line in enumerate(open(path, encoding="utf-8").read().split("\n"), 1):
        if number == 1:
            if not line.startswith("#!"):
                yield number, "no #! line"
            continue
        if not line.startswith("#"):
            ended = True
        if not line.startswith("#PBS"):
            continue
        found += 1
        words = line.split(" ")
        if ended:
            yield number, "a directive behind the script's first command: qsub does not read it"
        if words[0] != "#PBS" or len(words) != 3:
            yield number, f"not '#PBS OPTION VALUE': {line}"
            continue
        key = words[1] if words[1] != "-l" else "-l " + words[2].split("=")[0]
        if key in seen:
            yield number, f"{key} stands twice: the last one holds"
        seen.add(key)
        if fault := directive_fault(words[1], words[2]):
            yield number, fault
        if len(line) > 2048:
            yield number, "longer than qsub reads"
    if "-l select" not in seen or "-l walltime" not in seen or found == 0:
        yield 1, "select or walltime is missing"


if __name__ == "__main__":
    bad = [f"{path}:{number}: {fault}" for path in sys.argv[1:] for number, fault in faults_of(path)]
    print("\n".join(bad), end="\n" if bad else "")
    sys.exit(1 if bad else 0)
