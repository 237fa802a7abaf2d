package sluice_test

import (
	"errors"
	"strings"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

// refused expects an error with that code and field, and with its value if the message must have one.
func refused(t *testing.T, err error, code sluice.Status, field, value string) {
	t.Helper()
	var failure *sluice.Error
	if !errors.As(err, &failure) {
		t.Errorf("%s: the error is %v, not a *sluice.Error", field, err)
		return
	}
	if !errors.Is(err, code) || failure.Code != code || failure.Field != field || !strings.Contains(failure.Message, value) {
		t.Errorf("expected %v, field %s and the value %q; got field %s: %v", code, field, value, failure.Field, err)
	}
	if errors.Is(err, sluice.OK) || errors.Is(err, sluice.ErrClosed) {
		t.Errorf("%v: is also SLUICE_OK or ErrClosed", err)
	}
}

func TestFieldsOfProblems(t *testing.T) {
	context := target(t)
	invalid, unsupported, newer := sluice.InvalidArgument, sluice.Unsupported, sluice.NewerStruct
	for _, c := range []struct {
		field, value string
		code         sluice.Status
		change       func(p *sluice.Problem)
	}{
		{"flags", "0x40000000", newer, func(p *sluice.Problem) { p.Flags = 1 << 30 }},
		{"mode", "9", newer, func(p *sluice.Problem) { p.Mode = 9 }},
		{"q_type", "", invalid, func(p *sluice.Problem) { p.QType = 0 }},
		{"k_type", "", invalid, func(p *sluice.Problem) { p.KType = 0 }},
		{"v_type", "", invalid, func(p *sluice.Problem) { p.VType = 0 }},
		{"o_type", "", invalid, func(p *sluice.Problem) { p.OType = 0 }},
		{"q_heads", "-3", invalid, func(p *sluice.Problem) { p.QHeads = -3 }},
		{"kv_heads", "-3", invalid, func(p *sluice.Problem) { p.KVHeads = -3 }},
		{"head_dim_qk", "-7", invalid, func(p *sluice.Problem) { p.HeadDimQK = -7 }},
		{"head_dim_v", "-7", invalid, func(p *sluice.Problem) { p.HeadDimV = -7 }},
		{"head_dim_qk", "1024", unsupported, func(p *sluice.Problem) { p.HeadDimQK = 1024 }},
		{"max_batch", "-5", invalid, func(p *sluice.Problem) { p.MaxBatch = -5 }},
		{"max_q_len", "-5", invalid, func(p *sluice.Problem) { p.MaxQLen = -5 }},
		{"max_kv_len", "-5", invalid, func(p *sluice.Problem) { p.MaxKVLen = -5 }},
		{"max_q_tokens", "-5", invalid, func(p *sluice.Problem) { p.MaxQTokens = -5 }},
		{"mask_alignment", "9", newer, func(p *sluice.Problem) { p.MaskAlignment = 9 }},
		{"window_left", "5", invalid, func(p *sluice.Problem) { p.WindowLeft = 5 }},
		{"window_right", "5", invalid, func(p *sluice.Problem) { p.WindowRight = 5 }},
		{"sink_tokens", "5", invalid, func(p *sluice.Problem) { p.SinkTokens = 5 }},
		{"soft_cap", "-2", invalid, func(p *sluice.Problem) { p.SoftCap = -2 }},
		{"bias_type", "99", newer, func(p *sluice.Problem) { p.BiasType = 99 }},
		{"q_scale_kind", "99", newer, func(p *sluice.Problem) { p.QScaleKind = 99 }},
		{"k_scale_kind", "99", newer, func(p *sluice.Problem) { p.KScaleKind = 99 }},
		{"v_scale_kind", "99", newer, func(p *sluice.Problem) { p.VScaleKind = 99 }},
		{"page_size", "16", invalid, func(p *sluice.Problem) { p.PageSize = 16 }},
		{"page_table_kind", "1", invalid, func(p *sluice.Problem) { p.PageTableKind = 1 }},
		{"k_pack", "8", invalid, func(p *sluice.Problem) { p.KPack = 8 }},
		{"v_pack", "8", invalid, func(p *sluice.Problem) { p.VPack = 8 }},
		{"lse_base", "9", newer, func(p *sluice.Problem) { p.LSEBase = 9 }},
		{"determinism", "9", newer, func(p *sluice.Problem) { p.Determinism = 9 }},
		{"o_scale_kind", "99", newer, func(p *sluice.Problem) { p.OType, p.OScaleKind = sluice.E4M3FNUZ, 99 }},
		{"o_scale_kind", "2", invalid, func(p *sluice.Problem) { p.OScaleKind = sluice.ScalePerHead }},
		{"q_scale_kind", "3", unsupported, func(p *sluice.Problem) { p.QScaleKind = sluice.ScalePerToken }},
		{"k_scale_kind", "SLUICE_MODE_PAGED", invalid, func(p *sluice.Problem) { p.KScaleKind = sluice.ScalePerPage }},
		{"flags", "SLUICE_CAUSAL_BY_SEQUENCE", invalid, func(p *sluice.Problem) { p.Flags = sluice.Causal | sluice.CausalBySequence }},
		{"flags", "SLUICE_BOOL_MASK", invalid, func(p *sluice.Problem) { p.Flags = sluice.MaskNewRows }},
		{"flags", "bias_type", invalid, func(p *sluice.Problem) { p.Flags = sluice.BiasScale }},
		{"workspace_ceiling_bytes", "1", unsupported, func(p *sluice.Problem) {
			p.Determinism, p.MaxBatch, p.MaxKVLen, p.WorkspaceCeilingBytes = sluice.DeterminismBatchInvariant, 8, 4096, 1
		}},
	} {
		problem := simple()
		c.change(&problem)
		_, err := context.QuerySupport(&problem)
		refused(t, err, c.code, c.field, c.value)
		_, err = context.WorkspaceSize(&problem)
		refused(t, err, c.code, c.field, c.value)
		_, err = context.NewPlan(&problem)
		refused(t, err, c.code, c.field, c.value)
	}
	_, err := context.QuerySupport(nil)
	refused(t, err, invalid, "problem", "NULL")
	_, err = context.NewPlan(nil)
	refused(t, err, invalid, "problem", "NULL")
	_, err = context.Kernel(1 << 20)
	refused(t, err, invalid, "index", "1048576")
	problem := simple()
	refused(t, context.Preload(&problem), sluice.NoDevice, "context", "target")
}

// A correct run; each case changes one thing.
func rightRun(t *testing.T) (*sluice.Context, *sluice.Plan, sluice.Args) {
	context, device := emulated(t)
	problem := simple()
	plan, err := context.NewPlan(&problem)
	check(t, err)
	t.Cleanup(func() { check(t, plan.Close()) })
	memory := onDevice(t, device, make([]uint16, 4*8*128))
	view := func(heads int64) sluice.Tensor {
		made, err := memory.Tensor(0, sluice.Contiguous(sluice.F16, [4]int64{1, 4, heads, 128}))
		check(t, err)
		return made
	}
	result := onDevice(t, device, make([]uint16, 4*2*128))
	o, err := result.Tensor(0, view(2).View)
	check(t, err)
	args := sluice.Args{Batch: 1, QLen: 4, KVLen: 4, Q: view(2), K: view(1), V: view(1), O: o}
	check(t, plan.Run(&args, nil))
	check(t, device.Synchronize(0))
	return context, plan, args
}

func TestFieldsOfRuns(t *testing.T) {
	_, plan, right := rightRun(t)
	invalid := sluice.InvalidArgument
	for _, c := range []struct {
		field, value string
		code         sluice.Status
		change       func(a *sluice.Args)
	}{
		// Errors of the library.
		{"batch", "-1", invalid, func(a *sluice.Args) { a.Batch = -1 }},
		{"q_len", "-2", invalid, func(a *sluice.Args) { a.QLen = -2 }},
		{"kv_len", "-2", invalid, func(a *sluice.Args) { a.KVLen = -2 }},
		{"scale", "-1", sluice.Unsupported, func(a *sluice.Args) { a.Scale = -1 }},
		{"q.data", "NULL", invalid, func(a *sluice.Args) { a.Q = sluice.Tensor{} }},
		{"k.data", "", invalid, func(a *sluice.Args) { a.K.Data++ }},
		{"v.stride[1]", "129", invalid, func(a *sluice.Args) { a.V.Stride[1]++ }},
		{"o.stride[2]", "", invalid, func(a *sluice.Args) { a.O.Stride[2] = 0 }},
		{"lse.data", "", invalid, func(a *sluice.Args) { a.LSE = lseLike(a.O) }},
		{"q_starts", "", invalid, func(a *sluice.Args) {
			a.QStarts, a.Q.Shape, a.O.Shape = 0x1000, [4]int64{1, 4, 2, 128}, [4]int64{1, 4, 2, 128}
		}},
		{"kv_starts", "", invalid, func(a *sluice.Args) { a.KVStarts = 0x1000 }},
		{"page_table", "", invalid, func(a *sluice.Args) { a.PageTable = 0x1000 }},
		{"page_table_stride", "", invalid, func(a *sluice.Args) { a.PageTableStride = 1 }},
		{"page_starts", "", invalid, func(a *sluice.Args) { a.PageStarts = 0x1000 }},
		{"alibi_slopes", "", invalid, func(a *sluice.Args) { a.AlibiSlopes = 0x1000 }},
		{"sink_logits", "", invalid, func(a *sluice.Args) { a.SinkLogits = 0x1000 }},
		{"q_scale", "", invalid, func(a *sluice.Args) { a.QScale = 0x1000 }},
		{"k_scale", "", invalid, func(a *sluice.Args) { a.KScale = 0x1000 }},
		{"v_scale", "", invalid, func(a *sluice.Args) { a.VScale = 0x1000 }},
		{"k_scales.data", "", invalid, func(a *sluice.Args) { a.KScales = scalesLike(a.K) }},
		{"v_scales.data", "", invalid, func(a *sluice.Args) { a.VScales = scalesLike(a.K) }},
		{"o_scale", "", invalid, func(a *sluice.Args) { a.OScale = 0x1000 }},
		{"bias_scale", "", invalid, func(a *sluice.Args) { a.BiasScale = 0x1000 }},
		{"diagonals", "", invalid, func(a *sluice.Args) { a.Diagonals = 0x1000 }},
		{"causal", "", invalid, func(a *sluice.Args) { a.Causal = 0x1000 }},
		{"spans", "", invalid, func(a *sluice.Args) { a.Spans = 0x1000 }},
		{"span_count", "3", invalid, func(a *sluice.Args) { a.SpanCount = 3 }},
		{"alibi_batch_stride", "-4", invalid, func(a *sluice.Args) { a.AlibiBatchStride = -4 }},
		{"bias_scale_batch_stride", "4", invalid, func(a *sluice.Args) { a.BiasScaleBatchStride = 4 }},
		// An address in Go's own memory is a number like any other, and so is an invalid one.
		{"q.data", "", invalid, func(a *sluice.Args) { a.Q.Data = 0xc000000001 }},
		// Errors of this package.
		{"q.type", "BF16", invalid, func(a *sluice.Args) { a.Q.Type = sluice.BF16 }},
		{"k.pack", "8", invalid, func(a *sluice.Args) { a.K.Pack = 8 }},
		{"v.token_pack", "8", invalid, func(a *sluice.Args) { a.V.TokenPack = 8 }},
		{"k.shape[0]", "0", invalid, func(a *sluice.Args) { a.K.Shape[0] = 0 }},
		{"k.shape[1]", "3", invalid, func(a *sluice.Args) { a.K.Shape[1] = 3 }},
		{"q.shape[2]", "3", invalid, func(a *sluice.Args) { a.Q.Shape[2] = 3 }},
		{"v.shape[3]", "64", invalid, func(a *sluice.Args) { a.V.Shape[3] = 64 }},
		{"o.shape[1]", "2", invalid, func(a *sluice.Args) { a.O.Shape[1] = 2 }},
		{"lse.shape[3]", "2", invalid, func(a *sluice.Args) { a.LSE = lseLike(a.O); a.LSE.Shape[3] = 2 }},
		{"bias.type", "F32", invalid, func(a *sluice.Args) { a.Bias = lseLike(a.O) }},
		{"mask.shape[3]", "1", invalid, func(a *sluice.Args) {
			a.KVLen, a.K.Shape[1], a.V.Shape[1] = 9, 9, 9
			a.Mask = sluice.Tensor{Data: a.O.Data, View: sluice.Contiguous(sluice.MaskBits, [4]int64{1, 2, 4, 1})}
		}},
		{"k_scales.type", "F16", invalid, func(a *sluice.Args) { a.KScales = a.K }},
		{"k_scales.shape[1]", "3", invalid, func(a *sluice.Args) { a.KScales = scalesLike(a.K); a.KScales.Shape[1] = 3 }},
		{"v_scales.shape[2]", "2", invalid, func(a *sluice.Args) { a.VScales = scalesLike(a.Q) }},
		{"v_scales.shape[3]", "2", invalid, func(a *sluice.Args) { a.VScales = scalesLike(a.K); a.VScales.Shape[3] = 2 }},
		{"q.shape[0]", "2", invalid, func(a *sluice.Args) { a.QStarts, a.Q.Shape[0] = 0x1000, 2 }},
		{"k.shape[0]", "2", invalid, func(a *sluice.Args) { a.KVStarts, a.K.Shape[0] = 0x1000, 2 }},
	} {
		args := right
		c.change(&args)
		refused(t, plan.Run(&args, nil), c.code, c.field, c.value)
	}
	refused(t, plan.Run(nil, nil), invalid, "args", "nil")
	// A tensor may be larger than the call, and stride 0 may repeat an input.
	longer := right
	longer.K.Shape, longer.KVLen = [4]int64{7, 5, 1, 128}, 3
	longer.Q.Stride[1] = 0
	check(t, plan.Run(&longer, nil))
}

func lseLike(o sluice.Tensor) sluice.Tensor {
	return sluice.Tensor{Data: o.Data, View: sluice.Contiguous(sluice.F32, [4]int64{o.Shape[0], o.Shape[1], o.Shape[2], 1})}
}

// scalesLike is a tensor with a scale for each row and head of K or V.
func scalesLike(k sluice.Tensor) sluice.Tensor { return lseLike(k) }

func TestFieldsOfLaunches(t *testing.T) {
	_, plan, args := rightRun(t)
	launch := func(kind sluice.DependencyKind) *sluice.Launch {
		return &sluice.Launch{Dependencies: []sluice.Dependency{{Kind: sluice.DependsOnEvent, Event: 0x1000}, {Kind: kind}}}
	}
	refused(t, plan.Run(&args, launch(9)), sluice.NewerStruct, "dependencies[1].kind", "9")
	refused(t, plan.Run(&args, launch(sluice.DependsOnStream)), sluice.InvalidArgument, "dependencies[1].event", "NULL")

	context, device := emulated(t)
	problem := simple()
	problem.Determinism, problem.MaxBatch, problem.MaxKVLen = sluice.DeterminismBatchInvariant, 8, 4096
	support, err := context.QuerySupport(&problem)
	check(t, err)
	size, err := context.WorkspaceSize(&problem)
	check(t, err)
	if size == 0 || size != support.WorkspaceBytes {
		t.Errorf("workspace of %d and %d bytes", size, support.WorkspaceBytes)
	}
	split, err := context.NewPlan(&problem)
	check(t, err)
	defer split.Close()
	memory := onDevice(t, device, make([]uint8, 64))
	few := &sluice.Launch{Workspace: memory.Pointer(), WorkspaceBytes: 64}
	refused(t, split.Run(&args, few), sluice.WorkspaceTooSmall, "workspace_bytes", "64")
	few.WorkspaceBytes, few.Workspace = size, memory.Pointer()+1
	refused(t, split.Run(&args, few), sluice.InvalidArgument, "workspace", "")
}

func TestFieldsOfReference(t *testing.T) {
	problem := simple()
	problem.Flags |= sluice.WriteLSE
	q, kv, lse := make([]uint16, 4*2*128), make([]uint16, 4*128), make([]float32, 8)
	right := sluice.HostArgs{Batch: 1, QLen: 4, KVLen: 4,
		Q:   sluice.OnHost(q, sluice.Contiguous(sluice.F16, [4]int64{1, 4, 2, 128})),
		K:   sluice.OnHost(kv, sluice.Contiguous(sluice.F16, [4]int64{1, 4, 1, 128})),
		V:   sluice.OnHost(kv, sluice.Contiguous(sluice.F16, [4]int64{1, 4, 1, 128})),
		O:   sluice.OnHost(make([]uint16, 4*2*128), sluice.Contiguous(sluice.F16, [4]int64{1, 4, 2, 128})),
		LSE: sluice.OnHost(lse, sluice.Contiguous(sluice.F32, [4]int64{1, 4, 2, 1}))}
	check(t, sluice.Reference(&problem, &right))
	dense, ragged, pages := problem, problem, problem
	ragged.Mode = sluice.ModeRagged
	pages.Mode, pages.PageSize, pages.PageTableKind = sluice.ModePaged, 4, sluice.PageTableBlock
	csr, wide, shared := pages, pages, pages
	csr.PageTableKind = sluice.PageTableCSR
	wide.Flags |= sluice.PageIndex64
	shared.Flags |= sluice.SharedPrefix
	shared.MaxPrefixes, shared.MaxPrefixLen, shared.MaxQTokens = 1, 8, 4
	scaled := dense
	scaled.KScaleKind, scaled.QScaleKind, scaled.Flags = sluice.ScalePerHead, sluice.ScalePerHead,
		scaled.Flags|sluice.Alibi|sluice.SinkLogits
	slopes, factors, spans, given, perToken, perPage, fp8, newRows := dense, dense, dense, dense, dense, pages, dense, dense
	slopes.Flags |= sluice.Alibi
	factors.Flags |= sluice.BiasScale
	factors.BiasType = sluice.F32
	spans.Flags |= sluice.Spans | sluice.CausalBySequence
	given.MaskAlignment = sluice.GivenDiagonal
	perToken.KScaleKind, perToken.VScaleKind = sluice.ScalePerToken, sluice.ScalePerToken
	perPage.KScaleKind, perPage.VScaleKind = sluice.ScalePerPage, sluice.ScalePerToken
	fp8.OType, fp8.OScaleKind = sluice.E4M3FNUZ, sluice.ScalePerHead
	newRows.Flags |= sluice.BoolMask | sluice.MaskNewRows
	two, eight := []float32{1, 1}, make([]float32, 8)
	scales := func(shape ...int64) sluice.HostTensor {
		return sluice.OnHost(eight, sluice.Contiguous(sluice.F32, [4]int64{shape[0], shape[1], shape[2], 1}))
	}
	twice := func(a *sluice.HostArgs) {
		a.Batch = 2
		for _, tensor := range []*sluice.HostTensor{&a.Q, &a.K, &a.V, &a.LSE} {
			tensor.Shape[0], tensor.Stride[0] = 2, 0
		}
		a.O = sluice.OnHost(make([]uint16, 2*4*2*128), sluice.Contiguous(sluice.F16, [4]int64{2, 4, 2, 128}))
		a.LSE = sluice.OnHost(make([]float32, 16), sluice.Contiguous(sluice.F32, [4]int64{2, 4, 2, 1}))
	}
	thrice := func(a *sluice.HostArgs) {
		a.Batch = 3
		for _, tensor := range []*sluice.HostTensor{&a.Q, &a.K, &a.V, &a.O, &a.LSE} {
			tensor.Shape[0], tensor.Stride[0] = 3, 0
		}
	}
	oneBias := sluice.OnHost(make([]float32, 1), sluice.View{Type: sluice.F32, Shape: [4]int64{1, 1, 1, 1}})
	invalid := sluice.InvalidArgument
	for _, c := range []struct {
		problem      *sluice.Problem
		field, value string
		change       func(a *sluice.HostArgs)
	}{
		{&dense, "q.data", "NULL", func(a *sluice.HostArgs) { a.Q = sluice.HostTensor{} }},
		{&dense, "batch", "-1", func(a *sluice.HostArgs) { a.Batch = -1 }},
		{&dense, "q.data", "1023", func(a *sluice.HostArgs) { a.Q = sluice.OnHost(q[1:], a.Q.View) }},
		{&dense, "k.data", "512", func(a *sluice.HostArgs) { a.K.Stride[1]++ }},
		{&dense, "k.stride[1]", "-1", func(a *sluice.HostArgs) { a.K.Stride[1] = -1 }},
		{&dense, "v.stride[1]", "outside the address space", func(a *sluice.HostArgs) { a.V.Stride[1] = 1 << 62 }},
		{&dense, "v.shape[1]", "3", func(a *sluice.HostArgs) { a.V.Shape[1] = 3 }},
		{&dense, "o.type", "2 bytes", func(a *sluice.HostArgs) { a.O = sluice.OnHost(make([]uint8, 4096), a.O.View) }},
		{&dense, "lse.data", "8", func(a *sluice.HostArgs) { a.LSE.Stride[0], a.LSE.Stride[1] = 0, 3 }},
		{&dense, "q_lengths", "2", func(a *sluice.HostArgs) {
			a.Batch = 3
			for _, tensor := range []*sluice.HostTensor{&a.Q, &a.K, &a.V, &a.O, &a.LSE} {
				tensor.Shape[0], tensor.Stride[0] = 3, 0
			}
			a.QLengths = []int32{4, 4}
		}},
		{&dense, "kv_lengths[0]", "5", func(a *sluice.HostArgs) { a.KVLengths = []int32{5} }},
		{&ragged, "q_starts", "1", func(a *sluice.HostArgs) { a.QStarts, a.KVStarts = []int32{0}, []int32{0, 4} }},
		{&ragged, "q_starts[1]", "q_tokens, which is 4", func(a *sluice.HostArgs) { a.QLen, a.QStarts, a.KVStarts = 8, []int32{0, 5}, []int32{0, 4} }},
		{&ragged, "q_starts[1]", "q_tokens, which is 4", func(a *sluice.HostArgs) {
			a.QLen, a.QStarts, a.KVStarts = 8, []int32{0, 5}, []int32{0, 4}
			repeat(&a.Q)
		}},
		{&ragged, "q_starts[1]", "q_tokens, which is 4", func(a *sluice.HostArgs) {
			a.QLen, a.QStarts, a.KVStarts = 8, []int32{0, 5}, []int32{0, 4}
			repeat(&a.Q)
			a.O = sluice.OnHost(make([]uint16, 8*2*128), sluice.Contiguous(sluice.F16, [4]int64{1, 8, 2, 128}))
		}},
		{&ragged, "kv_starts", "1", func(a *sluice.HostArgs) { a.QStarts, a.KVStarts = []int32{0, 4}, []int32{0} }},
		{&ragged, "kv_starts[1]", "kv_tokens, which is 4", func(a *sluice.HostArgs) { a.KVLen, a.QStarts, a.KVStarts = 8, []int32{0, 4}, []int32{0, 5} }},
		{&ragged, "kv_starts[1]", "kv_tokens, which is 4", func(a *sluice.HostArgs) {
			a.KVLen, a.QStarts, a.KVStarts = 8, []int32{0, 4}, []int32{0, 5}
			repeat(&a.K)
		}},
		{&ragged, "v.data", "NULL", func(a *sluice.HostArgs) {
			a.QStarts, a.KVStarts, a.V = []int32{0, 4}, []int32{0, 4}, sluice.HostTensor{}
		}},
		{&ragged, "o.data", "NULL", func(a *sluice.HostArgs) {
			a.QStarts, a.KVStarts, a.O = []int32{0, 4}, []int32{0, 4}, sluice.HostTensor{}
		}},
		{&pages, "v.data", "NULL", func(a *sluice.HostArgs) {
			a.KVLengths, a.PageTable, a.PageTableStride, a.V = []int32{4}, []int32{0}, 1, sluice.HostTensor{}
		}},
		{&pages, "page_table[0]", "page_count, which is 1", func(a *sluice.HostArgs) {
			a.KVLengths, a.PageTable, a.PageTableStride = []int32{4}, []int32{1}, 1
			a.K.Shape[0], a.K.Stride[0] = 2, 0
		}},
		{&ragged, "kv_starts", "", func(a *sluice.HostArgs) { a.QStarts = []int32{0, 4} }},
		{&scaled, "alibi_slopes", "1", func(a *sluice.HostArgs) { a.AlibiSlopes, a.SinkLogits, a.QScale, a.KScale = two[:1], two, two, two }},
		{&scaled, "sink_logits", "1", func(a *sluice.HostArgs) { a.AlibiSlopes, a.SinkLogits, a.QScale, a.KScale = two, two[:1], two, two }},
		{&scaled, "q_scale", "1", func(a *sluice.HostArgs) { a.AlibiSlopes, a.SinkLogits, a.QScale, a.KScale = two, two, two[:1], two }},
		{&scaled, "k_scale", "", func(a *sluice.HostArgs) { a.AlibiSlopes, a.SinkLogits, a.QScale = two, two, two }},
		{&slopes, "alibi_slopes", "it must have 8", func(a *sluice.HostArgs) {
			twice(a)
			a.AlibiSlopes, a.AlibiBatchStride = eight[:7], 6
		}},
		{&slopes, "alibi_batch_stride", "-6", func(a *sluice.HostArgs) {
			twice(a)
			a.AlibiSlopes, a.AlibiBatchStride = two, -6
		}},
		{&factors, "bias_scale", "it must have 8", func(a *sluice.HostArgs) {
			twice(a)
			a.Bias, a.BiasScale, a.BiasScaleBatchStride = oneBias, eight[:7], 6
		}},
		{&factors, "bias_scale", "9223372036854775807", func(a *sluice.HostArgs) {
			thrice(a)
			a.Bias, a.BiasScale, a.BiasScaleBatchStride = oneBias, eight, 1<<62
		}},
		{&factors, "bias_scale", "9223372036854775807", func(a *sluice.HostArgs) {
			thrice(a)
			a.Bias, a.BiasScale, a.BiasScaleBatchStride = oneBias, eight, 1<<62-1
		}},
		{&factors, "bias_scale", "", func(a *sluice.HostArgs) { a.Bias = oneBias }},
		{&spans, "spans", "it must have 4", func(a *sluice.HostArgs) { a.Causal, a.Spans, a.SpanCount = []int32{1}, []int32{0, 1, 2}, 2 }},
		{&spans, "span_count", "-1", func(a *sluice.HostArgs) { a.Causal, a.Spans, a.SpanCount = []int32{1}, []int32{0, 1, 2}, -1 }},
		{&spans, "span_count", "4611686018427387904", func(a *sluice.HostArgs) {
			a.Causal, a.Spans, a.SpanCount = []int32{1}, []int32{0, 1, 2}, 1<<62
		}},
		{&spans, "spans[2]", "1", func(a *sluice.HostArgs) { a.Causal, a.Spans, a.SpanCount = []int32{1}, []int32{0, 2, 1, 3}, 2 }},
		{&spans, "causal", "", func(a *sluice.HostArgs) { a.Spans, a.SpanCount = []int32{0, 1}, 1 }},
		{&spans, "causal", "it must have 2", func(a *sluice.HostArgs) {
			twice(a)
			a.Causal, a.Spans, a.SpanCount = []int32{1}, make([]int32, 4), 1
		}},
		{&given, "diagonals", "it must have 2", func(a *sluice.HostArgs) { twice(a); a.Diagonals = []int32{1} }},
		{&given, "diagonals[0]", "1073741825", func(a *sluice.HostArgs) { a.Diagonals = []int32{1<<30 + 1} }},
		{&perToken, "k_scales.shape[1]", "3", func(a *sluice.HostArgs) { a.KScales, a.VScales = scales(1, 3, 1), scales(1, 4, 1) }},
		{&perToken, "v_scales.data", "8", func(a *sluice.HostArgs) {
			a.KScales, a.VScales = scales(1, 4, 1), scales(1, 4, 1)
			a.VScales.Stride[1] = 3
		}},
		{&perToken, "v_scales.data", "NULL", func(a *sluice.HostArgs) { a.KScales = scales(1, 4, 1) }},
		{&perPage, "k_scales.shape[1]", "4", func(a *sluice.HostArgs) {
			a.KVLengths, a.PageTable, a.PageTableStride = []int32{4}, []int32{0}, 1
			a.KScales, a.VScales = scales(1, 4, 1), scales(1, 4, 1)
		}},
		{&perPage, "page_table[0]", "page_count, which is 1", func(a *sluice.HostArgs) {
			a.KVLengths, a.PageTable, a.PageTableStride = []int32{4}, []int32{1}, 1
			a.K.Shape[0], a.K.Stride[0], a.V.Shape[0], a.V.Stride[0] = 2, 0, 2, 0
			a.KScales, a.VScales = scales(1, 1, 1), scales(2, 4, 1)
		}},
		{&perPage, "page_table[0]", "page_count, which is 1", func(a *sluice.HostArgs) {
			a.KVLengths, a.PageTable, a.PageTableStride = []int32{4}, []int32{1}, 1
			a.K.Shape[0], a.K.Stride[0], a.V.Shape[0], a.V.Stride[0] = 2, 0, 2, 0
			a.KScales, a.VScales = scales(2, 1, 1), scales(1, 4, 1)
		}},
		{&fp8, "o_scale", "it must have 2", func(a *sluice.HostArgs) {
			a.O = sluice.OnHost(make([]uint8, 4*2*128), sluice.Contiguous(sluice.E4M3FNUZ, [4]int64{1, 4, 2, 128}))
			a.OScale = two[:1]
		}},
		{&newRows, "mask.data", "3", func(a *sluice.HostArgs) {
			a.Mask = sluice.OnHost(make([]uint8, 3), sluice.View{Type: sluice.MaskBits, Shape: [4]int64{1, 1, 4, 1}, Stride: [4]int64{0, 0, 1, 1}})
		}},
		{&pages, "k.shape[1]", "5", func(a *sluice.HostArgs) { a.K.Shape[1] = 5 }},
		{&pages, "page_table[0]", "1", func(a *sluice.HostArgs) { a.KVLengths, a.PageTable, a.PageTableStride = []int32{4}, []int32{1}, 1 }},
		{&pages, "page_table[0]", "-1", func(a *sluice.HostArgs) { a.KVLengths, a.PageTable, a.PageTableStride = []int32{4}, []int32{-1}, 1 }},
		{&pages, "page_table", "2", func(a *sluice.HostArgs) {
			a.KVLen, a.KVLengths, a.PageTable, a.PageTableStride = 8, []int32{8}, []int32{0}, 1
		}},
		{&pages, "page_table", "64", func(a *sluice.HostArgs) { a.KVLengths, a.PageTable64, a.PageTableStride = []int32{4}, []int64{0}, 1 }},
		{&wide, "page_table", "32", func(a *sluice.HostArgs) { a.KVLengths, a.PageTable, a.PageTableStride = []int32{4}, []int32{0}, 1 }},
		{&wide, "page_table[0]", "7", func(a *sluice.HostArgs) { a.KVLengths, a.PageTable64, a.PageTableStride = []int32{4}, []int64{7}, 1 }},
		{&csr, "page_table", "1", func(a *sluice.HostArgs) {
			a.KVLengths, a.PageTable, a.PageStarts = []int32{4}, []int32{0}, []int32{1, 2}
		}},
		{&csr, "page_starts", "1", func(a *sluice.HostArgs) { a.KVLengths, a.PageTable, a.PageStarts = []int32{4}, []int32{0}, []int32{0} }},
		{&shared, "prefix_count", "0", func(a *sluice.HostArgs) { withPrefix(a); a.PrefixCount = 0 }},
		{&shared, "prefix_q_starts", "1 elements", func(a *sluice.HostArgs) { withPrefix(a); a.PrefixQStarts = []int32{0} }},
		{&shared, "prefix_q_starts[1]", "5", func(a *sluice.HostArgs) { withPrefix(a); a.PrefixQStarts = []int32{0, 5} }},
		{&shared, "prefix_lengths", "NULL", func(a *sluice.HostArgs) { withPrefix(a); a.PrefixLengths = nil }},
		{&shared, "prefix_lengths[0]", "9", func(a *sluice.HostArgs) {
			withPrefix(a)
			a.PrefixLengths, a.PrefixPageTable = []int32{9}, []int32{0, 0, 0}
		}},
		{&shared, "prefix_page_table", "1 entries; prefix 0 needs 2", func(a *sluice.HostArgs) { withPrefix(a); a.PrefixPageTable = []int32{0} }},
		{&shared, "prefix_page_table[1]", "1", func(a *sluice.HostArgs) { withPrefix(a); a.PrefixPageTable = []int32{0, 1} }},
		{&shared, "prefix_page_table", "64", func(a *sluice.HostArgs) {
			withPrefix(a)
			a.PrefixPageTable, a.PrefixPageTable64 = nil, []int64{0, 0}
		}},
		{&shared, "prefix_k.data", "pages", func(a *sluice.HostArgs) {
			withPrefix(a)
			a.PrefixK = a.K
			a.PrefixK.Shape[1], a.PrefixK.Stride[1] = 8, 0
		}},
		{&dense, "prefix_count", "1", func(a *sluice.HostArgs) { a.PrefixCount = 1 }},
	} {
		args := right
		c.change(&args)
		refused(t, sluice.Reference(c.problem, &args), invalid, c.field, c.value)
	}
	// A page before the window need not exist any more.
	window, args := pages, right
	window.Flags, window.WindowLeft = window.Flags|sluice.HasWindowLeft, 1
	args.QLen, args.KVLen, args.KVLengths, args.PageTable, args.PageTableStride = 2, 8, []int32{8}, []int32{77, 0}, 2
	check(t, sluice.Reference(&window, &args))
	refused(t, sluice.Reference(nil, &right), invalid, "problem", "nil")
	refused(t, sluice.Reference(&dense, nil), invalid, "args", "nil")
}

// withPrefix gives a call eight keys of a prefix, twice those of its only page.
func withPrefix(a *sluice.HostArgs) {
	a.KVLengths, a.PageTable, a.PageTableStride = []int32{4}, []int32{0}, 1
	a.PrefixCount, a.PrefixQStarts, a.PrefixLengths = 1, []int32{0, 4}, []int32{8}
	a.PrefixPageTable, a.PrefixPageTableStride = []int32{0, 0}, 2
}

// repeat makes eight rows of one.
func repeat(tensor *sluice.HostTensor) { tensor.Shape[1], tensor.Stride[1] = 8, 0 }

func TestErrorsOfThisPackage(t *testing.T) {
	err := error(&sluice.Error{Code: sluice.HIP, HIPCode: 719, Message: "it failed"})
	if err.Error() != "SLUICE_HIP: it failed" || sluice.Status(99).String() != "unknown status" || !errors.Is(err, sluice.HIP) {
		t.Errorf("%v, %v", err, sluice.Status(99))
	}
	for dtype, want := range map[sluice.DType]string{sluice.F16: "F16", sluice.E5M2: "E5M2", 77: "DType(77)"} {
		if dtype.String() != want {
			t.Errorf("%v is not %s", dtype, want)
		}
	}
	view := sluice.Contiguous(sluice.F16, [4]int64{2, 3, 4, 5}).Permuted([4]int{0, 2, 1, 3})
	if view.Shape != [4]int64{2, 4, 3, 5} || view.Stride != [4]int64{60, 5, 20, 1} {
		t.Errorf("%+v", view)
	}
	if count, err := view.Elements(); err != nil || count != 120 {
		t.Errorf("%d elements, %v", count, err)
	}
	view.Shape[2] = 0
	if count, err := view.Elements(); err != nil || count != 0 {
		t.Errorf("%d elements, %v", count, err)
	}
	view.Shape[2] = -1
	_, err = view.Elements()
	refused(t, err, sluice.InvalidArgument, "view.shape[2]", "-1")
}

func TestTargets(t *testing.T) {
	_, err := sluice.NewContext(sluice.ContextDesc{})
	refused(t, err, sluice.InvalidArgument, "kind", "missing")
	_, err = sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceTarget, Target: "gfx000:1"})
	refused(t, err, sluice.WrongArch, "target", "gfx000")
	_, err = sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceTarget, Target: "gfx942:304\x00"})
	refused(t, err, sluice.InvalidArgument, "target", "zero")
	_, err = sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceEmulated, DeviceOrdinal: 5})
	refused(t, err, sluice.NoDevice, "device_ordinal", "5")
	_, err = sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceTarget, Target: "gfx942:304", Pack: []byte("no pack")})
	refused(t, err, sluice.PackCorrupt, "pack", "")

	context := target(t)
	info, err := context.Device()
	check(t, err)
	if info.Kind != sluice.DeviceTarget || info.Ordinal != -1 || info.ComputeUnits != 304 || info.Chip != "gfx942" {
		t.Errorf("%+v", info)
	}
	_, err = hip.Open(context)
	refused(t, err, sluice.NoDevice, "hipGetDevice", "none")
	problem := simple()
	plan, err := context.NewPlan(&problem)
	check(t, err)
	defer plan.Close()
	if plan.Problem() != problem {
		t.Error("a plan lost its problem")
	}
	_, _, args := rightRun(t)
	refused(t, plan.Run(&args, nil), sluice.NoDevice, "plan", "")
}
