//! Hands the folder of the library, as `sluice-attention-sys` found it, on to crates that depend on this one, and lets this
//! crate's own tests and examples find it there.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Where the sys crate needed no library, for documentation, there is no folder.
    if let Ok(folder) = std::env::var("DEP_SLUICE_LIB_DIR") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
        println!("cargo:lib_dir={folder}");
    }
}
