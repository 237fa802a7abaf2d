//! Operations on paged caches.

use crate::attention::pointer;
use crate::contents;
use crate::element::{Bf16, Dtype, F16};
use crate::error::{call, int, int_64, Error, Result};
use crate::format::ScaleKind;
use crate::kv::{Kv, KvMut, PageNumbers, Pages};
use crate::tensor::{optional, Array, Device, Extent, Host, Memory, Tensor, TensorMut, View};
use sluice_sys as sys;
use std::ffi::c_void;
use std::ptr::NonNull;
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
        lengths: Array<'a, i32, M>,
        /// The pages of each sequence.
        pages: Pages<'a, M>,
    },
}

/// Which elements of a row a rotation pairs.
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

/// How rows of K and Q are rotated; the header's `sluice_rotation`.
#[derive(Clone, Copy, Debug)]
pub struct Rotation<'a, M: Memory = Device> {
    /// Which elements form pairs.
    pub style: RotaryStyle,
    /// Elements of a row that are rotated; even.
    pub dim: usize,
    /// The first of them; a multiple of 8.
    pub first: usize,
    /// \[positions\]\[dim / 2\], or without `sines` \[positions\]\[dim\]: cosines, then sines.
    pub cosines: Numbers<'a, M>,
    /// \[positions\]\[dim / 2\], of the type and with the stride of `cosines`.
    pub sines: Option<Numbers<'a, M>>,
    /// Elements from one position to the next.
    pub stride: usize,
}

impl<M: Memory> Rotation<'_, M> {
    /// Elements of a table that a position reads.
    pub(crate) fn columns(&self) -> usize {
        if self.sines.is_some() {
            self.dim / 2
        } else {
            self.dim
        }
    }

    fn to_raw(self) -> Result<sys::sluice_rotation> {
        let mut raw = sys::sluice_rotation {
            style: self.style as u32,
            r#type: self.cosines.dtype() as u32,
            dim: int("rotation.dim", self.dim)?,
            first: int("rotation.first", self.first)?,
            cosines: self.cosines.checked("rotation.cosines", self.columns())?,
            stride: int_64("rotation.stride", self.stride)?,
            ..Default::default()
        };
        if let Some(sines) = &self.sines {
            if sines.dtype() != self.cosines.dtype() {
                let (is, wanted) = (sines.dtype(), self.cosines.dtype());
                let message =
                    format!("rotation.sines is of {is:?}; it must be of {wanted:?}, as the cosines");
                return Err(Error::invalid("rotation.sines", message));
            }
            raw.sines = sines.checked("rotation.sines", self.columns())?;
        }
        Ok(raw)
    }
}

/// An RMS norm of rows of a head, without their tail, before the rotation; the header's `sluice_norm`.
#[derive(Clone, Copy, Debug)]
pub struct Norm<'a, M: Memory = Device> {
    /// \[head_dim_qk - tail\].
    pub weights: Numbers<'a, M>,
    /// Added to the mean square.
    pub epsilon: f32,
}

impl<M: Memory> Norm<'_, M> {
    fn to_raw(self, name: &str, elements: usize) -> Result<sys::sluice_norm> {
        let weights = self.weights.checked(&format!("{name}.weights"), elements)?;
        let r#type = self.weights.dtype() as u32;
        Ok(sys::sluice_norm { r#type, weights, epsilon: self.epsilon, ..Default::default() })
    }
}

/// Rows of Q, and where they go.
#[derive(Debug)]
pub enum QueryRows<'a, M: Memory = Device> {
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

/// New rows of Q, which are normed and rotated with those of K; the header's `sluice_append_q`.
#[derive(Debug)]
pub struct Queries<'a, M: Memory = Device> {
    /// The rows.
    pub rows: QueryRows<'a, M>,
    /// None without a norm.
    pub norm: Option<Norm<'a, M>>,
}

