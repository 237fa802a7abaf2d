//===- split_fixture.h - shared by the tests of prefill, decode and split runs --------------------------===//
#pragma once

#include "fixture.h"

namespace sluice::test {

inline package::KernelEntry packed_entry(uint32_t waves, uint32_t tile_kv) {
  package::KernelEntry entry = kernel_entry("f16", 128, waves);
  entry.name.tile_q = 16 * waves;
  entry.name.tile_kv = tile_kv;
  entry.name.form = "decode";
  entry.features = all_features();
  return entry;
}

/// Prefill and decode kernels of F16 and head dim 128, and the kernel that merges splits.
inline const std::vector<std::byte> &split_pack() {
  static const std::vector<std::byte> pack = [] {
    package::PackWriter writer("test", "22.1.8");
    for (const uint32_t waves : {4, 8}) {
      package::KernelEntry entry = kernel_entry("f16", 128, waves);
      entry.features = all_features();
      add_fake_kernel(writer, std::move(entry));
    }
    add_fake_kernel(writer, packed_entry(1, 16));
    add_fake_kernel(writer, packed_entry(4, 16));
    for (const char *to : {"f16", "f32", "e4m3fnuz"})
      add_fake_kernel(writer, cache_op_entry("merge_states", "f32", to));
    return writer.finish();
  }();
  return pack;
}

inline ContextHandle split_context(uint32_t kind) {
  sluice_context_desc desc = context_desc(kind, split_pack());
  return make_context(desc);
}

/// Two sequences of one row and up to 8192 keys.
inline AttentionCall decode_call() {
  AttentionCall call = good_call();
  call.attention.bounds.batch = 2;
  call.attention.bounds.q_len = 1;
  call.attention.bounds.kv_len = 8192;
  return call;
}

/// For any number of rows: up to 4 of 4 heads go to the decode kernel, more do not, since the ceiling is just
/// large enough for their splits.
inline AttentionCall mixed_call() {
  AttentionCall call = decode_call();
  call.attention.bounds.q_len = 0;
  call.attention.workspace_ceiling_bytes = 7 * 2 * 4 * 8 * (128 + 1) * 4; // splits, sequences, rows, heads
  return call;
}

/// With a workspace for every plan, which is never accessed.
inline sluice_launch with_workspace() {
  sluice_launch launch = good_launch();
  launch.workspace = reinterpret_cast<void *>(uint64_t{1} << 32);
  launch.workspace_bytes = uint64_t{1} << 32;
  return launch;
}

} // namespace sluice::test
