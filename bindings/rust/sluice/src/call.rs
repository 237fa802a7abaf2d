//! One call.

use crate::attention::{pointer, Attention, MaskBits};
use crate::element::Dtype;
use crate::error::{call, int, int_64, Error, Result};
use crate::kv::{Keys, Rows};
use crate::tensor::{fewest, optional, Array, Device, Extent, Host, Memory, Tensor, TensorMut};
use sluice_sys as sys;
use std::ptr;
use Extent::{AtLeast, Exactly};

/// Keys that groups of rows see before their sequence's own, with [`Attention::prefixes`]; the header's second
/// `sluice_keys`.
#[derive(Clone, Copy, Debug)]
pub struct Prefixes<'a, M: Memory = Device> {
    /// Groups.
    pub groups: usize,
    /// \[groups + 1\]: rows of Q before each group's first.
    pub group_starts: Array<'a, i32, M>,
    /// The keys of each group: in the cache of the sequences' own keys, or tensors \[group, key, kv_heads, ...\].
    pub keys: Keys<'a, M>,
}

/// What a call has for [`Attention::mask`]; the header's `sluice_mask_args`. Each member is given exactly if the mask
/// asks for it.
#[derive(Clone, Copy, Debug)]
pub struct MaskArgs<'a, M: Memory = Device> {
    /// Bytes, \[batch, q_heads, row, keys / 8 rounded up\]: key j is bit j % 8 of byte j / 8.
    pub bits: Option<Tensor<'a, M>>,
    /// \[batch, span_count, 2\]: the first key of a span, and the one after its last.
    pub spans: Option<Array<'a, i32, M>>,
    /// Spans of each sequence.
    pub span_count: usize,
    /// \[batch\]: the key on row 0's diagonal.
    pub diagonals: Option<Array<'a, i32, M>>,
    /// \[batch\]: not 0 for causal sequences.
    pub causal: Option<Array<'a, i32, M>>,
}

impl<M: Memory> Default for MaskArgs<'_, M> {
    /// Nothing.
    fn default() -> Self {
        MaskArgs { bits: None, spans: None, span_count: 0, diagonals: None, causal: None }
    }
}

/// What a call has for [`Attention::scores`]; the header's `sluice_scores_args`. Each member is given exactly if the
/// scores ask for it.
#[derive(Clone, Copy, Debug)]
pub struct ScoresArgs<'a, M: Memory = Device> {
    /// \[batch, q_heads, row, key\].
    pub bias: Option<Tensor<'a, M>>,
    /// \[q_heads\]: the bias is multiplied by it.
    pub bias_scale: Option<Array<'a, f32, M>>,
    /// Elements from one sequence's `bias_scale` to the next one's; 0: all sequences share them.
    pub bias_scale_stride: usize,
    /// \[q_heads\].
    pub alibi_slopes: Option<Array<'a, f32, M>>,
    /// Elements from one sequence's `alibi_slopes` to the next one's; 0: all sequences share them.
    pub alibi_stride: usize,
    /// \[q_heads\], to base e.
    pub sinks: Option<Array<'a, f32, M>>,
}

impl<M: Memory> Default for ScoresArgs<'_, M> {
    /// Nothing.
    fn default() -> Self {
        ScoresArgs {
            bias: None,
            bias_scale: None,
            bias_scale_stride: 0,
            alibi_slopes: None,
            alibi_stride: 0,
            sinks: None,
        }
    }
}

/// One call of a [`Plan`](crate::Plan), or of [`reference()`]; the header's `sluice_attention_args`. Extents and types
/// of all tensors are checked when the call is made.
#[derive(Debug)]
pub struct Call<'a, M: Memory = Device> {
    /// Sequences.
    pub batch: usize,
    /// Queries, \[batch, row, q_heads, head_dim_qk\]; with starts \[1, rows, q_heads, head_dim_qk\].
    pub q: Tensor<'a, M>,
    /// Result, with rows as in `q`.
    pub o: TensorMut<'a, M>,
    /// Rows of `q`, `o` and `lse`.
    pub rows: Rows<'a, M>,
    /// What the rows attend to.
    pub keys: Keys<'a, M>,
    /// What groups of rows see before that.
    pub prefixes: Option<Prefixes<'a, M>>,
    /// Scale of the scores; None: 1 / sqrt(head_dim_qk).
    pub scale: Option<f32>,
    /// Logarithm of the softmax denominator, \[batch, row, q_heads, 1\] in F32, with rows as in `q`.
    pub lse: Option<TensorMut<'a, M>>,
    /// For a mask that needs memory.
    pub mask: Option<MaskArgs<'a, M>>,
    /// For scores that need memory.
    pub scores: Option<ScoresArgs<'a, M>>,
    /// \[1\] or \[q_heads\].
    pub q_scale: Option<Array<'a, f32, M>>,
    /// \[1\] or \[q_heads\]: O is divided by it.
    pub o_scale: Option<Array<'a, f32, M>>,
}

