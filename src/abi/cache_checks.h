//===- cache_checks.h - what a caller can get wrong in a paged cache ------------------------------------===//
//
// Rules that several cache operations have. Each function throws support::Failure with the field, its value
// and the rule; the status is invalid_argument unless stated otherwise.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/cache_op_kernargs.h"
#include "support/failure.h"
#include "tensors/checks.h"

#include <sluice/sluice.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::abi {

using namespace tensors; // as in checks.h

inline constexpr int32_t cache_chunk = package::cache_op_chunk_elements;

/// For a legal value that no kernel serves.
template <typename Value>
[[noreturn]] void unsupported_value(std::string_view field, const Value &value, std::string_view nearest) {
  throw support::Failure(support::Status::unsupported, std::string(field),
                         support::text(field, " is ", value, "; nearest supported: ", nearest));
}

void check_zero(std::string_view field, int64_t value, std::string_view when);
void check_array(std::string_view field, const void *pointer, uint32_t alignment);
/// The array is given exactly when it is wanted, and aligned.
void check_given(std::string_view field, const void *pointer, uint32_t alignment, bool wanted,
                 std::string_view when);

/// Flags of an operation, whose `names` are for messages: newer_struct for those that no version has.
void check_cache_op_flags(uint32_t flags, std::string_view operation, uint32_t allowed,
                          std::string_view names);

/// Heads and head dims, which are 0 for V if there is only K; page_size. Also unsupported.
struct CacheExtents {
  int32_t kv_heads, head_dim_qk, head_dim_v, page_size;
  bool has_v;
};
void check_cache_extents(const CacheExtents &extents);

/// The elements of all heads in a row. Also unsupported.
void check_row_size(std::string_view field, int32_t heads, int32_t head_dim);

/// A pack of K: unsupported if it is not made of chunks.
void check_pack(std::string_view field, int32_t pack, int32_t head_dim_qk);

/// A scale per tensor or head, or none. Only `allowed` calls may have one; `without` ends the message to the
/// others. `also_of_keys`: also per token and per page, of another tensor; `groups`: only per group, of
/// that tensor.
enum class ScaleKinds { few, also_of_keys, groups };
void check_scale(std::string_view kind_field, uint32_t kind, std::string_view field, const float *scale,
                 bool allowed, std::string_view without, ScaleKinds kinds = ScaleKinds::few);

/// `pack` consecutive elements are adjacent; stride[3] is the step to the next pack. 0: no packs.
struct Pack {
  std::string_view field;
  int32_t elements;
};
/// A cache whose number of pages is unknown is checked as one of two pages.
int64_t checked_pages(int64_t page_count);
/// Elements of an output do not overlap.
void check_cache(std::string_view name, const sluice_tensor &cache, const CacheExtents &extents,
                 int32_t head_dim, const Pack &pack, uint32_t element_bytes, int64_t page_count,
                 bool is_output);

/// The same of a cache of V by columns, an output, whose v_pack is right for its pages.
void check_columns(std::string_view name, const sluice_tensor &cache, const CacheExtents &extents,
                   int32_t v_pack, uint32_t element_bytes, int64_t page_count);

/// Checks a v_pack other than 0 against the rows of a page. Kernels read 8 rows of a column at a time.
inline constexpr int32_t v_unit = 8;
void check_v_pack_of_pages(int32_t pack, int32_t page_size);

/// The same of a cache in blocks of elements, which has no packs.
inline constexpr int32_t block_elements = 32;
void check_block_cache(std::string_view name, const sluice_tensor &cache, const CacheExtents &extents,
                       int32_t head_dim, uint32_t type, int64_t page_count, bool is_output);

/// The type of a cache, and what calls say of its groups. Rows of blocks are whole blocks or groups.
struct CacheType {
  std::string_view field;
  uint32_t type;
  int32_t scale_group;
  uint32_t flags;
};
void check_blocks(const CacheType &cache, const CacheExtents &extents);
void check_no_pack(std::string_view field, int32_t pack, uint32_t type);

/// A tensor of scales, [pages][rows][heads][groups], which must not be given without such a kind. PER_PAGE:
/// `rows` does not matter.
struct ScaleArray {
  uint32_t kind;
  int64_t pages;
  int32_t rows, heads, groups;
};
void check_scale_array(std::string_view name, const sluice_tensor &scales, const ScaleArray &array,
                       bool is_output);
/// Numbers to subtract, with the strides of the scales.
void check_zeros(std::string_view name, const sluice_tensor &zeros, const sluice_tensor &scales,
                 const ScaleArray &array, bool is_wanted);

/// Rows [0][tokens][heads][head_dim].
void check_cache_rows(const Shape &rows);

/// Whether anything of the tensor is not zero.
bool is_given(const sluice_tensor &tensor);
void check_all_zero(std::string_view name, const sluice_tensor &tensor, std::string_view when);

} // namespace sluice::abi
