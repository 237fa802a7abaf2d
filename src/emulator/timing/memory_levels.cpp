//===- memory_levels.cpp - vector cache, L2, Infinity Cache and HBM -------------------------------------===//
#include "emulator/timing/memory_levels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>

namespace sluice::emulator::timing {

//===--- Tags -------------------------------------------------------------------------------------------===//

CacheTags::CacheTags(uint64_t bytes, uint32_t line_bytes, uint32_t ways)
    : sets(bytes / line_bytes / ways), ways(ways),
      // Zero pages of the host: a large cache takes only the memory used.
      lines(static_cast<Line *>(std::calloc(sets * ways, sizeof(Line)))) {
  if (!lines) throw std::bad_alloc();
}

CacheTags::Line &CacheTags::touch(uint64_t line, bool &hit) {
  Line *const set = &lines[line % sets * ways];
  Line *const end = set + ways;
  Line *const found = std::find_if(set, end, [&](const Line &l) { return l.tag == line + 1; });
  hit = found != end;
  std::rotate(set, hit ? found : end - 1, hit ? found + 1 : end);
  if (!hit) *set = {line + 1, 0};
  return *set;
}

void CacheTags::clear() {
  std::fill_n(lines.get(), sets * ways, Line{});
}

//===--- Shared levels ----------------------------------------------------------------------------------===//

namespace {

Queue queue_of(Level level, uint32_t compute_units, const Device &device) {
  return {compute_units * share(level, device), burst_clk_of(level, device)};
}

} // namespace

SharedLevels::SharedLevels(uint32_t compute_units, uint32_t xcds, const Device &device)
    : mall(mall_bytes, cache_line_bytes, mall_ways),
      mall_queue(queue_of(Level::mall, compute_units * xcds, device)),
      hbm_queue(queue_of(Level::hbm, compute_units * xcds, device)),
      mall_latency(latency_clk(Level::mall, device)), hbm_latency(latency_clk(Level::hbm, device)),
      store_lead_clk(double(l2_bytes) / device.compute_units_of_xcd() / share(Level::hbm, device)) {
  for (uint32_t i = 0; i < xcds; ++i)
    l2.push_back(
        {CacheTags(l2_bytes, cache_line_bytes, l2_ways), queue_of(Level::l2, compute_units, device)});
}

double SharedLevels::read(uint32_t xcd, uint64_t line, double clk) {
  bool hit = false;
  const double in_l2 = l2[xcd].queue.serve(clk, cache_line_bytes);
  traffic.l2_bytes += cache_line_bytes;
  CacheTags::Line &l2_line = l2[xcd].tags.touch(line, hit);
  if (hit) return std::max(in_l2 + l2_latency_clk, l2_line.ready);

  const double in_mall = mall_queue.serve(in_l2, cache_line_bytes);
  traffic.mall_bytes += cache_line_bytes;
  CacheTags::Line &mall_line = mall.touch(line, hit);
  if (hit) return l2_line.ready = std::max(in_mall + mall_latency, mall_line.ready);

  const double in_hbm = hbm_queue.serve(in_mall, cache_line_bytes);
  traffic.hbm_bytes += cache_line_bytes;
  return mall_line.ready = l2_line.ready = in_hbm + hbm_latency;
}

double SharedLevels::write(uint32_t xcd, uint64_t line, uint32_t bytes, double clk) {
  bool hit = false;
  const double in_l2 = l2[xcd].queue.serve(clk, bytes);
  traffic.l2_bytes += bytes;
  l2[xcd].tags.touch(line, hit);
  const double done = in_l2 + l2_latency_clk;
  if (hit) return done;
  // Bytes that leave L2 later are charged at once.
  traffic.mall_bytes += bytes;
  traffic.hbm_bytes += bytes;
  traffic.stored_bytes += bytes;
  return std::max(done, hbm_queue.serve(mall_queue.serve(in_l2, bytes), bytes) - store_lead_clk);
}

MemoryTraffic SharedLevels::moved(double clk) const {
  MemoryTraffic result = traffic;
  for (const SecondLevel &level : l2)
    result.l2_bytes -= uint64_t(std::ceil(level.queue.waiting_bytes(clk)));
  result.mall_bytes -= uint64_t(std::ceil(mall_queue.waiting_bytes(clk)));
  result.hbm_bytes -= uint64_t(std::ceil(hbm_queue.waiting_bytes(clk)));
  return result;
}

//===--- One compute unit -------------------------------------------------------------------------------===//

namespace {

/// A line, and the path-wide pieces of it that an instruction touches.
struct TouchedLine {
  uint64_t line;
  uint32_t pieces;
  uint32_t bytes;
};

class TouchedLines {
public:
  explicit TouchedLines(const LaneAccess<uint64_t> &access) {
    for (uint64_t lanes = access.lanes; lanes != 0; lanes &= lanes - 1) {
      const uint64_t first = access.at[size_t(std::countr_zero(lanes))];
      const uint64_t last = first + access.bytes - 1;
      for (uint64_t piece = first / vector_path_bytes; piece <= last / vector_path_bytes; ++piece) {
        TouchedLine &touched = at(piece * vector_path_bytes / cache_line_bytes);
        touched.pieces |= 1u << piece % (cache_line_bytes / vector_path_bytes);
        const uint64_t begin = std::max(first, piece * vector_path_bytes);
        const uint64_t end = std::min(last + 1, (piece + 1) * vector_path_bytes);
        touched.bytes += uint32_t(end - begin);
      }
    }
  }
  const TouchedLine *begin() const { return lines; }
  const TouchedLine *end() const { return lines + count; }

private:
  TouchedLine &at(uint64_t line) {
    // Neighbouring lanes are nearly always in the line that was found last.
    for (uint32_t i = count; i-- > 0;)
      if (lines[i].line == line) return lines[i];
    lines[count] = {line, 0, 0};
    return lines[count++];
  }

