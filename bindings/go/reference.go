package sluice

// #include "calls.h"
import "C"

import (
	"math"
	"unsafe"
)

// HostTensor is a tensor in a slice. One that a call does not have is all zero.
type HostTensor struct {
	View
	memory unsafe.Pointer // nil without a slice
	size   int64          // of an element of the slice
	count  int64          // of such elements
}

// HostElement is the element type of tensors' slices: the bits of 8-bit and 16-bit floats, float32, integers, two
// elements of U4 as a byte, and blocks.
type HostElement interface {
	~uint8 | ~int8 | ~uint16 | ~float32 | BlockQ8_0 | BlockQ4_0
}

// OnHost is the tensor in `values` that `view` describes. The call checks that the view's type has elements or blocks of
// that size, and that the slice has enough of them.
func OnHost[T HostElement](values []T, view View) HostTensor {
	var element T
	tensor := HostTensor{View: view, size: int64(unsafe.Sizeof(element)), count: int64(len(values))}
	if len(values) > 0 {
		tensor.memory = unsafe.Pointer(&values[0])
	}
	return tensor
}

func (t *HostTensor) bytes() *C.uint8_t { return (*C.uint8_t)(t.memory) }

// present says whether there is a slice, even one without elements.
func (t *HostTensor) present() bool { return t.size != 0 }

func (t *HostTensor) check(n *need) error {
	if !t.present() {
		return nil // the library says whether it is missing
	}
	if err := n.check(&t.View); err != nil {
		return err
	}
	if t.size != t.Type.Size() {
		return invalid(n.field+".type", "%s.type is %v, which has %d bytes, but the slice's elements have %d", n.field,
			t.Type, t.Type.Size(), t.size)
	}
	count, err := t.elements(n.field)
	if err != nil {
		return err
	}
	if has := t.count * t.Type.Block(); count > has {
		return invalid(n.field+".data", "%s.data has %d elements; shape and strides reach %d", n.field, has, count)
	}
	return nil
}

// HostArgs is Args in the memory of the host, for Reference. One of PageTable and PageTable64 is given, depending on
// PageIndex64, and the same with the pages of prefixes.
type HostArgs struct {
	Flags ArgsFlags
	Batch int32
	QLen  int32
	KVLen int32
	Scale float32
	Q     HostTensor
	K     HostTensor
	V     HostTensor
	O     HostTensor // Written.
	LSE   HostTensor // Written, with WriteLSE.

	QStarts   []int32 // [batch + 1]
	KVStarts  []int32 // [batch + 1]
	QLengths  []int32 // [batch]
	KVLengths []int32 // [batch]

	PageTable       []int32
	PageTable64     []int64
	PageTableStride int64
	PageStarts      []int32 // [batch + 1]
	// PageTableHeadStride is that of Args.
	PageTableHeadStride int64

	Bias        HostTensor
	Mask        HostTensor
	AlibiSlopes []float32 // [QHeads], of each sequence if they are apart
	SinkLogits  []float32 // [QHeads]
	QScale      []float32 // [1] or [QHeads]
	KScale      []float32 // [1] or [KVHeads]
	VScale      []float32 // [1] or [KVHeads]

	KScales              HostTensor
	VScales              HostTensor
	KZeros               HostTensor
	VZeros               HostTensor
	OScale               []float32 // [1] or [QHeads]
	BiasScale            []float32 // [QHeads], of each sequence if they are apart
	Diagonals            []int32   // [batch]
	Causal               []int32   // [batch]
	Spans                []int32   // [batch, SpanCount, 2]
	SpanCount            int64
	AlibiBatchStride     int64
	BiasScaleBatchStride int64

	PrefixCount           int32
	PrefixLen             int32
	PrefixQStarts         []int32 // [PrefixCount + 1]
	PrefixLengths         []int32 // [PrefixCount]
	PrefixPageTable       []int32
	PrefixPageTable64     []int64
	PrefixPageTableStride int64
	PrefixPageStarts      []int32 // [PrefixCount + 1]
	PrefixK               HostTensor
	PrefixV               HostTensor
}

