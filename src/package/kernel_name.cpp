//===- kernel_name.cpp - the grammar of kernel names ----------------------------------------------------===//
#include "package/kernel_name.h"

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
constexpr std::array<std::string_view, 2> dtypes = {"bf16", "f16"};
constexpr std::string_view fp8 = "e4m3fnuz";
// A type comes before those that its name begins with.
constexpr std::array<std::string_view, 8> kv_dtypes = {fp8,  "e4m3fn", "e5m2fnuz", "e5m2",
                                                       "i8", "q8_0",   "q4_0",     "u4"};
constexpr std::array<std::string_view, 4> forms = {"paged", "decode", "mla", "columns"};
constexpr std::array<std::string_view, 11> cache_op_dtypes = {
    "bf16", "f16", "f32", "e4m3fnuz", "e4m3fn", "e5m2fnuz", "e5m2", "i8", "q8_0", "q4_0", "u4"};

bool take(std::string_view &rest, std::string_view prefix) {
  if (!rest.starts_with(prefix)) return false;
  rest.remove_prefix(prefix.size());
  return true;
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
    for (std::string *type : {&name.dtype, &name.to_dtype}) {
      if (type == &name.to_dtype && !take(rest, "_")) return false;
      for (std::string_view dtype : cache_op_dtypes) {
        if (type->empty() && take(rest, dtype)) *type = dtype;
      }
      if (type->empty()) return false;
    }
    return rest.empty();
  }
  const bool is_fp8 = take(rest, std::string(fp8) + "_to_");
  std::string &wide = is_fp8 ? name.o_dtype : name.dtype;
  for (std::string_view dtype : dtypes) {
    if (wide.empty() && take(rest, dtype)) wide = dtype;
  }
  if (wide.empty()) return false;
  if (is_fp8) {
    name.dtype = fp8;
  } else {
    for (std::string_view dtype : kv_dtypes) {
      if (name.kv_dtype.empty() && take(rest, "_" + std::string(dtype))) name.kv_dtype = dtype;
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
