"""make_wheel.py TREE VERSION OUT: the wheel of the portable archive's tree, in the folder OUT.

The same files: Python's at the top, where it looks for them, and the installation within the package, as `pip install .` lays them (pyproject.toml).
"""

import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

NAME = "muster-hpc"  # `muster` belongs to somebody else on PyPI
TAG = "cp39-abi3-manylinux_2_28_x86_64"
INSIDE = "muster/_installed/"
TORCH = "[torch.backends]\nmuster = _muster_torch_backend:register\n"
PROGRAMS = {"muster": "main", "muster-bench": "bench", "muster-stage": "stage"}  # functions of muster._program
NOT_NEEDED = ("share/doc/muster/bench", "share/doc/muster/examples")  # half of the tree


def place_of(path: str) -> str | None:
    """Where a file of the tree lies in the wheel; None for one that does not."""
    python = "lib/muster/python/"
    if path.startswith(NOT_NEEDED) or ".dist-info/" in path:
        return None
    return path.removeprefix(python) if path.startswith(python) else INSIDE + path


def scripts(tree: pathlib.Path) -> str:
    """The programs that pip puts on PATH: those of the tree."""
    lines = [f"{name} = muster._program:{function}\n" for name, function in PROGRAMS.items() if (tree / "bin" / name).is_file()]
    return "[console_scripts]\n" + "".join(lines)


def metadata(version: str) -> str:
    about = (pathlib.Path(__file__).parent.parent / "about-the-wheel.md").read_text()
    return (f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version}\nSummary: One rank per GPU, out of any scheduler's allocation; collectives for Python\n"
            f"License: Apache-2.0\nRequires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n{about}")


def is_other_name(path: pathlib.Path) -> bool:
    """Whether this is a library's file under another name than its soname: libX.so, libX.so.6.0.1.0. A wheel has no links."""
    return path.name.startswith("libmuster_comm.so") and path.name.count(".") != 2


class Wheel:
    def __init__(self, file: pathlib.Path):
        when = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
        self.date = max(when[:6], (1980, 1, 1, 0, 0, 0))
        self.zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.rows: list[str] = []

    def add(self, name: str, data: bytes, mode: int = 0o644) -> None:
        entry = zipfile.ZipInfo(name, self.date)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100000 | mode) << 16
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.rows.append(f"{name},sha256={digest},{len(data)}")

    def close(self, info: str) -> None:
        self.zip.writestr(zipfile.ZipInfo(f"{info}/RECORD", self.date), "\n".join([*self.rows, f"{info}/RECORD,,", ""]))
        self.zip.close()


def main() -> None:
    tree, version, out = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    stem = f"{NAME.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    file = out / f"{stem}-{TAG}.whl"
    wheel = Wheel(file)
    for path in sorted(tree.rglob("*")):
        place = place_of(str(path.relative_to(tree)))
        if place and path.is_file() and not is_other_name(path):
            wheel.add(place, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
    wheel.add(f"{info}/METADATA", metadata(version).encode())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: muster\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode())
    wheel.add(f"{info}/entry_points.txt", (scripts(tree) + TORCH).encode())
    wheel.close(info)
    print(file)


if __name__ == "__main__":
    main()
