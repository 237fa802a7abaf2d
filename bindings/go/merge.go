package sluice

// #include "calls.h"
import "C"

import "unsafe"

// MergeFlags are the flags of a merge.
type MergeFlags uint32

// MergeInfinityIsEmpty: an LSE of +Inf in PartialLSE also marks a part that does not count, as in FlashAttention's
// results for rows without keys.
const MergeInfinityIsEmpty MergeFlags = C.SLUICE_MERGE_INFINITY_IS_EMPTY

// Merge describes results of attention over splits of the keys, to be merged into one. See sluice_merge in the header
// for the formula. Shapes are [part, token, head, dim] of parts and [1, token, head, dim] of the result; of LSEs the
// last index is 1, and with SequenceTokens the tokens are those of a sequence. With PartialList, each part has a
// pointer of its own, and Partial and PartialLSE have no Data.
type Merge struct {
	Flags       MergeFlags
	PartialType DType         // F32, F16 or BF16; required.
	OType       DType         // F16, BF16, F32 or E4M3FNUZ; required.
	Parts       int32         // At least 1.
	Tokens      int32         // With 0 there is nothing to do.
	Heads       int32         // At least 1.
	HeadDimV    int32         // A multiple of 8.
	LSEBase     LSEBase       // Of PartialLSE and LSE.
	Partial     Tensor        // Normalised results of the parts.
	PartialLSE  Tensor        // F32.
	O           Tensor        // Result.
	LSE         Tensor        // F32; zero if LSE is not wanted.
	SinkLogits  DevicePointer // float32 [Heads], to base e, or 0: counted once.

	PartialList              []DevicePointer // [Parts], at most 16, or nil.
	PartialLSEList           []DevicePointer // The same for PartialLSE.
	PartialLSESequenceStride int64           // Elements from a sequence's first token to the next one's.
	LSESequenceStride        int64           // The same for LSE.
	SequenceTokens           int32           // Tokens of each sequence; 0: all are of one.
	OScaleKind               ScaleKind       // ScaleNone, ScalePerTensor or ScalePerHead.
	OScale                   DevicePointer   // float32 [1] or [Heads], of E4M3FNUZ results.
}

// check compares types and shapes; the library checks everything else.
func (m *Merge) check() error {
	if m == nil {
		return invalid("merge", "merge is nil; it must say which parts become one")
	}
	of := func(field string, dtype DType, first extent, dim extent) need {
		return need{field: field, dtype: dtype,
			extents: [4]extent{first, atLeast(int64(m.Tokens), "tokens"), exactly(m.Heads, "heads"), dim}}
	}
	dim, number := exactly(m.HeadDimV, "head_dim_v"), exactly(1, "value of a row and head")
	parts, whole := atLeast(int64(m.Parts), "parts"), exactly(1, "result")
	partial, partialLSE := of("partial", m.PartialType, parts, dim), of("partial_lse", F32, parts, number)
	o, lse := of("o", m.OType, whole, dim), of("lse", F32, whole, number)
	if m.SequenceTokens != 0 {
		sequence := atLeast(int64(m.SequenceTokens), "sequence_tokens")
		partialLSE.extents[1], lse.extents[1] = sequence, sequence
	}
	for _, list := range []struct {
		field string
		parts []DevicePointer
	}{{"partial_list", m.PartialList}, {"partial_lse_list", m.PartialLSEList}} {
		if list.parts != nil && len(list.parts) != int(m.Parts) {
			return invalid(list.field, "%s has %d parts; it must have %d (parts)", list.field, len(list.parts), m.Parts)
		}
	}
	if m.Tokens == 0 {
		return nil
	}
	return checkTensors(tensorNeed{&m.Partial, &partial}, tensorNeed{&m.PartialLSE, &partialLSE}, tensorNeed{&m.O, &o},
		tensorNeed{&m.LSE, &lse})
}

func (m *Merge) c() *C.sluice_merge {
	made := (*C.sluice_merge)(unsafe.Pointer(new([C.sizeof_sluice_merge / 8]uint64)))
	made.struct_size = C.sizeof_sluice_merge
	made.partial_type = C.uint32_t(m.PartialType)
	made.o_type = C.uint32_t(m.OType)
	made.parts = C.int32_t(m.Parts)
	made.tokens = C.int32_t(m.Tokens)
	made.heads = C.int32_t(m.Heads)
	made.head_dim_v = C.int32_t(m.HeadDimV)
	made.lse_base = C.uint32_t(m.LSEBase)
	m.Partial.put(&made.partial)
	m.PartialLSE.put(&made.partial_lse)
	m.O.putRows(&made.o)
	m.LSE.putRows(&made.lse)
	put(unsafe.Pointer(&made.sink_logits), m.SinkLogits)
	made.flags = C.uint32_t(m.Flags)
	made.partial_lse_sequence_stride = C.int64_t(m.PartialLSESequenceStride)
	made.lse_sequence_stride = C.int64_t(m.LSESequenceStride)
	made.sequence_tokens = C.int32_t(m.SequenceTokens)
	made.o_scale_kind = C.uint32_t(m.OScaleKind)
	put(unsafe.Pointer(&made.o_scale), m.OScale)
	return made
}

// list is an array of pointers, which C gets separately.
func list(parts []DevicePointer) unsafe.Pointer {
	if len(parts) == 0 {
		return nil
	}
	return unsafe.Pointer(&parts[0])
}

// MergeStates enqueues a merge and returns without waiting. Rules as for KVAppend.
func (c *Context) MergeStates(merge *Merge, launch *Launch) error {
	return c.enqueue(launch, merge.check, func(failure *C.sluice_error) C.sluice_status {
		return C.sluice_go_merge_states(&c.state.device, c.state.handle, unsafe.Pointer(merge.c()),
			list(merge.PartialList), list(merge.PartialLSEList), unsafe.Pointer(launch.c()), launch.dependencies(), failure)
	})
}