// Reference computes a call on the host with plain loops in double precision: the reference for results, never chosen
// silently. It computes what Problem and Args describe, with any types in any mixture, and any strides. Lengths, starts
// and page numbers are checked like everything else, and the size of every slice against what the call reads. Errors:
// InvalidArgument, Unsupported, NewerStruct, OutOfMemory.
func Reference(problem *Problem, args *HostArgs) error {
	if problem == nil {
		return invalid("problem", "problem is nil; it must say what to compute")
	}
	if args == nil {
		return invalid("args", "args is nil; a call needs tensors and lengths")
	}
	if err := args.check(problem); err != nil {
		return err
	}
	failure := newError()
	return result(C.sluice_go_reference(problem.c(), unsafe.Pointer(args.c(problem)),
		args.Q.bytes(), args.K.bytes(), args.V.bytes(), args.O.bytes(), args.LSE.bytes(), args.Bias.bytes(), args.Mask.bytes(),
		int32s(args.QStarts), int32s(args.KVStarts), int32s(args.QLengths), int32s(args.KVLengths),
		args.table(problem).bytes(), int32s(args.PageStarts),
		floats(args.AlibiSlopes), floats(args.SinkLogits), floats(args.QScale), floats(args.KScale), floats(args.VScale),
		args.KScales.bytes(), args.VScales.bytes(), args.KZeros.bytes(), args.VZeros.bytes(), floats(args.OScale), floats(args.BiasScale), int32s(args.Diagonals),
		int32s(args.Causal), int32s(args.Spans),
		int32s(args.PrefixQStarts), int32s(args.PrefixLengths), args.prefixTable(problem).bytes(),
		int32s(args.PrefixPageStarts), args.PrefixK.bytes(), args.PrefixV.bytes(), failure), failure)
}

func int32s(values []int32) *C.int32_t {
	if len(values) == 0 {
		return nil
	}
	return (*C.int32_t)(&values[0])
}

func int64s(values []int64) *C.int64_t {
	if len(values) == 0 {
		return nil
	}
	return (*C.int64_t)(&values[0])
}

func floats(values []float32) *C.float {
	if len(values) == 0 {
		return nil
	}
	return (*C.float)(&values[0])
}

// eitherWidth is the address of numbers in one of two slices. C reads them by the type that the call says.
func eitherWidth(numbers []float32, bits []uint16) unsafe.Pointer {
	if len(bits) > 0 {
		return unsafe.Pointer(&bits[0])
	}
	return unsafe.Pointer(floats(numbers))
}

// hostTable is a page table in one of several slices.
type hostTable struct {
	field     string // "page_table"
	owner     string // "sequence"
	numbers32 []int32
	numbers64 []int64
	stride    int64
	csr       bool
	starts    []int32 // With csr.
	lastHead  int64   // Entries from those of the first KV head to those of the last.
}

func (t *hostTable) bytes() *C.uint8_t {
	if len(t.numbers32) > 0 {
		return (*C.uint8_t)(unsafe.Pointer(&t.numbers32[0]))
	}
	if len(t.numbers64) > 0 {
		return (*C.uint8_t)(unsafe.Pointer(&t.numbers64[0]))
	}
	return nil
}

// checkWidth refuses numbers of a width that C would misread.
func (t *hostTable) checkWidth(flags ProblemFlags) error {
	if (len(t.numbers32) > 0 && flags&PageIndex64 != 0) || (len(t.numbers64) > 0 && flags&PageIndex64 == 0) {
		return invalid(t.field, "%s has %d numbers of 32 bits and %d of 64; the flag SLUICE_PAGE_INDEX_64 says "+
			"which there must be", t.field, len(t.numbers32), len(t.numbers64))
	}
	return nil
}

// missing reports whether the library will find something missing or invalid before it reads the table.
func (t *hostTable) missing() bool {
	return len(t.numbers32)+len(t.numbers64) == 0 || t.stride < 0 || (t.csr && len(t.starts) == 0)
}

// checkEntries refuses a table that ends before the first `needed` entries of sequence b do, for its last KV head. The
// library checks the page numbers in them.
func (t *hostTable) checkEntries(b, needed int64) error {
	first := elements(b, t.stride)
	if t.csr {
		first = int64(t.starts[b])
	}
	entries := int64(len(t.numbers32) + len(t.numbers64))
	if needed > 0 && (first < 0 || first > entries-needed || t.lastHead < 0 || t.lastHead > entries-needed-first) {
		return invalid(t.field, "%s has %d entries; %s %d needs %d from entry %d on", t.field, entries, t.owner, b, needed,
			first)
	}
	return nil
}

