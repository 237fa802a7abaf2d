// Written by bindings/generate/go.py from bindings/abi.json. DO NOT EDIT.

package sluice

// Tensor: A tensor in memory: element [a][b][c][d] is at data + a * stride[0] + b * stride[1] + c * stride[2] + d *
// stride[3] elements. What the indices are is said where a tensor is asked for; their order in memory is that of the
// strides. Part of other structs: it never grows.
//
// Strides are not negative, except where parts are merged. A stride of 0 repeats an input. Elements of an output do not
// overlap. The stride of an index with only one value means nothing: it may be any number.
type Tensor struct {
	// Element [0][0][0][0].
	Data DevicePointer
	// In elements.
	Stride [4]int64
}

// Dependency: Something that must complete before a run starts. An array element, so it never grows.
type Dependency struct {
	// DependencyKind.
	Kind DependencyKind
	// hipEvent_t of the caller; required for both kinds: the library creates no events.
	Event Event
	// hipStream_t for DependsOnStream (nil: the default stream); else nil.
	Stream Stream
}

// Launch: Where and when a run happens.
type Launch struct {
	// hipStream_t of the context's device; nil is the default stream.
	Stream Stream
	// Device memory, aligned and sized as the plan says; may hold anything.
	Workspace DevicePointer
	// Size of Workspace.
	WorkspaceBytes uint64
	// Work that the run waits for; nil if the count is 0.
	Dependencies []Dependency
	// Nullable hipEvent_t, recorded on Stream after the run.
	SignalEvent Event
}

// Format: How the numbers of a tensor are stored. Part of other structs: it never grows.
type Format struct {
	// DType; required.
	Type DType
	// ScaleKind: what shares a scale.
	ScaleKind ScaleKind
	// ScalePerGroup: elements that share a scale, 32 or 64; else 0.
	ScaleGroup int32
	// ScalePerGroup: True if each group also has a number to subtract; else false.
	ZeroPoints bool
	// Of K in pages: elements of a row per pack (x-packed K), a power of two from 8 up. Of V: tokens per pack of V by
	// columns, a power of two from 8 up, or PackAll. 0: rows are contiguous.
	Pack int32
}

// KVFormat: How keys and values are stored: all that a plan must know of them.
//
// KVHeads, HeadDimQK, HeadDimV, k.type and v.type are required. With KVVInK, v is all zero, and HeadDimV at most
// HeadDimQK. PageSize and PageTable are both given, for a cache in pages, or both 0, for tensors. ScaleKind
// ScalePerPage, a pack of k, and KVPageIndex64 need pages.
type KVFormat struct {
	// KVFlags bits.
	Flags KVFlags
	// KV heads.
	KVHeads int32
	// Elements of a row of K.
	HeadDimQK int32
	// Elements of a row of V.
	HeadDimV int32
	// Tokens per page; 0: not in pages.
	PageSize int32
	// PageTableKind.
	PageTable PageTableKind
	// Rows of K.
	K Format
	// Rows of V.
	V Format
}

// KVScales: The scales of K and V, if their formats have any.
//
//	ScalePerTensor   [1], strides without meaning            F32
//	ScalePerHead     [head], strides without meaning         F32
//	ScalePerToken    found like the rows of K and V          F32; stride[3] has no meaning
//	ScalePerPage     found like them                         F32; nor has stride[1]
//	ScalePerGroup    found like them, [..][group]            F16; stride[3] is 1
type KVScales struct {
	// Scales of K; all zero if its format has none.
	K Tensor
	// Scales of V; all zero if its format has none.
	V Tensor
	// With zero points: what is subtracted, F16, with the strides of k; else zero.
	KZeros Tensor
	// The same for v.
	VZeros Tensor
}

// KV: K and V in memory: a paged cache, or tensors. Fill it once for each layer; attention, appends, copies and gathers
// all take it.
//
//	tensors   [batch][token][KVHeads][HeadDim], or with starts [0][row][KVHeads][HeadDim]
//	pages     [page][token of the page][KVHeads][HeadDim]
type KV struct {
	// Required; that of the plan, where there is one.
	Format *KVFormat
	// Keys.
	K Tensor
	// Values; all zero with KVVInK.
	V Tensor
	// nil if neither format has scales.
	Scales *KVScales
	// Pages of the cache; keys in others read as zeros. 0: unknown.
	PageCount int64
}

