//! Devices, named targets, and queries to them.

use crate::attention::Attention;
use crate::element::Dtype;
use crate::error::{call, Error, Result};
use crate::launch::Launch;
use crate::library::contain;
use crate::plan::Plan;
use crate::trace::{trampoline, TraceFn, TraceRecord};
use crate::{text, Append, Gather, Merge, PageCopy};
use sluice_sys as sys;
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::{c_char, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// A device, or a named target without one, and the kernels for it. Reference-counted: a clone is the same context.
#[derive(Clone, Debug)]
pub struct Context {
    shared: Arc<Shared>,
}

/// Shared with plans.
pub(crate) struct Shared {
    raw: NonNull<sys::sluice_context>,
    // The context uses all of these until it is destroyed, so their addresses must not change.
    _trace: Option<Arc<TraceFn>>,
    _resolver: Option<Arc<ResolverFn>>,
    _pack: Option<Arc<[u8]>>,
}

// SAFETY: the header: contexts are immutable once made, and may be shared by any number of threads; sluice_set_trace is
// the exception, and is called before the context is shared. The type of the trace function is Send and Sync.
unsafe impl Send for Shared {}
// SAFETY: as for Send.
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: made by sluice_context_create and destroyed only here; it is unused, because users hold a reference.
        unsafe { sys::sluice_context_destroy(self.raw.as_ptr()) }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_tuple("Shared").field(&self.raw).finish()
    }
}

type ResolverFn = Box<dyn Fn(&CStr) -> *mut c_void + Send + Sync>;

/// # Safety
/// Called as by the library: with a string, and the `user` that was given with this function, a `ResolverFn`.
unsafe extern "C" fn resolve(name: *const c_char, user: *mut c_void) -> *mut c_void {
    // SAFETY: by this function's contract.
    let find = || unsafe { (*(user as *const ResolverFn))(CStr::from_ptr(name)) };
    contain(find).unwrap_or(ptr::null_mut())
}

/// The kind of device that a context represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceKind {
    /// A GPU, through the HIP runtime of the process.
    Hip,
    /// The bundled emulator: same machine code, same calls.
    Emulated,
    /// A chip by name: answers questions and makes plans, but cannot run.
    Target,
}

/// The device of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Its kind.
    pub kind: DeviceKind,
    /// Device ordinal; None for a target.
    pub ordinal: Option<usize>,
    /// Compute units.
    pub compute_units: u32,
    /// Lanes of a wave.
    pub wave_size: u32,
    /// LDS bytes available to a workgroup.
    pub lds_bytes: u32,
    /// hipRuntimeGetVersion; 0 for a target or if it is unknown.
    pub hip_runtime_version: i32,
    /// Processor without features: "gfx942".
    pub chip: String,
    /// As the runtime reports it: "gfx942:sramecc+:xnack-".
    pub arch: String,
    /// Marketing name, or empty.
    pub name: String,
    /// Where HIP comes from: a file name, "caller" or "none".
    pub runtime: String,
}

/// What a plan needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Support {
    /// Required alignment of the workspace in bytes.
    pub workspace_alignment: u32,
    /// Device memory that a run needs; may be 0.
    pub workspace_bytes: u64,
    /// Required alignment of Q, K, V and O in bytes.
    pub pointer_alignment: u32,
    /// Strides of Q, K, V and O must be multiples of this, in elements.
    pub stride_multiple: u32,
    /// Name of the kernel that a plan would use.
    pub kernel: String,
}

/// One kernel of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelInfo {
    /// Type of Q; for cache operations, of their input. None for a type that this crate does not know.
    pub dtype: Option<Dtype>,
    /// Elements of a row of Q and K; 0 for cache operations, which take any.
    pub head_dim_qk: usize,
    /// Elements of a row of V and O; 0 for cache operations.
    pub head_dim_v: usize,
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
    /// Operation, type, head dim, tiles, waves.
    pub name: String,
    /// "attention_forward", "kv_append", "merge_states", "kv_copy" or "append_step".
    pub operation: String,
    /// Features of the kernel, separated by commas.
    pub features: String,
    /// How P is rounded to the type of Q: "centred_cut" (to F16 and BF16, by at most 0.70 of its last place,
    /// see `docs/concepts/numerics.md`) or "nearest_even"; else "".
    pub p_rounding: String,
    /// Chips that it has machine code for, separated by commas.
    pub chips: String,
    /// More features, separated by commas: those since ABI 1.1.
    pub more_features: String,
}

