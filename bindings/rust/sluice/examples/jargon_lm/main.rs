//! Generates text with the language model of docs/examples/jargon_lm, with all attention on the device and a paged KV
//! cache. The logits after the prompt and the greedy bytes must be those that expected.json stores. Ends with a status
//! other than 0 if anything differs.

mod attention;
mod json;
mod model;
mod safetensors;

use attention::Attention;
use json::Json;
use model::{most_likely, read_json, Model};
use sluice::Context;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const LOGIT_TOLERANCE: f32 = 2e-2;
const USAGE: &str = "usage: jargon_lm [--device emulated|hip:N] [--model FOLDER]";

struct Options {
    device: String,
    model: PathBuf,
}

fn options() -> Result<Option<Options>, String> {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/examples/jargon_lm/model");
    let mut options = Options { device: "emulated".into(), model };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        if name == "--help" {
            return Ok(None);
        }
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--device" => options.device = value,
            "--model" => options.model = value.into(),
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(Some(options))
}

fn context(device: &str) -> Result<Context, String> {
    let builder = match (device, device.strip_prefix("hip:").map(str::parse)) {
        ("emulated", _) => Context::emulated(),
        (_, Some(Ok(ordinal))) => Context::hip(ordinal),
        _ => return Err(format!("--device is '{device}'; it must be 'emulated' or 'hip:N'")),
    };
    builder.build().map_err(|error| error.to_string())
}

fn show(byte: u8) {
    let shown = if byte == b'\n' || (b' '..0x7f).contains(&byte) { byte } else { b'?' };
    print!("{}", char::from(shown));
    let _ = std::io::stdout().flush();
}

/// Returns whether everything was as expected.
fn run(options: &Options) -> Result<bool, String> {
    let expected = read_json(&options.model.join("expected.json"))?;
    let prompt = expected.get("prompt")?.text()?.as_bytes();
    let text = expected.get("greedy_text")?.text()?.as_bytes(); // the prompt and what follows it
    let steps = expected.get("greedy_bytes")?.count()?;
    let numbers = expected.get("first_logits")?.list()?;
    let first_logits = numbers.iter().map(Json::number).collect::<Result<Vec<f64>, String>>()?;
    if text.len() != prompt.len() + steps || !text.starts_with(prompt) {
        return Err("greedy_text is not the prompt and greedy_bytes further bytes".into());
    }

    let model = Model::load(&options.model)?;
    let context = context(&options.device)?;
    let mut attention =
        Attention::new(&context, model.config.attention_shape()).map_err(|error| error.to_string())?;
    println!("== greedy text, compared with expected.json");
    let mut logits = model.forward(prompt, &mut attention)?;
    if logits.len() != first_logits.len() {
        return Err(format!("there are {} logits, but {} are expected", logits.len(), first_logits.len()));
    }
    let difference = logits.iter().zip(&first_logits).fold(0f32, |largest, (is, wanted)| {
        let difference = (is - *wanted as f32).abs();
        // The comparisons would not notice a NaN.
        if difference.is_nan() {
            f32::INFINITY
        } else {
            largest.max(difference)
        }
    });
    print!("{}", String::from_utf8_lossy(prompt));
    let mut equal_bytes = 0;
    for step in 0..steps {
        let byte = most_likely(&logits);
        show(byte);
        if byte != text[prompt.len() + step] {
            break;
        }
        equal_bytes += 1;
        if step + 1 < steps {
            logits = model.forward(&[byte], &mut attention)?;
        }
    }
    let passed = difference <= LOGIT_TOLERANCE && equal_bytes == steps;
    println!(
        "\n\n{equal_bytes} of {steps} greedy bytes as expected; largest difference of the first logits \
         {difference:.5}, allowed {LOGIT_TOLERANCE:.2}: {}",
        if passed { "ok" } else { "WRONG" }
    );
    let [prompt_kernel, token_kernel] = attention.kernels();
    println!("prompts by {prompt_kernel}, bytes by {token_kernel}, on {}", context.device().name);
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
        Err(message) => {
            eprintln!("jargon_lm: {message}");
            ExitCode::from(2)
        }
    }
}
