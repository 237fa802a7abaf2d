//===- perfect.h - for the suite's own tests: the results of a kernel without defects -------------------===//
#pragma once

#include "conformance/attention/compare.h"
#include "conformance/shared/numbers.h"

namespace sluice::conformance {

/// The case, with its name.
inline Case named(Case c) {
  c.name = make_name(c);
  return c;
}

/// The number as the case's type of O stores it.
inline double stored_as_o(const Case &c, double o) {
  if (c.o_fp8) return decode_fp8(encode_fp8(o));
  const NumberFormat &format = c.dtype == Dtype::f16 ? f16_format : bf16_format;
  return c.o_f32 ? double(float(o)) : decode(format, encode(format, o));
}

/// The expectation, rounded to the output types.
inline Outputs perfect(const Case &c, const Expected &expected) {
  Outputs out;
  for (double o : expected.o)
    out.o.push_back(stored_as_o(c, o));
  for (double lse : expected.lse)
    out.lse.push_back(double(float(lse)));
  return out;
}

} // namespace sluice::conformance
