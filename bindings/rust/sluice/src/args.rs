//! One call.

use crate::contents;
use crate::element::Dtype;
use crate::error::{call, init, int, Error, Result};
use crate::problem::Problem;
use crate::tensor::{fewest, optional, Array, Extent, Host, Memory, Tensor, TensorMut};
use sluice_sys as sys;
use std::os::raw::c_void;
use Extent::{AtLeast, Exactly};

/// Numbers of pages, in one of two widths.
#[derive(Clone, Copy, Debug)]
pub enum PageNumbers<'a, M: Memory> {
    /// The usual width.
    I32(Array<'a, i32, M>),
    /// With [`ProblemBuilder::page_index_64`](crate::ProblemBuilder::page_index_64).
    I64(Array<'a, i64, M>),
}

/// The pages of each sequence.
#[derive(Clone, Copy, Debug)]
pub enum PageTable<'a, M: Memory> {
    /// \[batch, pages\].
    Block {
        /// Page numbers of all sequences.
        pages: PageNumbers<'a, M>,
        /// Entries from one sequence's first to the next one's.
        stride: usize,
    },
    /// One list for all sequences.
    Csr {
        /// Page numbers of all sequences.
        pages: PageNumbers<'a, M>,
        /// \[batch + 1\]: entries before each sequence's first.
        starts: Array<'a, i32, M>,
    },
}

impl<M: Memory> PageNumbers<'_, M> {
    pub(crate) fn raw(&self) -> *const c_void {
        match self {
            PageNumbers::I32(numbers) => numbers.raw().cast(),
            PageNumbers::I64(numbers) => numbers.raw().cast(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            PageNumbers::I32(numbers) => numbers.len(),
            PageNumbers::I64(numbers) => numbers.len(),
        }
    }

    pub(crate) fn are_64(&self) -> bool {
        matches!(self, PageNumbers::I64(_))
    }
}

/// A tensor that a call does not have.
const NO_TENSOR: sys::sluice_tensor = sys::sluice_tensor { data: std::ptr::null_mut(), stride: [0; 4] };

/// A number that the header has as int64_t.
fn int_64(field: &str, value: usize) -> Result<i64> {
    i64::try_from(value)
        .map_err(|_| Error::invalid(field, format!("{field} is {value}; it must be at most {}", i64::MAX)))
}

/// Scales of K or V, one for each row of a head, for all rows of a page or for each group of a row; or the numbers to
/// subtract in groups. `keys` are the extents of a row.
fn key_scales<M: Memory>(
    name: &str,
    scales: &Option<Tensor<M>>,
    kind: u32,
    keys: [Extent; 4],
    scale_group: i32,
) -> Result<sys::sluice_tensor> {
    let view = match scales {
        None => return Ok(NO_TENSOR),
        Some(scales) => &scales.view,
    };
    let [outer, inner, heads, elements] = keys;
    let one = Exactly(1);
    match kind {
        sys::SLUICE_SCALE_PER_GROUP => {
            // The library refuses other sizes of a group, and groups that do not fill a row.
            let groups = elements.least() / usize::try_from(scale_group).map_or(1, |group| group.max(1));
            view.checked(name, Some(Dtype::F16), 0, [outer, inner, heads, AtLeast(groups)])
        }
        sys::SLUICE_SCALE_PER_TOKEN => view.checked(name, Some(Dtype::F32), 0, [outer, inner, heads, one]),
        sys::SLUICE_SCALE_PER_PAGE => {
            let mut raw = view.checked(name, Some(Dtype::F32), 0, [outer, one, heads, one])?;
            raw.stride[1] = 0; // all rows of a page share the only one
            Ok(raw)
        }
        _ => Ok(view.raw()), // refused by the library
    }
}

/// Table, stride and starts, as in three structs of the header.
pub(crate) struct RawTable {
    pub(crate) pages: *const c_void,
    pub(crate) stride: i64,
    pub(crate) starts: *const i32,
}

impl<'a, M: Memory> PageTable<'a, M> {
    /// Page numbers of all sequences.
    pub fn pages(&self) -> &PageNumbers<'a, M> {
        match self {
            PageTable::Block { pages, .. } | PageTable::Csr { pages, .. } => pages,
        }
    }

    /// The table of a call, called `field`, for `count` sequences or prefixes.
    fn put(&self, problem: &Problem, field: &str, starts_field: &str, count: usize) -> Result<RawTable> {
        if self.pages().are_64() != problem.has(sys::SLUICE_PAGE_INDEX_64) {
            let (is, wanted) = if self.pages().are_64() { ("i64", "i32") } else { ("i32", "i64") };
            return Err(Error::invalid(field, format!("{field} holds {is}; the problem says {wanted}")));
        }
        self.checked(field, starts_field, count)
    }

    pub(crate) fn checked(&self, field: &str, starts_field: &str, count: usize) -> Result<RawTable> {
        let pages = self.pages().raw();
        match self {
            PageTable::Block { stride, .. } => {
                let stride = int_64(&format!("{field}_stride"), *stride)?;
                Ok(RawTable { pages, stride, starts: std::ptr::null() })
            }
            PageTable::Csr { starts, .. } => Ok(RawTable {
                pages,
                stride: 0,
                starts: starts.checked(starts_field, count.saturating_add(1))?,
            }),
        }
    }
}

