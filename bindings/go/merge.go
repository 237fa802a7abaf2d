package sluice

// #include "calls.h"
import "C"

import "unsafe"

// Merge describes results of attention over parts of the keys, to be merged into one. See sluice_merge in the header
// for the formula. Shapes are [part, token, head, dim] of parts and [1, token, head, dim] of the result; of LSEs the
// last index is 1.
type Merge struct {
	PartialType DType         // F32, F16 or BF16; required.
	OType       DType         // F16 or BF16, or F32; required.
	Parts       int32         // At least 1.
	Tokens      int32         // At least 1.
	Heads       int32         // At least 1.
	HeadDimV    int32         // A multiple of 8.
	LSEBase     LSEBase       // Of PartialLSE and LSE.
	Partial     Tensor        // Normalised results of the parts.
	PartialLSE  Tensor        // F32.
	O           Tensor        // Result.
	LSE         Tensor        // F32; zero if LSE is not wanted.
	SinkLogits  DevicePointer // float32 [Heads], to base e, or 0: counted once.
}

// check compares types and shapes; the library checks everything else.
func (m *Merge) check() error {
	of := func(field string, dtype DType, first extent, dim extent) need {
		return need{field: field, dtype: dtype,
			extents: [4]extent{first, atLeast(int64(m.Tokens), "tokens"), exactly(m.Heads, "heads"), dim}}
	}
	dim, number := exactly(m.HeadDimV, "head_dim_v"), exactly(1, "value of a row and head")
	parts, whole := atLeast(int64(m.Parts), "parts"), exactly(1, "result")
	partial, partialLSE := of("partial", m.PartialType, parts, dim), of("partial_lse", F32, parts, number)
	o, lse := of("o", m.OType, whole, dim), of("lse", F32, whole, number)
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
	return made
}

// MergeStates enqueues a merge and returns without waiting. Rules as for KVAppend.
func (c *Context) MergeStates(merge *Merge, launch *Launch) error {
	release, err := c.use()
	if err != nil {
		return err
	}
	defer release()
	if merge == nil {
		return invalid("merge", "merge is nil; it must say which parts become one")
	}
	if err := merge.check(); err != nil {
		return err
	}
	if err := launch.check(); err != nil {
		return err
	}
	c.object.enqueued.Store(true)
	defer c.state.noteCapture(c.object, launch)
	failure := newError()
	return result(C.sluice_go_merge_states(&c.state.device, c.state.handle, unsafe.Pointer(merge.c()),
		unsafe.Pointer(launch.c()), launch.dependencies(), failure), failure)
}
