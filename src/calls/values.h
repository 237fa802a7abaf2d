//===- values.h - calls as the structs of the C ABI -----------------------------------------------------===//
//
// For callers of the library that describe calls by the structs of this folder: tools and tests. The structs
// of the C ABI point to one another: they stay where they are made.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "calls/args.h"
#include "calls/cache_ops.h"
#include "calls/problem.h"

namespace sluice::calls {

class ProblemValues {
public:
  explicit ProblemValues(const Problem &problem);
  ProblemValues(const ProblemValues &) = delete;
  ProblemValues &operator=(const ProblemValues &) = delete;
  operator const sluice_attention *() const { return &attention; }

private:
  void set_features(const Problem &problem);

  sluice_attention attention = {};
  sluice_kv_format format = {};
  sluice_mask mask = {};
  sluice_scores scores = {};
};

/// K and V in memory, for those below.
struct KvValues {
  sluice_kv_format format = {};
  sluice_kv_scales scales = {};
  sluice_kv kv = {};
};

class ArgsValues {
public:
  ArgsValues(const Problem &problem, const Args &args);
  ArgsValues(const ArgsValues &) = delete;
  ArgsValues &operator=(const ArgsValues &) = delete;
  operator const sluice_attention_args *() const { return &args; }

private:
  void set_keys(const Problem &problem, const Args &call);
  void set_prefixes(const Problem &problem, const Args &call);
  void set_features(const Problem &problem, const Args &call);

  sluice_attention_args args = {};
  KvValues cache;
  sluice_kv prefix_kv = {};
  sluice_keys keys[2] = {};
  sluice_mask_args mask = {};
  sluice_scores_args scores = {};
  sluice_tensor lse = {};
  float scale = 0;
};

class AppendValues {
public:
  explicit AppendValues(const Append &append);
  AppendValues(const AppendValues &) = delete;
  AppendValues &operator=(const AppendValues &) = delete;
  operator const sluice_append_args *() const { return &args; }

private:
  sluice_append_args args = {};
  KvValues cache;
  sluice_rotation rotation = {};
  sluice_norm k_norm = {}, q_norm = {};
  sluice_append_q q = {};
};

class CopyValues {
public:
  explicit CopyValues(const PageCopy &copy);
  CopyValues(const CopyValues &) = delete;
  CopyValues &operator=(const CopyValues &) = delete;
  operator const sluice_copy_args *() const { return &args; }

private:
  sluice_copy_args args = {};
  KvValues source, target;
};

class GatherValues {
public:
  explicit GatherValues(const Gather &gather);
  GatherValues(const GatherValues &) = delete;
  GatherValues &operator=(const GatherValues &) = delete;
  operator const sluice_gather_args *() const { return &args; }

private:
  sluice_gather_args args = {};
  KvValues source, target;
};

} // namespace sluice::calls
