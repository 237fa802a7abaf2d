#!/usr/bin/python3
"""function_sizes.py must find every function, and nothing else that has braces."""
import unittest

import function_sizes

TEXT = """namespace n {
class Box {
public:
  /// Of (one) thing.
  explicit Box(int size)
      : size(size),
        // Twice (or more).
        twice(2 * size) {
    if (size > 0) {
      grow();
    }
  }
  int of(int n) const { return n; }
};

template <typename T>
std::vector<T> sorted(std::vector<T> all,
                      bool down) {
  std::sort(all.begin(), all.end(), [&](T a, T b) {
    return a < b;
  });
  return all;
}

const Row rows[] = {
    row_of("zero", Of::all,
           [](Row &row) {
             row.n = 0;
           }),
    {"one", [](Row &row) {
       row.n = 1;
     }},
};

Step Box::operator()(int) {
  return {};
}
} // namespace n

TEST_CASE("a name (of two)", "[tag]") {
  CHECK(true);
}
"""


class FunctionSizesTest(unittest.TestCase):
    def test_functions(self):
        self.assertEqual(list(function_sizes.functions_of(TEXT)),
                         [("Box", 5, 4), ("sorted", 16, 5), ("Box::operator()", 35, 2), ('TEST_CASE "a name (of two)"', 40, 2)])


if __name__ == "__main__":
    unittest.main()
