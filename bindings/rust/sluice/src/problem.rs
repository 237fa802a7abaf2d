//! Classes of attention calls.

use crate::element::Dtype;
use crate::error::{init, int, Error, Result};
use sluice_sys as sys;

/// Where the diagonal of the mask is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum MaskAlignment {
    /// The last row sees the last key: rows are the newest tokens. The default.
    BottomRight = sys::SLUICE_BOTTOM_RIGHT,
    /// Row 0 sees key 0.
    TopLeft = sys::SLUICE_TOP_LEFT,
    /// Each sequence says at which key: [`Args::diagonals`](crate::Args::diagonals).
    GivenDiagonal = sys::SLUICE_GIVEN_DIAGONAL,
}

/// Granularity of the scales that values are multiplied with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ScaleKind {
    /// Values are used as stored. The default.
    None = sys::SLUICE_SCALE_NONE,
    /// One scale.
    PerTensor = sys::SLUICE_SCALE_PER_TENSOR,
    /// One per head of the tensor.
    PerHead = sys::SLUICE_SCALE_PER_HEAD,
    /// One per token and head, of K and V: [`Args::k_scales`](crate::Args::k_scales).
    PerToken = sys::SLUICE_SCALE_PER_TOKEN,
    /// One per page and head, of a paged K and V, in the same tensors.
    PerPage = sys::SLUICE_SCALE_PER_PAGE,
    /// One per [`ProblemBuilder::scale_group`] elements of a row, in F16, for [`Dtype::U4`] only, in the same tensors.
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

/// Base of the logarithm in LSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum LseBase {
    /// Natural logarithm.
    E = sys::SLUICE_LSE_BASE_E,
    /// Logarithm to base 2.
    Two = sys::SLUICE_LSE_BASE_2,
}

/// What may influence the bits of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Determinism {
    /// The fastest choice. Equal calls with one plan give equal bits. The default.
    Fast = sys::SLUICE_DETERMINISM_FAST,
    /// Also, a sequence's result depends neither on the rest of the batch nor on the problem's bounds. Needs
    /// [`max_batch`](ProblemBuilder::max_batch) and [`max_kv_len`](ProblemBuilder::max_kv_len), and a workspace.
    BatchInvariant = sys::SLUICE_DETERMINISM_BATCH_INVARIANT,
}

/// A class of attention calls: everything that selects a kernel, nothing that changes from call to call. The header's
/// `sluice_problem`, with its numerical contract.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    raw: sys::sluice_problem,
}

impl Problem {
    /// Dense attention, not causal, without bounds: Q, K, V and O of one type, K and V with rows of one size.
    /// [`Context::query_support`](crate::Context::query_support) says whether a library can compute it.
    ///
    /// ```
    /// use sluice::{Dtype, LseBase, Problem};
    /// let problem = Problem::builder(Dtype::F16, 8, 2, 128).causal().write_lse(LseBase::E).max_kv_len(4096).build()?;
    /// # Ok::<(), sluice::Error>(())
    /// ```
    pub fn builder(dtype: Dtype, q_heads: usize, kv_heads: usize, head_dim: usize) -> ProblemBuilder {
        let mut raw: sys::sluice_problem = init(sys::sluice_problem_init);
        let number = dtype as u32;
        (raw.q_type, raw.k_type, raw.v_type, raw.o_type) = (number, number, number, number);
        ProblemBuilder { raw, error: None }
            .int("q_heads", q_heads, |raw, value| raw.q_heads = value)
            .int("kv_heads", kv_heads, |raw, value| raw.kv_heads = value)
            .head_dims(head_dim, head_dim)
    }

    /// The struct of the header.
    pub fn raw(&self) -> &sys::sluice_problem {
        &self.raw
    }

    pub(crate) fn has(&self, flag: u32) -> bool {
        self.raw.flags & flag != 0
    }
}

/// Describes a [`Problem`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ProblemBuilder {
    raw: sys::sluice_problem,
    error: Option<Error>,
}

impl ProblemBuilder {
    fn int(mut self, field: &str, value: usize, set: impl FnOnce(&mut sys::sluice_problem, i32)) -> Self {
        match int(field, value) {
            Ok(value) => set(&mut self.raw, value),
            Err(error) => self.error = self.error.or(Some(error)),
        }
        self
    }

