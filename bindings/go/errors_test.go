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

// Codes, paths of members and values come through, from structs at every depth.
func TestFieldsOfProblems(t *testing.T) {
	context := target(t)
	invalid, unsupported, newer := sluice.InvalidArgument, sluice.Unsupported, sluice.NewerStruct
	for _, c := range []struct {
		field, value string
		code         sluice.Status
		change       func(a *sluice.Attention)
	}{
		{"flags", "0x40000000", newer, func(a *sluice.Attention) { a.Flags = 1 << 30 }},
		{"q_heads", "-3", invalid, func(a *sluice.Attention) { a.QHeads = -3 }},
		{"lse", "9", newer, func(a *sluice.Attention) { a.LSE = 9 }},
		{"o.type", "", invalid, func(a *sluice.Attention) { a.O.Type = 0 }},
		{"q.scale_kind", "99", newer, func(a *sluice.Attention) { a.Q.ScaleKind = 99 }},
		{"kv", "NULL", invalid, func(a *sluice.Attention) { a.KV = nil }},
		{"kv.head_dim_qk", "1024", unsupported, func(a *sluice.Attention) { a.KV.HeadDimQK = 1024 }},
		{"kv.v.pack", "8", invalid, func(a *sluice.Attention) { a.KV.V.Pack = 8 }},
		{"mask.alignment", "9", newer, func(a *sluice.Attention) { a.Mask = &sluice.Mask{Alignment: 9} }},
		{"mask.window_left", "5", invalid, func(a *sluice.Attention) { a.Mask = &sluice.Mask{WindowLeft: 5} }},
		{"scores.soft_cap", "-2", invalid, func(a *sluice.Attention) { a.Scores = &sluice.Scores{SoftCap: -2} }},
		{"bounds.q_rows", "-5", invalid, func(a *sluice.Attention) { a.Bounds.QRows = -5 }},
		{"workspace_ceiling_bytes", "1", unsupported, func(a *sluice.Attention) {
			*a = *splitting()
			a.WorkspaceCeilingBytes = 1
		}},
	} {
		problem := simple()
		c.change(problem)
		_, err := context.Support(problem)
		refused(t, err, c.code, c.field, c.value)
		_, err = context.NewPlan(problem)
		refused(t, err, c.code, c.field, c.value)
	}
	_, err := context.Support(nil)
	refused(t, err, invalid, "attention", "NULL")
	_, err = context.NewPlan(nil)
	refused(t, err, invalid, "attention", "NULL")
	_, err = context.Kernel(1 << 20)
	refused(t, err, invalid, "index", "1048576")
	refused(t, context.Preload(simple()), sluice.NoDevice, "context", "target")
}

// rightRun is a correct run, and a function that makes its arguments.
func rightRun(t *testing.T) (*sluice.Context, *sluice.Plan, func() sluice.Args) {
	context, device := emulated(t)
	problem := simple()
	plan, err := context.NewPlan(problem)
	check(t, err)
	t.Cleanup(func() { check(t, plan.Close()) })
	input, result := onDevice(t, device, make([]uint16, 4*8*128)), onDevice(t, device, make([]uint16, 4*2*128))
	right := func() sluice.Args {
		keys := sluice.BSHD(input.Pointer(), 4, 1, 128)
		return single(problem.KV, 4, 4, sluice.BSHD(input.Pointer(), 4, 2, 128), keys, keys, sluice.BSHD(result.Pointer(), 4, 2, 128))
	}
	args := right()
	check(t, plan.Run(&args, nil))
	check(t, device.Synchronize(0))
	return context, plan, right
}

func TestFieldsOfRuns(t *testing.T) {
	_, plan, right := rightRun(t)
	invalid := sluice.InvalidArgument
	negative := float32(-1)
	for _, c := range []struct {
		field, value string
		code         sluice.Status
		change       func(a *sluice.Args)
	}{
		{"batch", "-1", invalid, func(a *sluice.Args) { a.Batch = -1 }},
		{"rows.max_len", "-2", invalid, func(a *sluice.Args) { a.Rows.MaxLen = -2 }},
		{"scale", "-1", sluice.Unsupported, func(a *sluice.Args) { a.Scale = &negative }},
		{"q.data", "NULL", invalid, func(a *sluice.Args) { a.Q = sluice.Tensor{} }},
		{"key_sets", "0", invalid, func(a *sluice.Args) { a.Keys = nil }},
		{"key_sets", "2", invalid, func(a *sluice.Args) { a.Keys = append(a.Keys, a.Keys[0]) }},
		{"keys[0].kv", "NULL", invalid, func(a *sluice.Args) { a.Keys[0].KV = nil }},
		{"keys[0].kv.k.data", "", invalid, func(a *sluice.Args) { a.Keys[0].KV.K.Data++ }},
		{"keys[0].kv.v.stride[1]", "129", invalid, func(a *sluice.Args) { a.Keys[0].KV.V.Stride[1]++ }},
		{"keys[0].pages.table", "", invalid, func(a *sluice.Args) { a.Keys[0].Pages.Table = 0x1000 }},
		{"lse.data", "", invalid, func(a *sluice.Args) { a.LSE = &a.O }},
		{"mask.causal", "", invalid, func(a *sluice.Args) { a.Mask = &sluice.MaskArgs{Causal: 0x1000} }},
		{"scores.sinks", "", invalid, func(a *sluice.Args) { a.Scores = &sluice.ScoresArgs{Sinks: 0x1000} }},
		{"q_scale", "", invalid, func(a *sluice.Args) { a.QScale = 0x1000 }},
		// An address in Go's own memory is a number like any other, and so is an invalid one.
		{"q.data", "", invalid, func(a *sluice.Args) { a.Q.Data = 0xc000000001 }},
	} {
		args := right()
		c.change(&args)
		refused(t, plan.Run(&args, nil), c.code, c.field, c.value)
	}
	refused(t, plan.Run(nil, nil), invalid, "args", "NULL")
}

