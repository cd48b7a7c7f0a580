#!/usr/bin/env python3
"""Checks README.md, CONTRIBUTING.md, CHANGELOG.md and docs/: links to files and headings that are there, no line of README over 160 characters, README of 5.5 to 7 KB.
Argument: SOURCE."""
import pathlib
import re
import sys

import documents

SOURCE = pathlib.Path(sys.argv[1]).resolve()
faults = []


def anchors(path):
    """GitHub's names of the headings of a document."""
    lines = re.sub(r"```.*?```", "", path.read_text(), flags=re.S).splitlines()
    return {re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-") for line in lines if line.startswith("#")}


for name in documents.all_documents(SOURCE) + ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]:
    path = SOURCE / name
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if target.startswith("http"):
            continue
        file, _, anchor = target.partition("#")
        meant = (path.parent / file).resolve() if file else path
        if not meant.exists():
            faults.append(f"{name}: link to {target}: there is no such file")
        elif anchor and anchor not in anchors(meant):
            faults.append(f"{name}: link to {target}: there is no such heading")
readme = (SOURCE / "README.md").read_text()
faults += [f"README.md:{n}: {len(line)} characters" for n, line in enumerate(readme.splitlines(), 1) if len(line) > 160]
if not 5500 <= len(readme.encode()) <= 7168:
    faults.append(f"README.md has {len(readme.encode())} bytes")
print("\n".join(faults))
sys.exit(1 if faults else 0)
