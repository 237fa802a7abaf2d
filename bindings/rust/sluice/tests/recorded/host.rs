//! Memory of the host at the addresses of the references, for slices.

use sluice::{Array, Element, Host, Layout, Plain, Tensor, TensorMut};
use std::os::raw::{c_int, c_void};
use std::sync::Once;

const EACH: usize = 0x10_0000;
const COUNT: usize = 14;

extern "C" {
    fn mmap(
        address: *mut c_void,
        bytes: usize,
        access: c_int,
        flags: c_int,
        file: c_int,
        from: i64,
    ) -> *mut c_void;
}

/// Maps memory 0 to 13, all zero.
fn map() {
    static ONCE: Once = Once::new();
    // To be read and written; private, anonymous, and at this address or not at all.
    const ACCESS: c_int = 1 | 2;
    const FLAGS: c_int = 0x2 | 0x20 | 0x10_0000;
    ONCE.call_once(|| {
        let wanted = crate::at::<c_void>(0);
        // SAFETY: nothing else is mapped there, or this fails.
        assert_eq!(unsafe { mmap(wanted, COUNT * EACH, ACCESS, FLAGS, -1, 0) }, wanted);
    });
}

/// Memory number n, as far as its elements go.
fn slice<T: Plain>(n: usize, len: usize) -> &'static mut [T] {
    map();
    assert!(n < COUNT && len * std::mem::size_of::<T>() <= EACH);
    // SAFETY: it is mapped and zero, which is a number of each type. A call has each memory once.
    unsafe { std::slice::from_raw_parts_mut(crate::at(n), len) }
}

fn elements(layout: Layout) -> usize {
    layout.shape().iter().product()
}

pub fn tensor<T: Element>(n: usize, layout: Layout) -> Tensor<'static, Host> {
    Tensor::new(&*slice::<T>(n, elements(layout)), layout).unwrap()
}

pub fn tensor_mut<T: Element>(n: usize, layout: Layout) -> TensorMut<'static, Host> {
    TensorMut::new(slice::<T>(n, elements(layout)), layout).unwrap()
}

pub fn array<T: Plain>(n: usize, len: usize) -> Array<'static, T, Host> {
    Array::new(&*slice::<T>(n, len))
}
