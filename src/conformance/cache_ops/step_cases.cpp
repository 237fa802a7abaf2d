//===- step_cases.cpp - the cases of kernels for whole steps --------------------------------------------===//
//
// A row of the tables is a case for every pair of types that its table fits. A row is the case's name but for
// its types; "xpack" is a pack of 16 bytes, and with "vink" the name has no size of V.
//
//===----------------------------------------------------------------------------------------------------===//
#include "conformance/cache_ops/append_cases.h"

#include "conformance/cache_ops/append_groups.h"
#include "conformance/cache_ops/case_names.h"

#include <span>

namespace sluice::conformance {

namespace {

// Rows of Q: in other memory, in place, and between gaps.
constexpr const char *with_queries[] = {
    "h3_d48x24_p16_slots_notfinite_q1",
    "h3_d48x24_p16_csr_notfinite_q1",
    "h3_d48x24_p16_slots_halves32_positions_notfinite_q1",
    "h3_d48x24_p16_csr_halves32_notfinite_q1",
    "h3_d48x24_p16_slots_pairs32_positions_notfinite_q1",
    "h3_d48x24_p16_csr_pairs32_notfinite_q1",
    "h3_d48x24_p16_slots_q4_inplace",
    "h3_d48x24_p16_csr_q4_inplace",
    "h3_d48x24_p16_slots_halves32_positions_q4_inplace",
    "h3_d48x24_p16_csr_halves32_q4_inplace",
    "h3_d48x24_p16_slots_pairs32_positions_q4_inplace",
    "h3_d48x24_p16_csr_pairs32_q4_inplace",
    "h3_d48x24_p16_slots_apart_q9",
    "h3_d48x24_p16_csr_apart_q9",
    "h3_d48x24_p16_slots_halves32_positions_apart_q9",
    "h3_d48x24_p16_csr_halves32_apart_q9",
    "h3_d48x24_p16_slots_pairs32_positions_apart_q9",
    "h3_d48x24_p16_csr_pairs32_apart_q9",
};

// Norms of K, of Q and of both, with weights of either type, before each rotation.
constexpr const char *norms[] = {
    "h3_d48x24_p16_block_q3_qnorm",
    "h3_d48x24_p16_block_halves48_q3_qnorm",
    "h3_d48x24_p16_block_pairs48_q3_qnorm",
    "h3_d48x24_p16_block_q3_qnorm_normf32",
    "h3_d48x24_p16_block_halves48_notfinite_q3_qnorm_normf32",
    "h3_d48x24_p16_block_pairs48_q3_qnorm_normf32",
    "h3_d48x24_p16_block_knorm",
    "h3_d48x24_p16_block_halves48_knorm",
    "h3_d48x24_p16_block_pairs48_knorm",
    "h3_d48x24_p16_block_knorm_normf32",
    "h3_d48x24_p16_block_halves48_notfinite_knorm_normf32",
    "h3_d48x24_p16_block_pairs48_knorm_normf32",
    "h3_d48x24_p16_block_q3_knorm_qnorm",
    "h3_d48x24_p16_block_halves48_q3_knorm_qnorm",
    "h3_d48x24_p16_block_pairs48_q3_knorm_qnorm",
    "h3_d48x24_p16_block_q3_knorm_qnorm_normf32",
    "h3_d48x24_p16_block_halves48_notfinite_q3_knorm_qnorm_normf32",
    "h3_d48x24_p16_block_pairs48_q3_knorm_qnorm_normf32",
};

// Tails of each head, and one for all; the norm leaves them out, the rotation takes the tail or the body.
constexpr const char *tails[] = {
    "h3_d64x24_p16_block_halves32_q2_tail32",
    "h3_d64x24_p16_block_pairs32_q2_tail32_from32",
    "h3_d64x24_p16_block_halves32_q2_tail32_knorm_qnorm",
    "h3_d64x24_p16_block_pairs32_q2_tail32_knorm_qnorm_from32",
    "h3_d64x24_p16_block_halves32_q2_tail32_qwhole",
    "h3_d64x24_p16_block_pairs32_q2_tail32_qwhole_from32",
    "h3_d64x24_p16_block_halves32_q2_inplace_tail32_qwhole_knorm_qnorm",
    "h3_d64x24_p16_block_pairs32_q2_inplace_tail32_qwhole_knorm_qnorm_from32",
    "h3_d64x24_p16_block_halves32_apart_q2_tail32_onetail",
    "h3_d64x24_p16_block_pairs32_apart_q2_tail32_onetail_from32",
    "h3_d64x24_p16_block_halves32_apart_q2_tail32_onetail_knorm_qnorm",
    "h3_d64x24_p16_block_pairs32_apart_q2_tail32_onetail_knorm_qnorm_from32",
    "h3_d64x24_p16_block_halves32_apart_q2_tail32_onetail_qwhole",
    "h3_d64x24_p16_block_pairs32_apart_q2_tail32_onetail_qwhole_from32",
    "h3_d64x24_p16_block_halves32_apart_q2_inplace_tail32_onetail_qwhole_knorm_qnorm",
    "h3_d64x24_p16_block_pairs32_apart_q2_inplace_tail32_onetail_qwhole_knorm_qnorm_from32",
};

// Tables of each type, with sines beside the cosines or apart. Two rows rotate only K.
constexpr const char *rotary_tables[] = {
    "h3_d48x24_p16_csr_halves16_from8_tablesf16",
    "h3_d48x24_p16_csr_pairs16_from8_tablesf16",
    "h3_d48x24_p16_slots_halves16_positions_from8_tablesf16_sines",
    "h3_d48x24_p16_slots_pairs16_positions_from8_tablesf16_sines",
    "h3_d48x24_p16_csr_halves16_from8_tablesbf16",
    "h3_d48x24_p16_csr_pairs16_from8_tablesbf16",
    "h3_d48x24_p16_slots_halves16_positions_from8_tablesbf16_sines",
    "h3_d48x24_p16_slots_pairs16_positions_from8_tablesbf16_sines",
    "h3_d48x24_p16_csr_halves16_q1_from8",
    "h3_d48x24_p16_csr_pairs16_q1_from8",
    "h3_d48x24_p16_slots_halves16_positions_from8_sines",
    "h3_d48x24_p16_slots_pairs16_positions_from8_sines",
};

// Rows of each number of lanes, with norms across all of them; the longest; MLA.
constexpr const char *row_sizes[] = {
    "h3_d8x8_p16_block_q2_knorm_qnorm",
    "h3_d24x16_p16_block_halves16_q2_knorm_qnorm",
    "h3_d40x56_p16_block_halves32_q2_knorm_qnorm",
    "h3_d64x128_p16_block_halves64_q2_knorm_qnorm",
    "h3_d128x128_p16_block_halves128_q2_knorm_qnorm",
    "h3_d192x128_p16_block_halves192_q2_knorm_qnorm",
    "h3_d256x256_p16_block_halves256_q2_knorm_qnorm",
    "h3_d520x512_p16_block_halves512_q2_knorm_qnorm",
    "h3_d1024x1000_p16_block_halves1024_q2_knorm_qnorm",
    "h1_d576x512_p16_block_pairs64_vink_q4_tail64_from512",
    "h1_d576x512_p16_block_pairs64_vink_q4_tail64_knorm_from512",
};

// V by columns, in packs and whole. Elements without scales leave theirs out.
constexpr const char *columns[] = {
    "h3_d128x128_p16_slots_vpacks_vhead",
    "h3_d48x24_p32_slots_xpack_vpacks_halves32_positions_vhead_apart_q3",
    "h3_d48x24_p64_slots_vpacks_halves32_positions_vhead_notfinite_q3",
    "h3_d128x24_p16_block_vpacks_vhead",
    "h3_d48x24_p32_block_xpack_vpacks_halves32_vhead_apart_q3",
    "h3_d48x24_p64_block_vpacks_halves32_vhead_notfinite_q3",
    "h3_d128x24_p16_csr_wide_vpacks_vhead",
    "h3_d48x24_p32_csr_wide_xpack_vpacks_halves32_vhead_apart_q3",
    "h3_d48x24_p64_csr_wide_vpacks_halves32_vhead_notfinite_q3",
    "h3_d128x128_p16_slots_vcolumns_vtoken",
    "h3_d48x24_p32_slots_xpack_vcolumns_halves32_positions_vtoken_apart_q3",
    "h3_d48x24_p64_slots_vcolumns_halves32_positions_vtoken_notfinite_q3",
    "h3_d128x24_p16_block_vcolumns_vtoken",
    "h3_d48x24_p32_block_xpack_vcolumns_halves32_vtoken_apart_q3",
    "h3_d48x24_p64_block_vcolumns_halves32_vtoken_notfinite_q3",
    "h3_d128x24_p16_csr_wide_vcolumns_vtoken",
    "h3_d48x24_p32_csr_wide_xpack_vcolumns_halves32_vtoken_apart_q3",
    "h3_d48x24_p64_csr_wide_vcolumns_halves32_vtoken_notfinite_q3",
};

// Norms of tiny rows.
constexpr const char *tiny_norms[] = {
    "h3_d48x24_p16_block_halves32_power-133_q2_knorm_qnorm",
    "h3_d48x24_p16_block_halves32_power-129_q2_knorm_qnorm",
    "h3_d48x24_p16_block_halves32_power-125_q2_knorm_qnorm",
    "h3_d48x24_p16_block_halves32_power-121_q2_knorm_qnorm",
    "h3_d48x24_p16_block_halves32_power-110_q2_knorm_qnorm",
    "h3_d48x24_p16_block_halves32_power-70_q2_knorm_qnorm",
};

// Scales per token and page that tiny and large rows get.
constexpr const char *tiny_scales[] = {
    "h3_d48x24_p16_block_kpage_vtoken_power-133_q2", "h3_d48x24_p16_block_pairs32_ktoken_vtoken_power-133_q2",
    "h3_d48x24_p16_block_kpage_vtoken_power-129_q2", "h3_d48x24_p16_block_pairs32_ktoken_vtoken_power-129_q2",
    "h3_d48x24_p16_block_kpage_vtoken_power-125_q2", "h3_d48x24_p16_block_pairs32_ktoken_vtoken_power-125_q2",
    "h3_d48x24_p16_block_kpage_vtoken_power-121_q2", "h3_d48x24_p16_block_pairs32_ktoken_vtoken_power-121_q2",
    "h3_d48x24_p16_block_kpage_vtoken_power-110_q2", "h3_d48x24_p16_block_pairs32_ktoken_vtoken_power-110_q2",
    "h3_d48x24_p16_block_kpage_vtoken_power-70_q2",  "h3_d48x24_p16_block_pairs32_ktoken_vtoken_power-70_q2",
    "h3_d48x24_p16_block_kpage_vtoken_power60_q2",   "h3_d48x24_p16_block_pairs32_ktoken_vtoken_power60_q2",
    "h3_d48x24_p16_block_kpage_vtoken_power110_q2",  "h3_d48x24_p16_block_pairs32_ktoken_vtoken_power110_q2",
};

// Scales per token and page, beside each other and other kinds, of rows as they are and of changed ones.
constexpr const char *row_scales[] = {
    "h5_d48x24_p16_slots_vtoken",
    "h5_d48x24_p16_slots_xpack_halves32_positions_vtoken_knorm",
    "h5_d48x24_p16_csr_vpage_apart_q2",
    "h5_d48x24_p16_csr_xpack_halves32_vpage_apart_q2_knorm",
    "h5_d48x24_p16_slots_khead_vtoken",
    "h5_d48x24_p16_slots_xpack_halves32_positions_khead_vtoken",
    "h5_d48x24_p16_csr_khead_vpage_apart_q2",
    "h5_d48x24_p16_csr_xpack_halves32_khead_vpage_apart_q2",
    "h5_d48x24_p16_csr_ktoken",
    "h5_d48x24_p16_csr_xpack_halves32_ktoken_knorm",
    "h5_d48x24_p16_slots_ktoken_vtoken_notfinite",
    "h5_d48x24_p16_slots_xpack_halves32_positions_ktoken_vtoken_notfinite_knorm",
    "h5_d48x24_p16_csr_ktoken_vpage_apart_q2",
    "h5_d48x24_p16_csr_xpack_halves32_ktoken_vpage_apart_q2_knorm",
    "h5_d48x24_p16_csr_kpage",
    "h5_d48x24_p16_csr_xpack_halves32_kpage_knorm",
    "h5_d48x24_p16_slots_kpage_vtoken",
    "h5_d48x24_p16_slots_xpack_halves32_positions_kpage_vtoken_knorm",
    "h5_d48x24_p16_csr_kpage_vpage_apart_notfinite_q2",
    "h5_d48x24_p16_csr_xpack_halves32_kpage_vpage_apart_notfinite_q2_knorm",
};

// The maximum of rows with each number of lanes; MLA.
constexpr const char *row_maxima[] = {
    "h3_d8x16_p16_block_ktoken_vtoken",
    "h3_d40x64_p16_block_ktoken_vtoken",
    "h3_d128x256_p16_block_ktoken_vtoken",
    "h3_d520x1024_p16_block_ktoken_vtoken",
    "h1_d576x512_p16_block_pairs64_ktoken_vink_q2_tail64_from512",
};

bool any(const KernelTypes &) {
  return true;
}
bool takes_columns(const KernelTypes &types) {
  return types.to == types.from || types.to == Element::fp8;
}
bool is_bf16(const KernelTypes &types) {
  return types.from == Element::bf16; // only BF16 has such numbers
}
bool is_scaled(const KernelTypes &types) {
  return has_scales(types.to);
}
bool is_scaled_bf16(const KernelTypes &types) {
  return is_scaled(types) && is_bf16(types);
}

struct Group {
  std::span<const char *const> rows;
  bool (*fits)(const KernelTypes &);
};
const Group groups[] = {
    {with_queries, any},
    {norms, any},
    {tails, any},
    {rotary_tables, any},
    {row_sizes, any},
    {columns, takes_columns},
    {tiny_norms, is_bf16},
    {tiny_scales, is_scaled_bf16},
    {row_scales, is_scaled},
    {row_maxima, is_scaled},
};

/// The cases of appends, each with something more that only steps do: rows of Q, norms, tails.
std::vector<AppendCase> appends_with_more(const KernelTypes &types) {
  std::vector<AppendCase> cases = append_cases_of(types);
  for (size_t i = 0; i < cases.size(); ++i) {
    AppendCase &c = cases[i];
    if (c.rotary_dim % 16 != 0) c.rotary_dim = 16;
    c.q_heads = int(1 + i % 3);
    c.k_norm = i % 4 == 1;
    c.q_norm = i % 4 == 2;
    c.q_in_place = i % 5 == 3;
    if (i % 4 == 3 && c.head_size.qk > 16 && !c.v_in_k) {
      c.tail_dim = 16;
      c.q_is_whole = true;
    }
  }
  return cases;
}

AppendCase case_of(const char *row, const KernelTypes &types) {
  AppendCase c = read_append_case(row, types);
  if (!has_scales(types.to)) c.k_scale = c.v_scale = Scale::none;
  return c;
}

} // namespace

std::vector<AppendCase> step_cases_of(const KernelTypes &types) {
  if (is_in_groups(types.to)) return block_cases_of(types);
  std::vector<AppendCase> cases = appends_with_more(types);
  for (const Group &group : groups) {
    if (!group.fits(types)) continue;
    for (const char *const row : group.rows)
      cases.push_back(case_of(row, types));
  }
  return cases;
}

} // namespace sluice::conformance
