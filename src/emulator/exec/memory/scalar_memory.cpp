//===- scalar_memory.cpp - scalar loads -----------------------------------------------------------------===//
//
// They come back in any order, and are counted by lgkmcnt.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <chrono>
#include <utility>

#include "emulator/check/wave_checks.h"
#include "emulator/exec/memory/memory_rows.h"

namespace sluice::emulator {

namespace {

template <bool strict> Step deliver(Wave &w, const Op &op, const uint32_t (&data)[16]) {
  if constexpr (strict) {
    AsyncOperation &operation = w.checks->new_operation(w, op, AsyncKind::scalar_load);
    operation.first = op.dst;
    operation.rows = op.memory.dwords;
    std::memcpy(operation.data.data(), data, sizeof data);
    w.checks->issue(w, operation);
  } else {
    std::memcpy(&w.s[op.dst - first_sgpr], data, op.memory.dwords * 4);
  }
  return Step::next;
}

template <bool strict> Step finish_load(Wave &w, const Op &op, uint64_t address, uint32_t valid_dwords) {
  uint32_t data[16] = {};
  bool readable = valid_dwords != 0;
  if constexpr (strict) readable = readable && w.checks->check_scalar(w, op, address, valid_dwords * 4);
  if (readable) std::memcpy(data, reinterpret_cast<const void *>(address), valid_dwords * 4);
  return deliver<strict>(w, op, data);
}

uint32_t register_offset(const Wave &w, const Op &op) {
  return op.src[1] == no_operand ? 0 : w.scalar(op.src[1]);
}

/// The two low bits of an address do not count.
template <bool strict> Step run_load(Wave &w, const Op &op) {
  const uint64_t address =
      w.scalar_pair(op.src[0]) + uint64_t(int64_t(op.memory.offset)) + register_offset(w, op);
  return finish_load<strict>(w, op, address & ~uint64_t(3), op.memory.dwords);
}

/// Dwords beyond the resource's records are 0.
template <bool strict> Step run_buffer_load(Wave &w, const Op &op) {
  const uint32_t *resource = &w.s[op.src[0] - first_sgpr];
  const uint64_t base = resource[0] | uint64_t(resource[1] & 0xffff) << 32;
  const uint32_t stride = resource[1] >> 16 & 0x3fff;
  const uint64_t end = stride == 0 ? resource[2] : uint64_t(resource[2]) * stride;
  const uint64_t offset = (uint64_t(int64_t(op.memory.offset)) + register_offset(w, op)) & ~uint64_t(3);
  const uint64_t valid = offset >= end ? 0 : std::min<uint64_t>((end - offset) / 4, op.memory.dwords);
  return finish_load<strict>(w, op, (base + offset) & ~uint64_t(3), uint32_t(valid));
}

/// s_memtime counts instructions of the wave, four clocks each; s_memrealtime the host's time, at 100 MHz.
template <bool strict, bool real> Step run_time(Wave &w, const Op &op) {
  using Ticks = std::chrono::duration<uint64_t, std::ratio<1, 100'000'000>>;
  const uint64_t time =
      real ? std::chrono::duration_cast<Ticks>(std::chrono::steady_clock::now().time_since_epoch()).count()
           : (w.executed + ++w.time_reads) * 4;
  const uint32_t data[16] = {uint32_t(time), uint32_t(time >> 32)};
  return deliver<strict>(w, op, data);
}

Step run_nothing(Wave &, const Op &) {
  return Step::next;
}

} // namespace

std::optional<MemoryRow> scalar_memory_row(std::string_view mnemonic) {
  MemoryRow row;
  row.kind = MemoryKind::load;
  auto sized = [&](std::string_view prefix, Handler fast, Handler strict) {
    if (!mnemonic.starts_with(prefix)) return false;
    const std::string_view rest = mnemonic.substr(prefix.size());
    constexpr std::pair<std::string_view, uint8_t> sizes[] = {
        {"", 1}, {"x2", 2}, {"x4", 4}, {"x8", 8}, {"x16", 16}};
    for (const auto &[name, dwords] : sizes) {
      if (rest != name) continue;
      row.fast = fast;
      row.strict = strict;
      row.control.dwords = dwords;
      return true;
    }
    return false;
  };
  if (sized("s_load_dword", run_load<false>, run_load<true>)) return row;
  if (sized("s_buffer_load_dword", run_buffer_load<false>, run_buffer_load<true>)) return row;
  row.kind = MemoryKind::other;
  row.control.dwords = 2;
  if (mnemonic == "s_memtime") {
    row.fast = run_time<false, false>;
    row.strict = run_time<true, false>;
    return row;
  }
  if (mnemonic == "s_memrealtime") {
    row.fast = run_time<false, true>;
    row.strict = run_time<true, true>;
    return row;
  }
  if (mnemonic.starts_with("s_dcache_")) {
    row.fast = row.strict = run_nothing;
    return row;
  }
  return std::nullopt;
}

} // namespace sluice::emulator
