package sluice

// #include "calls.h"
import "C"

import "unsafe"

// RotaryStyle says which elements of a row of K a rotation pairs.
type RotaryStyle uint32

// The styles.
const (
	RotaryHalves RotaryStyle = C.SLUICE_ROTARY_HALVES // e and e + RotaryDim / 2, as GPT-NeoX and Llama do.
	RotaryPairs  RotaryStyle = C.SLUICE_ROTARY_PAIRS  // 2e and 2e + 1, as GPT-J does.
)

// Append describes new rows of K and V to be stored in a paged cache: by Slots, or by Starts, KVLengths and a page
// table. See sluice_append in the header for where rows go and which members each way needs. Shapes are [1, token,
// head, dim] of new rows and [page, row in page, head, dim] of caches.
type Append struct {
	Flags           ProblemFlags // PageIndex64, VInK (then V has no rows and no cache), ZeroPoints or 0.
	SourceType      DType        // Of K and V: F16 or BF16; required.
	CacheType       DType        // SourceType, E4M3FNUZ, E5M2FNUZ, I8, U4, Q8_0 or Q4_0; required.
	KVHeads         int32        // Required.
	HeadDimQK       int32        // Elements of a row of K; required; a multiple of 8.
	HeadDimV        int32        // Elements of a row of V; required without VInK; a multiple of 8.
	PageSize        int32        // Rows per page; required.
	PageTableKind   PageTableKind
	KPack           int32         // As in Problem.
	KScaleKind      ScaleKind     // ScaleNone unless the cache is FP8, I8 or U4.
	VScaleKind      ScaleKind     // As KScaleKind.
	Tokens          int32         // Rows of K and V; with 0 there is nothing to do.
	Batch           int32         // Sequences; 0 with Slots.
	RotaryDim       int32         // Elements of K that are rotated; even; 0: no rotation.
	RotaryStyle     RotaryStyle   // With RotaryDim.
	K               Tensor        // New rows.
	V               Tensor        // New rows.
	KCache          Tensor        // Where they go.
	VCache          Tensor        // Where they go.
	Slots           DevicePointer // int64 [tokens], or 0.
	Starts          DevicePointer // int32 [batch + 1], or 0; one of Slots and Starts is given.
	KVLengths       DevicePointer // int32 [batch], with Starts: lengths include the new keys.
	PageTable       DevicePointer // With Starts.
	PageTableStride int64         // PageTableBlock: entries from one sequence's first to the next one's; else 0.
	PageStarts      DevicePointer // PageTableCSR: int32 [batch + 1].
	KScale          DevicePointer // float32 [1] or [KVHeads].
	VScale          DevicePointer // float32 [1] or [KVHeads].
	Rotary          DevicePointer // float32 [positions][RotaryDim]: cosines, then sines.
	RotaryStride    int64         // Elements from one position to the next.
	Positions       DevicePointer // int32 [tokens], or 0.

	// Since ABI 1.1: a layer's whole step. See sluice_append in the header.

	RotaryType  DType         // Type of the tables: F16, BF16 or F32; 0 is F32.
	RotaryFirst int32         // The first element that is rotated, of the RotaryDim; a multiple of 8.
	RotarySin   DevicePointer // [positions][RotaryDim / 2] sines; 0: they follow the cosines.
	QHeads      int32         // Heads of Q; 0: no Q.
	TailDim     int32         // The last elements of a row, from another tensor; a multiple of 8; 0: none.
	Q           Tensor        // New rows, of SourceType.
	QOut        Tensor        // Where they go; may be Q, with the same strides.
	KTail       Tensor        // Tails of K, with TailDim: [1, token, head, TailDim].
	QTail       Tensor        // Tails of Q; not given: rows of Q are whole.
	QNorm       DevicePointer // [HeadDimQK - TailDim] weights of a norm of Q, or 0.
	KNorm       DevicePointer // The same for K.
	NormEpsilon float32       // Added to the mean square; finite, not negative; 0 without a norm.
	NormType    DType         // Type of the weights: SourceType or F32; 0 is SourceType.
	// KScales are F32 [page, row in page, head, 1] of ScalePerToken, written, and ScalePerPage, read; and F16 [page, row in
	// page, head, group] of ScalePerGroup, written.
	KScales    Tensor
	VScales    Tensor // The same for V.
	KZeros     Tensor // With ZeroPoints: what is subtracted from K's numbers, with the strides of KScales, written.
	VZeros     Tensor // The same for V.
	ScaleGroup int32  // Elements of a group: 32 or 64 for ScalePerGroup, else 0.
	VPack      int32  // As in Problem; 0: V by rows.
}

