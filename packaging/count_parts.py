"""count_parts.py [SOURCE]: a table of the lines of the core and of each part: C, C++, CUDA, Python and the templates of job scripts, without tests.

`lines` are those of the files, `code` those that are neither empty nor a comment alone. packaging/parts.txt says which file belongs to which part.
"""
import pathlib
import re
import subprocess
import sys

FOLDERS = ("base", "pmix", "jobscripts", "comm", "launch", "io", "bench", "python")
KINDS = (".c", ".h", ".cpp", ".hpp", ".inc", ".cu", ".cuh", ".py", ".mustache")
EMPTY = re.compile(r"\s*(//.*|#(?!\s*(include|define|if|ifdef|ifndef|el|endif|pragma|undef)).*)?$")


def read_parts(file: pathlib.Path) -> "dict[str, list[str]]":
    rows = [line.split() for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return {name: beginnings for name, *beginnings in rows}


def main() -> None:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    parts = read_parts(root / "packaging" / "parts.txt")
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", *FOLDERS], check=True, capture_output=True, text=True)
    counts = {name: [0, 0] for name in ("core", *parts)}
    for path in filter(None, listed.stdout.split("\0")):
        if not path.endswith(KINDS) or not (root / path).is_file():
            continue
        part = next((name for name, beginnings in parts.items() if path.startswith(tuple(beginnings))), "core")
        lines = (root / path).read_text().splitlines()
        counts[part][0] += len(lines)
        counts[part][1] += sum(not EMPTY.match(line) for line in lines)
    counts["all"] = [sum(each) for each in zip(*counts.values())]
    print(f"{'part':8}{'lines':>8}{'code':>8}")
    for name, (lines, code) in counts.items():
        print(f"{name:8}{lines:8}{code:8}")


if __name__ == "__main__":
    main()
