//! Device memory, and ranges of it.

use super::{Hip, Stream};
use crate::element::{elements_of, Element, Plain};
use crate::error::{Error, Result};
use crate::launch::Workspace;
use crate::layout::Layout;
use crate::tensor::{Array, Device, Tensor, TensorMut};
use std::fmt;
use std::marker::PhantomData;
use std::mem::size_of;
use std::ops::{Bound, Range, RangeBounds};
use std::os::raw::{c_int, c_void};
use std::ptr;

/// Values of hipMemcpyKind.
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;
const DEVICE_TO_DEVICE: c_int = 3;

/// Bytes to allocate for `len` elements: at least one, so that memory without elements has an address too.
pub(super) fn bytes_for<T>(len: usize) -> Result<usize> {
    len.checked_mul(size_of::<T>()).map(|bytes| bytes.max(1)).ok_or_else(|| {
        let limit = usize::MAX / size_of::<T>();
        Error::invalid("len", format!("len is {len}; a buffer of this type has at most {limit} elements"))
    })
}

/// Device memory for elements of one type, freed when it is dropped.
pub struct Buffer<T: Plain> {
    hip: Hip,
    data: *mut T,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: Plain> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Buffer").field("data", &self.data).field("len", &self.len).finish_non_exhaustive()
    }
}

// SAFETY: an address on the device, and HIP functions, which any thread may call. Elements are Send and Sync.
unsafe impl<T: Plain> Send for Buffer<T> {}
// SAFETY: as for Send; shared buffers are only read.
unsafe impl<T: Plain> Sync for Buffer<T> {}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: allocated by hipMalloc and freed only here. The code that enqueued work guarantees that it no longer
        // uses the memory.
        unsafe { (self.hip.runtime.functions.free)(self.data.cast()) };
    }
}

impl<T: Plain> Buffer<T> {
    pub(super) fn zeroed(hip: &Hip, len: usize) -> Result<Buffer<T>> {
        let bytes = bytes_for::<T>(len)?;
        let mut data = ptr::null_mut();
        let functions = &hip.runtime.functions;
        // SAFETY: a pointer to write to.
        hip.runtime.check("hipMalloc", unsafe { (functions.malloc)(&mut data, bytes) })?;
        let buffer = Buffer { hip: hip.clone(), data: data.cast(), len, elements: PhantomData };
        // SAFETY: that many bytes were allocated.
        hip.runtime.check("hipMemset", unsafe { (functions.memset)(data, 0, bytes) })?;
        Ok(buffer)
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address on the device.
    pub fn as_ptr(&self) -> *mut T {
        self.data
    }

    fn whole(&self) -> Slice<'_, T> {
        Slice { hip: &self.hip, data: self.data, len: self.len, memory: PhantomData }
    }

    fn whole_mut(&mut self) -> SliceMut<'_, T> {
        SliceMut { part: Slice { hip: &self.hip, data: self.data, len: self.len, memory: PhantomData } }
    }

    /// The elements `first..end`, for reading. A range that exceeds the buffer is refused.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T>> {
        let range = within(range, self.len)?;
        Ok(self.whole().part(range))
    }

    /// The elements of a range, for writing. [`SliceMut::split_at`] divides it.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<SliceMut<'_, T>> {
        let range = within(range, self.len)?;
        Ok(SliceMut { part: self.whole().part(range) })
    }

    /// Copies `elements` to the beginning, and waits.
    pub fn upload(&mut self, elements: &[T]) -> Result<()> {
        self.whole_mut().upload(elements)
    }

    /// Copies the first elements to `elements`, and waits.
    pub fn download(&self, elements: &mut [T]) -> Result<()> {
        self.whole().download(elements)
    }

    /// The elements as an array.
    pub fn array(&self) -> Array<'_, T, Device> {
        self.whole().array()
    }
}

impl<T: Element> Buffer<T> {
    /// A view for reading, whose first element is the buffer's.
    pub fn tensor(&self, layout: Layout) -> Result<Tensor<'_, Device>> {
        self.whole().tensor(layout)
    }

    /// A view for writing, whose first element is the buffer's.
    pub fn tensor_mut(&mut self, layout: Layout) -> Result<TensorMut<'_, Device>> {
        self.whole_mut().into_tensor(layout)
    }
}

impl Buffer<u8> {
    /// The whole buffer as a workspace.
    pub fn workspace(&mut self) -> Workspace<'_> {
        self.whole_mut().into_workspace()
    }
}

