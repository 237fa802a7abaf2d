#!/usr/bin/python3
"""Compares the C ABI with the checked-in files in this folder.

usage: check_abi.py layout  HEADER C_COMPILER [--update]       sizes, offsets and enumerators against layout.txt
       check_abi.py symbols HEADER LIBRARY    [--update]       exported symbols against symbols.txt
       check_abi.py since   FROZEN HEADER C_COMPILER           a header against that of an earlier release
       check_abi.py needs   LIBRARY                            what ldd finds against the libraries allowed

The lists of structs, fields, enumerators and functions are read from the header, so that none can be left out. A change
that docs/concepts/abi.md allows is an addition; --update writes additions down, and refuses all other changes.
"""
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# libdl is libc's.
ALLOWED = {"linux-vdso.so.1", "ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libgcc_s.so.1", "libm.so.6",
           "libstdc++.so.6", "libzstd.so.1"}


def header_text(header, seen=None):
    """A header without comments, with the headers of the library that it includes in their places, each once."""
    path, seen = pathlib.Path(header), set() if seen is None else seen
    seen.add(path.name)
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    return re.sub(r"#include <sluice/(\w+\.h)>",
                  lambda match: "" if match[1] in seen else header_text(path.parent / match[1], seen), text)


def structs_of(text):
    """[(struct, [field, ...])] in the order of the header."""
    found = []
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, re.DOTALL):
        fields = [re.search(r"(\w+)(\[\w+\])*$", line.strip()).group(1) for line in body.split(";") if line.strip()]
        found.append((name, fields))
    assert found and all(fields for _, fields in found)
    return found


def enums_of(text):
    """[(enum, [enumerator, ...])] in the order of the header."""
    found = [(name, re.findall(r"\b(SLUICE_\w+) =", body)) for name, body in
             re.findall(r"\benum (\w+) \{(.*?)\};", text, re.DOTALL)]
    assert len(found) == len(re.findall(r"\benum\b", text)) and all(names for _, names in found)
    return found


def functions_of(text):
    names = re.findall(r"SLUICE_API [^;(]*?\b(sluice_\w+)\(", text)
    assert names and len(names) == text.count("SLUICE_API ") - text.count("#define SLUICE_API ")
    return names


def number_of(text, macro):
    return int(re.search(rf"#define {macro} (\d+)", text).group(1))


def layout(header, compiler):
    text = header_text(header)
    lines = [f'#include "{pathlib.Path(header).resolve()}"', "#include <stdio.h>", "int main(void) {"]
    for struct, fields in structs_of(text):
        lines.append(f'  printf("{struct}: %zu bytes\\n", sizeof({struct}));')
        for field in fields:
            lines.append(f'  printf("  {field}: %zu, %zu bytes\\n", offsetof({struct}, {field}), '
                         f'sizeof((({struct} *)0)->{field}));')
    for enum, names in enums_of(text):
        lines.append(f'  printf("{enum}: values\\n");')
        lines += [f'  printf("  {name}: %lld\\n", (long long){name});' for name in names]
    lines += ["  return 0;", "}", ""]
    with tempfile.TemporaryDirectory() as work:
        source, program = pathlib.Path(work) / "layout.c", pathlib.Path(work) / "layout"
        source.write_text("\n".join(lines))
        subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wpadded",
                        f"-I{pathlib.Path(header).resolve().parents[1]}", source, "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def sections(text):
    """{text before the colon of a line that is not indented: (text after it, [the indented lines])}"""
    found = {}
    for line in text.splitlines():
        if line.startswith("  "):
            members.append(line.strip())
        else:
            name, _, rest = line.partition(": ")
            _, members = found[name] = rest, []
    return found