    fn set(mut self, set: impl FnOnce(&mut sys::sluice_problem)) -> Self {
        set(&mut self.raw);
        self
    }

    fn flag(self, flag: u32) -> Self {
        self.set(|raw| raw.flags |= flag)
    }

    /// K and V have another type than Q and O: an FP8 cache.
    pub fn kv_type(self, dtype: Dtype) -> Self {
        self.set(|raw| (raw.k_type, raw.v_type) = (dtype as u32, dtype as u32))
    }

    /// V has another type than K.
    pub fn v_type(self, dtype: Dtype) -> Self {
        self.set(|raw| raw.v_type = dtype as u32)
    }

    /// O has another type than Q.
    pub fn o_type(self, dtype: Dtype) -> Self {
        self.set(|raw| raw.o_type = dtype as u32)
    }

    /// Elements of a row of Q and K, and of V and O.
    pub fn head_dims(self, qk: usize, v: usize) -> Self {
        self.int("head_dim_qk", qk, |raw, value| raw.head_dim_qk = value).int(
            "head_dim_v",
            v,
            |raw, value| raw.head_dim_v = value,
        )
    }

    /// Sequences are packed one after the other.
    pub fn ragged(self) -> Self {
        self.set(|raw| raw.mode = sys::SLUICE_MODE_RAGGED)
    }

    /// K and V are in pages of this many tokens.
    pub fn paged(self, page_size: usize, table: PageTableKind) -> Self {
        self.int("page_size", page_size, |raw, value| raw.page_size = value).set(|raw| {
            raw.mode = sys::SLUICE_MODE_PAGED;
            raw.page_table_kind = table as u32;
        })
    }

    /// The page table holds `i64`.
    pub fn page_index_64(self) -> Self {
        self.flag(sys::SLUICE_PAGE_INDEX_64)
    }

    /// Keys of pages whose number is negative are invisible: page tables as lists with holes.
    pub fn missing_pages_hidden(self) -> Self {
        self.flag(sys::SLUICE_MISSING_PAGES_HIDDEN)
    }

    /// Rows of Q, K, V and O continue in memory to the next multiple of 8 elements, so that head dims may be any
    /// number. What is there is ignored in Q and V, must be finite in K, and is undefined in O after a run. Tensors
    /// have the whole rows: 104 elements for a head dim of 100.
    pub fn padded_rows(self) -> Self {
        self.flag(sys::SLUICE_PADDED_ROWS)
    }

    /// Elements per pack of an x-packed K cache.
    pub fn k_pack(self, elements: usize) -> Self {
        self.int("k_pack", elements, |raw, value| raw.k_pack = value)
    }

    /// V is by columns, whose tokens are neighbours, in packs of this many tokens; see
    /// [`Layout::packed_tokens`](crate::Layout::packed_tokens).
    pub fn v_pack(self, tokens: usize) -> Self {
        self.int("v_pack", tokens, |raw, value| raw.v_pack = value)
    }

    /// V is by columns, and all tokens of a page, or of a sequence without pages, are neighbours: `stride[1]` of V
    /// is 1.
    pub fn v_by_columns(self) -> Self {
        self.v_pack(sys::SLUICE_V_PACK_ALL as usize)
    }

    /// V is the beginning of each row of K.
    pub fn v_in_k(self) -> Self {
        self.flag(sys::SLUICE_V_IN_K)
    }

    /// Maximum number of sequences per call.
    pub fn max_batch(self, sequences: usize) -> Self {
        self.int("max_batch", sequences, |raw, value| raw.max_batch = value)
    }

    /// Maximum number of query rows per sequence.
    pub fn max_q_len(self, rows: usize) -> Self {
        self.int("max_q_len", rows, |raw, value| raw.max_q_len = value)
    }

    /// Maximum number of keys per sequence.
    pub fn max_kv_len(self, keys: usize) -> Self {
        self.int("max_kv_len", keys, |raw, value| raw.max_kv_len = value)
    }

    /// Maximum number of rows of Q per call.
    pub fn max_q_tokens(self, rows: u32) -> Self {
        self.set(|raw| raw.max_q_tokens = rows.into())
    }

