//! C strings.

use std::ffi::CStr;
use std::os::raw::c_char;

/// Text of an array that ends with 0 or is full.
pub(crate) fn from_array(characters: &[c_char]) -> String {
    let bytes: Vec<u8> = characters.iter().map(|c| *c as u8).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A string that the library never frees.
///
/// # Safety
/// `text` is such a string, in UTF-8.
pub(crate) unsafe fn from_static(text: *const c_char) -> &'static str {
    // SAFETY: by this function's contract.
    unsafe { CStr::from_ptr(text) }.to_str().expect("strings of the library are ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_end_at_their_zero_or_at_their_end() {
        let characters = [b'a', b'b', 0, b'c'].map(|byte| byte as c_char);
        assert_eq!(from_array(&characters), "ab");
        assert_eq!(from_array(&characters[..2]), "ab");
        assert_eq!(from_array(&characters[2..]), "");
    }
}
