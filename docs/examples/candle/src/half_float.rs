//! The element types of Q, K, V and O, which candle and Sluice have types of their own for.

use candle_core::WithDType;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// An element of candle whose bits are those of an element of Sluice.
pub(crate) trait HalfFloat: WithDType {
    type Element: sluice::Element;
    const SLUICE_DTYPE: sluice::Dtype;

    fn elements(numbers: &[Self]) -> &[Self::Element];
    fn elements_mut(numbers: &mut [Self]) -> &mut [Self::Element];
}

macro_rules! half_float {
    ($($candle:ty: $sluice:ident, $dtype:ident;)*) => { $(
        impl HalfFloat for $candle {
            type Element = sluice::$sluice;
            const SLUICE_DTYPE: sluice::Dtype = sluice::Dtype::$dtype;

            fn elements(numbers: &[Self]) -> &[Self::Element] {
                sluice::$sluice::slice_of_bits(numbers.reinterpret_cast())
            }

            fn elements_mut(numbers: &mut [Self]) -> &mut [Self::Element] {
                sluice::$sluice::slice_of_bits_mut(numbers.reinterpret_cast_mut())
            }
        }
    )* };
}

half_float! {
    f16: F16, F16;
    bf16: Bf16, Bf16;
}
