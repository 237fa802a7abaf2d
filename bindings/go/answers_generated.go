// Written by bindings/generate/go.py from bindings/abi.json. DO NOT EDIT.

package sluice

// #include <sluice/sluice.h>
import "C"

// Build: Where the library and its kernels come from.
type Build struct {
	// Kernels in the embedded pack.
	KernelCount uint32
	// As sluice_version.
	Version string
	// Source revision, with "-dirty" if it had local changes; "unknown" outside git.
	GitCommit string
	// The C++ compiler that built the library.
	Compiler string
	// The LLVM that generated the kernels.
	LLVMVersion string
	// Checksum of the pack's manifest in hexadecimal: equal ids, equal kernels.
	PackID string
	// Chips that the pack has kernels for, separated by commas.
	Chips string
}

func goBuild(from *C.sluice_build) Build {
	return Build{
		KernelCount: uint32(from.kernel_count),
		Version:     text(from.version[:]),
		GitCommit:   text(from.git_commit[:]),
		Compiler:    text(from.compiler[:]),
		LLVMVersion: text(from.llvm_version[:]),
		PackID:      text(from.pack_id[:]),
		Chips:       text(from.chips[:]),
	}
}

// DeviceInfo: The device of a context.
type DeviceInfo struct {
	// DeviceKind.
	Kind DeviceKind
	// Device ordinal; -1 for a target.
	Ordinal int32
	// Compute units.
	ComputeUnits uint32
	// Lanes of a wave.
	WaveSize uint32
	// LDS bytes available to a workgroup.
	LDSBytes uint32
	// hipRuntimeGetVersion; 0 for a target or if it is unknown.
	HIPRuntimeVersion int32
	// Processor without features: "gfx942".
	Chip string
	// As the runtime reports it: "gfx942:sramecc+:xnack-".
	Arch string
	// Marketing name, or empty.
	Name string
	// Where HIP comes from: a file name, "caller" or "none".
	Runtime string
}

func goDeviceInfo(from *C.sluice_device_info) DeviceInfo {
	return DeviceInfo{
		Kind:              DeviceKind(from.kind),
		Ordinal:           int32(from.ordinal),
		ComputeUnits:      uint32(from.compute_units),
		WaveSize:          uint32(from.wave_size),
		LDSBytes:          uint32(from.lds_bytes),
		HIPRuntimeVersion: int32(from.hip_runtime_version),
		Chip:              text(from.chip[:]),
		Arch:              text(from.arch[:]),
		Name:              text(from.name[:]),
		Runtime:           text(from.runtime[:]),
	}
}

// Support: Result of sluice_attention_support.
type Support struct {
	// Required alignment of Launch.Workspace in bytes.
	WorkspaceAlignment uint32
	// Device memory that a run needs; may be 0.
	WorkspaceBytes uint64
	// Required alignment of q, k, v and o in bytes.
	PointerAlignment uint32
	// Strides of q, k, v and o must be multiples of this, in elements.
	StrideMultiple uint32
	// Name of the kernel that a plan would use.
	Kernel string
}

func goSupport(from *C.sluice_support) Support {
	return Support{
		WorkspaceAlignment: uint32(from.workspace_alignment),
		WorkspaceBytes:     uint64(from.workspace_bytes),
		PointerAlignment:   uint32(from.pointer_alignment),
		StrideMultiple:     uint32(from.stride_multiple),
		Kernel:             text(from.kernel[:]),
	}
}

// PlanInfo: Description of a plan.
type PlanInfo struct {
	// Rows per workgroup, over all heads of a group.
	TileQ uint32
	// Keys per loop iteration.
	TileKV uint32
	// Waves per workgroup.
	Waves uint32
	// LDS per workgroup.
	LDSBytes uint32
	// Required alignment of Launch.Workspace in bytes.
	WorkspaceAlignment uint32
	// Device memory that a run needs; may be 0.
	WorkspaceBytes uint64
	// Workgroups at the problem's bounds; 0 if a bound is missing.
	MaxGrid [3]uint32
	// Lanes per workgroup.
	Block [3]uint32
	// Name of the kernel.
	Kernel string
	// Why this kernel, in a sentence: its estimated cost and that of the next best.
	Reason string
}

