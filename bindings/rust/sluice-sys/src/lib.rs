//! Only `include/sluice/sluice.h`: the structs, constants and functions of `libsluice.so` under their C names. The
//! header is the documentation; comments here are its first sentences. The crate `sluice` is a safe interface to it.
//!
//! `tests/layout.rs` compares every struct, field, constant, function and comment with the header.
#![allow(non_camel_case_types)]

use core::marker::{PhantomData, PhantomPinned};
use std::os::raw::{c_char, c_void};

/// ABI generation: SONAME `libsluice.so.1`, symbol version node `SLUICE_1`.
pub const SLUICE_ABI_MAJOR: u32 = 1;
/// Counts additions to the ABI within its generation.
pub const SLUICE_ABI_MINOR: u32 = 1;
/// Result of a call: one of the SLUICE_* codes below.
pub type sluice_status = i32;

// sluice_status_code: Status codes, each with what the caller can do about it.
/// Done, or for sluice_run: enqueued.
pub const SLUICE_OK: sluice_status = 0;
/// An argument breaks a documented rule: fix the call.
pub const SLUICE_INVALID_ARGUMENT: sluice_status = 1;
/// Legal, but this library cannot compute it: use another path.
pub const SLUICE_UNSUPPORTED: sluice_status = 2;
/// A field, flag or enumerator that this library does not know is set: upgrade.
pub const SLUICE_NEWER_STRUCT: sluice_status = 3;
/// The device, HIP runtime or emulator does not exist here.
pub const SLUICE_NO_DEVICE: sluice_status = 4;
/// The pack has no kernels for the device, or HIP found no code for it.
pub const SLUICE_WRONG_ARCH: sluice_status = 5;
/// A HIP call failed; sluice_error::hip_code has its code.
pub const SLUICE_HIP: sluice_status = 6;
/// The kernel pack is truncated or altered: reinstall.
pub const SLUICE_PACK_CORRUPT: sluice_status = 7;
/// Give at least sluice_workspace_size bytes.
pub const SLUICE_WORKSPACE_TOO_SMALL: sluice_status = 8;
/// Host memory ran out.
pub const SLUICE_OUT_OF_MEMORY: sluice_status = 9;
/// A defect of the library: report it with the message.
pub const SLUICE_INTERNAL: sluice_status = 10;

/// Details of a failed call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_error {
    /// sizeof(sluice_error).
    pub struct_size: u32,
    /// What the call returned.
    pub code: sluice_status,
    /// The hipError_t if a HIP call failed, for any code; otherwise 0.
    pub hip_code: i32,
    /// The argument or field at fault, e.g. "k.stride\[1\]", or empty.
    pub field: [c_char; 52],
    /// One sentence: the field, its value, the rule or the nearest supported value.
    pub message: [c_char; 448],
}

/// Where the library and its kernels come from.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_build {
    /// sizeof(sluice_build).
    pub struct_size: u32,
    /// Kernels in the embedded pack.
    pub kernel_count: u32,
    /// As sluice_version.
    pub version: [c_char; 32],
    /// Source revision, with "-dirty" if it had local changes; "unknown" outside git.
    pub git_commit: [c_char; 48],
    /// The C++ compiler that built the library.
    pub compiler: [c_char; 64],
    /// The LLVM that generated the kernels.
    pub llvm_version: [c_char; 32],
    /// Checksum of the pack's manifest in hexadecimal: equal ids, equal kernels.
    pub pack_id: [c_char; 32],
    /// Chips that the pack has kernels for, separated by commas.
    pub chips: [c_char; 64],
}

// sluice_log_level: Severity of a log message.
/// Something failed in a way that a status cannot say (a destroy, for example).
pub const SLUICE_LOG_ERROR: u32 = 1;
/// Worth knowing.
pub const SLUICE_LOG_WARNING: u32 = 2;
/// Devices found and kernels chosen when contexts and plans are made.
pub const SLUICE_LOG_INFO: u32 = 3;
/// Every step of finding and choosing.
pub const SLUICE_LOG_DEBUG: u32 = 4;

/// Receives a log line, without a line end.
pub type sluice_log_fn = Option<unsafe extern "C" fn(level: u32, message: *const c_char, user: *mut c_void)>;

/// A device, or a named target without one, and the kernels for it.
#[repr(C)]
pub struct sluice_context {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

// sluice_device_kind: The kind of device that a context represents.
/// A GPU, through the HIP runtime of the process.
pub const SLUICE_DEVICE_HIP: u32 = 1;
/// The bundled gfx942 emulator: same machine code, same calls.
pub const SLUICE_DEVICE_EMULATED: u32 = 2;
/// A chip by name: answers questions and makes plans, but cannot run.
pub const SLUICE_DEVICE_TARGET: u32 = 3;

/// Returns the HIP entry point of that name, or NULL.
pub type sluice_hip_resolver =
    Option<unsafe extern "C" fn(name: *const c_char, user: *mut c_void) -> *mut c_void>;

/// Input of sluice_context_create.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_context_desc {
    /// sizeof(sluice_context_desc).
    pub struct_size: u32,
    /// sluice_device_kind; required.
    pub kind: u32,
    /// HIP and EMULATED: as for hipSetDevice.
    pub device_ordinal: i32,
    /// Must be 0.
    pub flags: u32,
    /// TARGET: chip and compute units, "gfx942:304"; otherwise NULL.
    pub target: *const c_char,
    /// HIP only, nullable: take every HIP entry point from here.
    pub hip_resolver: sluice_hip_resolver,
    /// Passed to hip_resolver.
    pub hip_resolver_user: *mut c_void,
    /// Nullable: a kernel pack to use instead of the embedded one.
    pub pack: *const c_void,
    /// Size of `pack`; its memory must outlive the context and its plans.
    pub pack_bytes: u64,
}

/// The device of a context.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_device_info {
    /// sizeof(sluice_device_info).
    pub struct_size: u32,
    /// sluice_device_kind.
    pub kind: u32,
    /// Device ordinal; -1 for a target.
    pub ordinal: i32,
    /// Compute units.
    pub compute_units: u32,
    /// Lanes of a wave.
    pub wave_size: u32,
    /// LDS bytes available to a workgroup.
    pub lds_bytes: u32,
    /// hipRuntimeGetVersion; 0 for a target or if it is unknown.
    pub hip_runtime_version: i32,
    /// 0.
    pub reserved: u32,
    /// Processor without features: "gfx942".
    pub chip: [c_char; 32],
    /// As the runtime reports it: "gfx942:sramecc+:xnack-".
    pub arch: [c_char; 64],
    /// Marketing name, or empty.
    pub name: [c_char; 128],
    /// Where HIP comes from: a file name, "caller" or "none".
    pub runtime: [c_char; 160],
}

