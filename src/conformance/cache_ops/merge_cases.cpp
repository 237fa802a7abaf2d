//===- merge_cases.cpp - the cases of sluice_attention_merge --------------------------------------------===//
//
// For every merge kernel of the pack, each feature separately, and some together.
//
//===----------------------------------------------------------------------------------------------------===//
#include "conformance/cache_ops/case_names.h"
#include "conformance/cache_ops/kernel_types.h"
#include "conformance/cache_ops/merge_case.h"

namespace sluice::conformance {

namespace {

/// Cases of one kernel, each a change of a plain one.
struct CaseList {
  KernelTypes types;
  std::vector<MergeCase> cases = {};

  template <typename Change> void with(Change change) {
    MergeCase c{.partial = types.from, .o = types.to};
    change(c);
    cases.push_back(c);
  }
};

void add_numbers_of_parts(CaseList &list) {
  // Up to 16 lanes hold up to 4 parts each at once: numbers around those, and beyond all.
  for (const int parts : {1, 2, 3, 4, 5, 8, 9, 16, 17, 63, 64, 65, 130}) {
    list.with([&](MergeCase &c) {
      c.parts = parts;
      c.sink_logits = parts % 2 == 0;
    });
    if (parts > 2)
      list.with([&](MergeCase &c) {
        c.parts = parts;
        c.weights = Weights::some;
        c.apart = parts % 2 == 0;
        c.lse_base_2 = parts % 4 == 1;
        c.sink_logits = parts % 3 == 0;
      });
  }
  // Parts without gaps, read at once or step by step, and results elsewhere.
  for (const int parts : {3, 40, 130})
    for (const Weights weights : {Weights::some, Weights::infinite})
      list.with([&](MergeCase &c) {
        c.parts = parts;
        c.weights = weights;
        c.results_apart = true;
      });
}

void add_widths(CaseList &list) {
  // A row of one chunk, of as many chunks as a wave and a workgroup have lanes, and of one more.
  for (const int size : {8, 24, 128, 512, 520, 2056})
    list.with([&](MergeCase &c) {
      c.parts = 6;
      c.head_size = size;
      c.tokens = 2;
      c.sink_logits = true;
    });
  // Rows of other widths, of which a workgroup has several, and the widest in several rounds.
  for (const int size : {8, 16, 40, 72, 128, 256, 512, 1048, 2048, 4104})
    for (const bool apart : {false, true})
      list.with([&](MergeCase &c) {
        c.parts = size > 2000 ? 1 : 2;
        c.head_size = size;
        c.tokens = size > 500 ? 5 : 17;
        c.heads = size > 500 ? 3 : 7;
        c.apart = apart;
      });
}

void add_sinks_and_places_of_results(CaseList &list) {
  for (const bool base_2 : {false, true})
    for (const bool sinks : {false, true}) {
      for (const Weights weights : {Weights::far, Weights::not_finite})
        list.with([&](MergeCase &c) {
          c.parts = 7;
          c.weights = weights;
          c.lse_base_2 = base_2;
          c.sink_logits = sinks;
        });
      list.with([&](MergeCase &c) {
        c.parts = 6;
        c.tokens = 17;
        c.heads = 7;
        c.lse_base_2 = base_2;
        c.sink_logits = sinks;
        c.lse = base_2 == sinks;
        c.apart = sinks;
      });
    }
  if (list.types.from == list.types.to)
    for (const bool apart : {false, true})
      list.with([&](MergeCase &c) {
        c.parts = 7;
        c.apart = apart;
        c.in_place = true;
      });
}

void add_parts_of_others(CaseList &list) {
  // Empty parts as FlashAttention marks them: at once with one part in each lane, and step by step.
  for (const int parts : {2, 5, 16, 40})
    for (const bool apart : {false, true})
      list.with([&](MergeCase &c) {
        c.parts = parts;
        c.weights = Weights::infinite;
        c.apart = apart;
        c.sink_logits = parts == 5;
        c.lse_base_2 = parts == 16;
      });
  // Parts in any place, with one and with several in a lane: the widest rows have one lane for all parts.
  for (const PartPlaces places : {PartPlaces::backwards, PartPlaces::listed})
    for (const int parts : {3, 8, 16})
      for (const int size : {64, 1032})
        list.with([&](MergeCase &c) {
          c.parts = parts;
          c.head_size = size;
          c.places = places;
          c.apart = parts != 8;
          c.weights = size == 64 ? Weights::infinite : Weights::some;
          c.in_place = parts == 8 && list.types.from == list.types.to;
        });
  // LSEs of several sequences.
  for (const int sequences : {1, 2, 6})
    for (const PartPlaces places : {PartPlaces::in_order, PartPlaces::listed})
      list.with([&](MergeCase &c) {
        c.parts = 6;
        c.tokens = 12;
        c.sequences = sequences;
        c.places = places;
        c.apart = places == PartPlaces::in_order;
        c.in_place = sequences == 2 && list.types.from == list.types.to;
        c.weights = Weights::some;
      });
}

void add_scales(CaseList &list) {
  // Scales of O in each of the ways: at once with one part or several in each lane, step by step, and both
  // with code of their own.
  for (const int power : {-125, 100})
    for (const int parts : {1, 7, 40})
      list.with([&](MergeCase &c) {
        c.power = power;
        c.parts = parts;
        c.o_scale = Scale::head;
      });
  for (const Scale scale : {Scale::tensor, Scale::head})
    for (const int parts : {1, 7, 40, 130})
      for (const Weights weights : {Weights::some, Weights::infinite})
        list.with([&](MergeCase &c) {
          c.parts = parts;
          c.head_size = 40;
          c.o_scale = scale;
          c.weights = weights;
          c.apart = parts == 7;
          c.sink_logits = parts == 40;
        });
}

std::vector<MergeCase> merge_cases_of(const KernelTypes &types) {
  CaseList list{types};
  add_numbers_of_parts(list);
  add_widths(list);
  add_sinks_and_places_of_results(list);
  add_parts_of_others(list);
  if (types.to == Element::fp8) add_scales(list);
  return list.cases;
}

} // namespace

std::vector<MergeCase> merge_cases(const Target &target, Level level) {
  std::vector<MergeCase> all;
  for (const std::string &kernel : target.names("merge_states")) {
    const KernelTypes types = types_of(kernel, "merge_states_");
    for (MergeCase &c : merge_cases_of(types))
      add_named(all, std::move(c), kernel);
    // More workgroups, with four rows each, than a grid has along x.
    if (level == Level::full)
      add_named(
          all,
          {.partial = types.from, .o = types.to, .parts = 1, .tokens = 3280, .heads = 5, .head_size = 264},
          kernel);
  }
  return all;
}

} // namespace sluice::conformance
