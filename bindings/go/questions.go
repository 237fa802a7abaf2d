package sluice

// #include <sluice/sluice.h>
import "C"

// Support is the result of QuerySupport.
type Support struct {
	WorkspaceAlignment uint32 // Required alignment of Launch.Workspace in bytes.
	WorkspaceBytes     uint64 // Device memory that a run needs; may be 0.
	PointerAlignment   uint32 // Required alignment of Q, K, V and O in bytes.
	StrideMultiple     uint32 // Strides of Q, K, V and O must be multiples of this, in elements.
	Kernel             string // Name of the kernel that a plan would use.
}

// QuerySupport says whether a plan for this problem can be made, and what it needs. It touches no device. An error
// names the field, the value asked for and the nearest supported value: InvalidArgument, Unsupported, NewerStruct.
func (c *Context) QuerySupport(problem *Problem) (Support, error) {
	release, err := c.use()
	if err != nil {
		return Support{}, err
	}
	defer release()
	support := C.sluice_support{struct_size: C.sizeof_sluice_support}
	failure := newError()
	status := C.sluice_query_support(c.state.handle, problem.c(), &support, failure)
	if err := result(status, failure); err != nil {
		return Support{}, err
	}
	return goSupport(&support), nil
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

// WorkspaceSize returns only the WorkspaceBytes of QuerySupport.
func (c *Context) WorkspaceSize(problem *Problem) (uint64, error) {
	release, err := c.use()
	if err != nil {
		return 0, err
	}
	defer release()
	var bytes C.uint64_t
	failure := newError()
	err = result(C.sluice_workspace_size(c.state.handle, problem.c(), &bytes, failure), failure)
	return uint64(bytes), err
}

// KernelInfo is one kernel of a context.
type KernelInfo struct {
	DType        DType  // Of Q; for cache operations, of their input.
	HeadDimQK    int32  // Elements of a row of Q and K; 0 for cache operations, which take any.
	HeadDimV     int32  // Elements of a row of V and O; 0 for cache operations.
	TileQ        uint32 // Rows per workgroup, over all heads of a group; 0 for cache operations.
	TileKV       uint32 // Keys per loop iteration; 0 for cache operations.
	Waves        uint32 // Waves per workgroup.
	Threads      uint32 // Lanes per workgroup.
	LDSBytes     uint32 // LDS per workgroup.
	KernargBytes uint32 // Size of the kernel's argument block.
	Name         string // E.g. "attn_fwd_f16_d128_q256_kv64_w8": operation, type, head dim, tiles, waves.
	Operation    string // "attention_forward", "kv_append", "append_step" or "merge_states".
	Features     string // Features of the kernel, separated by commas: "causal,lse".
	PRounding    string // How P is rounded to the type of Q: "centred_cut" or "nearest_even", see sluice.h; else "".
	Chips        string // Chips that it has machine code for, separated by commas.
	MoreFeatures string // More features, separated by commas: those since ABI 1.1.
}

// KernelCount is the number of kernels for the context's chip.
func (c *Context) KernelCount() (uint32, error) {
	release, err := c.use()
	if err != nil {
		return 0, err
	}
	defer release()
	var count C.uint32_t
	failure := newError()
	err = result(C.sluice_list_kernels(c.state.handle, 0, nil, &count, failure), failure)
	return uint32(count), err
}

// Kernel is the kernel number `index`, in the order of their names.
func (c *Context) Kernel(index uint32) (KernelInfo, error) {
	release, err := c.use()
	if err != nil {
		return KernelInfo{}, err
	}
	defer release()
	info := C.sluice_kernel_info{struct_size: C.sizeof_sluice_kernel_info}
	failure := newError()
	status := C.sluice_list_kernels(c.state.handle, C.uint32_t(index), &info, nil, failure)
	if err := result(status, failure); err != nil {
		return KernelInfo{}, err
	}
	return goKernelInfo(&info), nil
}

// Kernels returns all of them.
func (c *Context) Kernels() ([]KernelInfo, error) {
	count, err := c.KernelCount()
	if err != nil {
		return nil, err
	}
	kernels := make([]KernelInfo, count)
	for i := range kernels {
		if kernels[i], err = c.Kernel(uint32(i)); err != nil {
			return nil, err
		}
	}
	return kernels, nil
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
