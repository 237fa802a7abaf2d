// Written by bindings/generate/go.py from bindings/abi.json. DO NOT EDIT.

package sluice

// #include <sluice/sluice.h>
import "C"

import "unsafe"

// The library's structs are at least as large as those that this package was written for.
var (
	_ [C.sizeof_sluice_error - 512]struct{}
	_ [C.sizeof_sluice_tensor - 40]struct{}
	_ [C.sizeof_sluice_build - 280]struct{}
	_ [C.sizeof_sluice_context_desc - 56]struct{}
	_ [C.sizeof_sluice_device_info - 416]struct{}
	_ [C.sizeof_sluice_dependency - 24]struct{}
	_ [C.sizeof_sluice_launch - 48]struct{}
	_ [C.sizeof_sluice_format - 24]struct{}
	_ [C.sizeof_sluice_kv_format - 80]struct{}
	_ [C.sizeof_sluice_kv_scales - 168]struct{}
	_ [C.sizeof_sluice_kv - 112]struct{}
	_ [C.sizeof_sluice_rows - 32]struct{}
	_ [C.sizeof_sluice_pages - 32]struct{}
	_ [C.sizeof_sluice_keys - 88]struct{}
	_ [C.sizeof_sluice_mask - 24]struct{}
	_ [C.sizeof_sluice_mask_args - 80]struct{}
	_ [C.sizeof_sluice_scores - 16]struct{}
	_ [C.sizeof_sluice_scores_args - 88]struct{}
	_ [C.sizeof_sluice_bounds - 32]struct{}
	_ [C.sizeof_sluice_attention - 128]struct{}
	_ [C.sizeof_sluice_support - 120]struct{}
	_ [C.sizeof_sluice_plan_info - 360]struct{}
	_ [C.sizeof_sluice_kernel_info - 632]struct{}
	_ [C.sizeof_sluice_attention_args - 184]struct{}
	_ [C.sizeof_sluice_rotation - 48]struct{}
	_ [C.sizeof_sluice_norm - 24]struct{}
	_ [C.sizeof_sluice_append_q - 136]struct{}
	_ [C.sizeof_sluice_append_args - 240]struct{}
	_ [C.sizeof_sluice_copy_args - 40]struct{}
	_ [C.sizeof_sluice_gather_args - 88]struct{}
	_ [C.sizeof_sluice_parts - 112]struct{}
	_ [C.sizeof_sluice_merge_args - 272]struct{}
	_ [C.sizeof_sluice_trace_record - 64]struct{}
	_ [C.sizeof_sluice_counters - 56]struct{}
)

func (from *Tensor) fill(to *C.sluice_tensor, in *memory) {
	put(unsafe.Pointer(&to.data), from.Data)
	for i, number := range from.Stride {
		to.stride[i] = C.int64_t(number)
	}
}

func (from *Dependency) fill(to *C.sluice_dependency, in *memory) {
	to.kind = C.uint32_t(from.Kind)
	put(unsafe.Pointer(&to.event), DevicePointer(from.Event))
	put(unsafe.Pointer(&to.stream), DevicePointer(from.Stream))
}

func (from *Launch) fill(to *C.sluice_launch, in *memory) {
	to.struct_size = C.sizeof_sluice_launch
	put(unsafe.Pointer(&to.stream), DevicePointer(from.Stream))
	put(unsafe.Pointer(&to.workspace), from.Workspace)
	to.workspace_bytes = C.uint64_t(from.WorkspaceBytes)
	to.dependency_count = C.uint32_t(len(from.Dependencies))
	if all := take[C.sluice_dependency](in, len(from.Dependencies)); all != nil {
		for i := range from.Dependencies {
			from.Dependencies[i].fill(&all[i], in)
		}
		to.dependencies = &all[0]
	}
	put(unsafe.Pointer(&to.signal_event), DevicePointer(from.SignalEvent))
}

