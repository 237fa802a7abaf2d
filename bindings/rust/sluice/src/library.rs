//! Version, build information and the log; none of these needs a device.

use crate::error::{call, Result};
use crate::text;
use sluice_sys as sys;
use std::ffi::CStr;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

/// The release, e.g. "1.0.0".
pub fn version() -> &'static str {
    // SAFETY: a string that is never freed.
    unsafe { text::from_static(sys::sluice_version()) }
}

/// Generation of the ABI, and the count of additions within it.
pub fn abi_version() -> (u32, u32) {
    // SAFETY: takes and touches nothing.
    let version = unsafe { sys::sluice_abi_version() };
    (version >> 16, version & 0xffff)
}

/// Where the library and its kernels come from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildInfo {
    /// Kernels in the embedded pack.
    pub kernel_count: u32,
    /// As [`version`].
    pub version: String,
    /// Source revision, with "-dirty" if it had local changes; "unknown" outside git.
    pub git_commit: String,
    /// The C++ compiler that built the library.
    pub compiler: String,
    /// The LLVM that generated the kernels.
    pub llvm_version: String,
    /// Checksum of the pack's manifest in hexadecimal: equal ids, equal kernels.
    pub pack_id: String,
    /// Chips that the pack has kernels for, separated by commas.
    pub chips: String,
}

/// Where the library and its kernels come from.
pub fn build_info() -> Result<BuildInfo> {
    let mut raw = sys::sluice_build::default();
    // SAFETY: both pointers are to structs made by their init functions.
    call(|error| unsafe { sys::sluice_build_info(&mut raw, error) })?;
    Ok(BuildInfo {
        kernel_count: raw.kernel_count,
        version: text::from_array(&raw.version),
        git_commit: text::from_array(&raw.git_commit),
        compiler: text::from_array(&raw.compiler),
        llvm_version: text::from_array(&raw.llvm_version),
        pack_id: text::from_array(&raw.pack_id),
        chips: text::from_array(&raw.chips),
    })
}

/// Severity of a log message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum LogLevel {
    /// Something failed in a way that a status cannot say.
    Error = sys::SLUICE_LOG_ERROR,
    /// Worth knowing.
    Warning = sys::SLUICE_LOG_WARNING,
    /// Devices found and kernels chosen when contexts and plans are made.
    Info = sys::SLUICE_LOG_INFO,
    /// Every step of finding and choosing.
    Debug = sys::SLUICE_LOG_DEBUG,
}

type LogFn = Box<dyn Fn(LogLevel, &str) + Send + Sync>;

/// The function that the library calls, at a stable address. Locked while it is exchanged, so that the library and this
/// static hold the same one.
static LOG: Mutex<Option<Arc<LogFn>>> = Mutex::new(None);

/// Sets the process's log function and the most verbose level that it gets. It may be called on any thread that calls
/// the library and must not call the library itself; its panics do not leave it.
pub fn set_log(max_level: LogLevel, log: impl Fn(LogLevel, &str) + Send + Sync + 'static) {
    let function: Arc<LogFn> = Arc::new(Box::new(log));
    let user = Arc::as_ptr(&function) as *mut c_void;
    let mut kept = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: `user` has the type that the trampoline expects, and lives until another call replaces it; once that call
    // returns, the library no longer uses it.
    unsafe { sys::sluice_set_log(Some(log_trampoline), user, max_level as u32) };
    let previous = kept.replace(function);
    drop(kept);
    drop(previous);
}

/// Switches the log off, which is the initial state, and drops the function.
pub fn clear_log() {
    let mut kept = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: neither a function nor data for it.
    unsafe { sys::sluice_set_log(None, ptr::null_mut(), 0) };
    let previous = kept.take();
    drop(kept);
    drop(previous);
}

/// # Safety
/// Called as by the library: with a string, and the `user` of [`set_log`].
unsafe extern "C" fn log_trampoline(level: u32, message: *const c_char, user: *mut c_void) {
    contain(|| {
        // SAFETY: by this function's contract.
        let (log, message) = unsafe { (&*(user as *const LogFn), CStr::from_ptr(message)) };
        let level = match level {
            sys::SLUICE_LOG_ERROR => LogLevel::Error,
            sys::SLUICE_LOG_WARNING => LogLevel::Warning,
            sys::SLUICE_LOG_INFO => LogLevel::Info,
            _ => LogLevel::Debug,
        };
        log(level, &message.to_string_lossy());
    });
}

/// Calls a function whose panic must not reach C; None if it panicked. The panic hook has already reported it; the
/// payload is leaked, because dropping it could panic again.
pub(crate) fn contain<T>(function: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(function)).map_err(std::mem::forget).ok()
}
