//===- formatted_buffer.cpp - buffer instructions that convert ------------------------------------------===//
//
// MTBUF has its format in the instruction. MUBUF takes it from the resource, together with the order of
// components. An element is in range as a whole or not at all.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/exec/memory/buffer_address.h"
#include "emulator/exec/memory/buffer_format.h"

namespace sluice::emulator {

namespace {

enum : uint8_t { select_one = 1, select_first = 4 };

/// The format of an access, and which component of the element each register takes.
struct Conversion {
  BufferFormat format;
  NumberFormat number;
  const uint8_t *select;

  Conversion(const MemoryControl &m, const BufferResource &r) {
    static constexpr uint8_t in_order[4] = {4, 5, 6, 7};
    const bool from_instruction = m.format != 0;
    format = buffer_format(from_instruction ? m.format & 15 : r.data_format);
    number = NumberFormat(from_instruction ? m.format >> 4 : r.number_format);
    select = from_instruction ? in_order : r.select;
  }

  /// Components are packed into dwords; none crosses a dword boundary.
  uint32_t row_of(uint32_t component) const { return first_bit(component) / 32; }
  uint32_t shift_of(uint32_t component) const { return first_bit(component) % 32; }

private:
  uint32_t first_bit(uint32_t component) const {
    uint32_t bit = 0;
    for (uint32_t i = 0; i < component; ++i)
      bit += format.bits[i];
    return bit;
  }
};

Step stop(Wave &w) {
  w.fault = Fault::unknown_instruction;
  return Step::stop;
}

bool refused(const MemoryControl &m, const BufferResource &r, bool store) {
  // The decoder has checked the formats that instructions name.
  return m.format == 0 && !r.unbound &&
         !buffer_format_refusal(r.data_format, NumberFormat(r.number_format), m.components, store).empty();
}

/// Widens a register's component in every lane, from the rows of an element.
void widen_row(uint32_t *row, const uint32_t *element, const Conversion &c, uint32_t component) {
  const uint32_t select = c.select[component];
  const uint32_t source = select - select_first;
  if (select < select_first || source >= c.format.components) {
    const uint32_t one = is_integer(c.number) ? 1 : 0x3f800000;
    std::fill_n(row, wave_lanes, select == select_one ? one : 0);
    return;
  }
  const uint32_t width = c.format.bits[source];
  const uint32_t mask = uint32_t((uint64_t(1) << width) - 1);
  for (uint32_t lane = 0; lane < wave_lanes; ++lane)
    row[lane] = widen_component(element[c.row_of(source) * wave_lanes + lane] >> c.shift_of(source) & mask,
                                width, c.number);
}

/// Builds the element's rows from the registers' components.
void narrow_rows(uint32_t *element, const uint32_t *values, const Conversion &c) {
  std::fill_n(element, 4 * wave_lanes, 0u);
  for (uint32_t target = 0; target < c.format.components; ++target)
    for (uint32_t source = 0; source < 4; ++source) {
      if (c.select[source] != select_first + target) continue;
      for (uint32_t lane = 0; lane < wave_lanes; ++lane)
        element[c.row_of(target) * wave_lanes + lane] |=
            narrow_component(values[source * wave_lanes + lane], c.format.bits[target], c.number)
            << c.shift_of(target);
      break;
    }
}

/// Loads an element per lane and widens it to `components` rows at `values`. False if the format does not
/// exist.
template <bool strict>
bool load_values(Wave &w, const Op &op, uint32_t components, uint32_t *values, uint64_t &lanes) {
  const BufferResource r(resource_words(w, op), true);
  if (refused(op.memory, r, false)) return false;
  const Conversion c(op.memory, r);
  alignas(64) uint32_t element[4 * wave_lanes] = {};
  Places places;
  place_buffer<strict>(w, op, r, {0, c.format.bytes, true, Access::load, {}}, places);
  if (!r.unbound) read_places(element, places, c.format.bytes, false, op.memory.sc1);
  for (uint32_t i = 0; i < components; ++i)
    widen_row(values + i * wave_lanes, element, c, i);
  if (r.unbound) std::fill_n(values, components * wave_lanes, 0u);
  if (op.memory.packed_16)
    for (uint32_t i = 0; i < components * wave_lanes; ++i)
      values[i] = to_16_bits(values[i], c.number);
  if constexpr (strict) w.checks->spread_undefined(std::max<uint32_t>(op.memory.dwords, 1));
  lanes = places.lanes;
  return true;
}

template <bool strict> Step run_load(Wave &w, const Op &op) {
  const MemoryControl &m = op.memory;
  alignas(64) uint32_t values[4 * wave_lanes] = {};
  uint64_t lanes = 0;
  if (!load_values<strict>(w, op, m.components, values, lanes)) return stop(w);
  if (m.packed_16)
    for (uint32_t r = 0; r < m.dwords; ++r)
      for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
        const uint32_t *pair = values + 2 * r * wave_lanes + lane;
        values[r * wave_lanes + lane] = pair[0] | pair[wave_lanes] << 16;
      }
  AsyncOperation *operation = nullptr;
  uint32_t *rows = begin_load<strict>(w, op, Places{}, operation);
  copy_lanes(rows, values, m.dwords, lanes);
  if (m.half == HalfSelect::high) place_half(rows, lanes, m.half);
  return end_load<strict>(w, operation);
}

template <bool strict> Step run_store(Wave &w, const Op &op) {
  const MemoryControl &m = op.memory;
  const BufferResource r(resource_words(w, op), true);
  if (refused(m, r, true)) return stop(w);
  Places places;
  if (r.unbound) {
    leave_range<strict>(w, op, r, w.exec(), nullptr, Access::store);
    return count_store<strict>(w, op, places);
  }
  const Conversion c(m, r);
  const uint32_t *rows = w.row(op.src[1]);
  alignas(64) uint32_t values[4 * wave_lanes] = {};
  for (uint32_t i = 0; i < m.components; ++i)
    for (uint32_t lane = 0; lane < wave_lanes; ++lane) {
      const uint32_t half = rows[i / 2 * wave_lanes + lane] >> (m.half == HalfSelect::high ? 16 : i % 2 * 16);
      values[i * wave_lanes + lane] =
          m.packed_16 ? from_16_bits(uint16_t(half), c.number) : rows[i * wave_lanes + lane];
    }
  alignas(64) uint32_t element[4 * wave_lanes];
  narrow_rows(element, values, c);
  place_buffer<strict>(w, op, r, {0, c.format.bytes, true, Access::store, {element, 0}}, places);
  write_places(element, places, c.format.bytes, 0, m.sc1);
  return count_store<strict>(w, op, places);
}

template <bool strict> Step run_copy(Wave &w, const Op &op) {
  uint32_t *values = w.temporary(0);
  uint64_t lanes = 0;
  if (!load_values<strict>(w, op, 1, values, lanes)) return stop(w);
  return copy_to_lds<strict>(w, op, lanes, values);
}

} // namespace

MemoryRoutines formatted_routines(const InstructionFacts &facts, bool to_lds) {
  return vector_routines(facts,
                         {.load = {run_load<false>, run_load<true>},
                          .store = {run_store<false>, run_store<true>},
                          .copy = {run_copy<false>, run_copy<true>}},
                         to_lds);
}

} // namespace sluice::emulator
