#!/usr/bin/env python3
"""Packages both crates, and uses the packages like a user would: in a crate outside the workspace.

usage: crates_test.py CARGO LIBRARY WORK [CASE...]

CARGO is a cargo, LIBRARY a build folder or prefix of Sluice and WORK a folder for all output. RUSTC and RUSTDOC are
passed on. Only the case `half` fetches anything: without a network it ends with status 77.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
RESULT = "the mean of 0, 1, 2, 3 is 0x3e00 in binary16\n"
CRATES = {"sluice-attention-sys": "sluice-sys", "sluice-attention": "sluice"}
HALF = "2.2.1"  # the last version that Rust 1.63 compiles
SKIPPED = 77


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(part) for part in command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


class Test:
    def __init__(self, cargo, library, work):
        self.cargo, self.library, self.work = cargo, library, work
        shutil.rmtree(work, ignore_errors=True)
        (work / "home").mkdir(parents=True)
        version = re.search(r"cargo ([0-9]+)\.([0-9]+)", run(cargo, "--version"))
        # Since this version, cargo treats packages that are packaged together as published.
        self.packages_workspaces = (int(version[1]), int(version[2])) >= (1, 90)
        self.version = re.search(r'\nversion = "(.*)"', (HERE / "sluice/Cargo.toml").read_text())[1]
        # A home without a registry, and no way to the library except the one that a case gives.
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("SLUICE_", "CARGO_", "DEP_")) and name not in ("DOCS_RS", "LD_LIBRARY_PATH")}
        self.environment = kept | {"CARGO_HOME": str(work / "home"), "CARGO_TARGET_DIR": str(work / "target"),
                                   "PKG_CONFIG": "/nowhere/pkg-config"}
        self.with_library = {"SLUICE_DIR": str(library)}

    def cargo_in(self, folder, *arguments, **more):
        return run(self.cargo, *arguments, "--offline", cwd=folder, env=self.environment | more)

    def unpacked(self):
        """The folders of both crates as in the packages. For a cargo that cannot package the second before the first is
        published, copies the files that `cargo package --list` names."""
        folders = {}
        for crate, folder in CRATES.items():
            there = self.work / "unpacked" / f"{crate}-{self.version}"
            if self.packages_workspaces or crate == "sluice-attention-sys":
                with tarfile.open(self.work / f"target/package/{crate}-{self.version}.crate") as package:
                    package.extractall(there.parent)
            else:
                for name in self.cargo_in(HERE / folder, "package", "--list", "--allow-dirty").split():
                    source = HERE / ("README.md" if name == "README.md" else f"{folder}/{name}")
                    if source.is_file():
                        (there / name).parent.mkdir(parents=True, exist_ok=True)
                        shutil.copy(source, there / name)
                manifest = (there / "Cargo.toml").read_text()
                (there / "Cargo.toml").write_text(re.sub(r'path = "\.\./[^"]*", ', "", manifest))
            folders[crate] = there
        return folders

    def consumer(self, name, program, features="", dependencies=""):
        """A crate that depends on the packages, with the build script that README.md has for it."""
        folders, crate = self.unpacked(), self.work / name
        (crate / "src").mkdir(parents=True)
        (crate / "src/main.rs").write_text(program)
        (crate / "Cargo.toml").write_text(
            f'[package]\nname = "consumer"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n{dependencies}'
            f'sluice-attention = {{ path = "{folders["sluice-attention"]}", features = [{features}] }}\n\n'
            f'[patch.crates-io]\nsluice-attention-sys = {{ path = "{folders["sluice-attention-sys"]}" }}\n')
        (crate / "build.rs").write_text(self.build_script())
        return crate

    @staticmethod
    def build_script():
        blocks = re.findall(r"```rust\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)
        (block,) = (block for block in blocks if "DEP_SLUICE_ATTENTION_LIB_DIR" in block)
        return block

    def expect_result(self, *program, **more):
        text = run(*program, env={"PATH": "/usr/bin:/bin"} | self.pack() | more)
        if text != RESULT:
            sys.exit(f"{program[0]} printed {text!r} instead of {RESULT!r}")
        print(f"{program[0].name}: {text}", end="")

    @staticmethod
    def pack():
        """For a build folder whose library contains no kernels."""
        pack = os.environ.get("SLUICE_KERNEL_PACK")
        return {"SLUICE_KERNEL_PACK": pack} if pack else {}


def package(test):
    """Both crates are packaged with their licence, and the packages compile."""
    if test.packages_workspaces:
        test.cargo_in(HERE, "package", "--workspace", "--locked", "--allow-dirty", **test.with_library)
    else:
        test.cargo_in(HERE / "sluice-sys", "package", "--locked", "--allow-dirty", **test.with_library)
    for crate, folder in test.unpacked().items():
        names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        missing = {"Cargo.toml", "LICENSE", "README.md", "build.rs", "src/lib.rs"} - names
        others = {name for name in names if name.startswith(("tests/", "examples/jargon_lm"))}
        if missing or others:
            sys.exit(f"the package of {crate} lacks {sorted(missing)} and has {sorted(others)}")
        if (folder / "LICENSE").read_bytes() != (HERE / "../../LICENSE").read_bytes():
            sys.exit(f"the package of {crate} has another licence than the project")
        print(f"{crate}: {len(names)} files")


def rpath(test):
    """A program finds the shared library where the build found it."""
    crate = test.consumer("rpath", (HERE / "sluice/examples/hello.rs").read_text())
    test.cargo_in(crate, "build", **test.with_library)
    program = test.work / "target/debug/consumer"
    if "libsluice.so" not in run("readelf", "--dynamic", program):
        sys.exit(f"{program} does not need libsluice.so")
    test.expect_result(program)


def static(test):
    """With the feature `static`, a program contains the library."""
    crate = test.consumer("static", (HERE / "sluice/examples/hello.rs").read_text(), features='"static"')
    test.cargo_in(crate, "build", **test.with_library)
    program = test.work / "target/debug/consumer"
    if "libsluice" in run("readelf", "--dynamic", program).replace(str(test.library), ""):
        sys.exit(f"{program} needs libsluice.so")
    test.expect_result(program)


def docs(test):
    """docs.rs has no library, but a crate that depends on these can still be documented."""
    crate = test.consumer("docs", "//! Nothing.\nfn main() {}\n")
    refused = subprocess.run([test.cargo, "doc", "--offline"], cwd=crate, env=test.environment, capture_output=True,
                             text=True)
    if refused.returncode == 0 or "libsluice.so was not found" not in refused.stderr:
        sys.exit(f"without a library, cargo doc ended with {refused.returncode}:\n{refused.stderr}")
    test.cargo_in(crate, "doc", DOCS_RS="1", RUSTDOCFLAGS="-D warnings")
    for page in ("sluice/hip/index.html", "sluice_sys/index.html"):
        if not (test.work / "target/doc" / page).is_file():
            sys.exit(f"{page} does not exist")
        print(page)


PROGRAM_WITH_HALF = """
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use sluice::hip::Hip;
use sluice::{Bf16, Context, Layout, F16};

