package sluice

// #include "calls.h"
// #include <stdlib.h>
import "C"

import (
	"runtime"
	"runtime/cgo"
	"strings"
	"time"
	"unsafe"

	"github.com/sluice-attention/sluice/bindings/go/internal/captures"
)

// DeviceKind is the kind of device that a context represents.
type DeviceKind uint32

// The kinds.
const (
	DeviceHIP      DeviceKind = C.SLUICE_DEVICE_HIP      // A GPU, through the HIP runtime of the process.
	DeviceEmulated DeviceKind = C.SLUICE_DEVICE_EMULATED // The bundled gfx942 emulator: same machine code, same calls.
	DeviceTarget   DeviceKind = C.SLUICE_DEVICE_TARGET   // A chip by name: answers questions and makes plans, but cannot run.
)

// HIPResolver returns the HIP entry point of that name, or nil. It must answer for as long as the context or one of
// its plans lives, in any goroutine. A panic in it ends the program.
type HIPResolver func(name string) unsafe.Pointer

// ContextDesc is the input of NewContext.
type ContextDesc struct {
	Kind          DeviceKind  // Required.
	DeviceOrdinal int32       // HIP and emulated: as for hipSetDevice. Target: must be 0.
	Target        string      // Target: chip and compute units, "gfx942:304"; otherwise empty.
	HIPResolver   HIPResolver // HIP only, may be nil: take every HIP entry point from here.
	Pack          []byte      // May be nil: a kernel pack to use instead of the embedded one. It is copied.
}

// Context is a device, or a named target without one, and the kernels for it. Its methods may be called in any number
// of goroutines at once, except for SetTrace.
type Context struct {
	object *object
	state  *contextState
}

// contextState is what a context and its plans share. It is released with the last of them.
type contextState struct {
	handle   *C.sluice_context
	device   C.sluice_go_device
	pack     unsafe.Pointer
	resolver cgo.Handle
	trace    cgo.Handle
}

// NewContext makes a context; Close it. Errors: InvalidArgument, NewerStruct, NoDevice (no runtime, a missing entry
// point, no such ordinal; the message names it), WrongArch, HIP, PackCorrupt, OutOfMemory.
func NewContext(desc ContextDesc) (*Context, error) {
	if at := strings.IndexByte(desc.Target, 0); at >= 0 {
		return nil, invalid("target", "target has a zero byte at %d; it must be a chip and its compute units, as \"gfx942:304\"", at)
	}
	state := &contextState{}
	made := desc.c(state)
	var target *C.char
	if desc.Target != "" {
		target = C.CString(desc.Target)
		defer C.free(unsafe.Pointer(target))
		put(unsafe.Pointer(&made.target), DevicePointer(uintptr(unsafe.Pointer(target))))
	}
	if desc.HIPResolver != nil {
		state.resolver = cgo.NewHandle(desc.HIPResolver)
	}
	failure := newError()
	status := C.sluice_go_context_create(unsafe.Pointer(made), C.uintptr_t(state.resolver), &state.handle, failure)
	if err := result(status, failure); err != nil {
		state.free()
		return nil, err
	}
	C.sluice_go_find_device(&state.device, state.handle, C.int(desc.DeviceOrdinal))
	if desc.Kind != DeviceTarget && state.device.synchronize == nil {
		state.destroy()
		return nil, &Error{Code: NoDevice, Field: "hipDeviceSynchronize",
			Message: "the HIP runtime has no hipDeviceSynchronize, which finalizers of plans and contexts need to wait"}
	}
	context := &Context{newObject("context", &handles.contexts, state.destroy, state.waitForDevice), state}
	runtime.SetFinalizer(context, func(c *Context) { c.object.finalize() })
	return context, nil
}

// c leaves out all pointers except the pack, which it copies to C memory that belongs to `state`.
func (d *ContextDesc) c(state *contextState) *C.sluice_context_desc {
	made := (*C.sluice_context_desc)(unsafe.Pointer(new([C.sizeof_sluice_context_desc / 8]uint64)))
	made.struct_size = C.sizeof_sluice_context_desc
	made.kind = C.uint32_t(d.Kind)
	made.device_ordinal = C.int32_t(d.DeviceOrdinal)
	if d.Pack != nil {
		state.pack = C.CBytes(d.Pack)
		put(unsafe.Pointer(&made.pack), DevicePointer(uintptr(state.pack)))
		made.pack_bytes = C.uint64_t(len(d.Pack))
	}
	return made
}

func (s *contextState) destroy() {
	C.sluice_context_destroy(s.handle)
	s.free()
}

func (s *contextState) free() {
	C.free(s.pack)
	for _, handle := range []cgo.Handle{s.resolver, s.trace} {
		if handle != 0 {
			handle.Delete()
		}
	}
}

