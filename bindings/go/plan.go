package sluice

// #include "calls.h"
import "C"

import "runtime"

// Plan is a problem with its kernels chosen and loaded. Its methods may be called in any number of goroutines at once;
// concurrent runs need different workspaces, if the plan needs one at all.
type Plan struct {
	object  *object
	handle  *C.sluice_plan
	context *contextState
}

// NewPlan chooses the kernels for a problem and loads them onto the context's device, so that Plan.Run only has to
// launch them. It enqueues nothing. Close the plan; the context may be closed before. Not for use during stream capture.
// Errors: as of Support; HIP, PackCorrupt, OutOfMemory.
func (c *Context) NewPlan(attention *Attention) (*Plan, error) {
	var handle *C.sluice_plan
	var release func()
	err := c.use(func(in *memory, failure *C.sluice_error) C.sluice_status {
		release = c.object.hold()
		return C.sluice_attention_plan(c.state.handle, pointer[C.sluice_attention](in, attention), &handle, failure)
	})
	if err != nil {
		if release != nil {
			release()
		}
		return nil, err
	}
	// The plan uses the context until it is destroyed itself.
	made := newObject("plan", &handles.plans, func() {
		C.sluice_plan_destroy(handle)
		release()
	}, c.state.waitForDevice)
	plan := &Plan{object: made, handle: handle, context: c.state}
	runtime.SetFinalizer(plan, func(p *Plan) { p.object.finalize() })
	return plan, nil
}

// Close releases the plan; further calls do nothing. The work it enqueued must have completed; runs that the package
// hip captured keep the plan until their graph is closed. A finalizer closes a plan that the program does not close,
// after waiting for all work of the device. The error is always nil.
func (p *Plan) Close() error {
	if p != nil {
		p.object.close(false)
	}
	return nil
}

// use makes a call with the plan.
func (p *Plan) use(do func(in *memory, failure *C.sluice_error) C.sluice_status) error {
	if p == nil {
		return (*object)(nil).call(do)
	}
	return p.object.call(do)
}

// Describe describes the plan.
func (p *Plan) Describe() (info PlanInfo, err error) {
	err = p.use(func(in *memory, failure *C.sluice_error) C.sluice_status {
		from := answer[C.sluice_plan_info](in)
		status := C.sluice_plan_describe(p.handle, from, failure)
		info = goPlanInfo(from)
		return status
	})
	return info, err
}

// Run enqueues one call of the plan and returns without waiting; a nil launch is the default stream without workspace.
// It is legal during stream capture. The memory of the arguments is read when the work executes, and must stay valid
// until then; faults of the device appear where the caller synchronises.
//
// An error means that nothing was enqueued: InvalidArgument, Unsupported, NewerStruct, WorkspaceTooSmall, NoDevice for a
// plan of a target, HIP. The exceptions are those of sluice_attention_run.
func (p *Plan) Run(args *Args, launch *Launch) error {
	if p == nil {
		return (*object)(nil).use()
	}
	return p.object.enqueue(p.context, launch, func(in *memory, launch *C.sluice_launch,
		failure *C.sluice_error) C.sluice_status {
		return C.sluice_go_attention_run(&p.context.device, p.handle, pointer[C.sluice_attention_args](in, args), launch,
			failure)
	})
}

// Counters counts what the calls of Run with the plan have done since the plan was made.
func (p *Plan) Counters() (counters Counters, err error) {
	err = p.use(func(in *memory, failure *C.sluice_error) C.sluice_status {
		from := answer[C.sluice_counters](in)
		status := C.sluice_plan_counters(p.handle, from, failure)
		counters = goCounters(from)
		return status
	})
	return counters, err
}
