#!/usr/bin/python3
"""Installs the build into a prefix, moves it, and builds programs against it as users would.

usage: install_test.py SOURCE BUILD WORK [CASE...]
Each case is a language or a way to find the library; without one, all are run. WORK is emptied first.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

RESULT = "the mean of 0, 1, 2, 3 is 0x3e00 in binary16\n"


class Installation:
    def __init__(self, source, build, work):
        self.source, self.build, self.work = source, build, work
        shutil.rmtree(work, ignore_errors=True)
        first = work / "installed"
        run("cmake", "--install", build, "--prefix", first, "--strip")
        for library in ("lib/libsluice.so", "lib/libsluice.a"):
            if ".debug_" in run("readelf", "--section-headers", "--wide", first / library):
                sys.exit(f"{library} is installed with debug information")
        # No file reveals the machine that built it, so builds of different machines do not differ for that reason.
        for file in first.rglob("*"):
            for folder in (source, build):
                if file.is_file() and str(folder).encode() in file.read_bytes():
                    sys.exit(f"{file} has {folder} in it")
        # Any file that remembers where it was installed is found now.
        self.prefix = work / "moved here"
        first.rename(self.prefix)
        for file in ("hello.c", "mean.cpp"):
            shutil.copy(source / "docs/examples/hello" / file, work)
        shutil.copy(source / "tests/install/consumer/CMakeLists.txt", work)

    def environment(self, **more):
        # The emulator is beside libsluice.so; a program with the library inside is told its place.
        return os.environ | {"PKG_CONFIG_PATH": f"{self.prefix}/lib/pkgconfig",
                             "LD_LIBRARY_PATH": f"{self.prefix}/lib"} | more

    def expect_result(self, program, **more):
        text = run(program, env=self.environment(**more))
        if text != RESULT:
            sys.exit(f"{program} printed {text!r} instead of {RESULT!r}")
        print(f"{program.name}: {text}", end="")


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(part) for part in command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def configure(installation, name, *settings):
    launcher = shutil.which("ccache")
    launchers = [f"-DCMAKE_{language}_COMPILER_LAUNCHER={launcher}" for language in ("C", "CXX") if launcher]
    return ["cmake", "-G", "Ninja", "-S", installation.work, "-B", installation.work / name,
            "-DCMAKE_BUILD_TYPE=Release", "--no-warn-unused-cli", *launchers, *settings]


def cmake_programs(installation, name, *settings, languages=("c", "cpp")):
    build = installation.work / name
    run(*configure(installation, name, *settings))
    run("cmake", "--build", build)
    for language in languages:
        for kind in ("shared", "static"):
            installation.expect_result(build / f"{language}_{kind}")
    # The contents of a library are private, since its users may link another release.
    shown = run("nm", "--dynamic", "--defined-only", build / "libplugin.so")
    if "sluice_" in shown:
        sys.exit(f"libplugin.so exports private symbols:\n{shown}")


def find_package(installation):
    """C and C++ programs by find_package, with the shared and the static library."""
    here = f"-DCMAKE_PREFIX_PATH={installation.prefix}"
    cmake_programs(installation, "find", here)
    cmake_programs(installation, "in_c", here, "-DC_ONLY=ON", "-DREQUEST=2.0...<3 COMPONENTS shared static",
                   "-DCMAKE_C_FLAGS=-O2 -flto -fvisibility=hidden -ffunction-sections",
                   "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--gc-sections", languages=("c",))
    header = (installation.source / "include/sluice/types.h").read_text()
    newer = f"2.{int(re.search(r'#define SLUICE_ABI_MINOR ([0-9]+)', header)[1]) + 1}"
    for request, why in ((newer, f'requested version "{newer}"'), ("3.0", 'requested version "3.0"'),
                         ("1.9", 'requested version "1.9"'), (f"{newer}...2.9", f'requested version range "{newer}...2.9"'),
                         ("2.0 COMPONENTS emulator", "unknown component emulator")):
        refused = subprocess.run([str(part) for part in configure(installation, "refused", here, "-DC_ONLY=ON",
                                                                  f"-DREQUEST={request}")],
                                 capture_output=True, text=True)
        if refused.returncode == 0 or why not in refused.stderr:
            sys.exit(f"find_package(sluice {request}) ended with {refused.returncode}:\n{refused.stderr}")


def fetch_content(installation):
    """The same programs in a project that contains this one, and has its own settings."""
    cmake_programs(installation, "fetched", f"-DFETCH={installation.source}", "-DSLUICE_BUILD_KERNELS=OFF",
                   "-DSLUICE_BUILD_EMULATOR=OFF", "-DSLUICE_BUILD_TOOLS=OFF",
                   f"-DSLUICE_KERNEL_PACK={pack_of(installation.build)}", "-DBUILD_SHARED_LIBS=ON",
                   "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON")


def vendored(installation):
    """The sources without their history, in the repository of another project, whose commit is not theirs."""
    project = installation.work / "project"
    sources = project / "third_party/sluice"
    for folder in ("include", "src"):
        shutil.copytree(installation.source / folder, sources / folder)
    for file in ("CMakeLists.txt", "LICENSE", "docs/CMakeLists.txt"):
        (sources / file).parent.mkdir(exist_ok=True)
        shutil.copy(installation.source / file, sources / file)
    git = ["git", "-C", project, "-c", "user.name=A", "-c", "user.email=a@localhost"]
    run("git", "init", "--quiet", project)
    run(*git, "commit", "--quiet", "--allow-empty", "--message=Begin")
    told = [commit_of(installation, *tree) for tree in (("theirs", sources), ("ours", installation.source))]
    ours = "unknown"
    if (installation.source / ".git").exists():
        ours = run("git", "-C", installation.source, "describe", "--always", "--abbrev=12", "--exclude=*").strip()
    if told != ["unknown", ours]:
        sys.exit(f"the reported commits are {told}, expected 'unknown' and {ours}")
    print(f"commits: {', '.join(told)}")


def commit_of(installation, name, sources):
    """The version that a build of these sources reports, without its changes."""
    build = installation.work / name
    run("cmake", "-G", "Ninja", "-S", sources, "-B", build, "-DSLUICE_BUILD_KERNELS=OFF", "-DSLUICE_BUILD_EMULATOR=OFF",
        "-DSLUICE_BUILD_TOOLS=OFF", "-DSLUICE_BUILD_TESTS=OFF", "-DSLUICE_BUILD_EXAMPLES=OFF")
    text = (build / "build.ninja").read_text()
    return re.search(r'SLUICE_GIT_COMMIT=\\"([^\\]*)\\"', text).group(1).removesuffix("-dirty")


def pack_of(build):
    for line in (build / "CMakeCache.txt").read_text().splitlines():
        if line.startswith("SLUICE_KERNEL_PACK:") and not line.endswith("="):
            return line.split("=", 1)[1]
    return build / "kernels/sluice.pack"


def pkg_config(installation):
    """The C program by pkg-config, without CMake."""
    flags = run("pkg-config", "--cflags", "--libs", "sluice", env=installation.environment())
    # pkg-config's output is meant for a shell.
    program = installation.work / "by_pkg_config"
    run("sh", "-c", f"cc '{installation.work}/hello.c' -o '{program}' {flags}")
    installation.expect_result(program)
    # Without a libsluice.so to link, -lsluice is libsluice.a, which needs more libraries.
    (installation.prefix / "lib/libsluice.so").unlink()
    flags = run("pkg-config", "--static", "--cflags", "--libs", "sluice", env=installation.environment())
    run("sh", "-c", f"cc '{installation.work}/hello.c' -o '{program}' {flags}")
    if "libsluice" in run("readelf", "--dynamic", program):
        sys.exit(f"{program} needs libsluice.so")
    installation.expect_result(program)


def check_with_lintian(folder):
    """Debian's own checks find no errors, if lintian is installed."""
    lintian = shutil.which("lintian")
    if lintian is None:
        print("skipped: lintian is not installed")
        return
    done = subprocess.run([lintian, "--allow-root", "--fail-on", "error", *folder.glob("*.deb")], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"lintian:\n{done.stdout}{done.stderr}")


