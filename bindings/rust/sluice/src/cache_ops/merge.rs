//! Merges of partial results.

use super::{number, scale, AppendScale};
use crate::element::Dtype;
use crate::error::{init, int, Error, Result};
use crate::problem::LseBase;
use crate::tensor::{optional, Array, Device, Extent, Tensor, TensorMut};
use sluice_sys as sys;
use std::ffi::c_void;
use std::ops::Range;
use Extent::{AtLeast, Exactly};

/// Results of attention over splits of the keys, to be merged into one; the header's `sluice_merge`. Types and extents
/// come from the tensors.
#[derive(Debug)]
pub struct Merge<'a> {
    /// Normalised results of the parts, \[part, token, head, head_dim_v\].
    pub partial: Tensor<'a, Device>,
    /// \[part, token, head, 1\] in F32.
    pub partial_lse: Tensor<'a, Device>,
    /// \[1, token, head, head_dim_v\].
    pub o: TensorMut<'a, Device>,
    /// \[1, token, head, 1\] in F32.
    pub lse: Option<TensorMut<'a, Device>>,
    /// Base of `partial_lse` and `lse`.
    pub lse_base: LseBase,
    /// \[heads\], to base e: counted once.
    pub sink_logits: Option<Array<'a, f32, Device>>,
    /// An LSE of +infinity also marks a part that does not count, as in FlashAttention's results.
    pub infinity_is_empty: bool,
    /// Further parts with their LSEs, each in memory of its own, and shaped as the first, which `partial` and
    /// `partial_lse` are then: \[1, token, head, head_dim_v\] and \[1, token, head, 1\].
    pub others: Vec<(Tensor<'a, Device>, Tensor<'a, Device>)>,
    /// Tokens of each sequence, if LSEs, of each part and of the result, are \[sequence, token, head, 1\]. Then `partial`
    /// is one part.
    pub sequence_tokens: Option<usize>,
    /// An FP8 `o` is divided by this: one scale, or one for each head.
    pub o_scale: Option<AppendScale<'a, Device>>,
}