// sluice_mode: Layout of sequences in memory.
/// Every sequence has the same lengths: tensors \[batch, token, head, dim\].
pub const SLUICE_MODE_DENSE: u32 = 0;
/// Sequences packed one after the other: tensors \[token, head, dim\].
pub const SLUICE_MODE_RAGGED: u32 = 1;
/// K and V in pages, \[page, token in page, head, dim\], found through a table.
pub const SLUICE_MODE_PAGED: u32 = 2;

// sluice_dtype: Element types.
/// IEEE binary16.
pub const SLUICE_F16: u32 = 1;
/// bfloat16.
pub const SLUICE_BF16: u32 = 2;
/// IEEE binary32.
pub const SLUICE_F32: u32 = 3;
/// FP8, bias 8, maximum 240, one NaN, no infinity.
pub const SLUICE_E4M3FNUZ: u32 = 4;
/// OCP FP8, bias 7, maximum 448.
pub const SLUICE_E4M3FN: u32 = 5;
/// FP8, bias 16, maximum 57344, one NaN, no infinity.
pub const SLUICE_E5M2FNUZ: u32 = 6;
/// OCP FP8, bias 15, maximum 57344, with infinities.
pub const SLUICE_E5M2: u32 = 7;
/// Signed 8-bit integer; K and V only, like the next three. Since ABI 1.1.
pub const SLUICE_I8: u32 = 8;
/// Unsigned 4-bit integer, two per byte, the even element in the lower half; needs scales per group.
pub const SLUICE_U4: u32 = 9;
/// ggml's block of 32 elements in 34 bytes: an F16 scale, then 32 signed bytes.
pub const SLUICE_Q8_0: u32 = 10;
/// ggml's block of 32 elements in 18 bytes: an F16 scale, then 16 bytes; byte i has element i in its lower
/// half and i + 16 in its upper half. An element is scale * (number - 8).
pub const SLUICE_Q4_0: u32 = 11;

// sluice_problem_flag: Bits of sluice_problem::flags.
/// Keys after the row's own position are invisible; see mask_alignment.
pub const SLUICE_CAUSAL: u32 = 1 << 0;
/// Also write the logarithm of the softmax denominator.
pub const SLUICE_WRITE_LSE: u32 = 1 << 1;
/// window_left applies.
pub const SLUICE_HAS_WINDOW_LEFT: u32 = 1 << 2;
/// window_right applies; not with SLUICE_CAUSAL, which implies 0.
pub const SLUICE_HAS_WINDOW_RIGHT: u32 = 1 << 3;
/// Subtract slope * distance from the scores; sluice_args::alibi_slopes.
pub const SLUICE_ALIBI: u32 = 1 << 4;
/// A learned logit per query head joins the denominator.
pub const SLUICE_SINK_LOGITS: u32 = 1 << 5;
/// A bit per row and key says whether it is visible; sluice_args::mask.
pub const SLUICE_BOOL_MASK: u32 = 1 << 6;
/// The page table holds int64_t instead of int32_t; SLUICE_MODE_PAGED only.
pub const SLUICE_PAGE_INDEX_64: u32 = 1 << 7;
/// V is the first head_dim_v elements of each row of K, and sluice_args::v is zero.
pub const SLUICE_V_IN_K: u32 = 1 << 8;
/// With SLUICE_BOOL_MASK: the mask covers only the newest q_len\[b\] keys, and the keys before them are not
/// masked (drafts as a tree).
pub const SLUICE_MASK_NEW_ROWS: u32 = 1 << 9;
/// Spans of keys that see each other in both directions (images in text); sluice_args::spans.
pub const SLUICE_SPANS: u32 = 1 << 11;
/// Each sequence says whether it is causal; sluice_args::causal.
pub const SLUICE_CAUSAL_BY_SEQUENCE: u32 = 1 << 12;
/// With bias_type: the bias is multiplied by a scale per query head; sluice_args::bias_scale.
pub const SLUICE_BIAS_SCALE: u32 = 1 << 14;
/// Groups of rows see a prefix of keys before their sequence's own keys; sluice_args::prefix_q_starts.
pub const SLUICE_SHARED_PREFIX: u32 = 1 << 10;
/// With scales per group: each group has a number to subtract; sluice_args::k_zeros and v_zeros.
pub const SLUICE_ZERO_POINTS: u32 = 1 << 13;
/// Keys of pages whose number is negative are invisible: lists of keys with holes (sparse attention).
/// SLUICE_MODE_PAGED only.
pub const SLUICE_MISSING_PAGES_HIDDEN: u32 = 1 << 15;
/// Rows of q, k, v and o continue in memory to the next multiple of 8 elements: head dims may be any
/// number. What is there may be any number in q and v, must be finite in k, and is undefined in o after a
/// run.
pub const SLUICE_PADDED_ROWS: u32 = 1 << 16;

// sluice_mask_alignment: Where the diagonal of the mask is.
/// The last row sees the last key: rows are the newest tokens.
pub const SLUICE_BOTTOM_RIGHT: u32 = 0;
/// Row 0 sees key 0.
pub const SLUICE_TOP_LEFT: u32 = 1;
/// Each sequence says at which key; sluice_args::diagonals.
pub const SLUICE_GIVEN_DIAGONAL: u32 = 2;

// sluice_scale_kind: Granularity of the scales that values are multiplied with.
/// Values are used as stored.
pub const SLUICE_SCALE_NONE: u32 = 0;
/// One scale.
pub const SLUICE_SCALE_PER_TENSOR: u32 = 1;
/// One per head of the tensor.
pub const SLUICE_SCALE_PER_HEAD: u32 = 2;
/// One per token and head: k_scales and v_scales of sluice_args.
pub const SLUICE_SCALE_PER_TOKEN: u32 = 3;
/// One per page and head, in the same arrays; SLUICE_MODE_PAGED only.
pub const SLUICE_SCALE_PER_PAGE: u32 = 4;
/// U4 only: one F16 per scale_group elements of a row, in the same arrays.
pub const SLUICE_SCALE_PER_GROUP: u32 = 5;

