//! Attention for AMD Instinct GPUs (gfx942), or for the emulator that runs the same machine code without one: a safe
//! interface to `libsluice.so`. The headers in `include/sluice/` have the numerical contract and every rule of a
//! call; this documentation covers only the Rust side.
//!
//! A [`Context`] is a device and the kernels for it. It makes a [`Plan`] from an [`Attention`], and the plan
//! runs a [`Call`]. `bindings/rust/README.md` has a complete program.
//!
//! # Ownership
//!
//! A [`Context`] is reference-counted, and a [`Plan`], a [`hip::Buffer`] or a [`hip::Stream`] holds a reference too:
//! they can be dropped in any order, and the last one releases what they share. Lifetimes could express this too, but
//! an engine keeps contexts, plans and buffers in one struct, and a struct cannot borrow from itself.
//!
//! The data of a call is borrowed instead: views of memory ([`Tensor`], [`TensorMut`], [`Array`], [`Workspace`])
//! cannot outlive it.
//!
//! ```compile_fail,E0597
//! use sluice::{Host, Layout, Tensor, F16};
//! let view: Tensor<Host> = {
//!     let rows = vec![F16::default(); 8];
//!     Tensor::new(&rows, Layout::rows([1, 1, 8]))? // `rows` does not live long enough
//! };
//! let _ = view.layout();
//! # Ok::<(), sluice::Error>(())
//! ```
//!
//! A plan cannot be used after it is dropped:
//!
//! ```compile_fail,E0382
//! # fn f(plan: sluice::Plan) {
//! drop(plan);
//! plan.info(); // borrow of moved value
//! # }
//! ```
//!
//! and a buffer cannot be dropped while a view of it is in use:
//!
//! ```compile_fail,E0505
//! # fn f(mut buffer: sluice::hip::Buffer<sluice::F16>) -> Result<(), sluice::Error> {
//! let view = buffer.tensor(sluice::Layout::rows([1, 1, 8]))?;
//! drop(buffer); // cannot move out of `buffer`
//! let _ = view.layout();
//! # Ok(()) }
//! ```
//!
//! # Threads
//!
//! Contexts and plans are immutable once made and any number of threads may use them at once, so they are `Send`
//! and `Sync`. The one function that would break this, `sluice_set_trace`, is only called while a context is made:
//! [`ContextBuilder::trace`]. Concurrent runs of one plan need different workspaces, so a [`Workspace`] may move to
//! another thread, but two threads cannot use it:
//!
//! ```compile_fail,E0277
//! # fn f(plan: &sluice::Plan, args: &sluice::Call<sluice::Device>, workspace: sluice::Workspace) {
//! std::thread::scope(|scope| {
//!     for _ in 0..2 {
//!         scope.spawn(|| {
//!             let launch = sluice::Launch { workspace: Some(&workspace), ..Default::default() };
//!             unsafe { plan.run(args, &launch) } // `Cell<()>` cannot be shared between threads safely
//!         });
//!     }
//! });
//! # }
//! ```
//!
//! # What is `unsafe`
//!
//! Functions that enqueue work on device memory ([`Plan::run`], [`Context::append`] and the other operations on caches,
//! [`hip::GraphExec::launch`], and the copies of [`hip::Slice`] and [`hip::SliceMut`] whose names end in `async`) or
//! make a view of it from a bare pointer: only the caller knows what the device does with the memory, and when.
//! Everything else is safe, including [`reference()`], [`reference_append`], [`reference_copy`] and [`reference_gather`].
#![deny(missing_debug_implementations, missing_docs, unsafe_op_in_unsafe_fn)]

#[cfg(test)]
mod arrival_tests;
mod attention;
mod cache_ops;
mod call;
mod contents;
mod context;
mod element;
mod error;
mod format;
pub mod hip;
mod kv;
mod launch;
mod layout;
mod library;
mod merge;
mod plan;
mod tensor;
mod text;
mod trace;

pub use attention::{Attention, Bounds, Causal, Lse, Mask, MaskAlignment, MaskBits, Scores};
pub use cache_ops::{
    reference_append, reference_copy, reference_gather, Append, Gather, Norm, Numbers, PageCopy, Place,
    Queries, QueryRows, RotaryStyle, Rotation,
};
pub use call::{reference, Call, MaskArgs, Prefixes, ScoresArgs};
pub use context::{Context, ContextBuilder, DeviceInfo, DeviceKind, KernelInfo, Support};
pub use element::{
    Bf16, BlockQ4_0, BlockQ8_0, Dtype, E4m3Fn, E4m3Fnuz, E5m2, E5m2Fnuz, Element, Plain, U4Pair, F16,
};
pub use error::{Code, Error, Result};
pub use format::{Format, KvFormat, PageFormat, PageTableKind, ScaleKind, PACK_ALL};
pub use kv::{Keys, Kv, KvMut, PageNumbers, PagePlace, Pages, Rows, Scales};
pub use launch::{Dependency, Launch, RawEvent, RawStream, Workspace};
pub use layout::Layout;
pub use library::{abi_version, build_info, clear_log, set_log, version, BuildInfo, LogLevel};
pub use merge::Merge;
pub use plan::{Counters, Plan, PlanInfo};
pub use tensor::{AnyTensor, Array, Device, Host, Memory, Tensor, TensorMut};
pub use trace::{TraceEvent, TraceRecord};
