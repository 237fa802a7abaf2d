"""Writes what bindings/go mirrors of the C interface: constants, structs, and their conversion to and from C.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import re
import textwrap

FOLDER = "bindings/go"

# Go names that do not follow from C's.
TYPES = {
    "sluice_status_code": "Status", "sluice_attention_args": "Args", "sluice_append_args": "Append",
    "sluice_copy_args": "Copy", "sluice_gather_args": "Gather", "sluice_merge_args": "Merge",
}
# Structs that calls fill for the program.
ANSWERS = ["sluice_build", "sluice_device_info", "sluice_support", "sluice_kernel_info", "sluice_plan_info",
           "sluice_counters", "sluice_trace_record"]
# Structs that the package converts by hand.
BY_HAND = ["sluice_error", "sluice_context_desc"]
# Enums whose numbers go into members of several types.
UNTYPED = ["sluice_pack", "sluice_special"]
# Arrays in host memory, which are slices in Go, and the members that count them. None: a count of its own.
LISTS = {
    "sluice_attention_args.keys": "key_sets", "sluice_launch.dependencies": "dependency_count",
    "sluice_parts.o_list": None, "sluice_parts.lse_list": None,
}
# Members with a type that C does not say.
MEMBERS = {
    "sluice_attention_args.scale": "*float32", "sluice_scores.bias_type": "DType",
    "sluice_format.zero_points": "bool", "sluice_copy_args.pairs_64": "bool",
    "sluice_launch.stream": "Stream", "sluice_launch.signal_event": "Event", "sluice_dependency.event": "Event",
    "sluice_dependency.stream": "Stream",
}
NUMBERS = {"int32_t": "int32", "uint32_t": "uint32", "int64_t": "int64", "uint64_t": "uint64", "float": "float32"}
UPPER = {"hip", "lse", "kv", "qk", "lds", "llvm", "id", "csr", "abi", "ok", "ln"}
MIXED = {"dtype": "DType", "log2": "Log2"}
INCLUDE = ["// #include <sluice/sluice.h>", 'import "C"', ""]
HEAD = "// Written by bindings/generate/go.py from bindings/abi.json. DO NOT EDIT.\n\npackage sluice\n\n"
WIDTH = 120


def spelled(name):
    """A name of C in Go's spelling."""
    if re.fullmatch(r"Q\d_0", name):
        return name  # ggml's spelling
    words = []
    for word in name.lower().split("_"):
        upper = word in UPPER or re.search(r"[0-9]", word)
        words.append(MIXED.get(word) or (word.upper() if upper else word.capitalize()))
    return "".join(words)


def go_type(name):
    """The Go type of an enum or a struct."""
    if name in TYPES:
        return TYPES[name]
    made = spelled(name.removeprefix("sluice_"))
    return made + "s" if made.endswith("Flag") else made


def constant(name):
    """The Go name of an enumerator."""
    return spelled(name.removeprefix("SLUICE_"))


class Comments:
    """Comments of the header with Go's names."""

    def __init__(self, abi):
        self.names = {entry.name: go_type(entry.name) for entry in [*abi.enums, *abi.structs]}
        self.members = {member.name for struct in abi.structs for member in struct.members}
        short = {}
        for value in (value for enum in abi.enums for value in enum.values):
            self.names[value.name] = constant(value.name)
            words = value.name.split("_")
            for first in range(1, len(words)):
                short.setdefault("_".join(words[first:]), set()).add(constant(value.name))
        # A comment says PER_GROUP for SLUICE_SCALE_PER_GROUP, if no other constant ends like that.
        self.names |= {word: made.pop() for word, made in short.items() if len(made) == 1 and len(word) > 1}

    def translated(self, text):
        """Go's names for C's."""
        text = re.sub(r"(sluice_\w+)::(\w+)",
                      lambda m: f"{self.names[m[1]]}.{spelled(m[2])}" if m[1] in self.names else m[0], text)
        text = re.sub(r"\b[A-Za-z]\w+\b(?!\()", lambda m: self.names.get(m[0], m[0]), text)
        text = re.sub(r"`(\w+)`", lambda m: spelled(m[1]), text)
        text = re.sub(r"\b[a-z]+(_[a-z0-9]+)+\b", lambda m: spelled(m[0]) if m[0] in self.members else m[0], text)
        text = re.sub(r"\b(u?int(?:32|64))_t\b", r"\1", text)
        return text.replace("NULL", "nil")

    def line(self, text, indent="\t"):
        """A comment above a member or a constant."""
        return textwrap.wrap(" ".join(self.translated(text).split()), WIDTH, initial_indent=f"{indent}// ",
                             subsequent_indent=f"{indent}// ", break_long_words=False, break_on_hyphens=False)

    def doc(self, name, text):
        """A comment of a declaration, as gofmt leaves it: formulas are indented, rules are one paragraph."""
        lines, paragraph = [], [f"{name}:"]

        def flush():
            lines.extend(self.line(" ".join(paragraph), "") if paragraph else [])
            paragraph.clear()

        for line in text.split("\n"):
            formula = line.startswith("    ")
            if formula or not line:
                flush()
            if not line and lines:
                lines.append("//")
            if formula:
                lines.append("//\t" + self.translated(line[4:]))
            elif line:
                paragraph.append(line.removeprefix("- "))
        flush()
        return lines