/// All tokens of a page, or of a sequence in SLUICE_MODE_DENSE.
pub const SLUICE_V_PACK_ALL: u32 = 1 << 30;

// sluice_page_table_kind: How a paged KV cache names its pages.
/// No pages.
pub const SLUICE_PAGE_TABLE_NONE: u32 = 0;
/// \[batch, pages\] page numbers.
pub const SLUICE_PAGE_TABLE_BLOCK: u32 = 1;
/// One list of page numbers, and where each sequence's begin.
pub const SLUICE_PAGE_TABLE_CSR: u32 = 2;

// sluice_lse_base: Base of the logarithm in LSE; ignored without SLUICE_WRITE_LSE.
/// Natural logarithm.
pub const SLUICE_LSE_BASE_E: u32 = 0;
/// Logarithm to base 2.
pub const SLUICE_LSE_BASE_2: u32 = 1;

// sluice_determinism: What may influence the bits of a result.
/// The fastest choice.
pub const SLUICE_DETERMINISM_FAST: u32 = 0;
/// Also, a sequence's result depends neither on the batch size, nor on the other sequences in the batch,
/// nor on the problem's bounds.
pub const SLUICE_DETERMINISM_BATCH_INVARIANT: u32 = 1;

/// A class of attention calls: everything that selects a kernel, nothing that changes from call to call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_problem {
    /// sizeof(sluice_problem).
    pub struct_size: u32,
    /// sluice_problem_flag bits.
    pub flags: u32,
    /// sluice_mode.
    pub mode: u32,
    /// sluice_dtype of Q; required.
    pub q_type: u32,
    /// sluice_dtype of K; required.
    pub k_type: u32,
    /// sluice_dtype of V; required.
    pub v_type: u32,
    /// sluice_dtype of O: F16, BF16, F32 or E4M3FNUZ; required.
    pub o_type: u32,
    /// Query heads, a multiple of kv_heads; required.
    pub q_heads: i32,
    /// KV heads; required.
    pub kv_heads: i32,
    /// Elements of a row of Q and K; required.
    pub head_dim_qk: i32,
    /// Elements of a row of V and O; required.
    pub head_dim_v: i32,
    /// Sequences per call.
    pub max_batch: i32,
    /// Query rows per sequence.
    pub max_q_len: i32,
    /// Keys per sequence.
    pub max_kv_len: i32,
    /// Rows of q per call: batch * q_len, or q_starts\[batch\] if given.
    pub max_q_tokens: i64,
    /// sluice_mask_alignment of SLUICE_CAUSAL, windows and SLUICE_ALIBI.
    pub mask_alignment: u32,
    /// Keys visible before the diagonal; >= 0, needs SLUICE_HAS_WINDOW_LEFT.
    pub window_left: i32,
    /// Keys visible after the diagonal; >= 0, needs SLUICE_HAS_WINDOW_RIGHT.
    pub window_right: i32,
    /// First keys that window_left does not hide; needs SLUICE_HAS_WINDOW_LEFT.
    pub sink_tokens: i32,
    /// c > 0 replaces S by c * tanh(S / c); 0: no cap.
    pub soft_cap: f32,
    /// Type of a matrix added to the scores: F32, F16 or BF16; 0: no bias.
    pub bias_type: u32,
    /// sluice_scale_kind of Q.
    pub q_scale_kind: u32,
    /// sluice_scale_kind of K.
    pub k_scale_kind: u32,
    /// sluice_scale_kind of V.
    pub v_scale_kind: u32,
    /// Tokens per page; required in SLUICE_MODE_PAGED, else 0.
    pub page_size: i32,
    /// sluice_page_table_kind; required in SLUICE_MODE_PAGED, else 0.
    pub page_table_kind: u32,
    /// Elements per pack of an x-packed K cache, SLUICE_MODE_PAGED only; divides head_dim_qk; 0: none.
    pub k_pack: i32,
    /// sluice_lse_base.
    pub lse_base: u32,
    /// sluice_determinism.
    pub determinism: u32,
    /// Use only kernels that need at most this; 0: any.
    pub workspace_ceiling_bytes: u64,
    /// NONE, PER_TENSOR or PER_HEAD (of Q); NONE unless O is FP8.
    pub o_scale_kind: u32,
    /// Elements of a group: 32 or 64 for SLUICE_SCALE_PER_GROUP, else 0.
    pub scale_group: i32,
    /// Prefixes per call.
    pub max_prefixes: i32,
    /// Keys per prefix.
    pub max_prefix_len: i32,
    /// Tokens per pack of V by columns, where the tokens of a column are neighbours: SLUICE_V_PACK_ALL, or in
    /// SLUICE_MODE_PAGED a power of two from 8 on that divides page_size; 0: V is by rows. Since ABI 1.1.
    pub v_pack: i32,
    /// Must be 0.
    pub reserved: u32,
}

/// Result of sluice_query_support.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_support {
    /// sizeof(sluice_support).
    pub struct_size: u32,
    /// Required alignment of sluice_launch::workspace in bytes.
    pub workspace_alignment: u32,
    /// Device memory that a run needs; may be 0.
    pub workspace_bytes: u64,
    /// Required alignment of q, k, v and o in bytes.
    pub pointer_alignment: u32,
    /// Strides of q, k, v and o must be multiples of this, in elements.
    pub stride_multiple: u32,
    /// Name of the kernel that a plan would use.
    pub kernel: [c_char; 96],
}

