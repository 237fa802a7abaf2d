#!/usr/bin/python3
"""Checks that link targets and names on pages exist.

usage: check_links.py ROOT
In every .md file that is part of the tree:
- links and pictures lead to files of the tree, and to headings in them;
- \\ref names a page's identifier;
- a path of the tree in backticks exists, and so does everything that is called a test: `..._test`, or the names after
"test";
- a page of docs/ is in the index, docs/README.md, or is one of an example's.
Web addresses are not checked.
"""
import pathlib
import re
import sys

LINK = re.compile(r"!?\[[^\]\n]*\]\(([^)\s]+)\)")
REFERENCE = re.compile(r"\\ref (\w+)")
IDENTIFIER = re.compile(r"\{#(\w+)\}")
HEADING = re.compile(r"^#{1,6} (.*?)\s*$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?:\.ci|bindings|docs|include|kernels|src|tests)/[\w./-]*\w")
TEST = re.compile(r"[a-z]\w*_test")
TESTS = re.compile(r"\btests?\s+((?:`[a-z_0-9]+`(?:,?\s+(?:and\s+)?)?)+)")
REGISTERED = re.compile(r"(?:add_test\(\s*NAME|sluice_add_unit_test\(|sluice_add_abi_command\()\s*([\w${}]+)")


def pages_of(root):
    """Everything except output of builds and tools."""
    return [path for path in sorted(root.rglob("*.md"))
            if path.relative_to(root).parts[0] not in ("build", ".git")]


def anchors_of(text):
    """The anchors that headings get where Markdown is rendered, and their explicit identifiers."""
    anchors = set(IDENTIFIER.findall(text))
    for heading in HEADING.findall(FENCE.sub("", text)):
        title = IDENTIFIER.sub("", heading).strip().lower()
        anchors.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return anchors


def tests_of(root):
    """A function that says whether a name is a test's, as the build files register it, or a test file's."""
    files = "".join(path.read_text(encoding="utf-8") for path in root.rglob("CMakeLists.txt")
                    if path.relative_to(root).parts[0] != "build")
    stems = {path.stem for path in (root / "tests").rglob("*_test.*")}
    # A name with variables in it matches several names, unless it contains nothing else.
    patterns = [re.sub(r"\$\{[^}]*\}", r"\\w+", name) for name in REGISTERED.findall(files)
                if re.sub(r"\$\{[^}]*\}", "", name)]
    registered = re.compile("|".join(patterns) or "(?!)")
    return lambda name: name in stems or registered.fullmatch(name) is not None


def line_of(text, match):
    return text[:match.start()].count("\n") + 1


def check(root):
    pages = {path: path.read_text(encoding="utf-8") for path in pages_of(root)}
    identifiers = {name for text in pages.values() for name in IDENTIFIER.findall(text)}
    is_test = tests_of(root)
    problems, links = [], 0
    for path, whole in pages.items():
        text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), whole)

        def wrong(match, what):
            problems.append(f"{path.relative_to(root)}:{line_of(text, match)}: {what}")

        for match in LINK.finditer(text):
            if re.match(r"[a-z]+:", match[1]):
                continue
            links += 1
            file, _, anchor = match[1].partition("#")
            target = (path.parent / file).resolve() if file else path
            if not target.exists() or not target.is_relative_to(root):
                wrong(match, f"the link has no target: {match[1]}")
            elif anchor and anchor not in anchors_of(target.read_text(encoding="utf-8")):
                wrong(match, f"{target.relative_to(root)} has no heading '{anchor}'")
        for match in REFERENCE.finditer(text):
            if match[1] not in identifiers:
                wrong(match, f"no page is called '{match[1]}'")
        for match in CODE.finditer(text):
            if PATH.fullmatch(match[1]) and not (root / match[1]).exists():
                # Pages of kernels/ and src/ name files from there.
                if not (path.parent / match[1]).exists():
                    wrong(match, f"{match[1]} does not exist")
            elif TEST.fullmatch(match[1]) and not is_test(match[1]):
                wrong(match, f"no test is called {match[1]}")
        for match in TESTS.finditer(text):
            for name in CODE.findall(match[1]):
                if not is_test(name):
                    wrong(match, f"no test is called {name}")
    index = pages.get(root / "docs/README.md", "")
    for path in pages:
        name = path.relative_to(root).as_posix()
        if name.startswith("docs/") and not name.startswith("docs/examples/") and name != "docs/README.md":
            if name not in index and f"]({name.removeprefix('docs/')})" not in index:
                problems.append(f"docs/README.md does not name {name}")
    if links < 10:
        problems.append(f"{links} links in all pages: the check would prove little")
    return problems


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    problems = check(pathlib.Path(sys.argv[1]).resolve())
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
