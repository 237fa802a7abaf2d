//===- vector_memory.cpp - flat, global, scratch and buffer instructions --------------------------------===//
//
// An instruction first finds where each lane's data is (a host pointer, LDS, scratch, or nowhere), then
// loads, stores, combines or copies to LDS; the second step does not know which kind of address it was.
//
//===----------------------------------------------------------------------------------------------------===//
#include <atomic>
#include <bit>
#include <string>

#include "emulator/check/wave_checks.h"
#include "emulator/exec/memory/access.h"
#include "emulator/exec/memory/memory_rows.h"

namespace sluice::emulator {

namespace {

struct Places {
  uint8_t *pointer[wave_lanes];
  uint64_t lanes;   // that take part
  uint64_t allowed; // of those: may be accessed; the others read 0 and store nothing
};

uint32_t lowest(uint64_t lanes) {
  return uint32_t(std::countr_zero(lanes));
}

//===--- Addresses --------------------------------------------------------------------------------------===//

/// Scratch is private to a lane: `offset` counts in the lane's own memory.
uint8_t *scratch_pointer(Wave &w, uint32_t lane, uint64_t offset, uint32_t bytes) {
  return offset + bytes <= w.scratch_bytes ? w.scratch + uint64_t(lane) * w.scratch_bytes + offset : nullptr;
}

/// Sorts flat addresses: LDS and scratch have windows of their own, everything else is memory.
template <bool strict>
void place_flat(Wave &w, const Op &op, const uint64_t *addresses, bool write, bool windows, Places &places) {
  const uint32_t bytes = op.memory.bytes;
  uint64_t global = places.lanes;
  places.allowed = 0;
  if (windows) {
    alignas(64) uint32_t lds_at[wave_lanes] = {};
    uint64_t lds_lanes = 0;
    for (uint64_t lanes = places.lanes; lanes != 0; lanes &= lanes - 1) {
      const uint32_t lane = lowest(lanes);
      const uint64_t address = addresses[lane];
      const bool shared = address - shared_aperture < aperture_bytes;
      if (!shared && address - private_aperture >= aperture_bytes) continue;
      global &= ~(uint64_t(1) << lane);
      if (!shared) {
        places.pointer[lane] = scratch_pointer(w, lane, address - private_aperture, bytes);
        if (places.pointer[lane])
          places.allowed |= uint64_t(1) << lane;
        else if constexpr (strict)
          w.checks->report_scratch_bounds(w, op, lane, address - private_aperture, bytes);
        continue;
      }
      const uint64_t offset = address - shared_aperture;
      if (offset + bytes <= w.workgroup->lds_bytes) {
        places.pointer[lane] = w.workgroup->lds + offset;
        lds_at[lane] = uint32_t(offset);
        lds_lanes |= uint64_t(1) << lane;
      } else if constexpr (strict) {
        w.checks->report_lds_bounds(w, op, lane, offset, bytes);
      }
    }
    places.allowed |= lds_lanes;
    if constexpr (strict)
      w.checks->enter_lds(w, op,
                          op.atomic ? WaveChecks::LdsAccess::atomic
                          : write   ? WaveChecks::LdsAccess::write
                                    : WaveChecks::LdsAccess::read,
                          lds_at, lds_lanes, bytes);
  }
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    if ((global >> lane & 1) != 0) places.pointer[lane] = reinterpret_cast<uint8_t *>(addresses[lane]);
  if constexpr (strict) global = w.checks->check_global(w, op, addresses, global, bytes, write);
  places.allowed |= global;
}

template <bool strict> void place_flat_encoding(Wave &w, const Op &op, bool write, Places &places) {
  const MemoryControl &m = op.memory;
  places.lanes = w.exec();
  const uint64_t offset = uint64_t(int64_t(m.offset));
  if (m.mode == AddressMode::scratch) {
    const uint32_t base = op.src[2] == no_operand ? 0 : w.scalar(op.src[2]);
    const uint32_t *row = op.src[0] == no_operand ? nullptr : w.row(op.src[0]);
    places.allowed = 0;
    for (uint64_t lanes = places.lanes; lanes != 0; lanes &= lanes - 1) {
      const uint32_t lane = lowest(lanes);
      const uint64_t at = uint32_t(base + (row ? row[lane] : 0) + uint32_t(offset));
      places.pointer[lane] = scratch_pointer(w, lane, at, m.bytes);
      if (places.pointer[lane])
        places.allowed |= uint64_t(1) << lane;
      else if constexpr (strict)
        w.checks->report_scratch_bounds(w, op, lane, at, m.bytes);
    }
    return;
  }
  alignas(64) uint64_t addresses[wave_lanes];
  const uint32_t *row = w.row(op.src[0]);
  if (op.src[2] != no_operand) {
    const uint64_t base = w.scalar_pair(op.src[2]) + offset;
    for (uint32_t lane = 0; lane < wave_lanes; ++lane)
      addresses[lane] = base + row[lane];
  } else {
    for (uint32_t lane = 0; lane < wave_lanes; ++lane)
      addresses[lane] = (row[lane] | uint64_t(row[wave_lanes + lane]) << 32) + offset;
  }
  place_flat<strict>(w, op, addresses, write, m.mode == AddressMode::flat, places);
}

/// The four dwords of a buffer resource.
struct Resource {
  uint64_t base;
  uint32_t stride;
  uint32_t records;
  uint32_t element_bytes;
  uint32_t index_stride;
  bool swizzle;
  bool add_lane;

