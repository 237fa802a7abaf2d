//! Plans: classes of calls with their kernels chosen and loaded.

use crate::attention::Attention;
use crate::call::Call;
use crate::context::{Context, Shared};
use crate::error::{call, Result};
use crate::launch::Launch;
use crate::tensor::Device;
use crate::text;
use sluice_sys as sys;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// A class of calls with its kernels chosen and loaded.
#[derive(Debug)]
pub struct Plan {
    raw: NonNull<sys::sluice_plan>,
    attention: Attention,
    // Dropped after the plan, because a pack and a trace function must outlive it.
    _context: Arc<Shared>,
}

// SAFETY: the header: plans are immutable once made, and may be shared by any number of threads.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: made by sluice_attention_plan and destroyed only here. The callers of `run` guarantee that its work has
        // completed.
        unsafe { sys::sluice_plan_destroy(self.raw.as_ptr()) }
    }
}

/// What the runs of a plan have done, refused ones included only in [`refused`](Self::refused). Calls that this crate
/// refuses itself do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Runs that succeeded. A captured run counts once, when captured.
    pub runs: u64,
    /// Runs that the library refused, and failures of HIP.
    pub refused: u64,
    /// Attention kernels that were enqueued: the sum of the next two.
    pub launches: u64,
    /// ... of the kernel that [`PlanInfo::kernel`] names.
    pub main_launches: u64,
    /// ... of other kernels of the plan: for short sequences, or for prefixes.
    pub other_launches: u64,
    /// Merges of split keys, or of prefixes and own keys, that were enqueued.
    pub merge_launches: u64,
}

/// Description of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanInfo {
    /// Rows per workgroup, over all heads of a group.
    pub tile_q: u32,
    /// Keys per loop iteration.
    pub tile_kv: u32,
    /// Waves per workgroup.
    pub waves: u32,
    /// LDS per workgroup.
    pub lds_bytes: u32,
    /// Required alignment of the workspace in bytes.
    pub workspace_alignment: u32,
    /// Device memory that a run needs; may be 0.
    pub workspace_bytes: u64,
    /// Workgroups at the bounds; 0 if a bound is missing.
    pub max_grid: [u32; 3],
    /// Lanes per workgroup.
    pub block: [u32; 3],
    /// Name of the kernel.
    pub kernel: String,
    /// Why this kernel, in a sentence: its estimated cost and that of the next best.
    pub reason: String,
}

impl Plan {
    pub(crate) fn new(context: &Context, attention: &Attention) -> Result<Plan> {
        let mut raw = ptr::null_mut();
        // SAFETY: a context and a struct whose pointers are valid during the call.
        attention.with_raw(|attention| {
            call(|error| unsafe { sys::sluice_attention_plan(context.raw(), attention, &mut raw, error) })
        })?;
        let raw = NonNull::new(raw).expect("a plan that was made");
        Ok(Plan { raw, attention: *attention, _context: context.shared() })
    }

    /// What the plan was made for.
    pub fn attention(&self) -> &Attention {
        &self.attention
    }

    /// Describes the plan.
    pub fn info(&self) -> PlanInfo {
        let mut raw = sys::sluice_plan_info::default();
        // SAFETY: a plan and structs made by their init functions.
        call(|error| unsafe { sys::sluice_plan_describe(self.raw.as_ptr(), &mut raw, error) })
            .expect("a plan can be described");
        PlanInfo {
            tile_q: raw.tile_q,
            tile_kv: raw.tile_kv,
            waves: raw.waves,
            lds_bytes: raw.lds_bytes,
            workspace_alignment: raw.workspace_alignment,
            workspace_bytes: raw.workspace_bytes,
            max_grid: raw.max_grid,
            block: raw.block,
            kernel: text::from_array(&raw.kernel),
            reason: text::from_array(&raw.reason),
        }
    }

    /// What the plan's runs have done so far.
    pub fn counters(&self) -> Counters {
        let mut raw = sys::sluice_counters::default();
        // SAFETY: a plan and structs made by their init functions.
        call(|error| unsafe { sys::sluice_plan_counters(self.raw.as_ptr(), &mut raw, error) })
            .expect("a plan has counters");
        Counters {
            runs: raw.runs,
            refused: raw.refused,
            launches: raw.launches,
            main_launches: raw.main_launches,
            other_launches: raw.other_launches,
            merge_launches: raw.merge_launches,
        }
    }

    /// Enqueues one call on the launch's stream and returns without waiting. Types, extents and counts of everything in
    /// `args` are checked against the plan's [`Attention`] first.
    ///
    /// # Safety
    /// Until the work has completed, the plan and everything that `args` and `launch` name must stay valid, no other
    /// code may write it, and no code may read `o` and `lse`; no other run uses the same workspace meanwhile. Handles
    /// are of live objects, and the calling thread's current device is the context's.
    ///
    /// When the work executes, page tables in device memory must have all entries that lengths and starts need, as in
    /// the header's `sluice_pages`. For all other lengths, starts and page tables, the run stays within `q`, `k`,
    /// `v`, `o` and `lse`: the library knows their numbers of rows and pages, limits starts to them, and reads a page
    /// that does not exist as zeros. If contents break the rules, only the results are wrong.
    pub unsafe fn run(&self, args: &Call<Device>, launch: &Launch) -> Result<()> {
        let launch = launch.to_raw()?;
        // SAFETY: structs filled in by their rules; the caller vouches for what they point to.
        args.with_raw(&self.attention, |args| {
            call(|error| unsafe { sys::sluice_attention_run(self.raw.as_ptr(), args, &launch, error) })
        })
    }
}
