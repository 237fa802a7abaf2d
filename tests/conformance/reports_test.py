#!/usr/bin/python3
"""Tests the reports of sluice-conformance: text, JUnit XML and JSON, and its exit status.

usage: reports_test.py SLUICE_CONFORMANCE WRONG_KERNELS PACK
WRONG_KERNELS writes packs whose kernels compute something else, or list no features.
"""
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

PROGRAM, WRONG_KERNELS, PACK = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:4])
SMALL = ["--part", "dense", "--filter", "f16_d64_*_q17_kv17_*", "--filter", "bf16_*_q17_kv17_causal_*"]


def documented_members():
    """{member: names in the second column} of the JSON, as documented on the page for users."""
    page = (pathlib.Path(__file__).parents[2] / "docs/howto/run_the_conformance_kit.md").read_text()
    table = re.search(r"^\| member \|.*?\n\|.*?\n(.*?)\n\n", page, re.DOTALL | re.MULTILINE).group(1)
    rows = [row.strip("|").split("|", 1) for row in table.splitlines()]
    return {name: set(re.findall(r"`(\w+)`", meaning)) for names, meaning in rows for name in re.findall(r"`(\w+)`", names)}


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.junit, self.json = self.folder / "report.xml", self.folder / "report.json"

    def report(self, *arguments, status):
        """The text, the testsuite and the JSON of a run."""
        done = run(*arguments, "--junit", self.junit, "--json", self.json)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        root = xml.parse(self.junit).getroot()
        data = json.loads(self.json.read_text(encoding="ascii"))
        self.check_agreement(done.stdout, root, data)
        return done.stdout, root.find("testsuite"), data

    def check_agreement(self, text, root, data):
        """The three agree, and the XML has the elements of JUnit's schema, in its order."""
        self.assertEqual((root.tag, [child.tag for child in root]), ("testsuites", ["testsuite"]))
        suite = root[0]
        self.assertEqual(re.sub("(testcase)+", "testcase", "".join(child.tag for child in suite)),
                         "propertiestestcasesystem-out")
        self.assertRegex(suite.get("timestamp"), r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$")
        self.assertTrue(suite.get("hostname"))
        cases = suite.findall("testcase")
        counts = {key: int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")}
        self.assertEqual(counts, {"tests": len(cases), "errors": 0,
                                  "failures": len(suite.findall("testcase/failure")),
                                  "skipped": len(suite.findall("testcase/skipped"))})
        for key in ("tests", "failures", "errors"):
            self.assertEqual(root.get(key), suite.get(key))
        for case in cases:
            self.assertTrue(case.get("classname"))
            self.assertGreaterEqual(float(case.get("time")), 0)
            self.assertLessEqual(len(case), 1)
        self.assertEqual([case.get("name") for case in cases], [case["name"] for case in data["cases"]])
        in_xml = {"passed": None, "failed": "failure", "refused": "skipped", "skipped": "skipped"}
        for case, same in zip(cases, data["cases"]):
            self.assertEqual(case[0].tag if len(case) else None, in_xml[same["outcome"]], same["name"])
        members = documented_members()
        self.assertEqual(set(data), set(members))
        for part in ("library", "device", "counts"):
            self.assertEqual(set(data[part]), members[part])
        for case in data["cases"]:
            self.assertLessEqual(set(case), members["cases"])
        outcomes = [case["outcome"] for case in data["cases"]]
        self.assertEqual(data["counts"], {outcome: outcomes.count(outcome) for outcome in in_xml})
        self.assertIn(", ".join(f"{count} {outcome}" for outcome, count in data["counts"].items()),
                      text.splitlines()[-1])
        properties = {one.get("name"): one.get("value") for one in suite.findall("properties/property")}
        device, library = data["device"], data["library"]
        self.assertEqual(properties, {
            "command": data["command"], "version": library["version"], "git_commit": library["git_commit"],
            "pack_id": library["pack_id"], "device": device["asked_for"], "chip": device["chip"], "arch": device["arch"],
            "device_name": device["name"], "compute_units": str(device["compute_units"]), "runtime": device["runtime"],
            "runtime_version": str(device["runtime_version"]), "seed": str(data["seed"])})


class Reports(InFolder):
    def test_all_passed(self):
        text, suite, data = self.report("--device", "emulated", *SMALL, status=0)
        self.assertGreater(data["counts"]["passed"], 1)
        self.assertEqual(data["counts"]["passed"], len(data["cases"]))
        self.assertEqual(data["device"]["chip"], "gfx942")
        self.assertIn("MI300X", data["device"]["name"])
        self.assertIn("emulator", data["device"]["runtime"])
        self.assertRegex(data["library"]["pack_id"], "^0x[0-9a-f]+$")
        self.assertRegex(data["library"]["version"], r"^\d+\.\d+\.\d+$")
        for part in (data["library"]["version"], data["library"]["pack_id"], data["device"]["name"], "seed 0"):
            self.assertIn(part, text.splitlines()[0])
        for case in data["cases"]:
            self.assertTrue(case["kernel"].startswith("attn_fwd_"))
            self.assertLess(case["o_error_in_tolerances"], 1)
            self.assertGreater(case["seconds"], 0)
        self.assertEqual(list(self.folder.glob(".*")), [])

    def test_a_wrong_kernel_is_a_failure_in_all_three(self):
        pack = self.folder / "it's <wrong> & more.pack"
        subprocess.run([WRONG_KERNELS, "undivided", PACK, pack], check=True)
        text, suite, data = self.report("--device", "emulated", "--pack", pack, "--seed", "7", *SMALL, status=1)
        self.assertGreater(data["counts"]["failed"], 1)
        whole = run("--device", "emulated", "--list", *SMALL).stdout.split()
        self.assertEqual(len(data["cases"]), len(whole))
        # Another pack has another id; the report names the pack that ran.
        right = self.report("--device", "reference", *SMALL, status=0)[2]
        self.assertNotEqual(data["library"]["pack_id"], right["library"]["pack_id"])
        for case, junit in zip(data["cases"], suite.findall("testcase")):
            if case["outcome"] != "failed":
                continue
            failure = junit.find("failure")
            self.assertRegex(failure.get("message"), r"^\d+ wrong elements")
            self.assertEqual(failure.text, f"{case['reason']}\nreproduce: {case['reproduce']}")
            self.assertIn(case["reproduce"], text)
            self.assertIn(f"FAIL {case['name']}", text)
        # The command line reproduces the case under any name of the file.
        failed = next(case for case in data["cases"] if case["outcome"] == "failed")
        again = subprocess.run(failed["reproduce"], shell=True, capture_output=True, text=True)
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertIn(f"FAIL {failed['name']}", again.stdout)
        self.assertIn("0 passed, 1 failed", again.stdout)
        self.assertIn(failed["reason"].splitlines()[1], again.stdout)

    def test_a_wrong_kernel_fails_the_cases_of_that_kernel_alone(self):
        pack, wrong = self.folder / "wrong.pack", "attn_fwd_f16_d128_q256_kv64_w8"
        subprocess.run([WRONG_KERNELS, "undivided", PACK, pack, wrong], check=True)
        data = self.report("--device", "emulated", "--pack", pack, "--part", "kernels", "--filter", f"*@{wrong}",
                           "--filter", "*@attn_fwd_f16_d128_q128_kv32_w4", status=1)[2]
        for case in data["cases"]:
            self.assertEqual(case["kernel"], case["name"].split("@")[1])
            self.assertEqual(case["outcome"], "failed" if case["kernel"] == wrong else "passed", case["name"])
        self.assertEqual(data["counts"]["failed"], data["counts"]["passed"])
        # A case of only the full level is rerun at that level.
        full_only = f"f16_d128_*_full_*_normal_alibi_plan*@{wrong}"
        case, = self.report("--device", "emulated", "--pack", pack, "--level", "full", "--filter", full_only, status=1)[2]["cases"]
        again = subprocess.run(case["reproduce"], shell=True, capture_output=True, text=True)
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertIn(f"FAIL {case['name']}", again.stdout)

    def test_refusals_are_skipped_with_their_field_or_fail(self):
        pack = self.folder / "plain.pack"
        subprocess.run([WRONG_KERNELS, "plain", PACK, pack], check=True)
        part = ["--device", "emulated", "--pack", pack, "--part", "dense", "--filter", "*_q17_kv17_causal_*"]
        text, suite, data = self.report(*part, status=0)
        self.assertGreater(data["counts"]["refused"], 0)
        refused = next(case for case in data["cases"] if case["outcome"] == "refused")
        self.assertIn(f"refused, by field: {refused['refused_field']} ", text)
        skipped = suite.find("testcase/skipped").get("message")
        self.assertEqual(skipped, f"refused: {refused['reason']}")
        _, suite, data = self.report(*part, "--refused-fails", status=1)
        self.assertEqual((data["counts"]["refused"], suite.find("testcase/failure").get("type")), (0, "refused"))

    def test_a_device_that_is_not_there(self):
        text, suite, data = self.report("--device", "hip:99999", *SMALL, status=3)
        self.assertEqual(data["counts"]["skipped"], len(data["cases"]))
        self.assertIn("SKIPPED: hip:99999", text)
        self.assertRegex(text, r"\d+ skipped: \S+")
        self.assertEqual(suite.find("testcase/skipped").get("message"), f"skipped: {data['cases'][0]['reason']}")

    def test_a_kernel_that_nothing_used_is_a_failure(self):
        text, _, data = self.report("--device", "emulated", "--all-kernels", *SMALL, status=1)
        failed = [case for case in data["cases"] if case["outcome"] == "failed"]
        self.assertGreater(len(failed), 1)
        self.assertIn(f"FAIL no case used {failed[0]['name']}", text)
        self.assertEqual(shlex.split(failed[0]["reproduce"])[:3], [PROGRAM, "--device", "emulated"])


class Files(InFolder):
    def test_an_interrupted_run_leaves_what_was_there(self):
        self.json.write_text("an older report")
        running = subprocess.Popen([PROGRAM, "--device", "emulated", "--junit", self.junit, "--json", self.json],
                                   stdout=subprocess.PIPE, text=True)
        for line in running.stdout:
            if line.startswith("ok"):
                break
        running.send_signal(signal.SIGINT)
        running.stdout.close()
        self.assertEqual(running.wait(), -signal.SIGINT)
        self.assertEqual(os.listdir(self.folder), ["report.json"])
        self.assertEqual(self.json.read_text(), "an older report")

    def test_a_run_that_is_aborted_names_the_case(self):
        running = subprocess.Popen([PROGRAM, "--device", "emulated", "--json", self.json], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        for line in running.stdout:
            if line.startswith("ok"):
                break
        running.send_signal(signal.SIGABRT)
        told = running.communicate()[1].splitlines()[-1]
        self.assertEqual(running.returncode, -signal.SIGABRT)
        self.assertFalse(self.json.exists())
        name = re.fullmatch("sluice-conformance: the process ended in the case (.+)", told).group(1)
        self.assertIn(name, run("--device", "emulated", "--list").stdout.split())

    def test_a_late_write_error_fails_and_keeps_the_other_file(self):
        """A disk that is full by then: the run's results are not lost, and the command line is not blamed."""
        for full, other in (("--junit", "--json"), ("--json", "--junit")):
            kept = self.folder / f"kept{other}"
            done = run("--device", "reference", *SMALL, full, "/dev/full", other, kept)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"{full}: /dev/full cannot be written: No space left", done.stderr)
            self.assertRegex(done.stdout, r"\n\d+ passed, 0 failed")
            self.assertIn("f16_d64_", kept.read_text())
        with open("/dev/full", "w") as nowhere:
            done = subprocess.run([PROGRAM, "--device", "reference", *SMALL, "--json", str(self.json)], stdout=nowhere,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the standard output cannot be written", done.stderr)
        self.assertIn("f16_d64_", self.json.read_text())

    def test_unwritable_files_are_found_before_the_run(self):
        for option in ("--junit", "--json"):
            done = run("--device", "reference", *SMALL, option, self.folder / "nowhere" / "report")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"{option}: {self.folder}/nowhere/report cannot be written", done.stderr)
        done = run("--device", "reference", *SMALL, "--junit", self.json, "--json", self.json)
        self.assertEqual(done.returncode, 2)
        self.assertIn("are the same file", done.stderr)


class Usage(unittest.TestCase):
    def refuses(self, message, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn(message, done.stderr)

    def test_bad_options(self):
        self.refuses("--filter is 'f17_*'; no case has such a name", "--device", "reference", "--filter", "f17_*")
        self.refuses("--filter is 'paged_*'; no case of the part dense has such a name",
                     "--device", "reference", "--part", "dense", "--case", "paged_*")
        # One that matches does not hide one that does not.
        self.refuses("--filter is 'f17_*'; no case", "--device", "reference", "--case", "f16_*", "--case", "f17_*")
        self.refuses("--shard is '99998/99999'; no case is in it", "--device", "reference", "--shard", "99998/99999")
        self.refuses("--shard is '3/3'; it must be I/N with I < N", "--device", "reference", "--shard", "3/3")
        self.refuses("--shard is '1'; it must be I/N", "--device", "reference", "--shard", "1")
        self.refuses("--seed is '-1'; it must be a number", "--device", "reference", "--seed", "-1")
        self.refuses("--seed is '1x'; it must be a number", "--device", "reference", "--seed", "1x")
        self.refuses("--part is 'all'; it must be dense, features, sample, rest, kernels or cache", "--device", "reference", "--part", "all")
        self.refuses("--part is 'kernels', which needs kernels", "--device", "reference", "--part", "kernels")
        self.refuses("--level is 'all'; it must be quick or full", "--device", "reference", "--level", "all")
        self.refuses("--device is missing", "--part", "dense")
        self.refuses("--device needs a value", "--device")
        self.refuses("unknown option --devices", "--devices", "reference")
        self.refuses("--all-kernels needs a device with kernels", "--device", "reference", "--all-kernels")
        self.refuses("--list runs nothing", "--list", "--json", "x.json")
        self.refuses("--pack is '/nowhere'; the file cannot be read", "--device", "emulated", "--pack", "/nowhere")
        self.refuses("--emulator is 'seed'; it must be KEY=VALUE", "--device", "emulated", "--emulator", "seed")

    def test_bad_devices_and_settings(self):
        self.refuses("--device is 'gpu'; it must be 'emulated', 'hip:N' or 'reference'", "--device", "gpu", *SMALL)
        self.refuses("--emulator needs --device emulated", "--device", "reference", *SMALL, "--emulator", "seed=1")
        self.refuses("--emulator is 'colour=blue'; the emulator has no such setting", "--device", "emulated", *SMALL,
                     "--emulator", "colour=blue")

    def test_help(self):
        done = run("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Exit status: 0: no case failed", done.stdout)

    def test_filters_add_up(self):
        one, other = (set(run("--list", "--filter", pattern).stdout.split()) for pattern in ("f16_d64_*", "bf16_d64_*"))
        both = set(run("--list", "--filter", "f16_d64_*", "--case", "bf16_d64_*").stdout.split())
        self.assertTrue(one and other)
        self.assertEqual(both, one | other)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
