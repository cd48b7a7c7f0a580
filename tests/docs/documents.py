"""Reads the documents: their code blocks, and the marks that stand before these.

A block is fenced. Its language says what it is:
  sh                   commands; run, all of a document's in one folder, in their order
  python, c, cpp, toml a file of the example; needs the mark "file"
  anything else        shown
A mark is a comment in the line before the block:
  <!-- file: NAME -->    the block becomes this file
  <!-- needs: WHAT -->   cannot be run just anywhere. Run where it is there: torch, muster.data, muster.distributed, fashion-mnist, the examples. Never run: anything else
  <!-- exit: 0 1 -->     exit codes that are right (0 without a mark)
"""
import pathlib
import re
from dataclasses import dataclass

EXAMPLE_LANGUAGES = {"python", "c", "cpp", "toml"}  # a block of these is built, read or run, not only shown


@dataclass
class block:
    document: str
    line: int
    language: str
    text: str
    marks: dict

    @property
    def where(self):
        return f"{self.document}:{self.line}"


class fault(Exception):
    pass


def read_blocks(path, document):
    """The blocks of a document, in order. Raises fault where it is not written by the rules above."""
    found, marks, opened = [], {}, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if opened:
            if line.strip() == "```":
                found.append(opened)
                opened = None
            else:
                opened.text += line + "\n"
        elif line.lstrip().startswith("```"):
            language = line.strip().removeprefix("```")
            opened, marks = block(document, number, language, "", marks), {}
            check_marks(opened)
        elif mark := re.fullmatch(r"<!-- (file|needs|exit): (.*?) -->", line.strip()):
            marks[mark[1]] = mark[2]
        elif line.startswith("    "):
            raise fault(f"{document}:{number}: an indented block; write ```sh, so that it is run, or ```text")
        elif line.strip():
            if marks:
                raise fault(f"{document}:{number}: a mark {marks} with no block behind it")
    if opened:
        raise fault(f"{opened.where}: the block does not end")
    return found


def check_marks(one):
    if one.language == "":
        raise fault(f"{one.where}: a block without a language; write ```sh, ```text or another")
    if one.language in EXAMPLE_LANGUAGES and not {"file", "needs"} & set(one.marks):
        raise fault(f"{one.where}: {one.language} without the mark <!-- file: NAME --> or <!-- needs: WHAT -->")


def all_documents(source):
    """README.md and docs/**/*.md, as names relative to the source folder."""
    source = pathlib.Path(source)
    return ["README.md"] + sorted(str(p.relative_to(source)) for p in (source / "docs").rglob("*.md"))


if __name__ == "__main__":  # SOURCE DOCUMENT NEED: the text of the first block that needs this, for tests in other languages
    import sys

    source, document, need = sys.argv[1:]
    print(next(one.text for one in read_blocks(pathlib.Path(source) / document, document) if one.marks.get("needs") == need), end="")