/// The elements of `len` that a range names.
fn within(range: impl RangeBounds<usize>, len: usize) -> Result<Range<usize>> {
    let first = match range.start_bound() {
        Bound::Included(first) => Some(*first),
        Bound::Excluded(before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.checked_add(1),
        Bound::Excluded(end) => Some(*end),
        Bound::Unbounded => Some(len),
    };
    match (first, end) {
        (Some(first), Some(end)) if first <= end && end <= len => Ok(first..end),
        (first, end) => {
            let say =
                |bound: Option<usize>| bound.map_or("more than usize can hold".into(), |b| b.to_string());
            let message = format!(
                "range goes from {} to {}; it must not end before it begins, nor after the {len} elements of the \
                 buffer",
                say(first),
                say(end)
            );
            Err(Error::invalid("range", message))
        }
    }
}

/// A range of a buffer's elements, for reading. It cannot outlive the buffer.
pub struct Slice<'a, T: Plain> {
    hip: &'a Hip,
    data: *mut T,
    len: usize,
    memory: PhantomData<&'a T>,
}

impl<T: Plain> Clone for Slice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Plain> Copy for Slice<'_, T> {}

impl<T: Plain> fmt::Debug for Slice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Slice").field("data", &self.data).field("len", &self.len).finish_non_exhaustive()
    }
}

// SAFETY: as for Buffer.
unsafe impl<T: Plain> Send for Slice<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for Slice<'_, T> {}

impl<'a, T: Plain> Slice<'a, T> {
    /// `range` is within this slice.
    fn part(self, range: Range<usize>) -> Slice<'a, T> {
        // SAFETY: the address is within the allocation, or just past its end.
        Slice { data: unsafe { self.data.add(range.start) }, len: range.len(), ..self }
    }

    fn bytes_of(&self, len: usize) -> Result<usize> {
        if len > self.len {
            return Err(Error::invalid("len", format!("len is {len}; the buffer has {} elements", self.len)));
        }
        Ok(len * size_of::<T>())
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address on the device.
    pub fn as_ptr(&self) -> *const T {
        self.data
    }

    /// Copies the first elements to `elements`, and waits.
    pub fn download(&self, elements: &mut [T]) -> Result<()> {
        let bytes = self.bytes_of(elements.len())?;
        let runtime = &self.hip.runtime;
        // SAFETY: both sides have that many bytes, and any bytes are elements.
        let code = unsafe {
            (runtime.functions.memcpy)(elements.as_mut_ptr().cast(), self.data.cast(), bytes, DEVICE_TO_HOST)
        };
        runtime.check("hipMemcpy", code)
    }

    /// Enqueues a copy of the first elements to `elements`, after the work on the stream.
    ///
    /// # Safety
    /// Until the copy is done, `elements` and the buffer must stay valid, no code may read or write `elements`, and no
    /// code may write these elements of the buffer; if the stream is capturing, this applies to every launch of the
    /// graph.
    pub unsafe fn download_async(&self, elements: &mut [T], stream: &Stream) -> Result<()> {
        let bytes = self.bytes_of(elements.len())?;
        // SAFETY: both sides have that many bytes; the caller guarantees the rest.
        unsafe { self.enqueue(elements.as_mut_ptr().cast(), self.data.cast(), bytes, DEVICE_TO_HOST, stream) }
    }

    /// # Safety
    /// Both sides have that many bytes until the copy is done.
    unsafe fn enqueue(
        &self,
        to: *mut c_void,
        from: *const c_void,
        bytes: usize,
        kind: c_int,
        stream: &Stream,
    ) -> Result<()> {
        self.hip.check_same("stream", stream.hip())?;
        let runtime = &self.hip.runtime;
        // SAFETY: by this function's contract; the stream is a live one of this runtime.
        let code = unsafe { (runtime.functions.memcpy_async)(to, from, bytes, kind, stream.raw().0) };
        runtime.check("hipMemcpyAsync", code)
    }

    /// The elements as an array.
    pub fn array(&self) -> Array<'a, T, Device> {
        // SAFETY: it has that many elements.
        unsafe { Array::from_raw(self.data, self.len) }
    }
}

impl<'a, T: Element> Slice<'a, T> {
    /// A view for reading, whose first element is the slice's.
    pub fn tensor(&self, layout: Layout) -> Result<Tensor<'a, Device>> {
        layout.check_fits(elements_of::<T>(self.len))?;
        // SAFETY: the layout fits.
        unsafe { Tensor::from_raw(self.data, layout) }
    }
}

/// A range of a buffer's elements, for writing. It cannot outlive the buffer, and no other view has these elements
/// meanwhile:
///
/// ```compile_fail,E0499
/// # fn f(mut buffer: sluice::hip::Buffer<sluice::F16>) -> Result<(), sluice::Error> {
/// let mut first = buffer.slice_mut(..8)?;
/// let mut second = buffer.slice_mut(4..)?; // cannot borrow `buffer` as mutable more than once at a time
/// first.upload(&[])?;
/// # second.upload(&[]) }
/// ```
#[derive(Debug)]
pub struct SliceMut<'a, T: Plain> {
    part: Slice<'a, T>,
}

