//! What the tests share: tensors of numbers that look random, as views of several kinds.
#![allow(dead_code)] // no test uses all of it

use candle_core::{DType, Device, Result, Tensor};

/// Numbers that look random, and are the same ones each time.
pub struct Random(pub u64);

impl Random {
    /// From -2 to 2.
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1 << 22) as f32 - 2.0
    }

    pub fn tensor(&mut self, shape: impl Into<Vec<usize>>, dtype: DType) -> Result<Tensor> {
        let shape = shape.into();
        let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| self.next()).collect();
        Tensor::from_vec(numbers, shape, &Device::Cpu)?.to_dtype(dtype)
    }
}

/// Where the elements of \[batch, tokens, heads, head_dim\] are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum View {
    Contiguous,
    /// As models have them that keep heads before tokens.
    HeadsFirst,
    /// A few heads among more, as a projection to Q, K and V at once gives them.
    SomeHeads,
    /// Some tokens of a longer cache, not from the first one on.
    SomeTokens,
    /// One sequence as the whole batch.
    Broadcast,
    /// Only one head, whose dimension candle gives a stride of 1.
    UnsqueezedHead,
}

impl View {
    pub fn tensor(self, random: &mut Random, shape: [usize; 4], dtype: DType) -> Result<Tensor> {
        let [batch, tokens, heads, head_dim] = shape;
        let view = match self {
            View::Contiguous => random.tensor(shape, dtype)?,
            View::HeadsFirst => random.tensor([batch, heads, tokens, head_dim], dtype)?.transpose(1, 2)?,
            View::SomeHeads => {
                random.tensor([batch, tokens, heads + 3, head_dim], dtype)?.narrow(2, 2, heads)?
            }
            View::SomeTokens => {
                random.tensor([batch, tokens + 5, heads, head_dim], dtype)?.narrow(1, 3, tokens)?
            }
            View::Broadcast => random.tensor([1, tokens, heads, head_dim], dtype)?.broadcast_as(&shape)?,
            View::UnsqueezedHead => random.tensor([batch, tokens, head_dim], dtype)?.unsqueeze(2)?,
        };
        assert_eq!(view.dims(), shape);
        Ok(view)
    }
}
