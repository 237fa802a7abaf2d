//===- support_questions.cpp - the support of a context, asked one question at a time -------------------===//
#include "tools/sluice/support_questions.h"

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

void make_paged(sluice_problem &problem) {
  problem.mode = SLUICE_MODE_PAGED;
  problem.page_size = 16;
  problem.page_table_kind = SLUICE_PAGE_TABLE_BLOCK;
}

void put_in_groups(sluice_problem &problem, int32_t elements) {
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
    {"LSE", "`SLUICE_WRITE_LSE`", names::lse, [](sluice_problem &p) { p.flags |= SLUICE_WRITE_LSE; },
     "*_full_*"},
    {"LSE to base 2", "`lse_base`", names::lse_base_2,
     [](sluice_problem &p) {
       p.flags |= SLUICE_WRITE_LSE;
       p.lse_base = SLUICE_LSE_BASE_2;
     },
     "*_lse2*"},
    {"grouped heads", "`kv_heads`", "", [](sluice_problem &p) { p.kv_heads = 1; }, "*_h8x2_*"},
    {"ragged", "`mode`", names::ragged, [](sluice_problem &p) { p.mode = SLUICE_MODE_RAGGED; }, "ragged_*"},
    {"lengths of sequences", "`q_lengths`, `kv_lengths`", names::lengths, nullptr, "*_lengths*"},
    {"paged", "`mode`", names::paged, make_paged, "paged_*"},
    {"pages of any size", "`page_size`", names::paged,
     [](sluice_problem &p) {
       make_paged(p);
       p.page_size = 3;
     },
     "paged_*_p3[!0-9]*"},
    {"page table in CSR", "`page_table_kind`", names::csr,
     [](sluice_problem &p) {
       make_paged(p);
       p.page_table_kind = SLUICE_PAGE_TABLE_CSR;
     },
     "paged_*csr*"},
    {"64-bit page numbers", "`SLUICE_PAGE_INDEX_64`", names::page_index_64,
     [](sluice_problem &p) {
       make_paged(p);
       p.flags |= SLUICE_PAGE_INDEX_64;
     },
     "paged_*wide*"},
    {"x-packed K", "`k_pack`", names::k_pack,
     [](sluice_problem &p) {
       make_paged(p);
       p.k_pack = 8;
     },
     "paged_*xpack*"},
    {"missing pages hidden", "`SLUICE_MISSING_PAGES_HIDDEN`", names::missing_pages,
     [](sluice_problem &p) {
       make_paged(p);
       p.flags |= SLUICE_MISSING_PAGES_HIDDEN;
     },
     "paged_*missing*"},
    {"a page table for each KV head", "`page_table_head_stride`", names::paged, nullptr, "paged_*byhead*"},
    {"head sizes that are not multiples of 8", "`SLUICE_PADDED_ROWS`", names::padded_rows,
     [](sluice_problem &p) { p.flags |= SLUICE_PADDED_ROWS, p.head_dim_qk = p.head_dim_v = 60; }, "*_d60_*"},
    {"V by columns", "`v_pack`", names::v_pack, [](sluice_problem &p) { p.v_pack = SLUICE_V_PACK_ALL; },
     "*_vcolumns*"},
    {"V by columns in packs", "`v_pack`", names::v_pack,
     [](sluice_problem &p) {
       make_paged(p);
       p.v_pack = 8;
     },
     "paged_*_vpacks*"},
    {"V in K", "`SLUICE_V_IN_K`", names::v_in_k, [](sluice_problem &p) { p.flags |= SLUICE_V_IN_K; },
     "*_vink*"},
    {"shared prefixes", "`SLUICE_SHARED_PREFIX`", "",
     [](sluice_problem &p) {
       p.flags |= SLUICE_SHARED_PREFIX;
       p.max_prefixes = 4;
       p.max_prefix_len = 32768;
       p.max_q_tokens = 64;
     },
     "*_prefix*"},
});

