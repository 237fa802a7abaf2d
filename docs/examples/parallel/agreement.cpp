//===- agreement.cpp - the ranks agree that all is well, or on what is not ------------------------------===//

#include "agreement.h"

#include <chrono>
#include <thread>

namespace parallel {

void pause() {
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

void wait(MPI_Request request) {
  int done = 0;
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done)
    pause();
}

Ranks::Ranks() {
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, own, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &local);
  MPI_Comm_free(&node);
}

void Ranks::broadcast(void *bytes, size_t size_bytes, int from) const {
  MPI_Request request;
  MPI_Ibcast(bytes, int(size_bytes), MPI_BYTE, from, MPI_COMM_WORLD, &request);
  wait(request);
}

std::string Ranks::told_by(int from, std::string text) const {
  size_t length = text.size();
  broadcast(&length, sizeof length, from);
  text.resize(length);
  broadcast(text.data(), length, from);
  return text;
}

void Ranks::agree(const std::string &step, const Outcome &outcome) const {
  // As long as all is well, this is all that is exchanged: one number.
  const int mine = outcome.good() ? all : own;
  int first = all;
  MPI_Request request;
  MPI_Iallreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
  wait(request);
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