/// One kernel of a context.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_kernel_info {
    /// sizeof(sluice_kernel_info).
    pub struct_size: u32,
    /// sluice_dtype of Q; for cache operations, of their input.
    pub dtype: u32,
    /// Elements of a row of Q and K; 0 for cache operations, which take any.
    pub head_dim_qk: i32,
    /// Elements of a row of V and O; 0 for cache operations.
    pub head_dim_v: i32,
    /// Rows per workgroup, over all heads of a group; 0 for cache operations.
    pub tile_q: u32,
    /// Keys per loop iteration; 0 for cache operations.
    pub tile_kv: u32,
    /// Waves per workgroup.
    pub waves: u32,
    /// Lanes per workgroup.
    pub threads: u32,
    /// LDS per workgroup.
    pub lds_bytes: u32,
    /// Size of the kernel's argument block.
    pub kernarg_bytes: u32,
    /// E.g. "attn_fwd_f16_d128_q256_kv64_w8": operation, type, head dim, tiles, waves.
    pub name: [c_char; 96],
    /// "attention_forward", "kv_append", "merge_states", "kv_copy" or "append_step".
    pub operation: [c_char; 32],
    /// Features of the kernel, separated by commas: "causal,lse".
    pub features: [c_char; 128],
    /// How P is rounded to the type of Q: "centred_cut" (to F16 and BF16, by at most 0.70 of its last place,
    /// see sluice_problem) or "nearest_even"; else "".
    pub p_rounding: [c_char; 16],
    /// Chips that it has machine code for, separated by commas.
    pub chips: [c_char; 64],
    /// Features that `features` has no room for: those since ABI 1.1.
    pub more_features: [c_char; 256],
}

/// A problem with its kernel chosen and loaded.
#[repr(C)]
pub struct sluice_plan {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// Description of a plan.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_plan_info {
    /// sizeof(sluice_plan_info).
    pub struct_size: u32,
    /// Rows per workgroup, over all heads of a group.
    pub tile_q: u32,
    /// Keys per loop iteration.
    pub tile_kv: u32,
    /// Waves per workgroup.
    pub waves: u32,
    /// LDS per workgroup.
    pub lds_bytes: u32,
    /// Required alignment of sluice_launch::workspace in bytes.
    pub workspace_alignment: u32,
    /// Device memory that a run needs; may be 0.
    pub workspace_bytes: u64,
    /// Workgroups at the problem's bounds; 0 if a bound is missing.
    pub max_grid: [u32; 3],
    /// Lanes per workgroup.
    pub block: [u32; 3],
    /// Name of the kernel.
    pub kernel: [c_char; 96],
    /// Why this kernel, in a sentence: its estimated cost and that of the next best.
    pub reason: [c_char; 208],
}

/// A tensor in memory: element \[a\]\[b\]\[c\]\[d\] is at data + a * stride\[0\] + b * stride\[1\] + c *
/// stride\[2\] + d * stride\[3\] elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_tensor {
    /// Element \[0\]\[0\]\[0\]\[0\].
    pub data: *mut c_void,
    /// In elements, each >= 0 (sluice_merge has exceptions); 0 repeats an input.
    pub stride: [i64; 4],
}

// sluice_args_flag: Bits of sluice_args::flags: for which members 0 is a number like any other.
/// `scale` is used as it is. If it is 0, so are all products of Q and K: without changes of the scores, a
/// row is the mean of the values that it sees.
pub const SLUICE_EXACT_SCALE: u32 = 1 << 0;
/// `q_len`, `kv_len`, `prefix_len` and `prefix_count` are used as they are: 0 is no rows, no keys or no
/// prefixes.
pub const SLUICE_EXACT_LENGTHS: u32 = 1 << 1;

/// One call: pointers and numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_args {
    /// sizeof(sluice_args).
    pub struct_size: u32,
    /// sluice_args_flag bits.
    pub flags: u32,
    /// Sequences.
    pub batch: i32,
    /// Query rows of each sequence, or their maximum; 0: the problem's bound.
    pub q_len: i32,
    /// Keys of each sequence, or their maximum; 0: the problem's bound.
    pub kv_len: i32,
    /// Scale of the scores.
    pub scale: f32,
    /// Queries.
    pub q: sluice_tensor,
    /// Keys.
    pub k: sluice_tensor,
    /// Values; all zero with SLUICE_V_IN_K.
    pub v: sluice_tensor,
    /// Result.
    pub o: sluice_tensor,
    /// Logarithm of the softmax denominator; data is NULL without SLUICE_WRITE_LSE.
    pub lse: sluice_tensor,
    /// \[batch + 1\]: rows of q before each sequence's first.
    pub q_starts: *const i32,
    /// \[batch + 1\]: rows of k and v before each sequence's first.
    pub kv_starts: *const i32,
    /// \[batch\]: query rows of each sequence.
    pub q_lengths: *const i32,
    /// \[batch\]: keys of each sequence.
    pub kv_lengths: *const i32,
    /// Page numbers: int32_t, or int64_t with SLUICE_PAGE_INDEX_64.
    pub page_table: *const c_void,
    /// BLOCK: entries from one sequence's first to the next one's; else 0.
    pub page_table_stride: i64,
    /// CSR, \[batch + 1\]: entries before each sequence's first.
    pub page_starts: *const i32,
    /// Added to the scores; all zero without bias_type.
    pub bias: sluice_tensor,
    /// Key j of a row is bit j % 8 of byte j / 8; strides count bytes.
    pub mask: sluice_tensor,
    /// \[q_heads\].
    pub alibi_slopes: *const f32,
    /// \[q_heads\], to base e.
    pub sink_logits: *const f32,
    /// \[1\] or \[q_heads\], by q_scale_kind.
    pub q_scale: *const f32,
    /// \[1\] or \[kv_heads\], by k_scale_kind.
    pub k_scale: *const f32,
    /// \[1\] or \[kv_heads\], by v_scale_kind.
    pub v_scale: *const f32,
    /// PAGED: pages of the cache; 0: unknown.
    pub page_count: i64,
    /// With q_starts: rows of q, o and lse; 0: unknown.
    pub q_tokens: i64,
    /// With kv_starts: rows of k and v (not of prefix_k and prefix_v); 0: unknown.
    pub kv_tokens: i64,
    /// Scales of K per token, page or group; else all zero.
    pub k_scales: sluice_tensor,
    /// Scales of V per token, page or group; else all zero.
    pub v_scales: sluice_tensor,
    /// \[1\] or \[q_heads\], by o_scale_kind: O is divided by it.
    pub o_scale: *const f32,
    /// \[q_heads\], with SLUICE_BIAS_SCALE.
    pub bias_scale: *const f32,
    /// \[batch\]: the key on row 0's diagonal, with SLUICE_GIVEN_DIAGONAL.
    pub diagonals: *const i32,
    /// \[batch\]: not 0 for causal sequences, with SLUICE_CAUSAL_BY_SEQUENCE.
    pub causal: *const i32,
    /// With SLUICE_SPANS.
    pub spans: *const i32,
    /// Spans of each sequence.
    pub span_count: i64,
    /// From one sequence's alibi_slopes to the next one's; 0: shared.
    pub alibi_batch_stride: i64,
    /// The same for bias_scale.
    pub bias_scale_batch_stride: i64,
    /// Prefixes.
    pub prefix_count: i32,
    /// Keys of each prefix, or their maximum; 0: the problem's bound.
    pub prefix_len: i32,
    /// \[prefix_count + 1\]: rows of q before each prefix's first.
    pub prefix_q_starts: *const i32,
    /// \[prefix_count\]: keys of each prefix.
    pub prefix_lengths: *const i32,
    /// Page numbers of the same type as in page_table.
    pub prefix_page_table: *const c_void,
    /// BLOCK: entries from one prefix's first to the next one's; else 0.
    pub prefix_page_table_stride: i64,
    /// CSR, \[prefix_count + 1\]: entries before each prefix's first.
    pub prefix_page_starts: *const i32,
    /// DENSE and RAGGED: keys of the prefixes.
    pub prefix_k: sluice_tensor,
    /// DENSE and RAGGED: their values; all zero with SLUICE_V_IN_K.
    pub prefix_v: sluice_tensor,
    /// With SLUICE_ZERO_POINTS: F16, with the strides of k_scales; else all zero.
    pub k_zeros: sluice_tensor,
    /// The same for v_scales.
    pub v_zeros: sluice_tensor,
    /// PAGED: entries of page_table from those of a KV head to the next one's; 0: heads share them.
    pub page_table_head_stride: i64,
}

