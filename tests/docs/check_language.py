#!/usr/bin/env python3
"""Finds turns of phrase that are not idiomatic English in README.md, CONTRIBUTING.md, CHANGELOG.md and docs/, in the first comment line of each header, in help
texts, and in all comments of some folders, where it also finds comments that begin without a subject and a verb. Code blocks and code spans of documents are left
out. Argument: SOURCE, or --rules to list what it looks for."""
import ast
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
# How a comment without subject and verb begins. Those of the second list begin a sentence, too, if a comma ends the clause.
FRAGMENT = "a sentence: “Returns whether …”, “Says what …”, “Holds …”, “It is not thread safe”"
BEGINNINGS = {
    r"^(Of|Those|That|Its|Whether|How|What|Why|Which|Who|Whom|Whose|By|Not|As|Only)\b": FRAGMENT,
    r"^(For|In|On|At|From|To|With|Without|Under|Over|Between|After|Before|Until|Where|While|When|If|Among|Unlike|Through|Within|So)\b"
    r"(?=[^,]*?([.;:](\s|$)|$))": FRAGMENT,
}
COMMENT_FOLDERS = ("base", "pmix", "comm", "io", "jobscripts", "launch", "bench", "python")
HEADER_FOLDERS = ("base", "pmix", "comm", "io", "launch", "bench", "jobscripts", "tests")
COMMENT = re.compile(r"(?<![:\"'])(//+<?)\s(.*)$")
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


def comments(text):
    """The text of a C++ source with everything except for its comments made blank, line by line as it was."""
    return "\n".join(found[2] if (found := COMMENT.search(line)) else "" for line in text.splitlines())


def comment_beginnings(text):
    """The first line of each comment, which is one on lines of its own; all other lines are blank."""
    is_comment = [line.lstrip().startswith("//") for line in text.splitlines()]
    return "\n".join("" if i and is_comment[i] and is_comment[i - 1] else line for i, line in enumerate(comments(text).splitlines()))


def docstrings(text):
    """The first line of each docstring of a Python source; all other lines are blank."""
    lines = [""] * len(text.splitlines())
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (doc := ast.get_docstring(node)):
            lines[node.body[0].lineno - 1] = doc.splitlines()[0]
    return "\n".join(lines)


def faults_of(paths, reader, patterns=BETTER):
    """What is wrong in the part of these files that the reader leaves."""
    return [f"{path.relative_to(SOURCE)}:{number}: “{found[0]}”: write {better}" for path in paths
            for number, line in enumerate(reader(path.read_text()).splitlines(), 1)
            for pattern, better in patterns.items() for found in re.finditer(pattern, line)]


if sys.argv[2:] == ["--rules"] or sys.argv[1:] == ["--rules"]:
    print("\n".join(f"{pattern}: {better}" for pattern, better in {**BETTER, **BEGINNINGS}.items()))
    sys.exit(0)
pages = [SOURCE / name for name in documents.all_documents(SOURCE) + ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]]
headers = [path for folder in HEADER_FOLDERS for path in sorted((SOURCE / folder).rglob("*.h*")) if path.suffix in (".h", ".hpp")]
sources = [path for pattern in HELP_TEXTS for path in sorted(SOURCE.glob(pattern))]
commented = [path for folder in COMMENT_FOLDERS for path in sorted((SOURCE / folder).rglob("*")) if path.suffix in (".h", ".hpp", ".cpp")]
modules = [path for folder in COMMENT_FOLDERS for path in sorted((SOURCE / folder).rglob("*.py"))]
faults = faults_of(pages, prose) + faults_of(headers, first_comment) + faults_of(sources, string_literals)
faults += faults_of(commented, comments) + faults_of(commented, comment_beginnings, BEGINNINGS)
faults += faults_of(modules, docstrings, {**BETTER, **BEGINNINGS})
print("\n".join(faults))
sys.exit(1 if faults or not headers or not sources or not commented or not modules else 0)
