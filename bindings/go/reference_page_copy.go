package sluice

// #include "calls.h"
import "C"

import "unsafe"

// HostPageCopy is PageCopy in the memory of the host, for ReferenceCopy. If Pairs and Pairs64 are nil, every page goes to
// itself; else one of them is given, depending on PageIndex64. As on a device, tensors begin at addresses that are
// multiples of 16, which larger slices do anyway.
type HostPageCopy struct {
	Flags         ProblemFlags
	SourceType    DType
	TargetType    DType
	KVHeads       int32
	HeadDimQK     int32
	HeadDimV      int32
	PageSize      int32
	SourceKPack   int32
	TargetKPack   int32
	KScaleKind    ScaleKind
	VScaleKind    ScaleKind
	KSource       HostTensor
	VSource       HostTensor
	KTarget       HostTensor // Written.
	VTarget       HostTensor // Written.
	Pairs         []int32    // [PairCount][2]
	Pairs64       []int64
	PairCount     int64
	KScale        []float32 // [1] or [KVHeads]
	VScale        []float32 // [1] or [KVHeads]
	KScales       HostTensor
	VScales       HostTensor
	KZeros        HostTensor
	VZeros        HostTensor
	KTargetScales HostTensor // Written.
	VTargetScales HostTensor // Written.
	KTargetZeros  HostTensor // Written.
	VTargetZeros  HostTensor // Written.
	ScaleGroup    int32
}

// ReferenceCopy copies pages on the host with plain loops: the reference for what KVCopy stores. Page numbers that are
// not below the number of pages are refused before anything is stored; pairs with negative numbers are skipped. Errors:
// InvalidArgument, Unsupported, NewerStruct, OutOfMemory.
func ReferenceCopy(pages *HostPageCopy) error {
	if pages == nil {
		return invalid("copy", "copy is nil; it must say which pages go where")
	}
	if err := pages.check(); err != nil {
		return err
	}
	failure := newError()
	return result(C.sluice_go_reference_copy(unsafe.Pointer(pages.c()), pages.KSource.bytes(), pages.VSource.bytes(),
		pages.KTarget.bytes(), pages.VTarget.bytes(), pages.pairsBytes(), floats(pages.KScale), floats(pages.VScale),
		pages.KScales.bytes(), pages.VScales.bytes(), pages.KZeros.bytes(), pages.VZeros.bytes(),
		pages.KTargetScales.bytes(), pages.VTargetScales.bytes(), pages.KTargetZeros.bytes(), pages.VTargetZeros.bytes(),
		failure), failure)
}

// tensors are those of a copy, in the order of PageCopy.needs.
func (p *HostPageCopy) tensors() [12]*HostTensor {
	return [12]*HostTensor{&p.KSource, &p.VSource, &p.KTarget, &p.VTarget, &p.KScales, &p.VScales, &p.KZeros, &p.VZeros,
		&p.KTargetScales, &p.VTargetScales, &p.KTargetZeros, &p.VTargetZeros}
}

func (p *HostPageCopy) pairs() *hostTable {
	return &hostTable{field: "pairs", numbers32: p.Pairs, numbers64: p.Pairs64}
}

// hasNoPairs says whether there is a list, but nothing in it.
func (p *HostPageCopy) hasNoPairs() bool {
	return (p.Pairs != nil || p.Pairs64 != nil) && len(p.Pairs)+len(p.Pairs64) == 0 && p.PairCount == 0
}

// pairsBytes is the address of the pairs: not nil for a list without any.
func (p *HostPageCopy) pairsBytes() *C.uint8_t {
	if p.hasNoPairs() {
		return (*C.uint8_t)(unsafe.Pointer(new(int64)))
	}
	return p.pairs().bytes()
}

