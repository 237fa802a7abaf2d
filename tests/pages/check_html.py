#!/usr/bin/python3
"""Checks that links and pictures in Doxygen's pages lead to files, and to anchors in them.

usage: check_html.py FOLDER
Web addresses are not checked.
"""
import html
import pathlib
import re
import sys
import urllib.parse

LINK = re.compile(r'\b(?:src|href)="([^"]*)"')
PLACE = re.compile(r'\b(?:id|name)="([^"]*)"')


def problems(folder):
    texts = {path.resolve(): path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob("*.html"))}
    found, pictures = set(), 0
    places = {path: set(PLACE.findall(text)) for path, text in texts.items()}
    for path, text in texts.items():
        for link in LINK.findall(text):
            link = html.unescape(link)
            if re.match(r"[a-z]+:", link):
                continue
            file, _, place = map(urllib.parse.unquote, link.partition("#"))
            target = (path.parent / file).resolve() if file else path
            pictures += file.endswith(".svg") and "doxygen" not in file
            if not target.exists():
                found.add(f"{path.name}: {file} does not exist")
            elif place and target in places and place not in places[target]:
                found.add(f"{path.name}: {target.name} has no place '{place}'")
    if pictures < 5:
        found.add(f"{pictures} pictures in all pages: the check would prove little")
    return sorted(found)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wrong = problems(pathlib.Path(sys.argv[1]))
    if wrong:
        sys.exit("\n".join(wrong))
