#!/usr/bin/env python3
"""Finds turns of phrase in README.md, CONTRIBUTING.md, CHANGELOG.md and docs/, without docs/lab/, that are not idiomatic English. Code blocks and code spans are left out. Argument: SOURCE."""
import pathlib
import re
import sys

import documents

SOURCE = pathlib.Path(sys.argv[1]).resolve()
BETTER = {
    r"\b(is|are|was|were|be) (told|said)\b": "say who does it: “muster reports …”, “a note says …”",
    r"\bthat (is|are) none\b": "“that is not one”, “invalid”",
    r"\bbut for\b": "“except for”, “except”",
    r"\bas many\b(?!( \w+){0,5} as\b)": "“the same number of”",
    r"\blest\b": "“so that … not”",
    r"\bof (one|(the |a |an )?\w+)'s own\b": "“your own”, “its own”",
}


def prose(text):
    """The text with code made blank, line by line as it was."""
    text = re.sub(r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), text, flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "``", text)


faults = []
for name in documents.all_documents(SOURCE) + ["CONTRIBUTING.md", "CHANGELOG.md"]:
    if name.startswith("docs/lab/"):  # notes, written for the people who took them
        continue
    for number, line in enumerate(prose((SOURCE / name).read_text()).splitlines(), 1):
        faults += [f"{name}:{number}: “{found[0]}”: write {better}" for pattern, better in BETTER.items() for found in re.finditer(pattern, line)]
print("\n".join(faults))
sys.exit(1 if faults else 0)