func (from *Format) fill(to *C.sluice_format, in *memory) {
	to._type = C.uint32_t(from.Type)
	to.scale_kind = C.uint32_t(from.ScaleKind)
	to.scale_group = C.int32_t(from.ScaleGroup)
	if from.ZeroPoints {
		to.zero_points = 1
	}
	to.pack = C.int32_t(from.Pack)
}

func (from *KVFormat) fill(to *C.sluice_kv_format, in *memory) {
	to.struct_size = C.sizeof_sluice_kv_format
	to.flags = C.uint32_t(from.Flags)
	to.kv_heads = C.int32_t(from.KVHeads)
	to.head_dim_qk = C.int32_t(from.HeadDimQK)
	to.head_dim_v = C.int32_t(from.HeadDimV)
	to.page_size = C.int32_t(from.PageSize)
	to.page_table = C.uint32_t(from.PageTable)
	from.K.fill(&to.k, in)
	from.V.fill(&to.v, in)
}

func (from *KVScales) fill(to *C.sluice_kv_scales, in *memory) {
	to.struct_size = C.sizeof_sluice_kv_scales
	from.K.fill(&to.k, in)
	from.V.fill(&to.v, in)
	from.KZeros.fill(&to.k_zeros, in)
	from.VZeros.fill(&to.v_zeros, in)
}

func (from *KV) fill(to *C.sluice_kv, in *memory) {
	to.struct_size = C.sizeof_sluice_kv
	to.format = pointer[C.sluice_kv_format](in, from.Format)
	from.K.fill(&to.k, in)
	from.V.fill(&to.v, in)
	to.scales = pointer[C.sluice_kv_scales](in, from.Scales)
	to.page_count = C.int64_t(from.PageCount)
}

func (from *Rows) fill(to *C.sluice_rows, in *memory) {
	to.max_len = C.int32_t(from.MaxLen)
	put(unsafe.Pointer(&to.starts), from.Starts)
	put(unsafe.Pointer(&to.lengths), from.Lengths)
	to.total = C.int64_t(from.Total)
}

func (from *Pages) fill(to *C.sluice_pages, in *memory) {
	put(unsafe.Pointer(&to.table), from.Table)
	put(unsafe.Pointer(&to.starts), from.Starts)
	to.stride = C.int64_t(from.Stride)
	to.head_stride = C.int64_t(from.HeadStride)
}

func (from *Keys) fill(to *C.sluice_keys, in *memory) {
	to.struct_size = C.sizeof_sluice_keys
	to.groups = C.int32_t(from.Groups)
	put(unsafe.Pointer(&to.group_starts), from.GroupStarts)
	to.kv = pointer[C.sluice_kv](in, from.KV)
	from.Rows.fill(&to.rows, in)
	from.Pages.fill(&to.pages, in)
}

func (from *Mask) fill(to *C.sluice_mask, in *memory) {
	to.struct_size = C.sizeof_sluice_mask
	to.flags = C.uint32_t(from.Flags)
	to.alignment = C.uint32_t(from.Alignment)
	to.window_left = C.int32_t(from.WindowLeft)
	to.window_right = C.int32_t(from.WindowRight)
	to.sink_tokens = C.int32_t(from.SinkTokens)
}

func (from *MaskArgs) fill(to *C.sluice_mask_args, in *memory) {
	to.struct_size = C.sizeof_sluice_mask_args
	from.Bits.fill(&to.bits, in)
	put(unsafe.Pointer(&to.spans), from.Spans)
	to.span_count = C.int64_t(from.SpanCount)
	put(unsafe.Pointer(&to.diagonals), from.Diagonals)
	put(unsafe.Pointer(&to.causal), from.Causal)
}

func (from *Scores) fill(to *C.sluice_scores, in *memory) {
	to.struct_size = C.sizeof_sluice_scores
	to.flags = C.uint32_t(from.Flags)
	to.soft_cap = C.float(from.SoftCap)
	to.bias_type = C.uint32_t(from.BiasType)
}

