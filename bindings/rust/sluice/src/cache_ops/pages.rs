//! Copies of pages, and gathers of keys.

use super::{number, scales_view, AppendScale};
use crate::args::{PageNumbers, PageTable, RawTable};
use crate::contents;
use crate::error::{call, init, int, Error, Result};
use crate::tensor::{fewest, optional, Array, Device, Extent, Host, Memory, Tensor, TensorMut, View};
use sluice_sys as sys;
use Extent::{AtLeast, Exactly};

/// Pages of caches, to be copied by [`Context::kv_copy`](crate::Context::kv_copy) to other pages, or to other caches, or
/// on the host by [`reference_copy`]; the header's `sluice_page_copy`. Types, heads, dims, and the number of pages come
/// from the tensors.
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
    /// Between types that differ; those per token, page or group are read, to F16 or BF16.
    pub k_scale: Option<AppendScale<'a, M>>,
    /// The same for V.
    pub v_scale: Option<AppendScale<'a, M>>,
}

/// Keys of a paged cache, to be gathered by [`Context::kv_gather`](crate::Context::kv_gather) in contiguous rows, or on
/// the host by [`reference_gather`]; the header's `sluice_gather`. Types, heads, dims, pages and the number of rows come
/// from the tensors.
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
    /// Between types that differ; those per token, page or group are read, to F16 or BF16.
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
        put_scales!(raw, self, dim_qk, (page_size, heads));
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
        put_scales!(raw, self, dim_qk, (page_size, heads));
        contents::check_gather(self, page_size.max(1))?;
        Ok(raw)
    }
}

/// Copies pages on the host with plain loops: the reference for what a device stores.
///
/// Page numbers are checked before anything is stored: one that is not of an existing page is refused. Pairs with
/// negative numbers are skipped. As on a device, tensors begin at addresses that are multiples of 16, which larger
/// vectors do anyway.
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
