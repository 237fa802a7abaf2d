//===- support_questions.cpp - the support of a context, asked one question at a time -------------------===//
#include "tools/sluice/support_questions.h"

#include "calls/values.h"
#include "features/all.h"
#include "package/dtypes.h"
#include "package/feature_names.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace sluice::tools {

namespace {

namespace names = package::feature_names;

void make_paged(calls::Problem &problem) {
  problem.mode = calls::paged;
  problem.page_size = 16;
  problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
}

void put_in_groups(calls::Problem &problem, int32_t elements) {
  problem.k_type = problem.v_type = SLUICE_U4;
  problem.k_scale_kind = problem.v_scale_kind = SLUICE_SCALE_PER_GROUP;
  problem.scale_group = elements;
  // Whole groups.
  for (int32_t *dim : {&problem.head_dim_qk, &problem.head_dim_v})
    *dim = (*dim + elements - 1) / elements * elements;
}

bool is_in_blocks(uint32_t type) {
  const package::Dtype *const dtype = package::find_dtype(type);
  return dtype && dtype->is_in_blocks();
}

constexpr auto result_and_layout_questions = std::to_array<Question>({
    {"LSE", "`lse`", names::lse, [](calls::Problem &p) { p.flags |= calls::write_lse; }, "*_full_*"},
    {"LSE to base 2", "`lse`", names::lse_base_2,
     [](calls::Problem &p) { p.flags |= calls::write_lse | calls::lse_log2; }, "*_lse2*"},
    {"grouped heads", "`kv_heads`", "", [](calls::Problem &p) { p.kv_heads = 1; }, "*_h8x2_*"},
    {"ragged", "`SLUICE_ATTENTION_RAGGED`", names::ragged, [](calls::Problem &p) { p.mode = calls::ragged; },
     "ragged_*"},
    {"lengths of sequences", "`rows.lengths`", names::lengths, nullptr, "*_lengths*"},
    {"paged", "`page_size`", names::paged, make_paged, "paged_*"},
    {"pages of any size", "`page_size`", names::paged,
     [](calls::Problem &p) {
       make_paged(p);
       p.page_size = 3;
     },
     "paged_*_p3[!0-9]*"},
    {"page table in CSR", "`page_table`", names::csr,
     [](calls::Problem &p) {
       make_paged(p);
       p.page_table_kind = SLUICE_PAGE_TABLE_CSR;
     },
     "paged_*csr*"},
    {"64-bit page numbers", "`SLUICE_KV_PAGE_INDEX_64`", names::page_index_64,
     [](calls::Problem &p) {
       make_paged(p);
       p.flags |= calls::page_index_64;
     },
     "paged_*wide*"},
    {"x-packed K", "`k.pack`", names::k_pack,
     [](calls::Problem &p) {
       make_paged(p);
       p.k_pack = 8;
     },
     "paged_*xpack*"},
    {"missing pages hidden", "`SLUICE_MASK_MISSING_PAGES`", names::missing_pages,
     [](calls::Problem &p) {
       make_paged(p);
       p.flags |= calls::missing_pages;
     },
     "paged_*missing*"},
    {"a page table for each KV head", "`pages.head_stride`", names::paged, nullptr, "paged_*byhead*"},
    {"head sizes that are not multiples of 8", "`SLUICE_ATTENTION_PADDED_ROWS`", names::padded_rows,
     [](calls::Problem &p) { p.flags |= calls::padded_rows, p.head_dim_qk = p.head_dim_v = 60; }, "*_d60_*"},
    {"V by columns", "`v.pack`", names::v_pack, [](calls::Problem &p) { p.v_pack = SLUICE_PACK_ALL; },
     "*_vcolumns*"},
    {"V by columns in packs", "`v.pack`", names::v_pack,
     [](calls::Problem &p) {
       make_paged(p);
       p.v_pack = 8;
     },
     "paged_*_vpacks*"},
    {"V in K", "`SLUICE_KV_V_IN_K`", names::v_in_k, [](calls::Problem &p) { p.flags |= calls::v_in_k; },
     "*_vink*"},
    {"shared prefixes", "`SLUICE_ATTENTION_PREFIXES`", "",
     [](calls::Problem &p) {
       p.flags |= calls::prefixes;
       p.max_prefixes = 4;
       p.max_prefix_len = 32768;
       p.max_q_tokens = 64;
     },
     "*_prefix*"},
});

constexpr auto type_and_scale_questions = std::to_array<Question>({
    {"scale of Q", "`q.scale_kind`", names::scales,
     [](calls::Problem &p) { p.q_scale_kind = SLUICE_SCALE_PER_TENSOR; }, "*_qtensor*"},
    {"scale of K", "`k.scale_kind`", names::scales,
     [](calls::Problem &p) { p.k_scale_kind = SLUICE_SCALE_PER_TENSOR; }, "*_ktensor*"},
    {"scale of V", "`v.scale_kind`", names::scales,
     [](calls::Problem &p) { p.v_scale_kind = SLUICE_SCALE_PER_TENSOR; }, "*_vtensor*"},
    {"scales of Q per head", "`q.scale_kind`", names::scales,
     [](calls::Problem &p) { p.q_scale_kind = SLUICE_SCALE_PER_HEAD; }, "*_qhead*"},
    {"scales of K per head", "`k.scale_kind`", names::scales,
     [](calls::Problem &p) { p.k_scale_kind = SLUICE_SCALE_PER_HEAD; }, "*_khead*"},
    {"scales of V per head", "`v.scale_kind`", names::scales,
     [](calls::Problem &p) { p.v_scale_kind = SLUICE_SCALE_PER_HEAD; }, "*_vhead*"},
    {"scales of K per token", "`k.scale_kind`", names::key_scales,
     [](calls::Problem &p) { p.k_scale_kind = SLUICE_SCALE_PER_TOKEN; }, "*_ktoken*"},
    {"scales of V per token", "`v.scale_kind`", names::key_scales,
     [](calls::Problem &p) { p.v_scale_kind = SLUICE_SCALE_PER_TOKEN; }, "*_vtoken*"},
    {"scales of K per page", "`k.scale_kind`", names::key_scales,
     [](calls::Problem &p) {
       make_paged(p);
       p.k_scale_kind = SLUICE_SCALE_PER_PAGE;
     },
     "paged_*_kpage*"},
    {"scales of V per page", "`v.scale_kind`", names::key_scales,
     [](calls::Problem &p) {
       make_paged(p);
       p.v_scale_kind = SLUICE_SCALE_PER_PAGE;
     },
     "paged_*_vpage*"},
    {"scales of K and V per group of 32", "`SLUICE_SCALE_PER_GROUP`", "",
     [](calls::Problem &p) { put_in_groups(p, 32); }, "*-u4_*"},
    {"scales of K and V per group of 64", "`k.scale_group`", "",
     [](calls::Problem &p) { put_in_groups(p, 64); }, "*-u4zeros_*"},
    {"zero points of groups", "`zero_points`", "",
     [](calls::Problem &p) {
       put_in_groups(p, 64);
       p.flags |= calls::zero_points;
     },
     "*-u4zeros_*"},
    {"O as F32", "`o.type`", "", [](calls::Problem &p) { p.o_type = SLUICE_F32; }, "*_of32*"},
    {"O as E4M3FNUZ", "`o.type`", "", [](calls::Problem &p) { p.o_type = SLUICE_E4M3FNUZ; }, "*_ofp8*"},
    {"scale of O", "`o.scale_kind`", "",
     [](calls::Problem &p) {
       p.o_type = SLUICE_E4M3FNUZ;
       p.o_scale_kind = SLUICE_SCALE_PER_TENSOR;
     },
     "*_ofp8tensor*"},
    {"scales of O per head", "`o.scale_kind`", "",
     [](calls::Problem &p) {
       p.o_type = SLUICE_E4M3FNUZ;
       p.o_scale_kind = SLUICE_SCALE_PER_HEAD;
     },
     "*_ofp8head*"},
    {"batch-invariant", "`SLUICE_ATTENTION_BATCH_INVARIANT`", "",
     [](calls::Problem &p) {
       p.flags |= calls::batch_invariant;
       p.max_batch = 64;
       p.max_q_len = 4096;
       p.max_kv_len = 65536;
     },
     "*_invariant*"},
});

} // namespace

