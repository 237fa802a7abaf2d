#!/usr/bin/python3
"""Runs the session that a page shows, and compares with the output that it shows.

usage: session_test.py PROGRAM CLANG PAGE
A line that ends with "`NAME`:" before a block of code makes the file NAME. In a block of "console", a line after "$ " is
a command, and the lines after it are its output on stdout and stderr; "..." matches any text.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM, CLANG, PAGE = (pathlib.Path(argument).absolute() for argument in sys.argv[1:4])
FILE = re.compile(r"`(\S+)`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MARK = "--- the next command ---"


def commands_of(page):
    """[(command, its expected output)]"""
    commands = []
    for block in BLOCK.findall(page):
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            commands.append((command, expected))
    return commands


def matches(expected, output):
    pattern = ".*?".join(re.escape(part) for part in expected.split("..."))
    return re.fullmatch(pattern, output, re.DOTALL) is not None


def main():
    page = PAGE.read_text(encoding="utf-8")
    commands = commands_of(page)
    if not commands or not FILE.search(page):
        sys.exit(f"{PAGE}: no session found: the test would prove nothing")
    with tempfile.TemporaryDirectory() as folder:
        for name, content in FILE.findall(page):
            (pathlib.Path(folder) / name).write_text(content)
        script = "".join(f"{command}\nstatus=$?; echo '{MARK}'; (exit $status)\n" for command, _ in commands)
        # Only the sanitizers' settings are passed on from the environment.
        kept = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}
        path = f"{PROGRAM.parent}:{CLANG.parent}:/usr/bin:/bin"
        result = subprocess.run(["/bin/bash", "-c", script], cwd=folder, env={"PATH": path} | kept, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    *outputs, rest = result.stdout.split(MARK + "\n")
    if len(outputs) != len(commands):
        sys.exit(f"the shell ended after {len(outputs)} of {len(commands)} commands: {rest}")
    for (command, expected), output in zip(commands, outputs):
        if not matches(expected, output):
            sys.exit(f"$ {command}\n--- the page says\n{expected}--- it wrote\n{output}")
    print(f"{len(commands)} commands did what {PAGE.name} says")


if __name__ == "__main__":
    main()