    /// Groups of rows see up to this many prefixes of up to `keys` keys before their sequence's own keys; see
    /// [`Prefixes`](crate::Prefixes). Needs [`max_q_tokens`](Self::max_q_tokens).
    pub fn shared_prefix(self, prefixes: usize, keys: usize) -> Self {
        self.flag(sys::SLUICE_SHARED_PREFIX)
            .int("max_prefixes", prefixes, |raw, value| raw.max_prefixes = value)
            .int("max_prefix_len", keys, |raw, value| raw.max_prefix_len = value)
    }

    /// Keys after the row's own position are invisible.
    pub fn causal(self) -> Self {
        self.flag(sys::SLUICE_CAUSAL)
    }

    /// Number of keys visible before the diagonal.
    pub fn window_left(self, keys: usize) -> Self {
        self.flag(sys::SLUICE_HAS_WINDOW_LEFT).int("window_left", keys, |raw, value| raw.window_left = value)
    }

    /// Number of keys visible after the diagonal.
    pub fn window_right(self, keys: usize) -> Self {
        self.flag(sys::SLUICE_HAS_WINDOW_RIGHT)
            .int("window_right", keys, |raw, value| raw.window_right = value)
    }

    /// Sink tokens: the number of first keys that the left window does not hide.
    pub fn sink_tokens(self, keys: usize) -> Self {
        self.int("sink_tokens", keys, |raw, value| raw.sink_tokens = value)
    }

    /// Alignment of the diagonal.
    pub fn mask_alignment(self, alignment: MaskAlignment) -> Self {
        self.set(|raw| raw.mask_alignment = alignment as u32)
    }

    /// A bit per row and key says whether it is visible.
    pub fn bool_mask(self) -> Self {
        self.flag(sys::SLUICE_BOOL_MASK)
    }

    /// The mask covers only a sequence's newest keys, as many as it has rows; the keys before them are not masked.
    pub fn mask_new_rows(self) -> Self {
        self.flag(sys::SLUICE_MASK_NEW_ROWS)
    }

    /// Spans of keys that see each other in both directions.
    pub fn spans(self) -> Self {
        self.flag(sys::SLUICE_SPANS)
    }

    /// Each sequence says whether it is causal; not with [`causal`](Self::causal).
    pub fn causal_by_sequence(self) -> Self {
        self.flag(sys::SLUICE_CAUSAL_BY_SEQUENCE)
    }

    /// slope * distance is subtracted from the scores.
    pub fn alibi(self) -> Self {
        self.flag(sys::SLUICE_ALIBI)
    }

    /// A learned logit per query head joins the denominator.
    pub fn sink_logits(self) -> Self {
        self.flag(sys::SLUICE_SINK_LOGITS)
    }

    /// A matrix of this type is added to the scores.
    pub fn bias(self, dtype: Dtype) -> Self {
        self.set(|raw| raw.bias_type = dtype as u32)
    }

    /// The bias is multiplied by a scale per query head.
    pub fn bias_scale(self) -> Self {
        self.flag(sys::SLUICE_BIAS_SCALE)
    }

    /// c replaces S by c * tanh(S / c).
    pub fn soft_cap(self, cap: f32) -> Self {
        self.set(|raw| raw.soft_cap = cap)
    }

    /// Scales of Q.
    pub fn q_scale(self, kind: ScaleKind) -> Self {
        self.set(|raw| raw.q_scale_kind = kind as u32)
    }

    /// Scales of K.
    pub fn k_scale(self, kind: ScaleKind) -> Self {
        self.set(|raw| raw.k_scale_kind = kind as u32)
    }

    /// Scales of V.
    pub fn v_scale(self, kind: ScaleKind) -> Self {
        self.set(|raw| raw.v_scale_kind = kind as u32)
    }

    /// Elements of a group of [`ScaleKind::PerGroup`]: 32 or 64.
    pub fn scale_group(self, elements: usize) -> Self {
        self.int("scale_group", elements, |raw, value| raw.scale_group = value)
    }

    /// Each group has a number to subtract, too: [`Args::k_zeros`](crate::Args::k_zeros). Else it is 8.
    pub fn zero_points(self) -> Self {
        self.flag(sys::SLUICE_ZERO_POINTS)
    }

    /// Scales that an FP8 O is divided by.
    pub fn o_scale(self, kind: ScaleKind) -> Self {
        self.set(|raw| raw.o_scale_kind = kind as u32)
    }

