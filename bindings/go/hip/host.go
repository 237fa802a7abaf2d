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

// HostMemory is pinned memory of the host (hipHostMalloc): the only memory of the host that asynchronous copies read and
// write. HIP goes on using it after the call that enqueues a copy, which memory of Go does not allow: the garbage
// collector may move and free that. This memory is C's and stays where it is. Values is what it holds, as a slice.
// Free it: nothing else does.
type HostMemory struct {
	runtime *Runtime
	bytes   int64

	mutex   sync.RWMutex   // Read while a call uses the memory: it is freed behind that.
	pointer unsafe.Pointer // nil once it is free
}

// HostMalloc allocates at least one byte, zeroed. Not for use during capture.
func (r *Runtime) HostMalloc(bytes int64) (*HostMemory, error) {
	if bytes < 1 {
		return nil, fmt.Errorf("hip: bytes is %d; memory has at least one", bytes)
	}
	var pointer unsafe.Pointer
	if err := r.check("hipHostMalloc", C.go_hip_host_malloc(&r.functions, &pointer, C.size_t(bytes))); err != nil {
		return nil, err
	}
	all := unsafe.Slice((*byte)(pointer), bytes)
	for i := range all {
		all[i] = 0
	}
	atomic.AddInt64(&live.HostMemories, 1)
	return &HostMemory{runtime: r, bytes: bytes, pointer: pointer}, nil
}

// Free releases the memory, when copies from and to it have completed; further calls do nothing. Slices that Values
// returned are of memory that is gone then: reading or writing them is an error that nobody notices in time.
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

// Values is `count` elements of pinned memory from byte `offset` on, as a slice of that memory itself: what a copy from
// the device brings appears in it, and a copy to the device takes what is in it when the copy executes. Between enqueueing
// a copy and its completion the elements are the device's: wait for the stream or an event behind the copy before you
// write what is to be copied, or read what has been. The slice is good until Free. The offset is a multiple of an
// element's size.
func Values[T Element](of *HostMemory, offset, count int64) ([]T, error) {
	var element T
	size := int64(unsafe.Sizeof(element))
	if offset%size != 0 {
		return nil, fmt.Errorf("hip: offset is %d; it is a multiple of the %d bytes of an element", offset, size)
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

// UploadAsync enqueues a copy of `bytes` bytes, from byte `fromOffset` of pinned memory on to byte `offset` of the device's
// on, and returns without waiting. It executes behind what is on the stream; 0 is the default stream. Both memories must
// stay, and the bytes of the host as they are, until it has completed. It is legal during capture: each replay copies what
// is there then.
func (m *Memory) UploadAsync(offset int64, from *HostMemory, fromOffset, bytes int64, stream sluice.Stream) error {
	return m.copyAsync(offset, from, fromOffset, bytes, stream, func(device C.uintptr_t, host unsafe.Pointer) C.int {
		return C.go_hip_upload_async(&m.runtime.functions, device, host, C.size_t(bytes), C.uintptr_t(stream))
	})
}

// DownloadAsync enqueues a copy of `bytes` bytes, from byte `offset` of the device's memory on to byte `toOffset` of pinned
// memory on, and returns without waiting. Rules as for UploadAsync; the bytes of the host are not to be read before the
// copy has completed.
func (m *Memory) DownloadAsync(offset int64, to *HostMemory, toOffset, bytes int64, stream sluice.Stream) error {
	return m.copyAsync(offset, to, toOffset, bytes, stream, func(device C.uintptr_t, host unsafe.Pointer) C.int {
		return C.go_hip_download_async(&m.runtime.functions, host, device, C.size_t(bytes), C.uintptr_t(stream))
	})
}

func (m *Memory) copyAsync(offset int64, host *HostMemory, hostOffset, bytes int64, stream sluice.Stream,
	enqueue func(device C.uintptr_t, host unsafe.Pointer) C.int) error {
	if bytes < 0 {
		return fmt.Errorf("hip: bytes is %d; a copy has 0 or more", bytes)
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