// Rows: Where the rows of sequences, or their keys, are in a tensor. Part of other structs: it never grows.
//
// Sequence b has lengths[b] rows if given, else starts[b + 1] - starts[b] if given, else MaxLen. With starts its first
// row is row starts[b] of the tensor, whose first dimension then has no meaning; else it is row 0 of [b].
//
// MaxLen is at least the length of every sequence: what is beyond it is not seen. 0 means no rows; it is refused if
// lengths or starts are given together with memory of rows: then it was forgotten.
type Rows struct {
	// Rows of each sequence, or the most of any; or PlanBound.
	MaxLen int32
	// int32 [batch + 1], nullable: rows before each sequence's first.
	Starts DevicePointer
	// int32 [batch], nullable: rows of each sequence.
	Lengths DevicePointer
	// With starts: rows of the tensor; 0: unknown.
	Total int64
}

// Pages: Page tables. Part of other structs: it never grows. All zero if the format has no pages.
//
// The number of page n of sequence b is table[b * stride + n] for PageTableBlock, and table[starts[b] + n] for
// PageTableCSR. Entries of KV head h are h * HeadStride further.
type Pages struct {
	// int32, or int64 with KVPageIndex64.
	Table DevicePointer
	// PageTableCSR, int32 [batch + 1]; else nil.
	Starts DevicePointer
	// PageTableBlock: entries from one sequence's first to the next one's, or Shared.
	Stride int64
	// Entries from those of a KV head to the next one's; 0: heads share them.
	HeadStride int64
}

// Keys: One set of keys that rows attend to.
//
// The first set of a call has the keys of each sequence. With AttentionPrefixes a second one has keys that groups of
// rows see before those: rows GroupStarts[p] to GroupStarts[p + 1] - 1 of q see all keys of group p, which are found as
// those of a sequence p would be. Rows outside of the groups see none.
type Keys struct {
	// Second set: groups of rows; first set: 0.
	Groups int32
	// Second set: int32 [groups + 1], rows of q before each group's first; else nil.
	GroupStarts DevicePointer
	// Where the keys are; required.
	KV *KV
	// How many keys there are, of each sequence or group.
	Rows Rows
	// In which pages.
	Pages Pages
}

// Mask: Which keys a row sees: what a plan must know. MaskArgs has the memory that a call gives for it.
//
// Key j of a sequence is visible to its row i if each condition that applies holds, with d = j - i - shift and a shift
// of KVLen - QLen of the sequence for BottomRight, 0 for TopLeft and diagonals[b] for GivenDiagonal:
//
//	d <= 0                              MaskCausal, or MaskCausalBySequence and causal[b] is not 0
//	d <= WindowRight                   MaskWindowRight
//	d >= -WindowLeft, or j < SinkTokens    MaskWindowLeft
//	bit (i, j) is 1                     MaskBits
//	its page's number is not negative   MaskMissingPages
//
// With MaskSpans the first three do not apply if i + shift and j are in the same span.
//
// At most one of MaskCausal, MaskCausalBySequence, and MaskCausal with MaskWindowRight. The windows are at least 0, and
// 0 without their flag, as SinkTokens is without MaskWindowLeft. MaskMissingPages needs pages.
type Mask struct {
	// MaskFlags bits.
	Flags MaskFlags
	// MaskAlignment.
	Alignment MaskAlignment
	// Keys visible before the diagonal.
	WindowLeft int32
	// Keys visible after the diagonal.
	WindowRight int32
	// First keys that WindowLeft does not hide.
	SinkTokens int32
}