/// Elements of a row in memory: with [`ProblemBuilder::padded_rows`](crate::ProblemBuilder::padded_rows) more than the
/// head dim.
fn row_elements(problem: &sys::sluice_problem, head_dim: i32) -> i32 {
    match problem.flags & sys::SLUICE_PADDED_ROWS {
        0 => head_dim,
        _ => (head_dim + 7) / 8 * 8,
    }
}

/// The prefixes of a call with [`ProblemBuilder::shared_prefix`](crate::ProblemBuilder::shared_prefix): keys that rows
/// see before their sequence's own.
#[derive(Debug)]
pub struct Prefixes<'a, M: Memory> {
    /// Prefixes.
    pub count: usize,
    /// Keys of each prefix, or their maximum; None: the problem's bound.
    pub len: Option<usize>,
    /// \[count + 1\]: rows of q before the first one that sees each prefix.
    pub q_starts: Array<'a, i32, M>,
    /// \[count\]: keys of each prefix.
    pub lengths: Option<Array<'a, i32, M>>,
    /// Paged: the pages of each prefix, in the caches `k` and `v` of the call.
    pub page_table: Option<PageTable<'a, M>>,
    /// Dense and ragged: keys, \[count, len, kv_heads, head_dim_qk\].
    pub k: Option<Tensor<'a, M>>,
    /// Dense and ragged: values, laid out as the keys; None if V is in K.
    pub v: Option<Tensor<'a, M>>,
}

/// V, by rows or by columns, of which whole groups of 8 tokens are read.
fn values<M: Memory>(
    name: &str,
    v: &Tensor<'_, M>,
    p: &sys::sluice_problem,
    mut extents: [Extent; 4],
) -> Result<sys::sluice_tensor> {
    let is_one_pack = p.v_pack as u32 == sys::SLUICE_V_PACK_ALL;
    if let (true, AtLeast(keys)) = (is_one_pack, extents[1]) {
        extents[1] = AtLeast((keys / 8 + usize::from(keys % 8 != 0)).saturating_mul(8));
    }
    let token_pack = if is_one_pack { 0 } else { p.v_pack as usize };
    v.view.checked_in_packs(name, Dtype::from_raw(p.v_type), 0, token_pack, extents)
}

impl<M: Memory> Prefixes<'_, M> {
    fn put(&self, problem: &Problem, raw: &mut sys::sluice_args) -> Result<()> {
        let p = problem.raw();
        raw.prefix_count = int("prefix_count", self.count)?;
        raw.prefix_len = length("prefix_len", self.len, ("max_prefix_len", p.max_prefix_len))?;
        let len = raw.prefix_len as usize;
        let keys =
            |dim| [AtLeast(self.count), AtLeast(len), Exactly(p.kv_heads as usize), Exactly(dim as usize)];
        if let Some(k) = &self.k {
            raw.prefix_k = k.view.checked(
                "prefix_k",
                Dtype::from_raw(p.k_type),
                0,
                keys(row_elements(p, p.head_dim_qk)),
            )?;
        }
        if let Some(v) = &self.v {
            raw.prefix_v = match problem.has(sys::SLUICE_V_IN_K) {
                true => v.view.raw(), // refused by the library
                false => values("prefix_v", v, p, keys(row_elements(p, p.head_dim_v)))?,
            };
        }
        raw.prefix_q_starts = self.q_starts.checked("prefix_q_starts", self.count.saturating_add(1))?;
        raw.prefix_lengths = optional(&self.lengths, "prefix_lengths", self.count)?;
        if let Some(table) = &self.page_table {
            let table = table.put(problem, "prefix_page_table", "prefix_page_starts", self.count)?;
            (raw.prefix_page_table, raw.prefix_page_table_stride, raw.prefix_page_starts) =
                (table.pages, table.stride, table.starts);
        }
        Ok(())
    }
}

/// A length of a call, or the problem's bound where it is not given.
fn length(field: &str, given: Option<usize>, (bound_field, bound): (&str, i32)) -> Result<i32> {
    match given {
        Some(given) => int(field, given),
        None if bound != 0 => Ok(bound),
        None => {
            let message = format!(
                "{field} is None, which is the problem's {bound_field}, but the problem has no bound"
            );
            Err(Error::invalid(field, message))
        }
    }
}