func (a *HostArgs) numbers() *callNumbers {
	return &callNumbers{flags: a.Flags, batch: a.Batch, qLen: a.QLen, kvLen: a.KVLen, scale: a.Scale,
		pageTableStride: a.PageTableStride, spanCount: a.SpanCount, alibiBatchStride: a.AlibiBatchStride,
		biasBatchStride: a.BiasScaleBatchStride, packedQ: len(a.QStarts) > 0, packedKV: len(a.KVStarts) > 0,
		prefixCount: a.PrefixCount, prefixLen: a.PrefixLen, prefixPageTableStride: a.PrefixPageTableStride,
		pageTableHeadStride: a.PageTableHeadStride}
}

// c leaves out all pointers, which C gets separately.
func (a *HostArgs) c(p *Problem) *C.sluice_args {
	numbers := a.numbers()
	made := numbers.c()
	putRow, putKey := numbers.putting()
	strides := func(put func(*Tensor, *C.sluice_tensor), tensor *HostTensor, to *C.sluice_tensor) {
		put(&Tensor{View: tensor.View}, to)
	}
	strides(putRow, &a.Q, &made.q)
	strides(putKey, &a.K, &made.k)
	strides(putKey, &a.V, &made.v)
	strides(putRow, &a.O, &made.o)
	strides(putRow, &a.LSE, &made.lse)
	strides((*Tensor).put, &a.Bias, &made.bias)
	strides((*Tensor).put, &a.Mask, &made.mask)
	numbers.putScales(&Tensor{View: a.KScales.View}, p.KScaleKind, &made.k_scales)
	numbers.putScales(&Tensor{View: a.VScales.View}, p.VScaleKind, &made.v_scales)
	numbers.putScales(&Tensor{View: a.KZeros.View}, p.KScaleKind, &made.k_zeros)
	numbers.putScales(&Tensor{View: a.VZeros.View}, p.VScaleKind, &made.v_zeros)
	strides((*Tensor).put, &a.PrefixK, &made.prefix_k)
	strides((*Tensor).put, &a.PrefixV, &made.prefix_v)
	numbers.count(made, p, []sized{&a.Q, &a.O, &a.LSE}, []sized{&a.K, &a.V, &a.KScales, &a.VScales, &a.KZeros, &a.VZeros})
	return made
}

// check makes sure that the library stays within the slices. It does not repeat checks that the library makes before it
// uses a value.
func (a *HostArgs) check(p *Problem) error {
	needs := a.numbers().needs(p)
	for _, pair := range []struct {
		tensor *HostTensor
		need   *need
	}{{&a.Q, &needs.q}, {&a.K, &needs.k}, {&a.V, &needs.v}, {&a.O, &needs.o}, {&a.LSE, &needs.lse},
		{&a.Bias, &needs.bias}, {&a.Mask, &needs.mask}, {&a.KScales, &needs.kScales}, {&a.VScales, &needs.vScales},
		{&a.KZeros, &needs.kZeros}, {&a.VZeros, &needs.vZeros}, {&a.PrefixK, &needs.prefixK}, {&a.PrefixV, &needs.prefixV}} {
		if err := pair.tensor.check(pair.need); err != nil {
			return err
		}
	}
	if a.Batch < 1 {
		return nil // refused by the library before it reads, or nothing to read
	}
	batch, prefixes := int64(a.Batch), int64(a.PrefixCount)
	if err := checkArrays([]arrayNeed{
		{"q_starts", batch + 1, int64(len(a.QStarts)), "batch + 1"},
		{"kv_starts", batch + 1, int64(len(a.KVStarts)), "batch + 1"},
		{"q_lengths", batch, int64(len(a.QLengths)), "batch"},
		{"kv_lengths", batch, int64(len(a.KVLengths)), "batch"},
		{"page_starts", batch + 1, int64(len(a.PageStarts)), "batch + 1"},
		{"alibi_slopes", headArrayLength(batch, a.AlibiBatchStride, p.QHeads), int64(len(a.AlibiSlopes)), "q_heads of all sequences"},
		{"sink_logits", int64(p.QHeads), int64(len(a.SinkLogits)), "q_heads"},
		{"q_scale", perHead(p.QScaleKind, p.QHeads), int64(len(a.QScale)), "number of scales"},
		{"k_scale", perHead(p.KScaleKind, p.KVHeads), int64(len(a.KScale)), "number of scales"},
		{"v_scale", perHead(p.VScaleKind, p.KVHeads), int64(len(a.VScale)), "number of scales"},
		{"o_scale", perHead(p.OScaleKind, p.QHeads), int64(len(a.OScale)), "number of scales"},
		{"bias_scale", headArrayLength(batch, a.BiasScaleBatchStride, p.QHeads), int64(len(a.BiasScale)), "q_heads of all sequences"},
		{"diagonals", batch, int64(len(a.Diagonals)), "batch"},
		{"causal", batch, int64(len(a.Causal)), "batch"},
		// -1 for a count that the library refuses.
		{"spans", elements(batch, a.SpanCount, 2), int64(len(a.Spans)), "ends of all spans"},
		{"prefix_q_starts", prefixes + 1, int64(len(a.PrefixQStarts)), "prefix_count + 1"},
		{"prefix_lengths", prefixes, int64(len(a.PrefixLengths)), "prefix_count"},
		{"prefix_page_starts", prefixes + 1, int64(len(a.PrefixPageStarts)), "prefix_count + 1"},
	}); err != nil {
		return err
	}
	if p.Mode != ModePaged {
		return nil
	}
	if err := a.table(p).checkPages(p, a.KVLengths, batch); err != nil {
		return err
	}
	return a.prefixTable(p).checkPages(p, a.PrefixLengths, prefixes)
}

