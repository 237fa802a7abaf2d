"""The output of programs on a terminal."""
import os
import pty
import subprocess


def run_on_a_terminal(*command):
    """(output on stdout, output on a terminal at stderr); fails if the command does."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs,
                          text=True) as process:
        os.close(theirs)
        written = b""
        try:
            while chunk := os.read(ours, 65536):
                written += chunk
        except OSError:  # the other end is closed
            pass
        output = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0, written
    return output, written.decode()