/// New rows of K and V to be stored in a paged cache, by [`Context::append`](crate::Context::append) or on the host by
/// [`reference_append`]; the header's `sluice_append_args`.
#[derive(Debug)]
pub struct Append<'a, M: Memory = Device> {
    /// New rows, \[1, tokens, kv_heads, head_dim_qk\].
    pub k: Tensor<'a, M>,
    /// New rows, \[1, tokens, kv_heads, head_dim_v\]; None if V is in K.
    pub v: Option<Tensor<'a, M>>,
    /// Where they go. Scales per token and group are computed, and written.
    pub kv: KvMut<'a, M>,
    /// Which rows of it.
    pub place: Place<'a, M>,
    /// The last elements of K's rows, \[1, tokens, kv_heads, tail\]: `k` lacks them.
    pub k_tail: Option<Tensor<'a, M>>,
    /// \[tokens\]; None for the key's number.
    pub positions: Option<Array<'a, i32, M>>,
    /// None leaves K and Q as they are.
    pub rotation: Option<Rotation<'a, M>>,
    /// None without a norm.
    pub k_norm: Option<Norm<'a, M>>,
    /// Rows of Q.
    pub q: Option<Queries<'a, M>>,
}

impl<'a, M: Memory> Append<'a, M> {
    /// A minimal append: rows are stored as they are.
    pub fn new(k: Tensor<'a, M>, v: Option<Tensor<'a, M>>, kv: KvMut<'a, M>, place: Place<'a, M>) -> Self {
        let (k_tail, positions, rotation, k_norm, q) = (None, None, None, None, None);
        Append { k, v, kv, place, k_tail, positions, rotation, k_norm, q }
    }

    /// Checks types, extents and counts, and calls a function with the struct of the header.
    pub(crate) fn with_raw<R>(
        &self,
        function: impl FnOnce(&sys::sluice_append_args) -> Result<R>,
    ) -> Result<R> {
        let format = &self.kv.format;
        let [_, tokens, _, body] = self.k.layout().shape();
        let tail = self.k_tail.as_ref().map_or(0, |tail| tail.layout().shape()[3]);
        let source = number(&self.k.view, "k")?;
        let new = |heads, dim| [Exactly(1), Exactly(tokens), Exactly(heads), Exactly(dim)];
        let is_needed = tokens != 0 && !matches!(self.place, Place::Sequences { batch: 0, .. });
        let mut kv = self.kv.to_raw("kv", in_pages(&self.kv, is_needed), false)?;
        let mut raw = sys::sluice_append_args {
            source_type: source as u32,
            tokens: int("tokens", tokens)?,
            tail_dim: int("tail_dim", tail)?,
            kv: kv.linked(),
            positions: optional(&self.positions, "positions", tokens)?,
            ..Default::default()
        };
        let k_body = format.head_dim_qk.saturating_sub(tail);
        raw.k = self.k.view.checked("k", Some(source), 0, new(format.heads, k_body))?;
        match (&self.v, format.v) {
            (Some(v), Some(_)) => {
                raw.v = v.view.checked("v", Some(source), 0, new(format.heads, format.head_dim_v))?
            }
            (None, None) => {}
            (v, _) => {
                let (is, rule) = if v.is_some() { ("given", "no") } else { ("missing", "a") };
                return Err(Error::invalid("v", format!("v is {is}, but the cache has {rule} V of its own")));
            }
        }
        if let Some(k_tail) = &self.k_tail {
            raw.k_tail = k_tail.view.checked("k_tail", Some(source), 0, new(format.heads, tail))?;
        }
        self.put_place(&mut raw, tokens)?;
        let rotation = self.rotation.map(Rotation::to_raw).transpose()?;
        let k_norm = self.k_norm.map(|norm| norm.to_raw("k_norm", body)).transpose()?;
        let q_norm = self.q.as_ref().and_then(|q| q.norm);
        let q_norm = q_norm.map(|norm| norm.to_raw("q.norm", body)).transpose()?;
        let q = self.q.as_ref().map(|q| q.to_raw(&new, source, format.head_dim_qk)).transpose()?;
        let q = q.map(|q| sys::sluice_append_q { norm: pointer(&q_norm), ..q });
        (raw.rotation, raw.k_norm, raw.q) = (pointer(&rotation), pointer(&k_norm), pointer(&q));
        contents::check_append(self, tokens, format.page_size().max(1))?;
        function(&raw)
    }

