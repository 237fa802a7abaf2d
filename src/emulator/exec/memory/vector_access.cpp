//===- vector_access.cpp - vector memory accesses at given addresses ------------------------------------===//
#include "emulator/exec/memory/vector_access.h"

#include <atomic>
#include <cstring>

namespace sluice::emulator {

namespace {

template <class T>
uint64_t exchange(uint8_t *pointer, AtomicBody body, uint64_t operand, uint64_t second, uint32_t denormals) {
  std::atomic_ref<T> cell(*reinterpret_cast<T *>(pointer));
  T old = cell.load();
  while (!cell.compare_exchange_weak(old, T(body(old, T(operand), T(second), denormals)))) {
  }
  return old;
}

template <class T> void load_shared(uint8_t *to, uint8_t *from) {
  const T value = std::atomic_ref<T>(*reinterpret_cast<T *>(from)).load(std::memory_order_acquire);
  std::memcpy(to, &value, sizeof value);
}
template <class T> void store_shared(uint8_t *to, const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  std::atomic_ref<T>(*reinterpret_cast<T *>(to)).store(value, std::memory_order_release);
}

/// Calls the function with places of dwords if address and size allow it, else of pairs of bytes, else of
/// bytes.
template <class Dword, class Half, class Byte>
void each_shared(const uint8_t *memory, uint32_t bytes, Dword &&dword, Half &&half, Byte &&byte) {
  const uint64_t bits = reinterpret_cast<uint64_t>(memory) | bytes;
  if (bits % 4 == 0) {
    for (uint32_t i = 0; i < bytes; i += 4)
      dword(i);
  } else if (bits % 2 == 0) {
    for (uint32_t i = 0; i < bytes; i += 2)
      half(i);
  } else {
    for (uint32_t i = 0; i < bytes; ++i)
      byte(i);
  }
}

void load_shared_bytes(uint8_t *to, uint8_t *from, uint32_t bytes) {
  each_shared(
      from, bytes, [&](uint32_t i) { load_shared<uint32_t>(to + i, from + i); },
      [&](uint32_t i) { load_shared<uint16_t>(to + i, from + i); },
      [&](uint32_t i) { load_shared<uint8_t>(to + i, from + i); });
}
void store_shared_bytes(uint8_t *to, const uint8_t *from, uint32_t bytes) {
  each_shared(
      to, bytes, [&](uint32_t i) { store_shared<uint32_t>(to + i, from + i); },
      [&](uint32_t i) { store_shared<uint16_t>(to + i, from + i); },
      [&](uint32_t i) { store_shared<uint8_t>(to + i, from + i); });
}

} // namespace

void read_shared_places(uint32_t *rows, const Places &places, uint32_t bytes, bool sign_extend) {
  for (uint64_t lanes = places.lanes; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    uint8_t value[16] = {};
    if ((places.allowed >> lane & 1) != 0) load_shared_bytes(value, places.pointer[lane], bytes);
    if ((places.cut >> lane & 1) != 0)
      load_shared_bytes(value, places.pointer[lane], places.cut_bytes[lane] / 4u * 4);
    with_bytes(bytes, [&]<uint32_t count>() { load_element<count>(rows, lane, value, sign_extend); });
  }
}

void write_shared_places(const uint32_t *rows, const Places &places, uint32_t bytes, uint32_t shift) {
  for (uint64_t lanes = places.allowed | places.cut; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = low_lane(lanes);
    uint8_t value[16];
    with_bytes(bytes, [&]<uint32_t count>() { store_element<count>(value, rows, lane, shift); });
    const bool is_cut = (places.allowed >> lane & 1) == 0;
    store_shared_bytes(places.pointer[lane], value, is_cut ? places.cut_bytes[lane] / 4u * 4 : bytes);
  }
}

uint64_t combine(uint8_t *pointer, uint32_t bytes, AtomicBody body, uint64_t operand, uint64_t second,
                 uint32_t denormals) {
  return bytes == 8 ? exchange<uint64_t>(pointer, body, operand, second, denormals)
                    : exchange<uint32_t>(pointer, body, operand, second, denormals);
}

MemoryRoutines vector_routines(const InstructionFacts &facts, const VectorRoutines &routines, bool to_lds) {
  switch (facts.role) {
  case Role::load:
    return to_lds ? routines.copy : routines.load;
  case Role::store:
    return routines.store;
  case Role::copy_to_lds:
    return routines.copy;
  default:
    return is_atomic(facts.role) ? routines.atomic : MemoryRoutines{};
  }
}

} // namespace sluice::emulator
