//! Lets programs find libsluice.so where the build found it: Cargo does not hand an rpath on from a dependency.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if let Ok(folder) = std::env::var("DEP_SLUICE_ATTENTION_LIB_DIR") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