    fn put_place(&self, raw: &mut sys::sluice_append_args, tokens: usize) -> Result<()> {
        match &self.place {
            Place::Slots(slots) => raw.slots = slots.checked("slots", tokens)?,
            Place::Sequences { batch, starts, lengths, pages } => {
                raw.batch = int("batch", *batch)?;
                raw.starts = starts.checked("starts", batch.saturating_add(1))?;
                raw.lengths = lengths.checked("lengths", *batch)?;
                raw.pages = pages.to_raw("pages", &self.kv.format, *batch)?;
            }
        }
        Ok(())
    }
}

impl<M: Memory> Queries<'_, M> {
    /// Without the norm. `new` makes extents of new rows.
    fn to_raw(
        &self,
        new: &impl Fn(usize, usize) -> [Extent; 4],
        source: Dtype,
        dim: usize,
    ) -> Result<sys::sluice_append_q> {
        let (rows, out, tail) = match &self.rows {
            QueryRows::InPlace(rows) => (&rows.view, &rows.view, None),
            QueryRows::Apart { rows, out, tail } => (&rows.view, &out.view, tail.as_ref()),
        };
        let heads = out.layout.shape()[2];
        let tail_dim = tail.map_or(0, |tail| tail.layout().shape()[3]);
        let mut raw = sys::sluice_append_q { heads: int("q.heads", heads)?, ..Default::default() };
        raw.q = rows.checked("q.q", Some(source), 0, new(heads, dim.saturating_sub(tail_dim)))?;
        raw.out = out.checked("q.out", Some(source), 0, new(heads, dim))?;
        if let Some(tail) = tail {
            raw.tail = tail.view.checked("q.tail", Some(source), 0, new(heads, tail_dim))?;
        }
        Ok(raw)
    }
}

/// Pages of a cache, to be copied by [`Context::copy_pages`](crate::Context::copy_pages) to other pages, or to another
/// cache, or on the host by [`reference_copy`]; the header's `sluice_copy_args`.
#[derive(Debug)]
pub struct PageCopy<'a, M: Memory = Device> {
    /// Where the pages are; None: in the target.
    pub source: Option<Kv<'a, M>>,
    /// Where they go.
    pub target: KvMut<'a, M>,
    /// \[pairs\]\[2\]: page of the source, page of the target; None: each page to itself.
    pub pairs: Option<PageNumbers<'a, M>>,
}

/// Keys of a paged cache, to be gathered by [`Context::gather`](crate::Context::gather) in contiguous rows, or on the
/// host by [`reference_gather`]; the header's `sluice_gather_args`.
#[derive(Debug)]
pub struct Gather<'a, M: Memory = Device> {
    /// A cache in pages.
    pub source: Kv<'a, M>,
    /// The pages of each sequence.
    pub pages: Pages<'a, M>,
    /// Sequences.
    pub batch: usize,
    /// \[batch\]: keys of each sequence in the cache.
    pub lengths: Array<'a, i32, M>,
    /// \[batch\]: the first key to gather; None: 0.
    pub first_keys: Option<Array<'a, i32, M>>,
    /// Rows, \[1, tokens, kv_heads, head_dim\]. Between equal types it has the scales of the source, and scales per
    /// token for those per page.
    pub target: KvMut<'a, M>,
    /// \[batch + 1\]: rows of the target before each sequence's first.
    pub starts: Array<'a, i32, M>,
}

