//===- choice_fixture.h - kernels to choose among, and a device that has them ---------------------------===//
#pragma once

#include "calls/problem.h"
#include "package/pack_writer.h"
#include "runtime/choose.h"
#include "support/test_pack.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::test {

using package::KernelEntry;
using runtime::Choice;

/// BF16 kernels of head dim 128 with the figures of machine code that was once generated: they are fixed here
/// so that these tests do not change with every kernel.
inline KernelEntry entry(uint32_t tile_q, uint32_t tile_kv, uint32_t waves, const char *form, uint32_t vgprs,
                         uint32_t lds_bytes, uint32_t matrix, uint32_t slot, uint32_t wave) {
  KernelEntry out = kernel_entry("bf16", 128, waves);
  out.name.tile_q = tile_q;
  out.name.tile_kv = tile_kv;
  out.name.form = form;
  out.features = {"causal", "window", "sink_logits", "lse", "lengths", "ragged"};
  out.lds_bytes = lds_bytes;
  out.vgprs = vgprs;
  out.loop_matrix_clk = matrix;
  out.loop_slot_clk = slot;
  out.loop_wave_clk = wave;
  return out;
}
inline const KernelEntry prefill_8 = entry(256, 64, 8, "", 248, 65536, 4096, 4096, 6996);
inline const KernelEntry prefill_4 = entry(128, 64, 4, "", 320, 65536, 4096, 4096, 7568);
// Waves that share 16 rows and divide the keys; waves with separate rows, 64 and 128 together.
inline const KernelEntry sharing = entry(16, 16, 4, "decode", 168, 18432, 256, 868, 1688);
inline const KernelEntry four_waves = entry(64, 32, 4, "decode", 176, 32768, 1024, 2616, 5972);
inline const KernelEntry high = entry(128, 32, 8, "decode", 152, 32768, 1024, 2104, 4708);

inline std::vector<std::byte> pack_of(const std::vector<KernelEntry> &kernels, bool merges) {
  package::PackWriter writer("test", "22.1.8");
  for (const KernelEntry &kernel : kernels)
    add_fake_kernel(writer, kernel);
  for (const char *to : {"bf16", "f32", "e4m3fnuz"})
    if (merges) add_fake_kernel(writer, cache_op_entry("merge_states", "f32", to));
  return writer.finish();
}

/// A device without HIP that has these kernels, and merge kernels unless they are excluded.
class Target {
public:
  explicit Target(const std::vector<KernelEntry> &kernels, bool merges = true)
      : pack(pack_of(kernels, merges)), context(runtime::named_target("gfx942:304"), pack) {}
  Choice choose(const calls::Problem &problem) const { return runtime::choose_kernel(context, problem); }

private:
  std::vector<std::byte> pack;
  runtime::Context context;
};

inline calls::Problem problem_of(int32_t batch, int32_t rows, int32_t keys, int32_t q_heads = 64,
                                 int32_t kv_heads = 8) {
  calls::Problem problem = {};
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_BF16;
  problem.q_heads = q_heads;
  problem.kv_heads = kv_heads;
  problem.head_dim_qk = problem.head_dim_v = 128;
  problem.max_batch = batch;
  problem.max_q_len = rows;
  problem.max_kv_len = keys;
  return problem;
}

inline const std::vector<KernelEntry> all_kernels = {prefill_8, prefill_4, sharing, four_waves, high};

} // namespace sluice::test
