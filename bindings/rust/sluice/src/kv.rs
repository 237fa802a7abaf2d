//! K and V in memory, and which of their rows belong to which sequence.

use crate::contents;
use crate::element::Dtype;
use crate::error::{int, int_64, Error, Result};
use crate::format::{Format, KvFormat, ScaleKind, PACK_ALL};
use crate::tensor::{fewest, AnyTensor, Array, Device, Extent, Memory, Tensor, TensorMut, View};
use sluice_sys as sys;
use std::os::raw::c_void;
use std::ptr;
use Extent::{AtLeast, Exactly};

/// The scales of K or V.
#[derive(Clone, Copy, Debug)]
pub enum Scales<'a, M: Memory = Device, T = Tensor<'a, M>> {
    /// [`ScaleKind::PerTensor`]: \[1\]. [`ScaleKind::PerHead`]: \[kv_heads\].
    Few(Array<'a, f32, M>),
    /// The other kinds.
    Many {
        /// [`ScaleKind::PerToken`]: F32, laid out as K or V with rows of one element. [`ScaleKind::PerPage`]: F32,
        /// \[page, 1, kv_heads, 1\]. [`ScaleKind::PerGroup`]: F16, with rows of one element for each group.
        scales: T,
        /// With [`Format::zero_points`]: what is subtracted, laid out as the scales.
        zeros: Option<T>,
    },
}

/// K and V in memory: a paged cache, or tensors; the header's `sluice_kv`. Attention reads one, and cache operations
/// write a [`KvMut`].
#[derive(Clone, Copy, Debug)]
pub struct Kv<'a, M: Memory = Device, T = Tensor<'a, M>> {
    /// How they are stored; that of the plan, where there is one.
    pub format: KvFormat,
    /// Keys: \[batch, token, kv_heads, head_dim_qk\], with starts \[1, rows, ...\], in pages \[page, page_size, ...\].
    pub k: T,
    /// Values, laid out as the keys; None if V is in K.
    pub v: Option<T>,
    /// Scales of K.
    pub k_scales: Option<Scales<'a, M, T>>,
    /// Scales of V.
    pub v_scales: Option<Scales<'a, M, T>>,
}

/// K and V that are written.
pub type KvMut<'a, M = Device> = Kv<'a, M, TensorMut<'a, M>>;

/// The structs of the header, which point to one another once linked.
pub(crate) struct RawKv {
    format: sys::sluice_kv_format,
    scales: Option<sys::sluice_kv_scales>,
    kv: sys::sluice_kv,
}

impl RawKv {
    /// The pages of two caches that are named alike.
    pub(crate) fn limit_pages(&mut self, count: i64) {
        self.kv.page_count = count;
    }

    /// The pointer is valid until this moves.
    pub(crate) fn linked(&mut self) -> *const sys::sluice_kv {
        self.kv.format = &self.format;
        self.kv.scales = crate::attention::pointer(&self.scales);
        &self.kv
    }
}

impl<'a, M: Memory, T: AnyTensor> Kv<'a, M, T> {
    /// Without scales.
    pub fn new(format: KvFormat, k: T, v: Option<T>) -> Self {
        Kv { format, k, v, k_scales: None, v_scales: None }
    }

    fn views(&self) -> impl Iterator<Item = Option<&View>> {
        let ([a, b], [c, d]) = (many(&self.k_scales), many(&self.v_scales));
        [Some(self.k.view()), self.v.as_ref().map(|v| v.view()), a, b, c, d].into_iter()
    }

    /// Rows that all tensors have in this dimension.
    pub(crate) fn fewest(&self, dimension: usize) -> i64 {
        fewest(dimension, self.views())
    }

