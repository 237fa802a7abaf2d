//! Lets this crate's tests and examples find the library where `sluice-sys` found it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let folder = std::env::var("DEP_SLUICE_LIB_DIR")
        .expect("the build script of sluice-sys says where the library is");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
}
