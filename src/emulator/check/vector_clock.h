//===- vector_clock.h - what is known of the accesses of each wave --------------------------------------===//
//
// A vector clock has moments of every wave of a launch. Waves and atomics hand their clocks on far more often
// than a clock changes, so a clock is a list of chunks that clocks share. A chunk, and the list, is copied
// only to change one that others use. Joining two clocks costs little where they share chunks.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::emulator {

/// Moments of a wave: until when its vector accesses are issued and done, its stores written back, and its
/// scalar accesses done.
struct Moments {
  uint32_t issued = 0;
  uint32_t done = 0;
  uint32_t written_back = 0;
  uint32_t scalar_done = 0;

  void join(Moments other) {
    issued = std::max(issued, other.issued);
    done = std::max(done, other.done);
    written_back = std::max(written_back, other.written_back);
    scalar_done = std::max(scalar_done, other.scalar_done);
  }
  bool none() const { return (issued | done | scalar_done) == 0; }
  friend bool operator==(const Moments &, const Moments &) = default;
};

/// Owns a T together with others. Unlike std::shared_ptr's, its count says reliably that there are no others.
template <class T> class Shared {
public:
  Shared() = default;
  template <class... Arguments> static Shared make(Arguments &&...arguments) {
    Shared result;
    result.node = new Node{{1}, T(std::forward<Arguments>(arguments)...)};
    return result;
  }
  Shared(const Shared &other) : node(other.node) {
    if (node) node->owners.fetch_add(1, std::memory_order_relaxed);
  }
  Shared(Shared &&other) noexcept : node(std::exchange(other.node, nullptr)) {}
  Shared &operator=(Shared other) noexcept {
    std::swap(node, other.node);
    return *this;
  }
  ~Shared() {
    if (node && node->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node;
  }

  explicit operator bool() const { return node != nullptr; }
  const T &operator*() const { return node->value; }
  const T *operator->() const { return &node->value; }
  friend bool operator==(const Shared &a, const Shared &b) { return a.node == b.node; }

  /// The T, to be changed; first makes one for this owner alone.
  T &own() {
    if (!node)
      *this = make();
    else if (node->owners.load(std::memory_order_acquire) != 1)
      *this = make(node->value);
    return node->value;
  }

private:
  struct Node {
    std::atomic<uint32_t> owners;
    T value;
  };
  Node *node = nullptr;
};

class VectorClock {
public:
  bool empty() const { return !chunks; }
  /// `wave` is a number in the launch.
  Moments of(uint32_t wave) const {
    if (!chunks || wave / chunk_waves >= chunks->size()) return {};
    const Shared<Chunk> &chunk = (*chunks)[wave / chunk_waves];
    return chunk ? (*chunk)[wave % chunk_waves] : Moments{};
  }
  void join(uint32_t wave, Moments moments);
  void join(const VectorClock &other);
  void clear() { chunks = {}; }

private:
  static constexpr uint32_t chunk_waves = 64;
  using Chunk = std::array<Moments, chunk_waves>;

  Shared<std::vector<Shared<Chunk>>> chunks; // null: nothing is known
};

} // namespace sluice::emulator
