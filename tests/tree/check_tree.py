#!/usr/bin/python3
"""Enforces the tree: which folder may include what, and what the root may hold.

The rules are the table between the "folder rules" markers of docs/concepts/architecture.md, so that the page cannot
drift from the enforced rules. A folder without a row, a header of no known group and an include that does not resolve
are all violations: nothing passes for lack of a rule.

usage: check_tree.py ROOT
"""
import pathlib
import re
import sys

# LICENSES and REUSE.toml are in the root because the REUSE specification wants them there.
ROOT_ENTRIES = {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "LICENSES", "README.md", "REUSE.toml", "bindings", "build",
                "dev", "docs", "include", "kernels", "src", "tests"}
SOURCE_SUFFIXES = {".c", ".cpp", ".go", ".h", ".hpp", ".inc", ".td"}
C_HEADERS = {"assert.h", "ctype.h", "errno.h", "fenv.h", "float.h", "inttypes.h", "limits.h", "locale.h", "math.h",
             "setjmp.h", "signal.h", "stdalign.h", "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h",
             "stdio.h", "stdlib.h", "string.h", "time.h"}
# Prefix of an include path -> the name that the "others" column uses for it.
OTHERS = [("mlir/", "mlir"), ("mlir-c/", "mlir"), ("llvm/", "llvm"), ("llvm-c/", "llvm"), ("lld/", "lld"),
          ("fmt/", "fmt"), ("CLI/", "cli11"), ("nlohmann/", "json"), ("nanobind/", "nanobind"), ("zstd", "zstd"), ("sys/", "posix"),
          ("cxxabi.h", "posix"), ("dlfcn.h", "posix"), ("elf.h", "posix"), ("fcntl.h", "posix"), ("fnmatch.h", "posix"), ("link.h", "posix"),
          ("poll.h", "posix"), ("pthread.h", "posix"), ("sched.h", "posix"), ("unistd.h", "posix"), ("immintrin.h", "x86")]
# In Go, C is written in comments. An "include" without a "#" is TableGen's.
GO_INCLUDE = re.compile(r'^[ \t]*(?://)?[ \t]*#[ \t]*include[ \t]+(?:<([^>]+)>|"([^"]+)")', re.MULTILINE)
INCLUDE = re.compile(r'^[ \t]*(?:#[ \t]*)?include[ \t]+(?:<([^>]+)>|"([^"]+)")', re.MULTILINE)


def read_rules(text):
    """{folder: (set of the project's folders, set of others)} from the marked table."""
    match = re.search(r"<!-- folder rules: begin -->\n(.*?)<!-- folder rules: end -->", text, re.DOTALL)
    if not match:
        raise ValueError("the page has no table between its 'folder rules' markers")
    rules = {}
    for line in match.group(1).splitlines()[2:]:
        cells = line.strip().strip("|").split("|")
        if len(cells) != 4:
            raise ValueError(f"a row of the folder rules has {len(cells)} cells, not 4: {line}")
        names = [set(re.findall(r"`([^`]+)`", cell)) for cell in cells]
        rules[names[0].pop()] = (names[2], names[3])
    return rules


def folder_of(path, rules):
    """The longest leading part of the path that has a row: src/runtime, src/emulator/isa. Without one, the two leading
    components; a file in src/ itself is 'src'."""
    folders = path.parts[:-1]
    for count in range(len(folders), 2, -1):
        if "/".join(folders[:count]) in rules:
            return "/".join(folders[:count])
    return "/".join(folders[:2])


def target_of(root, file, spelled, quoted, rules):
    """The group an include belongs to: ('ours', folder), ('other', name), ('standard', '') or ('unknown', '')."""
    if quoted and (root / file.parent / spelled).is_file():
        return "ours", folder_of((root / file.parent / spelled).resolve().relative_to(root.resolve()), rules)
    # A generated table is in the build tree at the path of the .td file beside it.
    stem = re.sub(r"\.(h|cpp)\.inc$", "", spelled)
    for base in ("include", "src", "kernels"):
        if (root / base / spelled).is_file():
            return "ours", folder_of(pathlib.PurePath(base) / spelled, rules)
        if stem != spelled and any((root / base / stem).parent.glob("*.td")):
            return "ours", folder_of(pathlib.PurePath(base) / spelled, rules)
    if stem != spelled and "/" not in spelled and any((root / file.parent).glob("*.td")):
        return "ours", folder_of(file, rules)
    for prefix, name in OTHERS:
        if spelled.startswith(prefix):
            return "other", name
    if spelled in C_HEADERS or re.fullmatch(r"[a-z_]+", spelled):
        return "standard", ""
    return "unknown", ""


def check_includes(root, rules):
    problems = []
    files = [p for base in ("include", "src", "kernels", "bindings") for p in sorted((root / base).rglob("*"))
             if p.suffix in SOURCE_SUFFIXES and p.is_file()]
    if not files:
        problems.append(f"{root}: no source files found: the check would prove nothing")
    for path in files:
        file = path.relative_to(root)
        folder = folder_of(file, rules)
        if folder not in rules:
            problems.append(f"{file}: the folder '{folder}' has no row in the folder rules")
            continue
        ours, others = rules[folder]
        text = path.read_text(encoding="utf-8")
        for match in (GO_INCLUDE if file.suffix == ".go" else INCLUDE).finditer(text):
            spelled, quoted = match.group(1) or match.group(2), match.group(2) is not None
            kind, name = target_of(root, file, spelled, quoted, rules)
            where = f"{file}:{text.count(chr(10), 0, match.start()) + 1}"
            if kind == "unknown":
                problems.append(f"{where}: '{spelled}' is neither a file of the project nor in a known group")
            elif kind == "ours" and name != folder and name not in ours:
                problems.append(f"{where}: {folder} may not include {name} ('{spelled}')")
            elif kind == "other" and name not in others:
                problems.append(f"{where}: {folder} may not include {name} ('{spelled}')")
    return problems


def check_root(root):
    return [f"{entry.name}: does not belong in the root" for entry in sorted(root.iterdir())
            if entry.name not in ROOT_ENTRIES and not entry.name.startswith(".")]


def check(root):
    rules = read_rules((root / "docs/concepts/architecture.md").read_text(encoding="utf-8"))
    return check_root(root) + check_includes(root, rules)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    problems = check(pathlib.Path(sys.argv[1]))
    for problem in problems:
        print(problem)
    print(f"{len(problems)} violations" if problems else "the tree follows its rules")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
