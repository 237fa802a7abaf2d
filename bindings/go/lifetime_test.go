package sluice_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
	"github.com/sluice-attention/sluice/bindings/go/internal/hiptest"
)

// afterClose expects an ErrClosed that names the closed object.
func afterClose(t *testing.T, call string, err error, field string) {
	t.Helper()
	var failure *sluice.Error
	if !errors.Is(err, sluice.ErrClosed) || !errors.As(err, &failure) || failure.Code != sluice.InvalidArgument ||
		failure.Field != field {
		t.Errorf("%s: expected ErrClosed of %s, got %v", call, field, err)
	}
}

func useClosedContext(t *testing.T, context *sluice.Context, field string) {
	t.Helper()
	_, err := context.Device()
	afterClose(t, "Device", err, field)
	_, err = context.HIPSymbol("hipMalloc")
	afterClose(t, "HIPSymbol", err, field)
	_, err = context.Support(simple())
	afterClose(t, "Support", err, field)
	_, err = context.KernelCount()
	afterClose(t, "KernelCount", err, field)
	_, err = context.Kernel(0)
	afterClose(t, "Kernel", err, field)
	_, err = context.Kernels()
	afterClose(t, "Kernels", err, field)
	_, err = context.NewPlan(simple())
	afterClose(t, "NewPlan", err, field)
	afterClose(t, "Preload", context.Preload(nil), field)
	afterClose(t, "Append", context.Append(&sluice.Append{}, nil), field)
	afterClose(t, "Copy", context.Copy(&sluice.Copy{}, nil), field)
	afterClose(t, "Gather", context.Gather(&sluice.Gather{}, nil), field)
	afterClose(t, "Merge", context.Merge(&sluice.Merge{}, nil), field)
	afterClose(t, "SetRanges", context.SetRanges(true), field)
	afterClose(t, "SetTrace", context.SetTrace(nil), field)
	_, err = hip.Open(context)
	afterClose(t, "hip.Open", err, field)
}

func TestUseAfterClose(t *testing.T) {
	context := target(t)
	plan, err := context.NewPlan(simple())
	check(t, err)
	for i := 0; i < 2; i++ {
		check(t, plan.Close())
		check(t, context.Close())
	}
	useClosedContext(t, context, "context")
	_, err = plan.Describe()
	afterClose(t, "Describe", err, "plan")
	_, err = plan.Counters()
	afterClose(t, "Counters", err, "plan")
	afterClose(t, "Run", plan.Run(&sluice.Args{}, nil), "plan")

	// An object that was never made counts as closed.
	useClosedContext(t, nil, "handle")
	useClosedContext(t, &sluice.Context{}, "handle")
	for _, none := range []*sluice.Plan{nil, {}} {
		_, err = none.Describe()
		afterClose(t, "Describe", err, "handle")
		afterClose(t, "Run", none.Run(&sluice.Args{}, nil), "handle")
		check(t, none.Close())
	}
	check(t, (*sluice.Context)(nil).Close())
	check(t, (&sluice.Context{}).Close())
}

// A closed stream does not mean the default stream, and a closed event does not mean no event.
func TestLaunchesWithClosedHandles(t *testing.T) {
	context, plan, right := rightRun(t)
	args := right()
	device, err := hip.Open(context)
	check(t, err)
	stream, err := device.NewStream()
	check(t, err)
	event, err := device.NewEvent()
	check(t, err)
	check(t, stream.Close())
	check(t, event.Close())
	for field, launch := range map[string]sluice.Launch{
		"stream":                 {Stream: stream.Handle()},
		"signal_event":           {SignalEvent: event.Handle()},
		"dependencies[0].event":  {Dependencies: []sluice.Dependency{{Kind: sluice.DependsOnEvent, Event: event.Handle()}}},
		"dependencies[0].stream": {Dependencies: []sluice.Dependency{{Kind: sluice.DependsOnStream, Stream: stream.Handle()}}},
	} {
		launch := launch
		afterClose(t, "Run", plan.Run(&args, &launch), field)
		afterClose(t, "Append", context.Append(&sluice.Append{}, &launch), field)
		afterClose(t, "Merge", context.Merge(&sluice.Merge{}, &launch), field)
	}
}

