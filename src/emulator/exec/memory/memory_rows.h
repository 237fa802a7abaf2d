//===- memory_rows.h - the instructions that touch memory -----------------------------------------------===//
//
// A row says what an instruction accesses. The routine that runs it is shared by all instructions of its kind
// and exists twice: `fast` for waves without checks, where everything completes at once, and `strict`.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <optional>
#include <string_view>

#include "emulator/isa/op.h"
#include "emulator/isa/wave.h"

namespace sluice::emulator {

enum class MemoryKind : uint8_t { load, store, atomic, lds_copy, lane_exchange, other };

/// How an instruction uses M0 in addition to its operands.
enum class UseOfM0 : uint8_t { none, address, address_after_wait, resource };

struct MemoryRow {
  MemoryKind kind = MemoryKind::other;
  Handler fast = nullptr;
  Handler strict = nullptr;
  MemoryControl control{};
  AtomicBody atomic = nullptr;
  uint32_t second_offset_scale = 0; // DS with two accesses: the unit of OFFSET0 and OFFSET1, in bytes
  UseOfM0 m0 = UseOfM0::none;
};

// Each function covers the mnemonics of its format and returns nothing for others.
std::optional<MemoryRow> lds_row(std::string_view mnemonic);
/// ds_permute and similar.
std::optional<MemoryRow> lane_exchange_row(std::string_view mnemonic);
/// Global wave sync: ds_gws_init and ds_gws_barrier.
std::optional<MemoryRow> global_sync_row(std::string_view mnemonic);
/// flat_, global_ and scratch_ instructions.
std::optional<MemoryRow> flat_row(std::string_view mnemonic);
/// `to_lds`: the LDS bit of the encoding.
std::optional<MemoryRow> buffer_row(std::string_view mnemonic, bool to_lds);
/// tbuffer_ instructions, and the buffer_ instructions that convert (without "t").
std::optional<MemoryRow> formatted_row(std::string_view mnemonic, bool to_lds);
std::optional<MemoryRow> scalar_memory_row(std::string_view mnemonic);

/// "add", "umax_x2": the operation in an atomic's name, and its width.
struct AtomicOperation {
  AtomicBody body;
  uint8_t bytes;
  bool second; // has a second operand
  DenormalRule memory_denormals;
  DenormalRule lds_denormals;
};
std::optional<AtomicOperation> memory_atomic(std::string_view operation);
void set_atomic(MemoryRow &row, const AtomicOperation &operation);

/// The last argument of an AtomicBody.
uint32_t kept_denormals(const FloatMode &mode, DenormalRule rule);

} // namespace sluice::emulator
