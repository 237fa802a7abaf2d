//! x
/// The release.
/// ```
/// assert_eq!(sluice::abi(), 1);
/// ```
pub fn abi() -> u32 {
    unsafe { sluice_sys::sluice_abi_version() }
}
#[test]
fn t() {
    assert_eq!(abi(), 1);
}