// without is the copy without its memory.
func (p *HostPageCopy) without() *PageCopy {
	return &PageCopy{Flags: p.Flags, SourceType: p.SourceType, TargetType: p.TargetType, KVHeads: p.KVHeads,
		HeadDimQK: p.HeadDimQK, HeadDimV: p.HeadDimV, PageSize: p.PageSize, SourceKPack: p.SourceKPack,
		TargetKPack: p.TargetKPack, KScaleKind: p.KScaleKind, VScaleKind: p.VScaleKind,
		KSource: Tensor{View: p.KSource.View}, VSource: Tensor{View: p.VSource.View}, KTarget: Tensor{View: p.KTarget.View},
		VTarget: Tensor{View: p.VTarget.View}, PairCount: p.PairCount,
		KScales: Tensor{View: p.KScales.View}, VScales: Tensor{View: p.VScales.View},
		KZeros: Tensor{View: p.KZeros.View}, VZeros: Tensor{View: p.VZeros.View},
		KTargetScales: Tensor{View: p.KTargetScales.View}, VTargetScales: Tensor{View: p.VTargetScales.View},
		KTargetZeros: Tensor{View: p.KTargetZeros.View}, VTargetZeros: Tensor{View: p.VTargetZeros.View},
		ScaleGroup: p.ScaleGroup}
}

// c leaves out all pointers, which C gets separately.
func (p *HostPageCopy) c() *C.sluice_page_copy {
	made := p.without().c()
	tensors := p.tensors()
	made.page_count = fewestPages(tensors[:])
	return made
}

// check makes sure that the library stays within the slices.
func (p *HostPageCopy) check() error {
	if p.hasNoPairs() {
		return nil
	}
	needs := p.without().needs()
	for i, tensor := range p.tensors() {
		if err := tensor.check(&needs[i]); err != nil {
			return err
		}
	}
	pairs := p.pairs()
	if err := pairs.checkWidth(p.Flags); err != nil {
		return err
	}
	return checkArrays([]arrayNeed{
		// -1 for a count that the library refuses.
		{"pairs", elements(p.PairCount, 2), int64(len(p.Pairs) + len(p.Pairs64)), "numbers of pair_count pairs"},
		{"k_scale", perHead(p.KScaleKind, p.KVHeads), int64(len(p.KScale)), "number of scales"},
		{"v_scale", perHead(p.VScaleKind, p.KVHeads), int64(len(p.VScale)), "number of scales"},
	})
}

// HostGather is Gather in the memory of the host, for ReferenceGather. One of PageTable and PageTable64 is given,
// depending on PageIndex64. As on a device, tensors begin at addresses that are multiples of 16.
type HostGather struct {
	Flags           ProblemFlags
	CacheType       DType
	OutType         DType
	KVHeads         int32
	HeadDimQK       int32
	HeadDimV        int32
	PageSize        int32
	PageTableKind   PageTableKind
	KPack           int32
	KScaleKind      ScaleKind
	VScaleKind      ScaleKind
	Batch           int32
	Tokens          int32
	KCache          HostTensor
	VCache          HostTensor
	KOut            HostTensor // Written.
	VOut            HostTensor // Written.
	OutStarts       []int32    // [batch + 1]
	KVLengths       []int32    // [batch]
	FirstKeys       []int32    // [batch], or nil
	PageTable       []int32
	PageTable64     []int64
	PageTableStride int64
	PageStarts      []int32   // [batch + 1]
	KScale          []float32 // [1] or [KVHeads]
	VScale          []float32 // [1] or [KVHeads]
	KScales         HostTensor
	VScales         HostTensor
	KZeros          HostTensor
	VZeros          HostTensor
	KOutScales      HostTensor // Written.
	VOutScales      HostTensor // Written.
	KOutZeros       HostTensor // Written.
	VOutZeros       HostTensor // Written.
	ScaleGroup      int32
}

