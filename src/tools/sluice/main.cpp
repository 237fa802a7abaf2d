//===- main.cpp - the command line ----------------------------------------------------------------------===//
//
// Declares the options and dispatches. Exit status: 0, 1 if a comparison found a difference, 2 if the command
// failed.
//
//===----------------------------------------------------------------------------------------------------===//
#include "tools/bench/bench_command.h"
#include "tools/bench/bench_options.h"
#include "tools/shared/file_option.h"
#include "tools/sluice/commands.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>

namespace {

using namespace sluice::tools;

void add_call_options(CLI::App *command, CallOptions &call) {
  add_file(command, "--q", call.q_file, "queries, .npy [batch, token, head, dim]")->required();
  add_file(command, "--k", call.k_file, "keys, .npy [batch, token, kv head, dim]")->required();
  add_file(command, "--v", call.v_file, "values, .npy [batch, token, kv head, dim]")->required();
  command->add_flag("--bf16", call.bf16, "the files hold bf16 as uint16 (otherwise: float16)");
  command->add_flag("--causal", call.causal, "hide keys after a row's own position");
  command->add_option("--alignment", call.alignment,
                      "alignment of the causal mask: bottom-right (default) or top-left");
  command
      ->add_option_function<std::string>(
          "--scale", [&call](const std::string &text) { call.scale = parse_scale(text); },
          "factor of the scores; the default is 1 / sqrt(dim)")
      ->type_name("FLOAT");
  command->add_option("--device", call.device, "emulated (default) or hip:N");
}

} // namespace

int main(int count, char **arguments) {
  CLI::App app("Attention for AMD Instinct GPUs, from the command line", "sluice");
  app.require_subcommand(1);
  int status = 0;

  app.add_subcommand("info", "print versions, kernels and devices")->callback([&] {
    status = info_command();
  });

  KernelsOptions kernels;
  CLI::App *command = app.add_subcommand("kernels", "list the kernels for a device");
  command->add_option("--device", kernels.device, "a target such as gfx942:304 (default), emulated or hip:N");
  command->add_option("--kernel", kernels.pattern, "only kernels with such names, such as '*_decode'");
  command->add_flag("--stats", kernels.stats,
                    "show registers, LDS, occupancy and instruction counts, from the machine code");
  command->add_flag(
      "--markdown", kernels.markdown,
      "print the supported types and sizes as the table of the README; with --stats, the figures as a table");
  command->callback([&] { status = kernels_command(kernels); });

  FeaturesOptions features;
  command = app.add_subcommand(
      "features", "print which features are supported, as tables in Markdown: the library's own answers");
  command->add_option("--device", features.device,
                      "a target such as gfx942:304 (default), emulated or hip:N");
  command->callback([&] { status = features_command(features); });

  RunOptions run;
  command = app.add_subcommand("run", "compute attention on .npy files");
  add_call_options(command, run.call);
  add_file(command, "--out", run.o_file, "the result, .npy [batch, token, head, dim]")->required();
  add_file(command, "--lse", run.lse_file, "logarithm of the softmax denominator, .npy [batch, head, token]");
  command->callback([&] { status = run_command(run); });

  VerifyOptions verify;
  command = app.add_subcommand("verify",
                               "run, and compare with the double-precision reference or with given files");
  add_call_options(command, verify.call);
  add_file(command, "--o", verify.o_file, "check this O instead of running");
  add_file(command, "--lse", verify.lse_file, "check this LSE, too");
  add_file(command, "--expect-o", verify.expect_o_file, "compare with this O instead of the reference's");
  add_file(command, "--expect-lse", verify.expect_lse_file,
           "compare with this LSE instead of the reference's");
  command->callback([&] { status = verify_command(verify); });

  InspectOptions inspect;
  command = app.add_subcommand("inspect", "print the contents of a kernel pack");
  add_file(command, "file", inspect.file,
           "a pack, or a library with one inside (default: the library in use)");
  CLI::Option *extract =
      command->add_option("--extract", inspect.extract, "name of a kernel to write to a file");
  add_file(command, "--elf", inspect.elf_file, "write its ELF here")->needs(extract);
  add_file(command, "--bundle", inspect.bundle_file, "write its HIP fat binary here")->needs(extract);
  command->add_option("--chip", inspect.chip, "the chip of the ELF (default gfx942)")->needs(extract);
  command->callback([&] {
    if (*extract && inspect.elf_file.empty() && inspect.bundle_file.empty())
      throw CLI::ValidationError("--extract", "needs --elf FILE or --bundle FILE");
    status = inspect_command(inspect);
  });

#ifdef SLUICE_HAS_TIMING
  BenchOptions bench;
  add_bench(app, bench);
  app.get_subcommand("bench")->callback([&] { status = bench_command(bench); });
#endif

  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception &error) {
    std::fflush(stdout);
    fmt::print(stderr, "sluice: {}\n", error.what());
    return 2;
  }
  return std::fflush(stdout) == 0 ? status : 2;
}
