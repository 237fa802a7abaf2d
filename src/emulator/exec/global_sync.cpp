//===- global_sync.cpp - global wave sync: barriers for all workgroups of a launch ----------------------===//
#include "emulator/exec/global_sync.h"

namespace sluice::emulator {

using Lock = std::lock_guard<std::mutex>;

GlobalSync::GlobalSync(uint64_t workgroups) : running(workgroups) {
  resources[0] = {true, uint32_t(workgroups - 1)};
}

void GlobalSync::init(uint32_t resource, uint32_t others) {
  const Lock lock(mutex);
  resources[resource] = {true, others};
}

GlobalSync::Arrival GlobalSync::arrive(uint32_t resource, uint32_t others, uint64_t &round) {
  const Lock lock(mutex);
  Resource &barrier = resources[resource];
  if (!barrier.ready) return Arrival::not_ready;
  round = rounds[resource];
  if (barrier.to_come != 0) {
    --barrier.to_come;
    return Arrival::waits;
  }
  barrier.to_come = others;
  ++rounds[resource];
  ++moments;
  waiting = 0;
  return Arrival::last;
}

bool GlobalSync::stuck(uint64_t now, uint64_t &since) {
  const Lock lock(mutex);
  if (now != moments) return false;
  if (since != now) ++waiting;
  since = now;
  return waiting == running;
}

void GlobalSync::workgroup_ended() {
  const Lock lock(mutex);
  --running;
}

} // namespace sluice::emulator
