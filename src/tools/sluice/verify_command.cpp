//===- verify_command.cpp - sluice verify: results against expectations ---------------------------------===//

#include "tools/sluice/accuracy.h"
#include "tools/sluice/commands.h"

#include <array>
#include <fmt/format.h>

namespace sluice::tools {

namespace {

constexpr std::array any_type = {NpyType::f16, NpyType::u16, NpyType::f32, NpyType::f64};
constexpr std::array float_type = {NpyType::f32, NpyType::f64};

std::vector<double> read_numbers(const std::string &file, const std::string &argument,
                                 std::span<const NpyType> types, std::span<const int64_t> shape) {
  const NpyArray array = read_npy(file, argument, types, shape.size());
  expect_shape(array, argument, shape);
  return to_numbers(array);
}

} // namespace

int verify_command(const VerifyOptions &options) {
  const CallInputs inputs = load_inputs(options.call);
  const std::vector<int64_t> o_shape = inputs.o_shape(), lse_shape = inputs.lse_shape();
  if (!options.lse_file.empty() && options.o_file.empty()) throw ToolError("--lse is given without --o");
  // Files first: a wrong one should not cost a run.
  std::vector<double> o, lse;
  if (!options.o_file.empty()) o = read_numbers(options.o_file, "--o", any_type, o_shape);
  if (!options.lse_file.empty()) lse = read_numbers(options.lse_file, "--lse", float_type, lse_shape);
  Reference expected = compute_reference(options.call, inputs);
  if (!options.expect_o_file.empty())
    expected.o = read_numbers(options.expect_o_file, "--expect-o", any_type, o_shape);
  if (!options.expect_lse_file.empty())
    expected.lse = read_numbers(options.expect_lse_file, "--expect-lse", float_type, lse_shape);

  if (options.o_file.empty()) {
    const CallResult result = run_call(options.call, inputs);
    fmt::print("{}\n", describe(result));
    o = to_numbers(result.o);
    lse = to_numbers(result.lse);
  }
  const ErrorFigures o_figures = measure(o, expected.o, expected.o_tolerance, expected.o_limits);
  fmt::print("{}\n", describe("O", o_figures, o_shape));
  bool passed = o_figures.passed();
  if (!lse.empty()) {
    const ErrorFigures lse_figures = measure(lse, expected.lse, expected.lse_tolerance, expected.lse_limits);
    fmt::print("{}\n", describe("LSE", lse_figures, lse_shape));
    passed = passed && lse_figures.passed();
  }
  return passed ? 0 : 1;
}

} // namespace sluice::tools