/// One call of a [`Plan`](crate::Plan), or of [`reference()`]; the header's `sluice_args`. Extents and types of all
/// tensors are checked against the problem when the call is made.
#[derive(Debug)]
pub struct Args<'a, M: Memory> {
    /// Sequences.
    pub batch: usize,
    /// Query rows of each sequence, or their maximum; None: the problem's bound.
    pub q_len: Option<usize>,
    /// Keys of each sequence, or their maximum; None: the problem's bound. Rows without keys are 0.
    pub kv_len: Option<usize>,
    /// Scale of the scores; None: 1 / sqrt(head_dim_qk).
    pub scale: Option<f32>,
    /// Queries, \[batch, q_len, q_heads, head_dim_qk\]; with `q_starts` \[1, rows, q_heads, head_dim_qk\].
    pub q: Tensor<'a, M>,
    /// Keys, \[batch, kv_len, kv_heads, head_dim_qk\]; ragged \[1, rows, ...\]; paged \[page, page_size, ...\].
    pub k: Tensor<'a, M>,
    /// Values, laid out as the keys; None if V is in K.
    pub v: Option<Tensor<'a, M>>,
    /// Result, with rows as in `q`.
    pub o: TensorMut<'a, M>,
    /// Logarithm of the softmax denominator, \[batch, q_len, q_heads, 1\] in F32, with rows as in `q`.
    pub lse: Option<TensorMut<'a, M>>,
    /// \[batch + 1\]: rows of q before each sequence's first.
    pub q_starts: Option<Array<'a, i32, M>>,
    /// \[batch + 1\]: rows of k and v before each sequence's first.
    pub kv_starts: Option<Array<'a, i32, M>>,
    /// \[batch\]: query rows of each sequence.
    pub q_lengths: Option<Array<'a, i32, M>>,
    /// \[batch\]: keys of each sequence.
    pub kv_lengths: Option<Array<'a, i32, M>>,
    /// The pages of each sequence.
    pub page_table: Option<PageTable<'a, M>>,
    /// Added to the scores, \[batch, q_heads, q_len, kv_len\].
    pub bias: Option<Tensor<'a, M>>,
    /// Bytes, \[batch, q_heads, q_len, kv_len / 8 rounded up\]: key j is bit j % 8 of byte j / 8.
    pub mask: Option<Tensor<'a, M>>,
    /// \[q_heads\].
    pub alibi_slopes: Option<Array<'a, f32, M>>,
    /// \[q_heads\], to base e.
    pub sink_logits: Option<Array<'a, f32, M>>,
    /// \[1\] or \[q_heads\].
    pub q_scale: Option<Array<'a, f32, M>>,
    /// \[1\] or \[kv_heads\].
    pub k_scale: Option<Array<'a, f32, M>>,
    /// \[1\] or \[kv_heads\].
    pub v_scale: Option<Array<'a, f32, M>>,
    /// Scales of K per token, F32, laid out as K with rows of one element; per page \[page, 1, kv_heads, 1\]; per group,
    /// F16, laid out as K with rows of one element for each group.
    pub k_scales: Option<Tensor<'a, M>>,
    /// Scales of V per token, page or group, laid out as `k_scales`.
    pub v_scales: Option<Tensor<'a, M>>,
    /// With [`ProblemBuilder::zero_points`](crate::ProblemBuilder::zero_points): what is subtracted from the numbers of
    /// K, F16, with the layout of `k_scales`.
    pub k_zeros: Option<Tensor<'a, M>>,
    /// The same for V.
    pub v_zeros: Option<Tensor<'a, M>>,
    /// \[1\] or \[q_heads\]: O is divided by it.
    pub o_scale: Option<Array<'a, f32, M>>,
    /// \[q_heads\]: the bias is multiplied by it.
    pub bias_scale: Option<Array<'a, f32, M>>,
    /// \[batch\]: the key on row 0's diagonal.
    pub diagonals: Option<Array<'a, i32, M>>,
    /// \[batch\]: not 0 for causal sequences.
    pub causal: Option<Array<'a, i32, M>>,
    /// \[batch, span_count, 2\]: the first key of a span, and the one after its last.
    pub spans: Option<Array<'a, i32, M>>,
    /// Spans of each sequence.
    pub span_count: usize,
    /// Elements from one sequence's `alibi_slopes` to the next one's; 0: all sequences share them.
    pub alibi_batch_stride: usize,
    /// The same for `bias_scale`.
    pub bias_scale_batch_stride: usize,
    /// Keys that rows see before their sequence's own.
    pub prefixes: Option<Prefixes<'a, M>>,
    /// Entries of the page table from those of a KV head to the next one's; 0: all heads share them.
    pub page_table_head_stride: usize,
}

