"""The syntax tree of a C++ file, as clang prints it: nodes with their kind, their place and their children.

Clang omits the parts of a location that it has printed before (the file), and prints two locations for the result of a
macro. Here every node has either the range of offsets in one file that its text takes, or none: results of macros have
none.
"""
import json
import shutil
import subprocess
import sys

sys.setrecursionlimit(100000)


class Node:
    """`begin` and `end` are offsets in `file`, or None if the text is not in the file."""

    def __init__(self, data, file, begin, end, children):
        self.data, self.kind = data, data.get("kind")
        self.file, self.begin, self.end, self.children = file, begin, end, children

    def has_text(self):
        return self.begin is not None and self.begin < self.end


class Reader:
    def __init__(self):
        self.file = None
        self.texts = {}

    def text_of(self, file):
        if file not in self.texts:
            with open(file, "rb") as stream:
                self.texts[file] = stream.read()
        return self.texts[file]

    def place(self, data):
        """(file, offset, bytes of the token) of a place, or None."""
        if "expansionLoc" in data:
            # In the order in which they were printed, because repeated files are omitted.
            places = {key: self.place(data[key]) for key in data if key in ("spellingLoc", "expansionLoc")}
            at = places["expansionLoc"]
            # A macro without arguments is one token. The text of other macros continues after their name.
            if at is None or self.text_of(at[0])[at[1] + at[2]:].lstrip()[:1] == b"(":
                return None
            return at + (True,)
        if "file" in data:
            self.file = data["file"]
        if "offset" not in data:
            return None
        return self.file, data["offset"], data.get("tokLen", 0)

    def node(self, data):
        file = begin = end = None
        children = []
        for key, value in data.items():
            if key == "loc":
                self.place(value)
            elif key == "range":
                first, last = self.place(value.get("begin", {})), self.place(value.get("end", {}))
                in_one_macro = first and last and len(first) == 4 and first[:2] == last[:2]
                if first and last and first[0] == last[0] and not in_one_macro:
                    file, begin, end = first[0], first[1], last[1] + last[2]
            elif key == "inner":
                children = [self.node(child) for child in value if child]
        return Node(data, file, begin, end, children)


def documents(text):
    decoder, at = json.JSONDecoder(), 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text):
            return
        value, at = decoder.raw_decode(text, at)
        yield value


def find_clang():
    for name in ("clang++-22", "clang++"):
        if shutil.which(name):
            return name
    sys.exit("mutate.py: clang++-22 or clang++ is needed to parse C++; Debian's package is clang-22")


def read_trees(source, flags):
    """The declarations of a project's file and of its includes. Some may occur twice."""
    nodes, reader = [], Reader()
    # All of a file would be mostly the standard library.
    for names in ("sluice", "(anonymous"):
        command = [find_clang(), *flags, "-w", "-fsyntax-only", "-Xclang", "-ast-dump=json", "-Xclang",
                   f"-ast-dump-filter={names}", source]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"mutate.py: clang cannot read {source}:\n{result.stderr}")
        for document in documents(result.stdout):
            reader.file = None
            nodes.append(reader.node(document))
    return nodes
