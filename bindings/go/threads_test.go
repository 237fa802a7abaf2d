package sluice_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

// Many goroutines run one plan at once, each on its own stream, with its own numbers and its own result.
func TestRunsAtOnce(t *testing.T) {
	context, device := emulated(t)
	plan, err := context.NewPlan(simple())
	check(t, err)
	defer plan.Close()
	var users sync.WaitGroup
	for i := 0; i < 8; i++ {
		users.Add(1)
		go func(seed uint32) {
			defer users.Done()
			if err := runAlone(device, plan, seed); err != nil {
				t.Error(err)
			}
		}(uint32(i))
	}
	users.Wait()
}

// runAlone attends to one key, whose value is then the result.
func runAlone(device *hip.Runtime, plan *sluice.Plan, seed uint32) error {
	stream, err := device.NewStream()
	if err != nil {
		return err
	}
	defer stream.Close()
	_, values := numbers(4*128, seed) // K, V, Q
	input, err := hip.NewMemory(device, values)
	if err != nil {
		return err
	}
	defer input.Free()
	output, err := device.Malloc(2 * 2 * 128)
	if err != nil {
		return err
	}
	defer output.Free()
	key := func(offset int64) sluice.Tensor { return sluice.BSHD(input.At(offset), 1, 1, 128) }
	args := single(simple().KV, 1, 1, sluice.BSHD(input.At(512), 1, 2, 128), key(0), key(256),
		sluice.BSHD(output.At(0), 1, 2, 128))
	for round := 0; round < 5; round++ {
		if err := output.Fill(0xff); err != nil {
			return err
		}
		if err := device.Synchronize(0); err != nil { // the stream does not wait for the default one
			return err
		}
		if err := plan.Run(&args, &sluice.Launch{Stream: stream.Handle()}); err != nil {
			return err
		}
		runtime.Gosched()
		if err := stream.Synchronize(); err != nil {
			return err
		}
		got := make([]uint16, 2*128)
		if err := hip.Download(got, output, 0); err != nil {
			return err
		}
		for i, bits := range got {
			if bits != values[128+i%128] {
				return fmt.Errorf("seed %d: element %d is 0x%04x, not 0x%04x", seed, i, bits, values[128+i%128])
			}
		}
	}
	return nil
}

// A run on one stream reads what a run on another one writes. The emulator runs work only when the program waits, in a
// random order: without the dependency some order is wrong.
func TestDependencies(t *testing.T) {
	context, device := emulated(t)
	problem := simple()
	problem.KV.KVHeads = 2
	plan, err := context.NewPlan(problem)
	check(t, err)
	defer plan.Close()
	_, values := numbers(2*128, 4)
	tensorOf := func(values []uint16) (sluice.Tensor, *hip.Memory) {
		memory := onDevice(t, device, values)
		return sluice.BSHD(memory.Pointer(), 1, 2, 128), memory
	}
	zeros, _ := tensorOf(make([]uint16, 2*128))
	input, _ := tensorOf(values)
	between, betweenMemory := tensorOf(make([]uint16, 2*128))
	output, outputMemory := tensorOf(make([]uint16, 2*128))
	for _, kind := range []sluice.DependencyKind{sluice.DependsOnEvent, sluice.DependsOnStream} {
		for seed := 0; seed < 8; seed++ {
			check(t, betweenMemory.Fill(0))
			check(t, device.Synchronize(0))
			check(t, device.ConfigureEmulator("stream_order", fmt.Sprint(seed)))
			copyThrough(t, device, plan, kind, problem.KV, zeros, input, between, output)
			check(t, device.ConfigureEmulator("stream_order", "concurrent"))
			got := make([]uint16, len(values))
			check(t, hip.Download(got, outputMemory, 0))
			// Attention to one key is a copy of its value, exactly so if the score is 0.
			for i := range got {
				if got[i] != values[i] {
					t.Fatalf("kind %d, seed %d: element %d is 0x%04x, not 0x%04x", kind, seed, i, got[i], values[i])
				}
			}
		}
	}
}

