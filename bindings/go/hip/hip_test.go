package hip

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/internal/hiptest"
)

func TestMain(m *testing.M) {
	status := m.Run()
	if handles := sluice.Handles(); Live() != (Counts{}) || handles.Contexts != 0 {
		fmt.Printf("not released: %+v, %+v\n", Live(), handles)
		status = 1
	}
	os.Exit(status)
}

func open(t *testing.T) (*sluice.Context, *Runtime) {
	t.Helper()
	context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceEmulated})
	check(t, err)
	t.Cleanup(func() { check(t, context.Close()) })
	r, err := Open(context)
	check(t, err)
	return context, r
}

// openCounted opens a runtime whose calls hiptest counts. At the end of the test nothing made through them may be left.
func openCounted(t *testing.T) (*sluice.Context, *Runtime) {
	t.Helper()
	emulator, _ := open(t)
	t.Cleanup(func() {
		if live := hiptest.Live(); live != (hiptest.Lives{}) {
			t.Errorf("not released: %+v", live)
		}
	})
	context, err := sluice.NewContext(sluice.ContextDesc{Kind: sluice.DeviceHIP, HIPResolver: hiptest.Resolver(emulator)})
	check(t, err)
	t.Cleanup(func() { check(t, context.Close()) })
	r, err := Open(context)
	check(t, err)
	return context, r
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %v; it should say %q", err, part)
		}
	}
}

func TestMemory(t *testing.T) {
	context, r := open(t)
	free, total, err := r.MemoryInfo()
	check(t, err)
	if free != total {
		t.Errorf("%d of %d bytes are free", free, total)
	}
	memory, err := NewMemory(r, []int32{1, 2, 3, 4})
	check(t, err)
	if now, _, err := r.MemoryInfo(); err != nil || now >= free || Live().Memories != 1 {
		t.Errorf("%d bytes are free, %v; %+v", now, err, Live())
	}
	check(t, Upload(memory, 8, []int32{7}))
	values := make([]int32, 3)
	check(t, Download(values, memory, 4))
	if values[0] != 2 || values[1] != 7 || values[2] != 4 {
		t.Errorf("%v", values)
	}
	refused(t, Upload(memory, 12, []int32{1, 2}), "values has 8 bytes from offset 12 on", "has 16")
	refused(t, Download(values, memory, -4), "offset -4")
	refused(t, Download(values, memory, 17), "offset 17")
	check(t, Upload(memory, 16, []int32{}))
	if memory.At(4) != memory.Pointer()+4 || memory.At(16) != memory.Pointer()+16 || memory.Bytes() != 16 {
		t.Errorf("byte 4 of %d is at %d", memory.Pointer(), memory.At(4))
	}
	if memory.At(17) != sluice.FreedMemory || memory.At(-1) != sluice.FreedMemory {
		t.Error("bytes outside of the memory have an address")
	}
	check(t, memory.Fill(1))
	check(t, Download(values, memory, 0))
	if values[2] != 0x01010101 {
		t.Errorf("%v", values)
	}

	check(t, memory.Free())
	check(t, memory.Free())
	if memory.Pointer() != sluice.FreedMemory || memory.At(4) != sluice.FreedMemory {
		t.Error("free memory has an address")
	}
	refused(t, Upload(memory, 0, values), "memory is free")
	refused(t, memory.Fill(0), "memory is free")
	_, err = r.Malloc(-1)
	refused(t, err, "bytes is -1")
	nothing, err := NewMemory(r, []int32{})
	check(t, err)
	if nothing.Bytes() != 0 || nothing.Pointer() == 0 {
		t.Errorf("%d bytes at %d", nothing.Bytes(), nothing.Pointer())
	}
	check(t, nothing.Free())
	_, err = r.Malloc(1 << 60)
	var failure *Error
	if !errors.As(err, &failure) || failure.Call != "hipMalloc" || failure.Code != 2 || failure.Text == "" {
		t.Errorf("%v", err)
	}

	// A runtime outlives its context.
	check(t, context.Close())
	memory, err = r.Malloc(16)
	check(t, err)
	check(t, memory.Free())
}

