// bindings/generate/rust.py writes this file; ./dev bindings runs it.

use core::marker::{PhantomData, PhantomPinned};
use core::mem::{align_of, size_of, zeroed};
use std::os::raw::{c_char, c_void};

/// ABI generation: SONAME `libsluice.so.2`, symbol version node `SLUICE_2`. Within a generation
/// nothing is removed and nothing changes its meaning; see docs/concepts/abi.md.
pub const SLUICE_ABI_MAJOR: u32 = 2;
/// Counts additions to the ABI within its generation.
pub const SLUICE_ABI_MINOR: u32 = 0;

/// Result of a call: one of the SLUICE_\* codes below. Values are frozen.
pub type sluice_status = i32;

/// A device, or a named target without one, and the kernels for it.
#[repr(C)]
pub struct sluice_context {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// A problem with its kernels chosen and loaded.
#[repr(C)]
pub struct sluice_plan {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

// sluice_status_code
/// Done, or enqueued.
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
/// Give at least what the plan says.
pub const SLUICE_WORKSPACE_TOO_SMALL: sluice_status = 8;
/// Host memory ran out.
pub const SLUICE_OUT_OF_MEMORY: sluice_status = 9;
/// A defect of the library: report it with the message.
pub const SLUICE_INTERNAL: sluice_status = 10;

// sluice_dtype
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
/// Signed 8-bit integer; K and V only, like the next three.
pub const SLUICE_I8: u32 = 8;
/// Unsigned 4-bit integer, two per byte, the even element in the lower half; needs scales per group.
pub const SLUICE_U4: u32 = 9;
/// ggml's block of 32 elements in 34 bytes: an F16 scale, then 32 signed bytes.
pub const SLUICE_Q8_0: u32 = 10;
/// ggml's block of 32 elements in 18 bytes: an F16 scale, then 16 bytes; byte i has element i in its
/// lower half and i + 16 in its upper half. An element is scale \* (number - 8).
pub const SLUICE_Q4_0: u32 = 11;

// sluice_log_level
/// Something failed in a way that a status cannot say (a destroy, for example).
pub const SLUICE_LOG_ERROR: u32 = 1;
/// Worth knowing.
pub const SLUICE_LOG_WARNING: u32 = 2;
/// Devices found and kernels chosen when contexts and plans are made.
pub const SLUICE_LOG_INFO: u32 = 3;
/// Every step of finding and choosing.
pub const SLUICE_LOG_DEBUG: u32 = 4;

// sluice_device_kind
/// A GPU, through the HIP runtime of the process.
pub const SLUICE_DEVICE_HIP: u32 = 1;
/// The bundled gfx942 emulator: same machine code, same calls.
pub const SLUICE_DEVICE_EMULATED: u32 = 2;
/// A chip by name: answers questions and makes plans, but cannot run.
pub const SLUICE_DEVICE_TARGET: u32 = 3;

// sluice_dependency_kind
/// Wait for `event`, which the caller has recorded.
pub const SLUICE_DEPENDS_ON_EVENT: u32 = 1;
/// Record `event` on `stream` now and wait for it, so for all work there.
pub const SLUICE_DEPENDS_ON_STREAM: u32 = 2;

// sluice_scale_kind
/// Values are used as stored.
pub const SLUICE_SCALE_NONE: u32 = 0;
/// One scale.
pub const SLUICE_SCALE_PER_TENSOR: u32 = 1;
/// One per head of the tensor.
pub const SLUICE_SCALE_PER_HEAD: u32 = 2;
/// One per token and head; K and V only.
pub const SLUICE_SCALE_PER_TOKEN: u32 = 3;
/// One per page and head; K and V in pages only.
pub const SLUICE_SCALE_PER_PAGE: u32 = 4;
/// One F16 per scale_group elements of a row; U4 only, which has no other.
pub const SLUICE_SCALE_PER_GROUP: u32 = 5;

// sluice_pack
/// All tokens of a page, or of a sequence of dense tensors.
pub const SLUICE_PACK_ALL: i32 = 1073741824;

// sluice_page_table_kind
/// No pages.
pub const SLUICE_PAGE_TABLE_NONE: u32 = 0;
/// \[batch, pages\] page numbers.
pub const SLUICE_PAGE_TABLE_BLOCK: u32 = 1;
/// One list of page numbers, and where each sequence's begin.
pub const SLUICE_PAGE_TABLE_CSR: u32 = 2;

// sluice_kv_flag
/// V is the first head_dim_v elements of each row of K.
pub const SLUICE_KV_V_IN_K: u32 = 1 << 0;
/// Page tables hold int64_t instead of int32_t.
pub const SLUICE_KV_PAGE_INDEX_64: u32 = 1 << 1;

// sluice_special
/// The bound of the plan.
pub const SLUICE_PLAN_BOUND: i32 = -1;
/// A stride: all share one.
pub const SLUICE_SHARED: i32 = -1;

// sluice_mask_alignment
/// The last row sees the last key: rows are the newest tokens.
pub const SLUICE_BOTTOM_RIGHT: u32 = 0;
/// Row 0 sees key 0.
pub const SLUICE_TOP_LEFT: u32 = 1;
/// Each sequence says at which key; sluice_mask_args::diagonals.
pub const SLUICE_GIVEN_DIAGONAL: u32 = 2;

// sluice_mask_flag
/// Keys after the row's own position are invisible.
pub const SLUICE_MASK_CAUSAL: u32 = 1 << 0;
/// Each sequence says whether it is causal.
pub const SLUICE_MASK_CAUSAL_BY_SEQUENCE: u32 = 1 << 1;
/// window_left applies.
pub const SLUICE_MASK_WINDOW_LEFT: u32 = 1 << 2;
/// window_right applies.
pub const SLUICE_MASK_WINDOW_RIGHT: u32 = 1 << 3;
/// A bit per row and key says whether it is visible.
pub const SLUICE_MASK_BITS: u32 = 1 << 4;
/// With BITS: they cover only the newest keys (drafts as a tree).
pub const SLUICE_MASK_BITS_OF_NEW: u32 = 1 << 5;
/// Spans of keys that see each other (images in text).
pub const SLUICE_MASK_SPANS: u32 = 1 << 6;
/// Keys of pages with a negative number are invisible.
pub const SLUICE_MASK_MISSING_PAGES: u32 = 1 << 7;

// sluice_scores_flag
/// Subtract slope \* distance from the scores.
pub const SLUICE_SCORES_ALIBI: u32 = 1 << 0;
/// A learned logit per query head joins the denominator.
pub const SLUICE_SCORES_SINK: u32 = 1 << 1;
/// With a bias: it is multiplied by a scale per query head.
pub const SLUICE_SCORES_BIAS_SCALE: u32 = 1 << 2;

// sluice_lse
/// It is not written.
pub const SLUICE_LSE_NONE: u32 = 0;
/// Natural logarithm.
pub const SLUICE_LSE_LN: u32 = 1;
/// Logarithm to base 2.
pub const SLUICE_LSE_LOG2: u32 = 2;

// sluice_attention_flag
/// Sequences are packed one after the other: q, o, and K and V unless in pages, have starts.
pub const SLUICE_ATTENTION_RAGGED: u32 = 1 << 0;
/// Rows of q, k, v and o continue in memory to the next multiple of 8 elements: head dims may be any
/// number. What is there may be any number in q and v, must be finite in k, and is undefined in o.
pub const SLUICE_ATTENTION_PADDED_ROWS: u32 = 1 << 1;
/// Calls have a second set of keys: see sluice_keys.
pub const SLUICE_ATTENTION_PREFIXES: u32 = 1 << 2;
/// Bits of a sequence depend on nothing outside of it: see below.
pub const SLUICE_ATTENTION_BATCH_INVARIANT: u32 = 1 << 3;

// sluice_rotary_style
/// e and e + dim / 2, as GPT-NeoX and Llama do.
pub const SLUICE_ROTARY_HALVES: u32 = 0;
/// 2e and 2e + 1, as GPT-J does.
pub const SLUICE_ROTARY_PAIRS: u32 = 1;

// sluice_merge_flag
/// An LSE of +infinity in parts also marks a part that does not count, as in FlashAttention's results
/// for rows without keys.
pub const SLUICE_MERGE_INFINITY_IS_EMPTY: u32 = 1 << 0;

// sluice_trace_event
/// A plan was made.
pub const SLUICE_TRACE_PLAN: u32 = 1;
/// A run is about to be launched.
pub const SLUICE_TRACE_RUN: u32 = 2;

/// Receives a log line, without a line end. It may be called on any thread that calls the library,
/// and must not call the library itself.
pub type sluice_log_fn = Option<unsafe extern "C" fn(level: u32, message: *const c_char, user: *mut c_void)>;

/// Returns the HIP entry point of that name, or NULL. Must answer for as long as the context lives.
pub type sluice_hip_resolver =
    Option<unsafe extern "C" fn(name: *const c_char, user: *mut c_void) -> *mut c_void>;

/// Receives a record on the thread that makes the plan or the run.
pub type sluice_trace_fn =
    Option<unsafe extern "C" fn(record: *const sluice_trace_record, user: *mut c_void)>;

/// Details of a failed call. Owned by the caller, nullable everywhere, written only when the call
/// fails.
///
/// Set struct_size once; the struct then serves any number of calls. If it is smaller than this
/// version's, or larger than 65536, the call itself fails with SLUICE_INVALID_ARGUMENT and leaves the
/// struct untouched.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_error {
    /// sizeof(sluice_error).
    pub struct_size: u32,
    /// What the call returned.
    pub code: sluice_status,
    /// The hipError_t if a HIP call failed, for any code; otherwise 0.
    pub hip_code: i32,
    /// The argument or field at fault, "keys\[0\].kv.k.stride\[1\]", or empty.
    pub field: [c_char; 52],
    /// One sentence: the field, its value, the rule or the nearest supported value.
    pub message: [c_char; 448],
}
const _: () = assert!(size_of::<sluice_error>() == 512);
const _: () = assert!(align_of::<sluice_error>() == 4);

/// A tensor in memory: element \[a\]\[b\]\[c\]\[d\] is at data + a \* stride\[0\] + b \* stride\[1\] + c \*
/// stride\[2\] + d \* stride\[3\] elements. What the indices are is said where a tensor is asked for;
/// their order in memory is that of the strides. Part of other structs: it never grows.
///
/// - Strides are not negative, except where parts are merged.
/// - A stride of 0 repeats an input. Elements of an output do not overlap.
/// - The stride of an index with only one value means nothing: it may be any number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_tensor {
    /// Element \[0\]\[0\]\[0\]\[0\].
    pub data: *mut c_void,
    /// In elements.
    pub stride: [i64; 4],
}
const _: () = assert!(size_of::<sluice_tensor>() == 40);
const _: () = assert!(align_of::<sluice_tensor>() == 8);

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
const _: () = assert!(size_of::<sluice_build>() == 280);
const _: () = assert!(align_of::<sluice_build>() == 4);

