//===- timeline.cpp - the activity of a compute unit's waves, clk by clk --------------------------------===//
#include "emulator/timing/timeline.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "emulator/timing/control_flow.h"
#include "emulator/timing/saved_memory.h"

namespace sluice::emulator::timing {

namespace {

//===--- The loop ---------------------------------------------------------------------------------------===//

struct LoopOps {
  uint32_t header;
  std::vector<bool> inside; // by index of instruction
};

/// Among the loops that ran and contain no other loop that ran, the one in which most instructions were
/// issued.
LoopOps busiest_loop(const ProgramImpl &program, const package::Kernel &kernel, const TimingResult &result) {
  const ControlFlow flow = control_flow(program, program.ops_of(kernel));
  auto issued = [&](const Loop &loop) {
    uint64_t sum = 0;
    for (uint32_t block : loop.blocks)
      for (uint32_t op = flow.blocks[block].ops.first; op < flow.blocks[block].ops.last; ++op)
        sum += result.instructions[op].issued;
    return sum;
  };
  auto ran = [&](const Loop &loop) { return result.instructions[loop.header].issued != 0; };
  auto is_innermost = [&](const Loop &loop) {
    return std::none_of(flow.loops.begin(), flow.loops.end(), [&](const Loop &other) {
      if (&other == &loop || !ran(other)) return false;
      return std::any_of(loop.blocks.begin(), loop.blocks.end(),
                         [&](uint32_t block) { return flow.blocks[block].ops.first == other.header; });
    });
  };
  const Loop *best = nullptr;
  for (const Loop &loop : flow.loops)
    if (ran(loop) && is_innermost(loop) && (!best || issued(loop) > issued(*best))) best = &loop;
  if (!best)
    throw std::invalid_argument("no loop of kernel \"" + result.kernel +
                                "\" was executed, so no iteration can be shown; choose a window of clk");
  LoopOps ops{best->header, std::vector<bool>(program.fast.size())};
  for (uint32_t block : best->blocks)
    for (uint32_t op = flow.blocks[block].ops.first; op < flow.blocks[block].ops.last; ++op)
      ops.inside[op] = true;
  return ops;
}

//===--- Its iterations ---------------------------------------------------------------------------------===//

/// Finds when iterations of a loop begin, for the first wave of a workgroup that enters the loop.
class IterationFinder : public Observer {
public:
  IterationFinder(const WorkgroupTime &workgroup, const LoopOps &loop) : workgroup(workgroup), loop(loop) {}

  uint32_t compute_unit() const override { return workgroup.compute_unit; }
  void issued(const WaveName &wave, uint32_t op, uint64_t clk, Pipe, Occupation) override {
    if (wave.workgroup != workgroup.number || !loop.inside[op]) return;
    // Outside of that time it ran without counting.
    if (clk < workgroup.start || clk >= workgroup.end) return;
    if (op == loop.header && (begins.empty() || wave.wave == chosen)) {
      chosen = wave.wave;
      if (begins.size() < most_iterations) begins.push_back(clk);
    }
    if (wave.wave == chosen) end = clk + turn_clk;
  }
  void waited(const WaveName &, uint32_t, Stall, uint64_t, uint64_t) override {}

  uint32_t wave() const { return chosen; }
  uint64_t count() const { return begins.size(); }
  /// From one issue of the loop's first instruction to the next; for the last iteration, to its last
  /// instruction.
  std::pair<uint64_t, uint64_t> window(uint64_t iteration) const {
    return {begins[iteration], iteration + 1 < begins.size() ? begins[iteration + 1] : end};
  }
  /// The iteration of median length; if there are several, the one in the middle.
  uint64_t median() const {
    auto length = [&](uint64_t i) { return window(i).second - window(i).first; };
    std::vector<uint64_t> lengths;
    for (uint64_t i = 0; i < count(); ++i)
      lengths.push_back(length(i));
    const auto middle = lengths.begin() + ptrdiff_t(count() / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    uint64_t best = 0;
    auto from_middle = [&](uint64_t i) { return i > count() / 2 ? i - count() / 2 : count() / 2 - i; };
    for (uint64_t i = 0; i < count(); ++i)
      if (length(i) == *middle && (length(best) != *middle || from_middle(i) < from_middle(best))) best = i;
    return best;
  }

private:
  static constexpr size_t most_iterations = 1 << 20; // further ones are ignored

  const WorkgroupTime workgroup;
  const LoopOps &loop;
  std::vector<uint64_t> begins;
  uint64_t end = 0;
  uint32_t chosen = 0;
};

//===--- The window -------------------------------------------------------------------------------------===//

class WindowRecorder : public Observer {
public:
  explicit WindowRecorder(Timeline &timeline) : timeline(timeline) {}

