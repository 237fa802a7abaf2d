#!/usr/bin/python3
"""Renders the pages and the reference of the headers as a web site, with Doxygen.

usage: render.py DOXYGEN DOXYFILE INDEX LAYOUT
INDEX is docs/README.md: its sections and their tables become the groups of the site's navigation, in LAYOUT, which DOXYFILE
names. Fails on any warning of Doxygen.
"""
import pathlib
import re
import subprocess
import sys
from xml.sax.saxutils import quoteattr

SECTION = re.compile(r"^## (.+)\n\n((?:\|.*\n)+)", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+\.md)\)")
IDENTIFIER = re.compile(r"# .*\{#(\w+)\}")

# What Doxygen makes of the headers.
HEADERS = """\
<tab type="classes" title="Structs and classes">
  <tab type="classlist" title="List"/>
  <tab type="classmembers" title="Members"/>
</tab>
<tab type="files" title="Headers">
  <tab type="filelist" title="List"/>
  <tab type="globals" title="Functions and constants"/>
</tab>
"""


def tab_of(title, page):
    """The entry of a page: Doxygen knows it by the identifier in its heading."""
    found = IDENTIFIER.match(page.read_text(encoding="utf-8"))
    if not found:
        sys.exit(f"{page}: the heading has no identifier, as in: # Title {{#title}}")
    return f'<tab type="user" url="@ref {found[1]}" title={quoteattr(title)}/>\n'


def layout_of(index):
    """The text of Doxygen's layout file, whose only part is the navigation: Doxygen has defaults for the others."""
    groups = {title: [(name, index.parent / page) for row in table.splitlines()
                      for name, page in LINK.findall(row.split("|")[1])]
              for title, table in SECTION.findall(index.read_text(encoding="utf-8"))}
    if "Reference" not in groups or not all(groups.values()):
        sys.exit(f"{index}: expected sections with tables of pages, and one of them to be 'Reference', not {list(groups)}")
    text = tab_of("Documentation", index)
    for title, pages in groups.items():
        tabs = "".join(tab_of(name, page) for name, page in pages) + (HEADERS if title == "Reference" else "")
        text += f'<tab type="usergroup" url="[none]" title={quoteattr(title)}>\n{tabs}</tab>\n'
    return f'<doxygenlayout version="1.0">\n<navindex>\n{text}</navindex>\n</doxygenlayout>\n'


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    doxygen, doxyfile, index, layout = sys.argv[1:]
    layout = pathlib.Path(layout)
    layout.write_text(layout_of(pathlib.Path(index)), encoding="utf-8")
    # A page that is gone must not satisfy the links to it.
    for page in layout.parent.glob("html/*.html"):
        page.unlink()
    sys.exit(subprocess.run([doxygen, doxyfile]).returncode)


if __name__ == "__main__":
    main()