impl<'a, M: Memory> Args<'a, M> {
    /// A minimal call: as many rows and keys as the problem's bounds, nothing optional.
    pub fn new(
        batch: usize,
        q: Tensor<'a, M>,
        k: Tensor<'a, M>,
        v: Option<Tensor<'a, M>>,
        o: TensorMut<'a, M>,
    ) -> Self {
        Args {
            batch,
            q_len: None,
            kv_len: None,
            scale: None,
            q,
            k,
            v,
            o,
            lse: None,
            q_starts: None,
            kv_starts: None,
            q_lengths: None,
            kv_lengths: None,
            page_table: None,
            bias: None,
            mask: None,
            alibi_slopes: None,
            sink_logits: None,
            q_scale: None,
            k_scale: None,
            v_scale: None,
            k_scales: None,
            v_scales: None,
            k_zeros: None,
            v_zeros: None,
            o_scale: None,
            bias_scale: None,
            diagonals: None,
            causal: None,
            spans: None,
            span_count: 0,
            alibi_batch_stride: 0,
            bias_scale_batch_stride: 0,
            prefixes: None,
            page_table_head_stride: 0,
        }
    }

    /// Tells the library how many rows and pages all tensors have. It takes 0 for a number that is not known, so tensors
    /// without rows become a length of 0, to which starts would be limited.
    fn count_tokens(&self, problem: &Problem, raw: &mut sys::sluice_args) {
        let optional_tensors = [&self.v, &self.k_scales, &self.v_scales, &self.k_zeros, &self.v_zeros];
        let key_views = || {
            let others = optional_tensors.into_iter().map(|tensor| tensor.as_ref());
            std::iter::once(Some(&self.k)).chain(others).map(|tensor| tensor.map(|tensor| &tensor.view))
        };
        if self.q_starts.is_some() {
            let lse = self.lse.as_ref().map(|lse| &lse.view);
            raw.q_tokens = fewest(1, [Some(&self.q.view), Some(&self.o.view), lse]);
            if raw.q_tokens == 0 {
                raw.q_len = 0;
            }
        }
        match problem.raw().mode {
            sys::SLUICE_MODE_RAGGED => {
                raw.kv_tokens = fewest(1, key_views());
                if raw.kv_tokens == 0 {
                    raw.kv_len = 0;
                }
            }
            sys::SLUICE_MODE_PAGED => raw.page_count = fewest(0, key_views()),
            _ => {}
        }
    }

