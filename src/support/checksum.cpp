//===- checksum.cpp - XXH64, the checksum of the kernel pack --------------------------------------------===//
#include "support/checksum.h"

#include "support/bytes.h"

#include <bit>

namespace sluice::support {
namespace {

constexpr uint64_t prime1 = 0x9e3779b185ebca87;
constexpr uint64_t prime2 = 0xc2b2ae3d27d4eb4f;
constexpr uint64_t prime3 = 0x165667b19e3779f9;
constexpr uint64_t prime4 = 0x85ebca77c2b2ae63;
constexpr uint64_t prime5 = 0x27d4eb2f165667c5;

uint64_t round(uint64_t lane, uint64_t input) {
  return std::rotl(lane + input * prime2, 31) * prime1;
}
uint64_t merge(uint64_t hash, uint64_t lane) {
  return (hash ^ round(0, lane)) * prime1 + prime4;
}

} // namespace

uint64_t xxh64(std::span<const std::byte> bytes) {
  const std::byte *at = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = prime5;
  if (left >= 32) {
    uint64_t lanes[4] = {prime1 + prime2, prime2, 0, uint64_t{0} - prime1};
    for (; left >= 32; at += 32, left -= 32) {
      for (int i = 0; i < 4; ++i)
        lanes[i] = round(lanes[i], load_little<uint64_t>(at + 8 * i));
    }
    hash =
        std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (uint64_t lane : lanes)
      hash = merge(hash, lane);
  }
  hash += bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    hash = std::rotl(hash ^ round(0, load_little<uint64_t>(at)), 27) * prime1 + prime4;
  }
  if (left >= 4) {
    hash = std::rotl(hash ^ load_little<uint32_t>(at) * prime1, 23) * prime2 + prime3;
    at += 4;
    left -= 4;
  }
  for (; left > 0; ++at, --left)
    hash = std::rotl(hash ^ uint64_t(*at) * prime5, 11) * prime1;
  hash = (hash ^ (hash >> 33)) * prime2;
  hash = (hash ^ (hash >> 29)) * prime3;
  return hash ^ (hash >> 32);
}

} // namespace sluice::support