// MaskArgs: What a call has for the plan's Mask. Each member is given exactly if the plan asks for it.
type MaskArgs struct {
	// MaskBits: [b][q head][i][j / 8], key j is bit j % 8; strides count bytes, stride[3] is 1. With MaskBitsOfNew, j
	// counts from the first of the newest QLen keys.
	Bits Tensor
	// MaskSpans: int32 [batch][SpanCount][2], the first key of a span and the one after its last; ascending.
	Spans DevicePointer
	// MaskSpans: spans of each sequence, from 0 to 2^20.
	SpanCount int64
	// GivenDiagonal: int32 [batch], the key on row 0's diagonal.
	Diagonals DevicePointer
	// MaskCausalBySequence: int32 [batch], not 0 for causal sequences.
	Causal DevicePointer
}

// Scores: What becomes of scores before the softmax: what a plan must know. The changes, in this order:
//
//	S = SoftCap * tanh(S / SoftCap)             if SoftCap is not 0
//	S = S + BiasScale[h] * bias[i][j]            if BiasType is not 0
//	S = S - AlibiSlopes[h] * |i + shift - j|     ScoresAlibi
//	D[i] = sum over keys of exp(S) + exp(sinks[h])    ScoresSink
type Scores struct {
	// ScoresFlags bits.
	Flags ScoresFlags
	// Above 0; 0: no cap.
	SoftCap float32
	// F32, F16 or BF16; 0: no bias.
	BiasType DType
}

// ScoresArgs: What a call has for the plan's Scores. Each member is given exactly if the plan asks for it.
type ScoresArgs struct {
	// [b][q head][i][j]; stride[3] is 0 or 1; a stride of 0 repeats.
	Bias Tensor
	// ScoresBiasScale: float32 [QHeads].
	BiasScale DevicePointer
	// From one sequence's BiasScale to the next one's; 0: shared.
	BiasScaleStride int64
	// ScoresAlibi: float32 [QHeads].
	AlibiSlopes DevicePointer
	// From one sequence's AlibiSlopes to the next one's; 0: shared.
	AlibiStride int64
	// ScoresSink: float32 [QHeads], to base e.
	Sinks DevicePointer
}

// Bounds: Upper bounds of the calls that a plan will serve; 0: unbounded. A call that exceeds one is refused. They
// influence the choice of kernels and fix the size of the workspace. Part of Attention: it never grows.
type Bounds struct {
	// Sequences.
	Batch int32
	// Query rows per sequence.
	QLen int32
	// Keys per sequence.
	KVLen int32
	// AttentionPrefixes, which needs it: groups.
	Groups int32
	// AttentionPrefixes, which needs it: keys per group.
	GroupKeys int32
	// Rows of q of all sequences; AttentionPrefixes needs it.
	QRows int64
}

// Attention: A class of attention calls: everything that selects kernels, nothing that changes from call to call.
//
// For row i and key j of one sequence, where query head h reads KV head h / (QHeads / KVHeads):
//
//	S      = scale * QScale * k_scale * dot(q_i, k_j), then as Scores says
//	D[i]   = sum over visible keys of exp(S[i][j])
//	LSE[i] = ln D[i], or log2 D[i]
//	O[i]   = sum over visible keys of exp(S[i][j]) / D[i] * v_scale * v_j / OScale
//
// A row without a visible key has O = 0 and LSE = -infinity, or the sink. docs/concepts/numerics.md has the numerical
// contract: what is rounded and how, and what becomes of NaN and infinity.
//
// q.type, o.type, QHeads and kv are required; QHeads is a multiple of KVHeads. Q and O have scales per tensor or per
// head only, and O only if it is FP8; they have no packs. With AttentionBatchInvariant, a sequence's bits depend
// neither on the batch, nor on its other sequences, nor on the bounds: keys are split at fixed places. bounds.batch and
// bounds.KVLen are required. With AttentionPrefixes all keys of a group are visible, and masks concern a sequence's own
// keys.
type Attention struct {
	// AttentionFlags bits.
	Flags AttentionFlags
	// Query heads.
	QHeads int32
	// LSE.
	LSE LSE
	// Rows of Q.
	Q Format
	// Rows of O.
	O Format
	// Rows of K and V, in every set of keys.
	KV *KVFormat
	// nil: every key is visible.
	Mask *Mask
	// nil: scores stay as they are.
	Scores *Scores
	// Of calls.
	Bounds Bounds
	// Use only kernels that need at most this; 0: any.
	WorkspaceCeilingBytes uint64
}

