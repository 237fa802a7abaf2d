"""Describes the C interface: the public headers, through Doxygen's XML, as the data of bindings/abi.json."""
import json
import pathlib
import re
import subprocess
import tempfile
import xml.etree.ElementTree as xml

import comments
from abi import ROOT

INCLUDE = ROOT / "include"
# What is described begins with those of these that exist; headers that they include come before them.
HEADERS = ["sluice/sluice.h"]
DOXYFILE = """\
INPUT                = {inputs}
OUTPUT_DIRECTORY     = {output}
STRIP_FROM_PATH      = {include}
FULL_PATH_NAMES      = YES
OPTIMIZE_OUTPUT_FOR_C = YES
TYPEDEF_HIDES_STRUCT = YES
AUTOLINK_SUPPORT     = NO
MACRO_EXPANSION      = YES
EXPAND_ONLY_PREDEF   = YES
PREDEFINED           = SLUICE_API= SLUICE_NOEXCEPT=
EXCLUDE_SYMBOLS      = SLUICE_API SLUICE_NOEXCEPT
QUIET                = YES
WARN_AS_ERROR        = FAIL_ON_WARNINGS
GENERATE_HTML        = NO
GENERATE_LATEX       = NO
GENERATE_XML         = YES
XML_PROGRAMLISTING   = NO
"""
# Sizes on LP64 systems, where every type's alignment is its size.
NUMBERS = {"char": 1, "float": 4, "double": 8, "size_t": 8,
           **{f"{sign}int{bits}_t": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)}}
POINTER = 8
WIDTH = 120


def headers(include=INCLUDE):
    """The headers, each after those that it includes."""
    found = []

    def add(name):
        if name not in found:
            for included in re.findall(r"^#include <(sluice/\w+\.h)>", (include / name).read_text(), re.MULTILINE):
                add(included)
            found.append(name)

    for name in HEADERS:
        if (include / name).exists():
            add(name)
    return found


def run_doxygen(doxygen, include, names):
    """Doxygen's elements for the files and the structs."""
    with tempfile.TemporaryDirectory() as work:
        file = pathlib.Path(work) / "Doxyfile"
        file.write_text(DOXYFILE.format(inputs=" ".join(str(include / name) for name in names), output=work,
                                        include=include))
        if subprocess.run([doxygen, file]).returncode:
            raise SystemExit("describe.py: Doxygen has warnings about the headers")
        found = [*pathlib.Path(work).glob("xml/*_8h.xml"), *pathlib.Path(work).glob("xml/struct*.xml")]
        return [xml.parse(part).getroot().find("compounddef") for part in found]


def text_of(node):
    return "".join(node.itertext()).strip()


