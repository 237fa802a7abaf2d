//! Merges of partial results.

use crate::attention::Lse;
use crate::cache_ops::number;
use crate::element::Dtype;
use crate::error::{int, Error, Result};
use crate::format::ScaleKind;
use crate::tensor::{optional, Array, Device, Extent, Tensor, TensorMut};
use sluice_sys as sys;
use std::ffi::c_void;
use std::ops::Range;
use Extent::{AtLeast, Exactly};

/// Results of attention over splits of the keys, to be merged into one; the header's `sluice_merge_args`. Types and extents
/// come from the tensors.
#[derive(Debug)]
pub struct Merge<'a> {
    /// Normalised results of the parts, \[part, token, head, head_dim\].
    pub partial: Tensor<'a, Device>,
    /// \[part, token, head, 1\] in F32.
    pub partial_lse: Tensor<'a, Device>,
    /// \[1, token, head, head_dim\].
    pub o: TensorMut<'a, Device>,
    /// \[1, token, head, 1\] in F32.
    pub lse: Option<TensorMut<'a, Device>>,
    /// Base of `partial_lse` and `lse`.
    pub lse_base: Lse,
    /// \[heads\], to base e: counted once.
    pub sinks: Option<Array<'a, f32, Device>>,
    /// An LSE of +infinity also marks a part that does not count, as in FlashAttention's results.
    pub infinity_is_empty: bool,
    /// Further parts with their LSEs, each in memory of its own, and shaped as the first, which `partial` and
    /// `partial_lse` are then: \[1, token, head, head_dim\] and \[1, token, head, 1\].
    pub others: Vec<(Tensor<'a, Device>, Tensor<'a, Device>)>,
    /// Tokens of each sequence, if LSEs, of each part and of the result, are \[sequence, token, head, 1\]. Then `partial`
    /// is one part.
    pub sequence_tokens: Option<usize>,
    /// For an FP8 `o`, which is divided by it: \[1\] or \[heads\].
    pub o_scale: Option<Array<'a, f32, Device>>,
    /// What shares a number of `o_scale`.
    pub o_scale_kind: ScaleKind,
}

/// Addresses of parts, and of their LSEs.
type Lists = (Vec<*const c_void>, Vec<*const c_void>);

/// Whether strides differ that an index is multiplied with.
fn differ(dimensions: Range<usize>, shape: [usize; 4], stride: [i64; 4], other: [i64; 4]) -> bool {
    dimensions.into_iter().any(|i| shape[i] > 1 && stride[i] != other[i])
}

impl<'a> Merge<'a> {
    /// A minimal merge of parts that are in one tensor: LSEs to base e, which are read but not written, and no sinks.
    pub fn new(
        partial: Tensor<'a, Device>,
        partial_lse: Tensor<'a, Device>,
        o: TensorMut<'a, Device>,
    ) -> Self {
        Merge {
            partial,
            partial_lse,
            o,
            lse: None,
            lse_base: Lse::Ln,
            sinks: None,
            infinity_is_empty: false,
            others: Vec::new(),
            sequence_tokens: None,
            o_scale: None,
            o_scale_kind: ScaleKind::None,
        }
    }

