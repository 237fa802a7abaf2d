//! Views of the memory that calls use.

use crate::element::{elements_of, Dtype, Element, Plain};
use crate::error::{Error, Result};
use crate::layout::Layout;
use sluice_sys as sys;
use std::marker::PhantomData;
use std::os::raw::c_void;

mod sealed {
    pub trait Sealed {}

    pub trait HasView {
        fn view(&self) -> &super::View;
    }
}

pub(crate) use sealed::HasView;

/// A [`Tensor`] or a [`TensorMut`].
pub trait AnyTensor: HasView + std::fmt::Debug {}

impl<M: Memory> AnyTensor for Tensor<'_, M> {}
impl<M: Memory> AnyTensor for TensorMut<'_, M> {}

impl<M: Memory> HasView for Tensor<'_, M> {
    fn view(&self) -> &View {
        &self.view
    }
}

impl<M: Memory> HasView for TensorMut<'_, M> {
    fn view(&self) -> &View {
        &self.view
    }
}

/// Where memory is: [`Host`] or [`Device`].
pub trait Memory: sealed::Sealed + Copy + std::fmt::Debug + 'static {
    /// The elements of an array, if they can be read here.
    #[doc(hidden)]
    fn contents<'a, T: Plain>(array: &Array<'a, T, Self>) -> Option<&'a [T]>
    where
        Self: Sized;
}

/// Memory of the host, for [`reference`](crate::reference()) and [`reference_append`](crate::reference_append).
#[derive(Clone, Copy, Debug)]
pub enum Host {}

/// Memory of a device, real or emulated.
#[derive(Clone, Copy, Debug)]
pub enum Device {}

impl sealed::Sealed for Host {}
impl sealed::Sealed for Device {}

impl Memory for Host {
    fn contents<'a, T: Plain>(array: &Array<'a, T, Host>) -> Option<&'a [T]> {
        // SAFETY: an array of the host is made from a slice with that lifetime.
        Some(unsafe { std::slice::from_raw_parts(array.data, array.len) })
    }
}

impl Memory for Device {
    fn contents<'a, T: Plain>(_: &Array<'a, T, Device>) -> Option<&'a [T]> {
        None
    }
}

/// The properties of a tensor, read or written.
#[derive(Clone, Copy, Debug)]
pub struct View {
    data: *mut c_void,
    pub(crate) dtype: Option<Dtype>,
    pub(crate) layout: Layout,
}

// SAFETY: an address. Access to the memory has its own contract: a borrow on the host, the Safety section of the call
// on a device.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

/// A requirement on an extent.
#[derive(Clone, Copy)]
pub(crate) enum Extent {
    Exactly(usize),
    AtLeast(usize),
}

impl Extent {
    /// The smallest that is allowed.
    pub(crate) fn least(self) -> usize {
        match self {
            Extent::Exactly(extent) | Extent::AtLeast(extent) => extent,
        }
    }
}

impl View {
    /// The tensor for a call that needs this type and these extents.
    pub(crate) fn checked(
        &self,
        name: &str,
        dtype: Option<Dtype>,
        pack: usize,
        extents: [Extent; 4],
    ) -> Result<sys::sluice_tensor> {
        self.checked_in_packs(name, dtype, pack, 0, extents)
    }

    /// The same with tokens in packs.
    pub(crate) fn checked_in_packs(
        &self,
        name: &str,
        dtype: Option<Dtype>,
        pack: usize,
        token_pack: usize,
        extents: [Extent; 4],
    ) -> Result<sys::sluice_tensor> {
        let say = |dtype: Option<Dtype>| dtype.map_or("bytes".into(), |dtype| format!("{dtype:?}"));
        if self.dtype != dtype {
            let message = format!("{name} holds {}; the call needs {}", say(self.dtype), say(dtype));
            return Err(Error::invalid(format!("{name}.dtype"), message));
        }
        if self.layout.pack() != pack {
            let message = format!("{name}.pack is {}; the call needs {pack}", self.layout.pack());
            return Err(Error::invalid(format!("{name}.pack"), message));
        }
        if self.layout.token_pack() != token_pack {
            let message =
                format!("{name}.token_pack is {}; the call needs {token_pack}", self.layout.token_pack());
            return Err(Error::invalid(format!("{name}.token_pack"), message));
        }
        for (i, (extent, is)) in extents.into_iter().zip(self.layout.shape()).enumerate() {
            let (fits, rule) = match extent {
                Extent::Exactly(wanted) => (is == wanted, format!("be {wanted}")),
                Extent::AtLeast(wanted) => (is >= wanted, format!("be at least {wanted}")),
            };
            if !fits {
                let field = format!("{name}.shape[{i}]");
                let message = format!("{field} is {is}; for this call it must {rule}");
                return Err(Error::invalid(field, message));
            }
        }
        Ok(self.raw())
    }

    pub(crate) fn raw(&self) -> sys::sluice_tensor {
        sys::sluice_tensor { data: self.data, stride: self.layout.stride() }
    }
}

/// A tensor that is read.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a, M: Memory> {
    pub(crate) view: View,
    memory: PhantomData<(&'a (), M)>,
}

