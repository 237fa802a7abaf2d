//===- lds_shadow.cpp - who touched which byte of LDS, and when -----------------------------------------===//
#include "emulator/check/lds_shadow.h"

#include <algorithm>
#include <bit>

namespace sluice::emulator {

void LdsShadow::reset(uint32_t bytes) {
  dwords.assign((bytes + 3) / 4, Cell{});
  bytes_of_split.clear();
  epoch = 1;
}

void LdsShadow::next_epoch() {
  if (++epoch != 0) return;
  // After 65535 barriers numbers come round again: no cell may still carry an old one.
  for (std::vector<Cell> *cells : {&dwords, &bytes_of_split})
    for (Cell &cell : *cells)
      cell.write_epoch = cell.read_epoch = 0;
  epoch = 1;
}

LdsShadow::Cell *LdsShadow::split_dword(uint32_t dword) {
  if (bytes_of_split.empty()) bytes_of_split.resize(dwords.size() * 4);
  Cell &whole = dwords[dword];
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

template <class Visit> void LdsShadow::visit(uint32_t address, uint32_t bytes, Visit &&on_cell) {
  const uint32_t end = address + bytes;
  while (address < end) {
    const uint32_t dword = address / 4;
    const uint32_t part_end = std::min(end, dword * 4 + 4);
    if (address % 4 == 0 && part_end - address == 4 && (dwords[dword].state & split) == 0) [[likely]] {
      on_cell(dwords[dword]);
    } else {
      Cell *parts = split_dword(dword);
      for (uint32_t at = address; at < part_end; ++at)
        on_cell(parts[at % 4]);
    }
    address = part_end;
  }
}

LdsConflict LdsShadow::check_read(const Cell &cell, uint32_t wave, LdsOther &other) const {
  if ((cell.state & copying) != 0) {
    other = {cell.write_op, cell.writer};
    return LdsConflict::after_copy;
  }
  if (cell.write_epoch == epoch && cell.writer != wave) {
    other = {cell.write_op, cell.writer};
    return LdsConflict::after_write;
  }
  if ((cell.state & initialised) == initialised) return LdsConflict::none;
  // Somebody has put there what itself was never written.
  if (cell.write_epoch != 0) other = {cell.write_op, cell.writer};
  return LdsConflict::uninitialised;
}

LdsConflict LdsShadow::check_write(const Cell &cell, uint32_t wave, bool is_atomic, LdsOther &other) const {
  if ((cell.state & copying) != 0) {
    other = {cell.write_op, cell.writer};
    return LdsConflict::after_copy;
  }
  if (cell.write_epoch == epoch && cell.writer != wave && !(is_atomic && (cell.state & atomic_write) != 0)) {
    other = {cell.write_op, cell.writer};
    return LdsConflict::after_write;
  }
  const uint32_t others = cell.readers & ~(1u << wave);
  if (cell.read_epoch == epoch && others != 0) {
    other = {cell.read_op, uint32_t(std::countr_zero(others))};
    return LdsConflict::after_read;
  }
  return LdsConflict::none;
}

LdsConflict LdsShadow::read(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, LdsOther &other) {
  LdsConflict found = LdsConflict::none;
  visit(address, bytes, [&](Cell &cell) {
    LdsOther candidate{};
    const LdsConflict conflict = check_read(cell, wave, candidate);
    if (found == LdsConflict::none && conflict != LdsConflict::none) {
      found = conflict;
      other = candidate;
    }
    if (cell.read_epoch != epoch) {
      cell.read_epoch = epoch;
      cell.readers = 0;
    }
    cell.readers |= uint16_t(1u << wave);
    cell.read_op = op;
  });
  return found;
}

LdsConflict LdsShadow::store(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, uint8_t flags,
                             LdsOther &other) {
  LdsConflict found = LdsConflict::none;
  visit(address, bytes, [&](Cell &cell) {
    LdsOther candidate{};
    const LdsConflict conflict = check_write(cell, wave, (flags & atomic_write) != 0, candidate);
    if (found == LdsConflict::none && conflict != LdsConflict::none) {
      found = conflict;
      other = candidate;
    }
    if ((flags & atomic_write) != 0 && found == LdsConflict::none &&
        (cell.state & initialised) != initialised)
      found = LdsConflict::uninitialised;
    cell.write_epoch = (flags & copying) != 0 ? cell.write_epoch : epoch;
    cell.writer = uint8_t(wave);
    cell.write_op = op;
    cell.state = uint8_t((cell.state & (split | initialised)) | flags);
  });
  return found;
}

LdsConflict LdsShadow::write(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, LdsOther &other) {
  return store(address, bytes, wave, op, initialised, other);
}

LdsConflict LdsShadow::atomic(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, LdsOther &other) {
  return store(address, bytes, wave, op, initialised | atomic_write, other);
}

LdsConflict LdsShadow::begin_copy(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op,
                                  LdsOther &other) {
  return store(address, bytes, wave, op, copying, other);
}

void LdsShadow::end_copy(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op, bool defined) {
  visit(address, bytes, [&](Cell &cell) {
    cell.write_epoch = epoch;
    cell.writer = uint8_t(wave);
    cell.write_op = op;
    cell.state = uint8_t((cell.state & split) | (defined ? initialised : 0));
  });
}

void LdsShadow::carry_read(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op) {
  visit(address, bytes, [&](Cell &cell) {
    if (cell.read_epoch != epoch) {
      cell.read_epoch = epoch;
      cell.readers = 0;
    }
    cell.readers |= uint16_t(1u << wave);
    cell.read_op = op;
  });
}

void LdsShadow::carry_write(uint32_t address, uint32_t bytes, uint32_t wave, uint32_t op) {
  visit(address, bytes, [&](Cell &cell) {
    cell.write_epoch = epoch;
    cell.writer = uint8_t(wave);
    cell.write_op = op;
  });
}

} // namespace sluice::emulator