// Freed memory does not count as memory that is not given.
func TestRunsWithFreedMemory(t *testing.T) {
	context, device := emulated(t)
	memory, err := device.Malloc(64)
	check(t, err)
	check(t, memory.Free())
	format := sluice.KVPages(sluice.F16, 1, 128, 4)
	problem := splitting()
	problem.KV, problem.Bounds.Batch, problem.Mask = &format, 1, &sluice.Mask{Flags: sluice.MaskBits}
	plan, err := context.NewPlan(problem)
	check(t, err)
	defer plan.Close()
	given := onDevice(t, device, make([]uint64, 512)).Pointer() // of the right alignment, and never read
	rightArgs := func() sluice.Args {
		args := single(&format, 1, 8, sluice.BSHD(given, 1, 2, 128), sluice.BSHD(given, 4, 1, 128), sluice.BSHD(given, 4, 1, 128),
			sluice.BSHD(given+4096-512, 1, 2, 128))
		args.Rows.Lengths, args.Keys[0].Rows.Lengths = given, given
		args.Keys[0].Pages = sluice.Pages{Table: given, Stride: 2}
		args.Mask = &sluice.MaskArgs{Bits: sluice.BHSD(given, 1, 2, 1)}
		return args
	}
	right := rightArgs()
	refused(t, plan.Run(&right, nil), sluice.WorkspaceTooSmall, "workspace_bytes", "0") // the only error
	for field, change := range map[string]func(a *sluice.Args){
		"q.data":               func(a *sluice.Args) { a.Q.Data = memory.Pointer() },
		"keys[0].kv.k.data":    func(a *sluice.Args) { a.Keys[0].KV.K.Data = memory.At(0) },
		"mask.bits.stride":     func(a *sluice.Args) { a.Mask.Bits.Data = memory.Pointer() },
		"rows.lengths":         func(a *sluice.Args) { a.Rows.Lengths = memory.Pointer() },
		"keys[0].rows.lengths": func(a *sluice.Args) { a.Keys[0].Rows.Lengths = memory.Pointer() },
		"keys[0].pages.table":  func(a *sluice.Args) { a.Keys[0].Pages.Table = memory.Pointer() },
	} {
		args := rightArgs()
		change(&args)
		refused(t, plan.Run(&args, nil), sluice.InvalidArgument, field, "")
	}
	info, err := plan.Describe()
	check(t, err)
	refused(t, plan.Run(&right, &sluice.Launch{Workspace: memory.Pointer(), WorkspaceBytes: info.WorkspaceBytes}),
		sluice.InvalidArgument, "workspace", "")
}

func TestPlansKeepTheirContext(t *testing.T) {
	before := sluice.Handles()
	context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceEmulated})
	check(t, err)
	device, err := hip.Open(context)
	check(t, err)
	traced := 0
	check(t, context.SetTrace(func(record *sluice.TraceRecord) { traced++ }))
	first, err := context.NewPlan(simple())
	check(t, err)
	second, err := context.NewPlan(simple())
	check(t, err)
	_, _, right := rightRun(t)
	args := right()
	check(t, context.Close())
	now := sluice.Handles()
	if now.Contexts != before.Contexts+2 || now.Plans != before.Plans+3 { // one of each is rightRun's
		t.Errorf("%+v after %+v: the closed context is gone, with plans left", now, before)
	}
	check(t, first.Close())
	traced = 0
	check(t, second.Run(&args, nil))
	check(t, device.Synchronize(0))
	if traced != 1 {
		t.Errorf("%d records of a run after the context's Close", traced)
	}
	check(t, second.Close())
	if now = sluice.Handles(); now.Contexts != before.Contexts+1 || now.Plans != before.Plans+1 {
		t.Errorf("%+v after %+v: something is left", now, before)
	}
}

func testPack(t *testing.T) []byte {
	path := os.Getenv("SLUICE_GO_TEST_PACK")
	if path == "" {
		t.Skip("SLUICE_GO_TEST_PACK names no kernel pack")
	}
	pack, err := os.ReadFile(path)
	check(t, err)
	return pack
}