  TouchedLine lines[2 * wave_lanes];
  uint32_t count = 0;
};

} // namespace

VectorMemory::VectorMemory(SharedLevels &shared, uint32_t xcd)
    : shared(shared), xcd(xcd), tags(vector_cache_bytes, cache_line_bytes, vector_cache_ways),
      scalar_tags(scalar_cache_bytes, scalar_line_bytes, scalar_cache_ways) {}

uint64_t VectorMemory::accepts() const {
  return path_free > vector_queue_clk ? path_free - vector_queue_clk : 0;
}

VectorMemory::Result VectorMemory::access(const LaneAccess<uint64_t> &access, Transfer transfer,
                                          uint64_t clk) {
  const uint64_t start = std::max(clk, path_free);
  const TouchedLines lines(access);
  uint64_t path_clk = 0;
  double done = double(start);
  for (const TouchedLine &touched : lines) {
    // The latencies include the first pieces.
    const double at = double(start + (path_clk > vector_path_clk ? path_clk - vector_path_clk : 0));
    path_clk += uint64_t(std::popcount(touched.pieces));
    const uint32_t bytes = std::min(touched.bytes, cache_line_bytes);
    shared.traffic.l1_bytes += bytes;
    if (transfer == Transfer::store || transfer == Transfer::atomic) {
      // The vector cache writes through and does not allocate.
      done = std::max(done, shared.write(xcd, touched.line, bytes, at));
      continue;
    }
    bool hit = false;
    CacheTags::Line &line = tags.touch(touched.line, hit);
    if (!hit) line.ready = shared.read(xcd, touched.line, at);
    done = std::max({done, line.ready, at + vector_cache_latency_clk});
  }
  const uint64_t least = transfer == Transfer::copy_to_lds ? lds_copy_clk : vector_path_clk;
  path_clk = std::max(path_clk, least);
  path_free = start + path_clk;
  busy_clk += path_clk;
  return {{start, path_free}, uint64_t(std::ceil(done))};
}

uint64_t VectorMemory::scalar_load(uint64_t address, uint64_t clk) {
  bool hit = false;
  CacheTags::Line &line = scalar_tags.touch(address / scalar_line_bytes, hit);
  if (!hit) line.ready = shared.read(xcd, address / cache_line_bytes, double(clk));
  return uint64_t(std::ceil(std::max(line.ready, double(clk + scalar_latency_clk))));
}

} // namespace sluice::emulator::timing