/// Describes a [`Context`].
#[must_use]
pub struct ContextBuilder {
    kind: u32,
    ordinal: i32,
    target: Option<String>,
    pack: Option<Arc<[u8]>>,
    trace: Option<TraceFn>,
    ranges: bool,
    resolver: Option<ResolverFn>,
}

impl fmt::Debug for ContextBuilder {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let ContextBuilder { kind, ordinal, target, .. } = self;
        f.debug_struct("ContextBuilder")
            .field("kind", kind)
            .field("ordinal", ordinal)
            .field("target", target)
            .finish_non_exhaustive()
    }
}

impl ContextBuilder {
    fn new(kind: u32, ordinal: u16, target: Option<String>) -> Self {
        ContextBuilder {
            kind,
            ordinal: ordinal.into(),
            target,
            pack: None,
            trace: None,
            ranges: false,
            resolver: None,
        }
    }

    /// A kernel pack to use instead of the embedded one.
    pub fn pack(mut self, pack: impl Into<Arc<[u8]>>) -> Self {
        self.pack = Some(pack.into());
        self
    }

    /// Sets a function that sees every plan and run of the context, on the thread that makes it. It must not call the
    /// library; its panics do not leave it.
    pub fn trace(mut self, trace: impl Fn(&TraceRecord) + Send + Sync + 'static) -> Self {
        self.trace = Some(Box::new(trace));
        self
    }

    /// Encloses runs and cache operations of the context in ranges of roctx, which profilers show. Making the context
    /// fails if the process has no roctx and none can be opened.
    pub fn ranges(mut self) -> Self {
        self.ranges = true;
        self
    }

    /// Takes every HIP entry point from this function, which returns NULL for an unknown name. Only for a GPU.
    ///
    /// # Safety
    /// It must return functions with the types and the behaviour of HIP's functions of these names, valid as long as
    /// the context and its plans live.
    pub unsafe fn hip_resolver(
        mut self,
        resolver: impl Fn(&CStr) -> *mut c_void + Send + Sync + 'static,
    ) -> Self {
        self.resolver = Some(Box::new(resolver));
        self
    }

    /// Makes the context.
    pub fn build(self) -> Result<Context> {
        let target = self.target.map(CString::new).transpose().map_err(|error| {
            let at = error.nul_position();
            Error::invalid(
                "target",
                format!("target has a zero byte at {at}; it must be a name like \"gfx942:304\""),
            )
        })?;
        let mut desc = sys::sluice_context_desc::default();
        desc.kind = self.kind;
        desc.device_ordinal = self.ordinal;
        desc.target = target.as_ref().map_or(ptr::null(), |target| target.as_ptr());
        if let Some(pack) = &self.pack {
            desc.pack = pack.as_ptr().cast();
            desc.pack_bytes = pack.len() as u64;
        }
        let resolver = self.resolver.map(Arc::new);
        if let Some(resolver) = &resolver {
            desc.hip_resolver = Some(resolve);
            desc.hip_resolver_user = Arc::as_ptr(resolver) as *mut c_void;
        }
        let mut raw = ptr::null_mut();
        // SAFETY: everything that the description points to lives until the call returns, and pack and resolver as long
        // as the context.
        call(|error| unsafe { sys::sluice_context_create(&desc, &mut raw, error) })?;
        let trace = self.trace.map(Arc::new);
        let user = trace.as_ref().map(|trace| Arc::as_ptr(trace) as *mut c_void);
        let raw = NonNull::new(raw).expect("a context that was made");
        let shared = Shared { raw, _trace: trace, _resolver: resolver, _pack: self.pack };
        if let Some(user) = user {
            // SAFETY: the context is not shared yet, and the function lives as long as it.
            call(|error| unsafe { sys::sluice_set_trace(raw.as_ptr(), Some(trampoline), user, error) })?;
        }
        if self.ranges {
            // SAFETY: the context is not shared yet.
            call(|error| unsafe { sys::sluice_set_ranges(raw.as_ptr(), 1, error) })?;
        }
        Ok(Context { shared: Arc::new(shared) })
    }
}

