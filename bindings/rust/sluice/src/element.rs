//! Types of elements.

use sluice_sys as sys;

/// Element types; the header's `sluice_dtype`. The FP8 encodings are different types: FNUZ is CDNA3's, the other two
/// are OCP's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Dtype {
    /// IEEE binary16.
    F16 = sys::SLUICE_F16,
    /// bfloat16.
    Bf16 = sys::SLUICE_BF16,
    /// IEEE binary32.
    F32 = sys::SLUICE_F32,
    /// FP8, bias 8, maximum 240, one NaN, no infinity.
    E4m3Fnuz = sys::SLUICE_E4M3FNUZ,
    /// OCP FP8, bias 7, maximum 448.
    E4m3Fn = sys::SLUICE_E4M3FN,
    /// FP8, bias 16, maximum 57344, one NaN, no infinity.
    E5m2Fnuz = sys::SLUICE_E5M2FNUZ,
    /// OCP FP8, bias 15, maximum 57344, with infinities.
    E5m2 = sys::SLUICE_E5M2,
    /// A signed 8-bit integer, for K and V only, like the next three.
    I8 = sys::SLUICE_I8,
    /// An unsigned 4-bit integer with scales per group.
    U4 = sys::SLUICE_U4,
    /// ggml's blocks of 32 numbers of 8 bits with a scale.
    Q8_0 = sys::SLUICE_Q8_0,
    /// ggml's blocks of 32 numbers of 4 bits with a scale.
    Q4_0 = sys::SLUICE_Q4_0,
}

impl Dtype {
    const ALL: [Dtype; 11] = [
        Dtype::F16,
        Dtype::Bf16,
        Dtype::F32,
        Dtype::E4m3Fnuz,
        Dtype::E4m3Fn,
        Dtype::E5m2Fnuz,
        Dtype::E5m2,
        Dtype::I8,
        Dtype::U4,
        Dtype::Q8_0,
        Dtype::Q4_0,
    ];

    /// From a number of the header; None for one that this crate does not know.
    pub(crate) fn from_raw(raw: u32) -> Option<Dtype> {
        Dtype::ALL.into_iter().find(|dtype| *dtype as u32 == raw)
    }

    /// Bytes of an element, or of a block of [`block`](Self::block) elements.
    pub fn bytes(self) -> usize {
        match self {
            Dtype::F32 => 4,
            Dtype::F16 | Dtype::Bf16 => 2,
            Dtype::Q8_0 => 34,
            Dtype::Q4_0 => 18,
            _ => 1,
        }
    }

    /// How many elements are stored together: 1 for most types.
    pub fn block(self) -> usize {
        match self {
            Dtype::U4 => 2,
            Dtype::Q8_0 | Dtype::Q4_0 => 32,
            _ => 1,
        }
    }
}

/// A type that can be copied to and from a device as it is.
///
/// # Safety
/// The type has at least one byte and no padding, and every bit pattern is a value of it.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

/// An element of a tensor, or a block of them.
///
/// Memory is read as elements of the type that this names, so an implementation must vouch for it:
///
/// ```compile_fail,E0200
/// #[derive(Clone, Copy)]
/// #[repr(transparent)]
/// struct Byte(u8);
/// // SAFETY: transparent over a number.
/// unsafe impl sluice::Plain for Byte {}
/// // requires an `unsafe impl` declaration: F32 would read four times the bytes of such a slice
/// impl sluice::Element for Byte {
///     const DTYPE: Option<sluice::Dtype> = Some(sluice::Dtype::F32);
/// }
/// ```
///
/// # Safety
/// A value has [`Dtype::bytes`] of `DTYPE`, or one byte if that is None.
pub unsafe trait Element: Plain {
    /// None for the bytes of a mask.
    const DTYPE: Option<Dtype>;
}

/// The elements of a tensor that a number of values holds; layouts count elements.
pub(crate) fn elements_of<T: Element>(values: usize) -> usize {
    values.saturating_mul(T::DTYPE.map_or(1, Dtype::block))
}

macro_rules! plain {
    ($($type:ty)*) => { $(
        // SAFETY: numbers.
        unsafe impl Plain for $type {}
    )* };
}
plain!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

// SAFETY: four bytes.
unsafe impl Element for f32 {
    const DTYPE: Option<Dtype> = Some(Dtype::F32);
}

// SAFETY: one byte.
unsafe impl Element for u8 {
    const DTYPE: Option<Dtype> = None;
}

// SAFETY: one byte.
unsafe impl Element for i8 {
    const DTYPE: Option<Dtype> = Some(Dtype::I8);
}

/// Two elements of [`Dtype::U4`]: the even one is in the lower half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct U4Pair(
    /// The bits.
    pub u8,
);

// SAFETY: transparent over a number.
unsafe impl Plain for U4Pair {}

// SAFETY: one byte.
unsafe impl Element for U4Pair {
    const DTYPE: Option<Dtype> = Some(Dtype::U4);
}