// waitForDevice returns when the device is idle. HIP does not allow this wait while a stream captures, and makes the
// capture invalid. So it first waits for captures of the package hip, and no new one begins meanwhile. Other captures
// are unknown until HIP refuses; then it tries again later. Any other error of HIP means that the device is gone or has
// stopped, and its work with it.
func (s *contextState) waitForDevice() {
	const firstOfCapture, lastOfCapture = 900, 908 // hipErrorStreamCaptureUnsupported to hipErrorStreamCaptureWrongThread
	for pause := 10 * time.Millisecond; ; {
		var code C.int
		captures.WhileNone(func() { code = C.sluice_go_synchronize(&s.device) })
		if code < firstOfCapture || code > lastOfCapture {
			return
		}
		time.Sleep(pause)
		if pause < time.Second {
			pause *= 2
		}
	}
}

// noteCapture makes a capture of the package hip keep an object that has just enqueued, if the launch went into it.
func (s *contextState) noteCapture(of *object, launch *Launch) {
	if !captures.Active() {
		return
	}
	var stream Stream
	if launch != nil {
		stream = launch.Stream
	}
	var id C.uint64_t
	if C.sluice_go_capture_of(&s.device, C.uintptr_t(stream), &id) {
		captures.Keep(uint64(id), of, of.hold)
	}
}

// Close releases the context; further calls do nothing. Its plans stay valid; what they share is released with the last
// of them. Appends and merges must have completed; those that the package hip captured keep the context until their
// graph is closed. A finalizer closes a context that the program does not close, after waiting for all work of the
// device. The error is always nil.
func (c *Context) Close() error {
	if c != nil {
		c.object.close(false)
	}
	return nil
}

// use begins a call and returns the function that ends it.
func (c *Context) use() (func(), error) {
	if c == nil {
		return nil, (*object)(nil).use()
	}
	if err := c.object.use(); err != nil {
		return nil, err
	}
	return c.object.release, nil
}

// enqueue checks a cache operation and its launch, and makes the call that enqueues it.
func (c *Context) enqueue(launch *Launch, check func() error, call func(*C.sluice_error) C.sluice_status) error {
	release, err := c.use()
	if err != nil {
		return err
	}
	defer release()
	if err := check(); err != nil {
		return err
	}
	if err := launch.check(); err != nil {
		return err
	}
	c.object.enqueued.Store(true)
	defer c.state.noteCapture(c.object, launch)
	failure := newError()
	return result(call(failure), failure)
}

// DeviceInfo is the device of a context.
type DeviceInfo struct {
	Kind              DeviceKind // As in ContextDesc.
	Ordinal           int32      // Device ordinal; -1 for a target.
	ComputeUnits      uint32     // Compute units.
	WaveSize          uint32     // Lanes of a wave.
	LDSBytes          uint32     // LDS bytes available to a workgroup.
	HIPRuntimeVersion int32      // hipRuntimeGetVersion; 0 for a target or if it is unknown.
	Chip              string     // Processor without features: "gfx942".
	Arch              string     // As the runtime reports it: "gfx942:sramecc+:xnack-".
	Name              string     // Marketing name, or empty.
	Runtime           string     // Where HIP comes from: a file name, "caller" or "none".
}

// Device describes the context's device.
func (c *Context) Device() (DeviceInfo, error) {
	release, err := c.use()
	if err != nil {
		return DeviceInfo{}, err
	}
	defer release()
	info := C.sluice_device_info{struct_size: C.sizeof_sluice_device_info}
	failure := newError()
	if err := result(C.sluice_context_device(c.state.handle, &info, failure), failure); err != nil {
		return DeviceInfo{}, err
	}
	return goDeviceInfo(&info), nil
}

func goDeviceInfo(from *C.sluice_device_info) DeviceInfo {
	return DeviceInfo{
		Kind:              DeviceKind(from.kind),
		Ordinal:           int32(from.ordinal),
		ComputeUnits:      uint32(from.compute_units),
		WaveSize:          uint32(from.wave_size),
		LDSBytes:          uint32(from.lds_bytes),
		HIPRuntimeVersion: int32(from.hip_runtime_version),
		Chip:              text(from.chip[:]),
		Arch:              text(from.arch[:]),
		Name:              text(from.name[:]),
		Runtime:           text(from.runtime[:]),
	}
}

// HIPSymbol returns the HIP entry point of that name in the context's runtime, real or emulated: a C function for C to
// call (see the package hip). It is nil if the runtime has no such entry point, and for a target.
func (c *Context) HIPSymbol(name string) (unsafe.Pointer, error) {
	release, err := c.use()
	if err != nil {
		return nil, err
	}
	defer release()
	if strings.IndexByte(name, 0) >= 0 {
		return nil, nil // a name cannot have a zero byte
	}
	characters := C.CString(name)
	defer C.free(unsafe.Pointer(characters))
	return C.sluice_context_hip_symbol(c.state.handle, characters), nil
}
