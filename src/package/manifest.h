//===- manifest.h - what a kernel pack says about itself ------------------------------------------------===//
//
// The values of docs/formats/pack.md. The generator fills them in, the reader hands them out, and the runtime
// chooses kernels by them alone.
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
  std::vector<std::string> features; // what it can do: "causal", "lse" and so on
  std::string p_rounding;            // "centred_cut" or "nearest_even"

  // What the pipeline decided, for people and tools: the runtime does not look at it.
  uint32_t stages = 0;                  // LDS slots of each tile that is copied while others are computed
  std::vector<std::string> copy_groups; // what is copied together and waited for together
  uint32_t lds_bytes_without_reuse = 0; // what lds_bytes would be if no two tiles shared bytes

  // What the machine code says of speed, by which the runtime estimates what a launch costs; 0 where nobody
  // has measured it. Clk are those of a wave once around the loop with the most MFMAs, on the usual way.
  uint32_t vgprs = 0;           // registers of a lane that a wave gets, of the unified file
  uint32_t loop_matrix_clk = 0; // its MFMAs keep the matrix core busy
  uint32_t loop_slot_clk = 0;   // it keeps the fullest slot of its SIMD busy, the matrix core among them
  uint32_t loop_wave_clk = 0;   // it takes by itself, with its waits where caches hit

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
