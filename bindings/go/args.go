package sluice

// #include <sluice/sluice.h>
import "C"

import "unsafe"

// ArgsFlags say for which members of a call 0 is a number like any other.
type ArgsFlags uint32

// The flags of a call.
const (
	// ExactScale: Scale is used as it is. If it is 0, so are all products of Q and K: without changes of the scores, a row
	// is the mean of the values that it sees.
	ExactScale ArgsFlags = C.SLUICE_EXACT_SCALE
	// ExactLengths: QLen, KVLen, PrefixLen and PrefixCount are used as they are: 0 is no rows, no keys or no prefixes.
	ExactLengths ArgsFlags = C.SLUICE_EXACT_LENGTHS
)

// Args is one call: pointers and numbers. Everything a pointer points to is in device memory, and is read when the run
// executes, not when it is enqueued. See sluice_args in the header for where everything is and which members a mode
// needs. Shapes are [batch, row, head, dim] (with starts [1, row, head, dim]), of a paged K and V [page, row in page,
// head, dim], of LSE [batch, row, head, 1], of a bias [batch, head of Q, row, key] and of a mask the same with bytes of
// 8 keys. Scales of keys are F32 of the shape of K with rows of one element, and per page [page, 1, head, 1]; scales of
// groups, and zeros, are F16 of the shape of K with rows of one element for each group. Tensors may be larger than the
// call, except in heads and dims. One without elements needs no memory.
type Args struct {
	Flags ArgsFlags
	Batch int32   // Sequences.
	QLen  int32   // Query rows of each sequence, or their maximum; 0: the problem's bound, except with ExactLengths.
	KVLen int32   // Keys of each sequence, or their maximum; 0: as QLen.
	Scale float32 // Scale of the scores; 0 means 1 / sqrt(HeadDimQK), except with ExactScale.
	Q     Tensor  // Queries.
	K     Tensor  // Keys.
	V     Tensor  // Values; zero with VInK.
	O     Tensor  // Result.
	LSE   Tensor  // Logarithm of the softmax denominator, F32; zero without WriteLSE.

	QStarts   DevicePointer // int32 [batch + 1]: rows of Q before each sequence's first.
	KVStarts  DevicePointer // int32 [batch + 1]: rows of K and V before each sequence's first.
	QLengths  DevicePointer // int32 [batch]: query rows of each sequence.
	KVLengths DevicePointer // int32 [batch]: keys of each sequence.

	PageTable       DevicePointer // Page numbers: int32, or int64 with PageIndex64.
	PageTableStride int64         // PageTableBlock: entries from one sequence's first to the next one's; else 0.
	PageStarts      DevicePointer // PageTableCSR: int32 [batch + 1], entries before each sequence's first.
	// PageTableHeadStride counts entries from those of a KV head to the next one's; 0: heads share them.
	PageTableHeadStride int64

	Bias        Tensor        // Added to the scores; zero without BiasType.
	Mask        Tensor        // Of MaskBits: key j of a row is bit j % 8 of byte j / 8.
	AlibiSlopes DevicePointer // float32 [QHeads].
	SinkLogits  DevicePointer // float32 [QHeads], to base e.
	QScale      DevicePointer // float32 [1] or [QHeads], by QScaleKind.
	KScale      DevicePointer // float32 [1] or [KVHeads], by KScaleKind.
	VScale      DevicePointer // float32 [1] or [KVHeads], by VScaleKind.

	KScales              Tensor        // Scales of K per token, page or group; else zero.
	VScales              Tensor        // Scales of V per token, page or group; else zero.
	KZeros               Tensor        // With ZeroPoints: what is subtracted from K's numbers, with the strides of KScales; else zero.
	VZeros               Tensor        // The same for V.
	OScale               DevicePointer // float32 [1] or [QHeads], by OScaleKind: O is divided by it.
	BiasScale            DevicePointer // float32 [QHeads], with BiasScale.
	Diagonals            DevicePointer // int32 [batch]: the key on row 0's diagonal, with GivenDiagonal.
	Causal               DevicePointer // int32 [batch]: not 0 for causal sequences, with CausalBySequence.
	Spans                DevicePointer // int32 [batch, SpanCount, 2]: the first key of a span, and the one after its last.
	SpanCount            int64         // Spans of each sequence.
	AlibiBatchStride     int64         // From one sequence's AlibiSlopes to the next one's; 0: shared.
	BiasScaleBatchStride int64         // The same for BiasScale.

	// With SharedPrefix; all zero without it.
	PrefixCount           int32         // Prefixes.
	PrefixLen             int32         // Keys of each prefix, or their maximum; 0: as QLen.
	PrefixQStarts         DevicePointer // int32 [PrefixCount + 1]: rows of Q before each prefix's first.
	PrefixLengths         DevicePointer // int32 [PrefixCount]: keys of each prefix.
	PrefixPageTable       DevicePointer // ModePaged: page numbers of the same type as in PageTable.
	PrefixPageTableStride int64         // PageTableBlock: entries from one prefix's first to the next one's; else 0.
	PrefixPageStarts      DevicePointer // PageTableCSR: int32 [PrefixCount + 1], entries before each prefix's first.
	PrefixK               Tensor        // Other modes: keys, [prefix, key, head, dim].
	PrefixV               Tensor        // Other modes: values; zero with VInK.
}

