//! Finds `libsluice.so`, or `libsluice.a` for the feature `static`: `SLUICE_DIR`, else pkg-config, else a build from
//! source; nothing if `DOCS_RS` says that only documentation is built. README.md has the details.
//! `tests/find.rs` includes this file and tries each way and each failure.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that the build links.
#[derive(Debug, PartialEq)]
pub struct Library {
    /// The folder that contains it.
    pub lib_dir: PathBuf,
    /// The file itself.
    pub kind: Kind,
    /// The folder of `sluice/sluice.h`, if the library comes with one.
    pub include_dir: Option<PathBuf>,
    /// The project that this script built it from; changes there build it again.
    pub source: Option<PathBuf>,
}

/// The file that is linked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Shared,
    Static,
}

impl Kind {
    pub fn file(self) -> &'static str {
        match self {
            Kind::Shared => "libsluice.so",
            Kind::Static => "libsluice.a",
        }
    }
}

/// The variables that change the answer. Cargo runs the script again anyway when a feature changes.
pub const VARIABLES: [&str; 9] = [
    "DOCS_RS",
    "SLUICE_DIR",
    "SLUICE_BUILD_FROM_SOURCE",
    "SLUICE_BUILD_KERNELS",
    "SLUICE_BUILD_EMULATOR",
    "SLUICE_KERNEL_PACK",
    "PKG_CONFIG",
    "PKG_CONFIG_PATH",
    "CMAKE",
];

type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the library, or what was tried and what to do; None if only documentation is wanted. `source` is the folder
/// that would be the project in a checkout.
pub fn find(variable: Variables, source: &Path, out: &Path) -> Result<Option<Library>, String> {
    if variable("DOCS_RS").is_some() {
        return Ok(None);
    }
    let kind = if variable("CARGO_FEATURE_STATIC").is_some() { Kind::Static } else { Kind::Shared };
    find_file(kind, variable, source, out).map(Some)
}

fn find_file(kind: Kind, variable: Variables, source: &Path, out: &Path) -> Result<Library, String> {
    if let Some(folder) = variable("SLUICE_DIR") {
        return in_folder(kind, absolute_of("SLUICE_DIR", &folder)?);
    }
    let mut tried = format!("{} was not found:\n  SLUICE_DIR is not set\n", kind.file());
    match from_pkg_config(kind, variable) {
        Ok(library) => return Ok(library),
        Err(reason) => writeln!(tried, "  pkg-config: {reason}").unwrap(),
    }
    match variable("SLUICE_BUILD_FROM_SOURCE").as_deref() {
        Some("1") => return from_source(kind, variable, source, out),
        Some(value) => writeln!(tried, "  SLUICE_BUILD_FROM_SOURCE is '{value}'; only 1 builds it").unwrap(),
        None => writeln!(tried, "  SLUICE_BUILD_FROM_SOURCE is not set").unwrap(),
    }
    tried += "Set SLUICE_DIR to the prefix it is installed in or to a folder it was built in (build/dev), or set\n\
              PKG_CONFIG_PATH to the folder of sluice.pc, or in a checkout set SLUICE_BUILD_FROM_SOURCE=1.";
    Err(tried)
}

/// Cargo runs this in the folder of the crate, not in the user's current folder.
fn absolute_of<'a>(name: &str, path: &'a str) -> Result<&'a Path, String> {
    match Path::new(path) {
        path if path.is_absolute() => Ok(path),
        _ => Err(format!("{name} is '{path}'; it must be an absolute path, such as \"$PWD/{path}\"")),
    }
}

/// Checks a prefix (`lib*/` and `include/`), or a CMake build folder, whose header is in its source folder.
fn in_folder(kind: Kind, folder: &Path) -> Result<Library, String> {
    let mut candidates = vec![folder.join("lib")];
    let entries =
        fs::read_dir(folder).map_err(|error| format!("SLUICE_DIR is '{}': {error}", folder.display()))?;
    candidates.extend(entries.flatten().map(|entry| entry.path()).filter(|path| {
        path.file_name().map_or(false, |name| name.to_string_lossy().starts_with("lib")) && path.is_dir()
    }));
    candidates[1..].sort();
    // Debian keeps libraries one folder deeper, per architecture.
    let deeper = fs::read_dir(folder.join("lib")).into_iter().flatten().flatten().map(|entry| entry.path());
    candidates.extend(deeper.filter(|path| path.is_dir()));
    let lib_dir = candidates.into_iter().find(|path| path.join(kind.file()).is_file()).ok_or_else(|| {
        format!(
            "SLUICE_DIR is '{0}', but {1} is missing in {0}/lib* and {0}/lib/*; it must be a prefix or \
             a build folder",
            folder.display(),
            kind.file()
        )
    })?;
    let source = fs::read_to_string(folder.join("CMakeCache.txt")).ok().and_then(|cache| {
        cache.lines().find_map(|line| line.strip_prefix("CMAKE_HOME_DIRECTORY:INTERNAL=")).map(PathBuf::from)
    });
    let headers = source.unwrap_or_else(|| folder.to_path_buf()).join("include");
    Ok(Library { lib_dir: absolute(&lib_dir), kind, include_dir: with_header(headers), source: None })
}

