"""A Python that has the packages of packages.txt, in a virtual environment that is created once."""

import fcntl
import os
import pathlib
import platform
import subprocess
import sys

PACKAGES = pathlib.Path(__file__).with_name("packages.txt")
SKIPPED = 77  # the exit status that CTest takes for a skipped test
INSTALL_SECONDS = 1200


def skip(reason):
    print(f"SKIPPED: {reason}", file=sys.stderr)
    sys.exit(SKIPPED)


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("[notice]")]
    return lines[-1] if lines else "no message"


def install(folder):
    """Creates the environment, or skips: if pip cannot reach the network, there is nothing to test."""
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", folder], capture_output=True, text=True)
    if made.returncode != 0:
        skip(f"{sys.executable} cannot create a virtual environment (Debian's package python3-venv): "
             f"{last_line(made.stdout + made.stderr)}")
    command = [folder / "bin" / "pip", "--disable-pip-version-check", "install", "--no-input", "--quiet",
               "--timeout", "20", "--retries", "1", "-r", PACKAGES]
    try:
        installed = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        skip(f"pip could not install {PACKAGES.name} within {INSTALL_SECONDS} s")
    if installed.returncode != 0:
        skip(f"pip could not install {PACKAGES.name}: {last_line(installed.stderr)}")


def enter(work):
    """Continues in the environment in `work`, where the caller's script starts again."""
    folder = pathlib.Path(work).resolve() / f"packages-{platform.python_version()}"  # so that one Python does not delete another's
    if pathlib.Path(sys.prefix) == folder:
        return
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "installed.txt"
    with open(folder.with_name(folder.name + ".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side
        wanted = PACKAGES.read_text(encoding="utf-8")
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
            install(folder)
            stamp.write_text(wanted, encoding="utf-8")
    python = folder / "bin" / "python"
    os.execv(python, [python, "-B", *sys.argv])
