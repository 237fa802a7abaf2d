package sluice_test

import (
	"runtime"
	"testing"
	"time"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
	"github.com/sluice-attention/sluice/bindings/go/internal/hiptest"
)

// forgetting makes calls that write ones to a result, each through a separate context.
type forgetting struct {
	emulator *sluice.Context // the contexts use its runtime
	device   *hip.Runtime
	ordinal  int32
	stream   *hip.Stream
	memory   *hip.Memory // zeros, ones, the result, other outputs
	slots    sluice.DevicePointer
	lse      sluice.DevicePointer
}

const partBytes = 2 * 128

func newForgetting(t *testing.T, emulator *sluice.Context) *forgetting {
	t.Helper()
	info, err := emulator.Device()
	check(t, err)
	device, err := hip.Open(emulator)
	check(t, err)
	f := &forgetting{emulator: emulator, device: device, ordinal: info.Ordinal}
	f.stream, err = device.NewStream()
	check(t, err)
	t.Cleanup(func() { check(t, f.stream.Close()) })
	values := make([]uint16, 4*128)
	for i := 128; i < 2*128; i++ {
		values[i] = 0x3c00
	}
	f.memory = onDevice(t, device, values)
	f.slots = pointerTo(t, device, []int64{0})
	f.lse = pointerTo(t, device, []float32{0})
	return f
}

func (f *forgetting) part(number int64) sluice.Tensor {
	return sluice.BSHD(f.memory.At(number*partBytes), 1, 1, 128)
}

// context makes a context whose HIP calls are counted.
func (f *forgetting) context(t *testing.T) *sluice.Context {
	t.Helper()
	context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceHIP, DeviceOrdinal: f.ordinal,
		HIPResolver: hiptest.Resolver(f.emulator)})
	check(t, err)
	return context
}

func (f *forgetting) plan(t *testing.T, context *sluice.Context) *sluice.Plan {
	t.Helper()
	problem := simple()
	problem.QHeads = 1
	plan, err := context.NewPlan(problem)
	check(t, err)
	return plan
}

func (f *forgetting) run(t *testing.T, plan *sluice.Plan, launch *sluice.Launch) {
	t.Helper()
	args := single(simple().KV, 1, 1, f.part(0), f.part(0), f.part(1), f.part(2))
	check(t, plan.Run(&args, launch))
}

func (f *forgetting) append(t *testing.T, context *sluice.Context, launch *sluice.Launch) {
	t.Helper()
	format := sluice.KVPages(sluice.F16, 1, 128, 1)
	check(t, context.Append(&sluice.Append{SourceType: sluice.F16, Tokens: 1, K: f.part(0), V: f.part(1),
		KV: &sluice.KV{Format: &format, K: f.part(3), V: f.part(2), PageCount: 1}, Slots: f.slots}, launch))
}

func (f *forgetting) merge(t *testing.T, context *sluice.Context, launch *sluice.Launch) {
	t.Helper()
	check(t, context.Merge(&sluice.Merge{Tokens: 1, Heads: 1, HeadDim: 128, LSEBase: sluice.LSELN, OFormat: half,
		Parts: sluice.Parts{Type: sluice.F16, Count: 1, O: f.part(1), LSE: sluice.BSHD(f.lse, 1, 1, 1)}, O: f.part(2)}, launch))
}

func (f *forgetting) clear(t *testing.T) {
	t.Helper()
	check(t, hip.Upload(f.memory, 2*partBytes, make([]uint16, 128)))
}

func (f *forgetting) expectOnes(t *testing.T) {
	t.Helper()
	check(t, f.stream.Synchronize())
	got := make([]uint16, 128)
	check(t, hip.Download(got, f.memory, 2*partBytes))
	for i := range got {
		if got[i] != 0x3c00 {
			t.Fatalf("element %d of the result is 0x%04x, not 1", i, got[i])
		}
	}
}

// finalized collects garbage until finalizers have closed that many more handles.
func finalized(t *testing.T, before sluice.HandleCounts, more int64) {
	t.Helper()
	eventually(t, "the finalizers", func() bool { return sluice.Handles().Finalized == before.Finalized+more })
}

func gone(t *testing.T, before sluice.HandleCounts) {
	t.Helper()
	eventually(t, "the end of what was forgotten", func() bool {
		now := sluice.Handles()
		return now.Contexts == before.Contexts && now.Plans == before.Plans
	})
}

