//===- by_sequence.cpp - slopes of ALiBi and scales of a bias for each sequence -------------------------===//
//
// A property of both changes: it changes their numbers (heads.h), and its part of the name follows theirs.
//
//===----------------------------------------------------------------------------------------------------===//
#include "conformance/attention/scores/scores.h"

namespace sluice::conformance {

namespace {

bool is_in(const Case &c) {
  return c.by_sequence;
}

std::string name(const Case &) {
  return "_each";
}

void keep_meaningful(Case &c) {
  if (!c.alibi && !c.bias.scaled) c.by_sequence = false;
}

} // namespace

const ScoreChange scores::by_sequence = {
    .is_in = is_in,
    .name = name,
    .keep_meaningful = keep_meaningful,
};

} // namespace sluice::conformance
