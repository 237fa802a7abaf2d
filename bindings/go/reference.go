package sluice

// #include "calls.h"
import "C"

import (
	"fmt"
	"math"
	"unsafe"
)

// HostTensor is a tensor in a slice. One that a call does not have is all zero.
type HostTensor struct {
	View
	memory unsafe.Pointer // nil if there is no slice
	size   int64          // of an element of the slice
	count  int64          // of elements
}

// HostElement is what slices of tensors hold: the bits of 8-bit and 16-bit floats, and float32.
type HostElement interface{ ~uint8 | ~uint16 | ~float32 }

// OnHost is the tensor in `values` that `view` describes. Whether the view's type has elements of that size, and the
// slice enough of them, is checked by the call.
func OnHost[T HostElement](values []T, view View) HostTensor {
	var element T
	tensor := HostTensor{View: view, size: int64(unsafe.Sizeof(element)), count: int64(len(values))}
	if len(values) > 0 {
		tensor.memory = unsafe.Pointer(&values[0])
	}
	return tensor
}

func (t *HostTensor) bytes() *C.uint8_t { return (*C.uint8_t)(t.memory) }

func (t *HostTensor) check(n *need) error {
	if t.memory == nil {
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
	if count > t.count {
		return invalid(n.field+".data", "%s.data has %d elements; shape and strides reach %d", n.field, t.count, count)
	}
	return nil
}

// HostArgs is Args in the memory of the host, for Reference. Of PageTable and PageTable64 one is given, by PageIndex64.
type HostArgs struct {
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

	Bias        HostTensor
	Mask        HostTensor
	AlibiSlopes []float32 // [QHeads]
	SinkLogits  []float32 // [QHeads]
	QScale      []float32 // [1] or [QHeads]
	KScale      []float32 // [1] or [KVHeads]
	VScale      []float32 // [1] or [KVHeads]
}

// Reference computes a call on the host with plain loops in double precision: the yardstick for results, never chosen
// silently. It computes what Problem and Args describe, of any types in any mixture, and any strides. Lengths, starts
// and page numbers are checked like all else, and every slice against what the call reads of it. Errors:
// InvalidArgument, Unsupported, NewerStruct, OutOfMemory.
func Reference(problem *Problem, args *HostArgs) error {
	if problem == nil {
		return invalid("problem", "problem is nil; it says what to compute")
	}
	if args == nil {
		return invalid("args", "args is nil; a call needs tensors and lengths")
	}
	if err := args.check(problem); err != nil {
		return err
	}
	failure := newError()
	return result(C.sluice_go_reference(problem.c(), unsafe.Pointer(args.c()),
		args.Q.bytes(), args.K.bytes(), args.V.bytes(), args.O.bytes(), args.LSE.bytes(), args.Bias.bytes(), args.Mask.bytes(),
		int32s(args.QStarts), int32s(args.KVStarts), int32s(args.QLengths), int32s(args.KVLengths),
		args.pageTable(), int32s(args.PageStarts),
		floats(args.AlibiSlopes), floats(args.SinkLogits), floats(args.QScale), floats(args.KScale), floats(args.VScale),
		failure), failure)
}

func int32s(values []int32) *C.int32_t {
	if len(values) == 0 {
		return nil
	}
	return (*C.int32_t)(&values[0])
}

func floats(values []float32) *C.float {
	if len(values) == 0 {
		return nil
	}
	return (*C.float)(&values[0])
}

func (a *HostArgs) pageTable() *C.uint8_t {
	if len(a.PageTable) > 0 {
		return (*C.uint8_t)(unsafe.Pointer(&a.PageTable[0]))
	}
	if len(a.PageTable64) > 0 {
		return (*C.uint8_t)(unsafe.Pointer(&a.PageTable64[0]))
	}
	return nil
}

func (a *HostArgs) numbers() *callNumbers {
	return &callNumbers{batch: a.Batch, qLen: a.QLen, kvLen: a.KVLen, scale: a.Scale,
		pageTableStride: a.PageTableStride, packedQ: len(a.QStarts) > 0, packedKV: len(a.KVStarts) > 0}
}

// c lacks all pointers, which C gets by themselves.
func (a *HostArgs) c() *C.sluice_args {
	numbers := a.numbers()
	made := numbers.c()
	ofRows, ofKeys := numbers.putting()
	strides := func(put func(*Tensor, *C.sluice_tensor), tensor *HostTensor, to *C.sluice_tensor) {
		put(&Tensor{View: tensor.View}, to)
	}
	strides(ofRows, &a.Q, &made.q)
	strides(ofKeys, &a.K, &made.k)
	strides(ofKeys, &a.V, &made.v)
	strides(ofRows, &a.O, &made.o)
	strides(ofRows, &a.LSE, &made.lse)
	strides((*Tensor).put, &a.Bias, &made.bias)
	strides((*Tensor).put, &a.Mask, &made.mask)
	return made
}

// check makes sure that the library stays within the slices. Where it checks a value itself before it reads by it, that
// is left to it.
func (a *HostArgs) check(p *Problem) error {
	needs := a.numbers().needs(p)
	for _, pair := range []struct {
		tensor *HostTensor
		need   *need
	}{{&a.Q, &needs.q}, {&a.K, &needs.k}, {&a.V, &needs.v}, {&a.O, &needs.o}, {&a.LSE, &needs.lse},
		{&a.Bias, &needs.bias}, {&a.Mask, &needs.mask}} {
		if err := pair.tensor.check(pair.need); err != nil {
			return err
		}
	}
	if a.Batch < 1 {
		return nil // refused by the library before it reads
	}
	batch := int64(a.Batch)
	perHead := func(kind ScaleKind, heads int32) int64 {
		if kind == ScalePerHead {
			return int64(heads)
		}
		return 1
	}
	for _, array := range []struct {
		field       string
		length, has int64
		what        string
	}{
		{"q_starts", batch + 1, int64(len(a.QStarts)), "batch + 1"},
		{"kv_starts", batch + 1, int64(len(a.KVStarts)), "batch + 1"},
		{"q_lengths", batch, int64(len(a.QLengths)), "batch"},
		{"kv_lengths", batch, int64(len(a.KVLengths)), "batch"},
		{"page_starts", batch + 1, int64(len(a.PageStarts)), "batch + 1"},
		{"alibi_slopes", int64(p.QHeads), int64(len(a.AlibiSlopes)), "q_heads"},
		{"sink_logits", int64(p.QHeads), int64(len(a.SinkLogits)), "q_heads"},
		{"q_scale", perHead(p.QScaleKind, p.QHeads), int64(len(a.QScale)), "number of factors"},
		{"k_scale", perHead(p.KScaleKind, p.KVHeads), int64(len(a.KScale)), "number of factors"},
		{"v_scale", perHead(p.VScaleKind, p.KVHeads), int64(len(a.VScale)), "number of factors"},
	} {
		if array.has != 0 && array.has < array.length {
			return invalid(array.field, "%s has %d elements; it must have %d, the %s", array.field, array.has, array.length,
				array.what)
		}
	}
	for _, rows := range []struct {
		field  string
		starts []int32
		tensor *HostTensor
		name   string
	}{
		{"q_starts", a.QStarts, &a.Q, "q"}, {"q_starts", a.QStarts, &a.O, "o"}, {"q_starts", a.QStarts, &a.LSE, "lse"},
		{"kv_starts", a.KVStarts, &a.K, "k"}, {"kv_starts", a.KVStarts, &a.V, "v"},
	} {
		if err := withinRows(rows.field, rows.starts, batch, rows.tensor, rows.name); err != nil {
			return err
		}
	}
	if p.Mode == ModePaged {
		return a.checkPages(p)
	}
	return nil
}

// withinRows leaves a tensor that is not there to the library, which says so.
func withinRows(field string, starts []int32, batch int64, tensor *HostTensor, name string) error {
	if len(starts) == 0 || tensor.memory == nil {
		return nil
	}
	for i, start := range starts[:batch+1] {
		if rows := tensor.Shape[1]; int64(start) > rows {
			return invalid(index(field, i), "%s is %d; there are %d rows of %s", index(field, i), start, rows, name)
		}
	}
	return nil
}

// checkPages follows the page tables as the library will: each entry that is needed is there, and names a page of K and V.
func (a *HostArgs) checkPages(p *Problem) error {
	entries := int64(len(a.PageTable))
	entry := func(i int64) int64 { return int64(a.PageTable[i]) }
	if p.Flags&PageIndex64 != 0 {
		entries = int64(len(a.PageTable64))
		entry = func(i int64) int64 { return a.PageTable64[i] }
	}
	if (len(a.PageTable) > 0 && p.Flags&PageIndex64 != 0) || (len(a.PageTable64) > 0 && p.Flags&PageIndex64 == 0) {
		return invalid("page_table", "page_table has %d numbers of 32 bits and %d of 64; the flag SLUICE_PAGE_INDEX_64 says "+
			"which there must be", len(a.PageTable), len(a.PageTable64))
	}
	if entries == 0 || len(a.KVLengths) == 0 || p.PageSize < 1 || a.PageTableStride < 0 {
		return nil // refused by the library before it reads
	}
	csr := p.PageTableKind == PageTableCSR
	if csr && len(a.PageStarts) == 0 {
		return nil // likewise
	}
	pages := int64(math.MaxInt64)
	for _, cache := range []*HostTensor{&a.K, &a.V} {
		if cache.memory != nil && cache.Shape[0] < pages {
			pages = cache.Shape[0]
		}
	}
	for b := int64(0); b < int64(a.Batch); b++ {
		first := elements(b, a.PageTableStride)
		if csr {
			first = int64(a.PageStarts[b])
		}
		needed := (int64(a.KVLengths[b]) + int64(p.PageSize) - 1) / int64(p.PageSize)
		if needed <= 0 {
			continue
		}
		if first < 0 || first > entries-needed {
			return invalid("page_table", "page_table has %d entries; sequence %d needs %d from entry %d on", entries, b, needed,
				first)
		}
		for i := first; i < first+needed; i++ {
			if entry(i) >= pages {
				field := fmt.Sprintf("page_table[%d]", i)
				return invalid(field, "%s is %d; there are %d pages", field, entry(i), pages)
			}
		}
	}
	return nil
}
