// Written by bindings/generate/go.py from bindings/abi.json. DO NOT EDIT.

package sluice

// #include <sluice/sluice.h>
import "C"

// Status: Status codes, each with what the caller can do about it.
type Status int32

// The values of Status.
const (
	// Done, or enqueued.
	OK Status = C.SLUICE_OK
	// An argument breaks a documented rule: fix the call.
	InvalidArgument Status = C.SLUICE_INVALID_ARGUMENT
	// Legal, but this library cannot compute it: use another path.
	Unsupported Status = C.SLUICE_UNSUPPORTED
	// A field, flag or enumerator that this library does not know is set: upgrade.
	NewerStruct Status = C.SLUICE_NEWER_STRUCT
	// The device, HIP runtime or emulator does not exist here.
	NoDevice Status = C.SLUICE_NO_DEVICE
	// The pack has no kernels for the device, or HIP found no code for it.
	WrongArch Status = C.SLUICE_WRONG_ARCH
	// A HIP call failed; Error.HIPCode has its code.
	HIP Status = C.SLUICE_HIP
	// The kernel pack is truncated or altered: reinstall.
	PackCorrupt Status = C.SLUICE_PACK_CORRUPT
	// Give at least what the plan says.
	WorkspaceTooSmall Status = C.SLUICE_WORKSPACE_TOO_SMALL
	// Host memory ran out.
	OutOfMemory Status = C.SLUICE_OUT_OF_MEMORY
	// A defect of the library: report it with the message.
	Internal Status = C.SLUICE_INTERNAL
)

// DType: Element types. The FP8 encodings are different types: FNUZ is CDNA3's, the other two are OCP's.
type DType uint32

// The values of DType.
const (
	// IEEE binary16.
	F16 DType = C.SLUICE_F16
	// bfloat16.
	BF16 DType = C.SLUICE_BF16
	// IEEE binary32.
	F32 DType = C.SLUICE_F32
	// FP8, bias 8, maximum 240, one NaN, no infinity.
	E4M3FNUZ DType = C.SLUICE_E4M3FNUZ
	// OCP FP8, bias 7, maximum 448.
	E4M3FN DType = C.SLUICE_E4M3FN
	// FP8, bias 16, maximum 57344, one NaN, no infinity.
	E5M2FNUZ DType = C.SLUICE_E5M2FNUZ
	// OCP FP8, bias 15, maximum 57344, with infinities.
	E5M2 DType = C.SLUICE_E5M2
	// Signed 8-bit integer; K and V only, like the next three.
	I8 DType = C.SLUICE_I8
	// Unsigned 4-bit integer, two per byte, the even element in the lower half; needs scales per group.
	U4 DType = C.SLUICE_U4
	// ggml's block of 32 elements in 34 bytes: an F16 scale, then 32 signed bytes.
	Q8_0 DType = C.SLUICE_Q8_0
	// ggml's block of 32 elements in 18 bytes: an F16 scale, then 16 bytes; byte i has element i in its lower half and i +
	// 16 in its upper half. An element is scale * (number - 8).
	Q4_0 DType = C.SLUICE_Q4_0
)

var namesDType = map[uint32]string{
	C.SLUICE_F16:      "F16",
	C.SLUICE_BF16:     "BF16",
	C.SLUICE_F32:      "F32",
	C.SLUICE_E4M3FNUZ: "E4M3FNUZ",
	C.SLUICE_E4M3FN:   "E4M3FN",
	C.SLUICE_E5M2FNUZ: "E5M2FNUZ",
	C.SLUICE_E5M2:     "E5M2",
	C.SLUICE_I8:       "I8",
	C.SLUICE_U4:       "U4",
	C.SLUICE_Q8_0:     "Q8_0",
	C.SLUICE_Q4_0:     "Q4_0",
}

// String is the name in the header, without SLUICE_.
func (d DType) String() string {
	return nameOf(namesDType, "DType", uint32(d))
}

// LogLevel: Severity of a log message.
type LogLevel uint32