    /// Checks types and extents; `place` is what the first two must be.
    pub(crate) fn to_raw(&self, name: &str, place: [Extent; 2], is_padded: bool) -> Result<RawKv> {
        let format = &self.format;
        let row = |dim: usize| if is_padded { dim.saturating_add(7) / 8 * 8 } else { dim };
        let [dim_qk, dim_v] = [row(format.head_dim_qk), row(format.head_dim_v)];
        let extents = |dim| [place[0], place[1], Exactly(format.heads), Exactly(dim)];
        let mut kv = sys::sluice_kv::default();
        let k = self.k.view();
        kv.k = k.checked(&format!("{name}.k"), Some(format.k.dtype), format.k.pack, extents(dim_qk))?;
        match (&self.v, format.v) {
            (Some(v), Some(format)) => kv.v = values(&format!("{name}.v"), v.view(), format, extents(dim_v))?,
            (None, None) => {}
            (given, _) => {
                let (is, rule) = if given.is_some() { ("given", "no") } else { ("missing", "a") };
                let message = format!("{name}.v is {is}, but the format has {rule} V of its own");
                return Err(Error::invalid(format!("{name}.v"), message));
            }
        }
        if format.pages.is_some() {
            kv.page_count = self.fewest(0);
        }
        let mut scales = sys::sluice_kv_scales::default();
        let path = |side: &str| format!("{name}.scales.{side}");
        (scales.k, scales.k_zeros) = raw_scales(&path("k"), &self.k_scales, Some(format.k), extents(dim_qk))?;
        (scales.v, scales.v_zeros) = raw_scales(&path("v"), &self.v_scales, format.v, extents(dim_v))?;
        let is_scaled = self.k_scales.is_some() || self.v_scales.is_some();
        let scales = if is_scaled { Some(scales) } else { None };
        Ok(RawKv { format: format.to_raw(&format!("{name}.format"))?, scales, kv })
    }
}

/// Scales and zeros that are tensors.
fn many<'s, M: Memory, T: AnyTensor>(scales: &'s Option<Scales<'_, M, T>>) -> [Option<&'s View>; 2] {
    match scales {
        Some(Scales::Many { scales, zeros }) => {
            [Some(scales.view()), zeros.as_ref().map(|zeros| zeros.view())]
        }
        _ => [None, None],
    }
}

/// V, by rows or by columns, of which whole groups of 8 tokens are read.
fn values(name: &str, v: &View, format: Format, mut extents: [Extent; 4]) -> Result<sys::sluice_tensor> {
    let is_one_pack = format.pack == PACK_ALL;
    if let (true, AtLeast(keys)) = (is_one_pack, extents[1]) {
        extents[1] = AtLeast(keys.saturating_add(7) / 8 * 8);
    }
    let token_pack = if is_one_pack { 0 } else { format.pack };
    v.checked_in_packs(name, Some(format.dtype), 0, token_pack, extents)
}

/// Scales and zeros of K or V, whose rows have these extents.
fn raw_scales<M: Memory, T: AnyTensor>(
    name: &str,
    given: &Option<Scales<M, T>>,
    format: Option<Format>,
    [outer, inner, heads, row]: [Extent; 4],
) -> Result<(sys::sluice_tensor, sys::sluice_tensor)> {
    let mut tensor = sys::sluice_tensor::default();
    let (given, format) = match (given, format) {
        (None, _) => return Ok((tensor, tensor)),
        (Some(given), Some(format)) => (given, format),
        (Some(_), None) => {
            return Err(Error::invalid(name, format!("{name} is given, but V is in K and has its scales")))
        }
    };
    let one = Exactly(1);
    let (dtype, extents) = match format.scale_kind {
        // The library refuses other sizes of a group, and groups that do not fill a row.
        ScaleKind::PerGroup => {
            (Dtype::F16, [outer, inner, heads, AtLeast(row.least() / format.scale_group.max(1))])
        }
        ScaleKind::PerPage => (Dtype::F32, [outer, one, heads, one]),
        _ => (Dtype::F32, [outer, inner, heads, one]),
    };
    let is_few = matches!(format.scale_kind, ScaleKind::PerTensor | ScaleKind::PerHead);
    match given {
        Scales::Few(array) if is_few => {
            tensor.data = array.checked(name, format.scale_count(heads.least()))? as *mut c_void;
            Ok((tensor, sys::sluice_tensor::default()))
        }
        Scales::Many { scales, zeros } if !is_few => {
            let checked = |name: &str, tensor: &T| {
                let mut raw = tensor.view().checked(name, Some(dtype), 0, extents)?;
                if dtype == Dtype::F32 {
                    raw.stride[3] = 0;
                }
                if format.scale_kind == ScaleKind::PerPage {
                    raw.stride[1] = 0; // all rows of a page share the only one
                }
                Ok(raw)
            };
            let zeros = zeros.as_ref().map(|zeros| checked(&format!("{name}_zeros"), zeros)).transpose()?;
            Ok((checked(name, scales)?, zeros.unwrap_or_default()))
        }
        _ => {
            let wanted = if is_few { "Scales::Few" } else { "Scales::Many" };
            let message = format!("{name} must be {wanted} for scales {:?}", format.scale_kind);
            Err(Error::invalid(name, message))
        }
    }
}

