//! Operations on paged caches, and merges of partial results.

use crate::args::{PageNumbers, PageTable, RawTable};
use crate::contents;
use crate::element::{Bf16, Dtype, F16};
use crate::error::{call, init, int, Error, Result};
use crate::problem::LseBase;
use crate::tensor::{fewest, optional, Array, Device, Extent, Host, Memory, Tensor, TensorMut, View};
use sluice_sys as sys;
use std::ffi::c_void;
use Extent::{AtLeast, Exactly};

/// Where new rows go.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a, M: Memory = Device> {
    /// \[tokens\]: page * page_size + row of the page; a negative slot is skipped.
    Slots(Array<'a, i64, M>),
    /// At the end of sequences, where attention finds them.
    Sequences {
        /// Sequences.
        batch: usize,
        /// \[batch + 1\]: new rows before each sequence's first.
        starts: Array<'a, i32, M>,
        /// \[batch\]: keys of each sequence, including the new ones.
        kv_lengths: Array<'a, i32, M>,
        /// The pages of each sequence.
        page_table: PageTable<'a, M>,
    },
}

/// Scales that values are divided by for FP8, and multiplied with from FP8.
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
}

/// Which elements of a row of K a rotation pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RotaryStyle {
    /// e and e + dim / 2, as GPT-NeoX and Llama do.
    Halves = sys::SLUICE_ROTARY_HALVES,
    /// 2e and 2e + 1, as GPT-J does.
    Pairs = sys::SLUICE_ROTARY_PAIRS,
}

/// An array of numbers of one of three types.
#[derive(Clone, Copy, Debug)]
pub enum Numbers<'a, M: Memory = Device> {
    /// Of [`Dtype::F16`].
    F16(Array<'a, F16, M>),
    /// Of [`Dtype::Bf16`].
    Bf16(Array<'a, Bf16, M>),
    /// Of [`Dtype::F32`].
    F32(Array<'a, f32, M>),
}

impl<M: Memory> Numbers<'_, M> {
    fn dtype(&self) -> Dtype {
        match self {
            Numbers::F16(_) => Dtype::F16,
            Numbers::Bf16(_) => Dtype::Bf16,
            Numbers::F32(_) => Dtype::F32,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Numbers::F16(array) => array.len(),
            Numbers::Bf16(array) => array.len(),
            Numbers::F32(array) => array.len(),
        }
    }

    fn checked(&self, name: &str, needed: usize) -> Result<*const c_void> {
        Ok(match self {
            Numbers::F16(array) => array.checked(name, needed)?.cast(),
            Numbers::Bf16(array) => array.checked(name, needed)?.cast(),
            Numbers::F32(array) => array.checked(name, needed)?.cast(),
        })
    }
}

/// How K and Q are rotated.
#[derive(Clone, Copy, Debug)]
pub struct Rotary<'a, M: Memory = Device> {
    /// Elements of a row that are rotated; even.
    pub dim: usize,
    /// Which of them form pairs.
    pub style: RotaryStyle,
    /// \[positions\]\[dim\]: cosines, then sines; with `sines` \[positions\]\[dim / 2\], cosines.
    pub table: Numbers<'a, M>,
    /// Elements from one position to the next.
    pub stride: usize,
    /// \[tokens\]; None for the key's number.
    pub positions: Option<Array<'a, i32, M>>,
    /// The first element that is rotated; a multiple of 8.
    pub first: usize,
    /// \[positions\]\[dim / 2\], of the type and with the stride of `table`.
    pub sines: Option<Numbers<'a, M>>,
}

impl<M: Memory> Rotary<'_, M> {
    /// Elements of `table` that a position reads.
    pub(crate) fn columns(&self) -> usize {
        if self.sines.is_some() {
            self.dim / 2
        } else {
            self.dim
        }
    }
}

/// Weights of RMS norms, before the rotation: of each row of a head, without its tail.
#[derive(Clone, Copy, Debug)]
pub struct Norms<'a, M: Memory = Device> {
    /// \[head_dim_qk - tail\] for Q.
    pub q: Option<Numbers<'a, M>>,
    /// The same for K; the type is that of `q`.
    pub k: Option<Numbers<'a, M>>,
    /// Added to the mean square.
    pub epsilon: f32,
}

/// Rows of Q, and where they go.
#[derive(Debug)]
pub enum Queries<'a, M: Memory = Device> {
    /// To where they are; \[1, tokens, q_heads, head_dim_qk\].
    InPlace(TensorMut<'a, M>),
    /// To other memory.
    Apart {
        /// \[1, tokens, q_heads, head_dim_qk\], or without the elements of a tail.
        rows: Tensor<'a, M>,
        /// \[1, tokens, q_heads, head_dim_qk\].
        out: TensorMut<'a, M>,
        /// \[1, tokens, q_heads, tail\]; None if rows have their tails.
        tail: Option<Tensor<'a, M>>,
    },
}

