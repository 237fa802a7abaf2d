//! Memory of the host that devices reach.

use super::memory::bytes_for;
use super::Hip;
use crate::element::Plain;
use crate::error::Result;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr;

/// Memory of the host that is pinned, so that copies with a device need not wait; a slice of its elements. Freed when it
/// is dropped.
pub struct Pinned<T: Plain> {
    hip: Hip,
    data: *mut T,
    len: usize,
}

impl<T: Plain> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Pinned").field("data", &self.data).field("len", &self.len).finish_non_exhaustive()
    }
}

// SAFETY: as Box<[T]> is, of elements that are Send and Sync; any thread may free it.
unsafe impl<T: Plain> Send for Pinned<T> {}
// SAFETY: likewise.
unsafe impl<T: Plain> Sync for Pinned<T> {}

impl<T: Plain> Pinned<T> {
    pub(super) fn zeroed(hip: &Hip, len: usize) -> Result<Pinned<T>> {
        let bytes = bytes_for::<T>(len)?;
        let mut data = ptr::null_mut();
        // SAFETY: a pointer to be written, and no flags.
        let code = unsafe { (hip.runtime.functions.host_malloc)(&mut data, bytes, 0) };
        hip.runtime.check("hipHostMalloc", code)?;
        // SAFETY: that many bytes were allocated.
        unsafe { ptr::write_bytes(data.cast::<u8>(), 0, bytes) };
        Ok(Pinned { hip: hip.clone(), data: data.cast(), len })
    }
}

impl<T: Plain> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: that many elements, of which any bytes are one; HIP aligns them to pages.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T: Plain> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: likewise.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

impl<T: Plain> Drop for Pinned<T> {
    fn drop(&mut self) {
        // SAFETY: allocated by hipHostMalloc and freed here only. That no work uses it, who enqueued it has promised.
        unsafe { (self.hip.runtime.functions.host_free)(self.data.cast()) };
    }
}
