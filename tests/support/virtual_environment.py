"""Virtual environments of Python for tests, with packages from PyPI. If pip cannot reach PyPI, tests are skipped."""

import hashlib
import subprocess
import sys

SKIPPED = 77  # the exit status that CTest takes for a skipped test


def skip(reason):
    print(f"SKIPPED: {reason}", file=sys.stderr)
    sys.exit(SKIPPED)


def run(command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)


def must(command, what, **options):
    result = run(command, **options)
    if result.returncode != 0:
        sys.exit(f"{what} failed:\n{result.stdout}{result.stderr}")


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("[notice]")]
    return lines[-1] if lines else "no message"


class VirtualEnvironment:
    """In a folder below `work`, one for each version of Python."""

    def __init__(self, work):
        self.folder = work / f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.python = self.folder / "bin" / "python"

    def pip(self, *words):
        return [self.python, "-m", "pip", "--disable-pip-version-check", *words]

    def need(self, packages):
        """Installs packages that are missing, or skips."""
        stamp = self.folder / f"installed-{hashlib.sha256(' '.join(packages).encode()).hexdigest()[:12]}"
        if stamp.exists():
            return
        if not self.python.exists():
            made = run([sys.executable, "-m", "venv", "--clear", self.folder])
            if made.returncode != 0:
                skip(f"{sys.executable} cannot create a virtual environment: {last_line(made.stdout + made.stderr)}")
        installed = run(self.pip("install", "--no-input", "--quiet", "--timeout", "20", "--retries", "1", *packages))
        if installed.returncode != 0:
            skip(f"pip could not install {' '.join(packages)}: {last_line(installed.stderr)}")
        stamp.touch()
