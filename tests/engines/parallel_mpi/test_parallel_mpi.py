#!/usr/bin/python3
"""docs/examples/parallel in C++ over several ranks: results, bytes, overlap, and failing ranks.

usage: test_parallel_mpi.py MPIRUN PROGRAM SLUICE_HIP CLASS
SLUICE_HIP is the folder with libamdhip64 over the emulator. Without a working Open MPI the exit status is 77: skipped.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "examples" / "parallel" / "parallel.md"
# Several ranks on one machine with few cores, and as root if need be.
SETTINGS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_btl": "self,vader"}
SKIPPED = 77
WAYS = ("prefill by heads", "prefill as a ring", "decode")


def mpirun(ranks, *command, timeout=60, **environment):
    """(status, output). A job that hangs is killed, and fails the test."""
    words = [MPIRUN, "-n", str(ranks), *map(str, command)]
    # The jobs of a user share a folder, and remove it, unless each has its own.
    with tempfile.TemporaryDirectory() as own:
        environment = {**os.environ, **SETTINGS, "OMPI_MCA_orte_tmpdir_base": own, **environment}
        job = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        try:
            said, _ = job.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            job.terminate()  # mpirun ends its ranks then
            said, _ = job.communicate(timeout=30)
            raise AssertionError(f"no end after {timeout} s: {shlex.join(words)}\n{said}") from None
    return job.returncode, said


class Case(unittest.TestCase):
    def check_equal(self, ranks, *options, ways=WAYS, timeout=60, **environment):
        """All ranks have one device's result and the formula's bytes; returns the output."""
        status, said = mpirun(ranks, PROGRAM, *options, timeout=timeout, **environment)
        self.assertEqual(status, 0, said)
        for way in ways:
            found = re.findall(rf"^rank (\d+) of {ranks}, {way}: .*: equal$", said, re.MULTILINE)
            self.assertEqual(sorted(map(int, found)), list(range(ranks)), said)
        return said

    def check_failure(self, ranks, *options, sentence, **environment):
        """All ranks end with the same sentence, and the job with an error."""
        status, said = mpirun(ranks, PROGRAM, *options, **environment)
        self.assertNotEqual(status, 0, said)
        for rank in range(ranks):
            self.assertRegex(said, rf"(?m)^rank {rank}: {sentence}$")


class Page(Case):
    """The lines of the page are run, and print what it says."""

    def test_the_page(self):
        page = PAGE.read_text(encoding="utf-8")
        block = re.search(r"```sh\n\./dev build\n(mpirun .*)\n```\n\n.*?```text\n(.*?)```", page, re.DOTALL)
        self.assertIsNotNone(block, "the page has no block that begins with ./dev build and mpirun")
        words = shlex.split(block[1])
        self.assertEqual(words[:3], ["mpirun", "-n", "4"])
        words = [PROGRAM if word == "build/dev/bin/sluice_parallel" else word for word in words]
        status, said = mpirun(4, *words[3:])
        self.assertEqual(status, 0, said)
        # How many messages are early depends on the machine.
        own = re.sub(r"\d+ of (\d+) messages", r"some of \1 messages", "".join(re.findall(r"rank 0 .*\n", said)))
        shown = re.sub(r"\d+ of (\d+) messages", r"some of \1 messages", block[2])
        self.assertEqual(own, shown)


class Results(Case):
    def test_all_ranks_compute_equally_much(self):
        said = self.check_equal(4, "--prefill", 256, "--decode", 300)
        self.assertEqual(re.findall(r"ring: (\d+) scores a head", said), [str(256 * 257 // 2 // 4)] * 4, said)

    def test_groups_of_heads_and_two_ranks(self):
        self.check_equal(2, "--prefill", 128, "--decode", 70, "--heads", 8, "--kv-heads", 2, "--dim", 128)

    def test_lengths_that_ranks_do_not_divide(self):
        self.check_equal(3, "--prefill", 103, "--decode", 1001, "--heads", 12, "--kv-heads", 3, "--dim", 72)

    def test_ranks_without_tokens_and_without_keys(self):
        self.check_equal(3, "--prefill", 2, "--decode", 1, "--heads", 3, "--kv-heads", 3)

    def test_double_precision(self):
        self.check_equal(4, "--prefill", 200, "--decode", 1030, "--against", "reference")

    def test_one_rank_sends_nothing(self):
        said = self.check_equal(1, "--prefill", 70, "--decode", 5)
        self.assertEqual(said.count("sent 0 bytes (formula 0)"), 3, said)

    def test_messages_do_not_wait_for_the_run_beside_them(self):
        # The runs wait for the messages: if messages also waited for runs, the job would not end.
        for buffers in ("host", "device"):
            said = self.check_equal(4, "--prefill", 128, "--hold-runs", "on", "--buffers", buffers, ways=WAYS[:2])
            self.assertEqual(said.count("; 3 of 3 messages were there before the run"), 4, said)
        # Rank 1 has no tokens, and so no run that could last longer than its messages: only the hold does.
        said = self.check_equal(3, "--prefill", 2, "--heads", 3, "--kv-heads", 3, "--hold-runs", "on", ways=WAYS[:2])
        self.assertIn("rank 1 of 3, prefill as a ring: 0 scores a head; 2 of 2 messages", said)

    def test_device_memory_goes_to_mpi(self):
        self.check_equal(2, "--prefill", 70, "--decode", 33, "--buffers", "device")

    def test_ranks_of_a_node_have_gpus_of_their_own(self):
        hip = {"LD_LIBRARY_PATH": str(SLUICE_HIP)}
        self.check_equal(2, "--device", "hip", "--prefill", 64, "--decode", 30, SLUICE_EMULATOR_SETTINGS="devices=2", **hip)
        self.check_failure(2, "--device", "hip", "--decode", 30, SLUICE_EMULATOR_SETTINGS="devices=1", **hip,
                           sentence=r"begin: rank 1: device_ordinal is 1; \S+ has 1 device")


class Failures(Case):
    def test_another_shape(self):
        self.check_failure(4, "--fail", "shape",
                           sentence=r"ring: rank 3: it has .*q BF16 \[4, 72\].*; rank 0 has .*q BF16 \[4, 64\].*")

    def test_a_refused_run(self):
        self.check_failure(4, "--fail", "error",
                           sentence=r"ring, step 0: rank 3: q\.data is 0x\w+; it must be aligned to 16 bytes")

    def test_a_run_that_faults(self):
        self.check_failure(4, "--fail", "fault", sentence=r"ring, step 0: rank 3: hip\w+: .* \(700\)")

    def test_a_rank_that_dies_in_the_middle(self):
        status, said = mpirun(4, PROGRAM, "--fail", "exit")
        self.assertNotEqual(status, 0)
        self.assertRegex(said, r"Process name: \[\[\d+,1\],3\]\s+Exit code:\s+3")

    def test_an_error_that_no_step_catches(self):
        status, said = mpirun(4, PROGRAM, "--fail", "throw")
        self.assertNotEqual(status, 0)
        self.assertIn("rank 3 ends the program: no step of all ranks has caught this", said)

    def test_options_that_do_not_fit_the_ranks(self):
        self.check_failure(2, "--prefill", 64, "--heads", 3,
                           sentence="prefill: rank 0: --heads is 3 and --kv-heads 4; dividing by heads needs multiples of 2, .*")

    def test_bad_options(self):
        for options, sentence in (
                (["--prefill", "0"], r"--prefill is '0'; it must be a number from 1 to \d+"),
                (["--decode", "12x"], r"--decode is '12x'; it must be a number from 1 to \d+"),
                (["--buffers", "gpu"], "--buffers is 'gpu'; it must be one of host, device"),
                (["--prefil", "64"], "unknown option --prefil"),
                (["--prefill"], "--prefill needs a value"),
                ([], "nothing to do: give --prefill, --decode or --fail")):
            with self.subTest(options=options):
                # Without mpirun it is the only rank.
                done = subprocess.run([PROGRAM, *options], capture_output=True, text=True, check=False, timeout=60,
                                      env={**os.environ, **SETTINGS})
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, rf"(?m)^rank 0: begin: rank 0: {sentence}$")


class Large(Case):
    def test_the_page_of_python(self):
        # The same line as parallel.py prints. On two cores it takes minutes.
        said = self.check_equal(4, "--prefill", 8192, "--decode", 32768, timeout=2700)
        print("\n".join(re.findall(r"rank 0 .*", said)))


def why_not():
    """Why nothing can be run here, or None."""
    try:
        version = subprocess.run([MPIRUN, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
        if "open-mpi.org" not in version:
            return f"{MPIRUN} is not Open MPI's, whose settings and messages the test knows"
        status, said = mpirun(2, "true")
        return None if status == 0 else f"{MPIRUN} does not start here: {' '.join(said.split())[:200]}"
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)


if __name__ == "__main__":
    MPIRUN, PROGRAM, SLUICE_HIP, *classes = sys.argv[1:]
    reason = why_not()
    if reason:
        print(f"SKIPPED: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], *classes])