class Member:
    """A member of a struct of C that Go has too: its name and type there, and how it gets into the struct of C."""

    def __init__(self, struct, member):
        self.c = "_type" if member.name == "type" else member.name  # as cgo spells Go's keywords
        self.go = spelled(member.name)
        self.of = f"{struct.name}.{member.name}"
        self.element, self.array, self.doc = member.type.base, member.type.array, member.doc
        self.type = MEMBERS.get(self.of) or self._type(member)
        if self.type == "bool":
            self.doc = re.sub(r"\b1 if", "True if", self.doc).replace("0", "false")

    def _type(self, member):
        of = member.type
        if self.of in LISTS:
            return "[]" + (go_type(of.base) if of.kind == "struct" else "DevicePointer")
        if of.base == "char":
            return "string"
        if of.kind == "struct":
            return "*" * of.depth + go_type(of.base)
        if of.depth:
            if of.base in NUMBERS:
                self.doc = self.doc.replace("[", f"{NUMBERS[of.base]} [", 1)
            return "DevicePointer"
        return f"[{of.array}]" * bool(of.array) + (go_type(member.enum) if member.enum else NUMBERS[of.base])

    def filled(self):
        """Statements that put a member into `to`, a struct of C in the memory `in`."""
        c, go = f"to.{self.c}", f"from.{self.go}"
        if self.of in LISTS:
            count, element = LISTS[self.of], "DevicePointer" if self.type == "[]DevicePointer" else f"C.{self.element}"
            put = [f"\t\tcopy(all, {go})", f"\t\t{c} = (*unsafe.Pointer)(unsafe.Pointer(&all[0]))"]
            if element != "DevicePointer":
                put = [f"\t\tfor i := range {go} {{", f"\t\t\t{go}[i].fill(&all[i], in)", "\t\t}", f"\t\t{c} = &all[0]"]
            counted = [f"\tto.{count} = C.uint32_t(len({go}))"] if count else []
            return [*counted, f"\tif all := take[{element}](in, len({go})); all != nil {{", *put, "\t}"]
        if self.type == "*float32":
            return [f"\tif {go} != nil {{", f"\t\t{c} = &take[C.float](in, 1)[0]", f"\t\t*{c} = C.float(*{go})", "\t}"]
        if self.type == "bool":
            return [f"\tif {go} {{", f"\t\t{c} = 1", "\t}"]
        if self.type in ("DevicePointer", "Stream", "Event"):
            address = go if self.type == "DevicePointer" else f"DevicePointer({go})"
            return [f"\tput(unsafe.Pointer(&{c}), {address})"]
        if self.array:
            return [f"\tfor i, number := range {go} {{", f"\t\t{c}[i] = C.{self.element}(number)", "\t}"]
        if self.element.startswith("sluice_"):
            made = f"{c} = pointer[C.{self.element}](in, {go})" if self.type[0] == "*" else f"{go}.fill(&{c}, in)"
            return [f"\t{made}"]
        return [f"\t{c} = C.{self.element}({go})"]

    def read(self):
        """The member as Go has it, from `from`, a struct of C."""
        c = f"from.{self.c}"
        if self.type == "string":
            return f"text({c}[:])" if self.array else f"C.GoString({c})"
        if self.array:
            numbers = ", ".join(f"uint32({c}[{i}])" for i in range(self.array))
            return f"{self.type}{{{numbers}}}"
        return f"{self.type}({c})"