fn main() -> sluice::Result<()> {
    let hip = Hip::new(&Context::emulated().build()?)?;
    let numbers: Vec<f16> = (0..8).map(|i| f16::from_f32(i as f32)).collect();
    let buffer = hip.buffer(F16::slice_of_bits(numbers.reinterpret_cast()))?;
    buffer.tensor(Layout::rows([1, 1, 8]))?;
    let mut results = vec![f16::NAN; 8];
    buffer.download(F16::slice_of_bits_mut(results.reinterpret_cast_mut()))?;
    assert_eq!(results, numbers);
    assert_eq!(F16::from_f32(0.1).0, f16::from_f32(0.1).to_bits());
    assert_eq!(Bf16::slice_of_bits([bf16::ONE].reinterpret_cast()), [Bf16::from_f32(1.0)]);
    println!("{}", results[7]);
    Ok(())
}
"""


def half(test):
    """Numbers of the crate `half` go to a device and back."""
    shown = re.search(r"### Numbers of the crate `half`\n(.*?)\n## ", (HERE / "README.md").read_text(), re.DOTALL)[1]
    for line in re.findall(r"^    (.+)$", shown, re.MULTILINE):
        if line not in PROGRAM_WITH_HALF:
            sys.exit(f"README.md shows {line!r}, which the program does not have")
    crate = test.consumer("half", PROGRAM_WITH_HALF, dependencies=f'half = "={HALF}"\n')
    fetched = subprocess.run([test.cargo, "fetch"], cwd=crate, env=test.environment, capture_output=True, text=True)
    if fetched.returncode != 0:
        print(f"half {HALF} cannot be fetched:\n{fetched.stderr}")
        sys.exit(SKIPPED)
    test.cargo_in(crate, "build", **test.with_library)
    text = run(test.work / "target/debug/consumer", env={"PATH": "/usr/bin:/bin"} | test.pack())
    if text != "7\n":
        sys.exit(f"the program printed {text!r}")
    print(text, end="")


CASES = {case.__name__: case for case in (package, rpath, static, docs, half)}


def main():
    if len(sys.argv) < 4 or any(name not in CASES for name in sys.argv[4:]):
        sys.exit(f"{__doc__}cases: {' '.join(CASES)}; all begin with the first")
    library, work = (pathlib.Path(argument).resolve() for argument in sys.argv[2:4])
    test = Test(sys.argv[1], library, work)
    for name in dict.fromkeys(["package", *(sys.argv[4:] or CASES)]):
        print(f"{name}: {CASES[name].__doc__}", flush=True)
        CASES[name](test)


if __name__ == "__main__":
    main()