// arrayNeed is the length that an array must have if it is given.
type arrayNeed struct {
	field       string
	length, has int64
	what        string
}

func checkArrays(arrays []arrayNeed) error {
	for _, array := range arrays {
		if array.has != 0 && array.has < array.length {
			return invalid(array.field, "%s has %d elements; it must have %d, the %s", array.field, array.has, array.length,
				array.what)
		}
	}
	return nil
}

// perHead is the number of scales.
func perHead(kind ScaleKind, heads int32) int64 {
	if kind == ScalePerHead {
		return int64(heads)
	}
	return 1
}

// headArrayLength is the length of an array with numbers of `heads` heads for each sequence, `stride` elements apart; one
// that no array has if it does not fit.
func headArrayLength(batch, stride int64, heads int32) int64 {
	before := elements(batch-1, maximum(stride, 0)) // the library refuses a negative one before it reads
	if before < 0 || before > math.MaxInt64-math.MaxInt32 {
		return math.MaxInt64
	}
	return before + int64(heads)
}

func (a *HostArgs) table(p *Problem) *hostTable {
	return &hostTable{field: "page_table", owner: "sequence", numbers32: a.PageTable, numbers64: a.PageTable64,
		stride: a.PageTableStride, csr: p.PageTableKind == PageTableCSR, starts: a.PageStarts,
		lastHead: elements(maximum(int64(p.KVHeads)-1, 0), maximum(a.PageTableHeadStride, 0))}
}

func (a *HostArgs) prefixTable(p *Problem) *hostTable {
	return &hostTable{field: "prefix_page_table", owner: "prefix", numbers32: a.PrefixPageTable,
		numbers64: a.PrefixPageTable64, stride: a.PrefixPageTableStride, csr: p.PageTableKind == PageTableCSR,
		starts: a.PrefixPageStarts}
}

// checkPages makes sure that the entries for these numbers of keys exist.
func (t *hostTable) checkPages(p *Problem, lengths []int32, count int64) error {
	if err := t.checkWidth(p.Flags); err != nil {
		return err
	}
	if t.missing() || len(lengths) == 0 || p.PageSize < 1 {
		return nil // refused by the library before it reads
	}
	for b := int64(0); b < count; b++ {
		needed := (int64(lengths[b]) + int64(p.PageSize) - 1) / int64(p.PageSize)
		if err := t.checkEntries(b, needed); err != nil {
			return err
		}
	}
	return nil
}

