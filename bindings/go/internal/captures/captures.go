// Package captures connects captures of the package hip with handles of the package sluice.
//
// A graph launches kernels of the plans and contexts whose calls were captured into it, so they must live as long as
// the graph: Keep. And while any stream captures, HIP does not allow waiting for the device, which would invalidate the
// capture: WhileNone.
package captures

import (
	"sync"
	"sync/atomic"
)

// Capture is a running capture, and after it what its graph needs.
type Capture struct {
	id    uint64
	kept  map[any]func()
	users atomic.Int32 // Its graph, and captures of the graph's launches.
}

var (
	mutex   sync.Mutex
	changed = sync.NewCond(&mutex)
	open    = map[*Capture]bool{} // guarded by the mutex
	waiting int                   // running calls of WhileNone; guarded by the mutex
	active  atomic.Int32          // len(open), to be read without the mutex
)

// Begin opens a capture, with `begin`, which returns HIP's number for it. It waits for a running call of WhileNone, but
// not for one that waits for captures: a capture may begin while another is open.
func Begin(begin func() (id uint64, err error)) (*Capture, error) {
	mutex.Lock()
	for waiting > 0 {
		changed.Wait()
	}
	made := &Capture{kept: map[any]func(){}}
	made.users.Store(1)
	open[made] = true
	active.Store(int32(len(open)))
	mutex.Unlock()
	id, err := begin()
	if err != nil {
		made.End()
		return nil, err
	}
	mutex.Lock()
	made.id = id
	mutex.Unlock()
	return made, nil
}

// End marks HIP's capture as ended. The capture still keeps what it was given.
func (c *Capture) End() {
	mutex.Lock()
	defer mutex.Unlock()
	delete(open, c)
	active.Store(int32(len(open)))
	changed.Broadcast()
}

// Hold is for another capture that keeps what this one keeps.
func (c *Capture) Hold() (release func()) {
	c.users.Add(1)
	return c.Release
}

// Release is for the graph, and for each Hold: the last one releases what the capture keeps.
func (c *Capture) Release() {
	if c.users.Add(-1) == 0 {
		for _, release := range c.kept {
			release()
		}
	}
}

// Active reports whether any capture is open.
func Active() bool { return active.Load() != 0 }

// Keep makes the capture with HIP's number `id` keep an object: it calls `hold` unless the capture already has the
// object, and calls the function that `hold` returned when the graph is destroyed.
func Keep(id uint64, object any, hold func() (release func())) {
	mutex.Lock()
	defer mutex.Unlock()
	for capture := range open {
		if capture.id == id && capture.kept[object] == nil {
			capture.kept[object] = hold()
		}
	}
}

// WhileNone makes a call while no capture is open or begins.
func WhileNone(call func()) {
	mutex.Lock()
	for len(open) > 0 {
		changed.Wait()
	}
	waiting++
	mutex.Unlock()
	defer func() {
		mutex.Lock()
		waiting--
		changed.Broadcast()
		mutex.Unlock()
	}()
	call()
}
