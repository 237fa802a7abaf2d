// Package captures is what captures of the package hip and handles of the package sluice have to know of each other.
//
// A graph launches kernels of the plans and contexts whose calls were captured into it, so they must be there as long as
// it is: Keep. And while any stream captures, HIP allows nobody to wait for the device, which would spoil the capture:
// WhileNone.
package captures

import (
	"sync"
	"sync/atomic"
)

// Capture is one that is under way, and then what its graph needs.
type Capture struct {
	id    uint64
	kept  map[any]func()
	users atomic.Int32 // Its graph, and captures of launches of that.
}

var (
	mutex   sync.Mutex
	changed = sync.NewCond(&mutex)
	open    = map[*Capture]bool{} // guarded by the mutex
	waiting int                   // calls of WhileNone that are at it; guarded by the mutex
	active  atomic.Int32          // len(open), to be read without the mutex
)

// Begin opens a capture, with `begin`, which returns HIP's number for it. It waits for a call of WhileNone that is under
// way, but not for one that waits for captures: one capture may begin while another is open.
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

// End says that HIP's capture has ended. What it keeps is still kept.
func (c *Capture) End() {
	mutex.Lock()
	defer mutex.Unlock()
	delete(open, c)
	active.Store(int32(len(open)))
	changed.Broadcast()
}

// Hold is for another capture that is to keep what this one keeps.
func (c *Capture) Hold() (release func()) {
	c.users.Add(1)
	return c.Release
}

// Release is for the graph, and for each Hold: behind the last one, what the capture keeps is let go.
func (c *Capture) Release() {
	if c.users.Add(-1) == 0 {
		for _, release := range c.kept {
			release()
		}
	}
}

// Active reports whether any capture is open.
func Active() bool { return active.Load() != 0 }

// Keep has the capture with HIP's number `id` keep an object: `hold` is called, unless the capture has it already, and what
// it returns when the graph is gone.
func Keep(id uint64, object any, hold func() (release func())) {
	mutex.Lock()
	defer mutex.Unlock()
	for capture := range open {
		if capture.id == id && capture.kept[object] == nil {
			capture.kept[object] = hold()
		}
	}
}

// WhileNone makes a call while no capture is open, and none begins.
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