constexpr auto type_and_scale_questions = std::to_array<Question>({
    {"scale of Q", "`q_scale_kind`", names::scales,
     [](sluice_problem &p) { p.q_scale_kind = SLUICE_SCALE_PER_TENSOR; }, "*_qtensor*"},
    {"scale of K", "`k_scale_kind`", names::scales,
     [](sluice_problem &p) { p.k_scale_kind = SLUICE_SCALE_PER_TENSOR; }, "*_ktensor*"},
    {"scale of V", "`v_scale_kind`", names::scales,
     [](sluice_problem &p) { p.v_scale_kind = SLUICE_SCALE_PER_TENSOR; }, "*_vtensor*"},
    {"scales of Q per head", "`q_scale_kind`", names::scales,
     [](sluice_problem &p) { p.q_scale_kind = SLUICE_SCALE_PER_HEAD; }, "*_qhead*"},
    {"scales of K per head", "`k_scale_kind`", names::scales,
     [](sluice_problem &p) { p.k_scale_kind = SLUICE_SCALE_PER_HEAD; }, "*_khead*"},
    {"scales of V per head", "`v_scale_kind`", names::scales,
     [](sluice_problem &p) { p.v_scale_kind = SLUICE_SCALE_PER_HEAD; }, "*_vhead*"},
    {"scales of K per token", "`k_scale_kind`", names::key_scales,
     [](sluice_problem &p) { p.k_scale_kind = SLUICE_SCALE_PER_TOKEN; }, "*_ktoken*"},
    {"scales of V per token", "`v_scale_kind`", names::key_scales,
     [](sluice_problem &p) { p.v_scale_kind = SLUICE_SCALE_PER_TOKEN; }, "*_vtoken*"},
    {"scales of K per page", "`k_scale_kind`", names::key_scales,
     [](sluice_problem &p) {
       make_paged(p);
       p.k_scale_kind = SLUICE_SCALE_PER_PAGE;
     },
     "paged_*_kpage*"},
    {"scales of V per page", "`v_scale_kind`", names::key_scales,
     [](sluice_problem &p) {
       make_paged(p);
       p.v_scale_kind = SLUICE_SCALE_PER_PAGE;
     },
     "paged_*_vpage*"},
    {"scales of K and V per group of 32", "`SLUICE_SCALE_PER_GROUP`", "",
     [](sluice_problem &p) { put_in_groups(p, 32); }, "*-u4_*"},
    {"scales of K and V per group of 64", "`scale_group`", "",
     [](sluice_problem &p) { put_in_groups(p, 64); }, "*-u4zeros_*"},
    {"zero points of groups", "`SLUICE_ZERO_POINTS`", "",
     [](sluice_problem &p) {
       put_in_groups(p, 64);
       p.flags |= SLUICE_ZERO_POINTS;
     },
     "*-u4zeros_*"},
    {"O as F32", "`o_type`", "", [](sluice_problem &p) { p.o_type = SLUICE_F32; }, "*_of32*"},
    {"O as E4M3FNUZ", "`o_type`", "", [](sluice_problem &p) { p.o_type = SLUICE_E4M3FNUZ; }, "*_ofp8*"},
    {"scale of O", "`o_scale_kind`", "",
     [](sluice_problem &p) {
       p.o_type = SLUICE_E4M3FNUZ;
       p.o_scale_kind = SLUICE_SCALE_PER_TENSOR;
     },
     "*_ofp8tensor*"},
    {"scales of O per head", "`o_scale_kind`", "",
     [](sluice_problem &p) {
       p.o_type = SLUICE_E4M3FNUZ;
       p.o_scale_kind = SLUICE_SCALE_PER_HEAD;
     },
     "*_ofp8head*"},
    {"batch-invariant", "`determinism`", "",
     [](sluice_problem &p) {
       p.determinism = SLUICE_DETERMINISM_BATCH_INVARIANT;
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

sluice_problem plain_problem(const Types &types, const HeadSizes &sizes) {
  sluice_problem problem;
  sluice_problem_init(&problem, sizeof problem);
  problem.q_type = types.q;
  problem.k_type = problem.v_type = types.kv;
  problem.o_type = types.o;
  problem.q_heads = problem.kv_heads = 8;
  problem.head_dim_qk = sizes.qk;
  problem.head_dim_v = sizes.v;
  if (sizes.v_in_k) problem.flags |= SLUICE_V_IN_K;
  if (types.kv == SLUICE_U4) put_in_groups(problem, head_size_step(types));
  return problem;
}

int32_t head_size_step(const Types &types) {
  return is_in_blocks(types.kv) ? 32 : 8;
}

SupportAnswer ask(const sluice_context *context, const sluice_problem &problem) {
  sluice_error error = make_error();
  sluice_support support;
  sluice_support_init(&support, sizeof support);
  const sluice_status status = sluice_query_support(context, &problem, &support, &error);
  // Blocks and V by columns have rules that the questions, which are for all types and sizes, do not know: no
  // packs, no scale of a tensor for numbers with scales of groups, no columns of V in K.
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