func TestFieldsOfLaunches(t *testing.T) {
	_, plan, right := rightRun(t)
	args := right()
	launch := func(kind sluice.DependencyKind) *sluice.Launch {
		return &sluice.Launch{Dependencies: []sluice.Dependency{{Kind: sluice.DependsOnEvent, Event: 0x1000}, {Kind: kind}}}
	}
	refused(t, plan.Run(&args, launch(9)), sluice.NewerStruct, "dependencies[1].kind", "9")
	refused(t, plan.Run(&args, launch(sluice.DependsOnStream)), sluice.InvalidArgument, "dependencies[1].event", "NULL")
	// More dependencies than fit into the memory that calls reuse.
	many := make([]sluice.Dependency, 1000)
	for i := range many {
		many[i] = sluice.Dependency{Kind: sluice.DependsOnEvent, Event: 0x1000}
	}
	many[999].Kind = 9
	refused(t, plan.Run(&args, &sluice.Launch{Dependencies: many}), sluice.NewerStruct, "dependencies[999].kind", "9")

	context, device := emulated(t)
	support, err := context.Support(splitting())
	check(t, err)
	split, err := context.NewPlan(splitting())
	check(t, err)
	defer split.Close()
	memory := onDevice(t, device, make([]uint8, 64))
	few := &sluice.Launch{Workspace: memory.Pointer(), WorkspaceBytes: 64}
	refused(t, split.Run(&args, few), sluice.WorkspaceTooSmall, "workspace_bytes", "64")
	few.WorkspaceBytes, few.Workspace = support.WorkspaceBytes, memory.Pointer()+1
	refused(t, split.Run(&args, few), sluice.InvalidArgument, "workspace", "")
}

func TestFieldsOfReference(t *testing.T) {
	freed := sluice.OnHost([]uint16{1, 2})
	if freed.Values[1] != 2 || freed.Pointer() == sluice.FreedMemory {
		t.Errorf("%v at %x", freed.Values, freed.Pointer())
	}
	freed.Free()
	freed.Free()
	none := sluice.OnHost([]int64{})
	defer none.Free()
	if none.Pointer() == 0 || len(none.Values) != 0 {
		t.Errorf("no values at %x", none.Pointer())
	}
	tensor := sluice.BSHD(freed.Pointer(), 1, 2, 128)
	args := single(simple().KV, 1, 1, tensor, tensor, tensor, tensor)
	refused(t, sluice.Reference(simple(), &args), sluice.InvalidArgument, "q.data", "")
	refused(t, sluice.Reference(nil, &args), sluice.InvalidArgument, "attention", "NULL")
	refused(t, sluice.Reference(simple(), nil), sluice.InvalidArgument, "args", "NULL")
	refused(t, sluice.ReferenceAppend(nil), sluice.InvalidArgument, "args", "NULL")
	refused(t, sluice.ReferenceCopy(&sluice.Copy{}), sluice.InvalidArgument, "source", "NULL")
	refused(t, sluice.ReferenceGather(&sluice.Gather{}), sluice.InvalidArgument, "source", "NULL")
}

func TestErrorsOfThisPackage(t *testing.T) {
	err := error(&sluice.Error{Code: sluice.HIP, HIPCode: 719, Message: "it failed"})
	if err.Error() != "SLUICE_HIP: it failed" || sluice.Status(99).String() != "unknown status" || !errors.Is(err, sluice.HIP) {
		t.Errorf("%v, %v", err, sluice.Status(99))
	}
	for got, want := range map[string]string{
		sluice.F16.String(): "F16", sluice.DType(77).String(): "DType(77)", sluice.ScalePerHead.String(): "SCALE_PER_HEAD",
		(sluice.MaskSpans | sluice.MaskCausal).String(): "MASK_CAUSAL|MASK_SPANS", sluice.MaskFlags(0).String(): "0",
		sluice.KVFlags(1 << 30).String(): "KVFlags(1073741824)",
	} {
		if got != want {
			t.Errorf("%s is not %s", got, want)
		}
	}
}

func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		made    sluice.Tensor
		strides [4]int64
	}{
		{sluice.BSHD(1, 3, 4, 5), [4]int64{60, 20, 5, 1}}, {sluice.BHSD(1, 3, 4, 5), [4]int64{60, 5, 15, 1}},
		{sluice.Packed(1, 4, 5), [4]int64{0, 20, 5, 1}}, {sluice.PagesXPacked(1, 16, 2, 64, 8), [4]int64{2048, 8, 1024, 128}},
	} {
		if c.made.Data != 1 || c.made.Stride != c.strides {
			t.Errorf("%+v, not %v", c.made, c.strides)
		}
	}
	wanted := sluice.KVFormat{Flags: sluice.KVVInK, KVHeads: 1, HeadDimQK: 576, HeadDimV: 512, PageSize: 64,
		PageTable: sluice.PageTableBlock, K: half}
	if made := sluice.KVLatent(sluice.F16, 512, 64, 64); made != wanted {
		t.Errorf("%+v, not %+v", made, wanted)
	}
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
	plan, err := context.NewPlan(simple())
	check(t, err)
	defer plan.Close()
	_, _, right := rightRun(t)
	args := right()
	refused(t, plan.Run(&args, nil), sluice.NoDevice, "plan", "")
}