/// New rows of K and V to be stored in a paged cache, by [`Context::kv_append`](crate::Context::kv_append) or on the
/// host by [`reference_append`]; the header's `sluice_append`. Types, heads, dims, pages and the number of rows come
/// from the tensors.
#[derive(Debug)]
pub struct Append<'a, M: Memory = Device> {
    /// New rows, \[1, tokens, kv_heads, head_dim_qk\].
    pub k: Tensor<'a, M>,
    /// New rows, \[1, tokens, kv_heads, head_dim_v\]; None if V is in K.
    pub v: Option<Tensor<'a, M>>,
    /// Where they go, \[page, page_size, kv_heads, head_dim_qk\].
    pub k_cache: TensorMut<'a, M>,
    /// Where they go, \[page, page_size, kv_heads, head_dim_v\].
    pub v_cache: Option<TensorMut<'a, M>>,
    /// Which slots they go to.
    pub place: Place<'a, M>,
    /// For an FP8 cache.
    pub k_scale: Option<AppendScale<'a, M>>,
    /// For an FP8 cache.
    pub v_scale: Option<AppendScale<'a, M>>,
    /// None leaves K and Q as they are.
    pub rotary: Option<Rotary<'a, M>>,
    /// Rows of Q, normed and rotated like those of K.
    pub q: Option<Queries<'a, M>>,
    /// The last elements of K's rows, \[1, tokens, kv_heads, tail\]: `k` lacks them.
    pub k_tail: Option<Tensor<'a, M>>,
    /// None without a norm.
    pub norms: Option<Norms<'a, M>>,
}

/// The type of a tensor of numbers.
fn number(view: &View, name: &str) -> Result<Dtype> {
    view.dtype
        .ok_or_else(|| Error::invalid(format!("{name}.dtype"), format!("{name} holds bytes, not numbers")))
}

impl<'a, M: Memory> Append<'a, M> {
    /// A minimal append: rows are stored as they are, without scales or rotation. `v` and `v_cache` are both None if V
    /// is in K, else both are given.
    pub fn new(
        k: Tensor<'a, M>,
        v: Option<Tensor<'a, M>>,
        k_cache: TensorMut<'a, M>,
        v_cache: Option<TensorMut<'a, M>>,
        place: Place<'a, M>,
    ) -> Self {
        let (k_scale, v_scale, rotary, q, k_tail, norms) = (None, None, None, None, None, None);
        Append { k, v, k_cache, v_cache, place, k_scale, v_scale, rotary, q, k_tail, norms }
    }

