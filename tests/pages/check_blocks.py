#!/usr/bin/python3
"""Checks that the code that pages show is built and run.

usage: check_blocks.py [--fix] ROOT
A block of C or C++ in README.md or under docs/ has a comment in the line above it that names its file and, if it is not
the whole file, a region of it:

    <!-- docs/examples/guide/plans.cpp: questions -->

Lines between "// <questions>" and "// </questions>" of that file are the region; regions may contain others. The one
exception is a file of a session: a block under a line that ends with "`NAME`:", in a page with blocks of "console" that
tests/unit/tools runs. Regions of docs/examples that no page shows are errors, too. --fix corrects the pages.
"""
import argparse
import pathlib
import re
import sys
import textwrap

LANGUAGES = {"c", "cpp"}
BLOCK = re.compile(r"^(?P<above>[^\n]*\n(?:\n)?)?^```(?P<language>[a-z+]+)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
SOURCE = re.compile(r"<!-- (?P<path>\w+/[\w./-]+)(?:: (?P<region>[\w-]+))? -->\n")
SESSION_FILE = re.compile(r"`\S+`:\n\n")
TAG = re.compile(r"^\s*// </?[\w-]+>\n", re.MULTILINE)


def region_of(text, name):
    """The lines of a region without the tags of others; ValueError if there is not exactly one."""
    found = re.findall(rf"^[ ]*// <{name}>\n(.*?)^[ ]*// </{name}>\n", text, re.DOTALL | re.MULTILINE)
    if len(found) != 1:
        raise ValueError(f"has {len(found)} regions '{name}', not one")
    return textwrap.dedent(TAG.sub("", found[0])).strip("\n") + "\n"


def check_page(root, page, text, sessions):
    """(errors, the corrected page)"""
    problems = []
    is_session = "```console\n" in text
    if is_session and f"{page}" not in sessions:
        problems.append(f"{page} shows a session, but tests/unit/tools/CMakeLists.txt does not run it")

    def replaced(match):
        if match["language"] not in LANGUAGES:
            return match[0]
        line = text[:match.start("code")].count("\n")
        above = match["above"] or ""
        if is_session and SESSION_FILE.search(above):
            return match[0]
        source = SOURCE.fullmatch(above)
        if not source:
            problems.append(f"{page}:{line}: the line above a block of {match['language']} must name its file")
            return match[0]
        try:
            file = (root / source["path"]).read_text(encoding="utf-8")
            wanted = region_of(file, source["region"]) if source["region"] else TAG.sub("", file)
        except (OSError, ValueError) as error:
            problems.append(f"{page}:{line}: {source['path']} {error}")
            return match[0]
        if match["code"] != wanted:
            problems.append(f"{page}:{line}: the block differs from {source['path']}; --fix corrects it")
        return f"{above}```{match['language']}\n{wanted}```"

    return problems, BLOCK.sub(replaced, text)


def unshown(root, texts):
    """Regions of the examples that no page shows, as errors."""
    shown = {(source["path"], source["region"]) for text in texts for source in SOURCE.finditer(text)}
    return [f"no page shows the region '{name}' of {path.relative_to(root)}"
            for path in sorted((root / "docs/examples").rglob("*")) if path.suffix in (".c", ".cpp", ".h")
            for name in re.findall(r"^\s*// <([\w-]+)>$", path.read_text(encoding="utf-8"), re.MULTILINE)
            if (path.relative_to(root).as_posix(), name) not in shown]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("root", type=pathlib.Path)
    options = parser.parse_args()
    root = options.root
    sessions = (root / "tests/unit/tools/CMakeLists.txt").read_text(encoding="utf-8")
    problems, texts = [], []
    for path in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        found, wanted = check_page(root, path.relative_to(root), text, sessions)
        texts.append(text)
        if options.fix and wanted != text:
            path.write_text(wanted, encoding="utf-8")
            found = [problem for problem in found if "--fix writes it" not in problem]
        problems += found
    problems += unshown(root, texts)
    blocks = sum(len(SOURCE.findall(text)) for text in texts)
    if blocks < 5:
        problems.append(f"{blocks} blocks with a file: the check would prove little")
    if problems:
        sys.exit("\n".join(problems))
    print(f"{blocks} blocks are what their files have")


if __name__ == "__main__":
    main()
