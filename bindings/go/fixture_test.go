package sluice_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

// TestMain fails the run if something is not released: handles of the library, or streams, events and memory of the
// emulated device.
func TestMain(m *testing.M) {
	status := m.Run()
	if left := leaks(); left != "" {
		fmt.Println("not released:", left)
		status = 1
	}
	os.Exit(status)
}

func leaks() string {
	// A test that leaves a handle to the finalizer has waited for it.
	if handles := sluice.Handles(); handles.Contexts != 0 || handles.Plans != 0 {
		return fmt.Sprintf("%+v", handles)
	}
	if live := hip.Live(); live != (hip.Counts{}) {
		return fmt.Sprintf("%+v", live)
	}
	context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceEmulated})
	if err != nil {
		return err.Error()
	}
	defer context.Close()
	device, err := hip.Open(context)
	if err != nil {
		return err.Error()
	}
	// Refused while the library has a module loaded for a plan that was missed.
	if err := device.ConfigureEmulator("devices", "1"); err != nil {
		return err.Error()
	}
	free, total, err := device.MemoryInfo()
	if counters, ok := device.EmulatorCounters(); err != nil || !ok || counters.LiveStreams != 0 ||
		counters.LiveEvents != 0 || free != total {
		return fmt.Sprintf("%d bytes of the device, %+v, %v", total-free, counters, err)
	}
	return ""
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// emulated is a context with its runtime, for one test.
func emulated(t testing.TB) (*sluice.Context, *hip.Runtime) {
	t.Helper()
	context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceEmulated})
	check(t, err)
	t.Cleanup(func() { check(t, context.Close()) })
	device, err := hip.Open(context)
	check(t, err)
	return context, device
}

func target(t testing.TB) *sluice.Context {
	t.Helper()
	context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceTarget, Target: "gfx942:304"})
	check(t, err)
	t.Cleanup(func() { check(t, context.Close()) })
	return context
}

// onDevice is a copy of values, for one test; nil without values.
func onDevice[T sluice.Element](t testing.TB, device *hip.Runtime, values []T) *hip.Memory {
	t.Helper()
	if len(values) == 0 {
		return nil
	}
	memory, err := hip.NewMemory(device, values)
	check(t, err)
	t.Cleanup(func() { check(t, memory.Free()) })
	return memory
}

// pointerTo is onDevice's address, 0 for no values.
func pointerTo[T sluice.Element](t testing.TB, device *hip.Runtime, values []T) sluice.DevicePointer {
	t.Helper()
	if len(values) == 0 {
		return 0
	}
	return onDevice(t, device, values).Pointer()
}

// half is the format of rows of F16.
var half = sluice.Format{Type: sluice.F16}

// simple is a supported problem of dense tensors: two heads share one KV head of 128 elements.
func simple() *sluice.Attention {
	kv := sluice.KVTensors(sluice.F16, 1, 128)
	return &sluice.Attention{QHeads: 2, Q: half, O: half, KV: &kv}
}

// splitting is a problem whose plan needs workspace.
func splitting() *sluice.Attention {
	made := simple()
	made.Flags, made.Bounds = sluice.AttentionBatchInvariant, sluice.Bounds{Batch: 8, KVLen: 4096}
	return made
}

// single is a call of one sequence with dense tensors.
func single(format *sluice.KVFormat, rows, keys int32, q, k, v, o sluice.Tensor) sluice.Args {
	return sluice.Args{Batch: 1, Q: q, O: o, Rows: sluice.Rows{MaxLen: rows},
		Keys: []sluice.Keys{{KV: &sluice.KV{Format: format, K: k, V: v}, Rows: sluice.Rows{MaxLen: keys}}}}
}

// eventually waits for the effect of a finalizer.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for i := 0; i < 200; i++ {
		runtime.GC()
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%s did not happen", what)
}
