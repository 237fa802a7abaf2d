"""The output and status of `sluice-emu` if there are warnings; KERNELS is the code object of emu_masks.s."""
from emu_fixture import KERNELS as MASKS
from emu_fixture import REGISTERS, EmuTest, main


class WarningsTest(EmuTest):
    def test_warnings(self):
        masks = ["run", MASKS, "--kernel", "masks", "--check", "hazards_waived"]
        self.assertRegex(self.succeeds(*masks), r"\n3 reports, all of them warnings\n$")
        self.assertRegex(self.succeeds(*masks, "--max-reports", "1"),
                         r"\n1 report, a warning; --max-reports leaves out others, which occurred 2 times\n$")
        self.assertIn(": warning: hazard (waived): vcc", self.succeeds(*masks))
        result = self.json(*masks)
        self.assertEqual((result["clean"], result["failed"], {r["severity"] for r in result["reports"]}),
                         (False, False, {"warning"}))
        result = self.json(*masks, "--warn", "none", status=1)
        self.assertEqual((result["failed"], {r["severity"] for r in result["reports"]}), (True, {"error"}))
        self.assertIn("nothing to report", self.succeeds("run", MASKS, "--kernel", "masks"))
        careless = ["run", REGISTERS, "--kernel", "careless", "--arg", "size:64:fill=1"]
        self.assertRegex(self.succeeds(*careless, "--warn", "all"), r"\n2 reports, all of them warnings\n$")
        self.assertRegex(self.succeeds(*careless, "--warn", "pending", status=1), r"\n2 reports, 1 of them a warning\n$")
        self.refuses("--warn is 'typo': unknown check 'typo'; it must be default, all, none or a list of", *masks, "--warn",
                     "typo")
        self.refuses("--warn is 'global_bounds': global_bounds cannot be a warning", *masks, "--warn", "global_bounds")

    def test_a_kernel_that_never_ends(self):
        text = self.succeeds("run", MASKS, "--kernel", "endless", "--budget", "1000", status=1)
        self.assertRegex(text, r"endless at 0x\w+: budget_exhausted: the wave has executed 1000 instructions without ending\n"
                               r"  instruction  s_branch")

    def test_levels(self):
        self.assertIn("nothing to report", self.succeeds("check", MASKS))
        text = self.succeeds("check", MASKS, "--fail-on", "waived", status=1)
        self.assertEqual(text.count("masks at 0x"), 3)
        self.assertEqual(text.count(": warning: hazard (waived): vcc"), 3)
        self.assertTrue(text.endswith("\n3 reports: 0 required, 0 compiler, 0 by_count, 3 waived\n"), text)
        for level in ("required", "compiler", "by_count"):
            self.succeeds("check", MASKS, "--fail-on", level)
        self.refuses("--fail-on", "check", MASKS, "--fail-on", "typo")

    def test_nops(self):
        self.assertRegex(self.succeeds("check", MASKS, "--nops"),
                         r"\Anothing to report\n0x\w+: s_nop gives 5 wait states, 1 is needed\n"
                         r"0x\w+: s_nop gives 1 wait state, none is needed\n2 of 2 s_nop give more than is needed\n\Z")
        self.refuses("--nops", "check", MASKS, "--nops", "--json")


if __name__ == "__main__":
    main()
