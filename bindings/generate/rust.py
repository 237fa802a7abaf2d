"""Writes bindings/rust/sluice-sys/src/raw.rs: the C interface as Rust declares it, as rustfmt would format it."""
import re

import abi as model

FILE = "bindings/rust/sluice-sys/src/raw.rs"
WIDTH = 110  # of bindings/rust/rustfmt.toml
NUMBERS = {"int32_t": "i32", "uint32_t": "u32", "int64_t": "i64", "uint64_t": "u64", "float": "f32", "double": "f64",
           "char": "c_char", "size_t": "usize", "void": "c_void", "uint8_t": "u8", "int": "i32"}
OPAQUE = """#[repr(C)]
pub struct {name} {{
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}}"""
HEAD = """// bindings/generate/rust.py writes this file; ./dev bindings runs it.

use core::marker::{PhantomData, PhantomPinned};
use core::mem::{align_of, size_of, zeroed};
use std::os::raw::{c_char, c_void};
"""
DEFAULTS = """macro_rules! zero {
    ($($name:ident)*) => { $(
        impl Default for $name {
            /// All zero.
            fn default() -> Self {
                // SAFETY: numbers, arrays of numbers and nullable pointers, for which all zero is a value.
                unsafe { zeroed() }
            }
        }
    )* };
}

macro_rules! sized {
    ($($name:ident)*) => { $(
        impl Default for $name {
            /// All zero but `struct_size`.
            fn default() -> Self {
                // SAFETY: as above.
                let mut value: Self = unsafe { zeroed() };
                value.struct_size = size_of::<Self>() as u32;
                value
            }
        }
    )* };
}
"""
TESTS = """
#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! offset {
        ($name:ident, $member:ident) => {{
            let value = $name::default();
            core::ptr::addr_of!(value.$member) as usize - core::ptr::addr_of!(value) as usize
        }};
    }

    #[test]
    fn members_are_where_c_has_them() {
"""


def escaped(text):
    """Brackets and angles outside of code mean nothing to rustdoc."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([\[\]<>*])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def doc(text, indent=""):
    """A doc comment. Code is fenced, because rustdoc would take it for Rust."""
    lines, is_code = [], False
    for line in model.wrapped(text, WIDTH - len(indent) - 12):
        if line.startswith("    ") != is_code and (line or not is_code):
            lines.append("```" if is_code else "```text")
            is_code = not is_code
        lines.append(line[4:] if is_code else line if line.startswith("|") else escaped(line))
    if is_code:
        lines.append("```")
    return [f"{indent}/// {line}".rstrip() for line in lines]


def base(type_):
    return NUMBERS.get(type_.base, type_.base)


def spelled(type_):
    text = base(type_)
    for is_const in type_.pointers:
        text = f"*{'const' if is_const else 'mut'} {text}"
    return f"[{text}; {type_.array}]" if type_.array else text


def name_of(text):
    return f"r#{text}" if text in ("type", "ref", "in", "use") else text


def result(function):
    return "" if function.returns.base == "void" and not function.returns.depth else f" -> {spelled(function.returns)}"


def parameters(function):
    return [f"{name_of(part.name)}: {spelled(part.type)}" for part in function.parameters]


def declaration(function):
    yield from doc(function.doc, "    ")
    head, tail = f"    pub fn {function.name}(", f"){result(function)};"
    line = head + ", ".join(parameters(function)) + tail
    if len(line) <= WIDTH:
        yield line
    else:
        yield head
        yield from (f"        {part}," for part in parameters(function))
        yield f"    {tail}"


def callback(function):
    yield from doc(function.doc)
    head = f"pub type {function.name} ="
    value = f"Option<unsafe extern \"C\" fn({', '.join(parameters(function))}){result(function)}>;"
    yield from [f"{head} {value}"] if len(head) + len(value) < WIDTH else [head, f"    {value}"]


def enum(found, item):
    """Constants of the type that the members have which hold them."""
    used = {base(member.type) for struct in found.structs for member in struct.members if member.enum == item.name}
    is_signed = any(value.value < 0 for value in item.values)
    type_ = "sluice_status" if item.name == "sluice_status_code" else (
        "i32" if is_signed or used == {"i32"} or item.name == "sluice_pack" else "u32")
    yield f"// {item.name}"
    for value in item.values:
        yield from doc(value.doc)
        number = value.value
        is_bit = item.bits and number > 0
        yield f"pub const {value.name}: {type_} = {f'1 << {number.bit_length() - 1}' if is_bit else number};"


def struct(item):
    yield from doc(item.doc)
    yield "#[repr(C)]"
    yield "#[derive(Clone, Copy, Debug)]"
    yield f"pub struct {item.name} {{"
    for member in item.members:
        yield from doc(member.doc, "    ")
        yield f"    pub {name_of(member.name)}: {spelled(member.type)},"
    yield "}"
    yield f"const _: () = assert!(size_of::<{item.name}>() == {item.size});"
    yield f"const _: () = assert!(align_of::<{item.name}>() == {item.align});"


def listed(macro, structs):
    return [f"{macro}! {{", *(f"    {item.name}" for item in structs), "}"]


def write(found):
    parts = [[line for item in found.constants
              for line in [*doc(item.doc), f"pub const {item.name}: u32 = {item.value};"]]]
    parts += [[*doc(item.doc), f"pub type {item.name} = {spelled(item.type)};"] for item in found.aliases]
    parts += [[*doc(item.doc), OPAQUE.format(name=item.name)] for item in found.opaque]
    parts += [list(enum(found, item)) for item in found.enums]
    parts += [list(callback(item)) for item in found.callbacks]
    parts += [list(struct(item)) for item in found.structs]
    functions = "\n\n".join("\n".join(declaration(item)) for item in found.functions)
    parts += [["extern \"C\" {", functions, "}"], [DEFAULTS.rstrip()],
              listed("zero", [item for item in found.structs if not item.is_sized]),
              listed("sized", [item for item in found.structs if item.is_sized])]
    tests = [f"        assert_eq!(offset!({item.name}, {name_of(member.name)}), {member.offset});"
             for item in found.structs for member in item.members]
    body = "\n\n".join("\n".join(part) for part in parts)
    return {FILE: HEAD + "\n" + body + "\n" + TESTS + "\n".join(tests) + "\n    }\n}\n"}
