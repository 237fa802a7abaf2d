#!/usr/bin/python3
"""Checks that calls.txt has every recorded function, every member of their structs, and every flag.

What no call gives, no binding is tested for: a new member needs a number in one of the calls.
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "generate"))

import abi  # noqa: E402
import recorder  # noqa: E402


class Recording:
    """What a recording gives: functions, members and words."""

    def __init__(self, interface, text):
        self.interface, self.functions, self.members, self.words = interface, set(), set(), set()
        for line in text.splitlines():
            if line.startswith("  "):
                self.line(line)
            elif not line.startswith("call "):
                self.function = interface.find(line)
                self.functions.add(line)

    def line(self, line):
        path, given = line.strip().split(" = ")
        self.words.update(given.replace("|", " ").split())
        first, *names = path.split(".")
        of = next(part.type for part in self.function.parameters if part.name == first)
        for name in names:
            struct = self.interface.find(of.base)
            member = next(member for member in struct.members if member.name == name.split("[")[0])
            self.members.add(f"{struct.name}.{member.name}")
            of = member.type


def wanted(interface):
    """The same that there should be."""
    functions = [function for function in interface.functions if any(map(recorder.is_given, function.parameters))]
    structs = recorder.structs_of(interface, functions)
    members = {f"{struct.name}.{member.name}": recorder.enum_of(struct, member)
               for struct in structs for member in struct.members if member.name not in ("struct_size", "reserved")}
    flags = {value.name for enum in interface.enums if enum.bits and enum.name in members.values() for value in enum.values}
    return {function.name for function in functions}, set(members), flags


def main():
    interface = abi.load()
    recording = Recording(interface, (HERE / "calls.txt").read_text(encoding="utf-8"))
    functions, members, flags = wanted(interface)
    missing = sorted((functions - recording.functions) | (members - recording.members) | (flags - recording.words))
    if len(functions) < 10 or len(members) < 100 or len(flags) < 10:
        sys.exit(f"only {len(functions)} functions, {len(members)} members and {len(flags)} flags were found")
    if missing:
        sys.exit(f"no call in calls.txt gives {', '.join(missing)}")


if __name__ == "__main__":
    main()
