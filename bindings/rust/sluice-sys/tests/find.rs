//! The build script: how it finds the library, and its message when it does not.

#[path = "../build.rs"]
mod build;

use build::{find, instructions, Kind, Library};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes an empty folder for this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("find").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder.canonicalize().unwrap()
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A process that another test starts meanwhile inherits this one's open files, and a file that is open for writing
/// cannot be run. So another program writes the file.
fn program(path: &Path, text: &str) -> String {
    let written = path.with_extension("text");
    write(written.clone(), &format!("#!/bin/sh\n{text}"));
    assert!(Command::new("install").args(["-m", "755"]).arg(written).arg(path).status().unwrap().success());
    path.display().to_string()
}

/// Calls `find` with only these variables set.
fn find_with(variables: &[(&str, &str)], source: &Path, out: &Path) -> Result<Library, String> {
    let variable =
        |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.to_string());
    find(&variable, source, out).map(|found| found.expect("a library is looked for"))
}

fn find_in(prefix: &Path) -> Result<Library, String> {
    let none = Path::new("/nowhere");
    find_with(&[("SLUICE_DIR", prefix.to_str().unwrap()), ("PKG_CONFIG", "/nowhere/pkg-config")], none, none)
}

const NO_PKG_CONFIG: (&str, &str) = ("PKG_CONFIG", "/nowhere/pkg-config");

#[test]
fn a_prefix_in_any_of_its_folders() {
    for place in ["lib", "lib64", "lib/x86_64-linux-gnu"] {
        let prefix = folder(&format!("prefix-{}", place.replace('/', "-")));
        write(prefix.join(place).join("libsluice.so"), "");
        write(prefix.join("include/sluice/sluice.h"), "");
        let expected = Library {
            lib_dir: prefix.join(place),
            kind: Kind::Shared,
            include_dir: Some(prefix.join("include")),
            source: None,
        };
        assert_eq!(find_in(&prefix), Ok(expected), "{place}");
    }
}

#[test]
fn a_build_folder_has_its_header_in_its_source() {
    let (source, build) = (folder("build-source"), folder("build-folder"));
    write(source.join("include/sluice/sluice.h"), "");
    write(build.join("lib/libsluice.so"), "");
    let home = format!("A:B=C\nCMAKE_HOME_DIRECTORY:INTERNAL={}\n", source.display());
    write(build.join("CMakeCache.txt"), &home);
    let found = find_in(&build).unwrap();
    assert_eq!((found.lib_dir, found.include_dir), (build.join("lib"), Some(source.join("include"))));
}

#[test]
fn only_the_named_folder_is_searched() {
    let prefix = folder("empty-prefix");
    let message = find_in(&prefix).unwrap_err();
    assert!(message.contains(&format!("SLUICE_DIR is '{}'", prefix.display())), "{message}");
    assert!(message.contains("must be a prefix or a build folder"), "{message}");
    assert!(find_in(Path::new("/nowhere/at/all")).unwrap_err().contains("SLUICE_DIR is '/nowhere/at/all'"));
}

#[test]
fn a_relative_path_is_refused() {
    let message = find_in(Path::new("build/dev")).unwrap_err();
    assert_eq!(message, "SLUICE_DIR is 'build/dev'; it must be an absolute path, such as \"$PWD/build/dev\"");
    let (source, out) = (folder("relative-source"), folder("relative-out"));
    write(source.join("include/sluice/sluice.h"), "");
    write(source.join("CMakeLists.txt"), "");
    let variables = [NO_PKG_CONFIG, ("SLUICE_BUILD_FROM_SOURCE", "1"), ("SLUICE_KERNEL_PACK", "a.pack")];
    let message = find_with(&variables, &source, &out).unwrap_err();
    assert!(message.starts_with("SLUICE_KERNEL_PACK is 'a.pack'; it must be an absolute path"), "{message}");
}

