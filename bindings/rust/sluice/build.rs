//! Passes the library's folder, as found by `sluice-attention-sys`, on to crates that depend on this one, and lets this
//! crate's own tests and examples find it there.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // When only documentation is built, the sys crate needs no library and sets no folder.
    if let Ok(folder) = std::env::var("DEP_SLUICE_LIB_DIR") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
        println!("cargo:lib_dir={folder}");
    }
}
