"""Writes a file of a document's example. Arguments: SOURCE DOCUMENT NAME OUTPUT."""
import pathlib
import sys

import documents

source, document, name, output = sys.argv[1:]
for one in documents.read_blocks(pathlib.Path(source) / document, document):
    if one.marks.get("file") == name:
        pathlib.Path(output).write_text(f'#line {one.line + 1} "{document}"\n{one.text}')
        break
else:
    sys.exit(f"{document} has no block with the mark <!-- file: {name} -->")
