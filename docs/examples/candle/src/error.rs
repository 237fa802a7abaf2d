//! Refusals of Sluice as errors of candle.

/// With the field, which is one of the tensors of a call: the indices of both are \[batch, token, head, dim\].
pub(crate) fn to_candle(error: sluice::Error) -> candle_core::Error {
    let field = if error.field.is_empty() { String::new() } else { format!(" ({})", error.field) };
    candle_core::Error::msg(format!("sluice-attention: {}{field}: {}", error.code.name(), error.message))
}