// sluice_dependency_kind: Kind of a dependency.
/// Wait for `event`, which the caller has recorded.
pub const SLUICE_DEPENDS_ON_EVENT: u32 = 1;
/// Record `event` on `stream` now and wait for it, so for all work there.
pub const SLUICE_DEPENDS_ON_STREAM: u32 = 2;

/// Something that must complete before a run starts.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_dependency {
    /// sluice_dependency_kind.
    pub kind: u32,
    /// Must be 0.
    pub reserved: u32,
    /// hipEvent_t of the caller; required for both kinds: the library creates no events.
    pub event: *mut c_void,
    /// hipStream_t for SLUICE_DEPENDS_ON_STREAM (NULL: the default stream); else NULL.
    pub stream: *mut c_void,
}

/// Where and when a run happens.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_launch {
    /// sizeof(sluice_launch).
    pub struct_size: u32,
    /// Elements of `dependencies`.
    pub dependency_count: u32,
    /// hipStream_t of the context's device; NULL is the default stream.
    pub stream: *mut c_void,
    /// Device memory, aligned and sized as the plan says; may hold anything.
    pub workspace: *mut c_void,
    /// Size of `workspace`.
    pub workspace_bytes: u64,
    /// Work that the run waits for; NULL if the count is 0.
    pub dependencies: *const sluice_dependency,
    /// Nullable hipEvent_t, recorded on `stream` after the run.
    pub signal_event: *mut c_void,
}

// sluice_rotary_style: Which elements of a row a rotation pairs, counted from the first that is rotated.
/// e and e + rotary_dim / 2, as GPT-NeoX and Llama do.
pub const SLUICE_ROTARY_HALVES: u32 = 0;
/// 2e and 2e + 1, as GPT-J does.
pub const SLUICE_ROTARY_PAIRS: u32 = 1;

/// New rows of K and V, to be stored in a paged cache.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_append {
    /// sizeof(sluice_append).
    pub struct_size: u32,
    /// SLUICE_PAGE_INDEX_64, SLUICE_V_IN_K (then V has no rows and no cache) and, since ABI 1.1,
    /// SLUICE_ZERO_POINTS, or 0.
    pub flags: u32,
    /// sluice_dtype of k and v: F16 or BF16; required.
    pub source_type: u32,
    /// source_type, E4M3FNUZ, or since ABI 1.1 E5M2FNUZ, I8, U4, Q8_0 or Q4_0; required.
    pub cache_type: u32,
    /// KV heads; required.
    pub kv_heads: i32,
    /// Elements of a row of K; required; a multiple of 8.
    pub head_dim_qk: i32,
    /// Elements of a row of V; required without SLUICE_V_IN_K; a multiple of 8.
    pub head_dim_v: i32,
    /// Rows per page; required.
    pub page_size: i32,
    /// sluice_page_table_kind; NONE with slots.
    pub page_table_kind: u32,
    /// As in sluice_problem.
    pub k_pack: i32,
    /// sluice_scale_kind; NONE unless the cache is FP8, I8 or U4.
    pub k_scale_kind: u32,
    /// As k_scale_kind.
    pub v_scale_kind: u32,
    /// Rows of k and v.
    pub tokens: i32,
    /// Sequences; 0 with slots.
    pub batch: i32,
    /// Elements of K that are rotated; even; 0: no rotation.
    pub rotary_dim: i32,
    /// sluice_rotary_style.
    pub rotary_style: u32,
    /// New rows.
    pub k: sluice_tensor,
    /// New rows.
    pub v: sluice_tensor,
    /// Where they go.
    pub k_cache: sluice_tensor,
    /// Where they go.
    pub v_cache: sluice_tensor,
    /// \[tokens\], or NULL.
    pub slots: *const i64,
    /// \[batch + 1\], or NULL; one of slots and starts is given.
    pub starts: *const i32,
    /// \[batch\], with starts.
    pub kv_lengths: *const i32,
    /// With starts.
    pub page_table: *const c_void,
    /// BLOCK: entries from one sequence's first to the next one's; else 0.
    pub page_table_stride: i64,
    /// CSR, \[batch + 1\].
    pub page_starts: *const i32,
    /// \[1\] or \[kv_heads\].
    pub k_scale: *const f32,
    /// \[1\] or \[kv_heads\].
    pub v_scale: *const f32,
    /// \[positions\]\[rotary_dim\]: cosines, then sines.
    pub rotary: *const f32,
    /// Elements from one position to the next.
    pub rotary_stride: i64,
    /// \[tokens\], nullable.
    pub positions: *const i32,
    /// Pages of each cache; not negative; 0: unknown.
    pub page_count: i64,
    /// sluice_dtype of the tables: F16, BF16 or F32; 0 is F32; else cast `rotary`.
    pub rotary_type: u32,
    /// The first element that is rotated, of the rotary_dim; a multiple of 8.
    pub rotary_first: i32,
    /// \[positions\]\[rotary_dim / 2\] sines; NULL: they follow the cosines.
    pub rotary_sin: *const c_void,
    /// Heads of Q; 0: no Q, and q, q_out and q_tail are all zero.
    pub q_heads: i32,
    /// The last elements of a row, from another tensor; a multiple of 8; 0: none.
    pub tail_dim: i32,
    /// New rows, of source_type.
    pub q: sluice_tensor,
    /// Where they go; may be q, with the same strides.
    pub q_out: sluice_tensor,
    /// Tails of K, with tail_dim.
    pub k_tail: sluice_tensor,
    /// Tails of Q; all zero: rows of q are whole.
    pub q_tail: sluice_tensor,
    /// \[head_dim_qk - tail_dim\] weights of a norm of Q; nullable.
    pub q_norm: *const c_void,
    /// The same for K.
    pub k_norm: *const c_void,
    /// Added to the mean square; finite, not negative; 0 without a norm.
    pub norm_epsilon: f32,
    /// sluice_dtype of the weights: source_type or F32; 0 is source_type.
    pub norm_type: u32,
    /// \[page\]\[row\]\[kv_heads\], F32: of PER_TOKEN and PER_PAGE; PER_GROUP:
    /// \[page\]\[row\]\[kv_heads\]\[group\], F16; else all zero.
    pub k_scales: sluice_tensor,
    /// The same for V.
    pub v_scales: sluice_tensor,
    /// With SLUICE_ZERO_POINTS, F16: what k_scales has PER_GROUP; else all zero.
    pub k_zeros: sluice_tensor,
    /// The same for V.
    pub v_zeros: sluice_tensor,
    /// Elements of a group: 32 or 64 for PER_GROUP, else 0.
    pub scale_group: i32,
    /// As in sluice_problem; 0: V by rows.
    pub v_pack: i32,
}

