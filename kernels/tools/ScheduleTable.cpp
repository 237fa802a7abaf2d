//===- ScheduleTable.cpp - kernels with their own choices for the final order ---------------------------===//
#include "tools/ScheduleTable.h"

#include "package/kernel_name.h"

#include "llvm/ADT/SmallVector.h"

namespace sluice {

llvm::Expected<ScheduleTable> parseScheduleTable(llvm::StringRef text) {
  ScheduleTable table;
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n');
  for (size_t n = 0; n < lines.size(); ++n) {
    llvm::StringRef line = lines[n].split('#').first.trim();
    if (line.empty()) continue;
    auto refuse = [&](const llvm::Twine &why) {
      return llvm::createStringError("line " + llvm::Twine(n + 1) + ": " + why);
    };
    auto [name, numbers] = line.split(' ');
    if (!package::parse_kernel_name(std::string_view(name))) return refuse("'" + name + "' names no kernel");
    std::optional<ScheduleChoices> choices = ScheduleChoices::parse(numbers);
    if (!choices)
      return refuse("'" + numbers + "' are not the choices of a schedule: three numbers, the first not 0");
    if (!table.try_emplace(name, *choices).second) return refuse("'" + name + "' is here twice");
  }
  return table;
}

} // namespace sluice
