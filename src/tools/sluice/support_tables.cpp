//===- support_tables.cpp - the support of a context, as tables of pages --------------------------------===//
#include "tools/sluice/support_tables.h"

#include "calls/problem.h"
#include "package/kernel_name.h"
#include "tools/sluice/support_questions.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace sluice::tools {

namespace {

// Far above any kernel's.
constexpr int32_t largest_head_size = 1024;

package::KernelName parsed(const std::string &kernel) {
  const std::optional<package::KernelName> name = package::parse_kernel_name(kernel);
  if (!name) throw ToolError(fmt::format("{} is not a kernel name", kernel));
  return *name;
}

std::string code(const std::string &words) {
  return words.empty() ? "" : fmt::format("`{}`", words);
}

/// The sizes up to which all multiples of a step are supported, for K and V together; 0 if none is.
HeadSizes largest_sizes(const sluice_context *context, const Types &types, bool v_in_k) {
  const auto supported = [&](int32_t qk, int32_t v) {
    return ask(context, plain_problem(types, {qk, v, v_in_k})).supported;
  };
  HeadSizes largest = {0, 0, v_in_k};
  const int32_t step = head_size_step(types);
  while (largest.qk < largest_head_size && supported(largest.qk + step, step))
    largest.qk += step;
  const auto with_all_of_k = [&](int32_t v) {
    for (int32_t qk = v_in_k ? v : step; qk <= largest.qk; qk += step)
      if (!supported(qk, v)) return false;
    return true;
  };
  while (largest.v < largest.qk && with_all_of_k(largest.v + step))
    largest.v += step;
  return largest;
}

using Row = std::vector<std::string>; // cells

/// Rows that differ in this column only become one, which lists what they have there.
void join_rows(std::vector<Row> &rows, size_t column) {
  std::vector<Row> joined;
  for (const Row &row : rows) {
    const auto same = std::ranges::find_if(joined, [&](Row other) {
      other[column] = row[column];
      return other == row;
    });
    if (same == joined.end())
      joined.push_back(row);
    else
      (*same)[column] += ", " + row[column];
  }
  rows = std::move(joined);
}

/// For all types: the head sizes of kernels, and the limit up to which others are filled with zeros.
std::string types_table(const sluice_context *context) {
  const std::vector<HeadSizes> sizes = kernel_head_sizes(context);
  const auto beside_q = [](const Types &types, uint32_t type) {
    return std::string(type == types.q ? "as Q" : type_name(type));
  };
  std::vector<Row> rows;
  for (const Types &types : supported_types(context, sizes)) {
    std::vector<std::string> own, others;
    for (const HeadSizes &size : sizes) {
      const SupportAnswer answer = ask(context, plain_problem(types, size));
      if (answer.supported && int32_t(parsed(answer.kernel).head_dim_qk) == size.qk)
        own.push_back(text_of(size));
    }
    for (bool v_in_k : {false, true}) {
      const HeadSizes largest = largest_sizes(context, types, v_in_k);
      if (largest.v != 0) others.push_back("up to " + text_of(largest));
    }
    rows.push_back({type_name(types.q), beside_q(types, types.kv), beside_q(types, types.o),
                    fmt::format("{}", fmt::join(own, ", ")),
                    others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", "))});
  }
  for (const size_t column : {2, 1, 0})
    join_rows(rows, column);
  std::string table =
      "| Q | K, V | O | head sizes (K/V) of kernels | others, as multiples of 8, or of 32 with blocks |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const Row &row : rows)
    table += fmt::format("| {} |\n", fmt::join(row, " | "));
  return table;
}

/// The kernels for head sizes that are the same for K and V.
std::string head_sizes_of(const sluice_context *context, const Types &types) {
  struct Range {
    int32_t first, last, served_by;
  };
  std::vector<Range> ranges;
  const int32_t step = head_size_step(types);
  for (int32_t size = step; size <= largest_head_size; size += step) {
    const SupportAnswer answer = ask(context, plain_problem(types, {size, size}));
    if (!answer.supported) continue;
    const auto served_by = int32_t(parsed(answer.kernel).head_dim_qk);
    if (!ranges.empty() && ranges.back().served_by == served_by && served_by != size &&
        ranges.back().last == size - step)
      ranges.back().last = size;
    else
      ranges.push_back({size, size, served_by});
  }
  std::string rows;
  for (const Range &range : ranges) {
    const std::string asked = range.first == range.last ? fmt::format("{}", range.first)
                                                        : fmt::format("{} to {}", range.first, range.last);
    rows += range.first == range.served_by
                ? fmt::format("| {} | exact |\n", asked)
                : fmt::format("| {} | filled up to {} |\n", asked, range.served_by);
  }
  return rows;
}

std::string head_size_tables(const sluice_context *context) {
  std::map<std::string, std::string> types_of_rows;
  for (const Types &types : supported_types(context, kernel_head_sizes(context))) {
    std::string &names = types_of_rows[head_sizes_of(context, types)];
    names += fmt::format("{}{}", names.empty() ? "" : ", ", text_of(types));
  }
  std::string tables;
  for (const auto &[rows, types] : types_of_rows)
    if (!rows.empty())
      tables += fmt::format("\n{}:\n\n| head size | kernel |\n| --- | --- |\n{}", types, rows);
  return tables;
}

/// The answers for all combinations of types and head sizes of kernels.
struct Answers {
  std::string_view unit = "combinations";
  int asked = 0, supported = 0;
  SupportAnswer first; // the first supported one, or else the refusal