fn with_header(folder: PathBuf) -> Option<PathBuf> {
    folder.join("sluice/sluice.h").is_file().then(|| absolute(&folder))
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

fn from_pkg_config(kind: Kind, variable: Variables) -> Result<Library, String> {
    let program = variable("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let ask = |what: &str| {
        let mut command = Command::new(&program);
        if let Some(path) = variable("PKG_CONFIG_PATH") {
            command.env("PKG_CONFIG_PATH", path);
        }
        let output =
            command.args([what, "sluice"]).output().map_err(|error| format!("'{program}': {error}"))?;
        if !output.status.success() {
            return Err(format!("'{program} {what} sluice' failed: it knows no package 'sluice'"));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let lib_dir = PathBuf::from(ask("--variable=libdir")?);
    if !lib_dir.join(kind.file()).is_file() {
        return Err(format!(
            "package 'sluice' has libdir '{}', which does not contain {}",
            lib_dir.display(),
            kind.file()
        ));
    }
    let include_dir = with_header(PathBuf::from(ask("--variable=includedir")?));
    Ok(Library { lib_dir, kind, include_dir, source: None })
}

fn from_source(kind: Kind, variable: Variables, source: &Path, out: &Path) -> Result<Library, String> {
    let header = source.join("include/sluice/sluice.h");
    if !header.is_file() || !source.join("CMakeLists.txt").is_file() {
        return Err(format!(
            "SLUICE_BUILD_FROM_SOURCE is 1, but '{}' is not a checkout of Sluice",
            source.display()
        ));
    }
    let build = out.join("sluice-build");
    let program = variable("CMAKE").unwrap_or_else(|| "cmake".into());
    let mut configure = Command::new(&program);
    configure.arg("-S").arg(source).arg("-B").arg(&build).arg("-DCMAKE_BUILD_TYPE=Release");
    for option in ["TESTS", "EXAMPLES", "DOCS", "TOOLS"] {
        configure.arg(format!("-DSLUICE_BUILD_{option}=OFF"));
    }
    if let Some(pack) = variable("SLUICE_KERNEL_PACK") {
        absolute_of("SLUICE_KERNEL_PACK", &pack)?;
    }
    for name in ["SLUICE_BUILD_KERNELS", "SLUICE_BUILD_EMULATOR", "SLUICE_KERNEL_PACK"] {
        if let Some(value) = variable(name) {
            configure.arg(format!("-D{name}={value}"));
        }
    }
    run(&mut configure)?;
    run(Command::new(&program).arg("--build").arg(&build).arg("--parallel"))?;
    let lib_dir = build.join("lib");
    if !lib_dir.join(kind.file()).is_file() {
        return Err(format!("the build from source left no {} in '{}'", kind.file(), lib_dir.display()));
    }
    let include_dir = with_header(source.join("include"));
    Ok(Library { lib_dir, kind, include_dir, source: Some(source.to_path_buf()) })
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(format!("{command:?} failed:\n{}", String::from_utf8_lossy(&text)))
}

/// Libraries that libsluice.a needs, as in `Libs.private` of sluice.pc.
const NEEDED_BY_STATIC: [&str; 4] = ["zstd", "dl", "stdc++", "m"];

/// Instructions for cargo. Crates that depend on this one get the library's folder as `DEP_SLUICE_LIB_DIR`, because
/// cargo does not pass an rpath on.
pub fn instructions(library: &Option<Library>) -> String {
    let mut text = String::new();
    for name in VARIABLES {
        writeln!(text, "cargo:rerun-if-env-changed={name}").unwrap();
    }
    writeln!(text, "cargo:rerun-if-changed=build.rs").unwrap();
    let library = match library {
        Some(library) => library,
        None => return text,
    };
    let lib_dir = library.lib_dir.display();
    writeln!(text, "cargo:rerun-if-changed={lib_dir}/{}", library.kind.file()).unwrap();
    if let Some(source) = &library.source {
        for folder in ["include", "src", "kernels"] {
            writeln!(text, "cargo:rerun-if-changed={}", source.join(folder).display()).unwrap();
        }
    }
    writeln!(text, "cargo:rustc-link-search=native={lib_dir}").unwrap();
    match library.kind {
        Kind::Shared => writeln!(text, "cargo:rustc-link-lib=dylib=sluice").unwrap(),
        Kind::Static => {
            writeln!(text, "cargo:rustc-link-lib=static=sluice").unwrap();
            for name in NEEDED_BY_STATIC {
                writeln!(text, "cargo:rustc-link-lib=dylib={name}").unwrap();
            }
        }
    }
    // Also for a static library: it opens the emulator, which is in the same folder, only by name.
    writeln!(text, "cargo:rustc-link-arg=-Wl,-rpath,{lib_dir}").unwrap();
    writeln!(text, "cargo:lib_dir={lib_dir}").unwrap();
    if let Some(include_dir) = &library.include_dir {
        writeln!(text, "cargo:rustc-env=SLUICE_SYS_INCLUDE_DIR={}", include_dir.display()).unwrap();
        writeln!(text, "cargo:include_dir={}", include_dir.display()).unwrap();
    }
    text
}

#[allow(dead_code)] // where a test includes this file
fn main() {
    let folder = |name| PathBuf::from(env::var_os(name).expect("cargo sets it"));
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let source = absolute(&folder("CARGO_MANIFEST_DIR").join("../../.."));
    match find(&variable, &source, &folder("OUT_DIR")) {
        Ok(library) => print!("{}", instructions(&library)),
        Err(message) => {
            eprintln!("{message}");
            std::process::exit(1);
        }
    }
}
