//! The readers of the language model's files: accepted and refused files.

#[allow(dead_code)] // the example uses the rest
#[path = "../examples/jargon_lm/json.rs"]
mod json;
#[path = "../examples/jargon_lm/safetensors.rs"]
mod safetensors;

use json::Json;
use std::path::Path;

#[test]
fn json_is_read() {
    let text =
        r#" {"a": [1, -2.5e1, 0.125], "b": {"c": "x\n\"y\""}, "d": [], "e": {}, "f": [true, false, null]} "#;
    let json = Json::parse(text).unwrap();
    let numbers: Vec<f64> =
        json.get("a").unwrap().list().unwrap().iter().map(|n| n.number().unwrap()).collect();
    assert_eq!(numbers, [1.0, -25.0, 0.125]);
    assert_eq!(json.get("b").unwrap().get("c").unwrap().text(), Ok("x\n\"y\""));
    assert_eq!(json.get("d").unwrap().list().unwrap().len(), 0);
    assert_eq!(json.members().unwrap().len(), 5);
    assert_eq!(json.get("f"), Ok(&Json::List(vec![Json::Bool(true), Json::Bool(false), Json::Null])));
    assert_eq!(Json::parse("17").unwrap().count(), Ok(17));
}

#[test]
fn invalid_json_is_refused() {
    for text in
        ["", "{", "[1,]", "[1 2]", "{\"a\" 1}", "\"a", "\"\\q\"", "1 2", "inf", "nul", "1.2.3", "{a: 1}"]
    {
        assert!(Json::parse(text).is_err(), "{text}");
    }
    assert!(Json::parse(&"[".repeat(100_000)).unwrap_err().contains("deep"));
    for text in ["-1", "1.5", "1e300", "\"1\""] {
        assert!(Json::parse(text).unwrap().count().is_err(), "{text}");
    }
    assert_eq!(Json::parse("{}").unwrap().get("a").unwrap_err(), "member 'a' is missing");
}

/// Loads a file with this header, followed by these bytes.
fn load(name: &str, size: u64, header: &str, data: &[u8]) -> Result<Vec<f32>, String> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, [&size.to_le_bytes()[..], header.as_bytes(), data].concat()).unwrap();
    let mut tensors = safetensors::load(&path)?;
    let tensor = tensors.remove("w").ok_or("w is missing")?;
    assert_eq!(tensor.shape.iter().product::<usize>(), tensor.values.len());
    Ok(tensor.values)
}

#[test]
fn tensors_are_read_at_their_offsets() {
    let header = |entry: &str| format!(r#"{{"__metadata__": {{"a": "b"}}, "w": {entry}}}"#);
    let with =
        |name: &str, entry: &str| load(name, header(entry).len() as u64, &header(entry), &[0, 0x3c, 0, 0xc0]);
    let good = r#"{"dtype": "F16", "shape": [2, 1], "data_offsets": [0, 4]}"#;
    assert_eq!(with("good", good), Ok(vec![1.0, -2.0]));
    let bad = [
        (r#"{"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}"#, "is F32, not F16"),
        (r#"{"dtype": "F16", "shape": [3], "data_offsets": [0, 6]}"#, "within the file"),
        (r#"{"dtype": "F16", "shape": [1], "data_offsets": [0, 4]}"#, "within the file"),
        (r#"{"dtype": "F16", "shape": [1], "data_offsets": [4, 2]}"#, "within the file"),
        (r#"{"dtype": "F16", "shape": [1], "data_offsets": [2]}"#, "within the file"),
        (r#"{"dtype": "F16", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}"#, "within the file"),
        (r#"{"dtype": "F16", "shape": [-1], "data_offsets": [0, 4]}"#, "-1 is not a count"),
        (r#"{"shape": [1], "data_offsets": [0, 2]}"#, "member 'dtype' is missing"),
    ];
    for (entry, part) in bad {
        let message = with("bad", entry).unwrap_err();
        assert!(message.contains(part) && message.contains("bad: w: "), "'{part}' is missing in: {message}");
    }
    assert!(load("long", 1000, "{}", &[]).unwrap_err().contains("its header is longer than the file"));
    assert!(load("huge", u64::MAX, "{}", &[]).unwrap_err().contains("its header is longer than the file"));
    assert!(load("text", 2, "[]", &[]).unwrap_err().contains("not an object"));
}
