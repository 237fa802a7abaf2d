package sluice

// #include "calls.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// Plan is a problem with its kernel chosen and loaded. Its methods may be called in any number of goroutines at once;
// concurrent runs need different workspaces, if the plan needs one at all.
type Plan struct {
	object  *object
	handle  *C.sluice_plan
	context *contextState
	problem Problem
}

// NewPlan chooses the kernel for a problem and loads it onto the context's device, so that Plan.Run only has to launch
// it. It enqueues nothing. Close the plan; the context may be closed before. Not for use during stream capture. Errors:
// as of QuerySupport; HIP, PackCorrupt, OutOfMemory.
func (c *Context) NewPlan(problem *Problem) (*Plan, error) {
	release, err := c.use()
	if err != nil {
		return nil, err
	}
	plan := &Plan{context: c.state}
	failure := newError()
	if err := result(C.sluice_plan_create(c.state.handle, problem.c(), &plan.handle, failure), failure); err != nil {
		release()
		return nil, err
	}
	plan.problem = *problem
	handle := plan.handle
	// The plan uses the context until it is destroyed itself.
	plan.object = newObject("plan", &handles.plans, func() {
		C.sluice_plan_destroy(handle)
		release()
	}, c.state.waitForDevice)
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

func (p *Plan) use() (func(), error) {
	if p == nil {
		return nil, (*object)(nil).use()
	}
	if err := p.object.use(); err != nil {
		return nil, err
	}
	return p.object.release, nil
}

// Problem is the problem that the plan was made for.
func (p *Plan) Problem() Problem { return p.problem }

// PlanInfo is the description of a plan.
type PlanInfo struct {
	TileQ              uint32    // Rows per workgroup, over all heads of a group.
	TileKV             uint32    // Keys per loop iteration.
	Waves              uint32    // Waves per workgroup.
	LDSBytes           uint32    // LDS per workgroup.
	WorkspaceAlignment uint32    // Required alignment of Launch.Workspace in bytes.
	WorkspaceBytes     uint64    // Device memory that a run needs; may be 0.
	MaxGrid            [3]uint32 // Workgroups at the problem's bounds; 0 if a bound is missing.
	Block              [3]uint32 // Lanes per workgroup.
	Kernel             string    // Name of the kernel.
	Reason             string    // Why this kernel, in a sentence: its estimated cost and that of the next best.
}

// Describe describes the plan.
func (p *Plan) Describe() (PlanInfo, error) {
	release, err := p.use()
	if err != nil {
		return PlanInfo{}, err
	}
	defer release()
	info := C.sluice_plan_info{struct_size: C.sizeof_sluice_plan_info}
	failure := newError()
	if err := result(C.sluice_plan_describe(p.handle, &info, failure), failure); err != nil {
		return PlanInfo{}, err
	}
	return goPlanInfo(&info), nil
}

func goPlanInfo(from *C.sluice_plan_info) PlanInfo {
	info := PlanInfo{
		TileQ:              uint32(from.tile_q),
		TileKV:             uint32(from.tile_kv),
		Waves:              uint32(from.waves),
		LDSBytes:           uint32(from.lds_bytes),
		WorkspaceAlignment: uint32(from.workspace_alignment),
		WorkspaceBytes:     uint64(from.workspace_bytes),
		Kernel:             text(from.kernel[:]),
		Reason:             text(from.reason[:]),
	}
	for i := range info.MaxGrid {
		info.MaxGrid[i], info.Block[i] = uint32(from.max_grid[i]), uint32(from.block[i])
	}
	return info
}

// Preload loads the kernel for a problem (every kernel of the context if it is nil) and keeps it loaded while the
// context or one of its plans lives. Plans made later then load nothing. A target has no device to load onto: NoDevice.
func (c *Context) Preload(problem *Problem) error {
	release, err := c.use()
	if err != nil {
		return err
	}
	defer release()
	failure := newError()
	return result(C.sluice_preload(c.state.handle, problem.c(), failure), failure)
}

// Run enqueues one call of the plan and returns without waiting; a nil launch is the default stream without
// workspace. It is legal during stream capture. The memory of the arguments is read when the work executes, and must
// stay valid until then; faults of the device appear where the caller synchronises. Beyond what the library checks,
// types and shapes of tensors are compared with the problem and the call. The run stays within Q, K, V, O and LSE for
// any starts, lengths and page numbers on the device, because the library gets their numbers of rows and pages;
// but page tables must have all entries that lengths need.
//
// An error means that nothing was enqueued: InvalidArgument, Unsupported, NewerStruct, WorkspaceTooSmall, NoDevice for
// a plan of a target, HIP. The exceptions are those of sluice_run.
func (p *Plan) Run(args *Args, launch *Launch) error {
	release, err := p.use()
	if err != nil {
		return err
	}
	defer release()
	if args == nil {
		return invalid("args", "args is nil; a run needs tensors and lengths")
	}
	if err := args.check(&p.problem); err != nil {
		return err
	}
	if err := launch.check(); err != nil {
		return err
	}
	p.object.enqueued.Store(true)
	defer p.context.noteCapture(p.object, launch)
	failure := newError()
	return result(C.sluice_go_run(&p.context.device, p.handle, unsafe.Pointer(args.c(&p.problem)), unsafe.Pointer(launch.c()),
		launch.dependencies(), failure), failure)
}

// Counters are what the calls of Run with a plan have done since the plan was made. Calls that this package refuses
// itself do not count.
type Counters struct {
	Runs          uint64 // Calls without an error. A captured run counts once, when captured.
	Refused       uint64 // Calls that the library refused, and failures of HIP.
	Launches      uint64 // Attention kernels that were enqueued: the sum of the next two.
	MainLaunches  uint64 // ... of the kernel that PlanInfo names.
	OtherLaunches uint64 // ... of other kernels of the plan: for short sequences, or for prefixes.
	MergeLaunches uint64 // Merges of split keys, or of prefixes and own keys, that were enqueued.
}

// Counters counts what the plan's runs have done.
func (p *Plan) Counters() (Counters, error) {
	release, err := p.use()
	if err != nil {
		return Counters{}, err
	}
	defer release()
	counters := C.sluice_counters{struct_size: C.sizeof_sluice_counters}
	failure := newError()
	if err := result(C.sluice_plan_counters(p.handle, &counters, failure), failure); err != nil {
		return Counters{}, err
	}
	return goCounters(&counters), nil
}

func goCounters(from *C.sluice_counters) Counters {
	return Counters{
		Runs:          uint64(from.runs),
		Refused:       uint64(from.refused),
		Launches:      uint64(from.launches),
		MainLaunches:  uint64(from.main_launches),
		OtherLaunches: uint64(from.other_launches),
		MergeLaunches: uint64(from.merge_launches),
	}
}