/// A call, and the lists of parts that it points to.
pub(crate) struct RawMerge {
    pub(crate) call: sys::sluice_merge,
    _partial_list: Vec<*const c_void>,
    _partial_lse_list: Vec<*const c_void>,
}

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
            lse_base: LseBase::E,
            sink_logits: None,
            infinity_is_empty: false,
            others: Vec::new(),
            sequence_tokens: None,
            o_scale: None,
        }
    }

    pub(crate) fn to_raw(&self) -> Result<RawMerge> {
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
        let mut raw: sys::sluice_merge = init(sys::sluice_merge_init);
        (raw.partial_type, raw.o_type) = (partial as u32, o as u32);
        raw.parts = int("parts", parts + self.others.len())?;
        raw.tokens = int("tokens", tokens)?;
        raw.heads = int("heads", heads)?;
        raw.head_dim_v = int("head_dim_v", dim)?;
        raw.lse_base = self.lse_base as u32;
        if self.infinity_is_empty {
            raw.flags |= sys::SLUICE_MERGE_INFINITY_IS_EMPTY;
        }
        raw.partial = self.partial.view.checked("partial", Some(partial), 0, extents(parts, Exactly(dim)))?;
        let f32 = Some(Dtype::F32);
        // The first index is a part, or a sequence.
        let lses = |parts| match self.sequence_tokens {
            None => extents(parts, AtLeast(1)),
            Some(sequence) => {
                [Exactly(tokens / sequence.max(1)), Exactly(sequence), Exactly(heads), AtLeast(1)]
            }
        };
        raw.partial_lse = self.partial_lse.view.checked("partial_lse", f32, 0, lses(parts))?;
        let (mut partial_list, mut partial_lse_list) = (vec![], vec![]);
        if is_list {
            partial_list.push(raw.partial.data as *const c_void);
            partial_lse_list.push(raw.partial_lse.data as *const c_void);
            for (n, (other, lse)) in self.others.iter().enumerate() {
                let name = format!("others[{n}]");
                let (rows, numbers) = (
                    other.view.checked(&name, Some(partial), 0, extents(1, Exactly(dim)))?,
                    lse.view.checked(&name, f32, 0, lses(1))?,
                );
                let with_sequences = usize::from(self.sequence_tokens.is_none());
                if differ(1..4, other.layout().shape(), rows.stride, raw.partial.stride)
                    || differ(with_sequences..3, lse.layout().shape(), numbers.stride, raw.partial_lse.stride)
                {
                    return Err(Error::invalid(
                        name.clone(),
                        format!("{name} has other strides than the first part"),
                    ));
                }
                partial_list.push(rows.data as *const c_void);
                partial_lse_list.push(numbers.data as *const c_void);
            }
            (raw.partial_list, raw.partial_lse_list) = (partial_list.as_ptr(), partial_lse_list.as_ptr());
            if let Some(sequence) = self.sequence_tokens {
                raw.sequence_tokens = int("sequence_tokens", sequence)?;
                raw.partial_lse_sequence_stride = raw.partial_lse.stride[0];
            }
            for tensor in [&mut raw.partial, &mut raw.partial_lse] {
                (tensor.data, tensor.stride[0]) = (std::ptr::null_mut(), 0);
            }
        }
        raw.o = self.o.view.checked("o", Some(o), 0, extents(1, Exactly(dim)))?;
        if let Some(lse) = &self.lse {
            raw.lse = lse.view.checked("lse", f32, 0, lses(1))?;
            if self.sequence_tokens.is_some() {
                raw.lse_sequence_stride = raw.lse.stride[0];
                raw.lse.stride[0] = 0;
            }
        }
        raw.sink_logits = optional(&self.sink_logits, "sink_logits", heads)?;
        (raw.o_scale_kind, raw.o_scale) = scale(&self.o_scale, "o_scale", heads)?;
        Ok(RawMerge { call: raw, _partial_list: partial_list, _partial_lse_list: partial_lse_list })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{array, tensor, tensor_mut};
    use super::*;
    use crate::element::F16;
    use crate::layout::Layout;

    #[test]
    fn every_field_of_a_merge_arrives() {
        let merge = Merge {
            partial: tensor::<f32>(1, Layout::contiguous([3, 5, 2, 64])),
            partial_lse: tensor::<f32>(2, Layout::contiguous([3, 5, 2, 1])),
            o: tensor_mut::<F16>(3, Layout::rows([5, 2, 64])),
            lse: Some(tensor_mut::<f32>(4, Layout::rows([5, 2, 1]))),
            lse_base: LseBase::Two,
            sink_logits: Some(array(5, 2)),
            o_scale: Some(AppendScale::PerHead(array(6, 2))),
            ..Merge::new(
                tensor::<f32>(1, Layout::contiguous([3, 5, 2, 64])),
                tensor::<f32>(2, Layout::contiguous([3, 5, 2, 1])),
                tensor_mut::<F16>(3, Layout::rows([5, 2, 64])),
            )
        };
        let sys::sluice_merge {
            struct_size,
            flags,
            partial_type,
            o_type,
            parts,
            tokens,
            heads,
            head_dim_v,
            lse_base,
            reserved,
            partial,
            partial_lse,
            o,
            lse,
            sink_logits,
            partial_list,
            partial_lse_list,
            partial_lse_sequence_stride,
            lse_sequence_stride,
            sequence_tokens,
            o_scale_kind,
            o_scale,
        } = merge.to_raw().unwrap().call;
        assert_eq!(struct_size as usize, std::mem::size_of::<sys::sluice_merge>());
        assert_eq!((flags, reserved, partial_type, o_type, lse_base), (0, 0, 3, 1, 1));
        assert_eq!((parts, tokens, heads, head_dim_v), (3, 5, 2, 64));
        assert_eq!([partial, partial_lse, o, lse].map(|t| t.data as usize), [1, 2, 3, 4]);
        assert_eq!(sink_logits as usize, 5);
        assert!(partial_list.is_null() && partial_lse_list.is_null());
        assert_eq!((partial_lse_sequence_stride, lse_sequence_stride, sequence_tokens), (0, 0, 0));
        assert_eq!((o_scale_kind, o_scale as usize), (2, 6));

        let part = |n| tensor::<f32>(n, Layout::contiguous([1, 6, 2, 64]));
        let lses = |n| tensor::<f32>(n, Layout::strided([3, 2, 2, 1], [8, 1, 3, 0]));
        let mut merge = Merge::new(part(1), lses(2), tensor_mut::<F16>(3, Layout::rows([6, 2, 64])));
        merge.lse = Some(tensor_mut::<f32>(4, Layout::strided([3, 2, 2, 1], [9, 1, 4, 0])));
        merge.others = vec![(part(5), lses(6)), (part(7), lses(8))];
        merge.sequence_tokens = Some(2);
        merge.infinity_is_empty = true;
        let raw = merge.to_raw().unwrap();
        let call = &raw.call;
        assert_eq!((call.flags, call.parts, call.tokens, call.sequence_tokens), (1, 3, 6, 2));
        assert_eq!((call.partial.data as usize, call.partial_lse.data as usize), (0, 0));
        assert_eq!((call.partial.stride[0], call.partial_lse.stride), (0, [0, 1, 3, 0]));
        assert_eq!(
            (call.partial_lse_sequence_stride, call.lse_sequence_stride, call.lse.stride[0]),
            (8, 9, 0)
        );
        let list = |list: &[*const c_void]| list.iter().map(|&part| part as usize).collect::<Vec<_>>();
        assert_eq!((list(&raw._partial_list), list(&raw._partial_lse_list)), (vec![1, 5, 7], vec![2, 6, 8]));
        assert_eq!(call.partial_list, raw._partial_list.as_ptr());
        assert_eq!(call.partial_lse_list, raw._partial_lse_list.as_ptr());
        merge.others[1].1 = tensor::<f32>(8, Layout::strided([3, 2, 2, 1], [8, 2, 4, 0]));
        let refused = |merge: &Merge| merge.to_raw().err().unwrap().field.to_string();
        assert_eq!(refused(&merge), "others[1]");
        // One head: its stride is never used.
        let (part, lses) = (
            |stride| tensor::<f32>(1, Layout::strided([1, 6, 1, 64], [0, 64, stride, 1])),
            |stride| tensor::<f32>(2, Layout::strided([1, 6, 1, 1], [stride, 1, stride, stride])),
        );
        let mut one_head = Merge::new(part(64), lses(1), tensor_mut::<F16>(3, Layout::rows([6, 1, 64])));
        one_head.others = vec![(part(7), lses(9))];
        assert!(one_head.to_raw().is_ok());
        merge.others.clear();
        merge.sequence_tokens = Some(4);
        assert_eq!(refused(&merge), "sequence_tokens");
    }
}
