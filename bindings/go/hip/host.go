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

// HostMemory is pinned memory of the host (hipHostMalloc): the only host memory that asynchronous copies accept. HIP
// uses it after the call that enqueues a copy, which Go memory does not allow: the garbage collector may move and free
// it. This memory is C's and stays where it is. Values returns its contents as a slice. Only Free frees it.
type HostMemory struct {
	runtime *Runtime
	bytes   int64

	mutex   sync.RWMutex   // Read-locked while a call uses the memory, which delays Free.
	pointer unsafe.Pointer // nil after Free
}

// HostMalloc allocates memory, zeroed; 0 bytes have an address too. Not for use during capture.
func (r *Runtime) HostMalloc(bytes int64) (*HostMemory, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("hip: bytes is %d; it must not be negative", bytes)
	}
	var pointer unsafe.Pointer
	if err := r.check("hipHostMalloc", C.go_hip_host_malloc(&r.functions, &pointer, allocated(bytes))); err != nil {
		return nil, err
	}
	all := unsafe.Slice((*byte)(pointer), bytes)
	for i := range all {
		all[i] = 0
	}
	atomic.AddInt64(&live.HostMemories, 1)
	return &HostMemory{runtime: r, bytes: bytes, pointer: pointer}, nil
}

// Free releases the memory, whose copies must have completed; further calls do nothing. Slices that Values returned are
// then invalid: reading or writing them is an error that is not detected.
func (m *HostMemory) Free() error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.pointer == nil {
		return nil
	}
	pointer := m.pointer
	m.pointer = nil
	atomic.AddInt64(&live.HostMemories, -1)
	return m.runtime.check("hipHostFree", C.go_hip_host_free(&m.runtime.functions, pointer))
}

// Bytes is the memory's size.
func (m *HostMemory) Bytes() int64 { return m.bytes }

// use is Memory.use; `bytes` are those of the argument `name`.
func (m *HostMemory) use(name string, offset, bytes int64, call func(unsafe.Pointer) error) error {
	m.mutex.RLock()
	defer m.mutex.RUnlock()
	if m.pointer == nil {
		return errFreed("memory of the host")
	}
	if err := checkRange(name, offset, bytes, m.bytes); err != nil {
		return err
	}
	return call(unsafe.Add(m.pointer, offset))
}

// Values is `count` elements of pinned memory from byte `offset` on, as a slice of that memory itself: a copy from the
// device writes to it, and a copy to the device reads it when the copy executes. Between enqueueing a copy and its
// completion the elements belong to the device: wait for the stream or an event after the copy before you overwrite
// what is copied, or read the result. The slice is valid until Free. The offset is a multiple of an element's size.
func Values[T sluice.Element](of *HostMemory, offset, count int64) ([]T, error) {
	var element T
	size := int64(unsafe.Sizeof(element))
	if offset%size != 0 {
		return nil, fmt.Errorf("hip: offset is %d; it must be a multiple of the %d bytes of an element", offset, size)
	}
	if count < 0 || count > of.bytes/size {
		return nil, fmt.Errorf("hip: count is %d; the memory of %d bytes has 0 to %d elements", count, of.bytes, of.bytes/size)
	}
	var values []T
	err := of.use("values", offset, count*size, func(address unsafe.Pointer) error {
		values = unsafe.Slice((*T)(address), count)
		return nil
	})
	return values, err
}

// UploadAsync enqueues a copy of `bytes` bytes from byte `fromOffset` of pinned memory to byte `offset` of device
// memory, and returns without waiting. It executes after the work on the stream; 0 is the default stream. Until it has
// completed, both memories must stay valid and the host's bytes must not change. It is legal during capture: each
// replay copies the bytes of that time.
func (m *Memory) UploadAsync(offset int64, from *HostMemory, fromOffset, bytes int64, stream sluice.Stream) error {
	return m.copyAsync(offset, from, fromOffset, bytes, stream, func(device C.uintptr_t, host unsafe.Pointer) C.int {
		return C.go_hip_upload_async(&m.runtime.functions, device, host, C.size_t(bytes), C.uintptr_t(stream))
	})
}

// DownloadAsync enqueues a copy of `bytes` bytes from byte `offset` of device memory to byte `toOffset` of pinned
// memory, and returns without waiting. Rules as for UploadAsync; the host's bytes must not be read before the copy has
// completed.
func (m *Memory) DownloadAsync(offset int64, to *HostMemory, toOffset, bytes int64, stream sluice.Stream) error {
	return m.copyAsync(offset, to, toOffset, bytes, stream, func(device C.uintptr_t, host unsafe.Pointer) C.int {
		return C.go_hip_download_async(&m.runtime.functions, host, device, C.size_t(bytes), C.uintptr_t(stream))
	})
}

func (m *Memory) copyAsync(offset int64, host *HostMemory, hostOffset, bytes int64, stream sluice.Stream,
	enqueue func(device C.uintptr_t, host unsafe.Pointer) C.int) error {
	if bytes < 0 {
		return fmt.Errorf("hip: bytes is %d; it must not be negative", bytes)
	}
	if stream == sluice.ClosedStream {
		return errClosed("stream")
	}
	return m.use("copy", offset, bytes, func(device C.uintptr_t) error {
		return host.use("copy", hostOffset, bytes, func(address unsafe.Pointer) error {
			if bytes == 0 {
				return nil
			}
			return m.runtime.check("hipMemcpyAsync", enqueue(device, address))
		})
	})
}
