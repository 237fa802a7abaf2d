"""Installs the package into a virtual environment of the build, and runs a test program there.

usage: environment.py [--torch] BUILD WORK PROGRAM...

BUILD is the build folder with libsluice.so, WORK a folder for wheels and environment. If pip reaches no index, the exit
status is 77: skipped, with the reason.
"""

import fcntl
import hashlib
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parent
sys.path.insert(0, str(HERE.parents[2] / "tests" / "support"))

from virtual_environment import VirtualEnvironment, must  # noqa: E402

TOOLS = ["scikit-build-core>=0.10", "nanobind>=2.2", "cmake>=3.25", "ninja", "numpy", "mypy"]


class Environment(VirtualEnvironment):
    def __init__(self, build, work):
        super().__init__(work)
        self.build, self.work = build, work

    def inputs(self):
        """The sources of the wheels."""
        digest = hashlib.sha256()
        files = [PACKAGE / "LICENSE", PACKAGE / "README.md", *PACKAGE.glob("*.t*"), *PACKAGE.glob("core/*"),
                 *PACKAGE.glob("sluice/*.py"), *PACKAGE.glob("emulator/*"), *(self.build / "lib").glob("libsluice*.so.[0-9]")]
        for file in sorted(files):
            digest.update(str(file.name).encode() + file.read_bytes())
        return digest.hexdigest()

    def install(self):
        """Builds both wheels and installs them, if their contents have changed."""
        stamp, wanted = self.folder / "wheels.txt", self.inputs()
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return
        wheels = self.work / "wheels"
        wheels.mkdir(exist_ok=True)
        for old in wheels.glob("*.whl"):
            old.unlink()
        settings = {**os.environ, "SLUICE_DIR": str(self.build), "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        must(self.pip("wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", wheels, PACKAGE, PACKAGE / "emulator"),
             "pip wheel", env=settings)
        must(self.pip("install", "--quiet", "--force-reinstall", "--no-deps", "--no-index", *wheels.glob("*.whl")),
             "pip install")
        stamp.write_text(wanted, encoding="utf-8")


def main():
    words = sys.argv[1:]
    with_torch = words[0] == "--torch"
    build, work, *program = words[1:] if with_torch else words
    work = pathlib.Path(work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    environment = Environment(pathlib.Path(build).resolve(), work)
    with open(work / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in parallel
        environment.need(TOOLS)
        if with_torch:
            environment.need(["torch"])
        environment.install()
    os.execv(environment.python, [str(environment.python), "-B", "-P", *program] if sys.version_info >= (3, 11)
             else [str(environment.python), "-B", *program])


if __name__ == "__main__":
    main()