/// Input of sluice_context_create.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_context_desc {
    /// sizeof(sluice_context_desc).
    pub struct_size: u32,
    /// sluice_device_kind; required.
    pub kind: u32,
    /// HIP and EMULATED: as for hipSetDevice. TARGET: must be 0.
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
const _: () = assert!(size_of::<sluice_context_desc>() == 56);
const _: () = assert!(align_of::<sluice_context_desc>() == 8);

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
const _: () = assert!(size_of::<sluice_device_info>() == 416);
const _: () = assert!(align_of::<sluice_device_info>() == 4);

/// Something that must complete before a run starts. An array element, so it never grows.
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
const _: () = assert!(size_of::<sluice_dependency>() == 24);
const _: () = assert!(align_of::<sluice_dependency>() == 8);

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
const _: () = assert!(size_of::<sluice_launch>() == 48);
const _: () = assert!(align_of::<sluice_launch>() == 8);

/// How the numbers of a tensor are stored. Part of other structs: it never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_format {
    /// sluice_dtype; required.
    pub r#type: u32,
    /// sluice_scale_kind: what shares a scale.
    pub scale_kind: u32,
    /// PER_GROUP: elements that share a scale, 32 or 64; else 0.
    pub scale_group: i32,
    /// PER_GROUP: 1 if each group also has a number to subtract; else 0.
    pub zero_points: u32,
    /// Of K in pages: elements of a row per pack (x-packed K), a power of two from 8 up. Of V: tokens
    /// per pack of V by columns, a power of two from 8 up, or SLUICE_PACK_ALL. 0: rows are
    /// contiguous.
    pub pack: i32,
    /// Must be 0.
    pub reserved: u32,
}
const _: () = assert!(size_of::<sluice_format>() == 24);
const _: () = assert!(align_of::<sluice_format>() == 4);

/// How keys and values are stored: all that a plan must know of them.
///
/// - kv_heads, head_dim_qk, head_dim_v, k.type and v.type are required.
/// - With SLUICE_KV_V_IN_K, v is all zero, and head_dim_v at most head_dim_qk.
/// - page_size and page_table are both given, for a cache in pages, or both 0, for tensors.
/// - scale_kind PER_PAGE, a pack of k, and SLUICE_KV_PAGE_INDEX_64 need pages.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_kv_format {
    /// sizeof(sluice_kv_format).
    pub struct_size: u32,
    /// sluice_kv_flag bits.
    pub flags: u32,
    /// KV heads.
    pub kv_heads: i32,
    /// Elements of a row of K.
    pub head_dim_qk: i32,
    /// Elements of a row of V.
    pub head_dim_v: i32,
    /// Tokens per page; 0: not in pages.
    pub page_size: i32,
    /// sluice_page_table_kind.
    pub page_table: u32,
    /// Must be 0.
    pub reserved: u32,
    /// Rows of K.
    pub k: sluice_format,
    /// Rows of V.
    pub v: sluice_format,
}
const _: () = assert!(size_of::<sluice_kv_format>() == 80);
const _: () = assert!(align_of::<sluice_kv_format>() == 4);

/// The scales of K and V, if their formats have any.
///
/// ```text
/// PER_TENSOR   [1], strides without meaning            F32
/// PER_HEAD     [head], strides without meaning         F32
/// PER_TOKEN    found like the rows of K and V          F32; stride[3] has no meaning
/// PER_PAGE     found like them                         F32; nor has stride[1]
/// PER_GROUP    found like them, [..][group]            F16; stride[3] is 1
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_kv_scales {
    /// sizeof(sluice_kv_scales).
    pub struct_size: u32,
    /// Must be 0.
    pub reserved: u32,
    /// Scales of K; all zero if its format has none.
    pub k: sluice_tensor,
    /// Scales of V; all zero if its format has none.
    pub v: sluice_tensor,
    /// With zero points: what is subtracted, F16, with the strides of k; else zero.
    pub k_zeros: sluice_tensor,
    /// The same for v.
    pub v_zeros: sluice_tensor,
}
const _: () = assert!(size_of::<sluice_kv_scales>() == 168);
const _: () = assert!(align_of::<sluice_kv_scales>() == 8);

/// K and V in memory: a paged cache, or tensors. Fill it once for each layer; attention, appends,
/// copies and gathers all take it.
///
/// ```text
/// tensors   [batch][token][kv_heads][head_dim], or with starts [0][row][kv_heads][head_dim]
/// pages     [page][token of the page][kv_heads][head_dim]
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_kv {
    /// sizeof(sluice_kv).
    pub struct_size: u32,
    /// Must be 0.
    pub reserved: u32,
    /// Required; that of the plan, where there is one.
    pub format: *const sluice_kv_format,
    /// Keys.
    pub k: sluice_tensor,
    /// Values; all zero with SLUICE_KV_V_IN_K.
    pub v: sluice_tensor,
    /// NULL if neither format has scales.
    pub scales: *const sluice_kv_scales,
    /// Pages of the cache; keys in others read as zeros. 0: unknown.
    pub page_count: i64,
}
const _: () = assert!(size_of::<sluice_kv>() == 112);
const _: () = assert!(align_of::<sluice_kv>() == 8);

/// Where the rows of sequences, or their keys, are in a tensor. Part of other structs: it never
/// grows.
///
/// Sequence b has lengths\[b\] rows if given, else starts\[b + 1\] - starts\[b\] if given, else max_len.
/// With starts its first row is row starts\[b\] of the tensor, whose first dimension then has no
/// meaning; else it is row 0 of \[b\].
///
/// - max_len is at least the length of every sequence: what is beyond it is not seen. 0 means no
///   rows; it is refused if lengths or starts are given together with memory of rows: then it was
///   forgotten.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_rows {
    /// Rows of each sequence, or the most of any; or SLUICE_PLAN_BOUND.
    pub max_len: i32,
    /// Must be 0.
    pub reserved: u32,
    /// \[batch + 1\], nullable: rows before each sequence's first.
    pub starts: *const i32,
    /// \[batch\], nullable: rows of each sequence.
    pub lengths: *const i32,
    /// With starts: rows of the tensor; 0: unknown.
    pub total: i64,
}
const _: () = assert!(size_of::<sluice_rows>() == 32);
const _: () = assert!(align_of::<sluice_rows>() == 8);

/// Page tables. Part of other structs: it never grows. All zero if the format has no pages.
///
/// The number of page n of sequence b is table\[b \* stride + n\] for SLUICE_PAGE_TABLE_BLOCK, and
/// table\[starts\[b\] + n\] for CSR. Entries of KV head h are h \* head_stride further.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_pages {
    /// int32_t, or int64_t with SLUICE_KV_PAGE_INDEX_64.
    pub table: *const c_void,
    /// CSR, \[batch + 1\]; else NULL.
    pub starts: *const i32,
    /// BLOCK: entries from one sequence's first to the next one's, or SLUICE_SHARED.
    pub stride: i64,
    /// Entries from those of a KV head to the next one's; 0: heads share them.
    pub head_stride: i64,
}
const _: () = assert!(size_of::<sluice_pages>() == 32);
const _: () = assert!(align_of::<sluice_pages>() == 8);