#[test]
fn pkg_config_comes_next() {
    let prefix = folder("pkg-config");
    write(prefix.join("libs/libsluice.so"), "");
    write(prefix.join("headers/sluice/sluice.h"), "");
    let answers = format!(
        "[ \"$PKG_CONFIG_PATH\" = /its/path ] || exit 1\n\
         case $1 in --variable=libdir) echo {0}/libs;; --variable=includedir) echo {0}/headers;; *) exit 1;; esac\n\
         [ $2 = sluice ]",
        prefix.display()
    );
    let pkg_config = program(&prefix.join("pkg-config"), &answers);
    let variables =
        [("PKG_CONFIG", &*pkg_config), ("PKG_CONFIG_PATH", "/its/path"), ("SLUICE_BUILD_FROM_SOURCE", "1")];
    let found = find_with(&variables, Path::new("/nowhere"), Path::new("/nowhere")).unwrap();
    assert_eq!((found.lib_dir, found.include_dir), (prefix.join("libs"), Some(prefix.join("headers"))));

    fs::remove_file(prefix.join("libs/libsluice.so")).unwrap();
    let message = find_with(&variables[..2], Path::new("/nowhere"), Path::new("/nowhere")).unwrap_err();
    assert!(message.contains("which does not contain libsluice.so"), "{message}");
}

#[test]
fn a_build_from_source_comes_last_and_passes_options_on() {
    let (source, out) = (folder("source"), folder("source-out"));
    write(source.join("include/sluice/sluice.h"), "");
    write(source.join("CMakeLists.txt"), "");
    // Leaves its arguments, and at --build the library.
    let cmake = program(
        &out.join("cmake"),
        &format!(
            "echo \"$@\" >> {0}/arguments\n[ \"$1\" != --build ] || {{ mkdir $2/lib && : > $2/lib/libsluice.so; }}\n\
             [ \"$1\" = --build ] || mkdir -p $4",
            out.display()
        ),
    );
    let variables = [
        NO_PKG_CONFIG,
        ("CMAKE", &*cmake),
        ("SLUICE_BUILD_FROM_SOURCE", "1"),
        ("SLUICE_BUILD_KERNELS", "OFF"),
        ("SLUICE_KERNEL_PACK", "/a/pack"),
    ];
    let found = find_with(&variables, &source, &out).unwrap();
    assert_eq!(found.lib_dir, out.join("sluice-build/lib"));
    assert_eq!(found.include_dir, Some(source.join("include")));
    let arguments = fs::read_to_string(out.join("arguments")).unwrap();
    assert!(arguments.contains(&format!("-S {} -B {}/sluice-build", source.display(), out.display())));
    assert!(arguments.contains("-DSLUICE_BUILD_TESTS=OFF") && !arguments.contains("SLUICE_BUILD_EMULATOR"));
    assert!(arguments.contains("-DSLUICE_BUILD_KERNELS=OFF -DSLUICE_KERNEL_PACK=/a/pack"), "{arguments}");
    assert!(
        instructions(&Some(found)).contains(&format!("cargo:rerun-if-changed={}/src\n", source.display()))
    );

    let failing = program(&out.join("failing"), "echo the reason; exit 3");
    let variables = [NO_PKG_CONFIG, ("CMAKE", &*failing), ("SLUICE_BUILD_FROM_SOURCE", "1")];
    let message = find_with(&variables, &source, &out).unwrap_err();
    assert!(message.contains("failing") && message.contains("the reason"), "{message}");
    let message = find_with(&variables, Path::new("/nowhere"), &out).unwrap_err();
    assert!(message.contains("'/nowhere' is not a checkout"), "{message}");
}