/// How many rows sequences have, and where they are in a tensor; the header's `sluice_rows`.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, M: Memory = Device> {
    /// Rows of each sequence, or the most of any; None: the plan's bound.
    pub max_len: Option<usize>,
    /// \[batch + 1\]: rows of the tensor before each sequence's first.
    pub starts: Option<Array<'a, i32, M>>,
    /// \[batch\]: rows of each sequence.
    pub lengths: Option<Array<'a, i32, M>>,
}

impl<M: Memory> From<usize> for Rows<'_, M> {
    /// Every sequence has that many.
    fn from(len: usize) -> Self {
        Rows { max_len: Some(len), starts: None, lengths: None }
    }
}

impl<M: Memory> Default for Rows<'_, M> {
    /// Every sequence has as many as the plan's bound.
    fn default() -> Self {
        Rows { max_len: None, starts: None, lengths: None }
    }
}

impl<'a, M: Memory> Rows<'a, M> {
    /// Up to the plan's bound, with these starts.
    pub fn starting(starts: Array<'a, i32, M>) -> Self {
        Rows { starts: Some(starts), ..Rows::default() }
    }

    /// Up to the plan's bound, with these lengths.
    pub fn of_lengths(lengths: Array<'a, i32, M>) -> Self {
        Rows { lengths: Some(lengths), ..Rows::default() }
    }

    /// The most rows of a sequence.
    pub(crate) fn longest(&self, name: &str, bound: usize) -> Result<usize> {
        match self.max_len {
            None if bound == 0 => {
                let field = format!("{name}.max_len");
                Err(Error::invalid(&field, format!("{field} is None, but the plan has no bound for it")))
            }
            given => Ok(given.unwrap_or(bound)),
        }
    }

    /// `total`: rows of all tensors, which matters with starts.
    pub(crate) fn to_raw(&self, name: &str, count: usize, total: i64) -> Result<sys::sluice_rows> {
        if self.starts.is_some() && total == 0 {
            let field = format!("{name}.starts");
            let message = format!("{field} is given, but the tensors have no rows");
            return Err(Error::invalid(field, message));
        }
        let array = |field, array: &Option<Array<i32, M>>, needed| {
            crate::tensor::optional(array, &format!("{name}.{field}"), needed)
        };
        Ok(sys::sluice_rows {
            max_len: match self.max_len {
                Some(len) => int(&format!("{name}.max_len"), len)?,
                None => sys::SLUICE_PLAN_BOUND,
            },
            reserved: 0,
            starts: array("starts", &self.starts, count.saturating_add(1))?,
            lengths: array("lengths", &self.lengths, count)?,
            total: if self.starts.is_some() { total } else { 0 },
        })
    }
}

/// Numbers of pages, in one of two widths.
#[derive(Clone, Copy, Debug)]
pub enum PageNumbers<'a, M: Memory = Device> {
    /// The usual width.
    I32(Array<'a, i32, M>),
    /// With [`PageFormat::index_64`](crate::PageFormat::index_64).
    I64(Array<'a, i64, M>),
}

impl<'a, M: Memory> From<Array<'a, i32, M>> for PageNumbers<'a, M> {
    fn from(numbers: Array<'a, i32, M>) -> Self {
        PageNumbers::I32(numbers)
    }
}

impl<'a, M: Memory> From<Array<'a, i64, M>> for PageNumbers<'a, M> {
    fn from(numbers: Array<'a, i64, M>) -> Self {
        PageNumbers::I64(numbers)
    }
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

/// Where the page numbers of a sequence are in a table.
#[derive(Clone, Copy, Debug)]
pub enum PagePlace<'a, M: Memory = Device> {
    /// That many entries after those of the sequence before it.
    Stride(usize),
    /// All sequences have the same pages.
    Shared,
    /// For [`PageTableKind::Csr`](crate::PageTableKind::Csr), \[batch + 1\]: entries before each sequence's first.
    Starts(Array<'a, i32, M>),
}

