//===- main.cpp - attention over several devices with MPI -----------------------------------------------===//
//
// A causal prompt by heads and as a ring, and a step of decoding with the keys divided. Each result is
// compared with one device's, and the bytes that were sent with their formula's; any difference makes every
// rank fail.
//
//===----------------------------------------------------------------------------------------------------===//

#include "trials.h"

#include <cstdio>
#include <string_view>

namespace {

using namespace parallel;

void run(const Ranks &ranks, int count, char **arguments) {
  Options options;
  std::optional<Device> device;
  ranks.together("begin", [&] {
    options = parse(count, arguments);
    // The emulator is a device of its process. GPUs are shared by the ranks of a node.
    const bool on_gpu = options.device == SLUICE_DEVICE_HIP;
    device.emplace(options.device, on_gpu ? ranks.local_rank() : 0);
    if (!options.buffers)
      options.buffers = on_gpu && mpi_takes_device_pointers() ? Buffers::device : Buffers::host;
  });
  Member member{ranks, *device, *options.buffers, options.hold_runs};
  if (options.fail != Failure::none) fail(member, options.fail, options.dim);
  if (options.prefill) prefill(member, options);
  if (options.decode) decode(member, options);
}

} // namespace

int main(int count, char **arguments) {
  if (count == 2 && std::string_view(arguments[1]) == "--help") {
    std::fputs(usage, stdout);
    return 0;
  }
  int provided; // streams have threads of their own, but MPI is called here only
  MPI_Init_thread(&count, &arguments, MPI_THREAD_FUNNELED, &provided);
  int status = 0;
  {
    const Ranks ranks;
    try {
      run(ranks, count, arguments);
    } catch (const Failed &failed) { // all ranks are here
      std::fprintf(stderr, "rank %d: %s\n", ranks.rank(), failed.what());
      status = 1;
    } catch (const std::exception &error) { // only this rank failed: the others would wait for it
      std::fprintf(stderr, "rank %d ends the program: %s\n", ranks.rank(), error.what());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  MPI_Finalize();
  return status;
}