class Description:
    """Reads what the headers declare, in their order, so that each type is known before it is used."""

    def __init__(self, names, compounds):
        self.names = names
        self.kinds = {"void": "void", **{name: "number" for name in NUMBERS}}
        self.layouts = {name: (size, size) for name, size in NUMBERS.items()}
        self.files = {part.find("location").get("file"): part for part in compounds if part.get("kind") == "file"}
        nodes = [part for part in compounds if part.get("kind") == "struct"]
        nodes += [node for part in self.files.values() for node in part.iter("memberdef")]
        nodes.sort(key=self.place)
        self.nodes = nodes
        self.enum_names = {self.name(node) for node in self.nodes if node.get("kind") == "enum"}

    def place(self, node):
        location = node.find("location")
        return self.names.index(location.get("file")), int(location.get("line"))

    @staticmethod
    def name(node):
        return node.findtext("name") or node.findtext("compoundname")

    def type(self, text, array=""):
        """A type without a name, such as `const void *const *`, and `[4]` if it is an array of that."""
        tokens = re.findall(r"\w+|\*", text)
        base = next(token for token in tokens if token not in ("const", "*"))
        if base not in self.kinds:
            raise SystemExit(f"describe.py does not know the type {base}")
        first = tokens.index("*") if "*" in tokens else len(tokens)
        pointers, const = [], "const" in tokens[:first]
        for token in tokens[first:]:
            if token == "*":
                pointers.append("const" if const else "mutable")
                const = False
            else:
                const = True
        found = {"base": base, "kind": self.kinds[base]}
        if pointers:
            found["pointers"] = pointers
        if array:
            found["array"] = int(re.fullmatch(r"\[(\d+)\]", array)[1])
        return found

    def layout(self, type_):
        """(size, alignment)"""
        if type_.get("pointers") or type_["kind"] == "callback":
            size = align = POINTER
        else:
            size, align = self.layouts[type_["base"]]
        return size * type_.get("array", 1), align

    def head(self, node):
        return {"name": self.name(node), "header": node.find("location").get("file")}

    def constant(self, node):
        return {**self.head(node), "value": number(node.findtext("initializer")), "doc": comments.doc(node)}

    def enum(self, node):
        doc = comments.doc(node)
        values = [{"name": part.findtext("name"), "value": number(part.findtext("initializer").removeprefix("=")),
                   "doc": comments.doc(part)} for part in node.findall("enumvalue")]
        return {**self.head(node), "bits": doc[0].startswith("Bits of "), "doc": doc, "values": values}

    def alias(self, node):
        type_ = self.type(text_of(node.find("type")))
        self.kinds[self.name(node)] = "alias"
        self.layouts[self.name(node)] = self.layout(type_)
        return {**self.head(node), "type": type_, "doc": comments.doc(node)}

    def opaque(self, node):
        self.kinds[self.name(node)] = "opaque"
        return {**self.head(node), "doc": comments.doc(node)}

    def callback(self, node):
        self.kinds[self.name(node)] = "callback"
        arguments = re.fullmatch(r"\)\s*\((.*)\)", node.findtext("argsstring"))[1]
        parameters = [re.fullmatch(r"(.*?)(\w+)", part.strip()).groups() for part in arguments.split(",")]
        return {**self.head(node), "returns": self.type(text_of(node.find("type")).removesuffix("(*")),
                "doc": comments.doc(node),
                "parameters": [{"name": name, "type": self.type(type_)} for type_, name in parameters]}

    def struct(self, node):
        offset, largest, members = 0, 1, []
        for part in node.iter("memberdef"):
            type_ = self.type(text_of(part.find("type")), part.findtext("argsstring"))
            size, align = self.layout(type_)
            offset, largest = -(-offset // align) * align, max(largest, align)
            member = {"name": part.findtext("name"), "type": type_, "offset": offset, "size": size}
            doc = comments.doc(part)
            word = re.match(r"\w+", doc[0])
            if word and word[0] in self.enum_names:
                member["enum"] = word[0]
            members.append({**member, "doc": doc})
            offset += size
        size = -(-offset // largest) * largest
        self.kinds[self.name(node)] = "struct"
        self.layouts[self.name(node)] = size, largest
        return {**self.head(node), "size": size, "align": largest, "doc": comments.doc(node), "members": members}

    def function(self, node):
        docs, parameters = comments.parameter_docs(node), []
        for part in node.findall("param"):
            if part.find("declname") is None:  # (void)
                continue
            name = part.findtext("declname")
            parameters.append({"name": name, "type": self.type(text_of(part.find("type")))})
            if name in docs:
                parameters[-1]["doc"] = docs[name]
        found = {**self.head(node), "returns": self.type(text_of(node.find("type"))), "doc": comments.doc(node)}
        if returns_doc := comments.returns_doc(node):
            found["returns_doc"] = returns_doc
        return {**found, "parameters": parameters}

    def sort_of(self, node):
        """(section of the description, the method for it)"""
        if node.get("kind") != "typedef":
            return {"define": ("constants", self.constant), "enum": ("enums", self.enum),
                    "struct": ("structs", self.struct), "function": ("functions", self.function)}[node.get("kind")]
        if node.findtext("type").endswith("(*"):
            return "callbacks", self.callback
        if text_of(node.find("type")).startswith("struct "):
            return "opaque", self.opaque
        return "aliases", self.alias

    def data(self):
        found = {"headers": [{"name": name, "doc": comments.doc(self.files[name])} for name in self.names]}
        found |= {name: [] for name in ("constants", "enums", "aliases", "opaque", "callbacks", "structs", "functions")}
        for node in self.nodes:
            section, describe = self.sort_of(node)
            found[section].append(describe(node))
        return found


def number(text):
    """The value of `1`, `-1`, `1u` or `1 << 30`."""
    found = re.fullmatch(r"\s*(-?\d+)u?(?:\s*<<\s*(\d+))?\s*", text)
    if not found:
        raise SystemExit(f"describe.py cannot evaluate '{text}'")
    return int(found[1]) << int(found[2] or 0)


def describe(doxygen="doxygen", include=INCLUDE):
    names = headers(include)
    return Description(names, run_doxygen(doxygen, include, names)).data()


def to_json(value, indent=0):
    """JSON with each value on one line if it fits, so that a change of a member is a change of a line."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or len(line) + indent < WIDTH:
        return line
    space = " " * (indent + 1)
    if isinstance(value, list):
        return "[\n" + ",\n".join(space + to_json(part, indent + 1) for part in value) + "\n" + " " * indent + "]"
    parts = [f"{space}{json.dumps(name)}: {to_json(part, indent + 1)}" for name, part in value.items()]
    return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"