def debian(installation):
    """The C program with the contents of the Debian packages, unpacked somewhere."""
    folder, root = installation.work / "packages", installation.work / "debian root"
    run("cpack", "--config", installation.build / "CPackConfig.cmake", "-G", "DEB", "-B", folder)
    owners, control = {}, installation.work / "control"
    control.mkdir()
    for package in sorted(folder.glob("*.deb")):
        name = run("dpkg-deb", "--field", package, "Package").strip()
        run("dpkg-deb", "--control", package, control / name)
        for line in run("dpkg-deb", "--contents", package).splitlines():
            path = line.split(maxsplit=5)[5].split(" -> ")[0]
            if not path.endswith("/"):
                owners.setdefault(path, []).append(name)
        run("dpkg-deb", "--extract", package, root)
    packages = set(sum(owners.values(), []))
    if packages != {"libsluice2", "libsluice-dev", "sluice-emulator", "sluice-emulator-dev", "sluice-tools", "sluice-doc"}:
        sys.exit(f"the packages are {sorted(packages)}")
    shared = {path: names for path, names in owners.items() if len(names) > 1}
    if shared:
        sys.exit(f"in more than one package: {shared}")
    for name in packages:
        for file in ("copyright", "changelog.gz"):
            if owners.get(f"./usr/share/doc/{name}/{file}") != [name]:
                sys.exit(f"{name} has no {file}")
    json.loads((root / "usr/share/doc/sluice/sluice.spdx.json").read_text())
    if "@" in (root / "usr/share/doc/sluice/sluice.spdx.json").read_text():
        sys.exit("the bill of materials is not filled in")
    check_with_lintian(folder)
    # From this file dpkg-shlibdeps knows the dependencies of a package whose program was linked with the library.
    shlibs = (control / "libsluice2/shlibs").read_text()
    if not re.fullmatch(r"libsluice 2 libsluice2 \(>= 2\.\d+\)\n", shlibs):
        sys.exit(f"the shlibs of libsluice2 are {shlibs!r}")
    shlibs = (control / "sluice-emulator/shlibs").read_text()
    if not re.fullmatch(r"libsluice_emulator 1 sluice-emulator \(>= 2\.\d+\)\n", shlibs):
        sys.exit(f"the shlibs of sluice-emulator are {shlibs!r}")
    if owners.get("./usr/include/sluice/emulator.h") != ["sluice-emulator-dev"]:
        sys.exit("sluice-emulator-dev has no sluice/emulator.h")
    installation.prefix = root / "usr"
    pkg_config(installation)