/// A tensor that is written.
#[derive(Debug)]
pub struct TensorMut<'a, M: Memory> {
    pub(crate) view: View,
    memory: PhantomData<(&'a mut (), M)>,
}

impl<'a, M: Memory> Tensor<'a, M> {
    /// Extents and strides.
    pub fn layout(&self) -> Layout {
        self.view.layout
    }

    /// Type of the elements; None for the bytes of a mask.
    pub fn dtype(&self) -> Option<Dtype> {
        self.view.dtype
    }
}

impl<'a, M: Memory> TensorMut<'a, M> {
    /// Extents and strides.
    pub fn layout(&self) -> Layout {
        self.view.layout
    }

    /// Type of the elements.
    pub fn dtype(&self) -> Option<Dtype> {
        self.view.dtype
    }
}

impl<'a> Tensor<'a, Host> {
    /// From elements on the host, or blocks of them; there must be as many elements as the layout reaches.
    pub fn new<T: Element>(elements: &'a [T], layout: Layout) -> Result<Self> {
        layout.check_fits(elements_of::<T>(elements.len()))?;
        let data = elements.as_ptr() as *mut c_void;
        Ok(Tensor { view: View { data, dtype: T::DTYPE, layout }, memory: PhantomData })
    }
}

impl<'a> TensorMut<'a, Host> {
    /// From elements on the host, or blocks of them; there must be as many elements as the layout reaches.
    pub fn new<T: Element>(elements: &'a mut [T], layout: Layout) -> Result<Self> {
        layout.check_fits(elements_of::<T>(elements.len()))?;
        let data = elements.as_mut_ptr().cast();
        Ok(TensorMut { view: View { data, dtype: T::DTYPE, layout }, memory: PhantomData })
    }
}

impl<'a> Tensor<'a, Device> {
    /// From memory of another allocator. [`hip::Buffer::tensor`](crate::hip::Buffer::tensor) is safe.
    ///
    /// # Safety
    /// `data` points to device memory that holds everything the layout reaches, for the lifetime `'a`.
    pub unsafe fn from_raw<T: Element>(data: *const T, layout: Layout) -> Result<Self> {
        layout.reach()?;
        let view = View { data: data as *mut c_void, dtype: T::DTYPE, layout };
        Ok(Tensor { view, memory: PhantomData })
    }
}

impl<'a> TensorMut<'a, Device> {
    /// From memory of another allocator. [`hip::Buffer::tensor_mut`](crate::hip::Buffer::tensor_mut) is safe.
    ///
    /// # Safety
    /// `data` points to device memory that holds everything the layout reaches, for the lifetime `'a`.
    pub unsafe fn from_raw<T: Element>(data: *mut T, layout: Layout) -> Result<Self> {
        layout.reach()?;
        Ok(TensorMut { view: View { data: data.cast(), dtype: T::DTYPE, layout }, memory: PhantomData })
    }
}

/// Numbers that are read, one after the other: lengths, starts, page numbers, scales.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a, T: Plain, M: Memory> {
    data: *const T,
    len: usize,
    memory: PhantomData<(&'a T, M)>,
}

// SAFETY: as for View.
unsafe impl<T: Plain, M: Memory> Send for Array<'_, T, M> {}
// SAFETY: as above.
unsafe impl<T: Plain, M: Memory> Sync for Array<'_, T, M> {}

impl<'a, T: Plain> Array<'a, T, Host> {
    /// From numbers on the host.
    pub fn new(numbers: &'a [T]) -> Self {
        Array { data: numbers.as_ptr(), len: numbers.len(), memory: PhantomData }
    }
}

impl<'a, T: Plain> Array<'a, T, Device> {
    /// From memory of another allocator. [`hip::Buffer::array`](crate::hip::Buffer::array) is safe.
    ///
    /// # Safety
    /// `data` points to device memory that holds `len` numbers, for the lifetime `'a`.
    pub unsafe fn from_raw(data: *const T, len: usize) -> Self {
        Array { data, len, memory: PhantomData }
    }
}

impl<'a, T: Plain, M: Memory> Array<'a, T, M> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn contents(&self) -> Option<&'a [T]> {
        M::contents(self)
    }

    pub(crate) fn raw(&self) -> *const T {
        self.data
    }

    /// The address, for a call that reads `needed` numbers.
    pub(crate) fn checked(&self, name: &str, needed: usize) -> Result<*const T> {
        if self.len < needed {
            let message = format!("{name} has {} elements; this call needs {needed}", self.len);
            return Err(Error::invalid(name, message));
        }
        Ok(self.data)
    }
}

/// The smallest extent of these tensors in a dimension; 0 without tensors.
pub(crate) fn fewest<'a>(dimension: usize, views: impl IntoIterator<Item = Option<&'a View>>) -> i64 {
    let extents = views.into_iter().flatten().map(|view| view.layout.shape()[dimension]);
    extents.min().map_or(0, |extent| i64::try_from(extent).unwrap_or(i64::MAX))
}

/// The address of an optional array.
pub(crate) fn optional<T: Plain, M: Memory>(
    array: &Option<Array<T, M>>,
    name: &str,
    needed: usize,
) -> Result<*const T> {
    array.as_ref().map_or(Ok(std::ptr::null()), |array| array.checked(name, needed))
}
