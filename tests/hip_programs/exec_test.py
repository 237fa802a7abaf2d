"""Tests how `sluice-emu exec` runs a program: status, reports, settings; and bundles as files.

usage: exec_test.py SLUICE_EMU FOLDER_OF_PROGRAMS [unittest arguments]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

EMU, PROGRAMS = sys.argv[1], pathlib.Path(sys.argv[2])
GOOD, WRONG = PROGRAMS / "histogram", PROGRAMS / "missing_barrier"


def run(*arguments, **environment):
    return subprocess.run([EMU, "exec", *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env={**os.environ, **environment})


class ExecTest(unittest.TestCase):
    def status(self, status, *arguments, **environment):
        result = run(*arguments, **environment)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result

    def test_a_good_program_is_silent(self):
        result = self.status(0, GOOD)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"^sluice-emu: 1 launch, 20 workgroups, 60 waves, \d+ instructions, 0 MFMAs; "
                                        r"nothing to report\n$")

    def test_a_report_makes_success_a_failure(self):
        result = self.status(1, WRONG)
        self.assertIn("lds_race: ", result.stderr)
        self.assertIn("ds_write_b32", result.stderr)
        self.assertRegex(result.stderr, r"; \d+ reports, 1 note\n$")
        self.status(0, "--check", "none", WRONG)
        self.status(0, "--check", "pending,hazards", WRONG)
        self.assertNotIn("lds_uninitialised", self.status(1, "--check", "lds_races", WRONG).stderr)

    def test_races_of_streams_are_reports(self):
        race = PROGRAMS / "missing_event"
        for order in ("concurrent", "1", "2"):
            result = self.status(1, "--streams", order, race)
            self.assertRegex(result.stderr, r"stream_race: in stream \d+ ")
            self.assertIn("copy of 1024 bytes", result.stderr)
            self.assertIn("and neither waits for the other", result.stderr)
            # The same race is reported once, and does not count as a launch: three kernels in one of two orders each.
            self.assertRegex(result.stderr, r"sluice-emu: 3 launches, 12 workgroups, .*; [12] reports?, [12] notes?\n$")
        self.status(0, "--check", "pending,global_races", race)
        found = json.loads(self.status(1, "--json", race).stdout)
        self.assertEqual({report["kind"] for report in found["reports"] if report["severity"] != "note"}, {"stream_race"})

    def test_devices(self):
        program = PROGRAMS / "missing_event"
        for devices in (1, 2, 8):
            self.status(0, "--devices", devices, "--check", "none", program, devices)
        self.status(0, "--check", "none", program, 1)
        for wrong in (0, 9):
            self.assertIn("--devices", self.status(2, "--devices", wrong, program).stderr)

    def test_the_status_is_the_programs(self):
        self.status(17, "sh", "-c", "exit 17")
        self.status(128 + 9, "sh", "-c", "kill -9 $$")
        # Reports are written however the program ended.
        result = self.status(128 + 9, "sh", "-c", f"{WRONG}; kill -9 $$")
        self.assertIn("lds_race: ", result.stderr)

    def test_arguments_and_output_are_the_programs(self):
        result = self.status(0, "--seed", "3", "sh", "-c", 'echo "$@"', "sh", "--seed", "--json", "x y")
        self.assertEqual(result.stdout, "--seed --json x y\n")
        self.assertIn("0 launches", result.stderr)

    def test_json(self):
        found = json.loads(self.status(1, "--json", WRONG).stdout)
        self.assertEqual((found["status"], found["launches"], found["clean"]), (0, 1, False))
        self.assertEqual(found["program"], [str(WRONG)])
        self.assertEqual(found["counters"]["waves"], 4)
        self.assertIn("lds_race", [report["kind"] for report in found["reports"]])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "found.json"
            result = self.status(0, f"--json={path}", PROGRAMS / "scan")
            self.assertEqual((result.stdout, result.stderr), ("", ""))
            found = json.loads(path.read_text())
            self.assertEqual((found["launches"], found["clean"]), (3, True))
            self.assertEqual({report["severity"] for report in found["reports"]} - {"note"}, set())
            self.assertEqual(found["counters"]["workgroups"], 79 + 1 + 78)

    def test_what_a_program_leaves_behind_is_noted(self):
        program = PROGRAMS / "program_end"
        result = self.status(0, program)
        self.assertRegex(result.stderr, r"device 0: note: memory_leak: 256 bytes in 1 block are never freed; the largest block has 256 ")
        self.assertIn("hipLaunchKernel: note: error_ignored: returned hipErrorInvalidValue, and the program never asked", result.stderr)
        self.assertIn("copy of 256 bytes: note: copy_uninitialised: copies to the host 128 bytes that were never written, "
                      "from byte 128 of a block of 256 bytes on", result.stderr)
        self.assertRegex(result.stderr, r"MFMAs; nothing to report, 3 notes\n$")
        found = json.loads(self.status(0, "--json", program).stdout)
        self.assertEqual((found["clean"], found["failed"], {report["severity"] for report in found["reports"]}), (True, False, {"note"}))
        self.assertRegex(self.status(0, program, "careful").stderr, r"nothing to report\n$")
        # Each can fail the run, but only if --check names it; and each can be left out.
        self.status(0, "--warn", "none", program)
        self.status(0, "--warn", "hazards", program)
        for check, kind in (("leaks", "memory_leak"), ("ignored_errors", "error_ignored"),
                            ("unwritten_copies,uninitialised", "copy_uninitialised")):
            result = self.status(1, "--check", check, "--warn", "none", program)
            self.assertIn(f": {kind}: ", result.stderr)
            self.assertRegex(result.stderr, r"; 1 report\n$")
            self.status(0, "--check", check, "--warn", "none", program, "careful")
        self.assertRegex(self.status(0, "--check", "none", program).stderr, r"nothing to report\n$")

    def test_a_program_that_fails_need_not_clean_up(self):
        result = self.status(3, PROGRAMS / "program_end", "failing")
        self.assertNotIn("error_ignored", result.stderr)
        self.assertNotIn("memory_leak", result.stderr)

    def test_settings_reach_the_emulator(self):
        script = 'echo "$SLUICE_EMULATOR_SETTINGS"; echo "$LD_LIBRARY_PATH"'
        result = self.status(0, "--completion", "early", "--waves", "random", "--workgroups", "by_xcd", "--streams", "12",
                             "--seed", "9", "--threads", "2", "--budget", "77", "--max-reports", "5",
                             "--perturb-transcendentals", "--scramble-nans", "sh", "-c", script, LD_LIBRARY_PATH="/else")
        settings, path = result.stdout.splitlines()
        for setting in ("completion=early", "wave_schedule=random", "workgroup_schedule=by_xcd", "stream_order=12",
                        "seed=9", "threads=2", "instruction_budget=77", "max_reports=5", "perturb_transcendentals=on",
                        "scramble_nans=on"):
            self.assertIn(setting + ";", settings + ";")
        self.assertTrue(path.endswith("/lib/sluice-hip:/else"), path)
        self.assertIn("budget_exhausted", self.status(3, "--budget", "10", GOOD, "ignored").stderr)

    def test_bundles_of_all_forms_are_code(self):
        for form in ("module.co", "module.hipfb", "module_2.hipfb", "module_3.hipfb"):
            result = subprocess.run([EMU, "list", PROGRAMS / form], capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("axpy", result.stdout)

    def test_refusals(self):
        for arguments, text in (
                (["/none/such"], "/none/such: No such file or directory"),
                ([], "a program is required"),
                (["--completion", "never", GOOD], "never"),
                (["--streams", "some", GOOD], "is neither 'concurrent' nor a number"),
                (["--check", "pending,some", GOOD], "unknown check 'some'"),
                (["--json=/none/such", GOOD], "/none/such"),
        ):
            result = self.status(2, *arguments)
            self.assertIn(text, result.stderr)
            self.assertEqual(result.stdout, "")


unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