// The values of LogLevel.
const (
	// Something failed in a way that a status cannot say (a destroy, for example).
	LogError LogLevel = C.SLUICE_LOG_ERROR
	// Worth knowing.
	LogWarning LogLevel = C.SLUICE_LOG_WARNING
	// Devices found and kernels chosen when contexts and plans are made.
	LogInfo LogLevel = C.SLUICE_LOG_INFO
	// Every step of finding and choosing.
	LogDebug LogLevel = C.SLUICE_LOG_DEBUG
)

var namesLogLevel = map[uint32]string{
	C.SLUICE_LOG_ERROR:   "LOG_ERROR",
	C.SLUICE_LOG_WARNING: "LOG_WARNING",
	C.SLUICE_LOG_INFO:    "LOG_INFO",
	C.SLUICE_LOG_DEBUG:   "LOG_DEBUG",
}

// String is the name in the header, without SLUICE_.
func (l LogLevel) String() string {
	return nameOf(namesLogLevel, "LogLevel", uint32(l))
}

// DeviceKind: The kind of device that a context represents.
type DeviceKind uint32

// The values of DeviceKind.
const (
	// A GPU, through the HIP runtime of the process.
	DeviceHIP DeviceKind = C.SLUICE_DEVICE_HIP
	// The bundled gfx942 emulator: same machine code, same calls.
	DeviceEmulated DeviceKind = C.SLUICE_DEVICE_EMULATED
	// A chip by name: answers questions and makes plans, but cannot run.
	DeviceTarget DeviceKind = C.SLUICE_DEVICE_TARGET
)

var namesDeviceKind = map[uint32]string{
	C.SLUICE_DEVICE_HIP:      "DEVICE_HIP",
	C.SLUICE_DEVICE_EMULATED: "DEVICE_EMULATED",
	C.SLUICE_DEVICE_TARGET:   "DEVICE_TARGET",
}

// String is the name in the header, without SLUICE_.
func (d DeviceKind) String() string {
	return nameOf(namesDeviceKind, "DeviceKind", uint32(d))
}

// DependencyKind: Kind of a dependency.
type DependencyKind uint32

// The values of DependencyKind.
const (
	// Wait for Event, which the caller has recorded.
	DependsOnEvent DependencyKind = C.SLUICE_DEPENDS_ON_EVENT
	// Record Event on Stream now and wait for it, so for all work there.
	DependsOnStream DependencyKind = C.SLUICE_DEPENDS_ON_STREAM
)

var namesDependencyKind = map[uint32]string{
	C.SLUICE_DEPENDS_ON_EVENT:  "DEPENDS_ON_EVENT",
	C.SLUICE_DEPENDS_ON_STREAM: "DEPENDS_ON_STREAM",
}

// String is the name in the header, without SLUICE_.
func (d DependencyKind) String() string {
	return nameOf(namesDependencyKind, "DependencyKind", uint32(d))
}

// ScaleKind: What shares a scale that numbers are multiplied with.
type ScaleKind uint32

// The values of ScaleKind.
const (
	// Values are used as stored.
	ScaleNone ScaleKind = C.SLUICE_SCALE_NONE
	// One scale.
	ScalePerTensor ScaleKind = C.SLUICE_SCALE_PER_TENSOR
	// One per head of the tensor.
	ScalePerHead ScaleKind = C.SLUICE_SCALE_PER_HEAD
	// One per token and head; K and V only.
	ScalePerToken ScaleKind = C.SLUICE_SCALE_PER_TOKEN
	// One per page and head; K and V in pages only.
	ScalePerPage ScaleKind = C.SLUICE_SCALE_PER_PAGE
	// One F16 per ScaleGroup elements of a row; U4 only, which has no other.
	ScalePerGroup ScaleKind = C.SLUICE_SCALE_PER_GROUP
)

