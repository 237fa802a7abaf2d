//! Generates the greedy text of docs/examples/jargon_lm with candle, whose attention is Sluice's: the prompt at once,
//! then one byte at a time. The logits after the prompt and the greedy bytes must be those that expected.json stores.
//! Ends with a status other than 0 when anything differs.

mod model;

use candle_core::{bail, Result};
use model::{most_likely, read_json, Model};
use serde::Deserialize;
use sluice_candle::Sluice;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const LOGIT_TOLERANCE: f32 = 2e-2;
const USAGE: &str = "usage: jargon_lm [--device emulated|hip:N] [--model FOLDER]";

struct Options {
    device: String,
    model: PathBuf,
}

/// None where help is asked for.
fn options() -> Result<Option<Options>> {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jargon_lm/model");
    let mut options = Options { device: "emulated".into(), model };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        if name == "--help" {
            return Ok(None);
        }
        if name != "--device" && name != "--model" {
            bail!("unknown option {name}\n{USAGE}");
        }
        let Some(value) = arguments.next() else { bail!("{name} needs a value\n{USAGE}") };
        match name.as_str() {
            "--device" => options.device = value,
            _ => options.model = value.into(),
        }
    }
    Ok(Some(options))
}

fn device(name: &str) -> Result<Sluice> {
    match (name, name.strip_prefix("hip:").map(str::parse)) {
        ("emulated", _) => Sluice::emulated(),
        (_, Some(Ok(ordinal))) => Sluice::hip(ordinal),
        _ => bail!("--device is '{name}'; it must be 'emulated' or 'hip:N'"),
    }
}

/// The part of expected.json that is compared. The text begins with the prompt.
#[derive(Deserialize)]
struct Expected {
    prompt: String,
    greedy_text: String,
    greedy_bytes: usize,
    first_logits: Vec<f32>,
}

/// Infinity if a difference is NaN.
fn largest_difference(values: &[f32], expected: &[f32]) -> f32 {
    let differences = values.iter().zip(expected).map(|(value, expected)| (value - expected).abs());
    differences.fold(0.0, |largest, it| if it.is_nan() { f32::INFINITY } else { largest.max(it) })
}

/// Whether all was as expected.
fn run(options: &Options) -> Result<bool> {
    let expected: Expected = read_json(&options.model.join("expected.json"))?;
    let prompt = expected.prompt.as_bytes();
    let text = match expected.greedy_text.as_bytes().strip_prefix(prompt) {
        Some(text) if text.len() == expected.greedy_bytes => text,
        _ => bail!("greedy_text is not the prompt and greedy_bytes further bytes"),
    };
    let sluice = device(&options.device)?;
    let mut model = Model::load(&options.model, sluice.clone())?;
    let mut logits = model.forward(prompt)?;
    if logits.len() != expected.first_logits.len() {
        bail!("there are {} logits, but {} are expected", logits.len(), expected.first_logits.len());
    }
    let difference = largest_difference(&logits, &expected.first_logits);

    let mut output = std::io::stdout();
    output.write_all(prompt)?;
    let mut equal_bytes = 0;
    for expected_byte in text {
        let byte = most_likely(&logits);
        output.write_all(&[byte])?;
        output.flush()?;
        if byte != *expected_byte {
            break;
        }
        equal_bytes += 1;
        if equal_bytes < text.len() {
            logits = model.forward(&[byte])?;
        }
    }
    let passed = difference <= LOGIT_TOLERANCE && equal_bytes == text.len();
    println!(
        "\n\n{equal_bytes} of {} greedy bytes as expected; largest difference of the first logits {difference:.5}, \
         allowed {LOGIT_TOLERANCE:.2}: {}",
        text.len(),
        if passed { "ok" } else { "WRONG" }
    );
    println!("attention on {}", sluice.context().device().name);
    Ok(passed)
}

fn main() -> ExitCode {
    let result = options().and_then(|options| match options {
        Some(options) => run(&options),
        None => {
            println!("{USAGE}");
            Ok(true)
        }
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("jargon_lm: {error}");
            ExitCode::from(2)
        }
    }
}
