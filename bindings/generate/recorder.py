"""Writes the part of bindings/recorder that follows from the C interface: tables of structs, and the functions that record them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

FILE = "bindings/recorder/recorded_generated.c"

# Arrays and numbers in host memory, and the members that count them. None: one number.
LISTS = {
    "sluice_attention_args.keys": "key_sets", "sluice_attention_args.scale": None,
    "sluice_launch.dependencies": "dependency_count", "sluice_parts.o_list": "count", "sluice_parts.lse_list": "count",
}
# Enums of members whose comment does not begin with them.
ENUMS = {"sluice_scores.bias_type": "sluice_dtype"}
# Structs of calls that are not recorded.
NOT_RECORDED = ["sluice_context_desc"]
KINDS = {"int32_t": "SIGNED", "int64_t": "SIGNED", "uint32_t": "UNSIGNED", "uint64_t": "UNSIGNED", "float": "FLOAT"}
HEAD = """\
/* Written by bindings/generate/recorder.py from bindings/abi.json. DO NOT EDIT. */
/* clang-format off */
#include "recorder.h"

"""


def is_given(parameter):
    """Whether a parameter is a struct that a call reads and the recorder writes down."""
    of = parameter.type
    return of.kind == "struct" and of.pointers == (True,) and of.base not in NOT_RECORDED


def structs_of(abi, functions):
    """The structs that functions are given, each after those that it leads to."""
    found = []

    def add(name):
        if name in found:
            return
        for member in abi.find(name).members:
            if member.type.kind == "struct":
                add(member.type.base)
        found.append(name)

    for function in functions:
        for parameter in filter(is_given, function.parameters):
            add(parameter.type.base)
    return [abi.find(name) for name in found]


def enum_of(struct, member):
    return member.enum or ENUMS.get(f"{struct.name}.{member.name}", "")


def member_row(struct, member):
    """An initialiser of struct recorded_member."""
    of, name = member.type, f"{struct.name}.{member.name}"
    listed, is_struct = name in LISTS, of.kind == "struct"
    if of.kind not in ("struct", "number", "void"):
        raise ValueError(f"{name} is of kind {of.kind}, which the recorder does not know")
    kind = "STRUCT" if is_struct else "ADDRESS" if of.depth > listed else KINDS[of.base]
    size = f"sizeof({of.base})" if is_struct else "sizeof(void *)" if kind == "ADDRESS" else f"sizeof({of.base})"
    row = [f'.name = "{member.name}"', f".kind = {kind}", f".offset = offsetof({struct.name}, {member.name})",
           f".size = {size}", f".elements = {of.array or 1}"]
    if is_struct:
        row.append(f".of = &struct_{of.base}")
    if of.depth and (is_struct or listed):
        row.append(".is_pointer = 1")
    if LISTS.get(name):
        row.append(f".count = offsetof({struct.name}, {LISTS[name]}), .is_list = 1")
    if enum_of(struct, member):
        row.append(f".names = &names_{enum_of(struct, member)}")
    return f"  {{{', '.join(row)}}},"


def enum_lines(enum):
    values = [f'  {{"{value.name}", {value.name}}},' for value in enum.values if value.value]
    return [f"static const struct recorded_value values_{enum.name}[] = {{", *values, "};",
            f"static const struct recorded_names names_{enum.name} = {{values_{enum.name}, {len(values)}, {int(enum.bits)}}};", ""]


def struct_lines(struct):
    return [f"static const struct recorded_member members_{struct.name}[] = {{",
            *[member_row(struct, member) for member in struct.members if member.name != "struct_size"], "};",
            f'static const struct recorded_struct struct_{struct.name} = {{"{struct.name}", sizeof({struct.name}), '
            f"{int(struct.is_sized)}, members_{struct.name}, sizeof members_{struct.name} / sizeof *members_{struct.name}}};", ""]


def signature(function):
    parameters = ", ".join(f"{part.type.c} {part.name}".replace("* ", "*") for part in function.parameters)
    return f"{function.returns.c} {function.name}({parameters}) {{"


def function_lines(function):
    """A call that is written down, and answered."""
    lines, answers = [signature(function), f'  FILE *to = recording_begin("{function.name}");'], []
    for part in function.parameters:
        of = part.type
        if is_given(part):
            lines.append(f'  recording_struct(to, "{part.name}", &struct_{of.base}, {part.name});')
        elif of.kind == "opaque" and of.depth == 1:
            lines.append(f'  recording_handle(to, "{part.name}", {part.name}, recorder_{of.base});')
        elif of.kind == "opaque":
            answers.append(f"  *{part.name} = recorder_{of.base};")
        elif of.base == "sluice_error":
            answers.append(f"  (void){part.name};")
        else:
            answers.append(f"  if ({part.name} != NULL) recorder_answer_{of.base}({part.name});")
    return [*lines, *answers, "  recording_end(to);", "  return SLUICE_OK;", "}", ""]


def init_lines(function):
    """A call that zeroes a struct and sets its size."""
    made, size = function.parameters
    return [signature(function), f"  return recorder_init({made.name}, {size.name}, sizeof *{made.name});", "}", ""]


def write(abi):
    """The generated file: text by path."""
    functions = [function for function in abi.functions if any(map(is_given, function.parameters))]
    structs = structs_of(abi, functions)
    enums = {enum_of(struct, member) for struct in structs for member in struct.members} - {""}
    lines = [line for enum in abi.enums if enum.name in enums for line in enum_lines(enum)]
    lines += [line for struct in structs for line in struct_lines(struct)]
    lines += [line for function in functions for line in function_lines(function)]
    lines += [line for function in abi.functions if function.name.endswith("_init") for line in init_lines(function)]
    return {FILE: HEAD + "\n".join(lines).rstrip("\n") + "\n"}