/// The first two extents of a cache.
fn in_pages<M: Memory, T: crate::tensor::AnyTensor>(kv: &Kv<M, T>, is_needed: bool) -> [Extent; 2] {
    // The library refuses what is not in pages.
    kv.format.pages.map_or([AtLeast(0); 2], |pages| [AtLeast(is_needed.into()), Exactly(pages.size)])
}

/// Arrays of scales are copied with numbers of one type, so both sides must lay them out alike.
fn check_scales<M: Memory>(source: &Kv<M>, target: &KvMut<M>) -> Result<()> {
    let (from, to) = (&source.format, &target.format);
    let sides = [("k", Some(from.k), Some(to.k)), ("v", from.v, to.v)];
    for (side, from, to) in sides {
        let (from, to) = match (from, to) {
            (Some(from), Some(to)) if from.dtype == to.dtype => (from, to),
            _ => continue,
        };
        let is_few = |kind| !matches!(kind, ScaleKind::PerToken | ScaleKind::PerPage | ScaleKind::PerGroup);
        let wanted = match from.scale_kind {
            ScaleKind::PerPage if target.format.pages.is_none() => ScaleKind::PerToken,
            kind => kind,
        };
        let is_alike = (is_few(wanted) && is_few(to.scale_kind)) || wanted == to.scale_kind;
        if !is_alike || from.scale_group != to.scale_group {
            let field = format!("target.format.{side}.scale_kind");
            let message = format!("{field} is {:?}; it must be {wanted:?}, as in the source", to.scale_kind);
            return Err(Error::invalid(field, message));
        }
    }
    Ok(())
}

impl<M: Memory> PageCopy<'_, M> {
    pub(crate) fn with_raw<R>(
        &self,
        function: impl FnOnce(&sys::sluice_copy_args) -> Result<R>,
    ) -> Result<R> {
        let is_needed = self.pairs.as_ref().map_or(true, |pairs| pairs.len() > 1);
        let mut target = self.target.to_raw("target", in_pages(&self.target, is_needed), false)?;
        let mut source = None;
        if let Some(kv) = &self.source {
            check_scales(kv, &self.target)?;
            let raw = source.insert(kv.to_raw("source", in_pages(kv, is_needed), false)?);
            let pages = kv.fewest(0).min(self.target.fewest(0));
            raw.limit_pages(pages);
            target.limit_pages(pages);
        }
        let target = target.linked();
        let source = source.as_mut().map_or(target, |source| source.linked());
        let mut raw = sys::sluice_copy_args { source, target, ..Default::default() };
        if let Some(pairs) = &self.pairs {
            // A list without pairs is not the absence of one, which copies all pages.
            raw.pairs =
                if pairs.len() < 2 { NonNull::<i64>::dangling().as_ptr().cast() } else { pairs.raw() };
            raw.pair_count = (pairs.len() / 2) as i64;
            raw.pairs_64 = pairs.are_64().into();
        }
        function(&raw)
    }
}

impl<M: Memory> Gather<'_, M> {
    pub(crate) fn with_raw<R>(
        &self,
        function: impl FnOnce(&sys::sluice_gather_args) -> Result<R>,
    ) -> Result<R> {
        let tokens = self.target.k.layout().shape()[1];
        let is_needed = tokens != 0 && self.batch != 0;
        check_scales(&self.source, &self.target)?;
        let mut source = self.source.to_raw("source", in_pages(&self.source, is_needed), false)?;
        let mut target = self.target.to_raw("target", [Exactly(1), Exactly(tokens)], false)?;
        let format = &self.source.format;
        let raw = sys::sluice_gather_args {
            batch: int("batch", self.batch)?,
            source: source.linked(),
            pages: self.pages.to_raw("pages", format, self.batch)?,
            lengths: self.lengths.checked("lengths", self.batch)?,
            first_keys: optional(&self.first_keys, "first_keys", self.batch)?,
            target: target.linked(),
            starts: self.starts.checked("starts", self.batch.saturating_add(1))?,
            tokens: int("tokens", tokens)?,
            ..Default::default()
        };
        contents::check_pages("pages", &self.pages, Some(self.lengths), self.batch, format)?;
        function(&raw)
    }
}

