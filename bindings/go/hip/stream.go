package hip

// #include "hip.h"
import "C"

import (
	"fmt"
	"sync"
	"sync/atomic"

	sluice "github.com/sluice-attention/sluice/bindings/go"
)

// handle is the life of a stream or event: open until close, which waits for calls that use it.
type handle struct {
	name  string
	mutex sync.RWMutex // Read-locked while a call uses it.
	value uintptr      // 0 once it is closed
	held  string       // Why it cannot be closed now; empty if it can.
}

// get is the value, or the one that marks a closed object.
func (h *handle) get(closed uintptr) uintptr {
	h.mutex.RLock()
	defer h.mutex.RUnlock()
	if h.value == 0 {
		return closed
	}
	return h.value
}

func (h *handle) use(call func(C.uintptr_t) error) error {
	h.mutex.RLock()
	defer h.mutex.RUnlock()
	if h.value == 0 {
		return errClosed(h.name)
	}
	return call(C.uintptr_t(h.value))
}

func errClosed(what string) error {
	return fmt.Errorf("hip: the %s is closed: it can no longer be used", what)
}

func (h *handle) errHeld() error {
	return fmt.Errorf("hip: the %s can neither be closed nor captured: %s", h.name, h.held)
}

// hold keeps the handle open until unhold, without blocking calls that use it. Only one holder at a time.
func (h *handle) hold(why string) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.value == 0 {
		return errClosed(h.name)
	}
	if h.held != "" {
		return h.errHeld()
	}
	h.held = why
	return nil
}

func (h *handle) unhold() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.held = ""
}

// close destroys an open object and counts it.
func (h *handle) close(count *int64, destroy func(C.uintptr_t) error) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.value == 0 {
		return nil
	}
	if h.held != "" {
		return h.errHeld()
	}
	value := h.value
	h.value = 0
	atomic.AddInt64(count, -1)
	return destroy(C.uintptr_t(value))
}

// Stream is a stream of the device that does not wait for the default stream. Close it.
type Stream struct {
	runtime *Runtime
	handle  handle
}

// NewStream makes a stream.
func (r *Runtime) NewStream() (*Stream, error) {
	var made C.uintptr_t
	if err := r.check("hipStreamCreateWithFlags", C.go_hip_stream_create(&r.functions, &made)); err != nil {
		return nil, err
	}
	atomic.AddInt64(&live.Streams, 1)
	return &Stream{r, handle{name: "stream", value: uintptr(made)}}, nil
}

// Handle is for sluice.Launch; sluice.ClosedStream after Close.
func (s *Stream) Handle() sluice.Stream {
	return sluice.Stream(s.handle.get(uintptr(sluice.ClosedStream)))
}

// Synchronize waits for all work of the stream.
func (s *Stream) Synchronize() error {
	return s.handle.use(func(stream C.uintptr_t) error { return s.runtime.Synchronize(sluice.Stream(stream)) })
}

// Query reports whether all work of the stream is done (hipStreamQuery); it does not wait.
func (s *Stream) Query() (done bool, err error) {
	err = s.handle.use(func(stream C.uintptr_t) error {
		done, err = s.runtime.ready("hipStreamQuery", C.go_hip_stream_query(&s.runtime.functions, stream))
		return err
	})
	return done, err
}

// WaitFor makes work that is enqueued on the stream from now on wait for an event (hipStreamWaitEvent), as it was last
// recorded. The caller does not wait. An event that was never recorded counts as complete.
func (s *Stream) WaitFor(event sluice.Event) error {
	if event == sluice.ClosedEvent {
		return errClosed("event")
	}
	return s.handle.use(func(stream C.uintptr_t) error {
		return s.runtime.check("hipStreamWaitEvent",
			C.go_hip_stream_wait_event(&s.runtime.functions, stream, C.uintptr_t(event)))
	})
}

// Close destroys the stream, whose work must have completed; further calls do nothing. A running call of another
// goroutine completes first.
func (s *Stream) Close() error {
	return s.handle.close(&live.Streams, func(stream C.uintptr_t) error {
		return s.runtime.check("hipStreamDestroy", C.go_hip_stream_destroy(&s.runtime.functions, stream))
	})
}

// Event is a point in a stream's work, without a time. Close it.
type Event struct {
	runtime *Runtime
	handle  handle
}

// NewEvent makes an event.
func (r *Runtime) NewEvent() (*Event, error) {
	var made C.uintptr_t
	if err := r.check("hipEventCreateWithFlags", C.go_hip_event_create(&r.functions, &made)); err != nil {
		return nil, err
	}
	atomic.AddInt64(&live.Events, 1)
	return &Event{r, handle{name: "event", value: uintptr(made)}}, nil
}

// Handle is for sluice.Launch and sluice.Dependency; sluice.ClosedEvent after Close.
func (e *Event) Handle() sluice.Event { return sluice.Event(e.handle.get(uintptr(sluice.ClosedEvent))) }

// Record records the event after the work that is on a stream now.
func (e *Event) Record(stream sluice.Stream) error {
	if stream == sluice.ClosedStream {
		return errClosed("stream")
	}
	return e.handle.use(func(event C.uintptr_t) error {
		return e.runtime.check("hipEventRecord",
			C.go_hip_event_record(&e.runtime.functions, event, C.uintptr_t(stream)))
	})
}

// Synchronize waits for the work before its last record.
func (e *Event) Synchronize() error {
	return e.handle.use(func(event C.uintptr_t) error {
		return e.runtime.check("hipEventSynchronize", C.go_hip_event_synchronize(&e.runtime.functions, event))
	})
}

// Query reports whether the work before its last record is done (hipEventQuery), true if it was never recorded; it does
// not wait.
func (e *Event) Query() (done bool, err error) {
	err = e.handle.use(func(event C.uintptr_t) error {
		done, err = e.runtime.ready("hipEventQuery", C.go_hip_event_query(&e.runtime.functions, event))
		return err
	})
	return done, err
}

// Close destroys the event; further calls do nothing. A running call of another goroutine completes first.
func (e *Event) Close() error {
	return e.handle.close(&live.Events, func(event C.uintptr_t) error {
		return e.runtime.check("hipEventDestroy", C.go_hip_event_destroy(&e.runtime.functions, event))
	})
}
