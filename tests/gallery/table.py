#!/usr/bin/python3
"""The bug gallery as a Markdown table.

usage: table.py [--right] FOLDER-OF-PROGRAMS
--right: the right programs instead of those with a mistake.
"""
import pathlib
import sys

right = sys.argv[1] == "--right"
print("| program | why it is right |" if right else "| program | the mistake | report | severity | at |")
print("| --- | --- |" if right else "| --- | --- | --- | --- | --- |")
for path in sorted(pathlib.Path(sys.argv[-1]).glob("*.s")):
    head = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("// "):
            break
        head.append(line[3:])
    facts = dict(line.split(": ", 1) for line in head[1:])
    if (facts["report"] == "none") != right:
        continue
    if right:
        print(f"| `{path.stem}` | {head[0]} |")
        continue
    report = f"`{facts['report']}`"
    if facts["report"] == "hazard":
        report += f", {facts.get('level', 'required')}"
    severity = facts.get("severity", "error")
    print(f"| `{path.stem}` | {head[0]} | {report} | {severity} | `{facts['at']}` |")
