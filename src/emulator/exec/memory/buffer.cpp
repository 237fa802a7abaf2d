//===- buffer.cpp - buffer instructions that do not convert ---------------------------------------------===//
//
// A swizzled buffer stores at most one element contiguously: a longer access is made in parts.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/exec/memory/buffer_address.h"

namespace sluice::emulator {

namespace {

/// For each part of a load or store; usually there is one.
template <class Call>
void for_each_part(const BufferResource &r, uint32_t bytes, Access access, Call &&call) {
  const uint32_t longest = r.swizzle ? std::max(r.element_bytes, 4u) : bytes;
  for (uint32_t first = 0; first < bytes; first += longest)
    call(BufferPart{.first = first,
                    .bytes = std::min(longest, bytes - first),
                    .whole = false,
                    .access = access,
                    .stored = {}});
}

template <bool strict> Step run_load(Wave &w, const Op &op) {
  const MemoryControl &m = op.memory;
  const BufferResource r(resource_words(w, op), false);
  Places places;
  AsyncOperation *operation = nullptr;
  uint32_t *rows = nullptr;
  if (!r.swizzle) {
    place_buffer<strict>(w, op, r, {0, m.bytes, false, Access::load, {}}, places);
    rows = begin_load<strict>(w, op, places, operation);
    read_places(rows, places, m.bytes, m.sign_extend, m.sc1);
  } else {
    // The first part must not overwrite the address that the second one still needs.
    uint32_t *loaded = w.temporary(0);
    for_each_part(r, m.bytes, Access::load, [&](const BufferPart &part) {
      place_buffer<strict>(w, op, r, part, places);
      read_places(loaded + part.first / 4 * wave_lanes, places, part.bytes, m.sign_extend, m.sc1);
    });
    if constexpr (strict) w.checks->spread_undefined(m.dwords);
    rows = begin_load<strict>(w, op, places, operation);
    copy_lanes(rows, loaded, m.dwords, places.lanes);
  }
  if (m.half != HalfSelect::none) place_half(rows, places.lanes, m.half);
  return end_load<strict>(w, operation);
}

template <bool strict> Step run_store(Wave &w, const Op &op) {
  const MemoryControl &m = op.memory;
  const BufferResource r(resource_words(w, op), false);
  const uint32_t *rows = w.row(op.src[1]);
  Places places;
  for_each_part(r, m.bytes, Access::store, [&](BufferPart part) {
    part.stored = {rows + part.first / 4 * wave_lanes, stored_shift(m)};
    place_buffer<strict>(w, op, r, part, places);
    write_places(part.stored.rows, places, part.bytes, part.stored.shift, m.sc1);
  });
  return count_store<strict>(w, op, places);
}

template <bool strict> Step run_atomic(Wave &w, const Op &op) {
  const BufferResource r(resource_words(w, op), false);
  Places places;
  place_buffer<strict>(w, op, r, {0, op.memory.bytes, true, Access::atomic, {}}, places);
  return run_atomic_at<strict>(w, op, places);
}

template <bool strict> Step run_copy(Wave &w, const Op &op) {
  const MemoryControl &m = op.memory;
  const BufferResource r(resource_words(w, op), false);
  uint32_t *values = w.temporary(0);
  Places places;
  place_buffer<strict>(w, op, r, {0, m.bytes, false, Access::load, {}}, places);
  read_places(values, places, m.bytes, m.sign_extend, m.sc1);
  return copy_to_lds<strict>(w, op, places.lanes, values);
}

constexpr VectorRoutines routines = {.load = {run_load<false>, run_load<true>},
                                     .store = {run_store<false>, run_store<true>},
                                     .copy = {run_copy<false>, run_copy<true>},
                                     .atomic = {run_atomic<false>, run_atomic<true>}};

Step run_nothing(Wave &, const Op &) {
  return Step::next;
}

// Memory is coherent here; the checks track what the hardware's caches would do.
Step run_write_back(Wave &w, const Op &op) {
  w.checks->write_back(w, op);
  return Step::next;
}
Step run_invalidate(Wave &w, const Op &op) {
  w.checks->invalidate(op);
  return Step::next;
}

} // namespace

MemoryRoutines buffer_routines(const InstructionFacts &facts, bool to_lds) {
  if (facts.role == Role::invalidate) return {run_nothing, run_invalidate};
  if (facts.role == Role::write_back) return {run_nothing, run_write_back};
  if (facts.data.components != 0) return formatted_routines(facts, to_lds);
  return vector_routines(facts, routines, to_lds);
}

} // namespace sluice::emulator
