//===- test_pack.h - a kernel pack whose kernels cannot run ---------------------------------------------===//
//
// The entries are those of real kernels; the machine code is a few bytes, enough for a HIP table that does
// not run it.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/cache_op_kernargs.h"
#include "package/feature_names.h"
#include "package/pack_writer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace sluice::test {

/// All features that an attention kernel may list.
inline std::vector<std::string> all_features() {
  namespace names = package::feature_names;
  std::vector<std::string> all(std::begin(names::common_attention), std::end(names::common_attention));
  all.insert(all.end(), std::begin(names::further_attention), std::end(names::further_attention));
  return all;
}

inline package::KernelEntry kernel_entry(const std::string &dtype, uint32_t head_dim, uint32_t waves) {
  package::KernelEntry entry;
  entry.name = {"attention_forward", dtype, head_dim, head_dim, 32 * waves, 64, waves};
  entry.threads = 64 * waves;
  entry.lds_bytes = 65536;
  entry.kernarg_bytes = sizeof(package::AttentionKernargs);
  entry.kernarg_hash = package::attention_kernarg_hash();
  entry.features = {"causal", "lse"};
  entry.p_rounding = "centred_cut";
  entry.stages = 2;
  entry.copy_groups = {"K", "V"};
  entry.lds_bytes_without_reuse = 98304;
  entry.vgprs = waves <= 4 ? 512 : 256;
  entry.loop_matrix_clk = 4096;
  entry.loop_slot_clk = 4100;
  entry.loop_wave_clk = 6500;
  return entry;
}

/// Bytes that compress, but not to almost nothing, and differ from kernel to kernel; they begin like an ELF
/// file.
inline std::vector<std::byte> fake_code(size_t size, uint32_t seed) {
  std::vector<std::byte> code(size);
  for (std::byte &byte : code) {
    seed = seed * 1664525 + 1013904223;
    byte = std::byte(seed >> 29);
  }
  const auto magic = std::as_bytes(std::span("\x7f"
                                             "ELF",
                                             4));
  std::copy_n(magic.begin(), std::min(size, magic.size()), code.begin());
  return code;
}

inline void add_fake_kernel(package::PackWriter &writer, package::KernelEntry entry,
                            const std::string &chip = "gfx942") {
  const std::vector<std::byte> code = fake_code(600, entry.name.head_dim_qk + entry.name.waves);
  const package::ChipCode object = {chip, code};
  writer.add(std::move(entry), {&object, 1});
}

/// A cache operation's kernel: operation and types.
inline package::KernelEntry cache_op_entry(const std::string &operation, const std::string &from,
                                           const std::string &to) {
  package::KernelEntry entry;
  entry.name.operation = operation;
  entry.name.dtype = from;
  entry.name.to_dtype = to;
  entry.threads = package::cache_op_threads;
  const auto has_arguments = [&](size_t bytes, std::span<const package::KernargField> fields) {
    entry.kernarg_bytes = uint32_t(bytes);
    entry.kernarg_hash = package::kernarg_hash(fields);
  };
  if (operation == "kv_append")
    has_arguments(sizeof(package::AppendKernargs), package::append_kernarg_fields);
  else if (operation == "kv_copy")
    has_arguments(sizeof(package::PageCopyKernargs), package::page_copy_kernarg_fields);
  else if (operation == "append_step")
    has_arguments(sizeof(package::StepKernargs), package::step_kernarg_fields);
  else
    has_arguments(sizeof(package::MergeKernargs), package::merge_kernarg_fields);
  return entry;
}

/// F16 and BF16 with K and V of that type ("") or others, head dims 64 and 128, 4 and 8 waves, for gfx942.
inline std::vector<std::byte> test_pack(const std::vector<std::string> &features = {"causal", "lse"},
                                        const std::vector<std::string> &kv_dtypes = {""}) {
  package::PackWriter writer("test", "22.1.8");
  for (const char *dtype : {"f16", "bf16"}) {
    for (const std::string &kv_dtype : kv_dtypes) {
      for (const uint32_t head_dim : {64, 128}) {
        for (const uint32_t waves : {4, 8}) {
          package::KernelEntry entry = kernel_entry(dtype, head_dim, waves);
          entry.name.kv_dtype = kv_dtype;
          entry.features = features;
          add_fake_kernel(writer, std::move(entry));
        }
      }
    }
  }
  return writer.finish();
}

/// Three cache operations and one attention kernel.
inline std::vector<std::byte> cache_op_pack() {
  package::PackWriter writer("test", "22.1.8");
  add_fake_kernel(writer, kernel_entry("f16", 128, 4));
  add_fake_kernel(writer, cache_op_entry("kv_append", "f16", "f16"));
  add_fake_kernel(writer, cache_op_entry("append_step", "f16", "f16"));
  add_fake_kernel(writer, cache_op_entry("merge_states", "f32", "f16"));
  return writer.finish();
}

} // namespace sluice::test