    /// Checks types, extents and counts, as [`Args`](crate::Args) does.
    pub(crate) fn to_raw(&self) -> Result<sys::sluice_append> {
        let [_, tokens, heads, body] = self.k.layout().shape();
        let tail = self.k_tail.as_ref().map_or(0, |tail| tail.layout().shape()[3]);
        let dim_qk = body.saturating_add(tail);
        let [_, page_size, _, _] = self.k_cache.layout().shape();
        let pack = self.k_cache.layout().pack();
        let (source, cache) = (number(&self.k.view, "k")?, number(&self.k_cache.view, "k_cache")?);
        let new = |dim| [Exactly(1), Exactly(tokens), Exactly(heads), Exactly(dim)];
        let kept = |dim| [AtLeast(1), Exactly(page_size), Exactly(heads), Exactly(dim)];

        let mut raw: sys::sluice_append = init(sys::sluice_append_init);
        (raw.source_type, raw.cache_type) = (source as u32, cache as u32);
        raw.kv_heads = int("kv_heads", heads)?;
        raw.head_dim_qk = int("head_dim_qk", dim_qk)?;
        raw.page_size = int("page_size", page_size)?;
        raw.k_pack = int("k_pack", pack)?;
        raw.tokens = int("tokens", tokens)?;
        raw.k = self.k.view.checked("k", Some(source), 0, new(body))?;
        raw.k_cache = self.k_cache.view.checked("k_cache", Some(cache), pack, kept(dim_qk))?;
        match (&self.v, &self.v_cache) {
            (Some(v), Some(v_cache)) => {
                let dim_v = v.layout().shape()[3];
                raw.head_dim_v = int("head_dim_v", dim_v)?;
                raw.v = v.view.checked("v", Some(source), 0, new(dim_v))?;
                raw.v_cache = v_cache.view.checked("v_cache", Some(cache), 0, kept(dim_v))?;
            }
            (None, None) => raw.flags |= sys::SLUICE_V_IN_K,
            (v, _) => {
                let (given, missing) = if v.is_some() { ("v", "v_cache") } else { ("v_cache", "v") };
                let message =
                    format!("{missing} is missing, but {given} is given; the call needs both or neither");
                return Err(Error::invalid(missing, message));
            }
        }
        raw.page_count = fewest(
            0,
            [
                Some(&self.k_cache.view),
                self.v_cache.as_ref().map(|v_cache| &v_cache.view),
                scales_view(&self.k_scale),
                scales_view(&self.v_scale),
            ],
        );
        match &self.place {
            Place::Slots(slots) => raw.slots = slots.checked("slots", tokens)?,
            Place::Sequences { batch, starts, kv_lengths, page_table } => {
                raw.batch = int("batch", *batch)?;
                raw.starts = starts.checked("starts", batch.saturating_add(1))?;
                raw.kv_lengths = kv_lengths.checked("kv_lengths", *batch)?;
                let RawTable { pages, stride, starts } =
                    page_table.checked("page_table", "page_starts", *batch)?;
                (raw.page_table, raw.page_table_stride, raw.page_starts) = (pages, stride, starts);
                raw.page_table_kind = match page_table {
                    PageTable::Block { .. } => sys::SLUICE_PAGE_TABLE_BLOCK,
                    PageTable::Csr { .. } => sys::SLUICE_PAGE_TABLE_CSR,
                };
                if page_table.pages().are_64() {
                    raw.flags |= sys::SLUICE_PAGE_INDEX_64;
                }
            }
        }
        (raw.k_scale_kind, raw.k_scale) = scale(&self.k_scale, "k_scale", heads)?;
        (raw.v_scale_kind, raw.v_scale) = scale(&self.v_scale, "v_scale", heads)?;
        for (scale, name, to) in
            [(&self.k_scale, "k_scales", &mut raw.k_scales), (&self.v_scale, "v_scales", &mut raw.v_scales)]
        {
            *to = scales_tensor(scale, name, page_size, heads)?;
        }
        if let Some(rotary) = &self.rotary {
            raw.rotary_dim = int("rotary_dim", rotary.dim)?;
            raw.rotary_style = rotary.style as u32;
            raw.rotary = rotary.table.checked("rotary", rotary.columns())?.cast();
            raw.rotary_stride = int("rotary_stride", rotary.stride)?.into();
            raw.positions = optional(&rotary.positions, "positions", tokens)?;
            raw.rotary_type = rotary.table.dtype() as u32;
            raw.rotary_first = int("rotary_first", rotary.first)?;
            if let Some(sines) = &rotary.sines {
                same_type("rotary_sin", sines, &rotary.table)?;
                raw.rotary_sin = sines.checked("rotary_sin", rotary.dim / 2)?;
            }
        }
        if let Some(k_tail) = &self.k_tail {
            raw.tail_dim = int("tail_dim", tail)?;
            raw.k_tail = k_tail.view.checked("k_tail", Some(source), 0, new(tail))?;
        }
        if let Some(q) = &self.q {
            let (rows, out, q_tail) = match q {
                Queries::InPlace(rows) => (&rows.view, &rows.view, None),
                Queries::Apart { rows, out, tail } => (&rows.view, &out.view, tail.as_ref()),
            };
            let q_heads = out.layout.shape()[2];
            let of_q = |dim| [Exactly(1), Exactly(tokens), Exactly(q_heads), Exactly(dim)];
            raw.q_heads = int("q_heads", q_heads)?;
            let dim = if q_tail.is_some() { body } else { dim_qk };
            raw.q = rows.checked("q", Some(source), 0, of_q(dim))?;
            raw.q_out = out.checked("q_out", Some(source), 0, of_q(dim_qk))?;
            if let Some(q_tail) = q_tail {
                raw.q_tail = q_tail.view.checked("q_tail", Some(source), 0, of_q(tail))?;
            }
        }
        if let Some(norms) = &self.norms {
            raw.norm_epsilon = norms.epsilon;
            for (weights, name, to) in
                [(&norms.q, "q_norm", &mut raw.q_norm), (&norms.k, "k_norm", &mut raw.k_norm)]
            {
                if let Some(weights) = weights {
                    same_type(name, weights, norms.q.as_ref().unwrap_or(weights))?;
                    raw.norm_type = weights.dtype() as u32;
                    *to = weights.checked(name, body)?;
                }
            }
        }
        contents::check_append(self, tokens, page_size)?;
        Ok(raw)
    }
}

fn same_type<M: Memory>(name: &str, numbers: &Numbers<M>, other: &Numbers<M>) -> Result<()> {
    if numbers.dtype() == other.dtype() {
        return Ok(());
    }
    let message = format!(
        "{name} is of {:?}; it must be of {:?}, as the other array is",
        numbers.dtype(),
        other.dtype()
    );
    Err(Error::invalid(format!("{name}.dtype"), message))
}

