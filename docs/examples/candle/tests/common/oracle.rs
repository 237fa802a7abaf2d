//! Attention in double precision, and how far a kernel's rounding may take it from that: docs/concepts/numerics.md,
//! whose names the bound has.

use candle_core::{DType, Result, Tensor};
use sluice_candle::Options;

/// Unit roundoff of F32.
const U: f64 = 1.0 / (1 << 24) as f64;

/// Roundings of an element type: of a weight, relative and absolute, and of a result, relative and absolute.
struct Roundings {
    p: f64,
    a: f64,
    r: f64,
    s: f64,
}

fn roundings(dtype: DType) -> Roundings {
    let cut = 1.0 - 1.0 / 2.88;
    let two = |exponent: i32| 2f64.powi(exponent);
    match dtype {
        DType::F16 => Roundings { p: cut * two(-10), a: two(-24), r: two(-11), s: two(-25) },
        DType::BF16 => Roundings { p: cut * two(-7), a: two(-126), r: two(-8), s: two(-134) },
        _ => panic!("Q is not {dtype:?}"),
    }
}

pub struct Expected {
    pub o: Vec<f64>,
    pub bounds: Vec<f64>,
}

/// A tensor's numbers in the order of its indices, for any strides.
fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    tensor.to_dtype(DType::F64)?.flatten_all()?.to_vec1()
}

/// The keys that row i sees, of a mask whose diagonal goes through the last row and the last key.
fn visible_keys(i: usize, q_len: usize, kv_len: usize, options: &Options) -> Vec<usize> {
    let position = (i + kv_len) as i64 - q_len as i64;
    let distance = |keys: Option<usize>| keys.map_or(i64::MAX / 2, |keys| keys as i64);
    let after = if options.causal { 0 } else { distance(options.window_right) };
    let sees =
        |j: &usize| *j as i64 >= position - distance(options.window_left) && *j as i64 <= position + after;
    (0..kv_len).filter(sees).collect()
}

/// How many parts of `size` keys, counted from key 0, hold one of these.
fn tiles(keys: &[usize], size: usize) -> f64 {
    let mut tiles: Vec<usize> = keys.iter().map(|key| key / size).collect();
    tiles.dedup();
    tiles.len() as f64
}

/// One row of scores, and what its bound depends on.
struct Row {
    scores: Vec<f64>,
    /// The largest sum of magnitudes of a dot product.
    a: f64,
    /// The largest score before it is capped, and before or after.
    r: f64,
    x: f64,
}

impl Row {
    fn new<'a>(q: &[f64], keys: impl Iterator<Item = &'a [f64]>, options: &Options) -> Row {
        let scale = options.scale.map_or(1.0 / (q.len() as f64).sqrt(), f64::from);
        let cap = f64::from(options.soft_cap);
        let mut row = Row { scores: vec![], a: 0.0, r: 0.0, x: 0.0 };
        for k in keys {
            let products = q.iter().zip(k).map(|(q, k)| scale * q * k);
            let raw: f64 = products.clone().sum();
            let score = if cap == 0.0 { raw } else { cap * (raw / cap).tanh() };
            row.a = row.a.max(products.map(f64::abs).sum());
            row.r = row.r.max(raw.abs());
            row.x = row.x.max(raw.abs()).max(score.abs());
            row.scores.push(score);
        }
        row
    }

    /// Relative errors of a weight and of the sum of weights, as parts of O.
    fn errors(&self, keys: &[usize], head_dim: usize, options: &Options) -> (f64, f64) {
        let (n, t) = (keys.len() as f64, tiles(keys, 16));
        let g = n.min(8.0 * tiles(keys, 64));
        let cap = f64::from(options.soft_cap);
        let changes = if cap == 0.0 { 0.0 } else { 2.0 * self.r + 12.0 * cap };
        let score = U * (self.a * (8.0 + 3.0 * head_dim as f64 / 8.0) + 10.0 * self.x + changes);
        let weight = score + U * (2.0 + t * (3.0 + 4.0 * self.x));
        let sum = weight + U * (n + 2.0);
        let merge = U * (11.0 * (self.x + n.ln()) + 10.0 + 32.0 * 2f64.ln() + 2.0 * t);
        (weight + U * (8.0 + 3.0 * g) + if t > 1.0 { merge } else { 0.0 }, sum + 3.0 * U)
    }
}

pub fn attention(q: &Tensor, k: &Tensor, v: &Tensor, options: &Options) -> Result<Expected> {
    let ((batch, q_len, q_heads, head_dim), (_, kv_len, kv_heads, head_dim_v)) = (q.dims4()?, v.dims4()?);
    let Roundings { p, a, r, s } = roundings(q.dtype());
    let (q, k, v) = (numbers(q)?, numbers(k)?, numbers(v)?);
    let mut expected = Expected { o: vec![], bounds: vec![] };
    for row in 0..batch * q_len * q_heads {
        let (b, i, head) = (row / q_heads / q_len, row / q_heads % q_len, row % q_heads);
        let kv_head = head * kv_heads / q_heads;
        let key_row = |j: usize, numbers, size| -> &[f64] {
            let numbers: &Vec<f64> = numbers;
            &numbers[((b * kv_len + j) * kv_heads + kv_head) * size..][..size]
        };
        let keys = visible_keys(i, q_len, kv_len, options);
        let q_row = &q[row * head_dim..][..head_dim];
        let scores = Row::new(q_row, keys.iter().map(|j| key_row(*j, &k, head_dim)), options);
        let (weight_error, result_error) = scores.errors(&keys, head_dim, options);
        let largest = scores.scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.scores.iter().map(|score| (score - largest).exp()).collect();
        let l: f64 = weights.iter().sum();
        for column in 0..head_dim_v {
            if keys.is_empty() {
                expected.o.push(0.0);
                expected.bounds.push(0.0);
                continue;
            }
            let values = keys.iter().map(|j| key_row(*j, &v, head_dim_v)[column]);
            let o: f64 = weights.iter().zip(values.clone()).map(|(weight, v)| weight / l * v).sum();
            let w: f64 = weights.iter().zip(values.clone()).map(|(weight, v)| weight / l * v.abs()).sum();
            let e =
                w * (p + weight_error) + a * values.map(f64::abs).sum::<f64>() / l + o.abs() * result_error;
            expected.o.push(o);
            expected.bounds.push(e + r * (o.abs() + e) + s);
        }
    }
    Ok(expected)
}

/// How far O is from what is expected, as a part of what is allowed, at the element where that is worst.
pub fn worst_part_of_bound(o: &Tensor, expected: &Expected) -> Result<f64> {
    let o = numbers(o)?;
    assert_eq!(o.len(), expected.o.len());
    let parts = o.iter().zip(&expected.o).zip(&expected.bounds).map(|((o, expected), bound)| {
        let error = (o - expected).abs();
        // An error of 0 is within a bound of 0; NaN is within none.
        if error == 0.0 {
            0.0
        } else if error.is_nan() {
            f64::INFINITY
        } else {
            error / bound
        }
    });
    Ok(parts.fold(0.0, f64::max))
}