func TestStreamsAndEvents(t *testing.T) {
	_, r := open(t)
	stream, err := r.NewStream()
	check(t, err)
	event, err := r.NewEvent()
	check(t, err)
	counters, ok := r.EmulatorCounters()
	if !ok || counters.LiveStreams != 1 || counters.LiveEvents != 1 || Live().Streams != 1 || Live().Events != 1 {
		t.Errorf("%+v, %+v", counters, Live())
	}
	check(t, event.Record(stream.Handle()))
	check(t, event.Synchronize())
	check(t, stream.Synchronize())
	for i := 0; i < 2; i++ {
		check(t, event.Close())
		check(t, stream.Close())
	}
	refused(t, event.Record(0), "event is closed")
	refused(t, r.Synchronize(stream.Handle()), "stream is closed")
	other, err := r.NewEvent()
	check(t, err)
	refused(t, other.Record(stream.Handle()), "stream is closed")
	check(t, other.Close())
	refused(t, event.Synchronize(), "event is closed")
	refused(t, stream.Synchronize(), "stream is closed")
	if counters, _ = r.EmulatorCounters(); counters.LiveStreams != 0 || counters.LiveEvents != 0 {
		t.Errorf("%+v", counters)
	}
}

// Closing while others call: each call is complete or refused, and the runtime never sees destroyed objects.
func TestCloseBesideCalls(t *testing.T) {
	_, r := open(t)
	for round := 0; round < 20; round++ {
		memory, err := r.Malloc(4096)
		check(t, err)
		stream, err := r.NewStream()
		check(t, err)
		event, err := r.NewEvent()
		check(t, err)
		calls := []func() error{
			func() error { return Upload(memory, 0, make([]uint8, 4096)) },
			func() error { return Download(make([]uint8, 4096), memory, 0) },
			func() error { return memory.Fill(1) },
			stream.Synchronize,
			func() error { return event.Record(0) },
			event.Synchronize,
		}
		var users sync.WaitGroup
		var started sync.WaitGroup
		for _, call := range calls {
			users.Add(1)
			started.Add(1)
			go func(call func() error) {
				defer users.Done()
				err := call()
				started.Done()
				for err == nil {
					err = call()
				}
				if !strings.HasSuffix(err.Error(), "it can no longer be used") {
					t.Error(err)
				}
			}(call)
		}
		started.Wait()
		check(t, memory.Free())
		check(t, stream.Close())
		check(t, event.Close())
		users.Wait()
	}
}

// A kernel's fault is reported by the call that waits.
func TestFaults(t *testing.T) {
	context, r := open(t)
	rows, format := sluice.Format{Type: sluice.F16}, sluice.KVTensors(sluice.F16, 1, 128)
	plan, err := context.NewPlan(&sluice.Attention{QHeads: 1, Q: rows, O: rows, KV: &format})
	check(t, err)
	defer plan.Close()
	memory, err := r.Malloc(256)
	check(t, err)
	defer memory.Free()
	check(t, memory.Fill(0))
	tensor := sluice.BSHD(memory.Pointer(), 1, 1, 128)
	short := tensor
	short.Data += 128 // half of the row is past the end of the memory
	check(t, plan.Run(&sluice.Args{Batch: 1, Q: tensor, O: short, Rows: sluice.Rows{MaxLen: 1},
		Keys: []sluice.Keys{{KV: &sluice.KV{Format: &format, K: tensor, V: tensor}, Rows: sluice.Rows{MaxLen: 1}}}}, nil))
	err = r.Synchronize(0)
	var failure *Error
	if !errors.As(err, &failure) || failure.Call != "hipStreamSynchronize" || failure.Code != 700 {
		t.Errorf("%v", err)
	}
	check(t, r.ConfigureEmulator("clear_fault", "1"))
	check(t, r.Synchronize(0))
	refused(t, r.ConfigureEmulator("colour", "blue"), `no setting "colour"`)
	refused(t, r.ConfigureEmulator("devices", "99"), `devices cannot be "99"`)
}
