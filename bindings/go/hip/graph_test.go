package hip

import (
	"errors"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-attention/sluice/bindings/go/internal/captures"
)

// A graph does nothing while it is captured, and each launch reads what is in memory at that time.
func TestGraphs(t *testing.T) {
	_, r := openCounted(t)
	stream, other := newStream(t, r), newStream(t, r)
	device := onDevice(t, r, []int32{0})
	from, source := pinned(t, r, []int32{1})
	to, result := pinned(t, r, []int32{9})
	graph, err := stream.Capture(func() error {
		check(t, device.UploadAsync(0, from, 0, 4, stream.Handle()))
		return device.DownloadAsync(0, to, 0, 4, stream.Handle())
	})
	check(t, err)
	check(t, stream.Synchronize())
	expect(t, "after the capture", result, 9)
	if Live().Graphs != 1 || captures.Active() {
		t.Errorf("%+v, a capture is open: %v", Live(), captures.Active())
	}
	for _, on := range []*Stream{stream, other} {
		source[0]++
		check(t, graph.Launch(on.Handle()))
		check(t, on.Synchronize())
		expect(t, "a launch", result, source[0])
	}
	// A graph of a graph.
	outer, err := stream.Capture(func() error { return graph.Launch(stream.Handle()) })
	check(t, err)
	check(t, graph.Close())
	check(t, graph.Close())
	refused(t, graph.Launch(stream.Handle()), "graph is closed")
	source[0] = 77
	check(t, outer.Launch(0))
	check(t, r.Synchronize(0))
	expect(t, "a launch of the outer graph", result, 77)
	closed, err := r.NewStream()
	check(t, err)
	check(t, closed.Close())
	refused(t, outer.Launch(closed.Handle()), "stream is closed")
	_, err = closed.Capture(func() error { return nil })
	refused(t, err, "stream is closed")
	check(t, outer.Close())
	if Live().Graphs != 0 {
		t.Errorf("%+v", Live())
	}
}

// The capture spreads to a stream that waits for an event of it, and must join it again.
func TestCapturesOfTwoStreams(t *testing.T) {
	_, r := openCounted(t)
	stream, other := newStream(t, r), newStream(t, r)
	device := onDevice(t, r, []int32{0})
	from, _ := pinned(t, r, []int32{5})
	var events [2]*Event
	for i := range events {
		event, err := r.NewEvent()
		check(t, err)
		defer event.Close()
		events[i] = event
	}
	for _, joins := range []bool{true, false} {
		graph, err := stream.Capture(func() error {
			check(t, events[0].Record(stream.Handle()))
			check(t, other.WaitFor(events[0].Handle()))
			check(t, device.UploadAsync(0, from, 0, 4, other.Handle()))
			if !joins {
				return nil
			}
			check(t, events[1].Record(other.Handle()))
			return stream.WaitFor(events[1].Handle())
		})
		if !joins {
			refused(t, err, "hipStreamEndCapture", "904")
			continue
		}
		check(t, err)
		check(t, graph.Launch(stream.Handle()))
		check(t, stream.Synchronize())
		check(t, graph.Close())
		got := make([]int32, 1)
		check(t, Download(got, device, 0))
		expect(t, "a copy on the other stream", got, 5)
	}
}

// A failed capture has always ended, and the stream can be used and captured as before.
func TestCapturesThatFail(t *testing.T) {
	_, r := openCounted(t)
	stream := newStream(t, r)
	device := onDevice(t, r, []int32{0})
	from, _ := pinned(t, r, []int32{5})
	copies := func() error { return device.UploadAsync(0, from, 0, 4, stream.Handle()) }
	usable := func(how string) {
		t.Helper()
		if captures.Active() || Live().Graphs != 0 {
			t.Errorf("%s: a capture is open: %v; %+v", how, captures.Active(), Live())
		}
		graph, err := stream.Capture(copies)
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		check(t, graph.Close())
		check(t, copies())
		check(t, stream.Synchronize())
	}
	_, err := stream.Capture(nil)
	refused(t, err, "enqueue is nil")
	usable("nil")

	wanted := errors.New("as asked")
	graph, err := stream.Capture(func() error {
		check(t, copies())
		return wanted
	})
	if err != wanted || graph != nil {
		t.Errorf("%v", err)
	}
	usable("an error of the function")

	func() {
		defer func() {
			if recover() != "as asked" {
				t.Error("the panic did not come through")
			}
		}()
		stream.Capture(func() error {
			check(t, copies())
			panic("as asked")
		})
	}()
	usable("a panic")

	_, err = stream.Capture(func() error {
		refused(t, Upload(device, 0, []int32{1}), "hipMemcpy", "900")
		return nil
	})
	refused(t, err, "hipStreamEndCapture", "901")
	usable("an illegal call")

	graph, err = stream.Capture(func() error {
		refused(t, stream.Close(), "neither be closed nor captured", "being captured")
		_, err := stream.Capture(copies)
		refused(t, err, "neither be closed nor captured")
		return copies()
	})
	check(t, err)
	check(t, graph.Close())
	usable("closed and captured during a capture")
}

// A capture stays on one thread, and does not see what other threads do.
func TestCapturesBesideOthers(t *testing.T) {
	_, r := openCounted(t)
	stream := newStream(t, r)
	device := onDevice(t, r, []int32{0})
	from, _ := pinned(t, r, []int32{5})
	stop := make(chan bool)
	var others sync.WaitGroup
	for i := 0; i < 4; i++ {
		others.Add(1)
		go func() {
			defer others.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				memory, err := r.Malloc(64)
				if err == nil {
					err = memory.Free()
				}
				if err != nil {
					t.Error(err)
					return
				}
				runtime.Gosched()
			}
		}()
	}
	graph, err := stream.Capture(func() error {
		thread := syscall.Gettid()
		for i := 0; i < 50; i++ {
			time.Sleep(100 * time.Microsecond)
			if now := syscall.Gettid(); now != thread {
				t.Errorf("the capture moved from thread %d to %d", thread, now)
				break
			}
		}
		return device.UploadAsync(0, from, 0, 4, stream.Handle())
	})
	close(stop)
	others.Wait()
	check(t, err)
	check(t, graph.Close())
}