var namesScaleKind = map[uint32]string{
	C.SLUICE_SCALE_NONE:       "SCALE_NONE",
	C.SLUICE_SCALE_PER_TENSOR: "SCALE_PER_TENSOR",
	C.SLUICE_SCALE_PER_HEAD:   "SCALE_PER_HEAD",
	C.SLUICE_SCALE_PER_TOKEN:  "SCALE_PER_TOKEN",
	C.SLUICE_SCALE_PER_PAGE:   "SCALE_PER_PAGE",
	C.SLUICE_SCALE_PER_GROUP:  "SCALE_PER_GROUP",
}

// String is the name in the header, without SLUICE_.
func (s ScaleKind) String() string {
	return nameOf(namesScaleKind, "ScaleKind", uint32(s))
}

// A number for Format.Pack.
const (
	// All tokens of a page, or of a sequence of dense tensors.
	PackAll = C.SLUICE_PACK_ALL
)

// PageTableKind: How a paged KV cache names its pages.
type PageTableKind uint32

// The values of PageTableKind.
const (
	// No pages.
	PageTableNone PageTableKind = C.SLUICE_PAGE_TABLE_NONE
	// [batch, pages] page numbers.
	PageTableBlock PageTableKind = C.SLUICE_PAGE_TABLE_BLOCK
	// One list of page numbers, and where each sequence's begin.
	PageTableCSR PageTableKind = C.SLUICE_PAGE_TABLE_CSR
)

var namesPageTableKind = map[uint32]string{
	C.SLUICE_PAGE_TABLE_NONE:  "PAGE_TABLE_NONE",
	C.SLUICE_PAGE_TABLE_BLOCK: "PAGE_TABLE_BLOCK",
	C.SLUICE_PAGE_TABLE_CSR:   "PAGE_TABLE_CSR",
}

// String is the name in the header, without SLUICE_.
func (p PageTableKind) String() string {
	return nameOf(namesPageTableKind, "PageTableKind", uint32(p))
}

// KVFlags: Bits of KVFormat.Flags. An unknown bit is refused with NewerStruct.
type KVFlags uint32

// The values of KVFlags.
const (
	// V is the first HeadDimV elements of each row of K.
	KVVInK KVFlags = C.SLUICE_KV_V_IN_K
	// Page tables hold int64 instead of int32.
	KVPageIndex64 KVFlags = C.SLUICE_KV_PAGE_INDEX_64
)

var namesKVFlags = map[uint32]string{
	C.SLUICE_KV_V_IN_K:        "KV_V_IN_K",
	C.SLUICE_KV_PAGE_INDEX_64: "KV_PAGE_INDEX_64",
}

// String is the name in the header, without SLUICE_.
func (k KVFlags) String() string {
	return nameOfFlags(namesKVFlags, "KVFlags", uint32(k))
}

// Numbers that stand for something else where a member says so.
const (
	// The bound of the plan.
	PlanBound = C.SLUICE_PLAN_BOUND
	// A stride: all share one.
	Shared = C.SLUICE_SHARED
)

// MaskAlignment: Where the diagonal of the mask is.
type MaskAlignment uint32

// The values of MaskAlignment.
const (
	// The last row sees the last key: rows are the newest tokens.
	BottomRight MaskAlignment = C.SLUICE_BOTTOM_RIGHT
	// Row 0 sees key 0.
	TopLeft MaskAlignment = C.SLUICE_TOP_LEFT
	// Each sequence says at which key; MaskArgs.Diagonals.
	GivenDiagonal MaskAlignment = C.SLUICE_GIVEN_DIAGONAL
)

var namesMaskAlignment = map[uint32]string{
	C.SLUICE_BOTTOM_RIGHT:   "BOTTOM_RIGHT",
	C.SLUICE_TOP_LEFT:       "TOP_LEFT",
	C.SLUICE_GIVEN_DIAGONAL: "GIVEN_DIAGONAL",
}

// String is the name in the header, without SLUICE_.
func (m MaskAlignment) String() string {
	return nameOf(namesMaskAlignment, "MaskAlignment", uint32(m))
}

// MaskFlags: Bits of Mask.Flags. An unknown bit is refused with NewerStruct.
type MaskFlags uint32

