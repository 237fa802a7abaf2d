//===- op_info.h - what the checks know of an instruction -----------------------------------------------===//
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/exec/mfma.h"
#include "emulator/exec/valu/table.h"
#include "emulator/isa/disassembler.h"

namespace sluice::emulator {

/// What an instruction that combines does with what memory holds.
enum class AtomicKind : uint8_t { none, exchange, combine };

enum class OpKind : uint8_t {
  scalar,
  branch,
  valu,
  mfma,
  lds,
  lds_copy,
  vector_memory,
  scalar_memory,
  other
};

/// Of an MFMA or SMFMAC.
struct MatrixInfo {
  MatrixUnit unit = MatrixUnit::xdl;
  uint8_t passes = 0;
  uint8_t a_rows = 0;
  uint8_t b_rows = 0;
  uint8_t result_rows = 0; // of D, and of C
  bool sparse = false;     // C is D, and the third source is an index register
};

struct OpInfo {
  OpKind kind = OpKind::other;
  Definedness definedness = Definedness::all;
  bool transcendental = false;
  bool dpp = false;
  bool half_write = false;  // SDWA or op_sel: the result is part of a register
  bool lane_access = false; // v_readlane and its kind
  bool div_fmas = false;
  bool data_read_late = false; // a store of more than 64 bits, whose data leaves after it has been issued
  bool m0_read_early = false;  // a scalar instruction that takes M0 before the one before it has written
  bool writes_mode = false;    // s_setreg
  bool reads_mode = false;     // s_getreg of MODE, and s_setreg
  bool fma_f64 = false;        // v_fma_f64 and its accumulating form
  uint16_t dot = 0;            // of a dot product: which one; 0 for all else
  MatrixInfo matrix;
  uint8_t wait_states = 1; // s_nop: more
  bool writes_exec = false;
  bool branch = false;       // Op::value is a target
  bool falls_through = true; // the next instruction may run after it
  AtomicKind atomic = AtomicKind::none;
  // First and one past the last range in OpInfos::ranges.
  uint32_t reads_begin = 0, reads_end = 0;
  uint32_t writes_begin = 0, writes_end = 0;
  // One past the highest register used, by file.
  uint16_t vgprs_end = 0, agprs_end = 0, sgprs_end = 0;
  // Address registers of a memory instruction, for which an undefined value is a mistake.
  RegisterRange address{0, 0};
  RegisterRange stored{0, 0};        // vector or scalar registers
  RegisterRange second_stored{0, 0}; // second data of DS
  bool address_in_m0 = false;        // or the number of a resource
  bool m0_wait = false;              // needs a wait state between a scalar write of M0 and itself
  bool scratch = false;              // a scratch instruction
};

struct OpInfos {
  std::vector<OpInfo> infos; // by index of instruction
  std::vector<RegisterRange> ranges;
};

} // namespace sluice::emulator
