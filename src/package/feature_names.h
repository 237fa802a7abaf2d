//===- feature_names.h - names of what kernels can do beyond their plain operation ----------------------===//
//
// The generator writes the names of a kernel's features into its manifest entry; the runtime compares them
// with what a problem or a call needs, and passes them on in sluice_kernel_info::features.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>

namespace sluice::package::feature_names {

// Attention; some of them also cache operations.
inline constexpr char causal[] = "causal";
inline constexpr char window[] = "window";
inline constexpr char mask[] = "mask";
inline constexpr char soft_cap[] = "soft_cap";
inline constexpr char bias[] = "bias";
inline constexpr char alibi[] = "alibi";
inline constexpr char sink_logits[] = "sink_logits";
inline constexpr char scales[] = "scales";
inline constexpr char lse[] = "lse";
inline constexpr char lse_base_2[] = "lse_base_2";
inline constexpr char lengths[] = "lengths";
inline constexpr char ragged[] = "ragged";
inline constexpr char v_in_k[] = "v_in_k";
inline constexpr char paged[] = "paged";
inline constexpr char csr[] = "csr";
inline constexpr char page_index_64[] = "page_index_64";
inline constexpr char k_pack[] = "k_pack";

// The same, without room in sluice_kernel_info::features.
inline constexpr char key_scales[] = "key_scales";
inline constexpr char mask_new_rows[] = "mask_new_rows";
inline constexpr char spans[] = "spans";
inline constexpr char causal_by_sequence[] = "causal_by_sequence";
inline constexpr char given_diagonal[] = "given_diagonal";
inline constexpr char bias_scale[] = "bias_scale";
inline constexpr char alibi_by_sequence[] = "alibi_by_sequence";
inline constexpr char missing_pages[] = "missing_pages";
inline constexpr char padded_rows[] = "padded_rows";
inline constexpr char v_pack[] = "v_pack";

/// Of all attention kernels, in the order of their entries in a pack.
inline constexpr const char *common_attention[] = {
    causal,     window,           mask,    soft_cap, bias,          alibi, sink_logits,        scales,
    lse,        lse_base_2,       lengths, ragged,   mask_new_rows, spans, causal_by_sequence, given_diagonal,
    bias_scale, alibi_by_sequence};
/// Of those attention kernels whose types, form or tile allow it.
inline constexpr const char *further_attention[] = {v_in_k,        v_pack,        key_scales,  paged, csr,
                                                    page_index_64, missing_pages, padded_rows, k_pack};

/// The names of attention in sluice_kernel_info::features, which has no room for others: the list is
/// complete.
inline constexpr std::string_view first_attention[] = {
    causal, window,     mask,    soft_cap, bias,   alibi, sink_logits, scales,       lse,
    paged,  lse_base_2, lengths, ragged,   v_in_k, csr,   k_pack,      page_index_64};

/// Whether a name of attention came after them: sluice_kernel_info::more_features lists it.
constexpr bool is_newer(std::string_view name) {
  const auto is_in = [name](const auto &list) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
  };
  return (is_in(common_attention) || is_in(further_attention)) && !is_in(first_attention);
}

/// The place of a name of attention among all of them; their number for others.
constexpr size_t rank(std::string_view name) {
  size_t place = 0;
  for (const auto &list :
       {std::span<const char *const>(common_attention), std::span<const char *const>(further_attention)})
    for (const std::string_view other : list) {
      if (other == name) return place;
      ++place;
    }
  return place;
}

// Cache operations only.
inline constexpr char slots[] = "slots";
inline constexpr char block[] = "block";
inline constexpr char x_packed[] = "x_packed";
inline constexpr char rotary[] = "rotary";
inline constexpr char pairs[] = "pairs";
inline constexpr char q_rows[] = "q_rows";
inline constexpr char norm[] = "norm";
inline constexpr char tail[] = "tail";
inline constexpr char scale[] = "scale";

} // namespace sluice::package::feature_names