// hasNoRows says whether a call has nothing to store; the library then uses none of its tensors.
func hasNoRows(tokens, batch int32, hasSequences bool) bool {
	return tokens == 0 || hasSequences && batch == 0
}

// appendNeeds are the requirements on the tensors of an append.
type appendNeeds struct {
	k, v, kCache, vCache, q, qOut, kTail, qTail, kScales, vScales, kZeros, vZeros need
}

// scalesOfPages is the requirement on the scales or the zero points of a cache.
func scalesOfPages(field string, kind ScaleKind, dim, group, pageSize, heads int32) need {
	made := need{field: field, dtype: F32, extents: [4]extent{somePages(true), atLeast(int64(pageSize), "page_size"),
		exactly(heads, "kv_heads"), exactly(1, "scale")}}
	switch kind {
	case ScalePerPage:
		made.extents[1] = atLeast(1, "row of a page")
	case ScalePerGroup: // the library refuses other sizes of a group, and groups that do not fill a row
		made.dtype, made.extents[3] = F16, atLeast(int64(dim)/maximum(int64(group), 1), "groups of a row")
	}
	return made
}

// needs depends on whether Q has tails of its own.
func (a *Append) needs(hasQTail bool) appendNeeds {
	headNeed := func(field string, heads int32, whatHeads string, dim int32, what string) need {
		return need{field: field, dtype: a.SourceType, extents: [4]extent{exactly(1, "batch of rows"),
			atLeast(int64(a.Tokens), "tokens"), exactly(heads, whatHeads), exactly(dim, what)}}
	}
	rows := func(field string, dim int32, what string) need {
		return headNeed(field, a.KVHeads, "kv_heads", dim, what)
	}
	qNeed := func(field string, dim int32, what string) need {
		return headNeed(field, a.QHeads, "q_heads", dim, what)
	}
	cache := func(field string, dim int32, what string) need {
		return need{field: field, dtype: a.CacheType, extents: [4]extent{somePages(true),
			exactly(a.PageSize, "page_size"), exactly(a.KVHeads, "kv_heads"), exactly(dim, what)}}
	}
	scales := func(field string, kind ScaleKind, dim int32) need {
		return scalesOfPages(field, kind, dim, a.ScaleGroup, a.PageSize, a.KVHeads)
	}
	made := appendNeeds{
		k:      rows("k", a.HeadDimQK-a.TailDim, "head_dim_qk - tail_dim"),
		v:      rows("v", a.HeadDimV, "head_dim_v"),
		kCache: cache("k_cache", a.HeadDimQK, "head_dim_qk"),
		vCache: cache("v_cache", a.HeadDimV, "head_dim_v"),
		q:      qNeed("q", a.HeadDimQK, "head_dim_qk"),
		qOut:   qNeed("q_out", a.HeadDimQK, "head_dim_qk"),
		kTail:  rows("k_tail", a.TailDim, "tail_dim"),
		qTail:  qNeed("q_tail", a.TailDim, "tail_dim"),

		kScales: scales("k_scales", a.KScaleKind, a.HeadDimQK),
		vScales: scales("v_scales", a.VScaleKind, a.HeadDimV),
		kZeros:  scales("k_zeros", a.KScaleKind, a.HeadDimQK),
		vZeros:  scales("v_zeros", a.VScaleKind, a.HeadDimV),
	}
	if hasQTail {
		made.q = qNeed("q", a.HeadDimQK-a.TailDim, "head_dim_qk - tail_dim")
	}
	made.kTail.repeats, made.qTail.repeats = true, true
	made.kCache.pack = a.KPack
	if a.VPack != VPackAll {
		made.vCache.tokenPack = a.VPack
	}
	return made
}

// check compares types and shapes; the library checks everything else.
func (a *Append) check() error {
	if a == nil {
		return invalid("append", "append is nil; it must say which rows go where")
	}
	if hasNoRows(a.Tokens, a.Batch, a.Starts != 0) {
		return nil
	}
	needs := a.needs(a.QTail.present())
	return checkTensors(tensorNeed{&a.K, &needs.k}, tensorNeed{&a.V, &needs.v}, tensorNeed{&a.KCache, &needs.kCache},
		tensorNeed{&a.VCache, &needs.vCache}, tensorNeed{&a.Q, &needs.q}, tensorNeed{&a.QOut, &needs.qOut},
		tensorNeed{&a.KTail, &needs.kTail}, tensorNeed{&a.QTail, &needs.qTail},
		tensorNeed{&a.KScales, &needs.kScales}, tensorNeed{&a.VScales, &needs.vScales},
		tensorNeed{&a.KZeros, &needs.kZeros}, tensorNeed{&a.VZeros, &needs.vZeros})
}

