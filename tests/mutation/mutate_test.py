#!/usr/bin/python3
"""Tests that mutate.py finds the mutants of a small file, distinguishes those that a test notices, and leaves no files.

usage: mutate_test.py COMPILER
"""
import argparse
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

import builds
import mutate

SOURCE = """\
namespace sluice_sample {

template <int number> struct Number {
  static constexpr int value = number;
};

int steps(int value) {
  int count = 0; // comments, "quoted" or not, stay where they are
  while (value > 0) {
    --value;
    ++count;
  }
  return count;
}

bool is_small(int value) {
  const int limit = 2 + 2; // a variable is not an argument of a template
  if (value < Number<limit>::value) return true;
  return false;
}

} // namespace sluice_sample
"""
# Neither 4 nor the numbers between the two are tried.
TEST = """\
namespace sluice_sample {
int steps(int value);
bool is_small(int value);
} // namespace sluice_sample

int main() {
  return sluice_sample::steps(3) == 3 && sluice_sample::is_small(3) && !sluice_sample::is_small(5) ? 0 : 1;
}
"""
NINJA = """\
rule compile
  command = {compiler} -c $in -o $out
rule link
  command = {compiler} $in -o $out
build sample.o: compile ../src/sample.cpp
build main.o: compile ../src/main.cpp
build bin/sample_test: link sample.o main.o
"""


class Sample(unittest.TestCase):
    compiler = "c++"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        build = self.root / "build"
        for place in (build, build / "bin", self.root / "src"):
            place.mkdir()
        self.source = self.root / "src/sample.cpp"
        self.source.write_text(SOURCE)
        (self.root / "src/main.cpp").write_text(TEST)
        (build / "build.ninja").write_text(NINJA.format(compiler=self.compiler))
        (build / "CTestTestfile.cmake").write_text(f'add_test(sample "{build}/bin/sample_test")\n')
        (build / "compile_commands.json").write_text(json.dumps(
            [{"directory": str(build), "file": str(self.root / f"src/{name}.cpp"),
              "command": f"{self.compiler} -std=c++20 -o {name}.o -c {self.root}/src/{name}.cpp"}
             for name in ("sample", "main")]))
        self.build = builds.Build(build)
        self.build.make(["bin/sample_test"])

    def run_on_sample(self, equivalents=None, **options):
        chosen = argparse.Namespace(list=False, match=None, share=100, all=False, jobs=1)
        vars(chosen).update(options)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            file = mutate.FileRun(self.build, self.root, self.source, ["sample"], chosen)
            ran, survivors, keys = file.run(equivalents or {})
        return {m.key for m in ran}, {m.key for m in survivors}, keys, printed.getvalue()

    def test_survivors(self):
        ran, survivors, keys, printed = self.run_on_sample()
        boundary = "src/sample.cpp: is_small: value < Number<limit>::value  ->  value <= Number<limit>::value"
        self.assertEqual(survivors, {boundary})
        self.assertIn("survived: src/sample.cpp:18: is_small: value < Number<limit>::value  ->  value <= Number<limit>::value\n", printed)
        for killed in ("steps: value > 0  ->  value >= 0", "steps: --value  ->  (left out)  in  --value;", "steps: ++count  ->  (left out)  in  ++count;",
                       "steps: 0  ->  0 + 1  in  int count = 0; // comments, \"quoted\" or not, stay where they are",
                       "is_small: value < Number<limit>::value  ->  false", "is_small: true  ->  false  in  if (value < Number<limit>::value) return true;",
                       "is_small: false  ->  true  in  return false;"):
            self.assertIn("src/sample.cpp: " + killed, ran - survivors)
        # Mutants that would not compile are left out of the run, but still known.
        constant = ("src/sample.cpp: is_small: 2 + 2  ->  2 - 2  in  const int limit = 2 + 2; "
                    "// a variable is not an argument of a template")
        self.assertIn(constant, keys - ran)
        self.assertEqual(self.source.read_text(), SOURCE)

    def test_choice(self):
        key = "src/sample.cpp: is_small: value < Number<limit>::value  ->  value <= Number<limit>::value"
        ran, survivors, _, _ = self.run_on_sample({key: "for the test"}, match=r"is_small: value <")
        self.assertEqual((len(ran), survivors), (2, set()))
        ran, survivors, _, _ = self.run_on_sample({key: "for the test"}, match=r"is_small: value <", all=True)
        self.assertEqual((len(ran), survivors), (3, {key}))
        some, _, _, printed = self.run_on_sample(list=True, share=50)
        every, _, _, _ = self.run_on_sample(list=True)
        self.assertTrue(some < every)
        self.assertEqual(len(printed.splitlines()), len(some))


if __name__ == "__main__":
    Sample.compiler = sys.argv.pop(1)
    unittest.main()
