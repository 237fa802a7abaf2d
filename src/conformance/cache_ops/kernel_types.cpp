//===- kernel_types.cpp - the types of a cache operation's kernel ---------------------------------------===//

#include "conformance/cache_ops/kernel_types.h"

#include <array>
#include <stdexcept>

namespace sluice::conformance {

namespace {

constexpr std::array types = {Element::f16, Element::bf16, Element::f32,  Element::fp8, Element::bf8,
                              Element::i8,  Element::u4,   Element::q8_0, Element::q4_0};

} // namespace

KernelTypes types_of(const std::string &kernel, const std::string &front) {
  for (const Element from : types)
    for (const Element to : types)
      if (kernel == front + name_of(from) + "_" + name_of(to)) return {from, to};
  throw std::runtime_error("the suite has no cases for " + kernel);
}

std::vector<int> powers_of(Element source) {
  return source == Element::bf16 ? std::vector<int>{-133, -129, -125, -121, -110, -70, 60, 110}
                                 : std::vector<int>{};
}

} // namespace sluice::conformance
