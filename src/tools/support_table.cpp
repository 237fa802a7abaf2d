//===- support_table.cpp - what a context supports, asked one question at a time ------------------------===//

#include "tools/support_table.h"

#include "package/kernel_name.h"

#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace sluice::tools {

namespace {

struct Type {
  uint32_t dtype;
  const char *name;
};
constexpr Type types[] = {{SLUICE_F16, "F16"},       {SLUICE_BF16, "BF16"},
                          {SLUICE_F32, "F32"},       {SLUICE_E4M3FNUZ, "E4M3FNUZ"},
                          {SLUICE_E4M3FN, "E4M3FN"}, {SLUICE_E5M2FNUZ, "E5M2FNUZ"},
                          {SLUICE_E5M2, "E5M2"}};

bool is_attention(const sluice_kernel_info &kernel) {
  return std::string_view(kernel.operation) == "attention_forward";
}

/// The head sizes of all kernels.
std::set<int> head_sizes(const sluice_context *context) {
  std::set<int> sizes;
  for (const sluice_kernel_info &kernel : list_kernels(context))
    if (is_attention(kernel) && kernel.head_dim_qk == kernel.head_dim_v) sizes.insert(kernel.head_dim_qk);
  return sizes;
}

struct Feature {
  const char *name;
  void (*ask)(sluice_problem &);
};
constexpr Feature features[] = {
    {"LSE", [](sluice_problem &p) { p.flags |= SLUICE_WRITE_LSE; }},
    {"causal, bottom-right", [](sluice_problem &p) { p.flags |= SLUICE_CAUSAL; }},
    {"causal, top-left",
     [](sluice_problem &p) {
       p.flags |= SLUICE_CAUSAL;
       p.mask_alignment = SLUICE_TOP_LEFT;
     }},
    {"grouped heads", [](sluice_problem &p) { p.kv_heads = 1; }},
    {"batch-invariant", [](sluice_problem &p) { p.determinism = SLUICE_DETERMINISM_BATCH_INVARIANT; }},
    {"ragged", [](sluice_problem &p) { p.mode = SLUICE_MODE_RAGGED; }},
    {"paged",
     [](sluice_problem &p) {
       p.mode = SLUICE_MODE_PAGED;
       p.page_size = 16;
       p.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
     }},
    {"window",
     [](sluice_problem &p) {
       p.flags |= SLUICE_HAS_WINDOW_LEFT | SLUICE_CAUSAL;
       p.window_left = 128;
     }},
    {"soft-cap", [](sluice_problem &p) { p.soft_cap = 30; }},
    {"ALiBi", [](sluice_problem &p) { p.flags |= SLUICE_ALIBI; }},
    {"sinks", [](sluice_problem &p) { p.flags |= SLUICE_SINK_LOGITS; }},
};

bool is_supported(const sluice_context *context, const sluice_problem &problem) {
  sluice_error error = make_error();
  const sluice_status status = sluice_query_support(context, &problem, nullptr, &error);
  if (status != SLUICE_UNSUPPORTED) check(status, error);
  return status == SLUICE_OK;
}

/// Operations around attention and the types they have kernels for.
std::string around_table(const sluice_context *context) {
  std::map<std::string, std::string> types;
  for (const sluice_kernel_info &kernel : list_kernels(context)) {
    if (is_attention(kernel)) continue;
    const std::optional<package::KernelName> name = package::parse_kernel_name(kernel.name);
    if (!name) throw ToolError(fmt::format("{} is no kernel name", kernel.name));
    std::string &list = types[kernel.operation];
    list += fmt::format("{}{} to {}", list.empty() ? "" : ", ", name->dtype, name->to_dtype);
  }
  if (types.empty()) return "";
  std::string table = "\n| around attention | types |\n| --- | --- |\n";
  for (const auto &[operation, list] : types)
    table += fmt::format("| `sluice_{}` | {} |\n", operation, list);
  return table;
}

} // namespace

std::string support_table(const sluice_context *context) {
  std::string table = "| Q, K, V, O | head size |";
  std::string rule = "| --- | --- |";
  for (const Feature &feature : features) {
    table += fmt::format(" {} |", feature.name);
    rule += " --- |";
  }
  table += "\n" + rule + "\n";
  const std::set<int> sizes = head_sizes(context);
  for (const Type &type : types)
    for (int head_size : sizes) {
      sluice_problem plain;
      sluice_problem_init(&plain, sizeof plain);
      plain.q_type = plain.k_type = plain.v_type = plain.o_type = type.dtype;
      plain.q_heads = plain.kv_heads = 8;
      plain.head_dim_qk = plain.head_dim_v = head_size;
      if (!is_supported(context, plain)) continue;
      table += fmt::format("| {} | {} |", type.name, head_size);
      for (const Feature &feature : features) {
        sluice_problem problem = plain;
        feature.ask(problem);
        table += is_supported(context, problem) ? " yes |" : " no |";
      }
      table += "\n";
    }
  return table + around_table(context);
}

} // namespace sluice::tools
