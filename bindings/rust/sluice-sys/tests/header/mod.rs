//! Reads the declarations of `sluice.h` as Rust. Knows the C that the header uses, and refuses everything else, so that
//! nothing is skipped.

use std::path::{Path, PathBuf};

pub struct Field {
    pub name: String,
    /// As Rust writes it: `[c_char; 52]`.
    pub rust_type: String,
}

pub struct Struct {
    pub name: String,
    pub fields: Vec<Field>,
}

pub struct Function {
    pub name: String,
    /// As Rust writes it: `(status: sluice_status) -> *const c_char`.
    pub signature: String,
}

pub struct Header {
    pub structs: Vec<Struct>,
    /// Opaque structs.
    pub handles: Vec<String>,
    /// Constants of all enums, and `#define`s with a number.
    pub constants: Vec<String>,
    pub functions: Vec<Function>,
    /// Function pointer types.
    pub callbacks: Vec<Function>,
}

/// The header's folder: that of the library which was found, else that of the checkout.
pub fn include_dir() -> PathBuf {
    match option_env!("SLUICE_SYS_INCLUDE_DIR") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../include"),
    }
}

pub fn read() -> Header {
    parse(&text())
}

fn text() -> String {
    let path = include_dir().join("sluice/sluice.h");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All comments, one after the other, with single spaces.
pub fn comments() -> String {
    let text = text();
    let inside = text.split("/*").skip(1).map(|part| part.split_once("*/").expect("a comment that ends").0);
    // Lines begin with stars, and `/**<` leaves `*<`.
    let lines = inside
        .flat_map(|comment| comment.lines())
        .map(|line| line.trim_start().trim_start_matches(['*', '<']));
    lines.flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
}

pub fn parse(text: &str) -> Header {
    let mut header =
        Header { structs: vec![], handles: vec![], constants: vec![], functions: vec![], callbacks: vec![] };
    let text = without_comments(text);
    // Preprocessor lines: constants with a number, and those that make the header work in C and C++.
    let mut code = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["#define", name, number] if number.parse::<u32>().is_ok() => {
                header.constants.push(name.to_string())
            }
            [first, ..] if first.starts_with('#') => {}
            _ => code = code + line + "\n",
        }
    }
    let code = code.replace("extern \"C\" {", "");
    for declaration in declarations(&code) {
        read_declaration(&declaration, &mut header);
    }
    header
}

fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    for (i, part) in text.split("/*").enumerate() {
        kept += match i {
            0 => part,
            _ => part.split_once("*/").expect("a comment that ends").1,
        };
    }
    kept
}

/// Text that ends with a semicolon outside braces, with single spaces.
fn declarations(code: &str) -> Vec<String> {
    let (mut all, mut current, mut depth) = (vec![], String::new(), 0);
    for character in code.chars() {
        match character {
            '{' => depth += 1,
            // This one closes extern "C", whose opening brace was removed.
            '}' if depth == 0 => continue,
            '}' => depth -= 1,
            ';' if depth == 0 => {
                all.push(current.split_whitespace().collect::<Vec<_>>().join(" "));
                current.clear();
                continue;
            }
            _ => {}
        }
        current.push(character);
    }
    assert!(current.trim().is_empty(), "the header ends with '{current}'");
    all
}

fn read_declaration(text: &str, header: &mut Header) {
    let unknown = || -> ! { panic!("this test does not know what '{text}' declares") };
    if let Some(enumeration) = text.strip_prefix("enum ") {
        for value in braces(enumeration).split(',').filter(|value| !value.trim().is_empty()) {
            header.constants.push(value.split('=').next().unwrap().trim().to_string());
        }
    } else if let Some(function) = text.strip_prefix("SLUICE_API ") {
        let function = function.strip_suffix(" SLUICE_NOEXCEPT").unwrap_or_else(|| unknown());
        let (declared, parameters) = function.split_once('(').unwrap_or_else(|| unknown());
        let (result, name) = split_name(declared);
        let signature = signature(result, parameters.strip_suffix(')').unwrap_or_else(|| unknown()));
        header.functions.push(Function { name: name.into(), signature });
    } else if let Some(pointer) = text.strip_prefix("typedef ").filter(|rest| rest.contains("(*")) {
        let (result, rest) = pointer.split_once("(*").unwrap();
        let (name, parameters) = rest.split_once(")(").unwrap_or_else(|| unknown());
        let signature = signature(result, parameters.strip_suffix(')').unwrap_or_else(|| unknown()));
        header.callbacks.push(Function { name: name.into(), signature });
    } else if let Some(definition) = text.strip_prefix("typedef struct ") {
        let name = definition.split_whitespace().last().unwrap().to_string();
        if !definition.contains('{') {
            return header.handles.push(name);
        }
        let members = braces(definition).split(';').map(str::trim).filter(|member| !member.is_empty());
        header.structs.push(Struct { name, fields: members.map(field).collect() });
    } else if text != "typedef int32_t sluice_status" {
        unknown()
    }
}

fn braces(text: &str) -> &str {
    let (_, rest) = text.split_once('{').expect("braces");
    rest.rsplit_once('}').expect("braces").0
}

/// `const void *data` is `const void *` and `data`.
fn split_name(text: &str) -> (&str, &str) {
    let text = text.trim();
    let at = text.rfind(|c: char| !c.is_alphanumeric() && c != '_').expect("a type and a name") + 1;
    (&text[..at], &text[at..])
}

fn field(text: &str) -> Field {
    let (declared, extent) = match text.split_once('[') {
        Some((declared, extent)) => (declared, Some(extent.strip_suffix(']').expect("one extent"))),
        None => (text, None),
    };
    let (c_type, name) = split_name(declared);
    let rust_type = match extent {
        Some(extent) => format!("[{}; {extent}]", rust_type(c_type)),
        None => rust_type(c_type),
    };
    Field { name: name.into(), rust_type }
}

fn signature(result: &str, parameters: &str) -> String {
    let parameters: Vec<String> = match parameters {
        "void" => vec![],
        _ => parameters.split(',').map(field).map(|p| format!("{}: {}", p.name, p.rust_type)).collect(),
    };
    let result = match result.trim() {
        "void" => String::new(),
        other => format!(" -> {}", rust_type(other)),
    };
    format!("({}){result}", parameters.join(", "))
}

fn rust_type(c_type: &str) -> String {
    let words = c_type.replace('*', " * ");
    let mut words = words.split_whitespace();
    let mut base = words.next().expect("a type");
    let mut pointer = "*mut ";
    if base == "const" {
        (base, pointer) = (words.next().expect("a type"), "*const ");
    }
    let mut made = match base {
        "int32_t" => "i32",
        "uint32_t" => "u32",
        "int64_t" => "i64",
        "uint64_t" => "u64",
        "size_t" => "usize",
        "float" => "f32",
        "char" => "c_char",
        "void" => "c_void",
        other if other.starts_with("sluice_") => other,
        other => panic!("this test does not know the type '{other}'"),
    }
    .to_string();
    for word in words {
        if word == "const" {
            pointer = "*const ";
            continue;
        }
        assert_eq!(word, "*", "in the type '{c_type}'");
        made = format!("{pointer}{made}");
        pointer = "*mut ";
    }
    made
}