  std::string words() const {
    if (asked == supported) return "yes";
    return supported == 0 ? "no" : fmt::format("{} of {} {}", supported, asked, unit);
  }
};

Answers answers_to(const sluice_context *context, const Question &question) {
  Answers out;
  const std::vector<HeadSizes> sizes = kernel_head_sizes(context);
  for (const Types &types : supported_types(context, sizes))
    for (const HeadSizes &size : sizes) {
      calls::Problem problem = plain_problem(types, size);
      if (!ask(context, problem).supported) continue;
      question.ask(problem);
      const SupportAnswer answer = ask(context, problem);
      ++out.asked;
      if (out.asked == 1 || (answer.supported && out.supported == 0)) out.first = answer;
      out.supported += answer.supported;
    }
  return out;
}

/// How many kernels list a feature.
Answers listed_by_kernels(const sluice_context *context, std::string_view feature) {
  Answers out;
  out.unit = "kernels";
  for (const sluice_kernel_info &kernel : list_kernels(context)) {
    if (!is_attention(kernel)) continue;
    ++out.asked;
    out.supported +=
        fmt::format(",{},", features_of(kernel)).find(fmt::format(",{},", feature)) != std::string::npos;
  }
  return out;
}

Answers answers_of(const sluice_context *context, const Question &question) {
  return question.ask != nullptr ? answers_to(context, question)
                                 : listed_by_kernels(context, question.kernel_feature);
}

/// Features with the same answer share a row.
std::string short_feature_table(const sluice_context *context) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Question &question : questions()) {
    const std::string words = answers_of(context, question).words();
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const auto &row) { return row.first == words; });
    if (found == rows.end())
      rows.emplace_back(words, question.name);
    else
      found->second += fmt::format("; {}", question.name);
  }
  std::string table = "| of the combinations of these types and head sizes | with |\n| --- | --- |\n";
  for (const auto &[words, names] : rows)
    table += fmt::format("| {} | {} |\n", words == "yes" ? "all" : words == "no" ? "none" : words, names);
  return table;
}

std::string long_feature_table(const sluice_context *context) {
  std::string table =
      "| feature | requested by | supported | first kernel that serves it, or the refusal | kernels "
      "that list it | tested by |\n| --- | --- | --- | --- | --- | --- |\n";
  for (const Question &question : questions()) {
    const Answers answers = answers_of(context, question);
    const std::string_view feature = question.kernel_feature;
    std::string listed;
    if (!feature.empty()) {
      const Answers kernels = listed_by_kernels(context, feature);
      listed = fmt::format("`{}`: {} of {}", feature, kernels.supported, kernels.asked);
    }
    table +=
        fmt::format("| {} | {} | {} | {} | {} | {} |\n", question.name, question.asked_by, answers.words(),
                    code(answers.first.kernel) + answers.first.refusal, listed, code(question.cases));
  }
  return table;
}

/// What a caller knows the kernels of a cache operation by.
std::string functions_of(std::string_view operation) {
  if (operation == "kv_append") return "`sluice_cache_append`";
  if (operation == "append_step") return "`sluice_cache_append` with norms, Q, tails or other caches";
  if (operation == "kv_copy") return "`sluice_cache_copy`, `sluice_cache_gather`";
  if (operation == "merge_states") return "`sluice_attention_merge`";
  throw ToolError(fmt::format("no function is known for kernels of {}", operation));
}

/// Cache operations and the types for which they have kernels.
std::string cache_op_table(const sluice_context *context) {
  std::map<std::string, std::string> types;
  for (const sluice_kernel_info &kernel : list_kernels(context)) {
    if (is_attention(kernel)) continue;
    const package::KernelName name = parsed(kernel.name);
    const bool is_copy = name.operation == "kv_copy";
    std::string &list = types[functions_of(name.operation)];
    if (is_copy && list.empty()) list = "every type to itself";
    if (is_copy && name.dtype == name.to_dtype) continue; // those bits, of every type of that size
    list += fmt::format("{}{} to {}", list.empty() ? "" : ", ", name.dtype, name.to_dtype);
  }
  if (types.empty()) return "";
  std::string table = "\n| cache operation | types |\n| --- | --- |\n";
  for (const auto &[functions, list] : types)
    table += fmt::format("| {} | {} |\n", functions, list);
  return table;
}

/// Checks that each listed feature has a question.
void check_complete(const sluice_context *context) {
  std::set<std::string_view> known;
  for (const Question &question : questions())
    known.insert(question.kernel_feature);
  for (const sluice_kernel_info &kernel : list_kernels(context)) {
    if (!is_attention(kernel)) continue;
    const std::string listed = features_of(kernel);
    std::string_view rest = listed;
    while (!rest.empty()) {
      const std::string_view feature = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), feature.size() + 1));
      if (!known.contains(feature))
        throw ToolError(
            fmt::format("{} has the feature {}, which no row of the table requests", kernel.name, feature));
    }
  }
}

} // namespace

std::string support_summary(const sluice_context *context) {
  return types_table(context) + "\n" + short_feature_table(context) + cache_op_table(context);
}

std::string feature_tables(const sluice_context *context) {
  check_complete(context);
  return long_feature_table(context) + "\n" + types_table(context) + head_size_tables(context) +
         cache_op_table(context);
}

} // namespace sluice::tools
