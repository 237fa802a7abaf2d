//! Refusals of Sluice as errors of candle.

/// With the field, which is one of the tensors of a call: the indices of both are \[batch, token, head, dim\].
pub(crate) fn to_candle(error: sluice::Error) -> candle_core::Error {
    let short = |text: &str| text.replace("keys[0].kv.", ""); // a call here has one set of keys
    let field = if error.field.is_empty() { String::new() } else { format!(" ({})", short(&error.field)) };
    let message = short(&error.message);
    candle_core::Error::msg(format!("sluice-attention: {}{field}: {message}", error.code.name()))
}
