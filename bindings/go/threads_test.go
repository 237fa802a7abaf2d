package sluice_test

import (
	"fmt"
	"math/rand"
	"runtime"
	"sync"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

// Many goroutines run one plan at once, each on its own stream and with its own result.
func TestRunsAtOnce(t *testing.T) {
	context, device := emulated(t)
	c := &runCase{problem: problemOf(sluice.F16, 2, 1, 64, nil), lengths: [][2]int{{5, 40}}}
	plan, err := context.NewPlan(&c.problem)
	check(t, err)
	defer plan.Close()
	random := rand.New(rand.NewSource(1))
	sequences, f := randomSequences(c, random)
	first := place(t, device, c, sequences, f, random)
	check(t, plan.Run(&first.device, nil))
	check(t, device.Synchronize(0))
	wanted := first.o.fromDevice(t)

	var users sync.WaitGroup
	for i := 0; i < 8; i++ {
		users.Add(1)
		go func() {
			defer users.Done()
			if err := runAlone(device, plan, first, wanted); err != nil {
				t.Error(err)
			}
		}()
	}
	users.Wait()
}

func runAlone(device *hip.Runtime, plan *sluice.Plan, first *placed, wanted *tensor) error {
	stream, err := device.NewStream()
	if err != nil {
		return err
	}
	defer stream.Close()
	size := int64(len(wanted.array.bits16))
	memory, err := device.Malloc(2 * size)
	if err != nil {
		return err
	}
	defer memory.Free()
	args := first.device
	if args.O, err = memory.Tensor(0, args.O.View); err != nil {
		return err
	}
	if args.LSE.Data != 0 {
		lse, err := device.Malloc(4 * int64(len(first.lse.array.bits32)))
		if err != nil {
			return err
		}
		defer lse.Free()
		args.LSE.Data = lse.Pointer()
	}
	for round := 0; round < 5; round++ {
		if err := memory.Fill(0xff); err != nil {
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
		got := make([]uint16, size)
		if err := hip.Download(got, memory, 0); err != nil {
			return err
		}
		for i, bits := range wanted.array.bits16 {
			if bits != 0x7e00 && got[i] != bits { // elements outside all rows are NaN
				return fmt.Errorf("element %d is 0x%04x, not 0x%04x", i, got[i], bits)
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
	problem.KVHeads = 2
	plan, err := context.NewPlan(&problem)
	check(t, err)
	defer plan.Close()
	view := sluice.Contiguous(sluice.F16, [4]int64{1, 1, 2, 128})
	random := rand.New(rand.NewSource(4))
	values := make([]uint16, 2*128)
	for i := range values {
		values[i] = uint16(encode(sluice.F16, exact(random)))
	}
	tensorOf := func(values []uint16) (sluice.Tensor, *hip.Memory) {
		memory := onDevice(t, device, values)
		made, err := memory.Tensor(0, view)
		check(t, err)
		return made, memory
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
			copyThrough(t, device, plan, kind, zeros, input, between, output)
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
	query, input, between, output sluice.Tensor) {
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
	args := sluice.Args{Batch: 1, QLen: 1, KVLen: 1, Q: query, K: input, V: input, O: between}
	launch := sluice.Launch{Stream: writer.Handle()}
	dependency := sluice.Dependency{Kind: kind, Event: written.Handle()}
	if kind == sluice.DependsOnStream {
		dependency.Stream = writer.Handle()
	} else {
		launch.SignalEvent = written.Handle()
	}
	check(t, plan.Run(&args, &launch))
	args.K, args.V, args.O = between, between, output
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
		memory, err := second.Malloc(2 * 4 * 128)
		check(t, err)
		defer memory.Free()
		check(t, memory.Fill(0))
		if free, _, err := second.MemoryInfo(); err != nil || free >= freeBefore {
			t.Errorf("the memory is not on device 1: %d of %d bytes, %v", free, freeBefore, err)
		}
		tensorAt := func(part, heads int64) sluice.Tensor {
			made, err := memory.Tensor(part*256, sluice.Contiguous(sluice.F16, [4]int64{1, 1, heads, 128}))
			check(t, err)
			return made
		}
		values := make([]uint16, 128)
		for i := range values {
			values[i] = 0x3c00
		}
		check(t, hip.Upload(memory, 256, values))
		problem := simple()
		problem.QHeads = 1
		plan, err := context.NewPlan(&problem)
		check(t, err)
		defer plan.Close()
		check(t, plan.Run(&sluice.Args{Batch: 1, QLen: 1, KVLen: 1, Q: tensorAt(0, 1), K: tensorAt(0, 1), V: tensorAt(1, 1),
			O: tensorAt(2, 1)}, nil))
		lse, err := second.Malloc(64)
		check(t, err)
		defer lse.Free()
		check(t, lse.Fill(0))
		lseTensor, err := lse.Tensor(0, sluice.Contiguous(sluice.F32, [4]int64{1, 1, 1, 1}))
		check(t, err)
		check(t, context.MergeStates(&sluice.Merge{PartialType: sluice.F16, OType: sluice.F16, Parts: 1, Tokens: 1, Heads: 1,
			HeadDimV: 128, Partial: tensorAt(2, 1), PartialLSE: lseTensor, O: tensorAt(3, 1)}, nil))
		slots, err := hip.NewMemory(second, []int64{0})
		check(t, err)
		defer slots.Free()
		check(t, context.KVAppend(&sluice.Append{SourceType: sluice.F16, CacheType: sluice.F16, KVHeads: 1, HeadDimQK: 128,
			HeadDimV: 128, PageSize: 1, Tokens: 1, K: tensorAt(3, 1), V: tensorAt(3, 1), KCache: tensorAt(0, 1),
			VCache: tensorAt(1, 1), Slots: slots.Pointer()}, nil))
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
