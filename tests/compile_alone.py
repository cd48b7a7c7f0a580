"""compile_alone.py BUILD FOLDER: every source and header of FOLDER compiles by what it includes itself, without precompiled headers.

Reads BUILD/compile_commands.json, and writes no file. A header is checked as the first thing that its own .cpp includes, or else alone. Prints what the
compiler says of each that fails; exit code 1 then, 77 where the build has no source of FOLDER.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def words_of(entry):
    """The command of a source, without compiler cache, output, dependencies and precompiled headers."""
    words, kept = shlex.split(entry["command"]), []
    if pathlib.Path(words[0]).name == "ccache":
        words = words[1:]
    skip = 0
    for word, after in zip(words, words[1:] + [""]):
        if skip:
            skip -= 1
        elif word in ("-o", "-MF", "-MT", "-MQ"):
            skip = 1
        elif word == "-include" and after.endswith("cmake_pch.hxx"):
            skip = 1
        elif word in ("-c", "-MD", "-MMD", "-Winvalid-pch", "-fpch-preprocess") or word.startswith("-O"):
            pass
        else:
            kept.append(word)
    return [*kept, "-fsyntax-only", "-w"]


def own_header_first(source):
    """The header that a source includes before anything else, if it is the source's own."""
    first = next((line for line in source.read_text().splitlines() if line.startswith("#include")), "")
    own = source.with_suffix(".hpp")
    return own if first.startswith('#include "') and own.name in first else None


def check(file, command, folder, text=None):
    done = subprocess.run(command, cwd=folder, input=text, stderr=subprocess.PIPE, text=True)
    return file, done.returncode, done.stderr


def main():
    build, folder = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    cache = (build / "CMakeCache.txt").read_text()
    root = pathlib.Path(next(line.split("=", 1)[1] for line in cache.splitlines() if line.startswith("CMAKE_HOME_DIRECTORY:")))
    sources = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        if file.is_relative_to(root / folder) and file.suffix == ".cpp":
            sources.setdefault(file, entry)
    if not sources:
        print(f"{build} has no source of {folder}")
        return 77
    checks = [(file, words_of(entry), entry["directory"]) for file, entry in sources.items()]
    if folder != "tests":
        # The words of a source that has all of its folder's libraries do for a header, which comes by standard input in place of the source.
        seen = {own_header_first(file) for file in sources}
        longest = max(sources.values(), key=lambda entry: len(entry["command"]))
        words = [word for word in words_of(longest) if word != longest["file"]] + ["-x", "c++", "-"]
        for header in sorted(set((root / folder).rglob("*.hpp")) | set((root / folder).rglob("*.h"))):
            if header not in seen:
                checks.append((header, words, longest["directory"], f'#include "{header.relative_to(root)}"\n'))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        ended = list(threads.map(lambda each: check(*each), checks))
    failed = [(file, said) for file, code, said in ended if code != 0]
    for file, said in failed:
        print(f"{file.relative_to(root)} does not compile by its own includes:\n{said}")
    print(f"{folder}: {len(checks)} sources and headers, {len(failed)} do not compile alone")
    return 1 if failed else 0


sys.exit(main())
