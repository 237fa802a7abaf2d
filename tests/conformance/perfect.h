//===- perfect.h - for the suite's own tests: what a kernel without any defect would give ---------------===//
#pragma once

#include "compare.h"

#include "conformance/numbers.h"

namespace sluice::test {

/// With its name.
inline Case named(Case c) {
  c.name = make_name(c);
  return c;
}

/// The expectation, rounded to the output types.
inline Outputs perfect(const Case &c, const Expected &expected) {
  const NumberFormat &format = c.dtype == Dtype::f16 ? f16_format : bf16_format;
  Outputs out;
  for (double o : expected.o)
    out.o.push_back(decode(format, encode(format, o)));
  for (double lse : expected.lse)
    out.lse.push_back(double(float(lse)));
  return out;
}

} // namespace sluice::test
