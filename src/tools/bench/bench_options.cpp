//===- bench_options.cpp - the options of sluice bench --------------------------------------------------===//
#include "tools/bench/bench_options.h"

#include "tools/shared/file_option.h"

#include <CLI/CLI.hpp>

namespace sluice::tools {

namespace {

constexpr int most_length = 1 << 20, most_count = 1 << 16;

void add_work(CLI::App *command, WorkloadOptions &work, CLI::Option *kernel) {
  command->add_option("--heads", work.heads, "heads of queries (default 64)")
      ->delimiter(',')
      ->check(CLI::Range(1, most_count));
  command->add_option("--kv-heads", work.kv_heads, "heads of keys and values (default 8; 1 if V is in K)")
      ->check(CLI::Range(1, most_count));
  CLI::Option *const batch =
      command
          ->add_option(
              "--batch", work.batch,
              "sequences (default: as many as make 16384 tokens; 32 for decode and draft, 1 for chunk)")
          ->check(CLI::Range(1, most_count));
  CLI::Option *const lengths =
      command->add_option("--lengths", work.lengths, "tokens of a prefill (default 1024,4096,16384)")
          ->delimiter(',')
          ->check(CLI::Range(1, most_length));
  command
      ->add_option("--causal", work.causal,
                   "on, off or both (default: both for prefill, off for decode, else on)")
      ->check(CLI::IsMember({"on", "off", "both"}));

  // Without a plan a kernel is timed on prefill of contiguous tensors of its own types.
  const auto plan_only = [&](CLI::Option *option) {
    kernel->excludes(option);
    return option;
  };
  plan_only(command->add_option("--workload", work.kinds, "prefill, decode, chunk, draft (default: all)"))
      ->delimiter(',');
  plan_only(
      command->add_option("--type", work.types,
                          "f16 or bf16 (default), either with K and V of another type, as bf16+i8: fp8,\n"
                          "e5m2 or i8, with one scale, scales per token (bf16+i8/token) or per page\n"
                          "(bf16+i8/page), q8_0, q4_0, or u4 with groups of 32 or 64 and zero points\n"
                          "(bf16+u4/32, bf16+u4/32/zeros); fp8, fp8/token, fp8/page (Q, K and V; O is\n"
                          "bf16), fp8-f16 (O is f16); f16, bf16, f16+fp8, bf16+fp8 and fp8 also with\n"
                          "-f32 (O is f32, as bf16-f32) and -fp8; or all (every type that has kernels)"))
      ->delimiter(',');
  plan_only(
      command->add_option("--head-dim", work.head_dims,
                          "128 (default), or of K and V as 192/128, or all (every size that has\n"
                          "kernels); if K has more than 512, as in 576/512, V is the front of its rows"))
      ->delimiter(',');
  CLI::Option *const kv_len =
      plan_only(command->add_option("--kv-len", work.kv_lens,
                                    "keys of a decode, chunk or draft (default 4096, for a chunk 16384)"))
          ->delimiter(',')
          ->check(CLI::Range(1, most_length));
  plan_only(command->add_option("--q-len", work.q_lens,
                                "rows of a draft, 2 to 16 (default 2,4,8,16), or of a chunk (default 512);\n"
                                "defaults never exceed the number of keys"))
      ->delimiter(',')
      ->check(CLI::Range(1, most_length));
  plan_only(command->add_option("--sequences", work.sequences,
                                "SEQUENCESxKEYS: numbers of sequences and of their keys, as 8x1024,64x8192"))
      ->delimiter(',')
      ->excludes(batch)
      ->excludes(lengths)
      ->excludes(kv_len);
  plan_only(command->add_option("--shared-prefix", work.prefix_len,
                                "keys of a prefix that all sequences see before their own keys (default 0)"))
      ->check(CLI::Range(0, most_length));
  plan_only(command->add_flag("!--no-cascade", work.cascade,
                              "each sequence reads the pages of --shared-prefix itself"));
  plan_only(command->add_option("--page-size", work.page_size,
                                "rows of a page, 0: contiguous (default 16, for prefill 0)"))
      ->check(CLI::Range(0, most_length));
  plan_only(command->add_flag("--sparse", work.sparse,
                              "page tables are lists in which negative numbers hide keys; --page-size is 1\n"
                              "unless given"));
  plan_only(command->add_option("--pages", work.pages, "order of the pages: shuffled (default) or in-order"))
      ->check(CLI::IsMember({"shuffled", "in-order"}));
}

void add_device(CLI::App *command, BenchOptions &bench, CLI::Option *timing, CLI::Option *kernel) {
  CLI::Option *const device =
      command->add_option("--device", bench.device, "hip:N: time the runs on a GPU, with HIP's events");
  kernel->excludes(device);
  command->add_option("--warm-up", bench.runs.warm_up, "runs that do not count (default 10)")
      ->check(CLI::Range(0, most_count))
      ->needs(device);
  command->add_option("--repetitions", bench.runs.repetitions, "runs that count (default 30)")
      ->check(CLI::Range(1, most_count))
      ->needs(device);
  command
      ->add_option("--flush-mib", bench.runs.flush_mib,
                   "memory filled before each run, which empties the caches (default 512); 0: none")
      ->check(CLI::Range(0, 1 << 14))
      ->needs(device);
  command->add_flag("--no-model", bench.no_model, "omit the model's figure beside the device's")
      ->needs(device)
      ->excludes(timing);
}

} // namespace

void add_bench(CLI::App &app, BenchOptions &bench) {
  CLI::App *const command =
      app.add_subcommand("bench", "measure how fast attention is, on the model of the chip or on a GPU");
  CLI::Option *const timing = command->add_flag("--timing", bench.timing, "use the timing model");
  CLI::Option *const kernel = command->add_option(
      "--kernel,--filter", bench.kernel_filter,
      "prefill with each kernel whose name matches, with * and ?, in place of those that\n"
      "the library chooses");
  add_work(command, bench.work, kernel);
  add_device(command, bench, timing, kernel);
  command
      ->add_option("--workgroups", bench.workgroups,
                   "workgroups to simulate on each compute unit; 0: all of its workgroups. Default, without\n"
                   "--compute-units: the whole launch or XCD if it is small, else 8 on each of 5 compute\n"
                   "units (with --kernel always)")
      ->check(CLI::Range(0, 1 << 20));
  command
      ->add_option("--compute-units", bench.compute_units,
                   "compute units simulated together, at most: neighbours that read the same keys; 38\n"
                   "with --workgroups 0: the whole of an XCD")
      ->check(CLI::Range(1, 38));
  command
      ->add_option(
          "--xcds", bench.xcds,
          "XCDs simulated, each with an L2 of its own: lines that they share are then read from HBM\n"
          "once. Default: as the model decides. Without --workgroups and --compute-units all of each")
      ->check(CLI::Range(1, 8));
  add_file(command, "--json", bench.json_file, "also write all figures to this file");
  command->add_flag("--markdown", bench.markdown, "print tables for a page");
  command
      ->add_flag("--parts", bench.parts, "show where the time of the matrix cores goes, in parts that add up")
      ->needs(kernel);
  add_file(command, "--pack", bench.pack_file,
           "a pack, or a library with one inside (default: the library in use)");
}

} // namespace sluice::tools
