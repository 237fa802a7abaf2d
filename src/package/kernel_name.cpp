//===- kernel_name.cpp - the grammar of kernel names ----------------------------------------------------===//
#include "package/kernel_name.h"

#include "package/dtypes.h"

#include <array>
#include <charconv>

namespace sluice::package {
namespace {

struct Operation {
  std::string_view full;
  std::string_view abbreviation;
};
constexpr std::array operations = {Operation{"attention_forward", "attn_fwd"},
                                   Operation{"kv_append", "kv_append"}, Operation{"kv_copy", "kv_copy"},
                                   Operation{"append_step", "append_step"},
                                   Operation{"merge_states", "merge_states"}};
constexpr std::string_view fp8 = "e4m3fnuz";
constexpr std::array<std::string_view, 4> forms = {"paged", "decode", "mla", "columns"};
bool take(std::string_view &rest, std::string_view prefix) {
  if (!rest.starts_with(prefix)) return false;
  rest.remove_prefix(prefix.size());
  return true;
}

/// Takes the name of a type at the front of `rest`, whole: no type's name is another's and an underscore.
const Dtype *take_dtype(std::string_view &rest) {
  for (const Dtype &dtype : dtypes) {
    std::string_view after = rest;
    if (!take(after, dtype.name) || !(after.empty() || after.front() == '_')) continue;
    rest = after;
    return &dtype;
  }
  return nullptr;
}

/// Types of Q and O. K and V may have them, and smaller ones.
bool is_wide(const Dtype &dtype) {
  return dtype.block_elements == 1 && dtype.block_bytes == 2;
}

bool is_smaller_than_wide(const Dtype &dtype) {
  return dtype.is_in_blocks() || dtype.block_bytes == 1;
}

bool take_number(std::string_view &rest, uint32_t &value) {
  if (rest.empty() || rest[0] < '1' || rest[0] > '9') return false;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc()) return false;
  rest.remove_prefix(size_t(end - rest.data()));
  return true;
}

/// Removes what it reads from the front of `rest`.
bool take_name(std::string_view &rest, KernelName &name) {
  for (const Operation &operation : operations) {
    if (name.operation.empty() && take(rest, operation.abbreviation)) name.operation = operation.full;
  }
  if (name.operation.empty() || !take(rest, "_")) return false;
  if (name.operation != "attention_forward") {
    const Dtype *const from = take_dtype(rest);
    if (!from || !take(rest, "_")) return false;
    const Dtype *const to = take_dtype(rest);
    if (!to) return false;
    name.dtype = from->name;
    name.to_dtype = to->name;
    return rest.empty();
  }
  const bool is_fp8 = take(rest, std::string(fp8) + "_to_");
  std::string_view after_wide = rest;
  const Dtype *const wide = take_dtype(after_wide);
  if (!wide || !is_wide(*wide)) return false;
  rest = after_wide;
  (is_fp8 ? name.o_dtype : name.dtype) = wide->name;
  if (is_fp8) {
    name.dtype = fp8;
  } else if (std::string_view after = rest; take(after, "_")) {
    if (const Dtype *const kv = take_dtype(after); kv && is_smaller_than_wide(*kv)) {
      name.kv_dtype = kv->name;
      rest = after;
    }
  }
  if (!take(rest, "_d") || !take_number(rest, name.head_dim_qk)) return false;
  name.head_dim_v = name.head_dim_qk;
  if (take(rest, "v") && !(take_number(rest, name.head_dim_v) && name.head_dim_v != name.head_dim_qk)) {
    return false;
  }
  if (!take(rest, "_q") || !take_number(rest, name.tile_q)) return false;
  if (!take(rest, "_kv") || !take_number(rest, name.tile_kv)) return false;
  if (!take(rest, "_w") || !take_number(rest, name.waves)) return false;
  for (std::string_view form : forms) {
    if (name.form.empty() && take(rest, "_" + std::string(form))) name.form = form;
  }
  return rest.empty();
}

} // namespace

std::string format_kernel_name(const KernelName &name) {
  std::string out;
  for (const Operation &operation : operations) {
    if (operation.full == name.operation) out = operation.abbreviation;
  }
  if (!name.is_attention()) return out + "_" + name.dtype + "_" + name.to_dtype;
  out += "_" + name.dtype + (name.kv_dtype.empty() ? "" : "_" + name.kv_dtype) +
         (name.o_dtype.empty() ? "" : "_to_" + name.o_dtype) + "_d" + std::to_string(name.head_dim_qk);
  if (name.head_dim_v != name.head_dim_qk) out += "v" + std::to_string(name.head_dim_v);
  return out + "_q" + std::to_string(name.tile_q) + "_kv" + std::to_string(name.tile_kv) + "_w" +
         std::to_string(name.waves) + (name.form.empty() ? "" : "_" + name.form);
}

std::optional<KernelName> parse_kernel_name(std::string_view text, std::string_view *unread) {
  KernelName name;
  std::string_view rest = text;
  const bool is_name = take_name(rest, name);
  if (unread) *unread = rest;
  return is_name ? std::optional(name) : std::nullopt;
}

} // namespace sluice::package
