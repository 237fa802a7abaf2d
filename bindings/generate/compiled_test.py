#!/usr/bin/python3
"""Checks bindings/abi.json against a C compiler, and against a list of names that is read without Doxygen.

usage: compiled_test.py C_COMPILER
A C file states each size, offset, type, value and signature of the description; it compiles only if all are so.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import abi
import describe


def is_type(expression, member):
    """A condition in C: the expression, an lvalue, has exactly the member's type."""
    array = f"[{member.type.array}]" if member.type.array else ""
    return f"_Generic(&({expression}), {spelled(member.type, f'(*){array}')}: 1, default: 0)"


def spelled(type_, name):
    return f"{type_.c} {name}"


def of_struct(struct):
    yield f"sizeof({struct.name}) == {struct.size}"
    yield f"_Alignof({struct.name}) == {struct.align}"
    for member in struct.members:
        expression = f"(({struct.name} *)0)->{member.name}"
        yield f"offsetof({struct.name}, {member.name}) == {member.offset}"
        yield f"sizeof({expression}) == {member.size}"
        yield is_type(expression, member)


def signature(function, name):
    parameters = ", ".join(spelled(part.type, part.name) for part in function.parameters) or "void"
    return f"{function.returns.c} {name}({parameters})"


def program(found):
    """The C file. A second declaration of a function or a typedef must agree with the first."""
    lines = [f"#include <{header.name}>" for header in found.headers]
    conditions = [f"{value.name} == {value.value}" for value in found.constants]
    conditions += [f"{value.name} == {value.value}" for enum in found.enums for value in enum.values]
    conditions += [condition for struct in found.structs for condition in of_struct(struct)]
    lines += [f'_Static_assert({condition}, "");' for condition in conditions]
    lines += [f"typedef {alias.type.c} {alias.name};" for alias in found.aliases]
    lines += [f"typedef struct {opaque.name} {opaque.name};" for opaque in found.opaque]
    lines += [f"typedef {signature(callback, f'(*{callback.name})')};" for callback in found.callbacks]
    lines += [f"{signature(function, function.name)};" for function in found.functions]
    return "\n".join(lines) + "\n"


def declared(header):
    """What a header declares: functions, types, members of structs and enumerators, and constants."""
    text = re.sub(r"/\*.*?\*/", "", (describe.INCLUDE / header).read_text(), flags=re.DOTALL)
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \w+;", text, re.DOTALL):
        yield from (f"{name}.{member}" for member in re.findall(r"(\w+)(?:\[\w+\])?;", body))
    for name, body in re.findall(r"\benum (\w+) \{(.*?)\};", text, re.DOTALL):
        yield from (f"{name}.{value}" for value in re.findall(r"\b(\w+) =", body))
    yield from re.findall(r"SLUICE_API [^;(]*?\b(sluice_\w+)\(", text)
    yield from re.findall(r"^typedef [^;{]*?\b(sluice_\w+)(?:;|\)\()", text, re.MULTILINE)
    yield from re.findall(r"^#define (SLUICE_\w+) -?\d", text, re.MULTILINE)


def described(found):
    for struct in found.structs:
        yield from (f"{struct.name}.{member.name}" for member in struct.members)
    for enum in found.enums:
        yield from (f"{enum.name}.{value.name}" for value in enum.values)
    for section in (found.functions, found.aliases, found.opaque, found.callbacks, found.constants):
        yield from (item.name for item in section)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = abi.load()
    names = {name for header in found.headers for name in declared(header.name)}
    if differing := names ^ set(described(found)):
        sys.exit(f"only in the headers, or only in {abi.FILE.name}: {sorted(differing)}")
    with tempfile.TemporaryDirectory() as work:
        source = pathlib.Path(work) / "description.c"
        source.write_text(program(found))
        if subprocess.run([sys.argv[1], "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{describe.INCLUDE}",
                           "-fsyntax-only", source]).returncode:
            sys.exit(f"{abi.FILE.name} is not what the compiler says")
        print(f"{len(names)} names, {source.read_text().count('_Static_assert')} assertions")


if __name__ == "__main__":
    main()