// HostAppend is Append in the memory of the host, for ReferenceAppend. One of PageTable and PageTable64 is given,
// depending on PageIndex64. As on a device, tensors begin at addresses that are multiples of 16, which larger slices do
// anyway.
type HostAppend struct {
	Flags           ProblemFlags
	SourceType      DType
	CacheType       DType
	KVHeads         int32
	HeadDimQK       int32
	HeadDimV        int32
	PageSize        int32
	PageTableKind   PageTableKind
	KPack           int32
	KScaleKind      ScaleKind
	VScaleKind      ScaleKind
	Tokens          int32
	Batch           int32
	RotaryDim       int32
	RotaryStyle     RotaryStyle
	K               HostTensor
	V               HostTensor
	KCache          HostTensor // Written.
	VCache          HostTensor // Written.
	Slots           []int64    // [tokens]
	Starts          []int32    // [batch + 1]
	KVLengths       []int32    // [batch]
	PageTable       []int32
	PageTable64     []int64
	PageTableStride int64
	PageStarts      []int32   // [batch + 1]
	KScale          []float32 // [1] or [KVHeads]
	VScale          []float32 // [1] or [KVHeads]
	Rotary          []float32 // [positions][RotaryDim]
	RotaryStride    int64
	Positions       []int32 // [tokens]
	RotaryType      DType   // 0 and F32: Rotary and RotarySin are the tables; F16 and BF16: Rotary16 and RotarySin16.
	RotaryFirst     int32
	RotarySin       []float32 // [positions][RotaryDim / 2]
	QHeads          int32
	TailDim         int32
	Q               HostTensor
	QOut            HostTensor // Written.
	KTail           HostTensor
	QTail           HostTensor
	QNorm           []float32 // [HeadDimQK - TailDim]
	KNorm           []float32 // [HeadDimQK - TailDim]
	NormEpsilon     float32
	KScales         HostTensor // Written with ScalePerToken and ScalePerGroup.
	VScales         HostTensor // The same for V.
	NormType        DType      // F32: QNorm and KNorm are the weights; SourceType or 0: QNorm16 and KNorm16.
	KZeros          HostTensor // Written, with ZeroPoints.
	VZeros          HostTensor // Written, with ZeroPoints.
	ScaleGroup      int32
	VPack           int32
	Rotary16        []uint16 // The bits of numbers, as in Rotary.
	RotarySin16     []uint16 // As in RotarySin.
	QNorm16         []uint16 // As in QNorm.
	KNorm16         []uint16 // As in KNorm.
}

// ReferenceAppend performs an append on the host with plain loops: the reference for what a device stores. Contents are
// checked before anything is stored, and so is the size of every slice against what the call reads. A device skips rows
// with a wrong place; ReferenceAppend refuses them, except negative slots and rows without a sequence. Errors:
// InvalidArgument, Unsupported, NewerStruct, OutOfMemory.
func ReferenceAppend(rows *HostAppend) error {
	if rows == nil {
		return invalid("append", "append is nil; it must say which rows go where")
	}
	if err := rows.check(); err != nil {
		return err
	}
	failure := newError()
	return result(C.sluice_go_reference_append(unsafe.Pointer(rows.c()),
		rows.K.bytes(), rows.V.bytes(), rows.KCache.bytes(), rows.VCache.bytes(), int64s(rows.Slots), int32s(rows.Starts),
		int32s(rows.KVLengths), rows.table().bytes(), int32s(rows.PageStarts), floats(rows.KScale), floats(rows.VScale),
		eitherWidth(rows.Rotary, rows.Rotary16), int32s(rows.Positions), eitherWidth(rows.RotarySin, rows.RotarySin16),
		rows.Q.bytes(), rows.QOut.bytes(), rows.KTail.bytes(), rows.QTail.bytes(), eitherWidth(rows.QNorm, rows.QNorm16),
		eitherWidth(rows.KNorm, rows.KNorm16),
		rows.KScales.bytes(), rows.VScales.bytes(), rows.KZeros.bytes(), rows.VZeros.bytes(), failure), failure)
}