// callNumbers are the numbers of a call, which Args and HostArgs share.
type callNumbers struct {
	flags                  ArgsFlags
	batch, qLen, kvLen     int32
	scale                  float32
	pageTableStride        int64
	pageTableHeadStride    int64
	spanCount              int64
	alibiBatchStride       int64
	biasBatchStride        int64
	packedQ, packedKV      bool // Starts are given.
	prefixCount, prefixLen int32
	prefixPageTableStride  int64
}

// count tells the library how many rows and pages all tensors have, so that starts and page numbers cannot lead out of
// them. It takes 0 for a number that is not known, so tensors without rows become a length of 0, to which starts would
// be limited.
func (n *callNumbers) count(to *C.sluice_args, p *Problem, rowTensors, keyTensors []sized) {
	putTokens := func(tokens *C.int64_t, length *C.int32_t, tensors []sized) {
		count, known := fewest(1, tensors...)
		*tokens = count
		if known && count == 0 {
			n.putNone(length, to, p)
		}
	}
	if n.packedQ {
		putTokens(&to.q_tokens, &to.q_len, rowTensors)
	}
	switch {
	case p.Mode == ModePaged:
		to.page_count, _ = fewest(0, keyTensors...)
	case n.packedKV:
		putTokens(&to.kv_tokens, &to.kv_len, keyTensors)
	}
}

// putNone makes a length 0, and the others what they are without ExactLengths. If one of those is not given, nothing is
// changed, and the library refuses it.
func (n *callNumbers) putNone(length *C.int32_t, to *C.sluice_args, p *Problem) {
	lengths := []*C.int32_t{&to.q_len, &to.kv_len}
	bounds := []int32{p.MaxQLen, p.MaxKVLen}
	if p.Flags&SharedPrefix != 0 {
		lengths = append(lengths, &to.prefix_len, &to.prefix_count)
		bounds = append(bounds, p.MaxPrefixLen, 0)
	}
	if to.flags&C.SLUICE_EXACT_LENGTHS == 0 {
		for i, other := range lengths {
			if other != length && *other == 0 && bounds[i] == 0 {
				return
			}
		}
		for i, other := range lengths {
			if *other == 0 {
				*other = C.int32_t(bounds[i])
			}
		}
		to.flags |= C.SLUICE_EXACT_LENGTHS
	}
	*length = 0
}

