//===- mfma.cpp - one MFMA on the registers of a wave ---------------------------------------------------===//
//
// Applies the modifiers to the operands, copies inputs that the output overlaps, and chooses the routine: the
// plain one (mfma_portable.cpp, which has the arithmetic) or one for the processor at hand.
//
//===----------------------------------------------------------------------------------------------------===//
#include "emulator/exec/mfma.h"

#include <cstring>

#include "emulator/exec/mfma_paths.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice::emulator {

namespace {

constexpr uint32_t max_input_registers = 4;
constexpr uint32_t max_result_registers = 32;

bool overlap(const uint32_t *x, uint32_t x_registers, const uint32_t *y, uint32_t y_registers) {
  return x < y + y_registers * 64 && y < x + x_registers * 64;
}

/// Makes the processor's floating-point mode plain during an instruction: a host that flushes subnormals or
/// rounds differently must not change the machine's results.
class PlainFloatingPoint {
public:
#if defined(__x86_64__)
  PlainFloatingPoint() : saved(_mm_getcsr()) {
    if ((saved & mode_bits) != 0) _mm_setcsr(saved & ~mode_bits);
  }
  ~PlainFloatingPoint() {
    if ((saved & mode_bits) != 0) _mm_setcsr(saved);
  }

private:
  static constexpr uint32_t mode_bits = 0xe040; // flush to zero, rounding control, denormals are zero
  uint32_t saved;
#endif
};

MfmaPath best_path() {
  for (MfmaPath path : {MfmaPath::avx512, MfmaPath::avx2})
    if (mfma_path_available(path)) return path;
  return MfmaPath::portable;
}

/// The lane whose A replaces a lane's own: 2^CBSZ blocks share the A of the block that ABID names.
uint32_t broadcast_lane(const MfmaShape &shape, const MfmaModifiers &modifiers, uint32_t lane) {
  const uint32_t block = lane / shape.m;
  const uint32_t source = (block >> modifiers.cbsz << modifiers.cbsz) + modifiers.abid;
  return source * shape.m + lane % shape.m;
}

/// The lane whose B replaces a lane's own.
uint32_t pattern_lane(uint32_t blgp, uint32_t lane) {
  switch (blgp) {
  case 0:
    return lane;
  case 1: // the first 32 lanes twice
    return lane % 32;
  case 2: // the last 32 lanes twice
    return 32 + lane % 32;
  case 3: // each lane reads the lane 16 further
    return (lane + 16) % 64;
  default: // sixteen lanes four times
    return 16 * (blgp - 4) + lane % 16;
  }
}

/// Copies of the operands that modifiers change.
class ModifiedOperands {
public:
  ModifiedOperands(const MfmaShape &shape, const MfmaOptions &options, detail::MfmaOperands &o) {
    const auto [cbsz, abid, blgp] = options.modifiers;
    if (shape.sparse) {
      o.index = options.index;
      o.index_shift = cbsz != 0 ? 0 : 2 * shape.a_elements() * abid;
      return;
    }
    if (cbsz != 0)
      o.a = permuted(a, o.a, shape.a_registers(),
                     [&](uint32_t lane) { return broadcast_lane(shape, options.modifiers, lane); });
    if (shape.input == MfmaInput::f64) {
      if ((blgp & 1) != 0) o.a = negated(a, o.a, shape.a_registers());
      if ((blgp & 2) != 0) o.b = negated(b, o.b, shape.b_registers());
      if ((blgp & 4) != 0 && o.c) o.c = negated(c, o.c, shape.c_registers());
      if ((blgp & 4) != 0) o.c_constant ^= uint64_t(1) << 63;
    } else if (blgp != 0) {
      o.b = permuted(b, o.b, shape.b_registers(), [&](uint32_t lane) { return pattern_lane(blgp, lane); });
    }
    if (options.flush_inputs && shape.input == MfmaInput::f32) {
      o.a = flushed(a, o.a, shape.a_registers());
      o.b = flushed(b, o.b, shape.b_registers());
    }
  }

private:
  template <class LaneOf>
  static const uint32_t *permuted(uint32_t *to, const uint32_t *from, uint32_t registers, LaneOf &&lane_of) {
    for (uint32_t r = 0; r < registers; ++r)
      for (uint32_t lane = 0; lane < 64; ++lane)
        to[r * 64 + lane] = from[r * 64 + lane_of(lane)];
    return to;
  }
  static const uint32_t *negated(uint32_t *to, const uint32_t *from, uint32_t registers) {
    for (uint32_t i = 0; i < registers * 64; ++i)
      to[i] = from[i] ^ (i / 64 % 2) << 31;
    return to;
  }
  /// `to` may be `from`.
  static const uint32_t *flushed(uint32_t *to, const uint32_t *from, uint32_t registers) {
    for (uint32_t i = 0; i < registers * 64; ++i)
      to[i] = (from[i] & 0x7f800000) == 0 ? from[i] & 0x80000000 : from[i];
    return to;
  }