// ReferenceGather gathers keys on the host with plain loops: the reference for what KVGather stores. Contents are
// checked before anything is stored, and so is the size of every slice against what the call reads; what a device would
// read as zeros or leave out is refused. Errors: InvalidArgument, Unsupported, NewerStruct, OutOfMemory.
func ReferenceGather(keys *HostGather) error {
	if keys == nil {
		return invalid("gather", "gather is nil; it must say which keys go where")
	}
	if err := keys.check(); err != nil {
		return err
	}
	failure := newError()
	return result(C.sluice_go_reference_gather(unsafe.Pointer(keys.c()), keys.KCache.bytes(), keys.VCache.bytes(),
		keys.KOut.bytes(), keys.VOut.bytes(), int32s(keys.OutStarts), int32s(keys.KVLengths), int32s(keys.FirstKeys),
		keys.table().bytes(), int32s(keys.PageStarts), floats(keys.KScale), floats(keys.VScale),
		keys.KScales.bytes(), keys.VScales.bytes(), keys.KZeros.bytes(), keys.VZeros.bytes(),
		keys.KOutScales.bytes(), keys.VOutScales.bytes(), keys.KOutZeros.bytes(), keys.VOutZeros.bytes(), failure), failure)
}

// tensors are those of a gather, in the order of Gather.needs.
func (g *HostGather) tensors() [12]*HostTensor {
	return [12]*HostTensor{&g.KCache, &g.VCache, &g.KScales, &g.VScales, &g.KZeros, &g.VZeros,
		&g.KOut, &g.VOut, &g.KOutScales, &g.VOutScales, &g.KOutZeros, &g.VOutZeros}
}

func (g *HostGather) table() *hostTable {
	return &hostTable{field: "page_table", owner: "sequence", numbers32: g.PageTable, numbers64: g.PageTable64,
		stride: g.PageTableStride, csr: g.PageTableKind == PageTableCSR, starts: g.PageStarts}
}

// without is the gather without its memory.
func (g *HostGather) without() *Gather {
	return &Gather{Flags: g.Flags, CacheType: g.CacheType, OutType: g.OutType, KVHeads: g.KVHeads, HeadDimQK: g.HeadDimQK,
		HeadDimV: g.HeadDimV, PageSize: g.PageSize, PageTableKind: g.PageTableKind, KPack: g.KPack, KScaleKind: g.KScaleKind,
		VScaleKind: g.VScaleKind, Batch: g.Batch, Tokens: g.Tokens, KCache: Tensor{View: g.KCache.View},
		VCache: Tensor{View: g.VCache.View}, KOut: Tensor{View: g.KOut.View}, VOut: Tensor{View: g.VOut.View},
		PageTableStride: g.PageTableStride,
		KScales:         Tensor{View: g.KScales.View}, VScales: Tensor{View: g.VScales.View},
		KZeros: Tensor{View: g.KZeros.View}, VZeros: Tensor{View: g.VZeros.View},
		KOutScales: Tensor{View: g.KOutScales.View}, VOutScales: Tensor{View: g.VOutScales.View},
		KOutZeros: Tensor{View: g.KOutZeros.View}, VOutZeros: Tensor{View: g.VOutZeros.View},
		ScaleGroup: g.ScaleGroup}
}

// c leaves out all pointers, which C gets separately.
func (g *HostGather) c() *C.sluice_gather {
	made := g.without().c()
	tensors := g.tensors()
	made.page_count = fewestPages(tensors[:withPages])
	return made
}

// check makes sure that the library stays within the slices. It does not repeat checks that the library makes before it
// uses a value.
func (g *HostGather) check() error {
	if hasNoRows(g.Tokens, g.Batch, true) {
		return nil
	}
	needs := g.without().needs()
	for i, tensor := range g.tensors() {
		if err := tensor.check(&needs[i]); err != nil {
			return err
		}
	}
	batch := int64(g.Batch)
	if err := checkArrays([]arrayNeed{
		{"out_starts", batch + 1, int64(len(g.OutStarts)), "batch + 1"},
		{"kv_lengths", batch, int64(len(g.KVLengths)), "batch"},
		{"first_keys", batch, int64(len(g.FirstKeys)), "batch"},
		{"page_starts", batch + 1, int64(len(g.PageStarts)), "batch + 1"},
		{"k_scale", perHead(g.KScaleKind, g.KVHeads), int64(len(g.KScale)), "number of scales"},
		{"v_scale", perHead(g.VScaleKind, g.KVHeads), int64(len(g.VScale)), "number of scales"},
	}); err != nil {
		return err
	}
	return g.table().checkPages(&Problem{Flags: g.Flags, PageSize: g.PageSize}, g.KVLengths, batch)
}