func (n *callNumbers) c() *C.sluice_args {
	made := (*C.sluice_args)(unsafe.Pointer(new([C.sizeof_sluice_args / 8]uint64)))
	made.struct_size = C.sizeof_sluice_args
	made.flags = C.uint32_t(n.flags)
	made.batch = C.int32_t(n.batch)
	made.q_len = C.int32_t(n.qLen)
	made.kv_len = C.int32_t(n.kvLen)
	made.scale = C.float(n.scale)
	made.page_table_stride = C.int64_t(n.pageTableStride)
	made.page_table_head_stride = C.int64_t(n.pageTableHeadStride)
	made.span_count = C.int64_t(n.spanCount)
	made.alibi_batch_stride = C.int64_t(n.alibiBatchStride)
	made.bias_scale_batch_stride = C.int64_t(n.biasBatchStride)
	made.prefix_count = C.int32_t(n.prefixCount)
	made.prefix_len = C.int32_t(n.prefixLen)
	made.prefix_page_table_stride = C.int64_t(n.prefixPageTableStride)
	return made
}

// bounded is the number, or the problem's bound if it is 0 and says so.
func (n *callNumbers) bounded(number, bound int32) int64 {
	if number == 0 && n.flags&ExactLengths == 0 {
		return int64(bound)
	}
	return int64(number)
}

// callNeeds are the requirements on the tensors of a call.
type callNeeds struct{ q, k, v, o, lse, bias, mask, kScales, vScales, kZeros, vZeros, prefixK, prefixV need }

func (n *callNumbers) needs(p *Problem) callNeeds {
	batch, qLen, kvLen := int64(n.batch), n.bounded(n.qLen, p.MaxQLen), n.bounded(n.kvLen, p.MaxKVLen)
	hasKeys := kvLen != 0 || p.Flags&SharedPrefix != 0 // whose pages are in the same caches
	rows := [2]extent{atLeast(batch, "batch"), atLeast(qLen, "rows of each sequence")}
	if n.packedQ {
		rows = [2]extent{exactly(1, "batch of packed rows"), atLeast(0, "rows")}
	}
	keys := [2]extent{atLeast(batch, "batch"), atLeast(kvLen, "keys of each sequence")}
	switch {
	case p.Mode == ModePaged:
		keys = [2]extent{somePages(batch != 0 && qLen != 0 && hasKeys), exactly(p.PageSize, "page_size")}
	case n.packedKV:
		keys = [2]extent{exactly(1, "batch of packed keys"), atLeast(0, "keys")}
	}
	rowNeed := func(field string, dtype DType, dim extent) need {
		return need{field: field, dtype: dtype, extents: [4]extent{rows[0], rows[1], exactly(p.QHeads, "q_heads"), dim}}
	}
	keyNeed := func(field string, dtype DType, dim extent) need {
		return need{field: field, dtype: dtype, extents: [4]extent{keys[0], keys[1], exactly(p.KVHeads, "kv_heads"), dim}}
	}
	prefixNeed := func(field string, dtype DType, dim extent) need {
		return need{field: field, dtype: dtype, extents: [4]extent{atLeast(int64(n.prefixCount), "prefix_count"),
			atLeast(n.bounded(n.prefixLen, p.MaxPrefixLen), "keys of each prefix"), exactly(p.KVHeads, "kv_heads"), dim}}
	}
	scoreNeed := func(field string, dtype DType, last extent) need {
		return need{field: field, dtype: dtype, repeats: true,
			extents: [4]extent{atLeast(batch, "batch"), atLeast(int64(p.QHeads), "q_heads"), atLeast(qLen, "rows"), last}}
	}
	scaleNeed := func(field string, kind ScaleKind, dim int32) need {
		if kind == ScalePerGroup { // the library refuses other sizes of a group, and groups that do not fill a row
			return keyNeed(field, F16, atLeast(int64(dim)/maximum(int64(p.ScaleGroup), 1), "groups of a row"))
		}
		made := keyNeed(field, F32, exactly(1, "scale of a row and head"))
		if kind == ScalePerPage {
			made.extents[1] = exactly(1, "scale of a page and head")
		}
		return made
	}
	masked := kvLen
	if p.Flags&MaskNewRows != 0 {
		masked = qLen
	}
	made := callNeeds{
		q:    rowNeed("q", p.QType, exactly(p.rowElements(p.HeadDimQK), "head_dim_qk")),
		k:    keyNeed("k", p.KType, exactly(p.rowElements(p.HeadDimQK), "head_dim_qk")),
		v:    keyNeed("v", p.VType, exactly(p.rowElements(p.HeadDimV), "head_dim_v")),
		o:    rowNeed("o", p.OType, exactly(p.rowElements(p.HeadDimV), "head_dim_v")),
		lse:  rowNeed("lse", F32, exactly(1, "value of a row and head")),
		bias: scoreNeed("bias", p.BiasType, atLeast(kvLen, "keys")),
		mask: scoreNeed("mask", MaskBits, atLeast((masked+7)/8, "bytes of 8 keys")),

		kScales: scaleNeed("k_scales", p.KScaleKind, p.HeadDimQK),
		vScales: scaleNeed("v_scales", p.VScaleKind, p.HeadDimV),
		kZeros:  scaleNeed("k_zeros", p.KScaleKind, p.HeadDimQK),
		vZeros:  scaleNeed("v_zeros", p.VScaleKind, p.HeadDimV),

		prefixK: prefixNeed("prefix_k", p.KType, exactly(p.rowElements(p.HeadDimQK), "head_dim_qk")),
		prefixV: prefixNeed("prefix_v", p.VType, exactly(p.rowElements(p.HeadDimV), "head_dim_v")),
	}
	made.k.pack = p.KPack
	for _, values := range []*need{&made.v, &made.prefixV} {
		if p.VPack == VPackAll {
			// Whole groups of 8 keys are read.
			if keys := &values.extents[1]; !keys.exact {
				keys.count = (keys.count + 7) / 8 * 8
			}
		} else {
			values.tokenPack = p.VPack
		}
	}
	return made
}