    /// Checks types, extents and counts, so that the library, which gets only pointers, stays within the tensors. Tells
    /// it how many rows and pages all tensors have, to limit starts and page tables.
    pub(crate) fn to_raw(&self, problem: &Problem) -> Result<sys::sluice_args> {
        let p = problem.raw();
        let batch = self.batch;
        let [q_heads, kv_heads, dim_qk, dim_v] =
            [p.q_heads, p.kv_heads, row_elements(p, p.head_dim_qk), row_elements(p, p.head_dim_v)]
                .map(|value| value as usize);
        let mut raw: sys::sluice_args = init(sys::sluice_args_init);
        raw.batch = int("batch", batch)?;
        raw.q_len = length("q_len", self.q_len, ("max_q_len", p.max_q_len))?;
        raw.kv_len = length("kv_len", self.kv_len, ("max_kv_len", p.max_kv_len))?;
        self.count_tokens(problem, &mut raw);
        let (q_len, kv_len) = (raw.q_len as usize, raw.kv_len as usize);
        raw.scale = self.scale.unwrap_or(0.0);
        if self.scale == Some(0.0) {
            raw.flags |= sys::SLUICE_EXACT_SCALE;
        }

        let rows = |heads, dim| match self.q_starts {
            None => [AtLeast(batch), AtLeast(q_len), Exactly(heads), dim],
            Some(_) => [Exactly(1), AtLeast(0), Exactly(heads), dim],
        };
        let has_keys = kv_len != 0 || self.prefixes.is_some(); // whose pages are in the same caches
        let is_read = usize::from(batch != 0 && q_len != 0 && has_keys);
        let keys = |dim| match p.mode {
            sys::SLUICE_MODE_RAGGED => [Exactly(1), AtLeast(0), Exactly(kv_heads), Exactly(dim)],
            sys::SLUICE_MODE_PAGED => {
                [AtLeast(is_read), Exactly(p.page_size as usize), Exactly(kv_heads), Exactly(dim)]
            }
            _ => [AtLeast(batch), AtLeast(kv_len), Exactly(kv_heads), Exactly(dim)],
        };
        raw.q = self.q.view.checked("q", Dtype::from_raw(p.q_type), 0, rows(q_heads, Exactly(dim_qk)))?;
        raw.k = self.k.view.checked("k", Dtype::from_raw(p.k_type), p.k_pack as usize, keys(dim_qk))?;
        raw.o = self.o.view.checked("o", Dtype::from_raw(p.o_type), 0, rows(q_heads, Exactly(dim_v)))?;
        if let Some(v) = &self.v {
            // If it must be absent, the library refuses it.
            raw.v = match problem.has(sys::SLUICE_V_IN_K) {
                true => v.view.raw(),
                false => values("v", v, p, keys(dim_v))?,
            };
        }
        if let Some(lse) = &self.lse {
            raw.lse = lse.view.checked("lse", Some(Dtype::F32), 0, rows(q_heads, AtLeast(1)))?;
        }
        let row_scales = |name, tensor, kind, dim| key_scales(name, tensor, kind, keys(dim), p.scale_group);
        raw.k_scales = row_scales("k_scales", &self.k_scales, p.k_scale_kind, dim_qk)?;
        raw.v_scales = row_scales("v_scales", &self.v_scales, p.v_scale_kind, dim_v)?;
        raw.k_zeros = row_scales("k_zeros", &self.k_zeros, p.k_scale_kind, dim_qk)?;
        raw.v_zeros = row_scales("v_zeros", &self.v_zeros, p.v_scale_kind, dim_v)?;
        let scores = |keys| [AtLeast(batch), AtLeast(q_heads), AtLeast(q_len), AtLeast(keys)];
        if let Some(bias) = &self.bias {
            raw.bias = match Dtype::from_raw(p.bias_type) {
                None => bias.view.raw(), // refused by the library if it must be absent
                dtype => bias.view.checked("bias", dtype, 0, scores(kv_len))?,
            };
        }
        if let Some(mask) = &self.mask {
            let masked = if problem.has(sys::SLUICE_MASK_NEW_ROWS) { q_len } else { kv_len };
            raw.mask = mask.view.checked("mask", None, 0, scores(masked.saturating_add(7) / 8))?;
        }

        let starts = batch.saturating_add(1);
        raw.q_starts = optional(&self.q_starts, "q_starts", starts)?;
        raw.kv_starts = optional(&self.kv_starts, "kv_starts", starts)?;
        raw.q_lengths = optional(&self.q_lengths, "q_lengths", batch)?;
        raw.kv_lengths = optional(&self.kv_lengths, "kv_lengths", batch)?;
        if let Some(table) = &self.page_table {
            let table = table.put(problem, "page_table", "page_starts", batch)?;
            (raw.page_table, raw.page_table_stride, raw.page_starts) =
                (table.pages, table.stride, table.starts);
        }
        raw.page_table_head_stride = int_64("page_table_head_stride", self.page_table_head_stride)?;
        let scale_count =
            |kind: u32, heads: usize| if kind == sys::SLUICE_SCALE_PER_HEAD { heads } else { 1 };
        // The numbers of all sequences, `stride` apart.
        let head_numbers =
            |stride: usize| batch.saturating_sub(1).saturating_mul(stride).saturating_add(q_heads);
        raw.alibi_batch_stride = int_64("alibi_batch_stride", self.alibi_batch_stride)?;
        raw.alibi_slopes =
            optional(&self.alibi_slopes, "alibi_slopes", head_numbers(self.alibi_batch_stride))?;
        raw.bias_scale_batch_stride = int_64("bias_scale_batch_stride", self.bias_scale_batch_stride)?;
        raw.bias_scale =
            optional(&self.bias_scale, "bias_scale", head_numbers(self.bias_scale_batch_stride))?;
        raw.sink_logits = optional(&self.sink_logits, "sink_logits", q_heads)?;
        raw.q_scale = optional(&self.q_scale, "q_scale", scale_count(p.q_scale_kind, q_heads))?;
        raw.k_scale = optional(&self.k_scale, "k_scale", scale_count(p.k_scale_kind, kv_heads))?;
        raw.v_scale = optional(&self.v_scale, "v_scale", scale_count(p.v_scale_kind, kv_heads))?;
        raw.o_scale = optional(&self.o_scale, "o_scale", scale_count(p.o_scale_kind, q_heads))?;
        raw.diagonals = optional(&self.diagonals, "diagonals", batch)?;
        raw.causal = optional(&self.causal, "causal", batch)?;
        raw.span_count = int_64("span_count", self.span_count)?;
        let ends = batch.saturating_mul(self.span_count).saturating_mul(2);
        raw.spans = optional(&self.spans, "spans", ends)?;
        let mut has_zeros = q_len == 0 || kv_len == 0;
        if let Some(prefixes) = &self.prefixes {
            prefixes.put(problem, &mut raw)?;
            has_zeros |= raw.prefix_len == 0 || raw.prefix_count == 0;
        }
        if has_zeros {
            raw.flags |= sys::SLUICE_EXACT_LENGTHS;
        }
        if p.mode == sys::SLUICE_MODE_PAGED {
            let last_head = kv_heads.saturating_sub(1).saturating_mul(self.page_table_head_stride);
            contents::check_pages(self, (p.page_size as usize).max(1), last_head)?;
        }
        Ok(raw)
    }
}

