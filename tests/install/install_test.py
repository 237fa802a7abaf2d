#!/usr/bin/python3
"""Installs the build into a prefix, moves it, and builds programs against it as users would.

usage: install_test.py SOURCE BUILD WORK [CASE...]
Each case is a language or a way to find the library; without one, all are run. WORK is emptied first.
"""
import json
import os
import pathlib
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
        # Whatever remembers where it was installed is found out now.
        self.prefix = work / "moved here"
        first.rename(self.prefix)
        for file in ("hello.c", "mean.cpp"):
            shutil.copy(source / "docs/examples/hello" / file, work)
        shutil.copy(source / "tests/install/consumer/CMakeLists.txt", work)

    def environment(self, **more):
        # The emulator lies beside libsluice.so; a program with the library inside is told where.
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


def cmake_programs(installation, name, *settings):
    build = installation.work / name
    launcher = shutil.which("ccache")
    launchers = [f"-DCMAKE_{language}_COMPILER_LAUNCHER={launcher}" for language in ("C", "CXX") if launcher]
    run("cmake", "-G", "Ninja", "-S", installation.work, "-B", build, "-DCMAKE_BUILD_TYPE=Release", *launchers, *settings)
    run("cmake", "--build", build)
    for program in ("c_shared", "c_static", "cpp_shared", "cpp_static"):
        installation.expect_result(build / program)


def find_package(installation):
    """C and C++ programs by find_package, with the shared and the static library."""
    cmake_programs(installation, "find", f"-DCMAKE_PREFIX_PATH={installation.prefix}")


def fetch_content(installation):
    """The same programs in a project that contains this one."""
    cmake_programs(installation, "fetched", f"-DFETCH={installation.source}", "-DSLUICE_BUILD_KERNELS=OFF",
                   "-DSLUICE_BUILD_EMULATOR=OFF", "-DSLUICE_BUILD_TOOLS=OFF",
                   f"-DSLUICE_KERNEL_PACK={pack_of(installation.build)}")


def pack_of(build):
    for line in (build / "CMakeCache.txt").read_text().splitlines():
        if line.startswith("SLUICE_KERNEL_PACK:") and not line.endswith("="):
            return line.split("=", 1)[1]
    return build / "kernels/sluice.pack"


def pkg_config(installation):
    """The C program by pkg-config, without CMake."""
    flags = run("pkg-config", "--cflags", "--libs", "sluice", env=installation.environment())
    # Its output is for a shell.
    program = installation.work / "by_pkg_config"
    run("sh", "-c", f"cc '{installation.work}/hello.c' -o '{program}' {flags}")
    installation.expect_result(program)


def debian(installation):
    """The C program with what the Debian packages bring, unpacked somewhere."""
    folder, root = installation.work / "packages", installation.work / "debian root"
    run("cpack", "--config", installation.build / "CPackConfig.cmake", "-G", "DEB", "-B", folder)
    owners = {}
    for package in sorted(folder.glob("*.deb")):
        name = run("dpkg-deb", "--field", package, "Package").strip()
        for line in run("dpkg-deb", "--contents", package).splitlines():
            path = line.split(maxsplit=5)[5].split(" -> ")[0]
            if not path.endswith("/"):
                owners.setdefault(path, []).append(name)
        run("dpkg-deb", "--extract", package, root)
    if set(sum(owners.values(), [])) != {"libsluice1", "libsluice-dev", "sluice-emulator", "sluice-tools"}:
        sys.exit(f"the packages are {sorted(set(sum(owners.values(), [])))}")
    shared = {path: names for path, names in owners.items() if len(names) > 1}
    if shared:
        sys.exit(f"in more than one package: {shared}")
    installation.prefix = root / "usr"
    pkg_config(installation)


def conformance(installation):
    """The conformance kit on the emulator, with what the prefix alone holds."""
    program, report = installation.prefix / "bin/sluice-conformance", installation.work / "report.json"
    run(program, "--device", "emulated", "--part", "dense", "--filter", "f16_*_q17_kv17_causal_*", "--json", report,
        env={"PATH": "/usr/bin:/bin"})
    told = json.loads(report.read_text())
    if told["counts"]["passed"] == 0 or told["counts"]["passed"] != len(told["cases"]):
        sys.exit(f"{program} reports {told['counts']}")
    if told["device"]["chip"] != "gfx942" or not told["library"]["pack_id"]:
        sys.exit(f"{program} reports {told['device']} and {told['library']}")
    print(f"{program.name}: {told['counts']['passed']} cases passed on {told['device']['name']}")


CASES = {case.__name__: case for case in (find_package, fetch_content, pkg_config, debian, conformance)}


def main():
    if len(sys.argv) < 4 or any(name not in CASES for name in sys.argv[4:]):
        sys.exit(f"{__doc__}cases: {' '.join(CASES)}")
    installation = Installation(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:4]))
    for name in sys.argv[4:] or CASES:
        print(f"{name}: {CASES[name].__doc__}")
        CASES[name](installation)


if __name__ == "__main__":
    main()
