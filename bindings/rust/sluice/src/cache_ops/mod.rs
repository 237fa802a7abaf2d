//! Operations on paged caches, and merges of partial results.

/// Puts the scales of K and V, and what is subtracted in groups, into the struct of an append, a copy or a gather: these
/// have the same fields for them. `cache`: rows of a page, and heads.
macro_rules! put_scales {
    ($raw:ident, $call:expr, $dim_qk:expr, $cache:expr) => {{
        use crate::cache_ops::{group_size, put_arrays, scale};
        let (call, cache, dim_v) = ($call, $cache, $raw.head_dim_v as usize);
        ($raw.k_scale_kind, $raw.k_scale) = scale(&call.k_scale, "k_scale", cache.1)?;
        ($raw.v_scale_kind, $raw.v_scale) = scale(&call.v_scale, "v_scale", cache.1)?;
        $raw.scale_group = crate::error::int("scale_group", group_size(&call.k_scale, &call.v_scale)?)?;
        let mut has_zeros =
            put_arrays(&call.k_scale, "k", $dim_qk, cache, &mut $raw.k_scales, &mut $raw.k_zeros)?;
        has_zeros |= put_arrays(&call.v_scale, "v", dim_v, cache, &mut $raw.v_scales, &mut $raw.v_zeros)?;
        if has_zeros {
            $raw.flags |= sys::SLUICE_ZERO_POINTS;
        }
    }};
}

mod append;
mod merge;
mod pages;

pub use append::{reference_append, Append, Norms, Numbers, Place, Queries, Rotary, RotaryStyle};
pub use merge::Merge;
pub use pages::{reference_copy, reference_gather, CopiedScales, Gather, PageCopy};

use crate::element::Dtype;
use crate::error::{Error, Result};
use crate::tensor::{Array, Device, Extent, Memory, Tensor, TensorMut, View};
use sluice_sys as sys;
use Extent::{AtLeast, Exactly};

/// Scales that values are divided by for a cache of 8 or 4 bits, and multiplied with from FP8.
#[derive(Debug)]
pub enum AppendScale<'a, M: Memory = Device> {
    /// One scale.
    PerTensor(Array<'a, f32, M>),
    /// \[kv_heads\].
    PerHead(Array<'a, f32, M>),
    /// \[page, 1, kv_heads, 1\] in F32.
    PerPage(Tensor<'a, M>),
    /// \[page, page_size, kv_heads, 1\] in F32: computed for each new row of a head, and written.
    PerToken(TensorMut<'a, M>),
    /// For [`Dtype::U4`]: computed for each group of a new row, and written.
    PerGroup {
        /// Elements of a group: 32 or 64, the same for K and V.
        size: usize,
        /// \[page, page_size, kv_heads, group\] in F16.
        scales: TensorMut<'a, M>,
        /// What is subtracted from the numbers of a group, laid out as the scales; None: 8.
        zeros: Option<TensorMut<'a, M>>,
    },
}

/// The type of a tensor of numbers.
fn number(view: &View, name: &str) -> Result<Dtype> {
    view.dtype
        .ok_or_else(|| Error::invalid(format!("{name}.dtype"), format!("{name} holds bytes, not numbers")))
}

fn scale<M: Memory>(scale: &Option<AppendScale<M>>, name: &str, heads: usize) -> Result<(u32, *const f32)> {
    Ok(match scale {
        None => (sys::SLUICE_SCALE_NONE, std::ptr::null()),
        Some(AppendScale::PerTensor(one)) => (sys::SLUICE_SCALE_PER_TENSOR, one.checked(name, 1)?),
        Some(AppendScale::PerHead(scales)) => (sys::SLUICE_SCALE_PER_HEAD, scales.checked(name, heads)?),
        Some(AppendScale::PerPage(_)) => (sys::SLUICE_SCALE_PER_PAGE, std::ptr::null()),
        Some(AppendScale::PerToken(_)) => (sys::SLUICE_SCALE_PER_TOKEN, std::ptr::null()),
        Some(AppendScale::PerGroup { .. }) => (sys::SLUICE_SCALE_PER_GROUP, std::ptr::null()),
    })
}

/// The scales of pages, tokens or groups.
fn scales_view<'s, M: Memory>(scale: &'s Option<AppendScale<M>>) -> Option<&'s View> {
    match scale {
        Some(AppendScale::PerPage(scales)) => Some(&scales.view),
        Some(AppendScale::PerToken(scales)) => Some(&scales.view),
        Some(AppendScale::PerGroup { scales, .. }) => Some(&scales.view),
        _ => None,
    }
}

/// The numbers that are subtracted in groups.
fn zeros_view<'s, M: Memory>(scale: &'s Option<AppendScale<M>>) -> Option<&'s View> {
    match scale {
        Some(AppendScale::PerGroup { zeros, .. }) => zeros.as_ref().map(|zeros| &zeros.view),
        _ => None,
    }
}

