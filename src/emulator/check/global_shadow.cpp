//===- global_shadow.cpp - which wave touched which dword of memory -------------------------------------===//
#include "emulator/check/global_shadow.h"

#include <bit>
#include <thread>

namespace sluice::emulator {

namespace {

constexpr uint32_t page_lines = 16;
constexpr uint32_t page_bytes = page_lines * line_bytes;
// Workgroups run on several host threads. What another one stores may be on its way to memory.
constexpr uint32_t most_looks = 20;

bool is(const AccessRecord &record, Remembered kind) {
  return record.kind == uint32_t(kind);
}

} // namespace

struct Page {
  std::atomic_flag busy;
  std::array<LineRecords, page_lines> lines;
};

GlobalShadow::GlobalShadow() = default;
GlobalShadow::~GlobalShadow() = default;

Page &GlobalShadow::page_of(Pages &pages, uint64_t number) {
  Pages::Entry &entry = pages.entries[number % pages.entries.size()];
  if (entry.number != number) {
    Shard &shard = shards[number % shards.size()];
    const std::lock_guard lock(shard.mutex);
    std::unique_ptr<Page> &page = shard.pages[number];
    if (!page) page = std::make_unique<Page>();
    entry = {number, page.get()};
  }
  return *entry.page;
}

/// The page in use, locked: a wave's accesses are usually next to each other.
class GlobalShadow::Locked {
public:
  Locked(GlobalShadow &shadow, Pages &pages) : shadow(shadow), pages(pages) {}
  ~Locked() { unlock(); }
  Locked(const Locked &) = delete;
  Locked &operator=(const Locked &) = delete;

  LineRecords &line(uint64_t line) {
    if (line / page_lines != number) {
      unlock();
      number = line / page_lines;
      page = &shadow.page_of(pages, number);
      while (page->busy.test_and_set(std::memory_order_acquire))
        std::this_thread::yield();
    }
    return page->lines[line % page_lines];
  }

private:
  void unlock() {
    if (page) page->busy.clear(std::memory_order_release);
  }

  GlobalShadow &shadow;
  Pages &pages;
  Page *page = nullptr;
  uint64_t number = ~uint64_t(0);
};

//===--- Entering an instruction ------------------------------------------------------------------------===//

class GlobalShadow::Entering {
public:
  Entering(FirstReads &reads, const WaveOrder &order, uint32_t when, const Footprint &footprint,
           GlobalAccess access, StoredRows stored)
      : reads(reads), order(order), footprint(footprint), access(access), stored(stored) {
    mine.wave = order.number();
    mine.moment = when;
    mine.op = access.op & ((1u << 22) - 1);
    mine.kind = uint32_t(access.store ? Remembered::store : Remembered::load);
    mine.atomic = access.atomic;
    mine.combines = access.combines();
    mine.scalar = access.scalar;
    mine.epoch = order.epoch();
    mine.waves = own_bit(mine.wave);
    if (access.store && !access.atomic && stored.rows) find_value();
  }

  void enter(LineRecords &line, const LinePart &part) {
    mine.bytes = part.bytes;
    if (access.store)
      enter_store(line, part);
    else
      enter_load(line, part);
  }

  GlobalConflict found;

private:
  uint16_t own_bit(uint32_t wave) const { return uint16_t(1u << (wave - order.first_wave())); }
  void find_value();
  /// Whether this wave is one of those that made an earlier access.
  bool is_mine(const AccessRecord &record) const {
    return record.wave == mine.wave || (order.same_workgroup(record.wave) && record.epoch == mine.epoch &&
                                        (record.waves & mine.waves) != 0);
  }
  bool is_covered(const AccessRecord &record) const { return (record.bytes & ~mine.bytes) == 0; }
  bool both_atomic(const AccessRecord &record) const { return record.atomic && access.atomic; }
  AccessOrder order_after(const AccessRecord &record, uint32_t &other_wave) const;
  uint64_t equal_dwords(const AccessRecord &record, const LinePart &common) const;
  uint64_t meet(const AccessRecord &record, const LinePart &common);
  void note(AccessOrder known, bool equal, const LinePart &common, const AccessRecord &record,
            uint32_t other_wave);
  void enter_store(LineRecords &line, const LinePart &part);
  void enter_load(LineRecords &line, const LinePart &part);
  uint64_t add_with_neighbours(LineRecords &line, uint64_t dwords, const AccessRecord &earlier);