/// The type of a tensor of numbers.
pub(crate) fn number(view: &View, name: &str) -> Result<Dtype> {
    view.dtype
        .ok_or_else(|| Error::invalid(format!("{name}.dtype"), format!("{name} holds bytes, not numbers")))
}

/// Performs an append on the host with plain loops: the reference for what a device stores.
///
/// Besides types and extents, contents are checked before anything is stored: slots and page numbers must be of
/// existing pages, page tables must have the entries that are read, and the table of a rotation all positions. A device
/// skips rows with a wrong place; this function refuses them, except negative slots and rows without a sequence. As on
/// a device, tensors begin at addresses that are multiples of 16, which larger vectors do anyway.
///
/// ```
/// use sluice::{reference_append, Append, Array, Dtype, Kv, KvFormat, Layout, PageTableKind, Place, Tensor};
/// use sluice::{TensorMut, F16};
/// let format = KvFormat::new(Dtype::F16, 1, 64).paged(4, PageTableKind::Block);
/// let rows: Vec<F16> = (0..2 * 64).map(|i| F16::from_f32(i as f32)).collect();
/// let (mut k, mut v) = (vec![F16::default(); 3 * 4 * 64], vec![F16::default(); 3 * 4 * 64]);
/// let (new, pages) = (Layout::rows([2, 1, 64]), Layout::contiguous([3, 4, 1, 64]));
/// let cache = Kv::new(format, TensorMut::new(&mut k, pages)?, Some(TensorMut::new(&mut v, pages)?));
/// let rows_of_k_and_v = Tensor::new(&rows, new)?;
/// let slots = Place::Slots(Array::new(&[9, 2])); // row 1 of page 2, and row 2 of page 0
/// reference_append(&mut Append::new(rows_of_k_and_v, Some(rows_of_k_and_v), cache, slots))?;
/// assert_eq!((&k[9 * 64..10 * 64], &v[2 * 64..3 * 64]), (&rows[..64], &rows[64..]));
/// # Ok::<(), sluice::Error>(())
/// ```
pub fn reference_append(append: &mut Append<Host>) -> Result<()> {
    // SAFETY: all memory is borrowed until the call returns, mutably if it is written. with_raw has compared its extents
    // with each other and checked the indices that page table and rotation are read at. With the counts that it sets,
    // the library checks all other contents before it uses them.
    append.with_raw(|append| call(|error| unsafe { sys::sluice_cache_append_reference(append, error) }))
}

/// Copies pages on the host with plain loops: the reference for what a device stores.
///
/// Page numbers are checked before anything is stored: one that is not of an existing page is refused. Pairs with
/// negative numbers are skipped. As on a device, tensors begin at addresses that are multiples of 16, which larger
/// vectors do anyway.
pub fn reference_copy(copy: &mut PageCopy<Host>) -> Result<()> {
    // SAFETY: all memory is borrowed until the call returns, mutably if it is written. with_raw has compared its extents
    // with each other. With the count of pages that it sets, the library checks the pairs before it uses them.
    copy.with_raw(|copy| call(|error| unsafe { sys::sluice_cache_copy_reference(copy, error) }))
}

/// Gathers keys on the host with plain loops: the reference for what a device stores.
///
/// Contents are checked before anything is stored: what a device would read as zeros or leave out is refused.
pub fn reference_gather(gather: &mut Gather<Host>) -> Result<()> {
    // SAFETY: as in reference_copy. with_raw has checked the entries that the page table is read at.
    gather.with_raw(|gather| call(|error| unsafe { sys::sluice_cache_gather_reference(gather, error) }))
}
