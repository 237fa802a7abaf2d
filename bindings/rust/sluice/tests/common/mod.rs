//! Shared by the tests: numbers, and views of vectors like those of buffers.
#![allow(dead_code)] // no test uses all of it

use sluice::{Array, Bf16, Context, E4m3Fnuz, Element, Host, Layout, Plain, Result, Tensor, TensorMut, F16};

/// A context of the emulator.
pub fn emulator() -> Context {
    Context::emulated().build().expect("libsluice_emulator.so.1 is in the folder of libsluice.so")
}

/// A context that only answers questions.
pub fn target() -> Context {
    Context::target("gfx942:304").build().unwrap()
}

/// Pseudo-random numbers, the same each time.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as u32
    }

    /// From -1 to 1.
    pub fn unit(&mut self) -> f32 {
        self.next() as f32 / (1u32 << 30) as f32 - 1.0
    }

    pub fn vector<T: Number>(&mut self, len: usize) -> Vec<T> {
        (0..len).map(|_| T::encode(self.unit())).collect()
    }
}

/// Elements that tests compute with.
pub trait Number: Element + Default {
    fn encode(value: f32) -> Self;
    fn decode(self) -> f32;
}

impl Number for F16 {
    fn encode(value: f32) -> Self {
        F16::from_f32(value)
    }
    fn decode(self) -> f32 {
        self.to_f32()
    }
}

impl Number for Bf16 {
    fn encode(value: f32) -> Self {
        Bf16::from_f32(value)
    }
    fn decode(self) -> f32 {
        self.to_f32()
    }
}

impl Number for f32 {
    fn encode(value: f32) -> Self {
        value
    }
    fn decode(self) -> f32 {
        self
    }
}

impl Number for E4m3Fnuz {
    /// The nearest one; bits and values of positive numbers have the same order.
    fn encode(value: f32) -> Self {
        let above = (1..0x7f).find(|bits| E4m3Fnuz(*bits).decode() >= value.abs()).unwrap_or(0x7f);
        let distance = |bits: u8| (E4m3Fnuz(bits).decode() - value.abs()).abs();
        let nearest = if distance(above - 1) <= distance(above) { above - 1 } else { above };
        // Negative zero does not exist: its bits are NaN.
        E4m3Fnuz(if value < 0.0 && nearest != 0 { nearest | 0x80 } else { nearest })
    }
    fn decode(self) -> f32 {
        let (exponent, fraction) = (i32::from(self.0 >> 3 & 15), f32::from(self.0 & 7) / 8.0);
        let magnitude =
            if exponent == 0 { fraction * 2f32.powi(-7) } else { (1.0 + fraction) * 2f32.powi(exponent - 8) };
        if self.0 >> 7 == 1 {
            -magnitude
        } else {
            magnitude
        }
    }
}

/// Gives vectors the functions of buffers, so that the same code makes the arguments of both.
pub trait Views {
    type Element: Plain;
    fn array(&self) -> Array<'_, Self::Element, Host>;
}

impl<T: Plain> Views for Vec<T> {
    type Element = T;
    fn array(&self) -> Array<'_, T, Host> {
        Array::new(self)
    }
}

pub trait TensorViews {
    fn tensor(&self, layout: Layout) -> Result<Tensor<'_, Host>>;
    fn tensor_mut(&mut self, layout: Layout) -> Result<TensorMut<'_, Host>>;
}

impl<T: Element> TensorViews for Vec<T> {
    fn tensor(&self, layout: Layout) -> Result<Tensor<'_, Host>> {
        Tensor::new(self, layout)
    }
    fn tensor_mut(&mut self, layout: Layout) -> Result<TensorMut<'_, Host>> {
        TensorMut::new(self, layout)
    }
}
