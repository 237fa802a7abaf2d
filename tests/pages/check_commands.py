#!/usr/bin/python3
"""Checks that the project's programs support the commands that pages show.

usage: check_commands.py ROOT NAME=PROGRAM...
It checks every line of code, and all code between backticks, that begins with the name of a program: the program's --help
lists the subcommand, and the subcommand's help lists each option that begins with two dashes. If a program is an argument of
another one, the arguments after it belong to it. A script of the tree that is shown with arguments can be run as shown.
"""
import os
import pathlib
import re
import subprocess
import sys

import check_links

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
NOT_OURS = re.compile(r"\s(?:\./\S+|--)\s.*")
SCRIPT = re.compile(r"(?:bindings|docs|tests)/[\w./-]+\.(?:py|sh)")
# Programs whose first argument is a subcommand.
WITH_SUBCOMMANDS = {"sluice", "sluice-emu", "./dev"}


def printed(*command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


class Programs:
    def __init__(self, paths):
        self.paths = paths
        self.texts = {}

    def help(self, name, subcommand=None):
        """The output of --help, or the output instead of it: a program without --help shows its usage."""
        key = name, subcommand
        if key not in self.texts:
            command = [self.paths[name], *([subcommand] if subcommand else [])]
            self.texts[key] = printed(*command, "--help")
            # LLVM's way to hide developers' options.
            if "--help-hidden" in self.texts[key]:
                self.texts[key] = printed(*command, "--help-hidden")
        return self.texts[key]


def commands_of(text):
    """(line number, command) of all code."""
    fenced = False
    joined = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
            continue
        if fenced or line.startswith("    ") or joined:
            code = (joined or "") + line.strip()
            joined = code[:-1] if code.endswith("\\") else None
            if not joined:
                yield number, re.sub(r"^\$ ", "", code)
        else:
            for code in check_links.CODE.findall(line):
                yield number, code


def program_of(command):
    """The name of a command's program, and its arguments. `./dev demo` passes its arguments on."""
    name, _, rest = re.sub(r"^\./dev demo\b", "jargon_lm", command).partition(" ")
    return name if name == "./dev" else pathlib.PurePath(name).name, rest


def wrong_with(command, programs):
    """The error in a command of the project; None if it is correct, or if it is not of the project."""
    name, rest = program_of(command)
    words = [name, *rest.split()]
    if name not in programs.paths or len(words) == 1:
        return None
    subcommand = None
    if name in WITH_SUBCOMMANDS:
        if not words[1].startswith("-"):
            if not re.fullmatch(r"[a-z]+", words[1]):
                return None  # a sentence about the program
            subcommand = words[1]
            listed = re.search(rf"^\s+{subcommand}\b", programs.help(name), re.MULTILINE)
            if not listed:
                return f"{name} has no command '{subcommand}'"
    text = programs.help(name, subcommand if name != "./dev" else None)
    ours = NOT_OURS.sub("", " " + rest)
    for option in OPTION.findall(ours):
        if not re.search(rf"(?<![\w-]){option}(?![\w-])", text):
            return f"{name}{' ' + subcommand if subcommand else ''} has no option {option}"
    return None


def wrong_with_script(command, root):
    """The error in a command that runs a script of the tree; None if it is correct, or not such a command."""
    name, _, rest = command.partition(" ")
    if not SCRIPT.fullmatch(name) or not rest or os.access(root / name, os.X_OK):
        return None
    return f"{name} cannot be run"


def check(root, programs):
    problems, checked = [], set()
    for path in check_links.pages_of(root):
        for line, command in commands_of(path.read_text(encoding="utf-8")):
            problem = wrong_with(command, programs) or wrong_with_script(command, root)
            if problem:
                problems.append(f"{path.relative_to(root)}:{line}: {problem}: {command}")
            checked.add(program_of(command)[0])
    for name in programs.paths:
        if name not in checked:
            problems.append(f"no page shows a command of {name}: the check would be empty")
    return problems


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    paths = dict(argument.split("=", 1) for argument in sys.argv[2:])
    problems = check(pathlib.Path(sys.argv[1]).resolve(), Programs(paths))
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