std::span<const Question> questions() {
  static constexpr auto list = [] {
    constexpr auto feature_questions = features::joined<&features::Feature::questions>();
    std::array<Question, result_and_layout_questions.size() + feature_questions.size() +
                             type_and_scale_questions.size()>
        out;
    auto *end = std::ranges::copy(result_and_layout_questions, out.data()).out;
    end = std::ranges::copy(feature_questions, end).out;
    std::ranges::copy(type_and_scale_questions, end);
    return out;
  }();
  return list;
}

std::string type_name(uint32_t type) {
  return package::name_in_header(*package::find_dtype(type));
}

std::string text_of(const Types &types) {
  std::string text = type_name(types.q);
  if (types.kv != types.q) text += std::string(" with ") + type_name(types.kv);
  if (types.o != types.q) text += std::string(" to ") + type_name(types.o);
  return text;
}

std::string text_of(const HeadSizes &sizes) {
  std::string text = std::to_string(sizes.qk);
  if (sizes.v != sizes.qk) text += "/" + std::to_string(sizes.v);
  return sizes.v_in_k ? text + " (V in K)" : text;
}

calls::Problem plain_problem(const Types &types, const HeadSizes &sizes) {
  calls::Problem problem;
  problem.q_type = types.q;
  problem.k_type = problem.v_type = types.kv;
  problem.o_type = types.o;
  problem.q_heads = problem.kv_heads = 8;
  problem.head_dim_qk = sizes.qk;
  problem.head_dim_v = sizes.v;
  if (sizes.v_in_k) problem.flags |= calls::v_in_k;
  if (types.kv == SLUICE_U4) put_in_groups(problem, head_size_step(types));
  return problem;
}