/// One set of keys that rows attend to.
///
/// The first set of a call has the keys of each sequence. With SLUICE_ATTENTION_PREFIXES a second one
/// has keys that groups of rows see before those: rows group_starts\[p\] to group_starts\[p + 1\] - 1 of
/// q see all keys of group p, which are found as those of a sequence p would be. Rows outside of the
/// groups see none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_keys {
    /// sizeof(sluice_keys).
    pub struct_size: u32,
    /// Second set: groups of rows; first set: 0.
    pub groups: i32,
    /// Second set: \[groups + 1\], rows of q before each group's first; else NULL.
    pub group_starts: *const i32,
    /// Where the keys are; required.
    pub kv: *const sluice_kv,
    /// How many keys there are, of each sequence or group.
    pub rows: sluice_rows,
    /// In which pages.
    pub pages: sluice_pages,
}
const _: () = assert!(size_of::<sluice_keys>() == 88);
const _: () = assert!(align_of::<sluice_keys>() == 8);

/// Which keys a row sees: what a plan must know. sluice_mask_args has the memory that a call gives
/// for it.
///
/// Key j of a sequence is visible to its row i if each condition that applies holds, with d = j - i -
/// shift and a shift of kv_len - q_len of the sequence for SLUICE_BOTTOM_RIGHT, 0 for SLUICE_TOP_LEFT
/// and diagonals\[b\] for SLUICE_GIVEN_DIAGONAL:
///
/// ```text
/// d <= 0                              CAUSAL, or CAUSAL_BY_SEQUENCE and causal[b] is not 0
/// d <= window_right                   WINDOW_RIGHT
/// d >= -window_left, or j < sink_tokens    WINDOW_LEFT
/// bit (i, j) is 1                     BITS
/// its page's number is not negative   MISSING_PAGES
///
/// ```
/// With SPANS the first three do not apply if i + shift and j are in the same span.
///
/// - At most one of CAUSAL, CAUSAL_BY_SEQUENCE, and CAUSAL with WINDOW_RIGHT.
/// - The windows are at least 0, and 0 without their flag, as sink_tokens is without WINDOW_LEFT.
/// - MISSING_PAGES needs pages.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_mask {
    /// sizeof(sluice_mask).
    pub struct_size: u32,
    /// sluice_mask_flag bits.
    pub flags: u32,
    /// sluice_mask_alignment.
    pub alignment: u32,
    /// Keys visible before the diagonal.
    pub window_left: i32,
    /// Keys visible after the diagonal.
    pub window_right: i32,
    /// First keys that window_left does not hide.
    pub sink_tokens: i32,
}
const _: () = assert!(size_of::<sluice_mask>() == 24);
const _: () = assert!(align_of::<sluice_mask>() == 4);

/// What a call has for the plan's sluice_mask. Each member is given exactly if the plan asks for it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_mask_args {
    /// sizeof(sluice_mask_args).
    pub struct_size: u32,
    /// Must be 0.
    pub reserved: u32,
    /// BITS: \[b\]\[q head\]\[i\]\[j / 8\], key j is bit j % 8; strides count bytes, stride\[3\] is 1. With
    /// BITS_OF_NEW, j counts from the first of the newest q_len keys.
    pub bits: sluice_tensor,
    /// SPANS: \[batch\]\[span_count\]\[2\], the first key of a span and the one after its last; ascending.
    pub spans: *const i32,
    /// SPANS: spans of each sequence, from 0 to 2^20.
    pub span_count: i64,
    /// GIVEN_DIAGONAL: \[batch\], the key on row 0's diagonal.
    pub diagonals: *const i32,
    /// CAUSAL_BY_SEQUENCE: \[batch\], not 0 for causal sequences.
    pub causal: *const i32,
}
const _: () = assert!(size_of::<sluice_mask_args>() == 80);
const _: () = assert!(align_of::<sluice_mask_args>() == 8);

/// What becomes of scores before the softmax: what a plan must know. The changes, in this order:
///
/// ```text
/// S = soft_cap * tanh(S / soft_cap)             if soft_cap is not 0
/// S = S + bias_scale[h] * bias[i][j]            if bias_type is not 0
/// S = S - alibi_slopes[h] * |i + shift - j|     ALIBI
/// D[i] = sum over keys of exp(S) + exp(sinks[h])    SINK
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_scores {
    /// sizeof(sluice_scores).
    pub struct_size: u32,
    /// sluice_scores_flag bits.
    pub flags: u32,
    /// Above 0; 0: no cap.
    pub soft_cap: f32,
    /// F32, F16 or BF16; 0: no bias.
    pub bias_type: u32,
}
const _: () = assert!(size_of::<sluice_scores>() == 16);
const _: () = assert!(align_of::<sluice_scores>() == 4);

/// What a call has for the plan's sluice_scores. Each member is given exactly if the plan asks for
/// it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_scores_args {
    /// sizeof(sluice_scores_args).
    pub struct_size: u32,
    /// Must be 0.
    pub reserved: u32,
    /// \[b\]\[q head\]\[i\]\[j\]; stride\[3\] is 0 or 1; a stride of 0 repeats.
    pub bias: sluice_tensor,
    /// BIAS_SCALE: \[q_heads\].
    pub bias_scale: *const f32,
    /// From one sequence's bias_scale to the next one's; 0: shared.
    pub bias_scale_stride: i64,
    /// ALIBI: \[q_heads\].
    pub alibi_slopes: *const f32,
    /// From one sequence's alibi_slopes to the next one's; 0: shared.
    pub alibi_stride: i64,
    /// SINK: \[q_heads\], to base e.
    pub sinks: *const f32,
}
const _: () = assert!(size_of::<sluice_scores_args>() == 88);
const _: () = assert!(align_of::<sluice_scores_args>() == 8);

/// Upper bounds of the calls that a plan will serve; 0: unbounded. A call that exceeds one is
/// refused. They influence the choice of kernels and fix the size of the workspace. Part of
/// sluice_attention: it never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_bounds {
    /// Sequences.
    pub batch: i32,
    /// Query rows per sequence.
    pub q_len: i32,
    /// Keys per sequence.
    pub kv_len: i32,
    /// PREFIXES, which needs it: groups.
    pub groups: i32,
    /// PREFIXES, which needs it: keys per group.
    pub group_keys: i32,
    /// Must be 0.
    pub reserved: u32,
    /// Rows of q of all sequences; PREFIXES needs it.
    pub q_rows: i64,
}
const _: () = assert!(size_of::<sluice_bounds>() == 32);
const _: () = assert!(align_of::<sluice_bounds>() == 8);

/// A class of attention calls: everything that selects kernels, nothing that changes from call to
/// call.
///
/// For row i and key j of one sequence, where query head h reads KV head h / (q_heads / kv_heads):
///
/// ```text
/// S      = scale * q_scale * k_scale * dot(q_i, k_j), then as sluice_scores says
/// D[i]   = sum over visible keys of exp(S[i][j])
/// LSE[i] = ln D[i], or log2 D[i]
/// O[i]   = sum over visible keys of exp(S[i][j]) / D[i] * v_scale * v_j / o_scale
///
/// ```
/// A row without a visible key has O = 0 and LSE = -infinity, or the sink. docs/concepts/numerics.md
/// has the numerical contract: what is rounded and how, and what becomes of NaN and infinity.
///
/// - q.type, o.type, q_heads and kv are required; q_heads is a multiple of kv_heads.
/// - Q and O have scales per tensor or per head only, and O only if it is FP8; they have no packs.
/// - With SLUICE_ATTENTION_BATCH_INVARIANT, a sequence's bits depend neither on the batch, nor on its
///   other sequences, nor on the bounds: keys are split at fixed places. bounds.batch and
///   bounds.kv_len are required.
/// - With SLUICE_ATTENTION_PREFIXES all keys of a group are visible, and masks concern a sequence's
///   own keys.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_attention {
    /// sizeof(sluice_attention).
    pub struct_size: u32,
    /// sluice_attention_flag bits.
    pub flags: u32,
    /// Query heads.
    pub q_heads: i32,
    /// sluice_lse.
    pub lse: u32,
    /// Rows of Q.
    pub q: sluice_format,
    /// Rows of O.
    pub o: sluice_format,
    /// Rows of K and V, in every set of keys.
    pub kv: *const sluice_kv_format,
    /// NULL: every key is visible.
    pub mask: *const sluice_mask,
    /// NULL: scores stay as they are.
    pub scores: *const sluice_scores,
    /// Of calls.
    pub bounds: sluice_bounds,
    /// Use only kernels that need at most this; 0: any.
    pub workspace_ceiling_bytes: u64,
}
const _: () = assert!(size_of::<sluice_attention>() == 128);
const _: () = assert!(align_of::<sluice_attention>() == 8);

