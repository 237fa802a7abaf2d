//! Operations on paged caches, and merges of partial results.

mod append;
mod merge;
mod pages;

pub use append::{reference_append, Append, Norms, Numbers, Place, Queries, Rotary, RotaryStyle};
pub use merge::Merge;
pub use pages::{reference_copy, reference_gather, Gather, PageCopy};

use crate::element::Dtype;
use crate::error::{Error, Result};
use crate::tensor::{Array, Device, Memory, Tensor, TensorMut, View};
use sluice_sys as sys;

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
        Some(AppendScale::PerTensor(factor)) => (sys::SLUICE_SCALE_PER_TENSOR, factor.checked(name, 1)?),
        Some(AppendScale::PerHead(factors)) => (sys::SLUICE_SCALE_PER_HEAD, factors.checked(name, heads)?),
        Some(AppendScale::PerPage(_)) => (sys::SLUICE_SCALE_PER_PAGE, std::ptr::null()),
        Some(AppendScale::PerToken(_)) => (sys::SLUICE_SCALE_PER_TOKEN, std::ptr::null()),
        Some(AppendScale::PerGroup { .. }) => (sys::SLUICE_SCALE_PER_GROUP, std::ptr::null()),
    })
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
