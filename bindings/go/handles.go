package sluice

import (
	"sync"
	"sync/atomic"
)

// object is the life of a context or plan: open until close, and there until the last of its users is done. The
// handle itself is a user while it is open, a call is one while it lasts, a plan is one of its context, and a graph of the
// package hip is one of each object whose calls were captured into it.
//
// Close is for a caller who knows that the work has completed. A finalizer knows nothing: it comes when the garbage
// collector finds the last reference gone, which is any time behind the call that enqueued. So what was forgotten waits for
// its device before it is destroyed, if anything was ever enqueued through it, in a goroutine of its own, as other
// finalizers must not wait for the device. Runs pay for that with the note that there was one, and nothing more. Other
// ways are worse:
//
//   - An event behind each run costs a call of HIP per run, and nothing may be recorded so during a capture.
//   - The streams of the runs, remembered and then waited for, may be destroyed meanwhile. HIP lets their work go on but
//     gives no way to wait for it, and may give the handle to another stream.
//   - HIP does not say that hipModuleUnload waits.
//
// A wait for the device waits for more than the plan's work, and a stream that captures forbids it:
// contextState.waitForDevice says what becomes of that.
type object struct {
	name    string
	destroy func()
	wait    func() // until the device has nothing left to do
	count   *int64 // of its kind

	enqueued atomic.Bool // Work of it may be pending.

	mutex     sync.Mutex
	closed    bool
	forgotten bool // Closed by a finalizer.
	users     int
}

var handles struct{ contexts, plans, finalized int64 }

// HandleCounts says how many contexts and plans there are, and how many were forgotten.
type HandleCounts struct {
	Contexts  int64 // Made and not yet gone. A closed context is there as long as one of its plans is.
	Plans     int64 // Made and not yet gone. A closed plan is there as long as a graph of its runs is.
	Finalized int64 // Of both, closed by a finalizer because nobody called Close, since the program began.
}

// Handles counts contexts and plans, for tests of leaks.
func Handles() HandleCounts {
	return HandleCounts{
		Contexts:  atomic.LoadInt64(&handles.contexts),
		Plans:     atomic.LoadInt64(&handles.plans),
		Finalized: atomic.LoadInt64(&handles.finalized),
	}
}

// newObject has one user, its handle. `destroy` runs once, behind the last user, and behind `wait` if nobody called Close.
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

// hold makes a user of what has one already, for as long as that says.
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

// finalize is close where nobody called Close.
func (o *object) finalize() {
	if o.close(true) {
		atomic.AddInt64(&handles.finalized, 1)
	}
}