// Args: One call of a plan.
//
//	q, o   [batch][row][QHeads][HeadDim], or with starts [0][row][QHeads][HeadDim]
//	lse    [batch][row][QHeads], F32, the same
//
// keys has one element, or two with AttentionPrefixes. Elements are keys->StructSize apart. mask, scores, lse, QScale
// and OScale are given exactly if the plan has what they are for.
type Args struct {
	// Sequences.
	Batch int32
	// Queries.
	Q Tensor
	// Result.
	O Tensor
	// Rows of q, o and lse.
	Rows Rows
	// What the rows attend to.
	Keys []Keys
	// Host memory; nil: 1 / sqrt(HeadDimQK). Finite, not negative.
	Scale *float32
	// Where the LSE goes; stride[3] has no meaning.
	LSE *Tensor
	// For the plan's mask, where it needs memory.
	Mask *MaskArgs
	// For the plan's scores, where they need memory.
	Scores *ScoresArgs
	// Device memory, float32 [1] or [QHeads], by the plan's q.ScaleKind.
	QScale DevicePointer
	// Device memory, the same for O, which is divided by it.
	OScale DevicePointer
}

// Rotation: A rotation of rows before they are stored (RoPE).
//
// Elements first to first + dim - 1 of a row are rotated: pair number e (x, y) becomes (x cos - y sin, y cos + x sin),
// in F32, with cos = cosines[p * stride + e] and sin = sines[p * stride + e], where p is the row's position.
type Rotation struct {
	// RotaryStyle.
	Style RotaryStyle
	// DType of the tables: F32, F16 or BF16; required.
	Type DType
	// Elements that are rotated; a multiple of 16, where tables of F32 are all that a call asks for even.
	Dim int32
	// The first of them; a multiple of 8.
	First int32
	// [positions][dim / 2]; required.
	Cosines DevicePointer
	// The same; nil: at cosines[p * stride + dim / 2].
	Sines DevicePointer
	// Elements from one position to the next; at least what a position has.
	Stride int64
}

// Norm: A norm of rows, before they are rotated: x[e] * weights[e] / sqrt(mean(x^2) + epsilon), in F32.
type Norm struct {
	// DType of the weights: that of the rows, or F32; required.
	Type DType
	// [elements of a row, without its tail]; required.
	Weights DevicePointer
	// Finite, not negative.
	Epsilon float32
}

// AppendQ: New rows of Q, which get the norm and the rotation in the same launch as those of K.
//
//	q [0][tokens][heads][HeadDimQK - TailDim]   q_out [0][tokens][heads][HeadDimQK]
type AppendQ struct {
	// Query heads; required.
	Heads int32
	// New rows.
	Q Tensor
	// Where they go; may be q, with the same strides.
	Out Tensor
	// [0][tokens][heads][TailDim]; all zero: rows of q are whole.
	Tail Tensor
	// Nullable.
	Norm *Norm
}

// Append: New rows of K and V, and the cache that they go to.
//
//	k [0][tokens][KVHeads][HeadDimQK - TailDim]     v [0][tokens][KVHeads][HeadDimV]
//
// Row t goes to slot slots[t], or is a new row of the sequence b with starts[b] <= t < starts[b + 1] and becomes its
// key lengths[b] - starts[b + 1] + t: lengths include the new keys.
//
// Exactly one of slots and starts is given. With slots, batch, starts, lengths and pages are all zero. TailDim and
// KTail are given together.
type Append struct {
	// DType of k and v: F16 or BF16; required.
	SourceType DType
	// Rows of k and v.
	Tokens int32
	// Last elements of a row of K, which come from KTail; 0: none.
	TailDim int32
	// New rows.
	K Tensor
	// New rows; all zero with KVVInK.
	V Tensor
	// [0][tokens][KVHeads][TailDim]; a stride of 0 repeats one tail.
	KTail Tensor
	// Where they go; a cache in pages; required.
	KV *KV
	// int64 [tokens]: page * PageSize + row; negative: skipped.
	Slots DevicePointer
	// With starts: sequences.
	Batch int32
	// int32 [batch + 1]: rows of k before each sequence's first.
	Starts DevicePointer
	// int32 [batch]: keys of each sequence, new ones included.
	Lengths DevicePointer
	// With starts: the pages of the sequences.
	Pages Pages
	// int32 [tokens]; nil: the key's number, with starts.
	Positions DevicePointer
	// Nullable.
	Rotation *Rotation
	// Nullable.
	KNorm *Norm
	// Nullable.
	Q *AppendQ
}

