package sluice

// #include <sluice/sluice.h>
import "C"

// Mode is the layout of sequences in memory.
type Mode uint32

// The modes.
const (
	ModeDense  Mode = C.SLUICE_MODE_DENSE  // Every sequence has the same lengths: tensors [batch, token, head, dim].
	ModeRagged Mode = C.SLUICE_MODE_RAGGED // Sequences packed one after the other: tensors [token, head, dim].
	ModePaged  Mode = C.SLUICE_MODE_PAGED  // K and V in pages, [page, token in page, head, dim], found through a table.
)

// ProblemFlags are bits of Problem.Flags. An unknown bit is refused with NewerStruct.
type ProblemFlags uint32

// The flags.
const (
	Causal         ProblemFlags = C.SLUICE_CAUSAL           // Keys after the row's own position are invisible; see MaskAlignment.
	WriteLSE       ProblemFlags = C.SLUICE_WRITE_LSE        // Also write the logarithm of the softmax denominator.
	HasWindowLeft  ProblemFlags = C.SLUICE_HAS_WINDOW_LEFT  // WindowLeft applies.
	HasWindowRight ProblemFlags = C.SLUICE_HAS_WINDOW_RIGHT // WindowRight applies; not with Causal, which implies 0.
	Alibi          ProblemFlags = C.SLUICE_ALIBI            // Subtract slope * distance from the scores; Args.AlibiSlopes.
	SinkLogits     ProblemFlags = C.SLUICE_SINK_LOGITS      // A learned logit per query head joins the denominator.
	BoolMask       ProblemFlags = C.SLUICE_BOOL_MASK        // A bit per row and key says whether it is visible; Args.Mask.
	PageIndex64    ProblemFlags = C.SLUICE_PAGE_INDEX_64    // The page table holds 64-bit numbers; ModePaged only.
	VInK           ProblemFlags = C.SLUICE_V_IN_K           // V is the first HeadDimV elements of each row of K, and Args.V is zero.
	// MaskNewRows, with BoolMask: the mask covers only a sequence's newest keys, as many as it has rows, and the keys
	// before them are not masked.
	MaskNewRows      ProblemFlags = C.SLUICE_MASK_NEW_ROWS
	Spans            ProblemFlags = C.SLUICE_SPANS              // Spans of keys that see each other in both directions; Args.Spans.
	CausalBySequence ProblemFlags = C.SLUICE_CAUSAL_BY_SEQUENCE // Each sequence says whether it is causal; Args.Causal. Not with Causal.
	BiasScale        ProblemFlags = C.SLUICE_BIAS_SCALE         // With BiasType: the bias is multiplied by Args.BiasScale.
	ZeroPoints       ProblemFlags = C.SLUICE_ZERO_POINTS        // With ScalePerGroup: each group has a number to subtract; Args.KZeros and Args.VZeros.
	SharedPrefix     ProblemFlags = C.SLUICE_SHARED_PREFIX      // Groups of rows see a prefix of keys before their sequence's own keys; Args.PrefixQStarts.
	// MissingPagesHidden: keys of pages whose number is negative are invisible, in page tables that are lists with holes;
	// ModePaged only.
	MissingPagesHidden ProblemFlags = C.SLUICE_MISSING_PAGES_HIDDEN
	// PaddedRows: rows of Q, K, V and O continue in memory to the next multiple of 8 elements, so that head dims may be
	// any number. What is there is ignored in Q and V, must be finite in K, and is undefined in O after a run. Tensors have whole rows.
	PaddedRows ProblemFlags = C.SLUICE_PADDED_ROWS
)

// MaskAlignment says where the diagonal of the mask is.
type MaskAlignment uint32

// The places.
const (
	BottomRight   MaskAlignment = C.SLUICE_BOTTOM_RIGHT   // The last row sees the last key: rows are the newest tokens.
	TopLeft       MaskAlignment = C.SLUICE_TOP_LEFT       // Row 0 sees key 0.
	GivenDiagonal MaskAlignment = C.SLUICE_GIVEN_DIAGONAL // Each sequence says at which key; Args.Diagonals.
)