  uint32_t compute_unit() const override { return timeline.compute_unit; }
  void issued(const WaveName &wave, uint32_t op, uint64_t clk, Pipe pipe, Occupation busy) override {
    if (!in_window(clk, std::max(busy.end, clk + turn_clk))) return;
    timeline.issued.push_back({index_of(wave), op, pipe, clk, busy});
  }
  void waited(const WaveName &wave, uint32_t op, Stall reason, uint64_t begin, uint64_t end) override {
    if (in_window(begin, end)) timeline.waiting.push_back({index_of(wave), op, reason, begin, end});
  }

  /// Sorts the waves.
  void finish() {
    std::vector<uint32_t> order(timeline.waves.size());
    for (uint32_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const WaveName &x = timeline.waves[a], &y = timeline.waves[b];
      return std::pair(x.simd, x.age) < std::pair(y.simd, y.age);
    });
    std::vector<uint32_t> place(order.size());
    std::vector<WaveName> waves;
    for (uint32_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      waves.push_back(timeline.waves[order[i]]);
    }
    timeline.waves = std::move(waves);
    for (IssuedBar &bar : timeline.issued)
      bar.wave = place[bar.wave];
    for (WaitingBar &bar : timeline.waiting)
      bar.wave = place[bar.wave];
  }

private:
  bool in_window(uint64_t begin, uint64_t end) const { return begin < timeline.end && end > timeline.begin; }
  uint32_t index_of(const WaveName &wave) {
    const auto [found, added] = by_age.emplace(wave.age, uint32_t(timeline.waves.size()));
    if (added) timeline.waves.push_back(wave);
    return found->second;
  }

  Timeline &timeline;
  std::map<uint64_t, uint32_t> by_age;
};

void expect_window(uint64_t begin, uint64_t end, const char *what) {
  if (begin < end && end - begin <= most_window_clk) return;
  throw std::invalid_argument(std::string(what) + " is " + std::to_string(begin) + " to " +
                              std::to_string(end) + " clk; a timeline has 1 to " +
                              std::to_string(most_window_clk) + " clk");
}

} // namespace

TimedLaunch time_launch_with_timeline(const Program &program, std::string_view kernel,
                                      std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                                      uint32_t dynamic_lds_bytes, std::span<const std::byte> kernarg,
                                      const Memory &memory, const TimingOptions &options,
                                      const TimelineRequest &request) {
  if (request.window) {
    if (request.iteration)
      throw std::invalid_argument("an iteration and a window are both given; a timeline shows one of them");
    expect_window(request.window->first, request.window->second, "the window");
  }
  const SavedMemory before(memory);
  auto simulate = [&](Observer *observer) {
    TimingOptions observed = options;
    observed.observer = observer;
    return time_launch(program, kernel, grid, block, dynamic_lds_bytes, kernarg, memory, observed);
  };
  TimedLaunch launch;
  TimingResult &result = launch.result;
  Timeline &timeline = launch.timeline;
  result = simulate(options.observer);
  if (!result.reports.empty()) return launch;

  const WorkgroupTime &middle = result.simulated[result.simulated.size() / 2];
  timeline.kernel = result.kernel;
  timeline.compute_unit = middle.compute_unit;
  if (request.window) {
    std::tie(timeline.begin, timeline.end) = *request.window;
    if (timeline.begin >= result.simulated_clk)
      throw std::invalid_argument("the window begins at " + std::to_string(timeline.begin) +
                                  " clk; the simulated workgroups have ended by " +
                                  std::to_string(result.simulated_clk));
  } else {
    const package::Kernel *const code = program.impl().object.find_kernel(kernel);
    const LoopOps loop = busiest_loop(program.impl(), *code, result);
    IterationFinder finder(middle, loop);
    before.restore();
    simulate(&finder);
    if (finder.count() == 0)
      throw std::invalid_argument("workgroup " + std::to_string(middle.number) +
                                  " does not enter the loop; choose a window of clk");
    const uint64_t iteration = request.iteration.value_or(finder.median());
    if (iteration >= finder.count())
      throw std::invalid_argument("iteration " + std::to_string(iteration) +
                                  " does not exist; the loop has " + std::to_string(finder.count()) +
                                  ", counted from 0");
    std::tie(timeline.begin, timeline.end) = finder.window(iteration);
    expect_window(timeline.begin, timeline.end, "the iteration");
    timeline.iteration = {program.impl().address_of(loop.header), middle.number, finder.wave(), iteration,
                          finder.count()};
  }
  WindowRecorder recorder(timeline);
  before.restore();
  simulate(&recorder);
  recorder.finish();
  return launch;
}

} // namespace sluice::emulator::timing