/// 32 elements of [`Dtype::Q8_0`]; ggml's `block_q8_0`. Element i is `scale * numbers[i]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct BlockQ8_0 {
    /// The scale of all numbers.
    pub scale: F16,
    /// One for each element.
    pub numbers: [i8; 32],
}

// SAFETY: 2 + 32 bytes with an alignment of 2, so there is no padding; all are numbers.
unsafe impl Plain for BlockQ8_0 {}

// SAFETY: 34 bytes.
unsafe impl Element for BlockQ8_0 {
    const DTYPE: Option<Dtype> = Some(Dtype::Q8_0);
}

/// 32 elements of [`Dtype::Q4_0`]; ggml's `block_q4_0`. Byte i has the number of element i in its lower half and that of
/// element i + 16 in its upper half; an element is `scale * (number - 8)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct BlockQ4_0 {
    /// The scale of all numbers.
    pub scale: F16,
    /// Two for each byte.
    pub numbers: [u8; 16],
}

// SAFETY: 2 + 16 bytes with an alignment of 2, so there is no padding; all are numbers.
unsafe impl Plain for BlockQ4_0 {}

// SAFETY: 18 bytes.
unsafe impl Element for BlockQ4_0 {
    const DTYPE: Option<Dtype> = Some(Dtype::Q4_0);
}

macro_rules! encoded {
    ($($name:ident: $bits:ty, $text:literal;)*) => { $(
        #[doc = $text]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $name(
            /// The bits.
            pub $bits,
        );

        impl $name {
            /// Views numbers of another library as these, given as bits and without a copy, for example slices of the
            /// crate `half` after its `reinterpret_cast`.
            pub fn slice_of_bits(bits: &[$bits]) -> &[$name] {
                // SAFETY: transparent over a number.
                unsafe { std::slice::from_raw_parts(bits.as_ptr().cast(), bits.len()) }
            }

            /// As `slice_of_bits`, but mutable: writing here writes the other library's numbers.
            pub fn slice_of_bits_mut(bits: &mut [$bits]) -> &mut [$name] {
                // SAFETY: transparent over a number, and every bit pattern is a number.
                unsafe { std::slice::from_raw_parts_mut(bits.as_mut_ptr().cast(), bits.len()) }
            }

            /// The bits of numbers, without a copy.
            pub fn bits_of_slice(numbers: &[$name]) -> &[$bits] {
                // SAFETY: transparent over a number.
                unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), numbers.len()) }
            }
        }

        // SAFETY: transparent over a number.
        unsafe impl Plain for $name {}

        // SAFETY: it has the size of its number, which is the size in the type's name.
        unsafe impl Element for $name {
            const DTYPE: Option<Dtype> = Some(Dtype::$name);
        }
    )* };
}

encoded! {
    F16: u16, "An IEEE binary16, by its bits.";
    Bf16: u16, "A bfloat16, by its bits.";
    E4m3Fnuz: u8, "An FP8 number of CDNA3, by its bits; see [`Dtype::E4m3Fnuz`].";
    E4m3Fn: u8, "An FP8 number of OCP, by its bits; see [`Dtype::E4m3Fn`].";
    E5m2Fnuz: u8, "An FP8 number of CDNA3, by its bits; see [`Dtype::E5m2Fnuz`].";
    E5m2: u8, "An FP8 number of OCP, by its bits; see [`Dtype::E5m2`].";
}

impl F16 {
    /// Rounds to nearest, ties to even; too large values become infinity.
    pub fn from_f32(value: f32) -> F16 {
        let bits = value.to_bits();
        let sign = (bits >> 16) as u16 & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        if magnitude > 0x7f80_0000 {
            return F16(sign | 0x7e00);
        }
        if magnitude >= 0x477f_f000 {
            return F16(sign | 0x7c00); // from 65520 on
        }
        let exponent = (magnitude >> 23) as i32 - 127;
        if exponent >= -14 {
            // The carry of a fraction that rounds up correctly goes into the exponent.
            let rebased = magnitude - (112 << 23);
            return F16(sign | rounded(rebased, 13) as u16);
        }
        // Subnormal: units of 2^-24.
        let fraction = magnitude & 0x7f_ffff | 0x80_0000;
        let shift = (-exponent - 1) as u32;
        F16(sign | if shift > 24 { 0 } else { rounded(fraction, shift) as u16 })
    }

    /// Exactly.
    pub fn to_f32(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        let exponent = u32::from(self.0 >> 10 & 0x1f);
        let fraction = u32::from(self.0 & 0x3ff);
        match exponent {
            0x1f => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
            0 => f32::from_bits(sign | (fraction as f32 / 16_777_216.0).to_bits()),
            _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
        }
    }
}

impl Bf16 {
    /// Rounds to nearest, ties to even.
    pub fn from_f32(value: f32) -> Bf16 {
        if value.is_nan() {
            return Bf16((value.to_bits() >> 16) as u16 | 0x40);
        }
        Bf16(rounded(value.to_bits(), 16) as u16)
    }

