#!/usr/bin/python3
"""Writes the library's headers as another release might have them.

usage: make_header.py newer|older HEADERS OUT

newer: every struct with a struct_size has a member `appended` at its end.
older: some structs lack their last member.
"""
import pathlib
import re
import sys

OLDER = {"sluice_kv": "page_count", "sluice_attention_args": "o_scale", "sluice_append_args": "q",
         "sluice_merge_args": "o_scale"}


def newer(text):
    return re.subn(r"(typedef struct \w+ \{\n  uint32_t struct_size;[^}]*)\} (sluice_\w+);",
                   r"\1  uint64_t appended;\n} \2;", text)


def older(text):
    count = 0
    for struct, member in OLDER.items():
        text, changes = re.subn(rf"\n[^\n]*\W{member};[^\n]*\n\}} {struct};", rf"\n}} {struct};", text)
        count += changes
    return text, count


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("newer", "older"):
        sys.exit(__doc__)
    change = newer if sys.argv[1] == "newer" else older
    sources = {path.name: path.read_text() for path in pathlib.Path(sys.argv[2]).glob("*.h")}
    changed = {name: change(text) for name, text in sources.items()}
    made = sum(count for _, count in changed.values())
    sized = sum(text.count("\n  uint32_t struct_size;") for text in sources.values())
    expected = sized if change is newer else len(OLDER)
    if made != expected:
        sys.exit(f"{sys.argv[2]}: {made} structs changed, not {expected}")
    for name, (text, _) in changed.items():
        pathlib.Path(sys.argv[3], name).write_text(text)


if __name__ == "__main__":
    main()