func (from *ScoresArgs) fill(to *C.sluice_scores_args, in *memory) {
	to.struct_size = C.sizeof_sluice_scores_args
	from.Bias.fill(&to.bias, in)
	put(unsafe.Pointer(&to.bias_scale), from.BiasScale)
	to.bias_scale_stride = C.int64_t(from.BiasScaleStride)
	put(unsafe.Pointer(&to.alibi_slopes), from.AlibiSlopes)
	to.alibi_stride = C.int64_t(from.AlibiStride)
	put(unsafe.Pointer(&to.sinks), from.Sinks)
}

func (from *Bounds) fill(to *C.sluice_bounds, in *memory) {
	to.batch = C.int32_t(from.Batch)
	to.q_len = C.int32_t(from.QLen)
	to.kv_len = C.int32_t(from.KVLen)
	to.groups = C.int32_t(from.Groups)
	to.group_keys = C.int32_t(from.GroupKeys)
	to.q_rows = C.int64_t(from.QRows)
}

func (from *Attention) fill(to *C.sluice_attention, in *memory) {
	to.struct_size = C.sizeof_sluice_attention
	to.flags = C.uint32_t(from.Flags)
	to.q_heads = C.int32_t(from.QHeads)
	to.lse = C.uint32_t(from.LSE)
	from.Q.fill(&to.q, in)
	from.O.fill(&to.o, in)
	to.kv = pointer[C.sluice_kv_format](in, from.KV)
	to.mask = pointer[C.sluice_mask](in, from.Mask)
	to.scores = pointer[C.sluice_scores](in, from.Scores)
	from.Bounds.fill(&to.bounds, in)
	to.workspace_ceiling_bytes = C.uint64_t(from.WorkspaceCeilingBytes)
}

func (from *Args) fill(to *C.sluice_attention_args, in *memory) {
	to.struct_size = C.sizeof_sluice_attention_args
	to.batch = C.int32_t(from.Batch)
	from.Q.fill(&to.q, in)
	from.O.fill(&to.o, in)
	from.Rows.fill(&to.rows, in)
	to.key_sets = C.uint32_t(len(from.Keys))
	if all := take[C.sluice_keys](in, len(from.Keys)); all != nil {
		for i := range from.Keys {
			from.Keys[i].fill(&all[i], in)
		}
		to.keys = &all[0]
	}
	if from.Scale != nil {
		to.scale = &take[C.float](in, 1)[0]
		*to.scale = C.float(*from.Scale)
	}
	to.lse = pointer[C.sluice_tensor](in, from.LSE)
	to.mask = pointer[C.sluice_mask_args](in, from.Mask)
	to.scores = pointer[C.sluice_scores_args](in, from.Scores)
	put(unsafe.Pointer(&to.q_scale), from.QScale)
	put(unsafe.Pointer(&to.o_scale), from.OScale)
}

func (from *Rotation) fill(to *C.sluice_rotation, in *memory) {
	to.struct_size = C.sizeof_sluice_rotation
	to.style = C.uint32_t(from.Style)
	to._type = C.uint32_t(from.Type)
	to.dim = C.int32_t(from.Dim)
	to.first = C.int32_t(from.First)
	put(unsafe.Pointer(&to.cosines), from.Cosines)
	put(unsafe.Pointer(&to.sines), from.Sines)
	to.stride = C.int64_t(from.Stride)
}

func (from *Norm) fill(to *C.sluice_norm, in *memory) {
	to.struct_size = C.sizeof_sluice_norm
	to._type = C.uint32_t(from.Type)
	put(unsafe.Pointer(&to.weights), from.Weights)
	to.epsilon = C.float(from.Epsilon)
}

func (from *AppendQ) fill(to *C.sluice_append_q, in *memory) {
	to.struct_size = C.sizeof_sluice_append_q
	to.heads = C.int32_t(from.Heads)
	from.Q.fill(&to.q, in)
	from.Out.fill(&to.out, in)
	from.Tail.fill(&to.tail, in)
	to.norm = pointer[C.sluice_norm](in, from.Norm)
}

