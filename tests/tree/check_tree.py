#!/usr/bin/python3
"""Enforces the tree: which folder may include and link what, and what the root may hold.

The rules are the table between the "folder rules" markers of docs/concepts/architecture.md, so that the page cannot
drift from the enforced rules. A folder without a row, a header of no known group and an include that does not resolve
are all violations: nothing passes for lack of a rule. The table's arrows must not form a circle. What CMake links is
read from the text of the CMakeLists.txt: a target may link libraries of the folders that its own may include, and of
those only libraries whose headers it includes.

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
          ("cxxabi.h", "posix"), ("dlfcn.h", "posix"), ("elf.h", "posix"), ("execinfo.h", "posix"), ("fcntl.h", "posix"), ("fnmatch.h", "posix"),
          ("link.h", "posix"), ("poll.h", "posix"), ("pthread.h", "posix"), ("sched.h", "posix"), ("unistd.h", "posix"), ("immintrin.h", "x86")]
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


def check_cycles(rules):
    """A problem for each circle of arrows that a walk along the table finds."""
    problems, done = [], set()

    def walk(folder, path):
        if folder in path:
            problems.append("the folder rules form a circle: " + " -> ".join(path[path.index(folder):] + [folder]))
        elif folder not in done:
            for next_folder in sorted(rules.get(folder, (set(),))[0]):
                walk(next_folder, path + [folder])
            done.add(folder)

    for folder in rules:
        walk(folder, [])
    return problems


class Target:
    """What CMake compiles and links together."""

    def __init__(self, file, arguments):
        self.file = file
        self.is_shared = "SHARED" in arguments
        self.sources, self.links = [], []


def read_targets(root):
    """{name: Target} of the CMakeLists.txt of src/ and kernels/."""
    targets = {}
    keywords = {"SOURCES", "LINKS", "DEPENDS", "PUBLIC", "PRIVATE", "INTERFACE", "STATIC", "SHARED", "SYSTEM"}
    for path in [p for base in ("src", "kernels") for p in sorted((root / base).rglob("CMakeLists.txt"))]:
        text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
        variables = {"PROJECT_SOURCE_DIR": str(root.resolve())}
        for command, body in re.findall(r"^[ \t]*(\w+)\s*\(([^()]*)\)", text, re.MULTILINE):
            for variable, value in variables.items():
                body = body.replace(f"${{{variable}}}", value)
            name, *arguments = body.split() or [""]
            if command == "file" and name == "GLOB":
                files = [file for pattern in arguments[1:] for file in path.parent.glob(pattern)]
                variables[arguments[0]] = " ".join(str(file.relative_to(path.parent)) for file in sorted(files))
            adds = re.fullmatch(r"add_(library|executable)|sluice_add_(kernels_)?library", command)
            if adds and "ALIAS" not in arguments:
                targets[name] = Target(path.relative_to(root), arguments)
            if name not in targets or not (adds or command in ("target_sources", "target_link_libraries")):
                continue
            part = "LINKS" if command == "target_link_libraries" else "SOURCES"
            for argument in arguments:
                if argument in keywords:
                    part = argument if argument in ("SOURCES", "LINKS", "DEPENDS") else part
                elif part == "LINKS":
                    targets[name].links += re.findall(r"[\w.-]+", argument)  # a generator expression, too
                elif part == "SOURCES" and pathlib.PurePath(argument).suffix in SOURCE_SUFFIXES:
                    targets[name].sources.append(path.parent / argument)
    return targets


def includes_of(root, sources, rules):
    """The project's files that the sources include, directly or through headers of their own folder."""
    found, pending = set(), [source.resolve() for source in sources if source.is_file()]
    while pending:
        path = pending.pop()
        file = path.relative_to(root)
        for match in INCLUDE.finditer(path.read_text(encoding="utf-8")):
            spelled, quoted = match.group(1) or match.group(2), match.group(2) is not None
            if target_of(root, file, spelled, quoted, rules)[0] != "ours":
                continue
            places = [root / base / spelled for base in ("include", "src", "kernels")]
            header = next((place for place in [path.parent / spelled] * quoted + places if place.is_file()), None)
            if header is None or header.resolve() in found:  # a generated table has no text
                continue
            found.add(header.resolve())
            if folder_of(header.resolve().relative_to(root), rules) == folder_of(file, rules):
                pending.append(header.resolve())
    return found


def check_links(root, rules):
    root = root.resolve()
    problems, targets = [], read_targets(root)
    owners = {source.resolve().with_suffix(".h"): name for name, target in targets.items() for source in target.sources}
    for name, target in targets.items():
        if not target.sources:  # it only joins others
            continue
        folder = folder_of(target.file, rules)
        included = includes_of(root, target.sources, rules)
        for link in target.links:
            linked = targets.get(link)
            if linked is None or not (linked.sources or linked.is_shared):
                continue
            # A shared library is used through the public headers only.
            to = "include/sluice" if linked.is_shared else folder_of(linked.file, rules)
            if to != folder and to not in rules.get(folder, (set(),))[0]:
                problems.append(f"{target.file}: '{name}' of {folder} may not link '{link}' of {to}")
            elif not any(folder_of(header.relative_to(root), rules) == to and owners.get(header, link) == link
                         for header in included):
                problems.append(f"{target.file}: '{name}' links '{link}', but includes none of its headers")
    return problems


def check_root(root):
    return [f"{entry.name}: does not belong in the root" for entry in sorted(root.iterdir())
            if entry.name not in ROOT_ENTRIES and not entry.name.startswith(".")]


def check(root):
    rules = read_rules((root / "docs/concepts/architecture.md").read_text(encoding="utf-8"))
    return check_root(root) + check_cycles(rules) + check_includes(root, rules) + check_links(root, rules)


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
