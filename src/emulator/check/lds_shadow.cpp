//===- lds_shadow.cpp - which wave touched which byte of LDS, and when ----------------------------------===//
#include "emulator/check/lds_shadow.h"

#include <algorithm>
#include <bit>

#include "emulator/isa/op.h"

namespace sluice::emulator {

namespace {

/// Whether the first says less about a program than the second.
bool is_milder(LdsConflict one, LdsConflict other) {
  auto severity = [](LdsConflict conflict) {
    return conflict == LdsConflict::same_store                  ? 0
           : conflict == LdsConflict::equal_store               ? 1
           : conflict == LdsConflict::after_read_before_barrier ? 2
                                                                : 3;
  };
  return severity(one) < severity(other);
}

} // namespace

bool LdsShadow::Values::same(uint32_t offset, uint32_t bytes) const {
  for (uint32_t at = offset; at < offset + bytes; ++at)
    if (held[at] != uint8_t(rows[at / 4 * wave_lanes] >> shift >> 8 * (at % 4))) return false;
  return true;
}

uint32_t LdsShadow::Cell::writer_but(uint32_t wave) const {
  const uint32_t others = writers & ~(1u << wave);
  return uint32_t(std::countr_zero(others != 0 ? others : writers));
}

void LdsShadow::reset(uint32_t bytes) {
  dword_count = (bytes + 3) / 4;
  dwords.clear();
  bytes_of_split.clear();
  written.reset(dword_count);
  special.reset(dword_count);
  since_barrier.reset(bytes);
  epoch = 1;
}

void LdsShadow::next_epoch() {
  since_barrier.next();
  if (++epoch != 0) return;
  // After 65535 barriers the numbers start again: no cell may still have an old one.
  for (std::vector<Cell> *cells : {&dwords, &bytes_of_split})
    for (Cell &cell : *cells)
      cell.write_epoch = cell.read_epoch = 0;
  epoch = 1;
}

LdsShadow::Cell &LdsShadow::cell_of(uint32_t dword) {
  if (dwords.empty()) dwords.resize(dword_count);
  Cell &cell = dwords[dword];
  // A store that was kept until the barrier has left no other trace.
  if (written.any(dword_range(dword))) cell.state |= initialised;
  return cell;
}

void LdsShadow::note_state(uint32_t dword) {
  const LdsRange range = dword_range(dword);
  const uint8_t state = dwords[dword].state;
  const bool is_special = (state & (copying | split)) != 0;
  if (is_special)
    special.add(range);
  else
    special.remove(range);
  if (!is_special && (state & initialised) == initialised)
    written.add(range);
  else
    written.remove(range);
}

LdsShadow::Cell *LdsShadow::split_dword(uint32_t dword) {
  if (bytes_of_split.empty()) bytes_of_split.resize(size_t(dword_count) * 4);
  Cell &whole = cell_of(dword);
  Cell *parts = &bytes_of_split[4 * dword];
  if ((whole.state & split) == 0) {
    for (uint32_t i = 0; i < 4; ++i) {
      parts[i] = whole;
      const bool written = (whole.state >> i & 1) != 0;
      parts[i].state = uint8_t((whole.state & ~initialised) | (written ? initialised : 0));
    }
    whole.state |= split;
  }
  return parts;
}

/// Visits each cell, with where in the access it starts and how many of its bytes it has.
template <class Visit> void LdsShadow::visit(uint32_t address, uint32_t bytes, Visit &&on_cell) {
  settle(range_at(address, bytes));
  const uint32_t start = address;
  const uint32_t end = address + bytes;
  while (address < end) {
    const uint32_t dword = address / 4;
    const uint32_t part_end = std::min(end, dword * 4 + 4);
    Cell &whole = cell_of(dword);
    if (address % 4 == 0 && part_end - address == 4 && (whole.state & split) == 0) [[likely]] {
      on_cell(whole, address - start, 4u);
    } else {
      Cell *parts = split_dword(dword);
      for (uint32_t at = address; at < part_end; ++at)
        on_cell(parts[at % 4], at - start, 1u);
    }
    note_state(dword);
    address = part_end;
  }
}

LdsConflict LdsShadow::check_read(const Cell &cell, uint32_t wave, LdsOther &other) const {
  if ((cell.state & copying) != 0) {
    other = {cell.write_op, cell.writer_but(wave)};
    return LdsConflict::after_copy;
  }
  // A wave that has stored the same value as others reads its own store.
  if (cell.write_epoch == epoch && (cell.writers >> wave & 1) == 0) {
    other = {cell.write_op, cell.writer_but(wave)};
    return LdsConflict::after_write;
  }
  if ((cell.state & initialised) == initialised) return LdsConflict::none;
  // The wave that stored here had a value that was never written.
  if (cell.write_epoch != 0) other = {cell.write_op, cell.writer_but(wave)};
  return LdsConflict::uninitialised;
}

LdsConflict LdsShadow::check_write(const Cell &cell, uint32_t wave, bool is_atomic, LdsOther &other) const {
  if ((cell.state & copying) != 0) {
    other = {cell.write_op, cell.writer_but(wave)};
    return LdsConflict::after_copy;
  }
  const auto mine = uint16_t(1u << wave);
  if (cell.write_epoch == epoch && (cell.writers & ~mine) != 0 &&
      !(is_atomic && (cell.state & atomic_write) != 0)) {
    other = {cell.write_op, cell.writer_but(wave)};
    return LdsConflict::after_write;
  }
  const uint32_t others = cell.read_epoch == epoch ? cell.readers & ~mine : 0;
  if (others == 0) return LdsConflict::none;
  const uint32_t unordered = others & ~cell.carried;
  other = {cell.read_op, uint32_t(std::countr_zero(unordered != 0 ? unordered : others))};
  return unordered != 0 ? LdsConflict::after_read : LdsConflict::after_read_before_barrier;
}

LdsConflict LdsShadow::read(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, LdsOther &other) {
  LdsConflict found = LdsConflict::none;
  since_barrier.note(LdsUse::read, range_at(address, bytes), wave);
  visit(address, bytes, [&](Cell &cell, uint32_t, uint32_t) {
    LdsOther candidate{};
    const LdsConflict conflict = check_read(cell, wave, candidate);
    if (found == LdsConflict::none && conflict != LdsConflict::none) {
      found = conflict;
      other = candidate;
    }
    cell.enter_read(epoch, wave, op);
  });
  return found;
}

LdsConflict LdsShadow::store(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, uint8_t flags,
                             bool in_order, Values values, LdsOther &other) {
  LdsConflict found = LdsConflict::none;
  since_barrier.note((flags & atomic_write) != 0 ? LdsUse::atomic : LdsUse::store, range_at(address, bytes),
                     wave);
  visit(address, bytes, [&](Cell &cell, uint32_t offset, uint32_t count) {
    LdsOther candidate{};
    const auto mine = uint16_t(1u << wave);
    LdsConflict conflict = check_write(cell, wave, (flags & atomic_write) != 0, candidate);
    // An access that is not in LDS's own queue may overtake a read that is.
    if (!in_order && conflict == LdsConflict::after_read_before_barrier) conflict = LdsConflict::after_read;
    const bool overtakes = !in_order && cell.read_epoch == epoch && (cell.carried & ~mine) != 0;
    // Comparing takes time, and only a second store of the epoch needs it.
    const bool same = cell.write_epoch == epoch && values.held != nullptr && values.same(offset, count);
    const bool again = conflict == LdsConflict::after_write && same &&
                       (cell.state & (atomic_write | older_seen)) == 0 && !overtakes;
    if (again) conflict = LdsConflict::equal_store;
    if (conflict == LdsConflict::none && values.held != nullptr && cell.write_instruction == instruction)
      conflict = LdsConflict::same_store;
    // A warning must not hide a race at another byte.
    if (conflict != LdsConflict::none && (found == LdsConflict::none || is_milder(found, conflict))) {
      found = conflict;
      other = candidate;
    }
    if ((flags & atomic_write) != 0 && found == LdsConflict::none &&
        (cell.state & initialised) != initialised)
      found = LdsConflict::uninitialised;
    const uint8_t older = older_value_seen(cell, !same && cell.write_instruction != instruction);
    cell.writers = again ? uint16_t(cell.writers | mine) : mine;
    cell.write_epoch = (flags & copying) != 0 ? cell.write_epoch : epoch;
    cell.write_op = op;
    cell.write_instruction = instruction;
    cell.state = uint8_t((cell.state & (split | initialised)) | flags | older);
  });
  return found;
}

LdsConflict LdsShadow::write(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, bool in_order,
                             Values values, LdsOther &other) {
  return store(address, bytes, wave, op, initialised, in_order, values, other);
}

LdsConflict LdsShadow::atomic(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, bool in_order,
                              LdsOther &other) {
  return store(address, bytes, wave, op, initialised | atomic_write, in_order, {}, other);
}

LdsConflict LdsShadow::begin_copy(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op,
                                  LdsOther &other) {
  return store(address, bytes, wave, op, copying, false, {}, other);
}

void LdsShadow::end_copy(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, bool defined) {
  since_barrier.note(LdsUse::store, range_at(address, bytes), wave);
  visit(address, bytes, [&](Cell &cell, uint32_t, uint32_t) {
    const uint8_t older = older_value_seen(cell, false); // begin_copy has entered what the copy overwrites
    cell.write_epoch = epoch;
    cell.writers = uint16_t(1u << wave);
    cell.write_op = op;
    cell.state = uint8_t((cell.state & split) | (defined ? initialised : 0) | older);
  });
}

void LdsShadow::carry_read(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, bool in_order) {
  since_barrier.note(LdsUse::read, range_at(address, bytes), wave);
  visit(address, bytes, [&](Cell &cell, uint32_t, uint32_t) {
    cell.enter_read(epoch, wave, op);
    if (in_order) cell.carried |= uint16_t(1u << wave);
  });
}

void LdsShadow::carry_write(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op) {
  since_barrier.note(LdsUse::store, range_at(address, bytes), wave);
  visit(address, bytes, [&](Cell &cell, uint32_t, uint32_t) {
    const auto mine = uint16_t(1u << wave);
    // Stores of the same byte that are carried over were compared when they were made. Values seen before the
    // barrier were seen before any store of this epoch.
    cell.writers = cell.write_epoch == epoch ? uint16_t(cell.writers | mine) : mine;
    cell.state &= uint8_t(~older_seen);
    cell.write_epoch = epoch;
    cell.write_op = op;
  });
}

} // namespace sluice::emulator