impl Context {
    /// A GPU, through the HIP runtime of the process.
    pub fn hip(ordinal: u16) -> ContextBuilder {
        ContextBuilder::new(sys::SLUICE_DEVICE_HIP, ordinal, None)
    }

    /// The bundled gfx942 emulator: its first device.
    pub fn emulated() -> ContextBuilder {
        Context::emulated_at(0)
    }

    /// One of several devices of the emulator; its setting `devices` says how many it has.
    pub fn emulated_at(ordinal: u16) -> ContextBuilder {
        ContextBuilder::new(sys::SLUICE_DEVICE_EMULATED, ordinal, None)
    }

    /// A chip and its compute units by name, "gfx942:304". Touches no device.
    ///
    /// ```
    /// use sluice::{Attention, Context, Dtype, KvFormat};
    /// let context = Context::target("gfx942:304").build()?;
    /// let attention = Attention::new(Dtype::F16, 8, KvFormat::new(Dtype::F16, 2, 128));
    /// println!("{}", context.query_support(&attention)?.kernel);
    /// # Ok::<(), sluice::Error>(())
    /// ```
    pub fn target(name: impl Into<String>) -> ContextBuilder {
        ContextBuilder::new(sys::SLUICE_DEVICE_TARGET, 0, Some(name.into()))
    }

