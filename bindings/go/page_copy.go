package sluice

// #include "calls.h"
import "C"

import "unsafe"

// PageCopy describes pages of K and V caches, to be copied to other pages, or to other caches. See sluice_page_copy in
// the header. Shapes are [page, row in page, head, dim]; the number of pages is the smallest of the tensors'.
type PageCopy struct {
	Flags       ProblemFlags  // PageIndex64 (of Pairs), VInK (then there is only K), ZeroPoints or 0.
	SourceType  DType         // Type of the sources; required.
	TargetType  DType         // Type of the targets; required.
	KVHeads     int32         // Required.
	HeadDimQK   int32         // Elements of a row of K; required; a multiple of 8.
	HeadDimV    int32         // Elements of a row of V; required without VInK; a multiple of 8.
	PageSize    int32         // Rows per page; required.
	SourceKPack int32         // Elements per pack of an x-packed KSource; 0: none.
	TargetKPack int32         // The same for KTarget.
	KScaleKind  ScaleKind     // ScalePerGroup for U4; the header says which the other types have.
	VScaleKind  ScaleKind     // As KScaleKind.
	KSource     Tensor        // Pages to read.
	VSource     Tensor        // Pages to read.
	KTarget     Tensor        // Pages to write.
	VTarget     Tensor        // Pages to write.
	Pairs       DevicePointer // [PairCount][2]: int32, or int64 with PageIndex64; 0: each page to itself.
	PairCount   int64         // Pairs; 0 without, and for a list without pairs, which copies nothing.
	KScale      DevicePointer // float32 [1] or [KVHeads].
	VScale      DevicePointer // float32 [1] or [KVHeads].

	// Arrays of scales have the shapes of Append's. Between equal types they are copied to those of the targets, which
	// have the same shapes.

	KScales       Tensor // Of KSource: ScalePerToken, ScalePerPage, ScalePerGroup.
	VScales       Tensor // The same for V.
	KZeros        Tensor // Of KSource, with ZeroPoints: what is subtracted from its numbers, with the strides of KScales.
	VZeros        Tensor // The same for V.
	KTargetScales Tensor // Where KScales go between equal types; else zero.
	VTargetScales Tensor // The same for V.
	KTargetZeros  Tensor // Where KZeros go between equal types; else zero.
	VTargetZeros  Tensor // The same for V.
	ScaleGroup    int32  // Elements of a group: 32 or 64 for ScalePerGroup, else 0.
}

// pagesOf is the requirement on a cache.
func pagesOf(field string, dtype DType, pageSize, heads, dim, pack int32, what string) need {
	return need{field: field, dtype: dtype, pack: pack, extents: [4]extent{somePages(true), exactly(pageSize, "page_size"),
		exactly(heads, "kv_heads"), exactly(dim, what)}}
}

// fewestPages is the smallest number of pages of tensors on the host or on the device, so that page numbers cannot lead
// out of any of them.
func fewestPages[T sized](tensors []T) C.int64_t {
	all := make([]sized, len(tensors))
	for i, tensor := range tensors {
		all[i] = tensor
	}
	count, _ := fewest(0, all...)
	return count
}

// tensors are those of a copy, in the order of needs.
func (p *PageCopy) tensors() [12]*Tensor {
	return [12]*Tensor{&p.KSource, &p.VSource, &p.KTarget, &p.VTarget, &p.KScales, &p.VScales, &p.KZeros, &p.VZeros,
		&p.KTargetScales, &p.VTargetScales, &p.KTargetZeros, &p.VTargetZeros}
}

