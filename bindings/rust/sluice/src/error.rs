//! Errors of calls.

use crate::text;
use sluice_sys as sys;

/// What the caller can do about an error; the header's `sluice_status_code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// An argument breaks a documented rule: fix the call.
    InvalidArgument,
    /// Legal, but this library cannot compute it: use another path.
    Unsupported,
    /// A field, flag or enumerator that the library does not know is set: upgrade.
    NewerStruct,
    /// The device, HIP runtime or emulator does not exist here.
    NoDevice,
    /// The pack has no kernels for the device, or HIP found no code for it.
    WrongArch,
    /// A HIP call failed; [`Error::hip_code`] has its code.
    Hip,
    /// The kernel pack is truncated or altered: reinstall.
    PackCorrupt,
    /// Give at least as many bytes as [`PlanInfo::workspace_bytes`](crate::PlanInfo) says.
    WorkspaceTooSmall,
    /// Host memory ran out.
    OutOfMemory,
    /// A defect of the library: report it with the message.
    Internal,
    /// A status of a newer library.
    Other(i32),
}

const CODES: [(sys::sluice_status, Code); 10] = [
    (sys::SLUICE_INVALID_ARGUMENT, Code::InvalidArgument),
    (sys::SLUICE_UNSUPPORTED, Code::Unsupported),
    (sys::SLUICE_NEWER_STRUCT, Code::NewerStruct),
    (sys::SLUICE_NO_DEVICE, Code::NoDevice),
    (sys::SLUICE_WRONG_ARCH, Code::WrongArch),
    (sys::SLUICE_HIP, Code::Hip),
    (sys::SLUICE_PACK_CORRUPT, Code::PackCorrupt),
    (sys::SLUICE_WORKSPACE_TOO_SMALL, Code::WorkspaceTooSmall),
    (sys::SLUICE_OUT_OF_MEMORY, Code::OutOfMemory),
    (sys::SLUICE_INTERNAL, Code::Internal),
];

impl Code {
    fn from_raw(status: sys::sluice_status) -> Code {
        CODES.iter().find(|(raw, _)| *raw == status).map_or(Code::Other(status), |(_, code)| *code)
    }

    /// The header's status.
    pub fn raw(self) -> i32 {
        match self {
            Code::Other(status) => status,
            _ => CODES.iter().find(|(_, code)| *code == self).expect("every code is in the table").0,
        }
    }

    /// "SLUICE_UNSUPPORTED" and so on.
    pub fn name(self) -> &'static str {
        // SAFETY: takes any number and returns a string that is never freed.
        unsafe { text::from_static(sys::sluice_status_name(self.raw())) }
    }
}

/// Why a call failed, in the library or in this crate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// What the caller can do about it.
    pub code: Code,
    /// The argument or field at fault, e.g. "k.stride\[1\]", or empty.
    pub field: String,
    /// One sentence: the field, its value, the rule or the nearest supported value.
    pub message: String,
    /// The `hipError_t` if a HIP call failed, for any code; otherwise 0.
    pub hip_code: i32,
}

/// The result of fallible functions of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// An error of this crate itself.
    pub(crate) fn invalid(field: impl Into<String>, message: impl Into<String>) -> Error {
        Error { code: Code::InvalidArgument, field: field.into(), message: message.into(), hip_code: 0 }
    }
}

/// Calls the library and turns its failure into an [`Error`].
pub(crate) fn call(function: impl FnOnce(*mut sys::sluice_error) -> sys::sluice_status) -> Result<()> {
    let mut error = sys::sluice_error::default();
    let status = function(&mut error);
    if status == sys::SLUICE_OK {
        return Ok(());
    }
    Err(Error {
        code: Code::from_raw(status),
        field: text::from_array(&error.field),
        message: text::from_array(&error.message),
        hip_code: error.hip_code,
    })
}

/// A number that the library takes as `int32_t`.
pub(crate) fn int(field: &str, value: usize) -> Result<i32> {
    i32::try_from(value)
        .map_err(|_| Error::invalid(field, format!("{field} is {value}; it must be at most {}", i32::MAX)))
}

/// A number that the library takes as `int64_t`.
pub(crate) fn int_64(field: &str, value: usize) -> Result<i64> {
    i64::try_from(value)
        .map_err(|_| Error::invalid(field, format!("{field} is {value}; it must be at most {}", i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_header() {
        for (raw, code) in CODES {
            assert_eq!((Code::from_raw(raw), code.raw()), (code, raw));
        }
        assert_eq!(Code::Unsupported.name(), "SLUICE_UNSUPPORTED");
        assert_eq!((Code::from_raw(77), Code::Other(77).raw()), (Code::Other(77), 77));
        assert_eq!(Code::Other(77).name(), "unknown status");
    }

    #[test]
    fn an_error_reads_like_its_message() {
        let error = Error::invalid("q", "q is wrong");
        assert_eq!(error.to_string(), "SLUICE_INVALID_ARGUMENT: q is wrong");
        let _: &dyn std::error::Error = &error;
    }

    #[test]
    fn numbers_have_to_fit() {
        assert_eq!(int("batch", i32::MAX as usize), Ok(i32::MAX));
        let error = int("batch", 1 << 31).unwrap_err();
        assert_eq!((error.field.as_str(), error.code), ("batch", Code::InvalidArgument));
        assert_eq!(error.message, "batch is 2147483648; it must be at most 2147483647");
    }
}
