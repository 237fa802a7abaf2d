//! Only the C interface of `libsluice.so`: the structs, constants and functions of `include/sluice/` under their C names,
//! with the comments of the headers. The crate `sluice` is a safe interface to it.
//!
//! A struct's `default` is all zero, with its `struct_size`.
#![allow(non_camel_case_types)]

mod raw;

pub use raw::*;
