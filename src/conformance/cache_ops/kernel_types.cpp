//===- kernel_types.cpp - the types of a cache operation's kernel ---------------------------------------===//

#include "conformance/cache_ops/kernel_types.h"

#include <stdexcept>

namespace sluice::conformance {

KernelTypes types_of(const std::string &kernel, const std::string &front) {
  for (size_t from = 0; from < element_names.size(); ++from)
    for (size_t to = 0; to < element_names.size(); ++to)
      if (kernel == front + element_names[from] + "_" + element_names[to])
        return {Element(from), Element(to)};
  throw std::runtime_error("the suite has no cases for " + kernel);
}

std::vector<int> powers_of(Element source) {
  return source == Element::bf16 ? std::vector<int>{-133, -129, -125, -121, -110, -70, 60, 110}
                                 : std::vector<int>{};
}

} // namespace sluice::conformance