fn scale<M: Memory>(scale: &Option<AppendScale<M>>, name: &str, heads: usize) -> Result<(u32, *const f32)> {
    Ok(match scale {
        None => (sys::SLUICE_SCALE_NONE, std::ptr::null()),
        Some(AppendScale::PerTensor(factor)) => (sys::SLUICE_SCALE_PER_TENSOR, factor.checked(name, 1)?),
        Some(AppendScale::PerHead(factors)) => (sys::SLUICE_SCALE_PER_HEAD, factors.checked(name, heads)?),
        Some(AppendScale::PerPage(_)) => (sys::SLUICE_SCALE_PER_PAGE, std::ptr::null()),
        Some(AppendScale::PerToken(_)) => (sys::SLUICE_SCALE_PER_TOKEN, std::ptr::null()),
    })
}

/// The scales of pages or tokens; all zero without any.
fn scales_tensor<M: Memory>(
    scale: &Option<AppendScale<M>>,
    name: &str,
    page_size: usize,
    heads: usize,
) -> Result<sys::sluice_tensor> {
    let Some(view) = scales_view(scale) else {
        return Ok(sys::sluice_tensor { data: std::ptr::null_mut(), stride: [0; 4] });
    };
    let rows = if matches!(scale, Some(AppendScale::PerToken(_))) { page_size } else { 1 };
    let extents = [AtLeast(1), AtLeast(rows), Exactly(heads), AtLeast(1)];
    let mut tensor = view.checked(name, Some(Dtype::F32), 0, extents)?;
    tensor.stride[3] = 0;
    Ok(tensor)
}

/// The scales of pages.
fn scales_view<'s, M: Memory>(scale: &'s Option<AppendScale<M>>) -> Option<&'s View> {
    match scale {
        Some(AppendScale::PerPage(scales)) => Some(&scales.view),
        Some(AppendScale::PerToken(scales)) => Some(&scales.view),
        _ => None,
    }
}

/// Performs an append on the host with plain loops: the reference for what a device stores.
///
/// Besides types and extents, contents are checked before anything is stored: slots and page numbers must be of
/// existing pages, page tables must have the entries that are read, and the table of a rotation all positions. A device
/// skips rows with a wrong place; this function refuses them, except negative slots and rows without a sequence. As on
/// a device, tensors begin at addresses that are multiples of 16, which larger vectors do anyway.
///
/// ```
/// use sluice::{reference_append, Append, Array, Layout, Place, Tensor, TensorMut, F16};
/// let rows: Vec<F16> = (0..2 * 64).map(|i| F16::from_f32(i as f32)).collect();
/// let (mut k_cache, mut v_cache) = (vec![F16::default(); 3 * 4 * 64], vec![F16::default(); 3 * 4 * 64]);
/// let (new, pages) = (Layout::rows([2, 1, 64]), Layout::contiguous([3, 4, 1, 64]));
/// let mut append = Append::new(
///     Tensor::new(&rows, new)?,
///     Some(Tensor::new(&rows, new)?),
///     TensorMut::new(&mut k_cache, pages)?,
///     Some(TensorMut::new(&mut v_cache, pages)?),
///     Place::Slots(Array::new(&[9, 2])), // row 1 of page 2, and row 2 of page 0
/// );
/// reference_append(&mut append)?;
/// assert_eq!((&k_cache[9 * 64..10 * 64], &v_cache[2 * 64..3 * 64]), (&rows[..64], &rows[64..]));
/// # Ok::<(), sluice::Error>(())
/// ```
pub fn reference_append(append: &mut Append<Host>) -> Result<()> {
    let raw = append.to_raw()?;
    // SAFETY: all memory is borrowed until the call returns, mutably if it is written. to_raw has compared its extents
    // with each other and checked the indices that page table and rotation are read at. With the counts that it sets,
    // the library checks all other contents before it uses them.
    call(|error| unsafe { sys::sluice_reference_append(&raw, error) })
}

/// Pages of caches, to be copied by [`Context::kv_copy`](crate::Context::kv_copy) to other pages, or to other caches, or
/// on the host by [`reference_copy`]; the header's `sluice_page_copy`. Types, heads, dims, and the number of pages come from the tensors.
#[derive(Debug)]
pub struct PageCopy<'a, M: Memory = Device> {
    /// \[page, page_size, kv_heads, head_dim_qk\].
    pub k_source: Tensor<'a, M>,
    /// \[page, page_size, kv_heads, head_dim_v\]; None if there is only K.
    pub v_source: Option<Tensor<'a, M>>,
    /// \[page, page_size, kv_heads, head_dim_qk\].
    pub k_target: TensorMut<'a, M>,
    /// \[page, page_size, kv_heads, head_dim_v\].
    pub v_target: Option<TensorMut<'a, M>>,
    /// \[pairs\]\[2\]: source and target; None for each page to itself.
    pub pairs: Option<PageNumbers<'a, M>>,
    /// Between types that differ; those per token or page are read, to F16 or BF16.
    pub k_scale: Option<AppendScale<'a, M>>,
    /// The same for V.
    pub v_scale: Option<AppendScale<'a, M>>,
}

