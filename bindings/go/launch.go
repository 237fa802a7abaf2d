package sluice

import "fmt"

// Stream is a hipStream_t of the context's device; 0 is the default stream.
type Stream uintptr

// Event is a hipEvent_t.
type Event uintptr

// Handles of closed objects: a stream and an event of the package hip have them after their Close. Calls refuse them
// with ErrClosed; 0 would mean the default stream and no event.
const (
	ClosedStream = ^Stream(0)
	ClosedEvent  = ^Event(0)
)

// check refuses closed handles; the library checks everything else.
func (l *Launch) check() error {
	if l == nil {
		return nil
	}
	if l.Stream == ClosedStream {
		return closed("stream")
	}
	if l.SignalEvent == ClosedEvent {
		return closed("signal_event")
	}
	for i := range l.Dependencies {
		if l.Dependencies[i].Event == ClosedEvent {
			return closed(fmt.Sprintf("dependencies[%d].event", i))
		}
		if l.Dependencies[i].Stream == ClosedStream {
			return closed(fmt.Sprintf("dependencies[%d].stream", i))
		}
	}
	return nil
}