/// Result of sluice_attention_support.
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
const _: () = assert!(size_of::<sluice_support>() == 120);
const _: () = assert!(align_of::<sluice_support>() == 8);

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
const _: () = assert!(size_of::<sluice_plan_info>() == 360);
const _: () = assert!(align_of::<sluice_plan_info>() == 8);

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
    /// How P is rounded to the type of Q: "centred_cut" (to F16 and BF16, by at most 0.70 of its last
    /// place, docs/concepts/numerics.md) or "nearest_even"; else "".
    pub p_rounding: [c_char; 16],
    /// Chips that it has machine code for, separated by commas.
    pub chips: [c_char; 64],
    /// Features that `features` has no room for: the rest.
    pub more_features: [c_char; 256],
}
const _: () = assert!(size_of::<sluice_kernel_info>() == 632);
const _: () = assert!(align_of::<sluice_kernel_info>() == 4);

/// One call of a plan.
///
/// ```text
/// q, o   [batch][row][q_heads][head_dim], or with starts [0][row][q_heads][head_dim]
/// lse    [batch][row][q_heads], F32, the same
///
/// ```
/// - keys has one element, or two with SLUICE_ATTENTION_PREFIXES. Elements are keys-\>struct_size
///   apart.
/// - mask, scores, lse, q_scale and o_scale are given exactly if the plan has what they are for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_attention_args {
    /// sizeof(sluice_attention_args).
    pub struct_size: u32,
    /// Sequences.
    pub batch: i32,
    /// Queries.
    pub q: sluice_tensor,
    /// Result.
    pub o: sluice_tensor,
    /// Rows of q, o and lse.
    pub rows: sluice_rows,
    /// What the rows attend to.
    pub keys: *const sluice_keys,
    /// Elements of keys.
    pub key_sets: u32,
    /// Must be 0.
    pub reserved: u32,
    /// Host memory; NULL: 1 / sqrt(head_dim_qk). Finite, not negative.
    pub scale: *const f32,
    /// Where the LSE goes; stride\[3\] has no meaning.
    pub lse: *const sluice_tensor,
    /// For the plan's mask, where it needs memory.
    pub mask: *const sluice_mask_args,
    /// For the plan's scores, where they need memory.
    pub scores: *const sluice_scores_args,
    /// Device memory, \[1\] or \[q_heads\], by the plan's q.scale_kind.
    pub q_scale: *const f32,
    /// Device memory, the same for O, which is divided by it.
    pub o_scale: *const f32,
}
const _: () = assert!(size_of::<sluice_attention_args>() == 184);
const _: () = assert!(align_of::<sluice_attention_args>() == 8);

/// A rotation of rows before they are stored (RoPE).
///
/// Elements first to first + dim - 1 of a row are rotated: pair number e (x, y) becomes (x cos - y
/// sin, y cos + x sin), in F32, with cos = cosines\[p \* stride + e\] and sin = sines\[p \* stride + e\],
/// where p is the row's position.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_rotation {
    /// sizeof(sluice_rotation).
    pub struct_size: u32,
    /// sluice_rotary_style.
    pub style: u32,
    /// sluice_dtype of the tables: F32, F16 or BF16; required.
    pub r#type: u32,
    /// Elements that are rotated; a multiple of 16, where tables of F32 are all that a call asks for
    /// even.
    pub dim: i32,
    /// The first of them; a multiple of 8.
    pub first: i32,
    /// Must be 0.
    pub reserved: u32,
    /// \[positions\]\[dim / 2\]; required.
    pub cosines: *const c_void,
    /// The same; NULL: at cosines\[p \* stride + dim / 2\].
    pub sines: *const c_void,
    /// Elements from one position to the next; at least what a position has.
    pub stride: i64,
}
const _: () = assert!(size_of::<sluice_rotation>() == 48);
const _: () = assert!(align_of::<sluice_rotation>() == 8);

/// A norm of rows, before they are rotated: x\[e\] \* weights\[e\] / sqrt(mean(x^2) + epsilon), in F32.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_norm {
    /// sizeof(sluice_norm).
    pub struct_size: u32,
    /// sluice_dtype of the weights: that of the rows, or F32; required.
    pub r#type: u32,
    /// \[elements of a row, without its tail\]; required.
    pub weights: *const c_void,
    /// Finite, not negative.
    pub epsilon: f32,
    /// Must be 0.
    pub reserved: u32,
}
const _: () = assert!(size_of::<sluice_norm>() == 24);
const _: () = assert!(align_of::<sluice_norm>() == 8);

/// New rows of Q, which get the norm and the rotation in the same launch as those of K.
///
/// ```text
/// q [0][tokens][heads][head_dim_qk - tail_dim]   q_out [0][tokens][heads][head_dim_qk]
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_append_q {
    /// sizeof(sluice_append_q).
    pub struct_size: u32,
    /// Query heads; required.
    pub heads: i32,
    /// New rows.
    pub q: sluice_tensor,
    /// Where they go; may be q, with the same strides.
    pub out: sluice_tensor,
    /// \[0\]\[tokens\]\[heads\]\[tail_dim\]; all zero: rows of q are whole.
    pub tail: sluice_tensor,
    /// Nullable.
    pub norm: *const sluice_norm,
}
const _: () = assert!(size_of::<sluice_append_q>() == 136);
const _: () = assert!(align_of::<sluice_append_q>() == 8);

/// New rows of K and V, and the cache that they go to.
///
/// ```text
/// k [0][tokens][kv_heads][head_dim_qk - tail_dim]     v [0][tokens][kv_heads][head_dim_v]
///
/// ```
/// Row t goes to slot slots\[t\], or is a new row of the sequence b with starts\[b\] \<= t \< starts\[b + 1\]
/// and becomes its key lengths\[b\] - starts\[b + 1\] + t: lengths include the new keys.
///
/// - Exactly one of slots and starts is given. With slots, batch, starts, lengths and pages are all
///   zero.
/// - tail_dim and k_tail are given together.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_append_args {
    /// sizeof(sluice_append_args).
    pub struct_size: u32,
    /// sluice_dtype of k and v: F16 or BF16; required.
    pub source_type: u32,
    /// Rows of k and v.
    pub tokens: i32,
    /// Last elements of a row of K, which come from k_tail; 0: none.
    pub tail_dim: i32,
    /// New rows.
    pub k: sluice_tensor,
    /// New rows; all zero with SLUICE_KV_V_IN_K.
    pub v: sluice_tensor,
    /// \[0\]\[tokens\]\[kv_heads\]\[tail_dim\]; a stride of 0 repeats one tail.
    pub k_tail: sluice_tensor,
    /// Where they go; a cache in pages; required.
    pub kv: *const sluice_kv,
    /// \[tokens\]: page \* page_size + row; negative: skipped.
    pub slots: *const i64,
    /// With starts: sequences.
    pub batch: i32,
    /// Must be 0.
    pub reserved: u32,
    /// \[batch + 1\]: rows of k before each sequence's first.
    pub starts: *const i32,
    /// \[batch\]: keys of each sequence, new ones included.
    pub lengths: *const i32,
    /// With starts: the pages of the sequences.
    pub pages: sluice_pages,
    /// \[tokens\]; NULL: the key's number, with starts.
    pub positions: *const i32,
    /// Nullable.
    pub rotation: *const sluice_rotation,
    /// Nullable.
    pub k_norm: *const sluice_norm,
    /// Nullable.
    pub q: *const sluice_append_q,
}
const _: () = assert!(size_of::<sluice_append_args>() == 240);
const _: () = assert!(align_of::<sluice_append_args>() == 8);

/// Pages of a cache, to be copied to other pages, or to another cache.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_copy_args {
    /// sizeof(sluice_copy_args).
    pub struct_size: u32,
    /// 1 if pairs are int64_t; 0: int32_t.
    pub pairs_64: u32,
    /// Where the pages are; required.
    pub source: *const sluice_kv,
    /// Where they go; required; may be the same.
    pub target: *const sluice_kv,
    /// \[pair_count\]\[2\]: page of the source, page of the target; NULL: all pages.
    pub pairs: *const c_void,
    /// Pairs.
    pub pair_count: i64,
}
const _: () = assert!(size_of::<sluice_copy_args>() == 40);
const _: () = assert!(align_of::<sluice_copy_args>() == 8);

/// Keys of a cache, to be gathered in contiguous rows: key first_keys\[b\] + j becomes row starts\[b\] +
/// j.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_gather_args {
    /// sizeof(sluice_gather_args).
    pub struct_size: u32,
    /// Sequences.
    pub batch: i32,
    /// A cache in pages; required.
    pub source: *const sluice_kv,
    /// The pages of the sequences.
    pub pages: sluice_pages,
    /// \[batch\]: keys of each sequence; required.
    pub lengths: *const i32,
    /// \[batch\], nullable: the first key to gather; NULL: 0.
    pub first_keys: *const i32,
    /// Tensors, \[0\]\[row\]\[kv_heads\]\[head_dim\]; required.
    pub target: *const sluice_kv,
    /// \[batch + 1\]: rows of the target before each sequence's first; required.
    pub starts: *const i32,
    /// Rows of the target.
    pub tokens: i32,
    /// Must be 0.
    pub reserved: u32,
}
const _: () = assert!(size_of::<sluice_gather_args>() == 88);
const _: () = assert!(align_of::<sluice_gather_args>() == 8);

