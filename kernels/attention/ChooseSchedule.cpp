//===- ChooseSchedule.cpp - decides how an attention kernel uses its registers --------------------------===//
#include "attention/ChooseSchedule.h"

#include "attention/HeadColumns.h"
#include "attention/MfmaLayout.h"
#include "target/ScheduleChoices.h"

namespace sluice {

namespace {

/// How many registers of a wave Q and O may take so that the rest is enough for something. Found with LLVM's
/// allocation: with more, it spills.
namespace most_for_rows {
// Of 256 registers, which two waves of a SIMD have each:
constexpr unsigned more_than_a_tile = 136;   // scores of two tiles, or rows in flight
constexpr unsigned two_waves_of_bytes = 160; // operands of products are half as large in FP8
constexpr unsigned addresses_of_copies = 160;
// Of 168, which three have:
constexpr unsigned three_waves = 72;
constexpr unsigned scores_of_two_tiles = 68;
constexpr unsigned early_instructions = 64;
// Of 512, which one has:
constexpr unsigned early_instructions_alone = 400;
constexpr unsigned tile_of_16_keys = 376; // scores, K and V of the plain loop
constexpr unsigned tile = 308;
} // namespace most_for_rows

constexpr unsigned accVgprs = 256; // of a wave that is alone on its SIMD

/// Columns of V from which on a wave of few rows is alone: Q and O take half of the registers that two waves
/// would share; so do K and V of a tile that is in registers with them.
constexpr unsigned columnsAlone = 512, columnsAloneWithTile = 192;
/// Numbers of K and V of a tile in registers, up to which three waves have room. Blocks keep as many as
/// bytes, or half, but make no elements of K.
constexpr unsigned numbersOfThree = 4096, numbersOfThreeInBlocks = 8192;

/// A wave's registers for O.
unsigned registersOfOutput(AttentionOp op) {
  unsigned columnsOfV = llvm::alignTo(op.getHeadDimV() / op.columnGroups(), op.getWaveRows());
  return op.rowBlocks() * op.getWaveRows() * columnsOfV / MfmaLayout::lanes;
}

/// A wave's registers for Q and O.
unsigned registersOfRows(AttentionOp op) {
  unsigned elementBytes = op.getElementType().getIntOrFloatBitWidth() / 8;
  unsigned queryRegisters = op.getHeadDimQk() * elementBytes / 4;
  return op.rowBlocks() * op.getWaveRows() * queryRegisters / MfmaLayout::lanes + registersOfOutput(op);
}

std::optional<unsigned> wavesOfManyRows(AttentionOp op, unsigned rows) {
  if (op.getWaves() != 4) return std::nullopt;
  if (rows > (isOfBytes(op) ? most_for_rows::two_waves_of_bytes : most_for_rows::more_than_a_tile)) return 1;
  // Pages take some registers.
  if (!isOfBytes(op) && !op.getPaged() && rows <= most_for_rows::three_waves) return 3;
  return std::nullopt;
}

std::optional<unsigned> wavesOfFewRows(AttentionOp op) {
  if (op.getHeadDimV() / op.columnGroups() >= (op.wavesDivideKeys() ? columnsAloneWithTile : columnsAlone))
    return 1;
  if (!op.wavesDivideKeys()) return std::nullopt;
  unsigned numbers = (op.getHeadDimQk() + op.getHeadDimV()) * op.getTileKv();
  return numbers <= (op.getKvBlocks() ? numbersOfThreeInBlocks : numbersOfThree) ? 3 : 2;
}

/// Of the plain loop.
unsigned parkedReads(AttentionOp op) {
  const MfmaLayout layout{op.getWaveRows(), op.getElementType().getIntOrFloatBitWidth() / 8};
  unsigned rowBudget = op.getTileKv() == 16 ? most_for_rows::tile_of_16_keys : most_for_rows::tile;
  unsigned readRegisters = widestKeyRead * layout.elementBytes / 4;
  unsigned q = op.getHeadDimQk() * layout.elementBytes / 4 / layout.groups();
  unsigned needed = op.rowBlocks() * (q + op.getHeadDimV() / layout.groups());
  return needed <= rowBudget ? 0 : llvm::divideCeil(needed - rowBudget, op.rowBlocks() * readRegisters);
}

} // namespace

static Schedule usualSchedule(AttentionOp op) {
  Schedule s;
  const unsigned rows = registersOfRows(op);
  const bool isMany = hasManyRows(op), leavesRegisters = rows <= most_for_rows::more_than_a_tile;
  s.wavesPerSimd = isMany ? wavesOfManyRows(op, rows) : wavesOfFewRows(op);
  const bool isAlone = s.wavesPerSimd == 1, areThree = s.wavesPerSimd == 3;

  const bool looksAhead =
      areThree ? rows <= most_for_rows::scores_of_two_tiles : leavesRegisters || (isMany && isAlone);
  s.loop = op.wavesDivideKeys() ? KeyLoop::OwnTiles : isMany && looksAhead ? KeyLoop::Ahead : KeyLoop::Plain;

  s.hasFewRegisters = !isMany || rows > (areThree ? most_for_rows::early_instructions
                                                  : most_for_rows::early_instructions_alone);
  // Conversions take registers, and so do pages.
  const bool convertsPages = op.getKvType() && op.getPaged() && op.getWaves() == 8;
  s.keepsAddresses = !s.hasFewRegisters && rows <= most_for_rows::addresses_of_copies && !convertsPages;

  s.holdsOutput = isMany && isAlone && registersOfOutput(op) == accVgprs;
  // Two blocks of rows, or Q and O of many rows take most registers of two waves of a SIMD.
  s.isFull = op.rowBlocks() != 1 || s.holdsOutput || (isMany && !leavesRegisters && !isAlone);

  // Eight waves of many rows have registers for rows in flight, but not with the addresses of pages.
  const bool eightFetch = op.getWaves() == 8 && leavesRegisters && !op.getPaged();
  s.copiesThroughRegisters =
      isMany && (op.getWaves() == 4 || eightFetch) && (isAlone || !isOfBytes(op)) && !s.holdsOutput;
  s.valuesByColumns = isMany && leavesRegisters && (isOfBytes(op) || (eightFetch && !op.getKvType()));
  if (s.loop == KeyLoop::Plain) s.parkedReads = parkedReads(op);
  return s;
}

llvm::FailureOr<Schedule> scheduleOf(AttentionOp op) {
  Schedule schedule = usualSchedule(op);
  auto own = op->getParentOp()->getAttrOfType<mlir::StringAttr>(scheduleParts);
  if (!own) return schedule;
  llvm::StringRef wrong = setParts(own, [&](llvm::StringRef name, llvm::StringRef value) {
    return ScheduleChoices().set(name, value) || schedule.set(name, value);
  });
  if (wrong.empty()) return schedule;
  return op.emitError() << "'" << wrong << "' is no part of a schedule";
}

} // namespace sluice
