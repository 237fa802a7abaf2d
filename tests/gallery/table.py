#!/usr/bin/python3
"""The bug gallery as a Markdown table.

usage: table.py FOLDER-OF-PROGRAMS
"""
import pathlib
import sys

print("| program | the mistake | report | severity | at |")
print("| --- | --- | --- | --- | --- |")
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.s")):
    head = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("// "):
            break
        head.append(line[3:])
    facts = dict(line.split(": ", 1) for line in head[1:])
    report = f"`{facts['report']}`"
    if facts["report"] == "hazard":
        report += f", {facts.get('level', 'required')}"
    severity = facts.get("severity", "error")
    print(f"| `{path.stem}` | {head[0]} | {report} | {severity} | `{facts['at']}` |")