    /// Also write the logarithm of the softmax denominator.
    pub fn write_lse(self, base: LseBase) -> Self {
        self.flag(sys::SLUICE_WRITE_LSE).set(|raw| raw.lse_base = base as u32)
    }

    /// What may influence the bits of a result.
    pub fn determinism(self, determinism: Determinism) -> Self {
        self.set(|raw| raw.determinism = determinism as u32)
    }

    /// Use only kernels that need at most this much workspace.
    pub fn workspace_ceiling_bytes(self, bytes: u64) -> Self {
        self.set(|raw| raw.workspace_ceiling_bytes = bytes)
    }

    /// The problem, unless a number does not fit into the header's type.
    pub fn build(self) -> Result<Problem> {
        self.error.map_or(Ok(Problem { raw: self.raw }), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_can_be_set() {
        let problem = Problem::builder(Dtype::F16, 8, 2, 128)
            .kv_type(Dtype::E4m3Fnuz)
            .v_type(Dtype::E5m2)
            .o_type(Dtype::Bf16)
            .head_dims(192, 136)
            .paged(16, PageTableKind::Csr)
            .page_index_64()
            .missing_pages_hidden()
            .k_pack(24)
            .v_pack(63)
            .v_in_k()
            .max_batch(31)
            .max_q_len(32)
            .max_kv_len(33)
            .max_q_tokens(34)
            .shared_prefix(35, 36)
            .causal()
            .window_left(41)
            .window_right(42)
            .sink_tokens(43)
            .mask_alignment(MaskAlignment::GivenDiagonal)
            .bool_mask()
            .mask_new_rows()
            .spans()
            .causal_by_sequence()
            .alibi()
            .sink_logits()
            .bias(Dtype::F32)
            .bias_scale()
            .soft_cap(5.0)
            .q_scale(ScaleKind::PerTensor)
            .k_scale(ScaleKind::PerHead)
            .v_scale(ScaleKind::PerToken)
            .o_scale(ScaleKind::PerHead)
            .scale_group(62)
            .zero_points()
            .write_lse(LseBase::Two)
            .determinism(Determinism::BatchInvariant)
            .workspace_ceiling_bytes(61)
            .build()
            .unwrap();
        // No `..` here: a new field of the header must get a number here.
        let sys::sluice_problem {
            struct_size,
            flags,
            mode,
            q_type,
            k_type,
            v_type,
            o_type,
            q_heads,
            kv_heads,
            head_dim_qk,
            head_dim_v,
            max_batch,
            max_q_len,
            max_kv_len,
            max_q_tokens,
            mask_alignment,
            window_left,
            window_right,
            sink_tokens,
            soft_cap,
            bias_type,
            q_scale_kind,
            k_scale_kind,
            v_scale_kind,
            page_size,
            page_table_kind,
            k_pack,
            lse_base,
            determinism,
            workspace_ceiling_bytes,
            o_scale_kind,
            scale_group,
            max_prefixes,
            max_prefix_len,
            v_pack,
            reserved,
        } = problem.raw;
        assert_eq!((struct_size as usize, flags), (std::mem::size_of::<sys::sluice_problem>(), 0xffff));
        assert_eq!((mode, page_table_kind, page_size, k_pack), (2, 2, 16, 24));
        assert_eq!((q_type, k_type, v_type, o_type), (1, 4, 7, 2));
        assert_eq!((q_heads, kv_heads, head_dim_qk, head_dim_v), (8, 2, 192, 136));
        assert_eq!((max_batch, max_q_len, max_kv_len, max_q_tokens), (31, 32, 33, 34));
        assert_eq!((mask_alignment, window_left, window_right, sink_tokens), (2, 41, 42, 43));
        assert_eq!((soft_cap, bias_type, q_scale_kind, k_scale_kind, v_scale_kind), (5.0, 3, 1, 2, 3));
        assert_eq!((lse_base, determinism, workspace_ceiling_bytes), (1, 1, 61));
        assert_eq!((o_scale_kind, scale_group), (2, 62));
        assert_eq!((max_prefixes, max_prefix_len, v_pack, reserved), (35, 36, 63, 0));
    }

    #[test]
    fn the_first_number_that_does_not_fit_is_named() {
        let error = Problem::builder(Dtype::F16, 1 << 31, 1, 1 << 40).build().unwrap_err();
        assert_eq!(error.field, "q_heads");
    }
}