/// Keys of a paged cache, to be gathered by [`Context::kv_gather`](crate::Context::kv_gather) in contiguous rows, or on
/// the host by [`reference_gather`]; the header's `sluice_gather`. Types, heads, dims, pages and the number of rows come from the tensors.
#[derive(Debug)]
pub struct Gather<'a, M: Memory = Device> {
    /// \[page, page_size, kv_heads, head_dim_qk\].
    pub k_cache: Tensor<'a, M>,
    /// \[page, page_size, kv_heads, head_dim_v\]; None if there is only K.
    pub v_cache: Option<Tensor<'a, M>>,
    /// \[1, tokens, kv_heads, head_dim_qk\].
    pub k_out: TensorMut<'a, M>,
    /// \[1, tokens, kv_heads, head_dim_v\].
    pub v_out: Option<TensorMut<'a, M>>,
    /// Sequences.
    pub batch: usize,
    /// \[batch + 1\]: rows of the outputs before each sequence's first.
    pub out_starts: Array<'a, i32, M>,
    /// \[batch\]: keys of each sequence in the cache.
    pub kv_lengths: Array<'a, i32, M>,
    /// \[batch\]: the first key to gather; None: 0.
    pub first_keys: Option<Array<'a, i32, M>>,
    /// The pages of each sequence.
    pub page_table: PageTable<'a, M>,
    /// Between types that differ; those per token or page are read, to F16 or BF16.
    pub k_scale: Option<AppendScale<'a, M>>,
    /// The same for V.
    pub v_scale: Option<AppendScale<'a, M>>,
}

/// Both tensors of V, or neither.
fn both_or_neither<'b>(
    of: (Option<&'b View>, &str),
    to: (Option<&'b View>, &str),
) -> Result<Option<(&'b View, &'b View)>> {
    match (of.0, to.0) {
        (Some(from), Some(to)) => Ok(Some((from, to))),
        (None, None) => Ok(None),
        (from, _) => {
            let (given, missing) = if from.is_some() { (of.1, to.1) } else { (to.1, of.1) };
            let message =
                format!("{missing} is missing, but {given} is given; the call needs both or neither");
            Err(Error::invalid(missing, message))
        }
    }
}

impl<M: Memory> PageCopy<'_, M> {
    pub(crate) fn to_raw(&self) -> Result<sys::sluice_page_copy> {
        let [_, page_size, heads, dim_qk] = self.k_source.layout().shape();
        let (from, to) = (&self.k_source.view, &self.k_target.view);
        let (source, target) = (number(from, "k_source")?, number(to, "k_target")?);
        let pages = |dim| [AtLeast(1), Exactly(page_size), Exactly(heads), Exactly(dim)];
        let packs = (self.k_source.layout().pack(), to.layout.pack());
        let mut raw: sys::sluice_page_copy = init(sys::sluice_page_copy_init);
        (raw.source_type, raw.target_type) = (source as u32, target as u32);
        raw.kv_heads = int("kv_heads", heads)?;
        raw.head_dim_qk = int("head_dim_qk", dim_qk)?;
        raw.page_size = int("page_size", page_size)?;
        raw.source_k_pack = int("source_k_pack", packs.0)?;
        raw.target_k_pack = int("target_k_pack", packs.1)?;
        raw.k_source = from.checked("k_source", Some(source), packs.0, pages(dim_qk))?;
        raw.k_target = to.checked("k_target", Some(target), packs.1, pages(dim_qk))?;
        let v = both_or_neither(
            (self.v_source.as_ref().map(|v| &v.view), "v_source"),
            (self.v_target.as_ref().map(|v| &v.view), "v_target"),
        )?;
        if let Some((from, to)) = v {
            let dim_v = from.layout.shape()[3];
            raw.head_dim_v = int("head_dim_v", dim_v)?;
            raw.v_source = from.checked("v_source", Some(source), 0, pages(dim_v))?;
            raw.v_target = to.checked("v_target", Some(target), 0, pages(dim_v))?;
        } else {
            raw.flags |= sys::SLUICE_V_IN_K;
        }
        let scales = [scales_view(&self.k_scale), scales_view(&self.v_scale)];
        raw.page_count =
            fewest(0, [Some(from), Some(to), v.map(|v| v.0), v.map(|v| v.1), scales[0], scales[1]]);
        if let Some(pairs) = &self.pairs {
            raw.pairs = pairs.raw();
            raw.pair_count = (pairs.len() / 2) as i64;
            if pairs.are_64() {
                raw.flags |= sys::SLUICE_PAGE_INDEX_64;
            }
        }
        (raw.k_scale_kind, raw.k_scale) = scale(&self.k_scale, "k_scale", heads)?;
        (raw.v_scale_kind, raw.v_scale) = scale(&self.v_scale, "v_scale", heads)?;
        raw.k_scales = scales_tensor(&self.k_scale, "k_scales", page_size, heads)?;
        raw.v_scales = scales_tensor(&self.v_scale, "v_scales", page_size, heads)?;
        Ok(raw)
    }
}