// needs are the requirements on the tensors.
func (p *PageCopy) needs() [12]need {
	cache := func(field string, dtype DType, dim, pack int32, what string) need {
		return pagesOf(field, dtype, p.PageSize, p.KVHeads, dim, pack, what)
	}
	kScales := func(field string) need {
		return scalesOfPages(field, p.KScaleKind, p.HeadDimQK, p.ScaleGroup, p.PageSize, p.KVHeads)
	}
	vScales := func(field string) need {
		return scalesOfPages(field, p.VScaleKind, p.HeadDimV, p.ScaleGroup, p.PageSize, p.KVHeads)
	}
	return [12]need{
		cache("k_source", p.SourceType, p.HeadDimQK, p.SourceKPack, "head_dim_qk"),
		cache("v_source", p.SourceType, p.HeadDimV, 0, "head_dim_v"),
		cache("k_target", p.TargetType, p.HeadDimQK, p.TargetKPack, "head_dim_qk"),
		cache("v_target", p.TargetType, p.HeadDimV, 0, "head_dim_v"),
		kScales("k_scales"), vScales("v_scales"), kScales("k_zeros"), vScales("v_zeros"),
		kScales("k_target_scales"), vScales("v_target_scales"), kScales("k_target_zeros"), vScales("v_target_zeros"),
	}
}

// checkAll compares tensors with what they have to be.
func checkAll(tensors []*Tensor, needs []need) error {
	for i, tensor := range tensors {
		if err := checkTensors(tensorNeed{tensor, &needs[i]}); err != nil {
			return err
		}
	}
	return nil
}

// check compares types and shapes; the library checks everything else.
func (p *PageCopy) check() error {
	if p == nil {
		return invalid("copy", "copy is nil; it must say which pages go where")
	}
	if p.Pairs != 0 && p.PairCount == 0 {
		return nil
	}
	tensors, needs := p.tensors(), p.needs()
	return checkAll(tensors[:], needs[:])
}

func (p *PageCopy) c() *C.sluice_page_copy {
	made := (*C.sluice_page_copy)(unsafe.Pointer(new([C.sizeof_sluice_page_copy / 8]uint64)))
	made.struct_size = C.sizeof_sluice_page_copy
	made.flags = C.uint32_t(p.Flags)
	made.source_type = C.uint32_t(p.SourceType)
	made.target_type = C.uint32_t(p.TargetType)
	made.kv_heads = C.int32_t(p.KVHeads)
	made.head_dim_qk = C.int32_t(p.HeadDimQK)
	made.head_dim_v = C.int32_t(p.HeadDimV)
	made.page_size = C.int32_t(p.PageSize)
	made.source_k_pack = C.int32_t(p.SourceKPack)
	made.target_k_pack = C.int32_t(p.TargetKPack)
	made.k_scale_kind = C.uint32_t(p.KScaleKind)
	made.v_scale_kind = C.uint32_t(p.VScaleKind)
	p.KSource.put(&made.k_source)
	p.VSource.put(&made.v_source)
	p.KTarget.put(&made.k_target)
	p.VTarget.put(&made.v_target)
	put(unsafe.Pointer(&made.pairs), p.Pairs)
	made.pair_count = C.int64_t(p.PairCount)
	put(unsafe.Pointer(&made.k_scale), p.KScale)
	put(unsafe.Pointer(&made.v_scale), p.VScale)
	p.KScales.put(&made.k_scales)
	p.VScales.put(&made.v_scales)
	p.KZeros.put(&made.k_zeros)
	p.VZeros.put(&made.v_zeros)
	p.KTargetScales.put(&made.k_target_scales)
	p.VTargetScales.put(&made.v_target_scales)
	p.KTargetZeros.put(&made.k_target_zeros)
	p.VTargetZeros.put(&made.v_target_zeros)
	made.scale_group = C.int32_t(p.ScaleGroup)
	tensors := p.tensors()
	made.page_count = fewestPages(tensors[:])
	return made
}

// KVCopy enqueues a copy of pages and returns without waiting. Rules as for KVAppend.
func (c *Context) KVCopy(pages *PageCopy, launch *Launch) error {
	return c.enqueue(launch, pages.check, func(failure *C.sluice_error) C.sluice_status {
		return C.sluice_go_kv_copy(&c.state.device, c.state.handle, unsafe.Pointer(pages.c()),
			unsafe.Pointer(launch.c()), launch.dependencies(), failure)
	})
}