  FirstReads &reads;
  const WaveOrder &order;
  const Footprint &footprint;
  const GlobalAccess access;
  const StoredRows stored;
  AccessRecord mine;
};

/// A value that every dword gets, repeated in it if it is shorter.
void GlobalShadow::Entering::find_value() {
  const uint32_t bytes = footprint.bytes_per_lane();
  const auto first = uint32_t(std::countr_zero(footprint.active()));
  const uint32_t mask = bytes >= 4 ? ~0u : (1u << 8 * bytes) - 1;
  auto value = [&](uint32_t row, uint32_t lane) {
    return stored.rows[row * line_dwords + lane] >> stored.shift & mask;
  };
  const uint32_t common = value(0, first);
  for (uint32_t row = 0; row < (bytes + 3) / 4; ++row)
    for (uint64_t left = footprint.active(); left != 0; left &= left - 1)
      if (value(row, uint32_t(std::countr_zero(left))) != common) return;
  mine.uniform = 1;
  mine.value = bytes == 1 ? common * 0x01010101u : bytes == 2 ? common * 0x00010001u : common;
}

/// The order after the waves of a record; sets which one it is not ordered after.
AccessOrder GlobalShadow::Entering::order_after(const AccessRecord &record, uint32_t &other_wave) const {
  other_wave = record.wave;
  if (record.wave != mine.wave) {
    const AccessOrder known = order.order_of(
        {record.wave, record.moment, is(record, Remembered::store), bool(record.atomic), bool(record.scalar)},
        {access.store || access.atomic, access.scalar});
    if (known != AccessOrder::before) return known;
  }
  if (!order.same_workgroup(record.wave) || record.epoch != mine.epoch) return AccessOrder::before;
  for (uint32_t left = record.waves & ~own_bit(record.wave) & ~own_bit(mine.wave); left != 0;
       left &= left - 1) {
    other_wave = order.first_wave() + uint32_t(std::countr_zero(left));
    if (!order.has_heard_from(other_wave)) return AccessOrder::none;
  }
  return AccessOrder::before;
}

/// The dwords in which this store leaves what an earlier one has left.
uint64_t GlobalShadow::Entering::equal_dwords(const AccessRecord &record, const LinePart &common) const {
  if (record.atomic || access.atomic || !stored.rows) return 0;
  if (record.uniform && mine.uniform) {
    uint32_t bits = 0;
    for (uint32_t byte = 0; byte < 4; ++byte)
      if ((common.bytes >> byte & 1) != 0) bits |= 0xffu << 8 * byte;
    return ((record.value ^ mine.value) & bits) == 0 ? common.dwords : 0;
  }
  uint64_t different = 0;
  const uint32_t looks = order.same_workgroup(record.wave) ? 1 : most_looks;
  for (uint32_t look = 0; look < looks; ++look) {
    if (look != 0) std::this_thread::yield();
    different = 0;
    footprint.all_bytes(common, [&](uint32_t lane, uint32_t offset, uint64_t address) {
      if (*reinterpret_cast<const volatile uint8_t *>(address) != stored.byte(lane, offset))
        different |= uint64_t(1) << address / 4 % line_dwords;
      return true;
    });
    if (different == 0) break;
  }
  return common.dwords & ~different;
}

/// Keeps a conflict if it is more serious than the one found before, or in an earlier lane.
void GlobalShadow::Entering::note(AccessOrder known, bool equal, const LinePart &common,
                                  const AccessRecord &record, uint32_t other_wave) {
  if (common.dwords == 0) return;
  const uint32_t lane = footprint.lane_of(common);
  const bool first = found.order == AccessOrder::before;
  if (first || (found.equal && !equal) || (found.equal == equal && lane < found.lane))
    found = {known, equal, lane, is(record, Remembered::store), record.op, other_wave};
}

/// Compares with an earlier access of the same bytes. Returns the dwords in which both store the same value.
uint64_t GlobalShadow::Entering::meet(const AccessRecord &record, const LinePart &common) {
  uint32_t other_wave = 0;
  const AccessOrder known = order_after(record, other_wave);
  if (known == AccessOrder::before) return 0;
  const bool with_store = is(record, Remembered::store);
  const bool unordered = known == AccessOrder::none;
  if (unordered && ((record.combines && !access.store) || (access.combines() && !with_store))) {
    const uint64_t dword = common.line * line_dwords + uint64_t(std::countr_zero(common.dwords));
    reads.met(
        {!access.store, mine.wave, footprint.lane_of(common), dword * 4, access.op, record.op, other_wave});
    return 0;
  }
  const uint64_t equal = unordered && with_store && access.store ? equal_dwords(record, common) : 0;
  note(known, true, {common.line, equal, common.bytes}, record, other_wave);
  note(known, false, {common.line, common.dwords & ~equal, common.bytes}, record, other_wave);
  return equal;
}

void GlobalShadow::Entering::enter_store(LineRecords &line, const LinePart &part) {
  uint64_t same = 0; // dwords that hold the value already
  uint64_t shared = 0;
  uint16_t sharing = 0;
  for (uint32_t i = line.find(part.dwords, 0); i < line.size(); i = line.find(part.dwords, i + 1)) {
    const AccessRecord &record = line[i];
    const LinePart common{part.line, line.dwords(i) & part.dwords, record.bytes & part.bytes};
    if (!is(record, Remembered::store) || common.bytes == 0) continue;
    const uint64_t equal = both_atomic(record) ? 0 : meet(record, common);
    same |= equal;
    if (equal != 0 && order.same_workgroup(record.wave) && record.epoch == mine.epoch) {
      shared |= equal;
      sharing |= record.waves;
    }
    if (is_covered(record)) line.dwords(i) &= ~common.dwords;
  }
  for (uint32_t i = line.find(part.dwords, 0); i < line.size(); i = line.find(part.dwords, i + 1)) {
    const AccessRecord &record = line[i];
    const LinePart common{part.line, line.dwords(i) & part.dwords, record.bytes & part.bytes};
    if (is(record, Remembered::store) || common.bytes == 0 || both_atomic(record)) continue;
    const bool own = record.wave == mine.wave && record.waves == mine.waves;
    if (access.compares && is_mine(record)) reads.compared(record.op);
    // Loads after a store of the value have got it, in any order of the stores.
    const LinePart unequal{part.line, common.dwords & ~same, common.bytes};
    if (!own && unequal.dwords != 0) meet(record, unequal);
    // The load of a loop around a compare-and-swap must still be there when its own wave gets that far.
    if (is_covered(record) && (own || !access.combines())) line.dwords(i) &= ~common.dwords;
  }
  line.drop_empty();
  if (shared != 0) {
    AccessRecord with_others = mine;
    with_others.waves |= sharing;
    line.add(shared, with_others);
  }
  if ((part.dwords & ~shared) != 0) line.add(part.dwords & ~shared, mine);
}

void GlobalShadow::Entering::enter_load(LineRecords &line, const LinePart &part) {
  uint64_t demoted = 0;
  uint64_t left = part.dwords; // not yet entered
  const uint32_t before = line.size();
  for (uint32_t i = line.find(part.dwords, 0); i < before; i = line.find(part.dwords, i + 1)) {
    const AccessRecord record = line[i];
    const LinePart common{part.line, line.dwords(i) & part.dwords, record.bytes & part.bytes};
    if (is(record, Remembered::store)) {
      // A wave that has stored the same value as others reads its own.
      if (common.bytes != 0 && !is_mine(record) && !both_atomic(record)) meet(record, common);
      continue;
    }
    const bool same_workgroup = order.same_workgroup(record.wave);
    if (same_workgroup && (record.atomic || !access.atomic) && is_covered(record)) {
      line.dwords(i) &= ~common.dwords;
      if (is(record, Remembered::load) && record.epoch == mine.epoch && !record.scalar && !access.scalar &&
          record.waves != mine.waves)
        left &= ~add_with_neighbours(line, common.dwords & left, record);
    } else if (!same_workgroup && is(record, Remembered::load)) {
      demoted |= common.dwords;
    }
  }
  if (demoted != 0) {
    // What another workgroup loaded last is now what was loaded before.
    const uint32_t size = line.size();
    for (uint32_t i = line.find(demoted, 0); i < size; i = line.find(demoted, i + 1))
      if (is(line[i], Remembered::earlier_load)) line.dwords(i) &= ~demoted;
    for (uint32_t i = line.find(demoted, 0); i < size; i = line.find(demoted, i + 1)) {
      AccessRecord record = line[i];
      if (!is(record, Remembered::load) || order.same_workgroup(record.wave)) continue;
      const uint64_t dwords = line.dwords(i) & demoted;
      line.dwords(i) &= ~dwords;
      record.kind = uint32_t(Remembered::earlier_load);
      line.add(dwords, record);
    }
  }
  line.drop_empty();
  if (left != 0) line.add(left, mine);
}

/// Enters a load of dwords that other waves of the workgroup have loaded as well since the last barrier.
uint64_t GlobalShadow::Entering::add_with_neighbours(LineRecords &line, uint64_t dwords,
                                                     const AccessRecord &earlier) {
  AccessRecord with_others = mine;
  with_others.waves |= earlier.waves;
  if (dwords != 0) line.add(dwords, with_others);
  return dwords;
}

GlobalConflict GlobalShadow::enter(Pages &pages, const WaveOrder &wave, uint32_t when,
                                   const Footprint &footprint, GlobalAccess access, StoredRows stored) {
  Entering entering(reads, wave, when, footprint, access, stored);
  Locked locked(*this, pages);
  for (const LinePart &part : footprint.parts())
    entering.enter(locked.line(part.line), part);
  return entering.found;
}

//===--- What was touched -------------------------------------------------------------------------------===//

std::vector<MemoryUse> GlobalShadow::uses() const {
  std::vector<MemoryUse> list;
  auto use = [&](uint64_t dword, uint32_t bytes, MemoryUse::Kind kind) {
    if (bytes == 0) return;
    const uint64_t start = dword + uint64_t(std::countr_zero(bytes));
    const uint64_t end = dword + uint64_t(std::bit_width(bytes));
    if (!list.empty() && list.back().kind == kind && list.back().end == start)
      list.back().end = end;
    else
      list.push_back({start, end, 0, kind});
  };
  auto kind_of = [](const AccessRecord &record) {
    return record.atomic                   ? MemoryUse::Kind::atomic
           : is(record, Remembered::store) ? MemoryUse::Kind::write
                                           : MemoryUse::Kind::read;
  };
  std::array<uint8_t, page_bytes / 4> touched; // by dword, a bit for each byte
  for (const Shard &shard : shards)
    for (const auto &[number, page] : shard.pages)
      // One kind after another, so that neighbours form one range.
      for (MemoryUse::Kind kind : {MemoryUse::Kind::write, MemoryUse::Kind::read, MemoryUse::Kind::atomic}) {
        touched.fill(0);
        for (uint32_t line = 0; line < page_lines; ++line)
          for (uint32_t i = 0; i < page->lines[line].size(); ++i) {
            const AccessRecord &record = page->lines[line][i];
            if (kind_of(record) != kind) continue;
            for (uint64_t left = page->lines[line].dwords(i); left != 0; left &= left - 1)
              touched[line * line_dwords + uint32_t(std::countr_zero(left))] |= record.bytes;
          }
        for (uint32_t i = 0; i < page_bytes / 4; ++i)
          use(number * page_bytes + i * 4, touched[i], kind);
      }
  return list;
}

} // namespace sluice::emulator