impl<M: Memory> Gather<'_, M> {
    pub(crate) fn to_raw(&self) -> Result<sys::sluice_gather> {
        let [_, page_size, heads, dim_qk] = self.k_cache.layout().shape();
        let (from, to) = (&self.k_cache.view, &self.k_out.view);
        let tokens = to.layout.shape()[1];
        let (cache, out) = (number(from, "k_cache")?, number(to, "k_out")?);
        let pages = |dim| [AtLeast(1), Exactly(page_size), Exactly(heads), Exactly(dim)];
        let rows = |dim| [Exactly(1), Exactly(tokens), Exactly(heads), Exactly(dim)];
        let pack = self.k_cache.layout().pack();
        let mut raw: sys::sluice_gather = init(sys::sluice_gather_init);
        (raw.cache_type, raw.out_type) = (cache as u32, out as u32);
        raw.kv_heads = int("kv_heads", heads)?;
        raw.head_dim_qk = int("head_dim_qk", dim_qk)?;
        raw.page_size = int("page_size", page_size)?;
        raw.k_pack = int("k_pack", pack)?;
        raw.batch = int("batch", self.batch)?;
        raw.tokens = int("tokens", tokens)?;
        raw.k_cache = from.checked("k_cache", Some(cache), pack, pages(dim_qk))?;
        raw.k_out = to.checked("k_out", Some(out), 0, rows(dim_qk))?;
        let v = both_or_neither(
            (self.v_cache.as_ref().map(|v| &v.view), "v_cache"),
            (self.v_out.as_ref().map(|v| &v.view), "v_out"),
        )?;
        if let Some((from, to)) = v {
            let dim_v = from.layout.shape()[3];
            raw.head_dim_v = int("head_dim_v", dim_v)?;
            raw.v_cache = from.checked("v_cache", Some(cache), 0, pages(dim_v))?;
            raw.v_out = to.checked("v_out", Some(out), 0, rows(dim_v))?;
        } else {
            raw.flags |= sys::SLUICE_V_IN_K;
        }
        let scales = [scales_view(&self.k_scale), scales_view(&self.v_scale)];
        raw.page_count = fewest(0, [Some(from), v.map(|v| v.0), scales[0], scales[1]]);
        raw.out_starts = self.out_starts.checked("out_starts", self.batch.saturating_add(1))?;
        raw.kv_lengths = self.kv_lengths.checked("kv_lengths", self.batch)?;
        raw.first_keys = optional(&self.first_keys, "first_keys", self.batch)?;
        let RawTable { pages, stride, starts } =
            self.page_table.checked("page_table", "page_starts", self.batch)?;
        (raw.page_table, raw.page_table_stride, raw.page_starts) = (pages, stride, starts);
        raw.page_table_kind = match &self.page_table {
            PageTable::Block { .. } => sys::SLUICE_PAGE_TABLE_BLOCK,
            PageTable::Csr { .. } => sys::SLUICE_PAGE_TABLE_CSR,
        };
        if self.page_table.pages().are_64() {
            raw.flags |= sys::SLUICE_PAGE_INDEX_64;
        }
        (raw.k_scale_kind, raw.k_scale) = scale(&self.k_scale, "k_scale", heads)?;
        (raw.v_scale_kind, raw.v_scale) = scale(&self.v_scale, "v_scale", heads)?;
        raw.k_scales = scales_tensor(&self.k_scale, "k_scales", page_size, heads)?;
        raw.v_scales = scales_tensor(&self.v_scale, "v_scales", page_size, heads)?;
        contents::check_gather(self, page_size.max(1))?;
        Ok(raw)
    }
}