/// The extents of a call.
struct Shape {
    batch: usize,
    q_heads: usize,
    rows: usize,
    keys: usize,
}

impl Shape {
    fn scores(&self, keys: usize) -> [Extent; 4] {
        [AtLeast(self.batch), AtLeast(self.q_heads), AtLeast(self.rows), AtLeast(keys)]
    }

    /// The numbers of all sequences, `stride` apart.
    fn head_numbers(&self, stride: usize) -> usize {
        self.batch.saturating_sub(1).saturating_mul(stride).saturating_add(self.q_heads)
    }
}

impl<M: Memory> MaskArgs<'_, M> {
    fn to_raw(self, bits: Option<MaskBits>, shape: &Shape) -> Result<sys::sluice_mask_args> {
        let mut raw = sys::sluice_mask_args::default();
        if let Some(tensor) = &self.bits {
            let masked = if bits == Some(MaskBits::OfNew) { shape.rows } else { shape.keys };
            raw.bits =
                tensor.view.checked("mask.bits", None, 0, shape.scores(masked.saturating_add(7) / 8))?;
        }
        let ends = shape.batch.saturating_mul(self.span_count).saturating_mul(2);
        raw.spans = optional(&self.spans, "mask.spans", ends)?;
        raw.span_count = int_64("mask.span_count", self.span_count)?;
        raw.diagonals = optional(&self.diagonals, "mask.diagonals", shape.batch)?;
        raw.causal = optional(&self.causal, "mask.causal", shape.batch)?;
        Ok(raw)
    }
}

impl<M: Memory> ScoresArgs<'_, M> {
    fn to_raw(self, bias: Option<Dtype>, shape: &Shape) -> Result<sys::sluice_scores_args> {
        let mut raw = sys::sluice_scores_args::default();
        if let Some(tensor) = &self.bias {
            raw.bias = match bias {
                None => tensor.view.raw(), // refused by the library
                dtype => tensor.view.checked("scores.bias", dtype, 0, shape.scores(shape.keys))?,
            };
        }
        let (factors, slopes) = (self.bias_scale_stride, self.alibi_stride);
        raw.bias_scale = optional(&self.bias_scale, "scores.bias_scale", shape.head_numbers(factors))?;
        raw.bias_scale_stride = int_64("scores.bias_scale_stride", factors)?;
        raw.alibi_slopes = optional(&self.alibi_slopes, "scores.alibi_slopes", shape.head_numbers(slopes))?;
        raw.alibi_stride = int_64("scores.alibi_stride", slopes)?;
        raw.sinks = optional(&self.sinks, "scores.sinks", shape.q_heads)?;
        Ok(raw)
    }
}

impl<'a, M: Memory> Call<'a, M> {
    /// A minimal call: nothing optional. Rows are a number that all sequences have, or [`Rows`].
    pub fn new(
        batch: usize,
        q: Tensor<'a, M>,
        rows: impl Into<Rows<'a, M>>,
        keys: Keys<'a, M>,
        o: TensorMut<'a, M>,
    ) -> Self {
        Call {
            batch,
            q,
            o,
            rows: rows.into(),
            keys,
            prefixes: None,
            scale: None,
            lse: None,
            mask: None,
            scores: None,
            q_scale: None,
            o_scale: None,
        }
    }

    /// Rows that all tensors have.
    fn total(&self) -> i64 {
        let lse = self.lse.as_ref().map(|lse| &lse.view);
        fewest(1, [Some(&self.q.view), Some(&self.o.view), lse])
    }