// rowElements returns the elements of a row in memory: with PaddedRows more than the head dim.
func (p *Problem) rowElements(headDim int32) int32 {
	if p.Flags&PaddedRows == 0 {
		return headDim
	}
	return (headDim + 7) / 8 * 8
}

// putting returns the functions that put tensors of rows and of keys into a struct.
func (n *callNumbers) putting() (putRow, putKey func(*Tensor, *C.sluice_tensor)) {
	putRow, putKey = (*Tensor).put, (*Tensor).put
	if n.packedQ {
		putRow = (*Tensor).putRows
	}
	if n.packedKV {
		putKey = (*Tensor).putRows
	}
	return putRow, putKey
}

// putScales puts scales of keys. A page's only scale is for all of its rows, so its stride is 0.
func (n *callNumbers) putScales(tensor *Tensor, kind ScaleKind, to *C.sluice_tensor) {
	_, putKey := n.putting()
	putKey(tensor, to)
	if kind == ScalePerPage {
		to.stride[1] = 0
	}
}

func (a *Args) numbers() *callNumbers {
	return &callNumbers{flags: a.Flags, batch: a.Batch, qLen: a.QLen, kvLen: a.KVLen, scale: a.Scale,
		pageTableStride: a.PageTableStride, spanCount: a.SpanCount, alibiBatchStride: a.AlibiBatchStride,
		biasBatchStride: a.BiasScaleBatchStride, packedQ: a.QStarts != 0, packedKV: a.KVStarts != 0,
		prefixCount: a.PrefixCount, prefixLen: a.PrefixLen, prefixPageTableStride: a.PrefixPageTableStride,
		pageTableHeadStride: a.PageTableHeadStride}
}