// sluice_merge_flag: Bits of sluice_merge::flags.
/// An LSE of +infinity in partial_lse also marks a part that does not count, as in FlashAttention's results
/// for rows without keys.
pub const SLUICE_MERGE_INFINITY_IS_EMPTY: u32 = 1 << 0;

/// Results of attention over splits of the keys (`parts`), to be merged into one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_merge {
    /// sizeof(sluice_merge).
    pub struct_size: u32,
    /// sluice_merge_flag bits.
    pub flags: u32,
    /// sluice_dtype: F32, F16 or BF16; required.
    pub partial_type: u32,
    /// F16, BF16, F32, or since ABI 1.1 E4M3FNUZ; required.
    pub o_type: u32,
    /// At least 1.
    pub parts: i32,
    /// At least 0.
    pub tokens: i32,
    /// At least 1.
    pub heads: i32,
    /// A multiple of 8.
    pub head_dim_v: i32,
    /// sluice_lse_base of partial_lse and lse.
    pub lse_base: u32,
    /// Must be 0.
    pub reserved: u32,
    /// Normalised results of the parts.
    pub partial: sluice_tensor,
    /// stride\[3\] has no effect.
    pub partial_lse: sluice_tensor,
    /// stride\[0\] has no effect.
    pub o: sluice_tensor,
    /// stride\[0\] has no effect; all zero if LSE is not wanted.
    pub lse: sluice_tensor,
    /// \[heads\], to base e, nullable: counted once.
    pub sink_logits: *const f32,
    /// Host array \[parts\] of device pointers, which the call copies; nullable. Part p is at
    /// partial_list\[p\] instead of partial.data + p * partial.stride\[0\]. From here on: since ABI 1.1.
    pub partial_list: *const *const c_void,
    /// The same for partial_lse.
    pub partial_lse_list: *const *const c_void,
    /// Elements from a sequence's first token to the next one's.
    pub partial_lse_sequence_stride: i64,
    /// The same for lse.
    pub lse_sequence_stride: i64,
    /// Tokens of each sequence; 0: all are of one.
    pub sequence_tokens: i32,
    /// NONE, PER_TENSOR or PER_HEAD.
    pub o_scale_kind: u32,
    /// \[1\] or \[heads\], of E4M3FNUZ results.
    pub o_scale: *const f32,
}

/// Pages of K and V caches, to be copied to other pages, or to other caches.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_page_copy {
    /// sizeof(sluice_page_copy).
    pub struct_size: u32,
    /// SLUICE_PAGE_INDEX_64 (of pairs), SLUICE_V_IN_K (then there is only K), SLUICE_ZERO_POINTS, or 0.
    pub flags: u32,
    /// sluice_dtype of the sources; required.
    pub source_type: u32,
    /// sluice_dtype of the targets; required.
    pub target_type: u32,
    /// KV heads; required.
    pub kv_heads: i32,
    /// Elements of a row of K; required; a multiple of 8.
    pub head_dim_qk: i32,
    /// Elements of a row of V; required without SLUICE_V_IN_K; a multiple of 8.
    pub head_dim_v: i32,
    /// Rows per page; required.
    pub page_size: i32,
    /// Elements per pack of an x-packed k_source; 0: none.
    pub source_k_pack: i32,
    /// The same for k_target.
    pub target_k_pack: i32,
    /// sluice_scale_kind.
    pub k_scale_kind: u32,
    /// As k_scale_kind.
    pub v_scale_kind: u32,
    /// Pages to read.
    pub k_source: sluice_tensor,
    /// Pages to read.
    pub v_source: sluice_tensor,
    /// Pages to write.
    pub k_target: sluice_tensor,
    /// Pages to write.
    pub v_target: sluice_tensor,
    /// \[pair_count\]\[2\]: int32_t, or int64_t with SLUICE_PAGE_INDEX_64; nullable.
    pub pairs: *const c_void,
    /// Pairs; with `pairs` and a count of 0 there is nothing to do.
    pub pair_count: i64,
    /// Pages of every cache; 0: unknown.
    pub page_count: i64,
    /// \[1\] or \[kv_heads\].
    pub k_scale: *const f32,
    /// \[1\] or \[kv_heads\].
    pub v_scale: *const f32,
    /// Of k_source: PER_TOKEN, PER_PAGE, PER_GROUP; else all zero.
    pub k_scales: sluice_tensor,
    /// The same for V.
    pub v_scales: sluice_tensor,
    /// Of k_source, with SLUICE_ZERO_POINTS; else all zero.
    pub k_zeros: sluice_tensor,
    /// The same for V.
    pub v_zeros: sluice_tensor,
    /// Where k_scales go between equal types; else all zero.
    pub k_target_scales: sluice_tensor,
    /// The same for V.
    pub v_target_scales: sluice_tensor,
    /// Where k_zeros go between equal types; else all zero.
    pub k_target_zeros: sluice_tensor,
    /// The same for V.
    pub v_target_zeros: sluice_tensor,
    /// Elements of a group: 32 or 64 for PER_GROUP, else 0.
    pub scale_group: i32,
    /// Must be 0.
    pub reserved: u32,
}

