//===- workload_tensors.h - the tensors of a workload ---------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "emulator/memory/memory.h"
#include "tools/bench/workload.h"
#include "tools/shared/context.h"

#include <memory>
#include <vector>

namespace sluice::tools {

/// Memory of the device on which a workload runs. Blocks live as long as it does.
class WorkMemory {
public:
  virtual ~WorkMemory() = default;
  /// Aligned as tensors and workspace must be. Throws ToolError if there is not enough.
  virtual void *allocate(uint64_t bytes) = 0;
  virtual void upload(void *to, const void *from, uint64_t bytes) = 0;
};

/// For the timing model: one block that begins at the start of a way of the largest cache. Which lines share
/// a set, and so the time, then depends only on the workload.
class ModelMemory : public WorkMemory {
public:
  explicit ModelMemory(uint64_t bytes);
  /// For a workload's tensors and this much workspace.
  ModelMemory(const Workload &work, uint64_t workspace_bytes);
  void *allocate(uint64_t bytes) override;
  void upload(void *to, const void *from, uint64_t bytes) override;
  const emulator::Memory &machine() const { return memory; }

private:
  emulator::Memory memory;
  uint64_t next = 0, end = 0;
};

class HipMemory : public WorkMemory {
public:
  explicit HipMemory(const sluice_context *context) : context(context) {}
  void *allocate(uint64_t bytes) override;
  void upload(void *to, const void *from, uint64_t bytes) override;

private:
  const sluice_context *context;
  std::vector<std::unique_ptr<DeviceBuffer>> blocks;
};

/// Allocates and fills the tensors, the page table and the scales of a workload, and describes the call.
/// Elements are between -2 and 2, so that scores are spread as those of attention are.
calls::Args make_tensors(const Workload &work, WorkMemory &memory);

/// Fills a workspace with such numbers, as O and LSE of splits of the keys: a merge on the model finds only
/// the results of simulated workgroups.
void fill_partial_results(WorkMemory &memory, void *workspace, uint64_t bytes);

} // namespace sluice::tools
