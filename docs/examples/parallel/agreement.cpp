//===- agreement.cpp - the ranks agree that all is well, or on what is not ------------------------------===//

#include "agreement.h"

namespace parallel {

Ranks::Ranks() {
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, own, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &local);
  MPI_Comm_free(&node);
}

std::string Ranks::told_by(int from, std::string text) const {
  int length = int(text.size());
  MPI_Bcast(&length, 1, MPI_INT, from, MPI_COMM_WORLD);
  text.resize(size_t(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, from, MPI_COMM_WORLD);
  return text;
}

void Ranks::agree(const std::string &step, const Outcome &outcome) const {
  // As long as all is well, this is all that is exchanged: one number.
  const int mine = outcome.good() ? all : own;
  int first = all;
  MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == all) return;
  throw Failed(step + ": rank " + std::to_string(first) + ": " + told_by(first, outcome.failure()));
}

void Ranks::agree_on(const std::string &step, const std::string &facts) const {
  const std::string wanted = told_by(0, facts);
  together(step, [&] {
    if (facts != wanted) throw std::runtime_error("it has " + facts + "; rank 0 has " + wanted);
  });
}

} // namespace parallel
