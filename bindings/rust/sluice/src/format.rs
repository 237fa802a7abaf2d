//! How numbers are stored, and how K and V are.

use crate::element::Dtype;
use crate::error::{int, Result};
use sluice_sys as sys;

/// Granularity of the scales that values are multiplied with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ScaleKind {
    /// Values are used as stored.
    #[default]
    None = sys::SLUICE_SCALE_NONE,
    /// One scale.
    PerTensor = sys::SLUICE_SCALE_PER_TENSOR,
    /// One per head of the tensor.
    PerHead = sys::SLUICE_SCALE_PER_HEAD,
    /// One per token and head, of K and V.
    PerToken = sys::SLUICE_SCALE_PER_TOKEN,
    /// One per page and head, of K and V in pages.
    PerPage = sys::SLUICE_SCALE_PER_PAGE,
    /// One per [`Format::scale_group`] elements of a row of K or V, in F16, for [`Dtype::U4`] only.
    PerGroup = sys::SLUICE_SCALE_PER_GROUP,
}

/// How a paged KV cache names its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum PageTableKind {
    /// \[batch, pages\] page numbers.
    Block = sys::SLUICE_PAGE_TABLE_BLOCK,
    /// One list of page numbers, and where each sequence's begin.
    Csr = sys::SLUICE_PAGE_TABLE_CSR,
}

/// How the numbers of a tensor are stored; the header's `sluice_format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Type of the elements.
    pub dtype: Dtype,
    /// What shares a scale.
    pub scale_kind: ScaleKind,
    /// Elements of a group of [`ScaleKind::PerGroup`], 32 or 64; else 0.
    pub scale_group: usize,
    /// Whether each group also has a number to subtract. Else it is 8.
    pub zero_points: bool,
    /// Of K in pages: elements of a row per pack ([`Layout::packed`](crate::Layout::packed)). Of V: tokens per pack
    /// of V by columns ([`Layout::packed_tokens`](crate::Layout::packed_tokens)), or [`PACK_ALL`]. 0: rows.
    pub pack: usize,
}

/// For [`Format::pack`]: all tokens of a page, or of a sequence without pages, are neighbours (`stride[1]` of V is 1).
pub const PACK_ALL: usize = sys::SLUICE_PACK_ALL as usize;

impl From<Dtype> for Format {
    /// Rows without scales.
    fn from(dtype: Dtype) -> Self {
        Format { dtype, scale_kind: ScaleKind::None, scale_group: 0, zero_points: false, pack: 0 }
    }
}

impl Format {
    /// Rows with scales.
    pub fn scaled(dtype: Dtype, scale_kind: ScaleKind) -> Self {
        Format { scale_kind, ..dtype.into() }
    }

    pub(crate) fn to_raw(self, name: &str) -> Result<sys::sluice_format> {
        Ok(sys::sluice_format {
            r#type: self.dtype as u32,
            scale_kind: self.scale_kind as u32,
            scale_group: int(&format!("{name}.scale_group"), self.scale_group)?,
            zero_points: self.zero_points.into(),
            pack: int(&format!("{name}.pack"), self.pack)?,
            reserved: 0,
        })
    }

    /// How many of these numbers there are for a tensor with so many heads.
    pub(crate) fn scale_count(&self, heads: usize) -> usize {
        if self.scale_kind == ScaleKind::PerHead {
            heads
        } else {
            1
        }
    }
}

/// Pages of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFormat {
    /// Tokens per page.
    pub size: usize,
    /// How sequences name their pages.
    pub table: PageTableKind,
    /// Whether page tables hold `i64`.
    pub index_64: bool,
}

/// How keys and values are stored: all that a plan must know of them; the header's `sluice_kv_format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvFormat {
    /// KV heads.
    pub heads: usize,
    /// Elements of a row of K.
    pub head_dim_qk: usize,
    /// Elements of a row of V.
    pub head_dim_v: usize,
    /// Rows of K.
    pub k: Format,
    /// Rows of V; None: V is the beginning of each row of K.
    pub v: Option<Format>,
    /// None: tensors.
    pub pages: Option<PageFormat>,
}

impl KvFormat {
    /// Tensors of K and V with rows of one size and one format.
    pub fn new(format: impl Into<Format>, heads: usize, head_dim: usize) -> Self {
        let k = format.into();
        KvFormat { heads, head_dim_qk: head_dim, head_dim_v: head_dim, k, v: Some(k), pages: None }
    }

    /// The same in pages.
    pub fn paged(self, size: usize, table: PageTableKind) -> Self {
        KvFormat { pages: Some(PageFormat { size, table, index_64: false }), ..self }
    }

    /// The latent cache of MLA: one head, whose first elements are V too.
    pub fn latent(format: impl Into<Format>, latent_dim: usize, rotary_dim: usize) -> Self {
        let k = format.into();
        let head_dim_qk = latent_dim + rotary_dim;
        KvFormat { heads: 1, head_dim_qk, head_dim_v: latent_dim, k, v: None, pages: None }
    }

    pub(crate) fn page_size(&self) -> usize {
        self.pages.map_or(0, |pages| pages.size)
    }

    pub(crate) fn to_raw(self, name: &str) -> Result<sys::sluice_kv_format> {
        let number = |field: &str, value| int(&format!("{name}.{field}"), value);
        let mut raw = sys::sluice_kv_format {
            kv_heads: number("kv_heads", self.heads)?,
            head_dim_qk: number("head_dim_qk", self.head_dim_qk)?,
            head_dim_v: number("head_dim_v", self.head_dim_v)?,
            k: self.k.to_raw(&format!("{name}.k"))?,
            ..Default::default()
        };
        match self.v {
            Some(v) => raw.v = v.to_raw(&format!("{name}.v"))?,
            None => raw.flags |= sys::SLUICE_KV_V_IN_K,
        }
        if let Some(pages) = self.pages {
            (raw.page_size, raw.page_table) = (number("page_size", pages.size)?, pages.table as u32);
            if pages.index_64 {
                raw.flags |= sys::SLUICE_KV_PAGE_INDEX_64;
            }
        }
        Ok(raw)
    }
}