/// Computes a call on the host with plain loops in double precision: the reference for results.
///
/// Besides types and extents, the contents of starts and page tables are checked: they must stay within the memory of
/// K, V, Q and O. `docs/concepts/numerics.md` says how far a kernel may be from this.
///
/// ```
/// use sluice::{reference, Args, Dtype, Layout, Problem, Tensor, TensorMut};
/// let problem = Problem::builder(Dtype::F32, 1, 1, 2).build()?;
/// let (q, k, v) = ([0.0f32; 2], [0.0f32; 4], [1.0f32, 2.0, 3.0, 4.0]);
/// let mut o = [0.0f32; 2];
/// let (row, rows) = (Layout::contiguous([1, 1, 1, 2]), Layout::contiguous([1, 2, 1, 2]));
/// let output = TensorMut::new(&mut o, row)?;
/// let mut args =
///     Args::new(1, Tensor::new(&q, row)?, Tensor::new(&k, rows)?, Some(Tensor::new(&v, rows)?), output);
/// (args.q_len, args.kv_len) = (Some(1), Some(2));
/// reference(&problem, &mut args)?;
/// assert_eq!(o, [2.0, 3.0]);
/// # Ok::<(), sluice::Error>(())
/// ```
pub fn reference(problem: &Problem, args: &mut Args<Host>) -> Result<()> {
    let raw = args.to_raw(problem)?;
    // SAFETY: all memory is borrowed until the call returns, mutably if it is written. to_raw has compared its extents
    // with the problem and checked the entries that page tables are read at. With the counts that it sets, the library
    // checks the contents of starts and page tables before it uses them.
    call(|error| unsafe { sys::sluice_reference(problem.raw(), &raw, error) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{E4m3Fnuz, F16};
    use crate::layout::Layout;
    use crate::problem::{LseBase, PageTableKind, ScaleKind};
    use crate::tensor::Device;

    fn array<T: crate::Plain>(address: usize, len: usize) -> Option<Array<'static, T, Device>> {
        // SAFETY: the memory is never accessed.
        Some(unsafe { Array::from_raw(address as *const T, len) })
    }

    fn tensor<T: crate::Element>(address: usize, shape: [usize; 4]) -> Tensor<'static, Device> {
        // SAFETY: as above.
        unsafe { Tensor::from_raw(address as *const T, Layout::contiguous(shape)) }.unwrap()
    }

    fn tensor_mut<T: crate::Element>(address: usize, shape: [usize; 4]) -> TensorMut<'static, Device> {
        // SAFETY: as above.
        unsafe { TensorMut::from_raw(address as *mut T, Layout::contiguous(shape)) }.unwrap()
    }

    #[test]
    fn every_field_arrives() {
        let problem = Problem::builder(Dtype::F16, 4, 2, 64)
            .kv_type(Dtype::E4m3Fnuz)
            .head_dims(64, 32)
            .paged(16, PageTableKind::Block)
            .page_index_64()
            .bias(Dtype::F32)
            .k_scale(ScaleKind::PerToken)
            .v_scale(ScaleKind::PerPage)
            .write_lse(LseBase::E)
            .build()
            .unwrap();
        let v = Some(tensor::<E4m3Fnuz>(3, [8, 16, 2, 32]));
        let o = tensor_mut::<F16>(4, [3, 5, 4, 32]);
        let mut args =
            Args::new(3, tensor::<F16>(1, [3, 5, 4, 64]), tensor::<E4m3Fnuz>(2, [9, 16, 2, 64]), v, o);
        (args.q_len, args.kv_len, args.scale) = (Some(5), Some(20), Some(0.5));
        args.lse = Some(tensor_mut::<f32>(5, [3, 5, 4, 1]));
        args.kv_starts = array(6, 4);
        args.q_lengths = array(7, 3);
        args.kv_lengths = array(8, 3);
        let pages = PageNumbers::I64(array(9, 6).unwrap());
        args.page_table = Some(PageTable::Block { pages, stride: 2 });
        args.bias = Some(tensor::<f32>(10, [3, 4, 5, 20]));
        args.mask = Some(tensor::<u8>(11, [3, 4, 5, 3]));
        args.alibi_slopes = array(12, 12);
        args.sink_logits = array(13, 4);
        args.q_scale = array(14, 1);
        args.k_scale = array(15, 1);
        args.v_scale = array(16, 1);
        args.k_scales = Some(tensor::<f32>(19, [9, 16, 2, 1]));
        args.v_scales = Some(tensor::<f32>(20, [9, 1, 2, 1]));
        args.k_zeros = Some(tensor::<f32>(32, [9, 16, 2, 1]));
        args.v_zeros = Some(tensor::<f32>(33, [8, 1, 2, 1]));
        args.o_scale = array(21, 1);
        args.bias_scale = array(22, 18);
        args.diagonals = array(23, 3);
        args.causal = array(24, 3);
        args.spans = array(25, 12);
        (args.span_count, args.alibi_batch_stride, args.bias_scale_batch_stride) = (2, 4, 7);
        args.page_table_head_stride = 2;
        let pages = PageNumbers::I64(array(28, 8).unwrap());
        args.prefixes = Some(Prefixes {
            count: 2,
            len: Some(30),
            q_starts: array(26, 3).unwrap(),
            lengths: array(27, 2),
            page_table: Some(PageTable::Block { pages, stride: 4 }),
            k: Some(tensor::<E4m3Fnuz>(29, [2, 30, 2, 64])),
            v: Some(tensor::<E4m3Fnuz>(30, [2, 30, 2, 32])),
        });
        // No `..` here: a new field of the header must get a number here.
        let sys::sluice_args {
            struct_size,
            flags,
            batch,
            q_len,
            kv_len,
            scale,
            q,
            k,
            v,
            o,
            lse,
            q_starts,
            kv_starts,
            q_lengths,
            kv_lengths,
            page_table,
            page_table_stride,
            page_starts,
            bias,
            mask,
            alibi_slopes,
            sink_logits,
            q_scale,
            k_scale,
            v_scale,
            page_count,
            q_tokens,
            kv_tokens,
            k_scales,
            v_scales,
            o_scale,
            bias_scale,
            diagonals,
            causal,
            spans,
            span_count,
            alibi_batch_stride,
            bias_scale_batch_stride,
            prefix_count,
            prefix_len,
            prefix_q_starts,
            prefix_lengths,
            prefix_page_table,
            prefix_page_table_stride,
            prefix_page_starts,
            prefix_k,
            prefix_v,
            k_zeros,
            v_zeros,
            page_table_head_stride,
        } = args.to_raw(&problem).unwrap();
        assert_eq!((struct_size as usize, flags), (std::mem::size_of::<sys::sluice_args>(), 0));
        assert_eq!((batch, q_len, kv_len, scale), (3, 5, 20, 0.5));
        assert_eq!([q, k, v, o, lse, bias, mask].map(|t| t.data as usize), [1, 2, 3, 4, 5, 10, 11]);
        assert_eq!((q.stride, v.stride), ([1280, 256, 64, 1], [1024, 64, 32, 1]));
        assert_eq!([q_starts, kv_starts, q_lengths, kv_lengths].map(|a| a as usize), [0, 6, 7, 8]);
        assert_eq!((page_table as usize, page_table_stride, page_starts as usize), (9, 2, 0));
        assert_eq!(
            [alibi_slopes, sink_logits, q_scale, k_scale, v_scale].map(|a| a as usize),
            [12, 13, 14, 15, 16]
        );
        assert_eq!((page_count, q_tokens, kv_tokens), (8, 0, 0));
        assert_eq!((k_scales.data as usize, k_scales.stride), (19, [32, 2, 1, 1]));
        assert_eq!((v_scales.data as usize, v_scales.stride), (20, [2, 0, 1, 1]));
        assert_eq!((o_scale as usize, bias_scale as usize), (21, 22));
        assert_eq!([diagonals, causal, spans].map(|a| a as usize), [23, 24, 25]);
        assert_eq!((span_count, alibi_batch_stride, bias_scale_batch_stride), (2, 4, 7));
        assert_eq!((prefix_count, prefix_len, prefix_page_table_stride), (2, 30, 4));
        assert_eq!([prefix_q_starts, prefix_lengths, prefix_page_starts].map(|a| a as usize), [26, 27, 0]);
        assert_eq!([prefix_page_table, prefix_k.data, prefix_v.data].map(|a| a as usize), [28, 29, 30]);
        assert_eq!([k_zeros, v_zeros].map(|t| (t.data as usize, t.stride[0])), [(32, 32), (33, 2)]);
        assert_eq!(page_table_head_stride, 2);
        assert_eq!((prefix_k.stride, prefix_v.stride), ([3840, 128, 64, 1], [1920, 64, 32, 1]));

        let pages = PageNumbers::I64(array(9, 6).unwrap());
        args.page_table = Some(PageTable::Csr { pages, starts: array(17, 4).unwrap() });
        args.q = tensor::<F16>(1, [1, 15, 4, 64]);
        args.o = tensor_mut::<F16>(4, [1, 15, 4, 32]);
        args.lse = None;
        args.q_starts = array(18, 4);
        let pages = PageNumbers::I64(array(28, 8).unwrap());
        args.prefixes.as_mut().unwrap().page_table =
            Some(PageTable::Csr { pages, starts: array(31, 3).unwrap() });
        let raw = args.to_raw(&problem).unwrap();
        assert_eq!((raw.prefix_page_starts as usize, raw.prefix_page_table_stride), (31, 0));
        assert_eq!((raw.page_starts as usize, raw.page_table_stride, raw.q_starts as usize), (17, 0, 18));
    }

    /// The tensor with the fewest rows or pages determines the count.
    #[test]
    fn rows_and_pages_are_counted_by_the_smallest_tensor() {
        let counts = |[q, o, lse]: [usize; 3], [k, v, k_scales, v_scales]: [usize; 4], paged: bool| {
            let builder = Problem::builder(Dtype::F16, 4, 2, 64).head_dims(64, 32).write_lse(LseBase::E);
            let builder = builder.k_scale(ScaleKind::PerToken).v_scale(ScaleKind::PerToken);
            let builder = if paged { builder.paged(16, PageTableKind::Block) } else { builder.ragged() };
            let problem = builder.build().unwrap();
            let keys = |extent, dim| if paged { [extent, 16, 2, dim] } else { [1, extent, 2, dim] };
            let (rows, k) = (tensor::<F16>(1, [1, q, 4, 64]), tensor::<F16>(2, keys(k, 64)));
            let o = tensor_mut::<F16>(4, [1, o, 4, 32]);
            let mut args = Args::new(3, rows, k, Some(tensor::<F16>(3, keys(v, 32))), o);
            (args.q_len, args.kv_len) = (Some(20), Some(20));
            args.lse = Some(tensor_mut::<f32>(5, [1, lse, 4, 1]));
            args.q_starts = array(6, 4);
            args.k_scales = Some(tensor::<f32>(7, keys(k_scales, 1)));
            args.v_scales = Some(tensor::<f32>(8, keys(v_scales, 1)));
            let all = args.to_raw(&problem).unwrap();
            (args.lse, args.v, args.k_scales) = (None, None, None);
            let few = args.to_raw(&problem).unwrap();
            [all, few].map(|raw| (raw.q_tokens, raw.kv_tokens, raw.page_count))
        };
        assert_eq!(counts([7, 8, 9], [5, 6, 9, 8], false), [(7, 5, 0), (7, 5, 0)]);
        assert_eq!(counts([8, 7, 9], [6, 5, 9, 8], false), [(7, 5, 0), (7, 6, 0)]);
        assert_eq!(counts([9, 8, 7], [5, 6, 9, 8], true), [(7, 0, 5), (8, 0, 5)]);
        assert_eq!(counts([7, 7, 7], [6, 5, 9, 8], true), [(7, 0, 5), (7, 0, 6)]);
        assert_eq!(counts([7, 7, 7], [6, 5, 4, 8], true), [(7, 0, 4), (7, 0, 6)]);
        assert_eq!(counts([7, 7, 7], [6, 5, 4, 3], true), [(7, 0, 3), (7, 0, 3)]);
        assert_eq!(counts([7, 7, 7], [6, 5, 4, 3], false), [(7, 3, 0), (7, 3, 0)]);
    }

    #[test]
    fn scales_per_head_are_counted_by_the_heads_of_their_tensor() {
        let builder = Problem::builder(Dtype::F16, 4, 2, 64);
        let builder =
            builder.q_scale(ScaleKind::PerHead).k_scale(ScaleKind::PerHead).v_scale(ScaleKind::PerHead);
        let problem = builder.build().unwrap();
        let refused = |q: usize, k: usize, v: usize| {
            let (rows, keys) = (tensor::<F16>(16, [1, 1, 4, 64]), tensor::<F16>(16, [1, 1, 2, 64]));
            let mut args = Args::new(1, rows, keys, Some(keys), tensor_mut::<F16>(16, [1, 1, 4, 64]));
            (args.q_len, args.kv_len) = (Some(1), Some(1));
            (args.q_scale, args.k_scale, args.v_scale) = (array(16, q), array(16, k), array(16, v));
            args.to_raw(&problem).map(drop).map_err(|error| error.field)
        };
        assert_eq!(refused(4, 2, 2), Ok(()));
        assert_eq!(refused(3, 2, 2), Err("q_scale".into()));
        assert_eq!(refused(4, 1, 2), Err("k_scale".into()));
        assert_eq!(refused(4, 2, 1), Err("v_scale".into()));
    }
}
