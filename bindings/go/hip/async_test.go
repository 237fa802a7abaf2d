package hip

import (
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/internal/hiptest"
)

// newStream is a stream for one test.
func newStream(t *testing.T, r *Runtime) *Stream {
	t.Helper()
	stream, err := r.NewStream()
	check(t, err)
	t.Cleanup(func() { check(t, stream.Close()) })
	return stream
}

// pinned is memory for one test, with values in it.
func pinned[T sluice.Element](t *testing.T, r *Runtime, values []T) (*HostMemory, []T) {
	t.Helper()
	_, bytes := bytesOf(values)
	memory, err := r.HostMalloc(bytes)
	check(t, err)
	t.Cleanup(func() { check(t, memory.Free()) })
	all, err := Values[T](memory, 0, int64(len(values)))
	check(t, err)
	copy(all, values)
	return memory, all
}

func onDevice[T sluice.Element](t *testing.T, r *Runtime, values []T) *Memory {
	t.Helper()
	memory, err := NewMemory(r, values)
	check(t, err)
	t.Cleanup(func() { check(t, memory.Free()) })
	return memory
}

func expect[T sluice.Element](t *testing.T, what string, got []T, wanted ...T) {
	t.Helper()
	for i := range wanted {
		if len(got) != len(wanted) || got[i] != wanted[i] {
			t.Errorf("%s: %v, not %v", what, got, wanted)
			return
		}
	}
}

func isDone(t *testing.T, what string, query func() (bool, error), wanted bool) {
	t.Helper()
	if done, err := query(); err != nil || done != wanted {
		t.Errorf("%s: done is %v, not %v; %v", what, done, wanted, err)
	}
}

// Enqueueing a copy does not wait, and the copy reads pinned memory when it executes.
func TestAsyncCopies(t *testing.T) {
	context, r := openCounted(t)
	stream := newStream(t, r)
	device := onDevice(t, r, []int32{0, 0, 0, 0})
	from, source := pinned(t, r, []int32{1, 2, 3})
	to, result := pinned(t, r, []int32{9, 9, 9, 9})
	if Live().HostMemories != 2 || from.Bytes() != 12 {
		t.Errorf("%+v, %d bytes", Live(), from.Bytes())
	}
	defer hiptest.LetGo()
	check(t, hiptest.Hold(context, stream.Handle()))
	check(t, device.UploadAsync(8, from, 4, 8, stream.Handle()))
	check(t, device.DownloadAsync(4, to, 0, 12, stream.Handle()))
	check(t, device.UploadAsync(16, from, 12, 0, stream.Handle()))
	source[1] = 7 // before the copy executes
	expect(t, "a copy that has not executed", result, 9, 9, 9, 9)
	hiptest.LetGo()
	check(t, stream.Synchronize())
	expect(t, "copies", result, 0, 7, 3, 9)

	fresh, err := r.HostMalloc(4096)
	check(t, err)
	zeros, err := Values[uint64](fresh, 0, 512)
	check(t, err)
	for i := range zeros {
		if zeros[i] != 0 {
			t.Fatalf("element %d of fresh memory is %d", i, zeros[i])
		}
		zeros[i] = ^uint64(0) // for the next owner of the memory
	}
	check(t, fresh.Free())
	check(t, fresh.Free())
}

func TestAsyncArguments(t *testing.T) {
	_, r := openCounted(t)
	device := onDevice(t, r, []int32{0, 0, 0, 0})
	host, _ := pinned(t, r, []int32{1, 2, 3})
	_, err := r.HostMalloc(-1)
	refused(t, err, "bytes is -1")
	nothing, err := r.HostMalloc(0)
	check(t, err)
	if values, err := Values[int32](nothing, 0, 0); err != nil || len(values) != 0 {
		t.Errorf("%v, %v", values, err)
	}
	check(t, nothing.Free())
	_, err = r.HostMalloc(1 << 60)
	refused(t, err, "hipHostMalloc")
	refused(t, device.UploadAsync(8, host, 0, 12, 0), "copy has 12 bytes from offset 8 on", "has 16")
	refused(t, device.UploadAsync(0, host, 4, 12, 0), "copy has 12 bytes from offset 4 on", "has 12")
	refused(t, device.DownloadAsync(0, host, -4, 8, 0), "offset -4")
	refused(t, device.DownloadAsync(0, host, 0, -1, 0), "bytes is -1")
	_, err = Values[int32](host, 2, 1)
	refused(t, err, "offset is 2", "4 bytes of an element")
	_, err = Values[int32](host, -4, 1)
	refused(t, err, "offset -4")
	for _, count := range []int64{-1, 4, 1 << 62} {
		_, err = Values[int32](host, 0, count)
		refused(t, err, "count is", "0 to 3 elements")
	}
	_, err = Values[int32](host, 4, 3)
	refused(t, err, "12 bytes from offset 4 on")
	none, err := Values[int32](host, 12, 0)
	if len(none) != 0 || err != nil {
		t.Errorf("%v, %v", none, err)
	}
	closed, err := r.NewStream()
	check(t, err)
	check(t, closed.Close())
	refused(t, device.UploadAsync(0, host, 0, 4, closed.Handle()), "stream is closed")
	freed, err := r.HostMalloc(4)
	check(t, err)
	check(t, freed.Free())
	refused(t, device.UploadAsync(0, freed, 0, 4, 0), "memory of the host is free")
	_, err = Values[int32](freed, 0, 1)
	refused(t, err, "memory of the host is free")
}

// Queries do not wait, and a stream waits for an event of another one.
func TestQueriesAndWaits(t *testing.T) {
	context, r := openCounted(t)
	first, second := newStream(t, r), newStream(t, r)
	event, err := r.NewEvent()
	check(t, err)
	isDone(t, "an event that was never recorded", event.Query, true)
	device := onDevice(t, r, []int32{0})
	from, _ := pinned(t, r, []int32{5})
	to, result := pinned(t, r, []int32{9})
	defer hiptest.LetGo()
	check(t, hiptest.Hold(context, first.Handle()))
	check(t, device.UploadAsync(0, from, 0, 4, first.Handle()))
	check(t, event.Record(first.Handle()))
	isDone(t, "second stream before it has work", second.Query, true)
	check(t, second.WaitFor(event.Handle()))
	check(t, device.DownloadAsync(0, to, 0, 4, second.Handle()))
	isDone(t, "first stream", first.Query, false)
	isDone(t, "second stream", second.Query, false)
	isDone(t, "event", event.Query, false)
	hiptest.LetGo()
	check(t, second.Synchronize())
	isDone(t, "event after the wait", event.Query, true)
	isDone(t, "second stream after the wait", second.Query, true)
	expect(t, "a copy after the event", result, 5)
	check(t, event.Close())
	refused(t, second.WaitFor(event.Handle()), "event is closed")
	_, err = event.Query()
	refused(t, err, "event is closed")
	check(t, second.Close())
	_, err = second.Query()
	refused(t, err, "stream is closed")
	refused(t, second.WaitFor(sluice.Event(0)), "stream is closed")
}
