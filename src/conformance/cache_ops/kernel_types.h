//===- kernel_types.h - the types of a cache operation's kernel -----------------------------------------===//
#pragma once

#include "conformance/shared/elements.h"

#include <array>
#include <string>
#include <vector>

namespace sluice::conformance {

/// As in the names of kernels and cases, in the order of Element.
inline constexpr std::array element_names = {"f16", "bf16", "f32",  "e4m3fnuz", "e5m2fnuz",
                                             "i8",  "u4",   "q8_0", "q4_0"};
inline const char *name_of(Element element) {
  return element_names[size_t(element)];
}

struct KernelTypes {
  Element from, to;
};

/// The source and target types of a kernel, by its name. Throws if the suite has no cases for it.
KernelTypes types_of(const std::string &kernel, const std::string &front);

/// Elements of a byte have scales.
inline bool has_scales(Element element) {
  return bytes_of(element) == 1;
}

/// Packs of bytes have 16 bytes, like those of other types.
inline int pack_of(const KernelTypes &types) {
  return has_scales(types.to) ? 16 : 8;
}

/// Powers of two with which numbers, their scales or their squares are subnormal, near that, or large. Only
/// BF16 has such numbers.
std::vector<int> powers_of(Element source);

} // namespace sluice::conformance