// Copy: Pages of a cache, to be copied to other pages, or to another cache.
type Copy struct {
	// True if pairs are int64; false: int32.
	Pairs64 bool
	// Where the pages are; required.
	Source *KV
	// Where they go; required; may be the same.
	Target *KV
	// [PairCount][2]: page of the source, page of the target; nil: all pages.
	Pairs DevicePointer
	// Pairs.
	PairCount int64
}

// Gather: Keys of a cache, to be gathered in contiguous rows: key FirstKeys[b] + j becomes row starts[b] + j.
type Gather struct {
	// Sequences.
	Batch int32
	// A cache in pages; required.
	Source *KV
	// The pages of the sequences.
	Pages Pages
	// int32 [batch]: keys of each sequence; required.
	Lengths DevicePointer
	// int32 [batch], nullable: the first key to gather; nil: 0.
	FirstKeys DevicePointer
	// Tensors, [0][row][KVHeads][HeadDim]; required.
	Target *KV
	// int32 [batch + 1]: rows of the target before each sequence's first; required.
	Starts DevicePointer
	// Rows of the target.
	Tokens int32
}

// Parts: Results over parts of the keys. Part of Merge: it never grows.
//
//	o [part][token][head][HeadDim]   lse [part][token][head], F32
//
// Parts may be in any order and place: stride[0] may be negative, and with OList and LSEList, host arrays of Count
// device pointers that the call copies, part p is at OList[p] and LSEList[p]. Then data and stride[0] of o and lse are
// 0, and there are at most 16 parts.
type Parts struct {
	// DType of o: F32, F16 or BF16; required.
	Type DType
	// Parts, from 1 to 65536.
	Count int32
	// Normalised results.
	O Tensor
	// stride[3] has no meaning.
	LSE Tensor
	// Host memory, [count]; nullable.
	OList []DevicePointer
	// Given with OList.
	LSEList []DevicePointer
	// With SequenceTokens: from a sequence's first token to the next one's.
	LSESequenceStride int64
}

// Merge: One merge.
//
//	o [0][token][head][HeadDim]   lse [0][token][head], F32
//
//	LSE = ln (sum over parts of exp(parts.lse[p]) + exp(sink))
//	O   = sum over parts of exp(parts.lse[p] - LSE) * parts.o[p]
//
// A part with an LSE of -infinity does not count, even if its row holds NaN. If no part counts, O = 0 and LSE is
// -infinity, or the sink. docs/concepts/cache_operations.md has the rest.
//
// o may be the memory of one of the parts, and lse that of its LSEs, with the same types and strides. OFormat.type is
// parts.type, or with parts of F32 any of F16, BF16 and E4M3FNUZ, which alone has a scale. LSEs that are
// [sequence][head][token] in memory need SequenceTokens, which divides tokens: token s * SequenceTokens + i has its
// LSEs at s * LSESequenceStride + i * stride[1].
type Merge struct {
	// MergeFlags bits.
	Flags MergeFlags
	// Rows.
	Tokens int32
	// Heads; required.
	Heads int32
	// Elements of a row, a multiple of 8; required.
	HeadDim int32
	// LSE of all LSEs: LSELN or LSELog2; required.
	LSEBase LSE
	// Rows of o.
	OFormat Format
	// What is merged.
	Parts Parts
	// Result; stride[0] has no meaning.
	O Tensor
	// Its LSE; all zero: not wanted.
	LSE Tensor
	// As in Parts.
	LSESequenceStride int64
	// Tokens of each sequence; 0: LSEs need only strides.
	SequenceTokens int32
	// float32 [heads], to base e, counted once; nullable.
	Sinks DevicePointer
	// float32 [1] or [heads], by OFormat.ScaleKind: o is divided by it.
	OScale DevicePointer
}
