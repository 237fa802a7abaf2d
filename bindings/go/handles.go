package sluice

import (
	"sync"
	"sync/atomic"
)

// object is the life of a context or plan: open until close, and there until the last of its users is done. The
// handle itself is a user while it is open, a call is one while it lasts, and a plan is one of its context.
type object struct {
	name    string
	destroy func()
	count   *int64 // of its kind

	mutex  sync.Mutex
	closed bool
	users  int
}

var handles struct{ contexts, plans, finalized int64 }

// HandleCounts says how many contexts and plans there are, and how many were forgotten.
type HandleCounts struct {
	Contexts  int64 // Made and not yet gone. A closed context is there as long as one of its plans is.
	Plans     int64 // Made and not yet closed.
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

// newObject has one user, its handle. `destroy` runs once, behind the last user.
func newObject(name string, count *int64, destroy func()) *object {
	atomic.AddInt64(count, 1)
	return &object{name: name, destroy: destroy, count: count, users: 1}
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

func (o *object) release() {
	o.mutex.Lock()
	o.users--
	last := o.users == 0
	o.mutex.Unlock()
	if last {
		o.destroy()
		atomic.AddInt64(o.count, -1)
	}
}

// close reports whether the object was open.
func (o *object) close() bool {
	if o == nil {
		return false
	}
	o.mutex.Lock()
	open := !o.closed
	o.closed = true
	o.mutex.Unlock()
	if open {
		o.release()
	}
	return open
}

// finalize is close where nobody called Close.
func (o *object) finalize() {
	if o.close() {
		atomic.AddInt64(&handles.finalized, 1)
	}
}