impl<'a, T: Plain> SliceMut<'a, T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.part.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.part.len == 0
    }

    /// The address on the device.
    pub fn as_ptr(&self) -> *mut T {
        self.part.data
    }

    /// The same elements, for reading.
    pub fn as_slice(&self) -> Slice<'_, T> {
        self.part
    }

    /// The first `middle` elements, and the others, so that both can be written.
    pub fn split_at(self, middle: usize) -> Result<(SliceMut<'a, T>, SliceMut<'a, T>)> {
        if middle > self.part.len {
            let message = format!("middle is {middle}; the slice has {} elements", self.part.len);
            return Err(Error::invalid("middle", message));
        }
        let [first, second] = [0..middle, middle..self.part.len].map(|range| self.part.part(range));
        Ok((SliceMut { part: first }, SliceMut { part: second }))
    }

    /// Copies `elements` to the beginning, and waits.
    pub fn upload(&mut self, elements: &[T]) -> Result<()> {
        let bytes = self.part.bytes_of(elements.len())?;
        let runtime = &self.part.hip.runtime;
        // SAFETY: both sides have that many bytes.
        let code = unsafe {
            (runtime.functions.memcpy)(self.part.data.cast(), elements.as_ptr().cast(), bytes, HOST_TO_DEVICE)
        };
        runtime.check("hipMemcpy", code)
    }

    /// Enqueues a copy of `elements` to the beginning, after the work on the stream.
    ///
    /// # Safety
    /// Until the copy is done, `elements` and the buffer must stay valid, no code may write `elements`, and no other
    /// code may read or write these elements of the buffer; if the stream is capturing, this applies to every launch of
    /// the graph.
    pub unsafe fn upload_async(&mut self, elements: &[T], stream: &Stream) -> Result<()> {
        let (to, bytes) = (self.part.data.cast(), self.part.bytes_of(elements.len())?);
        // SAFETY: both sides have that many bytes; the caller guarantees the rest.
        unsafe { self.part.enqueue(to, elements.as_ptr().cast(), bytes, HOST_TO_DEVICE, stream) }
    }

    /// Enqueues a copy of all of `from` to the beginning, after the work on the stream.
    ///
    /// # Safety
    /// Until the copy is done, both buffers must stay valid, no code may write the elements of `from`, and no other
    /// code may read or write these; if the stream is capturing, this applies to every launch of the graph.
    pub unsafe fn copy_async(&mut self, from: Slice<'_, T>, stream: &Stream) -> Result<()> {
        self.part.hip.check_same("from", from.hip)?;
        let (to, bytes) = (self.part.data.cast(), self.part.bytes_of(from.len)?);
        // SAFETY: both sides have that many bytes; the caller guarantees the rest.
        unsafe { self.part.enqueue(to, from.data.cast(), bytes, DEVICE_TO_DEVICE, stream) }
    }
}

impl<'a, T: Element> SliceMut<'a, T> {
    /// A view for writing, whose first element is the slice's.
    pub fn into_tensor(self, layout: Layout) -> Result<TensorMut<'a, Device>> {
        layout.check_fits(elements_of::<T>(self.part.len))?;
        // SAFETY: the layout fits.
        unsafe { TensorMut::from_raw(self.part.data, layout) }
    }
}

impl<'a> SliceMut<'a, u8> {
    /// All of it as a workspace.
    pub fn into_workspace(self) -> Workspace<'a> {
        // SAFETY: it has that many bytes.
        unsafe { Workspace::from_raw(self.part.data.cast(), self.part.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stay_within() {
        use Bound::{Excluded, Included, Unbounded};
        assert_eq!(within(.., 8), Ok(0..8));
        assert_eq!(within(3.., 8), Ok(3..8));
        assert_eq!(within(..=7, 8), Ok(0..8));
        assert_eq!(within((Excluded(2), Included(5)), 8), Ok(3..6));
        assert_eq!(within(8..8, 8), Ok(8..8));
        let message = |range: (Bound<usize>, Bound<usize>)| {
            let error = within(range, 8).unwrap_err();
            assert_eq!(error.field, "range");
            error.message
        };
        assert!(message((Included(9), Unbounded)).starts_with("range goes from 9 to 8; "));
        assert!(message((Included(5), Excluded(4))).starts_with("range goes from 5 to 4; "));
        assert!(message((Included(0), Excluded(9))).starts_with("range goes from 0 to 9; "));
        assert!(message((Unbounded, Included(usize::MAX))).contains(" to more than usize can hold; "));
        assert!(message((Excluded(usize::MAX), Unbounded)).contains("from more than usize can hold to 8; "));
    }
}