// copyThrough copies input to between on a stream, and that to output on another one.
func copyThrough(t *testing.T, device *hip.Runtime, plan *sluice.Plan, kind sluice.DependencyKind,
	format *sluice.KVFormat, query, input, between, output sluice.Tensor) {
	writer, err := device.NewStream()
	check(t, err)
	defer writer.Close()
	reader, err := device.NewStream()
	check(t, err)
	defer reader.Close()
	written, err := device.NewEvent()
	check(t, err)
	defer written.Close()
	read, err := device.NewEvent()
	check(t, err)
	defer read.Close()
	args := single(format, 1, 1, query, input, input, between)
	launch := sluice.Launch{Stream: writer.Handle()}
	dependency := sluice.Dependency{Kind: kind, Event: written.Handle()}
	if kind == sluice.DependsOnStream {
		dependency.Stream = writer.Handle()
	} else {
		launch.SignalEvent = written.Handle()
	}
	check(t, plan.Run(&args, &launch))
	args = single(format, 1, 1, query, between, between, output)
	check(t, plan.Run(&args, &sluice.Launch{Stream: reader.Handle(), Dependencies: []sluice.Dependency{dependency},
		SignalEvent: read.Handle()}))
	check(t, read.Synchronize())
	check(t, reader.Synchronize())
	check(t, writer.Synchronize())
}

// HIP's current device belongs to a thread, and a goroutine may be on any thread: a context's calls always go to its
// own device, and restore the thread's.
func TestDevicesOfThreads(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	zero, device := emulated(t)
	check(t, device.ConfigureEmulator("devices", "2"))
	defer func() { check(t, device.ConfigureEmulator("devices", "1")) }()
	func() { // everything is destroyed before the emulator has one device again
		context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceEmulated, DeviceOrdinal: 1})
		check(t, err)
		defer context.Close()
		second, err := hip.Open(context)
		check(t, err)
		freeBefore, _, err := second.MemoryInfo()
		check(t, err)
		memory, err := second.Malloc(2 * 7 * 128)
		check(t, err)
		defer memory.Free()
		check(t, memory.Fill(0))
		if free, _, err := second.MemoryInfo(); err != nil || free >= freeBefore {
			t.Errorf("the memory is not on device 1: %d of %d bytes, %v", free, freeBefore, err)
		}
		part := func(number int64) sluice.Tensor { return sluice.BSHD(memory.At(number*256), 1, 1, 128) }
		values := make([]uint16, 128)
		for i := range values {
			values[i] = 0x3c00
		}
		check(t, hip.Upload(memory, 256, values))
		problem := simple()
		problem.QHeads = 1
		plan, err := context.NewPlan(problem)
		check(t, err)
		defer plan.Close()
		args := single(problem.KV, 1, 1, part(0), part(0), part(1), part(2))
		check(t, plan.Run(&args, nil))
		lse, err := hip.NewMemory(second, []float32{0})
		check(t, err)
		defer lse.Free()
		check(t, context.Merge(&sluice.Merge{Tokens: 1, Heads: 1, HeadDim: 128, LSEBase: sluice.LSELN, OFormat: half,
			Parts: sluice.Parts{Type: sluice.F16, Count: 1, O: part(2), LSE: sluice.BSHD(lse.Pointer(), 1, 1, 1)}, O: part(3)}, nil))
		slots, err := hip.NewMemory(second, []int64{0})
		check(t, err)
		defer slots.Free()
		format, rows := sluice.KVPages(sluice.F16, 1, 128, 1), *problem.KV
		cache := sluice.KV{Format: &format, K: part(1), V: part(2), PageCount: 1}
		check(t, context.Append(&sluice.Append{SourceType: sluice.F16, Tokens: 1, K: part(3), V: part(3), KV: &cache,
			Slots: slots.Pointer()}, nil))
		copied := sluice.KV{Format: &format, K: part(4), V: part(5), PageCount: 1}
		check(t, context.Copy(&sluice.Copy{Source: &cache, Target: &copied}, nil))
		table, err := hip.NewMemory(second, []int32{0, 1})
		check(t, err)
		defer table.Free()
		check(t, context.Gather(&sluice.Gather{Batch: 1, Source: &copied, Pages: sluice.Pages{Table: table.At(0), Stride: 1},
			Lengths: table.At(4), Target: &sluice.KV{Format: &rows, K: part(0), V: part(6)}, Starts: table.At(0), Tokens: 1}, nil))
		check(t, second.Synchronize(0))
		got := make([]uint16, 128)
		check(t, hip.Download(got, memory, 0))
		for i := range got {
			if got[i] != 0x3c00 {
				t.Fatalf("element %d is 0x%04x, not 1", i, got[i])
			}
		}
		if current, err := device.CurrentDevice(); err != nil || current != 0 {
			t.Errorf("device %d is current, %v", current, err)
		}
	}()
	if info, err := zero.Device(); err != nil || info.Ordinal != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}
