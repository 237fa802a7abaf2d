//===- agreement.h - the ranks agree that all is well, or on what is not --------------------------------===//
//
// If one rank fails, the others would wait for messages that will not come. So before data are
// exchanged, and after each step, all ranks say whether they are well. If one is not, every rank throws
// Failed with the same sentence. A rank that dies says nothing: mpirun notices, and ends the rest.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <exception>
#include <mpi.h>
#include <stdexcept>
#include <string>
#include <utility>

namespace parallel {

/// Waits for a request of MPI. MPI's own waits keep a core busy, which emulated devices need.
void wait(MPI_Request request);
/// Sleeps 20 us between two tests for completion: messages take milliseconds.
void pause();

/// The step, the rank that failed in it (the lowest, if several did) and its reason: the same on all ranks.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Success or failure of a rank's part of a step. After a failure, run() does nothing.
class Outcome {
public:
  template <class Work> void run(Work &&work) {
    if (!good()) return;
    try {
      std::forward<Work>(work)();
    } catch (const std::exception &error) { // of any type: the others must know of it
      reason = *error.what() ? error.what() : "an exception without a message";
    }
  }
  bool good() const { return reason.empty(); }
  const std::string &failure() const { return reason; }

private:
  std::string reason;
};

/// The ranks of this program.
class Ranks {
public:
  /// MPI has been initialised.
  Ranks();

  int rank() const { return own; }
  int size() const { return all; }
  /// Among the ranks of one node, which share its devices.
  int local_rank() const { return local; }

  /// Returns if every rank has come here without a failure. Throws Failed on every rank otherwise.
  void agree(const std::string &step, const Outcome &outcome) const;
  /// Returns if every rank has the facts of rank 0. Throws Failed on every rank otherwise.
  void agree_on(const std::string &step, const std::string &facts) const;
  /// A step of this rank; if one rank fails in it, all do.
  template <class Work> void together(const std::string &step, Work &&work) const {
    Outcome outcome;
    outcome.run(std::forward<Work>(work));
    agree(step, outcome);
  }

  /// The bytes of rank `from` become everyone's. At most 2^31 - 1.
  void broadcast(void *bytes, size_t size_bytes, int from) const;

private:
  /// The text of rank `from`.
  std::string told_by(int from, std::string text) const;

  int own = 0, all = 0, local = 0;
};

} // namespace parallel
