"""Tests what `sluice-emu exec` does about findings: severity, exit status, filters, suppressions, formats of reports.

usage: exec_reports_test.py SLUICE_EMU FOLDER_OF_PROGRAMS [unittest arguments]
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

EMU, PROGRAMS = (pathlib.Path(argument).absolute() for argument in sys.argv[1:3])
FINDINGS, SERVICES = PROGRAMS / "findings", PROGRAMS / "services"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, status, *arguments):
        result = subprocess.run([EMU, "exec", *map(str, arguments)], capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, cwd=self.folder)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result

    def reports(self, status, *arguments):
        return json.loads(self.run_program(status, "--json=found.json", *arguments) and
                          (self.folder / "found.json").read_text())["reports"]

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name


class SeverityTest(Case):
    def test_findings_leave_the_results(self):
        for kernel, kind in (("race", "lds_race"), ("fresh", "register_uninitialised")):
            result = self.run_program(1, FINDINGS, "good", kernel)
            self.assertEqual(result.stdout, "results kept\n")
            self.assertRegex(result.stderr, rf"\n?\w+ at 0x\w+: {kind}: ")
            found = self.reports(1, FINDINGS, kernel)
            self.assertIn(kind, {report["kind"] for report in found})
            self.assertEqual({(report["severity"], report["fails"]) for report in found}, {("error", False)})

    def test_strict_fails_the_launch(self):
        result = self.run_program(3, "--strict", FINDINGS, "race")
        self.assertIn("hipErrorLaunchFailure", result.stdout)
        self.assertEqual({report["fails"] for report in self.reports(3, "--strict", FINDINGS, "race")}, {True})

    def test_a_fault_stops_in_either_mode(self):
        for options in ([], ["--strict"]):
            result = self.run_program(3, *options, FINDINGS, "beyond")
            self.assertIn("hipErrorIllegalAddress", result.stdout)
            self.assertIn("global_out_of_bounds", result.stderr)

    def test_exit_status(self):
        self.run_program(42, "--error-exitcode", 42, FINDINGS, "race")
        self.run_program(0, "--error-exitcode", 0, FINDINGS, "race")
        self.run_program(0, "--error-exitcode", 42, FINDINGS, "good")
        self.run_program(3, "--error-exitcode", 42, FINDINGS, "beyond")  # the program's own status
        self.run_program(0, "--warn", "lds_races", FINDINGS, "race")
        self.assertIn("--error-exitcode", self.run_program(2, "--error-exitcode", 256, FINDINGS).stderr)

    def test_the_summary_has_each_place_once(self):
        result = self.run_program(1, FINDINGS, "race", "race", "good", "race")
        one, three = (int(re.search(r"lds_race +(\d+) times  _Z4racePi at \S*findings.cpp:\d+\n",
                                    self.run_program(1, FINDINGS, *["race"] * times).stderr)[1]) for times in (1, 3))
        self.assertEqual(three, 3 * one)
        self.assertEqual(len(re.findall(r"^_Z4racePi at ", result.stderr, re.MULTILINE)),
                         int(re.search(r"; (\d+) reports?\n$", result.stderr)[1]))

    def test_calls_of_the_host(self):
        report = self.reports(3, FINDINGS, "beyond")[0]
        self.assertRegex(report["launched_by"], r"^main, \S*findings.cpp:\d+$")
        self.assertRegex(report["allocated_by"], r"^(to_device<int>|main), \S*(program.h|findings.cpp):\d+$")
        # Without debug information, the names of functions.
        race = self.reports(1, PROGRAMS / "missing_barrier")[0]
        self.assertEqual(race["launched_by"], f"main in {PROGRAMS / 'missing_barrier'}")
        streams = next(r for r in self.reports(1, PROGRAMS / "missing_event") if r["kind"] == "stream_race")
        self.assertIn("allocated_by", streams)


class ServicesTest(Case):
    def test_services_of_the_host_are_named(self):
        for service, words in (("printf", "printf"), ("assert", "assert"), ("malloc", "malloc")):
            result = self.run_program(3, SERVICES, service)
            self.assertIn("hipErrorLaunchFailure", result.stdout)
            self.assertEqual(len(re.findall(r"^\S+ at ", result.stderr, re.MULTILINE)), 1, result.stderr)
            self.assertRegex(result.stderr, rf": not_emulated: the kernel .*\b{words}\b.*not emulated\n")

    def test_a_service_that_is_not_used_is_no_error(self):
        self.assertIn("nothing to report", self.run_program(0, SERVICES, "none").stderr)


class FilterTest(Case):
    def launches(self, *options):
        self.run_program(1, *options, "--json=found.json", FINDINGS, "race", "good", "race", "race")
        found = json.loads((self.folder / "found.json").read_text())
        return found["launches"], found["launches_unchecked"], sum(r["count"] for r in found["reports"])

    def test_launches_by_name_and_number(self):
        every = self.launches()
        self.assertEqual(every[:2], (4, 0))
        self.assertEqual(self.launches("--kernel", "*race*"), (4, 1, every[2]))
        self.assertEqual(self.launches("--kernel", "*race*", "--launch-skip", "1"), (4, 2, every[2] // 3 * 2))
        self.assertEqual(self.launches("--launch-skip", "1", "--launch-count", "2"), (4, 2, every[2] // 3))
        text = self.run_program(0, "--kernel", "_Z4good??", FINDINGS, "race", "good").stderr
        self.assertIn("2 launches, 1 of them unchecked,", text)
        self.assertIn("nothing to report", text)

    def test_memory_that_unchecked_launches_write_counts_as_written(self):
        # `scan` reads in its later kernels what the first has written.
        text = self.run_program(0, "--launch-skip", "1", PROGRAMS / "scan").stderr
        self.assertIn("3 launches, 1 of them unchecked,", text)

    def test_filters_that_select_nothing_are_errors(self):
        text = self.run_program(2, "--kernel", "rice", FINDINGS, "race", "good").stderr
        self.assertIn("--kernel 'rice' describes none of the 2 launches, of: _Z4goodPi, _Z4racePi\n", text)
        text = self.run_program(2, "--launch-skip", "2", FINDINGS, "race", "good").stderr
        self.assertIn("--launch-skip 2 leaves none of the 2 launches to check", text)
        self.assertIn("--launch-count", self.run_program(2, "--launch-count", "0", FINDINGS).stderr)


class SuppressionTest(Case):
    def test_a_suppressed_report_counts_for_nothing(self):
        rules = self.write("rules", "# LDS of one kernel\n\n_Z4race*  lds_*  *findings.cpp:*\n")
        for options in ([], ["--strict"]):
            result = self.run_program(0, *options, "--suppressions", rules, FINDINGS, "race")
            self.assertEqual(result.stdout, "results kept\n")
            self.assertRegex(result.stderr, r"; nothing to report; \d+ findings suppressed\n$")
        self.run_program(1, "--suppressions", rules, FINDINGS, "race", "fresh")
        streams = self.write("streams", "* stream_race *\n")
        self.run_program(0, "--suppressions", streams, PROGRAMS / "missing_event")

    def test_rules_for_other_kernels_and_places_suppress_nothing(self):
        for rule in ("_Z4good* lds_race *", "* lds_race *other.cpp:*", "* global_race *"):
            rules = self.write("rules", rule + "\n")
            result = self.run_program(1, "--suppressions", rules, "--unused-suppressions", FINDINGS, "race")
            self.assertIn(f"sluice-emu: rules:1: suppressed nothing: {rule}\n", result.stderr)

    def test_used_rules_are_not_listed(self):
        rules = self.write("rules", "* lds_* *\n* hazard *\n")
        text = self.run_program(0, "--suppressions", rules, "--unused-suppressions", FINDINGS, "race").stderr
        self.assertEqual(re.findall(r"rules:(\d+): suppressed nothing", text), ["2"])

    def test_json_counts_them_by_line(self):
        rules = self.write("rules", "\n* lds_* *\n")
        self.run_program(0, "--suppressions", rules, "--json=found.json", FINDINGS, "race")
        found = json.loads((self.folder / "found.json").read_text())
        self.assertEqual([rule["line"] for rule in found["suppressed"]], [2])
        self.assertEqual((found["clean"], found["reports"]), (True, []))

    def test_bad_rules_are_errors_by_line(self):
        for text, error in (
                ("# nothing\n", "has no rules"),
                ("* lds_race *\n\n* lds_rice *\n", "line 3: 'lds_rice' describes no kind of report"),
                ("* lds_race\n", "line 1: has 2 words; a rule has three"),
                ("* budget_exhausted *\n", "line 1: 'budget_exhausted' describes no kind of report that can be suppressed"),
        ):
            result = self.run_program(2, "--suppressions", self.write("rules", text), FINDINGS, "good")
            self.assertIn(f"--suppressions: rules: {error}", result.stderr)
            self.assertEqual(result.stdout, "")
        self.assertIn("none: No such file", self.run_program(2, "--suppressions", "none", FINDINGS).stderr)
        self.assertIn("--suppressions", self.run_program(2, "--unused-suppressions", FINDINGS).stderr)


class FormatTest(Case):
    def test_junit(self):
        self.run_program(1, "--report", "junit:found.xml", FINDINGS, "good", "race")
        root = xml.parse(self.folder / "found.xml").getroot()
        self.assertEqual(root.tag, "testsuites")
        suite, = root
        self.assertEqual((suite.tag, suite.get("tests"), suite.get("failures")), ("testsuite", "3", "1"))
        cases = {case.get("name"): case for case in suite}
        self.assertEqual(set(cases), {"status of the program", "_Z4goodPi", "_Z4racePi"})
        self.assertIsNone(cases["_Z4goodPi"].find("failure"))
        failure = cases["_Z4racePi"].find("failure")
        self.assertEqual(failure.get("type"), "lds_race")
        self.assertIn("ds_read", failure.text)
        self.run_program(3, "--report", "junit:found.xml", FINDINGS, "beyond")
        status = [case for case in xml.parse(self.folder / "found.xml").iter("testcase")][0]
        self.assertIn("status 3", status.find("failure").text)

    def test_sarif(self):
        """The members that the schema of SARIF 2.1.0 requires, and the values that it allows."""
        self.run_program(1, "--report", "sarif:found.sarif", FINDINGS, "good", "race", "fresh")
        log = json.loads((self.folder / "found.sarif").read_text())
        self.assertEqual(log["version"], "2.1.0")
        run, = log["runs"]
        self.assertEqual(run["tool"]["driver"]["name"], "sluice-emu")
        rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        self.assertEqual(len(rules), len(set(rules)))
        self.assertTrue(all(isinstance(call["executionSuccessful"], bool) for call in run["invocations"]))
        self.assertTrue({"lds_race", "register_uninitialised"} <= {result["ruleId"] for result in run["results"]})
        for result in run["results"]:
            self.assertIn(result["ruleId"], rules)
            self.assertIn(result["level"], ("none", "note", "warning", "error"))
            self.assertTrue(result["message"]["text"])
            self.assertGreaterEqual(result["occurrenceCount"], 1)
            for location in result["locations"] + result["relatedLocations"]:
                place = location["physicalLocation"]
                self.assertRegex(place["artifactLocation"]["uri"], r"^file:///[\w./~%-]+/findings\.cpp$")
                self.assertGreaterEqual(place["region"]["startLine"], 1)
            self.assertTrue(all(location["message"]["text"] for location in result["relatedLocations"]))
            self.assertEqual(result["locations"][0]["logicalLocations"][0]["kind"], "function")

    def test_a_clean_run_has_valid_files_without_results(self):
        result = self.run_program(0, "--report", "sarif:found.sarif", "--report", "junit:found.xml", "--report", "text:-",
                                  FINDINGS, "good")
        self.assertEqual(json.loads((self.folder / "found.sarif").read_text())["runs"][0]["results"], [])
        self.assertEqual(len(list(xml.parse(self.folder / "found.xml").iter("testcase"))), 2)
        self.assertIn("nothing to report\n", result.stdout)

    def test_refusals(self):
        for report, text in (("yaml:file", "it must be FORMAT:FILE, with one of the formats text, json, junit, sarif"),
                             ("junit", "it must be FORMAT:FILE"), ("junit:/none/such", "/none/such"),
                             ("junit:", "--report is empty")):
            result = self.run_program(2, "--report", report, FINDINGS, "good")
            self.assertIn(text, result.stderr)
            self.assertEqual(result.stdout, "")
        for twice in (["--report", "junit:x", "--report", "sarif:x"], ["--json", "--report", "text:-"]):
            self.run_program(2, *twice, FINDINGS, "good")


unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