// check compares types and shapes with the problem and the call; the library checks everything else, and refuses
// missing tensors.
func (a *Args) check(p *Problem) error {
	needs := a.numbers().needs(p)
	return checkTensors(
		tensorNeed{&a.Q, &needs.q}, tensorNeed{&a.K, &needs.k}, tensorNeed{&a.V, &needs.v}, tensorNeed{&a.O, &needs.o},
		tensorNeed{&a.LSE, &needs.lse}, tensorNeed{&a.Bias, &needs.bias}, tensorNeed{&a.Mask, &needs.mask},
		tensorNeed{&a.KScales, &needs.kScales}, tensorNeed{&a.VScales, &needs.vScales},
		tensorNeed{&a.KZeros, &needs.kZeros}, tensorNeed{&a.VZeros, &needs.vZeros},
		tensorNeed{&a.PrefixK, &needs.prefixK}, tensorNeed{&a.PrefixV, &needs.prefixV})
}

type tensorNeed struct {
	tensor *Tensor
	need   *need
}

func checkTensors(pairs ...tensorNeed) error {
	for _, pair := range pairs {
		if pair.tensor.present() {
			if err := pair.need.check(&pair.tensor.View); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Args) c(p *Problem) *C.sluice_args {
	numbers := a.numbers()
	made := numbers.c()
	putRow, putKey := numbers.putting()
	putRow(&a.Q, &made.q)
	putKey(&a.K, &made.k)
	putKey(&a.V, &made.v)
	putRow(&a.O, &made.o)
	putRow(&a.LSE, &made.lse)
	a.Bias.put(&made.bias)
	a.Mask.put(&made.mask)
	put(unsafe.Pointer(&made.q_starts), a.QStarts)
	put(unsafe.Pointer(&made.kv_starts), a.KVStarts)
	put(unsafe.Pointer(&made.q_lengths), a.QLengths)
	put(unsafe.Pointer(&made.kv_lengths), a.KVLengths)
	put(unsafe.Pointer(&made.page_table), a.PageTable)
	put(unsafe.Pointer(&made.page_starts), a.PageStarts)
	put(unsafe.Pointer(&made.alibi_slopes), a.AlibiSlopes)
	put(unsafe.Pointer(&made.sink_logits), a.SinkLogits)
	put(unsafe.Pointer(&made.q_scale), a.QScale)
	put(unsafe.Pointer(&made.k_scale), a.KScale)
	put(unsafe.Pointer(&made.v_scale), a.VScale)
	numbers.putScales(&a.KScales, p.KScaleKind, &made.k_scales)
	numbers.putScales(&a.VScales, p.VScaleKind, &made.v_scales)
	numbers.putScales(&a.KZeros, p.KScaleKind, &made.k_zeros)
	numbers.putScales(&a.VZeros, p.VScaleKind, &made.v_zeros)
	put(unsafe.Pointer(&made.o_scale), a.OScale)
	put(unsafe.Pointer(&made.bias_scale), a.BiasScale)
	put(unsafe.Pointer(&made.diagonals), a.Diagonals)
	put(unsafe.Pointer(&made.causal), a.Causal)
	put(unsafe.Pointer(&made.spans), a.Spans)
	put(unsafe.Pointer(&made.prefix_q_starts), a.PrefixQStarts)
	put(unsafe.Pointer(&made.prefix_lengths), a.PrefixLengths)
	put(unsafe.Pointer(&made.prefix_page_table), a.PrefixPageTable)
	put(unsafe.Pointer(&made.prefix_page_starts), a.PrefixPageStarts)
	a.PrefixK.put(&made.prefix_k)
	a.PrefixV.put(&made.prefix_v)
	numbers.count(made, p, []sized{&a.Q, &a.O, &a.LSE}, []sized{&a.K, &a.V, &a.KScales, &a.VScales, &a.KZeros, &a.VZeros})
	return made
}