// Gather describes keys of a paged cache, to be gathered in contiguous rows. See sluice_gather in the header. Shapes
// are [page, row in page, head, dim] of caches and [1, row, head, dim] of outputs.
type Gather struct {
	Flags           ProblemFlags // PageIndex64, VInK (then there is only K), ZeroPoints or 0.
	CacheType       DType        // Type of the caches; required.
	OutType         DType        // Type of the outputs; required.
	KVHeads         int32        // Required.
	HeadDimQK       int32        // Elements of a row of K; required; a multiple of 8.
	HeadDimV        int32        // Elements of a row of V; required without VInK; a multiple of 8.
	PageSize        int32        // Rows per page; required.
	PageTableKind   PageTableKind
	KPack           int32         // Elements per pack of an x-packed KCache; 0: none.
	KScaleKind      ScaleKind     // As in PageCopy.
	VScaleKind      ScaleKind     // As KScaleKind.
	Batch           int32         // Sequences; with 0 there is nothing to do.
	Tokens          int32         // Rows of KOut and VOut; with 0 there is nothing to do.
	KCache          Tensor        // Where the keys are.
	VCache          Tensor        // Where the values are.
	KOut            Tensor        // Where the keys go.
	VOut            Tensor        // Where the values go.
	OutStarts       DevicePointer // int32 [batch + 1]: rows of the outputs before each sequence's first.
	KVLengths       DevicePointer // int32 [batch]: keys of each sequence in the cache.
	FirstKeys       DevicePointer // int32 [batch]: the first key to gather; 0: all from the first on.
	PageTable       DevicePointer // int32, or int64 with PageIndex64.
	PageTableStride int64         // PageTableBlock: entries from one sequence's first to the next one's; else 0.
	PageStarts      DevicePointer // PageTableCSR: int32 [batch + 1].
	KScale          DevicePointer // float32 [1] or [KVHeads].
	VScale          DevicePointer // float32 [1] or [KVHeads].

	// Arrays of scales have the shapes of Append's. Between equal types they are copied to those of the outputs, which
	// have a row for each row of KOut, [1, row, head, group]; a scale per page goes to each of its keys.

	KScales    Tensor // Of KCache: ScalePerToken, ScalePerPage, ScalePerGroup.
	VScales    Tensor // The same for V.
	KZeros     Tensor // Of KCache, with ZeroPoints: what is subtracted from its numbers, with the strides of KScales.
	VZeros     Tensor // The same for V.
	KOutScales Tensor // Where KScales go between equal types; else zero.
	VOutScales Tensor // The same for V.
	KOutZeros  Tensor // Where KZeros go between equal types; else zero.
	VOutZeros  Tensor // The same for V.
	ScaleGroup int32  // Elements of a group: 32 or 64 for ScalePerGroup, else 0.
}

// tensors are those of a gather, in the order of needs: first the cache's, which have pages.
func (g *Gather) tensors() [12]*Tensor {
	return [12]*Tensor{&g.KCache, &g.VCache, &g.KScales, &g.VScales, &g.KZeros, &g.VZeros,
		&g.KOut, &g.VOut, &g.KOutScales, &g.VOutScales, &g.KOutZeros, &g.VOutZeros}
}

// withPages is how many of a gather's tensors have pages.
const withPages = 6

// needs are the requirements on the tensors.
func (g *Gather) needs() [12]need {
	rows := func(field string, dim int32, what string) need {
		return need{field: field, dtype: g.OutType, extents: [4]extent{exactly(1, "batch of rows"),
			atLeast(int64(g.Tokens), "tokens"), exactly(g.KVHeads, "kv_heads"), exactly(dim, what)}}
	}
	kScales := func(field string) need {
		return scalesOfPages(field, g.KScaleKind, g.HeadDimQK, g.ScaleGroup, g.PageSize, g.KVHeads)
	}
	vScales := func(field string) need {
		return scalesOfPages(field, g.VScaleKind, g.HeadDimV, g.ScaleGroup, g.PageSize, g.KVHeads)
	}
	asRows := func(of need) need {
		of.extents[0], of.extents[1] = exactly(1, "batch of rows"), atLeast(int64(g.Tokens), "tokens")
		return of
	}
	return [12]need{
		pagesOf("k_cache", g.CacheType, g.PageSize, g.KVHeads, g.HeadDimQK, g.KPack, "head_dim_qk"),
		pagesOf("v_cache", g.CacheType, g.PageSize, g.KVHeads, g.HeadDimV, 0, "head_dim_v"),
		kScales("k_scales"), vScales("v_scales"), kScales("k_zeros"), vScales("v_zeros"),
		rows("k_out", g.HeadDimQK, "head_dim_qk"),
		rows("v_out", g.HeadDimV, "head_dim_v"),
		asRows(kScales("k_out_scales")), asRows(vScales("v_out_scales")), asRows(kScales("k_out_zeros")), asRows(vScales("v_out_zeros")),
	}
}

