//===- ScheduleTable.cpp - kernels with schedules of their own ------------------------------------------===//
#include "generate/ScheduleTable.h"

#include "attention/Schedule.h"
#include "package/kernel_name.h"
#include "target/ScheduleChoices.h"

#include "llvm/ADT/SmallVector.h"

namespace sluice {

std::string refuseParts(llvm::StringRef kernel, llvm::StringRef parts) {
  const bool isAttention = kernel.starts_with("attn_fwd");
  ScheduleChoices choices;
  Schedule schedule;
  if (parts.trim().empty()) return "no part of a schedule is given";
  llvm::StringRef wrong = setParts(parts, [&](llvm::StringRef name, llvm::StringRef value) {
    return choices.set(name, value) || (isAttention && schedule.set(name, value));
  });
  if (wrong.empty()) return {};
  return "'" + wrong.str() + "' is no part of its schedule: these are " + ScheduleChoices().text() +
         (isAttention ? " " + Schedule().text() : "") + ", or with other values";
}

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
    auto [name, parts] = line.split(' ');
    if (!package::parse_kernel_name(std::string_view(name))) return refuse("'" + name + "' names no kernel");
    if (std::string why = refuseParts(name, parts); !why.empty()) return refuse(why);
    if (!table.try_emplace(name, parts.trim().str()).second) return refuse("'" + name + "' is here twice");
  }
  return table;
}

} // namespace sluice
