//! Problems with their kernel chosen and loaded.

use crate::args::Args;
use crate::context::{Context, Shared};
use crate::error::{call, init, Result};
use crate::launch::Launch;
use crate::problem::Problem;
use crate::tensor::Device;
use crate::text;
use sluice_sys as sys;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// A problem with its kernel chosen and loaded.
#[derive(Debug)]
pub struct Plan {
    raw: NonNull<sys::sluice_plan>,
    problem: Problem,
    // Dropped behind the plan: a pack and a trace function must be there as long as it is.
    _context: Arc<Shared>,
}

// SAFETY: the header: plans are immutable once made, and may be shared by any number of threads.
unsafe impl Send for Plan {}
// SAFETY: likewise.
unsafe impl Sync for Plan {}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: made by sluice_plan_create and destroyed here only. That its work has completed, the callers of
        // `run` have promised.
        unsafe { sys::sluice_plan_destroy(self.raw.as_ptr()) }
    }
}

/// What a plan does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanInfo {
    /// Rows per workgroup, those of all heads of a group.
    pub tile_q: u32,
    /// Keys per loop iteration.
    pub tile_kv: u32,
    /// Waves per workgroup.
    pub waves: u32,
    /// LDS per workgroup.
    pub lds_bytes: u32,
    /// Bytes that the workspace must be aligned to.
    pub workspace_alignment: u32,
    /// Device memory that a run needs; 0 is none.
    pub workspace_bytes: u64,
    /// Workgroups at the problem's bounds; 0 where a bound is missing.
    pub max_grid: [u32; 3],
    /// Lanes per workgroup.
    pub block: [u32; 3],
    /// Name of the kernel.
    pub kernel: String,
    /// Why this kernel, in a sentence: by estimate, its cost and the next best.
    pub reason: String,
}

impl Plan {
    pub(crate) fn new(context: &Context, problem: &Problem) -> Result<Plan> {
        let mut raw = ptr::null_mut();
        // SAFETY: a context and a struct made by its init function.
        call(|error| unsafe { sys::sluice_plan_create(context.raw(), problem.raw(), &mut raw, error) })?;
        let raw = NonNull::new(raw).expect("a plan that was made");
        Ok(Plan { raw, problem: *problem, _context: context.shared() })
    }

    /// What the plan was made for.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What the plan does.
    pub fn info(&self) -> PlanInfo {
        let mut raw: sys::sluice_plan_info = init(sys::sluice_plan_info_init);
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
            kernel: text::of_array(&raw.kernel),
            reason: text::of_array(&raw.reason),
        }
    }

    /// Enqueues one call on the launch's stream and returns without waiting. Types, extents and counts of all that
    /// `args` names are checked against the problem first.
    ///
    /// # Safety
    /// Until the work has completed, the plan and what `args` and `launch` name must stay, nobody else may write it,
    /// and nobody read `o` and `lse`; no other run has the same workspace at once. Handles are of live objects, and
    /// the calling thread's current device is the context's.
    ///
    /// When the work executes, page tables in device memory have all entries that lengths and starts ask for, as in the
    /// header's `sluice_args`. Whatever else lengths, starts and page tables hold, the run stays within `q`, `k`, `v`, `o`
    /// and `lse`: the library gets the rows and pages that these have, limits starts to them, and takes a page that is
    /// not there for zeros. If contents break the rules, only results are wrong.
    pub unsafe fn run(&self, args: &Args<Device>, launch: &Launch) -> Result<()> {
        let (args, launch) = (args.to_raw(&self.problem)?, launch.to_raw()?);
        // SAFETY: structs that were filled in by their rules; for what they point to, as the caller says.
        call(|error| unsafe { sys::sluice_run(self.raw.as_ptr(), &args, &launch, error) })
    }
}
