//! The program: that it writes the expected text, and that it fails where anything differs.

use serde_json::{json, Value};
use std::path::{Path, PathBuf};
use std::process::Command;

fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../jargon_lm/model")
}

fn expected() -> Value {
    let text = std::fs::read_to_string(model().join("expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let program = env!("CARGO_BIN_EXE_jargon_lm");
    let output = Command::new(program).args(arguments).env_remove("RUST_BACKTRACE").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Runs with the model, but other expectations.
fn run_with(name: &str, expected: &Value) -> (Option<i32>, String, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    for file in ["config.json", "model.safetensors"] {
        std::fs::copy(model().join(file), folder.join(file)).unwrap();
    }
    std::fs::write(folder.join("expected.json"), expected.to_string()).unwrap();
    run(&["--model", folder.to_str().unwrap()])
}

#[test]
fn it_writes_the_expected_text() {
    let (status, output, errors) = run(&[]);
    assert_eq!((status, errors.as_str()), (Some(0), ""), "{output}");
    let text = expected()["greedy_text"].as_str().unwrap().to_string();
    assert!(output.starts_with(&format!("{text}\n\n100 of 100 greedy bytes as expected; ")), "{output}");
    assert!(output.contains(": ok\nattention on AMD Instinct MI300X (emulated)\n"), "{output}");
}

#[test]
fn another_byte_is_a_failure() {
    let mut expected = expected();
    let text = expected["greedy_text"].as_str().unwrap().replacen("blitter", "blatter", 1);
    expected["greedy_text"] = json!(text);
    let (status, output, _) = run_with("another_byte", &expected);
    assert_eq!(status, Some(1), "{output}");
    assert!(output.starts_with("Compare {bli\n\n3 of 100 greedy bytes as expected; "), "{output}");
    assert!(output.contains(": WRONG\n"), "{output}");
}

#[test]
fn another_logit_is_a_failure() {
    let mut expected = expected();
    expected["first_logits"][7] = json!(expected["first_logits"][7].as_f64().unwrap() + 0.03);
    let (status, output, _) = run_with("another_logit", &expected);
    assert_eq!(status, Some(1), "{output}");
    assert!(output.contains("\n100 of 100 greedy bytes as expected; "), "{output}");
    assert!(output.contains(": WRONG\n"), "{output}");
}

#[test]
fn errors_name_what_it_cannot_use() {
    for (arguments, message) in [
        (["--device", "tpu"], "--device is 'tpu'; it must be 'emulated' or 'hip:N'"),
        (["--cache", "fp8"], "unknown option --cache"),
        (["--model", "/nowhere"], "path: \"/nowhere/expected.json\" No such file or directory"),
    ] {
        let (status, _, errors) = run(&arguments);
        assert_eq!(status, Some(2));
        assert!(errors.starts_with(&format!("jargon_lm: {message}")), "{errors}");
    }
}
