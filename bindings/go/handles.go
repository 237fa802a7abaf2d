package sluice

// #include <sluice/sluice.h>
import "C"

import (
	"sync"
	"sync/atomic"
)

// object is the life of a context or plan: open until close, and alive until its last user is done. Users are the
// handle itself while it is open, a call while it lasts, for a context each of its plans, and a graph of the package
// hip for each object whose calls were captured into it.
//
// Close is for a caller that knows that the work has completed. A finalizer does not know it: it runs when the garbage
// collector finds the last reference gone, at any time after the call that enqueued. So a forgotten object through
// which anything was ever enqueued waits for its device before it is destroyed, in a separate goroutine, because other
// finalizers must not wait for the device. The only cost to runs is a flag that there was one. The alternatives are
// worse:
//
//   - An event after each run costs a HIP call per run, and cannot be recorded this way during a capture.
//   - Streams of the runs could be remembered and waited for, but may be destroyed meanwhile. HIP lets their work go on
//     but gives no way to wait for it, and may give the handle to another stream.
//   - HIP does not document that hipModuleUnload waits.
//
// A wait for the device waits for more than the plan's work, and a stream that captures forbids it:
// see contextState.waitForDevice.
type object struct {
	name    string
	destroy func()
	wait    func() // until the device is idle
	count   *int64 // the counter of its kind

	enqueued atomic.Bool // It may have pending work.

	mutex     sync.Mutex
	closed    bool
	forgotten bool // Closed by a finalizer.
	users     int
}

var handles struct{ contexts, plans, finalized int64 }

// HandleCounts are the numbers of live contexts and plans, and of forgotten ones.
type HandleCounts struct {
	Contexts  int64 // Live ones. A closed context lives as long as one of its plans.
	Plans     int64 // Live ones. A closed plan lives as long as a graph of its runs.
	Finalized int64 // Contexts and plans that a finalizer closed, instead of Close, since the program began.
}

// Handles counts contexts and plans, for tests of leaks.
func Handles() HandleCounts {
	return HandleCounts{
		Contexts:  atomic.LoadInt64(&handles.contexts),
		Plans:     atomic.LoadInt64(&handles.plans),
		Finalized: atomic.LoadInt64(&handles.finalized),
	}
}

// newObject has one user, its handle. `destroy` runs once, after the last user, and after `wait` if Close was not
// called.
func newObject(name string, count *int64, destroy, wait func()) *object {
	atomic.AddInt64(count, 1)
	return &object{name: name, destroy: destroy, wait: wait, count: count, users: 1}
}

// use begins a call; release ends it. The error is for an object that is closed, or nil.
func (o *object) use() error {
	if o != nil {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		if !o.closed {
			o.users++
			return nil
		}
		return closed(o.name)
	}
	refused := closed("handle")
	refused.Message = "the context or plan is nil or zero: NewContext and NewPlan make them"
	return refused
}

// call makes a call with the object, which lives until the call returns.
func (o *object) call(do func(in *memory, failure *C.sluice_error) C.sluice_status) error {
	if err := o.use(); err != nil {
		return err
	}
	defer o.release()
	return call(do)
}

// enqueue makes a call that enqueues work through the object.
func (o *object) enqueue(state *contextState, launch *Launch, do func(in *memory, launch *C.sluice_launch,
	failure *C.sluice_error) C.sluice_status) error {
	if err := o.use(); err != nil {
		return err
	}
	defer o.release()
	if err := launch.check(); err != nil {
		return err
	}
	o.enqueued.Store(true)
	defer state.noteCapture(o, launch)
	return call(func(in *memory, failure *C.sluice_error) C.sluice_status {
		return do(in, pointer[C.sluice_launch](in, launch), failure)
	})
}

// hold adds a user to an object that already has one; the returned function removes it.
func (o *object) hold() (release func()) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.users++
	return o.release
}

func (o *object) release() {
	o.mutex.Lock()
	o.users--
	last, waits := o.users == 0, o.forgotten && o.enqueued.Load()
	o.mutex.Unlock()
	switch {
	case last && waits:
		go func() {
			o.wait()
			o.gone()
		}()
	case last:
		o.gone()
	}
}

func (o *object) gone() {
	o.destroy()
	atomic.AddInt64(o.count, -1)
}

// close reports whether the object was open.
func (o *object) close(forgotten bool) bool {
	if o == nil {
		return false
	}
	o.mutex.Lock()
	open := !o.closed
	if open {
		o.closed, o.forgotten = true, forgotten
	}
	o.mutex.Unlock()
	if open {
		o.release()
	}
	return open
}

// finalize closes an object whose Close was not called.
func (o *object) finalize() {
	if o.close(true) {
		atomic.AddInt64(&handles.finalized, 1)
	}
}