// without is the append without its memory.
func (a *HostAppend) without() *Append {
	return &Append{Flags: a.Flags, SourceType: a.SourceType, CacheType: a.CacheType, KVHeads: a.KVHeads,
		HeadDimQK: a.HeadDimQK, HeadDimV: a.HeadDimV, PageSize: a.PageSize, PageTableKind: a.PageTableKind, KPack: a.KPack,
		KScaleKind: a.KScaleKind, VScaleKind: a.VScaleKind, Tokens: a.Tokens, Batch: a.Batch, RotaryDim: a.RotaryDim,
		RotaryStyle: a.RotaryStyle, K: Tensor{View: a.K.View}, V: Tensor{View: a.V.View}, KCache: Tensor{View: a.KCache.View},
		VCache: Tensor{View: a.VCache.View}, PageTableStride: a.PageTableStride, RotaryStride: a.RotaryStride,
		RotaryType: a.RotaryType, RotaryFirst: a.RotaryFirst, QHeads: a.QHeads, TailDim: a.TailDim,
		Q: Tensor{View: a.Q.View}, QOut: Tensor{View: a.QOut.View}, KTail: Tensor{View: a.KTail.View},
		QTail: Tensor{View: a.QTail.View}, NormEpsilon: a.NormEpsilon, NormType: a.NormType,
		KScales: Tensor{View: a.KScales.View}, VScales: Tensor{View: a.VScales.View},
		KZeros: Tensor{View: a.KZeros.View}, VZeros: Tensor{View: a.VZeros.View}, ScaleGroup: a.ScaleGroup, VPack: a.VPack}
}

// c leaves out all pointers, which C gets separately.
func (a *HostAppend) c() *C.sluice_append {
	made := a.without().c()
	made.page_count, _ = fewest(0, &a.KCache, &a.VCache, &a.KScales, &a.VScales, &a.KZeros, &a.VZeros)
	return made
}

func (a *HostAppend) table() *hostTable {
	return &hostTable{field: "page_table", owner: "sequence", numbers32: a.PageTable, numbers64: a.PageTable64,
		stride: a.PageTableStride, csr: a.PageTableKind == PageTableCSR, starts: a.PageStarts}
}

// check makes sure that the library stays within the slices. It does not repeat checks that the library makes before it
// uses a value.
func (a *HostAppend) check() error {
	if err := a.checkTypes(); err != nil {
		return err
	}
	if hasNoRows(a.Tokens, a.Batch, len(a.Starts) > 0) {
		return nil
	}
	needs := a.without().needs(a.QTail.present())
	for _, pair := range []struct {
		tensor *HostTensor
		need   *need
	}{{&a.K, &needs.k}, {&a.V, &needs.v}, {&a.KCache, &needs.kCache}, {&a.VCache, &needs.vCache},
		{&a.Q, &needs.q}, {&a.QOut, &needs.qOut}, {&a.KTail, &needs.kTail}, {&a.QTail, &needs.qTail},
		{&a.KScales, &needs.kScales}, {&a.VScales, &needs.vScales},
		{&a.KZeros, &needs.kZeros}, {&a.VZeros, &needs.vZeros}} {
		if err := pair.tensor.check(pair.need); err != nil {
			return err
		}
	}
	batch, tokens := int64(a.Batch), int64(a.Tokens)
	if err := checkArrays([]arrayNeed{
		{"slots", tokens, int64(len(a.Slots)), "tokens"},
		{"starts", batch + 1, int64(len(a.Starts)), "batch + 1"},
		{"kv_lengths", batch, int64(len(a.KVLengths)), "batch"},
		{"page_starts", batch + 1, int64(len(a.PageStarts)), "batch + 1"},
		{"k_scale", perHead(a.KScaleKind, a.KVHeads), int64(len(a.KScale)), "number of scales"},
		{"v_scale", perHead(a.VScaleKind, a.KVHeads), int64(len(a.VScale)), "number of scales"},
		{"rotary", a.rotaryColumns(), a.rotaryLength(), "columns of the table"},
		{"rotary_sin", int64(a.RotaryDim / 2), a.sinesLength(), "rotary_dim / 2"},
		{"q_norm", int64(a.HeadDimQK) - int64(a.TailDim), int64(len(a.QNorm) + len(a.QNorm16)), "head_dim_qk - tail_dim"},
		{"k_norm", int64(a.HeadDimQK) - int64(a.TailDim), int64(len(a.KNorm) + len(a.KNorm16)), "head_dim_qk - tail_dim"},
		{"positions", tokens, int64(len(a.Positions)), "tokens"},
	}); err != nil {
		return err
	}
	table := a.table()
	if err := table.checkWidth(a.Flags); err != nil {
		return err
	}
	switch {
	case a.Tokens < 1 || a.PageSize < 1:
		return nil // refused by the library before it reads
	case len(a.Slots) > 0:
		return a.checkSlots()
	case a.Batch < 1 || len(a.Starts) == 0 || len(a.KVLengths) == 0 || table.missing():
		return nil // refused by the library before it reads
	}
	return a.checkSequences(table)
}

