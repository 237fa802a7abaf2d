//===- manifest.h - the manifest of a kernel pack -------------------------------------------------------===//
//
// The values of docs/formats/pack.md. The generator fills them in, the reader returns them, and the runtime
// chooses kernels by nothing else.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "package/kernel_name.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::package {

struct KernelEntry {
  KernelName name;
  uint32_t threads = 0;              // lanes per workgroup
  uint32_t lds_bytes = 0;            // static LDS per workgroup
  uint32_t kernarg_bytes = 0;        // size of the kernel's argument block ...
  uint64_t kernarg_hash = 0;         // ... and attention_kernarg_hash() of its layout
  std::vector<std::string> features; // supported features: "causal", "lse" and so on
  std::string p_rounding;            // "centred_cut" or "nearest_even"

  // Decisions of the pipeline, for people and tools: the runtime ignores them.
  uint32_t stages = 0;                  // LDS slots of each tile that is copied while others are computed
  std::vector<std::string> copy_groups; // tiles that are copied together and waited for together
  uint32_t lds_bytes_without_reuse = 0; // what lds_bytes would be if no two tiles shared bytes

  // The speed of the machine code, from which the runtime estimates the cost of a launch; 0 if it was not
  // measured. Clk are those of one iteration of a wave's loop with the most MFMAs, on the usual path.
  uint32_t vgprs = 0;           // registers of the unified file that a lane of a wave gets
  uint32_t loop_matrix_clk = 0; // its MFMAs keep the matrix core busy
  uint32_t loop_slot_clk = 0;   // it keeps the fullest slot of its SIMD busy, counting the matrix core
  uint32_t loop_wave_clk = 0;   // it takes on its own, with its waits when caches hit

  std::vector<std::string> chips; // chips with machine code in the bundle, sorted

  bool operator==(const KernelEntry &) const = default;
};

/// A kernel of a pack and where its compressed bundle is.
struct PackedKernel {
  KernelEntry entry;
  uint64_t offset = 0; // from the start of the pack
  uint64_t compressed_bytes = 0;
  uint64_t bundle_bytes = 0;
  uint64_t checksum = 0; // XXH64 of the compressed bytes
};

struct Manifest {
  std::string generator;             // program and version that wrote the pack
  std::string llvm_version;          // that generated the code
  std::vector<PackedKernel> kernels; // sorted by name
};

} // namespace sluice::package
