//! The operator on the emulated device, against attention in double precision.

mod common;
#[path = "common/oracle.rs"]
mod oracle;

use candle_core::{DType, Result, Tensor};
use common::{Random, View};
use oracle::{attention, worst_part_of_bound};
use sluice_candle::{sluice_attention, Options, Sluice};

struct Case {
    dtype: DType,
    batch: usize,
    /// Tokens of Q, and of K and V.
    tokens: [usize; 2],
    /// Heads of Q, and of K and V.
    heads: [usize; 2],
    /// Sizes of rows of Q and K, and of V.
    head_dims: [usize; 2],
    /// Of Q, K and V.
    views: [View; 3],
    options: Options,
}

impl Case {
    fn tensors(&self, random: &mut Random) -> Result<[Tensor; 3]> {
        let ([q_len, kv_len], [q_heads, kv_heads], [qk, v]) = (self.tokens, self.heads, self.head_dims);
        let mut tensor = |view: View, tokens, heads, dim| {
            view.tensor(random, [self.batch, tokens, heads, dim], self.dtype)
        };
        Ok([
            tensor(self.views[0], q_len, q_heads, qk)?,
            tensor(self.views[1], kv_len, kv_heads, qk)?,
            tensor(self.views[2], kv_len, kv_heads, v)?,
        ])
    }
}

#[rustfmt::skip] // a table
fn cases() -> Vec<Case> {
    use DType::{BF16, F16};
    use View::*;
    let plain = Options::default();
    let causal = Options { causal: true, ..plain };
    let left = Options { window_left: Some(9), ..causal };
    let both = Options { window_left: Some(3), window_right: Some(11), ..plain };
    let capped = Options { soft_cap: 1.5, ..causal };
    let scaled = Options { scale: Some(0.3), ..plain };
    let unscaled = Options { scale: Some(0.0), ..causal };
    let case = |dtype, batch, tokens, heads, head_dims, views, options| {
        Case { dtype, batch, tokens, heads, head_dims, views, options }
    };
    vec![
        case(F16,  1, [1, 1],    [1, 1], [128, 128], [Contiguous; 3], plain),
        case(F16,  2, [33, 33],  [4, 4], [64, 64],   [Contiguous; 3], plain),
        case(BF16, 2, [33, 33],  [4, 2], [64, 64],   [Contiguous; 3], causal),
        case(F16,  1, [37, 101], [4, 2], [72, 72],   [Contiguous; 3], causal),
        case(BF16, 1, [37, 101], [6, 2], [72, 72],   [Contiguous; 3], plain),
        case(F16,  1, [70, 70],  [4, 1], [128, 128], [Contiguous; 3], causal),
        case(BF16, 2, [1, 203],  [8, 2], [128, 128], [Contiguous; 3], causal),
        case(F16,  1, [45, 13],  [2, 2], [128, 128], [Contiguous; 3], causal), // rows without keys
        case(BF16, 1, [19, 67],  [2, 1], [192, 128], [Contiguous; 3], causal),
        case(F16,  2, [29, 53],  [4, 2], [128, 128], [HeadsFirst; 3], causal),
        case(BF16, 2, [29, 53],  [4, 2], [64, 64],   [SomeHeads; 3], plain),
        case(F16,  2, [29, 53],  [4, 2], [72, 72],   [SomeTokens, SomeTokens, HeadsFirst], causal),
        case(F16,  3, [5, 41],   [4, 2], [128, 128], [Contiguous, Broadcast, Broadcast], plain),
        case(BF16, 2, [17, 21],  [1, 1], [64, 64],   [UnsqueezedHead; 3], causal),
        case(F16,  1, [50, 90],  [4, 2], [128, 128], [HeadsFirst, SomeTokens, SomeHeads], left),
        case(BF16, 1, [50, 50],  [2, 2], [64, 64],   [Contiguous; 3], both),
        case(F16,  1, [40, 77],  [4, 2], [128, 128], [Contiguous; 3], capped),
        case(F16,  2, [21, 34],  [2, 2], [64, 64],   [Contiguous; 3], scaled),
        case(BF16, 2, [21, 34],  [2, 2], [64, 64],   [Contiguous; 3], unscaled),
        case(F16,  2, [0, 34],   [4, 2], [64, 64],   [Contiguous; 3], plain), // no rows
        case(F16,  0, [3, 34],   [4, 2], [64, 64],   [Contiguous; 3], causal), // no sequences
        case(BF16, 2, [3, 0],    [4, 2], [64, 64],   [Contiguous, HeadsFirst, Contiguous], causal), // no keys
        case(F16,  2, [0, 0],    [4, 2], [64, 64],   [SomeHeads, SomeTokens, SomeTokens], plain),
    ]
}

#[test]
fn results_are_within_the_bound() -> Result<()> {
    let (sluice, mut random) = (Sluice::emulated()?, Random(1));
    for (number, case) in cases().iter().enumerate() {
        let [q, k, v] = case.tensors(&mut random)?;
        let o = sluice_attention(&sluice, &q, &k, &v, &case.options)?;
        assert_eq!(o.dims(), [case.batch, case.tokens[0], case.heads[0], case.head_dims[1]], "case {number}");
        assert!(o.dtype() == case.dtype && o.is_contiguous(), "case {number}");
        let worst = worst_part_of_bound(&o, &attention(&q, &k, &v, &case.options)?)?;
        println!("case {number}: {worst:.3} of the bound");
        assert!(worst <= 1.0, "case {number}: {worst} of the bound");
    }
    Ok(())
}

/// The bound is tighter than the effect of a wrong mask, cap or scale, or of one key too few.
#[test]
fn the_bound_notices_mistakes() -> Result<()> {
    let mut random = Random(2);
    for dtype in [DType::F16, DType::BF16] {
        let mut tensor = |shape: [usize; 4]| random.tensor(shape, dtype);
        let (q, k, v) = (tensor([1, 3, 2, 64])?, tensor([1, 100, 1, 64])?, tensor([1, 100, 1, 64])?);
        let right = Options { causal: true, window_left: Some(60), soft_cap: 20.0, ..Options::default() };
        let expected = attention(&q, &k, &v, &right)?;
        for wrong in [
            Options { causal: false, ..right },
            Options { window_left: Some(59), ..right },
            Options { soft_cap: 0.0, ..right },
            Options { scale: Some(0.12), ..right },
        ] {
            let o = attention(&q, &k, &v, &wrong)?;
            let o = Tensor::from_vec(o.o, (1, 3, 2, 64), q.device())?;
            let worst = worst_part_of_bound(&o, &expected)?;
            assert!(worst > 1.0, "{dtype:?}, {wrong:?}: {worst} of the bound");
        }
        let worst = worst_part_of_bound(&(q.zeros_like()? / 0.0)?, &expected)?;
        assert_eq!(worst, f64::INFINITY, "a NaN is not within the bound");
    }
    Ok(())
}
