//===- support_questions.h - the support of a context, asked one question at a time ---------------------===//
//
// The features in the tables of the README and of docs/reference/features.md, and how a problem asks for
// each. All answers come from sluice_attention_support, so that no table can claim more than the library
// does.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/problem.h"
#include "features/feature.h"
#include "tools/shared/context.h"

#include <span>
#include <string>
#include <vector>

namespace sluice::tools {

using features::Question;
/// In the order of the tables.
std::span<const Question> questions();

/// Types of a problem: of Q, of K and V, and of O.
struct Types {
  uint32_t q = 0, kv = 0, o = 0;
};
std::string type_name(uint32_t type);
/// "F16", "F16 with E4M3FNUZ" of K and V, "E4M3FNUZ to F16" of O.
std::string text_of(const Types &types);

struct HeadSizes {
  int32_t qk = 0, v = 0;
  bool v_in_k = false;
  auto operator<=>(const HeadSizes &) const = default;
};
/// "128", "192/128", "576/512 (V in K)".
std::string text_of(const HeadSizes &sizes);

/// Supported head sizes are multiples of this.
int32_t head_size_step(const Types &types);

/// 8 query heads and 8 heads of K and V, without any feature but the scales that the types need.
calls::Problem plain_problem(const Types &types, const HeadSizes &sizes);

struct SupportAnswer {
  bool supported = false;
  std::string kernel, refusal;
};
/// Throws ToolError if the question itself is wrong.
SupportAnswer ask(const sluice_context *context, const calls::Problem &problem);

/// The head sizes in the names of the context's kernels.
std::vector<HeadSizes> kernel_head_sizes(const sluice_context *context);
/// The types that are supported with any of these sizes.
std::vector<Types> supported_types(const sluice_context *context, const std::vector<HeadSizes> &sizes);

bool is_attention(const sluice_kernel_info &kernel);

} // namespace sluice::tools
