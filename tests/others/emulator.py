"""Launches of `sluice-emu run`, and their results."""

import json
import pathlib
import subprocess
import numpy as np


class LaunchError(Exception):
    pass


def save(work, **arrays):
    """One .npy file for each array; the --arg of each, in order."""
    values = []
    for name, array in arrays.items():
        path = pathlib.Path(work) / f"{name}.npy"
        np.save(path, array)
        values.append(f"buf:{path}")
    return values


class Emulator:
    def __init__(self, program):
        self.program = program

    def command(self, kernel, grid, arguments):
        command = [self.program, "run", kernel.code, "--kernel", kernel.name, "--json",
                   "--grid", ",".join(str(extent) for extent in grid), "--block", str(kernel.block)]
        if kernel.lds_bytes:
            command += ["--lds-bytes", str(kernel.lds_bytes)]
        for argument in [*arguments, *["u64:0"] * kernel.hidden_pointers]:
            command += ["--arg", argument]
        return command

    def run(self, kernel, grid, arguments, outputs, options=()):
        """The result of a launch with all checks, and the arrays of `outputs`, a map from arguments to files."""
        command = self.command(kernel, grid, arguments) + list(options)
        for place, path in outputs.items():
            command += ["--out", f"{place}={path}"]
        ended = subprocess.run(command, capture_output=True, text=True)
        if ended.returncode not in (0, 1):
            raise LaunchError(f"{kernel.name}: {ended.stderr.strip()}")
        return json.loads(ended.stdout), {place: np.load(path) for place, path in outputs.items()}

    def check(self, code):
        """Reports of missing wait states on any path, without a launch."""
        ended = subprocess.run([self.program, "check", "--json", code], capture_output=True, text=True)
        if ended.returncode not in (0, 1):
            raise LaunchError(f"{code}: {ended.stderr.strip()}")
        return json.loads(ended.stdout)

    def time(self, kernel, grid, arguments, compute_units, workgroups=None):
        """The timing model's figures of a launch."""
        command = self.command(kernel, grid, arguments) + ["--timing", "--timing-compute-units", str(compute_units)]
        if workgroups is not None:
            command += ["--timing-workgroups", str(workgroups)]
        ended = subprocess.run(command, capture_output=True, text=True)
        if ended.returncode != 0:
            raise LaunchError(f"{kernel.name}: {ended.stdout.strip()}\n{ended.stderr.strip()}")
        return json.loads(ended.stdout)