/// Elements of a group, which K and V have in common; 0 without groups.
fn group_size<M: Memory>(k: &Option<AppendScale<M>>, v: &Option<AppendScale<M>>) -> Result<usize> {
    let size = |scale: &Option<AppendScale<M>>| match scale {
        Some(AppendScale::PerGroup { size, .. }) => Some(*size),
        _ => None,
    };
    match (size(k), size(v)) {
        (Some(k), Some(v)) if k != v => {
            let message = format!("v_scale.size is {v}; it must be that of K, which is {k}");
            Err(Error::invalid("v_scale.size", message))
        }
        (k, v) => Ok(k.or(v).unwrap_or(0)),
    }
}

/// What the arrays of scales of a cache with rows of `dim` elements are: their type, rows of a page, and scales of a row.
fn form_of_arrays<M: Memory>(
    scale: &Option<AppendScale<M>>,
    dim: usize,
    page_size: usize,
) -> (Dtype, usize, usize) {
    match scale {
        // The library refuses other sizes of a group, and groups that do not fill a row.
        Some(AppendScale::PerGroup { size, .. }) => (Dtype::F16, page_size, dim / (*size).max(1)),
        Some(AppendScale::PerToken(_)) => (Dtype::F32, page_size, 1),
        _ => (Dtype::F32, 1, 1),
    }
}

/// Puts the scales of pages, tokens or groups of K or V ("k" or "v"), and what is subtracted in groups, into a call's
/// struct. Whether something is subtracted. `cache`: rows of a page, and heads.
fn put_arrays<M: Memory>(
    scale: &Option<AppendScale<M>>,
    side: &str,
    dim: usize,
    cache: (usize, usize),
    to: &mut sys::sluice_tensor,
    to_zeros: &mut sys::sluice_tensor,
) -> Result<bool> {
    let view = match scales_view(scale) {
        Some(view) => view,
        None => return Ok(false),
    };
    let (dtype, rows, last) = form_of_arrays(scale, dim, cache.0);
    let extents = [AtLeast(1), AtLeast(rows), Exactly(cache.1), AtLeast(last)];
    *to = view.checked(&format!("{side}_scales"), Some(dtype), 0, extents)?;
    if dtype == Dtype::F32 {
        to.stride[3] = 0;
    }
    match zeros_view(scale) {
        Some(zeros) => *to_zeros = zeros.checked(&format!("{side}_zeros"), Some(dtype), 0, extents)?,
        None => return Ok(false),
    }
    Ok(true)
}

/// Views of memory that is never accessed, at addresses that tests look for.
#[cfg(test)]
mod fixture {
    use crate::element::{Element, Plain};
    use crate::layout::Layout;
    use crate::tensor::{Array, Device, Tensor, TensorMut};

    pub fn array<T: Plain>(address: usize, len: usize) -> Array<'static, T, Device> {
        // SAFETY: the memory is never accessed.
        unsafe { Array::from_raw(address as *const T, len) }
    }

    pub fn tensor<T: Element>(address: usize, layout: Layout) -> Tensor<'static, Device> {
        // SAFETY: as above.
        unsafe { Tensor::from_raw(address as *const T, layout) }.unwrap()
    }

    pub fn tensor_mut<T: Element>(address: usize, layout: Layout) -> TensorMut<'static, Device> {
        // SAFETY: as above.
        unsafe { TensorMut::from_raw(address as *mut T, layout) }.unwrap()
    }
}