    /// Checks types, extents and counts, so that the library, which gets only pointers, stays within the tensors, and
    /// calls a function with the struct of the header, which points to others that live as long as the call.
    pub(crate) fn with_raw<R>(
        &self,
        attention: &Attention,
        function: impl FnOnce(&sys::sluice_attention_args) -> Result<R>,
    ) -> Result<R> {
        let (p, batch, bounds) = (attention, self.batch, &attention.bounds);
        if self.keys.kv.format != p.kv {
            let field = "keys[0].kv.format";
            return Err(Error::invalid(
                field,
                format!("{field} is not the format that the plan was made with"),
            ));
        }
        let shape = Shape {
            batch,
            q_heads: p.q_heads,
            rows: self.rows.longest("rows", bounds.q_len)?,
            keys: self.keys.rows.longest("keys[0].rows", bounds.kv_len)?,
        };
        let extents = |dim| match self.rows.starts {
            None => [AtLeast(batch), AtLeast(shape.rows), Exactly(p.q_heads), dim],
            Some(_) => [Exactly(1), AtLeast(0), Exactly(p.q_heads), dim],
        };
        let dim = |head_dim| extents(Exactly(p.row(head_dim)));
        let q = self.q.view.checked("q", Some(p.q.dtype), 0, dim(p.kv.head_dim_qk))?;
        let o = self.o.view.checked("o", Some(p.o.dtype), 0, dim(p.kv.head_dim_v))?;
        let check_lse =
            |lse: &TensorMut<M>| lse.view.checked("lse", Some(Dtype::F32), 0, extents(AtLeast(1)));
        let lse = self.lse.as_ref().map(check_lse).transpose()?;

        // The pages of prefixes are in the same caches.
        let is_read = batch != 0 && shape.rows != 0 && (shape.keys != 0 || self.prefixes.is_some());
        let (mut own_kv, mut own) = self.keys.to_raw("keys[0]", batch, shape.keys, is_read, p.padded_rows)?;
        own.kv = own_kv.linked();
        let (mut group_kv, mut keys) = (None, [own, sys::sluice_keys::default()]);
        if let Some(prefixes) = &self.prefixes {
            let (kv, raw) = prefixes.to_raw(attention)?;
            keys[1] = sys::sluice_keys { kv: group_kv.insert(kv).linked(), ..raw };
        }
        let mask = self.mask.map(|mask| mask.to_raw(p.mask_bits(), &shape)).transpose()?;
        let bias = p.scores.and_then(|scores| scores.bias);
        let scores = self.scores.map(|scores| scores.to_raw(bias, &shape)).transpose()?;
        function(&sys::sluice_attention_args {
            batch: int("batch", batch)?,
            q,
            o,
            rows: self.rows.to_raw("rows", batch, self.total())?,
            keys: keys.as_ptr(),
            key_sets: 1 + u32::from(self.prefixes.is_some()),
            scale: pointer(&self.scale),
            lse: pointer(&lse),
            mask: pointer(&mask),
            scores: pointer(&scores),
            q_scale: optional(&self.q_scale, "q_scale", p.q.scale_count(p.q_heads))?,
            o_scale: optional(&self.o_scale, "o_scale", p.o.scale_count(p.q_heads))?,
            ..Default::default()
        })
    }
}

impl<M: Memory> Prefixes<'_, M> {
    fn to_raw(&self, attention: &Attention) -> Result<(crate::kv::RawKv, sys::sluice_keys)> {
        if self.keys.kv.format != attention.kv {
            let field = "keys[1].kv.format";
            return Err(Error::invalid(
                field,
                format!("{field} is not the format that the plan was made with"),
            ));
        }
        let longest = self.keys.rows.longest("keys[1].rows", attention.bounds.group_keys)?;
        let (kv, mut raw) =
            self.keys.to_raw("keys[1]", self.groups, longest, longest != 0, attention.padded_rows)?;
        raw.groups = int("keys[1].groups", self.groups)?;
        raw.group_starts =
            self.group_starts.checked("keys[1].group_starts", self.groups.saturating_add(1))?;
        raw.kv = ptr::null();
        Ok((kv, raw))
    }
}

/// Computes a call on the host with plain loops in double precision: the reference for results.
///
/// Besides types and extents, the contents of starts and page tables are checked: they must stay within the memory of
/// K, V, Q and O. `docs/concepts/numerics.md` says how far a kernel may be from this.
///
/// ```
/// use sluice::{reference, Attention, Call, Dtype, Keys, Kv, KvFormat, Layout, Tensor, TensorMut};
/// let attention = Attention::new(Dtype::F32, 1, KvFormat::new(Dtype::F32, 1, 2));
/// let (q, k, v) = ([0.0f32; 2], [0.0f32; 4], [1.0f32, 2.0, 3.0, 4.0]);
/// let mut o = [0.0f32; 2];
/// let (row, rows) = (Layout::contiguous([1, 1, 1, 2]), Layout::contiguous([1, 2, 1, 2]));
/// let kv = Kv::new(attention.kv, Tensor::new(&k, rows)?, Some(Tensor::new(&v, rows)?));
/// let mut call = Call::new(1, Tensor::new(&q, row)?, 1, Keys::new(kv, 2), TensorMut::new(&mut o, row)?);
/// reference(&attention, &mut call)?;
/// assert_eq!(o, [2.0, 3.0]);
/// # Ok::<(), sluice::Error>(())
/// ```
pub fn reference(attention: &Attention, args: &mut Call<Host>) -> Result<()> {
    // SAFETY: all memory is borrowed until the call returns, mutably if it is written. with_raw has compared its extents
    // with the plan's and checked the entries that page tables are read at. With the counts that it sets, the library
    // checks the contents of starts and page tables before it uses them.
    attention.with_raw(|raw| {
        args.with_raw(attention, |args| {
            call(|error| unsafe { sys::sluice_attention_reference(raw, args, error) })
        })
    })
}