  uint32_t a[max_input_registers * 64];
  uint32_t b[max_input_registers * 64];
  uint32_t c[8 * 64]; // f64 only
};

/// False if no vector routine of the path executes this shape.
bool run_vectors([[maybe_unused]] MfmaPath path, [[maybe_unused]] const MfmaShape &shape,
                 [[maybe_unused]] const detail::MfmaOperands &o) {
#if defined(__x86_64__)
  if (path == MfmaPath::portable || shape.n < 16 || shape.sparse) return false;
  const bool wide = path == MfmaPath::avx512;
  const uint32_t constant = uint32_t(o.c_constant);
  switch (shape.input) {
  case MfmaInput::f16:
  case MfmaInput::bf16:
    return (wide ? detail::mfma_half_avx512 : detail::mfma_half_avx2)(shape, o.d, o.a, o.b, o.c, constant);
  case MfmaInput::f32:
    (wide ? detail::mfma_single_avx512 : detail::mfma_single_avx2)(shape, o.d, o.a, o.b, o.c, constant);
    return true;
  case MfmaInput::i8:
  case MfmaInput::fp8:
  case MfmaInput::bf8:
    return (wide ? detail::mfma_8_bit_avx512 : detail::mfma_8_bit_avx2)(shape, o);
  default:
    return false;
  }
#else
  return false;
#endif
}

} // namespace

bool mfma_path_available(MfmaPath path) {
  switch (path) {
  case MfmaPath::portable:
    return true;
#if defined(__x86_64__)
  case MfmaPath::avx2:
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  case MfmaPath::avx512:
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#endif
  default:
    return false;
  }
}

bool mfma_index_valid(const MfmaShape &shape, const MfmaModifiers &modifiers, const uint32_t *index) {
  const uint32_t pairs = shape.a_elements() / 2;
  const uint32_t shift = modifiers.cbsz != 0 ? 0 : 4 * pairs * modifiers.abid;
  bool valid = true;
  for (uint32_t lane = 0; lane < 64; ++lane)
    for (uint32_t pair = 0; pair < pairs; ++pair) {
      const uint32_t bits = index[lane] >> (shift + 4 * pair);
      valid = valid && (bits & 3) < (bits >> 2 & 3);
    }
  return valid;
}

void mfma_on_path(MfmaPath path, const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b,
                  const uint32_t *c, uint64_t c_constant, const MfmaOptions &options) {
  const PlainFloatingPoint plain_floating_point;
  const uint32_t registers = shape.c_registers();
  uint32_t staged[max_result_registers * 64];
  const bool stage = overlap(d, registers, a, shape.a_registers()) ||
                     overlap(d, registers, b, shape.b_registers()) ||
                     (c && c != d && overlap(d, registers, c, registers)) ||
                     (options.index && overlap(d, registers, options.index, 1));
  detail::MfmaOperands operands{stage ? staged : d, a, b, c, c_constant, nullptr, 0};
  auto run = [&] {
    if (!run_vectors(path, shape, operands)) detail::mfma_portable(shape, operands);
  };
  if (shape.sparse || options.flush_inputs || !options.modifiers.none()) {
    const ModifiedOperands copies(shape, options, operands);
    run();
  } else {
    run();
  }
  if (stage) std::memcpy(d, staged, size_t(registers) * 64 * sizeof(uint32_t));
}

void mfma(const MfmaShape &shape, uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c,
          uint64_t c_constant, const MfmaOptions &options) {
  static const MfmaPath path = best_path();
  mfma_on_path(path, shape, d, a, b, c, c_constant, options);
}

} // namespace sluice::emulator