/// Copies pages on the host with plain loops: the reference for what a device stores.
///
/// Page numbers are checked before anything is stored: one that is not of an existing page is refused. Pairs with negative
/// numbers are skipped. As on a device, tensors begin at addresses that are multiples of 16, which larger vectors do anyway.
///
/// ```
/// use sluice::{reference_copy, Array, Layout, PageCopy, PageNumbers, Tensor, TensorMut};
/// let pages = Layout::contiguous([2, 1, 1, 8]);
/// let from: Vec<f32> = (0..16).map(|i| i as f32).collect();
/// let mut to = vec![0.0f32; 16];
/// let mut copy = PageCopy {
///     k_source: Tensor::new(&from, pages)?,
///     v_source: None,
///     k_target: TensorMut::new(&mut to, pages)?,
///     v_target: None,
///     pairs: Some(PageNumbers::I32(Array::new(&[1, 0]))), // page 1 to page 0
///     k_scale: None,
///     v_scale: None,
/// };
/// reference_copy(&mut copy)?;
/// assert_eq!((&to[..8], &to[8..]), (&from[8..], &[0.0; 8][..]));
/// # Ok::<(), sluice::Error>(())
/// ```
pub fn reference_copy(copy: &mut PageCopy<Host>) -> Result<()> {
    let raw = copy.to_raw()?;
    // SAFETY: all memory is borrowed until the call returns, mutably if it is written. to_raw has compared its extents
    // with each other. With the count of pages that it sets, the library checks the pairs before it uses them.
    call(|error| unsafe { sys::sluice_reference_copy(&raw, error) })
}

/// Gathers keys on the host with plain loops: the reference for what a device stores.
///
/// Contents are checked before anything is stored: what a device would read as zeros or leave out is refused.
pub fn reference_gather(gather: &mut Gather<Host>) -> Result<()> {
    let raw = gather.to_raw()?;
    // SAFETY: as in reference_copy. to_raw has checked the entries that the page table is read at.
    call(|error| unsafe { sys::sluice_reference_gather(&raw, error) })
}