// An object forgotten with pending work stays until the work has completed; other finalizers do not wait for it.
func testForgotten(t *testing.T, f *forgetting) {
	launch := &sluice.Launch{Stream: f.stream.Handle()}
	for _, c := range []struct {
		name      string
		forgotten int64
		call      func(context *sluice.Context)
	}{
		{"a plan and its context", 2, func(context *sluice.Context) { f.run(t, f.plan(t, context), launch) }},
		{"a plan whose context is closed", 1, func(context *sluice.Context) {
			plan := f.plan(t, context)
			check(t, context.Close())
			f.run(t, plan, launch)
		}},
		{"a context after an append", 1, func(context *sluice.Context) { f.append(t, context, launch) }},
		{"a context after a merge", 1, func(context *sluice.Context) { f.merge(t, context, launch) }},
		{"a context after a merge, with a closed plan", 1, func(context *sluice.Context) {
			plan := f.plan(t, context)
			f.merge(t, context, launch)
			check(t, plan.Close())
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer hiptest.LetGo()
			f.clear(t)
			const captureUnsupported, refusals = 900, 2 // as if an unknown stream were capturing
			hiptest.Reset(refusals, captureUnsupported)
			before := sluice.Handles()
			check(t, hiptest.Hold(f.emulator, f.stream.Handle()))
			func() { c.call(f.context(t)) }()
			finalized(t, before, c.forgotten)
			eventually(t, "the wait for the device", func() bool { return hiptest.Made().Synchronized > refusals })
			func() {
				_, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceTarget, Target: "gfx942:304"})
				check(t, err)
			}()
			finalized(t, before, c.forgotten+1)
			if now, made := sluice.Handles(), hiptest.Made(); now.Contexts != before.Contexts+1 || made.Unloaded+made.UnloadedHeld != 0 {
				t.Errorf("%+v after %+v, %+v, while work is pending", now, before, made)
			}
			hiptest.LetGo()
			gone(t, before)
			if made := hiptest.Made(); made.Unloaded == 0 || made.UnloadedHeld != 0 {
				t.Errorf("%+v after the work", made)
			}
			f.expectOnes(t)
		})
	}
}

func TestForgottenWithWorkPending(t *testing.T) {
	context, _ := emulated(t)
	testForgotten(t, newForgetting(t, context))
}

// The wait is for the context's own device, whichever is current where finalizers run.
func TestForgottenOnAnotherDevice(t *testing.T) {
	_, device := emulated(t)
	check(t, device.ConfigureEmulator("devices", "2"))
	t.Cleanup(func() { check(t, device.ConfigureEmulator("devices", "1")) })
	context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceEmulated, DeviceOrdinal: 1})
	check(t, err)
	t.Cleanup(func() { check(t, context.Close()) })
	testForgotten(t, newForgetting(t, context))
}

// If nothing was enqueued, or Close was called, the finalizer does not wait.
func TestNoUnneededWaits(t *testing.T) {
	emulator, _ := emulated(t)
	f := newForgetting(t, emulator)
	hiptest.Reset(0, 0)
	before := sluice.Handles()
	func() { f.plan(t, f.context(t)) }()
	finalized(t, before, 2)
	gone(t, before)
	context := f.context(t)
	plan := f.plan(t, context)
	f.run(t, plan, nil)
	f.append(t, context, nil)
	check(t, f.device.Synchronize(0))
	check(t, plan.Close())
	check(t, context.Close())
	if now, made := sluice.Handles(), hiptest.Made(); now.Contexts != before.Contexts || now.Plans != before.Plans ||
		made.Synchronized != 0 || made.Unloaded == 0 {
		t.Errorf("%+v after %+v, %+v", now, before, made)
	}
	// A target's plan refuses every run, and has no device to wait for.
	before = sluice.Handles()
	func() {
		context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceTarget, Target: "gfx942:304"})
		check(t, err)
		if err := f.plan(t, context).Run(&sluice.Args{}, nil); err == nil {
			t.Error("a target ran a plan")
		}
	}()
	finalized(t, before, 2)
	gone(t, before)
}

func TestRuntimesThatCannotWait(t *testing.T) {
	emulator, _ := emulated(t)
	before := sluice.Handles()
	_, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceHIP,
		HIPResolver: hiptest.Resolver(emulator, "hipDeviceSynchronize")})
	refused(t, err, sluice.NoDevice, "hipDeviceSynchronize", "hipDeviceSynchronize")
	if now := sluice.Handles(); now != before {
		t.Errorf("%+v after %+v", now, before)
	}
}