int32_t head_size_step(const Types &types) {
  return is_in_blocks(types.kv) ? 32 : 8;
}

SupportAnswer ask(const sluice_context *context, const calls::Problem &problem) {
  // The C ABI has no way to ask for these.
  const bool has_scales_of_v =
      problem.v_scale_kind != SLUICE_SCALE_NONE && problem.v_scale_kind != problem.k_scale_kind;
  if (problem.flags & calls::v_in_k && (has_scales_of_v || problem.v_pack != 0))
    return {false, "", "V in K has the scales of K, and no columns"};
  sluice_error error = make_error();
  sluice_support support;
  sluice_support_init(&support, sizeof support);
  const sluice_status status =
      sluice_attention_support(context, calls::ProblemValues(problem), &support, &error);
  // Blocks and V by columns have rules that the questions, which are for all types and sizes, do not know: no
  // packs, no scale of a tensor for numbers with scales of groups.
  const bool has_rules = is_in_blocks(problem.k_type) || problem.v_pack != 0;
  const bool is_refused = status == SLUICE_INVALID_ARGUMENT && has_rules;
  if (status == SLUICE_UNSUPPORTED || is_refused) return {false, "", error.message};
  check(status, error);
  return {true, support.kernel, ""};
}

bool is_attention(const sluice_kernel_info &kernel) {
  return std::string_view(kernel.operation) == "attention_forward";
}

std::vector<HeadSizes> kernel_head_sizes(const sluice_context *context) {
  std::set<HeadSizes> sizes;
  for (const sluice_kernel_info &kernel : list_kernels(context)) {
    const bool v_in_k = std::string_view(kernel.name).ends_with("_mla");
    if (is_attention(kernel)) sizes.insert({kernel.head_dim_qk, kernel.head_dim_v, v_in_k});
  }
  return {sizes.begin(), sizes.end()};
}

std::vector<Types> supported_types(const sluice_context *context, const std::vector<HeadSizes> &sizes) {
  std::vector<Types> out;
  for (uint32_t q = SLUICE_F16; q <= SLUICE_E5M2; ++q)
    for (const package::Dtype &kv : package::dtypes)
      for (uint32_t o = SLUICE_F16; o <= SLUICE_F32; ++o) // the possible types of O
        for (const HeadSizes &size : sizes)
          if (ask(context, plain_problem({q, kv.value, o}, size)).supported) {
            out.push_back({q, kv.value, o});
            break;
          }
  return out;
}

} // namespace sluice::tools
