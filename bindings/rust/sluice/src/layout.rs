//! The places of the elements of a tensor.

use crate::error::{Error, Result};

/// Extents and strides of a tensor with four dimensions, in elements. Element \[a\]\[b\]\[c\]\[d\] is at
/// `a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3]`.
///
/// A stride of 0 repeats an input along that dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    shape: [usize; 4],
    stride: [i64; 4],
    pack: usize,
    token_pack: usize,
}

impl Layout {
    /// One after the other: \[batch\]\[token\]\[head\]\[dim\], or \[page\]\[token in page\]\[head\]\[dim\].
    pub fn contiguous(shape: [usize; 4]) -> Layout {
        let [_, b, c, d] = shape.map(|extent| i64::try_from(extent).unwrap_or(i64::MAX));
        let (row, plane) = (c.saturating_mul(d), b.saturating_mul(c).saturating_mul(d));
        Layout::strided(shape, [plane, row, d, 1])
    }

    /// Sequences one after the other, \[token\]\[head\]\[dim\]: the first of the four dimensions is 1.
    pub fn rows(shape: [usize; 3]) -> Layout {
        let [tokens, heads, dim] = shape;
        let Layout { shape, stride: [_, b, c, d], .. } = Layout::contiguous([1, tokens, heads, dim]);
        Layout::strided(shape, [0, b, c, d])
    }

    /// With explicit strides.
    pub fn strided(shape: [usize; 4], stride: [i64; 4]) -> Layout {
        Layout { shape, stride, pack: 0, token_pack: 0 }
    }

    /// For an x-packed K cache: element e of a row is at `e / pack * stride[3] + e % pack`.
    pub fn packed(self, pack: usize) -> Layout {
        Layout { pack, ..self }
    }

    /// For V by columns in packs of tokens: the row of token t of a page is at `t / tokens * stride[1] + t % tokens`.
    pub fn packed_tokens(self, tokens: usize) -> Layout {
        Layout { token_pack: tokens, ..self }
    }

    /// Extents.
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Strides in elements.
    pub fn stride(&self) -> [i64; 4] {
        self.stride
    }

    /// Elements per pack of a row; 0 for all but x-packed K caches.
    pub fn pack(&self) -> usize {
        self.pack
    }

    /// Tokens per pack of V by columns; 0 for everything else.
    pub fn token_pack(&self) -> usize {
        self.token_pack
    }

    /// How many elements memory must have to hold the tensor. Strides that nothing is multiplied with are ignored.
    pub(crate) fn reach(&self) -> Result<usize> {
        if self.shape.contains(&0) {
            return Ok(0);
        }
        // Steps along a dimension, and the elements after the last step.
        let packs = |field: &str, pack: usize, i: usize| match (pack, self.shape[i]) {
            (0, extent) => Ok((extent - 1, 0)),
            (pack, extent) if extent % pack == 0 => Ok((extent / pack - 1, pack - 1)),
            (pack, extent) => {
                let message = format!("{field} is {pack}; it must divide shape[{i}], which is {extent}");
                Err(Error::invalid(field, message))
            }
        };
        let (steps, rest) = packs("pack", self.pack, 3)?;
        let (token_steps, token_rest) = packs("token_pack", self.token_pack, 1)?;
        let [a, _, c, _] = self.shape.map(|extent| extent - 1);
        let mut last = rest as u128 + token_rest as u128;
        for (i, index) in [a, token_steps, c, steps].into_iter().enumerate().filter(|(_, index)| *index > 0) {
            let stride = self.stride[i];
            if stride < 0 {
                let message = format!("stride[{i}] is {stride}; it must not be negative");
                return Err(Error::invalid(format!("stride[{i}]"), message));
            }
            // Two factors below 2^64: their product fits, and four such sums are refused before they overflow.
            last = last.saturating_add(index as u128 * stride as u128);
        }
        usize::try_from(last).ok().and_then(|last| last.checked_add(1)).ok_or_else(|| {
            let message = format!(
                "shape {:?} with stride {:?} reaches outside the address space",
                self.shape, self.stride
            );
            Error::invalid("shape", message)
        })
    }

    /// Refuses a tensor that memory with `elements` cannot hold.
    pub(crate) fn check_fits(&self, elements: usize) -> Result<()> {
        let reach = self.reach()?;
        if reach > elements {
            let message = format!(
                "shape {:?} with stride {:?} needs {reach} elements; the memory has {elements}",
                self.shape, self.stride
            );
            return Err(Error::invalid("shape", message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By checking every element.
    fn reach_of_all(layout: &Layout) -> usize {
        let mut largest = 0;
        let [a, b, c, d] = layout.shape;
        for index in 0..a * b * c * d {
            let at = [index / d / c / b, index / d / c % b, index / d % c, index % d];
            let [i, j, k, e] = at;
            let element = match layout.pack {
                0 => e as i64 * layout.stride[3],
                pack => (e / pack) as i64 * layout.stride[3] + (e % pack) as i64,
            };
            let token = match layout.token_pack {
                0 => j as i64 * layout.stride[1],
                pack => (j / pack) as i64 * layout.stride[1] + (j % pack) as i64,
            };
            let place = i as i64 * layout.stride[0] + token + k as i64 * layout.stride[2] + element;
            largest = largest.max(place as usize + 1);
        }
        largest
    }

    #[test]
    fn the_farthest_element_says_how_much_memory() {
        for layout in [
            Layout::contiguous([2, 3, 4, 8]),
            Layout::rows([5, 2, 16]),
            Layout::strided([2, 3, 4, 8], [0, 8, 24, 1]),
            Layout::strided([2, 3, 4, 8], [1000, 0, 7, 3]),
            Layout::strided([3, 16, 2, 32], [1024, 8, 512, 128]).packed(8),
            Layout::strided([3, 16, 2, 32], [1024, 256, 512, 8]).packed_tokens(8),
            Layout::strided([3, 9, 2, 32], [1024, 1, 512, 16]),
        ] {
            assert_eq!(layout.reach(), Ok(reach_of_all(&layout)), "{layout:?}");
        }
        assert_eq!(Layout::contiguous([2, 3, 4, 8]).stride(), [96, 32, 8, 1]);
        assert_eq!(Layout::rows([5, 2, 16]).stride(), [0, 32, 16, 1]);
        assert_eq!(Layout::rows([5, 2, 16]).shape(), [1, 5, 2, 16]);
    }

    #[test]
    fn tensors_larger_than_memory_are_refused() {
        let field = |layout: Layout| layout.check_fits(100).unwrap_err().field;
        assert_eq!(field(Layout::strided([1, 1, 2, 8], [0, 0, -8, 1])), "stride[2]");
        assert_eq!(field(Layout::rows([1, 1, 20]).packed(8)), "pack");
        assert_eq!(field(Layout::rows([12, 1, 8]).packed_tokens(8)), "token_pack");
        assert_eq!(field(Layout::contiguous([1, 1, 1, 101])), "shape");
        assert_eq!(Layout::contiguous([1, 1, 1, 100]).check_fits(100), Ok(()));
        assert_eq!(Layout::contiguous([2, 0, 4, 8]).check_fits(0), Ok(()));
        assert_eq!(Layout::strided([1, 2, 1, 1], [-5, 8, i64::MIN, -1]).check_fits(9), Ok(()));
        assert_eq!(field(Layout::contiguous([usize::MAX; 4])), "shape");
        assert_eq!(field(Layout::strided([usize::MAX, 1, 1, 1], [i64::MAX, 0, 0, 0])), "shape");
    }
}