/// Results over parts of the keys. Part of sluice_merge_args: it never grows.
///
/// ```text
/// o [part][token][head][head_dim]   lse [part][token][head], F32
///
/// ```
/// - Parts may be in any order and place: stride\[0\] may be negative, and with o_list and lse_list,
///   host arrays of `count` device pointers that the call copies, part p is at o_list\[p\] and
///   lse_list\[p\]. Then data and stride\[0\] of o and lse are 0, and there are at most 16 parts.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_parts {
    /// sluice_dtype of o: F32, F16 or BF16; required.
    pub r#type: u32,
    /// Parts, from 1 to 65536.
    pub count: i32,
    /// Normalised results.
    pub o: sluice_tensor,
    /// stride\[3\] has no meaning.
    pub lse: sluice_tensor,
    /// Host memory, \[count\]; nullable.
    pub o_list: *const *const c_void,
    /// Given with o_list.
    pub lse_list: *const *const c_void,
    /// With sequence_tokens: from a sequence's first token to the next one's.
    pub lse_sequence_stride: i64,
}
const _: () = assert!(size_of::<sluice_parts>() == 112);
const _: () = assert!(align_of::<sluice_parts>() == 8);

/// One merge.
///
/// ```text
/// o [0][token][head][head_dim]   lse [0][token][head], F32
///
/// LSE = ln (sum over parts of exp(parts.lse[p]) + exp(sink))
/// O   = sum over parts of exp(parts.lse[p] - LSE) * parts.o[p]
///
/// ```
/// A part with an LSE of -infinity does not count, even if its row holds NaN. If no part counts, O =
/// 0 and LSE is -infinity, or the sink. docs/concepts/cache_operations.md has the rest.
///
/// - o may be the memory of one of the parts, and lse that of its LSEs, with the same types and
///   strides.
/// - o_format.type is parts.type, or with parts of F32 any of F16, BF16 and E4M3FNUZ, which alone has
///   a scale.
/// - LSEs that are \[sequence\]\[head\]\[token\] in memory need sequence_tokens, which divides tokens:
///   token s \* sequence_tokens + i has its LSEs at s \* lse_sequence_stride + i \* stride\[1\].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sluice_merge_args {
    /// sizeof(sluice_merge_args).
    pub struct_size: u32,
    /// sluice_merge_flag bits.
    pub flags: u32,
    /// Rows.
    pub tokens: i32,
    /// Heads; required.
    pub heads: i32,
    /// Elements of a row, a multiple of 8; required.
    pub head_dim: i32,
    /// sluice_lse of all LSEs: LN or LOG2; required.
    pub lse_base: u32,
    /// Rows of o.
    pub o_format: sluice_format,
    /// What is merged.
    pub parts: sluice_parts,
    /// Result; stride\[0\] has no meaning.
    pub o: sluice_tensor,
    /// Its LSE; all zero: not wanted.
    pub lse: sluice_tensor,
    /// As in sluice_parts.
    pub lse_sequence_stride: i64,
    /// Tokens of each sequence; 0: LSEs need only strides.
    pub sequence_tokens: i32,
    /// Must be 0.
    pub reserved: u32,
    /// \[heads\], to base e, counted once; nullable.
    pub sinks: *const f32,
    /// \[1\] or \[heads\], by o_format.scale_kind: o is divided by it.
    pub o_scale: *const f32,
}
const _: () = assert!(size_of::<sluice_merge_args>() == 272);
const _: () = assert!(align_of::<sluice_merge_args>() == 8);

/// One plan or run. Valid during the callback.
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
const _: () = assert!(size_of::<sluice_trace_record>() == 64);
const _: () = assert!(align_of::<sluice_trace_record>() == 8);

/// Counts of the runs of a plan since it was made.
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
const _: () = assert!(size_of::<sluice_counters>() == 56);
const _: () = assert!(align_of::<sluice_counters>() == 8);