// check compares types and shapes; the library checks everything else.
func (g *Gather) check() error {
	if g == nil {
		return invalid("gather", "gather is nil; it must say which keys go where")
	}
	if hasNoRows(g.Tokens, g.Batch, true) {
		return nil
	}
	tensors, needs := g.tensors(), g.needs()
	return checkAll(tensors[:], needs[:])
}

func (g *Gather) c() *C.sluice_gather {
	made := (*C.sluice_gather)(unsafe.Pointer(new([C.sizeof_sluice_gather / 8]uint64)))
	made.struct_size = C.sizeof_sluice_gather
	made.flags = C.uint32_t(g.Flags)
	made.cache_type = C.uint32_t(g.CacheType)
	made.out_type = C.uint32_t(g.OutType)
	made.kv_heads = C.int32_t(g.KVHeads)
	made.head_dim_qk = C.int32_t(g.HeadDimQK)
	made.head_dim_v = C.int32_t(g.HeadDimV)
	made.page_size = C.int32_t(g.PageSize)
	made.page_table_kind = C.uint32_t(g.PageTableKind)
	made.k_pack = C.int32_t(g.KPack)
	made.k_scale_kind = C.uint32_t(g.KScaleKind)
	made.v_scale_kind = C.uint32_t(g.VScaleKind)
	made.batch = C.int32_t(g.Batch)
	made.tokens = C.int32_t(g.Tokens)
	g.KCache.put(&made.k_cache)
	g.VCache.put(&made.v_cache)
	g.KOut.putRows(&made.k_out)
	g.VOut.putRows(&made.v_out)
	put(unsafe.Pointer(&made.out_starts), g.OutStarts)
	put(unsafe.Pointer(&made.kv_lengths), g.KVLengths)
	put(unsafe.Pointer(&made.first_keys), g.FirstKeys)
	put(unsafe.Pointer(&made.page_table), g.PageTable)
	made.page_table_stride = C.int64_t(g.PageTableStride)
	put(unsafe.Pointer(&made.page_starts), g.PageStarts)
	put(unsafe.Pointer(&made.k_scale), g.KScale)
	put(unsafe.Pointer(&made.v_scale), g.VScale)
	g.KScales.put(&made.k_scales)
	g.VScales.put(&made.v_scales)
	g.KZeros.put(&made.k_zeros)
	g.VZeros.put(&made.v_zeros)
	g.KOutScales.putRows(&made.k_out_scales)
	g.VOutScales.putRows(&made.v_out_scales)
	g.KOutZeros.putRows(&made.k_out_zeros)
	g.VOutZeros.putRows(&made.v_out_zeros)
	made.scale_group = C.int32_t(g.ScaleGroup)
	tensors := g.tensors()
	made.page_count = fewestPages(tensors[:withPages])
	return made
}

// KVGather enqueues a gather of keys and returns without waiting. Rules as for KVAppend.
func (c *Context) KVGather(keys *Gather, launch *Launch) error {
	return c.enqueue(launch, keys.check, func(failure *C.sluice_error) C.sluice_status {
		return C.sluice_go_kv_gather(&c.state.device, c.state.handle, unsafe.Pointer(keys.c()),
			unsafe.Pointer(launch.c()), launch.dependencies(), failure)
	})
}
