"""Tests the fidelity note of `sluice-emu exec`.

usage: fidelity_test.py SLUICE_EMU FOLDER_OF_PROGRAMS [unittest arguments]
"""
import json
import pathlib
import subprocess
import sys
import unittest

EMU, PROGRAMS = (pathlib.Path(argument).absolute() for argument in sys.argv[1:3])
ARITHMETIC = "inexact arithmetic"


def run(*arguments, options=("--fidelity",)):
    return subprocess.run([EMU, "exec", *options, *map(str, arguments)], capture_output=True, text=True, check=True,
                          stdin=subprocess.DEVNULL)


def note(*kernels, options=()):
    found = json.loads(run(PROGRAMS / "fidelity", *kernels, options=("--fidelity", "--json", *options)).stdout)
    return found["fidelity"]


class NoteTest(unittest.TestCase):
    def instructions(self, found):
        return {entry["instruction"]: entry["count"] for entry in found["approximated"]}

    def assert_decides(self, found, addresses, branches, values=ARITHMETIC):
        """That there are places of these kinds, or none, to which such values came."""
        for kind, wanted in (("addresses", addresses), ("branches", branches)):
            self.assertEqual(bool(found[kind]), wanted, found)
            self.assertTrue(all(place["values"] == [values] for place in found[kind]), found)

    def test_nothing(self):
        found = note("exact")
        self.assertEqual((found["approximated"], found["not_modelled"]), ([], []))
        self.assert_decides(found, False, False)
        text = run(PROGRAMS / "fidelity", "exact").stderr
        self.assertIn("fidelity:\n  nothing was approximated\n", text)
        self.assertNotIn("depend", text)

    def test_a_value_only(self):
        found = note("value")
        self.assertEqual(self.instructions(found), {"v_exp_f32": 1})
        self.assertIn("1 ULP", found["approximated"][0]["bound"])
        self.assert_decides(found, False, False)
        text = run(PROGRAMS / "fidelity", "value").stderr
        self.assertIn("  approximated: v_exp_f32, 1 time: ", text)
        self.assertIn("  no address depends on approximated values\n  no branch depends on approximated values\n", text)

    def test_branches(self):
        for kernel in ("lanes", "wave", "without_lanes", "compares_exec"):
            found = note(kernel)
            self.assert_decides(found, False, True)
            self.assertTrue(all(kernel in place["kernel"] for place in found["branches"]))
        self.assertIn("  branches that depend on approximated values:\n    _Z5lanesPf at 0x",
                      run(PROGRAMS / "fidelity", "lanes").stderr)
        self.assertEqual([part["part"] for part in note("wave")["not_modelled"]], ["priority"])

    def test_addresses(self):
        for kernel in ("address", "in_lds"):
            found = note(kernel)
            self.assert_decides(found, True, False)
            self.assertIn("global_store_dword", found["addresses"][0]["disassembly"])
        self.assertIn("  addresses that depend on approximated values:\n    _Z7addressPf at 0x",
                      run(PROGRAMS / "fidelity", "address").stderr)

    def test_ways_that_a_value_takes(self):
        for way in ("in_scratch", "in_matrix", "by_dpp", "by_lane", "by_gpr_index", "to_gpr_index", "by_movrel", "by_cmov"):
            with self.subTest(way):
                found = note(way)
                self.assert_decides(found, True, False)
                self.assertEqual(len(found["addresses"]), 1)
        for way in ("by_swap", "by_copy_to_lds", "by_scalar_load"):
            with self.subTest(way):
                self.assert_decides(note(way), False, False)
                self.assert_decides(note("value", way), True, False)

    def test_other_lanes_are_exact(self):
        self.assert_decides(note("by_other_lane"), False, False)

    def test_lanes_that_meet_again_are_exact(self):
        found = note("rejoins")
        self.assert_decides(found, False, True)
        self.assertEqual([place["disassembly"] for place in found["branches"]], ["s_and_saveexec_b64 s[40:41], vcc"])

    def test_values_are_followed_from_launch_to_launch(self):
        self.assert_decides(note("reads"), False, False)
        self.assert_decides(note("value", "reads"), True, False)
        self.assert_decides(note("value", "moves", "reads_moved"), True, False)
        self.assert_decides(note("value", "away_and_back", "reads"), True, False)

    def test_overwritten_values_are_exact(self):
        for overwrites in ("upload", "fill"):
            self.assert_decides(note("value", overwrites, "reads"), False, False)

    def test_other_sources(self):
        self.assert_decides(note("clock", "reads"), True, False, "clocks")
        self.assert_decides(note("divides"), True, False, "estimates of integer divisions")
        found = note("adds", "reads")
        self.assert_decides(found, True, False, "sums of float atomics")
        self.assertEqual(self.instructions(found), {"global_atomic_add_f32": 1})
        bound = note("reciprocals")["approximated"][0]
        self.assertEqual((bound["instruction"], "2^29 ULP" in bound["bound"]), ("v_rcp_f64", True))

    def test_launches_are_added_up(self):
        self.assertEqual(self.instructions(note("value", "value", "address")), {"v_exp_f32": 3})
        self.assertEqual([place["count"] for place in note("address", "address")["addresses"]], [2])

    def test_every_mode_gives_the_same_note(self):
        wanted = note("value", "in_lds", "lanes")
        for options in (["--check", "none"], ["--check", "none", "--completion", "early"], ["--completion", "random"],
                        ["--kernel", "*lanes*"]):
            self.assertEqual(note("value", "in_lds", "lanes", options=options), wanted)

    def test_no_note_unless_asked_for(self):
        self.assertNotIn("fidelity", run(PROGRAMS / "fidelity", "value", options=()).stderr)
        self.assertNotIn("fidelity", json.loads(run(PROGRAMS / "fidelity", "value", options=("--json",)).stdout))

    def test_reports_carry_the_note(self):
        program = PROGRAMS / "fidelity"
        log = json.loads(run(program, "value", options=("--fidelity", "--report", "sarif:-")).stdout)
        self.assertEqual(self.instructions(log["runs"][0]["properties"]["fidelity"]), {"v_exp_f32": 1})
        self.assertIn("approximated: v_exp_f32, 1 time", run(program, "value", options=("--fidelity", "--report",
                                                                                       "junit:-")).stdout)


unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