extern "C" {
    /// Zeroes the struct and sets struct_size.
    pub fn sluice_error_init(error: *mut sluice_error, size: usize) -> sluice_status;

    /// "SLUICE_OK" and so on; "unknown status" for any other value. Static storage, never NULL.
    pub fn sluice_status_name(status: sluice_status) -> *const c_char;

    /// SLUICE_ABI_MAJOR \<\< 16 | SLUICE_ABI_MINOR of the library at run time.
    pub fn sluice_abi_version() -> u32;

    /// The release, e.g. "2.0.0". Static storage.
    pub fn sluice_version() -> *const c_char;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_build_init(build: *mut sluice_build, size: usize) -> sluice_status;

    /// Fills `build`. Needs no device.
    pub fn sluice_build_info(build: *mut sluice_build, error: *mut sluice_error) -> sluice_status;

    /// Sets the process's log function and the most verbose level it gets; NULL, the initial state,
    /// switches the log off. Runs never log. Threads: may be called at any time; once it returns, the
    /// previous function is not called.
    pub fn sluice_set_log(log: sluice_log_fn, user: *mut c_void, max_level: u32);

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_context_desc_init(desc: *mut sluice_context_desc, size: usize) -> sluice_status;

    /// Makes a context.
    ///
    /// HIP: entry points come from desc-\>hip_resolver; else from the libamdhip64 that the process has
    /// already loaded; else from libamdhip64.so.7, .6 or .5, whichever the system finds first. The
    /// library never loads a second HIP runtime and assumes no path. It initialises the HIP runtime
    /// (hipInit) and leaves the calling thread's current device unchanged.
    ///
    /// EMULATED: opens libsluice_emulator.so.1 by name, else from the folder of the file that
    /// libsluice.so is mapped from; a program linked with libsluice.a finds it by name only. A
    /// program that runs with more rights than its user (AT_SECURE: setuid, file capabilities) gets
    /// SLUICE_NO_DEVICE.
    ///
    /// TARGET: touches no device and no library.
    pub fn sluice_context_create(
        desc: *const sluice_context_desc,
        out: *mut *mut sluice_context,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Releases a context; NULL is allowed. Plans made with it stay valid: what they share is
    /// released with the last of them.
    pub fn sluice_context_destroy(context: *mut sluice_context);

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_device_info_init(info: *mut sluice_device_info, size: usize) -> sluice_status;

    /// Fills `info`.
    pub fn sluice_context_device(
        context: *const sluice_context,
        info: *mut sluice_device_info,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Returns the HIP entry point of that name in the context's runtime, real or emulated (which
    /// also has those of sluice/emulator.h), to be cast to the function's type: to allocate, copy and
    /// synchronise without linking HIP. sluice/device.h does so.
    pub fn sluice_context_hip_symbol(context: *const sluice_context, name: *const c_char) -> *mut c_void;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_launch_init(launch: *mut sluice_launch, size: usize) -> sluice_status;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_support_init(support: *mut sluice_support, size: usize) -> sluice_status;

    /// Says whether a plan for this problem can be made, and what it needs. Touches no device.
    ///
    /// - support: nullable; filled on SLUICE_OK
    /// - error: nullable; a refusal names the member, its value and the nearest supported one
    pub fn sluice_attention_support(
        context: *const sluice_context,
        attention: *const sluice_attention,
        support: *mut sluice_support,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Chooses the kernels for a problem and loads them onto the context's device, so that a run only
    /// has to launch them. Enqueues nothing. Loading allocates: during stream capture a plan can be
    /// made only of kernels that sluice_attention_preload has loaded before.
    ///
    /// - context: any kind; a plan of a target can be described but not run
    /// - attention: copied, with what it points to
    /// - out: receives the plan; NULL on failure. The caller owns it: sluice_plan_destroy.
    pub fn sluice_attention_plan(
        context: *mut sluice_context,
        attention: *const sluice_attention,
        out: *mut *mut sluice_plan,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Releases a plan; NULL is allowed. The work it enqueued must have completed.
    pub fn sluice_plan_destroy(plan: *mut sluice_plan);

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_plan_info_init(info: *mut sluice_plan_info, size: usize) -> sluice_status;

    /// Fills `info`.
    pub fn sluice_plan_describe(
        plan: *const sluice_plan,
        info: *mut sluice_plan_info,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Loads the kernels for a problem, or every kernel of the context if `attention` is NULL, and
    /// keeps them loaded while the context or one of its plans lives. Plans and cache operations then
    /// load nothing.
    pub fn sluice_attention_preload(
        context: *mut sluice_context,
        attention: *const sluice_attention,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_kernel_info_init(info: *mut sluice_kernel_info, size: usize) -> sluice_status;

    /// Returns one of the kernels for a context's chip, by index in the order of their names.
    ///
    /// - index: which kernel; ignored if info is NULL
    /// - info: nullable
    /// - count: nullable; receives the number of kernels
    pub fn sluice_list_kernels(
        context: *const sluice_context,
        index: u32,
        info: *mut sluice_kernel_info,
        count: *mut u32,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Enqueues one call of a plan on launch-\>stream and returns without waiting. It does not
    /// allocate, lock, load, log, or query or synchronise the device, and it is legal during stream
    /// capture, from the first run on. A captured run keeps the pointers, strides and numbers of its
    /// call, and finds lengths and tables where they point to. docs/howto/capture_a_graph.md says
    /// which HIP functions it calls.
    ///
    /// Device the calling thread's current device must be the context's; this is not checked Ordering
    /// after the work on the stream and after the dependencies Threads any number at once with one
    /// plan, given different workspaces (if the plan needs one) Memory o and lse overlap no input;
    /// this is not checked Faults of the device appear where the caller synchronises, as with any HIP
    /// work. The emulated device names the argument: docs/howto/use_the_emulator.md.
    /// sluice_attention_reference on copies in host memory checks everything.
    ///
    /// - plan: made for a HIP or emulated device
    /// - args: copied, with what it points to in host memory
    /// - launch: copied; NULL is the default stream, without workspace, dependencies or signal_event
    pub fn sluice_attention_run(
        plan: *const sluice_plan,
        args: *const sluice_attention_args,
        launch: *const sluice_launch,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Computes a call on the host with plain loops in double precision: the reference for results,
    /// never chosen silently. Takes what a plan and a run take, but all pointers are to host memory,
    /// any types, head dims and strides are computed, and contents of arrays are checked like
    /// everything else. P is not rounded, O once.
    pub fn sluice_attention_reference(
        attention: *const sluice_attention,
        args: *const sluice_attention_args,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Enqueues an append on launch-\>stream, the default stream if launch is NULL, and returns
    /// without waiting. Needs no workspace. A context's first call for a kernel loads it, which is
    /// not legal during stream capture; after sluice_attention_preload with NULL the rules of
    /// sluice_attention_run hold.
    ///
    /// Rows are normed and rotated in F32, then stored: an FP8 or I8 cache has x / scale, to nearest
    /// even, limited to the type's largest number. Scales per tensor, head and page are read; those
    /// per token and group are computed and stored. docs/concepts/cache_operations.md has each step.
    ///
    /// A row without a place (a negative slot; a page that is negative, not below kv-\>page_count, or
    /// past the sequence's entries) is skipped. Of two rows for one place, one is stored.
    pub fn sluice_cache_append(
        context: *mut sluice_context,
        args: *const sluice_append_args,
        launch: *const sluice_launch,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Performs an append on the host with plain loops; all pointers are to host memory. What a
    /// device would skip is refused, except negative slots and rows of no sequence, and then nothing
    /// is stored.
    pub fn sluice_cache_append_reference(
        args: *const sluice_append_args,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Enqueues a copy of all rows of the pages. Rules and return values as for sluice_cache_append.
    /// Equal types are copied bit by bit, scales too; F16 and BF16 become E4M3FNUZ, and what caches
    /// store becomes F16 or BF16. A pair with a number that is not a page is skipped.
    pub fn sluice_cache_copy(
        context: *mut sluice_context,
        args: *const sluice_copy_args,
        launch: *const sluice_launch,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Copies on the host; all pointers are to host memory. Return values as for an append's
    /// reference.
    pub fn sluice_cache_copy_reference(
        args: *const sluice_copy_args,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Enqueues a gather. Rules and return values as for sluice_cache_append; types as for a copy.
    /// Keys in pages that do not exist read as zeros; rows of the target to which no key belongs are
    /// not written.
    pub fn sluice_cache_gather(
        context: *mut sluice_context,
        args: *const sluice_gather_args,
        launch: *const sluice_launch,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Gathers on the host; all pointers are to host memory. Return values as for an append's
    /// reference.
    pub fn sluice_cache_gather_reference(
        args: *const sluice_gather_args,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Enqueues a merge. Rules and return values as for sluice_cache_append.
    pub fn sluice_attention_merge(
        context: *mut sluice_context,
        args: *const sluice_merge_args,
        launch: *const sluice_launch,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Sets the function that sees every plan and run of a context; NULL, the initial state, switches
    /// tracing off. Without a function, a run has no tracing cost. Threads: must not be called while
    /// another thread uses the context or one of its plans.
    pub fn sluice_set_trace(
        context: *mut sluice_context,
        trace: sluice_trace_fn,
        user: *mut c_void,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Encloses every run and every cache operation of a context in a range of roctx, which profilers
    /// show (enabled = 1), or no longer (0, the initial state). A range begins before the call's
    /// first work in HIP and ends with the call, also if that fails. Its text is the kernel's name
    /// and the problem in short: "attn_fwd_f16_d128_q16_kv16_w4_decode b64 q1 kv4096 h32/8 paged
    /// causal".
    ///
    /// roctxRangePushA and roctxRangePop are those of the process. If it does not have both, they are
    /// taken from librocprofiler-sdk-roctx.so.1, else from libroctx64.so.4. A program that runs with
    /// more rights than its user (AT_SECURE) uses only those of the process. Without ranges, a call
    /// costs one test more.
    ///
    /// Threads: must not be called while another thread uses the context or one of its plans.
    pub fn sluice_set_ranges(
        context: *mut sluice_context,
        enabled: u32,
        error: *mut sluice_error,
    ) -> sluice_status;

    /// Zeroes the struct and sets struct_size.
    pub fn sluice_counters_init(counters: *mut sluice_counters, size: usize) -> sluice_status;

    /// Fills `counters`. Threads: any, also while others run the plan; every counter only grows, and
    /// is exact when no run is in progress.
    pub fn sluice_plan_counters(
        plan: *const sluice_plan,
        counters: *mut sluice_counters,
        error: *mut sluice_error,
    ) -> sluice_status;
}

macro_rules! zero {
    ($($name:ident)*) => { $(
        impl Default for $name {
            /// All zero.
            fn default() -> Self {
                // SAFETY: numbers, arrays of numbers and nullable pointers, for which all zero is a value.
                unsafe { zeroed() }
            }
        }
    )* };
}

macro_rules! sized {
    ($($name:ident)*) => { $(
        impl Default for $name {
            /// All zero but `struct_size`.
            fn default() -> Self {
                // SAFETY: as above.
                let mut value: Self = unsafe { zeroed() };
                value.struct_size = size_of::<Self>() as u32;
                value
            }
        }
    )* };
}

zero! {
    sluice_tensor
    sluice_dependency
    sluice_format
    sluice_rows
    sluice_pages
    sluice_bounds
    sluice_parts
}

sized! {
    sluice_error
    sluice_build
    sluice_context_desc
    sluice_device_info
    sluice_launch
    sluice_kv_format
    sluice_kv_scales
    sluice_kv
    sluice_keys
    sluice_mask
    sluice_mask_args
    sluice_scores
    sluice_scores_args
    sluice_attention
    sluice_support
    sluice_plan_info
    sluice_kernel_info
    sluice_attention_args
    sluice_rotation
    sluice_norm
    sluice_append_q
    sluice_append_args
    sluice_copy_args
    sluice_gather_args
    sluice_merge_args
    sluice_trace_record
    sluice_counters
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! offset {
        ($name:ident, $member:ident) => {{
            let value = $name::default();
            core::ptr::addr_of!(value.$member) as usize - core::ptr::addr_of!(value) as usize
        }};
    }

    #[test]
    fn members_are_where_c_has_them() {
        assert_eq!(offset!(sluice_error, struct_size), 0);
        assert_eq!(offset!(sluice_error, code), 4);
        assert_eq!(offset!(sluice_error, hip_code), 8);
        assert_eq!(offset!(sluice_error, field), 12);
        assert_eq!(offset!(sluice_error, message), 64);
        assert_eq!(offset!(sluice_tensor, data), 0);
        assert_eq!(offset!(sluice_tensor, stride), 8);
        assert_eq!(offset!(sluice_build, struct_size), 0);
        assert_eq!(offset!(sluice_build, kernel_count), 4);
        assert_eq!(offset!(sluice_build, version), 8);
        assert_eq!(offset!(sluice_build, git_commit), 40);
        assert_eq!(offset!(sluice_build, compiler), 88);
        assert_eq!(offset!(sluice_build, llvm_version), 152);
        assert_eq!(offset!(sluice_build, pack_id), 184);
        assert_eq!(offset!(sluice_build, chips), 216);
        assert_eq!(offset!(sluice_context_desc, struct_size), 0);
        assert_eq!(offset!(sluice_context_desc, kind), 4);
        assert_eq!(offset!(sluice_context_desc, device_ordinal), 8);
        assert_eq!(offset!(sluice_context_desc, flags), 12);
        assert_eq!(offset!(sluice_context_desc, target), 16);
        assert_eq!(offset!(sluice_context_desc, hip_resolver), 24);
        assert_eq!(offset!(sluice_context_desc, hip_resolver_user), 32);
        assert_eq!(offset!(sluice_context_desc, pack), 40);
        assert_eq!(offset!(sluice_context_desc, pack_bytes), 48);
        assert_eq!(offset!(sluice_device_info, struct_size), 0);
        assert_eq!(offset!(sluice_device_info, kind), 4);
        assert_eq!(offset!(sluice_device_info, ordinal), 8);
        assert_eq!(offset!(sluice_device_info, compute_units), 12);
        assert_eq!(offset!(sluice_device_info, wave_size), 16);
        assert_eq!(offset!(sluice_device_info, lds_bytes), 20);
        assert_eq!(offset!(sluice_device_info, hip_runtime_version), 24);
        assert_eq!(offset!(sluice_device_info, reserved), 28);
        assert_eq!(offset!(sluice_device_info, chip), 32);
        assert_eq!(offset!(sluice_device_info, arch), 64);
        assert_eq!(offset!(sluice_device_info, name), 128);
        assert_eq!(offset!(sluice_device_info, runtime), 256);
        assert_eq!(offset!(sluice_dependency, kind), 0);
        assert_eq!(offset!(sluice_dependency, reserved), 4);
        assert_eq!(offset!(sluice_dependency, event), 8);
        assert_eq!(offset!(sluice_dependency, stream), 16);
        assert_eq!(offset!(sluice_launch, struct_size), 0);
        assert_eq!(offset!(sluice_launch, dependency_count), 4);
        assert_eq!(offset!(sluice_launch, stream), 8);
        assert_eq!(offset!(sluice_launch, workspace), 16);
        assert_eq!(offset!(sluice_launch, workspace_bytes), 24);
        assert_eq!(offset!(sluice_launch, dependencies), 32);
        assert_eq!(offset!(sluice_launch, signal_event), 40);
        assert_eq!(offset!(sluice_format, r#type), 0);
        assert_eq!(offset!(sluice_format, scale_kind), 4);
        assert_eq!(offset!(sluice_format, scale_group), 8);
        assert_eq!(offset!(sluice_format, zero_points), 12);
        assert_eq!(offset!(sluice_format, pack), 16);
        assert_eq!(offset!(sluice_format, reserved), 20);
        assert_eq!(offset!(sluice_kv_format, struct_size), 0);
        assert_eq!(offset!(sluice_kv_format, flags), 4);
        assert_eq!(offset!(sluice_kv_format, kv_heads), 8);
        assert_eq!(offset!(sluice_kv_format, head_dim_qk), 12);
        assert_eq!(offset!(sluice_kv_format, head_dim_v), 16);
        assert_eq!(offset!(sluice_kv_format, page_size), 20);
        assert_eq!(offset!(sluice_kv_format, page_table), 24);
        assert_eq!(offset!(sluice_kv_format, reserved), 28);
        assert_eq!(offset!(sluice_kv_format, k), 32);
        assert_eq!(offset!(sluice_kv_format, v), 56);
        assert_eq!(offset!(sluice_kv_scales, struct_size), 0);
        assert_eq!(offset!(sluice_kv_scales, reserved), 4);
        assert_eq!(offset!(sluice_kv_scales, k), 8);
        assert_eq!(offset!(sluice_kv_scales, v), 48);
        assert_eq!(offset!(sluice_kv_scales, k_zeros), 88);
        assert_eq!(offset!(sluice_kv_scales, v_zeros), 128);
        assert_eq!(offset!(sluice_kv, struct_size), 0);
        assert_eq!(offset!(sluice_kv, reserved), 4);
        assert_eq!(offset!(sluice_kv, format), 8);
        assert_eq!(offset!(sluice_kv, k), 16);
        assert_eq!(offset!(sluice_kv, v), 56);
        assert_eq!(offset!(sluice_kv, scales), 96);
        assert_eq!(offset!(sluice_kv, page_count), 104);
        assert_eq!(offset!(sluice_rows, max_len), 0);
        assert_eq!(offset!(sluice_rows, reserved), 4);
        assert_eq!(offset!(sluice_rows, starts), 8);
        assert_eq!(offset!(sluice_rows, lengths), 16);
        assert_eq!(offset!(sluice_rows, total), 24);
        assert_eq!(offset!(sluice_pages, table), 0);
        assert_eq!(offset!(sluice_pages, starts), 8);
        assert_eq!(offset!(sluice_pages, stride), 16);
        assert_eq!(offset!(sluice_pages, head_stride), 24);
        assert_eq!(offset!(sluice_keys, struct_size), 0);
        assert_eq!(offset!(sluice_keys, groups), 4);
        assert_eq!(offset!(sluice_keys, group_starts), 8);
        assert_eq!(offset!(sluice_keys, kv), 16);
        assert_eq!(offset!(sluice_keys, rows), 24);
        assert_eq!(offset!(sluice_keys, pages), 56);
        assert_eq!(offset!(sluice_mask, struct_size), 0);
        assert_eq!(offset!(sluice_mask, flags), 4);
        assert_eq!(offset!(sluice_mask, alignment), 8);
        assert_eq!(offset!(sluice_mask, window_left), 12);
        assert_eq!(offset!(sluice_mask, window_right), 16);
        assert_eq!(offset!(sluice_mask, sink_tokens), 20);
        assert_eq!(offset!(sluice_mask_args, struct_size), 0);
        assert_eq!(offset!(sluice_mask_args, reserved), 4);
        assert_eq!(offset!(sluice_mask_args, bits), 8);
        assert_eq!(offset!(sluice_mask_args, spans), 48);
        assert_eq!(offset!(sluice_mask_args, span_count), 56);
        assert_eq!(offset!(sluice_mask_args, diagonals), 64);
        assert_eq!(offset!(sluice_mask_args, causal), 72);
        assert_eq!(offset!(sluice_scores, struct_size), 0);
        assert_eq!(offset!(sluice_scores, flags), 4);
        assert_eq!(offset!(sluice_scores, soft_cap), 8);
        assert_eq!(offset!(sluice_scores, bias_type), 12);
        assert_eq!(offset!(sluice_scores_args, struct_size), 0);
        assert_eq!(offset!(sluice_scores_args, reserved), 4);
        assert_eq!(offset!(sluice_scores_args, bias), 8);
        assert_eq!(offset!(sluice_scores_args, bias_scale), 48);
        assert_eq!(offset!(sluice_scores_args, bias_scale_stride), 56);
        assert_eq!(offset!(sluice_scores_args, alibi_slopes), 64);
        assert_eq!(offset!(sluice_scores_args, alibi_stride), 72);
        assert_eq!(offset!(sluice_scores_args, sinks), 80);
        assert_eq!(offset!(sluice_bounds, batch), 0);
        assert_eq!(offset!(sluice_bounds, q_len), 4);
        assert_eq!(offset!(sluice_bounds, kv_len), 8);
        assert_eq!(offset!(sluice_bounds, groups), 12);
        assert_eq!(offset!(sluice_bounds, group_keys), 16);
        assert_eq!(offset!(sluice_bounds, reserved), 20);
        assert_eq!(offset!(sluice_bounds, q_rows), 24);
        assert_eq!(offset!(sluice_attention, struct_size), 0);
        assert_eq!(offset!(sluice_attention, flags), 4);
        assert_eq!(offset!(sluice_attention, q_heads), 8);
        assert_eq!(offset!(sluice_attention, lse), 12);
        assert_eq!(offset!(sluice_attention, q), 16);
        assert_eq!(offset!(sluice_attention, o), 40);
        assert_eq!(offset!(sluice_attention, kv), 64);
        assert_eq!(offset!(sluice_attention, mask), 72);
        assert_eq!(offset!(sluice_attention, scores), 80);
        assert_eq!(offset!(sluice_attention, bounds), 88);
        assert_eq!(offset!(sluice_attention, workspace_ceiling_bytes), 120);
        assert_eq!(offset!(sluice_support, struct_size), 0);
        assert_eq!(offset!(sluice_support, workspace_alignment), 4);
        assert_eq!(offset!(sluice_support, workspace_bytes), 8);
        assert_eq!(offset!(sluice_support, pointer_alignment), 16);
        assert_eq!(offset!(sluice_support, stride_multiple), 20);
        assert_eq!(offset!(sluice_support, kernel), 24);
        assert_eq!(offset!(sluice_plan_info, struct_size), 0);
        assert_eq!(offset!(sluice_plan_info, tile_q), 4);
        assert_eq!(offset!(sluice_plan_info, tile_kv), 8);
        assert_eq!(offset!(sluice_plan_info, waves), 12);
        assert_eq!(offset!(sluice_plan_info, lds_bytes), 16);
        assert_eq!(offset!(sluice_plan_info, workspace_alignment), 20);
        assert_eq!(offset!(sluice_plan_info, workspace_bytes), 24);
        assert_eq!(offset!(sluice_plan_info, max_grid), 32);
        assert_eq!(offset!(sluice_plan_info, block), 44);
        assert_eq!(offset!(sluice_plan_info, kernel), 56);
        assert_eq!(offset!(sluice_plan_info, reason), 152);
        assert_eq!(offset!(sluice_kernel_info, struct_size), 0);
        assert_eq!(offset!(sluice_kernel_info, dtype), 4);
        assert_eq!(offset!(sluice_kernel_info, head_dim_qk), 8);
        assert_eq!(offset!(sluice_kernel_info, head_dim_v), 12);
        assert_eq!(offset!(sluice_kernel_info, tile_q), 16);
        assert_eq!(offset!(sluice_kernel_info, tile_kv), 20);
        assert_eq!(offset!(sluice_kernel_info, waves), 24);
        assert_eq!(offset!(sluice_kernel_info, threads), 28);
        assert_eq!(offset!(sluice_kernel_info, lds_bytes), 32);
        assert_eq!(offset!(sluice_kernel_info, kernarg_bytes), 36);
        assert_eq!(offset!(sluice_kernel_info, name), 40);
        assert_eq!(offset!(sluice_kernel_info, operation), 136);
        assert_eq!(offset!(sluice_kernel_info, features), 168);
        assert_eq!(offset!(sluice_kernel_info, p_rounding), 296);
        assert_eq!(offset!(sluice_kernel_info, chips), 312);
        assert_eq!(offset!(sluice_kernel_info, more_features), 376);
        assert_eq!(offset!(sluice_attention_args, struct_size), 0);
        assert_eq!(offset!(sluice_attention_args, batch), 4);
        assert_eq!(offset!(sluice_attention_args, q), 8);
        assert_eq!(offset!(sluice_attention_args, o), 48);
        assert_eq!(offset!(sluice_attention_args, rows), 88);
        assert_eq!(offset!(sluice_attention_args, keys), 120);
        assert_eq!(offset!(sluice_attention_args, key_sets), 128);
        assert_eq!(offset!(sluice_attention_args, reserved), 132);
        assert_eq!(offset!(sluice_attention_args, scale), 136);
        assert_eq!(offset!(sluice_attention_args, lse), 144);
        assert_eq!(offset!(sluice_attention_args, mask), 152);
        assert_eq!(offset!(sluice_attention_args, scores), 160);
        assert_eq!(offset!(sluice_attention_args, q_scale), 168);
        assert_eq!(offset!(sluice_attention_args, o_scale), 176);
        assert_eq!(offset!(sluice_rotation, struct_size), 0);
        assert_eq!(offset!(sluice_rotation, style), 4);
        assert_eq!(offset!(sluice_rotation, r#type), 8);
        assert_eq!(offset!(sluice_rotation, dim), 12);
        assert_eq!(offset!(sluice_rotation, first), 16);
        assert_eq!(offset!(sluice_rotation, reserved), 20);
        assert_eq!(offset!(sluice_rotation, cosines), 24);
        assert_eq!(offset!(sluice_rotation, sines), 32);
        assert_eq!(offset!(sluice_rotation, stride), 40);
        assert_eq!(offset!(sluice_norm, struct_size), 0);
        assert_eq!(offset!(sluice_norm, r#type), 4);
        assert_eq!(offset!(sluice_norm, weights), 8);
        assert_eq!(offset!(sluice_norm, epsilon), 16);
        assert_eq!(offset!(sluice_norm, reserved), 20);
        assert_eq!(offset!(sluice_append_q, struct_size), 0);
        assert_eq!(offset!(sluice_append_q, heads), 4);
        assert_eq!(offset!(sluice_append_q, q), 8);
        assert_eq!(offset!(sluice_append_q, out), 48);
        assert_eq!(offset!(sluice_append_q, tail), 88);
        assert_eq!(offset!(sluice_append_q, norm), 128);
        assert_eq!(offset!(sluice_append_args, struct_size), 0);
        assert_eq!(offset!(sluice_append_args, source_type), 4);
        assert_eq!(offset!(sluice_append_args, tokens), 8);
        assert_eq!(offset!(sluice_append_args, tail_dim), 12);
        assert_eq!(offset!(sluice_append_args, k), 16);
        assert_eq!(offset!(sluice_append_args, v), 56);
        assert_eq!(offset!(sluice_append_args, k_tail), 96);
        assert_eq!(offset!(sluice_append_args, kv), 136);
        assert_eq!(offset!(sluice_append_args, slots), 144);
        assert_eq!(offset!(sluice_append_args, batch), 152);
        assert_eq!(offset!(sluice_append_args, reserved), 156);
        assert_eq!(offset!(sluice_append_args, starts), 160);
        assert_eq!(offset!(sluice_append_args, lengths), 168);
        assert_eq!(offset!(sluice_append_args, pages), 176);
        assert_eq!(offset!(sluice_append_args, positions), 208);
        assert_eq!(offset!(sluice_append_args, rotation), 216);
        assert_eq!(offset!(sluice_append_args, k_norm), 224);
        assert_eq!(offset!(sluice_append_args, q), 232);
        assert_eq!(offset!(sluice_copy_args, struct_size), 0);
        assert_eq!(offset!(sluice_copy_args, pairs_64), 4);
        assert_eq!(offset!(sluice_copy_args, source), 8);
        assert_eq!(offset!(sluice_copy_args, target), 16);
        assert_eq!(offset!(sluice_copy_args, pairs), 24);
        assert_eq!(offset!(sluice_copy_args, pair_count), 32);
        assert_eq!(offset!(sluice_gather_args, struct_size), 0);
        assert_eq!(offset!(sluice_gather_args, batch), 4);
        assert_eq!(offset!(sluice_gather_args, source), 8);
        assert_eq!(offset!(sluice_gather_args, pages), 16);
        assert_eq!(offset!(sluice_gather_args, lengths), 48);
        assert_eq!(offset!(sluice_gather_args, first_keys), 56);
        assert_eq!(offset!(sluice_gather_args, target), 64);
        assert_eq!(offset!(sluice_gather_args, starts), 72);
        assert_eq!(offset!(sluice_gather_args, tokens), 80);
        assert_eq!(offset!(sluice_gather_args, reserved), 84);
        assert_eq!(offset!(sluice_parts, r#type), 0);
        assert_eq!(offset!(sluice_parts, count), 4);
        assert_eq!(offset!(sluice_parts, o), 8);
        assert_eq!(offset!(sluice_parts, lse), 48);
        assert_eq!(offset!(sluice_parts, o_list), 88);
        assert_eq!(offset!(sluice_parts, lse_list), 96);
        assert_eq!(offset!(sluice_parts, lse_sequence_stride), 104);
        assert_eq!(offset!(sluice_merge_args, struct_size), 0);
        assert_eq!(offset!(sluice_merge_args, flags), 4);
        assert_eq!(offset!(sluice_merge_args, tokens), 8);
        assert_eq!(offset!(sluice_merge_args, heads), 12);
        assert_eq!(offset!(sluice_merge_args, head_dim), 16);
        assert_eq!(offset!(sluice_merge_args, lse_base), 20);
        assert_eq!(offset!(sluice_merge_args, o_format), 24);
        assert_eq!(offset!(sluice_merge_args, parts), 48);
        assert_eq!(offset!(sluice_merge_args, o), 160);
        assert_eq!(offset!(sluice_merge_args, lse), 200);
        assert_eq!(offset!(sluice_merge_args, lse_sequence_stride), 240);
        assert_eq!(offset!(sluice_merge_args, sequence_tokens), 248);
        assert_eq!(offset!(sluice_merge_args, reserved), 252);
        assert_eq!(offset!(sluice_merge_args, sinks), 256);
        assert_eq!(offset!(sluice_merge_args, o_scale), 264);
        assert_eq!(offset!(sluice_trace_record, struct_size), 0);
        assert_eq!(offset!(sluice_trace_record, event), 4);
        assert_eq!(offset!(sluice_trace_record, grid), 8);
        assert_eq!(offset!(sluice_trace_record, block), 20);
        assert_eq!(offset!(sluice_trace_record, lds_bytes), 32);
        assert_eq!(offset!(sluice_trace_record, waves), 36);
        assert_eq!(offset!(sluice_trace_record, workspace_bytes), 40);
        assert_eq!(offset!(sluice_trace_record, kernel), 48);
        assert_eq!(offset!(sluice_trace_record, reason), 56);
        assert_eq!(offset!(sluice_counters, struct_size), 0);
        assert_eq!(offset!(sluice_counters, reserved), 4);
        assert_eq!(offset!(sluice_counters, runs), 8);
        assert_eq!(offset!(sluice_counters, refused), 16);
        assert_eq!(offset!(sluice_counters, launches), 24);
        assert_eq!(offset!(sluice_counters, main_launches), 32);
        assert_eq!(offset!(sluice_counters, other_launches), 40);
        assert_eq!(offset!(sluice_counters, merge_launches), 48);
    }
}