// The values of MaskFlags.
const (
	// Keys after the row's own position are invisible.
	MaskCausal MaskFlags = C.SLUICE_MASK_CAUSAL
	// Each sequence says whether it is causal.
	MaskCausalBySequence MaskFlags = C.SLUICE_MASK_CAUSAL_BY_SEQUENCE
	// WindowLeft applies.
	MaskWindowLeft MaskFlags = C.SLUICE_MASK_WINDOW_LEFT
	// WindowRight applies.
	MaskWindowRight MaskFlags = C.SLUICE_MASK_WINDOW_RIGHT
	// A bit per row and key says whether it is visible.
	MaskBits MaskFlags = C.SLUICE_MASK_BITS
	// With MaskBits: they cover only the newest keys (drafts as a tree).
	MaskBitsOfNew MaskFlags = C.SLUICE_MASK_BITS_OF_NEW
	// Spans of keys that see each other (images in text).
	MaskSpans MaskFlags = C.SLUICE_MASK_SPANS
	// Keys of pages with a negative number are invisible.
	MaskMissingPages MaskFlags = C.SLUICE_MASK_MISSING_PAGES
)

var namesMaskFlags = map[uint32]string{
	C.SLUICE_MASK_CAUSAL:             "MASK_CAUSAL",
	C.SLUICE_MASK_CAUSAL_BY_SEQUENCE: "MASK_CAUSAL_BY_SEQUENCE",
	C.SLUICE_MASK_WINDOW_LEFT:        "MASK_WINDOW_LEFT",
	C.SLUICE_MASK_WINDOW_RIGHT:       "MASK_WINDOW_RIGHT",
	C.SLUICE_MASK_BITS:               "MASK_BITS",
	C.SLUICE_MASK_BITS_OF_NEW:        "MASK_BITS_OF_NEW",
	C.SLUICE_MASK_SPANS:              "MASK_SPANS",
	C.SLUICE_MASK_MISSING_PAGES:      "MASK_MISSING_PAGES",
}

// String is the name in the header, without SLUICE_.
func (m MaskFlags) String() string {
	return nameOfFlags(namesMaskFlags, "MaskFlags", uint32(m))
}

// ScoresFlags: Bits of Scores.Flags. An unknown bit is refused with NewerStruct.
type ScoresFlags uint32

// The values of ScoresFlags.
const (
	// Subtract slope * distance from the scores.
	ScoresAlibi ScoresFlags = C.SLUICE_SCORES_ALIBI
	// A learned logit per query head joins the denominator.
	ScoresSink ScoresFlags = C.SLUICE_SCORES_SINK
	// With a bias: it is multiplied by a scale per query head.
	ScoresBiasScale ScoresFlags = C.SLUICE_SCORES_BIAS_SCALE
)

var namesScoresFlags = map[uint32]string{
	C.SLUICE_SCORES_ALIBI:      "SCORES_ALIBI",
	C.SLUICE_SCORES_SINK:       "SCORES_SINK",
	C.SLUICE_SCORES_BIAS_SCALE: "SCORES_BIAS_SCALE",
}

// String is the name in the header, without SLUICE_.
func (s ScoresFlags) String() string {
	return nameOfFlags(namesScoresFlags, "ScoresFlags", uint32(s))
}

// LSE: Whether a plan's calls write the logarithm of the softmax denominator, and to which base.
type LSE uint32

// The values of LSE.
const (
	// It is not written.
	LSENone LSE = C.SLUICE_LSE_NONE
	// Natural logarithm.
	LSELN LSE = C.SLUICE_LSE_LN
	// Logarithm to base 2.
	LSELog2 LSE = C.SLUICE_LSE_LOG2
)

var namesLSE = map[uint32]string{
	C.SLUICE_LSE_NONE: "LSE_NONE",
	C.SLUICE_LSE_LN:   "LSE_LN",
	C.SLUICE_LSE_LOG2: "LSE_LOG2",
}

// String is the name in the header, without SLUICE_.
func (l LSE) String() string {
	return nameOf(namesLSE, "LSE", uint32(l))
}