#[test]
fn the_error_lists_what_was_tried() {
    let nowhere = Path::new("/nowhere");
    let message = find_with(&[NO_PKG_CONFIG], nowhere, nowhere).unwrap_err();
    for part in [
        "SLUICE_DIR is not set",
        "pkg-config: '/nowhere/pkg-config'",
        "SLUICE_BUILD_FROM_SOURCE is not set",
        "Set SLUICE_DIR to",
    ] {
        assert!(message.contains(part), "'{part}' is missing in: {message}");
    }
    let message =
        find_with(&[NO_PKG_CONFIG, ("SLUICE_BUILD_FROM_SOURCE", "yes")], nowhere, nowhere).unwrap_err();
    assert!(message.contains("SLUICE_BUILD_FROM_SOURCE is 'yes'; only 1 builds it"), "{message}");
}

#[test]
fn the_static_library_is_another_file() {
    let (prefix, nowhere) = (folder("static"), Path::new("/nowhere"));
    write(prefix.join("lib64/libsluice.so"), "");
    let variables = [("SLUICE_DIR", prefix.to_str().unwrap()), ("CARGO_FEATURE_STATIC", "1")];
    let message = find_with(&variables, nowhere, nowhere).unwrap_err();
    assert!(message.contains("libsluice.a is missing in"), "{message}");
    write(prefix.join("lib/libsluice.a"), "");
    let found = find_with(&variables, nowhere, nowhere).unwrap();
    assert_eq!((&found.lib_dir, found.kind), (&prefix.join("lib"), Kind::Static));
    assert_eq!(find_in(&prefix).unwrap().lib_dir, prefix.join("lib64"));

    let pkg_config = program(&prefix.join("pkg-config"), &format!("echo {}/lib64", prefix.display()));
    let variables = [("PKG_CONFIG", &*pkg_config), ("CARGO_FEATURE_STATIC", "1")];
    let message = find_with(&variables, nowhere, nowhere).unwrap_err();
    assert!(message.starts_with("libsluice.a was not found"), "{message}");
    assert!(message.contains("/lib64', which does not contain libsluice.a"), "{message}");

    let text = instructions(&Some(found));
    let linked: Vec<&str> = text.lines().filter(|line| line.starts_with("cargo:rustc-link-lib")).collect();
    // The order in which a linker looks.
    let needed = ["static=sluice", "dylib=zstd", "dylib=dl", "dylib=stdc++", "dylib=m"];
    assert_eq!(linked, needed.map(|library| format!("cargo:rustc-link-lib={library}")));
    for line in [
        format!("cargo:rerun-if-changed={}/lib/libsluice.a", prefix.display()),
        format!("cargo:rustc-link-arg=-Wl,-rpath,{}/lib", prefix.display()),
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is missing in:\n{text}");
    }
}

/// When docs.rs builds documentation, neither the library nor a program that could find it exists.
#[test]
fn documentation_needs_no_library() {
    let nowhere = Path::new("/nowhere");
    let variable = |name: &str| match name {
        "DOCS_RS" => Some("1".to_string()),
        _ => panic!("{name} is asked for"),
    };
    let found = find(&variable, nowhere, nowhere);
    assert_eq!(found, Ok(None));
    let text = instructions(&None);
    assert!(text.contains("cargo:rerun-if-env-changed=DOCS_RS\n"), "{text}");
    assert!(text.lines().all(|line| line.starts_with("cargo:rerun-if-")), "{text}");
}

#[test]
fn programs_get_an_rpath_and_dependents_the_folder() {
    let library = Library {
        lib_dir: "/a/lib".into(),
        kind: Kind::Shared,
        include_dir: Some("/a/include".into()),
        source: None,
    };
    let text = instructions(&Some(library));
    for line in [
        "cargo:rustc-link-lib=dylib=sluice",
        "cargo:rustc-link-search=native=/a/lib",
        "cargo:rustc-link-arg=-Wl,-rpath,/a/lib",
        "cargo:lib_dir=/a/lib",
        "cargo:include_dir=/a/include",
        "cargo:rerun-if-env-changed=SLUICE_DIR",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is missing in:\n{text}");
    }
}
