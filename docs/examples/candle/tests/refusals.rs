//! The operator refuses what it does not compute, with the tensor, what it is and what it must be.

mod common;

use candle_core::{DType, Device, Result, Tensor, Var};
use common::Random;
use sluice_candle::{sluice_attention, Options, Sluice};

fn zeros(shape: &[usize], dtype: DType) -> Result<Tensor> {
    Tensor::zeros(shape, dtype, &Device::Cpu)
}

/// Without the backtrace that candle appends where the environment asks for one.
fn message<T>(result: Result<T>) -> String {
    let error = result.err().expect("this is refused").to_string();
    error.lines().next().unwrap_or_default().to_string()
}

fn refusal(q: &Tensor, k: &Tensor, v: &Tensor, options: &Options) -> Result<String> {
    Ok(message(sluice_attention(&Sluice::emulated()?, q, k, v, options)))
}

#[test]
fn tensors_that_do_not_fit_are_named() -> Result<()> {
    let f16 = |shape: &[usize]| zeros(shape, DType::F16);
    let (q, kv) = (f16(&[2, 5, 4, 64])?, f16(&[2, 7, 2, 64])?);
    let f32_q = q.to_dtype(DType::F32)?;
    let bf16_v = kv.to_dtype(DType::BF16)?;
    for (q, k, v, message) in [
        (&f32_q, &kv, &kv, "q is F32; it must be F16 or BF16"),
        (&q, &kv, &bf16_v, "v is BF16; it must be F16 as q is"),
        (&f16(&[5, 4, 64])?, &kv, &kv, "q has shape [5, 4, 64]; it must be [batch, tokens, heads, head_dim]"),
        (&q, &kv, &f16(&[2, 7, 0, 64])?, "v.shape[2] is 0; it must be at least 1"),
        (&q, &kv, &f16(&[2, 0, 2, 64])?, "v.shape[1] is 0; it must be 7 as k.shape[1] is"),
        (&q, &f16(&[3, 7, 2, 64])?, &kv, "k.shape[0] is 3; it must be 2 as q.shape[0] is"),
        (&q, &f16(&[2, 7, 2, 72])?, &kv, "k.shape[3] is 72; it must be 64 as q.shape[3] is"),
        (&q, &kv, &f16(&[1, 7, 2, 64])?, "v.shape[0] is 1; it must be 2 as k.shape[0] is"),
        (&q, &kv, &f16(&[2, 8, 2, 64])?, "v.shape[1] is 8; it must be 7 as k.shape[1] is"),
        (&q, &kv, &f16(&[2, 7, 4, 64])?, "v.shape[2] is 4; it must be 2 as k.shape[2] is"),
    ] {
        let refusal = refusal(q, k, v, &Options::default())?;
        assert_eq!(refusal, format!("sluice-attention: {message}"));
    }
    Ok(())
}

#[test]
fn refusals_of_sluice_have_code_field_and_message() -> Result<()> {
    let f16 = |shape: &[usize]| zeros(shape, DType::F16);
    let (q, kv) = (f16(&[1, 5, 4, 64])?, f16(&[1, 7, 2, 64])?);
    let odd = f16(&[1, 7, 2, 68])?.narrow(3, 0, 64)?;
    let columns = f16(&[1, 64, 4, 5])?.transpose(1, 3)?;
    let (plain, causal) = (Options::default(), Options { causal: true, ..Options::default() });
    for (q, k, v, options, code, field, says) in [
        (&q, &f16(&[1, 7, 3, 64])?, &f16(&[1, 7, 3, 64])?, plain, "INVALID_ARGUMENT", "q_heads", "kv_heads"),
        (&f16(&[1, 5, 4, 60])?, &f16(&[1, 7, 2, 60])?, &kv, plain, "UNSUPPORTED", "kv.head_dim_qk", "60"),
        // Nothing is made contiguous in silence.
        (&q, &odd, &kv, plain, "INVALID_ARGUMENT", "k.stride[2]", "is 68; it must be a multiple of 8"),
        (&columns, &kv, &kv, plain, "INVALID_ARGUMENT", "q.stride[3]", "it must be 1"),
        (&q, &kv, &kv, Options { soft_cap: -1.0, ..causal }, "INVALID_ARGUMENT", "scores.soft_cap", "-1"),
        (&q, &kv, &kv, Options { scale: Some(f32::NAN), ..plain }, "INVALID_ARGUMENT", "scale", "nan"),
    ] {
        let refusal = refusal(q, k, v, &options)?;
        assert!(refusal.starts_with(&format!("sluice-attention: SLUICE_{code} ({field}): ")), "{refusal}");
        assert!(refusal.contains(says), "{refusal}");
    }
    Ok(())
}

#[test]
fn the_page_shows_refusals() -> Result<()> {
    let f16 = |shape: &[usize]| zeros(shape, DType::F16);
    let (q, kv) = (f16(&[2, 5, 4, 64])?, f16(&[2, 7, 2, 64])?);
    for k in [f16(&[3, 7, 2, 64])?, f16(&[2, 7, 2, 68])?.narrow(3, 0, 64)?] {
        let refusal = refusal(&q, &k, &kv, &Options::default())?;
        assert!(include_str!("../README.md").contains(&format!("\n{refusal}\n")), "{refusal}");
    }
    Ok(())
}

#[test]
fn a_device_that_does_not_exist() {
    let error = message(Sluice::hip(77));
    assert!(error.starts_with("sluice-attention: SLUICE_NO_DEVICE ("), "{error}");
}

/// Without a backward pass, an operator must not look like a constant.
#[test]
fn gradients_are_refused() -> Result<()> {
    let tensor = Random(3).tensor([1, 4, 1, 64], DType::F16)?;
    let q = Var::from_tensor(&tensor)?;
    let o = sluice_attention(&Sluice::emulated()?, &q, &tensor, &tensor, &Options::default())?;
    assert_eq!(message(o.sum_all()?.backward()), "backward is not supported for sluice-attention");
    Ok(())
}
