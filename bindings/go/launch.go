package sluice

// #include <sluice/sluice.h>
import "C"

import "unsafe"

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

// DependencyKind is the kind of a dependency.
type DependencyKind uint32

// The kinds.
const (
	DependsOnEvent  DependencyKind = C.SLUICE_DEPENDS_ON_EVENT  // Wait for Event, which the caller has recorded.
	DependsOnStream DependencyKind = C.SLUICE_DEPENDS_ON_STREAM // Record Event on Stream now and wait for it, so for all work there.
)

// Dependency is something that must complete before a run starts.
type Dependency struct {
	Kind   DependencyKind
	Event  Event  // The caller's event; required for both kinds: the library creates no events.
	Stream Stream // For DependsOnStream; else 0.
}

// Launch says where and when a run happens.
type Launch struct {
	Stream         Stream        // A stream of the context's device.
	Workspace      DevicePointer // Aligned and sized as the plan says; may hold anything.
	WorkspaceBytes uint64        // Size of Workspace.
	Dependencies   []Dependency  // Work that the run waits for.
	SignalEvent    Event         // May be 0; recorded on Stream after the run.
}

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
		field := index("dependencies", i)
		if l.Dependencies[i].Event == ClosedEvent {
			return closed(field + ".event")
		}
		if l.Dependencies[i].Stream == ClosedStream {
			return closed(field + ".stream")
		}
	}
	return nil
}

// c leaves out the dependencies, which C gets separately.
func (l *Launch) c() *C.sluice_launch {
	made := (*C.sluice_launch)(unsafe.Pointer(new([C.sizeof_sluice_launch / 8]uint64)))
	made.struct_size = C.sizeof_sluice_launch
	if l == nil {
		return made
	}
	made.dependency_count = C.uint32_t(len(l.Dependencies))
	put(unsafe.Pointer(&made.stream), DevicePointer(l.Stream))
	put(unsafe.Pointer(&made.workspace), l.Workspace)
	made.workspace_bytes = C.uint64_t(l.WorkspaceBytes)
	put(unsafe.Pointer(&made.signal_event), DevicePointer(l.SignalEvent))
	return made
}

// dependencies is an array of sluice_dependency, or nil.
func (l *Launch) dependencies() unsafe.Pointer {
	if l == nil || len(l.Dependencies) == 0 {
		return nil
	}
	const size = C.sizeof_sluice_dependency / 8
	memory := make([]uint64, len(l.Dependencies)*size)
	for i := range l.Dependencies {
		l.Dependencies[i].put((*C.sluice_dependency)(unsafe.Pointer(&memory[i*size])))
	}
	return unsafe.Pointer(&memory[0])
}

func (d *Dependency) put(to *C.sluice_dependency) {
	to.kind = C.uint32_t(d.Kind)
	put(unsafe.Pointer(&to.event), DevicePointer(d.Event))
	put(unsafe.Pointer(&to.stream), DevicePointer(d.Stream))
}
