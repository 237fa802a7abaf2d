//===- numbers.h - BF16, test data, and how far two right results may be apart --------------------------===//
#pragma once

#include <cstdint>
#include <vector>

namespace parallel {

double from_bf16(uint16_t number);

/// A number that changes evenly from the first token to the last.
struct Course {
  double first, last;
};
/// Rows [token][head][dim] in BF16, the same on every rank: noise of variance 1, times `factor`, plus
/// `offset`.
std::vector<uint16_t> sample(int64_t tokens, int64_t heads, int64_t dim, uint64_t seed, Course factor,
                             Course offset);

/// What the error of attention depends on.
struct Sizes {
  int64_t keys, dim;
  double most_score; ///< scale times the largest norms of a row of Q and of K: no score is larger
  double most_value; ///< of V in size: no element of O is larger
  int merges;        ///< that an element of O goes through, one after the other
};
Sizes sizes_of(const std::vector<uint16_t> &q, const std::vector<uint16_t> &k, const std::vector<uint16_t> &v,
               int64_t keys, int64_t dim, int merges);
/// The largest difference between two right results in BF16, one device's and a merged one: twice the bound
/// of docs/concepts/numerics.md, and the error of the merges.
double tolerance(const Sizes &sizes);

/// The largest difference of two results; infinity if one has a NaN.
double difference(const std::vector<uint16_t> &left, const std::vector<uint16_t> &right);

} // namespace parallel
