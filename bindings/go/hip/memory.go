package hip

// #include "hip.h"
import "C"

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	sluice "github.com/sluice-attention/sluice/bindings/go"
)

// Memory is memory of the device (hipMalloc). Only Free frees it.
type Memory struct {
	runtime *Runtime
	bytes   int64

	mutex   sync.RWMutex         // Read-locked while a call uses the memory, which delays Free.
	pointer sluice.DevicePointer // 0 after Free
}

// allocated is the bytes to ask HIP for, which has no address for 0.
func allocated(bytes int64) C.size_t {
	if bytes == 0 {
		return 1
	}
	return C.size_t(bytes)
}

// Malloc allocates memory; 0 bytes have an address too.
func (r *Runtime) Malloc(bytes int64) (*Memory, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("hip: bytes is %d; it must not be negative", bytes)
	}
	var pointer C.uintptr_t
	if err := r.check("hipMalloc", C.go_hip_malloc(&r.functions, &pointer, allocated(bytes))); err != nil {
		return nil, err
	}
	atomic.AddInt64(&live.Memories, 1)
	return &Memory{runtime: r, bytes: bytes, pointer: sluice.DevicePointer(pointer)}, nil
}

// Free releases the memory; work on it must have completed. Further calls do nothing. A running copy of another
// goroutine completes first.
func (m *Memory) Free() error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.pointer == 0 {
		return nil
	}
	pointer := m.pointer
	m.pointer = 0
	atomic.AddInt64(&live.Memories, -1)
	return m.runtime.check("hipFree", C.go_hip_free(&m.runtime.functions, C.uintptr_t(pointer)))
}

// Bytes is the memory's size.
func (m *Memory) Bytes() int64 { return m.bytes }

// Pointer is its first byte's address; sluice.FreedMemory after Free.
func (m *Memory) Pointer() sluice.DevicePointer { return m.At(0) }

// At is the address of the byte `offset`; sluice.FreedMemory after Free, and for an offset outside of the memory.
func (m *Memory) At(offset int64) sluice.DevicePointer {
	m.mutex.RLock()
	defer m.mutex.RUnlock()
	if m.pointer == 0 || offset < 0 || offset > m.bytes {
		return sluice.FreedMemory
	}
	return m.pointer + sluice.DevicePointer(offset)
}

// use calls a function with the address of bytes that must be within the memory, and keeps the memory during the call.
// `name` is the argument that the bytes belong to.
func (m *Memory) use(name string, offset, bytes int64, call func(C.uintptr_t) error) error {
	m.mutex.RLock()
	defer m.mutex.RUnlock()
	if m.pointer == 0 {
		return errFreed("memory")
	}
	if err := checkRange(name, offset, bytes, m.bytes); err != nil {
		return err
	}
	return call(C.uintptr_t(m.pointer) + C.uintptr_t(offset))
}

func errFreed(what string) error {
	return fmt.Errorf("hip: the %s is free: it can no longer be used", what)
}

// checkRange refuses bytes outside the memory.
func checkRange(name string, offset, bytes, memory int64) error {
	if offset < 0 || offset > memory || bytes > memory-offset {
		return fmt.Errorf("hip: %s has %d bytes from offset %d on; the memory has %d", name, bytes, offset, memory)
	}
	return nil
}

func bytesOf[T sluice.Element](values []T) (*C.uint8_t, int64) {
	if len(values) == 0 {
		return nil, 0
	}
	return (*C.uint8_t)(unsafe.Pointer(&values[0])), int64(len(values)) * int64(unsafe.Sizeof(values[0]))
}

// Upload copies values to the memory, from byte `offset` on, after all work on blocking streams, and waits for it.
func Upload[T sluice.Element](to *Memory, offset int64, values []T) error {
	from, bytes := bytesOf(values)
	return to.use("values", offset, bytes, func(address C.uintptr_t) error {
		if bytes == 0 {
			return nil
		}
		return to.runtime.check("hipMemcpy", C.go_hip_upload(&to.runtime.functions, address, from, C.size_t(bytes)))
	})
}

// Download copies from the memory with the same rules.
func Download[T sluice.Element](values []T, from *Memory, offset int64) error {
	to, bytes := bytesOf(values)
	return from.use("values", offset, bytes, func(address C.uintptr_t) error {
		if bytes == 0 {
			return nil
		}
		return from.runtime.check("hipMemcpy", C.go_hip_download(&from.runtime.functions, to, address, C.size_t(bytes)))
	})
}

// NewMemory allocates memory for values and uploads them.
func NewMemory[T sluice.Element](r *Runtime, values []T) (*Memory, error) {
	_, bytes := bytesOf(values)
	memory, err := r.Malloc(bytes)
	if err != nil {
		return nil, err
	}
	if err := Upload(memory, 0, values); err != nil {
		memory.Free()
		return nil, err
	}
	return memory, nil
}

// Fill sets every byte of the memory.
func (m *Memory) Fill(value uint8) error {
	return m.use("memory", 0, m.bytes, func(address C.uintptr_t) error {
		return m.runtime.check("hipMemset",
			C.go_hip_memset(&m.runtime.functions, address, C.int(value), C.size_t(m.bytes)))
	})
}