// ScaleKind is the granularity of the scales that values are multiplied with.
type ScaleKind uint32

// The kinds. Q and O have no scales per token, page or group.
const (
	ScaleNone      ScaleKind = C.SLUICE_SCALE_NONE       // Values are used as stored.
	ScalePerTensor ScaleKind = C.SLUICE_SCALE_PER_TENSOR // One scale.
	ScalePerHead   ScaleKind = C.SLUICE_SCALE_PER_HEAD   // One per head of the tensor.
	ScalePerToken  ScaleKind = C.SLUICE_SCALE_PER_TOKEN  // One per token and head: Args.KScales and Args.VScales.
	ScalePerPage   ScaleKind = C.SLUICE_SCALE_PER_PAGE   // One per page and head, in the same tensors; ModePaged only.
	ScalePerGroup  ScaleKind = C.SLUICE_SCALE_PER_GROUP  // U4 only: one F16 per Problem.ScaleGroup elements of a row, in the same tensors.
)

// PageTableKind is how a paged KV cache names its pages.
type PageTableKind uint32

// The kinds.
const (
	PageTableNone  PageTableKind = C.SLUICE_PAGE_TABLE_NONE  // No pages.
	PageTableBlock PageTableKind = C.SLUICE_PAGE_TABLE_BLOCK // [batch, pages] page numbers.
	PageTableCSR   PageTableKind = C.SLUICE_PAGE_TABLE_CSR   // One list of page numbers, and where each sequence's begin.
)

// LSEBase is the base of the logarithm in LSE; ignored without WriteLSE.
type LSEBase uint32

// The bases.
const (
	LSEBaseE LSEBase = C.SLUICE_LSE_BASE_E // Natural logarithm.
	LSEBase2 LSEBase = C.SLUICE_LSE_BASE_2 // Logarithm to base 2.
)

// Determinism says what may influence the bits of a result.
type Determinism uint32

// The choices.
const (
	// DeterminismFast is the fastest choice. Equal calls with one plan give equal bits.
	DeterminismFast Determinism = C.SLUICE_DETERMINISM_FAST
	// DeterminismBatchInvariant: also, a sequence's result depends neither on the batch size, nor on the other
	// sequences in the batch, nor on the problem's bounds. MaxBatch and MaxKVLen are required.
	DeterminismBatchInvariant Determinism = C.SLUICE_DETERMINISM_BATCH_INVARIANT
)

