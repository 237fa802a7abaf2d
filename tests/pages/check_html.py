#!/usr/bin/python3
"""Checks the pages that Doxygen made of Markdown.

usage: check_html.py FOLDER
Links, pictures and the entries of the navigation lead to files, and to anchors in them; web addresses are not checked.
No text has a backtick: it would be one end of a code span that Doxygen did not see.
"""
import html
import pathlib
import re
import sys
import urllib.parse

LINK = re.compile(r'\b(?:src|href)="([^"]*)"')
PLACE = re.compile(r'\b(?:id|name)="([^"]*)"')
# An entry of the navigation in navtreedata.js: [ "title", "page.html#place", ... Lists of members are in files of their own, in
# which Doxygen 1.9.4 names the header's page for what is on the namespace's.
ENTRY = re.compile(r'\[ "[^"\n]*", "([^"\n]+\.html[^"\n]*)"')
# Code keeps its backticks, and tags are not text.
CODE = re.compile(r'<!--.*?-->|<(code|pre|script|style)\b.*?</\1>|<div class="fragment">.*?</div><!-- fragment -->', re.DOTALL)
TAG = re.compile(r"<[^>]*>")


def problems(folder):
    def texts_of(pattern):
        return {path.resolve(): path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob(pattern))}

    texts = texts_of("*.html")
    links = {path: LINK.findall(text) for path, text in texts.items()}
    links |= {path: ENTRY.findall(text) for path, text in texts_of("navtreedata.js").items()}
    found, pictures = set(), 0
    places = {path: set(PLACE.findall(text)) for path, text in texts.items()}
    for path, text in texts.items():
        if "`" in TAG.sub("", CODE.sub("", text)) and not path.name.endswith("_source.html"):
            found.add(f"{path.name}: a code span is not recognised")
    for path in links:
        for link in links[path]:
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
    if sum(len(links[path]) for path in links if path.suffix == ".js") < 5:
        found.add("the navigation has no entries: the check would prove little")
    if pictures < 5:
        found.add(f"{pictures} pictures in all pages: the check would prove little")
    return sorted(found)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wrong = problems(pathlib.Path(sys.argv[1]))
    if wrong:
        sys.exit("\n".join(wrong))
