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
	if desc.HIPResolver != nil {
		state.resolver = cgo.NewHandle(desc.HIPResolver)
	}
	if desc.Pack != nil {
		state.pack = C.CBytes(desc.Pack)
	}
	var target *C.char
	if desc.Target != "" {
		target = C.CString(desc.Target)
		defer C.free(unsafe.Pointer(target))
	}
	err := call(func(in *memory, failure *C.sluice_error) C.sluice_status {
		made := answer[C.sluice_context_desc](in)
		made.kind, made.device_ordinal, made.target = C.uint32_t(desc.Kind), C.int32_t(desc.DeviceOrdinal), target
		made.pack, made.pack_bytes = state.pack, C.uint64_t(len(desc.Pack))
		return C.sluice_go_context_create(made, C.uintptr_t(state.resolver), &state.handle, failure)
	})
	if err != nil {
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

// use makes a call with the context.
func (c *Context) use(do func(in *memory, failure *C.sluice_error) C.sluice_status) error {
	if c == nil {
		return (*object)(nil).call(do)
	}
	return c.object.call(do)
}

// Device describes the context's device.
func (c *Context) Device() (info DeviceInfo, err error) {
	err = c.use(func(in *memory, failure *C.sluice_error) C.sluice_status {
		from := answer[C.sluice_device_info](in)
		status := C.sluice_context_device(c.state.handle, from, failure)
		info = goDeviceInfo(from)
		return status
	})
	return info, err
}

// HIPSymbol returns the HIP entry point of that name in the context's runtime, real or emulated: a C function for C to
// call (see the package hip). It is nil if the runtime has no such entry point, and for a target.
func (c *Context) HIPSymbol(name string) (symbol unsafe.Pointer, err error) {
	err = c.use(func(*memory, *C.sluice_error) C.sluice_status {
		if strings.IndexByte(name, 0) < 0 { // a name cannot have a zero byte
			characters := C.CString(name)
			defer C.free(unsafe.Pointer(characters))
			symbol = C.sluice_context_hip_symbol(c.state.handle, characters)
		}
		return C.SLUICE_OK
	})
	return symbol, err
}

// Support says whether a plan for this problem can be made, and what it needs. It touches no device. An error names the
// member, the value asked for and the nearest supported value: InvalidArgument, Unsupported, NewerStruct.
func (c *Context) Support(attention *Attention) (support Support, err error) {
	err = c.use(func(in *memory, failure *C.sluice_error) C.sluice_status {
		from := answer[C.sluice_support](in)
		status := C.sluice_attention_support(c.state.handle, pointer[C.sluice_attention](in, attention), from, failure)
		support = goSupport(from)
		return status
	})
	return support, err
}

// Preload loads the kernels for a problem (every kernel of the context if it is nil) and keeps them loaded while the
// context or one of its plans lives. Plans made later then load nothing. A target has no device to load onto: NoDevice.
func (c *Context) Preload(attention *Attention) error {
	return c.use(func(in *memory, failure *C.sluice_error) C.sluice_status {
		return C.sluice_attention_preload(c.state.handle, pointer[C.sluice_attention](in, attention), failure)
	})
}

// KernelCount is the number of kernels for the context's chip.
func (c *Context) KernelCount() (uint32, error) {
	var count C.uint32_t
	err := c.use(func(in *memory, failure *C.sluice_error) C.sluice_status {
		return C.sluice_list_kernels(c.state.handle, 0, nil, &count, failure)
	})
	return uint32(count), err
}

// Kernel is the kernel number `index`, in the order of their names.
func (c *Context) Kernel(index uint32) (info KernelInfo, err error) {
	err = c.use(func(in *memory, failure *C.sluice_error) C.sluice_status {
		from := answer[C.sluice_kernel_info](in)
		status := C.sluice_list_kernels(c.state.handle, C.uint32_t(index), from, nil, failure)
		info = goKernelInfo(from)
		return status
	})
	return info, err
}

// Kernels returns all of them.
func (c *Context) Kernels() ([]KernelInfo, error) {
	count, err := c.KernelCount()
	if err != nil {
		return nil, err
	}
	kernels := make([]KernelInfo, count)
	for i := range kernels {
		if kernels[i], err = c.Kernel(uint32(i)); err != nil {
			return nil, err
		}
	}
	return kernels, nil
}