  explicit Resource(const uint32_t *words)
      : base(words[0] | uint64_t(words[1] & 0xffff) << 32), stride(words[1] >> 16 & 0x3fff),
        records(words[2]), element_bytes(2u << (words[3] >> 19 & 3)),
        index_stride(8u << (words[3] >> 21 & 3)), swizzle((words[1] >> 31) != 0),
        add_lane((words[3] >> 23 & 1) != 0) {}
};

/// Out of range reads 0 and stores nothing, dword by dword: `valid_bytes` says how much of each lane's access
/// is in range.
template <bool strict>
void place_buffer(Wave &w, const Op &op, bool write, Places &places, uint8_t *valid_bytes) {
  const MemoryControl &m = op.memory;
  const Resource r(&w.s[op.src[2] - first_sgpr]);
  const uint32_t scalar_offset = w.scalar(op.mask_in);
  const uint32_t *row = op.src[0] == no_operand ? nullptr : w.row(op.src[0]);
  const uint32_t *offsets = m.offset_enable ? row + (m.index_enable ? wave_lanes : 0) : nullptr;
  const uint64_t dword_mask = m.bytes >= 4 ? ~uint64_t(3) : ~uint64_t(0);
  const uint64_t raw_end = r.records > scalar_offset ? r.records - scalar_offset : 0;
  places.lanes = w.exec();
  alignas(64) uint64_t addresses[wave_lanes];
  uint64_t in_range = 0;
  for (uint64_t lanes = places.lanes; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = lowest(lanes);
    const uint64_t index = (m.index_enable ? row[lane] : 0) + (r.add_lane ? lane : 0);
    const uint64_t offset = uint32_t(m.offset) + uint64_t(offsets ? offsets[lane] : 0);
    uint64_t place;
    uint64_t valid = m.bytes;
    if (r.swizzle) {
      place = index / r.index_stride * r.stride * r.index_stride +
              offset / r.element_bytes * r.element_bytes * r.index_stride +
              index % r.index_stride * r.element_bytes + offset % r.element_bytes;
      if (index >= r.records || offset + m.bytes > r.stride) valid = 0;
    } else {
      place = offset + index * r.stride;
      valid = place >= raw_end ? 0 : std::min<uint64_t>(valid, raw_end - place);
      if (valid < m.bytes) valid &= ~uint64_t(3);
    }
    addresses[lane] = ((r.base + scalar_offset + place) & dword_mask) & 0x0000ffffffffffff;
    valid_bytes[lane] = uint8_t(valid);
    if (valid != 0) in_range |= uint64_t(1) << lane;
    places.pointer[lane] = reinterpret_cast<uint8_t *>(addresses[lane]);
  }
  places.allowed = in_range;
  if constexpr (strict) {
    // Lanes in range as a whole, then those cut short by the end of the buffer, one by one.
    uint64_t whole = 0;
    for (uint64_t lanes = in_range; lanes != 0; lanes &= lanes - 1)
      whole |= uint64_t(valid_bytes[lowest(lanes)] == m.bytes) << lowest(lanes);
    places.allowed = w.checks->check_global(w, op, addresses, whole, m.bytes, write);
    for (uint64_t lanes = in_range & ~whole; lanes != 0; lanes &= lanes - 1)
      places.allowed |=
          w.checks->check_global(w, op, addresses, lanes & (0 - lanes), valid_bytes[lowest(lanes)], write);
  }
}

//===--- Loads and stores -------------------------------------------------------------------------------===//

template <bool strict>
uint32_t *begin_load(Wave &w, const Op &op, AsyncKind kind, AsyncOperation *&operation) {
  if constexpr (strict) {
    operation = &w.checks->new_operation(w, op, kind);
    operation->first = op.dst;
    operation->rows = op.memory.dwords;
    operation->half = op.memory.half;
    return operation->data.data();
  }
  return op.memory.half == HalfSelect::none ? w.row(op.dst) : w.temporary(0);
}

template <bool strict> Step end_load(Wave &w, const Op &op, const uint32_t *rows, AsyncOperation *operation) {
  if constexpr (strict)
    w.checks->issue(w, *operation);
  else if (op.memory.half != HalfSelect::none)
    merge_half(w.row(op.dst), rows, w.exec(), op.memory.half);
  return Step::next;
}

template <bool strict> Step count_store(Wave &w, const Op &op) {
  if constexpr (strict) {
    const bool flat = op.memory.mode == AddressMode::flat;
    w.checks->issue(w, w.checks->new_operation(w, op, flat ? AsyncKind::flat : AsyncKind::store));
  }
  return Step::next;
}

template <bool strict> Step run_flat_load(Wave &w, const Op &op) {
  Places places;
  place_flat_encoding<strict>(w, op, false, places);
  AsyncOperation *operation = nullptr;
  const bool flat = op.memory.mode == AddressMode::flat;
  uint32_t *rows = begin_load<strict>(w, op, flat ? AsyncKind::flat : AsyncKind::vector_load, operation);
  gather(rows, places.lanes, places.allowed, op.memory.bytes, op.memory.sign_extend,
         [&](uint32_t lane) { return places.pointer[lane]; });
  return end_load<strict>(w, op, rows, operation);
}

template <bool strict> Step run_flat_store(Wave &w, const Op &op) {
  Places places;
  place_flat_encoding<strict>(w, op, true, places);
  scatter(w.row(op.src[1]), places.allowed, op.memory.bytes, op.memory.half == HalfSelect::high ? 16 : 0,
          [&](uint32_t lane) { return places.pointer[lane]; });
  return count_store<strict>(w, op);
}

template <bool strict> Step run_buffer_load(Wave &w, const Op &op) {
  Places places;
  uint8_t valid[wave_lanes];
  place_buffer<strict>(w, op, false, places, valid);
  AsyncOperation *operation = nullptr;
  uint32_t *rows = begin_load<strict>(w, op, AsyncKind::vector_load, operation);
  uint64_t whole = 0;
  for (uint64_t lanes = places.allowed; lanes != 0; lanes &= lanes - 1)
    whole |= uint64_t(valid[lowest(lanes)] == op.memory.bytes) << lowest(lanes);
  gather(rows, places.lanes, whole, op.memory.bytes, op.memory.sign_extend,
         [&](uint32_t lane) { return places.pointer[lane]; });
  for (uint64_t lanes = places.allowed & ~whole; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = lowest(lanes);
    for (uint32_t r = 0; r < valid[lane] / 4u; ++r)
      std::memcpy(&rows[r * wave_lanes + lane], places.pointer[lane] + 4 * r, 4);
  }
  return end_load<strict>(w, op, rows, operation);
}

template <bool strict> Step run_buffer_store(Wave &w, const Op &op) {
  Places places;
  uint8_t valid[wave_lanes];
  place_buffer<strict>(w, op, true, places, valid);
  const uint32_t *rows = w.row(op.src[1]);
  uint64_t whole = 0;
  for (uint64_t lanes = places.allowed; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = lowest(lanes);
    if (valid[lane] == op.memory.bytes)
      whole |= uint64_t(1) << lane;
    else
      for (uint32_t r = 0; r < valid[lane] / 4u; ++r)
        std::memcpy(places.pointer[lane] + 4 * r, &rows[r * wave_lanes + lane], 4);
  }
  scatter(rows, whole, op.memory.bytes, op.memory.half == HalfSelect::high ? 16 : 0,
          [&](uint32_t lane) { return places.pointer[lane]; });
  return count_store<strict>(w, op);
}

//===--- Atomics ----------------------------------------------------------------------------------------===//

template <class T> uint64_t exchange(uint8_t *pointer, AtomicBody body, uint64_t operand, uint64_t compare) {
  std::atomic_ref<T> cell(*reinterpret_cast<T *>(pointer));
  T old = cell.load();
  while (!cell.compare_exchange_weak(old, T(body(old, T(operand), T(compare))))) {
  }
  return old;
}

/// Lanes one after another; each is atomic with respect to all other threads.
template <bool strict> Step run_atomic(Wave &w, const Op &op, Places &places) {
  const MemoryControl &m = op.memory;
  alignas(64) uint32_t old_rows[2 * wave_lanes] = {};
  const uint32_t *data = w.row(op.src[1]);
  const uint32_t width = m.bytes / 4u;
  auto operand = [&](uint32_t first_row, uint32_t lane) {
    const uint32_t *row = data + first_row * wave_lanes;
    return row[lane] | (width == 2 ? uint64_t(row[wave_lanes + lane]) << 32 : 0);
  };
  for (uint64_t lanes = places.allowed; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = lowest(lanes);
    if (reinterpret_cast<uint64_t>(places.pointer[lane]) % m.bytes != 0) {
      if constexpr (strict)
        w.checks->report_misaligned(w, op, lane, reinterpret_cast<uint64_t>(places.pointer[lane]), m.bytes);
      continue;
    }
    const uint64_t compare = m.compare ? operand(width, lane) : 0;
    const uint64_t old = width == 2
                             ? exchange<uint64_t>(places.pointer[lane], op.atomic, operand(0, lane), compare)
                             : exchange<uint32_t>(places.pointer[lane], op.atomic, operand(0, lane), compare);
    old_rows[lane] = uint32_t(old);
    old_rows[wave_lanes + lane] = uint32_t(old >> 32);
  }
  if (!m.return_old) return count_store<strict>(w, op);
  AsyncOperation *operation = nullptr;
  const bool flat = m.mode == AddressMode::flat;
  uint32_t *rows = begin_load<strict>(w, op, flat ? AsyncKind::flat : AsyncKind::vector_load, operation);
  for (uint64_t lanes = places.lanes; lanes != 0; lanes &= lanes - 1)
    for (uint32_t r = 0; r < width; ++r)
      rows[r * wave_lanes + lowest(lanes)] = old_rows[r * wave_lanes + lowest(lanes)];
  return end_load<strict>(w, op, rows, operation);
}

template <bool strict> Step run_flat_atomic(Wave &w, const Op &op) {
  Places places;
  place_flat_encoding<strict>(w, op, true, places);
  return run_atomic<strict>(w, op, places);
}

template <bool strict> Step run_buffer_atomic(Wave &w, const Op &op) {
  Places places;
  uint8_t valid[wave_lanes];
  place_buffer<strict>(w, op, true, places, valid);
  for (uint64_t lanes = places.allowed; lanes != 0; lanes &= lanes - 1)
    if (valid[lowest(lanes)] != op.memory.bytes) places.allowed &= ~(uint64_t(1) << lowest(lanes));
  return run_atomic<strict>(w, op, places);
}

//===--- Copies into LDS --------------------------------------------------------------------------------===//

/// Lane i writes the dword at M0 + offset + 4 * i; the instruction's offset counts on both sides. Inactive
/// lanes write nothing, lanes out of the buffer's range write 0.
template <bool strict> Step copy_to_lds(Wave &w, const Op &op, const Places &places) {
  const MemoryControl &m = op.memory;
  uint32_t *values = w.temporary(0);
  gather(values, places.lanes, places.allowed, m.bytes, m.sign_extend,
         [&](uint32_t lane) { return places.pointer[lane]; });
  const uint32_t base = (w.s[sgpr_m0] & 0xffff) + uint32_t(m.offset);
  alignas(64) uint32_t at[wave_lanes];
  uint64_t inside = 0;
  for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
    at[lane] = (base & ~3u) + 4 * lane;
    inside |= uint64_t(uint64_t(at[lane]) + 4 <= w.workgroup->lds_bytes) << lane;
  }
  if constexpr (strict) {
    if (base % 4 != 0) w.checks->report_misaligned(w, op, 0, base, 4);
    const uint64_t outside = places.lanes & ~inside;
    if (outside != 0) w.checks->report_lds_bounds(w, op, lowest(outside), at[lowest(outside)], 4);
  }
  inside &= places.lanes;
  if constexpr (strict) {
    w.checks->begin_copy(w, op, at, inside);
    AsyncOperation &operation = w.checks->new_operation(w, op, AsyncKind::lds_copy);
    operation.in_bounds = inside;
    std::memcpy(operation.lds_address[0].data(), at, sizeof at);
    std::memcpy(operation.data.data(), values, wave_lanes * 4);
    w.checks->issue(w, operation);
  } else {
    for (uint64_t lanes = inside; lanes != 0; lanes &= lanes - 1)
      std::memcpy(w.workgroup->lds + at[lowest(lanes)], &values[lowest(lanes)], 4);
  }
  return Step::next;
}

template <bool strict> Step run_flat_copy(Wave &w, const Op &op) {
  Places places;
  place_flat_encoding<strict>(w, op, false, places);
  return copy_to_lds<strict>(w, op, places);
}

template <bool strict> Step run_buffer_copy(Wave &w, const Op &op) {
  Places places;
  uint8_t valid[wave_lanes];
  place_buffer<strict>(w, op, false, places, valid);
  return copy_to_lds<strict>(w, op, places);
}

Step run_nothing(Wave &, const Op &) {
  return Step::next;
}

// Memory is coherent here; what caches would have done to it, the checks know.
Step run_write_back(Wave &w, const Op &op) {
  w.checks->write_back(w, op);
  return Step::next;
}
Step run_invalidate(Wave &w, const Op &op) {
  w.checks->invalidate(op);
  return Step::next;
}

//===--- The table --------------------------------------------------------------------------------------===//

struct Width {
  std::string_view name;
  uint8_t bytes;
  bool sign_extend = false;
  HalfSelect half = HalfSelect::none;
};
constexpr Width load_widths[] = {
    {"ubyte", 1},
    {"sbyte", 1, true},
    {"ushort", 2},
    {"sshort", 2, true},
    {"dword", 4},
    {"dwordx2", 8},
    {"dwordx3", 12},
    {"dwordx4", 16},
    {"ubyte_d16", 1, false, HalfSelect::low},
    {"ubyte_d16_hi", 1, false, HalfSelect::high},
    {"sbyte_d16", 1, true, HalfSelect::low},
    {"sbyte_d16_hi", 1, true, HalfSelect::high},
    {"short_d16", 2, false, HalfSelect::low},
    {"short_d16_hi", 2, false, HalfSelect::high},
};
constexpr Width store_widths[] = {
    {"byte", 1},     {"byte_d16_hi", 1, false, HalfSelect::high},
    {"short", 2},    {"short_d16_hi", 2, false, HalfSelect::high},
    {"dword", 4},    {"dwordx2", 8},
    {"dwordx3", 12}, {"dwordx4", 16},
};

const Width *width_of(std::span<const Width> widths, std::string_view name) {
  for (const Width &width : widths)
    if (width.name == name) return &width;
  return nullptr;
}

struct Handlers {
  Handler load[2], store[2], atomic[2], copy[2]; // fast, strict
};
constexpr Handlers flat_handlers = {{run_flat_load<false>, run_flat_load<true>},
                                    {run_flat_store<false>, run_flat_store<true>},
                                    {run_flat_atomic<false>, run_flat_atomic<true>},
                                    {run_flat_copy<false>, run_flat_copy<true>}};
constexpr Handlers buffer_handlers = {{run_buffer_load<false>, run_buffer_load<true>},
                                      {run_buffer_store<false>, run_buffer_store<true>},
                                      {run_buffer_atomic<false>, run_buffer_atomic<true>},
                                      {run_buffer_copy<false>, run_buffer_copy<true>}};

MemoryRow make_row(MemoryKind kind, const Handler (&handlers)[2], const Width &width) {
  MemoryRow row;
  row.kind = kind;
  row.fast = handlers[0];
  row.strict = handlers[1];
  row.control.bytes = width.bytes;
  row.control.dwords = kind == MemoryKind::lds_copy ? 0 : uint8_t((width.bytes + 3) / 4);
  row.control.parts = 1;
  row.control.sign_extend = width.sign_extend;
  row.control.half = width.half;
  return row;
}

/// `name` is what follows "global_", "buffer_" and so on.
std::optional<MemoryRow> vector_row(std::string_view name, const Handlers &handlers, bool to_lds) {
  auto after = [&](std::string_view prefix) { return name.substr(prefix.size()); };
  if (name.starts_with("load_lds_")) {
    const Width *width = width_of(load_widths, after("load_lds_"));
    return width ? std::optional(make_row(MemoryKind::lds_copy, handlers.copy, *width)) : std::nullopt;
  }
  if (name.starts_with("load_")) {
    const Width *width = width_of(load_widths, after("load_"));
    if (!width) return std::nullopt;
    return to_lds ? make_row(MemoryKind::lds_copy, handlers.copy, *width)
                  : make_row(MemoryKind::load, handlers.load, *width);
  }
  if (name.starts_with("store_")) {
    const Width *width = width_of(store_widths, after("store_"));
    return width ? std::optional(make_row(MemoryKind::store, handlers.store, *width)) : std::nullopt;
  }
  if (name.starts_with("atomic_")) {
    const std::optional<AtomicOperation> operation = memory_atomic(after("atomic_"));
    if (!operation) return std::nullopt;
    MemoryRow row = make_row(MemoryKind::atomic, handlers.atomic, {"", operation->bytes});
    row.atomic = operation->body;
    row.control.compare = operation->compare;
    return row;
  }
  return std::nullopt;
}

} // namespace

std::optional<MemoryRow> flat_row(std::string_view mnemonic) {
  constexpr std::pair<std::string_view, AddressMode> modes[] = {
      {"flat_", AddressMode::flat}, {"global_", AddressMode::global}, {"scratch_", AddressMode::scratch}};
  for (const auto &[prefix, mode] : modes) {
    if (!mnemonic.starts_with(prefix)) continue;
    std::optional<MemoryRow> row = vector_row(mnemonic.substr(prefix.size()), flat_handlers, false);
    if (row) row->control.mode = mode;
    return row;
  }
  return std::nullopt;
}

std::optional<MemoryRow> buffer_row(std::string_view mnemonic, bool to_lds) {
  if (mnemonic == "buffer_inv" || mnemonic == "buffer_wbl2") {
    MemoryRow row;
    row.fast = run_nothing;
    row.strict = mnemonic == "buffer_inv" ? run_invalidate : run_write_back;
    return row;
  }
  if (!mnemonic.starts_with("buffer_")) return std::nullopt;
  std::optional<MemoryRow> row = vector_row(mnemonic.substr(7), buffer_handlers, to_lds);
  if (row) row->control.mode = AddressMode::global;
  return row;
}

} // namespace sluice::emulator
