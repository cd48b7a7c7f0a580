#!/usr/bin/env python3
"""Finds turns of phrase that are not idiomatic English in README.md, CONTRIBUTING.md, CHANGELOG.md and docs/, in the first comment line of each header, and in
help texts. Code blocks and code spans of documents are left out. Argument: SOURCE, or --rules to list what it looks for."""
import pathlib
import re
import sys

import documents

SOURCE = pathlib.Path(sys.argv[1]).resolve()
BETTER = {
    r"\b(is|are|was|were|be|been) (told|said)\b(?! apart\b)": "say who does it: “muster reports …”, “a note says …”",
    r"\b(is|are) none\b(?! of\b)": "“that is not one”, “invalid”, “there is no …”",
    r"\bbut for\b": "“except for”, “except”",
    r"\bas many\b(?!( [\w'-]+){0,5} as\b)": "“the same number of”",
    r"\blest\b": "“so that … not”",
    r"\bof (one|(the |a |an )?\w+)'s own\b": "“your own”, “its own”",
    r"\bof (his|its|their) own\b": "“its own …” before the noun, or nothing",
    r"\bbeside\b(?! it\b)": "“next to”, “compared with”, “besides”",
}
HEADER_FOLDERS = ("base", "pmix", "comm", "io", "launch", "bench", "jobscripts", "tests")
HELP_TEXTS = ("launch/settings/setting_table.cpp", "launch/help/command_table.cpp", "io/stage/*_command.cpp", "bench/**/*_command.cpp")


def prose(text):
    """The text of a document with code made blank, line by line as it was."""
    text = re.sub(r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), text, flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "``", text)


def first_comment(text):
    """The text with all lines made blank except for the first that begins with //."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("//")), len(lines))
    return "\n" * first + "".join(lines[first:first + 1])


def string_literals(text):
    """The text of a C++ source with everything except for its string literals made blank, line by line as it was."""
    return "\n".join(" ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', line)) for line in re.sub(r"^[ \t]*(//|#include).*$", "", text, flags=re.M).splitlines())


def faults_of(paths, reader):
    """What is wrong in the part of these files that the reader leaves."""
    return [f"{path.relative_to(SOURCE)}:{number}: “{found[0]}”: write {better}" for path in paths
            for number, line in enumerate(reader(path.read_text()).splitlines(), 1)
            for pattern, better in BETTER.items() for found in re.finditer(pattern, line)]


if sys.argv[2:] == ["--rules"] or sys.argv[1:] == ["--rules"]:
    print("\n".join(f"{pattern}: {better}" for pattern, better in BETTER.items()))
    sys.exit(0)
pages = [SOURCE / name for name in documents.all_documents(SOURCE) + ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]]
headers = [path for folder in HEADER_FOLDERS for path in sorted((SOURCE / folder).rglob("*.h*")) if path.suffix in (".h", ".hpp")]
sources = [path for pattern in HELP_TEXTS for path in sorted(SOURCE.glob(pattern))]
faults = faults_of(pages, prose) + faults_of(headers, first_comment) + faults_of(sources, string_literals)
print("\n".join(faults))
sys.exit(1 if faults or not headers or not sources else 0)