// AttentionFlags: Bits of Attention.Flags. An unknown bit is refused with NewerStruct.
type AttentionFlags uint32

// The values of AttentionFlags.
const (
	// Sequences are packed one after the other: q, o, and K and V unless in pages, have starts.
	AttentionRagged AttentionFlags = C.SLUICE_ATTENTION_RAGGED
	// Rows of q, k, v and o continue in memory to the next multiple of 8 elements: head dims may be any number. What is
	// there may be any number in q and v, must be finite in k, and is undefined in o.
	AttentionPaddedRows AttentionFlags = C.SLUICE_ATTENTION_PADDED_ROWS
	// Calls have a second set of keys: see Keys.
	AttentionPrefixes AttentionFlags = C.SLUICE_ATTENTION_PREFIXES
	// Bits of a sequence depend on nothing outside of it: see below.
	AttentionBatchInvariant AttentionFlags = C.SLUICE_ATTENTION_BATCH_INVARIANT
)

var namesAttentionFlags = map[uint32]string{
	C.SLUICE_ATTENTION_RAGGED:          "ATTENTION_RAGGED",
	C.SLUICE_ATTENTION_PADDED_ROWS:     "ATTENTION_PADDED_ROWS",
	C.SLUICE_ATTENTION_PREFIXES:        "ATTENTION_PREFIXES",
	C.SLUICE_ATTENTION_BATCH_INVARIANT: "ATTENTION_BATCH_INVARIANT",
}

// String is the name in the header, without SLUICE_.
func (a AttentionFlags) String() string {
	return nameOfFlags(namesAttentionFlags, "AttentionFlags", uint32(a))
}

// RotaryStyle: Which elements of a row a rotation pairs, counted from the first that is rotated.
type RotaryStyle uint32

// The values of RotaryStyle.
const (
	// e and e + dim / 2, as GPT-NeoX and Llama do.
	RotaryHalves RotaryStyle = C.SLUICE_ROTARY_HALVES
	// 2e and 2e + 1, as GPT-J does.
	RotaryPairs RotaryStyle = C.SLUICE_ROTARY_PAIRS
)

var namesRotaryStyle = map[uint32]string{
	C.SLUICE_ROTARY_HALVES: "ROTARY_HALVES",
	C.SLUICE_ROTARY_PAIRS:  "ROTARY_PAIRS",
}

// String is the name in the header, without SLUICE_.
func (r RotaryStyle) String() string {
	return nameOf(namesRotaryStyle, "RotaryStyle", uint32(r))
}

// MergeFlags: Bits of Merge.Flags. An unknown bit is refused with NewerStruct.
type MergeFlags uint32

// The values of MergeFlags.
const (
	// An LSE of +infinity in parts also marks a part that does not count, as in FlashAttention's results for rows without
	// keys.
	MergeInfinityIsEmpty MergeFlags = C.SLUICE_MERGE_INFINITY_IS_EMPTY
)

var namesMergeFlags = map[uint32]string{
	C.SLUICE_MERGE_INFINITY_IS_EMPTY: "MERGE_INFINITY_IS_EMPTY",
}

// String is the name in the header, without SLUICE_.
func (m MergeFlags) String() string {
	return nameOfFlags(namesMergeFlags, "MergeFlags", uint32(m))
}

// TraceEvent: Events that make a trace record.
type TraceEvent uint32

// The values of TraceEvent.
const (
	// A plan was made.
	TracePlan TraceEvent = C.SLUICE_TRACE_PLAN
	// A run is about to be launched.
	TraceRun TraceEvent = C.SLUICE_TRACE_RUN
)

var namesTraceEvent = map[uint32]string{
	C.SLUICE_TRACE_PLAN: "TRACE_PLAN",
	C.SLUICE_TRACE_RUN:  "TRACE_RUN",
}

// String is the name in the header, without SLUICE_.
func (t TraceEvent) String() string {
	return nameOf(namesTraceEvent, "TraceEvent", uint32(t))
}
