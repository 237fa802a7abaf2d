//! Makes the calls of `bindings/recorder/attention_calls.c` and `cache_calls.c` with the same numbers, if
//! `bindings/recorder/compare.py` runs this test: it compares what the library is given with what C gives it. Without
//! its `SLUICE_RECORD` there is nothing to compare.

mod attention;
mod caches;
mod host;

use sluice::{
    Array, Context, Device, Element, Kv, KvFormat, KvMut, Launch, Layout, Plain, RawStream, Tensor, TensorMut,
};
use std::io::Write;

/// Device memory number n, which is never accessed.
fn at<T>(n: usize) -> *mut T {
    (0x2000_0000_0000 + n * 0x10_0000) as *mut T
}

fn tensor<T: Element>(n: usize, layout: Layout) -> Tensor<'static, Device> {
    // SAFETY: the memory is never accessed.
    unsafe { Tensor::from_raw(at::<T>(n), layout) }.unwrap()
}

fn tensor_mut<T: Element>(n: usize, layout: Layout) -> TensorMut<'static, Device> {
    // SAFETY: as above.
    unsafe { TensorMut::from_raw(at::<T>(n), layout) }.unwrap()
}

fn array<T: Plain>(n: usize, len: usize) -> Array<'static, T, Device> {
    // SAFETY: as above.
    unsafe { Array::from_raw(at::<T>(n), len) }
}

fn contiguous(a: usize, b: usize, c: usize, d: usize) -> Layout {
    Layout::contiguous([a, b, c, d])
}

/// \[batch, token, head, dim\] that is \[batch, head, token, dim\] in memory.
fn heads_first(batch: usize, tokens: usize, heads: usize, dim: usize) -> Layout {
    let stride = [tokens * heads * dim, dim, tokens * dim, 1].map(|stride| stride as i64);
    Layout::strided([batch, tokens, heads, dim], stride)
}

/// K and V that are read, as two memories with these layouts.
fn kv<T: Element>(format: KvFormat, k: (usize, Layout), v: (usize, Layout)) -> Kv<'static> {
    Kv::new(format, tensor::<T>(k.0, k.1), Some(tensor::<T>(v.0, v.1)))
}

fn kv_mut<T: Element>(format: KvFormat, k: (usize, Layout), v: (usize, Layout)) -> KvMut<'static> {
    Kv::new(format, tensor_mut::<T>(k.0, k.1), Some(tensor_mut::<T>(v.0, v.1)))
}

fn launch() -> Launch<'static> {
    Launch { stream: RawStream(at(900)), ..Launch::default() }
}

type Calls = Vec<(&'static str, fn(&Context))>;

#[test]
fn calls_give_what_they_give_in_c() {
    let file = match std::env::var("SLUICE_RECORD") {
        Ok(file) => file,
        Err(_) => return,
    };
    let context = Context::target("gfx942:304").build().unwrap();
    for (name, make) in [attention::calls(), caches::calls()].concat() {
        let mut recording = std::fs::OpenOptions::new().append(true).create(true).open(&file).unwrap();
        writeln!(recording, "call {name}").unwrap();
        drop(recording);
        make(&context);
    }
}