// A graph launches captured plans even if they were forgotten or closed since, and releases them in the end.
func TestGraphsKeepWhatTheyLaunch(t *testing.T) {
	emulator, _ := emulated(t)
	f := newForgetting(t, emulator)
	launch := &sluice.Launch{Stream: f.stream.Handle()}
	for _, forget := range []bool{true, false} {
		for name, capture := range map[string]func(context *sluice.Context) (*sluice.Plan, func()){
			"runs": func(context *sluice.Context) (*sluice.Plan, func()) {
				plan := f.plan(t, context)
				return plan, func() {
					f.run(t, plan, launch)
					f.run(t, plan, launch)
				}
			},
			"append": func(context *sluice.Context) (*sluice.Plan, func()) {
				f.append(t, context, nil) // loads the kernel
				return nil, func() { f.append(t, context, launch) }
			},
			"merge": func(context *sluice.Context) (*sluice.Plan, func()) {
				f.merge(t, context, nil)
				return nil, func() { f.merge(t, context, launch) }
			},
		} {
			hiptest.Reset(0, 0)
			before := sluice.Handles()
			var graph *hip.Graph
			var closed, plans int64
			func() {
				context := f.context(t)
				plan, enqueue := capture(context)
				check(t, f.device.Synchronize(0))
				var err error
				graph, err = f.stream.Capture(func() error {
					enqueue()
					return nil
				})
				check(t, err)
				if plan != nil {
					plans = 1
				}
				if !forget {
					check(t, plan.Close())
					check(t, context.Close())
				}
				closed = 1 + plans
			}()
			f.clear(t)
			if forget {
				finalized(t, before, closed)
			}
			for i := 0; i < 3; i++ {
				runtime.GC()
				time.Sleep(5 * time.Millisecond)
			}
			if now, made := sluice.Handles(), hiptest.Made(); now.Contexts != before.Contexts+1 || now.Plans != before.Plans+plans ||
				made.Unloaded != 0 {
				t.Errorf("%s, forgotten %v: %+v after %+v, %+v, with a graph", name, forget, now, before, made)
			}
			check(t, graph.Launch(f.stream.Handle()))
			f.expectOnes(t)
			check(t, graph.Close())
			gone(t, before)
			if made := hiptest.Made(); made.Unloaded == 0 || (made.Synchronized != 0) != forget {
				t.Errorf("%s, forgotten %v: %+v after the graph", name, forget, made)
			}
		}
	}
}

// A graph keeps neither calls on other streams during the capture, nor calls of a failed capture.
func TestGraphsKeepNothingElse(t *testing.T) {
	emulator, _ := emulated(t)
	f := newForgetting(t, emulator)
	before := sluice.Handles()
	context := f.context(t)
	first, second := f.plan(t, context), f.plan(t, context)
	graph, err := f.stream.Capture(func() error {
		f.run(t, first, &sluice.Launch{Stream: f.stream.Handle()})
		f.run(t, second, nil)
		return nil
	})
	check(t, err)
	check(t, f.device.Synchronize(0))
	check(t, second.Close())
	if now := sluice.Handles(); now.Plans != before.Plans+1 {
		t.Errorf("%+v, before %+v, after the Close of a plan that is in no graph", now, before)
	}
	// A graph that launches the first one keeps the same.
	outer, err := f.stream.Capture(func() error { return graph.Launch(f.stream.Handle()) })
	check(t, err)
	check(t, graph.Close())
	check(t, first.Close())
	if now := sluice.Handles(); now.Plans != before.Plans+1 {
		t.Errorf("%+v after %+v, with a graph of a graph", now, before)
	}
	f.clear(t)
	check(t, outer.Launch(f.stream.Handle()))
	f.expectOnes(t)
	check(t, outer.Close())
	third := f.plan(t, context)
	_, err = f.stream.Capture(func() error {
		f.run(t, third, &sluice.Launch{Stream: f.stream.Handle()})
		return sluice.Unsupported
	})
	if err != sluice.Unsupported {
		t.Errorf("%v", err)
	}
	check(t, third.Close())
	check(t, context.Close())
	if now := sluice.Handles(); now.Plans != before.Plans || now.Contexts != before.Contexts {
		t.Errorf("%+v, before %+v, after a capture that failed", now, before)
	}
}

// A finalizer's wait for the device would invalidate a capture, so it comes after it.
func TestForgottenDuringCapture(t *testing.T) {
	emulator, _ := emulated(t)
	f := newForgetting(t, emulator)
	context := f.context(t)
	defer context.Close()
	plan := f.plan(t, context)
	defer plan.Close()
	hiptest.Reset(0, 0)
	before := sluice.Handles()
	graph, err := f.stream.Capture(func() error {
		forgotten := make(chan bool)
		go func() { // because a capture must not load kernels
			defer close(forgotten)
			f.run(t, f.plan(t, context), nil)
		}()
		<-forgotten
		finalized(t, before, 1)
		time.Sleep(20 * time.Millisecond)
		if made := hiptest.Made(); made.Synchronized != 0 {
			t.Errorf("%+v during a capture", made)
		}
		f.run(t, plan, &sluice.Launch{Stream: f.stream.Handle()})
		return nil
	})
	check(t, err)
	gone(t, before)
	if made := hiptest.Made(); made.Synchronized != 1 {
		t.Errorf("%+v after the capture", made)
	}
	f.clear(t)
	check(t, graph.Launch(f.stream.Handle()))
	f.expectOnes(t)
	check(t, graph.Close())
}