func (a *Append) c() *C.sluice_append {
	made := (*C.sluice_append)(unsafe.Pointer(new([C.sizeof_sluice_append / 8]uint64)))
	made.struct_size = C.sizeof_sluice_append
	made.flags = C.uint32_t(a.Flags)
	made.source_type = C.uint32_t(a.SourceType)
	made.cache_type = C.uint32_t(a.CacheType)
	made.kv_heads = C.int32_t(a.KVHeads)
	made.head_dim_qk = C.int32_t(a.HeadDimQK)
	made.head_dim_v = C.int32_t(a.HeadDimV)
	made.page_size = C.int32_t(a.PageSize)
	made.page_table_kind = C.uint32_t(a.PageTableKind)
	made.k_pack = C.int32_t(a.KPack)
	made.k_scale_kind = C.uint32_t(a.KScaleKind)
	made.v_scale_kind = C.uint32_t(a.VScaleKind)
	made.tokens = C.int32_t(a.Tokens)
	made.batch = C.int32_t(a.Batch)
	made.rotary_dim = C.int32_t(a.RotaryDim)
	made.rotary_style = C.uint32_t(a.RotaryStyle)
	a.K.putRows(&made.k)
	a.V.putRows(&made.v)
	a.KCache.put(&made.k_cache)
	a.VCache.put(&made.v_cache)
	put(unsafe.Pointer(&made.slots), a.Slots)
	put(unsafe.Pointer(&made.starts), a.Starts)
	put(unsafe.Pointer(&made.kv_lengths), a.KVLengths)
	put(unsafe.Pointer(&made.page_table), a.PageTable)
	made.page_table_stride = C.int64_t(a.PageTableStride)
	put(unsafe.Pointer(&made.page_starts), a.PageStarts)
	put(unsafe.Pointer(&made.k_scale), a.KScale)
	put(unsafe.Pointer(&made.v_scale), a.VScale)
	put(unsafe.Pointer(&made.rotary), a.Rotary)
	made.rotary_stride = C.int64_t(a.RotaryStride)
	put(unsafe.Pointer(&made.positions), a.Positions)
	made.rotary_type = C.uint32_t(a.RotaryType)
	made.rotary_first = C.int32_t(a.RotaryFirst)
	put(unsafe.Pointer(&made.rotary_sin), a.RotarySin)
	made.q_heads = C.int32_t(a.QHeads)
	made.tail_dim = C.int32_t(a.TailDim)
	a.Q.putRows(&made.q)
	a.QOut.putRows(&made.q_out)
	a.KTail.putRows(&made.k_tail)
	a.QTail.putRows(&made.q_tail)
	put(unsafe.Pointer(&made.q_norm), a.QNorm)
	put(unsafe.Pointer(&made.k_norm), a.KNorm)
	made.norm_epsilon = C.float(a.NormEpsilon)
	made.norm_type = C.uint32_t(a.NormType)
	a.KScales.put(&made.k_scales)
	a.VScales.put(&made.v_scales)
	a.KZeros.put(&made.k_zeros)
	a.VZeros.put(&made.v_zeros)
	made.scale_group = C.int32_t(a.ScaleGroup)
	made.v_pack = C.int32_t(a.VPack)
	made.page_count, _ = fewest(0, &a.KCache, &a.VCache, &a.KScales, &a.VScales, &a.KZeros, &a.VZeros) // so that slots and page numbers cannot lead out of the caches
	return made
}

// KVAppend enqueues an append and returns without waiting; a nil launch is the default stream. It needs no workspace.
// A context's first call for a kernel loads it, which is not legal during stream capture; after a Preload of nil the
// rules of Plan.Run hold. The append stays within the tensors for any slots, starts, lengths and page numbers on the
// device; but page tables must have all entries that lengths need, and Rotary all positions.
func (c *Context) KVAppend(rows *Append, launch *Launch) error {
	return c.enqueue(launch, rows.check, func(failure *C.sluice_error) C.sluice_status {
		return C.sluice_go_kv_append(&c.state.device, c.state.handle, unsafe.Pointer(rows.c()),
			unsafe.Pointer(launch.c()), launch.dependencies(), failure)
	})
}