def members_of(struct):
    """The members that Go has."""
    counts = set(LISTS.values())
    return [Member(struct, member) for member in struct.members
            if member.name not in ("struct_size", "reserved") and member.name not in counts]


def named(enum, name):
    """The method that gives a number its name."""
    flags, receiver = "Flags" if enum.bits else "", name[0].lower()
    return [f"var names{name} = map[uint32]string{{",
            *[f'\tC.{value.name}: "{value.name.removeprefix("SLUICE_")}",' for value in enum.values], "}", "",
            "// String is the name in the header, without SLUICE_.",
            f"func ({receiver} {name}) String() string {{",
            f'\treturn nameOf{flags}(names{name}, "{name}", uint32({receiver}))', "}", ""]


def constants(enum, comments):
    """The type of an enum, and its constants."""
    name, typed = go_type(enum.name), enum.name not in UNTYPED
    base, of = ("int32" if enum.name == "sluice_status_code" else "uint32"), f" {name}" if typed else ""
    lines = comments.line(enum.doc, "")
    if typed:
        lines = [*comments.doc(name, enum.doc), f"type {name} {base}", "", f"// The values of {name}."]
    lines.append("const (")
    for value in enum.values:
        lines += [*comments.line(value.doc), f"\t{constant(value.name)}{of} = C.{value.name}"]
    # The library itself names statuses.
    return [*lines, ")", "", *(named(enum, name) if typed and name != "Status" else [])]


def declared(struct, comments):
    """A struct of Go."""
    name = go_type(struct.name)
    lines = [*comments.doc(name, struct.doc), f"type {name} struct {{"]
    for member in members_of(struct):
        lines += [*comments.line(member.doc), f"\t{member.go} {member.type}"]
    return [*lines, "}", ""]


def converted(struct):
    """How a struct of Go becomes one of C."""
    name = go_type(struct.name)
    lines = [f"func (from *{name}) fill(to *C.{struct.name}, in *memory) {{"]
    if struct.is_sized:
        lines.append(f"\tto.struct_size = C.sizeof_{struct.name}")
    for member in members_of(struct):
        lines += member.filled()
    return [*lines, "}", ""]


def answered(struct):
    """How a struct of C becomes one of Go."""
    name = go_type(struct.name)
    lines = [f"func go{name}(from *C.{struct.name}) {name} {{", f"\treturn {name}{{"]
    lines += [f"\t\t{member.go}: {member.read()}," for member in members_of(struct)]
    return [*lines, "\t}", "}", ""]


def sizes(abi):
    """A check by the compiler: the length of an array is not negative."""
    lines = ["// The library's structs are at least as large as those that this package was written for.", "var ("]
    lines += [f"\t_ [C.sizeof_{struct.name} - {struct.size}]struct{{}}" for struct in abi.structs]
    return [*lines, ")", ""]


def aligned(lines):
    """Keys and values of composite literals as gofmt aligns them."""
    made, block = [], []

    def flush():
        width = max((len(key) for key, _ in block), default=0)
        made.extend(f"{key:<{width}} {value}" for key, value in block)
        block.clear()

    for line in lines:
        pair = re.fullmatch(r"(\t+[\w.]+:) (.*,)", line)
        if pair:
            block.append(pair.groups())
        else:
            flush()
            made.append(line)
    flush()
    return made


def text(lines):
    """The text of a file."""
    while not lines[-1]:
        lines.pop()
    return HEAD + "\n".join(aligned(lines)) + "\n"


def write(abi):
    """The generated files: text by path."""
    comments = Comments(abi)
    structs = [struct for struct in abi.structs if struct.name not in BY_HAND]
    calls = [struct for struct in structs if struct.name not in ANSWERS]
    answers = [struct for struct in structs if struct.name in ANSWERS]
    return {
        f"{FOLDER}/constants_generated.go":
            text([*INCLUDE, *[line for enum in abi.enums for line in constants(enum, comments)]]),
        f"{FOLDER}/structs_generated.go": text([line for struct in calls for line in declared(struct, comments)]),
        f"{FOLDER}/fill_generated.go": text([*INCLUDE, 'import "unsafe"', "", *sizes(abi),
                                             *[line for struct in calls for line in converted(struct)]]),
        f"{FOLDER}/answers_generated.go":
            text([*INCLUDE, *[line for struct in answers
                              for line in [*declared(struct, comments), *answered(struct)]]]),
    }