// residentBytes is the resident memory of the process, including C's.
func residentBytes(t *testing.T) int64 {
	text, err := os.ReadFile("/proc/self/statm")
	check(t, err)
	var size, resident int64
	_, err = fmt.Sscan(string(text), &size, &resident)
	check(t, err)
	return resident * int64(os.Getpagesize())
}

// The copy of a pack is freed with its last user, even if making the context fails.
func TestPacksAreFreed(t *testing.T) {
	contextOf := func(pack []byte) *sluice.Context {
		context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceTarget, Target: "gfx942:304", Pack: pack})
		check(t, err)
		return context
	}
	pack := testPack(t)
	emulator, _ := emulated(t)
	for _, way := range []struct {
		name string
		pack []byte
		use  func(pack []byte)
	}{
		{"refused", append(pack[:len(pack)-1:len(pack)-1], ^pack[len(pack)-1]), func(pack []byte) {
			_, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceTarget, Target: "gfx942:304", Pack: pack})
			refused(t, err, sluice.PackCorrupt, "pack", "")
		}},
		{"of a runtime that cannot wait", pack, func(pack []byte) {
			_, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceHIP, Pack: pack,
				HIPResolver: hiptest.Resolver(emulator, "hipDeviceSynchronize")})
			refused(t, err, sluice.NoDevice, "hipDeviceSynchronize", "")
		}},
		{"closed", pack, func(pack []byte) { check(t, contextOf(pack).Close()) }},
		{"closed after a plan's context", pack, func(pack []byte) {
			context := contextOf(pack)
			plan, err := context.NewPlan(simple())
			check(t, err)
			check(t, context.Close())
			check(t, plan.Close())
		}},
	} {
		const times = 60
		for i := 0; i < 4; i++ { // warm-up: memory that grows only at first
			way.use(way.pack)
		}
		before := residentBytes(t)
		for i := 0; i < times; i++ {
			way.use(way.pack)
		}
		if grown, all := residentBytes(t)-before, int64(times*len(pack)); grown > all/2 {
			t.Errorf("%s: %d bytes more after %d packs of %d bytes", way.name, grown, times, len(pack))
		}
	}
}

// The caller's pack is copied: the slice can be reused at once.
func TestPacksAreCopied(t *testing.T) {
	pack := testPack(t)
	context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceEmulated, Pack: pack})
	check(t, err)
	for i := range pack {
		pack[i] = 0xff
	}
	plan, err := context.NewPlan(simple())
	check(t, err)
	check(t, context.Close())
	_, err = plan.Describe()
	check(t, err)
	check(t, plan.Close())
}

func TestForgottenHandlesAreCountedAndClosed(t *testing.T) {
	before := sluice.Handles()
	func() {
		context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceTarget, Target: "gfx942:304"})
		check(t, err)
		_, err = context.NewPlan(simple())
		check(t, err)
	}()
	eventually(t, "the finalizer of a context and its plan", func() bool {
		now := sluice.Handles()
		return now.Contexts == before.Contexts && now.Plans == before.Plans && now.Finalized == before.Finalized+2
	})
	// After Close, a finalizer has nothing left to do.
	before = sluice.Handles()
	context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceTarget, Target: "gfx942:304"})
	check(t, err)
	check(t, context.Close())
	if now := sluice.Handles(); now != before {
		t.Errorf("%+v, not %+v", now, before)
	}
}

// Closing while others call: each call is complete or refused.
func TestCloseBesideCalls(t *testing.T) {
	for round := 0; round < 20; round++ {
		context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceTarget, Target: "gfx942:304"})
		check(t, err)
		var users sync.WaitGroup
		for i := 0; i < 4; i++ {
			users.Add(1)
			go func() {
				defer users.Done()
				for {
					plan, err := context.NewPlan(simple())
					if err != nil {
						if !errors.Is(err, sluice.ErrClosed) {
							t.Error(err)
						}
						return
					}
					if _, err := plan.Describe(); err != nil {
						t.Error(err)
					}
					plan.Close()
				}
			}()
		}
		context.Close()
		users.Wait()
	}
}