    /// Exactly.
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

/// `bits` without its lowest `drop` bits, rounded to nearest, ties to even.
fn rounded(bits: u32, drop: u32) -> u32 {
    let half = 1u64 << (drop - 1);
    let kept = u64::from(bits) >> drop;
    ((u64::from(bits) + half - 1 + (kept & 1)) >> drop) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dtypes_have_the_numbers_of_the_header() {
        for (i, dtype) in Dtype::ALL.into_iter().enumerate() {
            assert_eq!((dtype as usize, Dtype::from_raw(i as u32 + 1)), (i + 1, Some(dtype)));
        }
        assert_eq!(Dtype::from_raw(Dtype::ALL.len() as u32 + 1), None);
        fn fits<T: Element>() -> bool {
            std::mem::size_of::<T>() == T::DTYPE.map_or(1, Dtype::bytes)
        }
        assert!(fits::<F16>() && fits::<Bf16>() && fits::<f32>() && fits::<u8>());
        assert!(fits::<E4m3Fnuz>() && fits::<E4m3Fn>() && fits::<E5m2Fnuz>() && fits::<E5m2>());
        assert!(fits::<i8>() && fits::<U4Pair>() && fits::<BlockQ8_0>() && fits::<BlockQ4_0>());
    }

    #[test]
    fn bits_are_numbers_in_place() {
        let mut bits = [0x3c00u16, 0x7bff, 0x8001];
        let numbers = F16::slice_of_bits(&bits);
        assert_eq!(numbers, [F16(0x3c00), F16(0x7bff), F16(0x8001)]);
        assert_eq!(numbers.as_ptr().cast(), bits.as_ptr());
        assert_eq!(
            (F16::bits_of_slice(numbers), F16::bits_of_slice(numbers).as_ptr()),
            (&bits[..], bits.as_ptr())
        );
        F16::slice_of_bits_mut(&mut bits)[1] = F16(7);
        assert_eq!(bits, [0x3c00, 7, 0x8001]);
        assert_eq!(E5m2::slice_of_bits(&[1, 2, 3]), [E5m2(1), E5m2(2), E5m2(3)]);
        assert_eq!(Bf16::slice_of_bits(&[]), []);
    }

    /// The value by its definition.
    fn decoded(bits: u16, exponent_bits: i32, fraction_bits: i32) -> f64 {
        let fraction = f64::from(bits & ((1 << fraction_bits) - 1)) * 2f64.powi(-fraction_bits);
        let exponent = i32::from(bits >> fraction_bits & ((1 << exponent_bits) - 1));
        let bias = (1 << (exponent_bits - 1)) - 1;
        let magnitude = if exponent == (1 << exponent_bits) - 1 {
            if fraction == 0.0 {
                f64::INFINITY
            } else {
                f64::NAN
            }
        } else if exponent == 0 {
            fraction * 2f64.powi(1 - bias)
        } else {
            (1.0 + fraction) * 2f64.powi(exponent - bias)
        };
        if bits >> 15 == 1 {
            -magnitude
        } else {
            magnitude
        }
    }

    #[test]
    fn all_numbers_of_16_bits_are_decoded_and_encoded() {
        for bits in 0..=u16::MAX {
            for (value, back, wanted) in [
                (F16(bits).to_f32(), F16::from_f32(F16(bits).to_f32()).0, decoded(bits, 5, 10)),
                (Bf16(bits).to_f32(), Bf16::from_f32(Bf16(bits).to_f32()).0, decoded(bits, 8, 7)),
            ] {
                if wanted.is_nan() {
                    assert!(value.is_nan() && back & 0x7fff > 0x7c00, "{bits:#x}");
                } else {
                    assert_eq!((f64::from(value).to_bits(), back), (wanted.to_bits(), bits));
                }
            }
        }
    }

    #[test]
    fn numbers_are_rounded_to_nearest_and_ties_to_even() {
        for low in (0..0x7bff).chain(0x8000..0xfbff) {
            let (a, b) = (F16(low).to_f32(), F16(low + 1).to_f32());
            let middle = (a + b) / 2.0; // exact: one bit more
            assert_eq!(F16::from_f32(middle).0, low + (low & 1), "{low:#x}");
            assert_eq!(F16::from_f32((a + 3.0 * b) / 4.0).0, low + 1);
            assert_eq!(F16::from_f32((3.0 * a + b) / 4.0).0, low);
        }
        for low in (0..0x7f7f).step_by(7).chain(0x8000..0xff7f) {
            let middle = f32::from_bits(u32::from(low) << 16 | 0x8000);
            assert_eq!(Bf16::from_f32(middle).0, low + (low & 1));
            assert_eq!(Bf16::from_f32(f32::from_bits(middle.to_bits() + 1)).0, low + 1);
            assert_eq!(Bf16::from_f32(f32::from_bits(middle.to_bits() - 1)).0, low);
        }
        assert_eq!(F16::from_f32(65519.996).0, 0x7bff);
        assert_eq!(F16::from_f32(-65520.0).0, 0xfc00);
        assert_eq!(F16::from_f32(f32::from_bits(1)).0, 0);
        assert_eq!(Bf16::from_f32(f32::MAX).0, 0x7f80);
    }
}