def breaks(old, new):
    """The parts of `old` that `new` lacks or changes, in sentences; both are texts as in layout.txt or symbols.txt."""
    found, now = [], sections(new)
    for name, (value, members) in sections(old).items():
        if name not in now:
            found.append(f"{name} is gone")
            continue
        new_value, new_members = now[name]
        if value == "values":
            found += [f"{name}: no more '{member}'" for member in members if member not in new_members]
            continue
        moved = [(was, is_now) for was, is_now in zip(members, new_members + [None] * len(members)) if was != is_now]
        if moved:
            found.append(f"{name}: '{moved[0][1]}' where '{moved[0][0]}' was")
        elif members and not members[0].startswith("struct_size: 0,") and (value, members) != now[name]:
            found.append(f"{name} is {new_value} and was {value}, without a struct_size that shows it")
        elif len(new_members) > len(members):
            offset = int(re.search(r": (\d+),", new_members[len(members)]).group(1))
            if offset < int(value.split()[0]):
                found.append(f"{name}: '{new_members[len(members)]}' is within the {value} that it was")
    return found


def symbols(header, library):
    text = header_text(header)
    declared = sorted(functions_of(text))
    major, minor = number_of(text, "SLUICE_ABI_MAJOR"), number_of(text, "SLUICE_ABI_MINOR")
    output = subprocess.run(["nm", "--dynamic", "--defined-only", "--with-symbol-versions", library], check=True,
                            capture_output=True, text=True).stdout
    exported = sorted(line.split()[2] for line in output.splitlines() if line.split()[1] != "A")
    if [symbol.split("@")[0] for symbol in exported] != declared:
        sys.exit("the header and the library disagree:\n" + "\n".join(difflib.unified_diff(
            declared, exported, "declared in the headers", f"exported by {library}", lineterm="")))
    nodes = {f"SLUICE_{major}"} | {f"SLUICE_{major}.{number}" for number in range(1, minor + 1)}
    for symbol in exported:
        if symbol.split("@@")[-1] not in nodes:
            sys.exit(f"{symbol} has a version node outside those of SLUICE_ABI_MINOR {minor}: {sorted(nodes)}")
    return "\n".join(exported) + "\n"


def fail_on(found, compared):
    if found:
        sys.exit(f"breaks of the ABI, against {compared}:\n" + "\n".join(found))


def compare(name, actual, update):
    path = HERE / name
    expected = path.read_text() if path.exists() else ""
    fail_on(breaks(expected, actual), name)
    if update:
        path.write_text(actual)
    elif actual != expected:
        sys.exit("additions that are not recorded; --update records them:\n" + "\n".join(difflib.unified_diff(
            expected.splitlines(), actual.splitlines(), name, "now", lineterm="")))
    print(f"as in {name}: {len(actual.splitlines())} lines")


def since(frozen, header, compiler):
    old, new = layout(frozen, compiler), layout(header, compiler)
    old_text, new_text = header_text(frozen), header_text(header)
    old += "\n".join(sorted(functions_of(old_text))) + "\n"
    new += "\n".join(sorted(functions_of(new_text))) + "\n"
    fail_on(breaks(old, new), frozen)
    versions = [[number_of(text, f"SLUICE_ABI_{part}") for part in ("MAJOR", "MINOR")] for text in (old_text, new_text)]
    if versions[0][0] != versions[1][0]:
        sys.exit(f"{frozen} is of generation {versions[0][0]}, {header} of {versions[1][0]}")
    if sections(old) != sections(new) and versions[0][1] >= versions[1][1]:
        sys.exit(f"{header} has additions to {frozen}, but SLUICE_ABI_MINOR is {versions[1][1]}, not above "
                 f"{versions[0][1]}")
    print(f"nothing of {pathlib.Path(frozen).name} is lost: {len(old.splitlines())} lines")


def needs(library):
    output = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    names = {pathlib.Path(line.split()[0]).name for line in output.splitlines()}
    if "libzstd.so.1" not in names or not names <= ALLOWED:
        sys.exit(f"{library} needs {sorted(names)}; allowed: {sorted(ALLOWED)}")
    print("needs only", ", ".join(sorted(names)))


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--update"]
    update = len(arguments) < len(sys.argv) - 1
    if len(arguments) == 3 and arguments[0] == "layout":
        compare("layout.txt", layout(*arguments[1:]), update)
    elif len(arguments) == 3 and arguments[0] == "symbols":
        compare("symbols.txt", symbols(*arguments[1:]), update)
    elif len(arguments) == 4 and arguments[0] == "since" and not update:
        since(*arguments[1:])
    elif len(arguments) == 2 and arguments[0] == "needs":
        needs(arguments[1])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
