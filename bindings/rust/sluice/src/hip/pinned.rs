//! Host memory that devices can access.

use super::memory::bytes_for;
use super::Hip;
use crate::element::Plain;
use crate::error::Result;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr;

/// Pinned host memory, so that copies between it and a device need not wait; derefs to a slice of its elements. Freed
/// when it is dropped.
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

// SAFETY: as Box<[T]> of elements that are Send and Sync; any thread may free it.
unsafe impl<T: Plain> Send for Pinned<T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for Pinned<T> {}

impl<T: Plain> Pinned<T> {
    pub(super) fn zeroed(hip: &Hip, len: usize) -> Result<Pinned<T>> {
        let bytes = bytes_for::<T>(len)?;
        let mut data = ptr::null_mut();
        // SAFETY: a pointer to write to, and no flags.
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
        // SAFETY: it holds that many elements, for which any bytes are valid; HIP aligns them to pages.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T: Plain> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

impl<T: Plain> Drop for Pinned<T> {
    fn drop(&mut self) {
        // SAFETY: allocated by hipHostMalloc and freed only here. The code that enqueued work guarantees that it no
        // longer uses the memory.
        unsafe { (self.hip.runtime.functions.host_free)(self.data.cast()) };
    }
}