/// Keys of a paged cache, to be gathered in contiguous rows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_gather {
    /// sizeof(sluice_gather).
    pub struct_size: u32,
    /// SLUICE_PAGE_INDEX_64, SLUICE_V_IN_K (then there is only K), SLUICE_ZERO_POINTS, or 0.
    pub flags: u32,
    /// sluice_dtype of the caches; required.
    pub cache_type: u32,
    /// sluice_dtype of the outputs; required.
    pub out_type: u32,
    /// KV heads; required.
    pub kv_heads: i32,
    /// Elements of a row of K; required; a multiple of 8.
    pub head_dim_qk: i32,
    /// Elements of a row of V; required without SLUICE_V_IN_K; a multiple of 8.
    pub head_dim_v: i32,
    /// Rows per page; required.
    pub page_size: i32,
    /// sluice_page_table_kind; required.
    pub page_table_kind: u32,
    /// Elements per pack of an x-packed k_cache; 0: none.
    pub k_pack: i32,
    /// sluice_scale_kind.
    pub k_scale_kind: u32,
    /// As k_scale_kind.
    pub v_scale_kind: u32,
    /// Sequences.
    pub batch: i32,
    /// Rows of k_out and v_out.
    pub tokens: i32,
    /// Where the keys are.
    pub k_cache: sluice_tensor,
    /// Where the values are.
    pub v_cache: sluice_tensor,
    /// Where the keys go.
    pub k_out: sluice_tensor,
    /// Where the values go.
    pub v_out: sluice_tensor,
    /// \[batch + 1\]: rows of the outputs before each sequence's first.
    pub out_starts: *const i32,
    /// \[batch\]: keys of each sequence in the cache.
    pub kv_lengths: *const i32,
    /// \[batch\]: the first key to gather; nullable: 0.
    pub first_keys: *const i32,
    /// Page numbers: int32_t, or int64_t with SLUICE_PAGE_INDEX_64.
    pub page_table: *const c_void,
    /// BLOCK: entries from one sequence's first to the next one's; else 0.
    pub page_table_stride: i64,
    /// CSR, \[batch + 1\].
    pub page_starts: *const i32,
    /// Pages of each cache; 0: unknown.
    pub page_count: i64,
    /// \[1\] or \[kv_heads\].
    pub k_scale: *const f32,
    /// \[1\] or \[kv_heads\].
    pub v_scale: *const f32,
    /// Of k_cache: PER_TOKEN, PER_PAGE, PER_GROUP; else all zero.
    pub k_scales: sluice_tensor,
    /// The same for V.
    pub v_scales: sluice_tensor,
    /// Of k_cache, with SLUICE_ZERO_POINTS; else all zero.
    pub k_zeros: sluice_tensor,
    /// The same for V.
    pub v_zeros: sluice_tensor,
    /// Where k_scales go between equal types; else all zero.
    pub k_out_scales: sluice_tensor,
    /// The same for V.
    pub v_out_scales: sluice_tensor,
    /// Where k_zeros go between equal types; else all zero.
    pub k_out_zeros: sluice_tensor,
    /// The same for V.
    pub v_out_zeros: sluice_tensor,
    /// Elements of a group: 32 or 64 for PER_GROUP, else 0.
    pub scale_group: i32,
    /// Must be 0.
    pub reserved: u32,
}

/// Counts of the calls of sluice_run with a plan since the plan was made.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_counters {
    /// sizeof(sluice_counters).
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Calls that returned SLUICE_OK. A captured run counts once, when captured.
    pub runs: u64,
    /// Calls that returned anything else, a failure of HIP included.
    pub refused: u64,
    /// Attention kernels that were enqueued: the sum of the next two.
    pub launches: u64,
    /// ... of the kernel that sluice_plan_info names.
    pub main_launches: u64,
    /// ... of other kernels of the plan: for short sequences, or for prefixes.
    pub other_launches: u64,
    /// Merges of split keys, or of prefixes and own keys, that were enqueued.
    pub merge_launches: u64,
}

// sluice_trace_event: Events that make a trace record.
/// A plan was made.
pub const SLUICE_TRACE_PLAN: u32 = 1;
/// A run is about to be launched.
pub const SLUICE_TRACE_RUN: u32 = 2;

/// One plan or run.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_trace_record {
    /// Size of the record that the library wrote.
    pub struct_size: u32,
    /// sluice_trace_event.
    pub event: u32,
    /// Workgroups of this run, or at the plan's bounds (0 if a bound is missing).
    pub grid: [u32; 3],
    /// Lanes per workgroup.
    pub block: [u32; 3],
    /// LDS per workgroup.
    pub lds_bytes: u32,
    /// Waves per workgroup.
    pub waves: u32,
    /// Device memory that a run needs.
    pub workspace_bytes: u64,
    /// Name of the kernel.
    pub kernel: *const c_char,
    /// Why it was chosen.
    pub reason: *const c_char,
}

/// Receives a record on the thread that makes the plan or the run.
pub type sluice_trace_fn =
    Option<unsafe extern "C" fn(record: *const sluice_trace_record, user: *mut c_void)>;

