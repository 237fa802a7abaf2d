package hip

// #include "hip.h"
import "C"

import (
	"fmt"
	"sync/atomic"

	"sluice.dev/sluice"
)

// Stream is a stream of the device that does not wait for the default stream. Close it.
type Stream struct {
	runtime *Runtime
	handle  uintptr // 0 once it is closed
}

// NewStream makes a stream.
func (r *Runtime) NewStream() (*Stream, error) {
	var handle C.uintptr_t
	if err := r.check("hipStreamCreateWithFlags", C.go_hip_stream_create(&r.functions, &handle)); err != nil {
		return nil, err
	}
	atomic.AddInt64(&live.Streams, 1)
	return &Stream{r, uintptr(handle)}, nil
}

// Handle is for sluice.Launch.
func (s *Stream) Handle() sluice.Stream { return sluice.Stream(atomic.LoadUintptr(&s.handle)) }

// Synchronize waits for all work of the stream.
func (s *Stream) Synchronize() error {
	if s.Handle() == 0 {
		return errClosed("stream")
	}
	return s.runtime.Synchronize(s.Handle())
}

// Close destroys the stream, when its work has completed; further calls do nothing.
func (s *Stream) Close() error {
	handle := atomic.SwapUintptr(&s.handle, 0)
	if handle == 0 {
		return nil
	}
	atomic.AddInt64(&live.Streams, -1)
	return s.runtime.check("hipStreamDestroy", C.go_hip_stream_destroy(&s.runtime.functions, C.uintptr_t(handle)))
}

// Event is a point in a stream's work, without a time. Close it.
type Event struct {
	runtime *Runtime
	handle  uintptr // 0 once it is closed
}

// NewEvent makes an event.
func (r *Runtime) NewEvent() (*Event, error) {
	var handle C.uintptr_t
	if err := r.check("hipEventCreateWithFlags", C.go_hip_event_create(&r.functions, &handle)); err != nil {
		return nil, err
	}
	atomic.AddInt64(&live.Events, 1)
	return &Event{r, uintptr(handle)}, nil
}

// Handle is for sluice.Launch and sluice.Dependency.
func (e *Event) Handle() sluice.Event { return sluice.Event(atomic.LoadUintptr(&e.handle)) }

// Record records the event behind the work that is on a stream now.
func (e *Event) Record(stream sluice.Stream) error {
	if e.Handle() == 0 {
		return errClosed("event")
	}
	return e.runtime.check("hipEventRecord",
		C.go_hip_event_record(&e.runtime.functions, C.uintptr_t(e.Handle()), C.uintptr_t(stream)))
}

// Synchronize waits for what it was recorded behind.
func (e *Event) Synchronize() error {
	if e.Handle() == 0 {
		return errClosed("event")
	}
	return e.runtime.check("hipEventSynchronize",
		C.go_hip_event_synchronize(&e.runtime.functions, C.uintptr_t(e.Handle())))
}

// Close destroys the event; further calls do nothing.
func (e *Event) Close() error {
	handle := atomic.SwapUintptr(&e.handle, 0)
	if handle == 0 {
		return nil
	}
	atomic.AddInt64(&live.Events, -1)
	return e.runtime.check("hipEventDestroy", C.go_hip_event_destroy(&e.runtime.functions, C.uintptr_t(handle)))
}

func errClosed(what string) error {
	return fmt.Errorf("hip: the %s is closed: it can no longer be used", what)
}
