#!/usr/bin/python3
"""The bug gallery as a Markdown table.

usage: table.py FOLDER-OF-PROGRAMS
"""
import pathlib
import sys

print("| program | the mistake | report | at |")
print("| --- | --- | --- | --- |")
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.s")):
    head = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("// "):
            break
        head.append(line[3:])
    facts = dict(line.split(": ", 1) for line in head[1:])
    print(f"| `{path.stem}` | {head[0]} | `{facts['report']}` | `{facts['at']}` |")
