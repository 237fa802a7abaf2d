#!/usr/bin/python3
"""Checks what libsluice.so requires of the system, and that it is hardened.

usage: check_floors.py OBJDUMP READELF LIBRARY PROGRAM...

LIBRARY is libsluice.so: it runs with glibc 2.28 and the libstdc++ of GCC 8, as on RHEL 8 (docs/reference/systems.md). It and each
PROGRAM have a stack protector, relocations that are resolved and made read-only before it runs, and only absolute or $ORIGIN folders
in its library search path.
"""
import re
import subprocess
import sys

FLOORS = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def versions_above(symbols):
    """Undefined symbols whose version is newer than its floor."""
    for line in symbols.splitlines():
        found = re.search(r"\*UND\*\s+\S+\s+\(?(?:([A-Z]+)_([\d.]+))?\)?\s*(\S+)$", line)
        if not found or not found[1]:
            continue
        version = tuple(int(part) for part in found[2].split("."))
        if found[1] not in FLOORS or version > FLOORS[found[1]]:
            yield f"{found[3]} of {found[1]}_{found[2]}"


def weaknesses(dynamic, headers, symbols):
    if "BIND_NOW" not in dynamic and not re.search(r"FLAGS_1\).*\bNOW\b", dynamic):
        yield "it binds lazily"
    if "GNU_RELRO" not in headers:
        yield "its relocations stay writable"
    if not re.search(r"GNU_STACK\s+(?:0x\w+\s+){5}RW\s", headers):
        yield "its stack is executable"
    if "__stack_chk_fail" not in symbols:
        yield "it has no stack protector"
    if not re.search(r"__\w+_chk\b", symbols.replace("__stack_chk_fail", "")):
        yield "no call of libc is checked"
    for path in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic):
        for folder in path.split(":"):
            if not folder.startswith(("/", "$ORIGIN")):
                yield f"it looks for libraries in '{folder}' of {path}"


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    objdump, readelf, library, *programs = sys.argv[1:]
    failures = [f"{library} needs {symbol}" for symbol in versions_above(output(objdump, "-T", library))]
    for file in (library, *programs):
        facts = output(readelf, "-dW", file), output(readelf, "-lW", file), output(objdump, "-T", file)
        failures += [f"{file}: {weakness}" for weakness in weaknesses(*facts)]
    if "SHSTK" not in output(readelf, "-nW", library):
        failures.append(f"{library} does not allow shadow stacks")
    code = output(objdump, "-d", "--no-show-raw-insn", library)
    entries = re.findall(r"<(sluice_\w+)>:\n\s+\w+:\s+(\w+)", code)
    failures += [f"{name} does not begin with endbr64" for name, first in entries if first != "endbr64"]
    if not entries:
        failures.append(f"{library} has no functions")
    print("\n".join(failures) or f"{library} and {len(programs)} programs: nothing to report")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
