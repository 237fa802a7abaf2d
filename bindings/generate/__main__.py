"""Writes what all bindings say about the C interface: bindings/abi.json, and from it each language's declarations.

usage: python3 bindings/generate [--check] [--doxygen PROGRAM]
--check writes nothing, and fails if a file is not as it would be written.
"""
import argparse
import difflib
import importlib
import pathlib
import sys

import abi
import describe

# Modules of this folder with a function write(abi) -> {path from the root of the tree: text}.
WRITERS = ["rust", "go", "python", "recorder"]


def files(doxygen):
    """{path from the root of the tree: text}"""
    data = describe.describe(doxygen)
    found = {str(abi.FILE.relative_to(abi.ROOT)): describe.to_json(data) + "\n"}
    for name in WRITERS:
        if (pathlib.Path(__file__).parent / f"{name}.py").exists():
            found |= importlib.import_module(name).write(abi.from_data(data))
    return found


def difference(path, text):
    """The lines that differ, as a text; empty if the file is as it should be."""
    file = abi.ROOT / path
    now = file.read_text(encoding="utf-8") if file.exists() else ""
    return "\n".join(difflib.unified_diff(now.splitlines(), text.splitlines(), path, f"{path}, as the headers are",
                                          lineterm="")) or ("" if now == text else f"{path}: the end differs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--doxygen", default="doxygen")
    arguments = parser.parse_args()
    differences = {path: (text, found) for path, text in files(arguments.doxygen).items()
                   if (found := difference(path, text))}
    for path, (text, found) in differences.items():
        if arguments.check:
            print(found)
            continue
        (abi.ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (abi.ROOT / path).write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    if arguments.check and differences:
        sys.exit(f"not as the headers are: {', '.join(differences)}; ./dev bindings writes them")


if __name__ == "__main__":
    main()