func (a *HostAppend) rotaryLength() int64 { return int64(len(a.Rotary) + len(a.Rotary16)) }

func (a *HostAppend) sinesLength() int64 { return int64(len(a.RotarySin) + len(a.RotarySin16)) }

// rotaryColumns are the elements of a rotation's table that a position reads.
func (a *HostAppend) rotaryColumns() int64 {
	if a.sinesLength() > 0 {
		return int64(a.RotaryDim / 2)
	}
	return int64(a.RotaryDim)
}

// checkTypes makes sure that slices of numbers have the type that the call says.
func (a *HostAppend) checkTypes() error {
	check := func(field string, dtype DType, isF32 bool, f32, of16 int) error {
		if (of16 > 0 && isF32) || (f32 > 0 && !isF32) {
			return invalid(field, "%s is %v; a HostAppend has numbers of F32 as float32, and %d of those, and others by their "+
				"bits, and %d of those", field, dtype, f32, of16)
		}
		return nil
	}
	// A number that is not a type is refused by the library before it reads.
	isF32 := a.RotaryType != F16 && a.RotaryType != BF16
	if err := check("rotary_type", a.RotaryType, isF32, len(a.Rotary)+len(a.RotarySin), len(a.Rotary16)+len(a.RotarySin16)); err != nil {
		return err
	}
	return check("norm_type", a.NormType, a.NormType == F32, len(a.QNorm)+len(a.KNorm), len(a.QNorm16)+len(a.KNorm16))
}

// checkSlots checks the positions of rows that have a slot, and of all with Q.
func (a *HostAppend) checkSlots() error {
	if len(a.Positions) == 0 {
		return nil // the library refuses a rotation without it
	}
	for t, slot := range a.Slots[:a.Tokens] {
		if slot < 0 && a.QHeads == 0 {
			continue
		}
		if err := a.checkPosition("positions", t, int64(a.Positions[t])); err != nil {
			return err
		}
	}
	return nil
}

// checkSequences follows table and positions as the library will.
func (a *HostAppend) checkSequences(table *hostTable) error {
	before := int32(0)
	for _, start := range a.Starts[:a.Batch+1] {
		if start < before || start > a.Tokens {
			return nil // refused by the library before it uses it
		}
		before = start
	}
	for b := 0; b < int(a.Batch); b++ {
		first, end, keys := a.Starts[b], a.Starts[b+1], a.KVLengths[b]
		if first == end || keys < end-first {
			continue // refused by the library before it uses it
		}
		if err := table.checkEntries(int64(b), (int64(keys)-1)/int64(a.PageSize)+1); err != nil {
			return err
		}
		if len(a.Positions) == 0 {
			if err := a.checkPosition("kv_lengths", b, int64(keys)-1); err != nil {
				return err
			}
			continue
		}
		for t := first; t < end; t++ {
			if err := a.checkPosition("positions", int(t), int64(a.Positions[t])); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPosition leaves invalid positions to the library; field[i] is where it comes from.
func (a *HostAppend) checkPosition(field string, i int, position int64) error {
	if position < 0 || a.RotaryDim < 1 || a.RotaryStride < 0 || a.rotaryLength() == 0 {
		return nil
	}
	first := elements(position, a.RotaryStride)
	within := func(name string, length, columns int64) error {
		if first < 0 || first > length-columns {
			return invalid(index(field, i), "%s leads to position %d of %s, which has %d elements", index(field, i), position,
				name, length)
		}
		return nil
	}
	if err := within("rotary", a.rotaryLength(), a.rotaryColumns()); err != nil || a.sinesLength() == 0 {
		return err
	}
	return within("rotary_sin", a.sinesLength(), int64(a.RotaryDim/2))
}
