//===- trace_writer.h - a launch's instructions as text -------------------------------------------------===//
#pragma once

#include "emulator/machine/trace.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace sluice::tools::emu {

class TraceWriter : public emulator::Tracer {
public:
  /// Restricts the trace, where given.
  struct Selection {
    std::optional<std::array<uint32_t, 3>> workgroup;
    std::optional<uint32_t> wave;
  };

  /// `path` is "-" for stdout. `lanes` of vector registers are shown. Throws ToolError.
  TraceWriter(std::string path, Selection selection, uint32_t lanes);

  bool follows(std::array<uint32_t, 3> workgroup, uint32_t wave) const override;
  void executed(const emulator::TracedInstruction &instruction) override;
  /// Throws ToolError if anything could not be written.
  void finish();

private:
  struct CloseFile {
    void operator()(std::FILE *stream) const {
      if (stream != stdout) std::fclose(stream);
    }
  };

  std::string path;
  Selection selection;
  uint32_t lanes;
  std::mutex mutex;
  std::unique_ptr<std::FILE, CloseFile> file;
};

} // namespace sluice::tools::emu