/// The pages of each sequence; the header's `sluice_pages`.
#[derive(Clone, Copy, Debug)]
pub struct Pages<'a, M: Memory = Device> {
    /// Page numbers of all sequences.
    pub table: PageNumbers<'a, M>,
    /// Where those of a sequence are.
    pub place: PagePlace<'a, M>,
    /// Entries from those of a KV head to the next one's; 0: all heads share them.
    pub head_stride: usize,
}

impl<'a, M: Memory> Pages<'a, M> {
    /// \[batch, stride\].
    pub fn block(table: impl Into<PageNumbers<'a, M>>, stride: usize) -> Self {
        Pages { table: table.into(), place: PagePlace::Stride(stride), head_stride: 0 }
    }

    /// One list, and where each sequence's begin.
    pub fn csr(table: impl Into<PageNumbers<'a, M>>, starts: Array<'a, i32, M>) -> Self {
        Pages { table: table.into(), place: PagePlace::Starts(starts), head_stride: 0 }
    }

    /// The pages of `count` sequences or groups of a cache.
    pub(crate) fn to_raw(&self, name: &str, format: &KvFormat, count: usize) -> Result<sys::sluice_pages> {
        let wanted = format.pages.map_or(false, |pages| pages.index_64);
        if self.table.are_64() != wanted {
            let width = |is_64| if is_64 { "i64" } else { "i32" };
            let message = format!(
                "{name}.table holds {}; the format says {}",
                width(self.table.are_64()),
                width(wanted)
            );
            return Err(Error::invalid(format!("{name}.table"), message));
        }
        let mut raw = sys::sluice_pages {
            table: self.table.raw(),
            starts: ptr::null(),
            stride: 0,
            head_stride: int_64(&format!("{name}.head_stride"), self.head_stride)?,
        };
        match &self.place {
            PagePlace::Stride(stride) => raw.stride = int_64(&format!("{name}.stride"), *stride)?,
            PagePlace::Shared => raw.stride = sys::SLUICE_SHARED.into(),
            PagePlace::Starts(starts) => {
                raw.starts = starts.checked(&format!("{name}.starts"), count.saturating_add(1))?
            }
        }
        Ok(raw)
    }
}

/// What rows attend to; the header's `sluice_keys`.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a, M: Memory = Device> {
    /// Where the keys are.
    pub kv: Kv<'a, M>,
    /// How many there are, of each sequence or group.
    pub rows: Rows<'a, M>,
    /// In which pages, if they are in pages.
    pub pages: Option<Pages<'a, M>>,
}

impl<'a, M: Memory> Keys<'a, M> {
    /// Keys of tensors.
    pub fn new(kv: Kv<'a, M>, rows: impl Into<Rows<'a, M>>) -> Self {
        Keys { kv, rows: rows.into(), pages: None }
    }

    /// Keys in pages.
    pub fn paged(kv: Kv<'a, M>, rows: Rows<'a, M>, pages: Pages<'a, M>) -> Self {
        Keys { kv, rows, pages: Some(pages) }
    }

    /// Checks everything. The keys still need the pointer to their kv.
    pub(crate) fn to_raw(
        &self,
        name: &str,
        count: usize,
        longest: usize,
        is_read: bool,
        is_padded: bool,
    ) -> Result<(RawKv, sys::sluice_keys)> {
        let place = match (self.kv.format.pages, self.rows.starts) {
            (Some(pages), _) => [AtLeast(is_read.into()), Exactly(pages.size)],
            (None, Some(_)) => [Exactly(1), AtLeast(0)],
            (None, None) => [AtLeast(count), AtLeast(longest)],
        };
        let kv = self.kv.to_raw(&format!("{name}.kv"), place, is_padded)?;
        let total = if self.kv.format.pages.is_some() { 1 } else { self.kv.fewest(1) };
        let mut rows = self.rows.to_raw(&format!("{name}.rows"), count, total)?;
        if self.kv.format.pages.is_some() {
            rows.total = 0;
        }
        let mut raw = sys::sluice_keys { rows, ..Default::default() };
        if let Some(pages) = &self.pages {
            let path = format!("{name}.pages");
            raw.pages = pages.to_raw(&path, &self.kv.format, count)?;
            contents::check_pages(&path, pages, self.rows.lengths, count, &self.kv.format)?;
        }
        Ok((kv, raw))
    }
}