/// Results of attention over parts of the keys, to be merged into one; the header's `sluice_merge`. Types and extents
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
        if sequence == 0 || tokens % sequence != 0 {
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
            Some(sequence) => [Exactly(tokens / sequence), Exactly(sequence), Exactly(heads), AtLeast(1)],
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
                if rows.stride[1..] != raw.partial.stride[1..]
                    || numbers.stride[1..3] != raw.partial_lse.stride[1..3]
                    || (self.sequence_tokens.is_some() && numbers.stride[0] != raw.partial_lse.stride[0])
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
    use super::*;
    use crate::element::{E4m3Fnuz, Element, Plain, F16};
    use crate::layout::Layout;
    use crate::PageNumbers;

    fn array<T: Plain>(address: usize, len: usize) -> Array<'static, T, Device> {
        // SAFETY: the memory is never accessed.
        unsafe { Array::from_raw(address as *const T, len) }
    }

    fn tensor<T: Element>(address: usize, layout: Layout) -> Tensor<'static, Device> {
        // SAFETY: as above.
        unsafe { Tensor::from_raw(address as *const T, layout) }.unwrap()
    }

    fn tensor_mut<T: Element>(address: usize, layout: Layout) -> TensorMut<'static, Device> {
        // SAFETY: as above.
        unsafe { TensorMut::from_raw(address as *mut T, layout) }.unwrap()
    }

    #[test]
    fn every_field_of_an_append_arrives() {
        let mut append = Append {
            k: tensor::<F16>(1, Layout::rows([7, 2, 48])),
            v: Some(tensor::<F16>(2, Layout::rows([7, 2, 32]))),
            k_cache: tensor_mut::<E4m3Fnuz>(
                3,
                Layout::strided([10, 16, 2, 64], [2048, 16, 1024, 256]).packed(16),
            ),
            v_cache: Some(tensor_mut::<E4m3Fnuz>(4, Layout::contiguous([9, 16, 2, 32]))),
            place: Place::Sequences {
                batch: 3,
                starts: array(5, 4),
                kv_lengths: array(6, 3),
                page_table: PageTable::Csr { pages: PageNumbers::I64(array(7, 5)), starts: array(8, 4) },
            },
            k_scale: Some(AppendScale::PerTensor(array(9, 1))),
            v_scale: Some(AppendScale::PerHead(array(10, 2))),
            rotary: Some(Rotary {
                dim: 24,
                style: RotaryStyle::Pairs,
                table: Numbers::Bf16(array(12, 240)),
                stride: 30,
                positions: Some(array(12, 7)),
                first: 40,
                sines: Some(Numbers::Bf16(array(14, 240))),
            }),
            q: Some(Queries::Apart {
                rows: tensor::<F16>(15, Layout::rows([7, 6, 48])),
                out: tensor_mut::<F16>(16, Layout::rows([7, 6, 64])),
                tail: Some(tensor::<F16>(17, Layout::rows([7, 6, 16]))),
            }),
            k_tail: Some(tensor::<F16>(18, Layout::rows([7, 2, 16]))),
            norms: Some(Norms {
                q: Some(Numbers::F32(array(20, 48))),
                k: Some(Numbers::F32(array(24, 48))),
                epsilon: 0.5,
            }),
        };
        // No `..` here: a new field of the header must get a number here.
        let sys::sluice_append {
            struct_size,
            flags,
            source_type,
            cache_type,
            kv_heads,
            head_dim_qk,
            head_dim_v,
            page_size,
            page_table_kind,
            k_pack,
            k_scale_kind,
            v_scale_kind,
            tokens,
            batch,
            rotary_dim,
            rotary_style,
            k,
            v,
            k_cache,
            v_cache,
            slots,
            starts,
            kv_lengths,
            page_table,
            page_table_stride,
            page_starts,
            k_scale,
            v_scale,
            rotary,
            rotary_stride,
            positions,
            page_count,
            rotary_type,
            rotary_first,
            rotary_sin,
            q_heads,
            tail_dim,
            q,
            q_out,
            k_tail,
            q_tail,
            q_norm,
            k_norm,
            norm_epsilon,
            norm_type,
            k_scales,
            v_scales,
            k_zeros,
            v_zeros,
            scale_group,
            reserved,
        } = append.to_raw().unwrap();
        assert_eq!(struct_size as usize, std::mem::size_of::<sys::sluice_append>());
        assert_eq!((flags, source_type, cache_type), (sys::SLUICE_PAGE_INDEX_64, 1, 4));
        assert_eq!((kv_heads, head_dim_qk, head_dim_v, page_size, k_pack), (2, 64, 32, 16, 16));
        assert_eq!((page_table_kind, k_scale_kind, v_scale_kind), (2, 1, 2));
        assert_eq!((tokens, batch, rotary_dim, rotary_style, rotary_stride), (7, 3, 24, 1, 30));
        assert_eq!([k, v, k_cache, v_cache].map(|t| t.data as usize), [1, 2, 3, 4]);
        assert_eq!((slots as usize, page_table as usize, page_table_stride), (0, 7, 0));
        assert_eq!([starts, kv_lengths, page_starts, positions].map(|a| a as usize), [5, 6, 8, 12]);
        assert_eq!([k_scale, v_scale, rotary].map(|a| a as usize), [9, 10, 12]);
        assert_eq!((rotary_type, rotary_first, q_heads, tail_dim), (2, 40, 6, 16));
        assert_eq!([q, q_out, k_tail, q_tail].map(|t| t.data as usize), [15, 16, 18, 17]);
        assert_eq!([rotary_sin, q_norm, k_norm].map(|a| a as usize), [14, 20, 24]);
        assert_eq!((norm_epsilon, norm_type), (0.5, 3));
        assert!(k_scales.data.is_null() && v_scales.data.is_null());
        // Of caches of 4 bits, for which this crate has no type.
        assert!(k_zeros.data.is_null() && v_zeros.data.is_null());
        assert_eq!((scale_group, reserved), (0, 0));
        append.k_scale =
            Some(AppendScale::PerToken(tensor_mut::<f32>(28, Layout::contiguous([8, 16, 2, 1]))));
        append.v_scale = Some(AppendScale::PerPage(tensor::<f32>(32, Layout::contiguous([9, 1, 2, 1]))));
        let raw = append.to_raw().unwrap();
        assert_eq!((raw.k_scale_kind, raw.v_scale_kind, raw.page_count), (3, 4, 8));
        assert!(raw.k_scale.is_null() && raw.v_scale.is_null());
        assert_eq!((raw.k_scales.data as usize, raw.k_scales.stride), (28, [32, 2, 1, 0]));
        assert_eq!((raw.v_scales.data as usize, raw.v_scales.stride), (32, [2, 2, 1, 0]));
        (append.k_scale, append.v_scale) = (None, None);
        assert_eq!(page_count, 9); // of V, which has fewer

        append.q = Some(Queries::InPlace(tensor_mut::<F16>(19, Layout::rows([7, 4, 64]))));
        let raw = append.to_raw().unwrap();
        assert_eq!((raw.q.data as usize, raw.q_out.data as usize, raw.q_heads), (19, 19, 4));
        assert!(raw.q_tail.data.is_null());
        append.norms = Some(Norms { q: None, k: Some(Numbers::F16(array(22, 48))), epsilon: 0.25 });
        let raw = append.to_raw().unwrap();
        assert_eq!((raw.q_norm as usize, raw.k_norm as usize, raw.norm_type), (0, 22, 1));

        append.place = Place::Slots(array(13, 7));
        (append.v, append.v_cache) = (None, None);
        let raw = append.to_raw().unwrap();
        assert_eq!((raw.flags, raw.slots as usize, raw.head_dim_v), (sys::SLUICE_V_IN_K, 13, 0));
        assert_eq!(raw.page_count, 10);

        append.v = Some(tensor::<F16>(2, Layout::rows([7, 2, 32])));
        append.v_cache = Some(tensor_mut::<E4m3Fnuz>(4, Layout::contiguous([11, 16, 2, 32])));
        assert_eq!(append.to_raw().unwrap().page_count, 10); // of K
    }

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
        merge.others.clear();
        merge.sequence_tokens = Some(4);
        assert_eq!(refused(&merge), "sequence_tokens");
    }
}