extern "C" {
    /// Zeroes the struct and sets struct_size.
    pub fn sluice_error_init(error: *mut sluice_error, size: usize) -> sluice_status;

    /// "SLUICE_OK" and so on; "unknown status" for any other value.
    pub fn sluice_status_name(status: sluice_status) -> *const c_char;

    /// SLUICE_ABI_MAJOR \<\< 16 | SLUICE_ABI_MINOR of the library at run time.
    pub fn sluice_abi_version() -> u32;

    /// The release, e.g. "1.0.0".
    pub fn sluice_version() -> *const c_char;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_build_init(build: *mut sluice_build, size: usize) -> sluice_status;

    /// Fills `build`.
    pub fn sluice_build_info(build: *mut sluice_build, error: *mut sluice_error) -> sluice_status;

    /// Sets the process's log function and the most verbose level it gets; NULL, the initial state, switches the log
    /// off.
    pub fn sluice_set_log(log: sluice_log_fn, user: *mut c_void, max_level: u32);

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_context_desc_init(desc: *mut sluice_context_desc, size: usize) -> sluice_status;

    /// Makes a context.
    pub fn sluice_context_create(
        desc: *const sluice_context_desc,
        out: *mut *mut sluice_context,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Releases a context; NULL is allowed.
    pub fn sluice_context_destroy(context: *mut sluice_context);

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_device_info_init(info: *mut sluice_device_info, size: usize) -> sluice_status;

    /// Fills `info`.
    pub fn sluice_context_device(
        context: *const sluice_context,
        info: *mut sluice_device_info,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Returns the HIP entry point of that name in the context's runtime, real or emulated.
    pub fn sluice_context_hip_symbol(context: *const sluice_context, name: *const c_char) -> *mut c_void;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_problem_init(problem: *mut sluice_problem, size: usize) -> sluice_status;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_support_init(support: *mut sluice_support, size: usize) -> sluice_status;

    /// Says whether a plan for this problem can be made, and what it needs.
    pub fn sluice_query_support(
        context: *const sluice_context,
        problem: *const sluice_problem,
        support: *mut sluice_support,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Returns only the workspace_bytes of sluice_query_support.
    pub fn sluice_workspace_size(
        context: *const sluice_context,
        problem: *const sluice_problem,
        bytes: *mut u64,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_kernel_info_init(info: *mut sluice_kernel_info, size: usize) -> sluice_status;

    /// Returns one of the kernels for a context's chip, by index in the order of their names.
    pub fn sluice_list_kernels(
        context: *const sluice_context,
        index: u32,
        info: *mut sluice_kernel_info,
        count: *mut u32,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Chooses the kernel for a problem and loads it onto the context's device, so that sluice_run only has
    /// to launch it.
    pub fn sluice_plan_create(
        context: *mut sluice_context,
        problem: *const sluice_problem,
        out: *mut *mut sluice_plan,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Releases a plan; NULL is allowed.
    pub fn sluice_plan_destroy(plan: *mut sluice_plan);

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_plan_info_init(info: *mut sluice_plan_info, size: usize) -> sluice_status;

    /// Fills `info`.
    pub fn sluice_plan_describe(
        plan: *const sluice_plan,
        info: *mut sluice_plan_info,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Loads the kernel for a problem (every kernel of the context if problem is NULL) and keeps it loaded
    /// while the context or one of its plans lives.
    pub fn sluice_preload(
        context: *mut sluice_context,
        problem: *const sluice_problem,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_args_init(args: *mut sluice_args, size: usize) -> sluice_status;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_launch_init(launch: *mut sluice_launch, size: usize) -> sluice_status;

    /// Enqueues one call of a plan on launch->stream and returns without waiting.
    pub fn sluice_run(
        plan: *const sluice_plan,
        args: *const sluice_args,
        launch: *const sluice_launch,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_append_init(append: *mut sluice_append, size: usize) -> sluice_status;

    /// Enqueues an append on launch->stream (the default stream if launch is NULL) and returns without
    /// waiting.
    pub fn sluice_kv_append(
        context: *mut sluice_context,
        append: *const sluice_append,
        launch: *const sluice_launch,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_page_copy_init(copy: *mut sluice_page_copy, size: usize) -> sluice_status;

    /// Enqueues a copy of pages.
    pub fn sluice_kv_copy(
        context: *mut sluice_context,
        copy: *const sluice_page_copy,
        launch: *const sluice_launch,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_gather_init(gather: *mut sluice_gather, size: usize) -> sluice_status;

    /// Enqueues a gather.
    pub fn sluice_kv_gather(
        context: *mut sluice_context,
        gather: *const sluice_gather,
        launch: *const sluice_launch,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_merge_init(merge: *mut sluice_merge, size: usize) -> sluice_status;

    /// Enqueues a merge.
    pub fn sluice_merge_states(
        context: *mut sluice_context,
        merge: *const sluice_merge,
        launch: *const sluice_launch,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Computes a call on the host with plain loops in double precision: the reference for results, never
    /// chosen silently.
    pub fn sluice_reference(
        problem: *const sluice_problem,
        args: *const sluice_args,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Performs an append on the host with plain loops: the reference for what a device stores.
    pub fn sluice_reference_append(append: *const sluice_append, error: *mut sluice_error) -> sluice_status;

    /// Copies pages on the host with plain loops: the reference for sluice_kv_copy, with the same rules, but all
    /// pointers are host pointers.
    pub fn sluice_reference_copy(copy: *const sluice_page_copy, error: *mut sluice_error) -> sluice_status;

    /// Gathers keys on the host with plain loops: the reference for sluice_kv_gather, with the same rules, but
    /// all pointers are host pointers.
    pub fn sluice_reference_gather(gather: *const sluice_gather, error: *mut sluice_error) -> sluice_status;

    /// Sets the function that sees every plan and run of a context; NULL, the initial state, switches tracing
    /// off.
    pub fn sluice_set_trace(
        context: *mut sluice_context,
        trace: sluice_trace_fn,
        user: *mut c_void,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Encloses every sluice_run and every cache operation of a context in a range of roctx, which profilers
    /// show (enabled = 1), or no longer (0, the initial state).
    pub fn sluice_set_ranges(
        context: *mut sluice_context,
        enabled: u32,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_counters_init(counters: *mut sluice_counters, size: usize) -> sluice_status;

    /// Fills `counters`.
    pub fn sluice_plan_counters(
        plan: *const sluice_plan,
        counters: *mut sluice_counters,
        error: *mut sluice_error,
    ) -> sluice_status;
}
