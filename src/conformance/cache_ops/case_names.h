//===- case_names.h - the names of the cases of cache operations ----------------------------------------===//
#pragma once

#include "conformance/cache_ops/append_case.h"
#include "conformance/cache_ops/kernel_types.h"
#include "conformance/cache_ops/merge_case.h"
#include "conformance/cache_ops/page_copy_case.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::conformance {

std::string make_name(const AppendCase &c);
std::string make_name(const PageCopyCase &c);
std::string make_name(const MergeCase &c);

/// The case of these types that the rest of a name describes: "h3_d48x24_p16_block_knorm". In "xpack" without
/// a number, packs have 16 bytes. Throws for a word that no name has.
AppendCase read_append_case(std::string_view words, const KernelTypes &types);

/// Adds the case of a kernel, with its name.
template <typename AnyCase>
void add_named(std::vector<AnyCase> &cases, AnyCase c, const std::string &kernel) {
  c.kernel = kernel;
  c.name = make_name(c);
  cases.push_back(std::move(c));
}

} // namespace sluice::conformance
