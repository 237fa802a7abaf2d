#!/usr/bin/python3
"""Compares the C ABI with the checked files beside this program.

usage: check_abi.py layout  HEADER_FOLDER C_COMPILER [--update]    struct sizes and offsets against layout.txt
       check_abi.py symbols HEADER_FOLDER LIBRARY    [--update]    exported symbols against symbols.txt
       check_abi.py needs   LIBRARY                                what ldd finds against the libraries allowed

The lists of structs, fields and functions are read from the header, so that none can be left out. A difference is
a break of the ABI unless it is an addition at the end of a struct or a new function; then --update writes the file.
"""
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ALLOWED = {"linux-vdso.so.1", "ld-linux-x86-64.so.2", "libc.so.6", "libgcc_s.so.1", "libm.so.6", "libstdc++.so.6",
           "libzstd.so.1"}


def header_text(folder):
    text = (pathlib.Path(folder) / "sluice/sluice.h").read_text()
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def structs_of(text):
    """[(struct, [field, ...])] in the order of the header."""
    found = []
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, re.DOTALL):
        fields = [re.search(r"(\w+)(\[\w+\])*$", line.strip()).group(1) for line in body.split(";") if line.strip()]
        found.append((name, fields))
    assert found and all(fields for _, fields in found)
    return found


def functions_of(text):
    names = re.findall(r"SLUICE_API [^;(]*?\b(sluice_\w+)\(", text)
    assert names and len(names) == text.count("SLUICE_API ") - text.count("#define SLUICE_API ")
    return names


def layout(folder, compiler):
    lines = ["#include <sluice/sluice.h>", "#include <stdio.h>", "int main(void) {"]
    for struct, fields in structs_of(header_text(folder)):
        lines.append(f'  printf("{struct}: %zu bytes\\n", sizeof({struct}));')
        for field in fields:
            lines.append(f'  printf("  {field}: %zu, %zu bytes\\n", offsetof({struct}, {field}), '
                         f'sizeof((({struct} *)0)->{field}));')
    lines += ["  return 0;", "}", ""]
    with tempfile.TemporaryDirectory() as work:
        source, program = pathlib.Path(work) / "layout.c", pathlib.Path(work) / "layout"
        source.write_text("\n".join(lines))
        subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wpadded",
                        f"-I{folder}", source, "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def symbols(folder, library):
    declared = sorted(functions_of(header_text(folder)))
    output = subprocess.run(["nm", "--dynamic", "--defined-only", "--with-symbol-versions", library], check=True,
                            capture_output=True, text=True).stdout
    exported = sorted(line.split()[2] for line in output.splitlines() if line.split()[1] != "A")
    wanted = [f"{name}@@SLUICE_1" for name in declared]
    if exported != wanted:
        sys.exit("the header and the library disagree:\n" + "\n".join(difflib.unified_diff(
            wanted, exported, "declared in sluice.h", f"exported by {library}", lineterm="")))
    return "\n".join(exported) + "\n"


def compare(name, actual, update):
    path = HERE / name
    if update:
        path.write_text(actual)
        return
    expected = path.read_text()
    if actual != expected:
        sys.exit("\n".join(difflib.unified_diff(expected.splitlines(), actual.splitlines(), name, "now", lineterm="")))
    print(f"as in {name}: {len(actual.splitlines())} lines")


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
    elif len(arguments) == 2 and arguments[0] == "needs":
        needs(arguments[1])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
