"""The C interface as a description of data, for the writers of the bindings: load() reads bindings/abi.json.

`describe.py` writes that file from the headers. Everything is in the order of the headers, and each `doc` is the text of a
comment: paragraphs are single lines with blank lines between them, list items begin with "- ", code is indented by four
spaces, and tables have a line for each row. `wrapped` breaks its lines.
"""
from __future__ import annotations

import dataclasses
import json
import pathlib
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = ROOT / "bindings/abi.json"


@dataclasses.dataclass(frozen=True)
class Type:
    """A C type: `base`, pointers to it, and an array of these.

    `pointers` has an element for each `*`, from left to right: whether what it points to is const. So `const void *const *` is
    ("void", (True, True)), and `sluice_context **` is ("sluice_context", (False, False)).
    """
    base: str
    kind: str  # of the base: "void", "number", "alias", "struct", "opaque" or "callback", which is a pointer already
    pointers: tuple[bool, ...] = ()
    array: int = 0  # elements; 0: not an array

    @property
    def depth(self) -> int:
        return len(self.pointers)

    @property
    def c(self) -> str:
        """As in C, without the length of an array: `const void *const *`."""
        text = f"const {self.base}" if self.pointers and self.pointers[0] else self.base
        for index in range(self.depth):
            text += (" " if index == 0 else "") + "*"
            text += "const " if index + 1 < self.depth and self.pointers[index + 1] else ""
        return text


@dataclasses.dataclass(frozen=True)
class Value:
    """A constant, or an enumerator."""
    name: str
    value: int
    doc: str


@dataclasses.dataclass(frozen=True)
class Constant(Value):
    header: str


@dataclasses.dataclass(frozen=True)
class Enum:
    """Types of members are numbers: an enum gives names to values of such a number, or to its bits."""
    name: str
    header: str
    bits: bool
    values: tuple[Value, ...]
    doc: str


@dataclasses.dataclass(frozen=True)
class Opaque:
    """A struct that is only used through pointers."""
    name: str
    header: str
    doc: str


@dataclasses.dataclass(frozen=True)
class Alias:
    """A name for a number type."""
    name: str
    header: str
    type: Type
    doc: str


@dataclasses.dataclass(frozen=True)
class Parameter:
    name: str
    type: Type
    doc: str  # often empty


@dataclasses.dataclass(frozen=True)
class Function:
    """A function, or the type of a callback."""
    name: str
    header: str
    returns: Type
    parameters: tuple[Parameter, ...]
    doc: str
    returns_doc: str  # often empty


@dataclasses.dataclass(frozen=True)
class Member:
    name: str
    type: Type
    offset: int
    size: int
    enum: str  # the enum whose values or bits it holds, or empty
    doc: str


@dataclasses.dataclass(frozen=True)
class Struct:
    name: str
    header: str
    size: int
    align: int
    members: tuple[Member, ...]
    doc: str

    @property
    def is_sized(self) -> bool:
        """Whether it begins with struct_size, so that it can grow."""
        return self.members[0].name == "struct_size"


@dataclasses.dataclass(frozen=True)
class Header:
    """The brief text of a header."""
    name: str
    doc: str


@dataclasses.dataclass(frozen=True)
class Abi:
    headers: tuple[Header, ...]
    constants: tuple[Constant, ...]
    enums: tuple[Enum, ...]
    aliases: tuple[Alias, ...]
    opaque: tuple[Opaque, ...]
    callbacks: tuple[Function, ...]
    structs: tuple[Struct, ...]
    functions: tuple[Function, ...]

    def find(self, name: str):
        """The constant, enum, alias, opaque type, callback, struct or function of that name."""
        for field in dataclasses.fields(self)[1:]:
            for item in getattr(self, field.name):
                if item.name == name:
                    return item
        raise KeyError(name)

    def has(self, name: str) -> bool:
        try:
            return self.find(name) is not None
        except KeyError:
            return False


def _text(lines):
    return "\n".join(lines)


def _type(data):
    return Type(data["base"], data["kind"], tuple(part == "const" for part in data.get("pointers", [])),
                data.get("array", 0))


def _value(data):
    return Value(data["name"], data["value"], _text(data["doc"]))


def _function(data):
    parameters = tuple(Parameter(part["name"], _type(part["type"]), _text(part.get("doc", [])))
                       for part in data["parameters"])
    return Function(data["name"], data["header"], _type(data["returns"]), parameters, _text(data["doc"]),
                    _text(data.get("returns_doc", [])))


def _struct(data):
    members = tuple(Member(part["name"], _type(part["type"]), part["offset"], part["size"], part.get("enum", ""),
                           _text(part["doc"])) for part in data["members"])
    return Struct(data["name"], data["header"], data["size"], data["align"], members, _text(data["doc"]))


def from_data(data) -> Abi:
    """What abi.json has, as objects."""
    return Abi(
        headers=tuple(Header(part["name"], _text(part["doc"])) for part in data["headers"]),
        constants=tuple(Constant(part["name"], part["value"], _text(part["doc"]), part["header"])
                        for part in data["constants"]),
        enums=tuple(Enum(part["name"], part["header"], part["bits"], tuple(map(_value, part["values"])),
                         _text(part["doc"])) for part in data["enums"]),
        aliases=tuple(Alias(part["name"], part["header"], _type(part["type"]), _text(part["doc"]))
                      for part in data["aliases"]),
        opaque=tuple(Opaque(part["name"], part["header"], _text(part["doc"])) for part in data["opaque"]),
        callbacks=tuple(map(_function, data["callbacks"])),
        structs=tuple(map(_struct, data["structs"])),
        functions=tuple(map(_function, data["functions"])))


def load(file=FILE) -> Abi:
    return from_data(json.loads(pathlib.Path(file).read_text(encoding="utf-8")))


def wrapped(doc: str, width: int) -> list[str]:
    """The lines of a comment, none longer than `width`, except in code and tables."""
    lines = []
    for line in doc.splitlines():
        if not line or line.startswith(("    ", "|")):
            lines.append(line)
        else:
            lines += textwrap.wrap(line, width, subsequent_indent="  " if line.startswith("- ") else "",
                                   break_long_words=False, break_on_hyphens=False)
    return lines
