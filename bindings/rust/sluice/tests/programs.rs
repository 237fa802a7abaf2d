//! The examples, as programs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// An example that cargo has built for the tests, next to the folder of this program.
fn example(name: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let path = this.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.is_file(), "{} is not built; `cargo test` without `--test` builds it", path.display());
    path
}

fn run(name: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(example(name)).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_program_of_the_readme() {
    let text = "the mean of 0, 1, 2, 3 is 0x3e00 in binary16\n".to_string();
    assert_eq!(run("hello", &[]), (Some(0), text.clone(), String::new()));
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    let program = readme.split("```rust\n").nth(1).expect("a program").split("```").next().unwrap();
    assert_eq!(program, include_str!("../examples/hello.rs"));
    assert!(readme.contains(&text));
}

#[test]
fn the_language_model_writes_the_expected_text() {
    let (status, output, errors) = run("jargon_lm", &[]);
    assert_eq!((status, errors.as_str()), (Some(0), ""), "{output}");
    // From docs/examples/jargon_lm/model/expected.json, with its escapes as Rust's.
    let text =
        "Compare {blitter}.\n:shell story: /si:'berkool/, n.\n[from the original term for a program that is \
                not a progr\n";
    assert!(output.starts_with(&format!("== greedy text, compared with expected.json\n{text}")), "{output}");
    assert!(output.contains("100 of 100 greedy bytes as expected"), "{output}");
    assert!(output.contains(": ok\n"), "{output}");
}

#[test]
fn bad_options_are_named() {
    let (status, _, errors) = run("jargon_lm", &["--device", "tpu"]);
    assert_eq!(
        (status, errors.as_str()),
        (Some(2), "jargon_lm: --device is 'tpu'; it must be 'emulated' or 'hip:N'\n")
    );
    let (status, _, errors) = run("jargon_lm", &["--model", "/nowhere"]);
    assert_eq!(status, Some(2));
    assert!(errors.starts_with("jargon_lm: /nowhere/expected.json: "), "{errors}");
}
