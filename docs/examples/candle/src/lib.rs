//! Attention for candle, computed by Sluice: `sluice_attention` takes tensors of candle and returns one. README.md
//! says how to use it and what it does not do.

mod device;
mod error;
mod half_float;
mod operator;

pub use device::Sluice;

use candle_core::{Result, Tensor};
use operator::Attention;

/// What attention computes beyond softmax(scale * Q K^T) V. The default asks for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Factor of the scores; None is 1 / sqrt(head_dim).
    pub scale: Option<f32>,
    /// Hides the keys after a row's own position. The last row has the position of the last key.
    pub causal: bool,
    /// How many keys before a row's own position are visible; None is all.
    pub window_left: Option<usize>,
    /// How many keys after a row's own position are visible; None is all.
    pub window_right: Option<usize>,
    /// c replaces a score s by c * tanh(s / c); 0 means no cap.
    pub soft_cap: f32,
}

/// softmax(scale * Q K^T) V per head, of tensors \[batch, tokens, heads, head_dim\], in F16 or BF16.
///
/// K and V may have more tokens than Q, and fewer heads: query head h reads KV head h * kv_heads / q_heads. Tensors may
/// have any strides that Sluice takes: 1 between the elements of a row, else multiples of 8. Nothing is made
/// contiguous. The result is contiguous, \[batch, tokens of Q, heads of Q, head_dim of V\]. There may be no sequences, no
/// tokens of Q and none of K and V; rows without keys are 0.
pub fn sluice_attention(
    sluice: &Sluice,
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    options: &Options,
) -> Result<Tensor> {
    // With apply_op3_no_bwd, candle would take the result for a constant and compute wrong gradients in silence.
    q.apply_op3(k, v, Attention { sluice: sluice.clone(), options: *options })
}

/// The programs of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