// Problem is a class of attention calls: everything that selects a kernel, nothing that changes from call to call. See
// sluice_problem in the header for the numerical contract. A zero field means the default. Fields without a default
// (types, heads, head dims) are required: zero is refused.
type Problem struct {
	Flags     ProblemFlags
	Mode      Mode
	QType     DType // Required.
	KType     DType // Required.
	VType     DType // Required.
	OType     DType // F16, BF16, F32 or E4M3FNUZ; required.
	QHeads    int32 // Query heads, a multiple of KVHeads; required.
	KVHeads   int32 // KV heads; required.
	HeadDimQK int32 // Elements of a row of Q and K; required.
	HeadDimV  int32 // Elements of a row of V and O; required.

	// Upper bounds of the calls that a plan will serve; 0 means unbounded. Plan.Run refuses a call that exceeds them. They
	// influence the choice of kernel and fix the size of the workspace.
	MaxBatch   int32 // Sequences per call.
	MaxQLen    int32 // Query rows per sequence.
	MaxKVLen   int32 // Keys per sequence.
	MaxQTokens int64 // Rows of Q per call: batch * QLen, or QStarts[batch] if given.

	MaskAlignment MaskAlignment // For Causal, windows and Alibi.
	WindowLeft    int32         // Keys visible before the diagonal; >= 0, needs HasWindowLeft.
	WindowRight   int32         // Keys visible after the diagonal; >= 0, needs HasWindowRight.
	SinkTokens    int32         // First keys that WindowLeft does not hide; needs HasWindowLeft.

	SoftCap  float32 // c > 0 replaces S by c * tanh(S / c); 0: no cap.
	BiasType DType   // Type of a matrix added to the scores: F32, F16 or BF16; 0: no bias.

	QScaleKind ScaleKind // Of Q.
	KScaleKind ScaleKind // Of K.
	VScaleKind ScaleKind // Of V.

	PageSize      int32         // Tokens per page; required in ModePaged, else 0.
	PageTableKind PageTableKind // Required in ModePaged, else 0.
	KPack         int32         // Elements per pack of an x-packed K cache, ModePaged only; divides HeadDimQK; 0: none.

	LSEBase     LSEBase
	Determinism Determinism

	WorkspaceCeilingBytes uint64 // Use only kernels that need at most this; 0: any.

	OScaleKind ScaleKind // Of O: ScaleNone, ScalePerTensor or ScalePerHead; ScaleNone unless O is FP8.
	ScaleGroup int32     // Elements of a group: 32 or 64 for ScalePerGroup, else 0.

	// Bounds for SharedPrefix, which requires them and MaxQTokens.
	MaxPrefixes  int32 // Prefixes per call.
	MaxPrefixLen int32 // Keys per prefix.

	// VPack is the tokens per pack of V by columns, where the tokens of a column are neighbours: VPackAll, or in ModePaged
	// a power of two from 8 on that divides PageSize; 0: V is by rows.
	VPack int32
}

// VPackAll as Problem.VPack: all tokens of a page, or of a sequence in ModeDense, are one pack.
const VPackAll int32 = C.SLUICE_V_PACK_ALL

func (p *Problem) c() *C.sluice_problem {
	if p == nil {
		return nil
	}
	return &C.sluice_problem{
		struct_size:             C.sizeof_sluice_problem,
		flags:                   C.uint32_t(p.Flags),
		mode:                    C.uint32_t(p.Mode),
		q_type:                  C.uint32_t(p.QType),
		k_type:                  C.uint32_t(p.KType),
		v_type:                  C.uint32_t(p.VType),
		o_type:                  C.uint32_t(p.OType),
		q_heads:                 C.int32_t(p.QHeads),
		kv_heads:                C.int32_t(p.KVHeads),
		head_dim_qk:             C.int32_t(p.HeadDimQK),
		head_dim_v:              C.int32_t(p.HeadDimV),
		max_batch:               C.int32_t(p.MaxBatch),
		max_q_len:               C.int32_t(p.MaxQLen),
		max_kv_len:              C.int32_t(p.MaxKVLen),
		max_q_tokens:            C.int64_t(p.MaxQTokens),
		mask_alignment:          C.uint32_t(p.MaskAlignment),
		window_left:             C.int32_t(p.WindowLeft),
		window_right:            C.int32_t(p.WindowRight),
		sink_tokens:             C.int32_t(p.SinkTokens),
		soft_cap:                C.float(p.SoftCap),
		bias_type:               C.uint32_t(p.BiasType),
		q_scale_kind:            C.uint32_t(p.QScaleKind),
		k_scale_kind:            C.uint32_t(p.KScaleKind),
		v_scale_kind:            C.uint32_t(p.VScaleKind),
		page_size:               C.int32_t(p.PageSize),
		page_table_kind:         C.uint32_t(p.PageTableKind),
		k_pack:                  C.int32_t(p.KPack),
		lse_base:                C.uint32_t(p.LSEBase),
		determinism:             C.uint32_t(p.Determinism),
		workspace_ceiling_bytes: C.uint64_t(p.WorkspaceCeilingBytes),
		o_scale_kind:            C.uint32_t(p.OScaleKind),
		scale_group:             C.int32_t(p.ScaleGroup),
		max_prefixes:            C.int32_t(p.MaxPrefixes),
		max_prefix_len:          C.int32_t(p.MaxPrefixLen),
		v_pack:                  C.int32_t(p.VPack),
	}
}