func goPlanInfo(from *C.sluice_plan_info) PlanInfo {
	return PlanInfo{
		TileQ:              uint32(from.tile_q),
		TileKV:             uint32(from.tile_kv),
		Waves:              uint32(from.waves),
		LDSBytes:           uint32(from.lds_bytes),
		WorkspaceAlignment: uint32(from.workspace_alignment),
		WorkspaceBytes:     uint64(from.workspace_bytes),
		MaxGrid:            [3]uint32{uint32(from.max_grid[0]), uint32(from.max_grid[1]), uint32(from.max_grid[2])},
		Block:              [3]uint32{uint32(from.block[0]), uint32(from.block[1]), uint32(from.block[2])},
		Kernel:             text(from.kernel[:]),
		Reason:             text(from.reason[:]),
	}
}

// KernelInfo: One kernel of a context.
type KernelInfo struct {
	// DType of Q; for cache operations, of their input.
	DType DType
	// Elements of a row of Q and K; 0 for cache operations, which take any.
	HeadDimQK int32
	// Elements of a row of V and O; 0 for cache operations.
	HeadDimV int32
	// Rows per workgroup, over all heads of a group; 0 for cache operations.
	TileQ uint32
	// Keys per loop iteration; 0 for cache operations.
	TileKV uint32
	// Waves per workgroup.
	Waves uint32
	// Lanes per workgroup.
	Threads uint32
	// LDS per workgroup.
	LDSBytes uint32
	// Size of the kernel's argument block.
	KernargBytes uint32
	// E.g. "attn_fwd_f16_d128_q256_kv64_w8": operation, type, head dim, tiles, waves.
	Name string
	// "attention_forward", "kv_append", "merge_states", "kv_copy" or "append_step".
	Operation string
	// Features of the kernel, separated by commas: "causal,lse".
	Features string
	// How P is rounded to the type of Q: "centred_cut" (to F16 and BF16, by at most 0.70 of its last place,
	// docs/concepts/numerics.md) or "nearest_even"; else "".
	PRounding string
	// Chips that it has machine code for, separated by commas.
	Chips string
	// Features that Features has no room for: the rest.
	MoreFeatures string
}

func goKernelInfo(from *C.sluice_kernel_info) KernelInfo {
	return KernelInfo{
		DType:        DType(from.dtype),
		HeadDimQK:    int32(from.head_dim_qk),
		HeadDimV:     int32(from.head_dim_v),
		TileQ:        uint32(from.tile_q),
		TileKV:       uint32(from.tile_kv),
		Waves:        uint32(from.waves),
		Threads:      uint32(from.threads),
		LDSBytes:     uint32(from.lds_bytes),
		KernargBytes: uint32(from.kernarg_bytes),
		Name:         text(from.name[:]),
		Operation:    text(from.operation[:]),
		Features:     text(from.features[:]),
		PRounding:    text(from.p_rounding[:]),
		Chips:        text(from.chips[:]),
		MoreFeatures: text(from.more_features[:]),
	}
}

// TraceRecord: One plan or run. Valid during the callback.
type TraceRecord struct {
	// TraceEvent.
	Event TraceEvent
	// Workgroups of this run, or at the plan's bounds (0 if a bound is missing).
	Grid [3]uint32
	// Lanes per workgroup.
	Block [3]uint32
	// LDS per workgroup.
	LDSBytes uint32
	// Waves per workgroup.
	Waves uint32
	// Device memory that a run needs.
	WorkspaceBytes uint64
	// Name of the kernel.
	Kernel string
	// Why it was chosen.
	Reason string
}

func goTraceRecord(from *C.sluice_trace_record) TraceRecord {
	return TraceRecord{
		Event:          TraceEvent(from.event),
		Grid:           [3]uint32{uint32(from.grid[0]), uint32(from.grid[1]), uint32(from.grid[2])},
		Block:          [3]uint32{uint32(from.block[0]), uint32(from.block[1]), uint32(from.block[2])},
		LDSBytes:       uint32(from.lds_bytes),
		Waves:          uint32(from.waves),
		WorkspaceBytes: uint64(from.workspace_bytes),
		Kernel:         C.GoString(from.kernel),
		Reason:         C.GoString(from.reason),
	}
}

// Counters: Counts of the runs of a plan since it was made.
type Counters struct {
	// Calls that returned OK. A captured run counts once, when captured.
	Runs uint64
	// Calls that returned anything else, a failure of HIP included.
	Refused uint64
	// Attention kernels that were enqueued: the sum of the next two.
	Launches uint64
	// ... of the kernel that PlanInfo names.
	MainLaunches uint64
	// ... of other kernels of the plan: for short sequences, or for prefixes.
	OtherLaunches uint64
	// Merges of split keys, or of prefixes and own keys, that were enqueued.
	MergeLaunches uint64
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