    pub(crate) fn with_raw<R>(
        &self,
        function: impl FnOnce(&sys::sluice_merge_args) -> Result<R>,
    ) -> Result<R> {
        let [parts, tokens, heads, dim] = self.partial.layout().shape();
        let is_list = !self.others.is_empty() || self.sequence_tokens.is_some();
        if is_list && parts != 1 {
            let message = format!("partial.shape[0] is {parts}; it must be 1 with other parts or sequences");
            return Err(Error::invalid("partial.shape[0]", message));
        }
        let sequence = self.sequence_tokens.unwrap_or(tokens);
        if tokens % sequence.max(1) != 0 || (sequence == 0 && tokens != 0) {
            let message = format!("sequence_tokens is {sequence}; it must divide the {tokens} tokens");
            return Err(Error::invalid("sequence_tokens", message));
        }
        let (partial, o) = (number(&self.partial.view, "partial")?, number(&self.o.view, "o")?);
        let extents = |parts, dim| [Exactly(parts), Exactly(tokens), Exactly(heads), dim];
        let mut raw = sys::sluice_merge_args::default();
        (raw.parts.r#type, raw.o_format.r#type) = (partial as u32, o as u32);
        raw.parts.count = int("parts.count", parts + self.others.len())?;
        raw.tokens = int("tokens", tokens)?;
        raw.heads = int("heads", heads)?;
        raw.head_dim = int("head_dim", dim)?;
        raw.lse_base = self.lse_base as u32;
        if self.infinity_is_empty {
            raw.flags |= sys::SLUICE_MERGE_INFINITY_IS_EMPTY;
        }
        raw.parts.o = self.partial.view.checked("partial", Some(partial), 0, extents(parts, Exactly(dim)))?;
        let f32 = Some(Dtype::F32);
        // The first index is a part, or a sequence.
        let lses = |parts| match self.sequence_tokens {
            None => extents(parts, AtLeast(1)),
            Some(sequence) => {
                [Exactly(tokens / sequence.max(1)), Exactly(sequence), Exactly(heads), AtLeast(1)]
            }
        };
        raw.parts.lse = self.partial_lse.view.checked("partial_lse", f32, 0, lses(parts))?;
        let mut lists = (vec![], vec![]);
        if is_list {
            lists = self.lists(&raw.parts, extents(1, Exactly(dim)), lses(1))?;
            (raw.parts.o_list, raw.parts.lse_list) = (lists.0.as_ptr(), lists.1.as_ptr());
            if let Some(sequence) = self.sequence_tokens {
                raw.sequence_tokens = int("sequence_tokens", sequence)?;
                raw.parts.lse_sequence_stride = raw.parts.lse.stride[0];
            }
            for tensor in [&mut raw.parts.o, &mut raw.parts.lse] {
                (tensor.data, tensor.stride[0]) = (std::ptr::null_mut(), 0);
            }
        }
        self.put_result(&mut raw, extents(1, Exactly(dim)), lses(1), heads)?;
        let result = function(&raw);
        drop(lists); // which raw points to
        result
    }

    fn put_result(
        &self,
        raw: &mut sys::sluice_merge_args,
        rows: [Extent; 4],
        lses: [Extent; 4],
        heads: usize,
    ) -> Result<()> {
        raw.o = self.o.view.checked("o", self.o.view.dtype, 0, rows)?;
        if let Some(lse) = &self.lse {
            raw.lse = lse.view.checked("lse", Some(Dtype::F32), 0, lses)?;
            if self.sequence_tokens.is_some() {
                raw.lse_sequence_stride = raw.lse.stride[0];
                raw.lse.stride[0] = 0;
            }
        }
        raw.sinks = optional(&self.sinks, "sinks", heads)?;
        raw.o_format.scale_kind = self.o_scale_kind as u32;
        let scales = if self.o_scale_kind == ScaleKind::PerHead { heads } else { 1 };
        raw.o_scale = optional(&self.o_scale, "o_scale", scales)?;
        Ok(())
    }

    /// Where all parts and their LSEs are. `first` has the first of each, whose strides all have.
    fn lists(&self, first: &sys::sluice_parts, rows: [Extent; 4], lses: [Extent; 4]) -> Result<Lists> {
        let mut lists: Lists = (vec![first.o.data as *const c_void], vec![first.lse.data as *const c_void]);
        for (n, (other, lse)) in self.others.iter().enumerate() {
            let name = format!("others[{n}]");
            let part = other.view.checked(&name, self.partial.view.dtype, 0, rows)?;
            let numbers = lse.view.checked(&name, Some(Dtype::F32), 0, lses)?;
            let with_sequences = usize::from(self.sequence_tokens.is_none());
            if differ(1..4, other.layout().shape(), part.stride, first.o.stride)
                || differ(with_sequences..3, lse.layout().shape(), numbers.stride, first.lse.stride)
            {
                let message = format!("{name} has other strides than the first part");
                return Err(Error::invalid(name, message));
            }
            lists.0.push(part.data as *const c_void);
            lists.1.push(numbers.data as *const c_void);
        }
        Ok(lists)
    }
}