    pub(crate) fn raw(&self) -> *mut sys::sluice_context {
        self.shared.raw.as_ptr()
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// The device that the context is bound to.
    pub fn device(&self) -> DeviceInfo {
        let mut raw = sys::sluice_device_info::default();
        // SAFETY: a context and structs made by their init functions.
        call(|error| unsafe { sys::sluice_context_device(self.raw(), &mut raw, error) })
            .expect("a context can be described");
        DeviceInfo {
            kind: match raw.kind {
                sys::SLUICE_DEVICE_HIP => DeviceKind::Hip,
                sys::SLUICE_DEVICE_EMULATED => DeviceKind::Emulated,
                _ => DeviceKind::Target,
            },
            ordinal: usize::try_from(raw.ordinal).ok(),
            compute_units: raw.compute_units,
            wave_size: raw.wave_size,
            lds_bytes: raw.lds_bytes,
            hip_runtime_version: raw.hip_runtime_version,
            chip: text::from_array(&raw.chip),
            arch: text::from_array(&raw.arch),
            name: text::from_array(&raw.name),
            runtime: text::from_array(&raw.runtime),
        }
    }

    /// The HIP entry point of that name in the context's runtime, real or emulated; None if it does not exist, and for
    /// a target. The module [`hip`](crate::hip) wraps a few of them.
    pub fn hip_symbol(&self, name: &str) -> Option<NonNull<c_void>> {
        let name = CString::new(name).ok()?;
        // SAFETY: a context and a string.
        NonNull::new(unsafe { sys::sluice_context_hip_symbol(self.raw(), name.as_ptr()) })
    }

    /// Whether such a plan can be made, and what it needs. Touches no device.
    pub fn query_support(&self, attention: &Attention) -> Result<Support> {
        let mut raw = sys::sluice_support::default();
        // SAFETY: a context and structs made by their init functions.
        attention.with_raw(|attention| {
            call(|error| unsafe { sys::sluice_attention_support(self.raw(), attention, &mut raw, error) })
        })?;
        Ok(Support {
            workspace_alignment: raw.workspace_alignment,
            workspace_bytes: raw.workspace_bytes,
            pointer_alignment: raw.pointer_alignment,
            stride_multiple: raw.stride_multiple,
            kernel: text::from_array(&raw.kernel),
        })
    }

    /// The kernels of the context's chip, in the order of their names.
    pub fn list_kernels(&self) -> Result<Vec<KernelInfo>> {
        let mut count = 0;
        // SAFETY: a context and a number; info may be NULL.
        call(|error| unsafe { sys::sluice_list_kernels(self.raw(), 0, ptr::null_mut(), &mut count, error) })?;
        (0..count).map(|index| self.kernel(index)).collect()
    }

    fn kernel(&self, index: u32) -> Result<KernelInfo> {
        let mut raw = sys::sluice_kernel_info::default();
        // SAFETY: a context and a struct made by its init function; count may be NULL.
        call(|error| unsafe {
            sys::sluice_list_kernels(self.raw(), index, &mut raw, ptr::null_mut(), error)
        })?;
        Ok(KernelInfo {
            dtype: Dtype::from_raw(raw.dtype),
            head_dim_qk: raw.head_dim_qk as usize,
            head_dim_v: raw.head_dim_v as usize,
            tile_q: raw.tile_q,
            tile_kv: raw.tile_kv,
            waves: raw.waves,
            threads: raw.threads,
            lds_bytes: raw.lds_bytes,
            kernarg_bytes: raw.kernarg_bytes,
            name: text::from_array(&raw.name),
            operation: text::from_array(&raw.operation),
            features: text::from_array(&raw.features),
            p_rounding: text::from_array(&raw.p_rounding),
            chips: text::from_array(&raw.chips),
            more_features: text::from_array(&raw.more_features),
        })
    }

    /// Chooses the kernels and loads them. The plan keeps what it needs of the context.
    pub fn plan(&self, attention: &Attention) -> Result<Plan> {
        Plan::new(self, attention)
    }

    /// Loads the kernels of such a plan, so that plans made later load nothing.
    pub fn preload(&self, attention: &Attention) -> Result<()> {
        // SAFETY: a context and a struct whose pointers are valid during the call.
        attention.with_raw(|attention| {
            call(|error| unsafe { sys::sluice_attention_preload(self.raw(), attention, error) })
        })
    }

    /// Loads every kernel of the context.
    pub fn preload_all(&self) -> Result<()> {
        // SAFETY: a context; NULL means all.
        call(|error| unsafe { sys::sluice_attention_preload(self.raw(), ptr::null(), error) })
    }

    /// Enqueues an append of new rows to a paged cache and returns without waiting.
    ///
    /// # Safety
    /// Until the work has completed, everything that `append` and `launch` name must stay valid, no other code may
    /// write it, and no code may read the cache. Handles are of live objects, and the calling thread's current device
    /// is the context's.
    ///
    /// When the work executes, page tables in device memory must have all entries that starts and lengths need, as in
    /// the header's `sluice_append_args`, and no position may be negative or beyond the table of the rotation. The append
    /// stays within the tensors for all other slots, starts, lengths and page numbers: the library knows the number
    /// of pages of the caches, and skips rows whose place does not exist.
    pub unsafe fn append(&self, append: &Append, launch: &Launch) -> Result<()> {
        let launch = launch.to_raw()?;
        // SAFETY: structs filled in by their rules; the caller vouches for what they point to.
        append.with_raw(|append| {
            call(|error| unsafe { sys::sluice_cache_append(self.raw(), append, &launch, error) })
        })
    }

    /// Enqueues a merge of results over splits of the keys and returns without waiting.
    ///
    /// # Safety
    /// Until the work has completed, everything that `merge` and `launch` name must stay valid, no other code may write
    /// it, and no code may read what it writes. Handles are of live objects, and the calling thread's current device is
    /// the context's.
    pub unsafe fn merge(&self, merge: &Merge, launch: &Launch) -> Result<()> {
        let launch = launch.to_raw()?;
        // SAFETY: structs filled in by their rules; the caller vouches for what they point to.
        merge.with_raw(|merge| {
            call(|error| unsafe { sys::sluice_attention_merge(self.raw(), merge, &launch, error) })
        })
    }

    /// Enqueues a copy of pages and returns without waiting.
    ///
    /// # Safety
    /// As for [`merge`](Self::merge). Source and target may be the same memory.
    pub unsafe fn copy_pages(&self, copy: &PageCopy, launch: &Launch) -> Result<()> {
        let launch = launch.to_raw()?;
        // SAFETY: structs filled in by their rules; the caller vouches for what they point to.
        copy.with_raw(|copy| {
            call(|error| unsafe { sys::sluice_cache_copy(self.raw(), copy, &launch, error) })
        })
    }

    /// Enqueues a gather of keys and returns without waiting.
    ///
    /// # Safety
    /// As for [`merge`](Self::merge). Page tables have all entries that lengths need.
    pub unsafe fn gather(&self, gather: &Gather, launch: &Launch) -> Result<()> {
        let launch = launch.to_raw()?;
        // SAFETY: structs filled in by their rules; the caller vouches for what they point to.
        gather.with_raw(|gather| {
            call(|error| unsafe { sys::sluice_cache_gather(self.raw(), gather, &launch, error) })
        })
    }
}
