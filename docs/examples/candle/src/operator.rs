//! The operator as candle calls it: checks what the tensors are and finds their elements.

use crate::device::{Input, Sluice};
use crate::error::to_candle;
use crate::half_float::HalfFloat;
use crate::Options;
use candle_core::backend::BackendStorage;
use candle_core::{bail, CpuStorage, CustomOp3, DType, Layout, Result, Shape};
use half::{bf16, f16};

pub(crate) struct Attention {
    pub(crate) sluice: Sluice,
    pub(crate) options: Options,
}

impl CustomOp3 for Attention {
    fn name(&self) -> &'static str {
        "sluice-attention"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        q_layout: &Layout,
        k: &CpuStorage,
        k_layout: &Layout,
        v: &CpuStorage,
        v_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        check_dtypes([("q", q.dtype()), ("k", k.dtype()), ("v", v.dtype())])?;
        let layouts = [q_layout, k_layout, v_layout];
        check_shapes(layouts)?;
        match q.dtype() {
            DType::F16 => self.run::<f16>([q, k, v], layouts),
            _ => self.run::<bf16>([q, k, v], layouts),
        }
    }
}

impl Attention {
    fn run<T: HalfFloat>(
        &self,
        [q, k, v]: [&CpuStorage; 3],
        [q_layout, k_layout, v_layout]: [&Layout; 3],
    ) -> Result<(CpuStorage, Shape)> {
        let q = input::<T>(q, q_layout)?;
        let k = input::<T>(k, k_layout)?;
        let v = input::<T>(v, v_layout)?;
        let ([batch, q_len, q_heads, _], [.., head_dim_v]) = (q.layout.shape(), v.layout.shape());
        let o = self.sluice.attention(q, k, v, &self.options).map_err(to_candle)?;
        Ok((T::to_cpu_storage_owned(o), Shape::from((batch, q_len, q_heads, head_dim_v))))
    }
}

fn check_dtypes(dtypes: [(&str, DType); 3]) -> Result<()> {
    let (_, q_dtype) = dtypes[0];
    for (name, dtype) in dtypes {
        if !matches!(dtype, DType::F16 | DType::BF16) {
            bail!("sluice-attention: {name} is {dtype:?}; it must be F16 or BF16");
        }
        if dtype != q_dtype {
            bail!("sluice-attention: {name} is {dtype:?}; it must be {q_dtype:?} as q is");
        }
    }
    Ok(())
}

/// Refuses tensors that are not \[batch, tokens, heads, head_dim\] of one call. Sluice itself refuses
/// what it cannot compute.
fn check_shapes([q, k, v]: [&Layout; 3]) -> Result<()> {
    for (name, layout) in [("q", q), ("k", k), ("v", v)] {
        let shape = layout.dims();
        if shape.len() != 4 {
            bail!(
                "sluice-attention: {name} has shape {shape:?}; it must be [batch, tokens, heads, head_dim]"
            );
        }
        if let Some(i) = [2, 3].into_iter().find(|i| shape[*i] == 0) {
            bail!("sluice-attention: {name}.shape[{i}] is 0; it must be at least 1");
        }
    }
    for (name, layout, other_name, other, i) in [
        ("k", k, "q", q, 0),
        ("k", k, "q", q, 3),
        ("v", v, "k", k, 0),
        ("v", v, "k", k, 1),
        ("v", v, "k", k, 2),
    ] {
        let (is, wanted) = (layout.dims()[i], other.dims()[i]);
        if is != wanted {
            bail!(
                "sluice-attention: {name}.shape[{i}] is {is}; it must be {wanted} as {other_name}.shape[{i}] \
                 is"
            );
        }
    }
    Ok(())
}

/// The elements that a checked layout reaches, from its first one on.
fn input<'a, T: HalfFloat>(storage: &'a CpuStorage, layout: &Layout) -> Result<Input<'a, T>> {
    let (shape, stride) = (layout.shape().dims4()?, layout.stride());
    let shape: [usize; 4] = shape.into();
    let stride: [usize; 4] = std::array::from_fn(|i| stride[i]);
    // The first element of a view without elements may be outside the storage.
    let reached = if shape.contains(&0) {
        0..0
    } else {
        let last: usize = shape.iter().zip(stride).map(|(extent, stride)| (extent - 1) * stride).sum();
        layout.start_offset()..layout.start_offset() + last + 1
    };
    Ok(Input {
        elements: &T::cpu_storage_as_slice(storage)?[reached],
        layout: sluice::Layout::strided(shape, stride.map(|stride| stride as i64)),
    })
}
