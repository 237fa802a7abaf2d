//===- attention_call.h - one attention call on .npy files ----------------------------------------------===//
//
// The common parts of `run` and `verify`: the files and options that describe a call, and the call on a
// device.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/problem.h"
#include "tools/shared/context.h"
#include "tools/shared/npy.h"

#include <optional>
#include <string>

namespace sluice::tools {

struct CallOptions {
  std::string q_file, k_file, v_file;
  std::string alignment = "bottom-right";
  std::string device = "emulated";
  std::optional<float> scale = std::nullopt; // none: 1 / sqrt(head size)
  bool causal = false;
  bool bf16 = false;
};

/// Q, K and V of a call: [batch, token, head, dim] each, with matching shapes.
struct CallInputs {
  NpyArray q, k, v;

  int64_t batch() const { return q.shape[0]; }
  int64_t q_len() const { return q.shape[1]; }
  int64_t q_heads() const { return q.shape[2]; }
  int64_t head_dim_qk() const { return q.shape[3]; }
  int64_t kv_len() const { return k.shape[1]; }
  int64_t kv_heads() const { return k.shape[2]; }
  int64_t head_dim_v() const { return v.shape[3]; }
  std::vector<int64_t> o_shape() const { return {batch(), q_len(), q_heads(), head_dim_v()}; }
  std::vector<int64_t> lse_shape() const { return {batch(), q_heads(), q_len()}; }
};

/// The value of --scale. Throws ToolError if it is not a number, or as a float overflows or underflows to 0.
float parse_scale(const std::string &text);

/// Throws NpyError with the option, the file, and the mismatch.
CallInputs load_inputs(const CallOptions &options);

/// The problem of a call, LSE included, bounds exact.
calls::Problem make_problem(const CallOptions &options, const CallInputs &inputs);

/// Arguments of a call on contiguous tensors: O [batch, q_len, q_heads, dim], LSE [batch, q_heads, q_len].
calls::Args make_args(const CallOptions &options, const CallInputs &inputs, void *q, void *k, void *v,
                      void *o, void *lse);

struct CallResult {
  NpyArray o, lse;
  std::string kernel;
  double seconds = 0; // from launch to completion
  std::optional<sluice_emulator_counters_t> counters;
};

/// Shows a progress bar on stderr if it takes longer than a second.
CallResult run_call(const CallOptions &options, const CallInputs &inputs);

/// "kernel ..., 1.25 s, 123 waves, 456 instructions"
std::string describe(const CallResult &result);

} // namespace sluice::tools