func (from *Append) fill(to *C.sluice_append_args, in *memory) {
	to.struct_size = C.sizeof_sluice_append_args
	to.source_type = C.uint32_t(from.SourceType)
	to.tokens = C.int32_t(from.Tokens)
	to.tail_dim = C.int32_t(from.TailDim)
	from.K.fill(&to.k, in)
	from.V.fill(&to.v, in)
	from.KTail.fill(&to.k_tail, in)
	to.kv = pointer[C.sluice_kv](in, from.KV)
	put(unsafe.Pointer(&to.slots), from.Slots)
	to.batch = C.int32_t(from.Batch)
	put(unsafe.Pointer(&to.starts), from.Starts)
	put(unsafe.Pointer(&to.lengths), from.Lengths)
	from.Pages.fill(&to.pages, in)
	put(unsafe.Pointer(&to.positions), from.Positions)
	to.rotation = pointer[C.sluice_rotation](in, from.Rotation)
	to.k_norm = pointer[C.sluice_norm](in, from.KNorm)
	to.q = pointer[C.sluice_append_q](in, from.Q)
}

func (from *Copy) fill(to *C.sluice_copy_args, in *memory) {
	to.struct_size = C.sizeof_sluice_copy_args
	if from.Pairs64 {
		to.pairs_64 = 1
	}
	to.source = pointer[C.sluice_kv](in, from.Source)
	to.target = pointer[C.sluice_kv](in, from.Target)
	put(unsafe.Pointer(&to.pairs), from.Pairs)
	to.pair_count = C.int64_t(from.PairCount)
}

func (from *Gather) fill(to *C.sluice_gather_args, in *memory) {
	to.struct_size = C.sizeof_sluice_gather_args
	to.batch = C.int32_t(from.Batch)
	to.source = pointer[C.sluice_kv](in, from.Source)
	from.Pages.fill(&to.pages, in)
	put(unsafe.Pointer(&to.lengths), from.Lengths)
	put(unsafe.Pointer(&to.first_keys), from.FirstKeys)
	to.target = pointer[C.sluice_kv](in, from.Target)
	put(unsafe.Pointer(&to.starts), from.Starts)
	to.tokens = C.int32_t(from.Tokens)
}

func (from *Parts) fill(to *C.sluice_parts, in *memory) {
	to._type = C.uint32_t(from.Type)
	to.count = C.int32_t(from.Count)
	from.O.fill(&to.o, in)
	from.LSE.fill(&to.lse, in)
	if all := take[DevicePointer](in, len(from.OList)); all != nil {
		copy(all, from.OList)
		to.o_list = (*unsafe.Pointer)(unsafe.Pointer(&all[0]))
	}
	if all := take[DevicePointer](in, len(from.LSEList)); all != nil {
		copy(all, from.LSEList)
		to.lse_list = (*unsafe.Pointer)(unsafe.Pointer(&all[0]))
	}
	to.lse_sequence_stride = C.int64_t(from.LSESequenceStride)
}

func (from *Merge) fill(to *C.sluice_merge_args, in *memory) {
	to.struct_size = C.sizeof_sluice_merge_args
	to.flags = C.uint32_t(from.Flags)
	to.tokens = C.int32_t(from.Tokens)
	to.heads = C.int32_t(from.Heads)
	to.head_dim = C.int32_t(from.HeadDim)
	to.lse_base = C.uint32_t(from.LSEBase)
	from.OFormat.fill(&to.o_format, in)
	from.Parts.fill(&to.parts, in)
	from.O.fill(&to.o, in)
	from.LSE.fill(&to.lse, in)
	to.lse_sequence_stride = C.int64_t(from.LSESequenceStride)
	to.sequence_tokens = C.int32_t(from.SequenceTokens)
	put(unsafe.Pointer(&to.sinks), from.Sinks)
	put(unsafe.Pointer(&to.o_scale), from.OScale)
}