def emulator(installation):
    """A program in C and the same in C++ that opens the emulator itself, with the installed header."""
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-pedantic-errors", "-Wconversion", "-Wshadow", "-Werror"]
    source = installation.source / "tests/install/consumer/emulator.c"
    for compiler, standard, language in (("cc", "c11", "c"), ("c++", "c++17", "c++")):
        program = installation.work / f"emulator_{standard}"
        run(compiler, f"-std={standard}", *strict, "-I", installation.prefix / "include", "-x", language, source, "-o",
            program, "-ldl")
        text = run(program, env=installation.environment())
        if text != "1 device, 0 launches\n":
            sys.exit(f"{program} printed {text!r}")
        print(f"{program.name}: {text}", end="")


def conformance(installation):
    """The conformance kit on the emulator, with only the contents of the prefix."""
    program, report = installation.prefix / "bin/sluice-conformance", installation.work / "report.json"
    run(program, "--device", "emulated", "--part", "dense", "--filter", "f16_*_q17_kv17_causal_*", "--json", report,
        env={"PATH": "/usr/bin:/bin"})
    told = json.loads(report.read_text())
    if told["counts"]["passed"] == 0 or told["counts"]["passed"] != len(told["cases"]):
        sys.exit(f"{program} reports {told['counts']}")
    if told["device"]["chip"] != "gfx942" or not told["library"]["pack_id"]:
        sys.exit(f"{program} reports {told['device']} and {told['library']}")
    print(f"{program.name}: {told['counts']['passed']} cases passed on {told['device']['name']}")


def rust(installation):
    """A crate that depends on the safe binding, which finds the library in the prefix."""
    crate = installation.work / "crate"
    (crate / "src").mkdir(parents=True)
    bindings = installation.source / "bindings/rust"
    shutil.copy(bindings / "sluice/examples/hello.rs", crate / "src/main.rs")
    (crate / "Cargo.toml").write_text('[package]\nname = "consumer"\nversion = "0.1.0"\nedition = "2021"\n'
                                      f'[dependencies]\nsluice-attention = {{ path = "{bindings}/sluice" }}\n')
    run(toolchain("cargo"), "build", "--offline", cwd=crate,
        env=installation.environment(CARGO_TARGET_DIR=str(crate / "target"), SLUICE_DIR=str(installation.prefix)))
    installation.expect_result(crate / "target/debug/consumer")


def go(installation):
    """A module that requires the Go package, which finds the library with pkg-config."""
    # Go 1.19 splits pkg-config's list of libraries at every space, escaped or not.
    installation.prefix = installation.prefix.rename(installation.work / "moved")
    module = installation.work / "module"
    module.mkdir()
    bindings = installation.source / "bindings/go"
    shutil.copy(bindings / "examples/hello/main.go", module)
    package = "github.com/sluice-attention/sluice/bindings/go"
    (module / "go.mod").write_text(f"module consumer\n\ngo 1.19\n\nrequire {package} v0.0.0\n\n"
                                   f"replace {package} => {bindings}\n")
    run(toolchain("go"), "build", "-buildvcs=false", "-o", "consumer", ".", cwd=module,
        env=installation.environment(GOENV="off", GOPROXY="off", GOFLAGS="-mod=mod", GOCACHE=str(module / "cache"),
                                     GOPATH=str(module / "path"), CGO_ENABLED="1"))
    installation.expect_result(module / "consumer")


def toolchain(program):
    """Debian's, which is the oldest that is supported, else the one on the PATH."""
    found = shutil.which(program, path="/usr/bin") or shutil.which(program)
    if not found:
        sys.exit(f"{program} is missing: ./dev test installs it")
    return found


CASES = {case.__name__: case for case in (find_package, fetch_content, vendored, pkg_config, debian, emulator, conformance, rust,
                                            go)}


def main():
    if len(sys.argv) < 4 or any(name not in CASES for name in sys.argv[4:]):
        sys.exit(f"{__doc__}cases: {' '.join(CASES)}")
    installation = Installation(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:4]))
    for name in sys.argv[4:] or CASES:
        print(f"{name}: {CASES[name].__doc__}")
        CASES[name](installation)


if __name__ == "__main__":
    main()
